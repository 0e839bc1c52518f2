"""Self-consistent populations: curves for any rule, each with what is known of its error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from manypass.cavity.plan import Plan
from manypass.cavity.population import lead
from manypass.checks import Array
from manypass.ensemble import Average, Measured
from manypass.problem import Problem

STUDENT = 1.09  # the error of an error from sixteen: two of them still hold 95 %
ROUNDING = 1e-7  # of single precision
SPLIT = 4  # of them are also run as halves, to see the bias of a finite population
# What is left of the step error after extrapolating, in units of the last correction (see tests).
STEP_LEFT = {"smooth": 1.0, "jumps": 1.5}
# In epochs, where the same examples are learned again in step with each other, and with correlated
# inputs, where more is known of every push than h has shown: the bias of a population is up to
# this share of (cells of the past)/(examples), and halves do not show it all.
OVERFIT = 0.1
FAR = 15.0  # and more where the correction is large, in units of its share in the curve


def sample(
    problem: Problem, rule: Any, size: int, plan: Plan, rng: Any, split: bool
) -> tuple[Measured, Measured, Measured | None]:
    """Read one population: extrapolated in the step; how far that moved it; and its bias.

    The bias is that of a population of this size: halves of it, which have twice the bias, minus
    the whole, on the coarser grid.
    """
    runs = lead(problem, rule, size, plan, rng, split)
    found = [run.at(plan.t, plan.clock.w) for run in runs]
    fine, rough, *halves = ({name: values[name] for name in plan.names} for values in found)
    values = {name: fine[name] + _difference(fine[name], rough[name]) / 3 for name in fine}
    for name in values:
        values[name][np.isinf(rough[name])] = np.inf
    values, plain, whole = (plan.finish(v) for v in (values, fine, rough))
    moved = {name: _difference(values[name], plain[name]) for name in values}
    if not split:
        return values, moved, None
    parts = [plan.finish(half) for half in halves]
    bias = {n: _difference(np.mean([p[n] for p in parts], axis=0), whole[n]) for n in whole}
    return values, moved, bias


def summary(
    samples: Iterable[tuple[Measured, Measured, Measured | None]],
    least: dict[str, float],
    floors: dict[str, float],
    kind: str,
    overfit: float = 0.0,
    nodes: float = 0.0,
) -> Measured:
    """Means with `_se`, and the largest share of each error in it.

    The standard error is the root of the sum of squares of three: scatter over populations, what
    is left of the step error, and the population's bias. Shares are relative to the largest value
    of a curve, or to what is given as the `least` that matters; `floors` are what a sampling error
    cannot be below, `overfit` cells per example where they are learned in epochs, `nodes` what few
    eigenvalues for many are off.
    """
    average, steps, biases = Average(), Average(), Average()
    for values, moved, bias in samples:
        average.add(values)
        steps.add(moved)
        if bias is not None:
            biases.add(bias)
    out, step, bias = average.results(), steps.results(), biases.results()
    names = [name for name in step if not name.endswith("_se")]
    sizes = {name: max(_largest(out[name]), least.get(name, 1e-300)) for name in names}
    sizes["R"] = math.sqrt(sizes["Q"])  # an overlap that is nearly zero need not be known well
    # A correction may be small by chance, where it changes its sign: look at all of them together.
    shares = [np.minimum(np.abs(step[n]), sizes[n]) / sizes[n] for n in names]
    common = math.sqrt(np.mean([np.mean(share**2) for share in shares]))
    budget = dict.fromkeys(("sampling", "step", "population"), 0.0)
    for name in names:
        floor = np.where(step[name] == 0, 0.0, common * sizes[name])
        left = np.maximum(np.abs(step[name]), floor)
        chance = bias[f"{name}_se"]  # of the bias
        parts = {
            "sampling": STUDENT * out[f"{name}_se"] + floors.get(name, ROUNDING * sizes[name]),
            "step": STEP_LEFT[kind] * left * (1 + FAR * left / sizes[name]) + nodes * sizes[name],
            "population": np.hypot(
                np.sqrt(np.maximum(bias[name] ** 2 - chance**2, chance**2 / 4)),
                np.where(step[name] == 0, 0.0, OVERFIT * overfit * sizes[name]),
            ),
        }
        out[f"{name}_se"] = np.sqrt(sum(part**2 for part in parts.values()))
        if name not in ("C", "G"):
            for key, part in parts.items():
                budget[key] = max(budget[key], _largest(part) / sizes[name])
    return out | {"budget": budget}


def _largest(values: Array) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _difference(a: Array, b: Array) -> Array:
    """Return a − b; where one is inf there is nothing to compare."""
    both = np.isfinite(a) & np.isfinite(b)
    return np.where(both, np.where(both, a, 0.0) - np.where(both, b, 0.0), 0.0)
