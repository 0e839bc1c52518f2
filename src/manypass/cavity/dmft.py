"""Self-consistent populations: curves for any rule, each with what is known of its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from manypass.cavity.equations import Equations
from manypass.cavity.grid import Grid
from manypass.cavity.learners import Batch, Online
from manypass.cavity.population import Population
from manypass.checks import Array
from manypass.ensemble import Average, Measured, stopping
from manypass.problem import Problem

DIVERGED = 1e12  # a |J|² beyond this is called infinite
STUDENT = 1.09  # the error of an error from sixteen: two of them still hold 95 %
ROUNDING = 1e-7  # of single precision
SPLIT = 4  # of them are also run as halves, to see the bias of a finite population
# What is left of the step error after extrapolating, in units of the last correction (see tests).
STEP_LEFT = {"online": 0.5, "batch": 1.0}
Read = Callable[[Grid], Measured]


class StoppedError(Exception):
    """The result is no longer wanted."""


def evolve(problem: Problem, population: Population, rule: Any) -> Measured:
    """R, Q, F2, Et, C, G on the grid of one population that is driven by its own averages.

    Heun's scheme: extrapolate to t_{i+1}, measure there, correct, measure again. C and G are
    functions of (t, s) with t ≥ s; x are the activations at the end.
    """
    steps = population.steps
    equations = Equations(problem, population.time / steps, steps)
    kind = Online if problem.mode == "online" else Batch
    learners = kind(problem, population, rule, equations)
    equations.record(0, *learners.measure(0, True))

    def step(i: int) -> bool:
        """Go from t_i to t_{i+1}; return whether that is still finite."""
        if i:  # the last push again, now that all is known of it
            equations.push(i - 1, *learners.push(i - 1, True))
        for corrected in (False, True):
            equations.advance(i, corrected)
            equations.push(i, *learners.push(i, corrected))
            equations.record(i + 1, *learners.measure(i + 1, corrected))
        return bool(equations.Q(i + 1) < DIVERGED and np.isfinite(equations.F2[i + 1]))

    last = steps
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows has diverged
        for i in range(steps):
            if stopping():
                raise StoppedError
            try:
                finite = step(i)
            except OverflowError:
                finite = False
            if not finite:
                last = i
                break
        C, G = equations.C(), equations.G
    found = {"R": equations.R, "Q": np.diag(C).copy(), "F2": equations.F2, "Et": equations.Et}
    for values in (*found.values(), C, C.T, G):
        values[last + 1 :] = np.inf
    return found | {"C": C, "G": G, "x": learners.x}


def sample(
    problem: Problem, rule: Any, population: Population, names: Any, read: Read, split: bool
) -> tuple[Measured, Measured, Measured | None]:
    """Read one population: extrapolated in the step; how far that moved it; and its bias.

    The bias is that of a population of this size: halves of it, which have twice the bias, minus
    the whole, on the coarser grid.
    """

    def grid(of: Population) -> Grid:
        return Grid.of(of.time / of.steps, evolve(problem, of, rule), names)

    coarser = population.coarser()
    fine, rough = grid(population), grid(coarser)
    values, plain = read(fine.extrapolated(rough)), read(fine)
    moved = {name: _difference(values[name], plain[name]) for name in values}
    if not split:
        return values, moved, None
    whole, halves = read(rough), [read(grid(half)) for half in coarser.halves()]
    bias = {n: _difference(np.mean([h[n] for h in halves], axis=0), whole[n]) for n in whole}
    return values, moved, bias


def summary(
    samples: Iterable[tuple[Measured, Measured, Measured | None]],
    least: dict[str, float],
    floors: dict[str, float],
    mode: str,
) -> Measured:
    """Means with `_se`, and the largest share of each error in it.

    The standard error is the root of the sum of squares of three: scatter over populations, what
    is left of the step error, and the population's bias. Shares are relative to the largest value
    of a curve, or to what is given as the `least` that matters; `floors` are what a sampling error
    cannot be below.
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
        parts = {
            "sampling": STUDENT * out[f"{name}_se"] + floors.get(name, ROUNDING * sizes[name]),
            "step": STEP_LEFT[mode] * np.maximum(np.abs(step[name]), floor),
            "population": np.hypot(bias[name], bias[f"{name}_se"]),
        }
        out[f"{name}_se"] = np.sqrt(sum(part**2 for part in parts.values()))
        if np.ndim(out[name]) < 2:
            for key, part in parts.items():
                budget[key] = max(budget[key], _largest(part) / sizes[name])
    return out | {"budget": budget}


def _largest(values: Array) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _difference(a: Array, b: Array) -> Array:
    """Return a − b; where one is inf there is nothing to compare."""
    both = np.isfinite(a) & np.isfinite(b)
    return np.where(both, np.where(both, a, 0.0) - np.where(both, b, 0.0), 0.0)
