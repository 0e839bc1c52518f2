"""R, C and G on a uniform grid, ready to be looked up between its points.

C(t,s) has a cusp at t = s. As a function of the earlier time and the lag it has none, so that C
and G are stored as [earlier, lag] and interpolated by cubics in both.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.exact.course import Course
from manypass.exact.modes import linear_modes
from manypass.exact.steady import check_steady, critical_rate, stationary, stationary_noise
from manypass.exact.two_time import correlation, response
from manypass.problem import Problem

FINE = 0.1  # grid step in units of the fastest relaxation time
MOST = 1600  # grid points
MARGIN = 6  # grid points beyond the last time asked for, so that no lookup is one-sided


class Tables(NamedTuple):
    """R(t), C(t,s), G(t,s) for start ≤ s ≤ t, as [time] and [earlier, lag] in steps of the grid."""

    start: float
    step: float
    R: Array
    C: Array
    G: Array

    @property
    def end(self) -> float:
        """Last time of the grid."""
        return self.start + self.step * (self.R.size - 1)


def exact_tables(problem: Problem, start: float, end: float) -> Tables:
    """Tables of a linear rule from its exact solution."""
    modes = linear_modes(problem)
    step, count = _grid(end - start, float(modes.x.max()))
    t: Array = start + step * np.arange(count, dtype=float)
    course = Course(problem, float(t[-1]))
    state = course.at(t)
    C, G = correlation(course.modes, state), response(course.all_modes, state)
    return Tables(start, step, course.modes.R(state), by_lag(C), by_lag(G))


def steady_tables(problem: Problem, span: float) -> Tables:
    """Tables of the steady state of a linear rule: C and G depend on the lag alone."""
    check_steady(problem)
    modes = linear_modes(problem)
    driven, feedback = modes.driven, problem.rate / critical_rate(problem)
    step, count = _grid(span, float(modes.x.max()))
    lag = step * np.arange(count)
    values = stationary(driven, feedback)
    noise = driven.S * stationary_noise(driven, values["F2"])
    C = driven.mean_Q(driven.end)[0] + noise @ np.exp(-np.outer(driven.x, lag))
    G = modes.S @ np.exp(-np.outer(modes.x, lag))
    return Tables(
        0.0, step, np.full(count, values["R"]), np.tile(C, (count, 1)), np.tile(G, (count, 1))
    )


def result_tables(result: Any) -> Tables:
    """Tables of a result with R, C and G on a uniform grid from t = 0: any rule, any method."""
    if not isinstance(result, xr.Dataset) or not {"R", "C", "G"} <= set(result.data_vars):
        raise ValueError(
            "`source` must be 'exact', a DMFT, a Simulation, or a result with R, C and G: solve "
            "with two_time=True, and a Simulation with response=True"
        )
    square = result.R.dims == ("t",) and all(result[n].dims == ("t", "s") for n in "CG")
    if not square or not np.array_equal(result.s, result.t):
        raise ValueError(
            "`source` must have C and G at all pairs of its times, as solve() gave it: it holds a "
            "part of a result, or a mean"
        )
    if not all(np.isfinite(result[name]).all() for name in ("R", "C", "G")):
        raise ValueError("`source` has diverged: R, C and G must be finite")
    t = result.t.values
    even = t.size > 1 and np.allclose(np.diff(t), t[1] - t[0], rtol=1e-6)
    if t.size < MARGIN + 2 or t[0] != 0 or not even:
        raise ValueError(
            f"`source` must be given at {MARGIN + 2} or more evenly spaced times from 0, such as "
            f"np.linspace(0, {t[-1]:g}, 41), got {t.size} times from {t[0]:g}"
        )
    C, G = (by_lag(result[name].values) for name in ("C", "G"))
    return Tables(0.0, float(t[1]), result.R.values.astype(float), C, G)


def by_lag(values: Array) -> Array:
    """Reorder a function of (t, s), t ≥ s, on a grid to [earlier, lag]; the rest stays 0."""
    size = len(values)
    earlier, lag = np.indices((size, size))
    later = np.minimum(earlier + lag, size - 1)
    return np.where(earlier + lag < size, values[later, earlier], 0.0)


def _grid(span: float, fastest: float) -> tuple[float, int]:
    count = min(max(math.ceil(span * fastest / FINE), 48), MOST)
    return span / count, count + 1 + MARGIN


@njit(**FAST)
def weights(p):  # type: ignore[no-untyped-def]
    """Weights of the values at 0, 1, 2, 3 in the cubic through them, at p."""
    a, b, c = p - 1, p - 2, p - 3
    return -a * b * c / 6, p * b * c / 2, -p * a * c / 2, p * a * b / 6


@njit(**FAST)
def look_up_1(table, p):  # type: ignore[no-untyped-def]
    """Cubic interpolation of a table at position p, in steps."""
    a = min(max(int(p) - 1, 0), table.size - 4)
    w = weights(p - a)
    return w[0] * table[a] + w[1] * table[a + 1] + w[2] * table[a + 2] + w[3] * table[a + 3]


@njit(**FAST)
def look_up_2(table, p, q):  # type: ignore[no-untyped-def]
    """Bicubic interpolation of a triangular table at (earlier, lag) = (p, q), in steps."""
    last = len(table) - 1
    a, b = min(max(int(p) - 1, 0), last - 6), max(int(q) - 1, 0)
    if a + b + 6 >= last:  # not all of the 16 points around need be in the triangle
        near_p, near_q = int(p + 0.5), int(q + 0.5)
        if abs(p - near_p) + abs(q - near_q) < 1e-9:
            return table[near_p, near_q]
    u = weights(p - a)
    total = 0.0
    for i in range(4):
        row, c = table[a + i], min(b, last - a - i - 3)
        w = weights(q - c)
        total += u[i] * (w[0] * row[c] + w[1] * row[c + 1] + w[2] * row[c + 2] + w[3] * row[c + 3])
    return total
