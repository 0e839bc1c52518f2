r"""The first two moments of SGD on a given set of examples, exact for every step.

One step takes B examples (B = 1 unless said) with ν = Bv/N per step, F = ỹ − x for Adaline:

    J ← J + ν[(1/B) Σ F ξ − λJ] + noise

Averaged over the draws, m = ⟨J⟩ and Σ = ⟨JJᵀ⟩ − mmᵀ close, because the force is linear
(physics of any finite N; no spectrum, no Gaussian inputs assumed):

    m' = m + ν(g − Hm − λm)
    Σ' = āΣā + (ν²/B) [ (1/p) Σ_μ F2_μ ξξᵀ − HΣH − f̄f̄ᵀ ] + 2TB/N²,    ā = 1 − νλ − νH
    F2_μ = (ỹ − ξ·m)² + ξᵀΣξ,    f̄ = g − Hm

In the eigenbasis of H all but the sum over examples is diagonal: Σ'_ij = b_ij Σ_ij + source_ij with
b_ij = a_i a_j − (ν²/B) h_i h_j. That Σ and not ⟨JJᵀ⟩ is followed keeps everything a sum of positive
terms. For Hebbian learning F = ỹ: the same with H → 0 in the dynamics and F2_μ = ỹ².
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from manypass import card, memory
from manypass.checks import Array
from manypass.data import sums
from manypass.data.principal import Principal
from manypass.problem import Problem
from manypass.rules import Adaline

BUFFER = 1 << 22  # numbers in a block of examples
MATRICES = 16  # of the size of Σ that are held at once


class Moments:
    """m and Σ of one problem; `diagonal` keeps only the diagonal of Σ, an approximation."""

    def __init__(
        self, problem: Problem, examples: Principal, *, batch: int = 1, diagonal: bool = False
    ) -> None:
        p, rank = examples.Y.shape
        matrix = rank if diagonal else rank**2
        on_card = hasattr(examples.Y, "get")
        free = card.free_for_arrays() if on_card else None
        memory.require(8 * (MATRICES * matrix + 3 * BUFFER + 8 * p), REMEDY, free=free)
        self.examples, self.diagonal, self.batch = examples, diagonal, batch
        self.coupled = isinstance(problem.rule, Adaline)
        self.h = examples.h * self.coupled
        self.nu = batch * problem.rate / examples.n
        self.decay = problem.decay
        self.q = self.nu * (problem.decay + self.h)  # 1 − a
        self.heat = 2 * problem.temperature * batch / examples.n**2
        self.weight = self.nu**2 / batch
        pair = (self.q, self.q) if diagonal else (self.q[:, None], self.q)
        both = (self.h, self.h) if diagonal else (self.h[:, None], self.h)
        # 1 − b, free of the cancellation in 1 − a_i a_j
        self.c = pair[0] + pair[1] - pair[0] * pair[1] + self.weight * both[0] * both[1]

    @property
    def zero(self) -> Array:
        """Σ at the start."""
        return np.zeros_like(self.c)

    def steps(self, t: float) -> int:
        """Return the number of steps that have been taken by time t."""
        return round(t * self.examples.n / self.batch)

    def restless(self, tolerance: float) -> float:
        """Return the step until which some direction overshoots, a < 0, by more than this.

        Until then the weights jump to and fro from step to step, and nothing is smooth in time.
        """
        q = card.host(self.q)
        over = np.abs(1 - q[q > 1]).max(initial=0.0)
        return math.inf if over >= 1 else math.log(tolerance) / math.log(over) if over else 0.0

    def mean(self, k: float) -> Array:
        """⟨J⟩ after k steps, ν g (1 − a^k)/(1 − a)."""
        return self.nu * self.examples.g * sums.learned(self.q, k)

    def force(self, m: Array) -> Array:
        """ỹ − ξ·m of every training example (ỹ for Hebbian learning)."""
        e = self.examples
        return e.targets - e.Y @ m if self.coupled else e.targets

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Training examples, some at a time."""
        p, rank = self.examples.Y.shape
        size = max(64, BUFFER // max(rank, 1))
        for start in range(0, p, size):
            part = slice(start, start + size)
            yield part, self.examples.Y[part]

    def spread(self, Sigma: Array, Y: Array) -> Array:
        """ξᵀΣξ of each row of Y."""
        if self.diagonal:
            return Y**2 @ Sigma
        return np.einsum("ij,ij->i", Y @ Sigma, Y)  # type: ignore[no-any-return]

    def pull(self, Sigma: Array | None, squares: Array | None = None) -> Array:
        """(1/p) Σ_μ (squares_μ + ξᵀΣξ) ξξᵀ, or its diagonal; each example is read once."""
        out, p = self.zero, self.examples.targets.size
        for part, Y in self.blocks():
            weights: Any = self.spread(Sigma, Y) if Sigma is not None else 0.0
            weights = weights if squares is None else weights + squares[part]
            if self.diagonal:
                out += weights @ Y**2
            elif weights.min() < 0:  # no covariance, but a vector of Lanczos' method
                out += (Y * weights[:, None]).T @ Y
            else:  # a square, at half the price
                root = Y * np.sqrt(weights)[:, None]
                out += root.T @ root
        return out / p

    def source(self, k: float, Sigma: Array) -> Array:
        """Return what a step from k adds to Σ beyond b Σ."""
        m = self.mean(k)
        drift = self.examples.g - self.h * m
        out = self.pull(Sigma if self.coupled else None, self.force(m) ** 2)
        out -= drift**2 if self.diagonal else np.outer(drift, drift)
        out *= self.weight
        self._heated(out)
        return out

    def _heated(self, matrix: Array) -> None:
        if self.diagonal:
            matrix += self.heat
        else:
            matrix[np.diag_indices_from(matrix)] += self.heat

    def still(self) -> Array:
        """Source for t → ∞ without the feedback ξᵀΣξ."""
        m = self.examples.g / (self.decay + self.h)
        drift = self.examples.g - self.h * m
        out = self.pull(None, self.force(m) ** 2)
        out -= drift**2 if self.diagonal else np.outer(drift, drift)
        out *= self.weight
        self._heated(out)
        return out

    def variances(self, Sigma: Array) -> Array:
        """Return the diagonal of Σ."""
        return Sigma if self.diagonal else np.diagonal(Sigma)

    def null_variance(self, k: float) -> float:
        """Variance of each weight outside the span of the examples: dynamical noise alone."""
        q = np.array(self.nu * self.decay)
        return self.heat * float(sums.learned(2 * q - q**2, k)) if self.heat else 0.0

    def F2(self, k: float, Sigma: Array) -> float:
        """⟨F²⟩ over the training set."""
        f = self.force(self.mean(k))
        return float(f @ f / f.size + self.h @ self.variances(Sigma))


REMEDY = "take fewer columns, or Exact(diagonal=True), an approximation"


def finite(*values: float) -> bool:
    """Whether learning has not yet diverged beyond all use."""
    return all(math.isfinite(v) and v < 1e100 for v in values)
