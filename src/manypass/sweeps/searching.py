"""Least values of a function that may be dear: coarsely first, then closely."""

from __future__ import annotations

import sys
import time as clock
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar

from manypass import checks, notebooks, verbs
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.problem import Problem, Teacher

POINTS = 41  # of the curve around the optimum
COARSE = 9  # along each field, if there are several; along one, if every value is sampled
FEW = 5  # along each of several, if every value is sampled
CLOSE = {1: 8, 2: 30}  # values around the optimum then, for one field and for more
FINER = 8  # times as long as a coarse value a close one may take
FLAT = 1e-9  # relative differences that are none
SETTLED = 1e-6  # relative differences of curves that no longer change
LONG = 10.0  # seconds from which on the cost is said beforehand


def measured(found: xr.Dataset, objective: str) -> xr.DataArray:
    """Return the objective of a result, or say what may be made least: not overlaps, nor tables."""
    left_out = ("R", "R_end", "diverged")
    small = [n for n in map(str, found.data_vars) if n not in left_out and not n.endswith("_se")]
    small = [n for n in small if "unit" not in found[n].dims]
    if objective not in small and (objective not in found or "unit" in found[objective].dims):
        raise LookupError(
            f"`objective` must be among {', '.join(small)}, got {checks.shown(objective)}"
            f"{checks.meant(objective, small)}"
        )
    return found[objective]


class Notes:
    """What values were warned of, to be told once: a search looks at many of them."""

    def __init__(self) -> None:
        self.asked, self.heard = 0, list[str]()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Note what one value is warned of."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield
        self.asked += 1
        self.heard += [str(each.message) for each in told[:1]]

    def tell(self) -> None:
        """Warn once."""
        if self.heard:
            warnings.warn(
                f"{len(self.heard)} of {self.asked} values that were looked at: {self.heard[0]}",
                stacklevel=checks.outside(),
            )


class Goal:
    """The objective as a function of the varied fields; inf where there is no answer."""

    def __init__(
        self,
        problem: Problem,
        fields: tuple[str, ...],
        objective: str,
        at: float | str,
        method: Any,
        window: float,
        progress: bool,
    ) -> None:
        self.problem, self.fields, self.objective = problem, fields, objective
        verb = "steady_state" if at == "steady" and "time" not in fields else "solve"
        self.at, self.method, self.window = at, verbs.resolve(problem, method, verb), window
        self.rough = getattr(self.method, "rougher", lambda: self.method)()
        self.reason, self.error = "", np.nan
        self.reasons: dict[tuple[float, ...], str] = {}  # why there is no answer
        self.notes = Notes()
        self.settled: float | None = None  # the time from which on nothing changes
        self.known: dict[tuple[float, ...], tuple[float, float]] = {}  # at full accuracy
        self.bar = notebooks.bar(desc="best", unit="value", delay=3.0, disable=not progress)

    def __call__(self, x: Any, rough: bool = False) -> float:
        """Return the objective at x, at full accuracy from memory if it was asked before."""
        place = tuple(map(float, x))
        if place in self.known and not rough:
            value, self.error = self.known[place]
            return value
        chosen = dict(zip(self.fields, place, strict=True))
        window, time = chosen.pop("window", self.window), chosen.pop("time", self.at)
        method = self.rough if rough else self.method
        try:
            problem = self.problem.replace(**chosen)
            with self.notes.taken():
                if isinstance(time, str):
                    found = verbs.steady_state(problem, method, window=window)
                else:
                    found = verbs.solve(problem, [time], method)
        except ValueError as error:
            self.reason = self.reasons[place] = str(error)
            return np.inf
        finally:
            self.bar.update()
        value = float(self.of(found).item())
        if not np.isfinite(value):
            when = "" if isinstance(time, str) else f" by t = {time:g}"
            self.reason, value = f"learning has diverged{when}", np.inf
        if not rough:
            self.known[place] = value, self.error
        return value

    def of(self, found: xr.Dataset) -> xr.DataArray:
        """Return the objective of a result, and note its error."""
        try:
            values = measured(found, self.objective)
        except LookupError as error:
            raise ValueError(f"{error.args[0]}{self._remedy()}") from None
        if f"{self.objective}_se" in found:
            self.error = float(found[f"{self.objective}_se"].values.ravel()[-1])
        return values

    def _remedy(self) -> str:
        """Say what would bring an objective that is not among the results."""
        data = self.problem.data
        if self.objective in ("Eg", "F2_test") and isinstance(data, Dataset) and not data.p_test:
            return ", which needs a test set: `test`, a file, or Dataset(X, y, X_test, y_test)"
        if self.objective == "Et" and isinstance(data, Teacher):
            return (
                ", which is sampled if asked for: use method DMFT() or method Exact(accuracy=1e-2)"
            )
        return ""

    @property
    def sampled(self) -> bool:
        """Whether the values seen so far have errors."""
        return not np.isnan(self.error)

    def begin(self, bounds: Mapping[str, tuple[float, float]]) -> bool:
        """Evaluate the middle of the range; if values are dear, say what the search will cost."""
        if prepare := getattr(self.method, "prepare", None):
            prepare(self.problem)  # compiling is not part of what a value takes
        start = clock.monotonic()
        self([float(np.sqrt(low * high)) for low, high in bounds.values()], rough=True)
        seconds = clock.monotonic() - start
        if not self.sampled and self.rough is self.method:
            return False
        coarse = COARSE if len(bounds) == 1 else FEW ** len(bounds)
        close = CLOSE[min(len(bounds), 2)]
        self.bar.total = 1 + coarse + close
        least, most = seconds * (coarse + close), seconds * (coarse + FINER * close)
        if most > LONG and not self.bar.disable:
            self.bar.write(
                f"best: {coarse} coarse values and up to {close} close ones by "
                f"{type(self.method).__name__}; the first took {seconds:.2g} s, all may take "
                f"{notebooks.span(least)} to {notebooks.span(most)} or, where a value settles "
                f"slowly (a small decay), more",
                file=sys.stderr,
            )
        return True


