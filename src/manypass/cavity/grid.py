"""Functions of one and two times on a grid, read between its points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.checks import Array

DIVERGED = 1e12  # a |J|² or ⟨F²⟩ beyond this is called infinite


F2, MEASURED = 2, slice(2, 4)  # columns: with E_t, in which chance is quick
AROUND = 1 / 4  # of scale(t), on both sides, that means over times reach
STEEP = 1 / 2  # change of log F2 in them beyond which they reach less far


def at(t: Array, scale: Any, table: Array, ends: Any = (), even: bool = False) -> Array:
    """Read curves, smooth functions of scale(t), at the times; inf once they have diverged.

    Columns of the table are its times, Q, F2, E_t and others. At the given ends of epochs they have
    kinks. F2 and E_t of `even` learning are means over times around t: see `mean`.
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
        if even:
            out[here, MEASURED] = mean(spline, scale(now))[:, MEASURED]
    out[t > grid[known - 1] * (1 + 1e-9)] = np.inf
    return out


def mean(spline: CubicSpline, w: Array) -> Array:
    """Means M over w ± h without their bias ∝ h²: (4M(h/2) − M(h))/3.

    What is left of a part that decays as Ae^{−kw} is at most A(h/w)⁴/100, and of a growth or decay
    e^{±d} in 2h it is d⁴/7680: h is chosen so that both are below 10⁻⁴ of F2.
    """
    low, high = spline.x[[0, -1]]
    F, first = spline(w)[:, F2], float(spline(low)[F2])
    h = AROUND * w * np.clip(2 * F / max(first, 1e-300), 0.0, 1.0) ** (1 / 4)
    h = np.minimum(h, np.minimum(w - low, high - w))
    before, after = np.maximum([spline(w - h)[:, F2], spline(w + h)[:, F2]], 1e-300)
    h = h / np.hypot(1.0, np.log(after / before) / STEEP)
    out, whole, wide = spline(w), spline.antiderivative(), h > 1e-6 * w
    w, h = w[wide], h[wide]
    far, near = ((whole(w + r) - whole(w - r)) / (2 * r)[:, None] for r in (h, h / 2))
    out[wide] = (4 * near - far) / 3
    return np.asarray(out)
