"""On-line learning of one population: the mean-field equations, closed by its own averages.

dR/dt = −vλR + v⟨yF⟩;  dA_c/dt = −vλA_c + v⟨F z_c⟩, and in each step the push ζ = Σ_c l_c z_c of
all other examples. ⟨F z_c⟩ = Σ_d ⟨∂F/∂ζ_d⟩ L_dc, Gaussian integration by parts, is the response to
every past push without any slope: forces may jump. l_c = (vΔ/√α)⟨F e_c⟩; see `Past`. With
correlated inputs the same holds for every eigenvalue: see `Weights`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from manypass import schedules
from manypass.cavity import moments
from manypass.cavity.grid import at
from manypass.cavity.past import Past
from manypass.cavity.weights import Weights
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.problem import Problem


class Online:
    """R, Q, F2 and E_t from t = 0 on, and C and G at the times to be kept; second order in Δ.

    One look at the population per step: what is measured at the extrapolated R and A corrects
    them. The decay with λ − m, m being the regression of F on h, is integrated exactly.
    """

    drift = True  # whether the regression of F on h includes that on R y

    def __init__(
        self,
        problem: Problem,
        rule: Any,
        examples: tuple[Array, Array],
        per: float,
        keep: Array,
        ends: Array | None = None,
        begin: NDArray[np.float32] | None = None,
    ) -> None:
        self.problem, self.rule, self.examples, self.keep = problem, rule, examples, keep
        y, target = examples
        known = np.stack([np.ones(y.size), y, target], axis=1)
        self.ends = np.zeros(0) if ends is None else ends
        weights = Weights(problem.teacher.inputs, problem.temperature > 0)
        alpha, shuffled = problem.data.alpha, ends is not None
        self.past = Past(weights, alpha, known, per, keep.size, shuffled)
        self.breaks = schedules.breaks(problem.rate, problem.decay)
        self.v, self.decay = self.pace(0.0, 0.0)
        self.last = np.full(y.size, -1.0)  # not yet learned: before the start, too
        self.t = self.d = self.m = 0.0
        self.R = problem.start.R if problem.start else 0.0
        weights.V[0] = self.R * weights.V[1]
        if begin is not None and problem.start and problem.start.c:
            self.past.start_from(begin, math.sqrt(problem.start.c))
        self.begun = self.past.count
        self.new = np.zeros(y.size, np.float32)  # forces learned right after now
        self.pair = 0.0  # ⟨F f⟩ of the newest cell
        self.C, self.G = np.zeros((2, keep.size, keep.size))
        self.kept = np.zeros(keep.size)
        none = np.zeros(y.size, np.int64)
        self.curves: list[tuple[float, ...]] = []
        A = self.past.rows[0, : self.begun].copy()
        one, E, P, *_ = self._look(self.R, A, (none, none))
        self.m = self._regress(self.R, A, one, E) if self.R or self.begun else 0.0
        self.past.rows[1:5, : self.begun] = E, E, P, P
        self.one = self.before = one  # ⟨yF⟩ − mR, F2, E_t now and a step before
        self._record(A)

    def pace(self, low: float, high: float) -> tuple[float, float]:
        """Rate and decay in the middle of a step, which a break of a schedule would end."""
        middle = (low + min([high, *(b for b in self.breaks if b > low)])) / 2
        return float(self.problem.v(middle)), float(self.problem.decays(middle))

    def step(self, t: float, z: NDArray[np.float32], before: Any, after: Any) -> float:
        """Go on to t, with new normals; return Q or ⟨F²⟩, whichever is larger.

        An example is learned so often in the later half of this step, and in the earlier of the
        next: `before` the measurement at t and `after` it.
        """
        past, d = self.past, t - self.t
        self.v, self.decay = self.pace(self.t, t)
        past.append(z, self.new, self.t, t)
        n, ratio = past.count - 1, d / self.d if self.d else 0.0
        E, E_before, P, P_before = past.rows[1:5, : n + 1]
        one = self.one + ratio * (self.one - self.before)
        one[1] = max(one[1], self.one[1] / 2)
        E_then, P_then = E + ratio * (E - E_before), P + ratio * (P - P_before)
        self.pair *= ratio
        self._push(d, one[1], P_then)
        E_then[n] = self._guess(n, E, d)
        R, A_then = self._advance(d, self.m, one, E_then)
        self.t = t
        one, E_then, P_then, S = self._look(R, A_then, (before, after))
        self.pair = P_then[n]
        m = self._regress(R, A_then, one, E_then)
        self._push(d, one[1], P_then, S)
        R, A_then = self._advance(d, m, one, E_then)
        past.complete(self._row(S), P_then)
        past.rows[:5, : n + 1] = A_then, E_then, E, P_then, P
        past.rows[[2, 4], n] = E_then[n], P_then[n]  # had no past: take them as constant
        self.R, self.m, self.d, self.one, self.before = R, m, d, one, self.one
        self._record(A_then)
        past.merge(self.t)
        return float(max(self.curves[-1][2:4]))

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, F2, Et at the times; C and G if they were kept; inf where they have diverged."""
        grid, *values = np.array(self.curves).T
        curves = dict(zip(("R", "Q", "F2", "Et"), values, strict=True))
        out = at(t, scale, grid, curves, self.ends)
        if self.keep.size:
            self.C[np.isinf(out["Q"])] = self.C[:, np.isinf(out["Q"])] = np.inf
            self.G[np.isinf(out["Q"])] = np.inf
            out |= {"C": self.C, "G": self.G}
        return out

    def _guess(self, n: int, E: Array, d: float) -> float:
        """⟨F z⟩ of the new normals, if the slope is that of the last ones."""
        past = self.past
        new = past.weights.fresh(past.L[n, n], self._heat(d)[1])
        size = math.sqrt(float(new @ new))
        return float(E[n - 1] / past.rows[0, n - 1] * size) if n else 0.0

    def _heat(self, d: float) -> tuple[float, float]:
        """2TΔ, with the pushes or apart from them."""
        heat, apart = 2 * self.problem.temperature * d, self.past.weights.apart
        return (0.0, heat) if apart else (heat, 0.0)

    def _push(self, d: float, F2: float, P: Array, S: Array | None = None) -> None:
        """Put the push of this step into L, given ⟨F²⟩ and ⟨F e⟩ at its end.

        Which example comes next is never known, only the mean force, of variance ⟨F²⟩/α.
        """
        v, past, n = self.v, self.past, P.size - 1
        alpha, F2 = self.problem.data.alpha, (self.one[1] + F2) / 2
        push, known = past.L[n], v**2 * d**2 / alpha * F2
        push[:n] = v * d / math.sqrt(alpha) * (past.rows[3, :n] + P[:n]) / 2
        whole = max(v**2 * d * F2 + v * d * self.pair, known) + self._heat(d)[0]
        # Where all is learned nothing pushes any more, and a response to nothing is no number.
        least = 1e-9 * whole + 1e-10 * self.curves[-1][2] + 1e-24
        push[n] = math.sqrt(max(whole - push[:n] @ push[:n], least))

    def _row(self, S: Array) -> Array:
        """Coefficients of e in the forces of this step."""
        past, n = self.past, S.size - 1
        return past.row(S, self._heat(past.end[n] - past.begin[n])[0])

    def _advance(self, d: float, m: float, one: Array, E: Array) -> tuple[float, Array]:
        """R and A a step on, given the averages there and the push in between."""
        n, weights = E.size - 1, self.past.weights
        now, then = np.append(self.one[0], self.past.rows[1, : n + 1]), np.append(one[0], E)
        step = (self.v * d, self.decay, (self.m + m) / 2)
        A = weights.advance(step, now, then, self.past.L[n, : n + 1], self._heat(d)[1])
        return weights.R, A

    def _regress(self, R: float, A: Array, one: Array, E: Array) -> float:
        """Return m of F on h = R y + Σ A z; take the rest of it out of what was measured."""
        known = R if self.drift else 0.0
        size = known**2 + A @ A
        change = (one[0] * known + E @ A) / size if size else 0.0
        E -= change * A
        one[0] -= change * R
        return float(self.m + change)

    def _look(self, R: float, A: Array, instants: Any) -> Any:
        past = self.past
        *found, self.x, self.new = moments.online(
            len(self.curves),
            (self.t, R, self.m, self.v, self._next_rate()),
            (past.z, past.e),
            (A, past.own(A.size, past.newest(A.size)), past.begin[: A.size]),
            self.examples,
            instants,
            self.last,
            self.rule,
            self.problem.data.task == "classification",
        )
        return found

    def _next_rate(self) -> float:
        """Rate in the next step, which will be about as long as this one."""
        n = self.past.count - 1
        d = self.past.end[n] - self.past.begin[n] if n >= 0 else 0.0
        return self.pace(self.t, self.t + d)[0]

    def _record(self, A: Array) -> None:
        """Keep the curves and, at a time that was asked for, C and G."""
        F2, Et = self.one[moments.MEASURED], self.one[moments.MISSED]
        self.curves.append((self.t, self.R, self.R**2 + float(A @ A), F2, Et))
        for k in np.flatnonzero(self.keep == self.t):
            rows, n = self.past.rows[5:], A.size
            rows[k, :n], self.kept[k] = A, self.R
            self.C[k, : k + 1] = self.R * self.kept[: k + 1] + rows[: k + 1, :n] @ A
            self.C[: k + 1, k] = self.C[k, : k + 1]
            self.G[k, : k + 1] = self._response(A, self.t - self.keep[: k + 1])

    def _response(self, A: Array, lags: Array) -> Array:
        """G at given lags: it is smooth in log(Δ + lag) between the middles of the cells."""
        n, past = A.size, self.past
        G = past.response(n)[self.begun :][::-1]
        if G.size < 2:
            return np.where(lags > 0, G, 1.0) if G.size else np.ones(lags.size)
        middles = (past.begin[self.begun : n] + past.end[self.begun : n]) / 2
        lag = np.append(self.t - middles[::-1], self.t)
        scale = np.log(lag + self.t - past.begin[n - 1])
        first = G[-1] + (G[-1] - G[-2]) * (scale[-1] - scale[-2]) / (scale[-2] - scale[-3])
        scale = np.append(np.log(self.t - past.begin[n - 1]), scale)
        spline = CubicSpline(scale, [1.0, *G, first])
        return np.asarray(spline(np.log(lags + self.t - past.begin[n - 1])))
