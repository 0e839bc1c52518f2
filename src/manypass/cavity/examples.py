"""Draws of the effective single example: x(t) = h(t) + v Σ_{t_r < t} G(t,t_r) F(x(t_r), ỹ).

The learning instants t_r form a Poisson process of rate 1/α; h is Gaussian with mean R(t)y and
covariance C(t,s) − R(t)R(s). All loops here run over sampled examples; `first[k]` and
`first[k+1]` bound the instants of example k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manypass.cavity.tables import look_up_1, look_up_2
from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.problem import Teacher


class Draws(NamedTuple):
    """Teacher activations, targets and learning instants of sampled examples."""

    y: Array
    target: Array
    first: NDArray[np.int64]
    instants: Array

    @classmethod
    def make(
        cls, data: Teacher, start: float, time: float, count: int, rng: np.random.Generator
    ) -> Draws:
        """Draw y and ỹ, and the instants between start and time."""
        y = rng.standard_normal(count)
        target = y + data.noise * rng.standard_normal(count)
        if data.task == "classification":
            target = np.sign(target)
        often = rng.poisson((time - start) / data.alpha, count)
        first, who = np.concatenate([[0], np.cumsum(often)]), np.repeat(np.arange(count), often)
        share = np.sort(who + rng.random(who.size)) - who  # of each in order
        return cls(y, target, first, start + (time - start) * share)


@njit(**FAST)
def _history(start, step, time, oldest, instants):  # type: ignore[no-untyped-def]
    """Positions in the grid of the instants since `oldest`, and of the present as the last."""
    begin = np.searchsorted(instants, oldest)
    p = np.empty(instants.size - begin + 1)
    p[:-1] = (instants[begin:] - start) / step
    p[-1] = (time - start) / step
    return p


@njit(**FAST)
def gaussian(tables, line, draws):  # type: ignore[no-untyped-def]
    """Mean and variance of x(time) for Adaline, given y, ỹ and the instants since `oldest`.

    Invert x = h + vG(ỹ − x): the last row a of (1 + vG)⁻¹ is all it takes (Eq. x-m-v). `line` is v,
    time and oldest.
    """
    (start, step, R, C, G), (v, time, oldest), (y, target, first, instants) = tables, line, draws
    count = y.size
    means, variances = np.empty(count), np.empty(count)
    for k in range(count):
        p = _history(start, step, time, oldest, instants[first[k] : first[k + 1]])
        m = p.size
        r, a, x = np.empty(m), np.zeros(m), np.empty(m)
        g = np.empty((m, m))
        for i in range(m):
            r[i] = look_up_1(R, p[i])
            x[i] = r[i] * y[k]
            for j in range(i):
                g[i, j] = v * look_up_2(G, p[j], p[i] - p[j])
                x[i] += g[i, j] * (target[k] - x[j])
        a[m - 1] = 1.0
        for j in range(m - 2, -1, -1):
            for i in range(j + 1, m):
                a[j] -= a[i] * g[i, j]
        variance = 0.0
        for i in range(m):
            for j in range(i):
                variance += 2 * a[i] * a[j] * (look_up_2(C, p[j], p[i] - p[j]) - r[i] * r[j])
            variance += a[i] ** 2 * (look_up_2(C, p[i], 0.0) - r[i] ** 2)
        means[k], variances[k] = x[m - 1], max(variance, 0.0)
    return means, variances


@njit(**FAST)
def pulled(tables, line, draws, normals):  # type: ignore[no-untyped-def]
    """Return what `general` does for F = ỹ: no past x matters, only the present h is drawn.

    Learning pulls by vỹ Σ G(t, t_r), whatever x was.
    """
    (start, step, R, C, G), (v, time, oldest), (y, target, first, instants) = tables, line, draws
    xs, hs = np.empty(y.size), np.empty(y.size)
    for k in range(y.size):
        p = _history(start, step, time, oldest, instants[first[k] : first[k + 1]])
        r, boost = look_up_1(R, p[-1]), 0.0
        spread = np.sqrt(max(look_up_2(C, p[-1], 0.0) - r**2, 0.0))
        for j in range(p.size - 1):
            boost += v * look_up_2(G, p[j], p[-1] - p[j])
        hs[k] = r * y[k] + spread * normals[first[k] + k]
        xs[k] = hs[k] + boost * target[k]
    return xs, hs


@njit(**FAST)
def general(tables, line, draws, normals, force, parameters):  # type: ignore[no-untyped-def]
    """Return x(time) and h(time) for any force; `normals` as many as examples plus instants.

    Cholesky rows backwards from the present, so that older instants never change newer h.
    """
    (start, step, R, C, G), (v, time, oldest), (y, target, first, instants) = tables, line, draws
    count = y.size
    xs, hs = np.empty(count), np.empty(count)
    for k in range(count):
        mine = instants[first[k] : first[k + 1]]
        p = _history(start, step, time, oldest, mine)
        m = p.size
        z = normals[first[k] + k : first[k + 1] + k + 1]
        r, h, F, L = np.empty(m), np.empty(m), np.empty(m), np.zeros((m, m))
        for i in range(m - 1, -1, -1):
            r[i] = look_up_1(R, p[i])
            h[i] = r[i] * y[k]
            left = look_up_2(C, p[i], 0.0) - r[i] ** 2
            whole = max(left, 0.0)
            for j in range(m - 1, i, -1):
                c = look_up_2(C, p[i], p[j] - p[i]) - r[i] * r[j]
                for q in range(m - 1, j, -1):
                    c -= L[i, q] * L[j, q]
                if L[j, j] > 0:
                    bound = np.sqrt(max(left, 0.0))
                    L[i, j] = min(max(c / L[j, j], -bound), bound)
                    left -= L[i, j] ** 2
                h[i] += L[i, j] * z[m - 1 - j]
            # What is below the accuracy of the tables is no noise of its own.
            L[i, i] = np.sqrt(left) if left > 1e-6 * whole else 0.0
            h[i] += L[i, i] * z[m - 1 - i]
        for i in range(m):
            x = h[i]
            for j in range(i):
                x += v * look_up_2(G, p[j], p[i] - p[j]) * F[j]
            F[i] = force(x, target[k], *parameters)
            xs[k] = x
        hs[k] = h[m - 1]
    return xs, hs
