"""Whether learning has come to rest, and what to say if it has not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from manypass.cavity.grid import Grid
from manypass.cavity.smooth import TARGETS
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.observables import generalization_error
from manypass.problem import Problem

CURVES = ("R", "Q", "F2", "Et")


class NotSettledError(ValueError):
    """There is no steady state within reach; `result` holds the curves so far."""

    def __init__(self, message: str, result: xr.Dataset) -> None:
        super().__init__(message)
        self.result = result


def late(problem: Problem, t: Array, window: float) -> tuple[tuple[str, ...], Any]:
    """Return what to read of a steady state: curves, and averages of R and C over the window."""
    task, size = problem.data.task, 65
    within = np.linspace(t[-1] - window, t[-1], size)
    weights = np.full(size, 1 / (size - 1))
    weights[[0, -1]] /= 2

    def read(grid: Grid) -> Measured:
        found = Grid(grid.step, {n: grid.values[n] for n in CURVES}).at(t)
        found["Eg"] = generalization_error(task, found["R"], found["Q"])
        if window:
            both = Grid(grid.step, {n: grid.values[n] for n in ("R", "C")}).at(within)
            R, Q = weights @ both["R"], weights @ both["C"] @ weights
            found |= {"mean_R": R, "mean_Q": Q, "mean_Eg": generalization_error(task, R, Q)}
        return found

    return ((*CURVES, "C") if window else CURVES), read


def moving(found: Measured) -> list[str]:
    """Curves whose last value differs from the first by more than two standard errors."""
    change = {n: np.abs(found[n][-1] - found[n][0]) for n in CURVES}
    return [n for n in CURVES if not change[n] <= 2 * found[f"{n}_se"].max()]


def story(problem: Problem, found: Measured, t: Array, still: list[str]) -> str:
    """Say why there is no steady state."""
    if not np.isfinite(found["Q"][-1]):
        return f"`rate` = {problem.rate:g} is too large: |J|² diverges before t = {t[-1]:g}"
    change = ", ".join(f"{n} from {found[n][0]:.4g} to {found[n][-1]:.4g}" for n in still)
    return (
        f"no steady state until t = {t[-1]:g}: since t = {t[0]:g} {change}; a larger `dt` or "
        f"fewer `samples` follow it for longer"
    )


def fastest(problem: Problem) -> float:
    """Rate of the fastest relaxation, by the largest eigenvalue that the examples can have."""
    slopes = [
        float(problem.rule.slope(x, target))
        for target in TARGETS[problem.data.task]
        for x in (0.0, 0.5 * target)
    ]
    steepest = max(np.sqrt(np.mean(np.square(slopes))), 0.05)
    edge = (1 + 1 / math.sqrt(problem.data.alpha)) ** 2
    return problem.rate * (problem.decay + float(steepest) * edge)
