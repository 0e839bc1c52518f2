"""`best`: the rate, decay, window or stopping time that makes an error least, on the theory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, orders, results, verbs
from manypass.problem import Problem, checked
from manypass.rules import Adaline, Hebbian
from manypass.schedules import Schedule
from manypass.sweeps.comparing import compare
from manypass.sweeps.searching import Goal, along_many, along_one

FIELDS = ("rate", "decay", "temperature", "noise", "alpha", "window", "time")
FROM_0 = ("decay", "temperature", "noise", "window")  # whose range may begin at 0
NEARLY_0 = 1e-4  # of the range: where its logarithmic scale then begins, besides 0 itself


def best(
    problem: Problem,
    over: str | Mapping[str, tuple[float, float]],
    *,
    objective: str = "Eg",
    at: float | str = "steady",
    method: Any = "auto",
    window: float = 0.0,
    progress: bool = True,
) -> xr.Dataset:
    """Find min over v (λ, τ, t, ...) of E_g, or of another result, on the theory.

    Values that are sampled, as those of `DMFT`, are dear: a coarse search at a lesser accuracy
    comes first, then a few values around the least one.

    Parameters
    ----------
    problem : Problem
        Everything that is not varied.
    over : str or mapping
        "rate", "decay", "window" (the averaging time τ, in the steady state), "time" (when to
        stop, at the earliest if the objective stays at its least), ... or a mapping of one or more
        of them to their bounds, which may begin at 0 for a decay, a temperature, a noise and a
        window. By default a rate goes up to the critical one, a decay from 0.001 (0.01 for rules
        without an exact theory) to 100, a window to 100, a time to 1000 (30 for these rules).
        "schedule" compares ways to change the rate until the time `at`: the best constant rate,
        with weights averaged over the best window too, 1/t and its root, exponential, cosine, two
        steps and a warm-up, at the problem's decay.
    objective : str
        The result that should be small: Eg, Et, F2, Q, on a `Dataset` also F2_test. Eg and F2_test
        of a `Dataset` need a test set, and Et of on-line Adaline classification
        ``method=DMFT()`` or ``Exact(accuracy=1e-2)``.
    at : float or "steady"
        When it should be small, unless the time is varied.
    method : Method or str
        As for `solve`.
    window : float
        Averaging time in the steady state, unless it is varied.
    progress : bool
        If it takes more than a moment, say on stderr what it may cost and how far it is.

    Returns
    -------
    xarray.Dataset
        `best_rate` (or other field) and the least `best_Eg`, with its `best_Eg_se` if it is
        sampled; for one field also the curve of the objective around it. The attribute `bound`
        says if the optimum lies at the end of the range, and a warning does too. Over schedules,
        `best_Eg`, the text of `best_rate` and the `window` on the coordinate `schedule`.

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
    if not isinstance(objective, str):
        raise ValueError(
            f"`objective` must be the name of a result such as 'Eg', got {checks.shown(objective)}"
        )
    if objective in ("R", "R_end"):
        raise ValueError(
            f"`objective` = {objective!r}, the overlap with the teacher, should be large, and what "
            f"is sought is small: take 'Eg'"
        )
    window = checks.number("window", window, 0, results.LATEST)
    progress = checks.flag("progress", progress)
    if isinstance(at, str) and at != "steady":
        raise ValueError(f"`at` must be 'steady' or a time, got {checks.shown(at)}")
    if not isinstance(at, str):
        at = checks.number("at", at, 1e-9, results.LATEST)
    if isinstance(over, str) and over == "schedule":
        if window:
            raise ValueError(
                f"`window` is varied by `over` = 'schedule' itself, got {checks.shown(window)}"
            )
        return compare(problem, objective, at, method, progress)
    # A schedule of what is varied is replaced by constants: methods are chosen for these
    for name, value in (("rate", 1.0), ("decay", 0.0)):
        varied = (
            over == name if isinstance(over, str) else isinstance(over, Mapping) and name in over
        )
        if varied and isinstance(getattr(problem, name), Schedule):
            problem = problem.replace(**{name: value})
    bounds = _bounds(problem, over, at)
    if window and "window" in bounds:
        raise ValueError(f"`over` varies the window: leave out `window`, got {window:g}")
    if window and (at != "steady" or "time" in bounds):
        raise ValueError(
            f"`window` is for the steady state only, got {checks.shown(window)} for another time"
        )
    goal = Goal(problem, tuple(bounds), objective, at, method, window, progress)
    searched = {name: (low or NEARLY_0 * high, high) for name, (low, high) in bounds.items()}
    try:
        if len(bounds) == 1:
            found, curve = along_one(goal, *next(iter(searched.items())))
        else:
            found, curve = along_many(goal, searched), {}
        least = goal(found)
        for i, (low, _) in enumerate(bounds.values()):
            if low == 0:  # which has no place on a logarithmic scale
                without = np.where(np.arange(found.size) == i, 0.0, found)
                at_zero = goal(without)
                if curve:
                    curve = {"x": np.append(0.0, curve["x"]), "y": np.append(at_zero, curve["y"])}
                if at_zero <= least:
                    found, least = without, at_zero
        least = goal(found)  # whose error is told
    finally:
        goal.bar.close()
    goal.notes.tell()
    low, high = np.array(list(bounds.values())).T
    at_bound = [
        name
        for name, x, a, b in zip(bounds, found, low, high, strict=True)
        if (a and x <= a * (1 + 1e-6)) or x >= b * (1 - 1e-6)  # nothing is beyond 0
    ]
    for name in at_bound:
        warnings.warn(
            f"the least {objective} lies at an end of the range of {name}, {bounds[name][0]:g} to "
            f"{bounds[name][1]:g}: beyond it may be less; `over` can set another range",
            stacklevel=2,
        )
    if goal.settled is not None:
        warnings.warn(
            f"{objective} no longer falls after about t = {goal.settled:.4g}: this is the earliest "
            f"of the best times, all later ones do as well",
            stacklevel=2,
        )
    values = {f"best_{name}": x for name, x in zip(bounds, found, strict=True)}
    values[f"best_{objective}"] = least
    if goal.sampled:
        values[f"best_{objective}_se"] = goal.error
    out = xr.Dataset(values)
    if curve:
        name = next(iter(bounds))
        out = out.assign({objective: (name, curve["y"])}).assign_coords({name: curve["x"]})
    out.attrs = results.attributes(problem) | {"bound": ", ".join(at_bound)}
    return out


