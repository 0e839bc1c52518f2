"""The spectrum of H for correlated inputs, and what teacher and tests have of it, as nodes.

The resolvent of H at z is that of Σ at κ(z) (deformed Marchenko–Pastur law). Put κ = −(s + iτ):
the support of H is the curve ⟨μ²/D⟩ = α, D = (μ − s)² + τ², ⟨·⟩ over w. On it, with K² = s² + τ²,

    h = (K²/α)⟨μ/D⟩,    dh/ds = 2(τ²p + q²/p),    p = ⟨μ²/D²⟩/α,    q = ⟨μ²(μ − s)/D²⟩/α

and the densities, each of total weight 1 with the null space of H,

    ρ = ατ/πK²  (tr/N),    ρ_Σ = ατ/πh  (tr Σ/N),    θ = (τ/π)ΣP/D  (h B..B),
    ρ_ΣB = (τ/πh)ΣPμ/D  (B Σ..B),    and θ with P = w, of a vector of even power.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # its rooms open on first use

from manypass.checks import Array
from manypass.inputs import Inputs, Law
from manypass.spectrum import Spectrum, gauss_legendre, lanczos

PANEL = 16  # nodes
TAIL = 1e-7  # last coefficients of a density on a panel, relative to the largest
RANGE = 6.0  # of h on a panel: relative accuracy however slow a mode is
NARROWEST = 1e-7  # panel, in units of an angle: slower modes never move
FEW = 12  # nodes that are left of such a range
STILL = 1e-15  # of the largest eigenvalue: as good as zero


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes h and the weights of the five densities; a first node at 0 is the null space."""

    h: Array
    rho: Array
    S: Array
    theta: Array
    SB: Array
    even: Array  # θ of P = w
    edge: float
    top: float  # upper edge
    rank: float

    @property
    def spectrum(self) -> Spectrum:
        """The nodes of ρ alone."""
        return Spectrum(self.h, self.rho, self.edge, self.rank, float(self.rho @ self.h))


@lru_cache(64)
def nodes(inputs: Inputs, alpha: float) -> Nodes:
    """Return the nodes of a law of inputs."""
    if math.isinf(alpha):  # fresh examples: H is Σ
        mu, w, P = compressed(np.array(inputs.law(1.0)))
        return Nodes(mu, w, w * mu, P, P, w, float(mu[0]), float(mu[-1]), 1.0)
    law = inputs.law(alpha)
    every = bands(law, alpha)
    found = [band(law, alpha, low, high) for low, high in every]
    table = np.concatenate(found, axis=1)
    table = table[:, np.argsort(table[0])]
    h, rho, S, _, SB, _ = table
    moves, rank = h > STILL * h.max(), min(1.0, alpha)
    null = np.array([0.0, 1 - rank, 0.0, 0.0, 0.0, 0.0])
    if alpha < 1:
        k = root(lambda k: float(law.w @ (law.mu / (law.mu + k))) - alpha)
        null[[2, 4]] = alpha * k, k * float((law.P / (law.mu + k)).sum())
    # What is too slow to be resolved, at α = 1, rests as well
    lost = np.array([1 - null[i] - part[moves].sum() for i, part in ((1, rho), (2, S), (4, SB))])
    null[[1, 2, 4]] += np.where(lost > 1e-12, lost, 0.0)
    table = compressed(table[:, moves])
    edge, top = (
        s**2 / alpha * float(law.w @ (law.mu / (law.mu - s) ** 2))
        for s in (every[0][0], every[-1][1])
    )
    if null.any():
        table = np.column_stack([null, table])
    h, rho, S, theta, SB, even = table
    return Nodes(h, rho, S, theta, SB, even, edge if alpha != 1 else 0.0, top, rank)


