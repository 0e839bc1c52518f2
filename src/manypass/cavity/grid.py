"""Functions of one and two times on a uniform grid: read between its points, or extrapolated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from manypass.cavity.tables import FAST, by_lag, look_up_2
from manypass.checks import Array
from manypass.compiling import njit
from manypass.ensemble import Measured

FEWEST = 16  # steps, so that the grid of twice the step can still be interpolated


def equal_parts(t: Array) -> int:
    """Return into how few equal parts [0, t_last] can be cut such that every t is an edge, or 1."""
    for parts in range(1, 513):
        edges = t * (parts / max(t[-1], 1e-300))
        if np.abs(edges - np.rint(edges)).max() < 1e-6:
            return parts
    return 1


@dataclass(frozen=True, eq=False)
class Grid:
    """Values at t_i = iΔ: [i], or [earlier, lag] as in `Tables`; inf once they have diverged."""

    step: float
    values: Measured

    @classmethod
    def of(cls, step: float, found: Measured, names: Any) -> Grid:
        """Take the named functions; those of (t, s) are stored by lag."""
        picked = {name: found[name] for name in names}
        return cls(step, {n: by_lag(v) if v.ndim == 2 else v for n, v in picked.items()})

    def at(self, times: Array) -> Measured:
        """Values at the times, and at all pairs of them: C is symmetric, G causal."""
        out = {}
        for name, value in self.values.items():
            if value.ndim == 1:
                out[name] = self._curve(name, times)
            else:
                out[name] = _pairs(value, times / self.step)
                if name == "C":
                    out[name] += np.tril(out[name], -1).T
        return out

    def extrapolated(self, coarse: Grid) -> Grid:
        """Richardson: a step of second order and one of twice the size give one of higher order."""
        values = {}
        for name, fine in self.values.items():
            rough = coarse.values[name]
            if fine.ndim == 1:
                change = Grid(coarse.step, {name: _third(fine[::2], rough)})
                values[name] = fine + change._curve(name, self.step * np.arange(fine.size))
            else:
                values[name] = fine + _refined(_third(fine[::2, ::2], rough), len(fine))
        return Grid(self.step, values)

    def _curve(self, name: str, times: Array) -> Array:
        values, t = self.values[name], self.step * np.arange(self.values[name].size)
        known = int(np.isfinite(values).sum())
        if known < 4:
            return np.where(times > 0, np.inf, values[0])
        # E_t starts as ½ − c√t: smooth as a function of √t only.
        scale = np.sqrt if name == "Et" else np.asarray
        out = np.asarray(CubicSpline(scale(t[:known]), values[:known])(scale(times)))
        out[times > t[known - 1] * (1 + 1e-9)] = np.inf
        return out


def _third(fine: Array, rough: Array) -> Array:
    """Return (fine − rough)/3, or inf where one of them is."""
    both = np.isfinite(fine) & np.isfinite(rough)
    return np.where(both, np.where(both, fine, 0.0) - np.where(both, rough, 0.0), np.inf) / 3


@njit(**FAST)
def _pairs(table, p):  # type: ignore[no-untyped-def]
    """Return look_up_2 for all later times of p, in steps: [later, earlier]."""
    out = np.zeros((p.size, p.size))
    for i in range(p.size):
        for j in range(i + 1):
            value = look_up_2(table, p[j], p[i] - p[j])
            out[i, j] = value if np.isfinite(value) else np.inf
    return out


@njit(**FAST)
def _refined(table, size):  # type: ignore[no-untyped-def]
    """Return a triangular table between the points of one of twice the step."""
    out = np.zeros((size, size))
    for i in range(size):
        for j in range(size - i):
            value = look_up_2(table, i / 2, j / 2)
            out[i, j] = value if np.isfinite(value) else np.inf
    return out
