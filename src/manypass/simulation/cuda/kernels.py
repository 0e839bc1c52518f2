"""The kernels: make training sets, draw sequences, learn, measure. One network is one block.

Rows are padded with zeros to a multiple of four numbers, and tables are flat: those of all networks
one behind the other, or one that all networks share.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float64, from_dtype

from manypass.forces import with_helpers
from manypass.simulation.cuda.lanes import LANES, SIMULATED, load4, warp_sum
from manypass.simulation.cuda.philox import HEAT, below, normals

WARPS = 8 if LANES > 1 else 2  # of the kernels that go over all examples
FINE, DIVERGED, NOT_A_NUMBER = 0, 1, 2


@cuda.jit
def fill(table, root, n, width, rows, seed, first, purpose, start):  # type: ignore[no-untyped-def]
    """ξ_j ~ N(0, μ_j), rows of n numbers for each network, counted from `first`; from `start` on.

    `root` holds √μ; empty it stands for Σ = 1.
    """
    quads, before = rows * width // 4, np.uint64(start) * np.uint64(width // 4)
    for q in range(cuda.grid(1), table.size // 4, cuda.gridsize(1)):
        network, place = np.uint64(first + q // quads), q % quads
        z, column = normals(seed, network, purpose, before + np.uint64(place)), 4 * place % width
        table[4 * q] = z[0] if column < n else 0.0
        table[4 * q + 1] = z[1] if column + 1 < n else 0.0
        table[4 * q + 2] = z[2] if column + 2 < n else 0.0
        table[4 * q + 3] = z[3] if column + 3 < n else 0.0
        if root.size:
            for i in range(4):
                table[4 * q + i] *= root[column + i]


@cuda.jit(device=True)
def product(left, a, right, b, width):  # type: ignore[no-untyped-def]
    """Sum of left[a + i] right[b + i] over i, by one warp."""
    total = np.float32(0)
    for i in range(4 * (cuda.threadIdx.x % LANES), width, 4 * LANES):
        p, q = load4(left, a + i), load4(right, b + i)
        total += p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3]
    return warp_sum(total)


@cuda.jit(device=True)
def metric(left, a, right, b, mu, width):  # type: ignore[no-untyped-def]
    """Sum of left[a + i] μ[i] right[b + i] over i, by one warp; an empty μ stands for 1."""
    if not mu.size:
        return product(left, a, right, b, width)
    total = np.float32(0)
    for i in range(4 * (cuda.threadIdx.x % LANES), width, 4 * LANES):
        p, q, m = load4(left, a + i), load4(right, b + i), load4(mu, i)
        total += p[0] * m[0] * q[0] + p[1] * m[1] * q[1] + p[2] * m[2] * q[2] + p[3] * m[3] * q[3]
    return warp_sum(total)


@cuda.jit
def unit(B, sizes, width):  # type: ignore[no-untyped-def]
    """B ← B/|B|, or ± the given sizes."""
    s = cuda.blockIdx.x
    length = math.sqrt(product(B, s * width, B, s * width, width))
    cuda.syncthreads()
    for j in range(cuda.threadIdx.x, width, cuda.blockDim.x):
        if sizes.size:
            B[s * width + j] = sizes[j] if B[s * width + j] > 0 else -sizes[j]
        else:
            B[s * width + j] /= length


@cuda.jit
def label(X, B, targets, width, noise, classify, seed, first, purpose, start):  # type: ignore[no-untyped-def]
    """ỹ = sgn(y + εz) or y + εz with y = B·ξ, for examples from `start` on."""
    s, warp, p = cuda.blockIdx.x, cuda.threadIdx.x // LANES, targets.shape[1]
    for i in range(warp, p, WARPS):
        y = product(B, s * width, X, (s * p + i) * width, width)
        if cuda.threadIdx.x % LANES == 0:
            if noise > 0:
                y += noise * normals(seed, np.uint64(first + s), purpose, np.uint64(start + i))[0]
            if classify:
                y = 1.0 if y >= 0 else -1.0
            targets[s, i] = y


@cuda.jit
def draw(order, p, seed, first, start):  # type: ignore[no-untyped-def]
    """Draw examples with replacement, for the steps from `start` on."""
    count = order.shape[1]
    for k in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        s, i = k // count, k % count
        order[s, i] = below(p, seed, np.uint64(first + s), np.uint64(start + i))


@cuda.jit
def shuffle(order, seed, first, start):  # type: ignore[no-untyped-def]
    """Order all examples at random (Fisher and Yates), for the pass that begins at a step."""
    s, p = cuda.grid(1), order.shape[1]
    if s < order.shape[0]:
        for i in range(p):
            order[s, i] = i
        for i in range(p - 1, 0, -1):
            j = below(i + 1, seed, np.uint64(first + s), np.uint64(start + i))
            order[s, i], order[s, j] = order[s, j], order[s, i]


@lru_cache(maxsize=64)
def device_force(function: Any, count: int, real: Any, taken: Any = ()) -> Any:
    """Return a rule's force for the card, called as force(x, target, parameters).

    `taken` is what it takes from around it, `rules.around`: with other values it is another one.
    """
    plain = cuda.jit(device=True)(with_helpers(function, cuda.jit(device=True)))
    if not SIMULATED:
        number = from_dtype(np.dtype(real))
        try:
            plain.compile_device((number, number, *(float64,) * count))
        except Exception as error:  # numba raises of every kind
            raise ValueError(
                f"`force` {function.__qualname__} cannot be compiled for a card: "
                f"{type(error).__name__}: {' '.join(str(error).split())[:200]}; device='cpu' takes "
                f"more functions"
            ) from None
    if not count:
        return cuda.jit(device=True)(lambda x, target, parameters: plain(x, target))
    return cuda.jit(device=True)(lambda x, target, parameters: plain(x, target, *parameters))


@lru_cache(maxsize=64)
def learning(
    force: Any, quads: int, warps: int, real: Any, hot: bool, mean: bool, moving: bool
) -> Any:
    """Return the kernel that learns, for networks of 4·quads·warps·LANES weights at most.

    J ← keep J + rate F(x, ỹ) ξ + noise. Weights and the rows of this and the next example are in
    registers: the next row is on its way while the present one is used. The decay is one number in
    double precision, J = scale w: in single precision 1 − vλ/N would be off by a share of λ that
    shows. `mean` adds up J; `moving` takes rate and keep of each step from `paces`.
    """
    threads, held = warps * LANES, 4 * quads

    @cuda.jit
    def learn(X, targets, order, J, total, lost, span, settings, paces, parameters):  # type: ignore[no-untyped-def]
        s, t = cuda.blockIdx.x, cuda.threadIdx.x
        n, width, p, apart, offset, count, step, first, seed = span
        rate, keep, kick, limit = settings
        parts = cuda.shared.array((2, warps), real)
        w, here = cuda.local.array(held, real), cuda.local.array(held, real)
        then, added = cuda.local.array(held, real), cuda.local.array(held, real)
        sequence, aims, base = order[s], targets[s * apart], s * apart * p * width
        m = sequence[offset]
        aim = aims[m]
        for k in range(quads):
            j = 4 * (t + k * threads)
            if j < width:
                a, b = load4(J, s * width + j), load4(X, base + m * width + j)
                for i in range(4):
                    w[4 * k + i], here[4 * k + i] = a[i], b[i]
            else:
                for i in range(4):
                    w[4 * k + i], here[4 * k + i] = real(0), real(0)
            for i in range(4):
                added[4 * k + i] = real(0)
        m = sequence[min(offset + 1, sequence.size - 1)]
        status, scale = lost[s], 1.0
        for i in range(count):
            if status != FINE:
                break
            coming = sequence[min(offset + i + 2, sequence.size - 1)]
            soon = aims[m]
            u = real(0)
            for k in range(quads):
                j = 4 * (t + k * threads)
                if j < width:
                    b = load4(X, base + m * width + j)
                    for q in range(4):
                        then[4 * k + q] = b[q]
                else:
                    for q in range(4):
                        then[4 * k + q] = real(0)
            for k in range(held):
                u += w[k] * here[k]
            u = warp_sum(u)
            if t % LANES == 0:
                parts[i & 1, t // LANES] = u
            cuda.syncthreads()
            x = parts[i & 1, 0]
            for k in range(1, warps):
                x += parts[i & 1, k]
            x *= real(scale)
            F = force(x, aim, parameters)
            if not abs(x) < limit:
                status = DIVERGED
            elif F != F:
                status = NOT_A_NUMBER
            if moving:
                rate, keep = paces[0, i], paces[1, i]
            scale *= keep
            pull = real(rate * F / scale)
            for k in range(held):
                w[k] += pull * here[k]
                here[k] = then[k]
            if hot:
                for k in range(quads):
                    j = 4 * (t + k * threads)
                    place = np.uint64(step + i) * np.uint64(width // 4) + np.uint64(j // 4)
                    z = normals(seed, np.uint64(first + s), HEAT, place)
                    for q in range(4):
                        w[4 * k + q] += real(kick / scale) * z[q] if j + q < n else real(0)
            if mean:
                for k in range(held):
                    added[k] += real(scale) * w[k]
            if scale < 1e-6 or i == count - 1:
                for k in range(held):
                    w[k] *= real(scale)
                scale = 1.0
            aim, m = soon, coming
        for k in range(quads):
            for i in range(4):
                j = 4 * (t + k * threads) + i
                if j < width:
                    J[s * width + j] = w[4 * k + i]
                    if mean:
                        total[s * width + j] += added[4 * k + i]
        if t == 0:
            lost[s] = status

    return learn


@lru_cache(maxsize=64)
def measuring(force: Any, classify: bool) -> Any:
    """Return the kernel that measures F2, E_t, JᵀΣJ, BᵀΣJ by a set of examples, and x if asked.

    They come in this order, one row a network.
    """

    @cuda.jit
    def measure(X, targets, J, B, mu, width, apart, found, x_out, parameters):  # type: ignore[no-untyped-def]
        s, warp = cuda.blockIdx.x, cuda.threadIdx.x // LANES
        sums = cuda.shared.array((2, WARPS), np.float64)
        table, p = s * apart, targets.shape[1]
        square, missed = 0.0, 0.0
        for i in range(warp, p, WARPS):
            x = product(J, s * width, X, (table * p + i) * width, width)
            aim = targets[table, i]
            F = force(x, aim, parameters)
            square += F * F
            if classify:
                missed += 0.5 if x * aim == 0 else (1.0 if x * aim < 0 else 0.0)
            else:
                missed += 0.5 * (aim - x) ** 2
            if x_out.size and cuda.threadIdx.x % LANES == 0:
                x_out[s, i] = x
        length = metric(J, s * width, J, s * width, mu, width)
        overlap = metric(J, s * width, B, s * width, mu, width) if B.size else 0.0
        if cuda.threadIdx.x % LANES == 0:
            sums[0, warp], sums[1, warp] = square, missed
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            for k in range(1, WARPS):
                square += sums[0, k]
                missed += sums[1, k]
            found[s, 0], found[s, 1] = square / p, missed / p
            found[s, 2], found[s, 3] = length, overlap

    return measure
