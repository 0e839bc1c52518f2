"""What the solvers of curves and of steady states share: errors, and scales of time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from manypass import schedules
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.layers.errors import generalization
from manypass.layers.net import Net
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.smooth import TARGETS

CURVES = ("R", "Q", "F2", "Et")
POINTS = 1 << 16  # for the signs of E_g
GROWN = 1e4  # times F² at first, or 1
RISES = {"erf": 0.8, "relu": 1.0, "tanh": 1.0, "linear": 1.0}  # largest slopes of activations


class NotSettledError(ValueError):
    """There is no steady state within reach; `result` holds the last values that were found.

    Examples
    --------
    >>> import manypass as mp
    >>> issubclass(mp.NotSettledError, ValueError)
    True
    """

    def __init__(self, message: str, result: xr.Dataset) -> None:
        super().__init__(message)
        self.result = result


def with_errors(problem: Problem, found: Measured) -> Measured:
    """Add E_g; a diverged student guesses in classification."""
    if problem.layered:
        net = Net.of(problem)
        found = found | {"Eg": generalization(net, found["R"], found["Q"], found["a"], POINTS)}
    else:
        task = problem.data.task
        found = found | {"Eg": generalization_error(task, found["R"], found["Q"])}
    if problem.data.task == "classification":
        found["Et"] = np.where(np.isinf(found["F2"]), 0.5, found["Et"])
    return found


def largest(values: Any) -> float:
    """Return the largest size of what is finite."""
    values = np.asarray(values)
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def sizes_of(found: Measured, names: Iterable[str], task: str) -> dict[str, float]:
    """Return the largest values of curves, of which errors are shares; of error rates ½."""
    sizes = {name: largest(found[name]) for name in names}
    sizes["R"] = math.sqrt(sizes["Q"])  # an overlap that is nearly zero need not be known well
    if task == "classification":
        sizes |= dict.fromkeys({"Et", "Eg"} & sizes.keys(), 0.5)
    return sizes


def warn_of(found: Measured, task: str, rtol: float, way: str, level: int) -> None:
    """Warn of the curve whose error, in units of its largest value, is most above `rtol`."""
    worst, text = rtol, ""
    for name, size in sizes_of(found, (*CURVES, "Eg"), task).items():
        error = largest(found[f"{name}_se"])
        if error > worst * size:
            worst = error / size if size else math.inf
            text = f"the error of {name} is {error:.2g}, its largest value {size:.2g}"
    if text:
        warnings.warn(f"`rtol` = {rtol:g} is not reached: {text}: {way}", stacklevel=level + 1)


def by_chance(problem: Problem) -> bool:
    """Whether examples are learned at any time, whenever they were learned before."""
    one = problem.sequence == "replacement" and not problem.batch_share
    return one and problem.mode == "online"


def grown(problem: Problem, square: Array) -> Any:
    """When ⟨F²⟩ has grown so far that it is of the few largest forces, which few examples have."""
    first = 1.0
    if not problem.layered:
        first = max(first, *(float(problem.rule.force(0.0, aim)) ** 2 for aim in (-1, 1)))
    return np.isfinite(square) & (square > GROWN * first)


def unchanging(problem: Problem) -> bool:
    """Whether the law of learning is the same at all times: then curves age as they grow old."""
    return by_chance(problem) and not problem.scheduled


def fastest(problem: Problem) -> float:
    """Rate of the fastest relaxation, by the largest eigenvalue that the examples can have.

    In two layers of Σ_k (a_k g′)² at its steepest; a second one that learns may become the
    teacher's. Where nothing is learned any pace will do.
    """
    rule: Any = problem.rule
    if problem.layered:
        second = max(sum(a * a for a in rule.second), rule.hidden * (rule.second_rate > 0))
        steepest = second * RISES[rule.activation] ** 2
    else:
        rises = [
            (float(rule.force(x + 1, target)) - float(rule.force(x - 1, target))) / 2  # may jump
            for target in TARGETS[problem.data.task]
            for x in (0.0, 0.5 * target)
        ]
        steepest = math.hypot(*rises) / math.sqrt(len(rises))
    law = problem.teacher.inputs.law(1.0)
    size = math.sqrt(float(law.w @ law.mu**2))  # 1 without correlations
    edge = (size + 1 / math.sqrt(problem.data.alpha)) ** 2
    pace, decay = schedules.largest(problem.rate) or 1.0, schedules.largest(problem.decay)
    return float(pace * (decay + max(steepest, 0.05) * edge))
