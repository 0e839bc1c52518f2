"""Batch learning of one population: every example all the time, the limit v → 0 at fixed vt.

As on-line learning, but the push of a step is that of forces learned by all, with covariance
(v²/α)⟨F(t)F(s)⟩ + 2T δ(t−s): without heat it has nothing of its own that is new in every step, and
a direction that earlier forces span is none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manypass.cavity.moments import DRIVE, FAST, MEASURED, MISSED, SQUARE, heard, missed
from manypass.cavity.online import Online
from manypass.cavity.weights import line_weights
from manypass.checks import Array
from manypass.compiling import njit
from manypass.ensemble import Measured
from manypass.problem import Problem

SPANNED = 1e-5  # share of |J|² below which a push waits before it is a direction of its own
PROBE = 0.1  # by which weights are pushed to see the response, all such pushes together
STIFF = 0.5  # change of a force by itself in half a step, beyond which it acts at its end
TURNS, CLOSE = 30, 1e-6  # of looking for a force that acts on itself, and when it is found


class Flow(Online):
    """`Online` without chance; G from the same run with weights pushed a little to either side.

    A force that is stiff acts at the end of a step.
    """

    drift = False  # at first h is R y, growing as t: F is no slope times that

    def __init__(
        self,
        problem: Problem,
        rule: Any,
        examples: Any,
        per: float,
        keep: Array,
        probes: NDArray[np.float32],
        begin: NDArray[np.float32] | None = None,
        side: float = 0.0,
    ) -> None:
        self.owed, self.normals, self.side = np.zeros(examples[0].size), probes, side
        self.beside: list[Flow] = []
        if keep.size and not side:
            size = PROBE / math.sqrt(keep.size)
            shared = (problem, rule, examples, per, keep, probes, begin)
            self.beside = [Flow(*shared, way) for way in (-size, size)]
        per = per if problem.temperature else math.inf
        super().__init__(problem, rule, examples, per, keep, begin=begin)

    def step(self, t: float, z: NDArray[np.float32], before: Any, after: Any) -> float:
        """Go on to t, and those who are pushed as well."""
        found = [run.step(t, z, before, after) for run in self.beside]
        return max(super().step(t, z, before, after), *found, 0.0)

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, F2, Et at the times; C and G if they were kept; inf where they have diverged."""
        if self.beside:
            self.G = (self.beside[0].G + self.beside[1].G) / 2
        return super().at(t, scale)

    def _guess(self, n: int, E: Array, d: float) -> float:
        return 0.0

    def _push(self, d: float, F2: float, P: Array, S: Array | None = None) -> None:
        """Put the push of this step into L, as its forces are or, before it is taken, will be.

        Without heat e is orthonormal, to all digits there are; what is too little waits.
        """
        past, n, scale = self.past, P.size - 1, math.sqrt(self.problem.data.alpha)
        push, heat, f = past.L[n], 2 * self.problem.temperature * d, None
        if S is None:
            share = self.v * d / scale**2
            S = np.append(share * (past.rows[3, :n] + P[:n]), share**2 * (self.one[1] + F2)) / 2
        elif not heat:
            e = past.e[:, :n]
            f = past.e[:, n] - e @ S[:n].astype(np.float32)
            more = f @ e / f.size
            f -= e @ more
            S[:n] += more
        push[:n] = scale * S[:n]
        left = scale**2 * S[n] - push[:n] @ push[:n] if f is None else scale**2 * (f @ f) / f.size
        push[n] = math.sqrt(max(left, 0.0) + heat)
        size = self.curves[-1][2] + scale**2 * S[n]
        if not heat and left <= SPANNED * min(size, 10 * self.side**2 or math.inf):
            push[n] = 0.0
            self.new = self.new if f is None else self.new + f

    def _row(self, S: Array) -> Array:
        return self.past.L[S.size - 1, : S.size]

    def _advance(self, d: float, m: float, one: Array, E: Array) -> tuple[float, Array]:
        n = E.size - 1
        if self.past.L[n, n] == 0:  # no direction
            E[n] = 0.0
        return super()._advance(d, m, one, E)

    def _look(self, R: float, A: Array, instants: Any, newest: float | None = 0.0) -> Any:
        past, n, self.after = self.past, A.size - 1, instants[1]
        if A.size and newest is not None:
            d = past.end[n] - past.begin[n]
            q = self.v * d * (self.decay - self.m)
            newest = sum(line_weights(q)[1:])
        *found, self.x, self.new = flow(
            (R, self.m, self.v, self._next_rate()),
            (past.z, past.e),
            (A, past.own(A.size, newest)),
            self.examples,
            instants,
            self.owed,
            self.rule,
            self.problem.data.task == "classification",
        )
        self.learned = self.new
        return found

    def _record(self, A: Array) -> None:
        super()._record(A)
        kept = np.flatnonzero(self.keep == self.t) if self.side else ()
        for k in kept:
            past, n = self.past, self.past.count
            waiting, owed = self.new - self.learned, self.owed.copy()
            past.append(self.normals[k], self.new * 0, self.t, self.t)
            past.L[n, n] = past.rows[0, n] = self.side
            past.weights.place(n, self.side)
            # All change at once; who is stiff will be seen at the end of the next step.
            self.owed[:] = 0.0
            found = self._look(self.R, past.rows[0, : n + 1], (owed * 0, self.after), None)
            self.new[owed > 0] = 0.0
            self.new, self.owed = self.new + waiting, owed
            E, E_before, P, P_before = past.rows[1:5, : n + 1]
            for now, before, then in ((E, E_before, found[1]), (P, P_before, found[2])):
                before += then - now
                now[:] = then

    def _response(self, A: Array, lags: Array) -> Array:
        """Return A of earlier probes, in units of what they were."""
        flat = self.past.begin[: A.size] == self.past.end[: A.size]
        cells = np.flatnonzero(flat)[self.begun :]
        return np.append(A[cells] / self.side, 1.0) if self.side else 0 * lags


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
def flow(line, past, cells, examples, weights, owed, rule, classify):  # type: ignore[no-untyped-def]
    """Return averages at t_i, the activations, and what is learned in the half step after t_i.

    The averages are those of `moments.online`. `line` is R, m, and v before and after t_i; all
    examples are learned with the `weights` before and after it, Δ/2α; what is `owed` of the former
    half step to forces that were stiff is learned now.
    """
    (R, m, v, v_after), (z, e), (A, B) = line, past, cells
    (y, target), (before, after), (parameters, force) = examples, weights, rule
    n = A.size
    one, E, P, S = np.zeros(4), np.zeros(n), np.zeros(n), np.zeros(n)
    a, b, zero = A.astype(np.float32), B.astype(np.float32), np.float32(0)
    part_E, part_P, part_S = np.zeros((3, n), np.float32)
    activations, new = np.empty(y.size), np.zeros(y.size, np.float32)
    for k in range(y.size):
        zk, ek, aim = z[k], e[k], target[k]
        h, x, _ = heard(R, y[k], zk, ek, a, b, n)
        weight = v * before[k] + owed[k]
        kick = weight * b[n - 1] if n > 0 else 0.0
        F, stiff = held(force, parameters, x, aim, kick)
        x += kick * F
        if n > 0:
            ek[n - 1] += weight * F
        owed[k] = v_after * after[k] if stiff else 0.0
        new[k] = (v_after * after[k] - owed[k]) * F
        activations[k] = x
        one[DRIVE] += y[k] * (F - m * h)
        one[SQUARE] += F * F
        one[MISSED] += missed(x, aim, 0.0, classify)
        residual, mean, own = np.float32(F - m * h), np.float32(F), ek[n - 1] if n > 0 else zero
        for c in range(n):
            part_E[c] += residual * zk[c]
            part_P[c] += mean * ek[c]
            part_S[c] += own * ek[c]
        if k % 256 == 255 or k == y.size - 1:  # single precision is for short sums
            for c in range(n):
                E[c] += part_E[c]
                P[c] += part_P[c]
                S[c] += part_S[c]
                part_E[c] = part_P[c] = part_S[c] = zero
    one[MEASURED] = one[SQUARE]
    return one / y.size, E / y.size, P / y.size, S / y.size, activations, new
