"""How many examples and which step: populations are run until they are as accurate as asked for."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from manypass import memory, results
from manypass.cavity.copies import MORE
from manypass.cavity.dmft import sample, summary
from manypass.cavity.modes import few
from manypass.cavity.plan import LARGEST, Plan, coarsest, make_plan
from manypass.cavity.settling import grown, warn_of
from manypass.checks import Array
from manypass.ensemble import DivergedError, Measured, Progress, cores, in_order, shown
from manypass.layers import onepass
from manypass.layers.net import Net
from manypass.problem import Problem
from manypass.simulation.kernels import compiled_rule
from manypass.smooth import jumps

if TYPE_CHECKING:
    from manypass.cavity.method import DMFT

SAMPLES = 40_000  # unless told
ROUGH = 0.002  # accuracy for which the first step is small enough
MOST_SAMPLES = 10_000_000  # that are tried to reach an accuracy
POPULATIONS = 8  # independent ones: their scatter is the sampling error
ROUNDS = 6  # of choosing step and samples
LOOK, OVER = 3, 0.8  # populations of a first look, whose largest error is by chance too large
MOST, EVERY = 24, 2  # populations of one size that there may be, and how often more are looked at
EVEN = 0.5  # examples by which populations are off that are drawn evenly: all of them alike
LOST = 0.04  # an error beyond which errors are not to be trusted
FEWEST, MOST_POINTS = 1 << 10, 1 << 18  # of averages that drive one-pass learning
FIRST = 8000  # examples of each population at first, if an accuracy is to be reached


def ensemble(
    method: DMFT,
    problem: Problem,
    t: Array,
    names: Any,
    rtol: float | None,
    progress: Any,
) -> tuple[Measured, dict[str, Any]]:
    """Values with errors and how they were found; chooses step and samples to reach `rtol`."""
    dt, samples = step_of(method, problem), method.samples or SAMPLES
    jump = jumps(problem.rule, problem.data.task)  # then the order of the step is not quite 2
    if rtol is not None:
        dt *= min(math.sqrt(rtol / ROUGH), 1.0)
        first = make_plan(problem, t, names, dt)
        samples = POPULATIONS * max(FIRST * first.units, first.least)
    found: Measured = {}
    for left in reversed(range(ROUNDS)):
        last = not left or samples >= MOST_SAMPLES
        try:
            plan = make_plan(problem, t, names, dt)
            found, how = populations(
                method, problem, plan, samples, progress, None if last else rtol
            )
        except ValueError:
            if not found:
                raise
            break  # too many steps, or too much memory: what there is will have to do
        tried, errors = (plan, samples), found.pop("budget")
        beyond = grown(problem, found["F2"]).any()  # more examples find larger forces
        if rtol is None or beyond or math.hypot(*errors.values()) <= rtol:
            if rtol is not None and not beyond:
                warn_of(found, problem.data.task, rtol, "take a smaller `rtol`", 5)
            return found, how
        if samples >= MOST_SAMPLES:
            break
        more, finer = refined(errors, rtol)
        samples = min(int(samples * more), MOST_SAMPLES)
        dt *= finer ** (-1 / 2 if jump else -1 / 3)
    if how["samples"] < tried[1]:  # the last round was not completed
        found, how = populations(method, problem, *tried, progress)
        del found["budget"]
    way = "give more `samples` and a smaller `dt`, or more `memory`"
    warn_of(found, problem.data.task, rtol or math.inf, way, 5)
    return found, how


def refined(errors: dict[str, float], rtol: float) -> tuple[float, float]:
    """How many times more samples, and how much less of a step error, should reach `rtol`.

    Scatter is ∝ 1/√samples, bias ∝ 1/samples; shares of the error leave room for each other. Small
    populations may be lost, as a whole or in halves: errors so large say nothing of how large they
    will be, nor what is the step's part in them, and chance has its part in what looks like the
    step's. Errors of so few are errors themselves: to take
    too many examples costs more than to look once again.

    Examples
    --------
    >>> more, finer = refined({"sampling": 0.015, "step": 0.02, "population": 0.0}, 0.01)
    >>> round(more, 1), round(finer, 1)
    (2.0, 4.0)
    >>> refined({"sampling": 0.1, "step": 0.3, "population": 0.2}, 0.01)
    (2.5, 1.0)
    """
    sampling, bias = ((errors[k] / (0.75 * rtol)) ** 2 for k in ("sampling", "population"))
    more = 1.1 * (sampling / 2 + math.sqrt(sampling**2 / 4 + bias))
    chance = math.hypot(errors["sampling"], errors["population"])
    if math.hypot(chance, errors["step"]) < LOST:
        most, finest = 2.0, 27.0 if errors["step"] > chance / 2 else 1.0
    else:
        most, finest = 2.5, 4.0 if errors["step"] > 6 * chance else 1.0
    return min(max(more, 1.0), most), min(max(errors["step"] / (0.5 * rtol), 1.0), finest)


def judged(errors: dict[str, float], count: int, rtol: float) -> tuple[bool, dict[str, float]]:
    """Whether no more populations of one size are needed, or none would help; what eight promise.

    More of them lessen chance, but neither the error of the step nor the bias that halves show.

    Examples
    --------
    >>> judged({"sampling": 0.1, "step": 0.0, "population": 0.0}, LOOK, 0.01)[0]
    True
    >>> judged({"sampling": 0.016, "step": 0.0, "population": 0.0}, POPULATIONS, 0.01)[0]
    False
    """
    if count >= POPULATIONS and math.hypot(*errors.values()) <= rtol:
        return True, errors
    first = count == LOOK  # at which the step's error is by chance, too

    def of(number: int) -> dict[str, float]:
        fewer = (OVER if first else 1.0) * math.sqrt(count / number)
        step = OVER * math.sqrt(LOOK / POPULATIONS) if first else 1.0
        return {key: (step if key == "step" else fewer) * e for key, e in errors.items()}

    known = math.hypot(*errors.values()) < LOST
    return count >= MOST or math.hypot(*of(MOST).values()) > rtol, of(
        POPULATIONS
    ) if known else errors


def populations(
    method: DMFT,
    problem: Problem,
    plan: Plan,
    samples: int,
    progress: Any,
    rtol: float | None = None,
) -> tuple[Measured, dict[str, Any]]:
    """Values with errors, from as many examples on the grids of one plan.

    Given an accuracy to reach, it is judged on the way whether to go on: then there may be fewer.
    """
    size = -(-samples // POPULATIONS)
    if size < plan.least:
        raise ValueError(
            f"`samples` = {samples} is too few for {plan.grid.t.size - 1} time steps: at least "
            f"{plan.least * POPULATIONS}{'' if problem.batch_share else ', or a larger `dt`'}"
        )
    plan = plan.fitted(size)
    rule: Any = Net.of(problem) if problem.layered else compiled_rule(problem.rule)
    threads, dt = threads_of(method, problem, plan, size), float(np.diff(plan.grid.t).max())

    def work(i: int) -> Any:
        rng = np.random.default_rng(np.random.SeedSequence(method.seed, spawn_key=(i,)))
        return sample(problem, rule, size, plan, rng)

    done = in_order(work, range(MOST if rtol else POPULATIONS), threads)
    task = problem.data.task
    floors = {"Et": 1 / samples} if task == "classification" else {}  # one example more or less
    nodes = few(problem.teacher.inputs).error
    runs = shown(done, POPULATIONS, progress, "mean field", "population")

    in_epochs = plan.grid.ends.size > 0 and not problem.batch_share
    # In two layers every unit has its own normals, and there is no mean over fresh ones.
    by_heart = in_epochs or not problem.teacher.isotropic or problem.layered
    overfit = by_heart * plan.units * plan.cells / size

    def summed(so_far: Any) -> tuple[Measured, dict[str, Any]]:
        with np.errstate(over="ignore"):  # corrections of what is next to nothing
            found = summary(so_far, task, floors, overfit, nodes, EVEN / size)
        how = {"dt": dt, "samples": size * len(so_far)}
        return found, how | {"errors": json.dumps(found["budget"])}

    so_far = []
    for run in runs:
        lost = np.isinf(run[0]["Q"])
        if lost.any():
            done.close()
            how = {"dt": dt, "samples": size, "faded": run[0]["faded"]}
            raise DivergedError(int(lost.argmax()), how)
        so_far.append(run)
        if callable(progress):
            progress(*summed(so_far))
        count = len(so_far)
        if rtol and (count == LOOK or (count >= POPULATIONS and count % EVERY == 0)):
            found, how = summed(so_far)
            ends, found["budget"] = judged(found["budget"], count, rtol)
            if ends:
                done.close()
                return found, how
    return summed(so_far)


def one_pass(
    method: DMFT, problem: Problem, t: Array, two_time: bool, rtol: float, progress: Progress
) -> xr.Dataset:
    """Curves of a Committee that sees every example once, from sampled averages."""
    threads = method.threads or cores()
    points = FEWEST if method.samples is None else max(method.samples // onepass.SETS, 2)
    while True:
        found = onepass.sampled(problem, t, two_time, method.seed, points, threads)
        reached = onepass.largest_error(found)
        how = {"samples": points * onepass.SETS, "errors": json.dumps({"sampling": reached})}
        result = results.dataset(problem, method, found, {"t": t}).assign_attrs(how)
        rtol = rtol if np.isfinite(found["Q"]).all() else math.inf  # growth hides every error
        if reached <= rtol or points >= MOST_POINTS:
            break
        if callable(progress):
            progress(result)
        points *= 4
    warn_of(found, problem.data.task, rtol, "take a larger one", 4)
    return result


def step_of(method: DMFT, problem: Problem) -> float:
    """Return the step that is tried first, or that was asked for."""
    if problem.batch_share:  # one step is one batch
        if method.dt is not None:
            raise ValueError(
                f"`dt` is one batch where `batch_share` > 0, got {method.dt:g}: leave it out"
            )
        return problem.batch_share * problem.teacher.alpha
    coarse = coarsest(problem)
    return min(method.dt, LARGEST * coarse) if method.dt else coarse


def threads_of(method: DMFT, problem: Problem, plan: Plan, size: int) -> int:
    """How many populations fit into memory at once; none is refused with the number."""
    cells, kept = 3 * plan.cells, plan.grid.keep.size  # on both grids, and halves
    if problem.mode == "batch" and kept:  # and beside them the probes of the response
        cells = 3 * (cells + 3 * kept)
    modes = few(problem.teacher.inputs).mu.size
    weights = 64 * cells * plan.grid.t.size * modes if modes > 1 else 0
    size *= MORE if plan.copies else 1
    needed = size * plan.units * (8 * cells + 200) + 16 * (kept * plan.units) ** 2 + weights
    remedy = "take fewer `samples`, a larger `dt` or earlier `times`, or allow more `memory`"
    free = memory.require(needed, remedy, method.memory * 1e9)
    return max(1, min(method.threads or cores(), int(free // needed)))
