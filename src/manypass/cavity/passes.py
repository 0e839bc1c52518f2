"""The hot loop of epochs: lead a population to t_i, where every example is learned once an epoch.

Who is learned at t has not been learned in this epoch. Averages that drive are over
x̂(t_i) = h(t_i) + Σ_c A_c e_c/√α of earlier epochs, every example as if its turn were now; averages
that are measured are over x = x̂ + v G F, with the force of this epoch where it has been learned.
"""

from __future__ import annotations

import numpy as np

from manypass.cavity.moments import (
    DRIVE,
    MEASURED,
    MISSED,
    NONE,
    RISE,
    RISEN,
    SQUARE,
    averaged,
    collect,
    heard,
    learned,
    missed,
    respond,
    since,
)
from manypass.compiling import FAST, njit


@njit(**FAST)
def epoch(i, line, past, cells, examples, instants, present, parameters, force, classify):  # type: ignore[no-untyped-def]
    """Return averages at t_i, carry activations on to it; those whose turn it is are learned.

    The averages are ⟨y(F̂ − mh)⟩, ⟨F̂²⟩, E_t, ⟨F²⟩, by cell ⟨(F̂ − mh) z_c⟩ and ⟨F̂ e_c⟩, all with F̂
    over those whose turn it may be: `who`. `line` is t_i, R, m, v before and after; `cells` are A,
    the coefficients of e in x̂ − h, and when the cells begin; `last` is when an example was learned
    last in earlier epochs. `present` is this epoch: the response to a force in each of its cells,
    and by example in which of them it was learned (−1: not yet), with which force and when. Those
    of the `events` are learned in the newest of them, those `after` it at t_i, so many times.
    """
    (t, R, m, v, v_after), (z, e), (A, B, begin) = line, past, cells
    (y, target, last, activations, expected), (who, events, after) = examples, instants
    response, where, forces, when = present
    n, count = A.size, 0
    one, sums, slope, fresh = np.zeros(6), np.zeros((2, n)), np.zeros(n + 1), since(A)
    a, b, zero = A.astype(np.float32), B.astype(np.float32), np.float32(0)
    parts = np.zeros((2, n), np.float32)
    part_E, part_P = parts
    for k in range(y.size):
        zk, ek, aim = z[k], e[k], target[k]
        old = np.searchsorted(begin, last[k])  # cells that began before
        h, x, rest = heard(R, y[k], zk, ek, a, b, old)
        spread = fresh[old]
        spread = spread if i else max(spread, NONE)
        F, rise, square = averaged(force, parameters, x, aim, spread, i + k)
        if who[k]:
            count += 1
            slope[old] += rise - m
            if spread > 0:
                one[RISE] += rise
                one[RISEN] += 1
            one[DRIVE] += y[k] * (F - m * h)
            one[SQUARE] += square
            residual, mean = np.float32(F - m * h), np.float32(F)
            for c in range(old):
                part_E[c] += residual * zk[c]
            for c in range(n):
                part_P[c] += mean * ek[c]
        before, expected[k] = expected[k], x + rest
        if events[0][k] < events[0][k + 1]:
            noise = A[n - 1]
            f = learned(k, events, before, expected[k], noise, v, aim, parameters, force)
            forces[k], when[k], where[k] = f, t, response.size - 1
        elif after[k] > 0:
            F = force(expected[k], aim, *parameters)
            forces[k], when[k], where[k] = after[k] * v_after * F, t, response.size
        if 0 <= where[k] < response.size:  # x is not as if it had not been learned
            x += rest + response[where[k]] * forces[k]
            recent, rest = np.searchsorted(begin, when[k]), zero
            for c in range(recent, n):
                rest += a[c] * zk[c]
            x, spread = x - rest, fresh[recent]
            square = averaged(force, parameters, x, aim, spread, i + k)[2]
        one[MEASURED] += square
        one[MISSED] += missed(x, aim, spread, classify)
        activations[k] = x + rest
        if k % 256 == 255 or k == y.size - 1:
            collect(sums, parts)
    respond(sums[0], A, slope)
    sums /= max(count, 1)
    for q in (DRIVE, SQUARE):
        one[q] *= y.size / max(count, 1)
    return one / y.size, sums[0], sums[1]
