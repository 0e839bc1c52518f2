"""The exact theory against finite-N learning with nothing in common but the definition."""

import numpy as np
import pytest
from reference_simulation import extrapolated

import manypass as mp

pytestmark = pytest.mark.physics

TIMES = (0.4, 1.0)


def problem(rule, alpha, task, noise, rate, decay, temperature):
    return mp.Problem(
        mp.Teacher(alpha=alpha, task=task, noise=noise),
        rule,
        rate=rate,
        decay=decay,
        temperature=temperature,
    )


PROBLEMS = [
    problem(mp.Adaline(), 0.6, "classification", 0.3, 0.7, 0.5, 0.05),
    problem(mp.Adaline(), 2.0, "regression", 0.5, 0.8, 0.2, 0.1),
]


@pytest.mark.parametrize("case", range(len(PROBLEMS)))
def test_theory_equals_simulation(case):
    theory = mp.solve(PROBLEMS[case], TIMES, two_time=True)
    samples = (
        12000 if PROBLEMS[case].data.task == "regression" else 6000
    )  # free targets scatter more
    data = extrapolated(PROBLEMS[case], TIMES, n=100, samples=samples, seed=case)
    scores = []
    for name, (mean, error) in data.items():
        expected = theory[name].values
        assert (0.02 * np.abs(expected) > 3.5 * error).all(), f"{name}: a 2 % error would pass"
        z = (mean - expected) / np.maximum(error, 1e-12)  # Hebbian F2 = 1 never fluctuates
        scores.append(z[np.tril_indices(len(TIMES), -1)] if name == "C" else z)
    scores = np.concatenate(scores)
    assert np.abs(scores).max() < 3.5, scores
    assert np.sqrt(np.mean(scores**2)) < 1.7, scores
