"""One pass over endless fresh examples, for every rule: against closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import manypass as mp
from manypass.exact import onepass

LAW, T = mp.PowerLaw(1.2, 1.4, 0.02), np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])


def fresh(rule, task="classification", inputs=None, noise=0.3, **changes):
    settings = {"rate": 1.0, "decay": 0.1} | changes
    return mp.Problem(mp.Teacher(math.inf, task=task, noise=noise, inputs=inputs), rule, **settings)


@pytest.mark.parametrize("inputs", [None, LAW], ids=str)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_linear_rules_have_the_curves_of_their_modes(inputs, task):
    changes = {"rate": "cosine:0.8:0.1:4", "temperature": 0.1, "start": mp.Start(-0.3, 1.0)}
    problem = fresh(mp.Adaline(), task, inputs, **changes)
    found, right = onepass.curves(problem, T), mp.solve(problem, T, mp.Exact())
    for name in ("R", "Q", "F2", "Eg", "Et"):
        if name in right:
            np.testing.assert_allclose(found[name], right[name], atol=1e-8, err_msg=name)


@pytest.mark.parametrize(("R", "Q"), [(0.3, 0.8), (0.7, 0.5), (-0.2, 3.0)])
def test_moments_of_forces_that_jump_and_bend_are_closed_forms(R, Q):
    """Without noise ⟨yF⟩ = (1 − ρ)/√2π of the perceptron, ⟨F²⟩ its error rate; Adatron's κ = 0."""
    rho = R / math.sqrt(Q)
    p, m, F2 = onepass.averages(fresh(mp.Perceptron(), noise=0.0))(R, Q)
    assert p + m * R == pytest.approx((1 - rho) / math.sqrt(2 * math.pi), abs=1e-10)
    assert p * R + m * Q == pytest.approx(
        math.sqrt(Q) * (rho - 1) / math.sqrt(2 * math.pi), abs=1e-10
    )
    assert pytest.approx(math.acos(rho) / math.pi, abs=1e-10) == F2
    p, m, F2 = onepass.averages(fresh(mp.Adatron(kappa=0.0), noise=0.0))(R, Q)
    wrong, angle = math.acos(rho) / math.pi, math.sqrt(1 - rho**2) / math.pi
    assert pytest.approx(Q * (wrong - rho * angle), abs=1e-10) == F2  # ⟨x² Θ(−xy)⟩
    assert p * R + m * Q == pytest.approx(-Q * (wrong - rho * angle), abs=1e-10)


@pytest.mark.physics
def test_a_force_that_knows_numbers_only():
    def clipped(x, target):
        if abs(target - x) > 0.5:
            return 0.5 if target > x else -0.5
        return target - x

    mine, right = (
        mp.solve(fresh(rule, "regression", LAW), [0.5, 2.0])
        for rule in (mp.Rule(clipped), mp.Huber(width=0.5))
    )
    np.testing.assert_allclose(mine.Q, right.Q, atol=1e-8)


def test_what_is_not_served_is_refused_by_name():
    odd = fresh(mp.Rule(lambda x, y: np.tanh(y) - np.tanh(x)), "regression")
    with pytest.raises(ValueError, match=r"residual target - x alone, not `rule`.*Simulation"):
        mp.solve(odd, [1.0], mp.Exact())
    with pytest.raises(ValueError, match="`two_time`"):
        mp.solve(fresh(mp.Logistic()), [1.0], two_time=True)
    with pytest.raises(ValueError, match=r"no steady state: `rate` = 4 is too large"):
        mp.steady_state(fresh(mp.Adatron(kappa=1.0), rate=4.0, decay=0.0))
    with pytest.raises(
        ValueError, match=r"no steady state is reached by t = .*`decay` = 0 weights"
    ):
        mp.steady_state(fresh(mp.Perceptron(), noise=0.0, decay=0.0))


@pytest.mark.parametrize("inputs", [None, LAW], ids=str)
@pytest.mark.parametrize("window", [0.0, 3.0])
def test_steady_states_are_those_of_the_modes_of_linear_rules(inputs, window):
    problem = fresh(mp.Adaline(), inputs=inputs, rate=0.5, temperature=0.1)
    found, right = onepass.steady(problem, window), mp.steady_state(problem, window=window)
    for name, value in found.items():
        np.testing.assert_allclose(value, right[name], atol=1e-9, err_msg=name)


@pytest.mark.parametrize("rule", [mp.Perceptron(), mp.Adatron(kappa=1.0), mp.Logistic()], ids=str)
def test_steady_states_are_where_curves_end(rule):
    problem = fresh(rule, inputs=mp.Blocks([0.3, 2.5], [3, 1]), start=mp.Start(0.2, 1.0))
    found, late = mp.steady_state(problem), mp.solve(problem, [400.0]).isel(t=-1)
    for name in ("R", "Q", "F2", "Eg", "Et"):
        np.testing.assert_allclose(found[name], late[name], rtol=1e-7, err_msg=name)


@pytest.mark.physics
def test_averaged_weights_of_fresh_examples_simulated():
    """C(τ) of what is orthogonal to the teacher; Q is seen to 0.4 %, a window lowers it by 11."""
    problem = fresh(mp.Perceptron(kappa=0.5), inputs=LAW)
    method = mp.Simulation(n=1000, samples=60, settle=60, seed=1)
    found, theory = (
        mp.steady_state(problem, method, window=5.0),
        mp.steady_state(problem, window=5.0),
    )
    for name in ("R", "Q", "Eg", "F2"):
        assert abs(found[name] - theory[name]) < 3 * found[f"{name}_se"] + 0.002 * theory[name], (
            name
        )
    assert theory.Q < 0.9 * mp.steady_state(problem).Q


@pytest.mark.physics
@pytest.mark.parametrize(
    "rule",
    [mp.Perceptron(), mp.Adatron(kappa=1.0), mp.Logistic(), mp.Huber(width=0.5)],
    ids=str,
)
def test_fresh_examples_simulated(rule):
    task = "regression" if isinstance(rule, mp.Huber) else "classification"
    problem, t = fresh(rule, task, mp.Blocks([0.3, 2.5], [3, 1]), rate=0.8), [0.5, 2.0, 5.0]
    theory = mp.solve(problem, t)
    small, large = (
        mp.solve(problem, t, mp.Simulation(n=n, samples=120_000 // n, seed=n)) for n in (100, 200)
    )
    for name in ("R", "Q", "F2"):
        limit = 2 * large[name] - small[name]
        error = np.sqrt(4 * large[f"{name}_se"] ** 2 + small[f"{name}_se"] ** 2)
        z = (theory[name] - limit) / error
        assert float(abs(z).max()) < 3.5, (name, z.values)
        assert float((error / limit).max()) < 0.03, name
