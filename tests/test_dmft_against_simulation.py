"""Nonlinear rules, where nothing else is known: mean-field theory against simulated networks.

Simulations of two sizes are extrapolated to N → ∞. For every quantity the common relative
deviation is fitted as well: it must be zero within an error that would show 2 %.
"""

import numpy as np
import pytest

import manypass as mp

pytestmark = pytest.mark.physics

TIMES = (0.5, 1.5, 4.0)
QUANTITIES = ("R", "Q", "F2", "Et", "C")
SMOOTH = mp.Rule(
    force=lambda x, y, a: np.arctan(a * (y - x)),
    slope=lambda x, y, a: -a / (1 + a**2 * (y - x) ** 2),
    a=2.0,
)


def problem(alpha, rule, rate, decay, noise=0.0, temperature=0.0, task="classification", **mode):
    data = mp.Teacher(alpha=alpha, task=task, noise=noise)
    return mp.Problem(data, rule, rate=rate, decay=decay, temperature=temperature, **mode)


PROBLEMS = [
    problem(1.0, mp.Adatron(kappa=1.0), 1.0, 0.1),
    problem(0.4, mp.Adatron(kappa=0.5), 1.4, 0.2),
    problem(3.0, mp.Adatron(kappa=1.0), 0.3, 0.05, noise=0.3),
    problem(1.5, mp.Adatron(kappa=0.8), 1.6, 0.4, temperature=0.1),
    problem(2.0, mp.Logistic(), 2.0, 0.1),
    problem(0.5, mp.Logistic(), 4.0, 0.05, noise=0.5),
    problem(4.0, mp.Logistic(), 0.5, 0.0, temperature=0.05),
    problem(1.2, mp.Huber(width=0.7), 1.0, 0.1, noise=0.5, task="regression"),
    problem(0.6, mp.Huber(width=0.4), 1.5, 0.2, 0.2, 0.05, task="regression"),
    problem(3.0, mp.Huber(width=1.0), 0.4, 0.0, noise=1.0, task="regression"),
    problem(1.0, SMOOTH, 0.7, 0.1, noise=0.3, task="regression"),
    problem(0.5, SMOOTH, 0.9, 0.3),
    problem(2.5, SMOOTH, 0.2, 0.1, temperature=0.02),
    problem(1.0, mp.Adatron(kappa=1.0), 1.0, 0.1, mode="batch"),
    problem(1.5, mp.Huber(width=0.5), 1.0, 0.1, 0.4, 0.05, task="regression", mode="batch"),
]


def flat(found, name):
    """One number per time, or per pair of different times."""
    values = found[name].values
    return values if values.ndim == 1 else values[np.tril_indices(len(TIMES), -1)]


def simulated(index):
    """Everything measured, extrapolated to N → ∞, and its error."""
    online = PROBLEMS[index].mode == "online"
    small, large = (
        mp.solve(PROBLEMS[index], TIMES, mp.Simulation(n=n, samples=s, seed=index), two_time=True)
        for n, s in ((150, 800 if online else 200), (300, 400 if online else 100))
    )
    return {
        name: (
            2 * flat(large, name) - flat(small, name),
            np.hypot(2 * flat(large, f"{name}_se"), flat(small, f"{name}_se")),
        )
        for name in QUANTITIES
    }


def test_any_rule_agrees_with_simulation():
    scores, weights = {q: [] for q in QUANTITIES}, {q: [] for q in QUANTITIES}
    for index, given in enumerate(PROBLEMS):
        theory = mp.solve(given, TIMES, mp.DMFT(rtol=0.008, seed=index), two_time=True)
        for name, (mean, error) in simulated(index).items():
            error = np.hypot(error, flat(theory, f"{name}_se"))
            scores[name].append((mean - flat(theory, name)) / error)
            weights[name].append(flat(theory, name) / error)
    every = np.concatenate([z for parts in scores.values() for z in parts])
    assert np.abs(every).max() < 4.5
    assert 0.4 < np.mean(every**2) < 1.5  # entries of one problem are correlated
    for name in QUANTITIES:
        z, w = np.array(scores[name]), np.array(weights[name])
        deviation = (z * w).sum() / (w**2).sum()
        error = np.sqrt(((z * w).sum(axis=1) ** 2).sum()) / (w**2).sum()  # problems independent
        print(f"{name:>3}: {100 * deviation:+.2f} % +- {100 * error:.2f} %")
        assert abs(deviation) < 3.5 * error, name
        assert error < 0.005, f"2 % in {name} would be {0.02 / error:.1f} standard errors"
