"""`best`: the rate, decay, window or stopping time that makes an error least, on the theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar

from manypass import checks, results, verbs
from manypass.checks import Array
from manypass.problem import Problem, checked
from manypass.rules import Adaline

POINTS = 41  # of the curve around the optimum
COARSE = 9  # along each field, if there are several
FIELDS = ("rate", "decay", "temperature", "noise", "alpha", "window", "time")


def best(
    problem: Problem,
    over: str | Mapping[str, tuple[float, float]],
    *,
    objective: str = "Eg",
    at: float | str = "steady",
    method: Any = "auto",
    window: float = 0.0,
) -> xr.Dataset:
    """Find min over v (λ, τ, t, ...) of E_g, or of another result, on the theory.

    Parameters
    ----------
    problem : Problem
        Everything that is not varied.
    over : str or mapping
        "rate", "decay", "window" (the averaging time τ, in the steady state), "time" (when to
        stop), ... or a mapping of one or more of them to their bounds. By default a rate goes up
        to the critical one, a decay from 0.001 to 100, a window to 100, a time to 1000.
    objective : str
        The result that should be small: Eg, Et, F2, Q.
    at : float or "steady"
        When it should be small; of no concern if `over` is the time.
    method : Method or str
        As for `solve`.
    window : float
        Averaging time in the steady state, unless it is varied.

    Returns
    -------
    xarray.Dataset
        `best_rate` (or other field) and the least `best_Eg`; for one field also the curve of the
        objective around it. The attribute `bound` says if the optimum lies at the end of the range.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
    >>> found = mp.best(problem, over="decay")
    >>> round(float(found.best_decay), 2), round(float(found.best_Eg), 4)
    (0.18, 0.2629)
    >>> round(float(mp.best(problem.replace(decay=0.0), over="time").best_time), 1)
    5.0
    """
    checked(problem)
    bounds = _bounds(problem, over, at)
    goal = _Goal(problem, tuple(bounds), objective, at, method, window)
    if len(bounds) == 1:
        found, curve = _along_one(goal, *next(iter(bounds.items())))
    else:
        found, curve = _along_many(goal, bounds), {}
    low, high = np.array(list(bounds.values())).T
    at_bound = [
        name
        for name, x, a, b in zip(bounds, found, low, high, strict=True)
        if x <= a * (1 + 1e-6) or x >= b * (1 - 1e-6)
    ]
    values = {f"best_{name}": x for name, x in zip(bounds, found, strict=True)}
    values[f"best_{objective}"] = goal(found)
    out = xr.Dataset(values)
    if curve:
        name = next(iter(bounds))
        out = out.assign({objective: (name, curve["y"])}).assign_coords({name: curve["x"]})
    out.attrs = results.attributes(problem) | {"bound": ", ".join(at_bound)}
    return out


class _Goal:
    """The objective as a function of the varied fields; inf where there is no answer."""

    def __init__(
        self,
        problem: Problem,
        fields: tuple[str, ...],
        objective: str,
        at: float | str,
        method: Any,
        window: float,
    ) -> None:
        self.problem, self.fields, self.objective = problem, fields, objective
        self.at, self.method, self.window = at, method, window
        self.reason = ""

    def __call__(self, x: Any) -> float:
        chosen = dict(zip(self.fields, map(float, x), strict=True))
        window, time = chosen.pop("window", self.window), chosen.pop("time", self.at)
        try:
            problem = self.problem.replace(**chosen)
            if isinstance(time, str):
                found = verbs.steady_state(problem, self.method, window=window)
            else:
                found = verbs.solve(problem, [time], self.method).isel(t=0)
        except ValueError as error:
            self.reason = str(error)
            return np.inf
        if self.objective not in found:
            held = ", ".join(str(n) for n in found.data_vars if not str(n).endswith("_se"))
            raise ValueError(f"`objective` must be among {held}, got {self.objective!r}")
        value = float(found[self.objective])
        return value if np.isfinite(value) else np.inf


def _along_one(
    goal: _Goal, name: str, bounds: tuple[float, float]
) -> tuple[Array, dict[str, Array]]:
    """Scan on a logarithmic scale, then refine around the least value."""
    x = np.geomspace(*bounds, POINTS)
    if name == "time":  # one run has all times
        found = verbs.solve(goal.problem, x, goal.method)
        y = found[goal.objective].values if goal.objective in found else np.array([goal(x[:1])])
    else:
        y = np.array([goal([value]) for value in x])
    if not np.isfinite(y).any():
        raise ValueError(f"no {name} from {bounds[0]:g} to {bounds[1]:g} serves: {goal.reason}")
    i = int(np.argmin(y))
    around = (np.log(x[max(i - 1, 0)]), np.log(x[min(i + 1, POINTS - 1)]))

    def along(u: float) -> float:
        return goal([np.exp(u)])

    refined = minimize_scalar(along, bounds=around, method="bounded", options={"xatol": 1e-4})
    least = x[i] if y[i] <= refined.fun else float(np.exp(refined.x))
    return np.array([least]), {"x": x, "y": y}


def _along_many(goal: _Goal, bounds: Mapping[str, tuple[float, float]]) -> Array:
    """Scan a coarse grid, then go down from its least value by Nelder and Mead's simplex."""
    axes = [np.geomspace(*pair, COARSE) for pair in bounds.values()]
    grid = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=-1)
    y = np.array([goal(x) for x in grid])
    if not np.isfinite(y).any():
        raise ValueError(f"nothing within the bounds of {', '.join(bounds)} serves: {goal.reason}")
    start = np.log(grid[int(np.argmin(y))])
    limits: Any = [(np.log(low), np.log(high)) for low, high in bounds.values()]

    def along(u: Any) -> float:
        return goal(np.exp(u))

    options: Any = {"xatol": 1e-4, "fatol": 1e-10, "maxiter": 400}
    found: Any = minimize(along, start, method="Nelder-Mead", bounds=limits, options=options)
    return np.asarray(np.exp(found.x))


def _bounds(problem: Problem, over: Any, at: Any) -> dict[str, tuple[float, float]]:
    if at != "steady":
        checks.number("at", at, 1e-9, results.LATEST)
    names = [over] if isinstance(over, str) else list(over) if isinstance(over, Mapping) else []
    if not names:
        raise ValueError(f"`over` must be a field or a mapping of fields to bounds, got {over!r}")
    out = {}
    for name in names:
        checks.choice("over", name, FIELDS)
        low, high = _default(problem, name, at) if isinstance(over, str) else over[name]
        low = checks.number(f"over[{name}]", low, 1e-12, results.LATEST)
        high = checks.number(f"over[{name}]", high, 1e-12, results.LATEST)
        if low >= high:
            raise ValueError(f"`over[{name}]` must rise, got {low:g} to {high:g}")
        out[name] = (low, high)
    if "window" in out and at != "steady":
        raise ValueError(f"`window` is varied in the steady state only, got at = {at!r}")
    if "time" in out and len(out) > 1 and at != "steady":
        raise ValueError("`over` varies the time: leave out `at`")
    return out


def _default(problem: Problem, name: str, at: Any) -> tuple[float, float]:
    if name == "rate" and isinstance(problem.rule, Adaline) and problem.mode == "online":
        limit = verbs.critical_rate(problem)
        return (1e-3 * limit, 0.999 * limit if at == "steady" else 1.5 * limit)
    ranges = {"window": (0.01, 100.0), "time": (0.01, 1000.0), "rate": (0.01, 10.0)}
    return ranges.get(name, (1e-3, 100.0))
