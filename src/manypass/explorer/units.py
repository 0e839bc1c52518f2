"""Hidden units on the page: overlaps as curves of their own, and when the units specialise."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from manypass import results
from manypass.checks import Array
from manypass.layers.net import Net
from manypass.layers.plateau import apart, end

TABLES = ("R", "Q", "R_se", "Q_se")


def apiece(result: xr.Dataset) -> dict[str, Array]:
    """R_km and Q_kl (k ≤ l) against time as R11, R12, …; one letter each, units being few."""
    out: dict[str, Array] = {}
    for name in (n for n in TABLES if n in result and result[n].ndim == 3):
        symbol, error = name[0], name[1:]
        for k, m in np.ndindex(result[name].shape[1:]):
            if symbol == "R" or k <= m:
                out[f"{symbol}{k + 1}{m + 1}{error}"] = result[name].values[:, k, m]
    return out


def specialised(result: xr.Dataset) -> dict[str, Any]:
    """S(t), and the end of the plateau: null while units are alike. Nothing of single units."""
    if "R" not in result or result.R.ndim != 3 or min(result.R.shape[1:]) == 1:
        return {}
    net = Net.of(results.problem_of(result))
    S = apart(result.R.values, result.Q.values, net.T)
    plateau = end(result.t.values, S)
    return {"S": S.tolist(), "plateau": plateau if np.isfinite(plateau) else None}
