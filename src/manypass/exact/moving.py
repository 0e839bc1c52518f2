"""Modes while the rate or the decay moves: collocation in time, stiff or not.

On a panel of time all functions are polynomials through the nodes of Radau's quadrature, on which
the equations of `modes` hold exactly. Modes are coupled by F2 alone, which is eliminated first.
A panel is as long as its last coefficients are small; modes much faster than a panel follow the
others without being resolved, as they do in truth.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre

from manypass import schedules
from manypass.checks import Array
from manypass.exact.modes import Modes, State, joined
from manypass.problem import Problem

NODES = 14
ACCURACY = 1e-10  # of F2 and Q on a panel, relative to their size
LARGEST = 1e200  # beyond it a diverging solution is reported as inf
NONE = 1e-150  # below it there are no digits left to agree on, and nothing to be seen
PANELS = 20_000
EARLY = 1e-9  # of the time, how long the first panel is where the rate rises from nothing
ROUNDED = 1e-15  # of the largest rate: what it is rounded by, be it 1 − cos ωt
CLOSE = 1e-5  # of a time, what is about it has digits enough to be told apart


class Moving:
    """The modes of a problem from `before`, the state at the time `begin`, until `end`."""

    def __init__(
        self, problem: Problem, modes: Modes, before: State, begin: float, end: float
    ) -> None:
        self.problem, self.modes, self.begin = problem, modes, begin
        self.end = end - 1e-13 * (end - begin)  # just before a break
        self.edges = [0.0]
        self.values: list[State] = []  # on the points of every panel
        span = end - begin
        v, decay = self._rates(np.zeros(1))
        step = min(span, 1 / max(float(v[0] * (decay[0] + modes.h.max())), 1 / span))
        (later,), _ = self._rates(np.array([step]))
        if not before.e.any() and v[0] < 1e-3 * later:  # R, Q ~ t², and R/√Q is wanted
            step = min(step, max(EARLY * span, CLOSE * begin))
        self.lost, self.rounded = np.inf, ROUNDED * schedules.largest(problem.rate)
        before = self._quiet(before, -1.0)
        while (left := span - self.edges[-1]) > 1e-12 * span:
            step = min(step, left) if left > 1.01 * step else left
            state, error = self._panel(before, self.edges[-1], step)
            if not error <= 1 and step > 1e-9 * span:
                step *= max(0.3, 0.9 * error ** (-1 / NODES)) if np.isfinite(error) else 0.3
                continue
            if len(self.values) == PANELS:
                raise ValueError(
                    f"`rate` {problem.rate} moves too fast to be followed to t = {end:g}"
                )
            self.values.append(state)
            self.edges.append(self.edges[-1] + step)
            before = self._quiet(state.last(), self.edges[-1])
            step *= min(2.0, 0.9 * max(error, 1e-12) ** (-1 / NODES))

    def at(self, t: Array) -> State:
        """Return the state a time t later."""
        owner = self._owner(t)
        parts = []
        for i in np.unique(owner):
            mine = owner == i
            weights = self._weights(i, t[mine])
            state = State(*(column @ weights.T for column in vars(self.values[i]).values()))
            gone = (t[mine] > self.lost) & (self.modes.h[:, None] > 0)
            parts.append(replace(state, n=np.where(gone, np.inf, np.maximum(state.n, 0.0))))
        return joined(parts)

    def _quiet(self, state: State, now: float) -> State:
        """Return the state, without its noise once that has diverged: means go on by themselves."""
        if np.isfinite(state.n).all() and self.modes.F2(state)[0] < LARGEST:
            return state
        self.lost = min(self.lost, now)
        self.modes = replace(self.modes, online=False)
        return replace(state, n=np.where(self.modes.h[:, None] > 0, 0.0, state.n))

    def _owner(self, t: Array) -> Array:
        return np.minimum(np.searchsorted(self.edges[1:], t, "left"), len(self.values) - 1)

    def _weights(self, panel: int, t: Array) -> Array:
        """Weights of the values on the points of a panel in those at times t."""
        low, high = self.edges[panel], self.edges[panel + 1]
        place = 2 * (t - low) / (high - low) - 1
        weights = legendre.legvander(place, NODES) @ coefficients()
        for end, value in ((0, low), (-1, high)):  # where a panel begins, e may be exactly zero
            weights[t == value] = np.eye(NODES + 1)[end]
        return np.asarray(weights)

    def _rates(self, t: Array) -> tuple[Array, Array]:
        """Return v and λ at times since the beginning."""
        now = np.minimum(self.begin + t, self.end)
        return self.problem.v(now), self.problem.decays(now)

    def _panel(self, before: State, low: float, step: float) -> tuple[State, float]:
        """Return the state on the points of a panel, and its error in units of the accuracy."""
        modes, (points, D, integral) = self.modes, radau()
        v, decay = self._rates(low + step * points[1:])
        x = v * (decay + modes.h[:, None])  # modes × nodes
        first, inner = D[:, 0] / step, D[:, 1:] / step

        def solved(rates: Array, start: Array, *pushes: Array) -> list[Array]:
            """Solve dy/dt = −rate y + push on the nodes; more pushes, from zero, are columns."""
            matrix = inner + rates[:, :, None] * np.eye(NODES)
            right = np.stack([pushes[0] - start * first, *pushes[1:]], axis=2)
            out = np.asarray(np.linalg.solve(matrix, right), float)
            return [out[:, :, i] for i in range(out.shape[2])]

        none = np.zeros_like(x)
        (e,) = solved(x, before.e, none + v)
        (u,) = solved(x, before.u, none + v * decay) if modes.h.any() else (none + 1,)
        (E,) = solved(x, before.E, none)
        u = np.where(modes.h[:, None] > 0, u, 1.0)
        (w,) = solved(x, before.w, v * u) if modes.tested else (none,)
        # n = n₁ + Σ_j F2(t_j) n_j: what a force at the j-th node does to every node
        kicks = modes.g[:, None] * v**2 * modes.online
        one_by_one = [kicks * unit for unit in np.eye(NODES)]
        n, *answers = solved(2 * x, before.n, none + modes.heat, *one_by_one)
        loud = modes.rho * modes.h
        fed = np.array([loud @ answer for answer in answers]).T
        all_v, all_decay = self._rates(low + step * points)
        s = before.s + step * (np.array([all_v, all_v * all_decay]) @ integral.T)[:, 1:]
        mean = modes.mean_F2(State(e, u, E, none, w, s))
        F2 = np.linalg.solve(np.eye(NODES) - fed, mean + loud @ n)
        n = n + np.tensordot(F2, np.array(answers), 1)
        state = State(
            *(
                np.hstack(pair)
                for pair in zip(vars(before).values(), (e, u, E, n, w, s), strict=True)
            )
        )
        errors = [tail(modes.F2(state)), tail(modes.Q(state)), tail(modes.R(state))]
        learned, spent = float(s[0, -1]), self.begin + low + step  # ∫v dt is known no better
        known = self.rounded * spent / learned if learned else 0.0
        return state, max(errors) / max(ACCURACY, known)


@lru_cache(1)
def radau() -> tuple[Array, Array, Array]:
    """Points 0 and Radau's on (0, 1], derivatives on the latter, integrals up to all of them."""
    from scipy.special import roots_jacobi  # constant rates need nothing of it

    inner, _ = roots_jacobi(NODES - 1, 1, 0)  # of P_n + P_{n−1} at −x, which has x = 1 as well
    points = np.array([0.0, *(1 + inner) / 2, 1.0])
    back, eye = np.linalg.inv(legendre.legvander(2 * points - 1, NODES)), np.eye(NODES + 1)
    slope, total = legendre.legder(eye), legendre.legint(eye, lbnd=-1)
    D = 2 * legendre.legval(2 * points[1:] - 1, slope).T @ back
    S = legendre.legval(2 * points - 1, total).T / 2 @ back
    return points, D, S


@lru_cache(1)
def coefficients() -> Array:
    """Return what takes values on the points to coefficients of Legendre polynomials."""
    return np.asarray(np.linalg.inv(legendre.legvander(2 * radau()[0] - 1, NODES)))


def tail(values: Array) -> float:
    """Size of the last coefficients of a polynomial, relative to its largest value."""
    largest = max(np.abs(values).max(), NONE)
    return (
        float(np.abs(coefficients()[-2:] @ values).max() / largest) if largest < np.inf else np.inf
    )
