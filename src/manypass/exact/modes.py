"""Linear rules as independent modes: the weights in the eigenbasis of H (Sec. III of the paper).

In the direction of an eigenvalue h the weights relax at rate x = v(λ + h) from where they start to
where the examples pull them, and fluctuate about this mean with variance n(t):

    de/dt = v − x e,    dE/dt = −x E,    u = 1 − h e,    dn/dt = −2x n + v² g F2 + 2T

    R(t)   = Σ ρ m,                                       m = a g e + R₀ E
    C(t,s) = Σ ρ [m m' + (Q₀ − R₀²) E E' + σ g e e'] + Σ ρ e^{−∫x} n(min(t,s))
    F2(t)  = f₀ + Σ ρ [h (a u − R₀ E)² + h (Q₀ − R₀²) E² + σ u²] + Σ ρ h n

with g = h for Adaline, whose sums are over the spectrum; Hebbian is one mode with g = 1, h = 0, or,
if inputs are correlated, one of each eigenvalue g = μ, with P for ρ in m and wμ in the noise. e
is what has been learned, E what is left of the start, f₀ the error that no weights can remove and
u the part of a learnable direction that is still to be learned, so that F2 is a sum of positive
terms and keeps its relative accuracy however small it gets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.inputs import UNCORRELATED, Inputs
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian
from manypass.spectrum import Spectrum, marchenko_pastur


@dataclass(frozen=True, eq=False)
class State:
    """Where the modes are: modes × times, symbols as above."""

    e: Array
    u: Array
    E: Array
    n: Array
    w: Array  # −∂u/∂h, dw/dt = −x w + v u: what tests of correlated inputs need beside u
    s: Array  # learning time ∫v dt and ∫vλ dt, two rows: E = e^{−h∫v − ∫vλ}

    def last(self) -> State:
        """Return the state at the last time, as one column."""
        return State(*(getattr(self, f.name)[:, -1:] for f in fields(self)))


def joined(states: list[State]) -> State:
    """Return states at all times, one after another."""
    parts = ([getattr(state, f.name) for state in states] for f in fields(State))
    return State(*(np.concatenate(part, axis=1) for part in parts))


@dataclass(frozen=True, eq=False)
class Modes:
    """The coefficients of the sums above, one entry per mode, at one rate and decay."""

    rho: Array
    h: Array
    g: Array
    sigma: Array
    theta: Array  # weights of the teacher in F2; ρh if inputs are uncorrelated
    even: Array  # the same of a start of equal power in all directions; ρh
    SB: Array  # of R; ρ
    S: Array  # of noise in Q; ρ
    a: float
    f0: float
    v: float
    decay: float
    online: bool
    heat: float  # 2T
    R0: float = 0.0
    Q0: float = 0.0

    @property
    def x(self) -> Array:
        """Rate of relaxation."""
        return self.v * (self.decay + self.h)

    @property
    def r(self) -> Array:
        """How R is pulled, dR/dt = Σ ρr at the start."""
        return self.a * self.v * self.g

    @property
    def q(self) -> Array:
        """The same for the mean part of Q from J = 0, Σ ρ q (e/v)²."""
        return self.v**2 * self.g * (self.a**2 * self.g + self.sigma)

    @property
    def k(self) -> Array:
        """How a force kicks a mode: v²g, and not at all in batch mode."""
        return self.v**2 * self.g * self.online

    @property
    def f(self) -> Array:
        """Part of u² in F2 from J = 0."""
        return np.where(self.h > 0, self.a**2 * self.h + self.sigma, 0.0)

    @property
    def targets(self) -> Array:
        """Weights of u² in F2 from J = 0, Σ ρ f if inputs are uncorrelated."""
        return self.a**2 * self.theta + np.where(self.h > 0, self.rho * self.sigma, 0.0)

    @property
    def u_end(self) -> Array:
        """u(∞)."""
        h = self.h
        return np.where(h > 0, self.decay / np.where(h > 0, self.decay + h, 1), 1.0)

    @property
    def tested(self) -> bool:
        """Whether tests see the modes as training examples do not."""
        return False

    def resolved(self, s: float) -> Modes:
        """Return the modes as a learning time ∫v dt up to s tells them apart."""
        return self

    @property
    def driven(self) -> Modes:
        """The modes that matter: without heat and start the null space of H stays at rest."""
        still = (self.g == 0) & (self.heat == 0) & (self.Q0 == 0)
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{n: a[~still] for n, a in kept.items() if isinstance(a, np.ndarray)})

    @property
    def start(self) -> State:
        """The state at t = 0."""
        none, all_of = np.zeros((self.h.size, 1)), np.ones((self.h.size, 1))
        return State(none, all_of, all_of, none, none, np.zeros((2, 1)))

    @property
    def end(self) -> State:
        """The state for t → ∞ at this rate, without noise."""
        rates = self.decay + self.h
        none, u = np.zeros((self.h.size, 1)), self.u_end[:, None]
        e = (1 / np.where(rates > 0, rates, np.inf))[:, None]
        return State(e, u, none, none, none, np.full((2, 1), np.inf))

    def at(self, v: float, decay: float) -> Modes:
        """Return the modes at another rate and decay."""
        return replace(self, v=v, decay=decay)

    def R(self, s: State) -> Array:
        """R(t)."""
        return self.SB @ self._mean(s)

    def mean_C(self, s: State) -> Array:
        """Mean part of C(t,s) at all pairs of times."""
        m = self._mean(s)
        known = m.T @ (self.SB[:, None] * m) + s.E.T @ ((self._unknown * self.rho)[:, None] * s.E)
        return np.asarray(known + s.e.T @ (self._loose[:, None] * s.e))

    def Q(self, s: State) -> Array:
        """Q(t) = C(t,t)."""
        return np.asarray(self.mean_Q(s) + self.S @ s.n)

    def Eg(self, s: State, task: str) -> Array:
        """Error on a fresh clean example."""
        return generalization_error(task, self.R(s), self.Q(s))

    def mean_Q(self, s: State) -> Array:
        """Q without sequence noise."""
        known = self.SB @ self._mean(s) ** 2 + self._unknown * self.rho @ s.E**2
        return np.asarray(known + self._loose @ s.e**2)

    def F2(self, s: State) -> Array:
        """F2(t)."""
        return self.mean_F2(s) + (self.rho * self.h) @ s.n

    def mean_F2(self, s: State) -> Array:
        """F2 without sequence noise."""
        left = [weight @ value**2 for weight, value in self.residuals(s)]
        return np.asarray(self.f0 + np.sum(left, axis=0))

    def residuals(self, s: State) -> list[tuple[Array, Array]]:
        """Weights and values of which mean F2 − f₀ is the sum of squares."""
        own = self.a * s.u - self.R0 * s.E
        out = [(self.theta, own), (np.where(self.h > 0, self.rho * self.sigma, 0.0), s.u)]
        return [*out, (self.even * self._unknown, s.E)] if self._unknown else out

    @property
    def _unknown(self) -> float:
        return max(self.Q0 - self.R0**2, 0.0)

    @property
    def _loose(self) -> Array:
        return self.S * self.sigma * self.g

    def _mean(self, s: State) -> Array:
        return self.a * self.g[:, None] * s.e + self.R0 * s.E


def learned(x: Array, t: Array) -> Array:
    """(1 − e^{−xt})/x, which is t at x = 0; modes × times."""
    xt = np.outer(x, t)
    return np.where(xt > 0, -np.expm1(-xt) / np.where(xt > 0, xt, 1), 1.0) * t


def _law(inputs: Inputs) -> tuple[Array, Array, Array]:
    """Eigenvalues of the inputs, their weights and the teacher's power, as few as will do."""
    if inputs == UNCORRELATED:
        return np.ones(1), np.ones(1), np.ones(1)
    from manypass.exact.correlated import nodes

    found = nodes(inputs, math.inf)
    return found.h, found.rho, found.theta


