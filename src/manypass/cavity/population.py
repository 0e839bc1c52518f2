"""Populations of sampled examples, led through time on two grids at once.

Everything random belongs to continuous time, so that a grid of twice the step sees the same: y and
ỹ of the examples, the Brownian increments behind h, and the learning instants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from manypass.cavity.batch import Batch, coarser, orthonormal
from manypass.cavity.grid import DIVERGED
from manypass.cavity.online import Online
from manypass.checks import Array
from manypass.ensemble import stopping
from manypass.problem import Problem, Teacher

AGE = 4.0  # a cell is at most this fraction of its age; on the coarser grid half of it
FEWEST = 16  # steps, so that the grid of twice the step can still be interpolated


class StoppedError(Exception):
    """The result is no longer wanted."""


@dataclass(frozen=True)
class Clock:
    """t = w²/(w + start), w even: curves that start as √t are smooth functions of w."""

    start: float

    def w(self, t: Any) -> Any:
        """Return w at a time."""
        return (t + np.sqrt(t * (t + 4 * self.start))) / 2

    def times(self, step: float, stops: Array) -> Array:
        """Return times of which every second makes a grid too; all stops are on both.

        Steps are shorter at first, and reach the given one when t ≫ start.
        """
        edges, out = np.unique(np.append(0.0, stops)), [0.0]
        step = min(step, self.w(edges[-1]) / FEWEST)
        for low, high in pairwise(edges):
            a, b = self.w(low), self.w(high)
            count = max(math.ceil((b - a) / (2 * step) * (1 - 1e-9)), 1 if low else 4)
            w = np.linspace(a, b, 2 * count + 1)[1:-1]
            out.extend([*(w**2 / (w + self.start)), high])
        return np.array(out)


def even_steps(t: Array, fewest: int) -> int:
    """Return an even number of equal steps; if not too dear, such that all times are on them."""
    for parts in range(2, fewest + 1, 2):
        edges = t * (parts / 2 / max(t[-1], 1e-300))
        if np.abs(edges - np.rint(edges)).max() < 1e-6:
            return parts * -(-fewest // parts)
    return 2 * -(-fewest // 2)


def even_examples(data: Teacher, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw y from equal slices of its law, and ỹ; their sample moments are exact."""
    y = ndtri((rng.permutation(size) + rng.random()) / size)
    y, noise = (y - y.mean()) / y.std(), rng.standard_normal(size)
    noise -= noise.mean() + (noise @ y) / size * y
    target = y + data.noise * noise / noise.std()
    if data.task == "classification":
        target = np.where(target >= 0, 1.0, -1.0)
    return y, target


def lead(
    problem: Problem, rule: Any, size: int, t: Array, keep: Array, rng: Any, split: bool
) -> list[Any]:
    """One population on the times t, on every second of them, and there as two halves if split."""
    examples, middle = even_examples(problem.teacher, size, rng), size // 2
    parts = [slice(None), slice(None), slice(0, middle), slice(middle, 2 * middle)]
    parts = parts if split else parts[:2]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # overflows: diverged
        lead_all = lead_online if problem.mode == "online" else lead_batch
        return lead_all(problem, rule, examples, parts, t, keep, rng)


def lead_online(
    problem: Problem, rule: Any, examples: Any, parts: Any, t: Array, keep: Array, rng: Any
) -> list[Online]:
    """Draw normals and instants step by step, for all runs alike."""
    size = examples[0].size
    runs = [
        Online(problem, rule, tuple(e[part] for e in examples), AGE / (1 + (k > 0)), keep)
        for k, part in enumerate(parts)
    ]
    instants = Instants(size, problem.data.alpha, rng)
    (a, b, c, d), late = instants.two_steps(t[:3]), 1  # none at t = 0: no x is known yet
    for j in range(0, t.size - 2, 2):
        then = instants.two_steps(t[j + 2 : j + 5])
        z = rng.standard_normal((2, size), dtype=np.float32)
        weights = np.sqrt(np.diff(t[j : j + 3]) / (t[j + 2] - t[j])).astype(np.float32)
        single = ((t[j + 1], z[0], b + late * a, c), (t[j + 2], z[1], d, then[0]))
        double = ((t[j + 2], weights @ z, c + d + late * (a + b), then[0] + then[1]),)
        for run, part in zip(runs, parts, strict=True):
            for time, normals, before, after in single if run is runs[0] else double:
                if not finite(run.step, time, normals[part], before[part], after[part]):
                    return runs
        (a, b, c, d), late = then, 0
    return runs


def lead_batch(
    problem: Problem, rule: Any, examples: Any, parts: Any, t: Array, keep: Array, rng: Any
) -> list[Batch]:
    """Draw all normals at once."""
    normals = rng.standard_normal((examples[0].size, t.size - 1), dtype=np.float32)
    normals, runs = orthonormal(normals, examples), []
    for k, part in enumerate(parts):
        mine = tuple(e[part] for e in examples)
        noise = coarser(normals[part]) if k else normals
        noise = orthonormal(noise, mine) if k > 1 else noise
        runs.append(Batch(problem, rule, mine, noise, t[-1]))
        for _ in range(noise.shape[1]):
            if not finite(runs[-1].step):
                break
    return runs


def finite(step: Any, *arguments: Any) -> bool:
    """Take a step; return whether |J|² is still finite."""
    if stopping():
        raise StoppedError
    try:
        return bool(step(*arguments) < DIVERGED)
    except (OverflowError, np.linalg.LinAlgError):
        return False


class Instants:
    """How often each example is learned in each half of a step: evenly in time, by chance who."""

    def __init__(self, size: int, alpha: float, rng: Any) -> None:
        self.size, self.alpha, self.rng, self.left = size, alpha, rng, float(rng.random())

    def two_steps(self, t: Array) -> list[NDArray[np.int64]]:
        """Return counts by example in the four halves of two steps; none beyond the last time."""
        return [self._half(d / 2) for d in np.repeat(np.diff(t), 2)] or 4 * [self._half(0.0)]

    def _half(self, d: float) -> NDArray[np.int64]:
        self.left += self.size * d / self.alpha
        total = int(self.left)
        self.left -= total
        return np.bincount(self.rng.integers(self.size, size=total), minlength=self.size)
