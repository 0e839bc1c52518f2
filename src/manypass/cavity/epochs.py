"""Epochs: every example is learned once in each, in a new order or always in the same.

The order of the examples is the law of one example's learning instants, and nothing else changes
in the cavity argument: one instant, uniform in each epoch of length α, at the same phase in all of
them if the order is fixed. Who is learned now has not been learned in this epoch: see `passes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manypass.cavity import passes
from manypass.cavity.grid import DIVERGED
from manypass.cavity.online import Online
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.orders import steps_by
from manypass.problem import Problem


class Epochs(Online):
    """`Online` with these instants; at `ends` an epoch ends, and what drives learning jumps.

    In a fixed order those who are learned before and after any t are different examples, with
    averages of their own.
    """

    limit = 0  # of the steps at which averages are those of t = 0⁺

    def __init__(self, problem: Problem, rule: Any, examples: Any, *rest: Any, **more: Any) -> None:
        size = examples[0].size
        self.fixed, self.again = problem.sequence == "fixed", problem.sequence == "replacement"
        self.where, self.forces, self.when = np.full(size, -1), np.zeros(size), np.zeros(size)
        self.all, self.none = np.ones(size, bool), np.zeros(size, np.int64)
        super().__init__(problem, rule, examples, *rest, **more)

    def step(self, t: float, z: NDArray[np.float32], before: Any, after: Any) -> float:
        """Go on to t; those learned after it see what is new then."""
        ended = t in self.ends
        if not (ended or self.fixed):
            return super().step(t, z, before, after)
        found = super().step(t, z, before, self.none)
        self._renew(ended, after)
        return found

    def _renew(self, ended: bool, after: Any) -> None:
        """Look again at those who are learned from now on, in a new epoch if one has ended."""
        if ended:
            learned = self.where >= 0
            self.past.turn(self.where, self.forces, self.t)
            self.last[learned], self.where[:], self.forces[:] = self.when[learned], -1, 0.0
        A, E, E_before, P, P_before = self.past.rows[:5, : self.past.count]
        one, E[:], P[:], _ = self._look(self.R, A, (self.none, after), complete=True)
        self.m = self._regress(self.R, A, one, E)
        E_before[:], P_before[:], self.one, self.before = E, P, one, one

    def _look(self, R: float, A: Array, instants: Any, complete: bool = False) -> Any:
        past, n, (before, after) = self.past, A.size, instants
        i = len(self.curves) - self.limit
        who = before + after > 0 if self.fixed and i else self.all
        own = past.own(n, None if complete else past.newest(n))
        response = past.rows[past.sources, :n] @ own
        one, E, P, self.x = passes.epoch(
            i,
            (self.t, R, self.m, self.v, self.pace(self.t, self.t)[0]),
            (past.z, past.e),
            (A, own, past.begin[:n]),
            self.examples,
            (who, before, after),
            (response[: n - past.first], self.where, self.forces, self.when),
            self.last,
            self.rule,
            self.problem.data.task == "classification",
        )
        return one, E, P, self._newest(n - 1)

    def _newest(self, n: int) -> Array:
        """⟨f_n e_c⟩ of the forces in cell n; with itself as the last."""
        mine = self.where == n - self.past.first
        forces = self.forces[mine]
        return np.asarray(np.append(forces @ self.past.e[mine, :n], forces @ forces) / mine.size)


class Batches(Epochs):
    """Batches of a share of the training set: steps Δ = βα in which all see the same weights.

    R ← (1 − vλΔ) R + vΔ⟨yF̂⟩ and A ← (1 − vλΔ) A + vΔ⟨F̂ z⟩ + push are the dynamics, not a scheme.
    With replacement every step is an epoch of its own, in which examples are learned as often as
    they are drawn: ⟨f²⟩ = (β + β²)⟨F̂²⟩.
    """

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, F2, Et after the last batch before each time; inf where they have diverged."""
        _, *values = np.array(self.curves).T
        done = steps_by(self.problem, t).astype(int)
        known = done < len(self.curves)
        known[known] &= np.max(values[1:3], axis=0)[done[known]] < DIVERGED
        out = np.full((4, t.size), np.inf)
        out[:, known] = np.array(values)[:, done[known]]
        return dict(zip(("R", "Q", "F2", "Et"), out, strict=True))

    limit = -1  # there is no t = 0⁺

    def pace(self, low: float, high: float) -> tuple[float, float]:
        """Rate and decay of a batch are those when it begins."""
        return super().pace(low, low)

    def begin(self, learned: Any) -> None:
        """Learn the first batch."""
        self._renew(False, learned)

    def step(self, t: float, z: NDArray[np.float32], before: Any, after: Any) -> float:
        """Go on to t by the batch that was learned last, and learn the next one."""
        past, problem, d = self.past, self.problem, t - self.t
        v, decay = self.pace(self.t, t)
        alpha, n, again = problem.data.alpha, past.count, self.again
        S = self._newest(n)
        past.append(z, self.new, self.t, t)
        A, E, _, P, _ = past.rows[:5, : n + 1]
        push, (heat, apart) = past.L[n, : n + 1], self._heat(d)
        push[:n] = v * d / math.sqrt(alpha) * P[:n]
        whole = v**2 * d * self.one[1] * (1 + again * problem.batch_share) + heat
        push[n] = math.sqrt(max(whole - push[:n] @ push[:n], 1e-9 * whole + 1e-24))
        drive = np.append(self.one[0], E)
        A[:] = past.weights.leap((v * d, decay, self.m), drive, push, apart)
        self.R = past.weights.R
        past.complete(self._row(S), P)
        self.t = t
        self._renew(again or t in self.ends, after)
        self._record(A)
        past.merge(t)
        return float(max(self.curves[-1][2:4]))
