"""SGD on a data set as it is run: some passes, every example once in each, maybe averaged."""

from __future__ import annotations

import numpy as np

from manypass.data.dataset import Dataset
from manypass.ensemble import Average, Measured, cores, in_order
from manypass.problem import Problem
from manypass.simulation import kernels
from manypass.simulation.given import GivenSample, given_examples, table
from manypass.simulation.method import Simulation


def trained(
    problem: Problem, data: Dataset, passes: float, start: float, runs: int, seed: int
) -> Measured:
    """Q, F2, Et and on a test set F2_test, Eg after so many passes, with `*_se`, over runs.

    They are of J̄ = ∫J dt/∫dt from the pass `start` on, or of J if that is the last one.
    """
    method = Simulation(n=data.n, samples=runs, seed=seed)
    force, examples = kernels.compiled_force(problem.rule), given_examples(data, method.number)
    test = (table(data.X_test, method.number), data.y_test) if data.p_test else None

    def run(i: int) -> Measured:
        sample = GivenSample(
            method, problem, force, np.random.SeedSequence(seed, spawn_key=(i,)), examples
        )
        sample.test, network, total = test, sample.network(), np.zeros(data.n)
        network.advance(start * data.alpha)
        covered = network.advance(passes * data.alpha, total)
        J = total / covered if covered else network.J
        return sample.measure(J[None], np.array([network.diverged]))

    average = Average()
    for found in in_order(run, range(runs), cores()):
        average.extend(found)
    return {name: float(value) for name, value in average.results().items()}
