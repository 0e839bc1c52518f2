"""Powers and geometric sums over a whole number of steps, accurate for rates near zero.

With b = 1 − c and a polynomial source, n steps of s' = b s + source are one step:

    s(n) = bⁿ s(0) + Σ_d coefficient_d M_d(n),    M_d(n) = Σ_{j<n} b^{n−1−j} j^d.
"""

from __future__ import annotations

import math

import numpy as np

from manypass.checks import Array

DEGREE = 3  # of the polynomials
TERMS = 18  # of the series, used where n|c| < 1: what is left out is below 1e-16
# j^d = Σ_r STIRLING[d][r] C(j, r)
STIRLING = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 1, 2, 0), (0, 1, 6, 6))


def power(c: Array, n: float | Array) -> Array:
    """(1 − c)ⁿ for a whole number n, without loss where c is small."""
    slow = np.abs(c) < 0.5
    with np.errstate(over="ignore"):  # far above the critical rate it is infinite
        return np.where(slow, np.exp(n * np.log1p(-np.where(slow, c, 0.0))), np.power(1 - c, n))


def choose(n: float, r: int) -> float:
    """C(n, r) as a float."""
    return math.prod((n - i) / (i + 1) for i in range(r))


def binomial_sums(c: Array, n: float, degree: int = DEGREE) -> list[Array]:
    """bⁿ, and Σ_{j<n} b^{n−1−j} C(j, r) for r = 0..degree.

    Summation by parts gives c G_r = C(n, r) − G_{r−1}, with G_{−1} = bⁿ: upwards in r where n|c| is
    large; downwards where it is small, from the series G_r = Σ_i C(n, r+1+i) (−c)^i.
    """
    near = n * np.abs(c) < 1
    if near.all():
        return _from_series(c, n, degree)
    out = [power(c, n)]
    divisor = np.where(near, 1.0, c)
    for r in range(degree + 1):
        out.append((choose(n, r) - out[-1]) / divisor)
    if near.any():
        for G, series in zip(out, _from_series(c[near], n, degree), strict=True):
            G[near] = series
    return out


def _from_series(c: Array, n: float, degree: int) -> list[Array]:
    top, terms = n * (float(np.abs(c).max()) if c.size else 0.0), 1
    while terms < TERMS and top**terms > 1e-17 * math.factorial(terms):
        terms += 1
    G = np.ones_like(c)
    for i in reversed(range(terms)):  # Horner, in ratios of binomials: no overflow
        G = 1 - (n - degree - 1 - i) / (degree + 2 + i) * c * G
    out = [choose(n, degree + 1) * G]
    for r in reversed(range(degree + 1)):
        out.append(choose(n, r) - c * out[-1])
    return out[::-1]


def power_sums(c: Array, n: float, degree: int = DEGREE) -> list[Array]:
    """bⁿ, and M_d(n) = Σ_{j<n} b^{n−1−j} j^d for d = 0..degree."""
    if not degree:  # a shorter way
        return [power(c, n), learned(c, n)]
    whole, *G = binomial_sums(c, n, degree)
    sums = [G[0], *G[1:2]]  # j⁰ and j¹ are binomials themselves
    for d in range(2, degree + 1):
        sums.append(sum(STIRLING[d][r] * G[r] for r in range(1, d + 1)))  # type: ignore[arg-type]
    return [whole, *sums]


def learned(c: Array, n: float | Array) -> Array:
    """Σ_{j<n} b^j = (1 − bⁿ)/c, which is n at c = 0."""
    slow = np.abs(c) < 0.5
    near = -np.expm1(n * np.log1p(-np.where(slow, c, 0.0)))
    lost = np.where(slow, near, 1 - power(c, n))
    return np.where(c == 0, n, lost / np.where(c == 0, 1.0, c))


def kept_by_window(c: Array, n: float) -> Array:
    """(1/n²) Σ_{i,j<n} b^{|i−j|}: the share of a mode's variance that averaging n steps leaves."""
    _, G0, G1 = binomial_sums(c, n, 1)
    return (2 * (G1 + G0) - n) / n**2
