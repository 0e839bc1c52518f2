"""Curves of reshuffled epochs: as many epochs as are asked for, on points that are enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from manypass import orders
from manypass.checks import Array
from manypass.exact.lines import Cells, Line, Smooth
from manypass.exact.recollection import Recollection
from manypass.exact.reshuffled import Course, State, epochs_of
from manypass.problem import Problem

ROUNDING = 1e-13  # of curves that begin as 1: one that falls to nothing is known no better
TOLERANCE = 1e-8  # two lines agree, relative to the largest value of a curve
SIZES = (12, 18, 26, 38, 56, 84, 126, 190, 256)  # points of a smooth line
HUGE = 1e200  # what has grown so far has diverged
MOST_BATCHES = {"reshuffled": 4000, "fixed": 400}  # in an epoch: work grows as square and cube
MOST = 20_000  # epochs that are followed before nothing changes any more
Index = NDArray[np.int64]


def located(problem: Problem, t: Array) -> tuple[Index, Array]:
    """Epochs in which times lie, and how long they have lasted: an end is not yet a beginning."""
    alpha, share = problem.teacher.alpha, problem.batch_share
    if share:
        m, steps = round(1 / share), orders.steps_by(problem, t)
        epoch = np.maximum(np.ceil(steps / m) - 1, 0).astype(np.int64)
        return epoch, (steps - epoch * m) * (alpha / m)
    epoch = np.maximum(np.ceil(t / alpha * (1 - 1e-13)) - 1, 0).astype(np.int64)
    return epoch, np.clip(t - epoch * alpha, 0.0, alpha)


def lines(problem: Problem) -> Iterator[Line]:
    """Lines to be tried, each finer than the one before; batches have but one."""
    alpha, share = problem.teacher.alpha, problem.batch_share
    if share:
        count, most = round(1 / share), MOST_BATCHES[problem.sequence]
        if count > most:
            raise ValueError(
                f"`batch_share` = {share:g} makes {count} batches an epoch: with `sequence` = "
                f"{problem.sequence!r} at most {most} can be followed; so many are nearly one "
                f"example at a time: leave `batch_share` out, or use method "
                f"Simulation(n=500, samples=100)"
            )
        yield Cells(alpha, count)
    else:
        yield from (Smooth(alpha, n) for n in SIZES)


class Epochs:
    """A problem's reshuffled epochs up to the one in which the last of some times lies."""

    def __init__(self, problem: Problem, t: Array) -> None:
        self.problem = problem
        self.epoch, self.phase = located(problem, t)
        found: dict[str, Array] = {}
        for line in lines(problem):
            before = found
            self._follow(line)
            found = self.curves
            if before and all(_agree(found[name], before[name]) for name in found):
                break
        else:
            if not problem.batch_share:
                raise ValueError(unresolved(problem))

    def _follow(self, line: Line) -> None:
        until = (self.epoch.max() + 1) * self.problem.teacher.alpha
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges ends as inf
            self.map = epochs_of(self.problem, line, until)
            state, self.courses = self.map.start(), list[Course]()
            for e in range(int(self.epoch.max()) + 1):
                course = self.map.epoch(state)
                self.courses.append(course)
                if _same(state, course.after) or not abs(course.after.Q) < HUGE:
                    break
                if e == MOST:
                    raise ValueError(
                        f"`times` up to {e} epochs are followed, and learning still moves: "
                        f"take earlier ones, or the steady state"
                    )
                state = course.after
        self.__dict__.pop("curves", None)

    @cached_property
    def curves(self) -> dict[str, Array]:
        """R, Q and F2 at the times; Q and F2 that have diverged are inf."""
        out = {name: np.full(self.epoch.size, np.inf) for name in ("R", "Q", "F2")}
        last, line = len(self.courses) - 1, self.map.line
        lost = not abs(self.courses[last].after.Q) < HUGE
        for e in np.unique(self.epoch):
            mine, course = self.epoch == e, self.courses[min(e, last)]
            share = line.at(self.phase[mine])
            if lost and e >= last:
                with np.errstate(over="ignore", invalid="ignore"):
                    R = share @ self.map.overlap(self.map.mean(course.before, e - last))
                out["R"][mine] = np.where(np.isfinite(R), R, np.inf)
                continue
            for name, values in out.items():
                values[mine] = share @ getattr(course, name)
        return out

    @cached_property
    def recollection(self) -> Recollection:
        """C and G of these epochs."""
        return Recollection(self.map, self.courses)

    def two_time(self) -> tuple[Array, Array]:
        """C(t,s), and G(t,s) for t ≥ s, else 0."""
        size, step = self.epoch.size, self.map.line.step
        C, G = np.zeros((size, size)), np.zeros((size, size))
        found = [(int(e), np.flatnonzero(self.epoch == e)) for e in np.unique(self.epoch)]
        share = {e: self.map.line.at(self.phase[i]) for e, i in found}
        for e, i in found:
            for f, j in found:
                if f > e:
                    continue
                late, early = self.recollection.C(e, f, share[e], share[f])
                C[np.ix_(i, j)] = late @ early.T
                if f < e:
                    late, early = self._response(e, f, share[e], self.phase[j])
                    G[np.ix_(i, j)] = late @ early.T
                else:
                    lag = self.phase[i][:, None] - self.phase[j] + step
                    G[np.ix_(i, j)] = self.recollection.G_within(lag)
        lower = np.tril(C)
        return lower + np.tril(lower, -1).T, np.tril(G)

    def _response(self, e: int, f: int, late: Array, phase: Array) -> tuple[Array, Array]:
        """Response to a push *before* the step that is taken at these phases, not after."""
        line, found = self.map.line, self.recollection
        if not line.step:
            return found.G(e, f, late, line.at(phase))
        factor, _ = found.G(e, f, late, line.at(phase))
        return factor, self.map.G[:, ::-1][:, np.rint(phase / line.step).astype(int)].T


def unresolved(problem: Problem, fate: str = "") -> str:
    """Say that an epoch is too long to be followed, and what is known of the rate."""
    return (
        f"`alpha` = {problem.teacher.alpha:g} and `decay` = {problem.decay:g} with `rate` = "
        f"{problem.rate:g}{fate}: {SIZES[-1]} points do not resolve an epoch; use method "
        f"Simulation(n=500, samples=100)"
    )


def _agree(now: Array, before: Array) -> bool:
    lost = ~np.isfinite(now) | ~np.isfinite(before)
    a, b = np.where(lost, 0.0, now), np.where(lost, 0.0, before)
    # A diverging curve is judged epoch by epoch: its beginning is no less wanted than its end.
    size = np.maximum.accumulate(np.maximum(np.abs(a), np.abs(b)))
    return bool(np.all(np.abs(a - b) <= TOLERANCE * size + ROUNDING))


def _same(a: State, b: State) -> bool:
    close = [np.abs(x - y).max() <= 1e-15 * np.abs(y).max() for x, y in ((a.mu, b.mu), (a.n, b.n))]
    return all(close) and math.isclose(a.Q, b.Q, rel_tol=1e-15)
