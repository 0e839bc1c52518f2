"""Steady states of any rule with their errors, and where they end.

What is left to chance is seen from independent populations, the error of the step from the same
examples on a grid of twice the step, the bias of a finite population from its halves, and what the
exponentials cannot express from other ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from manypass import orders, results
from manypass.cavity.laps import Box
from manypass.cavity.settle import (
    COARSE,
    MANY,
    ROUNDS,
    SCOUT,
    Scale,
    Settings,
    UnsettledError,
    mixed,
    scales,
    scout,
    settle,
)
from manypass.cavity.settling import NotSettledError, sizes_of, warn_of, with_errors
from manypass.cavity.stationary import Stationary
from manypass.ensemble import Measured, apart, averaged, go_on, in_order
from manypass.problem import Problem
from manypass.rules import LARGE
from manypass.simulation.kernels import compiled_rule
from manypass.smooth import objection

SAMPLES = 8192  # unless told
RTOL = 0.01  # unless told
POPULATIONS, SPLIT = 16, 4  # and those of them that are also solved as halves and more finely
STUDENT = 1.09  # the error of an error from sixteen: two of them still hold 95 %
STEP_LEFT = 0.5  # of the last correction, after extrapolating
LOST = 2.0  # errors of Q that Q must exceed to be an answer
FEW = 1e-3  # of the first ⟨F²⟩: hardly any example of a population has a force
LARGER = 1, 4, 16  # times as many examples, where few of them do not settle
MOST_POINTS = 3_000_000  # of all paths of a population together


def observed(state: Stationary, Et: float, window: float) -> Measured:
    """Return what is asked of a steady state."""
    found = {"R": state.R, "Q": state.Q(window), "F2": state.F2, "Et": Et}
    return with_errors(state.problem, found)


def sample(
    box: Box, state: Stationary, rule: Any, window: float, tol: float, split: bool
) -> tuple[Measured, Measured, Measured | None, Measured | None]:
    """Return one population extrapolated in the step; how far it moved; bias; missing rates."""
    left = 0.0

    def solved(box: Box, state: Stationary) -> tuple[Stationary, Measured]:
        nonlocal left
        found = settle(box, state, rule, tol)
        left = max(left, found.left)
        return found.state, observed(found.state, found.Et, window)

    def extrapolated(state: Stationary) -> tuple[Stationary, Measured, Measured, Measured]:
        state, rough = solved(coarser, state)
        fine = solved(box, state)[1]
        moved = {name: (fine[name] - rough[name]) / 3 for name in fine}
        return state, rough, moved, {name: fine[name] + moved[name] for name in fine}

    coarser = box.coarser()
    state, rough, moved, values = extrapolated(state)
    if not split:
        return values | {"left": left}, moved, None, None
    parts = [solved(half, state)[1] for half in coarser.halves()]
    bias = {name: np.mean([part[name] for part in parts]) - rough[name] for name in rough}
    rates = state.rates
    if rates.size:
        rates = np.geomspace(rates[0], rates[-1] * 1.3, rates.size + 1)
    other = extrapolated(state.at(rates))[-1]
    cut = {name: other[name] - values[name] for name in values}
    return values | {"left": left}, moved, bias, cut


def ensemble(
    problem: Problem, rule: Any, start: tuple[Stationary, Scale], window: float, settings: Settings
) -> tuple[Measured, Measured]:
    """Values with `_se`, and the largest share of each error in it."""
    state, scale = start

    def work(i: int) -> Any:
        box = settings.box(problem, scale, i)
        return sample(box, state, rule, window, settings.tol, split=i < SPLIT)

    found = zip(*in_order(work, range(POPULATIONS), settings.workers(problem, scale)), strict=True)
    out, step, bias, cut = (averaged(filter(None, values)) for values in found)
    names = ("R", "Q", "F2", "Et", "Eg")
    sizes = sizes_of(out, names, problem.teacher.task)
    common = math.sqrt(np.mean([(step[name] / sizes[name]) ** 2 for name in names]))
    closed = math.exp(-scale.slow * scale.period)  # what a path remembers of itself
    budget = dict.fromkeys(("sampling", "step", "population", "memory", "iteration"), 0.0)
    for name in names:
        parts = {
            "sampling": STUDENT * out[f"{name}_se"],
            "step": STEP_LEFT * max(abs(step[name]), common * sizes[name]),
            "population": math.hypot(bias[name], bias[f"{name}_se"]),
            "memory": math.hypot(cut[name], cut[f"{name}_se"], closed * sizes[name]),
            "iteration": 2 * float(out["left"]) * sizes[name],
        }
        out[f"{name}_se"] = math.hypot(*parts.values())
        for key, part in parts.items():
            budget[key] = max(budget[key], float(part) / sizes[name])
    return {name: out[name] for name in out if not name.startswith("left")}, budget


@contextmanager
def told(problem: Problem, method: Any) -> Iterator[None]:
    """Say why there is no steady state."""
    try:
        yield
    except UnsettledError as error:
        state = error.args[0]
        found = {"R": state.R, "F2": state.F2}
        words = ", ".join(f"{name} = {value:.4g}" for name, value in found.items())
        result = results.dataset(problem, method, found, {})
        reason = f"no steady state was found, the last was {words}"
        first = float(np.mean([problem.rule.force(0.0, target) ** 2 for target in (-1, 1)]))
        if problem.decay == 0:
            reason = (
                "no steady state was found: with `decay` = 0 weights may grow for ever, or rest "
                "where history left them"
            )
        elif found["F2"] <= FEW * first:
            reason = (
                f"no steady state was found: at `decay` = {problem.decay:g} forces are so few "
                f"({words}) that they die out; use method Simulation(n=500, samples=100), or a "
                f"larger `decay`"
            )
        elif not state.F2 < MANY:
            reason = f"no steady state: `rate` = {problem.rate:g} is too large, |J|² diverges"
        reason += "; `solve` at a late time follows learning"
        raise NotSettledError(reason, result) from None


def check(problem: Problem, method: Any, values: Measured) -> None:
    """Refuse a state that is lost in its error: of forces that hardly depend on x.

    M is then nothing but chance, and with it the poles of G and C, whose sum may be anything, while
    F2 is known well. Near the critical rate F2 is lost as Q is, and both errors are what they say.
    """
    unknown, force = (values[f"{name}_se"] / values[name] for name in ("Q", "F2"))
    if 0 < unknown < max(1 / LOST, 4 * force):
        return
    found = {name: values[name] for name in ("R", "R_se", "Q", "Q_se", "F2", "F2_se")}
    raise NotSettledError(
        f"no steady state is known: Q = {values['Q']:.2g} is lost in its error "
        f"{values['Q_se']:.2g}, since the force of `rule` {problem.rule!r} hardly depends on x "
        f"there; `solve` at a late time follows learning, or use method "
        f"Simulation(n=500, samples=100)",
        results.dataset(problem, method, found, {}),
    )


def rough(problem: Problem, rule: Any, tol: float, seed: int) -> tuple[Stationary, Scale]:
    """Return a state and scales of time to begin with."""
    return apart(lambda: scout(problem, lambda box, s: settle(box, s, rule, tol).state, seed))  # type: ignore[no-any-return]


def solve(
    problem: Problem, window: float, method: Any, rtol: float | None
) -> tuple[Measured, dict[str, Any]]:
    """Values with errors and how they were found: to `rtol`, or with `dt` and `samples` of DMFT."""
    rule = compiled_rule(problem.rule)
    tol = (rtol or RTOL) / 20
    with told(problem, method):
        start = rough(problem, rule, 4 * tol, method.seed)
        scale, size = start[1], 2 ** round(math.log2((method.samples or SAMPLES) / POPULATIONS))
        step = min(method.dt or math.inf, COARSE / scale.fast)
        settings = Settings(size, step, tol, method)
        while True:
            try:
                values, errors = ensemble(problem, rule, start, window, settings)
            except UnsettledError as error:  # the populations may have been too small
                values, errors, unsettled = {}, {"sampling": math.inf}, error
            enough = values and math.hypot(*errors.values()) <= (rtol or math.inf)
            better = settings if rtol is None else settings.improved(errors, rtol)
            if enough or rtol is None or better.size * scale.steps(better.step) > MOST_POINTS:
                break
            settings = better
        if not values:
            raise unsettled
        check(problem, method, values)
        way = "take a smaller `rtol`" if enough else "give more `samples`"
        warn_of(values, problem.data.task, rtol or math.inf, way, 5)
    steps = scale.steps(settings.step)
    how = {"dt": scale.period / steps, "samples": POPULATIONS * settings.size}
    return values | {"settled": scale.period}, how | {"errors": json.dumps(errors)}


def activations(problem: Problem, count: int, method: Any, rtol: float | None) -> Measured:
    """y, ỹ and x of so many examples in the steady state."""
    rule, tol = compiled_rule(problem.rule), (rtol or RTOL) / 20
    with told(problem, method):
        state, scale = rough(problem, rule, 4 * tol, method.seed)
        settings = Settings(1024, COARSE / scale.fast / 2, tol, method)

        def work(i: int) -> Any:
            box = settings.box(problem, scale, i)
            return np.array([*box.each[:2], settle(box, state, rule, settings.tol).x])

        threads = settings.workers(problem, scale)
        out = list(in_order(work, range(-(-count // settings.size)), threads))
    y, target, x = np.concatenate(out, axis=1)[:, :count]
    return {"y": y, "target": target, "x": x}


def critical_rate(problem: Problem, method: Any, rtol: float | None) -> tuple[float, float]:
    """v_c, beyond which |J|² diverges, and its standard error; inf if forces stay small.

    So large are the weights there that every constant of the force is nil beside them. What is left
    is a problem without scale: F2 comes back multiplied by some growth, which is one at v_c.
    """
    unknown = f"no critical rate is known for `rule` {problem.rule!r}"
    wrong = None if problem.layered else objection(problem.rule, problem.data.task, flow=False)
    if wrong:
        raise ValueError(f"{unknown}: {wrong}")
    small = problem.mode == "batch" or (problem.rule.bounded and not problem.layered)
    if small and not problem.scheduled:
        return orders.overshoot(problem), 0.0
    orders.require(problem, "DMFT.critical_rate")
    if problem.rule.steep or problem.decay == 0:
        steep = problem.rule.steep
        why = "force grows faster than x" if steep else "`decay` = 0 has no steady state"
        raise ValueError(f"{unknown}: its {why}")
    rule, tol = compiled_rule(problem.rule), (rtol or RTOL) / 5

    def found(box: Box, state: Stationary) -> Stationary:
        give, before = 1.0, 1.0
        for _ in range(ROUNDS):
            go_on()
            new = box.measure(state, rule)[0]
            growth = new.F2 / state.F2
            if not (np.isfinite(growth) and growth > 0):
                break
            values = new.values.copy()
            values[0] /= math.sqrt(growth)
            values[1 : 3 + state.rates.size] /= growth
            give, before = give * (0.6 if (growth > 1) != (before > 1) else 1), growth
            rate = state.problem.rate / min(max(growth, 0.5), 2.0) ** give
            new = replace(new, problem=state.problem.replace(rate=rate), values=values)
            moved = scales(state) @ (values - state.values)
            state = mixed(state, new, [])
            if not state.stable:
                break
            if max(abs(growth - 1), *np.abs(moved[:3])) < tol:
                return state
        raise UnsettledError(state)

    start = problem.replace(rate=(2 + problem.decay) / problem.rule.reach, temperature=0.0)
    least = 2 ** round(math.log2((method.samples or 2 * SAMPLES) / POPULATIONS))

    def populations(more: int) -> Measured:
        """Average over populations, in which few of some forces may be too few."""
        state, scale = apart(lambda: scout(start, found, method.seed, LARGE**2, more * SCOUT))
        settings = Settings(more * least, COARSE / scale.fast, tol, method)

        def work(i: int) -> Measured:
            box = settings.box(problem, scale, i)
            coarse = found(box.coarser(), state)
            fine = found(box, coarse).problem.rate
            moved = (fine - coarse.problem.rate) / 3
            return {"rate": fine + moved, "moved": moved}

        return averaged(in_order(work, range(POPULATIONS), settings.workers(problem, scale)))

    for more in LARGER:
        try:
            seen = populations(more)
            break
        except UnsettledError:
            continue
    else:
        raise ValueError(
            f"no critical rate was found for `rule` {problem.rule!r} at `alpha` = "
            f"{problem.data.alpha:g}, `decay` = {problem.decay:g}: the iteration does not settle; "
            f"`steady_state` at several rates tells where it ends"
        )
    parts = STUDENT * seen["rate_se"], STEP_LEFT * seen["moved"], tol * seen["rate"]
    return float(seen["rate"]), math.hypot(*parts)
