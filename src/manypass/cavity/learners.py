"""A population that learns: what it measures at t_i, and how it pushes between t_j and t_{j+1}."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.cavity import moments
from manypass.cavity.equations import Equations, midpoint
from manypass.cavity.population import Population
from manypass.checks import Array
from manypass.problem import Problem

FORGOTTEN = 1e-4  # a response of the weights below this no longer counts
CALM = 300  # examples per learning instant of one, from which on their noise is small enough
RESPONDS = 2e-3  # share of its largest response below which an example does not respond any more


class Learners:
    """What both kinds have in common."""

    def __init__(
        self, problem: Problem, population: Population, rule: Any, equations: Equations
    ) -> None:
        self.problem, self.rule, self.equations = problem, rule, equations
        self.x = np.zeros(population.size)  # activations at the last t_i
        self.classify = problem.data.task == "classification"
        draws, size = population.draws, population.steps + 1
        self.examples = (draws.y, draws.target, population.normals)
        self.FF = np.zeros((size, size))  # ⟨F(t)F(s)⟩ over pairs of learning instants

    def state(self, i: int) -> tuple[Any, ...]:
        """Return what leads a population to t_i."""
        e = self.equations
        return i, e.R[i], e.A[i].astype(np.float32), e.G, self.examples

    def F2(self, j: int, corrected: bool) -> float:
        """⟨F²⟩ between t_j and t_{j+1}."""
        weights = midpoint(j, corrected).items()
        return max(sum(w * float(self.equations.F2[p]) for p, w in weights), 0.0)

    def product(self, j: int, corrected: bool) -> Array:
        """(v²Δ²/α)⟨F_j F_k⟩ for the midpoints of all steps up to j."""
        ahead = midpoint(j, corrected).items()
        FF = sum(w * self.FF[p] for p, w in ahead)
        row = np.empty(j + 1)
        row[:j] = (FF[:j] + FF[1 : j + 1]) / 2
        row[j] = sum(w * FF[p] for p, w in ahead)
        return row * (self.problem.rate * self.equations.step) ** 2 / self.problem.data.alpha


class Online(Learners):
    """Every example at its own learning instants."""

    def __init__(
        self, problem: Problem, population: Population, rule: Any, equations: Equations
    ) -> None:
        super().__init__(problem, population, rule, equations)
        draws = population.draws
        slots = (2 * draws.instants / equations.step + 1).astype(np.int32)
        counters = np.zeros((3, population.size), np.int32)
        chain = np.zeros(int(np.diff(draws.first).max()))
        self.events = (draws.first, slots, *counters, *np.zeros((2, slots.size)), chain)
        cells = population.steps + 1
        self.early = np.bincount(slots, minlength=2 * cells)[::2].astype(float)
        self.instants = np.bincount(slots >> 1, minlength=cells).astype(float)
        self.scale = np.zeros(population.steps)
        self.responds = 0  # first cell to which examples still respond
        self.calm = population.size > CALM * population.time / problem.data.alpha

    def measure(self, i: int, final: bool) -> tuple[Array, Array]:
        """One-time averages, and the response to each cell."""
        e, often = self.equations, self.equations.step / self.problem.data.alpha
        oldest = int(np.argmax(np.abs(e.G[i, : i + 1]) > FORGOTTEN))
        stride = _stride(i, (i - self.responds) * often)
        options = (
            self.problem.rate,
            self.classify,
            stride,
            oldest,
            self.responds,
            self.calm,
            final,
        )
        one, FF, M = moments.online(*self.state(i), self.events, self.x, self.rule, *options)
        instants = self.instants[: i + 1].copy()  # in each cell, up to now
        instants[i] = self.early[i] if i else self.x.size
        self.FF[i, : i + 1] = self.FF[: i + 1, i] = FF / np.maximum(instants, 1)
        self.responds = max(self.responds, i - _reach(M))
        learned = np.full(i + 1, often)
        learned[[0, i]] /= 2
        return one, M * learned

    def push(self, j: int, corrected: bool) -> tuple[Array, float]:
        """v²[⟨F²⟩Δ + ⟨F_j F_k⟩Δ²/α], and how much of it the past can explain.

        Which example comes next is never known, only the mean force, of variance ⟨F²⟩/α. Forces
        now times forces at past instants say most from few examples, but if these are too few
        their noise makes it no covariance. Then it is v²α⟨f_j f_k⟩, f being the forces summed
        over the instants of a step, scaled to have the ⟨F²⟩ that is known better.
        """
        v, d, alpha = self.problem.rate, self.equations.step, self.problem.data.alpha
        F2 = self.F2(j, corrected)
        if self.calm:
            row, known = self.product(j, corrected), v**2 * d**2 / alpha * F2
            row[j] = max(row[j] + v**2 * d * F2, known)
            return row, known
        first, slots, done, _, _, forces, _, _ = self.events
        row, single = moments.pushes(j, first, slots, done, forces)
        whole = max(row[j] - single + d / alpha * F2, 0.0)
        self.scale[j] = math.sqrt(whole / row[j]) if row[j] > 0 else 0.0
        row[:j] *= self.scale[j] * self.scale[:j]
        row[j] = whole
        return v**2 * alpha * row, math.inf


class Batch(Learners):
    """Every example all the time."""

    def __init__(
        self, problem: Problem, population: Population, rule: Any, equations: Equations
    ) -> None:
        super().__init__(problem, population, rule, equations)
        size = population.steps + 1
        self.forces, self.slopes = np.zeros((2, population.size, size))

    def measure(self, i: int, final: bool) -> tuple[Array, Array]:
        """One-time averages, and the response to each cell."""
        kick = self.problem.rate * self.equations.step / self.problem.data.alpha
        options = (self.rule, kick, self.classify, _stride(i, i))
        past = (self.forces, self.slopes, self.x)
        one, FF, M = moments.batch(*self.state(i), *past, *options)
        self.FF[i, : i + 1] = self.FF[: i + 1, i] = FF
        return one, M

    def push(self, j: int, corrected: bool) -> tuple[Array, float]:
        """(v²Δ²/α)⟨F_j F_k⟩: the past may explain all of it."""
        row = self.product(j, corrected)
        row[j] = max(row[j], 0.0)
        return row, math.inf


def _stride(i: int, learned: float) -> int:
    """Measure the response on so few examples that it costs no more than all the rest."""
    return 1 + int(learned**2 / (i / 2 + 8 * learned + 60))


def _reach(M: Array) -> int:
    """How many cells back from the last one the response goes, and a third more."""
    there = np.abs(M) > RESPONDS * np.abs(M).max(initial=0.0)
    return math.ceil(4 / 3 * (M.size - 1 - int(np.argmax(there)))) if there.any() else M.size
