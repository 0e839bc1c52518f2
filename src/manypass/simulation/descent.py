"""Steps of many examples, all forces at the same weights, and steps with momentum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass import orders
from manypass.ensemble import stopping
from manypass.problem import Problem
from manypass.simulation import kernels
from manypass.simulation.examples import Examples, Fresh, Indices, Weights, aligned
from manypass.simulation.network import not_a_number

BLOCK = 1 << 18  # examples, or numbers of noise, that are drawn at once


class Descent:
    """J ← (1 − vλΔ)J + (v/N) Σ F ξ + η√(Δ/N) by batches of βp examples, Δ = βα; see `Problem`.

    A `batch_size` b is Δ = b/N at the rate v/b. With momentum V ← βV + Σ F ξ − λNΔJ,
    J ← J + (v/N)V + η√(Δ/N). Where βp is not whole, batches differ by one example, and an epoch
    has as many as it should.
    """

    def __init__(
        self,
        problem: Problem,
        examples: Examples | Fresh,
        force: Any,
        draws: np.random.Generator,
        noise: np.random.Generator,
    ) -> None:
        (p, n), dtype = examples.X.shape, examples.X.dtype
        self.problem, self.examples, self.force = problem, examples, force
        self.parameters = tuple(problem.rule.parameters.values())
        self.draw, self.noise = examples.drawing(problem.sequence, draws), noise
        share, b = problem.batch_share, problem.batch_size
        self.size = share * p if share else float(b)
        self.step = share * problem.data.alpha if share else b / n
        self.n, self.limit = n, 1e100 if dtype == np.float64 else 1e15
        self.J, self.V, self.steps, self.diverged = aligned(n, dtype), aligned(n, dtype), 0, False

    def advance(self, until: float, integral: Weights | None = None) -> float:
        """Learn all batches until the given time; add ∫J dt to `integral`. Returns how long."""
        share = self.problem.batch_share
        by = int(orders.steps_by(self.problem, until)) if share else round(until / self.step)
        left = by - self.steps
        duration = left * self.step
        total = np.zeros(0 if integral is None else self.J.shape, self.J.dtype)
        most = BLOCK / max(self.size, self.J.size * (self.problem.temperature > 0))
        most = max(1, int(min(most, self.examples.most / self.size)))
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
        size = math.sqrt(2 * self.problem.temperature * self.step / self.n)
        return (size * self.noise.standard_normal((count, *self.J.shape))).astype(self.J.dtype)

    def paces(self, first: int, count: int) -> tuple[Any, Weights, Weights, Weights]:
        """β, and rate, keep and drag of so many steps, by v and λ at their beginnings.

        All of the weights' own type, or numba would compute single precision in double; there
        1 − vλΔ would be off by a share of λ that shows if Δ is of order 1/N, hence the drag.
        """
        problem, n, dtype = self.problem, self.n, self.J.dtype
        t = self.step * np.arange(first, first + count) * (1 + 1e-14)  # not a digit before a break
        v, decay = problem.v(t) / problem.batch_size, problem.decays(t)
        keep, drag = 1 - v * decay * self.step, np.zeros(count)
        if problem.momentum or not problem.batch_share:
            keep, drag = np.ones(count), decay * (self.step * n)
        return dtype.type(problem.momentum), *(a.astype(dtype) for a in (v / n, keep, drag))

    def learn(self, batches: tuple[Indices, Indices], kicks: Weights, total: Weights) -> None:
        """Take the given steps; add J after each of them to `total` unless that is empty."""
        count = batches[1].size - 1
        status, at = kernels.descend(
            self.force,
            self.parameters,
            self.J,
            self.V,
            self.examples.X,
            self.examples.targets,
            *batches,
            self.paces(self.steps - count, count),
            self.limit,
            kicks,
            total,
        )
        if status == kernels.NOT_A_NUMBER:
            raise not_a_number(self.examples.targets[batches[0][at]])
        self.diverged = status == kernels.DIVERGED