def along_one(goal: Goal, name: str, bounds: tuple[float, float]) -> tuple[Array, dict[str, Array]]:
    """Scan on a logarithmic scale, then refine around the least value."""
    if name == "time":  # one run has all times
        return _along_time(goal, bounds)
    dear = goal.begin({name: bounds})
    x = np.geomspace(*bounds, COARSE if dear else POINTS)
    y = np.array([goal([value], rough=dear) for value in x])
    if not np.isfinite(y).any():
        raise ValueError(f"no {name} from {bounds[0]:g} to {bounds[1]:g} serves: {goal.reason}")
    _require_slope(goal, y)
    i = int(np.argmin(y))
    if lost := [value for value in map(float, x[:i]) if (value,) in goal.reasons]:
        warnings.warn(
            f"{goal.objective} is not known for {name} from {lost[0]:.3g} to {lost[-1]:.3g}, where "
            f"it may be less: {goal.reasons[lost[-1],]}",
            stacklevel=checks.outside(),
        )
    around = (np.log(x[max(i - 1, 0)]), np.log(x[min(i + 1, x.size - 1)]))
    options: Any = {"xatol": 0.03, "maxiter": CLOSE[1]} if dear else {"xatol": 1e-4}
    with np.errstate(invalid="ignore"):  # inf beside inf, where it diverges
        refined = minimize_scalar(
            lambda u: goal([np.exp(u)]), bounds=around, method="bounded", options=options
        )
    if not dear:
        least = x[i] if y[i] <= refined.fun else float(np.exp(refined.x))
        return np.array([least]), {"x": x, "y": y}
    if i in (0, x.size - 1):  # the search around it never looks at the end itself
        goal([x[i]])
    close = {place[0]: value for place, (value, _) in goal.known.items()}
    curve = dict(sorted((dict(zip(x, y, strict=True)) | close).items()))
    least = min(close, key=lambda place: close[place])
    return np.array([least]), {"x": np.array([*curve]), "y": np.array([*curve.values()])}


