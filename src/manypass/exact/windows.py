"""Weights averaged over a window of the steady state that begins with an epoch.

    R̄ = (1/τ)∫R,    C̄ = (1/τ²)∬C(t,s) dt ds

Reshuffled: within an epoch, between two whole ones, and with the last, which may be a part. Fixed
order: C depends on the lag alone, and C̄ = (2/τ²)∫(τ − lag)C. Of batches, the weights after each.
"""

from __future__ import annotations

import numpy as np

from manypass import orders
from manypass.checks import Array
from manypass.exact.lines import Cells, Line
from manypass.exact.recollection import Recollection
from manypass.exact.repeated import Look
from manypass.exact.reshuffled import Course, Reshuffled
from manypass.exact.steady import pairs
from manypass.problem import Problem
from manypass.spectrum import gauss_legendre

FORGOTTEN = 1e-10  # of noise, once it is left out


def reshuffled(epochs: Reshuffled, course: Course, window: float) -> tuple[float, float]:
    """R̄ and C̄ of reshuffled epochs."""
    line, found = epochs.line, Recollection(epochs, [course])
    if isinstance(line, Cells):
        window = line.step * orders.steps_by(epochs.problem, np.array([window]))[0]
    whole, within = int(window / line.alpha + 1e-9), found.within[0]
    parts = [(whole, *part(line, line.alpha))] if whole else []
    left = window - whole * line.alpha
    if left > 1e-9 * window:
        parts.append((1, *part(line, left)))
    q, m, G, pi = found.per_epoch, found.m[0], epochs.G, found.pi[0]
    R = sum(count * weight @ course.R for count, weight, _ in parts)
    C = sum(count * np.sum(double * within) for count, _, double in parts)
    if whole:
        w = parts[0][1]
        C += whole * (whole - 1) * found.w @ (m @ w) ** 2
        C += 2 * found.rho @ ((G @ w) * (pi @ w) * pairs(q, whole))
        for _, tail, _ in parts[1:]:
            C += 2 * whole * found.w @ ((m @ w) * (m @ tail))
            moves = q < 1
            sums = np.where(moves, (1 - q**whole) / np.where(moves, 1 - q, 1.0), whole)
            C += 2 * found.rho @ ((G @ tail) * (pi @ w) * sums)
    return float(R / window), float(C / window**2)


def part(line: Line, until: float) -> tuple[Array, Array]:
    """Weights of ∫₀ᵘ, and of twice ∫₀ᵘdt∫₀ᵗds, on the points of a line and on their pairs."""
    if isinstance(line, Cells):
        weight = np.zeros(line.n + 1)
        weight[1 : round(until / line.step) + 1] = line.step
        both = np.outer(weight, weight)
        return weight, 2 * np.tril(both, -1) + np.diag(np.diag(both))
    u, gauss = gauss_legendre(line.n + 8)
    times, weights = until * (1 + u) / 2, until * gauss / 2
    at = line.at(times)
    inner = np.array([t / 2 * gauss @ line.at(t * (1 + u) / 2) for t in times])
    return weights @ at, 2 * np.einsum("q,qi,qj->ij", weights, at, inner)


def fixed(problem: Problem, look: Look, window: float, kept: int) -> float:
    """C̄ of a fixed order, with noise of so many passes ago; R does not move."""
    line, R2 = look.line, float(look.overlap(0.0)[0]) ** 2
    if isinstance(line, Cells):
        window = line.step * orders.steps_by(problem, np.array([window]))[0]
    whole = int(window / line.alpha + 1e-9)
    total = 0.0
    rest = window - whole * line.alpha
    for until, first, count in ((line.alpha, 0, whole), (rest, whole, int(rest > 1e-9 * window))):
        if not count:
            continue
        if line.step:
            lags = line.s[: round(until / line.step)]
            weights = np.full(lags.size, line.step)
        else:
            u, gauss = gauss_legendre(line.n + 8)
            lags, weights = until * (1 + u) / 2, until * gauss / 2
        for lag, weight in zip(lags.tolist(), weights.tolist(), strict=True):
            left = window - lag - first * line.alpha
            even = count * left - line.alpha * count * (count - 1) / 2  # Σ (left − pα)
            cycle, noise = lagged(look, lag)
            total += 2 * weight * even * (R2 + cycle)
            if noise.size and first < kept:
                sums = _turning(look, first, min(count, kept - first), left)
                total += 2 * weight * float((noise @ sums).real)
    if line.step:  # a step has no pair with itself
        cycle, noise = lagged(look, 0.0)
        total -= line.step * window * (R2 + cycle + float(noise.sum().real))
    return total / window**2


def lagged(look: Look, lag: float) -> tuple[float, Array]:
    """C − R² at a lag: of the cycle, and its Fourier parts by passes; see `Repeated.two_time`."""
    kernels, one, two = look.kernels, look.kernels.one, look.kernels.two
    pushed = two.z * two.again * two.power(look.line.alpha - lag) * kernels.M(lag)
    c = np.ravel(one.power(lag) * kernels.c0 + pushed)
    return float(c[0].real), c[1:] / max(c.size - 1, 1)


def forgotten(look: Look, passes: int) -> bool:
    """Whether noise of so many passes ago no longer matters."""
    noise, angle = lagged(look, 0.0)[1], np.ravel(look.kernels.one.z)[1:]
    return bool(abs(noise @ angle**-passes) <= FORGOTTEN * abs(noise.sum()))


def _turning(look: Look, first: int, count: int, left: float) -> Array:
    """Σ_{p<count} (left − pα) z^{−first−p} for all points z of the circle, none of which is 1."""
    q = 1 / np.ravel(look.kernels.one.z)[1:]
    end, gap = q**count, 1 - q
    later = (q * (1 - end) / gap - count * end) / gap  # Σ p q^p
    return np.asarray(q**first * (left * (1 - end) / gap - look.line.alpha * later))
