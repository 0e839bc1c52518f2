"""Averages of forces over Gaussian fields: what drives one-pass learning, and any cavity field.

Fields h (K) and y (M) are jointly Gaussian, ⟨hhᵀ⟩ = Q, ⟨hyᵀ⟩ = R, ⟨yyᵀ⟩ = T. Wanted are ⟨F yᵀ⟩,
⟨F hᵀ⟩, ⟨F Fᵀ⟩, ⟨(ỹ − σ)g(h)⟩ and the error. For erf (Saad and Solla, Phys. Rev. E 52, 4225, 1995)
and linear units they are closed; otherwise they are averages over quasi-random points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.layers.activation import ERF, LINEAR, values
from manypass.layers.errors import compiled, normal_points, squared
from manypass.layers.net import Net

POINTS = 1 << 13
TINY = 1e-12
CLOSED, SAMPLED = 1e-9, 1e-5  # accuracy of integrating what is closed, and at most what is not


class Averages(NamedTuple):
    """Averages at one R, Q and a."""

    FY: Array  # ⟨F yᵀ⟩, K × M
    FH: Array  # ⟨F hᵀ⟩, K × K
    FF: Array  # ⟨F Fᵀ⟩
    second: Array  # ⟨(ỹ − σ) g(h)⟩, K
    error: float  # of the training set, if it were this

    def slope(self, net: Net, R: Array, Q: Array) -> Array:
        """⟨∂F/∂h⟩ by Gaussian integration by parts: no slope of F is needed."""
        along = R @ net.onto
        left = Q - along @ R.T
        rest = self.FH - self.FY @ along.T
        return np.asarray(np.linalg.lstsq(left.T, rest.T, rcond=1e-9)[0].T)


def closed(net: Net) -> bool:
    """Whether the averages have a closed form."""
    return not net.classify and net.kind == net.taught and net.kind in (ERF, LINEAR)


class Fields:
    """Averages for a net, in closed form or over points of its own."""

    def __init__(self, net: Net, points: int = POINTS, seed: int = 0) -> None:
        self.net, self.closed = net, closed(net)
        # A sampled average of kinks has kinks itself: a closer look at them would see nothing else.
        self.accuracy = CLOSED if self.closed else min(SAMPLED, 0.1 / points)
        if self.closed:
            return
        K, M = net.units
        n = normal_points(K + M, points, seed)
        self.y = n[:, :M] @ np.linalg.cholesky(net.T).T
        self.n = np.ascontiguousarray(n[:, M:])
        self.target = expected(net, values(self.y, net.taught) @ net.b)

    def at(self, R: Array, Q: Array, a: Array) -> Averages:
        """Return the averages."""
        net = self.net
        if not self.closed:
            along = R @ net.onto
            w, u = np.linalg.eigh(Q - along @ R.T)
            root = u * np.sqrt(np.maximum(w, 0.0))
            FY, FN, FF, second, error = sampled(
                along, root, a, self.y, self.n, *self.target, net.kind, net.classify
            )
            return Averages(FY, FY @ along.T + FN @ root.T, FF, second, error)
        C, w = np.block([[Q, R], [R.T, net.T]]), np.concatenate([-a, net.b])
        if net.kind == LINEAR:
            error = w @ C  # ⟨(ỹ − σ) field⟩
            K = len(a)
            square = w @ error + net.noise**2
            F, FF = np.outer(a, error), np.outer(a, a) * square
            return Averages(F[:, K:], F[:, :K], FF, error[:K], square / 2)
        F, FF, second = error_functions(C, w, a, net.noise)
        error = float(squared(net, R, Q, a)) + net.noise**2 / 2
        return Averages(F[:, len(a) :], F[:, : len(a)], FF, second, error)


def expected(net: Net, output: Array) -> tuple[Array, Array]:
    """Mean and mean square of the target over its noise, given the teacher's output."""
    if not net.classify:
        return output, output**2 + net.noise**2
    signs = erf(output / (math.sqrt(2) * net.noise)) if net.noise else np.sign(output)
    return signs, np.ones_like(signs)