def linear_modes(problem: Problem, spectrum: Spectrum | None = None) -> Modes:
    """Modes of an Adaline or Hebbian problem at t = 0; `spectrum` replaces Marchenko–Pastur."""
    data, start = problem.teacher, problem.start
    common: dict[str, Any] = {
        "v": float(problem.v(0.0)),
        "decay": float(problem.decays(0.0)),
        "online": problem.mode == "online",
        "heat": 2 * problem.temperature,
        "R0": start.R if start else 0.0,
        "Q0": start.Q if start else 0.0,
    }
    if isinstance(problem.rule, Hebbian):
        (mu, w, P), (a, b) = _law(data.inputs), data.moments()
        none, sigma = 0 * mu, np.full_like(mu, b / data.alpha)
        tests: dict[str, Any] = {"theta": none, "even": none, "SB": P, "S": w * mu}
        return Modes(w, none, mu, sigma, **tests, a=a, f0=b, **common)
    if not (data.isotropic and math.isfinite(data.alpha)):
        from manypass.exact.tested import correlated_modes  # most problems need none of it

        return correlated_modes(problem, common)
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
    sigma = np.full_like(h, spread / data.alpha)
    rho, f0 = law.rho, spread * (1 - law.rank / data.alpha)
    tests = {"theta": rho * h, "even": rho * h, "SB": rho, "S": rho}
    return Modes(rho, h, h, sigma, **tests, a=a, f0=f0, **common)
