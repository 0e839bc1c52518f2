"""Functions of one and two times on a grid, read between its points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.cavity.tables import FAST, by_lag, look_up_2
from manypass.checks import Array
from manypass.compiling import njit
from manypass.ensemble import Measured

DIVERGED = 1e12  # a |J|² or ⟨F²⟩ beyond this is called infinite


def at(t: Array, scale: Any, grid: Array, curves: Measured, ends: Any = ()) -> Measured:
    """Values at the times of curves that are smooth functions of scale(t); inf once diverged.

    At the given ends of epochs they have kinks.
    """
    fine = (curves["Q"] < DIVERGED) & (curves["F2"] < DIVERGED)
    known = fine.size if fine.all() else int(fine.argmin())
    if known < 4:
        return {name: np.where(t > 0, np.inf, values[0]) for name, values in curves.items()}
    rows = np.array([values[:known] for values in curves.values()])
    out = np.empty((len(rows), t.size))
    edges = np.unique([0, *np.searchsorted(grid[:known], ends), known - 1])
    edges = edges[edges < known]
    for low, high in pairwise(edges):
        here = (t >= grid[low]) & ((t <= grid[high]) | (high == known - 1))
        spline = CubicSpline(scale(grid[low : high + 1]), rows[:, low : high + 1], axis=1)
        out[:, here] = spline(scale(t[here]))
    out[:, t > grid[known - 1] * (1 + 1e-9)] = np.inf
    return dict(zip(curves, out, strict=True))


def pairs(values: Array, p: Array) -> Array:
    """Values of a function of t ≥ s on a uniform grid at all pairs of times p, in steps."""
    return np.asarray(_pairs(by_lag(values), p))


@njit(**FAST)
def _pairs(table, p):  # type: ignore[no-untyped-def]
    out = np.zeros((p.size, p.size))
    for i in range(p.size):
        for j in range(i + 1):
            value = look_up_2(table, p[j], p[i] - p[j])
            out[i, j] = value if np.isfinite(value) else np.inf
    return out
