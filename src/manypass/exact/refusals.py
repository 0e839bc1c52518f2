"""What `Exact` cannot serve, and who can: one line that names the argument and the method."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from manypass import orders
from manypass.data.dataset import Dataset
from manypass.exact.steady import ordered
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian

if TYPE_CHECKING:
    from manypass.exact.method import Exact

SIMULATED = "Simulation(n=500, samples=100)"


def linear(problem: Problem) -> bool:
    """Whether modes evolve independently, so that the theory closes at any α."""
    return isinstance(problem.rule, Adaline | Hebbian)


def refusal(method: Exact, problem: Problem) -> str | None:
    """Why this method cannot serve the problem, or None if it can."""
    if problem.layered:
        return _layers(method, problem)
    if not linear(problem):
        return _nonlinear(problem)
    if reason := orders.refusal(problem, "Exact"):
        if isinstance(problem.data, Dataset) and problem.sequence == "fixed":
            near = "squared errors were within 0.5 % of 'reshuffled' at p/N = 14 to 33, not at 1"
            return reason.replace(": use", f" ({near}): use")
        return reason
    on_data = isinstance(problem.data, Dataset)
    reason = _data(method, problem) if on_data else _teacher(method, problem)
    if reason or method.device == "cpu":
        return reason
    from manypass.data.solution import refused_by_card  # a Teacher needs nothing of it

    return refused_by_card(problem)


def steady_refusal(method: Exact, problem: Problem) -> str | None:
    """Why there is no steady state to be had, or None."""
    served = orders.refusal(problem, "Exact.steady_state")
    if problem.layered or served:
        return served
    given = isinstance(problem.data, Dataset)
    if problem.start is not None and not given and not orders.one_pass(problem):
        if problem.decay == 0 and problem.data.alpha <= 1:
            return (
                f"`start` = {problem.start}: with `decay` = 0 and `alpha` = {problem.data.alpha:g} "
                f"the part of it that no example shows stays for ever, and there is no steady "
                f"state without it: `solve` at a late time has it"
            )
        problem = problem.replace(start=None)  # which is forgotten
    return refusal(method, problem)


def _nonlinear(problem: Problem) -> str | None:
    if orders.one_pass(problem):
        from manypass.exact import onepass  # linear rules need nothing of it

        return onepass.refusal(problem)
    use = orders.instead(problem, "Exact")
    return f"Exact() serves the linear rules Adaline and Hebbian, not `rule` {problem.rule!r}" + (
        f": use method {use}" if use else ", and no other does"
    )


def _data(method: Exact, problem: Problem) -> str | None:
    for name, value in (("eigenvalues", method.eigenvalues), ("samples", method.samples)):
        if value:
            return f"`{name}` is of no use to a Dataset: it has its own, and samples nothing"
    if problem.sequence != "reshuffled":
        return None
    if method.diagonal or method.device == "cuda":
        name = "diagonal" if method.diagonal else "device"
        return f"`{name}` is for `sequence` = 'replacement': leave it out"
    if problem.batch_size > 1:
        return (
            f"Exact() does not serve `batch_size` = {problem.batch_size} with `sequence` = "
            f"'reshuffled' on a Dataset: use method Simulation(samples=100)"
        )
    return None


def _teacher(method: Exact, problem: Problem) -> str | None:
    if method.diagonal:
        return "`diagonal` approximates the theory of a Dataset; a Teacher's needs no such thing"
    if reason := _inputs(method, problem):
        return reason
    moves = problem.scheduled or problem.start is not None
    if moves and problem.mode == "online" and _samples(method, problem):
        return (
            f"`{_sampler(method)}` of Exact() samples Et at a constant rate from J = 0: leave it "
            f"out, or use method DMFT()"
        )
    if method.eigenvalues is None:
        return None
    if ordered(problem):
        return (
            f"`eigenvalues` tell nothing about sequence={problem.sequence!r} with batch_share="
            f"{problem.batch_share:g}: they serve examples drawn one by one with replacement"
        )
    if isinstance(problem.rule, Hebbian):
        return "`eigenvalues` are of no use to Hebbian learning: its force does not depend on x"
    return None


def _inputs(method: Exact, problem: Problem) -> str | None:
    """Why correlated inputs, or fresh ones for ever, cannot be served with the rest."""
    if problem.teacher.isotropic and math.isfinite(problem.teacher.alpha):
        return None
    if method.eigenvalues is not None:
        return "`eigenvalues` are for uncorrelated inputs of a finite `alpha`: leave them out"
    if orders.fixed_inputs(problem):
        return (
            f"Exact() serves correlated `inputs` drawn with replacement and in reshuffled "
            f"epochs, not `sequence` = 'fixed': use method {SIMULATED}"
        )
    if ordered(problem) and _samples(method, problem):
        return (
            f"`{_sampler(method)}` of Exact() samples Et of correlated `inputs` only where they "
            f"are drawn one by one with replacement: leave it out, or use method {SIMULATED}"
        )
    return None


def _samples(method: Exact, problem: Problem) -> bool:
    """Whether Et of Adaline's classification was asked for, which is sampled."""
    asked = method.samples or method.accuracy
    adaline = isinstance(problem.rule, Adaline)
    return bool(asked and adaline and problem.data.task == "classification")


def _sampler(method: Exact) -> str:
    return "samples" if method.samples else "accuracy"


def _layers(method: Exact, problem: Problem) -> str | None:
    """Why a Committee cannot be served: one pass is closed, for erf and linear units."""
    from manypass.layers.averages import closed
    from manypass.layers.net import Net

    if math.isfinite(problem.data.alpha):
        wrong = f"`alpha` = {problem.data.alpha:g}"
    elif not closed(Net.of(problem)):
        task = problem.data.task
        wrong = f"`task` = {task!r}" if task == "classification" else f"`rule` {problem.rule!r}"
    else:
        given = {"eigenvalues": method.eigenvalues, "samples": method.samples}
        given |= {"diagonal": method.diagonal, "device": method.device != "cpu"}
        name = next((name for name, value in given.items() if value), None)
        return None if name is None else f"`{name}` is of no use to a Committee: leave it out"
    return (
        f"Exact() of a Committee is one pass, `alpha` = inf, of erf or linear units in "
        f"regression, not {wrong}: use method {orders.instead(problem, 'Exact')}"
    )