def _bounds(problem: Problem, over: Any, at: Any) -> dict[str, tuple[float, float]]:
    names = [over] if isinstance(over, str) else list(over) if isinstance(over, Mapping) else []
    if not names:
        raise ValueError(
            f"`over` must be a field or a mapping of fields to bounds, got {checks.shown(over)}"
        )
    out = {}
    for name in names:
        checks.choice("over", name, (*FIELDS, *(["schedule"] if isinstance(over, str) else [])))
        pair = _default(problem, name, at) if isinstance(over, str) else over[name]
        ends = [*pair] if np.iterable(pair) else []
        if len(ends) != 2:
            raise ValueError(f"`over[{name}]` must be two bounds, got {checks.shown(pair)}")
        low, high = ends
        or_zero = name in FROM_0
        low = checks.number(f"over[{name}]", low, 1e-12, results.LATEST, or_zero=or_zero)
        high = checks.number(f"over[{name}]", high, 1e-12, results.LATEST)
        if low >= high:
            raise ValueError(f"`over[{name}]` must rise, got {low:g} to {high:g}")
        out[name] = (low, high)
    if "window" in out and at != "steady":
        raise ValueError(f"`window` is varied in the steady state only, got `at` = {at!r}")
    if "time" in out and at != "steady":
        raise ValueError(
            f"`over` varies the time: leave out `at` = {at!r}; a latest time is a bound of `over`, "
            f"from 0.01 to {at!r}"
        )
    return out


def _default(problem: Problem, name: str, at: Any) -> tuple[float, float]:
    known = problem.mode == "online" and orders.refusal(problem, "critical_rate") is None
    if name == "rate" and isinstance(problem.rule, Adaline) and known:
        limit = verbs.critical_rate(problem)
        return (1e-3 * limit, 0.999 * limit if at == "steady" else 1.5 * limit)
    exact = isinstance(problem.rule, Adaline | Hebbian)
    ranges = {"window": (0.01, 100.0), "time": (0.01, 1000.0), "rate": (0.01, 10.0)}
    if not exact:  # steady states at small decays take minutes
        ranges |= {"decay": (0.01, 100.0), "time": (0.01, 30.0)}
    return ranges.get(name, (1e-3, 100.0))
