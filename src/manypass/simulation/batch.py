"""Batch learning at finite N: dJ/dt = v[(1/p) Σ F ξ − λJ] + noise, by Runge–Kutta steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.ensemble import stopping
from manypass.problem import Problem
from manypass.rules import Rule
from manypass.simulation import kernels
from manypass.simulation.network import Examples, Weights

STEP = 0.25  # in units of the fastest relaxation time; fourth order: errors below 1e-4
NOISY_STEP = 0.1  # the noise is split off symmetrically; second order: errors below 1e-3
BLOCK = 1024  # steps whose noise is drawn at once


class Flow:
    """Gradient flow of one network over its training set; `advance` goes on from where it was."""

    def __init__(
        self, problem: Problem, examples: Examples, force: Any, rng: np.random.Generator
    ) -> None:
        self.examples, self.force, self.rng = examples, force, rng
        self.parameters = tuple(problem.rule.parameters.values())
        self.v, self.decay, self.T = problem.rate, problem.decay, problem.temperature
        fastest = self.v * (steepest(problem.rule) * examples.top + self.decay)
        self.longest = (NOISY_STEP if self.T else STEP) / fastest if fastest else math.inf
        self.J = np.zeros(examples.X.shape[1], examples.X.dtype)
        self.time, self.diverged = 0.0, False

    def advance(self, until: float, integral: Weights | None = None) -> float:
        """Flow until the given time; add ∫J dt to `integral`. Returns how long that was."""
        duration, self.time = until - self.time, until
        left = math.ceil(duration / self.longest) or int(duration > 0)
        d = duration / max(left, 1)
        total = np.zeros(0 if integral is None else self.J.size, self.J.dtype)
        while left > 0 and not self.diverged and not stopping():
            count = min(left, BLOCK)
            left -= count
            kernels.flow(
                self.force,
                self.parameters,
                self.J,
                self.examples.X,
                self.examples.targets,
                self.v,
                self.decay,
                d,
                count,
                self.kicks(count, d),
                total,
            )
            self.diverged = not np.isfinite(self.J).all()
        if integral is not None:
            integral += total
        return duration

    def kicks(self, count: int, d: float) -> Weights:
        """Noise before each step and after the last, where it counts half: |J|² gains 2T dt."""
        if not self.T:
            return np.empty((0, 0), self.J.dtype)
        size = np.full(count + 1, math.sqrt(2 * self.T * d / self.J.size))
        size[[0, -1]] *= math.sqrt(0.5)
        noise = self.rng.standard_normal((count + 1, self.J.size))
        return (size[:, None] * noise).astype(self.J.dtype)


def steepest(rule: Rule) -> float:
    """Largest |ΔF/Δx| over usual activations: what limits the step of an explicit method.

    A jump of the force counts as a steep slope, so that its steps are small.
    """
    x = np.linspace(-6, 6, 241)
    F = np.array([[rule.force(float(at), target) for at in x] for target in (-2.0, -1.0, 1.0, 2.0)])
    slope = float(np.abs(np.diff(F.astype(float), axis=1)).max() / (x[1] - x[0]))
    if not math.isfinite(slope):
        raise ValueError(f"`force` of {rule!r} is not finite for all x between -6 and 6")
    return slope
