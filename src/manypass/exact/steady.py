"""The steady state of linear rules, its averaging window, and where it ends: v_c and λ_σ."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its rooms open on first use: most answers need none of them

from manypass import orders
from manypass.checks import Array
from manypass.exact.modes import Modes
from manypass.exact.volterra import mean_F2_exponentials
from manypass.inputs import UNCORRELATED, Inputs
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian
from manypass.spectrum import Spectrum, edges, marchenko_pastur


def stationary(modes: Modes, feedback: float, window: float = 0.0) -> dict[str, float]:
    """R, Q = C̄(τ) and F2 for t → ∞, weights averaged over a window τ; paper's Eqs. (F-2), C̄(τ).

    e → 1/x;  F2 = mean F2(∞) + Σ ρ h n,  n = (kF2 + 2T)/2x;
    C̄ = Σ ρ q/x² + Σ ρ n · 2(e^{−xτ} − 1 + xτ)/(xτ)². Solved for F2, with the feedback
    Σ ρhk/2x = v/v_c.
    """
    heard, x = modes.rho * modes.h, modes.x
    still = mean_F2_exponentials(modes, modes.start)[1][0] + heard @ stationary_noise(modes, 0.0)
    F2 = still / (1 - feedback)
    n = stationary_noise(modes, F2)
    Q = modes.mean_Q(modes.end)[0] + modes.S @ (n * window_factor(x * window))
    return {"R": float(modes.R(modes.end)[0]), "Q": float(Q), "F2": float(F2)}


def stationary_noise(modes: Modes, F2: float) -> Array:
    """Variance of each mode, n = (kF2 + 2T)/2x; what is never pushed stays at rest."""
    pushed = modes.k * F2 + modes.heat
    return np.asarray(pushed / np.where(pushed > 0, 2 * modes.x, 1.0))


def window_factor(y: Array) -> Array:
    """2(e^{−y} − 1 + y)/y², the share of a mode's noise that survives a window τ = y/x.

    y may be complex.
    """
    series = sum(2 * (-y) ** j / math.factorial(j + 2) for j in range(9))
    near = np.abs(y) < 0.1
    far = np.where(near, 0.1, y)
    return np.where(near, series, 2 * (np.expm1(-far) + far) / far**2)


def pairs(q: Array, count: int) -> Array:
    """Σ_{g=1}^{count−1} (count − g) q^{g−1}: pairs among so many steps or epochs, decaying."""
    near = np.abs(1 - q) * count < 1e-3
    gap = np.where(near, 1.0, 1 - q)
    closed = (count * gap - 1 + q**count) / gap**2
    # Where q is nearly 1: count(count−1)/2 pairs, of mean distance (count+1)/3
    series = count * (count - 1) / 2 * (1 - ((count + 1) / 3 - 1) * (1 - q))
    return np.where(near, series, closed)


def check_steady(problem: Problem, spectrum: Spectrum | None = None) -> None:
    """Raise a `ValueError` that says why a linear problem has no steady state."""
    hebbian = isinstance(problem.rule, Hebbian)
    if hebbian and problem.decay == 0:
        raise ValueError("no steady state: with `decay` = 0 Hebbian weights grow for ever")
    if ordered(problem) and not hebbian:
        from manypass.exact import settled  # which asks here whether there is a steady state

        stable = settled.log_growth(problem) < 0  # quicker than where it ends
    else:
        stable = problem.rate < critical_rate(problem, spectrum)
    if not stable:
        limit = critical_rate(problem, spectrum)
        raise ValueError(
            f"no steady state: `rate` = {problem.rate:g} is not below "
            f"the critical rate v_c = {limit:.6g}"
        )
    if hebbian:
        return
    law = spectrum or spectrum_of(problem)
    if problem.decay == 0 and problem.temperature > 0 and law.rank < 1:
        raise ValueError(
            f"no steady state: with `decay` = 0 and `alpha` < 1 the `temperature` = "
            f"{problem.temperature:g} heats {1 - law.rank:.3g} of all directions for ever"
        )
    marginal = problem.decay == 0 and law.edge == 0
    if marginal and (problem.temperature > 0 or problem.teacher.b > problem.teacher.a**2):
        raise ValueError(
            "no steady state: at `alpha` = 1 and `decay` = 0 relaxation rates reach zero"
        )


def plain(problem: Problem) -> bool:
    """Whether inputs are uncorrelated and of a finite number."""
    return problem.teacher.isotropic and math.isfinite(problem.teacher.alpha)


def spectrum_of(problem: Problem) -> Spectrum:
    """Return the spectrum of H."""
    data = problem.teacher
    if plain(problem):
        return marchenko_pastur(data.alpha)
    from manypass.exact.correlated import nodes

    return nodes(data.inputs, data.alpha).spectrum


def edges_of(inputs: Inputs, alpha: float) -> tuple[float, float]:
    """Where the density of H begins and ends above h = 0."""
    if inputs == UNCORRELATED:
        return edges(alpha)
    from manypass.exact.correlated import nodes

    found = nodes(inputs, alpha)
    return found.edge, found.top


def ordered(problem: Problem) -> bool:
    """Whether examples come in epochs or by batches, not one by one with replacement."""
    return problem.sequence != "replacement" or problem.batch_share > 0


def critical_rate(problem: Problem, spectrum: Spectrum | None = None) -> float:
    """v_c = 2/∫ρ h²/(h + λ) = 4 / (2 − λ[S − √(S² − 4α)]), S = 1 + α + αλ, for Adaline.

    Above v_c the sequence noise feeds on itself and |J|² diverges. Hebbian and batch learning
    have no such feedback: `orders.overshoot`. For epochs and batches see `exact.settled`,
    `exact.steps`.
    """
    if problem.mode == "batch" or isinstance(problem.rule, Hebbian):
        return orders.overshoot(problem)
    _needs_adaline(problem, "critical rate")
    if ordered(problem):
        from manypass.exact import settled  # which asks here whether there is a steady state

        return settled.critical_rate(problem)
    if not plain(problem):
        from manypass.exact import tested  # most problems need none of it

        return tested.critical_rate(problem)
    decay, alpha = problem.decay, problem.teacher.alpha
    if spectrum is not None:
        return 2 / float(_feedback(spectrum, -decay))
    S = 1 + alpha * (1 + decay)
    # (S − √(S² − 4α))(S + √(S² − 4α)) = 4α, and S² − 4α as a sum of squares: no cancellation
    root = math.sqrt((alpha - 1) ** 2 + alpha * decay * (2 + alpha * (2 + decay)))
    return 4 / (2 - decay * 4 * alpha / (S + root))


def slow_mode(problem: Problem, spectrum: Spectrum | None = None) -> float:
    """λ_σ, the rate of the collective mode of F2: the root of 1 = v² ∫ρ h²/(2x − λ_σ) below 2x_min.

    It is the slowest rate of the sequence noise; the mean part of F2 relaxes from x_min on.

    With λ_σ = 2v(λ + ζ), k = 2/v − 1 and c = 1/α the Marchenko–Pastur law turns it into
    (1 + k)ζ² − (1 + c)kζ + ck² = 0. The mode leaves the band at v = 2√c/(1 − √c + c); below
    that there is none, and the slowest rate of the sequence noise, the band edge 2x_min, is
    returned. At v_c it crosses zero; above, it is negative: the rate of growth. Of reshuffled
    epochs, or batches, it is −log(growth) of the noise in one of them per time.
    """
    v, decay, c = problem.rate, problem.decay, 1 / problem.teacher.alpha
    if isinstance(problem.rule, Hebbian):
        step = problem.batch_share * problem.teacher.alpha
        return -2 * math.log(abs(1 - v * decay * step)) / step if step else 2 * v * decay
    _needs_adaline(problem, "slow mode")
    if ordered(problem):
        from manypass.exact import settled

        return -settled.log_growth(problem) / settled.turn(problem)
    if plain(problem):
        law = spectrum or marchenko_pastur(problem.teacher.alpha)
    else:
        law = spectrum = spectrum_of(problem)
    band = 2 * v * (decay + law.edge)
    if problem.mode == "batch":
        return band
    if spectrum is not None:
        low = law.edge - v * float(law.rho @ law.h**2)  # there ∫ρh²/(h − ζ) < 2/v
        high = law.edge * (1 - 1e-13)
        if _feedback(law, high) * v / 2 <= 1:
            return band
        zero = scipy.optimize.brentq(lambda z: _feedback(law, z) * v / 2 - 1, low, high)
        return 2 * v * (decay + float(zero))
    if v * (1 - math.sqrt(c) + c) <= 2 * math.sqrt(c):
        return band
    k = 2 / v - 1
    zeta = k * v / 4 * (1 + c + math.sqrt(max((1 + c) ** 2 - 8 * c / v, 0.0)))
    return 2 * v * (decay + zeta)


def _feedback(law: Spectrum, zeta: float) -> float:
    """∫ρ h²/(h − ζ), how strongly force fluctuations return to themselves."""
    positive = law.h > 0
    h, rho = law.h[positive], law.rho[positive]
    return float(rho @ (h**2 / (h - zeta)))


def _needs_adaline(problem: Problem, what: str) -> None:
    if not isinstance(problem.rule, Adaline):
        raise ValueError(
            f"the {what} is known for Adaline and Hebbian only, not for `rule` {problem.rule!r}"
        )
