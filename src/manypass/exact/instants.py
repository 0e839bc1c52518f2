"""E_t of reshuffled epochs in classification: an average over one example's learning instants.

Given its instants t_j, one uniform in each epoch, x(t) = h(t) + vΣG(t,t_j)F_j with F = (1 + vG)⁻¹
(ỹ − h) is linear in h: with β = (1 + vGᵀ)⁻¹ vG(t,·),

    x = Ay + Bỹ + σz,   B = Σβ_j,   A = R(t) − Σβ_j R(t_j),   σ² = variance of h(t) − Σβ_j h(t_j),

and P(ỹx < 0) over y, ỹ and z is a closed integral. Only the instants are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manypass import orders
from manypass.checks import Array
from manypass.exact.epochs import Index
from manypass.exact.lines import Line, Smooth
from manypass.exact.recollection import Recollection
from manypass.exact.steps import Steps
from manypass.exact.training_error import gaussian_errors
from manypass.problem import Problem

CHUNK = 256  # examples at once
FEWEST = 8  # such chunks, whose scatter is the error
DEEPEST = 400  # epochs that an example may remember


class Examples:
    """Examples with their instants in the epochs first … first + depth, by number and phase."""

    def __init__(
        self, found: Recollection, epochs: range, count: int, rng: np.random.Generator
    ) -> None:
        self.found, self.epochs, self.v = found, epochs, found.epochs.problem.rate
        line: Line = found.epochs.line
        # One in each of `count` equal parts of an epoch: most of the scatter goes.
        order = rng.permuted(np.tile(np.arange(count), (len(epochs), 1)), axis=1)
        part = (order + rng.uniform(size=order.shape)) / count
        if isinstance(line, Smooth):
            self.phase = line.alpha * part
        else:
            self.phase = line.step * np.minimum(np.floor(line.n * part), line.n - 1)
        self.share = [line.at(phase) for phase in self.phase]
        self.R = np.array([found.R(e, s) for e, s in zip(epochs, self.share, strict=True)])
        self.C, self.G = (np.zeros((count, len(epochs), len(epochs))) for _ in range(2))
        for i, e in enumerate(epochs):
            for j in range(i + 1):
                self.C[:, i, j] = self.C[:, j, i] = _rows(
                    *found.C(e, epochs[j], self.share[i], self.share[j])
                )
                if j < i:
                    self.G[:, i, j] = _rows(*found.G(e, epochs[j], self.share[i], self.share[j]))

    def at(self, epoch: int, phase: float, since: int = 0) -> tuple[Array, Array, Array]:
        """Return A, B and σ² of every example, from the instants in epochs from `since` on."""
        found, v = self.found, self.v
        line, count = found.epochs.line, self.phase.shape[1]
        mine = slice(since, epoch - self.epochs[0] + 1)
        here = np.tile(line.at(np.array([phase])), (count, 1))
        g, c = [], []
        for e, share in zip(self.epochs[mine], self.share[mine], strict=True):
            c.append(_rows(*found.C(epoch, e, here, share)))
            if e < epoch:
                g.append(_rows(*found.G(epoch, e, here, share)))
        # In this epoch it has been learned, or not yet: then nothing comes of that instant.
        now = self.phase[epoch - self.epochs[0]]
        done = now < phase - line.step / 2
        g.append(done * found.G_within(np.where(done, phase - now, 0.0)))
        chain = np.eye(len(g)) + v * self.G[:, mine, mine]
        beta = np.linalg.solve(chain.transpose(0, 2, 1), v * np.array(g).T[..., None])[..., 0]
        A = found.R(epoch, here) - np.sum(beta * self.R[mine].T, axis=1)
        whole = _rows(*found.C(epoch, epoch, here, here)) - 2 * np.sum(beta * np.array(c).T, axis=1)
        whole += np.einsum("si,sij,sj->s", beta, self.C[:, mine, mine], beta)
        return A, beta.sum(axis=1), np.maximum(whole - A**2, 0.0)


class Batches:
    """Examples that batches with replacement take a Poisson number of times each."""

    def __init__(self, found: Steps, count: int, rng: np.random.Generator) -> None:
        size, self.v = int(found.index[-1]), found.problem.rate
        self.often = rng.poisson(found.problem.batch_share, (count, size))
        self.R, self.C = found.curves["R"], found.C
        lag = np.arange(size + 1)[:, None] - np.arange(size) - 1
        G = found.modes.rho @ found.q[:, None] ** np.arange(size + 1)
        self.G = np.where(lag >= 0, G[np.maximum(lag, 0)], 0.0)

    def at(self, i: int) -> tuple[Array, Array, Array]:
        """Return A, B and σ² of every example after i batches."""
        v, often = self.v, self.often[:, :i]
        chain = np.eye(i) + v * self.G[:i, :i] * often[:, None, :]
        push = v * self.G[i, :i] * often
        beta = np.linalg.solve(chain.transpose(0, 2, 1), push[..., None])[..., 0]
        A = self.R[i] - beta @ self.R[:i]
        whole = self.C[i, i] - 2 * beta @ self.C[i, :i]
        whole += np.einsum("si,ij,sj->s", beta, self.C[:i, :i], beta)
        return A, beta.sum(axis=1), np.maximum(whole - A**2, 0.0)


Look = Callable[[int, np.random.Generator], list[tuple[Array, Array, Array]]]


def epochs_drawn(found: Recollection, epoch: Index, phase: Array, first: int = 0) -> Look:
    """Draw examples of reshuffled epochs, and look at them at some times."""
    depth = int(epoch.max()) - first + 1
    _bounded(depth)

    def look(count: int, rng: np.random.Generator) -> list[tuple[Array, Array, Array]]:
        drawn = Examples(found, range(first, first + depth), count, rng)
        return [drawn.at(int(e), p) for e, p in zip(epoch, phase, strict=True)]

    return look


def batches_drawn(problem: Problem, t: Array) -> Look:
    """Do the same by batches with replacement."""
    last, step = int(orders.steps_by(problem, t)[-1]), problem.batch_share * problem.teacher.alpha
    _bounded(last)
    found = Steps(problem, step * np.arange(last + 1, dtype=float))
    found.C = found.two_time()[0]
    times = orders.steps_by(problem, t).astype(int)

    def look(count: int, rng: np.random.Generator) -> list[tuple[Array, Array, Array]]:
        drawn = Batches(found, count, rng)
        return [drawn.at(i) for i in times]

    return look


def _bounded(depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(
            f"`samples`: Et at {depth} epochs or batches needs as many learning instants of an "
            f"example, and more than {DEEPEST} are not followed: take earlier `times`, or samples=0"
        )


def sampled_error(
    problem: Problem,
    look: Look,
    depth: int,
    *,
    samples: int,
    accuracy: float | None,
    seed: Any,
    weights: Array | None = None,
) -> dict[str, Array]:
    """Et and its standard error at times; with `weights`, also of their mean, as the last."""
    size = min(max(CHUNK * 256 // max(depth, 16) ** 2, 8), CHUNK, max(samples // FEWEST, 1))
    means: list[Array] = []
    for piece in range(samples // size):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(piece,)))
        rows = [errors(problem, seen) for seen in look(size, rng)]
        if weights is not None:
            rows.append(weights @ np.array(rows))
        means.append(np.mean(rows, axis=1))
        mean = np.mean(means, axis=0)
        error = np.std(means, axis=0) / math.sqrt(max(piece, 1))
        if accuracy is not None and piece >= FEWEST - 1 and error.max() <= accuracy:
            break
    return {"Et": mean, "Et_se": error if piece else np.full_like(mean, np.nan)}


def errors(problem: Problem, activation: tuple[Array, Array, Array]) -> Array:
    """P(ỹx < 0) of every example."""
    A, B, variance = activation
    wrong = gaussian_errors(problem.teacher, A, B, variance)
    still = (A == 0) & (B == 0) & (variance == 0)
    return np.where(still, 0.5, wrong)  # J = 0: a guess


def _rows(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("sk,sk->s", a, b))
