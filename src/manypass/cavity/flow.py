"""Batch learning of one population: every example all the time, the limit v → 0 at fixed vt.

As on-line learning, but the push of a step is that of forces learned by all, with covariance
(v²/α)⟨F(t)F(s)⟩ + 2T δ(t−s): without heat it has nothing of its own that is new in every step, and
a direction that earlier forces span is none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.cavity.moments import DRIVE, MEASURED, MISSED, SQUARE, collect, heard, missed
from manypass.cavity.online import Looked, Online
from manypass.cavity.past import Normals
from manypass.cavity.weights import line_weights
from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.ensemble import Measured
from manypass.problem import Problem

SPANNED = 1e-5  # share of |J|² below which a push waits before it is a direction of its own
PROBE = 0.1  # by which weights are pushed to see the response, all such pushes together
STIFF = 0.5  # change of a force by itself in half a step, beyond which it acts at its end
TURNS, CLOSE = 30, 1e-6  # of looking for a force that acts on itself, and when it is found


class Flow(Online):
    """`Online` of one unit without chance; G from runs with weights pushed a little to either side.

    A force that is stiff acts at the end of a step.
    """

    def __init__(
        self,
        problem: Problem,
        student: Any,
        per: float,
        keep: Array,
        probes: Normals,
        begin: Normals | None = None,
        side: float = 0.0,
    ) -> None:
        self.owed, self.normals, self.side = np.zeros(len(student.known)), probes, side
        self.beside: list[Flow] = []
        if keep.size and not side:
            size = PROBE / math.sqrt(keep.size)
            shared = (problem, student, per, keep, probes, begin)
            self.beside = [Flow(*shared, way) for way in (-size, size)]
        per = per if problem.temperature else math.inf
        self.weights, self.v_after = (0.0, 0.0), 0.0  # of what is learned in half steps
        self.first = True  # step, of all or after a rest
        super().__init__(problem, student, per, keep, begin=begin)
        self.young = 1.0

    def step(self, t: float, z: Normals, now: Any, then: Any) -> float:
        """Go on to t, and so do those who are pushed; the first step finds nothing learned."""
        found = [run.step(t, z, now, then) for run in self.beside]
        before = now.often if self.first else now.often / 2
        self.first = False
        self.weights, self.v_after = (before, then.often / 2), self.pace(t, 2 * t - self.t)[0]
        return max(super().step(t, z, now, then), *found, 0.0)

    def _stay(self, t: float) -> float:
        self.first = True
        return super()._stay(t)

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, F2, Et at the times; C and G if they were kept; inf where they have diverged."""
        if self.beside:
            self.G = (self.beside[0].G + self.beside[1].G) / 2
        return super().at(t, scale)

    def _ahead(self, now: Array, before: Array, ratio: float) -> Array:
        return now  # in long steps lines overshoot

    def _guess(self, own: slice, E: Array, d: float) -> Array:
        return np.zeros((1, 1))

    def _push(self, d: float, FF: Array, P: Array, S: Array | None = None) -> None:
        """Put the push of this step into L, as its forces are or, before it is taken, will be.

        Without heat e is orthonormal, to all digits there are; what is too little waits.
        """
        past, n, scale = self.past, P.shape[1] - 1, math.sqrt(self.problem.data.alpha)
        push, heat, f = past.L[n], 2 * self.problem.temperature * d, None
        if S is None:
            share, F2 = self.v * d / scale**2, self.one.FF[0, 0] + FF[0, 0]
            s = np.append(share * (past.rows[3, 0, :n] + P[0, :n]), share**2 * F2) / 2
        else:
            s = S[0]
        if S is not None and not heat:
            e = past.e[:, :n]
            f = past.e[:, n] - e @ s[:n].astype(np.float32)
            more = f @ e / f.size
            f -= e @ more
            s[:n] += more
        push[:n] = scale * s[:n]
        left = scale**2 * s[n] - push[:n] @ push[:n] if f is None else scale**2 * (f @ f) / f.size
        push[n] = math.sqrt(max(left, 0.0) + heat)
        size = self.Q + scale**2 * s[n]
        if not heat and left <= SPANNED * min(size, 10 * self.side**2 or math.inf):
            push[n] = 0.0
            self.new = self.new if f is None else self.new + f[:, None]

    def _row(self, S: Array) -> tuple[Array, Array]:
        n = S.shape[1] - 1
        own = self.past.L[n : n + 1, : n + 1]
        return own[:, :n], 1 / np.where(own[:, n:] == 0, math.inf, own[:, n:])

    def _advance(self, d: float, m: float, one: Looked, E: Array) -> tuple[Array, Array, Array]:
        n = E.shape[1] - 1
        if self.past.L[n, n] == 0:  # no direction
            E[:, n] = 0.0
        return super()._advance(d, m, one, E)

    def _look(self, R: Array, A: Array, a: Array, instants: Any, after: Any = None) -> Any:
        past, n, latest = self.past, A.shape[1], None
        if n:
            d = past.end[n - 1] - past.begin[n - 1]
            q = self.v * d * (self.decay - self.m)
            latest = np.full((1, 1), sum(line_weights(q)[1:]))
        return self.student.regressed(self.m, (R, A), *self._found(A, R, latest, self.weights))

    def _found(self, A: Array, R: Array, latest: Array | None, weights: Any) -> Any:
        """Averages, given G of the last cell if it is not complete."""
        past, student = self.past, self.student
        *found, student.x, new = flow(
            (R[0, 0], self.m, self.v, self.v_after),
            (past.z, past.e),
            (A[0], past.own(A.shape[1], latest)[0]),
            student.examples,
            weights,
            self.owed,
            *student.rule,
            student.classify,
        )
        self.new = self.learned = new[:, None]
        return found

    def _record(self, A: Array) -> None:
        super()._record(A)
        kept = np.flatnonzero(self.keep == self.t) if self.side else ()
        for k in kept:
            past, n = self.past, self.past.n
            waiting, owed = self.new - self.learned, self.owed.copy()
            past.append(self.normals[k : k + 1], 0.0, self.t, self.t)
            past.L[n, n] = past.rows[0, 0, n] = self.side
            past.weights.place(n, np.full((1, 1), self.side))
            # All change at once; who is stiff will be seen at the end of the next step.
            self.owed[:] = 0.0
            A = past.rows[0, :, : n + 1]
            _, E_then, P_then, _ = self._found(A, self.R, None, (0.0, self.weights[1]))
            self.new[owed > 0] = 0.0
            self.new, self.owed = self.new + waiting, owed
            E, E_before, P, P_before = past.rows[1:5, :, : n + 1]
            for now, before, then in ((E, E_before, E_then), (P, P_before, P_then)):
                before += then - now
                now[:] = then

    def _response(self, A: Array, lags: Array) -> Array:
        """Return A of earlier probes, in units of what they were."""
        past = self.past
        flat = past.begin[: A.shape[1]] == past.end[: A.shape[1]]
        cells = np.flatnonzero(flat)[self.begun :]
        found = np.append(A[0, cells] / self.side, 1.0) if self.side else 0 * lags
        return found[:, None, None]


