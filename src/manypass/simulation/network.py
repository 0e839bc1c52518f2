"""One network: its teacher, its training set, its learning sequence, and what is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manypass.checks import Array
from manypass.ensemble import stopping
from manypass.problem import Problem, Teacher
from manypass.simulation import kernels

BLOCK = 1 << 18  # learning steps whose examples are drawn at once
Weights = NDArray[Any]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Examples:
    """A teacher and a training set that it labelled; B is empty if there is no teacher."""

    B: Array
    X: Weights  # p × N
    targets: Array
    top: float  # largest eigenvalue of H, or its limit for N → ∞

    @classmethod
    def draw(cls, data: Teacher, n: int, rng: np.random.Generator, dtype: Any) -> Examples:
        """B on the unit sphere, ξ ~ N(0, 1), ỹ = sgn(y + εz) or y + εz."""
        B = rng.standard_normal(n)
        B /= np.linalg.norm(B)
        p = round(data.alpha * n)
        X = aligned(p * n, dtype).reshape(p, n)
        rng.standard_normal(dtype=dtype, out=X)
        targets = (X @ B.astype(dtype)).astype(float)
        if data.noise:
            targets += data.noise * rng.standard_normal(p)
        aims = np.sign(targets) if data.task == "classification" else targets
        return cls(B, X, aims, top=(1 + 1 / math.sqrt(data.alpha)) ** 2)


def aligned(count: int, dtype: Any) -> Weights:
    """Return zeros that begin with a cache line, which numpy does not promise: a tenth faster."""
    raw = np.zeros(count * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * dtype.itemsize].view(dtype)


def drawing(kind: str, p: int, rng: np.random.Generator) -> Callable[[int], Indices]:
    """Return a function that gives the next so many examples of a learning sequence."""
    if kind == "replacement":
        return lambda count: rng.integers(p, size=count)

    def passes() -> Iterator[Indices]:
        order = rng.permutation(p)
        while True:
            yield order
            order = rng.permutation(p) if kind == "reshuffled" else order

    stream, rest = passes(), np.empty(0, np.int64)

    def take(count: int) -> Indices:
        nonlocal rest
        parts = [rest]
        while sum(map(len, parts)) < count:
            parts.append(next(stream))
        joined = np.concatenate(parts)
        rest = joined[count:]
        return joined[:count]

    return take


def pace(problem: Problem, n: int, t: Array) -> Array:
    """v/N and 1 − vλ/N at times t (2 × times)."""
    v = problem.v(t)
    drags = v * problem.decays(t)
    if drags.max() >= n:
        worst = int(drags.argmax())
        raise ValueError(f"`n` = {n} must exceed rate·decay, {drags[worst]:g} at t = {t[worst]:g}")
    return np.stack([v / n, 1 - drags / n])


class Learner:
    """On-line learning of one network; `advance` goes on from where it was."""

    def __init__(
        self,
        problem: Problem,
        examples: Examples,
        force: Any,
        draws: np.random.Generator,
        noise: np.random.Generator,
    ) -> None:
        n, dtype = examples.X.shape[1], examples.X.dtype
        self.problem, self.examples, self.force = problem, examples, force
        self.parameters = tuple(problem.rule.parameters.values())
        # Two generators, so that steps may be planned in pieces of any size.
        self.draw, self.noise = drawing(problem.sequence, len(examples.X), draws), noise
        self.limit = 1e100 if dtype == np.float64 else 1e15
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
        left = round(until * self.J.size) - self.steps
        duration = left / self.J.size
        total = self.nothing if integral is None else np.zeros_like(self.J)
        while left > 0 and not stopping():
            count = min(left, BLOCK)
            self.learn(*self.plan(count), total)
            left -= count
        if integral is not None:
            integral += total / self.J.size
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
        return pace(self.problem, self.J.size, np.arange(start, self.steps) / self.J.size)

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
