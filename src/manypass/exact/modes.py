"""Linear rules as independent modes: the weights in the eigenbasis of H (Sec. III of the paper).

In the direction of an eigenvalue h the weights relax at rate x to where the examples pull them,
e(t) = (1 − e^{−xt})/x, and fluctuate about this mean with variance n(t):

    R(t)   = Σ ρ r e(t)
    C(t,s) = Σ ρ q e(t) e(s) + Σ ρ e^{−x|t−s|} n(min(t,s)),    dn/dt = −2xn + k F2 + 2T
    F2(t)  = f₀ + Σ ρ f u(t)² + Σ ρ h n(t),                    u(t) = 1 − v h e(t)

Adaline is this sum over the spectrum; Hebbian is one mode. f₀ is the error that no weights can
remove and u the part of a learnable direction that is still to be learned, so that F2 is a sum of
positive terms and keeps its relative accuracy however small it gets.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from manypass.checks import Array
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian
from manypass.spectrum import Spectrum, marchenko_pastur


@dataclass(frozen=True, eq=False)
class Modes:
    """The coefficients of the three sums above, one entry per mode, symbols as there."""

    rho: Array
    x: Array
    h: Array
    r: Array
    q: Array
    k: Array
    f: Array
    f0: float
    u_end: Array  # u(∞)
    heat: float  # 2T

    @property
    def driven(self) -> Modes:
        """The modes that anything moves: without heat the null space of H stays at rest."""
        still = (self.r == 0) & (self.k == 0) & (self.heat == 0)
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        return Modes(**{n: a[~still] if isinstance(a, np.ndarray) else a for n, a in kept.items()})

    def R(self, t: Array) -> Array:
        """R(t)."""
        return (self.rho * self.r) @ learned(self.x, t)

    def mean_C(self, t: Array, s: Array) -> Array:
        """Mean part of C(t,s) on the grid t × s."""
        return learned(self.x, t).T @ ((self.rho * self.q)[:, None] * learned(self.x, s))

    def mean_Q(self, t: Array) -> Array:
        """Mean part of Q(t) = C(t,t)."""
        return (self.rho * self.q) @ learned(self.x, t) ** 2

    def mean_F2(self, t: Array) -> Array:
        """f₀ + Σ ρ f u(t)², the force fluctuation without sequence noise."""
        return self.f0 + (self.rho * self.f) @ self.unlearned(t) ** 2

    def unlearned(self, t: Array) -> Array:
        """u(t) = u(∞) + (1 − u(∞)) e^{−xt}, free of the cancellation in 1 − v h e(t)."""
        return self.u_end[:, None] + (1 - self.u_end)[:, None] * np.exp(-np.outer(self.x, t))


def learned(x: Array, t: Array) -> Array:
    """e(t) = (1 − e^{−xt})/x, which is t at x = 0; modes × times."""
    xt = np.outer(x, t)
    return np.where(xt > 0, -np.expm1(-xt) / np.where(xt > 0, xt, 1), 1.0) * t


def linear_modes(problem: Problem, spectrum: Spectrum | None = None) -> Modes:
    """Modes of an Adaline or Hebbian problem; `spectrum` replaces Marchenko–Pastur."""
    data, v, decay, online = problem.teacher, problem.rate, problem.decay, problem.mode == "online"
    heat = 2 * problem.temperature
    if isinstance(problem.rule, Hebbian):
        one, (a, b) = np.ones(1), data.moments()
        return Modes(
            rho=one,
            x=one * v * decay,
            h=0 * one,
            r=one * a * v,
            q=one * v**2 * (a**2 + b / data.alpha),
            k=one * v**2 * online,
            f=0 * one,
            f0=b,
            u_end=one,
            heat=heat,
        )
    if not isinstance(problem.rule, Adaline):
        raise ValueError(f"`rule` {problem.rule!r} is not linear: no closed solution is known")
    law = spectrum or marchenko_pastur(data.alpha)
    if law.rank > data.alpha * (1 + 1e-9):
        raise ValueError(
            f"`eigenvalues`: {law.rank:.6g} of them are positive, but `alpha` = {data.alpha:g} "
            f"examples per weight span no more than that share"
        )
    h, (a, b) = law.h, data.moments(law.mean)
    spread = b - a**2 * law.mean  # the part of the targets that the teacher does not explain
    w_over_h = np.where(h > 0, a**2 * h + spread / data.alpha, 0.0)
    return Modes(
        rho=law.rho,
        x=v * (decay + h),
        h=h,
        r=a * v * h,
        q=v**2 * w_over_h * h,
        k=v**2 * h * online,
        f=w_over_h,
        f0=spread * (1 - law.rank / data.alpha),
        u_end=np.where(h > 0, decay / np.where(h > 0, decay + h, 1), 1.0),
        heat=heat,
    )
