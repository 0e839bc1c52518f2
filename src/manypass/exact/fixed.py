"""Adaline with the same order in every epoch, exactly, by generating functions in the epoch.

Write A(φ; z) = Σ_k z^k A(φ + kα) for what happens at phase φ of every epoch. A random order that
is repeated looks the same from every phase, so that the response depends on the lag alone, and an
example that is learned at φ, φ + α, … is driven by D(z) = 1/(1 + vg(z)), g = Σ_{k≥1} z^k G(kα):

    D = (1 − E)/(1 − E + vE),  E = z e^{−xα},  x = v(λ + D),  G(τ; z) = (1 + g) e^{−xτ}
    dr/dφ = −xr + vλa/(1−z),   r = a/(1−z) − R,   R(0; z) = z R(α; z)
    c(φ; z,z′) = e^{−(x+x′)φ} c₀ + (1 + g + g′) M,   c₀ = zz′ c(α),   of c = C − RR′ at φ, φ
    dM/dφ = −(x + x′)M + v²S + 2T/(1−zz′),   S = DD′[(b−a²)/((1−z)(1−z′)) + rr′ + c] = ⟨FF′⟩

(a prime: with z′). An example that is learned at ψ has at φ the force f = φ − vG(φ−ψ; z)F(ψ; z)
before the noise, and its variance follows M from (1−v)² DD′c(ψ) on. The coefficients of z^k z′^j
are sums over circles |z| = |z′| = r. In steps of Δ = βα exponentials are powers, 1 − xΔ to the
number of steps. Learning is stable while v(2λ + (2−v)|D|²) > 0 on the circle |z| = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.problem import Problem

DIGITS = 10.0  # of what is folded over by the finite number of points on the circle


class Fixed:
    """Kernels at pairs (z, z′) of two given sets of points that broadcast against each other.

    `pole` and `pole2` stand for 1/(1−z) and 1/(1−z′), `heat` for 2T/(1−zz′): at the steady state,
    which is their residue, they are numbers.
    """

    def __init__(
        self, problem: Problem, step: float, z: Any, z2: Any, *, pole: Any, pole2: Any, heat: Any
    ) -> None:
        self.problem, self.step, self.alpha = problem, step, problem.teacher.alpha
        a, b = problem.teacher.moments()
        v = self.v = problem.rate
        self.spread = b - a**2
        self.one, self.two = (Phase(problem, step, s, p) for s, p in ((z, pole), (z2, pole2)))
        one, two = self.one, self.two
        both = one.D * two.D
        self.X = one.x + two.x - one.x * two.x * step
        self.spare = 1 + one.keep * one.g + two.keep * two.g
        self.Lambda = self.X - v**2 * both * self.spare
        self.both, self.zz = v**2 * both, one.z * two.z
        self.still = self.both * (self.spread * pole * pole2 + one.rest * two.rest) + heat
        self.sources = [
            (0.0 * self.X, self.still),
            (one.x + 0 * self.X, self.both * one.left * two.rest),
            (two.x + 0 * self.X, self.both * two.left * one.rest),
        ]
        gaps = [self.Lambda - rate for rate, _ in self.sources] + [self.Lambda - self.X]
        # Rates that are apart are so for every phase: each exponential is then needed but once.
        self.apart = all(np.abs(gap).min() * self.alpha > 1e-3 for gap in gaps)
        if self.apart:
            push = [*(s for _, s in self.sources), self.both * one.left * two.left]
            self.parts = [s / gap for s, gap in zip(push, gaps, strict=True)]
        # c₀ = zz′c(α), and c(α) = e^{−Λα}c₀ + what M brings
        self.last = self.zz * self.power(self.Lambda, self.alpha)
        self.c0: Any = 0.0
        self.log_last = log(self.zz) + log_power(self.Lambda, self.alpha, step)
        unit = -np.expm1(self.log_last)  # 1 − last
        self.c0 = self.zz * self.spare * self.M(self.alpha) / unit
        self.M_end = self.M(self.alpha)
        # Noise, and what an example hears of it through itself
        self.K = 1 + sum((1 - s.D) * (s.keep / v - 1) for s in (one, two))

    def power(self, rate: Any, phase: Any) -> Any:
        """e^{−rate φ}, or its steps."""
        return power(rate, phase, self.step)

    def relaxed(self, phase: Any) -> Any:
        """e^{−(x+x′)φ}."""
        return self.one.power(phase) * self.two.power(phase)

    def M(self, phase: float) -> Any:
        """M(φ) = ∫₀^φ e^{−Λ(φ−u)} [v²DD′(… + e^{−(x+x′)u} c₀) + 2T/(1−zz′)] du."""
        one, two = self.one, self.two
        if not self.apart:
            left = self.both * (one.left * two.left + self.c0)
            pairs = [*self.sources, (self.X, left)]
            return sum(s * between(self.Lambda, rate, phase, self.step) for rate, s in pairs)
        still, first, second, both = self.parts
        both = both + self.both * self.c0 / (self.Lambda - self.X)
        x, x2 = one.power(phase), two.power(phase)
        own = self.power(self.Lambda, phase)
        return (
            still
            + first * x
            + second * x2
            + both * (x * x2)
            - (still + first + second + both) * own
        )

    def c(self, phase: float) -> Any:
        """c(φ; z, z′)."""
        return self.relaxed(phase) * self.c0 + self.spare * self.M(phase)

    def learned(self, phase: float) -> Any:
        """q(ψ): variance after its turn of an example's force, less what M had brought by then."""
        M, one, two = self.M(phase), self.one, self.two
        c = self.relaxed(phase) * self.c0 + self.spare * M
        turn = (one.keep - self.v) * (two.keep - self.v) * one.D * two.D
        return turn * c - self.K * one.keep * two.keep * M

    def variance(self, phase: float, M: Any, psi: Array, q: Any, done: bool) -> Any:
        """Variance at φ of the forces of examples learned at ψ, this epoch's turn `done` or not."""
        since = (phase - psi - self.step)[:, None, None]
        if done:
            return self.relaxed(since) * q + self.K * M
        again = self.zz * self.relaxed(self.alpha + since)
        return again * q + self.K * (M + self.zz * self.relaxed(phase) * self.M_end)


