"""Epochs and batches of networks with two layers: as `epochs`, for K-vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.cavity import layered_moments as moments
from manypass.cavity.blocks import Normals, root_of
from manypass.cavity.grid import DIVERGED
from manypass.cavity.layered import Layered, shared
from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.orders import steps_by
from manypass.problem import Problem


class LayeredEpochs(Layered):
    """Every example once in each epoch; at `ends` one ends, and what drives learning jumps."""

    def __init__(
        self, problem: Problem, fields: Any, examples: Any, *rest: Any, **more: Any
    ) -> None:
        size, K = len(examples[1]), len(fields.net.a)
        self.again = problem.sequence == "replacement"
        self.where, self.forces = np.full(size, -1), np.zeros((K, size), np.float32)
        super().__init__(problem, fields, examples, *rest, **more)

    def step(self, t: float, z: Normals, before: Any, after: Any) -> float:
        """Go on to t; those learned after it see what is new then."""
        if t not in self.ends:
            return super().step(t, z, before, after)
        found = super().step(t, z, before, self.none)
        self._renew(True, after)
        return found

    def _renew(self, ended: bool, after: Any) -> None:
        """Look again at those who are learned from now on, in a new epoch if one has ended."""
        past, n = self.past, self.past.n
        if ended:
            past.turn(self.where, self.forces, self.t)
            self.where[:], self.forces[:] = -1, 0.0
        A = past.rows[0, :, :n].copy()
        given = (self.R, A, self.a, (self.none, after))
        self.one, E, P, _ = self._look(*given, complete=True)
        past.rows[1:5, :, :n] = E, E, P, P
        self.before = self.one

    def _look(self, R: Array, A: Array, a: Array, instants: Any, complete: bool = False) -> Any:
        past, n, target, K = self.past, A.shape[1], self.examples[1], self.K
        own = past.own(A, None if complete or n == K * self.begun else self._newest(A))
        response = own @ past.sources[:, :, :n].transpose(0, 2, 1)
        X, H = self._fields(R, A, own)
        F, FH, errors = self._empty(target.size)
        later = np.empty_like(F)
        rates, present = (self.v, self.pace(self.t, self.t)[0]), (self.where, self.forces)
        told = (target, a, self.net.kind, instants, rates, np.ascontiguousarray(response))
        left = moments.epoch(X, H, *told, present, self.t, F, FH, errors, later)
        one, E, P = self._averages(R, A, a, F, FH, errors)
        share = shared(later, FH) ** 2
        square = float(np.vdot(later, later) - share * np.vdot(FH, FH)) / target.size
        one.F2 = square + share * float(np.trace(self._known(R, A, a).FF))
        one.Et = self._missed(left, errors[2], one.Et)
        return one, E, P, self._forces(past.count - 1)

    def _forces(self, cell: int) -> Array:
        """⟨f eᵀ⟩ of the forces f in a cell; with themselves at its end."""
        mine, n = self.where == cell - self.past.first, self.K * cell
        f = self.forces[:, mine].astype(float)
        return np.asarray(np.hstack([f @ self.past.e[:n, mine].T, f @ f.T]) / mine.size)


class LayeredBatches(LayeredEpochs):
    """Batches of a share of the training set: steps Δ = βα in which all see the same weights."""

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, a, F2, Et after the last batch before each time; inf where they have diverged."""
        done, table = steps_by(self.problem, t).astype(int), np.array(self.curves)
        size = np.maximum(np.trace(self._tables(table)["Q"], axis1=1, axis2=2), table[:, -1])
        known = done < len(table)
        known[known] &= size[done[known]] < DIVERGED
        out = np.full((t.size, table.shape[1]), np.inf)
        out[known] = table[done[known]]
        return self._tables(out)

    def pace(self, low: float, high: float) -> tuple[float, float]:
        """Rate and decay of a batch are those when it begins."""
        return super().pace(low, low)

    def begin(self, learned: Any) -> None:
        """Learn the first batch."""
        self._renew(False, learned)

    def step(self, t: float, z: Normals, before: Any, after: Any) -> float:
        """Go on to t by the batch that was learned last, and learn the next one."""
        past, problem, d, K = self.past, self.problem, t - self.t, self.K
        v, decay = self.pace(self.t, t)
        alpha, n, again = problem.data.alpha, past.n, self.again
        S = self._forces(past.count)
        past.append(z, self.new, self.t, t)
        A, E, _, P, _ = past.rows[:5, :, : n + K].copy()
        push, heat = past.L[n : n + K], 2 * problem.temperature * d
        push[:, :n] = v * d / math.sqrt(alpha) * P[:, :n]
        whole = v**2 * d * self.one.FF * (1 + again * problem.batch_share) + heat * np.eye(K)
        least = 1e-9 * float(np.trace(whole)) / K + 1e-24
        push[:, n : n + K] = root_of(whole - push[:, :n] @ push[:, :n].T, least)
        keep = 1 + v * d * (self.m - decay)
        self.R = keep * self.R + v * d * self.one.D
        self.a = self.a + self.second_rate * d * self.one.second
        past.rows[0, :, : n + K] = A = keep * A + v * d * E + push[:, : n + K]
        past.complete(S, problem.temperature, P)
        self.t = t
        self._renew(again or t in self.ends, after)
        self._record(past.rows[0, :, : past.n])
        past.merge(t)
        return self._largest()
