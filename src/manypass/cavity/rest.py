"""Learning that never starts: F(0, ỹ) = 0 and no noise, so that J = 0 stays, exactly."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np

from manypass import checks
from manypass.cavity.settling import CURVES, with_errors
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.problem import Problem

HOW = {"dt": 0.0, "samples": 0, "errors": json.dumps({"sampling": 0.0})}  # nothing is sampled
FAINT = 1e-160  # a force whose square is no number
NEAR = 1e-9  # beside x = 0: a force that jumps there is averaged over both sides, and learns


def rests(problem: Problem) -> bool:
    """Whether nothing is ever learned, as of Adatron with κ ≤ 0.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=0.0), rate=1.0)
    >>> rests(problem), rests(problem.replace(rule=mp.Perceptron(kappa=0.0)))
    (True, False)
    """
    if problem.layered:
        return False
    force = problem.rule.force
    targets = _targets(problem)
    moved = problem.temperature > 0 or (problem.start is not None and problem.start.Q > 0)
    return not moved and all(
        abs(float(force(0.0, target))) <= FAINT
        and max(abs(float(force(x, target))) for x in (-NEAR, NEAR)) < 1e3 * NEAR
        for target in targets
    )


def told(problem: Problem) -> bool:
    """Whether nothing is ever learned: exact but seldom what is wanted, so that it is told."""
    if rests(problem):
        warnings.warn(
            f"`rule` {problem.rule!r} never learns from J = 0: its force is 0 there for every "
            f"target, and weights of 0 stay; give the problem a `start`, or a rule whose force is "
            f"not",
            stacklevel=checks.outside(),
        )
        return True
    return False


def values(problem: Problem, t: Array, two_time: bool = False) -> Measured | None:
    """R = Q = F2 = 0 without error; C = 0, and G = e^{−vλ(t−s)} if no force answers.

    None if something is learned.
    """
    if not told(problem):
        return None
    found: Measured = {name: np.zeros(t.shape) for name in CURVES}
    found["Et"] += 0.5 * problem.teacher.b  # ½⟨ỹ²⟩; of classes, a guess
    found = with_errors(problem, found)
    if two_time:
        if any(problem.rule.force(x, y) for x in (-NEAR, NEAR) for y in _targets(problem)):
            raise ValueError(
                f"with `rule` {problem.rule!r} nothing is learned from J = 0, where its force has "
                f"a kink: there is no response G (`two_time`)"
            )
        lag = np.subtract.outer(t, t)
        found["C"] = 0 * lag
        if problem.scheduled:
            raise ValueError(
                f"with `rule` {problem.rule!r} nothing is learned from J = 0: G (`two_time`) is "
                f"given for a constant rate and decay"
            )
        decay = problem.rate * problem.decay
        found["G"] = np.where(lag >= 0, np.exp(-decay * np.maximum(lag, 0)), 0.0)
    return found | {f"{name}_se": 0 * value for name, value in found.items()}


def _targets(problem: Problem) -> Any:
    if problem.data.task == "classification":
        return (-1.0, 1.0)
    return math.sqrt(problem.teacher.b) * np.linspace(-8, 8, 160)