def _along_time(goal: Goal, bounds: tuple[float, float]) -> tuple[Array, dict[str, Array]]:
    x = np.geomspace(*bounds, POINTS)
    shown = goal.rough is not goal.method and not goal.bar.disable

    def at(times: Array) -> Array:
        return np.asarray(goal.of(verbs.solve(goal.problem, times, goal.method, progress=shown)))

    y = at(x)
    if not np.isfinite(y).any():
        raise ValueError(f"no time from {bounds[0]:g} to {bounds[1]:g} serves: it has diverged")
    _require_slope(goal, y)
    i = int(np.argmin(y))
    near, far = x[max(i - 1, 0)], x[min(i + 1, POINTS - 1)]
    if not goal.sampled and (first := _still(y)) is not None:
        between = np.geomspace(x[max(first - 1, 0)], x[first], POINTS)
        alike = at(between) <= y[-1] + SETTLED * abs(y[-1])
        goal.settled = float(between[int(np.argmax(alike))])
        return np.array([goal.settled]), {"x": x, "y": y}
    if goal.sampled:
        between = np.geomspace(near, far, POINTS)
        return between[[int(np.argmin(at(between)))]], {"x": x, "y": y}
    with np.errstate(invalid="ignore"):  # the same
        refined = minimize_scalar(
            lambda u: goal([np.exp(u)]),
            bounds=(np.log(near), np.log(far)),
            method="bounded",
            options={"xatol": 1e-4},
        )
    least = x[i] if y[i] <= refined.fun else float(np.exp(refined.x))
    return np.array([least]), {"x": x, "y": y}


def _still(y: Array) -> int | None:
    """Return the place from which on a curve stays at its least value, if it does at its end."""
    away = np.flatnonzero(~(np.abs(y - y.min()) <= SETTLED * np.abs(y.min())))
    first = int(away[-1]) + 1 if away.size else 0
    return first if first < y.size - 1 else None


def along_many(goal: Goal, bounds: Mapping[str, tuple[float, float]]) -> Array:
    """Scan a coarse grid, then go down from its least value by Nelder and Mead's simplex."""
    dear = goal.begin(bounds)
    axes = [np.geomspace(*pair, FEW if dear else COARSE) for pair in bounds.values()]
    grid = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=-1)
    y = np.array([goal(x, rough=dear) for x in grid])
    if not np.isfinite(y).any():
        raise ValueError(f"nothing within the bounds of {', '.join(bounds)} serves: {goal.reason}")
    _require_slope(goal, y.reshape([axis.size for axis in axes]))
    start = np.log(grid[int(np.argmin(y))])
    limits: Any = [(np.log(low), np.log(high)) for low, high in bounds.values()]
    options: Any = {"xatol": 1e-4, "fatol": 1e-10, "maxiter": 400}
    if dear:
        options = {"xatol": 0.03, "fatol": goal.error, "maxfev": CLOSE[2]}

    def along(u: Any) -> float:
        return goal(np.exp(u))

    found: Any = minimize(along, start, method="Nelder-Mead", bounds=limits, options=options)
    return np.asarray(np.exp(found.x))


def _require_slope(goal: Goal, y: Array) -> None:
    """Refuse a field that the objective does not depend on: any value of it would be the best."""
    for axis, name in enumerate(goal.fields):
        with np.errstate(invalid="ignore"):  # where nothing serves, whatever the field
            spread = np.nan_to_num(np.ptp(y, axis=axis), nan=0.0, posinf=np.inf)
        least = float(y[np.isfinite(y)].min())
        if spread.max() <= FLAT * abs(least):
            steady = goal.at == "steady" and name != "time"
            where, way = (" in the steady state", ", or choose a time `at`") if steady else ("", "")
            raise ValueError(
                f"`over` = {name!r}: {goal.objective}{where} does not depend on it, it is "
                f"{least:.4g} at every value: vary another field{way}"
            )
