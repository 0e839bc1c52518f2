"""A population of sampled examples, drawn once and led through time by the mean-field equations.

Everything random is drawn beforehand and belongs to continuous time, so that a coarser grid sees
the same examples: Brownian increments behind the cavity field h, and learning instants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from manypass.cavity.examples import Draws
from manypass.cavity.tables import FAST
from manypass.compiling import njit
from manypass.problem import Problem, Teacher


@dataclass(frozen=True, eq=False)
class Population:
    """Examples up to a time, and one normal number per example and step of a grid."""

    time: float
    draws: Draws
    normals: NDArray[np.float32]  # [example, step]

    @property
    def size(self) -> int:
        """Number of examples."""
        return self.draws.y.size

    @property
    def steps(self) -> int:
        """Number of steps of the grid."""
        return int(self.normals.shape[1])

    @classmethod
    def make(cls, problem: Problem, time: float, steps: int, size: int, rng: Any) -> Population:
        """Draw a population, as even as chance allows (see `even_draws` and `orthonormal`)."""
        draws = even_draws(problem.teacher, time if problem.mode == "online" else 0.0, size, rng)
        normals = rng.standard_normal((size, steps), dtype=np.float32)
        return cls(time, draws, orthonormal(normals, draws))

    def coarser(self) -> Population:
        """Return the same examples on a grid of twice the step."""
        pairs = (self.normals[:, ::2] + self.normals[:, 1::2]) * np.float32(np.sqrt(0.5))
        return Population(self.time, self.draws, np.ascontiguousarray(pairs))

    def halves(self) -> list[Population]:
        """Return the same examples as two populations that know nothing of each other."""
        middle, out = self.size // 2, []
        for part in (slice(0, middle), slice(middle, 2 * middle)):
            first = self.draws.first[part.start : part.stop + 1]
            instants = self.draws.instants[first[0] : first[-1]]
            draws = Draws(self.draws.y[part], self.draws.target[part], first - first[0], instants)
            out.append(Population(self.time, draws, orthonormal(self.normals[part], draws)))
        return out


def even_draws(data: Teacher, time: float, size: int, rng: np.random.Generator) -> Draws:
    """Draw y from equal slices of its law, and instants evenly in time for random examples."""
    y = ndtri((rng.permutation(size) + rng.random()) / size)
    y, noise = (y - y.mean()) / y.std(), rng.standard_normal(size)
    noise -= noise.mean() + (noise @ y) / size * y
    target = y + data.noise * noise / noise.std()
    if data.task == "classification":
        target = np.where(target >= 0, 1.0, -1.0)
    total = int(size * time / data.alpha + rng.random())
    owner = rng.integers(size, size=total)
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=size))])
    instants = (np.arange(total) + rng.random()) * (time / max(total, 1))
    return Draws(y, target, first, _grouped(instants, owner, first))


@njit(**FAST)
def _grouped(values, owner, first):  # type: ignore[no-untyped-def]
    """Reorder values by owner, in their order for each owner."""
    out, place = np.empty_like(values), first.copy()
    for i in range(values.size):
        out[place[owner[i]]] = values[i]
        place[owner[i]] += 1
    return out


def orthonormal(normals: NDArray[np.float32], draws: Draws) -> NDArray[np.float32]:
    """Make normals whose sample covariance is exactly 1, and 0 with y and ỹ.

    The population then has the covariance of h that it is given, not one that is off by chance:
    less noise, and nearly no bias from being driven by its own averages.
    """
    known = np.stack([np.ones(draws.y.size), draws.y, draws.target], axis=1)
    base = np.linalg.qr(known)[0].astype(np.float32)
    normals = normals - base @ (base.T @ normals)
    covariance = (normals.T @ normals).astype(float) / len(normals)
    inverse = np.linalg.inv(np.linalg.cholesky(covariance)).T
    return np.ascontiguousarray(normals @ inverse.astype(np.float32))
