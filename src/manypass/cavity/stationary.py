"""The steady state as functions of the lag alone, each a sum of exponentials.

Ĝ(s) = 1/(s + vλ − vM̂(s)) with M = mδ + Σ M_j e^{−r_jτ}, the response of the mean force to h, has
as many poles as there are rates r_j, and one more. M is short-ranged even where G is not: it is M
that is measured, and G follows. S(τ) = S(∞) + Σ s_j e^{−r_jτ} is ⟨F(t)F_r⟩, r a learning instant
a time τ before t. Since Ĝ vanishes at the poles of M, C has the poles of G and no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manypass.checks import Array
from manypass.exact.steady import window_factor
from manypass.problem import Problem

FOR_EVER = 1e-7  # of the fastest rate: what decays more slowly does not decay


@dataclass(frozen=True, eq=False)
class Stationary:
    """R, F2, S and M of one problem; everything else follows."""

    problem: Problem
    rates: Array
    values: Array  # R, F2, S(∞), s_j, m, M_j: what the iteration mixes

    @classmethod
    def guess(cls, problem: Problem, rates: Array, F2: float, m: float) -> Stationary:
        """No overlap, half of every force kept for ever, an instantaneous response."""
        none, hardly = np.zeros(rates.size), 1e-4 * abs(m) * rates  # without M, p_i = r_i
        return cls(problem, rates, np.concatenate([[0.0, F2, F2 / 2], none, [m], hardly]))

    def at(self, rates: Array) -> Stationary:
        """Return the same functions on other rates, as far as these can express them."""
        overlaps = 1 / (rates[:, None] + rates)
        onto = np.linalg.lstsq(overlaps, 1 / (rates[:, None] + self.rates), rcond=1e-10)[0]
        parts = [self.values[:3], onto @ self.s, np.array([self.m]), onto @ self.M]
        moved = Stationary(self.problem, rates, np.concatenate(parts))
        return moved if moved.stable else Stationary.guess(self.problem, rates, self.F2, self.m)

    @property
    def R(self) -> float:
        """B·J."""
        return float(self.values[0])

    @property
    def F2(self) -> float:
        """⟨F²⟩."""
        return float(self.values[1])

    @property
    def s(self) -> Array:
        """Amplitudes of S(τ) − S(∞)."""
        return self.values[3 : 3 + self.rates.size]

    @property
    def m(self) -> float:
        """Instantaneous part of the response M."""
        return float(self.values[3 + self.rates.size])

    @property
    def M(self) -> Array:
        """Amplitudes of its regular part."""
        return self.values[4 + self.rates.size :]

    @property
    def white(self) -> float:
        """v²⟨F²⟩ + 2T, the white part of the noise that drives the weights; batch: 2T."""
        kicks = self.F2 if self.problem.mode == "online" else 0.0
        return self.problem.rate**2 * kicks + 2 * self.problem.temperature

    def response(self, s: Array) -> Array:
        """Ĝ(s)."""
        M = self.m + (self.M / (self.rates + s[..., None])).sum(-1)
        return np.asarray(1 / (s + self.problem.rate * (self.problem.decay - M)))

    @property
    def chi(self) -> float:
        """vĜ(0), what a constant force on the weights does to them."""
        return self.problem.rate * float(self.response(np.zeros(1))[0])

    @property
    def frozen(self) -> float:
        """C(∞) − R², of forces that every example keeps for ever."""
        return max(float(self.values[2]), 0.0) * self.chi**2 / self.problem.data.alpha

    @cached_property
    def modes(self) -> tuple[Array, Array, Array]:
        """p_i, g_i and c_i of G = Σ g_i e^{−p_iτ} and C = R² + C(∞) − R² + Σ c_i e^{−p_iτ}.

        c_i = g_i Ĝ(p_i) P(p_i), P the power of the noise: v²⟨F²⟩ + 2T + (v²/α) Ŝ.
        """
        v, size = self.problem.rate, self.rates.size + 1
        flow = np.diag(-np.concatenate([[v * (self.problem.decay - self.m)], self.rates]))
        flow[0, 1:], flow[1:, 0] = v * self.M, 1
        first = np.eye(size)[:, 0].astype(complex)
        try:
            eigenvalues, vectors = np.linalg.eig(flow)
            g = vectors[0] * np.linalg.solve(vectors.astype(complex), first)
        except np.linalg.LinAlgError:  # so far apart are its entries: not `stable`
            return (np.full(size, complex(np.nan, np.nan)),) * 3
        p = -eigenvalues.astype(complex)
        with np.errstate(divide="ignore", invalid="ignore"):  # poles that meet are not `stable`
            shape = (2 * self.s * self.rates / (self.rates**2 - p[:, None] ** 2)).sum(-1)
            power = self.white + v**2 / self.problem.data.alpha * shape
            return p, g, g * self.response(p) * power

    @property
    def stable(self) -> bool:
        """Whether it can be a steady state: finite and decaying."""
        if not (np.isfinite(self.values).all() and self.F2 > 0):
            return False
        p, _, c = self.modes
        return bool(p.real.min() > FOR_EVER * np.abs(p).max() and np.isfinite(c).all())

    def Q(self, window: float = 0.0) -> float:
        """|J|² of weights averaged over a window τ: (1/τ²)∬C."""
        p, _, c = self.modes
        return self.R**2 + self.frozen + float((c * window_factor(p * window)).sum().real)

    def C(self, lag: Array) -> Array:
        """J(t)·J(t + lag)."""
        p, _, c = self.modes
        decay = np.exp(-np.multiply.outer(lag, p))
        return np.asarray(self.R**2 + self.frozen + (c * decay).sum(-1).real)

    def G(self, lag: Array) -> Array:
        """Response of the weights."""
        p, g, _ = self.modes
        return np.asarray((g * np.exp(-np.multiply.outer(lag, p))).sum(-1).real)

    def power(self, step: float, steps: int) -> Array:
        """Of h − Ry by frequency, on a grid of so many steps that closes on itself."""
        p, _, c = self.modes
        angle = 2 * np.pi * np.arange(steps // 2 + 1)[:, None] / steps
        fall = np.minimum(p.real * step, 300.0) + 1j * p.imag * step  # beyond it is 1
        with np.errstate(invalid="ignore", divide="ignore"):  # of weights that grow for ever
            each = np.sinh(fall) / (np.cosh(fall) - np.cos(angle))
            total = (c * each).sum(-1).real
        total = np.maximum(total, 1e-6 * np.abs(total).max())  # a fit may dip below zero
        total[0] += self.frozen * steps
        return np.asarray(total)

    @property
    def slowest(self) -> float:
        """Rate at which the last memory decays; the decay alone is the least there is."""
        p, g, _ = self.modes
        kept = np.abs(g) > 1e-3
        return max(float(p.real[kept].min()), self.problem.rate * self.problem.decay)

    @property
    def fastest(self) -> float:
        """Rate of the fastest relaxation, by the largest eigenvalue that the examples can have."""
        edge = (1 + 1 / math.sqrt(self.problem.data.alpha)) ** 2
        return self.problem.rate * (self.problem.decay + abs(self.m) * edge)
