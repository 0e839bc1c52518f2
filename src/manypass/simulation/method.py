"""`Simulation`: finite-N learning as a method that `solve` can call."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, memory, results
from manypass.checks import Array
from manypass.ensemble import Average, Measured, Progress, in_order, shown
from manypass.problem import Problem
from manypass.simulation import kernels
from manypass.simulation.network import SEQUENCES
from manypass.simulation.sample import MEASURED_AT_ONCE, Sample

PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Simulation:
    """Average over networks of N weights, each with its own teacher, training set and sequence.

    Parameters
    ----------
    n : int
        Number N of weights; the training set has round(αN) examples.
    samples : int
        Number of independent networks. Error bars come from their scatter.
    seed : int
        The same seed gives the same numbers, on any number of threads.
    sequence : {"replacement", "reshuffled", "fixed"}
        Examples drawn with replacement, as the theory has it; every example once per pass, in a
        new order each pass; or in one order for ever.
    precision : {"float64", "float32"}
    settle : float
        Time to wait before `steady_state` measures.
    response : bool
        With `two_time`, also measure G(t,s): one more run from every time s on.
    stimulus : float
        Size of the stimulus to each weight with which the response is measured.
    threads : int, optional
        Networks simulated at the same time; by default one per core.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    >>> data = mp.solve(problem, [1, 2], mp.Simulation(n=100, samples=20, seed=0))
    >>> data.Eg.values.round(2)
    array([0.3 , 0.27])
    """

    n: int = 500
    samples: int = 100
    seed: int = 0
    sequence: str = "replacement"
    precision: str = "float64"
    settle: float = 20.0
    response: bool = False
    stimulus: float = 1e-6
    threads: int | None = None

    def __post_init__(self) -> None:
        checks.count("n", self.n, 1, 10**7)
        checks.count("samples", self.samples, 1, 10**9)
        checks.count("seed", self.seed, 0, 2**63)
        checks.choice("sequence", self.sequence, SEQUENCES)
        checks.choice("precision", self.precision, PRECISIONS)
        checks.number("settle", self.settle, 0, 1e6)
        checks.number("stimulus", self.stimulus, 1e-12, 1e3)
        if self.response and self.precision != "float64":
            raise ValueError("`response` is a small difference: it needs precision='float64'")
        if self.threads is not None:
            checks.count("threads", self.threads, 1, 1024)

    def refusal(self, problem: Problem) -> str | None:
        """Why this method cannot serve the problem, or None if it can."""
        if round(problem.data.alpha * self.n) < 1:
            return (
                f"`n` = {self.n} at `alpha` = {problem.data.alpha:g} leaves no example: "
                f"alpha·n must be at least 1"
            )
        if problem.mode == "online" and problem.rate * problem.decay >= self.n:
            return f"`n` = {self.n} must exceed rate·decay = {problem.rate * problem.decay:g}"
        return None

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """R, Q, F2, Eg, Et at times t with their standard errors; C and G if asked for."""
        keep = t.size if two_time else min(t.size, MEASURED_AT_ONCE)
        force = kernels.compiled_force(problem.rule)

        def sample(seed: np.random.SeedSequence) -> Measured:
            return Sample(self, problem, force, seed).curves(t, two_time)

        return self._ensemble(problem, sample, keep, {"t": t}, progress)

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """R, Q, Eg of weights averaged over the window after `settle`; F2 and Et at its end."""
        force = kernels.compiled_force(problem.rule)

        def sample(seed: np.random.SeedSequence) -> Measured:
            return Sample(self, problem, force, seed).steady(window)

        return self._ensemble(problem, sample, 1, {"window": window}, progress=False)

    def training_activations(self, problem: Problem, time: float, count: int) -> Measured:
        """y, ỹ and x of the training examples of as many networks as give `count` of them."""
        reason = self.refusal(problem)
        if reason:
            raise ValueError(reason)
        force = kernels.compiled_force(problem.rule)
        until = self.settle if math.isinf(time) else time

        def sample(i: int) -> Measured:
            seed = np.random.SeedSequence(self.seed, spawn_key=(i,))
            return Sample(self, problem, force, seed).activations(until)

        p = round(problem.data.alpha * self.n)
        networks, threads = range(math.ceil(count / p)), self._threads(problem, 1)
        found = list(in_order(sample, networks, threads))
        return {name: np.concatenate([f[name] for f in found])[:count] for name in found[0]}

    def _ensemble(
        self,
        problem: Problem,
        sample: Any,
        snapshots: int,
        coords: dict[str, Any],
        progress: Progress,
    ) -> xr.Dataset:
        threads = self._threads(problem, snapshots)
        seeds = (np.random.SeedSequence(self.seed, spawn_key=(i,)) for i in range(self.samples))
        average = Average()
        networks = in_order(sample, seeds, threads)
        for values in shown(networks, self.samples, progress, "simulation", "network"):
            average.add(values)
            if callable(progress):
                progress(self._dataset(problem, average, coords))
        return self._dataset(problem, average, coords)

    def _threads(self, problem: Problem, snapshots: int) -> int:
        """How many networks fit into memory at once; none is refused with the number."""
        p, size = round(problem.data.alpha * self.n), np.dtype(self.precision).itemsize
        at_once = min(snapshots, MEASURED_AT_ONCE)
        needed = size * p * (self.n + 2 * at_once) + 16 * snapshots * self.n + 64 * snapshots**2
        remedy = "take a smaller `n`, fewer times or the `precision` float32"
        free = memory.require(needed, remedy)
        return max(1, min(self.threads or os.cpu_count() or 1, int(free // needed)))

    def _dataset(self, problem: Problem, average: Average, coords: dict[str, Any]) -> xr.Dataset:
        values = average.results()
        diverged = np.rint(values.pop("diverged") * average.count).astype(int)
        values.pop("diverged_se")
        return results.dataset(problem, self, {**values, "diverged": diverged}, coords)
