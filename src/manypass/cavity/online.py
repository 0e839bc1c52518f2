"""On-line learning of one population: the mean-field equations, closed by its own averages.

dR/dt = −vλR + v⟨F yᵀ⟩;  dA_c/dt = −vλA_c + v⟨F z_cᵀ⟩, and in each step the push ζ = Σ_c l_c z_c of
all other examples. ⟨F z_cᵀ⟩ = Σ_d ⟨∂F/∂ζ_d⟩ L_dc, Gaussian integration by parts, is the response to
every past push without any slope: forces may jump. l_c = (vΔ/√α)⟨F e_cᵀ⟩; see `Past`. A second
layer learns by da/dt = v_a⟨(ỹ − σ)g(x)⟩. All are K-vectors and K × K matrices; what a step is, and
what is remembered, is the same for one unit as for a network of them. How averages over the
population are taken is theirs: see `Unit` and `Network`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass import schedules
from manypass.cavity.blocks import quotient, root_of, trace
from manypass.cavity.grid import at
from manypass.cavity.instants import no_events
from manypass.cavity.modes import Modes
from manypass.cavity.past import Normals, Past
from manypass.cavity.settling import unchanging
from manypass.cavity.weights import Weights
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.problem import Problem

NONE = 1e-280  # a push so small is none


@dataclass(slots=True)
class Looked:
    """What drives: D = ⟨F yᵀ⟩ less mR, ⟨F Fᵀ⟩, ⟨(ỹ − σ)g⟩; and what is measured."""

    D: Array
    FF: Array
    second: Array
    F2: float
    Et: float

    def ahead(self, before: Looked, ratio: float) -> Looked:
        """Extrapolate what drives."""
        D = self.D + ratio * (self.D - before.D)
        FF = self.FF + ratio * (self.FF - before.FF)
        second = self.second + ratio * (self.second - before.second)
        if not trace(FF) > trace(self.FF) / 2:
            FF = self.FF / 2
        return Looked(D, FF, second, self.F2, self.Et)


class Online:
    """R, Q, F2, E_t (and a) from t = 0 on, and C and G at the times to be kept; second order in Δ.

    One look at the population per step: what is measured at the extrapolated R and A corrects
    them. The decay with λ − m, m being the mean slope of F, is integrated exactly. Learning starts
    as √t: averages are extrapolated as lines in √t, and so is √t m, which is finite where all x
    start at a jump of F; from given weights as if it had started earlier, by a `shift`.
    """

    limit = 0  # of the steps at which averages are those of t = 0⁺
    at_once = True  # an example knows what it has learned

    def __init__(
        self,
        problem: Problem,
        student: Any,
        per: float,
        keep: Array,
        ends: Array | None = None,
        begin: Normals | None = None,
    ) -> None:
        self.problem, self.student, self.keep = problem, student, keep
        self.ends = np.zeros(0) if ends is None else ends
        K, M = student.R.shape
        heat, inputs = problem.temperature > 0, problem.teacher.inputs
        weights = Weights(K, M) if problem.teacher.isotropic else Modes(inputs, heat)
        alpha = problem.data.alpha
        self.past = Past(weights, alpha, student.known, per, keep.size, ends is not None)
        self.scheduled, self.breaks = (
            problem.scheduled,
            schedules.breaks(problem.rate, problem.decay),
        )
        self.v, self.decay = self.pace(0.0, 0.0)
        self.R, self.a, self.t, self.d, self.m = student.R, student.a, 0.0, 0.0, 0.0
        self.root, self.change, self.shift = 0.0, 0.0, 0.0  # √(t + shift), its last step
        self.still = 0  # steps in which the rate is 0; before it is more, until `origin`
        self.origin = 0.0
        weights.begin(self.R)
        if begin is not None and student.root.any():
            self.past.start_from(begin, student.root)
        self.begun, self.Q = self.past.count, 0.0
        self.young = student.young
        self._wait(len(student.known))
        self.new: Any = 0.0  # forces in the next step that are known by now
        self.pair = np.zeros((K, K))  # ⟨F fᵀ⟩ of the newest cell
        self.C, self.G = np.zeros((2, keep.size, keep.size, K, K))
        self.kept = np.zeros((keep.size, K, M))
        self.curves: list[tuple[float, ...]] = []
        A = self.past.rows[0, :, : self.past.n].copy()
        self.m, self.one, E, P, _ = self._look(self.R, A, self.a, self.none)
        self.before = self.one  # what drives now and a step before
        self.steep = self.was = 0.0  # √t m, too
        self.past.rows[1:5, :, : self.past.n] = E, E, P, P
        self._record(A)

    def pace(self, low: float, high: float) -> tuple[float, float]:
        """Rate and decay in the middle of a step, which a break of a schedule would end."""
        if not self.scheduled:  # twice a step
            return float(self.problem.rate), float(self.problem.decay)
        middle = (low + min([high, *(b for b in self.breaks if b > low)])) / 2
        return float(self.problem.v(middle)), float(self.problem.decays(middle))

    def step(self, t: float, z: Normals, now: Any, then: Any) -> float:
        """Go on to t, with new normals (K × examples); return Q or ⟨F²⟩, whichever is larger.

        `now` are the learning instants in this step, `then` those in the next.
        """
        past, d = self.past, t - self.t
        self.v, self.decay = self.pace(self.t, t)
        if not (self.v or self.problem.temperature):
            return self._stay(t)
        if not self.d:
            self._begin(d)
        root = math.sqrt(t - self.origin + self.shift)
        past.append(z, self.new, self.t, t, self.v)
        own, n, ratio = past.newest, past.n, (root - self.root) / self.change if self.d else 0.0
        E, E_before, P, P_before = past.rows[1:5, :, :n].copy()
        one = self.one.ahead(self.before, ratio)
        E_then, P_then = self._ahead(E, E_before, ratio), self._ahead(P, P_before, ratio)
        self.pair = d / self.d * self.pair if self.d else self.pair
        self._push(d, one.FF, P_then)
        E_then[:, own] = self._guess(own, E, d)
        steep = self.steep + ratio * (self.steep - self.was)
        R, A, a = self._advance(d, self._mean(steep, root), one, E_then)
        self.t = t
        m, one, E_then, P_then, S = self._look(R, A, a, now)
        self.pair = P_then[:, own].copy()
        self._push(d, one.FF, P_then, S)
        self.R, A, self.a = self._advance(d, self._mean(root * m, root), one, E_then)
        past.complete(*self._row(S), P_then)
        past.rows[:5, :, :n] = A, E_then, E, P_then, P
        past.rows[2, :, own], past.rows[4, :, own] = E_then[:, own], P_then[:, own]  # had no past
        self.m, self.d, self.one, self.before = m, d, one, self.one
        self.root, self.change = root, root - self.root
        self.steep, self.was = root * m, self.steep
        self._record(A)
        past.merge(self.t)
        return self.largest

    @property
    def looks(self) -> int:
        """How often the population has been looked at, at the beginning and while it learned."""
        return len(self.curves) - self.still

    def _stay(self, t: float) -> float:
        """Go on to t with the weights as they are: nothing is learned, not yet or for a while."""
        if self.d:
            self.shift -= t - self.t
        else:
            self.origin = t
        self.t = t
        self.still += 1
        self._record(self.past.rows[0, :, : self.past.n])
        return self.largest

    def _wait(self, size: int) -> None:
        """Nobody is learned in this epoch so far."""
        K = self.past.K
        self.none, self.never = no_events(size, K), np.zeros(size, np.int64)
        self.who = np.ones(size, bool)  # of whom averages are that drive
        self.where, self.forces = np.full(size, -1), np.zeros((size, K))  # learned in this epoch

    def take(self, who: Any, share: Normals) -> None:
        """Go on with these examples, each of which stands for a share of all."""
        self.past.take(who, share)
        self.student.take(who)
        self._wait(who.size)

    @property
    def largest(self) -> float:
        """Q or ⟨F²⟩, whichever is larger."""
        return max(self.Q, float(self.one.F2))

    def at(self, t: Array, scale: Any) -> Measured:
        """Return curves at the times; C and G if they were kept; inf where they have diverged."""
        fading = self.v * self.decay if unchanging(self.problem) else None
        table = at(t, scale, np.array(self.curves), [*self.ends, self.origin], fading)
        out = self._named(table)
        if self.keep.size:
            lost = np.isinf(table[:, 1])
            self.C[lost] = self.C[:, lost] = self.G[lost] = np.inf
            shape = (t.size, t.size, *self.student.shapes["Q"])
            out |= {"C": self.C.reshape(shape), "G": self.G.reshape(shape)}
        return out

    def _named(self, table: Array) -> Measured:
        """Take rows of `curves` apart."""
        out, at = {"F2": table[:, 2], "Et": table[:, 3]}, 4
        for name, shape in self.student.shapes.items():
            out[name] = table[:, at : at + math.prod(shape)].reshape(-1, *shape)
            at += math.prod(shape)
        return out

    def _ahead(self, now: Array, before: Array, ratio: float) -> Array:
        """Extrapolate; what was new in the last step goes on as did what had been new before it."""
        change, K = ratio * (now - before), self.past.K
        if change.shape[1] > 2 * K:
            change[:, -2 * K : -K] = change[:, -3 * K : -2 * K]
        return now + change

    def _begin(self, t: float) -> None:
        """Find how |h|² grows, ∝ t + shift, in the first step, to t; and √(t + shift) m."""
        heat, apart = self._heat(1.0)
        push = root_of(self.v**2 * self.one.FF + heat * self.past.one, NONE)
        speed = trace(self.past.weights.shown(push, apart))
        self.steep = self.was = float(self.student.edge / speed)
        if self.begun:
            self.shift = min(self.Q / speed**2, 1e6 * t)
            self.root = math.sqrt(self.shift)
            self.steep = self.was = self.root * self.m

    def _mean(self, steep: float, root: float) -> float:
        """Mean of m in a step, exact for a + b/√t, given √t m at its end."""
        return (self.steep + steep) / (self.root + root)

    def _guess(self, own: slice, E: Array, d: float) -> Array:
        """⟨F zᵀ⟩ of the new normals, if the slope is that of the last ones."""
        past = self.past
        new = past.weights.shown(past.L[own, own], self._heat(d)[1])
        if own.start == 0:
            return np.asarray(self.student.rise(self.m) @ new)
        last = slice(own.start - past.K, own.start)
        return np.asarray(quotient(E[:, last], past.rows[0, :, last], 0.0) @ new)

    def _heat(self, d: float) -> tuple[float, float]:
        """2TΔ, with the pushes or apart from them."""
        heat, apart = 2 * self.problem.temperature * d, self.past.weights.apart
        return (0.0, heat) if apart else (heat, 0.0)

    def _push(self, d: float, FF: Array, P: Array, S: Array | None = None) -> None:
        """Put the push of this step into L, given ⟨F Fᵀ⟩ and ⟨F eᵀ⟩ at its end.

        Which example comes next is never known, only the mean force, of variance ⟨F Fᵀ⟩/α.
        """
        v, past, alpha = self.v, self.past, self.problem.data.alpha
        n, FF = P.shape[1] - past.K, (self.one.FF + FF) / 2
        along = v * d / math.sqrt(alpha) * (past.rows[3, :, :n] + P[:, :n]) / 2
        whole, known = v**2 * d * FF + v * d * (self.pair + self.pair.T) / 2, v**2 * d**2 / alpha
        whole = whole if trace(whole) > known * trace(FF) else known * FF
        # Where all is learned nothing pushes any more, and a response to nothing is no number.
        self._put(along, whole + self._heat(d)[0] * past.one, 1e-10 * self.Q)

    def _put(self, along: Array, whole: Array, least: float = 0.0) -> None:
        """Put a push of covariance `whole` into L, of which the coefficients of old z are known."""
        past, n = self.past, along.shape[1]
        least = (1e-9 * trace(whole) + least) / past.K + NONE
        past.L[n : n + past.K, :n] = along
        past.L[n : n + past.K, n : n + past.K] = root_of(whole - along @ along.T, least)

    def _row(self, S: Array) -> tuple[Array, Array]:
        """Coefficients of e in the forces of this step."""
        past, n = self.past, self.past.count - 1
        return past.row(S, self._heat(past.end[n] - past.begin[n])[0])

    def _advance(self, d: float, m: float, one: Looked, E: Array) -> tuple[Array, Array, Array]:
        """R, A and a a step on, given the mean slope, the averages there and the push between."""
        n, past = E.shape[1], self.past
        now = np.concatenate([self.one.D, past.rows[1, :, :n]], axis=1)
        then = np.concatenate([one.D, E], axis=1)
        then[:, -past.K :] *= self.young
        step, push = (self.v * d, self.decay, m), past.L[n - past.K : n, :n]
        A = past.weights.advance(step, now, then, push, self._heat(d)[1])
        a = self.a + self.student.second_rate * d * (self.one.second + one.second) / 2
        return past.weights.R, A, a

    def _look(self, R: Array, A: Array, a: Array, instants: Any, after: Any = None) -> Any:
        """Return m, what else drives, ⟨F zᵀ⟩ and ⟨F eᵀ⟩ less mh, and ⟨f eᵀ⟩ of the newest cell.

        Those `after` it are learned now, so many times.
        """
        past, n = self.past, A.shape[1]
        complete = after is not None or past.count == self.begun
        own = past.own(n, None if complete else past.latest(n))
        sources = past.rows[past.sources][: past.count - past.first, :, :n]
        response = np.ascontiguousarray((sources @ own.T).transpose(0, 2, 1))
        learned = self.who, instants, self.never if after is None else after, self.at_once
        return self.student.look(self, (R, A, a), own, learned, response)

    def forces_on(self, mine: Any, n: int) -> Array:
        """⟨f eᵀ⟩ of the forces f of these examples, over n columns; with themselves at its end."""
        f, e = self.forces[mine], self.past.e[mine, :n]
        return np.asarray(np.concatenate([f.T @ e, f.T @ f], axis=1) / mine.size)

    def _record(self, A: Array) -> None:
        """Keep the curves and, at a time that was asked for, C and G."""
        R, onto = self.R, self.student.onto
        Q, one = R @ onto @ R.T + A @ A.T, self.one
        self.Q = trace(Q)
        self.curves.append((self.t, self.Q, one.F2, one.Et, *R.flat, *Q.flat, *self.a))
        for k in np.flatnonzero(self.keep == self.t):
            rows, n = self.past.rows[self.past.kept], A.shape[1]
            rows[k, :, :n], self.kept[k] = A, R
            for j in range(k + 1):
                self.C[k, j] = R @ onto @ self.kept[j].T + A @ rows[j, :, :n].T
                self.C[j, k] = self.C[k, j].T
            self.G[k, : k + 1] = self._response(A, self.t - self.keep[: k + 1])

    def _response(self, A: Array, lags: Array) -> Array:
        """G at given lags: it is smooth in log(Δ + lag) between the middles of the cells."""
        past, cells, one = self.past, self.past.count, self.past.one
        G = past.response(A.shape[1])[self.begun :][::-1]
        if len(G) < 2:
            return np.array([G[0] if len(G) and lag > 0 else one for lag in lags])
        begin, end = past.begin[self.begun : cells][::-1], past.end[self.begun : cells][::-1]
        if len(G) > 3:  # the first cell and the next are not told apart well: see `Past.merge`
            wide = (end - begin)[-2:, None, None]
            G = np.append(G[:-2], (wide * G[-2:]).sum(axis=0)[None] / wide.sum(), axis=0)
            begin, end = np.delete(begin, -2), np.delete(end, -1)
        lag = np.append(self.t - (begin + end) / 2, self.t - self.origin)
        lags = np.minimum(lags, lag[-1])  # from before anything was learned
        newest = self.t - past.begin[cells - 1]
        scale = np.log(lag + newest)
        first = G[-1] + (G[-1] - G[-2]) * (scale[-1] - scale[-2]) / (scale[-2] - scale[-3])
        scale = np.append(np.log(newest), scale)
        return np.asarray(CubicSpline(scale, [one, *G, first])(np.log(lags + newest)))
