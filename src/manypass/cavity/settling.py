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


def with_errors(task: str, found: Measured) -> Measured:
    """Add E_g; a diverged student guesses in classification."""
    found["Eg"] = generalization_error(task, found["R"], found["Q"])
    if task == "classification":
        found["Et"] = np.where(np.isinf(found["Q"]), 0.5, found["Et"])
    return found


def late(problem: Problem, t: Array, window: float) -> tuple[tuple[str, ...], Any]:
    """Return what to read of a steady state: curves, and averages of R and C over the window."""
    task, size = problem.data.task, 65
    within = np.linspace(t[-1] - window, t[-1], size)
    weights = np.full(size, 1 / (size - 1))
    weights[[0, -1]] /= 2

    def read(grid: Grid) -> Measured:
        found = with_errors(task, Grid(grid.step, {n: grid.values[n] for n in CURVES}).at(t))
        if window:
            both = Grid(grid.step, {n: grid.values[n] for n in ("R", "C")}).at(within)
            R, Q = weights @ both["R"], weights @ both["C"] @ weights
            found |= {"mean_R": R, "mean_Q": Q, "mean_Eg": generalization_error(task, R, Q)}
        return found

    return ((*CURVES, "C") if window else CURVES), read


def moving(found: Measured) -> list[str]:
    """Curves whose last value differs from the first by two standard errors, or is hardly known."""
    out = []
    for name in CURVES:
        first, last, error = found[name][0], found[name][-1], found[f"{name}_se"].max()
        known = np.isfinite(last) and (name == "Et" or error < 0.2 * abs(last))
        if not (known and abs(last - first) <= 2 * error):
            out.append(name)
    return out


def story(problem: Problem, found: Measured, t: Array, still: list[str]) -> str:
    """Say why there is no steady state."""
    if not np.isfinite(found["Q"][-1]):
        return f"`rate` = {problem.rate:g} is too large: |J|² diverges before t = {t[-1]:g}"
    change = ", ".join(f"{n} from {found[n][0]:.4g} to {found[n][-1]:.4g}" for n in still)
    return (
        f"no steady state until t = {t[-1]:g}: since t = {t[0]:g} {change}; a larger `dt` follows "
        f"it for longer"
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
