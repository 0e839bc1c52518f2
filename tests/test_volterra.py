"""The exact F2 and Q against brute force, over the whole space of problems."""

import numpy as np
import pytest
from volterra_reference import brute_force

import manypass as mp


def problems():
    rng = np.random.default_rng(1)
    fractions = (0.05, 0.3, 0.6, 0.9, 0.999, 0.999999, 1.0, 1.001, 1.1, 1.5)
    for i in range(20):
        alpha = float(np.exp(rng.uniform(np.log(0.1), np.log(8))))
        alpha = alpha if abs(alpha - 1) > 0.02 else 1.03
        problem = mp.Problem(
            mp.Teacher(
                alpha=alpha,
                task=("classification", "regression")[i % 2],
                noise=float(rng.choice([0, 0.4, 1.0])),
            ),
            mp.Adaline(),
            rate=1.0,
            decay=0.0 if i % 3 == 0 else float(np.exp(rng.uniform(np.log(0.01), np.log(3)))),
            temperature=0.0 if i % 4 < 2 else 0.3,
        )
        yield problem.replace(rate=fractions[i % len(fractions)] * mp.critical_rate(problem))


@pytest.mark.physics
@pytest.mark.parametrize(
    "problem", list(problems()), ids=lambda p: f"v{p.rate:.3g}-a{p.data.alpha:.3g}"
)
def test_F2_and_Q_equal_brute_force(problem):
    times = np.array([0.01, 0.1, 1.0, 3.0, 10.0, 100.0, 1000.0, 10000.0])
    growth = max(0.0, -mp.slow_mode(problem))
    times = times[times * growth < 200]
    exact = mp.solve(problem, times)
    F2, Q = brute_force(problem, times)
    # Brute force subtracts numbers of order 1: it has no digits left where F2 has died out.
    kept = F2 > 1e-5
    assert kept.sum() >= 4
    np.testing.assert_allclose(exact.F2.values[kept], F2[kept], rtol=1e-8)
    np.testing.assert_allclose(exact.Q.values, Q, rtol=1e-8)


def test_F2_keeps_its_relative_accuracy_when_it_dies_out():
    """α < 1, λ = 0: everything is learned; F2 decays at exactly the slowest rate of the noise."""
    problem = mp.Problem(mp.Teacher(alpha=0.3), mp.Adaline(), rate=1.9)
    F2 = mp.solve(problem, [60.0, 80.0]).F2.values
    assert 0 < F2[1] < F2[0] < 1e-15
    np.testing.assert_allclose(np.log(F2[0] / F2[1]) / 20, mp.slow_mode(problem), rtol=1e-9)


def test_above_the_critical_rate_the_transient_grows_at_the_slow_mode_and_ends_in_inf():
    problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=4.0, decay=0.8, temperature=0.1)
    curve = mp.solve(problem, [10.0, 11.0, 1e6])
    F2 = curve.F2.values
    np.testing.assert_allclose(np.log(F2[1] / F2[0]), -mp.slow_mode(problem), rtol=1e-9)
    assert np.isinf(F2[2])
    assert np.isinf(curve.Q[2])
    assert curve.Eg[2] == 0.5
    assert float(curve.R[2]) == pytest.approx(
        float(curve.R[1]), rel=1e-3
    )  # the mean does not diverge


def test_at_the_critical_rate_F2_grows_linearly():
    problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Adaline(), rate=1.0, decay=0.5)
    problem = problem.replace(rate=mp.critical_rate(problem))
    F2 = mp.solve(problem, [1000.0, 2000.0, 3000.0]).F2.values
    np.testing.assert_allclose(F2[2] - F2[1], F2[1] - F2[0], rtol=1e-9)
    assert F2[1] > F2[0] + 1


def test_early_times_keep_their_digits():
    """Q = v²bt + O(t²) and R = avt + O(t²)."""
    problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    curve = mp.solve(problem, [1e-9, 1e-6])
    np.testing.assert_allclose(curve.Q / (1.9**2 * curve.t), [1, 1], rtol=1e-5)
    np.testing.assert_allclose(curve.Q[0] / curve.Q[1], 1e-3, rtol=1e-5)
    np.testing.assert_allclose(curve.R / (problem.data.a * 1.9 * curve.t), [1, 1], rtol=1e-5)
