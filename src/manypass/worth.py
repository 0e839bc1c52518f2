"""What repeated data are worth: how many fresh examples give the error of several passes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its rooms open on first use
import xarray as xr

from manypass import checks, results, verbs
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.problem import Problem, checked

POINTS = 400  # times at which a curve of fresh examples is looked at first
MOST = 1e4  # as many times the data as are looked for
LOG_R = (-5.0, 12.0)  # ln R* is sought between, beyond is 0 and inf
FITTED = 3  # numbers of passes that determine R* and show that it fits
RATES, DECAYS = (1e-4, 10.0), (1e-6, 100.0)  # of a search


def effective_data(problem: Problem, passes: Any, *, tuned: bool = False) -> xr.Dataset:
    r"""D(k): the fresh examples, in units of p, that give the E_g of k passes over p = αN of them.

    E_g(fresh examples, Dp) = E_g(k passes), at the problem's rate and decay, or, `tuned`, each at
    the rate and decay that are best for it. Drawn with replacement one pass is worth less than one,
    since it misses examples; with ``sequence="reshuffled"`` it is worth exactly one.

    Parameters
    ----------
    problem : Problem
        Of Adaline or Hebbian learning and a Teacher with finite α, whose `inputs` may be
        correlated; in epochs too, whatever `Exact` serves.
    passes : sequence of float
        Numbers k of passes, rising.
    tuned : bool
        Compare each at its own best rate and decay, not at the problem's.

    Returns
    -------
    xarray.Dataset
        `effective_data` and `Eg` on the coordinate `passes`; inf where no number of fresh examples
        up to 10⁴ p does as well, 0 where none at all does: passes have done harm. `R_star` is the
        fit of 1 + R*(1 − e^{−(k−1)/R*}), the form of
        Muennighoff et al. (arXiv 2305.16264), to D(k) over that of the first k ≥ 1; with it `fit`.
        R* is 0 if more passes add nothing or do harm, inf if each is worth as much as the first.
        Both are NaN if fewer than three such k have a worth, and `fit` where k < 1. If `tuned`,
        also the `rate` and `decay` of k passes.

    Raises
    ------
    ValueError
        Above the critical rate, of this α or of fresh examples.

    Examples
    --------
    >>> import manypass as mp
    >>> data = mp.Teacher(1.0, task="regression", noise=0.1, inputs="powerlaw:1.2:1.4:0.005")
    >>> problem = mp.Problem(data, mp.Adaline(), rate=0.5, decay=0.01)
    >>> mp.effective_data(problem, [1, 2, 4, 8]).effective_data.values.round(2)
    array([0.82, 1.43, 2.33, 3.48])
    """
    k = checks.increasing("passes", passes, results.LATEST)
    if k[0] <= 0:
        raise ValueError(f"`passes` must be above 0, got {k[0]:g}")
    checks.flag("tuned", tuned)
    if isinstance(checked(problem).data, Dataset) or math.isinf(problem.data.alpha):
        raise ValueError(f"`problem` must have a Teacher with a finite `alpha`, not {problem.data}")
    if problem.mode == "batch":
        raise ValueError(
            "`mode` must be 'online' to ask what passes are worth, got 'batch': there all examples "
            "are learned all the time, and of fresh ones infinitely many"
        )
    fresh = problem.replace(alpha=math.inf, sequence="replacement", batch_share=0.0)
    for asked in (problem, fresh):
        if reason := verbs.named("exact").refusal(asked):
            only = "; what data are worth is known by the exact theory alone"
            raise ValueError(reason.partition(": use method")[0] + only)
    for asked in () if tuned or problem.scheduled else (problem, fresh):
        # Epochs are steadier than examples drawn with replacement, whose limit is known at once
        drawn = asked if asked.batch_share else asked.replace(sequence="replacement")
        if asked.rate < 0.8 * verbs.critical_rate(drawn):
            continue
        limit = verbs.critical_rate(asked)
        if asked.rate >= limit:
            raise ValueError(
                f"`rate` = {asked.rate:g} is not below the critical rate v_c = {limit:.6g} of "
                f"alpha = {asked.data.alpha:g}: errors grow, and data are worth nothing"
            )
    alpha = problem.data.alpha
    if tuned:
        found = [best_error(problem, alpha * float(times)) for times in k]
        Eg, rate, decay = (np.array(column) for column in zip(*found, strict=True))
        D = np.array(
            [_tuned_worth(fresh, error, alpha * times) for error, times in zip(Eg, k, strict=True)]
        )
        more = {"rate": rate, "decay": decay}
    else:
        Eg, more = verbs.solve(problem, alpha * k, "exact").Eg.values, {}
        D = worth(fresh, Eg, alpha)
    whole = k >= 1  # what less than one pass is worth the form does not say
    R_star = fitted(k[whole], D[whole])
    values = {"effective_data": D / alpha if tuned else D, "Eg": Eg, **more}
    form, seen = saturating(k[whole], R_star), values["effective_data"][whole]
    values["fit"] = np.full_like(k, math.nan)
    values["fit"][whole] = form * seen[:1] / form[:1]
    out = xr.Dataset(
        {name: ("passes", v, {"long_name": NAMES[name]}) for name, v in values.items()},
        {"passes": ("passes", k, {"long_name": "passes over the training set"})},
    )
    out["R_star"] = ((), R_star, {"long_name": NAMES["R_star"]})
    return out.assign_attrs(results.attributes(problem))


NAMES = {
    "effective_data": "fresh examples that give the same E_g, in units of p",
    "Eg": results.LONG_NAMES["Eg"],
    "fit": "fit of 1 + R*(1 - exp(-(k-1)/R*)), times the first value from k = 1 on",
    "R_star": "how many repetitions count, of the fit",
    "rate": "best learning rate",
    "decay": "best weight decay",
}


def worth(fresh: Problem, errors: Array, alpha: float) -> Array:
    """Return when fresh examples first reach the errors, over α."""
    from scipy.optimize import elementwise  # scipy does not open this room by itself

    t = np.geomspace(1e-4 * alpha, MOST * alpha, POINTS)
    Eg = verbs.solve(fresh, t, "exact").Eg.values

    def apart(log_t: Array, error: Array) -> Array:
        times, place = np.unique(np.exp(log_t), return_inverse=True)
        return np.asarray(verbs.solve(fresh, times, "exact").Eg.values[place] - error)

    reached = Eg[:, None] <= errors
    first, met = np.argmax(reached, axis=0), reached.any(axis=0) & ~reached[0]
    out = np.where(reached[0], 0.0, np.inf)
    if met.any():
        bracket = np.log(t[first[met] - 1]), np.log(t[first[met]])
        found = elementwise.find_root(apart, bracket, args=(errors[met],))
        out[met] = np.exp(found.x) / alpha
    return out


def best_error(problem: Problem, time: float) -> tuple[float, float, float]:
    """Return the least E_g at a time, and the rate and decay that give it."""

    def error(point: Array) -> float:
        rate, decay = np.exp(np.clip(point, *np.log([RATES, DECAYS]).T))
        found = float(verbs.solve(problem.replace(rate=rate, decay=decay), [time], "exact").Eg[0])
        return found if math.isfinite(found) else 1e9

    starts = [np.log([v, decay]) for v in (0.1, 0.5, 1.0) for decay in (1e-4, 0.02, 0.3)]
    first = min(starts, key=error)
    simplex = first + np.array([[0, 0], [0.5, 0], [0, 0.8]])
    options: Any = {"xatol": 1e-3, "fatol": 1e-9, "initial_simplex": simplex, "maxfev": 120}
    found = scipy.optimize.minimize(error, first, method="Nelder-Mead", options=options)
    rate, decay = np.exp(np.clip(found.x, *np.log([RATES, DECAYS]).T))
    return float(found.fun), float(rate), float(decay)


def _tuned_worth(fresh: Problem, error: float, start: float) -> float:
    """Return when fresh examples, at the best rate and decay for that time, reach an error."""
    low, high = math.log(start) - 1.0, math.log(start)

    def apart(log_t: float) -> float:
        return math.log(best_error(fresh, math.exp(log_t))[0] / error)

    while apart(low) < 0:
        low -= 1.0
    while apart(high) > 0:
        high += 1.0
        if high > math.log(start * MOST):
            return math.inf
    return math.exp(scipy.optimize.brentq(apart, low, high, xtol=1e-3))


def saturating(k: Array, R_star: float) -> Array:
    """1 + R*(1 − e^{−(k−1)/R*})."""
    if not 0 < R_star < math.inf:  # not known, or one of the ends of the form
        return np.asarray(
            {0.0: np.ones_like(k), math.inf: k}.get(R_star, np.full_like(k, math.nan))
        )
    return np.asarray(1 - R_star * np.expm1(-(k - 1) / R_star))


def fitted(k: Array, D: Array) -> float:
    """Return R*, by least squares of the logarithms; NaN if fewer than FITTED values are known.

    0 if more passes add nothing, and inf if each is worth as much as the first.
    """
    known = np.isfinite(D) & (D > 0)
    if known.sum() < FITTED:
        return math.nan
    k, log_D = k[known], np.log(D[known])

    def misfit(log_R: float) -> float:
        gap = log_D - np.log(np.maximum(saturating(k, math.exp(log_R)), 1e-9))
        return float(((gap - gap[0]) ** 2).sum())

    low, high = LOG_R
    found = float(scipy.optimize.minimize_scalar(misfit, bounds=LOG_R, method="bounded").x)
    return 0.0 if found < low + 0.01 else math.inf if found > high - 0.01 else math.exp(found)
