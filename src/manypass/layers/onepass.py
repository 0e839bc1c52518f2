"""One-pass learning, α = ∞: every step takes a fresh example, and order parameters close.

dR/dt = v(⟨F yᵀ⟩ − λR);  dQ/dt = v(⟨F hᵀ⟩ + ⟨h Fᵀ⟩ − 2λQ) + v²⟨F Fᵀ⟩ + 2T;  da/dt = v_a⟨(ỹ − σ)g⟩.
∂U(t,s)/∂t = v(⟨∂F/∂h⟩ − λ)U with U(s,s) = 1 gives G = U and C = R T⁻¹Rᵀ + U (Q − R T⁻¹Rᵀ)(s).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from manypass import schedules
from manypass.checks import Array
from manypass.ensemble import Measured, averaged, in_order
from manypass.layers.averages import Fields, closed
from manypass.layers.errors import generalization
from manypass.layers.net import Net
from manypass.problem import Problem

SETS = 8  # of random points: their scatter is the error
DIVERGED = 1e12  # a |J|² beyond this is called infinite


class Course:
    """R, Q, a, and U if it is asked for, as one vector."""

    def __init__(self, problem: Problem, fields: Fields, two_time: bool) -> None:
        self.problem, self.fields, self.net = problem, fields, fields.net
        K, M = self.net.units
        self.shapes: list[tuple[int, ...]] = [(K, M), (K, K), (K,), *[(K, K)] * two_time]

    def joined(self, R: Array, Q: Array, a: Array) -> Array:
        """Return the vector, with U = 1."""
        one = [np.eye(len(a)).ravel()] if len(self.shapes) > 3 else []
        return np.concatenate([R.ravel(), Q.ravel(), a, *one])

    def split(self, state: Array) -> list[Array]:
        """Return R, Q, a, and U if there is one."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(state, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def rate(self, t: float, state: Array) -> Array:
        """Right-hand sides; that of Q is symmetric: rounding grows where learning settles."""
        problem, (R, Q, a, *moved) = self.problem, self.split(state)
        Q = (Q + Q.T) / 2
        v, decay = float(problem.v(t)), float(problem.decays(t))
        found = self.fields.at(R, Q, a)
        pull = found.FH - decay * Q
        noise = v * v * (found.FF + found.FF.T) / 2 + 2 * problem.temperature * np.eye(len(a))
        own: Any = problem.rule
        rates = [
            v * (found.FY - decay * R).ravel(),
            (v * (pull + pull.T) + noise).ravel(),
            own.second_rate * found.second,
        ]
        for U in moved:
            slope = found.slope(self.net, R, Q)
            rates.append((v * (slope @ U - decay * U)).ravel())
        return np.concatenate(rates)


def curves(problem: Problem, fields: Fields, t: Array, two_time: bool) -> Measured:
    """R, Q, a, F2, Et, Eg at times t, and C and G if asked for; inf once diverged."""
    course, net = Course(problem, fields, two_time), fields.net
    state = course.joined(net.R, net.Q, net.a)
    breaks = [b for b in schedules.breaks(problem.rate, problem.decay) if b < t[-1]]
    stops = np.unique(np.concatenate([[0.0], breaks, t if two_time else t[-1:]]))
    rows, fine = {0.0: state}, fields.accuracy

    def lost(_: float, state: Array) -> float:
        return DIVERGED - float(np.abs(state).max())

    lost.terminal = True  # type: ignore[attr-defined]
    for low, high in pairwise(stops):
        first, last = low + 1e-12 * (high - low), high - 1e-12 * (high - low)  # between breaks
        asked = t[(t > low) & (t <= high)]
        times = np.unique(np.append(np.clip(asked, first, last), last))
        order = "DOP853" if fields.closed else "RK45"
        settings: dict[str, Any] = {"method": order, "rtol": fine, "atol": fine}
        done = solve_ivp(course.rate, (first, last), state, t_eval=times, events=lost, **settings)
        reached = np.reshape(done.y, (state.size, -1)).T  # up to where it diverged, if it did
        rows |= dict(zip(asked.tolist(), reached, strict=False))
        if done.status != 0:
            break
        state = reached[-1]
        if two_time and high in t:  # U from there on
            state = course.joined(*course.split(state)[:3])
    return _read(course, t, rows, two_time)


def sampled(
    problem: Problem, t: Array, two_time: bool, seed: int, points: int, threads: int
) -> Measured:
    """Curves with `_se` where averages are over random points, from independent sets of them."""
    net = Net.of(problem)
    if closed(net):
        found = curves(problem, Fields(net), t, two_time)
        return found | {f"{name}_se": 0 * value for name, value in found.items()}
    seeds = np.random.SeedSequence(seed).generate_state(SETS).tolist()

    def work(own: int) -> Measured:
        return curves(problem, Fields(net, points, own), t, two_time)

    return averaged(in_order(work, seeds, threads))


def largest_error(found: Measured) -> float:
    """Return the largest error of a curve, as a share of its largest value."""
    shares = [0.0]
    for name, value in found.items():
        if name.endswith("_se") or name in ("C", "G"):
            continue
        fine = np.isfinite(value)
        error = np.max(found[f"{name}_se"][fine], initial=0.0)
        shares.append(float(error / np.max(np.abs(value[fine]), initial=1e-300)))
    return max(shares)


def _read(course: Course, t: Array, rows: dict[float, Array], two_time: bool) -> Measured:
    fields, net = course.fields, course.net
    known = [course.split(rows[time]) for time in t if time in rows]
    known = [[R, (Q + Q.T) / 2, *rest] for R, Q, *rest in known]
    n, (K, M) = len(known), net.units
    out = {
        "R": np.full((t.size, K, M), np.inf),
        "Q": np.full((t.size, K, K), np.inf),
        "a": np.full((t.size, K), np.inf),
        "F2": np.full(t.size, np.inf),
        "Et": np.full(t.size, 0.5 if net.classify else np.inf),
    }
    for i, (R, Q, a, *_) in enumerate(known):
        found = fields.at(R, Q, a)
        out["R"][i], out["Q"][i], out["a"][i] = R, Q, a
        out["F2"][i], out["Et"][i] = np.trace(found.FF), found.error
    out["Eg"] = generalization(net, out["R"], out["Q"], out["a"])
    if two_time:
        out["C"], out["G"] = np.full((2, t.size, t.size, K, K), np.inf)
        for j in range(n):
            R, Q = known[j][:2]
            along, U = R @ net.onto, np.eye(K)
            for i in range(n):
                out["G"][i, j] = 0.0
            for i in range(j, n):
                U = known[i][3] @ U if i > j else U
                C = known[i][0] @ along.T + U @ (Q - along @ R.T)
                out["C"][i, j], out["C"][j, i], out["G"][i, j] = C, C.T, U
    return out
