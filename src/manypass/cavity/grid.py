"""Functions of one and two times on a grid, read between its points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.checks import Array

DIVERGED = 1e12  # a |J|² or ⟨F²⟩ beyond this is called infinite


def at(t: Array, scale: Any, table: Array, ends: Any = ()) -> Array:
    """Read curves, smooth functions of scale(t), at the times; inf once they have diverged.

    Columns of the table are its times, Q, F2 and others. At the given ends of epochs they have
    kinks.
    """
    grid, fine = table[:, 0], (table[:, 1:3] < DIVERGED).all(axis=1)
    known = fine.size if fine.all() else int(fine.argmin())
    if known < 4:
        return np.where(t[:, None] > 0, np.inf, table[0])
    out = np.empty((t.size, table.shape[1]))
    edges = np.unique([0, *np.searchsorted(grid[:known], ends), known - 1])
    edges = edges[edges < known]
    for low, high in pairwise(edges):
        here = (t >= grid[low]) & ((t <= grid[high]) | (high == known - 1))
        spline = CubicSpline(scale(grid[low : high + 1]), table[low : high + 1])
        out[here] = spline(scale(t[here]))
    out[t > grid[known - 1] * (1 + 1e-9)] = np.inf
    return out
