"""What the solvers of curves and of steady states share: errors, and scales of time."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from manypass import schedules
from manypass.cavity.smooth import TARGETS
from manypass.ensemble import Measured
from manypass.observables import generalization_error
from manypass.problem import Problem

CURVES = ("R", "Q", "F2", "Et")


class NotSettledError(ValueError):
    """There is no steady state within reach; `result` holds the last values that were found."""

    def __init__(self, message: str, result: xr.Dataset) -> None:
        super().__init__(message)
        self.result = result


def with_errors(task: str, found: Measured) -> Measured:
    """Add E_g; a diverged student guesses in classification."""
    found = found | {"Eg": generalization_error(task, found["R"], found["Q"])}
    if task == "classification":
        found["Et"] = np.where(np.isinf(found["Q"]), 0.5, found["Et"])
    return found


def fastest(problem: Problem) -> float:
    """Rate of the fastest relaxation, by the largest eigenvalue that the examples can have."""
    force = problem.rule.force
    rises = [
        (float(force(x + 1, target)) - float(force(x - 1, target))) / 2  # a force may jump
        for target in TARGETS[problem.data.task]
        for x in (0.0, 0.5 * target)
    ]
    steepest = max(np.sqrt(np.mean(np.square(rises))), 0.05)
    edge = (1 + 1 / math.sqrt(problem.data.alpha)) ** 2
    rate, decay = schedules.largest(problem.rate), schedules.largest(problem.decay)
    return rate * (decay + float(steepest) * edge)