class Phase:
    """D, x, g and r for points z; `pole` stands for 1/(1−z)."""

    def __init__(self, problem: Problem, step: float, z: Any, pole: Any) -> None:
        a, _ = problem.teacher.moments()
        v, decay, alpha = problem.rate, problem.decay, problem.teacher.alpha
        self.z, self.v, self.step, self.alpha, self.pole = z, v, step, alpha, pole
        self.D = D = force_response(problem, step, z)
        self.x = v * (decay + D)
        self.g = (1 / D - 1) / v
        self.keep = 1 - self.x * step  # of one step
        again = 1 + self.keep * self.g  # 1/(1 − E)
        self.again = again
        share = decay / (decay + D) if decay else 0.0 * D
        self.rest = a * pole * share
        # r(0) = (a + z rest(1 − e^{−xα}))/(1 − E); and `left` is r(0) − rest
        first = (a * pole * (1 - z) + z * self.rest * (1 - self.power(alpha))) * again
        self.left = first - self.rest

    def power(self, phase: Any) -> Any:
        """e^{−xφ}."""
        return power(self.x, phase, self.step)

    def r(self, phase: Any) -> Any:
        """r(φ; z)."""
        return self.rest + self.power(phase) * self.left

    def response(self, phase: float, psi: Array, done: bool) -> Any:
        """G from pushes at ψ to φ, of this epoch (`done`) or of the one before."""
        since = (phase - psi - self.step)[:, None, None]
        if done:
            return self.again * self.power(since)
        return self.again * self.z * self.power(self.alpha + since)


def power(rate: Any, time: Any, step: float) -> Any:
    """e^{−rate t}, or (1 − rate Δ)^{t/Δ}."""
    return (1 - rate * step) ** np.rint(time / step) if step else np.exp(-rate * time)


