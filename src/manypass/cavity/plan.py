"""Times that the populations go through: two grids, epochs, batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from manypass import schedules
from manypass.cavity.settling import by_chance, fastest, unchanging
from manypass.checks import Array
from manypass.orders import steps_by
from manypass.problem import Problem
from manypass.smooth import jumps

FEWEST = 16  # steps, so that the grid of twice the step can still be interpolated
IN_EPOCH = 8  # steps in an epoch, for the same reason
COARSE = 0.6  # first step that is tried, in units of the fastest relaxation time
OFTEN = 0.4  # and the most that x changes by an example's own instants in it, v/α
TWICE = 1 / 3  # and of instants of an example in it, where forces jump
START = 3.0  # until when steps are shorter, in units of the fastest relaxation time
LATER = 1.4  # times longer are late steps, if learning does not change: its errors come early
LARGEST = 2.0  # step that can be asked for, in units of the first one that is tried
MOST_STEPS = 20_000
BEYOND = 1 / 16  # of the last time, for means over times around it
LEAST = 5  # examples per cell of the past
IN_TURN = 40  # examples that are learned in a step, where it matters who they are
# A cell is at most this fraction of its age; on the coarser grid half of it. In epochs the
# correlation of pushes has kinks and steps at whole epochs, just where they matter.
# With correlated inputs z and e of a cell are given up apart, which errs in a lower order.
# Smaller steps have narrower cells: both err in second order.
NARROW = 40.0  # but no narrower than this
WIDEST, ORDERED, CORRELATED = 8.0, 40.0, 32.0


@dataclass(frozen=True)
class Grid:
    """Times, every second of which makes a grid too, and those at which C and G are kept.

    Where there are epochs, when they end, and how many steps an epoch has.
    """

    t: Array
    keep: Array
    ends: Array = field(default_factory=lambda: np.zeros(0))
    longest: int = 0


@dataclass(frozen=True)
class Clock:
    """t = w²/(w + start), w even: curves that start as √t are smooth functions of w."""

    start: float

    def w(self, t: Any) -> Any:
        """Return w at a time."""
        return (t + np.sqrt(t * (t + 4 * self.start))) / 2

    def times(self, step: float, stops: Array, least: int = 1) -> Array:
        """Return times of which every second makes a grid too; all stops are on both.

        Steps are shorter at first, and reach the given one when t ≫ start.
        """
        edges, out = np.unique(np.append(0.0, stops)), [0.0]
        step = min(step, self.w(edges[-1]) / FEWEST)
        for low, high in pairwise(edges):
            a, b = self.w(low), self.w(high)
            count = max(math.ceil((b - a) / (2 * step) * (1 - 1e-9)), least if low else 4)
            w = np.linspace(a, b, 2 * count + 1)[1:-1]
            out.extend([*(w**2 / (w + self.start)), high])
        return np.array(out)


def epochs(clock: Clock, step: float, alpha: float, end: float, keep: Array, breaks: Array) -> Grid:
    """Every epoch has the same grid; what is kept is on it, and breaks of schedules."""
    count = math.ceil(end / alpha * (1 - 1e-9))
    starts, stops = alpha * np.arange(count), np.concatenate([keep, breaks, [end]])
    phases = np.where(stops < alpha * 1e-8, stops / alpha, np.round(stops / alpha % 1.0, 9))
    phases = np.unique(np.append(phases, 1.0))  # equal but for rounding, in all epochs
    step, fewest = min(step, alpha / IN_EPOCH), 1 if keep.size else 4
    phases = clock.times(step, alpha * phases[phases > 0], fewest)
    t = np.append(0.0, (starts[:, None] + phases[1:]).ravel())
    t[np.abs(t - stops[:, None]).argmin(axis=1)] = stops  # but for rounding
    ends = t[:: phases.size - 1][1:]
    return Grid(t[t <= end], keep, ends[ends <= end], phases.size - 1)


def batches(problem: Problem, end: float) -> Grid:
    """One step is one batch, up to the last that is complete, or the first if none is."""
    alpha, share = problem.teacher.alpha, problem.batch_share
    t = alpha * share * np.arange(max(steps_by(problem, np.array([end]))[0], 1) + 1)
    longest = 1 if problem.sequence == "replacement" else round(1 / share)
    return Grid(t, np.zeros(0), t[::longest][1:], longest)


@dataclass(frozen=True)
class Plan:
    """What to compute: times t from curves on a grid."""

    t: Array
    grid: Grid
    clock: Clock
    names: tuple[str, ...]
    widest: float
    finer: float = 1.0  # how many times narrower cells may be, for large populations
    in_turn: int = 0  # steps in an epoch of a fixed order
    units: int = 1  # normals in a cell of the past
    copies: bool = False  # of examples near a force, where forces are rare

    @property
    def cells(self) -> int:
        """How many cells of the past there will be."""
        steps = self.grid.t.size
        return min(steps, int(self.widest * math.log2(steps)) + self.grid.longest)

    @property
    def least(self) -> int:
        """Examples without which a population says nothing: some for each cell of the past."""
        return max(LEAST * self.units * self.cells, IN_TURN * self.in_turn)

    def fitted(self, size: int) -> Plan:
        """Cells as narrow as the step asks for and a population of some size allows."""
        finer = max(min(self.finer, size / self.least), 1.0)
        return replace(self, widest=finer * self.widest, finer=1.0)


def coarsest(problem: Problem) -> float:
    """Return the largest step that is worth a try."""
    jump = jumps(problem.rule, problem.data.task)
    later = LATER if unchanging(problem) else 1.0
    coarse = later * COARSE / fastest(problem) / (1 + jump)
    if problem.mode == "online":  # few are learned twice in a step
        v = schedules.largest(problem.rate)
        coarse = min(coarse, OFTEN * problem.data.alpha / v) if v else coarse
        if jump:  # by a force that need not be small with v
            coarse = min(coarse, TWICE * problem.data.alpha)
    return coarse


def make_plan(problem: Problem, t: Array, names: Any, dt: float) -> Plan:
    """Make a grid; refuse one that is too fine."""
    alpha, order = problem.teacher.alpha, problem.sequence
    clock = Clock((LATER**4 if unchanging(problem) else 1) * START / fastest(problem))
    end = float(t[-1]) or 1e-6 * min(clock.start, dt)  # only t = 0 asked for
    keep = t if "C" in names else np.zeros(0)
    breaks = np.array([b for b in schedules.breaks(problem.rate, problem.decay) if b < end])
    shuffled = order != "replacement" and not problem.batch_share
    step = min(dt, alpha / IN_EPOCH) if shuffled else dt
    # Many are early, where the rate is small; and a force may be too steep for a number.
    early = 0.0 if shuffled or problem.batch_share else clock.w(end) / 2
    steps = max(end, early) / step * (1 - 1e-9) if step else math.inf
    if steps > MOST_STEPS:
        count = math.ceil(steps) if steps < 1e15 else f"{steps:.3g}"
        why = f" (at least {IN_EPOCH} in every epoch)" if shuffled else ""
        raise ValueError(
            f"at `alpha` = {alpha:g}, `rate` = {schedules.plain(problem.rate)} there are {count} "
            f"time steps of {dt:.3g}{why} up to t = {end:g}, more than {MOST_STEPS}: take earlier "
            f"`times`, or a larger `dt` (up to {LARGEST:g} times what is chosen without one)"
        )
    widest = ORDERED if order != "replacement" or problem.batch_share else WIDEST
    if not problem.teacher.isotropic:
        widest = max(widest, CORRELATED)
    if problem.batch_share:
        grid = batches(problem, end)
    elif shuffled:
        grid = epochs(clock, dt, alpha, end, keep, breaks)
    else:
        # What is measured is averaged over times around the last one, too.
        mean = unchanging(problem) and not {"F2", "Et"}.isdisjoint(names)
        last = end * (1 + BEYOND) if mean else end
        grid = Grid(clock.times(dt, np.concatenate([keep, breaks, [end, last]])), keep)
    in_turn = grid.longest if order == "fixed" else 0
    units = problem.rule.hidden if problem.layered else 1  # type: ignore[attr-defined]
    # A continuous force grows with |x|: copies of its few largest make a population diverge.
    jump = jumps(problem.rule, problem.data.task)
    copies = by_chance(problem) and not problem.layered and jump
    finer = max(min(coarsest(problem) / dt, NARROW / widest), 1.0)
    return Plan(t, grid, clock, tuple(names), widest, finer, in_turn, units, copies)
