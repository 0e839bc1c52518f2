"""Who serves which order of the examples, and which batches: one table, and one refusal by it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.problem import SEQUENCES, Problem
from manypass.rules import Adaline, Hebbian

METHODS = ("Exact", "DMFT", "Simulation")  # in the order in which they are preferred


class Served(NamedTuple):
    """Values of `sequence`: one example at a time, and by batches (`batch_share` > 0)."""

    one: tuple[str, ...] = ("replacement",)
    batches: tuple[str, ...] = ()


# Who is not here draws with replacement, one example at a time. A key is a method (its curves), a
# method's other answer ("Exact.steady_state"), "Exact on a Dataset", or a function.
SERVED = {
    "Exact": Served(SEQUENCES, SEQUENCES),
    "Exact.steady_state": Served(SEQUENCES, SEQUENCES),
    "critical_rate": Served(SEQUENCES, SEQUENCES),
    "slow_mode": Served(("replacement", "reshuffled"), ("replacement", "reshuffled")),
    "Exact on a Dataset": Served(("replacement", "reshuffled")),  # the second approximately
    "Exact.steady_state on a Dataset": Served(("replacement", "reshuffled")),
    "Simulation": Served(SEQUENCES, SEQUENCES),
    "Simulation.steady_state": Served(SEQUENCES, SEQUENCES),
    "Simulation on a Dataset": Served(SEQUENCES, SEQUENCES),
    "Simulation.steady_state on a Dataset": Served(SEQUENCES, SEQUENCES),
    "DMFT": Served(SEQUENCES, SEQUENCES),
    "cavity_experiment": Served(SEQUENCES),
}


def refusal(problem: Problem, who: str) -> str | None:
    """Why `who` cannot serve the order of the examples, as a line for the user, or None."""
    served = _served(problem, who)
    share, order = problem.batch_share, problem.sequence
    if order in (served.batches if share else served.one):
        return None
    method, _, answer = who.partition(".")
    others = (m for m in METHODS if m != method and _recommended(problem, m, answer))
    settings = "samples=100" if isinstance(problem.data, Dataset) else "n=500, samples=100"
    use = " or ".join(f"{m}({settings if m == 'Simulation' else ''})" for m in others)
    if share and not served.batches:
        wrong = f"`batch_share` = {share:g}, only 0"
    else:
        known = served.batches if share else served.one
        among = f" with `batch_share` = {share:g}" if share else ""
        wrong = f"`sequence` = {order!r}{among}, only {' and '.join(map(repr, known))}"
    name = f"{method}().{answer}()" if answer else f"{method}()"
    way = "use" if method in (*METHODS, "MeanForce") else "learning curves come from"
    return f"{name} does not serve {wrong}: {way} method {use}"


def require(problem: Problem, who: str) -> None:
    """Raise a `ValueError` if `who` cannot serve the order of the examples."""
    reason = refusal(problem, who)
    if reason:
        raise ValueError(reason)


def approximate(problem: Problem) -> bool:
    """Whether `Exact` serves the order by an approximation only: then a simulation is preferred."""
    return isinstance(problem.data, Dataset) and problem.sequence != "replacement"


def steps_by(problem: Problem, t: Array | float) -> Array:
    """⌊t/βα⌋, how many batches have been learned by time t: between two the weights rest."""
    step = problem.batch_share * problem.data.alpha
    return np.floor(np.asarray(t) / step * (1 + 1e-12) + 1e-9)


def _served(problem: Problem, who: str) -> Served:
    given = isinstance(problem.data, Dataset)
    return SERVED.get(f"{who} on a Dataset" if given else who, Served())


def _recommended(problem: Problem, method: str, answer: str) -> bool:
    """Whether a method serves both the order and the rule."""
    given, linear = isinstance(problem.data, Dataset), isinstance(problem.rule, Adaline | Hebbian)
    able = {"Exact": linear and not approximate(problem), "DMFT": not given, "Simulation": True}[
        method
    ]
    served = _served(problem, f"{method}.{answer}" if answer == "steady_state" else method)
    return able and problem.sequence in (served.batches if problem.batch_share else served.one)
