"""The hot loops of the mean-field solver: lead a population to t_i and measure its averages.

x(t_i) = h(t_i) + v Σ_c G_c f_c, h = R y + Σ_c A_c z_c, over the cells of a `Past`. Learning
instants are where they are between t_{i−1} and t_i, and so is h there: see `learned`.

Where every example is learned once an epoch, who is learned at t has not been learned in this one.
Averages that drive are then over x̂(t_i) = h(t_i) + Σ_c A_c e_c/√α of earlier epochs, every example
as if its turn were now; averages that are measured are over x = x̂ + v G F, with the force of this
epoch where it has been learned.

Given the past up to an example's last learning instant, the rest of h(t_i) is Gaussian, of
variance s², and nothing else depends on it yet. F is averaged over it by the trapezoidal rule on
nodes that are shifted from one example to the next. For a smooth force that is exact, for one
with kinks and jumps, wherever they are, it is without bias. The same nodes give the mean slope
⟨F g⟩/s of any force, by Gaussian integration by parts.
"""

from __future__ import annotations

import math

import numpy as np

from manypass.compiling import FAST, njit

# ⟨yF⟩ and ⟨F²⟩ that drive; E_t and ⟨F²⟩ as they are; ⟨F′⟩, and of how many
DRIVE, SQUARE, MISSED, MEASURED, RISE, RISEN = range(6)
SHIFTS = (np.arange(64) + 0.5) / 64 - 0.5
NODES = np.arange(8) - 3.5 + SHIFTS[:, None]
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum(axis=1, keepdims=True)
NODES -= (WEIGHTS * NODES).sum(axis=1, keepdims=True)  # tails are cut off: mean 0 and variance 1
NODES /= np.sqrt((WEIGHTS * NODES**2).sum(axis=1, keepdims=True))
NONE = 1e-18  # variance of h at t = 0⁺: on which side of a threshold an example will be is open


@njit(**FAST)
def averaged(force, parameters, x, aim, variance, shift):  # type: ignore[no-untyped-def]
    """⟨F⟩, ⟨F′⟩, ⟨F²⟩ over what is Gaussian around x; without a variance no slope is seen."""
    if variance <= 0:
        F = force(x, aim, *parameters)
        return F, 0.0, F * F
    s, nodes, weights = math.sqrt(variance), NODES[shift % 64], WEIGHTS[shift % 64]
    F, rise, square = 0.0, 0.0, 0.0
    for q in range(nodes.size):
        at = force(x + s * nodes[q], aim, *parameters)
        F += weights[q] * at
        rise += weights[q] * nodes[q] * at
        square += weights[q] * at * at
    return F, rise / s, square


@njit(**FAST)
def missed(x, aim, variance, classify):  # type: ignore[no-untyped-def]
    """Mean error of an example, over what is Gaussian around x."""
    if not classify:
        return 0.5 * ((aim - x) ** 2 + variance)
    if variance > 0:
        return 0.5 * math.erfc(aim * x / math.sqrt(2 * variance))
    return 0.5 * (1 - np.sign(x * aim))


@njit(**FAST)
def heard(R, y, z, e, a, b, old):  # type: ignore[no-untyped-def]
    """H and x without the normals since cell `old`, and what these add to both."""
    noise, own, rest = np.float32(0), np.float32(0), np.float32(0)
    for c in range(old):
        noise += a[c] * z[c]
    for c in range(old, a.size):
        rest += a[c] * z[c]
    for c in range(a.size):
        own += b[c] * e[c]
    h = R * y + noise
    return h, h + own, rest


@njit(**FAST)
def since(A):  # type: ignore[no-untyped-def]
    """Variance of h from the normals since each cell."""
    return np.append(np.cumsum(A[::-1] ** 2)[::-1], 0.0)


@njit(**FAST)
def collect(sums, parts):  # type: ignore[no-untyped-def]
    """Add parts to sums: single precision is for short ones."""
    for q in range(len(sums)):
        for c in range(sums.shape[1]):
            sums[q, c] += parts[q, c]
            parts[q, c] = 0


