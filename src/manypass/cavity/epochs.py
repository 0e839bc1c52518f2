"""Epochs: every example is learned once in each, in a new order or always in the same.

The order of the examples is the law of one example's learning instants, and nothing else changes
in the cavity argument: one instant, uniform in each epoch of length α, at the same phase in all of
them if the order is fixed. Who is learned now has not been learned in this epoch: see `moments`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.cavity.grid import DIVERGED
from manypass.cavity.online import Online
from manypass.cavity.past import Normals
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.orders import steps_by
from manypass.problem import Problem


class Epochs(Online):
    """`Online` with these instants; at `ends` an epoch ends, and what drives learning jumps.

    In a fixed order those who are learned before and after any t are different examples, with
    averages of their own.
    """

    at_once = False  # not before its epoch ends

    def __init__(self, problem: Problem, student: Any, *rest: Any, **more: Any) -> None:
        super().__init__(problem, student, *rest, **more)
        self.fixed, self.again = problem.sequence == "fixed", problem.sequence == "replacement"

    def step(self, t: float, z: Normals, now: Any, then: Any) -> float:
        """Go on to t; those learned after it see what is new then."""
        ended = t in self.ends
        if self.fixed:
            self.who = now.half(late=True)
        found = super().step(t, z, now, then)
        if self.fixed:
            self.who = then.half(late=False)
        if ended or self.fixed:
            self._renew(ended, self.never)
        return found

    def _renew(self, ended: bool, after: Any) -> None:
        """Look again, in a new epoch if one has ended; some are learned now, so many times."""
        past, n = self.past, self.past.n
        if ended:
            past.turn(self.where, self.forces, self.t)
            self.student.ended(self.where >= 0)
            self.where[:], self.forces[:] = -1, 0.0
        A = past.rows[0, :, :n]
        found = self._look(self.R, A, self.a, self.none, after)
        self.m, self.one, E, P, _ = found
        past.rows[1:5, :, :n], self.before = (E, E, P, P), self.one
        self.steep = self.was = self.root * self.m


class Batches(Epochs):
    """Batches of a share of the training set: steps Δ = βα in which all see the same weights.

    R ← (1 − vλΔ) R + vΔ⟨yF̂⟩ and A ← (1 − vλΔ) A + vΔ⟨F̂ z⟩ + push are the dynamics, not a scheme.
    With replacement every step is an epoch of its own, in which examples are learned as often as
    they are drawn: ⟨f²⟩ = (β + β²)⟨F̂²⟩.
    """

    limit = -1  # there is no t = 0⁺

    def at(self, t: Array, scale: Any) -> Measured:
        """Return curves after the last batch before each time; inf where they have diverged."""
        done, table = steps_by(self.problem, t).astype(int), np.array(self.curves)
        known = done < len(table)
        known[known] &= (table[done[known], 1:3] < DIVERGED).all(axis=1)
        out = np.full((t.size, table.shape[1]), np.inf)
        out[known] = table[done[known]]
        return self._named(out)

    def pace(self, low: float, high: float) -> tuple[float, float]:
        """Rate and decay of a batch are those when it begins."""
        return super().pace(low, low)

    def begin(self, learned: Any) -> None:
        """Learn the first batch."""
        self._learn(False, learned)

    def _learn(self, ended: bool, learned: Any) -> None:
        """Learn a batch."""
        if self.fixed:
            self.who = learned.often > 0
        self._renew(ended, learned.often)

    def step(self, t: float, z: Normals, now: Any, then: Any) -> float:
        """Go on to t by the batch that was learned last, and learn the next one."""
        past, problem, d = self.past, self.problem, t - self.t
        (v, decay), (heat, apart) = self.pace(self.t, t), self._heat(d)
        if not (v or problem.temperature):
            self._stay(t)
            self._learn(self.again or t in self.ends, then)
            return self.largest
        n, share = past.n, self.again * problem.batch_share
        S = self.forces_on(self.where == past.count - past.first, n)
        past.append(z, self.new, self.t, t, v)
        A, E, _, P, _ = past.rows[:5, :, : past.n]
        along = v * d / math.sqrt(problem.data.alpha) * P[:, :n]
        self._put(along, v**2 * d * self.one.FF * (1 + share) + heat * past.one)
        drive, push = np.concatenate([self.one.D, E], axis=1), past.L[n : past.n, : past.n]
        A[:] = past.weights.leap((v * d, decay, self.m), drive, push, apart)
        self.R = past.weights.R
        self.a = self.a + self.student.second_rate * d * self.one.second
        past.complete(*self._row(S), P)
        self.t = t
        self._learn(self.again or t in self.ends, then)
        self._record(A)
        past.merge(t)
        return self.largest
