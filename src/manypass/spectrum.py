"""Eigenvalue densities of H = (1/p) Σ ξξᵀ as quadrature nodes: ∫ρ(h) f(h) dh = Σ_k ρ_k f(h_k)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from manypass import checks
from manypass.checks import Array


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Nodes h ≥ 0 with weights ρ that sum to 1; what is known exactly is kept exactly.

    Attributes
    ----------
    h, rho : array
        Nodes, rising, and their weights. A first node at h = 0 is the null space of H.
    edge : float
        Lowest relaxing eigenvalue: the lower edge of the density above h = 0.
    rank : float
        Weight of h > 0, the share of directions that the examples span.
    mean : float
        ∫ρ h.
    """

    h: Array
    rho: Array
    edge: float
    rank: float
    mean: float

    def __post_init__(self) -> None:
        self.h.setflags(write=False)  # spectra are shared
        self.rho.setflags(write=False)


def marchenko_pastur(alpha: float) -> Spectrum:
    """ρ(h) = (α/2π) √((h₊−h)(h−h₋)) / h + (1−α)Θ(1−α) δ(h), h± = (1 ± 1/√α)².

    With h = h₋ + 2r sin²(φ/2), r = 2/√α, the square-root edges become smooth. What is left are
    poles near φ = 0, at h = 0 and h = −λ, which crowd the real axis as α → 1; φ/2 = δ sinh y
    with δ² = h₋/2r holds them at |Im y| = π/2, so that Gauss–Legendre nodes in y converge
    geometrically for every α, and their number grows only as log(1/δ).

    Examples
    --------
    >>> import manypass as mp
    >>> law = mp.spectrum.marchenko_pastur(0.5)
    >>> float(law.h[0]), float(law.rho[0])  # the null space
    (0.0, 0.5)
    >>> round(float(law.rho @ law.h**2), 12)  # 1 + 1/α
    3.0
    """
    return _marchenko_pastur(checks.number("alpha", alpha, 1e-6, 1e6))


@lru_cache(maxsize=256)
def _marchenko_pastur(alpha: float) -> Spectrum:
    edge, _ = edges(alpha)
    r = 2 / math.sqrt(alpha)
    delta = math.sqrt(edge / (2 * r)) or 1e-8  # α = 1: resolves times up to 1e15
    top = math.asinh(math.pi / 2 / delta)
    u, weight = gauss_legendre(16 * math.ceil((24 + 7 * top) / 16))
    y = top * (1 + u) / 2
    half = delta * np.sinh(y)
    h = edge + 2 * r * np.sin(half) ** 2
    rho = alpha * (r * np.sin(2 * half)) ** 2 / (2 * np.pi * h) * weight * top * delta * np.cosh(y)
    rank = min(1.0, alpha)
    if alpha < 1:
        h, rho = np.append(0.0, h), np.append(1 - alpha, rho)
    return Spectrum(h=h, rho=rho, edge=edge, rank=rank, mean=1.0)


def edges(alpha: float) -> tuple[float, float]:
    """h± = (1 ± 1/√α)², where the Marchenko–Pastur density begins and ends."""
    alpha = checks.number("alpha", alpha, 1e-6, 1e6)
    root = math.sqrt(alpha)
    # h₋ without cancellation
    return ((alpha - 1) / (root * (root + 1))) ** 2, (1 + 1 / root) ** 2


def density(alpha: float, h: Array) -> Array:
    """ρ(h) = (α/2π) √((h₊−h)(h−h₋)) / h: the continuous part, of weight min(1, α).

    Examples
    --------
    >>> import numpy as np
    >>> import manypass as mp
    >>> h = np.linspace(*mp.spectrum.edges(4.0), 20_001)
    >>> round(float(mp.spectrum.density(4.0, h).sum() * (h[1] - h[0])), 4)
    1.0
    """
    low, high = edges(alpha)
    h = checks.reals("h", h)
    if not np.isfinite(h).all():
        raise ValueError(f"`h` must be finite numbers, got {checks.shown(h)}")
    h = np.clip(h, low, high)  # beyond the edges it is nought
    inside = np.maximum((high - h) * (h - low), 0.0)
    return np.asarray(float(alpha) / (2 * np.pi) * np.sqrt(inside) / np.where(inside > 0, h, 1.0))


def empirical(eigenvalues: Any) -> Spectrum:
    """Return the spectrum of one given H: each eigenvalue is a node of weight 1/N.

    Eigenvalues below 1e-12 of the largest are rounding errors of zero and join the null space;
    equal ones share a node. The theory still assumes Gaussian inputs: on real data, where some
    examples are longer than others, it is an approximation and its critical rate too high.

    Examples
    --------
    >>> import manypass as mp
    >>> mp.spectrum.empirical([0.0, 1.0, 1.0, 2.0]).rho
    array([0.25, 0.5 , 0.25])
    """
    values = checks.reals("eigenvalues", eigenvalues)
    if values.ndim != 1 or values.size == 0:
        odd = checks.shown(eigenvalues)
        raise ValueError(f"`eigenvalues` must be a 1-D array of numbers, got {odd}")
    top = values.max(initial=0.0, where=~np.isnan(values))
    bad = values[~((values >= -1e-9 * top) & (values <= 1e9))]
    if bad.size or not top >= 1e-9:
        wrong = bad[0] if bad.size else top
        raise ValueError(
            f"`eigenvalues` must lie from 0 to 1e9, the largest above 1e-9, got {wrong:g}"
        )
    h, counts = np.unique(np.where(values < 1e-12 * top, 0.0, values), return_counts=True)
    rho = counts / values.size
    positive = h > 0
    return Spectrum(
        h=h,
        rho=rho,
        edge=float(h[positive][0]),
        rank=float(rho[positive].sum()),
        mean=float(rho @ h),
    )


def lanczos(x: Array, weight: Array, count: int) -> tuple[Array, Array, Array]:
    """Nodes of Gauss's rule for a sum of atoms, and orthonormal polynomials, a row each.

    The latter at the nodes, times the roots of their shares of all weight; and at the atoms, alike.
    """
    a, b = np.zeros(count), np.zeros(count)
    basis = [np.sqrt(weight / weight.sum())]
    for i in range(count):
        z = x * basis[i]
        a[i] = basis[i] @ z
        known = np.array(basis)
        for _ in range(2):  # orthogonal to all digits
            z = z - known.T @ (known @ z)
        b[i] = math.sqrt(float(z @ z))
        basis.append(z / max(b[i], 1e-300))
    nodes, turn = np.linalg.eigh(np.diag(a) + np.diag(b[:-1], 1) + np.diag(b[:-1], -1))
    return nodes, turn, np.array(basis[:count])


@lru_cache(maxsize=32)
def gauss_legendre(n: int) -> tuple[Array, Array]:
    """Nodes and weights on (−1, 1), computed once."""
    u, weight = np.polynomial.legendre.leggauss(checks.count("n", n, 1, 100_000))
    return u, weight
