"""One network that learns on-line, one example at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass import schedules
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import stopping
from manypass.problem import Problem
from manypass.simulation import kernels
from manypass.simulation.examples import Examples, Fresh, Indices, Weights, aligned

BLOCK = 1 << 18  # learning steps whose examples are drawn at once


def pace(problem: Problem, n: int, t: Array) -> Array:
    """v/N and 1 − vλ/N at times t (2 × times)."""
    v = problem.v(t)
    drags = v * problem.decays(t)
    if drags.max() >= n:
        worst = int(drags.argmax())
        where = f"{drags[worst]:g} at t = {t[worst]:g}"
        if isinstance(problem.data, Dataset):
            raise ValueError(f"`rate`·`decay` must stay below the N = {n} of `data`, got {where}")
        raise ValueError(f"`n` = {n} must exceed rate·decay, {where}")
    return np.stack([v / n, 1 - drags / n])


def largest_drag(problem: Problem) -> float:
    """Largest v(t)λ(t) at the start and at breaks; a rising product is found by learning."""
    t = np.array([0.0, *schedules.breaks(problem.rate, problem.decay)])
    return float((problem.v(t) * problem.decays(t)).max())


class Learner:
    """On-line learning of one network; `advance` goes on from where it was."""

    def __init__(
        self,
        problem: Problem,
        examples: Examples | Fresh,
        force: Any,
        draws: np.random.Generator,
        noise: np.random.Generator,
    ) -> None:
        n, dtype = examples.X.shape[1], examples.X.dtype
        self.problem, self.examples, self.force = problem, examples, force
        self.parameters = tuple(problem.rule.parameters.values())
        # Two generators, so that steps may be planned in pieces of any size.
        self.draw, self.noise = examples.drawing(problem.sequence, draws), noise
        self.n, self.limit = n, 1e100 if dtype == np.float64 else 1e15
        self.J, self.steps, self.diverged = aligned(n, dtype), 0, False
        self.constant = None if problem.scheduled else pace(problem, n, np.zeros(1))
        self.nothing = np.empty(0, dtype)
        self.pool = self.nothing
        if problem.temperature:
            # A pool of exactly the wanted variance; random offsets and signs make it fresh.
            self.offsets = min(max(8 * n, 1 << 12), 1 << 16)
            pool = noise.standard_normal(self.offsets + n + 1)
            pool *= math.sqrt(2 * problem.temperature / np.mean(pool**2)) / n
            self.pool = pool.astype(dtype)

    def advance(self, until: float, integral: Weights | None = None) -> float:
        """Learn until the given time; add ∫J dt to `integral`. Returns how long that was."""
        left = round(until * self.n) - self.steps
        duration = float(left / self.n)
        total = self.nothing if integral is None else np.zeros_like(self.J)
        while left > 0 and not self.diverged and not stopping():
            count = min(left, BLOCK, self.examples.most)
            self.learn(*self.plan(count), total)
            left -= count
        self.steps += left  # none, unless it has diverged or is being stopped
        if integral is not None:
            integral += total / self.n
        return duration

    def plan(self, count: int) -> tuple[Indices, Indices]:
        """Draw the examples of the next steps, and where in the pool their noise begins."""
        offsets = np.empty(0, np.int64)
        if self.pool.size:
            offsets = self.noise.integers(-self.offsets, self.offsets, size=count)
            offsets += offsets >= 0  # 0 has no sign
        return self.draw(count), offsets

    def pace(self, start: int) -> Array:
        """Rate and keep of the steps from `start` up to now."""
        return pace(self.problem, self.n, np.arange(start, self.steps) / self.n)

    def learn(self, sequence: Indices, offsets: Indices, total: Weights) -> None:
        """Take the given steps; add J after each of them to `total` unless that is empty."""
        start, self.steps = self.steps, self.steps + sequence.size
        if self.diverged or not sequence.size:
            return
        status, step = kernels.learn(
            self.force,
            self.parameters,
            self.J,
            self.examples.X,
            self.examples.targets,
            sequence,
            *(self.pace(start) if self.constant is None else self.constant),
            self.limit,
            self.pool,
            offsets,
            total,
        )
        if status == kernels.NOT_A_NUMBER:
            raise not_a_number(self.examples.targets[sequence[step]])
        self.diverged = status == kernels.DIVERGED


def not_a_number(target: float) -> ValueError:
    """Return the error of a force that is no number."""
    return ValueError(f"`force` returned NaN on an example with target {target:g}")
