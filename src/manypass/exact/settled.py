"""Steady states of epochs, which repeat with each of them, and where there is none: v_c.

Reshuffled: the state that an epoch reproduces, while the map of the noise over one epoch has no
eigenvalue beyond 1. Fixed order: at T = 0 the weights run through one cycle for ever, the pole at
z = z′ = 1; noise is the pole at zz′ = 1, an average over z = e^{iθ}, z′ = e^{−iθ}. A cycle that
looks the same from every phase has the same R, Q and F2 all along.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.exact import steps
from manypass.exact.epochs import lines, unresolved
from manypass.exact.fixed import Fixed, nearest_branch
from manypass.exact.lines import Cells, Line
from manypass.exact.repeated import Look
from manypass.exact.reshuffled import Course, Reshuffled, epochs_of
from manypass.exact.steady import edges_of
from manypass.problem import Problem

CLOSE = 1e-9  # relative, of two lines, and of a critical rate
FASTEST = 1e4  # in units of 1 + λ: beyond it no critical rate is looked for


def reshuffled(problem: Problem) -> tuple[Reshuffled, Course]:
    """Return the map of an epoch, and the epoch that reproduces itself."""
    before: Array | None = None
    for line in lines(problem):
        epochs = epochs_of(problem, line)
        course = epochs.epoch(epochs.settled())
        ends = np.array([x[-1] for x in (course.R, course.Q, course.F2)])
        if problem.batch_share:
            return epochs, course
        size = CLOSE * max(problem.teacher.b, ends[1])
        if before is not None and np.all(np.abs(ends - before) <= size):
            return epochs, course
        before = ends
    raise ValueError(unresolved(problem))


class Poles:
    """Reads a steady state off: the first point is z = z′ = 1, the others are averaged."""

    read = np.ones((1, 1))

    def single(self, values: Any) -> Array:
        """Of the cycle."""
        return np.asarray(values[..., :1, 0].real)

    def diagonal(self, values: Any) -> Array:
        """Of the cycle and the noise."""
        noise = values[..., 1:].mean(axis=-1) if values.shape[-1] > 1 else 0.0
        return np.asarray((values[..., 0] + noise).real)


def fixed(problem: Problem, passes: int = 0) -> Look:
    """Kernels of a fixed order for t → ∞, good for lags of so many passes."""
    alpha = problem.teacher.alpha
    if problem.decay == 0 and alpha < 1:  # the limit λ → 0, approached as λ/(1 − α)
        problem = problem.replace(decay=1e-10 * (1 - alpha))
    found: dict[str, Array] = {}
    tried = list(lines(problem)) * 8 if problem.batch_share else lines(problem)
    for i, line in enumerate(tried):
        before, look = found, settled_look(problem, line, (32 << i) + 4 * passes)
        found = look.order_parameters(0.0)
        size = CLOSE * max(problem.teacher.b, found["Q"][0])
        if before and all(abs(found[name] - before[name])[0] <= size for name in found):
            return look
    raise ValueError(unresolved(problem))


def settled_look(problem: Problem, line: Line, count: int) -> Look:
    """Kernels of the steady state."""
    heat = 2 * problem.temperature
    angle = np.exp(2j * np.pi * (np.arange(count) + 0.5) / count) if heat else np.zeros(0)
    z = np.append(1.0 + 0j, angle)[None]
    pole = np.append(1.0, 0.0 * angle.real)[None]
    kernels = Fixed(problem, line.step, z, z.conj(), pole=pole, pole2=pole, heat=heat * (1 - pole))
    return Look(kernels, Poles(), line)  # type: ignore[arg-type]


def turn(problem: Problem) -> float:
    """How long it takes until noise has been multiplied by its growth: an epoch, or a step."""
    alpha = problem.teacher.alpha
    return problem.batch_share * alpha if problem.sequence == "replacement" else alpha


def log_growth(problem: Problem) -> float:
    """Log of the factor by which an epoch multiplies the slowest noise; 0 at the critical rate.

    Of batches with replacement, a step. The factor itself may be too small for a number.
    """
    if problem.sequence == "replacement":
        return _log(steps.growth(problem))
    if problem.sequence == "fixed":
        step = problem.batch_share * problem.teacher.alpha
        angle = np.exp(1j * math.pi * (np.arange(256) + 0.5) / 256)
        with np.errstate(all="ignore"):
            kernels = Fixed(problem, step, angle, angle.conj(), pole=1.0, pole2=1.0, heat=0.0)
            worst = float(np.nan_to_num(kernels.log_last.real, nan=math.inf).max())
            below = math.exp(np.clip(-worst / 2, -700, 700))
            nearest = nearest_branch(problem, step, below)
        return -2 * math.log(nearest) if nearest < below else worst
    before = math.nan
    for line in lines(problem):
        with np.errstate(over="ignore", invalid="ignore"):
            epochs = epochs_of(problem, line)
            matrix = epochs.noise_map()
        seen = epochs.modes.h > 0  # the null space of H hears nothing of the noise
        matrix = matrix[np.ix_(seen, seen)]
        if not np.isfinite(matrix).all():
            return math.inf
        found = float(np.abs(np.linalg.eigvals(matrix)).max())
        found = max(found, float(epochs.at_edges().max()))
        if isinstance(line, Cells) or abs(found - before) <= CLOSE * found:
            return _log(found)
        before = found
    raise ValueError(unresolved(problem))


def _log(factor: float) -> float:
    return math.log(factor) if factor else -math.inf


def critical_rate(problem: Problem) -> float:
    """v_c, the lowest rate at which an epoch no longer shrinks the noise.

    Each step shrinks the weights if v[Δλ + (1 + √Δ)²] < 2, Δ = βα, or whatever the largest
    eigenvalue of a batch's ΔH is: the search goes up from there.
    """
    if problem.sequence == "replacement":
        return steps.critical_rate(problem)
    step = problem.batch_share * problem.teacher.alpha
    top = step * edges_of(problem.teacher.inputs, step)[1] if step else 1.0
    low = 2 / (step * problem.decay + top)
    high = low * (1 + 1e-9)
    while log_growth(problem.replace(rate=high)) < 0:
        low, high = high, high * 1.04
        if high > FASTEST * (1 + problem.decay):
            return math.inf
    while high - low > CLOSE * low:
        middle = (low + high) / 2
        stable = log_growth(problem.replace(rate=middle)) < 0
        low, high = (middle, high) if stable else (low, middle)
    return (low + high) / 2
