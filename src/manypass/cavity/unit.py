"""One unit, of any rule: averages over its population. Its loops are in `moments`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.cavity import moments
from manypass.cavity.online import Looked
from manypass.checks import Array
from manypass.problem import Problem
from manypass.smooth import jumps


class Unit:
    """x = h + own forces, F(x, ỹ) of a rule; everything about it is 1 × 1, and read as a number."""

    onto, a, second_rate = np.eye(1), np.zeros(0), 0.0

    def __init__(self, problem: Problem, rule: Any, examples: tuple[Array, Array]) -> None:
        self.rule, self.examples, start = rule, examples, problem.start
        y, target = examples
        self.shapes: dict[str, tuple[int, ...]] = {"R": (), "Q": ()}
        self.known = np.stack([np.ones(y.size), y, target], axis=1)
        self.classify = problem.data.task == "classification"
        self.R = np.full((1, 1), start.R if start else 0.0)
        self.root = np.full((1, 1), math.sqrt(start.c) if start else 0.0)
        self.drift = problem.mode == "online"  # batches: at first h is R y, growing as t
        self.last = np.full(y.size, -1.0)  # when learned last; not yet: before the start, too
        self.when = np.zeros(y.size)  # the same in this epoch
        self.x, self.expected = np.zeros((2, y.size))  # as it is, and if its turn were now
        # What F owes to its own past of a push that goes on grows as t², or t^{3/2} where forces
        # jump: its mean in the first step, in units of that of a line.
        self.young = 4 / 5 if jumps(problem.rule, problem.data.task) else 2 / 3
        self.m = 0.0  # of mh, which is taken out of F where averages are taken
        self.edge = 0.0  # m|h| at t → 0⁺: not nil where all x start at a jump of F

    def look(self, run: Any, J: Any, own: Array, instants: Any, response: Array) -> Any:
        """Look at the population of a run, on whose way examples are learned."""
        (R, A, _), past = J, run.past
        *found, S = moments.look(
            run.looks - run.limit,
            (run.t, R[0, 0], self.m, run.v, run.pace(run.t, run.t)[0]),
            (past.z, past.e),
            (A[0], own[0], past.begin[: A.shape[1]]),
            (*self.examples, self.last, self.x, self.expected, past.share),
            instants,
            (response[:, 0, 0], run.where, run.forces[:, 0], self.when),
            *self.rule,
            self.classify,
        )
        return *self._split(J, *found), S[None]

    def take(self, who: Any) -> None:
        """Go on with these examples."""
        self.examples = (self.examples[0][who], self.examples[1][who])
        self.last, self.x, self.expected = self.last[who], self.x[who], self.expected[who]
        self.when = self.when[who]

    def rise(self, m: float) -> Array:
        """Slope of F, beyond m, before it was ever seen."""
        return np.zeros((1, 1))

    def ended(self, learned: Any) -> None:
        """End an epoch."""
        self.last[learned] = self.when[learned]

    def _split(self, J: Any, one: Array, E: Array, P: Array) -> Any:
        """Return ⟨F′⟩, by which F follows h at once, and what else was measured.

        What is left depends on the past, and is smooth.
        """
        self.m, seen, E, P = self.regressed(self.m, J, one, E, P)
        rise = one[moments.RISE] / one[moments.RISEN] if one[moments.RISEN] else self.m
        if not E.size:
            self.edge, rise = rise * math.sqrt(moments.NONE), self.m
        seen.D += (self.m - rise) * J[0]
        return float(rise), seen, E + (self.m - rise) * J[1], P

    def regressed(self, m: float, J: Any, one: Array, E: Array, P: Array, *S: Array) -> Any:
        """Return m of F on h = R y + Σ A z; take the rest of it out of what was measured."""
        R, A = J[0][0, 0], J[1][0]
        known = R if self.drift else 0.0
        size = known**2 + A @ A
        change = (one[moments.DRIVE] * known + E @ A) / size if size else 0.0
        E -= change * A
        D = one[moments.DRIVE] - change * R
        FF, F2, Et = one[moments.SQUARE], one[moments.MEASURED], one[moments.MISSED]
        seen = Looked(np.array([[D]]), np.array([[FF]]), self.a, float(F2), float(Et))
        return float(m + change), seen, E[None], P[None], *(each[None] for each in S)
