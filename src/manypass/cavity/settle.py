"""Steady states of any rule: iterate the stationary functions until they reproduce themselves.

Everything random is drawn once, so that the iteration is a map with a fixed point, and Anderson's
mixing finds it. Rates of relaxation, and with them the period of the paths, the step and the
exponentials, come from a small population that goes ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from manypass import memory
from manypass.cavity.laps import Box
from manypass.cavity.stationary import Stationary
from manypass.checks import Array
from manypass.ensemble import cores, go_on
from manypass.problem import Problem

ROUNDS = 60  # before the iteration is given up
TREMBLE = 10  # rounds that are averaged if they go nowhere
ALARM = 0.03  # of such trembling: then the iteration has failed
DEPTH = 5  # rounds that Anderson's mixing remembers
RATIO = 3.0  # of neighbouring rates of the exponentials
PERIOD = 7.0  # of the paths, in relaxation times of the slowest memory
COARSE = 0.4  # first step that is tried, in units of the fastest relaxation time
TRIES = 6  # at finding the scales of time
SCOUT = 256  # examples for that
MOST_STEPS = 10_000  # in a period
MANY = 1e6  # times the size of forces that learn: called infinite

Find = Callable[[Box, Stationary], Stationary]


class UnsettledError(Exception):
    """The iteration did not come to rest: the last state."""


class Settled(NamedTuple):
    """A state that its own examples reproduce, up to what is left of the iteration."""

    state: Stationary
    Et: float
    x: Array
    left: float


def settle(box: Box, state: Stationary, rule: Any, tol: float) -> Settled:
    """Iterate until R/|J|, F2 and S(∞) stand still, or only tremble: forces that jump do."""
    past: list[tuple[Array, Array]] = []
    largest, rest = MANY * max(state.F2, 1.0), list[Any]()
    for done in range(1, ROUNDS + 1):
        go_on()
        if not state.stable:
            break
        new, Et, x = box.measure(state, rule)
        if not (np.isfinite(new.values).all() and 0 < new.F2 < largest):
            state = new
            break
        residual = scales(state) @ (new.values - state.values)
        left = float(np.abs(residual[:3]).max())
        if left < tol and np.abs(residual).max() < 10 * tol and new.stable:
            return Settled(new, Et, x, left)
        past = [*past, (new.values, residual)][-DEPTH - 1 :]
        rest = [*rest, (new.values, residual[:3], Et)][-TREMBLE:]
        values, moves, errors = (np.array(part) for part in zip(*rest, strict=True))
        trend, spread = np.abs(moves.mean(0)).max(), moves.std(0).max() / math.sqrt(TREMBLE)
        if len(rest) == TREMBLE and max(trend, spread) < (3 * tol if done < ROUNDS else ALARM):
            state = replace(new, values=values.mean(0))
            if state.stable:
                return Settled(state, float(errors.mean()), x, float(max(trend, spread)))
        state = mixed(state, new, past)
    raise UnsettledError(state)


def mixed(old: Stationary, new: Stationary, past: list[tuple[Array, Array]]) -> Stationary:
    """Mix past rounds such that the residual should be least; less boldly if that is nonsense."""
    while len(past) > 2:
        values, residuals = (np.array(part) for part in zip(*past, strict=True))
        share = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=1e-6)[0]
        mixture = replace(new, values=values[-1] - share @ np.diff(values, axis=0))
        if mixture.stable and 0.2 < mixture.F2 / new.F2 < 5:
            return mixture
        past = past[1:]
    for _ in range(20):
        if new.stable:
            break
        new = replace(new, values=(new.values + old.values) / 2)
    return new


def scales(state: Stationary) -> Array:
    """From values to numbers of order one: R/|J|, F2, and averages of S and M over lags."""
    rates, size = state.rates, state.rates.size
    means, out = rates[:, None] / (rates[:, None] + rates), np.zeros((4 + 2 * size,) * 2)
    out[0, 0] = 1 / math.sqrt(max(state.Q(), 1e-300))
    out[1, 1] = out[2, 2] = out[3 : 3 + size, 2] = 1 / state.F2
    out[3 : 3 + size, 3 : 3 + size] = means / state.F2
    out[3 + size :, 3 + size] = 1.0
    out[4 + size :, 4 + size :] = means / rates[:, None]
    out[3 + size :] /= max(abs(state.m), 0.05)
    return out


@dataclass(frozen=True)
class Scale:
    """Rates of relaxation, slowest and fastest, and the grid that they ask for."""

    slow: float
    fast: float

    @classmethod
    def of(cls, state: Stationary) -> Scale:
        """Read them off a state."""
        return cls(state.slowest, max(state.fastest, 1.01 * state.slowest))

    @property
    def period(self) -> float:
        """After which nothing is remembered."""
        return PERIOD / self.slow

    def steps(self, step: float) -> int:
        """Count the steps in a period; every second one makes a grid too."""
        return 4 * math.ceil(max(self.period / step, 16) / 4)

    def rates(self, problem: Problem) -> Array:
        """Of the exponentials; without any noise in time there is nothing to resolve."""
        if problem.mode == "batch" and problem.temperature == 0:
            return np.zeros(0)
        ratio = self.fast / self.slow
        return np.geomspace(self.slow, self.fast, max(3, 1 + round(math.log(ratio, RATIO))))

    def near(self, other: Scale) -> bool:
        """Whether the difference does not matter."""
        pairs = ((self.slow, other.slow), (self.fast, other.fast))
        return all(2 / 3 < a / b < 3 / 2 for a, b in pairs)


@dataclass(frozen=True)
class Settings:
    """How a steady state is sampled: examples in a population, step, when to stop; and by what."""

    size: int
    step: float
    tol: float
    method: Any

    def box(self, problem: Problem, scale: Scale, i: int) -> Box:
        """Draw the i-th population."""
        rng = np.random.default_rng(np.random.SeedSequence(self.method.seed, spawn_key=(i,)))
        return Box.make(problem, scale.period, scale.steps(self.step), self.size, rng)

    def improved(self, errors: dict[str, float], rtol: float) -> Settings:
        """Return what should reach the accuracy: more examples, a smaller step."""
        chance = math.hypot(*(errors.get(n, 0) for n in ("sampling", "population", "memory")))
        more = min(max((chance / (0.8 * rtol)) ** 2, 1), 4)
        less = min(max(errors.get("step", 0) / (0.5 * rtol), 1), 8) ** -0.4
        size = self.size * 2 ** math.ceil(math.log2(more))  # as even draws ask for
        return replace(self, size=size, step=self.step * less)

    def workers(self, problem: Problem, scale: Scale) -> int:
        """How many populations fit into memory at once; none is refused with the number."""
        steps, learned = scale.steps(self.step), 2 * scale.period / problem.teacher.alpha
        needed = self.size * (40 * steps + (32 * learned if problem.mode == "online" else 0))
        remedy = "take fewer `samples` or a larger `dt`, or allow more `memory`"
        free = memory.require(needed, remedy, self.method.memory * 1e9)
        return max(1, min(self.method.threads or cores(), int(free // needed)))


def scout(
    problem: Problem, find: Find, seed: int, F2: float = 0.0, size: int = SCOUT
) -> tuple[Stationary, Scale]:
    """Return a rough state and the scales of time, which it has to agree with."""
    targets, x = np.array([-1.0, 1.0]), np.array([[-1.0], [0.0], [1.0]])
    force = np.vectorize(problem.rule.force, otypes=[float])
    m = -max(abs(np.mean(force(x + 1, targets) - force(x - 1, targets))) / 2, 0.05)
    F2 = F2 or max(float(np.mean(force(0.0, targets) ** 2)), 1e-3)
    state = Stationary.guess(problem, np.zeros(0), F2, m)
    scale = Scale(max(problem.rate * problem.decay, state.fastest / 100), state.fastest)
    for attempt in range(TRIES):
        steps, rates = scale.steps(COARSE / scale.fast), scale.rates(problem)
        if steps > MOST_STEPS:
            break
        state = state.at(rates) if attempt else Stationary.guess(problem, rates, F2, m)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(attempt, 0)))
        state = find(Box.make(problem, scale.period, steps, size, rng).coarser(), state)
        if Scale.of(state).near(scale):
            return state, scale
        scale = Scale.of(state)
    raise UnsettledError(state)
