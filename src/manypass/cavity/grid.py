"""Functions of one and two times on a grid, read between its points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.checks import Array
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
