"""The hot loops of the mean-field solver: lead a population to t_i and measure its averages.

x(t_i) = h(t_i) + v Σ_e G(t_i,t_e) F_e, h = R y + Σ_j A_j z_j. Learning instants are rounded to the
grid: of those in the cell around t_i the earlier half happens before the measurement, the later
half after it, one after the other, which keeps the error of rounding at second order.

Given the past up to an example's last learning instant, the rest of h(t_i) is Gaussian and nothing
else depends on it yet. E_t is averaged over it in closed form; from F and F² their expansion in it
is subtracted, whose mean is known. For linear rules this averages them in closed form as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.compiling import njit

FAST: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
DRIVE, SQUARE, SLOPE, MISSED = range(4)  # ⟨yF⟩, ⟨F²⟩, ⟨F′⟩, E_t


@njit(**FAST)
def online(  # type: ignore[no-untyped-def]
    i, R, A, G, examples, events, x_out, rule, v, classify, stride, oldest, responds, calm, final
):
    """Return the four averages at t_i and, by cell of e, ΣF_i F_e and the response F′_i δx_i/δh_e.

    The sum is over all examples and made only if `calm`; the response is the mean over learning
    instants e of every stride-th example. Of `events`, the
    slots are instants in half cells, `done` how many of an example are past, F and S their forces
    and slopes. Before the cell `oldest` nothing acts on x any more, before `responds` there is no
    response: so many are skipped of each example.
    """
    y, target, normals = examples
    first, slots, done, acting, answering, F, S, chain = events
    parameters, force, slope = rule
    one, FF, M, pairs = np.zeros(4), np.zeros(i + 1), np.zeros(i + 1), np.zeros(i + 1)
    g, zero = G[i], A[0] * 0
    fresh = np.zeros(i + 1)  # variance of h from the normals since a cell
    for j in range(i - 1, -1, -1):
        fresh[j] = fresh[j + 1] + A[j] ** 2
    for k in range(y.size):
        z, begin, end, aim = normals[k], first[k], first[k + 1], target[k]
        e = begin + done[k]
        last = slots[e - 1] >> 1 if e > begin else 0
        h, new, spread = zero, zero, fresh[last]
        for j in range(i):
            h += A[j] * z[j]
            new += A[j] * z[j] if j >= last else zero
        x = R * y[k] + h
        while acting[k] < done[k] and slots[begin + acting[k]] >> 1 < oldest:
            acting[k] += 1
        for q in range(begin + acting[k], e):
            x += v * g[slots[q] >> 1] * F[q]
        while e < end and slots[e] == 2 * i:
            F[e], S[e] = force(x, aim, *parameters), slope(x, aim, *parameters)
            x += v * F[e]
            e += 1
            new, spread = zero, 0.0
        f, s, x0 = force(x, aim, *parameters), slope(x, aim, *parameters), x - new
        f0, s0 = f, s
        if new != 0:
            f0, s0 = force(x0, aim, *parameters), slope(x0, aim, *parameters)
        one[SQUARE] += f * f - 2 * f0 * s0 * new - s0 * s0 * (new * new - spread)
        one[SLOPE] += s
        if not classify:
            one[MISSED] += 0.5 * ((aim - x0) ** 2 + spread)
        elif spread > 0:
            one[MISSED] += 0.5 * math.erfc(aim * x0 / math.sqrt(2 * spread)) if final else 0.0
        else:
            one[MISSED] += 0.5 * (1 - np.sign(x * aim))
        if i == 0:  # what a learning step just before would have left
            FF[0] += f * force(x + v * f, aim, *parameters)
        f -= s0 * new
        one[DRIVE] += y[k] * f
        if calm:
            for q in range(begin, e):
                FF[slots[q] >> 1] += f * F[q]
        if k % stride == 0:
            while answering[k] < done[k] and slots[begin + answering[k]] >> 1 < responds:
                answering[k] += 1
            begin += answering[k]
            for q in range(begin, e):
                chain[q - begin] = g[slots[q] >> 1]
            for p in range(e - 1, begin - 1, -1):
                u = slots[p] >> 1
                answer, row = v * S[p] * chain[p - begin], G[u]
                M[u] += s * answer
                pairs[u] += 1
                for q in range(begin, p):
                    chain[q - begin] += answer * row[slots[q] >> 1]
        if final:
            x_out[k] = x
            while e < end and slots[e] == 2 * i + 1:
                F[e], S[e] = force(x, aim, *parameters), slope(x, aim, *parameters)
                x += v * F[e]
                e += 1
            done[k] = e - first[k]
            while e < end and slots[e] == 2 * i + 2:  # a guess, until t_{i+1} is reached
                F[e] = force(x, aim, *parameters)
                x += v * F[e]
                e += 1
    return one / y.size, FF, M / np.maximum(pairs, 1)


@njit(**FAST)
def pushes(j, first, slots, done, F):  # type: ignore[no-untyped-def]
    """⟨f_j f_u⟩ for all u ≤ j, f_u being the sum of an example's forces between t_u and t_{u+1}.

    Returned with the part of ⟨f_j²⟩ that comes from single instants.
    """
    row, single = np.zeros(j + 1), 0.0
    for k in range(done.size):
        e = first[k] + done[k]
        while e < first[k + 1] and slots[e] <= 2 * j + 2:
            e += 1
        while e > first[k] and slots[e - 1] > 2 * j + 2:
            e -= 1
        f = 0.0
        while e > first[k] and slots[e - 1] >= 2 * j + 1:
            e -= 1
            f += F[e]
            single += F[e] ** 2
        row[j] += f * f
        if f != 0:
            for q in range(first[k], e):
                row[(slots[q] - 1) >> 1] += f * F[q]
    return row / done.size, single / done.size


@njit(**FAST)
def batch(i, R, A, G, examples, F, S, x_out, rule, kick, classify, stride):  # type: ignore[no-untyped-def]
    """Return the same, and ⟨F_i F_u⟩, when every example is learned all the time.

    F and S are [example, cell]; `kick` is vΔ/α, the share of one cell, of which the first and the
    last count half.
    """
    y, target, normals = examples
    parameters, force, slope = rule
    one, FF, M, chain = np.zeros(4), np.zeros(i + 1), np.zeros(i + 1), np.empty(i + 1)
    half, zero, g = 0.5 * kick, A[0] * 0, kick * G[i, : i + 1]
    g[0] *= 0.5
    for k in range(y.size):
        z, aim, past, slopes = normals[k], target[k], F[k], S[k]
        h = zero
        for j in range(i):
            h += A[j] * z[j]
        x = R * y[k] + h
        for u in range(i):
            x += g[u] * past[u]
        if i > 0:
            x += half * force(x + half * force(x, aim, *parameters), aim, *parameters)
        f, s = force(x, aim, *parameters), slope(x, aim, *parameters)
        past[i], slopes[i], x_out[k] = f, s, x
        one[DRIVE] += y[k] * f
        one[SQUARE] += f * f
        one[SLOPE] += s
        one[MISSED] += 0.5 * (1 - np.sign(x * aim)) if classify else 0.5 * (aim - x) ** 2
        for u in range(i + 1):
            FF[u] += f * past[u]
        if k % stride == 0 and i > 0:
            for u in range(i):
                chain[u] = G[i, u] * (1 + half * s)
            M[i] += s * half * s
            for p in range(i - 1, -1, -1):
                share, row = kick if p > 0 else half, G[p]
                answer = share * slopes[p] * (1 + half * slopes[p]) * chain[p]
                M[p] += s * answer
                for u in range(p):
                    chain[u] += answer * row[u]
    return one / y.size, FF / y.size, M / ((y.size + stride - 1) // stride)
