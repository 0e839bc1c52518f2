"""Functions of one and two times on a grid, read between its points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.checks import Array

DIVERGED = 1e12  # a |J|² or ⟨F²⟩ beyond this is called infinite


GROWTH = 1e3  # of Q or F2, beyond which it is one without measure
F2, MEASURED = 2, slice(2, 4)  # columns: with E_t, in which chance is quick
AROUND = 1 / 4  # of scale(t), on both sides, that means over times reach
STEEP = 1 / 2  # change of log F2 in them beyond which they reach less far
BINS = np.linspace(-1, 1, 33)  # ends of the parts of which means are taken first
PARTS = np.diff([BINS, BINS**3]) / np.diff(BINS)  # means of 1 and 3x² in them
MIDDLE = np.linalg.solve(PARTS @ PARTS.T, [1.0, 0.0]) @ PARTS  # of the parabola that fits best


def at(t: Array, scale: Any, table: Array, ends: Any = (), fading: float | None = None) -> Array:
    """Read curves, smooth functions of scale(t), at the times; inf once they have diverged.

    Columns of the table are its times, Q, F2, E_t and others. At the given ends of epochs they have
    kinks; what grows beyond measure is read in units of its size, and is not seen before. If the
    law of learning does not change, what is past fades at least at some rate, and F2 and E_t are
    taken from times around t: see `smoothed`.
    """
    grid, fine = table[:, 0], (table[:, 1:3] < DIVERGED).all(axis=1)
    known = fine.size if fine.all() else int(fine.argmin())
    if known < 4:
        return np.where(t[:, None] > 0, np.inf, table[0])
    out = np.empty((t.size, table.shape[1]))
    grown = np.maximum.accumulate(table[:known, 1:3].max(axis=1)) / max(table[0, F2], 1e-300)
    size = np.maximum(grown / GROWTH, 1.0)
    edges = np.unique([0, *np.searchsorted(grid[:known], ends), known - 1])
    edges = edges[edges < known]
    for low, high in pairwise(edges):
        here = (t >= grid[low]) & ((t <= grid[high]) | (high == known - 1))
        now, w = np.minimum(t[here], grid[high]), scale(grid[low : high + 1])
        unit = size[low : high + 1, None]
        spline = CubicSpline(w, table[low : high + 1] / unit)
        out[here] = spline(scale(now)) * np.exp(CubicSpline(w, np.log(unit))(scale(now)))
        if fading is not None and size[-1] == 1:
            x = np.maximum(fading * now, 4.0)
            left = (x / 4) ** 4 * np.exp(4 - x)  # of what is past, by its curvature
            out[here, MEASURED] = smoothed(spline, scale(now), left)[:, MEASURED]
    out[t > grid[known - 1] * (1 + 1e-9)] = np.inf
    return out


def smoothed(spline: CubicSpline, w: Array, left: Array) -> Array:
    """Parabolas fitted by least squares from w − h to w + h, at w.

    What they miss of a part that decays as Ae^{−kw} is at most A(h/w)⁴/60, and of a growth or decay
    e^{±d} in 2h it is d⁴/4480: h is chosen so that both are below 10⁻⁴ of F2. Of what F2 was at
    first, A, no more than what is `left` can be there.
    """
    low, high = spline.x[[0, -1]]
    F, first = spline(w)[:, F2], float(spline(low)[F2])
    h = AROUND * w * np.clip(1.5 * F / np.maximum(first * left, 1e-300), 0.0, 1.0) ** (1 / 4)
    h = np.minimum(h, np.minimum(w - low, high - w))
    before, after = np.maximum([spline(w - h)[:, F2], spline(w + h)[:, F2]], 1e-300)
    h = h / np.hypot(1.0, (np.log(after) - np.log(before)) / STEEP)
    out, whole, wide = spline(w), spline.antiderivative(), h > 1e-6 * w
    bins = w[wide, None] + h[wide, None] * BINS
    means = np.diff(whole(bins), axis=1) / np.diff(bins)[..., None]
    out[wide] = np.einsum("b,tbc->tc", MIDDLE, means)
    return np.asarray(out)
