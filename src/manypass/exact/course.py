"""The modes of a linear problem from its start on, through all that its rate and decay do.

Where both are constant the solution is closed (`volterra`); where one of them moves it is found by
collocation (`moving`). Between two breaks of the schedules there is one piece of either kind.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from manypass import schedules
from manypass.checks import Array
from manypass.exact.modes import Modes, State, joined, linear_modes
from manypass.exact.moving import Moving
from manypass.exact.volterra import Constant
from manypass.problem import Problem
from manypass.spectrum import Spectrum

FEW = 4  # pieces that are worth their closed solution: collocation is quicker on short ones


class Course:
    """State, R, Q, F2 of a linear problem at any times up to `until`."""

    def __init__(self, problem: Problem, until: float, law: Spectrum | None = None) -> None:
        self.problem, self.until = problem, until
        self.all_modes = linear_modes(problem, law)
        most = schedules.largest(problem.rate) * until
        self.modes: Modes = self.all_modes.driven.resolved(most)

    @cached_property
    def pieces(self) -> list[tuple[float, Constant | Moving]]:
        """When each piece begins, and what it is."""
        problem, before, out = self.problem, self.modes.start, []
        breaks = [b for b in schedules.breaks(problem.rate, problem.decay) if b < self.until]
        flat = schedules.flat(problem.rate, problem.decay) and len(breaks) < FEW
        for begin, end in pairwise([0.0, *breaks, max(self.until, 1e-300)]):
            piece: Constant | Moving
            if flat:
                rates = float(problem.v(begin)), float(problem.decays(begin))
                piece = Constant(self.modes.at(*rates) if begin else self.modes, before)
            else:
                piece = Moving(problem, self.modes, before, begin, end)
            out.append((begin, piece))
            if end < self.until:
                before = piece.at(np.array([end - begin]))
        return out

    def at(self, t: Array) -> State:
        """Return the state at rising times t."""
        begins = np.array([begin for begin, _ in self.pieces])
        owner = np.searchsorted(begins, t, "right") - 1
        parts = [(begin, piece, t[owner == i]) for i, (begin, piece) in enumerate(self.pieces)]
        return joined([piece.at(times - begin) for begin, piece, times in parts if times.size])
