"""⟨g(u) g(v)⟩ over Gaussian fields, and what it makes of R, Q and a: the generalization error."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.layers.activation import ERF, LINEAR, RELU, activate, values
from manypass.layers.net import Net

NODES = 48  # of Gauss–Hermite, for smooth activations
PANELS = 24  # of Gauss–Legendre on each side of a kink
POINTS = 1 << 17  # of a quasi-random average over signs
compiled = njit(**FAST)(activate)


def pair(u: Array, v: Array, c: Array, kinds: tuple[int, int]) -> Array:
    """⟨g(x) g′(y)⟩ for variances u, v and covariance c; arcsin, arc-cosine or quadrature."""
    u, v, c = np.broadcast_arrays(u, v, c)
    if kinds == (ERF, ERF):
        return np.asarray(2 / math.pi * np.arcsin(c / np.sqrt((1 + u) * (1 + v))))
    if kinds == (LINEAR, LINEAR):
        return np.array(c)
    if kinds == (RELU, RELU):
        size = np.sqrt(u) * np.sqrt(v)  # of networks about to diverge u v is beyond the floats
        cosine = np.clip(c / np.maximum(size, 1e-300), -1, 1)
        bent = np.sqrt(1 - cosine**2) + (math.pi - np.arccos(cosine)) * cosine
        return np.asarray(size / (2 * math.pi) * bent)
    # x = √u s; y given x is Gaussian around c/u x. A kink in x or y is where a panel ends.
    s, w = gaussian(kinds[0])
    n, q = gaussian(kinds[1])
    root = np.sqrt(np.maximum(u, 0.0))[..., None]
    x = root * s
    around = c[..., None] / np.maximum(root, 1e-150) * s
    left = np.sqrt(np.maximum(v[..., None] - (c[..., None] / np.maximum(root, 1e-150)) ** 2, 0))
    if kinds[1] == RELU:
        inner = rectified(around, left)
    else:
        inner = values(around[..., None] + left[..., None] * n, kinds[1]) @ q
    return np.asarray((values(x, kinds[0]) * inner) @ w)


def rectified(m: Array, s: Array) -> Array:
    """⟨max(m + s n, 0)⟩ over a normal n."""
    from scipy.special import ndtr

    z = m / np.maximum(s, 1e-150)
    bell = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / math.sqrt(2 * math.pi)
    return np.asarray(m * ndtr(z) + s * bell)


@lru_cache(maxsize=8)
def gaussian(kind: int) -> tuple[Array, Array]:
    """Nodes and weights of a Gaussian average, for activations with a kink at 0 by halves."""
    if kind == RELU:
        x, w = np.polynomial.legendre.leggauss(PANELS)
        x, w = 4.5 * (x + 1), 4.5 * w * np.exp(-0.5 * (4.5 * (x + 1)) ** 2)
        x, w = np.concatenate([-x, x]), np.concatenate([w, w])
    else:
        x, w = np.polynomial.hermite_e.hermegauss(NODES)
    return x, w / w.sum()


def generalization(
    net: Net, R: Array, Q: Array, a: Array, points: int = POINTS, seed: int = 0
) -> Array:
    """½⟨(teacher − σ)²⟩, or how often their signs differ, on fresh noiseless examples.

    R is (... × K × M), Q (... × K × K), a (... × K); what is not finite gives inf, a guess ½.
    """
    fine = np.isfinite(R).all((-1, -2)) & np.isfinite(Q).all((-1, -2)) & np.isfinite(a).all(-1)
    R, Q, a = R[fine], Q[fine], a[fine]
    out = np.full(fine.shape, 0.5 if net.classify else np.inf)
    signs = (points, seed)
    out[fine] = disagreement(net, R, Q, a, *signs) if net.classify else squared(net, R, Q, a)
    return out


def squared(net: Net, R: Array, Q: Array, a: Array) -> Array:
    """½⟨(Σ b g(y) − Σ a g(x))²⟩."""
    q, t = np.diagonal(Q, axis1=-2, axis2=-1)[..., :, None], np.diag(net.T)
    own = pair(q, np.swapaxes(q, -1, -2), Q, (net.kind, net.kind))
    shared = pair(t, q, R, (net.taught, net.kind))
    taught = net.b @ pair(t[:, None], t, net.T, (net.taught, net.taught)) @ net.b
    found = np.einsum("...k,...kl,...l", a, own, a)
    found -= 2 * np.einsum("...k,...km,m", a, shared, net.b)
    return np.asarray(np.maximum(0.5 * (found + taught), 0.0))


def disagreement(net: Net, R: Array, Q: Array, a: Array, points: int, seed: int) -> Array:
    """How often σ and the teacher's output differ in sign; ties count half.

    Over quasi-random points, in closed form for one unit of an odd activation on each side.
    """
    K, M = net.units
    if K == M == 1 and RELU not in (net.kind, net.taught):
        size = np.sqrt(np.maximum(Q[..., 0, 0] * net.T[0, 0], 1e-300))
        flipped = np.sign(a[..., 0] * net.b[0])
        angle = np.arccos(np.clip(flipped * R[..., 0, 0] / size, -1, 1)) / math.pi
        return np.asarray(np.where((Q[..., 0, 0] > 0) & (flipped != 0), angle, 0.5))
    n = normal_points(K + M, points, seed)
    y = n[:, :M] @ np.linalg.cholesky(net.T).T
    signs = np.sign(values(y, net.taught) @ net.b)
    onto = R @ net.onto
    w, u = np.linalg.eigh(Q - onto @ np.swapaxes(R, -1, -2))
    root = u * np.sqrt(np.maximum(w, 0.0))[..., None, :]
    return np.asarray(differing(onto, root, a, y, np.ascontiguousarray(n[:, M:]), signs, net.kind))


@lru_cache(maxsize=32)
def normal_points(dims: int, count: int, seed: int) -> Array:
    """Quasi-random normal numbers, of mean 0 and covariance 1 exactly; a power of two of them."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    bits = max(math.ceil(math.log2(count)), 1)
    u = qmc.Sobol(dims, rng=np.random.default_rng([seed, dims])).random_base2(bits)
    n = ndtri(np.clip(u, 1e-12, 1 - 1e-12))
    n -= n.mean(axis=0)
    return np.asarray(np.linalg.solve(np.linalg.cholesky(n.T @ n / len(n)), n.T).T)


@njit(**FAST)
def differing(onto, root, a, y, n, signs, kind):  # type: ignore[no-untyped-def]
    """Share of points whose σ has not the sign of the teacher, for each set of R, Q, a."""
    out = np.zeros(len(a))
    for i in range(len(a)):
        for s in range(len(signs)):
            sigma = 0.0
            for k in range(a.shape[1]):
                x = 0.0
                for m in range(y.shape[1]):
                    x += onto[i, k, m] * y[s, m]
                for j in range(n.shape[1]):
                    x += root[i, k, j] * n[s, j]
                sigma += a[i, k] * compiled(x, kind)[0]
            out[i] += 0.5 * (1.0 - np.sign(sigma) * signs[s])
        out[i] /= len(signs)
    return out