def compressed(table: Array) -> Array:
    """Return fewer nodes: in every cell of log h those of Gauss for the first measure.

    The other measures are projected on them: sums of each are exact for polynomials of degree
    FEW − 1 in a cell, of the first, which stays positive, of degree 2 FEW − 1.
    """
    h = table[0]
    cell = np.floor(np.log(h / h[0]) / math.log(RANGE)).astype(int)
    parts = [table[:, cell == i] for i in np.unique(cell)]
    return np.concatenate([gauss(p) if p.shape[1] > FEW else p for p in parts], axis=1)


def gauss(table: Array) -> Array:
    """Return the Gauss nodes of one cell, by Lanczos' method."""
    h, first = table[:2]
    middle, half = (h[0] + h[-1]) / 2, (h[-1] - h[0]) / 2
    nodes, U, V = lanczos((h - middle) / half, first, FEW)
    take = U[0][:, None] * (U.T @ (V / V[0]))  # Lagrange's, of the new nodes, at the old ones
    return np.vstack([middle + half * nodes, table[1:] @ take.T])


def bands(law: Law, alpha: float) -> list[tuple[float, float]]:
    """Intervals of s on which ⟨μ²/(μ − s)²⟩ > α."""
    mu, q = law.mu, law.w * law.mu**2

    def excess(s: float) -> float:
        return float((q / (mu - s) ** 2).sum()) - alpha

    def slope(s: float) -> float:
        return float((q / (mu - s) ** 3).sum())

    def crossing(near: float, far: float) -> float:
        """Return the root between an atom, where it is infinite, and where it is negative."""
        inside = near + (far - near) * 1e-14
        if not excess(inside) > 0 > excess(far):  # but for rounding
            raise ValueError(
                f"`inputs` have eigenvalues from {mu[0]:.3g} to {mu[-1]:.3g}, too far apart to be "
                f"told apart: leave the smallest out, or make them larger"
            )
        return float(scipy.optimize.brentq(excess, inside, far, xtol=1e-300, rtol=1e-14))

    reach = 1.01 * math.sqrt(float(q.sum()) / alpha)
    edges = [crossing(mu[0], mu[0] - reach)]
    gap = np.diff(mu)
    least = (np.cbrt(q[:-1]) + np.cbrt(q[1:])) ** 3 / np.maximum(gap, 1e-150) ** 2
    for i in np.flatnonzero(least < alpha):
        low, high = mu[i], mu[i + 1]
        inner = 1e-12 * gap[i]
        lowest = scipy.optimize.brentq(slope, low + inner, high - inner, xtol=1e-300, rtol=1e-14)
        if excess(lowest) < -1e-9 * alpha:
            edges += [crossing(low, lowest), crossing(high, lowest)]
    edges.append(crossing(mu[-1], mu[-1] + reach))
    return list(zip(edges[::2], edges[1::2], strict=True))


def band(law: Law, alpha: float, low: float, high: float) -> Array:
    """Nodes of one band and the weights of the densities: h, ρ, ρ_Σ, θ, ρ_ΣB, θ of P = w."""
    u, gauss = gauss_legendre(PANEL)
    back = np.linalg.inv(np.polynomial.legendre.legvander(u, PANEL - 1))
    panels = np.array([[0.0, math.pi / 2], [math.pi / 2, math.pi]])
    kept = []
    while len(panels):
        width = panels[:, 1:] - panels[:, :1]
        phi = panels[:, :1] + width * (1 + u) / 2
        found = densities(law, alpha, low, high, phi.ravel()).reshape(6, *phi.shape)
        size = np.abs(found[1:] @ back.T)
        # Close to an edge a density is known up to rounding errors of s − low only
        known = np.maximum(TAIL, 1e-13 / np.sin(phi[:, 0] / 2) ** 2)
        rough = (size[..., -2:].max(-1) > known * size.max(-1)).any(0)
        rough |= found[0].max(1) > RANGE * found[0].min(1)
        rough &= width[:, 0] > NARROWEST
        weights = np.concatenate([np.ones_like(phi)[None], np.tile(gauss * width / 2, (5, 1, 1))])
        kept.append((found * weights)[:, ~rough].reshape(6, -1))
        a, b = panels[rough].T
        panels = np.concatenate([np.stack([a, (a + b) / 2], 1), np.stack([(a + b) / 2, b], 1)])
    return np.concatenate(kept, axis=1)


