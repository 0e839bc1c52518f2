"""Self-consistent populations: curves for any rule, each with what is known of its error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from manypass.cavity.plan import Plan
from manypass.cavity.population import lead
from manypass.cavity.settling import largest, sizes_of, with_errors
from manypass.checks import Array
from manypass.ensemble import Measured, averaged
from manypass.problem import Problem

STUDENT = 1.6  # over n ≥ 8: how much more errors from n must be for two of them to hold 95 %
ROUNDING = 1e-7  # of single precision
# What is left of the step error after extrapolating, in units of the last correction (see tests).
STEP_LEFT = 1.25
# In epochs, where the same examples are learned again in step with each other, and with correlated
# inputs, where more is known of every push than h has shown: the bias of a population is up to
# this share of (cells of the past)/(examples), and halves do not show it all.
OVERFIT = 0.1
FAR = 15.0  # and more where the correction is large, in units of its share in the curve
AHEAD = 5.0  # times as large a curve may become for its errors to be those of one curve
TWO_TIME, POSITIVE = ("C", "G"), ("Q", "F2", "Et")
BIAS_LEFT = 0.25  # of a bias that was taken out: halves have twice of it but for higher orders


Sample = tuple[Measured, Measured, Measured, float]


def sample(problem: Problem, rule: Any, size: int, plan: Plan, rng: Any) -> Sample:
    """Read one population, extrapolated in the step; how far that moves it; and its bias.

    The bias is that of a population of this size, in which every example meets its own part of
    ⟨F z⟩: halves of it, which have twice the bias, minus the whole, on the coarser grid. It grows
    with the cells of the past: the last number is what the finer grid has more of them, relatively.
    """
    runs = lead(problem, rule, size, plan, rng, split=True)
    found = [run.at(plan.t, plan.clock.w) for run in runs]
    fine, rough, *halves = ({name: values[name] for name in plan.names} for values in found)
    far = {name: fine[name] + _difference(fine[name], rough[name]) / 3 for name in fine}
    for name in fine:
        far[name][np.isinf(rough[name])] = np.inf
    fine, rough, far, *parts = (with_errors(problem, v) for v in (fine, rough, far, *halves))
    moved = {name: _difference(far[name], fine[name]) for name in far}
    bias = {n: _difference(np.mean([p[n] for p in parts], axis=0), rough[n]) for n in rough}
    if np.isinf(far["Q"]).any():  # how much of ⟨F²⟩ was left before it has diverged
        far["faded"] = min(c[2] / max(r.curves[0][2], 1e-300) for r in runs for c in r.curves)
    return far, moved, bias, runs[0].past.count / max(runs[1].past.count, 1) - 1


def summary(
    samples: Iterable[Sample],
    task: str,
    floors: dict[str, float],
    overfit: float = 0.0,
    nodes: float = 0.0,
    even: float = 0.0,
) -> Measured:
    """Means with `_se`, and the largest share of each error in it.

    A bias is taken out as far as it is more than chance, of every grid its own: what they differ by
    in it is no error of the step. The standard error is the root of the sum
    of squares of three: scatter over populations, what is left of the step error, and of the
    population's bias. Shares are relative to the largest value of a curve (for the error at a time,
    up to it), of error rates to ½; `floors` are what a sampling error cannot be below, `overfit`
    cells per example where they are learned in epochs, `nodes` what few eigenvalues for many are
    off, `even` what examples drawn evenly have in common, relatively.
    """
    *found, more = zip(*samples, strict=True)
    out, step, bias = (averaged(values) for values in found)
    student, grown = 1 + STUDENT / max(len(more), 8), more[-1]  # of all of them the same
    names = [name for name in step if not name.endswith("_se")]
    chance = {name: student * bias[f"{name}_se"] for name in names}
    known = {name: _resolved(bias[name], chance[name]) for name in names}
    known |= {name: 0.0 * bias[name] for name in TWO_TIME if name in names}
    for name in names:
        step[name] = step[name] - grown / 3 * known[name] * bias[name]
        bias[name], chance[name] = ((1 + 4 / 3 * grown) * b[name] for b in (bias, chance))
        out[name] = out[name] - known[name] * bias[name]
        if name in POSITIVE and out[name].ndim == 1:  # where hardly anything is learned yet
            out[name] = np.maximum(out[name], 0.0)
    sizes = {name: max(size, 1e-300) for name, size in sizes_of(out, names, task).items()}
    reached = {name: _reached(out, name, task, size) for name, size in sizes.items()}
    # A correction may be small by chance, where it changes its sign: look at all times, and, in
    # units of what a curve is at a time, at all curves together.
    shares = {n: np.minimum(np.abs(step[n]), sizes[n]) / sizes[n] for n in names}
    common = math.sqrt(np.mean([np.mean(share**2) for share in shares.values()]))
    exact = {n for n in names if not largest(out["Q" if n == "R" else n])}  # nothing to be rounded
    budget = dict.fromkeys(("sampling", "step", "population"), 0.0)
    for name in names:
        size, own = sizes[name], math.sqrt(np.mean(shares[name] ** 2))
        scale = size if name in TWO_TIME else np.minimum(np.abs(out[name]), size)
        floor = np.maximum(own * reached[name], common * scale)
        left = np.maximum(np.abs(step[name]), np.where(step[name] == 0, 0.0, floor))
        gone = np.abs(known[name] * bias[name])
        chances = chance[name] ** 2 * ((1 - known[name]) / 6 + known[name] ** 2)
        if name in TWO_TIME:  # so many pairs are never all seen: a bias stays, as large as it looks
            chances = bias[name] ** 2 + chance[name] ** 2
        parts = {
            "sampling": np.sqrt(
                (student * out[f"{name}_se"]) ** 2
                + floors.get(name, ROUNDING * reached[name] * (name not in exact)) ** 2
                + (even * np.abs(np.where(np.isfinite(out[name]), out[name], 0.0))) ** 2
            ),
            "step": STEP_LEFT * left * (1 + FAR * left / size) + nodes * reached[name],
            "population": np.sqrt(
                chances
                + (BIAS_LEFT * gone * (1 + FAR * gone / size)) ** 2
                + np.where(step[name] == 0, 0.0, OVERFIT * overfit * reached[name]) ** 2
            ),
        }
        out[f"{name}_se"] = np.sqrt(sum(part**2 for part in parts.values()))
        if name not in TWO_TIME:
            for key, part in parts.items():
                budget[key] = max(budget[key], largest(part) / size)
    return out | {"budget": budget}


def _reached(out: Measured, name: str, task: str, size: float) -> Any:
    """Return the largest value of a curve, but no more than `AHEAD` times what it was until then.

    What grows beyond measure later does not count.
    """
    if name in TWO_TIME or (task == "classification" and name in ("Et", "Eg")):
        return size
    values = out["Q" if name == "R" else name]
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0).reshape(len(values), -1).max(axis=1)
    sizes = np.maximum.accumulate(np.sqrt(sizes) if name == "R" else sizes)
    return np.minimum(AHEAD * sizes, size).reshape(-1, *(out[name].ndim - 1) * [1])


def _resolved(bias: Array, chance: Array) -> Array:
    """Share of a bias that is more than chance: the one with which least of both is left."""
    ratio = np.minimum(chance / np.maximum(np.abs(bias), 1e-300), 1.0)
    share = 1 - ratio**2
    return np.where(share > 0, share, 0.0)  # of one population chance is not known


def _difference(a: Array, b: Array) -> Array:
    """Return a − b; where one is inf there is nothing to compare."""
    both = np.isfinite(a) & np.isfinite(b)
    return np.where(both, np.where(both, a, 0.0) - np.where(both, b, 0.0), 0.0)
