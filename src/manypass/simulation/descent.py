"""Steps that take a share of the training set each, all forces at the same weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass import orders
from manypass.ensemble import stopping
from manypass.problem import Problem
from manypass.simulation import kernels
from manypass.simulation.network import Examples, Indices, Weights, aligned, drawing, not_a_number

BLOCK = 1 << 18  # examples, or numbers of noise, that are drawn at once


class Descent:
    """J ← (1 − vλΔ)J + (v/N) Σ F ξ + η√(Δ/N) by batches of βp examples, Δ = βα; see `Problem`.

    Where βp is not whole, batches differ by one example, and an epoch has as many as it should.
    """

    def __init__(
        self,
        problem: Problem,
        examples: Examples,
        force: Any,
        draws: np.random.Generator,
        noise: np.random.Generator,
    ) -> None:
        (p, n), dtype = examples.X.shape, examples.X.dtype
        self.problem, self.examples, self.force = problem, examples, force
        self.parameters = tuple(problem.rule.parameters.values())
        self.draw, self.noise = drawing(problem.sequence, p, draws), noise
        self.size, self.step = problem.batch_share * p, problem.batch_share * problem.data.alpha
        # Of the weights' own type, or numba would compute single precision in double.
        number = dtype.type
        self.rate, self.keep = (
            number(problem.rate / n),
            number(1 - problem.rate * problem.decay * self.step),
        )
        self.limit = 1e100 if dtype == np.float64 else 1e15
        self.J, self.steps, self.diverged = aligned(n, dtype), 0, False

    def advance(self, until: float, integral: Weights | None = None) -> float:
        """Learn all batches until the given time; add ∫J dt to `integral`. Returns how long."""
        left = int(orders.steps_by(self.problem, until)) - self.steps
        duration = left * self.step
        total = np.zeros(0 if integral is None else self.J.size, self.J.dtype)
        most = max(1, int(BLOCK / max(self.size, self.J.size * (self.problem.temperature > 0))))
        while left > 0 and not self.diverged and not stopping():
            count = min(left, most)
            self.learn(self.plan(count), self.kicks(count), total)
            left -= count
        self.steps += left  # none, unless it has diverged or is being stopped
        if integral is not None:
            integral += self.step * total
        return duration

    def plan(self, count: int) -> tuple[Indices, Indices]:
        """Draw the examples of the next batches, and where these begin and end."""
        after = np.arange(self.steps, self.steps + count + 1)
        ends = np.floor(self.size * after + 0.5).astype(np.int64)  # p for every whole epoch
        self.steps += count
        return self.draw(int(ends[-1] - ends[0])), ends - ends[0]

    def kicks(self, count: int) -> Weights:
        """Noise after each step: |J|² gains 2TΔ."""
        if not self.problem.temperature:
            return np.empty((0, 0), self.J.dtype)
        size = math.sqrt(2 * self.problem.temperature * self.step / self.J.size)
        return (size * self.noise.standard_normal((count, self.J.size))).astype(self.J.dtype)

    def learn(self, batches: tuple[Indices, Indices], kicks: Weights, total: Weights) -> None:
        """Take the given steps; add J after each of them to `total` unless that is empty."""
        status, at = kernels.descend(
            self.force,
            self.parameters,
            self.J,
            self.examples.X,
            self.examples.targets,
            *batches,
            self.rate,
            self.keep,
            self.limit,
            kicks,
            total,
        )
        if status == kernels.NOT_A_NUMBER:
            raise not_a_number(self.examples.targets[batches[0][at]])
        self.diverged = status == kernels.DIVERGED
