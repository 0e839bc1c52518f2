"""The hot loops of networks with two layers."""

from __future__ import annotations

import numpy as np

from manypass.compiling import FAST, njit
from manypass.layers.errors import compiled
from manypass.simulation.kernels import moved, shaken


@njit(**FAST)
def pulls(x, a, target, kind, g, F):  # type: ignore[no-untyped-def]
    """Fill in g(x_k) and F_k = (ỹ − σ) a_k g′(x_k); returns ỹ − σ."""
    left = target
    for k in range(x.size):
        g[k], F[k] = compiled(x[k], kind)
        left -= a[k] * g[k]
    for k in range(x.size):
        F[k] *= left * a[k]
    return left


@njit(**FAST)
def learn(J, a, X, targets, sequence, rates, keeps, second, kind, limit, noise, offsets):  # type: ignore[no-untyped-def]
    """J_k ← keep J_k + rate F_k ξ + noise, a ← a + second (ỹ − σ) g; returns whether it is finite.

    As in `kernels.learn` each pass over the weights finishes one step and begins the next.
    """
    K, n = J.shape
    scale, zero = 1.0, J[0, 0] * 0
    dots, x, g, F = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    for k in range(K):
        dot, w, xi = zero, J[k], X[sequence[0]]
        for j in range(n):
            dot += w[j] * xi[j]
        dots[k] = dot
    for s in range(sequence.size):
        here, then = X[sequence[s]], X[sequence[min(s + 1, sequence.size - 1)]]
        for k in range(K):
            x[k] = scale * dots[k]
            if not abs(x[k]) < limit:
                return False
        left = pulls(x, a, targets[sequence[s]], kind, g, F)
        if not abs(left) < limit:
            return False
        now = min(s, rates.size - 1)
        scale *= keeps[now]
        for k in range(K):
            a[k] += second * left * g[k]
            step = zero + rates[now] * F[k] / scale
            if noise.size:
                kick = zero + 1 / scale
                dots[k] = shaken(J[k], step, here, then, offsets[s, k], kick, noise)
            else:
                dots[k] = moved(J[k], step, here, then)
        if scale < 1e-9:
            J *= zero + scale
            dots *= scale
            scale = 1.0
    J *= zero + scale
    return True


@njit(**FAST)
def descend(J, V, a, speed, X, targets, sequence, ends, paces, second, kind, limit, kicks):  # type: ignore[no-untyped-def]
    """Learn batch by batch, all forces at the same weights; as `kernels.descend`."""
    momentum, rates, keeps, drags = paces
    (K, n), zero = J.shape, J[0, 0] * 0
    x, g, F = np.zeros(K), np.zeros(K), np.zeros(K)
    for b in range(ends.size - 1):
        V *= momentum
        speed *= momentum
        for s in range(ends[b], ends[b + 1]):
            xi = X[sequence[s]]
            for k in range(K):
                dot, w = zero, J[k]
                for j in range(n):
                    dot += w[j] * xi[j]
                x[k] = dot
                if not abs(dot) < limit:
                    return False
            left = pulls(x, a, targets[sequence[s]], kind, g, F)
            if not abs(left) < limit:
                return False
            for k in range(K):
                pull, to = zero + F[k], V[k]
                speed[k] += left * g[k]
                for j in range(n):
                    to[j] += pull * xi[j]
        rate, keep, drag = rates[b], keeps[b], drags[b]
        for k in range(K):
            w, to = J[k], V[k]
            for j in range(n):
                to[j] -= drag * w[j]
                w[j] = keep * w[j] + rate * to[j]
            a[k] += second * speed[k]
        if kicks.size:
            J += kicks[b]
    return True


@njit(**FAST)
def measure(x, targets, a, kind, classify):  # type: ignore[no-untyped-def]
    """⟨|F|²⟩ and E_t over the training set, for activations x (examples × times × K)."""
    p, count, K = x.shape
    F2, Et = np.zeros(count), np.zeros(count)
    g, F, now = np.zeros(K), np.zeros(K), np.zeros(K)
    for i in range(p):
        for t in range(count):
            for k in range(K):
                now[k] = x[i, t, k]
            left = pulls(now, a[t], targets[i], kind, g, F)
            for k in range(K):
                F2[t] += F[k] ** 2
            if classify:
                Et[t] += 0.5 * (1 - np.sign((targets[i] - left) * targets[i]))
            else:
                Et[t] += 0.5 * left**2
    return F2 / p, Et / p
