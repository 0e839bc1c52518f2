"""Answers that come at once: exact curves, steady states against the rate, the spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from manypass import schedules, spectrum, verbs
from manypass.cavity.method import DMFT
from manypass.checks import Array
from manypass.exact import correlated
from manypass.exact.mean_force import MeanForce
from manypass.exact.method import Exact
from manypass.explorer.code import python, toml
from manypass.explorer.units import apiece, specialised
from manypass.explorer.view import View
from manypass.layers.alike import alike
from manypass.layers.net import Net
from manypass.problem import Problem
from manypass.rules import Adaline
from manypass.worth import effective_data

RATES = 31  # of the steady state's curves
APPROXIMATE = 21  # of the mean-force curves
SAMPLED_RATES = 9  # of a training error that needs sampling
DRAWN = 121  # of a rate that changes with time
NEAREST = 0.99  # of v_c: the last of them
RANKS = 400  # at which eigenvalues of the inputs are drawn
PASSES = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0])


def plain(result: xr.Dataset) -> dict[str, Any]:
    """Return lists that JSON can hold: what is infinite or unknown becomes null; units apiece."""

    def numbers(values: Any) -> Any:
        values = np.asarray(values, float)
        listed = np.where(np.isfinite(values), values, 0.0).astype(object)
        listed[~np.isfinite(values)] = None
        return listed.tolist()

    names = [name for name in (*result.coords, *result.data_vars) if result[name].ndim == 1]
    out = {str(name): numbers(result[name].values) for name in names}
    out |= {name: numbers(values) for name, values in apiece(result).items()}
    return out | specialised(result)


def curves(view: View) -> dict[str, Any]:
    """Exact curves, or word of the run that will bring them; v_c, the slow mode, code."""
    answer: dict[str, Any] = {
        "code": python(view),
        "code_simulated": python(view, simulated=True),
        "toml": toml(view.problem),
        "runs": ["training"] if view.sampler else [],
        "note": "",
        "exact": view.linear,
        "rate": rate(view) if view.problem.scheduled else None,
        "inputs": None if view.problem.teacher.isotropic else eigenvalues(view.problem),
    }
    if view.too_long:
        return answer | {"note": view.too_long, "runs": []}
    if view.layered:
        answer["warning"] = alike(Net.of(view.problem)) or ""
    if view.layered and view.linear:
        return answer | {"curves": plain(solved(view))}
    if view.linear:
        answer["curves"] = plain(solved(view))
        moves = isinstance(view.problem.decay, schedules.Schedule)  # and v_c does too
        none = moves or view.correlated_epochs  # of which it takes seconds
        limit = math.inf if none else verbs.critical_rate(view.problem.replace(rate=1.0))
        answer["critical_rate"] = limit if math.isfinite(limit) else None
        order = view.problem.sequence
        if order == "replacement" and not view.problem.scheduled:  # epochs have maps, not modes
            answer["relaxation"] = relaxation(view.problem)
            answer["slow_mode"] = verbs.slow_mode(view.problem)
        return answer
    refusal = view.theory.refusal(view.problem)
    return answer | ({"note": refusal} if refusal else {"runs": ["curves"]})


def rate(view: View) -> dict[str, Any]:
    """v(t), to be drawn."""
    t = schedules.moments(view.problem.rate, view.end, DRAWN)
    return {"t": t.tolist(), "v": view.problem.v(t).tolist()}


def eigenvalues(problem: Problem) -> dict[str, Any]:
    """μ of the inputs against their rank, largest first, and the teacher's power on each."""
    mu, P = problem.teacher.inputs.drawn(RANKS)
    order = np.argsort(-mu, kind="stable")
    rank = (np.arange(RANKS) + 0.5) / RANKS
    return {"rank": rank.tolist(), "mu": mu[order].tolist(), "P": (RANKS * P[order]).tolist()}


def repeated(view: View) -> dict[str, Any]:
    """How many fresh examples k passes over the data are worth."""
    try:
        found = worth(view)
    except ValueError as error:
        return {"note": str(error)}
    R_star = float(found.R_star)
    return plain(found) | {"R_star": R_star if math.isfinite(R_star) else None, "note": ""}


def worth(view: View) -> xr.Dataset:
    """Return the numbers behind them."""
    problem = view.problem
    if problem.scheduled or problem.start or problem.mode == "batch":
        raise ValueError("Passes are counted on-line, at a constant rate, from J = 0.")
    return effective_data(problem, PASSES)


def rates(view: View) -> Array:
    """Learning rates up to v_c, closer and closer, or a round range where there is none."""
    if never := unsettled(view.problem):
        raise ValueError(never)
    limit, part = verbs.critical_rate(view.problem), np.linspace(1 / RATES, 1, RATES)
    if math.isfinite(limit):
        return np.asarray(limit * NEAREST * (1 - (1 - part) ** 2))
    top = 2.0 ** max(2, math.ceil(math.log2(view.problem.rate)))
    return np.asarray(top * part)


