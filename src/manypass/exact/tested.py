"""Modes of correlated inputs: what is learned in H's basis, tested in Σ's.

The training side is that of `modes` with the nodes of `correlated`. A test looks through Σ: with
s = ∫v dt, x = λ + h and Ḡ(s) = Σρ_Σ e^{−xs}

    ε(s) = (1/α) Σρ_Σ e,    ũ(s) = u + (1/α)∫Ḡ(s − s')u(s')ds',    δ = ũ − 1
    R = a Σρ_ΣB h e,    Q = f₀ε² + Σ(a²θ + σρ)δ² + Σρ_Σ n,    σ = (b − a²)/α

and for t → ∞ ũ = κ/(λ + h), 1 + ε = κ/λ. The decay has to be constant: u is a function of s then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.exact.correlated import kappa, nodes
from manypass.exact.modes import Modes, State, learned
from manypass.exact.volterra import driven
from manypass.problem import Problem


@dataclass(frozen=True, eq=False)
class Correlated(Modes):
    """Modes whose overlaps with test examples are not those with training examples."""

    over: float = 0.0  # 1/α
    kappa: float = 0.0

    @property
    def driven(self) -> Correlated:
        """All modes: a test sees what training examples lack, in the null space of H."""
        return self

    def mean_Q(self, s: State) -> Array:
        """Q without sequence noise."""
        eps, delta = self._test(s)
        return np.asarray(self.f0 * eps**2 + self._weights @ delta**2)

    def mean_C(self, s: State) -> Array:
        """Mean part of C(t,s) at all pairs of times."""
        eps, delta = self._test(s)
        known = self.f0 * np.multiply.outer(eps, eps)
        return np.asarray(known + delta.T @ (self._weights[:, None] * delta))

    def generalization(self, s: State) -> Array:
        """Σ a²θũ² + Σσρδ² + f₀ε² + Σρ_Σ n, twice E_g of regression as a sum of positive terms."""
        eps, delta = self._test(s)
        known = (self.a**2 * self.theta) @ (1 + delta) ** 2 + self.f0 * eps**2
        return np.asarray(known + (self.rho * self.sigma * (self.h > 0)) @ delta**2 + self.S @ s.n)

    @property
    def _weights(self) -> Array:
        return self.a**2 * self.theta + np.where(self.h > 0, self.rho * self.sigma, 0.0)

    def _test(self, state: State) -> tuple[Array, Array]:
        """ε and δ, modes × times."""
        x, s = self.decay + self.h, state.s[0]
        if np.isinf(s).all():
            lost = self.over if self.decay == 0 else 1 - self.decay / self.kappa  # ⟨μ/(μ+κ)⟩/α
            delta = np.where(self.h > 0, self.kappa / np.where(x > 0, x, 1) - 1, 0.0)
            return np.array([lost / (1 - lost) if lost < 1 else 0.0]), delta[:, None]
        e = learned(x, s)
        delta = -self.h[:, None] * e
        if not self.over:
            return np.zeros(s.size), delta
        eps, end = self.over * self.S @ e, self.u_end[:, None]
        pairs = np.broadcast_to(self.over * self.S, (x.size, x.size))
        return eps, delta + end * eps + (1 - end) * driven(x, x, pairs, s)


def correlated_modes(problem: Problem, common: dict[str, Any]) -> Correlated:
    """Return the modes of Adaline with correlated inputs, or fresh examples for ever."""
    data = problem.teacher
    found, (a, b) = nodes(data.inputs, data.alpha), data.moments()
    over, h = 1 / data.alpha, found.h
    return Correlated(
        rho=found.rho,
        h=h,
        g=h,
        sigma=np.full_like(h, (b - a**2) * over),
        theta=found.theta,
        SB=found.SB,
        S=found.S,
        a=a,
        f0=(b - a**2) * (1 - found.rank * over),
        over=over,
        kappa=kappa(data.inputs.law(1.0), data.alpha, float(problem.decays(0.0))),
        **common,
    )


def critical_rate(problem: Problem) -> float:
    """v_c = 2/(1 − λ⟨μ/(μ + κ)⟩)."""
    data = problem.teacher
    law = data.inputs.law(1.0)
    k = kappa(law, data.alpha, problem.decay)
    seen = float(law.w @ (law.mu / (law.mu + k))) if k or problem.decay else 1.0
    return 2 / (1 - problem.decay * seen) if problem.decay * seen < 1 else math.inf
