"""Averages over sampled examples: E_t and ⟨F²⟩ with error bars, in chunks, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import erfc

from manypass.cavity.examples import Draws, gaussian
from manypass.cavity.tables import Tables, exact_tables, steady_tables
from manypass.checks import Array
from manypass.ensemble import Average, apart, cores, in_order
from manypass.problem import Problem
from manypass.rules import Hebbian

CHUNK = 8192  # examples sampled at once: bounds the memory
FEW = 512  # at once, if an accuracy decides when it is enough
PILOT = 1024  # examples that decide how much of the past matters
LEAST, WORK = 64, 1e7  # but fewer, if they are learned often: pairs of instants, half a second
MOVED = 1e-4  # how far the pilot's training error may move when the past is doubled
MOST_INSTANTS = 1500.0  # learning instants of one example: the work grows as their square
Measure = Callable[[int, np.random.Generator], dict[str, Array]]


def chunks(
    measure: Measure, samples: int, seed: Any, size: int = CHUNK
) -> Iterator[dict[str, Array]]:
    """Yield measure(count, rng) for chunks of examples: the same on any number of threads."""
    pieces = range(math.ceil(samples / size))

    def piece(i: int) -> dict[str, Array]:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))
        return measure(min(size, samples - i * size), rng)

    return in_order(piece, pieces, cores())


def sample_average(
    measure: Measure, samples: int, accuracy: float | None, seed: Any, few: int = FEW
) -> dict[str, float]:
    """Mean and standard error of what is measured per example.

    Takes `samples` examples or, if an accuracy is given, only as many as bring the standard error
    of Et below it.
    """
    average, size = Average(), CHUNK if accuracy is None else few
    for i, values in enumerate(chunks(measure, samples, seed, size)):
        average.extend(values)
        if accuracy is not None and i >= 3 and average.results()["Et_se"] <= accuracy:
            break
    return {name: float(value) for name, value in average.results().items()}


def errors(mean: Array, variance: Array, target: Array) -> dict[str, Array]:
    """½ erfc(ỹ⟨x⟩/√2σ) and (ỹ − ⟨x⟩)² + σ²: an example's share of Et and F2, x being Gaussian."""
    spread = np.sqrt(np.maximum(2 * variance, 1e-300))
    return {"Et": 0.5 * erfc(target * mean / spread), "F2": (target - mean) ** 2 + variance}


def affordable(most: int, often: float) -> int:
    """Return how many examples that are learned so often take no long time together.

    Examples
    --------
    >>> affordable(PILOT, 30.0), affordable(PILOT, 200.0), affordable(PILOT, 1000.0)
    (1024, 249, 64)
    """
    return int(min(max(WORK / (1 + often**2), LEAST), most))


def check_instants(problem: Problem, span: float) -> None:
    """Refuse to sample an example that is learned too often within its memory."""
    often = span / problem.data.alpha
    if often > MOST_INSTANTS:
        raise ValueError(
            f"at `alpha` = {problem.data.alpha:g}, `rate` = {problem.rate:g}, `decay` = "
            f"{problem.decay:g} an example is learned about {often:.3g} times within its memory: "
            f"more than {MOST_INSTANTS:g} cannot be sampled; for small rates use mode='batch'"
        )


class Memory:
    """How far back an example remembers, and the exact theory over that span.

    For Adaline, earlier learning instants are added, span by span, until the training error of a
    pilot sample moves by less than a tolerance and its F2, relatively, by less than ten times
    that. Hebbian boosts decay as e^{−vλ(t−t_r)}.
    """

    def __init__(self, problem: Problem, latest: float, tolerance: float = MOVED) -> None:
        self.problem, self.latest = problem, latest
        fastest = problem.rate * (problem.decay + (1 + 1 / math.sqrt(problem.data.alpha)) ** 2)
        self.span, self.moved = 8 / fastest, 0.0
        self.from_start: Tables | None = None
        if isinstance(problem.rule, Hebbian):
            slowest = problem.rate * problem.decay
            self.span = -math.log(MOVED / 10) / slowest if slowest else math.inf
            return
        while self.span < latest:
            check_instants(problem, 2 * self.span)
            tables, time = self._window(latest, 2 * self.span)
            count = affordable(PILOT, 2 * self.span / problem.data.alpha)
            draws = Draws.make(problem.teacher, tables.start, time, count, np.random.default_rng(0))
            shares = []
            for span in (self.span, 2 * self.span):
                line = problem.rate, time, time - span
                mean, variance = apart(partial(gaussian, tables, line, draws))
                shares.append(errors(mean, variance, draws.target))
            short, long = shares
            shift = {name: float(np.abs(short[name] - long[name]).mean()) for name in short}
            self.moved = max(shift["Et"], 0.1 * shift["F2"] / max(long["F2"].mean(), 1e-3))
            if self.moved < tolerance:
                return
            self.span *= 2
        self.moved = 0.0  # nothing is left out

    def tables(self, time: float) -> tuple[Tables, float]:
        """Tables that reach back far enough from `time`, and where in them the present is."""
        if time > self.span:
            return self._window(time, self.span)
        if self.from_start is None:
            self.from_start = exact_tables(self.problem, 0.0, min(self.latest, self.span))
        return self.from_start, time

    def _window(self, time: float, span: float) -> tuple[Tables, float]:
        if math.isinf(time):
            return steady_tables(self.problem, span), span
        return exact_tables(self.problem, max(time - span, 0.0), time), time


def adaline_training_error(
    problem: Problem, t: Array, samples: int, accuracy: float | None, seed: int
) -> dict[str, Array]:
    """Et and Et_se of on-line Adaline classification at times t; inf is the steady state."""
    tolerance = MOVED if accuracy is None else min(MOVED, accuracy / 3)
    memory, rows = Memory(problem, float(t.max()), tolerance), []
    if accuracy is not None:  # the past that is left out has its share
        accuracy = math.sqrt(accuracy**2 - memory.moved**2)
    for i, time in enumerate(t):
        if time == 0:  # J = 0: a guess
            rows.append({"Et": 0.5, "Et_se": 0.0})
            continue
        row = adaline_moments(problem, memory, float(time), samples, accuracy, (seed, i))
        row["Et_se"] = math.hypot(row["Et_se"], memory.moved if time > memory.span else 0.0)
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in ("Et", "Et_se")}


def adaline_moments(
    problem: Problem, memory: Memory, time: float, samples: int, accuracy: float | None, seed: Any
) -> dict[str, float]:
    """Et and F2 at one time, sampled, with standard errors."""
    tables, now = memory.tables(time)
    check_instants(problem, now - tables.start)

    def measure(count: int, rng: np.random.Generator) -> dict[str, Array]:
        draws = Draws.make(problem.teacher, tables.start, now, count, rng)
        mean, variance = gaussian(tables, (problem.rate, now, tables.start), draws)
        return errors(mean, variance, draws.target)

    few = affordable(FEW, (now - tables.start) / problem.data.alpha)
    return sample_average(measure, samples, accuracy, seed, few)
