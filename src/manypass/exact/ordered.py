"""Linear rules whose examples come in epochs or by batches: what `Exact` answers about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass import memory
from manypass.checks import Array
from manypass.exact import settled, steps, windows
from manypass.exact.epochs import Epochs, Index
from manypass.exact.hebbian import HebbianOrder
from manypass.exact.instants import Examples, batches_drawn, epochs_drawn, errors, sampled_error
from manypass.exact.lines import looks
from manypass.exact.recollection import Recollection
from manypass.exact.repeated import Repeated
from manypass.exact.reshuffled import Course, Reshuffled
from manypass.exact.steady import check_steady
from manypass.exact.steps import Steps
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.rules import Hebbian

PILOT = 64  # examples that decide how many epochs are remembered
MOVED = 1e-4  # how far their training error may move
PASSES, PER_PASS = 4096, 4096  # of noise that are looked at first; bytes for each of them


def solution(
    problem: Problem, t: Array, *, until_settled: bool = True
) -> Epochs | Repeated | Steps | HebbianOrder:
    """R, Q and F2 at times, and C and G between them."""
    if isinstance(problem.rule, Hebbian):
        return HebbianOrder(problem, t)
    if problem.sequence == "replacement":
        return Steps(problem, t)
    if problem.sequence == "fixed":
        return Repeated(problem, t, until_settled=until_settled)
    return Epochs(problem, t)


def curves(problem: Problem, t: Array, *, two_time: bool, sampling: dict[str, Any]) -> Any:
    """R, Q, F2, Eg at times; Et unless it has to be sampled and is not asked for; C and G."""
    if two_time:
        memory.require(6 * 8 * t.size**2, "take fewer `times` or two_time=False")
    with np.errstate(all="ignore"):  # what diverges ends as inf
        found = _curves(problem, t, two_time, sampling)
    lost = {name: np.isnan(found[name]) for name in found if not name.endswith("_se")}
    return found | {name: np.where(lost[name], np.inf, found[name]) for name in lost}


def _curves(problem: Problem, t: Array, two_time: bool, sampling: dict[str, Any]) -> Any:
    task = problem.data.task
    found = solution(problem, t, until_settled=not two_time)
    out = {name: value.copy() for name, value in found.curves.items()}
    for name in ("Q", "F2"):
        out[name] = np.maximum(out[name], 0.0)  # squares: what is below is rounding
    first = problem.batch_share * problem.teacher.alpha * (1 - 1e-9)
    for name in ("R", "Q"):  # orders begin with J = 0
        out[name][(t == 0) | (t < first)] = 0.0
    out["Eg"] = generalization_error(task, out["R"], out["Q"])
    if isinstance(found, HebbianOrder):
        out |= _closed(found.training_error())
    elif task == "regression":
        out |= _closed(out["F2"] / 2)
    elif isinstance(found, Repeated):
        out |= _closed(found.training_error())
    elif sampling["samples"]:
        if isinstance(found, Steps):
            look, depth = batches_drawn(problem, t), int(found.index[-1])
        else:
            look = epochs_drawn(found.recollection, found.epoch, found.phase)
            depth = int(found.epoch.max())
        out |= sampled_error(problem, look, depth, **sampling)
    if two_time:
        out["C"], out["G"] = found.two_time()
    return out


def steady(problem: Problem, window: float, sampling: dict[str, Any]) -> dict[str, Any]:
    """For t → ∞ R, Q, F2, Eg, Et as means over an epoch, and as `*_end` at its end.

    With a window R, Q and Eg are those of the weights averaged over it. Batches with replacement
    have no epochs, and no `*_end`.
    """
    with np.errstate(all="ignore"):  # of epochs that are too long to be followed
        check_steady(problem)
        return _steady(problem, window, sampling)


def _steady(problem: Problem, window: float, sampling: dict[str, Any]) -> dict[str, Any]:
    task, share = problem.data.task, problem.batch_share * problem.teacher.alpha
    if window and share > window * (1 + 1e-9):
        raise ValueError(f"`window` = {window:g} is shorter than one batch, {share:g}")
    if isinstance(problem.rule, Hebbian):
        out = HebbianOrder.steady(problem, window)
    elif problem.sequence == "replacement":
        now = steps.stationary(problem, 0.0)
        out = steps.stationary(problem, window) if window else dict(now)
        if task == "regression":
            out |= {"Et": now["F2"] / 2, "Et_se": 0.0}
        elif sampling["samples"]:
            out |= _settled_batches(problem, now["F2"], sampling)
    elif problem.sequence == "fixed":
        out = _fixed(problem, window)
    else:
        if window and not problem.teacher.isotropic:
            raise ValueError(
                f"`window` = {window:g}: averages over reshuffled epochs are known of uncorrelated "
                f"`inputs`; use method Simulation(n=500, samples=100)"
            )
        out = _reshuffled(problem, window, sampling)
    if "Eg" not in out:
        out["Eg"] = float(generalization_error(task, out["R"], out["Q"]))
    return out


def _closed(Et: Array) -> dict[str, Array]:
    return {"Et": Et, "Et_se": np.zeros_like(Et)}


def _fixed(problem: Problem, window: float) -> dict[str, Any]:
    passes = int(window / problem.teacher.alpha) + 1
    kept = min(passes, PASSES if problem.temperature else 1)
    look = settled.fixed(problem, kept)
    while problem.temperature and kept < passes and not windows.forgotten(look, kept):
        kept = min(2 * kept, passes)
        memory.require(PER_PASS * kept, f"take a `window` shorter than {window:g}")
        look = settled.fixed(problem, kept)
    out: dict[str, Any] = {k: float(x[0]) for k, x in look.order_parameters(0.0).items()}
    out["Eg"] = float(generalization_error(problem.data.task, out["R"], out["Q"]))
    closed = out["F2"] / 2
    if problem.data.task == "classification":
        closed = float(look.training_error(0.0)[0])
    out |= {"Et": closed, "Et_se": 0.0}
    out |= {f"{name}_end": value for name, value in out.items() if name != "Et_se"}
    if window:
        del out["Eg"]
        out["Q"] = windows.fixed(problem, look, window, kept)
    return out | {"Et_end_se": 0.0}


def _reshuffled(problem: Problem, window: float, sampling: dict[str, Any]) -> dict[str, Any]:
    epochs, course = settled.reshuffled(problem)
    line, task = epochs.line, problem.data.task
    found = {"R": course.R, "Q": course.Q, "F2": np.maximum(course.F2, 0.0)}
    found["Eg"] = generalization_error(task, course.R, course.Q)
    if task == "regression":
        found["Et"] = found["F2"] / 2
    out: dict[str, Any] = {name: float(line.mean(value)) for name, value in found.items()}
    out |= {f"{name}_end": float(value[-1]) for name, value in found.items()}
    if task == "regression":
        out |= {"Et_se": 0.0, "Et_end_se": 0.0}
    elif sampling["samples"]:
        out |= _steady_error(problem, epochs, course, sampling)
    if window:
        del out["Eg"]
        out["R"], out["Q"] = windows.reshuffled(epochs, course, window)
    return out


def _settled_batches(problem: Problem, F2: float, sampling: dict[str, Any]) -> dict[str, float]:
    """Et of batches with replacement, once F2 has settled."""
    step, count = problem.batch_share * problem.teacher.alpha, 16
    while abs(Steps(problem, np.array([count * step])).curves["F2"][0] / F2 - 1) > MOVED:
        count *= 2
    look = batches_drawn(problem, np.array([count * step]))
    return {name: x[0] for name, x in sampled_error(problem, look, count, **sampling).items()}


def _steady_error(
    problem: Problem, epochs: Reshuffled, course: Course, sampling: dict[str, Any]
) -> dict[str, float]:
    """Et over an epoch, and at its end, from as many epochs before as matter."""
    found = Recollection(epochs, [course])
    alpha, depth = problem.teacher.alpha, 4
    while True:
        drawn = Examples(found, range(2 * depth), PILOT, np.random.default_rng(0))
        short, long = (errors(problem, drawn.at(2 * depth - 1, alpha, k)) for k in (depth, 0))
        if np.abs(short - long).mean() <= MOVED or depth >= 128:
            break
        depth *= 2
    phase, weights = looks(alpha, problem.batch_share)
    epoch: Index = np.full(phase.size, depth)
    look = epochs_drawn(found, epoch, phase)
    Et = sampled_error(problem, look, depth, weights=weights, **sampling)
    mean, end = ((Et["Et"][i], Et["Et_se"][i]) for i in (-1, -2))
    return {"Et": mean[0], "Et_se": mean[1], "Et_end": end[0], "Et_end_se": end[1]}
