"""How long an ensemble may take, from the first steps of one of its networks."""

from __future__ import annotations

import math
import time as clock
from typing import Any

import numpy as np

from manypass.problem import Problem
from manypass.simulation.method import Simulation
from manypass.simulation.sample import MEASURED_AT_ONCE

SMALL = 2e9  # numbers that all networks draw or change, some seconds: not worth a trial
TRIAL = 0.05  # seconds that steps are taken for
LONG = 10.0  # seconds from which on the time is told


def estimate(method: Simulation, problem: Problem, until: float, looks: int) -> float:
    """Seconds that all networks may take to learn until a time and to be looked at; 0 if few."""
    n = method._on(problem).n
    runs = 1 + looks if method.response else 1
    p = n if math.isinf(problem.data.alpha) else problem.data.alpha * n
    work = method.samples * n * (n * until * runs + p * (1 + looks / 8))
    if method.device != "cpu" or (work < SMALL and problem.mode == "online"):
        return 0.0
    threads = method._threads(problem, 1)  # refuses what does not fit
    make, seed = method._on(problem)._maker(problem, 1), np.random.SeedSequence(method.seed)
    sample: Any = make(seed.spawn(1)[0])
    drawn = _seconds(lambda: make(seed.spawn(1)[0]))  # the first has loaded what is compiled
    at_once = np.linspace(0, min(1, until / 4) / n, min(looks, MEASURED_AT_ONCE) + 1)[1:]
    measured = min(_seconds(lambda: sample.curves(at_once, False)) for _ in range(2))
    network, step, now, paces = sample.network(), 4 / n, 0.0, [math.inf]
    # The least counts, of three at least: others have their turn on this machine, too.
    while (len(paces) < 4 or min(paces) * now < TRIAL) and now < until and not network.diverged:
        step = min(2 * step, until - now)
        now += step
        paces.append(_seconds(lambda: network.advance(now)) / step)  # noqa: B023
    learned = min(paces) * (now if network.diverged else until) * runs
    each = drawn + learned + measured * math.ceil(looks / MEASURED_AT_ONCE)
    return each * method.samples / min(threads, method.samples)


def told(method: Any, problem: Problem, until: float, looks: int) -> str | None:
    """Say how long a simulation may take, if that is long."""
    if not isinstance(method, Simulation) or method.refusal(problem):
        return None
    seconds = estimate(method, problem, until, looks)
    if seconds < LONG:
        return None
    long = f"{seconds / 60:.2g} min" if seconds < 7200 else f"{seconds / 3600:.2g} h"
    long = f"{seconds:.2g} s" if seconds < 120 else long
    networks = f"{method.samples} networks" if method.samples > 1 else "one network"
    return f"{networks} of N = {method._on(problem).n} may take about {long}"


def _seconds(work: Any) -> float:
    begun = clock.perf_counter()
    work()
    return clock.perf_counter() - begun
