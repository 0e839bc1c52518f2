"""On-line learning of networks with two layers: the mean-field equations for K-vectors.

dR/dt = −vλR + v⟨F yᵀ⟩;  dA_c/dt = −vλA_c + v⟨F z_cᵀ⟩, and in each step the push of all other
examples, as in `online`; da/dt = v_a⟨(ỹ − σ)g(x)⟩. h = R T⁻¹y + Σ_c A_c z_c and
x = h + Σ_c A_c e_c/√α. Of every average that of F at h is known: see `layers.averages`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass import schedules
from manypass.cavity import layered_moments as moments
from manypass.cavity.blocks import Blocks, Normals, quotient, root_of
from manypass.cavity.grid import at
from manypass.cavity.weights import line_weights
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.layers.averages import Averages, Fields
from manypass.problem import Problem

CURVES = ("R", "Q", "F2", "Et", "a")


class Looked:
    """Averages at one time: what drives, by cell E = ⟨F zᵀ⟩ and P = ⟨F eᵀ⟩, what is measured."""

    def __init__(self, D: Array, FF: Array, second: Array, F2: float, Et: float) -> None:
        self.D, self.FF, self.second, self.F2, self.Et = D, FF, second, F2, Et

    def ahead(self, before: Looked, ratio: float) -> Looked:
        """Extrapolate what drives."""
        D, FF, second = (
            now + ratio * (now - then)
            for now, then in (
                (self.D, before.D),
                (self.FF, before.FF),
                (self.second, before.second),
            )
        )
        FF = FF if np.trace(FF) > np.trace(self.FF) / 2 else self.FF / 2
        return Looked(D, FF, second, self.F2, self.Et)


class Layered:
    """R, Q, a, F2 and E_t from t = 0 on, and C and G at the times to be kept; second order in Δ."""

    def __init__(
        self,
        problem: Problem,
        fields: Fields,
        examples: tuple[Array, Array],
        per: float,
        keep: Array,
        ends: Array | None = None,
        begin: Normals | None = None,
    ) -> None:
        self.problem, self.fields, self.net = problem, fields, fields.net
        self.examples, self.keep = examples, keep
        self.ends = np.zeros(0) if ends is None else ends
        net, (y, target) = self.net, examples
        self.K, self.yT = len(net.a), np.ascontiguousarray(y.T)
        size = len(target)
        known = np.column_stack([np.ones(size), y, target])
        alpha = problem.data.alpha
        self.past = Blocks(alpha, known, per, keep.size, self.K, ends is not None)
        self.breaks = schedules.breaks(problem.rate, problem.decay)
        self.v, self.decay = self.pace(0.0, 0.0)
        self.second_rate = problem.rule.second_rate  # type: ignore[attr-defined]
        self.R, self.a, self.t, self.d, self.m = net.R.copy(), net.a.copy(), 0.0, 0.0, 0.0
        if begin is not None and net.root.any():
            self.past.start_from(begin, net.root)
        self.begun = self.past.count
        self.new = np.zeros((self.K, size), np.float32)  # forces learned right after now
        self.pair = np.zeros((self.K, self.K))  # ⟨F fᵀ⟩ of the newest cell
        self.C, self.G = np.zeros((2, keep.size, keep.size, self.K, self.K))
        self.kept = np.zeros((keep.size, *self.R.shape))
        self.none = np.zeros(size, np.int64)
        self.curves: list[tuple[float, ...]] = []
        A = self.past.rows[0, :, : self.past.n].copy()
        self.one, E, P, *_ = self._look(self.R, A, self.a, (self.none, self.none))
        self.before = self.one
        self.past.rows[1:5, :, : self.past.n] = E, E, P, P
        self._record(A)

    def pace(self, low: float, high: float) -> tuple[float, float]:
        """Rate and decay in the middle of a step, which a break of a schedule would end."""
        middle = (low + min([high, *(b for b in self.breaks if b > low)])) / 2
        return float(self.problem.v(middle)), float(self.problem.decays(middle))

    def step(self, t: float, z: Normals, before: Any, after: Any) -> float:
        """Go on to t, with new normals (K × examples); as `Online.step`."""
        past, d = self.past, t - self.t
        self.v, self.decay = self.pace(self.t, t)
        past.append(z, self.new, self.t, t)
        own, ratio = past.block(past.count - 1), d / self.d if self.d else 0.0
        E, E_before, P, P_before = past.rows[1:5, :, : past.n].copy()
        one = self.one.ahead(self.before, ratio)
        E_then, P_then = E + ratio * (E - E_before), P + ratio * (P - P_before)
        self.pair = self.pair * ratio
        self._push(d, one.FF, P_then)
        E_then[:, own] = self._guess(own, E)
        R, A, a = self._advance(d, self.m, one, E_then)
        self.t, m_now = t, self.m
        one, E_then, P_then, S = self._look(R, A, a, (before, after))
        self.pair = P_then[:, own].copy()
        m, self.m = self.m, m_now
        self._push(d, one.FF, P_then)
        R, A, a = self._advance(d, m, one, E_then)
        past.complete(S, self.problem.temperature, P_then)
        past.rows[:5, :, : A.shape[1]] = A, E_then, E, P_then, P
        past.rows[2, :, own], past.rows[4, :, own] = E_then[:, own], P_then[:, own]
        self.R, self.a, self.m, self.d, self.one, self.before = R, a, m, d, one, self.one
        self._record(A)
        past.merge(self.t)
        return self._largest()

    def _guess(self, own: slice, E: Array) -> Array:
        """⟨F zᵀ⟩ of the new normals, if the slope is that of the last ones."""
        past, new = self.past, self.past.L[own, own]
        if own.start == 0:
            return np.asarray((self.slope - self.m * np.eye(self.K)) @ new)
        last = slice(own.start - self.K, own.start)
        return np.asarray(quotient(E[:, last], past.rows[0, :, last], 0.0) @ new)

    def _push(self, d: float, FF: Array, P: Array) -> None:
        """Put the push of this step into L, given ⟨F Fᵀ⟩ and ⟨F eᵀ⟩ at its end."""
        v, past, n = self.v, self.past, P.shape[1] - self.K
        alpha, FF, one = self.problem.data.alpha, (self.one.FF + FF) / 2, np.eye(self.K)
        push = past.L[n : n + self.K]
        push[:, :n] = v * d / math.sqrt(alpha) * (past.rows[3, :, :n] + P[:, :n]) / 2
        whole = v**2 * d * FF + v * d * (self.pair + self.pair.T) / 2
        whole = whole + 2 * self.problem.temperature * d * one
        least = (1e-9 * np.trace(whole) + 1e-10 * self.curves[-1][-1]) / self.K + 1e-24
        push[:, n : n + self.K] = root_of(whole - push[:, :n] @ push[:, :n].T, least)

    def _advance(self, d: float, m: float, one: Looked, E: Array) -> tuple[Array, Array, Array]:
        """R, A and a a step on, given the averages there and the push in between."""
        v, n = self.v, E.shape[1] - self.K
        A, E_now = self.past.rows[:2, :, : n + self.K]
        push = self.past.L[n : n + self.K, : n + self.K]
        q = v * d * (self.decay - (self.m + m) / 2)
        keep, now, then = line_weights(q)
        R = keep * self.R + v * d * (now * self.one.D + then * one.D)
        A = keep * A + v * d * (now * E_now + then * E) + (now + then) * push
        A[:, n:] += push[:, n:] * (math.sqrt(sum(line_weights(2 * q)[1:])) - now - then)
        a = self.a + self.second_rate * d * (self.one.second + one.second) / 2
        return R, A, a

    def _newest(self, A: Array) -> Array:
        """Response to a force in the newest cell."""
        past, n = self.past, A.shape[1] - self.K
        return quotient(A[:, n:], past.L[n : n + self.K, n : n + self.K], 1.0)

    def _known(self, R: Array, A: Array, a: Array) -> Averages:
        """Averages of F at h; keeps their mean slope."""
        Q = R @ self.net.onto @ R.T + A @ A.T
        known = self.fields.at(R, Q, a)
        self.slope = known.slope(self.net, R, Q)
        return known

    def _fields(self, R: Array, A: Array, own: Array) -> tuple[Normals, Normals]:
        """Activations x and h of all examples."""
        past, n = self.past, A.shape[1]
        H = (R @ self.net.onto @ self.yT).astype(np.float32)
        H += A.astype(np.float32) @ past.z[:n]
        return H + own.astype(np.float32) @ past.e[:n], H

    def _empty(self, size: int) -> tuple[Any, Any, Any]:
        F, FH = np.empty((2, self.K, size), np.float32)
        left, left_h = np.empty((2, size))
        g, g_h = np.empty((2, self.K, size))
        return F, FH, (left, g, left_h, g_h)

    def _look(self, R: Array, A: Array, a: Array, instants: Any) -> Any:
        past, n, target = self.past, A.shape[1], self.examples[1]
        fresh = n > self.K * self.begun  # a cell that is not complete
        newest = self._newest(A) if fresh else np.eye(self.K)
        X, H = self._fields(R, A, past.own(A, newest if fresh else None))
        F, FH, errors = self._empty(target.size)
        f = past.e[n - self.K : n] if fresh else self.new
        rates = (self.v, self._next_rate())
        self.new = moments.online(
            X, H, target, a, self.net.kind, instants, rates, newest, f, F, FH, errors
        )
        one, E, P = self._averages(R, A, a, F, FH, errors)
        left = errors[0]
        one.F2, one.Et = np.trace(one.FF), self._missed(left, errors[2], one.Et)
        S = (f @ past.e[:n].T).astype(float) / target.size if fresh else None
        return one, E, P, S

    def _averages(
        self, R: Array, A: Array, a: Array, F: Any, FH: Any, errors: Any
    ) -> tuple[Looked, Array, Array]:
        """Return what drives; Et is that of h."""
        past, n = self.past, A.shape[1]
        known, (left, g, left_h, g_h) = self._known(R, A, a), errors
        z, e, y = past.z[:n], past.e[:n], self.yT
        size = F.shape[1]
        share = shared(F, FH)
        rest = F - np.float32(share) * FH
        D = rest @ y.T / size + share * known.FY
        FF = (F @ F.T - share**2 * FH @ FH.T).astype(float) / size + share**2 * known.FF
        E = (rest @ z.T).astype(float) / size + share * self.slope @ A
        P = (F @ e.T).astype(float) / size
        part = shared(left, left_h)
        second = (g @ left - part * g_h @ left_h) / size + part * known.second
        self.m = share * float(np.trace(self.slope)) / self.K
        D, E = D - self.m * R, E - self.m * A
        return Looked(D, FF, second, 0.0, known.error), E, P

    def _missed(self, left: Array, left_h: Array, known: float) -> float:
        """E_t, with the error at h for comparison, whose mean is known."""
        target = self.examples[1]
        if self.net.classify:
            wrong, wrong_h = (
                0.5 * (1 - np.sign((target - each) * target)) for each in (left, left_h)
            )
            share = shared(wrong - wrong.mean(), wrong_h - wrong_h.mean())
            return float(np.mean(wrong - share * wrong_h)) + share * known
        part = shared(left, left_h) ** 2
        return float(np.mean(left**2 - part * left_h**2)) / 2 + part * known

    def _next_rate(self) -> float:
        """Rate in the next step, which will be about as long as this one."""
        n = self.past.count - 1
        d = self.past.end[n] - self.past.begin[n] if n >= 0 else 0.0
        return self.pace(self.t, self.t + d)[0]

    def _largest(self) -> float:
        """Q or ⟨F²⟩, whichever is larger."""
        return float(max(np.trace(self._Q), self.one.F2))

    def _record(self, A: Array) -> None:
        """Keep the curves and, at a time that was asked for, C and G."""
        net, R = self.net, self.R
        self._Q = R @ net.onto @ R.T + A @ A.T
        row = (self.t, *R.ravel(), *self._Q.ravel(), *self.a, self.one.Et, self.one.F2)
        self.curves.append(row)
        for k in np.flatnonzero(self.keep == self.t):
            n = A.shape[1]
            self.past.rows[5 + k, :, :n], self.kept[k] = A, R
            for j in range(k + 1):
                along = R @ net.onto @ self.kept[j].T
                C = along + A @ self.past.rows[5 + j, :, :n].T
                self.C[k, j], self.C[j, k] = C, C.T
            self.G[k, : k + 1] = self._response(A, self.t - self.keep[: k + 1])

    def _response(self, A: Array, lags: Array) -> Array:
        """G at given lags: it is smooth in log(Δ + lag) between the middles of the cells."""
        past, cells, one = self.past, A.shape[1] // self.K, np.eye(self.K)
        if cells - self.begun < 2:
            return np.broadcast_to(one, (lags.size, self.K, self.K))
        G = past.response(A)[self.begun :][::-1]
        middles = (past.begin[self.begun : cells] + past.end[self.begun : cells]) / 2
        lag = np.append(self.t - middles[::-1], self.t)
        newest = self.t - past.begin[cells - 1]
        scale = np.log(lag + newest)
        first = G[-1] + (G[-1] - G[-2]) * (scale[-1] - scale[-2]) / (scale[-2] - scale[-3])
        scale = np.append(np.log(newest), scale)
        return np.asarray(CubicSpline(scale, [one, *G, first])(np.log(lags + newest)))

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, a, F2, Et at the times; C and G if they were kept; inf where they have diverged."""
        table = np.array(self.curves)
        size = np.trace(self._tables(table)["Q"], axis1=1, axis2=2)
        columns = {str(i): column for i, column in enumerate(table.T[1:])}
        found = at(t, scale, table[:, 0], columns | {"Q": size, "F2": table[:, -1]}, self.ends)
        out = self._tables(np.column_stack([t, *(found[i] for i in columns)]))
        if self.keep.size:
            lost = np.isinf(found["Q"])
            self.C[lost] = self.C[:, lost] = self.G[lost] = np.inf
            out |= {"C": self.C, "G": self.G}
        return out

    def _tables(self, table: Array) -> Measured:
        """Take rows of `curves` apart."""
        K, M = self.net.units
        R, Q, a, Et, F2 = np.split(table[:, 1:], np.cumsum([K * M, K * K, K, 1]), axis=1)
        shaped = {"R": R.reshape(-1, K, M), "Q": Q.reshape(-1, K, K), "a": a}
        return shaped | {"F2": F2[:, 0], "Et": Et[:, 0]}


def shared(F: Any, FH: Any) -> float:
    """Return the share of F(h) that is in F(x), from none to all."""
    size = float(np.vdot(FH, FH))
    return min(max(float(np.vdot(F, FH)) / size, 0.0), 1.0) if size else 0.0
