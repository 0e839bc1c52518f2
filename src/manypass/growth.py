"""Curves that grow without bound: one line that says so, with the critical rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manypass import verbs
from manypass.data import preparing
from manypass.data.dataset import Dataset
from manypass.rules import Adaline

if TYPE_CHECKING:
    import xarray as xr

    from manypass.problem import Problem

GROWN = 10.0  # times ⟨ỹ²⟩, the F2 of J = 0: from there on it is asked whether it is a divergence


def told(problem: Problem, found: xr.Dataset) -> str | None:
    """Say that F2(t) of Adaline diverges, v ≥ v_c, if it has grown; v_c is found only then.

    Examples
    --------
    >>> import manypass as mp
    >>> from manypass import growth
    >>> problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Adaline(), rate=2.5)
    >>> growth.told(problem, mp.solve(problem, [9.0]))  # doctest: +ELLIPSIS
    'learning diverges: `rate` = 2.5 is not below the critical rate v_c = 2, and F2 grows...'
    """
    if not isinstance(problem.rule, Adaline) or "F2" not in found:
        return None
    data = problem.data
    size = float(np.mean(data.y**2)) if isinstance(data, Dataset) else data.b
    last = float(found.F2.values[-1])
    if last <= GROWN * size:
        return None
    why = f"F2 grows without bound, to {last:.3g} at t = {float(found.t[-1]):g}"
    if problem.scheduled:
        return None if math.isfinite(last) else f"learning diverges: {why}; take a smaller `rate`"
    try:
        limit = verbs.critical_rate(problem)
    except ValueError:  # not known for this order of the examples
        limit = math.nan
    if problem.rate >= limit:
        known = f"`rate` = {problem.rate:g} is not below the critical rate v_c = {limit:.6g}"
        return f"learning diverges: {known}, and {why}" + preparing.uneven(problem.data)
    unknown = math.isnan(limit) and not math.isfinite(last)
    return f"learning diverges: {why}; take a smaller `rate`" if unknown else None


def lost(found: xr.Dataset) -> str | None:
    """Say from when on |J|² is infinite, of any rule and by any method.

    Examples
    --------
    >>> import manypass as mp
    >>> from manypass import growth
    >>> problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Adatron(), rate=40.0)
    >>> growth.lost(mp.solve(problem, [1.0, 9.0], mp.DMFT(samples=8_000)))
    'learning diverges: |J|² is infinite at t = 1; take a smaller `rate`'
    """
    t, Q = found.t.values, found.Q.values
    gone = t[np.isinf(Q.reshape(t.size, -1)).any(axis=1)]
    if not gone.size:
        return None
    return f"learning diverges: |J|² is infinite at t = {gone[0]:g}; take a smaller `rate`"