def log(z: Any) -> Any:
    """Return log z, −∞ at 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(z, complex))


def log_power(rate: Any, time: float, step: float) -> Any:
    """Return the logarithm of `power`."""
    return round(time / step) * np.log1p(-rate * step + 0j) if step else -rate * time


def between(first: Any, second: Any, time: float, step: float) -> Any:
    """∫₀ᵗ e^{−first(t−u)} e^{−second u} du, whatever their difference; or its sum in steps."""
    gap = first - second
    if step:
        n, p, q = round(time / step), 1 - first * step, 1 - second * step
        far = np.abs(gap) * step > 1e-3 * (np.abs(p) + np.abs(q))
        out = (q**n - p**n) / np.where(far, gap, 1.0)
        if not np.all(far):
            near = sum(p ** (n - 1 - k) * q**k for k in range(n)) * step
            out = np.where(far, out, near)
        return out
    small = np.abs(gap * time) < 1e-4
    y = np.where(small, 1.0, gap * time)
    factor = np.where(small, 1 - gap * time / 2 + (gap * time) ** 2 / 6, -np.expm1(-y) / y)
    return time * np.exp(-second * time) * factor


def force_response(problem: Problem, step: float, z: Any) -> Any:
    """D(z), the branch with D(0) = 1, by Newton's method from there."""
    v, decay, alpha = problem.rate, problem.decay, problem.teacher.alpha
    z = np.asarray(z)
    D = np.ones(z.shape, complex)
    m = round(alpha / step) if step else 0
    for part in np.linspace(0, 1, 25)[1:]:
        y = part * z
        for _ in range(25):
            keep = 1 - v * (decay + D) * step
            if step:
                e = y * keep ** (m - 1)
                slope, de = -v * alpha * e, -v * step * (m - 1) * y * keep ** max(m - 2, 0)
            else:
                e = y * np.exp(-v * alpha * (decay + D))
                slope = de = -v * alpha * e
            # 1 − E, exact where E is nearly 1
            unit = -np.expm1(log(y) + log_power(v * (decay + D), alpha, step))
            move = (D * (unit + v * e) - unit) / (unit + v * e + slope + D * (v * de - slope))
            D = D - move
            if np.max(np.abs(move / D)) < 4e-15:
                break
    return D


def nearest_branch(problem: Problem, step: float, below: float) -> float:
    """|z| of the nearest branch point of D(z), where two solutions meet: dz/dD = 0; else `below`.

    z as a function of D is explicit: z = (1−D)/(1+(v−1)D) e^{vα(λ+D)}. Of its extrema only those
    count that D reaches from D(0) = 1 along a ray.
    """
    v, decay, alpha = problem.rate, problem.decay, problem.teacher.alpha
    D, one = np.polynomial.Polynomial([0.0, 1.0]), np.polynomial.Polynomial([1.0])
    keep = one - v * step * (decay + D)
    lost, fed = one - D, keep * (one - D) + v * D  # z = lost keep / fed / e^{−xα}
    if step:
        rest = (alpha / step - 1) * v * step * lost * fed - keep * fed
        extrema = (rest - lost * keep * fed.deriv()).roots()
    else:
        extrema = (alpha * lost * fed - one).roots()
    nearest = below
    for end in extrema.astype(complex):
        decays = power(v * (decay + end), alpha, step)
        bottom = fed(end) * decays
        z = lost(end) * keep(end) / bottom if bottom else np.inf
        if not 1e-30 < abs(z) < nearest:
            continue
        # There D − D_b grows as the root of the distance: one per cent of it, for 1e-4.
        near = force_response(problem, step, z * (1 - np.array([4e-4, 1e-4, 2.5e-5])))
        gaps = np.abs(near - end)
        if np.all((gaps[1:] < 0.6 * gaps[:-1]) & (gaps[1:] > 0.4 * gaps[:-1])):
            nearest = abs(z)
    return float(nearest)
