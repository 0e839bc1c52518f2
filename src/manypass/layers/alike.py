"""Units that start alike stay alike as N → ∞."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np

from manypass.checks import Array
from manypass.layers.net import Net


def alike(net: Net) -> str | None:
    """Say which units cannot be told apart at the start, of the student or of the teacher."""
    for k, m in combinations(range(len(net.a)), 2):
        same = _swapped(net.Q, k, m) and np.allclose(net.R[k], net.R[m], 0, 1e-12)
        if same and net.a[k] == net.a[m]:
            return (
                f"`start` has units {k + 1} and {m + 1} alike: as N → ∞ they stay alike and never "
                f"specialise, and what would tell them apart here is chance"
            )
    for k, m in combinations(range(len(net.b)), 2):
        same = _swapped(net.T, k, m) and np.allclose(net.R[:, k], net.R[:, m], 0, 1e-12)
        if same and net.b[k] == net.b[m]:
            return (
                f"`start` meets units {k + 1} and {m + 1} of the teacher alike: as N → ∞ no unit "
                f"ever tells them apart, and what would do so here is chance"
            )
    return None


def tell(net: Net) -> None:
    """Warn of units that will never specialise."""
    if (why := alike(net)) is not None:
        warnings.warn(f"{why}; networks of a finite size: Simulation(n=500)", stacklevel=4)


def _swapped(square: Array, k: int, m: int) -> bool:
    """Whether a table is the same with two of its units exchanged."""
    order = np.arange(len(square))
    order[[k, m]] = m, k
    return bool(np.allclose(square[np.ix_(order, order)], square, 0, 1e-12))