def densities(law: Law, alpha: float, low: float, high: float, phi: Array) -> Array:
    """h(φ) and the densities in φ, s = low + (high − low) sin²(φ/2): its edges are smooth in it."""
    mu, w, P = law
    s, q = low + (high - low) * np.sin(phi / 2) ** 2, w * mu**2
    distance = (mu - s[:, None]) ** 2
    y = np.zeros(s.size)
    if mu.size > 64:  # a look from afar, with one atom for every eight
        parts = np.arange(0, mu.size, 8)
        few = np.add.reduceat(w, parts)
        middles = np.add.reduceat(w * mu, parts) / few
        y = squared_width(few * middles**2, (middles - s[:, None]) ** 2, alpha, y)
    y = squared_width(q, distance, alpha, y)
    near = 1 / (distance + y[:, None])
    tau, square = np.sqrt(y), s**2 + y
    h = square / alpha * (near @ (w * mu))
    p = (near * near) @ q / alpha
    slope = (near * near * (mu - s[:, None])) @ q / alpha
    turn = (high - low) * np.sin(phi) / 2  # ds/dφ
    common = tau / math.pi * 2 * (y * p + slope**2 / p) * turn
    return np.stack(
        [
            h,
            alpha / square * common,
            alpha / h * common,
            (near @ P) * common,
            (near @ (P * mu)) / h * common,
            (near @ w) * common,
        ]
    )


def density(inputs: Inputs, alpha: float, points: int = 121) -> tuple[Array, Array]:
    """ρ(h) = ατ/πK², to be drawn: rising h in every band, 0 at its edges."""
    law, found = inputs.law(alpha), []
    for low, high in bands(law, alpha):
        s = low + (high - low) * np.sin(np.linspace(0, math.pi / 2, points)[1:-1]) ** 2
        distance = (law.mu - s[:, None]) ** 2
        y = squared_width(law.w * law.mu**2, distance, alpha, np.zeros(s.size))
        square = s**2 + y
        h = square / alpha * ((law.w * law.mu) / (distance + y[:, None])).sum(axis=1)
        found.append(np.array([h, alpha * np.sqrt(y) / (math.pi * square)]))
        found[-1] = np.pad(found[-1], ((0, 0), (1, 1)), "edge")
        found[-1][1, [0, -1]] = 0.0
    h, rho = np.concatenate(found, axis=1)
    return h, rho


def squared_width(q: Array, distance: Array, alpha: float, y: Array) -> Array:
    """Return τ² of Σ q/(distance + τ²) = α, by Newton's method.

    It is taken for 1/Σ, concave and rising in τ²: from wherever it starts it comes from below.
    """
    y = np.maximum(y, (q / alpha - distance).max(axis=1))
    for _ in range(100):
        near = 1 / (distance + y[:, None])
        F = near @ q
        np.square(near, out=near)
        size = F / (near @ q)
        step = size * (F / alpha - 1)
        y = np.maximum(y + step, 0.0)
        # The next one would be 1e-24, or is a rounding error of F/α already
        if (np.abs(step) <= 1e-12 * y + 4e-15 * size).all():
            break
    return y


def kappa(law: Law, alpha: float, decay: float) -> float:
    """κ of λ = κ(1 − ⟨μ/(μ + κ)⟩/α), the decay as the weights feel it."""
    if math.isinf(alpha) or (decay == 0 and alpha >= 1):
        return decay
    return root(lambda k: decay / k - 1 + float(law.w @ (law.mu / (law.mu + k))) / alpha)


def root(falling: Callable[[float], float]) -> float:
    """Return the root k > 0 of a falling function."""
    found = scipy.optimize.brentq(lambda x: falling(math.exp(x)), -300, 60, xtol=1e-15, rtol=1e-15)
    return math.exp(found)