@njit(**FAST)
def sampled(along, root, a, y, n, target, square, kind, classify):  # type: ignore[no-untyped-def]
    """⟨F yᵀ⟩, ⟨F nᵀ⟩, ⟨F Fᵀ⟩, ⟨(ỹ − σ)g⟩ and the error over points h = along y + root n."""
    size, M = y.shape
    K = len(a)
    FY, FN, FF, second, error = (
        np.zeros((K, M)),
        np.zeros((K, K)),
        np.zeros((K, K)),
        np.zeros(K),
        0.0,
    )
    g, pull = np.empty(K), np.empty(K)
    for s in range(size):
        sigma = 0.0
        for k in range(K):
            h = 0.0
            for m in range(M):
                h += along[k, m] * y[s, m]
            for j in range(K):
                h += root[k, j] * n[s, j]
            g[k], rise = compiled(h, kind)
            sigma += a[k] * g[k]
            pull[k] = a[k] * rise
        left = target[s] - sigma
        whole = square[s] - 2 * target[s] * sigma + sigma * sigma
        error += 0.5 * (1 - target[s] * np.sign(sigma)) if classify else 0.5 * whole
        for k in range(K):
            F = left * pull[k]
            second[k] += left * g[k]
            for m in range(M):
                FY[k, m] += F * y[s, m]
            for j in range(K):
                FN[k, j] += F * n[s, j]
                FF[k, j] += whole * pull[k] * pull[j]
    return FY / size, FN / size, FF / size, second / size, error / size


@njit(**FAST)
def error_functions(C, w, a, noise):  # type: ignore[no-untyped-def]
    """⟨F_i field_j⟩, ⟨F_i F_j⟩ and ⟨(ỹ − σ)g_i⟩ of erf units; ỹ − σ = Σ_k w_k g(field_k) + εz."""
    K, S = a.size, w.size
    F, FF, second = np.zeros((K, S)), np.zeros((K, K)), np.zeros(K)
    for i in range(K):
        di = 1 + C[i, i]
        for k in range(S):
            dk = 1 + C[k, k]
            area = math.sqrt(max(di * dk - C[i, k] ** 2, TINY))
            sine = max(min(C[i, k] / math.sqrt(di * dk), 1.0), -1.0)
            second[i] += w[k] * 2 / math.pi * math.asin(sine)
            for j in range(S):
                top = C[j, k] * di - C[i, j] * C[i, k]
                F[i, j] += a[i] * w[k] * 2 / math.pi * top / (di * area)
        for j in range(K):
            dj = 1 + C[j, j]
            base = max(di * dj - C[i, j] ** 2, TINY)
            total = noise * noise * 2 / math.pi / math.sqrt(base)
            for k in range(S):
                for q in range(S):
                    low = volume(C, i, j, k, q, C[k, q], base)
                    one = volume(C, i, j, k, k, 1 + C[k, k], base)
                    two = volume(C, i, j, q, q, 1 + C[q, q], base)
                    sine = max(min(low / math.sqrt(max(one * two, TINY**2)), 1.0), -1.0)
                    total += w[k] * w[q] * 4 / math.pi**2 / math.sqrt(base) * math.asin(sine)
            FF[i, j] = a[i] * a[j] * total
    return F, FF, second


@njit(**FAST)
def volume(C, i, j, k, q, between, base):  # type: ignore[no-untyped-def]
    """Λ of Saad and Solla's I₄: base·C_kq less what i and j know of both."""
    return (
        base * between
        - C[j, k] * C[j, q] * (1 + C[i, i])
        - C[i, k] * C[i, q] * (1 + C[j, j])
        + C[i, j] * (C[i, k] * C[j, q] + C[i, q] * C[j, k])
    )
