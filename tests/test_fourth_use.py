"""What careful readers of the README met: each of these was silent, wrong or slow."""

import warnings

import pytest

import manypass as mp

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
ADATRON = mp.Problem(mp.Teacher(alpha=1.2), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)


def too_large(x, target):
    if x > 1.2:
        raise ValueError("too large")
    return target - x


def test_a_force_that_raises_values_of_its_own_is_named():
    own = PROBLEM.replace(rule=mp.Rule(too_large))
    with pytest.raises(
        ValueError, match=r"`force` of .*too_large.* fails on an example.*too large"
    ):
        mp.solve(own, [3], mp.Simulation(n=50, samples=2))


def test_schedules_of_ones_own_are_functions():
    class Mine(mp.schedules.Schedule):
        def __call__(self, t):
            return 1.0 / (1 + t)

    mine, plain = (
        mp.solve(PROBLEM.replace(rate=rate), [1.0]) for rate in (Mine(), lambda t: 1.0 / (1 + t))
    )
    assert float(mine.Q[0]) == pytest.approx(float(plain.Q[0]), rel=1e-9)
    with pytest.raises(ValueError, match="`rate`, a function of the time t, fails at t = 0"):
        PROBLEM.replace(rate=mp.schedules.Schedule())


@pytest.mark.parametrize("inputs", [mp.Blocks([1, 1]), mp.PowerLaw(0.0)])
def test_equal_eigenvalues_are_no_warning(inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mp.solve(PROBLEM.replace(inputs=inputs), [1.0])
    assert float(found.Q[0]) == pytest.approx(float(mp.solve(PROBLEM, [1.0]).Q[0]), rel=1e-6)
