"""When hidden units become different: the plateau on which they are alike, and its end."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, orders, results, verbs
from manypass.checks import Array
from manypass.layers import chance
from manypass.layers.alike import alike
from manypass.layers.averages import Fields
from manypass.layers.net import Net
from manypass.problem import Problem, checked
from manypass.start import Start

HALF = 0.5


def specialization(
    problem: Problem,
    times: Any,
    method: Any = "auto",
    *,
    alpha: Any = None,
    n: int | None = None,
    draws: int = 8,
    seed: int | None = 0,
) -> xr.Dataset:
    """When the units of a `Committee` specialise: the end of the plateau, against α.

    S = |c − c̄|/(|c|√(1 − 1/K)), c_km = R_km/√(Q_kk T_mm) and c̄ its mean over units: 0 where all
    units are alike, 1 where each has found a unit of the teacher of its own (K = M). The plateau
    ends when S rises above ½ for the last time.

    Parameters
    ----------
    problem : Problem
    times : array_like
        Times at which to look, up to the last at which the plateau may end.
    method : Method or str
        Of `solve`.
    alpha : sequence of float, optional
        Examples per weight to compare, ``math.inf`` for one pass; by default the problem's.
    n : int, optional
        Take the start of networks of n weights that know nothing: R_km normal, of variance
        Q_kk T_mm/n, instead of the R of the problem. The plateau grows as log n. With fresh
        examples what chance adds on the way is there too, to first order in 1/√n
        (`layers.chance`); with repeated ones it is not, and networks may leave the plateau
        earlier: `Simulation(n=n, samples=1)` has all of it.
    draws, seed : int
        Number of such starts, and the seed of their random numbers.

    Returns
    -------
    xarray.Dataset
        On `alpha` (and t): `time`, inf where units are still alike at the last of the times, NaN
        where they are no longer at the first, with `time_se` over the draws (NaN of one, and
        of simulated curves), and `specialization` S(t), its mean over them.

    Examples
    --------
    >>> import math
    >>> import manypass as mp
    >>> data = mp.Teacher(math.inf, "regression", hidden=2)
    >>> start = mp.Start(R=[[0.12, 0.02], [0.0, 0.1]], Q=[[0.25, 0.0], [0.0, 0.25]])
    >>> problem = mp.Problem(data, mp.Committee(2), rate=1.0, start=start)
    >>> float(mp.specialization(problem, range(0, 81)).time[0].round())
    26.0
    """
    if not checked(problem).layered:
        raise ValueError(f"`problem` must have a Committee as its rule, got {problem.rule!r}")
    net = Net.of(problem)
    if len(net.a) == 1:
        raise ValueError("`problem` has one hidden unit: there is nothing to specialise")
    t = checks.increasing("times", times, results.LATEST)
    given = np.atleast_1d(problem.data.alpha if alpha is None else checks.reals("alpha", alpha))
    if given.ndim != 1 or not given.size:
        raise ValueError(f"`alpha` must be a number or some, got {checks.shown(alpha)}")
    starts, chosen = [problem.start], verbs.named(method)
    rng = np.random.default_rng(checks.seed("seed", seed))
    draws = checks.count("draws", draws, 1, 10**4)
    if n is not None:
        n = checks.count("n", n, sum(net.units), 10**9)
        if getattr(chosen, "n", n) != n:
            raise ValueError(
                f"`n` = {n} is not that of `method` Simulation(n={chosen.n}): give one"
            )
        starts = [random_start(net, n, rng) for _ in range(draws)]
    elif (why := alike(net)) is not None:
        raise ValueError(f"{why}: `n` gives starts of networks of a finite size")
    fields = Fields(net)
    S = np.empty((given.size, len(starts), t.size))
    ends = np.empty((given.size, len(starts)))
    for i, each in enumerate(given.tolist()):
        for j, start in enumerate(starts):
            asked = problem.replace(alpha=each, start=start)
            simulated = hasattr(chosen, "n")
            if n is not None and math.isinf(each) and not simulated:
                R, Q = chance.curves(orders.equivalent(asked), fields, t, n, rng)
            else:
                drawn = n is not None and simulated  # other examples for another start
                own = replace(chosen, seed=int(rng.integers(2**53))) if drawn else method
                found = verbs.solve(asked, t, own)
                R, Q = found.R.values, found.Q.values
            S[i, j] = apart(R, Q, net.T)
            ends[i, j] = end(t, S[i, j])
    chance_in = n is not None or hasattr(chosen, "n")  # one draw of it has no error bar
    spread = np.full(given.size, np.nan if chance_in else 0.0)
    if len(starts) > 1:
        with np.errstate(invalid="ignore"):
            spread = ends.std(axis=1, ddof=1) / np.sqrt(len(starts))
        spread = np.where(np.isfinite(spread), spread, np.inf)
    if (early := np.isnan(ends).any(axis=1)).any():
        spread = np.where(early, np.nan, spread)
        some = ", ".join(f"{each:g}" for each in given[early])
        warnings.warn(
            f"the plateau of `alpha` = {some} ended before the first of the `times`, {t[0]:g}, "
            f"when is not known: begin earlier, at 0",
            stacklevel=checks.outside(),
        )
    out = xr.Dataset(
        {
            "time": ("alpha", ends.mean(axis=1), {"long_name": "end of the plateau"}),
            "time_se": ("alpha", spread, {"long_name": "standard error: end of the plateau"}),
            "specialization": (("alpha", "t"), S.mean(axis=1), {"long_name": "specialization S"}),
        },
        {"alpha": given, "t": t},
    )
    return out.assign_attrs(results.attributes(problem))


def random_start(net: Net, n: int, rng: np.random.Generator) -> Start:
    """Return the start of random weights of overlaps Q that know nothing of the teacher."""
    K, M = net.units
    z = rng.standard_normal((K, M)) / np.sqrt(n)
    z /= max(1.0, np.linalg.norm(z, 2) / 0.99)  # no longer than the weights
    w, u = np.linalg.eigh(net.Q)
    R = u * np.sqrt(np.maximum(w, 0.0)) @ z @ np.linalg.cholesky(net.T).T
    return Start(R=R, Q=net.Q)


def apart(R: Array, Q: Array, T: Array) -> Array:
    """S at every time: how different the units are; 0 once they have diverged."""
    known = np.isfinite(R).all((-1, -2), keepdims=True) & np.isfinite(Q).all(
        (-1, -2), keepdims=True
    )
    R, Q = np.where(known, R, 0.0), np.where(known, Q, 1.0)
    length = np.sqrt(np.maximum(np.diagonal(Q, axis1=-2, axis2=-1), 1e-300))
    c = R / length[..., :, None] / np.sqrt(np.diag(T))
    rest = c - c.mean(axis=-2, keepdims=True)
    size = np.sqrt(np.maximum((c**2).sum(axis=(-1, -2)), 1e-300))
    most = np.sqrt(1 - 1 / c.shape[-2])
    return np.asarray(np.sqrt((rest**2).sum(axis=(-1, -2))) / size / most)


def end(t: Array, S: Array) -> float:
    """Return when S rises above ½ for the last time; inf if it stays below.

    If it is never below, that is 0 if one looks from 0 on, and not known (NaN) otherwise.
    """
    below = np.flatnonzero(S < HALF)
    if not below.size:
        return np.nan if t[0] else 0.0
    k = int(below[-1])
    if k + 1 == t.size:
        return np.inf
    return float(t[k] + (t[k + 1] - t[k]) * (HALF - S[k]) / (S[k + 1] - S[k]))
