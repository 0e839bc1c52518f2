"""`DMFT`: the mean-field solver for any force, as a method that `solve` can call."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, memory, orders, results
from manypass.cavity import rest, steady
from manypass.cavity.accuracy import FIRST, ensemble, one_pass, step_of, threads_of
from manypass.cavity.plan import make_plan
from manypass.cavity.population import even_examples, lead
from manypass.cavity.settling import CURVES, grown
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import DivergedError, Measured, Progress, extended
from manypass.layers.alike import tell
from manypass.layers.net import Net
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian
from manypass.simulation.kernels import compiled_rule
from manypass.smooth import objection

RTOL = 0.01  # unless told
FADED = 1e-3  # of ⟨F²⟩: what diverges by its rate does not first learn nearly everything


@dataclass(frozen=True)
class DMFT:
    """Dynamical mean-field theory, N → ∞, of any rule; its force may jump.

    Eight or more independent populations of sampled examples, each driven by its own averages, on
    two grids that are extrapolated to step zero. A force that jumps where all examples start (the
    perceptron's at κ = 0) is averaged over both sides there: F2(0) = F2(0⁺). In batch mode forces
    must be continuous, however steep they are. The past is kept in cells that widen with their age:
    time grows as t, memory as log t. Every `_se` is the root of the sum of squares of the scatter
    between populations, what is left of the step error (the width of the cells included) and of the
    bias of a finite population: the error is within one for about 68 % of all values, within two
    for 95 %.

    Parameters
    ----------
    dt : float, optional
        Largest time step, if it is not beyond what the fastest relaxation allows; the step that
        was taken is an attribute of the result.
    samples : int, optional
        Examples in all populations together (default 40,000); where forces that jump become rare
        they become three times as many.
    seed : int, optional
        The same seed gives the same numbers, on any number of threads; None draws a seed, which
        the result tells.
    rtol : float, optional
        Instead of dt and samples: choose them such that the error of every curve is below this
        fraction of the curve's largest value (of error rates: of ½; of R: of √Q). A warning names
        the curve that is not known so well. The default, 0.01, if none of the three is given.
    memory : float
        The most memory to take, in GB.
    threads : int, optional
        Populations computed at the same time; by default one per core.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    >>> theory = mp.solve(problem, [1, 2], mp.DMFT(dt=0.25, samples=8_000))
    >>> theory.R.values.round(1)
    array([0.4, 0.5])
    """

    dt: float | None = None
    samples: int | None = None
    seed: Any = 0
    rtol: float | None = None
    memory: float = 8.0
    threads: int | None = None

    def __post_init__(self) -> None:
        checks.plain(self)
        if self.dt is not None:
            checks.number("dt", self.dt, 1e-9, 1e6)
        if self.samples is not None:
            checks.count("samples", self.samples, 800, 10**9)
        object.__setattr__(self, "seed", checks.seed("seed", self.seed))
        if self.rtol is not None:
            checks.number("rtol", self.rtol, 1e-5, 0.5)
            if self.dt is not None or self.samples is not None:
                raise ValueError("`rtol` chooses dt and samples: give either it or them")
        checks.number("memory", self.memory, 1e-3, 1e6)
        if self.threads is not None:
            checks.count("threads", self.threads, 1, 1024)

    def refusal(self, problem: Problem) -> str | None:
        """Why this method cannot serve the problem, or None if it can."""
        if isinstance(problem.data, Dataset):
            linear = isinstance(problem.rule, Adaline | Hebbian)
            return (
                f"DMFT() is a theory of random examples, N → ∞, not of {problem.data!r}: use "
                f"method {'Exact()' if linear else 'Simulation(samples=100)'}"
            )
        if problem.layered:
            return orders.refusal(problem, "DMFT")
        flow = problem.mode == "batch"
        if flow and not problem.data.isotropic:
            use = orders.instead(problem, "DMFT")
            return (
                f"DMFT() does not serve correlated `inputs` = {problem.data.inputs} with `mode` = "
                f"'batch'" + (f": use method {use}" if use else ", and no other method does")
            )
        return _objection(problem) or orders.refusal(problem, "DMFT")

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """R, Q, F2, Eg, Et at times t with their errors; C and G if asked for."""
        if problem.layered:
            tell(Net.of(problem))
        if problem.layered and math.isinf(problem.data.alpha):
            return one_pass(self, problem, t, two_time, self._rtol or math.inf, progress)
        own = (*CURVES, "a") if problem.layered else CURVES
        names = (*own, "C", "G") if two_time else own
        if two_time and problem.batch_share:
            raise ValueError(
                f"DMFT() has no C and G (`two_time`) for `batch_share` = {problem.batch_share:g}: "
                f"use method Simulation(n=500, samples=100)"
            )
        if two_time:
            units = problem.rule.hidden if problem.layered else 1  # type: ignore[attr-defined]
            need = 16 * 8 * (t.size * units) ** 2
            memory.require(need, "take fewer `times`", self.memory * 1e9)
        still = rest.values(problem, t, two_time)
        if still is not None:
            return results.dataset(problem, self, still, {"t": t}).assign_attrs(rest.HOW)

        classes, known = problem.data.task == "classification", t
        guess = {"Eg": 0.5, "Et": 0.5, "Eg_se": 0.0, "Et_se": 0.0} if classes else {}

        def told(found: Measured, how: dict[str, Any]) -> xr.Dataset:
            values = {name: value for name, value in found.items() if name != "budget"}
            values = extended(values, t.size, guess)
            return results.dataset(problem, self, values, {"t": t}).assign_attrs(how)

        watch = (lambda *so_far: progress(told(*so_far))) if callable(progress) else progress
        rtol = self._rtol
        while True:
            try:
                found = told(*ensemble(self, problem, known, names, rtol, watch))
                break
            except DivergedError as lost:  # only times before are worth the other populations
                known, rtol = t[: lost.known], rtol and math.inf
                faded = lost.how.pop("faded")
                if faded < FADED:
                    warnings.warn(
                        f"DMFT() gives inf, but one population of {lost.how['samples']} examples "
                        f"has diverged after ⟨F²⟩ had fallen to {faded:.1g} of its first value: "
                        f"where hardly any example has a force, that may be chance; take more "
                        f"`samples`, or method Simulation(n=500, samples=100)",
                        stacklevel=3,
                    )
                if not lost.known:
                    empty = {n: np.empty(results.shape(problem, n, 0)) for n in (*names, "Eg")}
                    found = told(empty | {f"{n}_se": v for n, v in empty.items()}, lost.how)
                    break
        _tell_steep(problem)
        _tell_grown(problem, found)
        return found

    def steady_refusal(self, problem: Problem) -> str | None:
        """Why there is no steady state to be had: it needs no slopes; on-line forces may jump."""
        if isinstance(problem.data, Dataset):
            return self.refusal(problem)
        held = not (problem.layered or rest.rests(problem))
        return (_objection(problem) if held else None) or orders.refusal(
            problem, "DMFT.steady_state"
        )

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """R, Q and Eg of weights averaged over the window, F2 and Et of the present ones.

        Found by iteration, without following learning (see `cavity.steady`); `settled` is the time
        after which nothing is remembered. Raises `NotSettledError` where there is none.
        """
        still = rest.values(problem, np.zeros(()))
        if still is not None:
            values, how = still | {"settled": 0.0}, rest.HOW
        else:
            values, how = steady.solve(problem, window, self, self._rtol)
            _tell_steep(problem)
        return results.dataset(problem, self, values, {"window": window}).assign_attrs(how)

    def critical_rate(self, problem: Problem) -> tuple[float, float]:
        """v_c, beyond which |J|² diverges, and its standard error; see `cavity.steady`."""
        return steady.critical_rate(problem, self, self._rtol)

    def rougher(self) -> DMFT:
        """Return the method at a quarter of its accuracy, to look around with."""
        return self if self._rtol is None else replace(self, rtol=min(4 * self._rtol, 0.5))

    def prepare(self, problem: Problem) -> None:
        """Compile what a run needs into numba's cache, where other processes find it."""
        units = problem.rule.hidden if problem.layered else 1  # type: ignore[attr-defined]
        short = DMFT(samples=4_000 * units, threads=1)
        short.solve(problem, np.array([1e-3]), two_time=False, progress=False)

    def training_activations(self, problem: Problem, time: float, count: int) -> Measured:
        """y, ỹ and x of the examples of one population at a time."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed))
        if rest.rests(problem):
            y, target = even_examples(problem.teacher, max(count, FIRST), rng)
            return {"y": y[:count], "target": target[:count], "x": np.zeros(count)}
        if math.isinf(time):
            orders.require(problem, "DMFT.steady_state")
            return steady.activations(problem, count, self, self._rtol)
        reason = self.refusal(problem)
        if reason:
            raise ValueError(reason)
        step = step_of(self, problem) / (1 if self.dt else 2)
        plan = make_plan(problem, np.array([time]), ("R", "Q"), step)
        size = max(count, plan.least)
        threads_of(self, problem, plan, size)
        rule = compiled_rule(problem.rule)
        alike = replace(plan, copies=False)  # every example stands for one
        run = lead(problem, rule, size, alike, rng, split=False)[0]
        if not np.isfinite(run.at(plan.t, plan.clock.w)["Q"][0]):
            raise ValueError(f"learning has diverged before `time` = {time:g}: no distribution")
        y, target = run.student.examples
        return {"y": y[:count], "target": target[:count], "x": run.student.x[:count]}

    @property
    def _rtol(self) -> float | None:
        """The accuracy to reach; None if step or samples are given."""
        chosen = self.rtol is None and self.dt is None and self.samples is None
        return RTOL if chosen else self.rtol


def _objection(problem: Problem) -> str | None:
    """Say why a force cannot be served: not finite, or, in batch mode, with jumps."""
    flow = problem.mode == "batch"
    wrong = objection(problem.rule, problem.data.task, flow)
    if wrong is None:
        return None
    where = ", as long as no activation comes there" if "not finite" in wrong else ""
    return (
        f"DMFT() does not serve `rule` {problem.rule!r}{' in batch mode' * flow}: {wrong}; use "
        f"method Simulation(n=500, samples=100){where}"
    )


def _tell_grown(problem: Problem, found: xr.Dataset) -> None:
    """Warn of growth to which examples contribute that are too rare to be among those taken."""
    gone = np.flatnonzero(grown(problem, found.F2.values))
    if gone.size:
        when, F2 = float(found.t[gone[0]]), float(found.F2[gone[0]])
        warnings.warn(
            f"DMFT(): F2 is {F2:.2g} at t = {when:g}: where it grows so far, most of it "
            f"may be of examples too rare to be among those taken, and errors there are not to be "
            f"trusted; take a smaller `rate`",
            stacklevel=4,
        )


def _tell_steep(problem: Problem) -> None:
    """Warn of forces that grow faster than x: as N → ∞ some example has run away at any time."""
    if problem.layered or problem.mode == "batch" or not problem.rule.steep:
        return
    warnings.warn(
        f"the force of `rule` {problem.rule!r} grows faster than x: an example that comes far "
        f"enough is thrown farther whenever it is learned, at every `rate`. The more examples, the "
        f"sooner there is one: DMFT() tells of as many as it has taken, inf from where one of them "
        f"ran away; method Simulation(n=..., samples=100) of a network of its size",
        stacklevel=4,
    )
