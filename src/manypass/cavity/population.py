"""Populations of sampled examples, led through time on two grids at once.

Everything random belongs to continuous time, so that a grid of twice the step sees the same: y and
ỹ of the examples, the Brownian increments behind h, and the learning instants.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from manypass.cavity.epochs import Batches, Epochs
from manypass.cavity.flow import Flow
from manypass.cavity.grid import DIVERGED
from manypass.cavity.instants import Always, Instants, Turns
from manypass.cavity.network import Network
from manypass.cavity.online import Online
from manypass.cavity.plan import Plan
from manypass.cavity.unit import Unit
from manypass.checks import Array
from manypass.ensemble import stopping
from manypass.layers.activation import values
from manypass.layers.averages import Fields
from manypass.layers.errors import normal_points
from manypass.layers.net import Net
from manypass.problem import Problem, Teacher


class StoppedError(Exception):
    """The result is no longer wanted."""


def even_examples(data: Teacher, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw y from equal slices of its law, and ỹ; their sample moments are exact."""
    y = ndtri((rng.permutation(size) + rng.random()) / size)
    y, noise = (y - y.mean()) / y.std(), rng.standard_normal(size)
    noise -= noise.mean() + (noise @ y) / size * y
    target = y + data.noise * noise / noise.std()
    if data.task == "classification":
        target = np.where(target >= 0, 1.0, -1.0)
    return y, target


def even_fields(net: Net, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw y (examples × M) evenly, with exact second moments, and ỹ of a teacher of two layers."""
    M = len(net.T)
    n = normal_points.__wrapped__(M + 1, size, int(rng.integers(2**31)))[:size]  # used once
    n = n[rng.permutation(size)]
    n = n - n.mean(axis=0)
    n = np.linalg.solve(np.linalg.cholesky(n.T @ n / size), n.T).T
    y = n[:, :M] @ np.linalg.cholesky(net.T).T
    target = values(y, net.taught) @ net.b + net.noise * n[:, M]
    return y, np.where(target >= 0, 1.0, -1.0) if net.classify else target


def lead(problem: Problem, rule: Any, size: int, plan: Plan, rng: Any, split: bool) -> list[Any]:
    """One population on the grid; if split, on every second time of it, and there as two halves."""
    middle = size // 2
    if problem.layered:  # the rule is a network
        examples = even_fields(rule, size, rng)
        rule = Fields(rule, seed=int(rng.integers(2**31)))
    else:
        examples = even_examples(problem.teacher, size, rng)
    parts = [slice(None), slice(None), slice(0, middle), slice(middle, 2 * middle)]
    parts = parts if split else parts[:1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # overflows: diverged
        return lead_parts(problem, rule, examples, parts, plan, rng)


def lead_parts(
    problem: Problem, rule: Any, examples: Any, parts: Any, plan: Plan, rng: Any
) -> list[Online]:
    """Draw normals and instants step by step, for all runs alike."""
    grid, size, order = plan.grid, len(examples[1]), problem.sequence
    units = rule.net.units[0] if problem.layered else 1
    student: Any = Network if problem.layered else Unit
    instants: Any = Instants(size, problem.data.alpha, rng)
    make: Any = Online
    if order != "replacement":
        by = examples[1 if problem.layered else 0]
        instants = Turns(by, problem.data.alpha, order == "fixed", rng)
        make = partial(Epochs, ends=grid.ends)
    if problem.batch_share:
        make = partial(Batches, ends=grid.ends)
    begin = rng.standard_normal((units, size), dtype=np.float32) if problem.start else None
    if problem.mode == "batch":
        instants = Always(size, problem.data.alpha)
        probes = rng.standard_normal((grid.keep.size, size), dtype=np.float32)
    widest, runs = (plan.widest, *(len(parts) - 1) * [plan.widest / 2]), []
    for part, wide in zip(parts, widest, strict=True):
        if problem.mode == "batch":
            make = partial(Flow, probes=probes[:, part])
        mine = student(problem, rule, tuple(e[part] for e in examples))
        first = None if begin is None else begin[:, part]
        runs.append(make(problem, mine, wide, grid.keep, begin=first))
    if problem.batch_share:
        lead_steps(runs, parts, grid.t, instants, rng)
    else:
        lead_pairs(runs, parts, grid.t, instants, rng)
    return runs


def lead_pairs(runs: Any, parts: Any, t: Array, instants: Any, rng: Any) -> None:
    """Two steps of the first run are one of all others."""

    def halves(j: int) -> list[Any]:
        """How often each is learned in the halves of two steps; never beyond the last time."""
        edges = np.sort(np.append(t[j : j + 3], (t[j : j + 2] + t[j + 1 : j + 3]) / 2))
        if j + 1 == t.size:
            return 4 * [np.zeros(size, np.int64)]
        return [instants.between(low, high) for low, high in pairwise(edges)]

    (size, units), late = runs[0].new.shape, 1  # none at t = 0: no x is known yet
    a, b, c, d = halves(0)
    for j in range(0, t.size - 2, 2):
        then = halves(j + 2)
        z = rng.standard_normal((2, units, size), dtype=np.float32)
        weights = np.sqrt(np.diff(t[j : j + 3]) / (t[j + 2] - t[j])).astype(np.float32)
        single = ((t[j + 1], z[0], b + late * a, c), (t[j + 2], z[1], d, then[0]))
        double = (
            (t[j + 2], np.tensordot(weights, z, 1), c + d + late * (a + b), then[0] + then[1]),
        )
        for run, part in zip(runs, parts, strict=True):
            for time, normals, before, after in single if run is runs[0] else double:
                if not finite(run.step, time, normals[..., part], before[part], after[part]):
                    return
        (a, b, c, d), late = then, 0


def lead_steps(runs: Any, parts: Any, t: Array, instants: Any, rng: Any) -> None:
    """All runs take the same steps, which are batches: they differ in what they remember."""
    size, units = runs[0].new.shape
    for j in range(t.size):
        z = rng.standard_normal((units, size), dtype=np.float32)
        d = t[1] - t[0]
        learned = instants.between(j * d, (j + 1) * d)
        for run, part in zip(runs, parts, strict=True):
            if j == 0:
                run.begin(learned[part])
            elif not finite(run.step, t[j], z[..., part], None, learned[part]):
                return


def finite(step: Any, *arguments: Any) -> bool:
    """Take a step; return whether |J|² is still finite."""
    if stopping():
        raise StoppedError
    try:
        return bool(step(*arguments) < DIVERGED)
    except (OverflowError, np.linalg.LinAlgError):
        return False
