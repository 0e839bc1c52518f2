"""Modes of correlated inputs: what is learned in H's basis, tested in Σ's.

The training side is that of `modes` with the nodes of `correlated`. A test looks through Σ: with
s = ∫v dt and Ḡ(t,t') = Σρ_Σ e^{−∫x} from t' to t

    ε = (1/α) Σρ_Σ e,    ũ = u + (1/α)∫Ḡ(t,t')u(t')ds',    δ = ũ − 1,    Ẽ the same of E
    R = Σρ_ΣB (a h e + R₀E)
    Q = Σθ(R₀Ẽ − aδ)² + (Q₀ − R₀²)Σθ_w Ẽ² + f₀ε² + Σσρδ² + Σρ_Σ n,    σ = (b − a²)/α

and for t → ∞ ũ = κ/(λ + h), 1 + ε = κ/λ. Whatever rate and decay do, ∫E_j u_k ds = (u_k − u_j)/
(h_j − h_k) for every two modes, and the integral over Ḡ is a sum over modes of these quotients; of
k = j it is w. A start is R₀B and else of even power in all directions, as a test sees them: θ_w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.exact.correlated import kappa, nodes
from manypass.exact.modes import Modes, State
from manypass.problem import Problem

CLOSE = 1e-5  # modes that agree to this, relative to themselves, are as good as one
UNMOVED = 1e-6  # what a mode has moved by the end, if it is as good as at rest


@dataclass(frozen=True, eq=False)
class Correlated(Modes):
    """Modes whose overlaps with test examples are not those with training examples."""

    over: float = 0.0  # 1/α
    kappa: float = 0.0

    @property
    def driven(self) -> Correlated:
        """All modes: a test sees what training examples lack, in the null space of H."""
        return self

    @property
    def tested(self) -> bool:
        """Tests do not see the modes as training examples do."""
        return True

    def resolved(self, s: float) -> Correlated:
        """Modes that are slower than anyone waits for are one."""
        slow = (self.h > 0) & (self.h < UNMOVED / max(s, 1e-300))
        if slow.sum() < 2:
            return self
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        parts: dict[str, Any] = {n: a for n, a in kept.items() if isinstance(a, np.ndarray)}
        weight = self.rho[slow] / self.rho[slow].sum()
        for name, part in parts.items():
            one = weight @ part[slow] if name in ("h", "g", "sigma") else part[slow].sum()
            parts[name] = np.insert(part[~slow], np.flatnonzero(slow)[0], one)
        return replace(self, **parts)

    def mean_Q(self, s: State) -> Array:
        """Q without sequence noise."""
        return np.asarray(sum(w @ part**2 for w, part in self._seen(s)))

    def mean_C(self, s: State) -> Array:
        """Mean part of C(t,s) at all pairs of times."""
        return np.asarray(sum(part.T @ (w[:, None] * part) for w, part in self._seen(s)))

    def Eg(self, s: State, task: str) -> Array:
        """Of regression as a sum of positive terms: ũ − R₀Ẽ for R₀Ẽ − δ in Q."""
        if task == "classification":
            return super().Eg(s, task)
        known = sum(w @ part**2 for w, part in self._seen(s, left=True))
        return np.asarray((known + self.S @ s.n) / 2)

    def _seen(self, s: State, *, left: bool = False) -> list[tuple[Array, Array]]:
        """Weights and values of which mean Q is the sum of squares; what is `left` to learn."""
        if np.isinf(s.s).all():
            eps, delta, E = self._forever()
        else:
            eps, delta, E = self._test(s)
        own = self.a * (1 + delta) - self.R0 * E if left else self.R0 * E - self.a * delta
        noise = np.where(self.h > 0, self.rho * self.sigma, 0.0)
        out = [(self.theta, own), (noise, delta), (np.array([self.f0]), eps[None])]
        return [*out, (self.even * self._unknown, E)] if self._unknown else out

    def _forever(self) -> tuple[Array, Array, Array]:
        """ε, δ and Ẽ for t → ∞."""
        x = self.decay + self.h
        lost = self.over if self.decay == 0 else 1 - self.decay / self.kappa  # ⟨μ/(μ+κ)⟩/α
        delta = np.where(self.h > 0, self.kappa / np.where(x > 0, x, 1) - 1, 0.0)
        eps = np.array([lost / (1 - lost) if lost < 1 else 0.0])
        return eps, delta[:, None], np.zeros((x.size, 1))

    def _test(self, s: State) -> tuple[Array, Array, Array]:
        """ε, δ and Ẽ, modes × times."""
        done = self.h[:, None] * s.e
        if not self.over:
            return np.zeros(s.e.shape[1]), -done, s.E
        # Early u is nearly 1: then 1 − u keeps its digits, and later u does
        early = done.max(axis=0) < 0.5
        moved = self._quotients(np.where(early, -done, s.u), s.w)
        E = s.E + self._quotients(s.E, s.s[0] * s.E) if self.R0 or self._unknown else 0 * s.E
        return self.over * self.S @ s.e, np.where(early, -done, s.u - 1) + moved, E

    def _quotients(self, u: Array, w: Array) -> Array:
        """(1/α) Σ_j ρ_Σj (u_k − u_j)/(h_j − h_k), w for j = k."""
        gap = self.h - self.h[:, None]
        close = np.abs(gap) <= CLOSE * np.maximum(self.h, self.h[:, None])
        pairs = np.where(close, 0.0, self.over * self.S / np.where(close, 1.0, gap))
        same = np.where(close, self.over * self.S / 2, 0.0)
        moved = pairs.sum(axis=1)[:, None] * u - pairs @ u
        return np.asarray(moved + same @ w + same.sum(axis=1)[:, None] * w)


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
        even=found.even,
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
