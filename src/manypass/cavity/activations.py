"""Distributions of activations: of examples that are learned (x) and of fresh ones (h)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, orders, results, schedules
from manypass.cavity.examples import Draws, gaussian, general, pulled
from manypass.cavity.sampling import Memory, check_instants, chunks
from manypass.cavity.tables import Tables, look_up_1, look_up_2, result_tables
from manypass.checks import Array
from manypass.exact.course import Course
from manypass.exact.modes import linear_modes
from manypass.exact.steady import check_steady, stationary
from manypass.exact.training_error import shot_exponent, shot_moments, wave_numbers
from manypass.problem import Problem, checked
from manypass.rules import Adaline, Hebbian
from manypass.simulation.kernels import compiled_force

DIVERGED = "learning has diverged before `time` = {:g}: no distribution"
MOST_WORK = 1e13  # cubes of instants that are sampled: about an hour


def activations(
    problem: Problem,
    time: float | str,
    *,
    samples: int = 100_000,
    seed: int | None = 0,
    source: Any = "exact",
) -> xr.Dataset:
    """Sample x(t) = h(t) + v Σ_{t_r < t} G(t,t_r) F(x(t_r), ỹ) of examples of the training set.

    Parameters
    ----------
    problem : Problem
        On-line learning; any rule if `source` is a result or a simulation.
    time : float or "steady"
        When to look.
    samples, seed : int
        Number of examples; the same seed gives the same numbers.
    source : "exact", xarray.Dataset, Simulation or DMFT, or "simulation", "dmft"
        Where R, C and G come from: the exact theory of a linear rule; a result with C and G on
        evenly spaced times from 0, from any method; or a `Simulation` or `DMFT`, whose own
        training examples or population are then returned.

    Returns
    -------
    xarray.Dataset
        On dimension `example`: teacher activation `y`, `target`, activation `x`, and from theory
        also the cavity activation `h` and the number of times `learned`.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> seen = mp.activations(problem, 2.0, samples=20_000)
    >>> bool(abs(((seen.target - seen.x) ** 2).mean() - 0.7022) < 0.02)  # F2
    True
    """
    time = _checked_time(checked(problem), time)
    if problem.layered:
        orders.require(problem, "activations")
    samples = checks.count("samples", samples, 1, 10**9)
    seed = checks.seed("seed", seed)
    if isinstance(source, str) and source in ("dmft", "simulation"):
        from manypass.verbs import named

        source = named(source)
    if hasattr(source, "training_activations") and not isinstance(source, type):
        plain = problem if getattr(source, "finite", False) else orders.equivalent(problem)
        plain = schedules.up_to(plain, time)
        values = source.training_activations(plain, time, samples)
        kind = "simulation" if type(source).__name__ == "Simulation" else "theory"
        return _dataset(problem, time, values, {"seed": source.seed, "source": kind})
    asked, problem = problem, orders.require(problem, "activations")
    tables, now = _tables(problem, time, source)
    check_instants(problem, now - tables.start)
    straight = isinstance(problem.rule, Hebbian)
    cost = (1 + (now - tables.start) / problem.data.alpha) ** 3  # of the covariance of one example
    if not straight and samples * cost > MOST_WORK:
        raise ValueError(
            f"`samples` = {samples} of examples that are learned about {cost ** (1 / 3):.3g} times "
            f"would take hours: at most {max(int(MOST_WORK / cost), 1)}"
        )
    force, parameters = compiled_force(problem.rule), tuple(problem.rule.parameters.values())
    line = problem.rate, now, tables.start

    def measure(count: int, rng: np.random.Generator) -> dict[str, Array]:
        draws = Draws.make(problem.teacher, tables.start, now, count, rng)
        normals = rng.standard_normal(draws.first[-1] + count)
        if straight:
            x, h = pulled(tables, line, draws, normals)
        else:
            x, h = general(tables, line, draws, normals, force, parameters)
        learned = np.diff(draws.first).astype(float)
        return {"y": draws.y, "target": draws.target, "x": x, "h": h, "learned": learned}

    found = list(chunks(measure, samples, seed))
    values = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    return _dataset(asked, time, values, {"seed": seed, "source": "theory"})


def activation_density(
    problem: Problem,
    time: float | str,
    x: Any,
    *,
    y: float,
    target: float,
    samples: int = 20_000,
    seed: int | None = 0,
) -> xr.DataArray:
    """P(x | y, ỹ) at one time for a linear rule, on given points x.

    Hebbian: one Fourier integral, no sampling (paper's Fourier form, with v restored). Adaline:
    the average of the Gaussians that sampled learning instants give.

    Examples
    --------
    >>> import numpy as np
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Hebbian(), rate=0.5, decay=0.8)
    >>> x = np.linspace(-6, 8, 1401)
    >>> P = mp.activation_density(problem, 2.0, x, y=0.7, target=1.0)
    >>> round(float(P.sum() * 0.01), 6)
    1.0
    """
    time = _checked_time(checked(problem), time)
    asked, problem = problem, orders.require(problem, "activation_density")
    points = np.atleast_1d(checks.reals("x", x))
    if points.ndim != 1 or not np.isfinite(points).all():
        raise ValueError(f"`x` must be finite numbers, got {checks.shown(x)}")
    y, target = checks.number("y", y, -1e3, 1e3), checks.number("target", target, -1e3, 1e3)
    if problem.data.task == "classification" and abs(target) != 1:
        raise ValueError(f"`target` must be -1 or 1 for classification, got {target:g}")
    says = math.copysign(1.0, y) if problem.data.task == "classification" else y
    if not problem.teacher.noise and y and abs(target - says) > 1e-9 * abs(says):
        raise ValueError(
            f"`target` = {target:g} cannot be at `y` = {y:g}: a teacher with `noise` = 0 says "
            f"{says:g}"
        )
    samples = checks.count("samples", samples, 1, 10**9)
    seed = checks.seed("seed", seed)
    if isinstance(problem.rule, Hebbian):
        density = _hebbian_density(problem, time, points, y, target)
    elif isinstance(problem.rule, Adaline):
        density = _adaline_density(problem, time, points, y, target, samples, seed)
    else:
        raise ValueError(
            f"the density has a closed form for Adaline and Hebbian only, not for `rule` "
            f"{problem.rule!r}: make a histogram of activations(...).x"
        )
    return results.array(asked, "P", density, {"x": points})


def _hebbian_density(problem: Problem, time: float, x: Array, y: float, target: float) -> Array:
    """∫ dk/2π exp{ik(Ry − x) − ½k²(C − R²)} ⟨e^{ikỹW}⟩."""
    R, Q = _order_parameters(problem, time)
    variance = max(Q - R**2, 0.0)
    if variance == 0:
        raise ValueError(f"`time` = {time:g}: there x is not random, it has no density")
    top, shot = 9 / math.sqrt(variance), shot_moments(problem, np.array([time]))[0][0]
    # Beyond `far` there is nothing: the shot noise and the Gaussian both end long before.
    far = abs(target) * (3 * shot + 40 * problem.rate) + 40 * math.sqrt(variance)
    k, weights = wave_numbers(top, far)
    boosts = np.exp(shot_exponent(problem, time, k * abs(target)))
    chi = np.exp(-variance * k**2 / 2) * (boosts if target >= 0 else boosts.conj())
    out = np.zeros(x.size)
    for i in np.flatnonzero(np.abs(x - R * y) < far):
        out[i] = (np.exp(1j * (R * y - x[i]) * k) * chi).real @ weights / math.pi
    return np.maximum(out, 0.0)


def _adaline_density(
    problem: Problem, time: float, x: Array, y: float, target: float, samples: int, seed: int
) -> Array:
    tables, now = _tables(problem, time, "exact")
    place = (now - tables.start) / tables.step
    fresh = look_up_2(tables.C, place, 0.0) - look_up_1(tables.R, place) ** 2  # variance of h

    def measure(count: int, rng: np.random.Generator) -> dict[str, Array]:
        draws = Draws.make(problem.teacher, tables.start, now, count, rng)
        fixed = draws._replace(y=np.full(count, y), target=np.full(count, target))
        mean, variance = gaussian(tables, (problem.rate, now, tables.start), fixed)
        if not np.median(variance) > 1e-6 * fresh:  # the tables are no better
            raise ValueError(
                f"`alpha` = {problem.data.alpha:g}: an example that is learned so often is known "
                f"too well, its x is not random within the accuracy of its density"
            )
        variance = np.maximum(variance, 1e-12 * fresh)  # of one that has just been learned
        height = 1 / np.sqrt(2 * math.pi * variance)
        with np.errstate(over="ignore"):  # a point that is far away
            bells = (height * np.exp(-((point - mean) ** 2) / (2 * variance)) for point in x)
            return {"P": np.array([bell.sum() for bell in bells])}

    return np.asarray(sum(part["P"] for part in chunks(measure, samples, seed)) / samples)


def _checked_time(problem: Problem, time: Any) -> float:
    _ = problem.teacher  # of a Dataset there is no example that nobody has learned
    if problem.mode != "online":
        raise ValueError(f"`mode` must be 'online' for activations, got {problem.mode!r}")
    if isinstance(time, str) and time == "steady":
        return math.inf
    if isinstance(time, str):
        raise ValueError(f"`time` must be a number or 'steady', got {checks.shown(time)}")
    return checks.number("time", time, 1e-9, 1e6)


def _order_parameters(problem: Problem, time: float) -> tuple[float, float]:
    """R and Q of a Hebbian problem."""
    modes = linear_modes(problem).driven
    if math.isinf(time):
        check_steady(problem)
        values = stationary(modes, feedback=0.0)
        return values["R"], values["Q"]
    state = Course(problem, time).at(np.array([time]))
    return float(modes.R(state)[0]), float(modes.Q(state)[0])


def _tables(problem: Problem, time: float, source: Any) -> tuple[Tables, float]:
    if isinstance(source, str):
        checks.choice("source", source, ("exact", "simulation", "dmft"))
        if not isinstance(problem.rule, Adaline | Hebbian):
            raise ValueError(
                f"`source` 'exact' serves Adaline and Hebbian, not `rule` {problem.rule!r}: give "
                f"a DMFT or a Simulation, or a result with C and G"
            )
        if math.isinf(time):
            check_steady(problem)
        tables, now = Memory(problem, time).tables(time)
        if not np.isfinite(tables.C).all():
            raise ValueError(DIVERGED.format(time))
        return tables, now
    tables = result_tables(source)
    if source.attrs.get("problem") != results.attributes(problem)["problem"]:
        raise ValueError("`source` answers another problem than the `problem` given")
    if math.isinf(time) or time > tables.end * (1 + 1e-9):
        raise ValueError(f"`time` must be within `source`, up to {tables.end:g}, got {time:g}")
    return tables, min(time, tables.end)


def _dataset(problem: Problem, time: float, values: dict[str, Array], attrs: Any) -> xr.Dataset:
    if not np.isfinite(values["x"]).all():
        raise ValueError(DIVERGED.format(time))
    variables = {
        name: ("example", value, {"long_name": results.LONG_NAMES[name]})
        for name, value in values.items()
    }
    out = xr.Dataset(variables, {"time": time})
    out.attrs = results.attributes(problem) | attrs
    return out