def unsettled(problem: Problem) -> str:
    """Say that a schedule never settles, or nothing."""
    moving = (v for v in (problem.rate, problem.decay) if isinstance(v, schedules.Schedule))
    return next((f"There is no steady state of a schedule: {each}." for each in moving), "")


def sampled_rates(view: View) -> Array:
    """Those at which the training error is sampled: few, for the work grows as 1/v²."""
    return verbs.critical_rate(view.problem) * np.linspace(0.3, 0.95, SAMPLED_RATES)


def against_rate(of: Callable[[Problem], xr.Dataset], problem: Problem, v: Array) -> xr.Dataset:
    """One dataset on the coordinate `rate`."""
    found = [of(problem.replace(rate=float(rate))) for rate in v]
    axis = xr.Variable("rate", v, {"long_name": "learning rate"})
    return xr.concat(found, axis, data_vars="all", coords="minimal", compat="override")


def steady(view: View) -> dict[str, Any]:
    """E_g and E_t for t → ∞ against v: as they are, averaged, batch and mean-force."""
    problem = view.lasting
    if never := unsettled(problem):
        return {"note": never, "runs": []}
    theory = Exact() if view.linear else DMFT()
    if not view.linear or theory.steady_refusal(problem):
        return {"note": theory.steady_refusal(problem) or "", "runs": []}
    slow = problem.sequence != "replacement" and not isinstance(problem.rule, Adaline)
    if slow or view.correlated_epochs:
        return {"note": "Against v this takes a minute: use `manypass sweep`.", "runs": []}
    v = rates(view)
    answer: dict[str, Any] = {"runs": ["steady"] if view.samples_steady_state else []}
    try:
        batch = verbs.steady_state(problem.replace(mode="batch", sequence="replacement"))
        answer["batch"] = {"Eg": float(batch.Eg), "Et": float(batch.Et)}
        if problem.mode == "online":
            answer["now"] = plain(against_rate(verbs.steady_state, problem, v))
            if view.window:
                answer["averaged"] = plain(
                    against_rate(lambda p: verbs.steady_state(p, window=view.window), problem, v)
                )
    except ValueError as error:
        return {"note": str(error), "runs": []}
    if MeanForce().refusal(problem) is None:
        top = min(2 * (1 + problem.decay), 1.15 * float(v[-1])) * NEAREST
        some = top * np.linspace(1 / APPROXIMATE, 1, APPROXIMATE)
        answer["mean_force"] = plain(
            against_rate(lambda p: verbs.steady_state(p, MeanForce()), problem, some)
        )
    limit = verbs.critical_rate(problem)
    return answer | {"critical_rate": limit if math.isfinite(limit) else None}


def solved(view: View) -> xr.Dataset:
    """Return the numbers behind the exact curves."""
    return verbs.solve(view.problem, view.times, view.theory)


def settled(view: View) -> xr.Dataset:
    """Return the numbers behind the steady states against the rate."""
    return against_rate(verbs.steady_state, view.lasting, rates(view))


def relaxation(problem: Problem) -> dict[str, Any]:
    """Rates at which force fluctuations relax: the band 2v(λ + h) and the collective mode."""
    v, decay = problem.rate, problem.decay
    answer: dict[str, Any] = {"slow_mode": verbs.slow_mode(problem)}
    if not isinstance(problem.rule, Adaline):
        return answer | {"lines": [[2 * v * decay, 1.0]]}
    alpha = problem.data.alpha
    if not problem.teacher.isotropic:
        h, density = correlated.density(problem.teacher.inputs, alpha)
        low = correlated.nodes(problem.teacher.inputs, alpha).edge
        return answer | _band(problem, h, density, low)
    low, high = spectrum.edges(alpha)
    h = low + (high - low) * np.sin(np.linspace(0, np.pi / 2, 121)) ** 2  # crowded at both edges
    h = h[1:] if low == 0 else h  # where the density may diverge
    return answer | _band(problem, h, spectrum.density(alpha, h), low)


def _band(problem: Problem, h: Array, density: Array, low: float) -> dict[str, Any]:
    v, decay, alpha = problem.rate, problem.decay, problem.data.alpha
    return {
        "rate": (2 * v * (decay + h)).tolist(),
        "density": (density / (2 * v)).tolist(),
        "lines": [[2 * v * decay, 1 - alpha]] if alpha < 1 else [],
        "edge": 2 * v * (decay + low),
    }


ANSWERS = {"curves": curves, "steady": steady, "worth": repeated}
NUMBERS = {"curves": solved, "steady": settled, "worth": worth}
