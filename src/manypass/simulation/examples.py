"""What a network learns from: a teacher and the examples that it labelled, kept or fresh."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.inputs import Inputs
from manypass.problem import Teacher

HELD = 1 << 21  # numbers of a table of fresh examples
Weights = NDArray[Any]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Examples:
    """A teacher and a training set that it labelled; B is empty if there is no teacher.

    Weights and inputs are those along the eigenvectors of Σ. In K = √μ J and √μ B order parameters
    are plain products: R = BᵀΣJ, Q = JᵀΣJ.
    """

    B: Array
    X: Weights  # p × N
    targets: Array
    top: float  # largest eigenvalue of H, or its limit for N → ∞
    root: Array | float = 1.0  # √μ
    output: Callable[[Array], Array] | None = None  # of a teacher with two layers, from B·ξ
    most: ClassVar[int] = sys.maxsize  # examples that can be drawn at once

    @classmethod
    def draw(cls, data: Teacher, n: int, rng: np.random.Generator, dtype: Any) -> Examples:
        """ξ_j ~ N(0, μ_j), ỹ = sgn(y + εz) or y + εz; B on the unit sphere, or ±√(P_j/μ_j)."""
        B, alpha = rng.standard_normal(n), data.alpha
        root: Array | float = 1.0
        if data.isotropic:
            B /= np.linalg.norm(B)
            top = (1 + 1 / math.sqrt(alpha)) ** 2
        else:
            sizes, root, top = directions(data.inputs, n, alpha)
            B = np.copysign(sizes, B)
        p = how_many(data, n)
        X = aligned(p * n, dtype).reshape(p, n)
        return cls(B, X, labelled(data, B, root, X, rng, rng), top, root)

    def drawing(self, kind: str, rng: np.random.Generator) -> Callable[[int], Indices]:
        """Return a function that gives the next so many examples of a learning sequence."""
        return drawing(kind, len(self.X), rng)


class Fresh:
    """Examples of a teacher that are never seen twice: every draw fills the table anew."""

    def __init__(self, data: Teacher, known: Examples, least: int) -> None:
        self.data, self.known, n = data, known, known.X.shape[1]
        self.most = held(n, least)
        self.table = aligned(self.most * n, known.X.dtype).reshape(self.most, n)
        self.X, self.targets = self.table[:0], np.empty(0)

    def drawing(self, kind: str, rng: np.random.Generator) -> Callable[[int], Indices]:
        """Return a function that puts so many examples into the table; all orders are the same."""
        # Two generators, so that they may be drawn in pieces of any size; the same at every call.
        seed: Any = rng.bit_generator.seed_seq
        keys = ((*seed.spawn_key, i) for i in range(2))
        seeds = [np.random.SeedSequence(seed.entropy, spawn_key=key) for key in keys]
        inputs, noise = map(np.random.default_rng, seeds)

        def take(count: int) -> Indices:
            self.X = self.table[:count]
            known = self.known
            law = (known.B, known.root, self.X)
            self.targets = labelled(self.data, *law, inputs, noise, known.output)
            return np.arange(count)

        return take


def held(n: int, least: int) -> int:
    """How many fresh examples are held at once."""
    return max(HELD // n, least)


def how_many(data: Teacher | Dataset, n: int) -> int:
    """Size of the training set; of a set to measure by, n, if every step takes a fresh example."""
    return n if math.isinf(data.alpha) else round(data.alpha * n)


def labelled(
    data: Teacher,
    B: Array,
    root: Array | float,
    X: Weights,
    inputs: np.random.Generator,
    noise: np.random.Generator,
    output: Callable[[Array], Array] | None = None,
) -> Array:
    """Draw inputs into X; returns their targets."""
    inputs.standard_normal(dtype=X.dtype, out=X)
    if isinstance(root, np.ndarray):
        X *= root.astype(X.dtype)
    targets: Array = (X @ B.T.astype(X.dtype)).astype(float)
    targets = output(targets) if output else targets
    if data.noise:
        targets += data.noise * noise.standard_normal(len(X))
    if data.task == "classification":
        np.sign(targets, out=targets)
    return targets


@lru_cache(maxsize=16)
def directions(inputs: Inputs, n: int, alpha: float) -> tuple[Array, Array, float]:
    """|B_j| = √(P_j/μ_j) and √μ_j, the same in all networks, and the largest eigenvalue of H."""
    mu, P = inputs.drawn(n)
    return np.sqrt(P / mu), np.sqrt(mu), edge(mu, alpha)


def edge(mu: Array, alpha: float) -> float:
    """Minimum over s > μ_max of s + ⟨μs/(s − μ)⟩/α, the largest eigenvalue of H for N → ∞.

    Marčenko and Pastur (1967); every s gives a bound.
    """
    top = float(mu.max())

    def bound(x: float) -> float:
        s = top * (1 + math.exp(x))
        return s * (1 + float(np.mean(mu / (s - mu))) / alpha)

    return float(minimize_scalar(bound, bounds=(-12.0, 12.0), method="bounded").fun)


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
