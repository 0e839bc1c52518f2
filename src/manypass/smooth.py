"""Whether a force is finite, and whether it jumps."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from manypass.layers.rule import Committee
from manypass.rules import Rule

REACH, POINTS = 6.0, 1201  # where activations are looked at
SMALLEST = 1e-18  # force, of which single precision holds products
TARGETS = {"classification": (-1.0, 1.0), "regression": (-2.1, -0.9, -0.2, 0.4, 1.1, 2.3)}


@lru_cache(maxsize=256)
def objection(rule: Rule, task: str, flow: bool) -> str | None:
    """Say what is wrong with the force of a rule, in gradient flow or not, or None.

    A flow stops where a force jumps, and all examples there hold each other.

    Examples
    --------
    >>> import manypass as mp
    >>> objection(mp.Perceptron(), "classification", flow=False) is None
    True
    >>> print(objection(mp.Perceptron(), "classification", flow=True))
    its force jumps by 1 at x = 0, target = -1
    """
    x = np.linspace(-REACH, REACH, POINTS) + 1e-3 * np.sqrt(2)  # no kink at a point of the grid
    largest = 0.0
    for target in TARGETS[task]:
        try:
            F = _values(rule.force, x, target)
        except Exception as error:
            raise ValueError(  # no method would do better
                f"`rule` {rule!r} fails at target = {target:g}: {type(error).__name__}: {error}"
            ) from None
        if not np.isfinite(F).all():
            bad = x[~np.isfinite(F)][0]
            return f"its force is not finite at x = {bad:.4g}, target = {target:g}"
        jump, where = largest_jump(rule, target)
        if flow and rule.jumps:
            return f"its force jumps at x = {rule.jumps[0]:.4g}"
        size = np.abs(F).max() + 1e-300
        largest = max(largest, float(np.abs(F).max()))
        if not abs(jump) < 1e6 * size:
            return f"its force is not finite at x = {where:.4g}, target = {target:g}"
        if flow and abs(jump) > 1e-6 * size:
            return f"its force jumps by {abs(jump):.4g} at x = {where:.4g}, target = {target:g}"
    if 0 < largest < SMALLEST:
        return f"its force is {largest:.2g} at most: give such a factor to the `rate`"
    return None


@lru_cache(maxsize=256)
def jumps(rule: Rule, task: str) -> bool:
    """Whether the force of a rule has a jump."""
    if isinstance(rule, Committee):
        return rule.activation == "relu"
    found = any(abs(largest_jump(rule, target)[0]) > 1e-6 for target in TARGETS[task])
    return found or bool(rule.jumps)


def _values(function: Any, x: Any, target: float) -> Any:
    """Evaluate point by point: a user's function need not know arrays."""
    with np.errstate(all="ignore"):  # what is not finite is told
        return np.array([float(function(float(point), target)) for point in x])


def largest_jump(rule: Rule, target: float) -> tuple[float, float]:
    """Change of the force across the point where it changes most abruptly, and the point."""
    x = np.linspace(-REACH, REACH, POINTS) + 1e-3 * np.sqrt(2)
    worst = 1 + int(np.abs(np.diff(_values(rule.force, x, target), 3)).argmax())
    low, high = x[worst], x[worst + 1]
    f_low, f_high = (float(rule.force(x, target)) for x in (low, high))
    for _ in range(50):
        middle = (low + high) / 2
        f = float(rule.force(middle, target))
        if abs(f - f_low) > abs(f_high - f):
            high, f_high = middle, f
        else:
            low, f_low = middle, f
    return f_high - f_low, (low + high) / 2 if abs(low + high) > 1e-12 else 0.0
