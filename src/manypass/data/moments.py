r"""The first two moments of SGD on a given set of examples, exact for every step.

One step takes the mean force of B examples with ν = v/N, F = ỹ − x for Adaline:

    J ← J + ν[(1/B) Σ F ξ − λJ] + noise

Averaged over the draws, m = ⟨J⟩ and Σ = ⟨JJᵀ⟩ − mmᵀ close, because the force is linear
(physics of any finite N; no spectrum, no Gaussian inputs assumed):

    m' = m + ν(g − Hm − λm)
    Σ' = āΣā + (ν²/B) [ (1/p) Σ_μ F2_μ ξξᵀ − HΣH − f̄f̄ᵀ ] + 2TB/N²,    ā = 1 − νλ − νH
    F2_μ = (ỹ − ξ·m)² + ξᵀΣξ,    f̄ = g − Hm

In the eigenbasis of H all but the sum over examples is diagonal: Σ'_ij = b_ij Σ_ij + source_ij with
b_ij = a_i a_j − (ν²/B) h_i h_j. That Σ and not ⟨JJᵀ⟩ is followed keeps everything a sum of positive
terms. For Hebbian learning F = ỹ: the same with H → 0 in the dynamics and F2_μ = ỹ². Weights start
at J(0), Σ = 0; ν and λ may change from step to step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from manypass import card, memory, schedules
from manypass.checks import Array
from manypass.data import sums
from manypass.data.principal import Principal, started
from manypass.problem import Problem
from manypass.rules import Adaline

BUFFER = 1 << 22  # numbers in a block of examples
MATRICES = 24  # of the size of Σ that are held at once
CHUNK = 1 << 12  # steps whose ν are held at once
ROUNDING = 1e-12  # of the time of a step


class State(NamedTuple):
    """What the recursion carries from step to step."""

    line: Array  # m, and last the variance of each weight outside the span of the examples
    Sigma: Array

    @property
    def m(self) -> Array:
        """⟨J⟩."""
        return self.line[:-1]

    @property
    def null(self) -> float:
        """Variance outside the span: dynamical noise alone."""
        return float(self.line[-1])


class Moments:
    """m and Σ of one problem; `diagonal` keeps only the diagonal of Σ, an approximation.

    ν, λ and what follows from them are those of the first step; `at` returns those of another.
    """

    def __init__(self, problem: Problem, examples: Principal, *, diagonal: bool = False) -> None:
        self.start: Any = np.zeros_like(examples.h)
        if problem.start is not None:
            examples, self.start = started(examples, problem.data, problem.start.weights)
        p, rank = examples.Y.shape
        matrix = rank if diagonal else rank**2
        on_card = hasattr(examples.Y, "get")
        free = card.free_for_arrays() if on_card else None
        memory.require(8 * (MATRICES * matrix + 3 * BUFFER + 8 * p), REMEDY, free=free)
        self.problem, self.examples, self.diagonal = problem, examples, diagonal
        self.batch = problem.batch_size
        self.coupled = isinstance(problem.rule, Adaline)
        self.h = examples.h * self.coupled
        self.heat = 2 * problem.temperature * self.batch / examples.n**2
        self._take(*self._settings(0))

    def _settings(self, k: Any) -> tuple[Any, Any]:
        """ν and λ of step k: a jump of a schedule at the time of the step has happened."""
        t = np.asarray(k) * self.batch / self.examples.n * (1 + ROUNDING)
        return self.problem.v(t) / self.examples.n, self.problem.decays(t)

    def _take(self, nu: Any, decay: Any) -> None:
        self.nu, self.decay = float(nu), float(decay)
        self.weight = self.nu**2 / self.batch
        q = self.nu * (self.decay + self.h)  # 1 − a
        slow = self.nu * self.decay  # the same outside the span
        self.q, self.fading = q, _ending(q, 2 * slow - slow**2)
        self.drift = _ending(self.nu * self.examples.g, self.heat)
        pair = (q, q) if self.diagonal else (q[:, None], q)
        both = (self.h, self.h) if self.diagonal else (self.h[:, None], self.h)
        # 1 − b, free of the cancellation in 1 − a_i a_j
        self.c = pair[0] + pair[1] - pair[0] * pair[1] + self.weight * both[0] * both[1]

    def at(self, k: float) -> Moments:
        """Return the same with ν and λ of step k; itself, if they are its own."""
        if not self.problem.scheduled:
            return self
        nu, decay = self._settings(k)
        if (nu, decay) == (self.nu, self.decay):
            return self
        other = copy.copy(self)
        other._take(nu, decay)
        return other

    @property
    def jumps(self) -> list[int]:
        """Steps from which on ν or λ is another function of time."""
        times = np.array(schedules.breaks(self.problem.rate, self.problem.decay))
        steps = np.ceil(times * self.examples.n / self.batch * (1 - ROUNDING))
        return sorted({int(k) for k in steps})

    @property
    def zero(self) -> Array:
        """Σ at the start."""
        return np.zeros_like(self.c)

    @property
    def first(self) -> State:
        """The state at the start."""
        return State(_ending(self.start, 0.0), self.zero)

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
        """⟨J⟩ after k steps at constant ν and λ, a^k J(0) + ν g (1 − a^k)/(1 − a)."""
        kept = sums.power(self.q, k) * self.start if self.problem.start else 0.0
        return kept + self.nu * self.examples.g * sums.learned(self.q, k)

    def kept(self, begin: int, end: int) -> Array:
        """Π a over the steps from begin to end, and last the same outside the span."""
        h = np.append(card.host(self.h), 0.0)
        if not self.problem.scheduled:
            return sums.power(self.nu * (self.decay + h), end - begin)
        out = np.ones_like(h)
        for k in range(begin, end, CHUNK):
            nu, decay = self._settings(np.arange(k, min(k + CHUNK, end)))
            out *= np.prod(1 - nu[:, None] * (decay[:, None] + h), axis=0)
        return out

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

    def sources(self, state: State) -> tuple[Array, Array]:
        """Return what a step adds to the line beyond its decay, and to Σ beyond b Σ."""
        out = self._noise(state.m, state.Sigma if self.coupled else None)
        return self.drift, out

    def _noise(self, m: Array, Sigma: Array | None) -> Array:
        drift = self.examples.g - self.h * m
        out = self.pull(Sigma, self.force(m) ** 2)
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
        return self._noise(self.examples.g / (self.decay + self.h), None)

    def variances(self, Sigma: Array) -> Array:
        """Return the diagonal of Σ."""
        return Sigma if self.diagonal else np.diagonal(Sigma)

    def null_variance(self, k: float) -> float:
        """Variance of each weight outside the span after k steps at constant ν and λ."""
        q = np.array(self.nu * self.decay)
        return self.heat * float(sums.learned(2 * q - q**2, k)) if self.heat else 0.0

    def F2(self, m: Array, Sigma: Array) -> float:
        """⟨F²⟩ over the training set."""
        f = self.force(m)
        return float(f @ f / f.size + self.h @ self.variances(Sigma))


def _ending(vector: Array, last: float) -> Array:
    out = np.empty_like(vector, shape=vector.size + 1)
    out[:-1], out[-1] = vector, last
    return out


REMEDY = "take fewer columns, or Exact(diagonal=True), an approximation"


def finite(*values: float) -> bool:
    """Whether learning has not yet diverged beyond all use."""
    return all(math.isfinite(v) and v < 1e100 for v in values)
