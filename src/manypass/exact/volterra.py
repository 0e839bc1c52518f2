"""Sequence noise: the Volterra equation of F2, solved without a time step.

On the nodes of the spectrum the kernel is a sum of exponentials, so that the equation is the
linear system dn/dt = −2xn + kF2 + 2T, F2 = mean F2 + Σ ρhn. Its matrix, diagonal plus rank one,
is diagonalised once; every time then costs the same, however late.
"""

from __future__ import annotations

import numpy as np

from manypass.checks import Array
from manypass.exact.modes import Modes, learned

CLOSE = 1e-4  # rates that agree to this, relative to themselves, share a confluent term
E_FOLDS = 600.0  # e^600 ~ 1e260: beyond it a diverging solution is reported as inf


class SequenceNoise:
    """F2(t) and the variances n(t) of an Adaline or Hebbian problem, at any times."""

    def __init__(self, modes: Modes) -> None:
        self.modes, self.root = modes, np.sqrt(modes.rho)
        # k is v²h, or 0 in batch mode, and h is 0 for Hebbian: symmetric in every case.
        matrix = np.diag(2 * modes.x) - np.outer(self.root * modes.k, self.root * modes.h)
        self.m, self.V = np.linalg.eigh(matrix)
        self.rates, weights = mean_F2_exponentials(modes)
        self.source = np.outer(self.V.T @ (self.root * modes.k), weights)
        self.source[:, 0] += self.V.T @ self.root * modes.heat

    def __call__(self, t: Array) -> tuple[Array, Array]:
        """Return F2 (times) and n (modes × times)."""
        modes, diverged = self.modes, -self.m[0] * t > E_FOLDS
        u = driven(self.m, self.rates, self.source, np.where(diverged, 0.0, t))
        n = np.maximum(
            self.V @ u / self.root[:, None], 0.0
        )  # a variance: what is below is rounding
        null = modes.h == 0
        n[np.ix_(~null, diverged)] = np.inf
        n[np.ix_(null, diverged)] = modes.heat * learned(2 * modes.x[null], t[diverged])
        return modes.mean_F2(t) + (modes.rho * modes.h) @ n, n


def mean_F2_exponentials(modes: Modes) -> tuple[Array, Array]:
    """Rates and weights of mean F2(t) = Σ weight e^{−rate t}; the first is the constant."""
    weight, stays, goes = modes.rho * modes.f, modes.u_end, 1 - modes.u_end
    constant = modes.f0 + weight @ stays**2
    rates = np.concatenate([[0.0], modes.x, 2 * modes.x])
    return rates, np.concatenate([[constant], 2 * weight * stays * goes, weight * goes**2])


def driven(m: Array, r: Array, source: Array, t: Array) -> Array:
    """u_j(t) = Σ_i source_ji ∫₀ᵗ e^{−m_j(t−s)} e^{−r_i s} ds, modes × times.

    The integral is (e^{−r_i t} − e^{−m_j t})/(m_j − r_i).
    Pairs of well separated rates are one matrix product. Pairs of close rates, where that
    difference cancels, are few and take the confluent form t e^{−rt} (1 − e^{−gt})/gt, g = m − r.
    """
    acting = (source != 0).any(axis=0)
    r, source = r[acting], source[:, acting]
    gap = m[:, None] - r
    close = np.abs(gap) <= CLOSE * np.maximum(np.abs(m)[:, None], r)
    cauchy = np.where(close, 0.0, source / np.where(close, 1.0, gap))
    # Differences of e^{−rt} − 1 keep their digits while any rate is slow; once all have died
    # out, differences of e^{−rt} do.
    late = t * np.abs(np.concatenate([m, r])).min() > 1

    def decay(rate: Array) -> Array:
        exponent = -np.outer(rate, t)
        return np.where(late, np.exp(exponent), np.expm1(exponent))

    u = cauchy @ decay(r) - cauchy.sum(axis=1)[:, None] * decay(m)
    j, i = np.nonzero(close)
    slow = np.exp(-np.outer(np.minimum(m[j], r[i]), t))
    np.add.at(u, j, source[j, i][:, None] * slow * learned(np.abs(gap[j, i]), t))
    return np.asarray(u)