@njit(**FAST)
def learned(k, instants, before, x, noise, v, aim, parameters, force):  # type: ignore[no-untyped-def]
    """Σ vF of an example at its instants in a step, x running from `before` to this one.

    Between them h is a line and a Brownian bridge: rough as h is, of jumping forces no other would
    tell how often they change. Own forces come through at once.
    """
    begin, share, bridge = instants
    total = 0.0
    for j in range(begin[k], begin[k + 1]):
        at = before + share[j] * (x - before) + noise * bridge[j, 0] + total
        total += v * force(at, aim, *parameters)
    return total


@njit(**FAST)
def look(i, line, past, cells, examples, instants, present, parameters, force, classify):  # type: ignore[no-untyped-def]
    """Return averages at t_i, carry activations on to it; those whose turn it is are learned.

    The averages are ⟨y(F̂ − mh)⟩, ⟨F̂²⟩, E_t, ⟨F²⟩, by cell ⟨(F̂ − mh) z_c⟩ and ⟨F̂ e_c⟩, all with F̂
    over those whose turn it may be: `who`; and ⟨f e_c⟩ of the newest cell, with ⟨f²⟩ at its end.
    The multiple m of h is known exactly: subtracting it lessens the noise. `line` is t_i, R, m, v
    before and after; `cells` are A, the coefficients of e in x̂ − h, and when the cells begin;
    `last` is when an example was learned last, in earlier epochs if there are any, `share` how many
    it stands for. Those of the `events` are learned in the newest cell, those `after` it at t_i, so
    many times. `present` is this epoch: the response to a force in each of its cells, and by
    example in which of them it was learned (−1: not yet), with which force and when. If what is
    learned is known `at_once`, x̂ = x and F̂ = F.
    """
    (t, R, m, v, v_after), (z, e), (A, B, begin) = line, past, cells
    (y, target, last, activations, expected, share) = examples
    (who, events, after, at_once), (response, where, forces, when) = instants, present
    n, count = A.size, 0
    one, sums, S = np.zeros(6), np.zeros((2, n)), np.zeros(n)
    slope, fresh = np.zeros(n + 1), since(A)
    a, b, zero = A.astype(np.float32), B.astype(np.float32), np.float32(0)
    parts = np.zeros((2, n), np.float32)
    part_E, part_P = parts
    for k in range(y.size):
        zk, ek, aim, w = z[k], e[k], target[k], share[k]
        old = np.searchsorted(begin, last[k])  # cells that began before
        h, x, rest = heard(R, y[k], zk, ek, a, b, old)
        spread, before, turn = fresh[old], expected[k], events[0][k] < events[0][k + 1]
        if at_once and turn:
            x, h, old, spread, rest, last[k] = x + rest, h + rest, n, 0.0, zero, t
            f = learned(k, events, before, x, A[n - 1], v, aim, parameters, force)
            forces[k] = ek[n - 1] = f
            x += b[n - 1] * f
        expected[k] = x + rest
        spread = spread if i else max(spread, NONE)
        F, rise, square = averaged(force, parameters, x, aim, spread, i + k)
        if who[k]:
            count += 1
            slope[old] += w * (rise - m)
            if spread > 0:
                one[RISE] += w * rise
                one[RISEN] += w
            one[DRIVE] += w * y[k] * (F - m * h)
            one[SQUARE] += w * square
            residual, mean = np.float32(w * (F - m * h)), np.float32(w * F)
            for c in range(old):
                part_E[c] += residual * zk[c]
            for c in range(n):
                part_P[c] += mean * ek[c]
        if not at_once:
            if turn:
                f = learned(k, events, before, expected[k], A[n - 1], v, aim, parameters, force)
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
        if turn:
            for c in range(n - 1):
                S[c] += w * forces[k] * ek[c]
            S[n - 1] += w * forces[k] ** 2
        one[MEASURED] += w * square
        one[MISSED] += w * missed(x, aim, spread, classify)
        activations[k] = x + rest
        if k % 256 == 255 or k == y.size - 1:
            collect(sums, parts)
    sums[0] += A * np.cumsum(slope[:n])  # F responds to what is fresh by its mean slope
    sums /= max(count, 1)
    for q in (DRIVE, SQUARE):
        one[q] *= y.size / max(count, 1)
    return one / y.size, sums[0], sums[1], S / y.size