@njit(**FAST)
def held(force, parameters, x, aim, kick):  # type: ignore[no-untyped-def]
    """Solve F = F(x + kick F); return F, and whether it is stiff."""
    first = force(x, aim, *parameters)
    if kick == 0 or first == 0:
        return first, False
    a, b, near, far = 0.0, first, first, force(x + kick * first, aim, *parameters)
    change = (first - far) / first
    if change <= 0:  # a force that grows by itself
        return force(x + kick * far, aim, *parameters), False
    for turn in range(TURNS):  # it is between a and b, where it would be near and far
        lean = (near - a) / (near - a + b - far)
        F = a + (b - a) * (lean if turn % 3 < 2 else 0.5)
        at = force(x + kick * F, aim, *parameters)
        if abs(at - F) < CLOSE * abs(first):
            break
        if (at > F) == (first > 0):
            a, near = F, at
        else:
            b, far = F, at
    return F, change > STIFF


@njit(**FAST)
def flow(line, past, cells, examples, weights, owed, parameters, force, classify):  # type: ignore[no-untyped-def]
    """Return averages at t_i, the activations, and what is learned in the half step after t_i.

    The averages are those of `moments.look`. `line` is R, m, and v before and after t_i; all
    examples are learned with the `weights` before and after it, Δ/2α; what is `owed` of the former
    half step to forces that were stiff is learned now.
    """
    (R, m, v, v_after), (z, e), (A, B) = line, past, cells
    (y, target), (before, after) = examples, weights
    n = A.size
    one, sums, parts = np.zeros(4), np.zeros((3, n)), np.zeros((3, n), np.float32)
    a, b, zero = A.astype(np.float32), B.astype(np.float32), np.float32(0)
    part_E, part_P, part_S = parts
    activations, new = np.empty(y.size), np.zeros(y.size, np.float32)
    for k in range(y.size):
        zk, ek, aim = z[k], e[k], target[k]
        h, x, _ = heard(R, y[k], zk, ek, a, b, n)
        weight = v * before + owed[k]
        kick = weight * b[n - 1] if n > 0 else 0.0
        F, stiff = held(force, parameters, x, aim, kick)
        x += kick * F
        if n > 0:
            ek[n - 1] += weight * F
        owed[k] = v_after * after if stiff else 0.0
        new[k] = (v_after * after - owed[k]) * F
        activations[k] = x
        one[DRIVE] += y[k] * (F - m * h)
        one[SQUARE] += F * F
        one[MISSED] += missed(x, aim, 0.0, classify)
        residual, mean, own = np.float32(F - m * h), np.float32(F), ek[n - 1] if n > 0 else zero
        for c in range(n):
            part_E[c] += residual * zk[c]
            part_P[c] += mean * ek[c]
            part_S[c] += own * ek[c]
        if k % 256 == 255 or k == y.size - 1:
            collect(sums, parts)
    one[MEASURED] = one[SQUARE]
    sums /= y.size
    return one / y.size, sums[0], sums[1], sums[2], activations, new
