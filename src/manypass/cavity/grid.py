"""Functions of one and two times on a grid, read between its points."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.checks import Array

DIVERGED = 1e12  # a |J|² or ⟨F²⟩ beyond this is called infinite


MEASURED = slice(2, 4)  # columns of F2 and E_t, in which chance is quick


def at(t: Array, scale: Any, table: Array, ends: Any = (), per: float = math.inf) -> Array:
    """Read curves, smooth functions of scale(t), at the times; inf once they have diverged.

    Columns of the table are its times, Q, F2, E_t and others. At the given ends of epochs they have
    kinks. F2 and E_t are means over times around t, t/2`per` in all, where these are known.
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
        now = t[here]
        out[here] = spline(scale(now))
        half = np.minimum(now / (4 * per), np.minimum(now - grid[low], grid[high] - now))
        wide = half > 1e-9 * now
        a, b = scale((now - half)[wide]), scale((now + half)[wide])
        whole = spline.antiderivative()
        means = (whole(b) - whole(a)) / (b - a)[:, None]
        out[np.flatnonzero(here)[wide], MEASURED] = means[:, MEASURED]
    out[t > grid[known - 1] * (1 + 1e-9)] = np.inf
    return out
