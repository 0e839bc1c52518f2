"""Modes at a constant rate: the Volterra equation of F2, solved without a time step.

On the nodes of the spectrum the kernel is a sum of exponentials, so that the equation is the
linear system dn/dt = −2xn + kF2 + 2T, F2 = mean F2 + Σ ρhn. Its matrix, diagonal plus rank one,
is diagonalised once; every time then costs the same, however late.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manypass.checks import Array
from manypass.exact.modes import Modes, State, learned

CLOSE = 1e-4  # rates that agree to this, relative to themselves, share a confluent term
E_FOLDS = 600.0  # e^600 ~ 1e260: beyond it a diverging solution is reported as inf


class Constant:
    """The modes of a linear problem at a constant rate and decay, from a state on."""

    def __init__(self, modes: Modes, before: State) -> None:
        self.modes, self.before, self.root = modes, before, np.sqrt(modes.rho)
        # k is v²h, or 0 in batch mode, and h is 0 for Hebbian: symmetric in every case.
        matrix = np.diag(2 * modes.x) - np.outer(self.root * modes.k, self.root * modes.h)
        self.m, self.V = np.linalg.eigh(matrix)
        self.rates, weights = mean_F2_exponentials(modes, before)
        self.source = np.outer(self.V.T @ (self.root * modes.k), weights)
        self.source[:, 0] += self.V.T @ self.root * modes.heat

    def at(self, t: Array) -> State:
        """Return the state a time t later."""
        modes, before = self.modes, self.before
        fall = np.exp(-np.outer(modes.x, t))
        # u(∞) + (u₀ − u(∞)) e^{−xt}, free of the cancellation in 1 − h e
        u = modes.u_end[:, None] + (before.u - modes.u_end[:, None]) * fall
        done = modes.v * learned(modes.x, t)
        moved = modes.u_end[:, None] * done + modes.v * (before.u - modes.u_end[:, None]) * t * fall
        return State(
            before.e * fall + done,
            u,
            before.E * fall,
            self._noise(t),
            before.w * fall + moved,
            before.s + np.outer([modes.v, modes.v * modes.decay], t),
        )

    def _noise(self, t: Array) -> Array:
        """Return the variances n, modes × times."""
        modes, lost = self.modes, np.isinf(self.before.n)
        diverged = np.where(lost.any(), True, -self.m[0] * t > E_FOLDS)
        n0, still = np.where(lost, 0.0, self.before.n), np.where(diverged, 0.0, t)
        w = driven(self.m, self.rates, self.source, still)
        if n0.any():
            w += np.exp(-np.outer(self.m, still)) * (self.V.T @ (self.root * n0[:, 0]))[:, None]
        n = np.maximum(self.V @ w / self.root[:, None], 0.0)  # what is below is rounding
        null = modes.h == 0
        n[np.ix_(~null, diverged)] = np.inf
        x, late = 2 * modes.x[null], t[diverged]
        n[np.ix_(null, diverged)] = n0[null] * np.exp(-np.outer(x, late))
        n[np.ix_(null, diverged)] += modes.heat * learned(x, late)
        return np.asarray(n)


def mean_F2_exponentials(modes: Modes, before: State) -> tuple[Array, Array]:
    """Rates and weights of mean F2(t) = Σ weight e^{−rate t}; the first is the constant."""
    x, size = modes.x, modes.h.size
    u, none = modes.u_end[:, None], np.zeros((size, 1))
    goes = modes.residuals(replace(before, u=before.u - u))
    constant, once, twice = modes.f0, np.zeros(size), np.zeros(size)
    for (w, end), (_, falls) in zip(
        modes.residuals(State(none, u, none, none, none, none)), goes, strict=True
    ):
        constant += float(w @ end[:, 0] ** 2)
        once += 2 * w * end[:, 0] * falls[:, 0]
        twice += w * falls[:, 0] ** 2
    return np.concatenate([[0.0], x, 2 * x]), np.concatenate([[constant], once, twice])


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
