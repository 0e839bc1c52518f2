"""Kinds of schedules, and the best of a kind for a given time: what rates are compared by.

Members of a kind differ by their mean rate v̄ = (1/T)∫v dt, so that the same range serves all, and
most by one number more, a shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from manypass import schedules
from manypass.checks import Array
from manypass.schedules import Cosine, Exponential, InverseTime, Schedule, Steps, Warmup

COARSE = (4, 2)  # rates and shapes that are tried first
STEP = 0.5  # of the logarithm of each, with which the search goes on
# Where a mean is taken, in units of T: fine where it begins, and where it may jump.
PLACES = np.unique(np.concatenate((np.geomspace(1e-7, 1, 400), np.linspace(0, 1, 2001))))


@dataclass(frozen=True)
class Family:
    """Schedules v(t) up to T of unit scale, by their shape."""

    make: Callable[[float, float], Any]  # of shape and T
    shapes: tuple[float, float] | None = None

    def member(self, mean: float, shape: float, until: float) -> Any:
        """Return the rate with a mean v̄: a number, or a schedule."""
        one = self.make(shape, until)
        if not isinstance(one, Schedule):
            return mean * one
        return _times(one, mean / float(np.trapezoid(one(PLACES * until), PLACES)))


FAMILIES = {
    "constant": Family(lambda x, T: 1.0),
    "inverse": Family(lambda x, T: InverseTime(1.0, x * T), (1e-3, 10)),
    "inverse root": Family(lambda x, T: InverseTime(1.0, x * T, 0.5), (1e-3, 10)),
    "exponential": Family(lambda x, T: Exponential(1.0, x * T), (0.05, 10)),
    "cosine": Family(lambda x, T: Cosine(1.0, 0.0, T)),
    "steps": Family(lambda x, T: Steps([(0, 1.0), (T / 2, x), (3 * T / 4, x**2)]), (0.02, 0.9)),
    "warmup": Family(lambda x, T: Warmup(x * T, 1.0), (0.01, 0.5)),
}


def invscaling(step: float) -> Family:
    """Return scikit-learn's family, v/k^shape at the k-th step of so much time."""
    return Family(lambda x, T: InverseTime(1.0, step, x), (0.05, 1.0))


def least(
    error: Callable[..., float],
    family: Family,
    rates: tuple[float, float],
    until: float,
    evaluations: int,
    also: dict[str, tuple[float, float, float]] | None = None,
) -> tuple[float, Any, dict[str, float]]:
    """Minimise error(rate, **also) over a family: a coarse grid, then a simplex from its best.

    `also` has bounds of further numbers and where to begin; all positive. Returned are the least
    error, the rate and these numbers.
    """
    also = also or {}
    bounds = [rates, *([family.shapes] if family.shapes else [])]
    first = np.stack(
        np.meshgrid(*(np.geomspace(*b, n + 2)[1:-1] for b, n in zip(bounds, COARSE, strict=False))),
        axis=-1,
    ).reshape(-1, len(bounds))
    seen: dict[tuple[float, ...], tuple[float, Any, dict[str, float]]] = {}

    def at(place: Array) -> float:
        numbers = [float(x) for x in place]
        shape = numbers[1] if family.shapes else 1.0
        more = dict(zip(also, numbers[len(bounds) :], strict=True))
        rate = family.member(numbers[0], shape, until)
        try:
            found = error(rate, **more)
        except ValueError:  # beyond what a problem may have
            found = np.inf
        seen[tuple(numbers)] = (found if np.isfinite(found) else np.inf), rate, more
        return seen[tuple(numbers)][0]

    begin = np.array([b for *_, b in also.values()])
    best = min((np.concatenate((place, begin)) for place in first), key=at)
    limits: Any = np.log([*bounds, *(b[:2] for b in also.values())])
    center = np.clip(np.log(best), *limits.T)
    # Steps towards the middle of the range: a simplex of its own would be tiny about log 1 = 0.
    steps = np.diag(np.where(center < limits.mean(axis=1), STEP, -STEP))
    options: Any = {"maxfev": evaluations, "xatol": 0.01, "fatol": 1e-5 * abs(seen[tuple(best)][0])}
    options["initial_simplex"] = np.clip(np.vstack((center, center + steps)), *limits.T)

    def along(u: Any) -> float:
        return min(at(np.exp(u)), 1e300)

    minimize(along, center, method="Nelder-Mead", bounds=limits.tolist(), options=options)
    return min(seen.values(), key=lambda entry: entry[0])


def _times(one: Schedule, factor: float) -> Schedule:
    """Return the schedule times a factor, as one of its own kind."""
    match one:
        case Steps():
            return Steps([(t, factor * v) for t, v in one.pieces])
        case InverseTime():
            return InverseTime(factor * one.value, one.tau, one.power)
        case Exponential():
            return Exponential(factor * one.value, one.tau)
        case Cosine():
            return Cosine(factor * one.high, factor * one.low, one.until)
        case Warmup():
            return Warmup(one.until, schedules.scaled(one.then, factor))
    raise TypeError(one)
