"""Expected learning curves of a linear rule on a data set, for the method `Exact`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manypass import card, memory, orders
from manypass.checks import Array
from manypass.data import flow, reshuffled, sums
from manypass.data.critical import critical_step, steady_covariance
from manypass.data.dataset import Dataset
from manypass.data.measuring import Measure, stack
from manypass.data.moments import Moments
from manypass.data.stepping import follow
from manypass.ensemble import Progress, shown
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian

ACCURACY = 1e-5  # of the curves, unless told
MARGIN = 0.3  # what the error estimate of a step may be, in units of the accuracy
SMALL = 10**9  # multiplications of a product that one thread does as fast as two


def curves(
    problem: Problem,
    t: Array,
    *,
    accuracy: float | None,
    diagonal: bool,
    two_time: bool,
    progress: Progress,
    device: str = "cpu",
) -> dict[str, Any]:
    """Q, F2, Et, and with a test set F2_test and Eg, at times t to the nearest step."""
    data = data_of(problem)
    with calm(data):
        moments = Moments(problem, data.principal_on(device), diagonal=diagonal)
        if problem.mode == "batch":
            return flow.curves(problem, moments, t, two_time)
        if problem.sequence == "reshuffled":
            return _reshuffled_curves(moments, data.task, t, two_time)
        return online_curves(moments, data.task, t, accuracy or ACCURACY, two_time, progress)


def online_curves(
    moments: Moments, task: str, t: Array, accuracy: float, two_time: bool, progress: Progress
) -> dict[str, Any]:
    """Follow m and Σ, and measure."""
    measure = Measure(moments, task)
    steps = [moments.steps(time) for time in t]
    path = follow(moments, sorted(set(steps)), MARGIN * accuracy)
    if two_time:
        memory.require(8 * t.size * (2 * moments.h.size + 4 * t.size), "take fewer `times`")
    seen: dict[int, dict[str, float]] = {}
    kept: dict[int, tuple[Array, Array]] = {}
    for k, state in shown(path, len(set(steps)), progress, "exact", "time"):
        with np.errstate(over="ignore", invalid="ignore"):
            seen[k] = measure(*(state.m, state.Sigma, state.null) if state else (None, None, 0.0))
        if two_time and state is not None:
            variances = card.host(moments.variances(state.Sigma).copy())
            kept[k] = card.host(state.m), np.append(variances, state.null)
    out = stack([seen[k] for k in steps])
    if two_time:
        out |= _two_time(moments, measure, steps, kept)
    return out


def _reshuffled_curves(moments: Moments, task: str, t: Array, two_time: bool) -> dict[str, Any]:
    if two_time:
        raise ValueError(
            f"`two_time` of `sequence` = 'reshuffled' is not known on a Dataset: "
            f"{reshuffled.REMEDY}"
        )
    return reshuffled.curves(moments, task, [moments.steps(time) for time in t])


def _two_time(
    moments: Moments, measure: Measure, steps: list[int], kept: dict[int, tuple[Array, Array]]
) -> dict[str, Array]:
    """C(t,s) = m(t)·m(s) + Σ_i A_i Σ_ii(s) and G(t,s) = (1/N) Σ_i A_i, A = Π a from s to t > s."""
    count = np.ones(moments.h.size + 1)
    count[-1] = measure.outside
    C, G = np.zeros((2, len(steps), len(steps)))
    later = [moments.kept(*pair) for pair in pairwise(steps)]
    for j, early in enumerate(steps):
        a = np.ones_like(count)
        for i in range(j, len(steps)):
            a = a * later[i - 1] if i > j else a
            G[i, j] = count @ a / moments.examples.n
            C[i, j] = C[j, i] = np.inf
            if early in kept and steps[i] in kept:
                (m, variances), (last, _) = kept[early], kept[steps[i]]
                C[i, j] = C[j, i] = last @ m + (count * a) @ variances
    return {"C": C, "G": G}


def stationary(
    problem: Problem, *, diagonal: bool, window: float, device: str = "cpu"
) -> dict[str, float]:
    """Return Q, F2_test, Eg of weights averaged over the window, F2 and Et of present ones."""
    data = data_of(problem)
    with calm(data):
        if problem.start is not None and problem.decay == 0:
            outside = Moments(problem, data.principal).h.size - data.principal.rank
            if outside:
                raise ValueError(
                    "no steady state of its own: with `decay` = 0 the part of `start` that lies in "
                    "no example of the `data` stays for ever; take learning curves, or a `decay`"
                )
        problem = problem.replace(start=None)
        moments = Moments(problem, data.principal_on(device), diagonal=diagonal)
        return _stationary(problem, moments, window)


def _stationary(problem: Problem, moments: Moments, window: float) -> dict[str, float]:
    measure, diagonal = Measure(moments, problem.data.task), moments.diagonal
    check_steady(problem, moments)
    m = moments.examples.g / (problem.decay + moments.h)
    slow = np.array(moments.nu * problem.decay)
    if problem.mode == "batch":
        share = 2 * problem.temperature / moments.examples.n / problem.rate / 2
        variance = share / (problem.decay + moments.h)
        Sigma = variance if diagonal else np.diag(variance)
        null = share / problem.decay if problem.decay else 0.0
    else:
        Sigma = steady_covariance(moments)
        null = moments.heat / float(2 * slow - slow**2) if moments.heat and problem.decay else 0.0
    if problem.sequence == "reshuffled":
        if window:
            raise ValueError(
                f"`window` = {window:g} of `sequence` = 'reshuffled' is not known on a Dataset: "
                f"{reshuffled.REMEDY}"
            )
        found = reshuffled.stationary(moments, problem.data.task, (m, Sigma), null)
        return {name: float(value) for name, value in found.items()}
    now = measure(m, Sigma, null)
    steps = moments.steps(window)
    if problem.mode == "batch" and window:
        from manypass.exact.steady import window_factor

        kept = window_factor(problem.rate * (problem.decay + moments.h) * window)
        outside = float(window_factor(np.array(problem.rate * problem.decay * window)))
    elif steps > 1:
        kept = sums.kept_by_window(moments.q, steps)
        outside = float(sums.kept_by_window(slow, steps))
    else:
        return now
    averaged = Sigma * (kept if diagonal else (kept[:, None] + kept) / 2)
    return now | measure.test(m, averaged, null * outside)


def check_steady(problem: Problem, moments: Moments) -> None:
    """Raise a `ValueError` that says why there is no steady state."""
    if problem.decay == 0 and isinstance(problem.rule, Hebbian):
        raise ValueError("no steady state: with `decay` = 0 Hebbian weights grow for ever")
    if problem.mode == "online" and moments.coupled:
        limit = critical_step(moments) * moments.examples.n
        if problem.rate >= limit:
            said, rest = "no steady state", ""
            of = f"`rate` = {problem.rate:g} is not below the critical rate "
            if problem.sequence != "replacement":
                said, rest = f"{said} to start from", f"; {reshuffled.REMEDY}"
                of += "with replacement "
            raise ValueError(f"{said}: {of}v_c = {limit:.6g}{rest}")
    if not moments.coupled and problem.mode == "online" and moments.nu * problem.decay >= 2:
        raise ValueError(f"no steady state: `decay` = {problem.decay:g} is not below 2/rate·N")
    outside = moments.examples.n - moments.examples.rank
    if problem.decay == 0 and problem.temperature > 0 and outside:
        raise ValueError(
            f"no steady state: with `decay` = 0 the `temperature` = {problem.temperature:g} heats "
            f"{outside} directions for ever, in which no example of the `data` lies"
        )


def critical_rate(problem: Problem, device: str = "cpu") -> float:
    """v_c = N ν_c of on-line Adaline; bounded forces need none."""
    if not problem.scheduled and (problem.mode == "batch" or problem.rule.bounded):
        return orders.overshoot(problem)
    if not isinstance(problem.rule, Adaline | Hebbian):
        raise ValueError(
            f"no critical rate of a Dataset is known for `rule` {problem.rule!r}, whose force is "
            f"neither linear nor bounded: learning curves, with the number of runs that diverged, "
            f"come from method Simulation(samples=100)"
        )
    data = data_of(problem)
    problem = orders.require(problem.replace(rate=1.0, start=None), "critical_rate")
    with calm(data):
        moments = Moments(problem, data.principal_on(device))
        return critical_step(moments) * data.n


def calm(data: Dataset) -> AbstractContextManager[Any]:
    """Hold small products to one thread: more of them would wait for each other."""
    return threadpool_limits(1) if data.p * data.n**2 < SMALL else nullcontext()


def refused_by_card(problem: Problem) -> str | None:
    """Why theory is not computed on a card, or None: only products over given examples are."""
    if not isinstance(problem.data, Dataset) or problem.mode != "online":
        return (
            "device='cuda' serves on-line learning on a Dataset: the theory of a Teacher and of "
            "batch learning has no large products; leave `device` out"
        )
    return card.refusal(card.arrays_missing)


def data_of(problem: Problem) -> Dataset:
    """Return the data set of a problem that has one."""
    if not isinstance(problem.data, Dataset):
        raise ValueError(
            f"`data` must be a Dataset, one's own examples from a file or from arrays, got "
            f"{problem.data!r}"
        )
    return problem.data
