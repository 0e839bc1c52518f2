"""`DMFT`: the mean-field solver for any force, as a method that `solve` can call."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, memory, orders, results, schedules
from manypass.cavity import rest
from manypass.cavity.dmft import SPLIT, sample, summary
from manypass.cavity.layered import CURVES as LAYERED
from manypass.cavity.plan import Plan, make_plan
from manypass.cavity.population import even_examples, lead
from manypass.cavity.settling import CURVES, fastest, warn_of, with_errors, with_layers
from manypass.cavity.smooth import jumps, objection
from manypass.cavity.weights import few
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import DivergedError, Measured, Progress, extended, in_order, shown
from manypass.layers.alike import tell
from manypass.layers.net import Net
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian

SAMPLES = 40_000  # unless told
RTOL = 0.01  # unless told
COARSE = 0.6  # first step that is tried, in units of the fastest relaxation time
OFTEN = 0.2  # and the most that x changes by an example's own instants in it, v/α
LARGEST = 2.5  # step that can be asked for, in units of that one
MOST_SAMPLES = 10_000_000  # that are tried to reach an accuracy
POPULATIONS = 16  # independent ones: their scatter is the sampling error
ROUNDS = 5  # of choosing step and samples
FEWEST, MOST_POINTS = 1 << 10, 1 << 18  # of averages that drive one-pass learning
FIRST = 2000  # examples of each population at first, if an accuracy is to be reached


@dataclass(frozen=True)
class DMFT:
    """Dynamical mean-field theory, N → ∞, of any rule; its force may jump.

    Sixteen independent populations of sampled examples, each driven by its own averages, on two
    grids that are extrapolated to step zero. A force that jumps where all examples start (the
    perceptron's at κ = 0) is averaged over both sides there: F2(0) = F2(0⁺). In batch mode forces
    must be continuous, however steep they are. The past is kept in cells that widen with their
    age: time grows as t, memory as log t. Every `_se` is the root of the sum of squares of the
    scatter between populations, what is left of the step error (the width of the cells included)
    and the bias of a finite population: the error is within one for about 68 % of all values,
    within two for 95 %.

    Parameters
    ----------
    dt : float, optional
        Largest time step, if it is not beyond what the fastest relaxation allows; the step that
        was taken is an attribute of the result.
    samples : int, optional
        Examples in all populations together (default 40,000).
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
        wrong = objection(problem.rule, problem.data.task, flow)
        if wrong is None:
            return orders.refusal(problem, "DMFT")
        needs = "a continuous force in batch mode" if flow else "a finite force"
        return (
            f"DMFT() needs {needs}, but of `rule` {problem.rule!r} {wrong}: use method "
            f"Simulation(n=500, samples=100)"
        )

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """R, Q, F2, Eg, Et at times t with their errors; C and G if asked for."""
        if problem.layered:
            tell(Net.of(problem))
        if problem.layered and math.isinf(problem.data.alpha):
            return self._one_pass(problem, t, two_time)
        own = LAYERED if problem.layered else CURVES
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
        if rest.rests(problem):
            still = rest.values(problem, t, two_time)
            return results.dataset(problem, self, still, {"t": t}).assign_attrs(rest.HOW)

        classes, known = problem.data.task == "classification", t
        guess = {"Eg": 0.5, "Et": 0.5, "Eg_se": 0.0, "Et_se": 0.0} if classes else {}

        def finish(found: Measured) -> Measured:
            if problem.layered:
                return with_layers(problem, found)
            return with_errors(problem.data.task, found)

        def told(found: Measured, how: dict[str, Any]) -> xr.Dataset:
            values = {name: value for name, value in found.items() if name != "budget"}
            values = extended(values, t.size, guess)
            return results.dataset(problem, self, values, {"t": t}).assign_attrs(how)

        watch = (lambda *so_far: progress(told(*so_far))) if callable(progress) else progress
        rtol = self._rtol
        while True:
            try:
                return told(*self._ensemble(problem, known, names, finish, rtol, watch))
            except DivergedError as lost:  # only times before are worth the other populations
                known, rtol = t[: lost.known], rtol and math.inf
                if not lost.known:
                    empty = {n: np.empty(results.shape(problem, n, 0)) for n in (*names, "Eg")}
                    return told(empty | {f"{n}_se": v for n, v in empty.items()}, lost.how)

    def _one_pass(self, problem: Problem, t: Array, two_time: bool) -> xr.Dataset:
        """Curves of a Committee that sees every example once, from sampled averages."""
        from manypass.layers import onepass

        threads = self.threads or os.cpu_count() or 1
        points = FEWEST if self.samples is None else max(self.samples // onepass.SETS, 2)
        while True:
            found = onepass.sampled(problem, t, two_time, self.seed, points, threads)
            reached = onepass.largest_error(found)
            if self._rtol is None or reached <= self._rtol or points >= MOST_POINTS:
                break
            points *= 4
        warn_of(found, problem.data.task, self._rtol or math.inf, "take a larger one", 4)
        how = {"samples": points * onepass.SETS, "errors": json.dumps({"sampling": reached})}
        return results.dataset(problem, self, found, {"t": t}).assign_attrs(how)

    def steady_refusal(self, problem: Problem) -> str | None:
        """Why there is no steady state to be had: it needs no slopes, and forces may jump."""
        given = isinstance(problem.data, Dataset)
        return self.refusal(problem) if given else orders.refusal(problem, "DMFT.steady_state")

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """R, Q and Eg of weights averaged over the window, F2 and Et of the present ones.

        Found by iteration, without following learning (see `cavity.steady`); `settled` is the time
        after which nothing is remembered. Raises `NotSettledError` where there is none.
        """
        from manypass.cavity import steady

        if rest.rests(problem):
            values, how = rest.values(problem, np.zeros(())) | {"settled": 0.0}, rest.HOW
        else:
            values, how = steady.solve(problem, window, self, self._rtol)
        return results.dataset(problem, self, values, {"window": window}).assign_attrs(how)

    def critical_rate(self, problem: Problem) -> tuple[float, float]:
        """v_c, beyond which |J|² diverges, and its standard error; see `cavity.steady`."""
        from manypass.cavity import steady

        return steady.critical_rate(problem, self, self._rtol)

    def rougher(self) -> DMFT:
        """Return the method at a quarter of its accuracy, to look around with."""
        return self if self._rtol is None else replace(self, rtol=min(4 * self._rtol, 0.5))

    def prepare(self, problem: Problem) -> None:
        """Compile what a run needs into numba's cache, where other processes find it."""
        short = DMFT(samples=2_000, threads=1)
        short.solve(problem, np.array([1e-3]), two_time=False, progress=False)

    def training_activations(self, problem: Problem, time: float, count: int) -> Measured:
        """y, ỹ and x of the examples of one population at a time."""
        from manypass.simulation.kernels import compiled_rule

        rng = np.random.default_rng(np.random.SeedSequence(self.seed))
        if rest.rests(problem):
            y, target = even_examples(problem.teacher, max(count, FIRST), rng)
            return {"y": y[:count], "target": target[:count], "x": np.zeros(count)}
        if math.isinf(time):
            from manypass.cavity import steady

            orders.require(problem, "DMFT.steady_state")
            return steady.activations(problem, count, self)
        reason = self.refusal(problem)
        if reason:
            raise ValueError(reason)
        step = self._step(problem) / (1 if self.dt else 2)
        plan = make_plan(problem, np.array([time]), CURVES, dict, step)
        size = max(count, plan.least)
        self._threads(problem, plan, size)
        rule = compiled_rule(problem.rule)
        run = lead(problem, rule, size, plan, rng, split=False)[0]
        if not np.isfinite(run.at(plan.t, plan.clock.w)["Q"][0]):
            raise ValueError(f"learning has diverged before `time` = {time:g}: no distribution")
        y, target = run.examples[:2]
        return {"y": y[:count], "target": target[:count], "x": run.x[:count]}

    def _ensemble(
        self,
        problem: Problem,
        t: Array,
        names: Any,
        finish: Any,
        rtol: float | None,
        progress: Any,
    ) -> tuple[Measured, dict[str, Any]]:
        """Values with errors and how they were found; chooses step and samples to reach `rtol`."""
        dt, samples = self._step(problem), self.samples or SAMPLES
        jump = jumps(problem.rule, problem.data.task)  # then the order of the step is not quite 2
        if rtol is not None:
            first = make_plan(problem, t, names, finish, dt)
            samples = POPULATIONS * max(FIRST * first.units, first.least)
        found: Measured = {}
        for _ in range(ROUNDS):
            try:
                found, how = self._populations(
                    problem, make_plan(problem, t, names, finish, dt), samples, progress
                )
            except ValueError:
                if not found:
                    raise
                break  # too many steps, or too much memory: what there is will have to do
            errors = found.pop("budget")
            reached = math.sqrt(sum(e**2 for e in errors.values()))
            if rtol is None or reached <= rtol:
                if rtol is not None:
                    warn_of(found, problem.data.task, rtol, "take a smaller `rtol`", 5)
                return found, how
            # Shares of the error that leave room for each other; far ones are not to be trusted.
            chance = math.hypot(errors["sampling"], errors["population"]) / (0.75 * rtol)
            step, more = errors["step"] / (0.5 * rtol), max(1.1 * chance**2, 1.0)
            if samples >= MOST_SAMPLES:
                break
            samples = min(int(samples * min(more, 50.0)), MOST_SAMPLES)
            dt *= min(max(step, 1.0), 27.0) ** (-1 / 2 if jump else -1 / 3)
        way = "give more `samples` and a smaller `dt`, or more `memory`"
        warn_of(found, problem.data.task, rtol or math.inf, way, 5)
        return found, how

    def _populations(
        self, problem: Problem, plan: Plan, samples: int, progress: Any
    ) -> tuple[Measured, dict[str, Any]]:
        from manypass.simulation.kernels import compiled_rule

        size = -(-samples // POPULATIONS)
        if size < plan.least:
            raise ValueError(
                f"`samples` = {samples} is too few for {plan.grid.t.size - 1} time steps: at least "
                f"{plan.least * POPULATIONS}{'' if problem.batch_share else ', or a larger `dt`'}"
            )
        rule: Any = Net.of(problem) if problem.layered else compiled_rule(problem.rule)
        threads, dt = self._threads(problem, plan, size), float(np.diff(plan.grid.t).max())

        def work(i: int) -> Any:
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(i,)))
            return sample(problem, rule, size, plan, rng, split=i < SPLIT)

        done = in_order(work, range(POPULATIONS), threads)
        classes = problem.data.task == "classification"
        kind = "jumps" if jumps(problem.rule, problem.data.task) else "smooth"
        sizes = {"Et": 0.5, "Eg": 0.5} if classes else {}
        floors = {"Et": 1 / samples} if classes else {}  # one example more or less
        nodes = few(problem.teacher.inputs).error
        runs = shown(done, POPULATIONS, progress, "mean field", "population")

        in_epochs = plan.grid.ends.size and not problem.batch_share
        learned_by_heart = in_epochs or not problem.teacher.isotropic
        overfit = plan.cells / size if learned_by_heart else 0.0
        if problem.layered:  # every unit has its own normals, and no mean over fresh ones
            overfit = plan.units * plan.cells / size

        def summed(so_far: Any) -> tuple[Measured, dict[str, Any]]:
            found = summary(so_far, sizes, floors, kind, overfit, nodes)
            how = {"dt": dt, "samples": size * len(so_far)}
            return found, how | {"errors": json.dumps(found["budget"])}

        so_far = []
        for run in runs:
            lost = np.isinf(run[0]["Q"])
            if lost.any():
                done.close()
                raise DivergedError(int(lost.argmax()), {"dt": dt, "samples": size})
            so_far.append(run)
            if callable(progress):
                progress(*summed(so_far))
        return summed(so_far)

    @property
    def _rtol(self) -> float | None:
        """The accuracy to reach; None if step or samples are given."""
        chosen = self.rtol is None and self.dt is None and self.samples is None
        return RTOL if chosen else self.rtol

    def _step(self, problem: Problem) -> float:
        coarse = COARSE / fastest(problem) / (1 + jumps(problem.rule, problem.data.task))
        if problem.batch_share:  # one step is one batch
            if self.dt is not None:
                raise ValueError(
                    f"`dt` is one batch where `batch_share` > 0, got {self.dt:g}: leave it out"
                )
            return problem.batch_share * problem.teacher.alpha
        if problem.mode == "online":  # few are learned twice in a step
            coarse = min(coarse, OFTEN * problem.data.alpha / schedules.largest(problem.rate))
        return min(self.dt, LARGEST * coarse) if self.dt else coarse

    def _threads(self, problem: Problem, plan: Plan, size: int) -> int:
        """How many populations fit into memory at once; none is refused with the number."""
        cells, kept = 3 * plan.cells, plan.grid.keep.size  # on both grids, and halves
        if problem.mode == "batch" and kept:  # and beside them the probes of the response
            cells = 3 * (cells + 3 * kept)
        modes = few(problem.teacher.inputs).mu.size
        weights = 64 * cells * plan.grid.t.size * modes if modes > 1 else 0
        units = problem.rule.hidden if problem.layered else 1  # type: ignore[attr-defined]
        needed = size * units * (8 * cells + 200) + 16 * (kept * units) ** 2 + weights
        remedy = "take fewer `samples`, a larger `dt` or earlier `times`, or allow more `memory`"
        free = memory.require(needed, remedy, self.memory * 1e9)
        return max(1, min(self.threads or os.cpu_count() or 1, int(free // needed)))
