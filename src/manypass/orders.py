"""Who serves which order of the examples, batches, schedules and starts.

One table, one refusal by it, and one equivalence: small batches and momentum for N → ∞.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from manypass import checks, schedules
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.problem import SEQUENCES, Problem
from manypass.rules import Adaline, Hebbian
from manypass.schedules import Schedule

CRITICAL = re.compile(r"v_c = (\d[\d.]*(?:e[+-]?\d+)?)")
METHODS = ("Exact", "DMFT", "Simulation")  # in the order in which they are preferred


class Served(NamedTuple):
    """Values of `sequence` that are served, with what."""

    one: tuple[str, ...] = ("replacement",)  # one example at a time
    batches: tuple[str, ...] = ()  # `batch_share` > 0
    moving: tuple[str, ...] = ()  # schedules of rate and decay, one example at a time
    moving_batches: tuple[str, ...] = ()
    started: tuple[str, ...] = ()  # a `start`
    started_batches: tuple[str, ...] = ()
    sizes: bool = False  # a `batch_size` as it is, not by the equivalence of large N
    momentum: bool = False  # the same
    inputs: bool = False  # correlated `inputs` of a teacher
    fresh: bool = False  # `alpha` = inf
    layers: tuple[str, ...] = ()  # a Committee


EVERYTHING = Served(*6 * (SEQUENCES,), sizes=True, momentum=True)
ON_DATA = ("replacement", "reshuffled")
RELAXING = ("replacement", "reshuffled")

# Who is not here draws with replacement, one example at a time, at a constant rate, from J = 0.
# A key is a method (its curves), a method's other answer ("Exact.steady_state"), "Exact on a
# Dataset", or a function.
SERVED = {
    "Exact": Served(
        SEQUENCES,
        SEQUENCES,
        moving=("replacement",),
        started=("replacement",),
        inputs=True,
        fresh=True,
    ),
    "Exact.steady_state": Served(
        SEQUENCES, SEQUENCES, started=SEQUENCES, started_batches=SEQUENCES, inputs=True, fresh=True
    ),
    "critical_rate": Served(
        SEQUENCES, SEQUENCES, (), (), SEQUENCES, SEQUENCES, inputs=True, fresh=True
    ),
    "slow_mode": Served(
        RELAXING, RELAXING, started=RELAXING, started_batches=RELAXING, inputs=True, fresh=True
    ),
    "Exact on a Dataset": Served(
        ON_DATA,
        moving=("replacement",),
        started=ON_DATA,
        sizes=True,  # reshuffled approximately
    ),
    "Exact.steady_state on a Dataset": Served(ON_DATA, started=ON_DATA, sizes=True),
    "critical_rate on a Dataset": Served(started=("replacement",), sizes=True),
    "advise on a Dataset": Served(sizes=True),
    "Simulation": EVERYTHING._replace(inputs=True, fresh=True, layers=SEQUENCES),
    "Simulation.steady_state": EVERYTHING._replace(
        moving=(), moving_batches=(), inputs=True, fresh=True
    ),
    "Simulation on a Dataset": EVERYTHING,
    "Simulation.steady_state on a Dataset": EVERYTHING._replace(moving=(), moving_batches=()),
    "DMFT": EVERYTHING._replace(sizes=False, momentum=False, inputs=True, layers=RELAXING),
    "cavity_experiment": Served(SEQUENCES),
}


def equivalent(problem: Problem) -> Problem:
    """Return the plain problem of a teacher that small batches and momentum amount to for N → ∞.

    v → v/[b(1 − β)]: b examples share a step of v/N, and a velocity keeps moving the weights for
    1/(1 − β) = O(1) steps, too few for anything to change meanwhile. Batches that are a share of
    the training set are not small, and stay as they are.
    """
    b, momentum = problem.batch_size, problem.momentum
    if isinstance(problem.data, Dataset) or problem.batch_share or (b == 1 and not momentum):
        return problem
    scale = 1 / (b * (1 - momentum))
    rule: Any = problem.rule
    rule = rule.changed(second_rate=scale * rule.second_rate) if problem.layered else rule
    rate = schedules.scaled(problem.rate, scale)
    return problem.replace(rule=rule, rate=rate, batch_size=1, momentum=0.0)


@contextmanager
def as_given(given: Problem, asked: Problem) -> Iterator[None]:
    """Let refusals of the equivalent problem tell the rate that was given, and v_c in its units."""
    try:
        yield
    except ValueError as error:
        if asked is not given and not given.scheduled:
            error.args = (_in_given_rates(str(error), given, asked), *error.args[1:])
        raise


def _in_given_rates(text: str, given: Problem, asked: Problem) -> str:
    if (said := f"`rate` = {asked.rate:g}") not in text:
        return text
    scale = given.batch_size * (1 - given.momentum)
    text = text.replace(said, f"`rate` = {given.rate:g}")
    text = CRITICAL.sub(lambda found: f"v_c = {scale * float(found[1]):.5g}", text)
    names = {"batch_size": given.batch_size > 1, "momentum": given.momentum > 0}
    who = [f"`{name}` = {getattr(given, name):g}" for name, there in names.items() if there]
    verb, by = ("divide", scale) if scale >= 1 else ("multiply", 1 / scale)
    if len(who) == 1:
        verb = f"{verb}s" if verb == "divide" else "multiplies"
    return f"{text} ({' and '.join(who)} {verb} rates by {by:g})"


def refusal(problem: Problem, who: str) -> str | None:
    """Why `who` cannot serve the order of the examples and how the rate is set, or None."""
    wrong = _not_served(problem, who)
    if wrong is None:
        return None
    method, _, answer = who.partition(".")
    curves = method not in (*METHODS, "MeanForce") or answer == "critical_rate"
    use = instead(problem, "" if curves else method, answer)
    name = f"{method}().{answer}()" if answer else f"{method}()"
    if not use and answer == "steady_state" and problem.scheduled:
        return f"{name} does not serve {wrong}: a steady state needs a constant rate and decay"
    if not use and answer == "steady_state" and problem.layered:
        return (
            f"no method has the steady state of {wrong}: learning curves up to a late time come "
            f"from method {instead(problem, '')}"
        )
    none = ", and no other method does" if "critical_rate" in who or not use else ""
    way = "learning curves come from" if curves else "use"
    return f"{name} does not serve {wrong}{none}" + (f": {way} method {use}" if use else "")


def instead(problem: Problem, method: str, answer: str = "") -> str:
    """Name the methods but this one that serve a problem."""
    others = (m for m in METHODS if m != method and _recommended(problem, m, answer))
    settings = "samples=100" if isinstance(problem.data, Dataset) else "n=500, samples=100"
    return " or ".join(f"{m}({settings if m == 'Simulation' else ''})" for m in others)


def _not_served(problem: Problem, who: str) -> str | None:
    """Name what of the problem `who` does not serve, with what is served."""
    served, moves = _served(problem, who), schedule(problem)  # as it was given
    problem = problem if served.sizes else equivalent(problem)
    share, order = problem.batch_share, problem.sequence
    if problem.layered and order not in served.layers:
        among = f" with `sequence` = {order!r}" if served.layers else ""
        return f"`rule` = {problem.rule!r}{among}"
    if share and not served.batches:
        return f"`batch_share` = {share:g}, only 0"
    among = f" with `batch_share` = {share:g}" if share else ""
    plain = served.batches if share else served.one
    if order not in plain:
        return f"`sequence` = {order!r}{among}, only {' and '.join(map(repr, plain))}"
    moving = served.moving_batches if share else served.moving
    started = served.started_batches if share else served.started
    for asked, known, text in (
        (problem.scheduled, moving, moves),
        (problem.start is not None, started, f"`start` = {problem.start}"),
    ):
        if asked and order not in known:
            with_what = f" with `sequence` = {order!r}{among}" if known or share else ""
            return f"{text}{with_what}"
    if problem.batch_size > 1 and not served.sizes:
        return f"`batch_size` = {problem.batch_size}"
    data = problem.data
    if not isinstance(data, Dataset):
        if not data.isotropic and not served.inputs:
            return f"`inputs` = {data.inputs}"
        if math.isinf(data.alpha) and not (served.fresh or problem.layered):
            return "`alpha` = inf"
    if problem.momentum and not served.momentum:
        return f"`momentum` = {problem.momentum:g}{among}"
    return None


def schedule(problem: Problem) -> str | None:
    """Name the schedule of a problem, if it has one."""
    for name in ("rate", "decay"):
        if isinstance(value := getattr(problem, name), Schedule):
            return f"the schedule `{name}` = {value}"
    return None


def require(problem: Problem, who: str) -> Problem:
    """Return the equivalent plain problem, or raise if `who` cannot serve it."""
    reason = refusal(problem, who)
    if reason:
        raise ValueError(reason)
    return equivalent(problem)


def one_pass(problem: Problem) -> bool:
    """Whether every example is fresh: then R and Q close for every rule of one layer."""
    fresh = not isinstance(problem.data, Dataset) and math.isinf(problem.data.alpha)
    return fresh and not problem.layered


def approximate(problem: Problem) -> bool:
    """Whether `Exact` serves the order by an approximation only: then a simulation is preferred."""
    return isinstance(problem.data, Dataset) and problem.sequence != "replacement"


def fixed_inputs(problem: Problem) -> bool:
    """Whether correlated inputs come to Adaline in a fixed order: that is only simulated."""
    correlated = not isinstance(problem.data, Dataset) and not problem.data.isotropic
    return correlated and problem.sequence == "fixed" and isinstance(problem.rule, Adaline)


def steps_by(problem: Problem, t: Array | float) -> Array:
    """⌊t/βα⌋, how many batches have been learned by time t: between two the weights rest."""
    step = problem.batch_share * problem.data.alpha
    return np.floor(np.asarray(t) / step * (1 + 1e-12) + 1e-9)


def overshoot(problem: Problem) -> float:
    """2(1 + β)/(λΔ), where the decay in a step of length Δ turns J into −J; inf if Δ → 0.

    It is all that limits the rate if forces stay bounded. Given examples make steps of 1/N, by
    batches of whatever size; β is the momentum.
    """
    data, share = problem.data, problem.batch_share
    step = 1 / data.n if isinstance(data, Dataset) else 0.0
    step = share * data.alpha if share else step
    turn = problem.decay * step if problem.mode == "online" else 0.0
    return 2 * (1 + problem.momentum) / turn if turn else math.inf


def _served(problem: Problem, who: str) -> Served:
    given = isinstance(problem.data, Dataset)
    return SERVED.get(f"{who} on a Dataset" if given else who, Served())


def _recommended(problem: Problem, method: str, answer: str) -> bool:
    """Whether a method serves both the order and the rule."""
    given, linear = isinstance(problem.data, Dataset), isinstance(problem.rule, Adaline | Hebbian)
    exact = linear and not approximate(problem) and not fixed_inputs(problem)
    if one_pass(problem) and not linear:
        from manypass.exact import onepass  # only where it is asked for

        exact = onepass.refusal(problem) is None
    flow = problem.mode == "batch" and not isinstance(problem.data, Dataset)
    field = not given and not (flow and not problem.teacher.isotropic)
    runs = not (flow and math.isinf(problem.teacher.alpha))
    able = {"Exact": exact, "DMFT": field, "Simulation": runs}[method]
    who = f"{method}.{answer}" if answer == "steady_state" else method
    return able and _not_served(problem, who) is None


def tell_unlearned(problem: Problem, n: int, until: float) -> None:
    """Warn that the first batch is not complete at the last time."""
    size = problem.batch_size
    if size > 1 and until and not round(until * n / size):
        warnings.warn(
            f"no batch is learned by t = {until:g}: `batch_size` = {size} takes t = "
            f"{size / n:.4g} at N = {n}; take later times, a smaller `batch_size`"
            f"{'' if isinstance(problem.data, Dataset) else ' or a larger `n`'}",
            stacklevel=checks.outside(),
        )
