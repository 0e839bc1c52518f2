"""Populations of sampled examples, led through time on two grids at once.

Everything random belongs to continuous time, so that a grid of twice the step sees the same: y and
ỹ of the examples, the Brownian increments behind h, and the learning instants.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from manypass.cavity.copies import EVERY, MORE, copy, parts_of
from manypass.cavity.epochs import Batches, Epochs
from manypass.cavity.flow import Flow
from manypass.cavity.grid import DIVERGED
from manypass.cavity.instants import Always, Instants, Turns
from manypass.cavity.network import Network
from manypass.cavity.online import Online
from manypass.cavity.plan import Plan
from manypass.cavity.unit import Unit
from manypass.checks import Array
from manypass.ensemble import go_on
from manypass.layers.activation import values
from manypass.layers.averages import Fields
from manypass.layers.errors import normal_points
from manypass.layers.net import Net
from manypass.problem import Problem, Teacher


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
    if problem.layered:  # the rule is a network
        examples = even_fields(rule, size, rng)
        rule = Fields(rule, seed=int(rng.integers(2**31)))
    else:
        examples = even_examples(problem.teacher, size, rng)
    parts = parts_of(size, 4 if split else 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # overflows: diverged
        return lead_parts(problem, rule, examples, parts, plan, rng)


def lead_parts(
    problem: Problem, rule: Any, examples: Any, parts: Any, plan: Plan, rng: Any
) -> list[Online]:
    """Draw normals and instants step by step, for all runs alike."""
    grid, size, order, units = plan.grid, len(examples[1]), problem.sequence, plan.units
    student: Any = Network if problem.layered else Unit
    instants: Any = Instants(size, problem.data.alpha, units, rng)
    make: Any = Online
    if order != "replacement":
        by = examples[1 if problem.layered else 0]
        instants = Turns(by, problem.data.alpha, order == "fixed", units, rng)
        make = partial(Epochs, ends=grid.ends)
    if problem.batch_share:
        make = partial(Batches, ends=grid.ends)
    begin = rng.standard_normal((units, size), dtype=np.float32) if problem.start else None
    if problem.mode == "batch":
        instants = Always(problem.data.alpha)
        probes = rng.standard_normal((grid.keep.size, size), dtype=np.float32)
    widest, runs = (plan.widest, *(len(parts) - 1) * [plan.widest / 2]), []
    for part, wide in zip(parts, widest, strict=True):
        if problem.mode == "batch":
            make = partial(Flow, probes=probes[:, part])
        mine = student(problem, rule, tuple(e[part] for e in examples))
        first = None if begin is None else begin[:, part]
        runs.append(make(problem, mine, wide, grid.keep, begin=first))
    if problem.batch_share:
        lead_steps(runs, parts, grid.t, instants, (units, size), rng)
    else:
        lead_pairs(runs, parts, grid.t, instants, (units, size), rng, plan.copies)
    return runs


def lead_pairs(
    runs: Any, parts: Any, t: Array, instants: Any, shape: Any, rng: Any, copies: bool
) -> None:
    """Two steps of the first run are one of all others."""

    def draw(j: int) -> Any:
        """Two steps from t_j on, and both as one; none beyond the last time."""
        z = rng.standard_normal((2, *shape), dtype=np.float32)
        low, middle, high = t[[j, j + 1, j + 2] if j + 1 < t.size else [j, j, j]]
        part = (middle - low) / (high - low) if low < high else 0.5
        first, second = instants.between(low, middle), instants.between(middle, high)
        weights = np.sqrt(np.array([part, 1 - part], np.float32))
        one = np.tensordot(weights, z, 1), first.joined(second, part, z)
        return (z[0], first), (z[1], second), one

    now, first = draw(0), shape[-1]
    for j in range(0, t.size - 2, 2):
        then = draw(j + 2)
        single = (t[j + 1], *now[0], now[1][1]), (t[j + 2], *now[1], then[0][1])
        double = ((t[j + 2], *now[2], then[2][1]),)
        for run, part in zip(runs, parts, strict=True):
            for time, z, events, later in single if run is runs[0] else double:
                mine = events.of_part(part), later.of_part(part)
                if not finite(run.step, time, z[..., part], *mine):
                    return
        now = then
        if copies and j and j % (2 * EVERY) == 0:
            units, size = shape
            instants.size = copy(runs, size, rng, MORE if size == first else 1)
            if instants.size > size:
                shape, parts = (units, instants.size), parts_of(instants.size, len(parts))
                now = draw(j + 2)


def lead_steps(runs: Any, parts: Any, t: Array, instants: Any, shape: Any, rng: Any) -> None:
    """All runs take the same steps, which are batches: they differ in what they remember."""
    for j in range(t.size):
        z = rng.standard_normal(shape, dtype=np.float32)
        d = t[1] - t[0]
        learned = instants.between(j * d, (j + 1) * d)
        for run, part in zip(runs, parts, strict=True):
            if j == 0:
                run.begin(learned.of_part(part))
            elif not finite(run.step, t[j], z[..., part], None, learned.of_part(part)):
                return


def finite(step: Any, *arguments: Any) -> bool:
    """Take a step; return whether |J|² is still finite."""
    go_on()
    try:
        return bool(step(*arguments) < DIVERGED)
    except (OverflowError, np.linalg.LinAlgError):
        return False
