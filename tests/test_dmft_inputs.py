"""The mean-field solver with correlated inputs: against exact theory and the tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from references import Table

import manypass as mp
from manypass import inputs
from manypass.cavity.modes import few

BLOCKS, LAW = inputs.Blocks([0.3, 2.5], [3, 1]), inputs.PowerLaw(1.2, 1.4, 0.02)
FEW = ("blocks-logistic-heat", "powerlaw-adatron", "blocks-perceptron-fast")


def linear(given, alpha, **changes):
    settings = {"rate": 0.6, "decay": 0.1} | changes
    return mp.Problem(
        mp.Teacher(alpha, task="regression", noise=0.3, inputs=given), mp.Adaline(), **settings
    )


@pytest.mark.parametrize("given", [LAW, inputs.PowerLaw(2.0, 1.0, 0.01), BLOCKS], ids=str)
def test_few_eigenvalues_stand_for_a_law(given):
    """Sums that were not used to choose them: of e^{-μs}/(1 + μ), and of the teacher's power."""
    law, found = given.law(1.0), few(given)
    assert found.mu.size <= 16
    assert found.error <= 1e-5
    for s in (0.0, 0.1, 1.0, 10.0):
        right = (law.w * law.mu) @ (np.exp(-law.mu * s) / (1 + law.mu))
        assert found.w_mu @ (np.exp(-found.mu * s) / (1 + found.mu)) == pytest.approx(
            right, abs=1e-5
        )
        right = law.P @ np.exp(-law.mu * s)
        assert found.P @ np.exp(-found.mu_y * s) == pytest.approx(right, abs=1e-5)


@pytest.mark.parametrize(
    ("given", "alpha", "changes"),
    [
        pytest.param(BLOCKS, 0.6, {}, marks=pytest.mark.physics),
        (BLOCKS, 2.0, {"temperature": 0.1, "rate": "cosine:0.8:0.1:3"}),
        (LAW, 0.6, {"temperature": 0.1}),
        pytest.param(LAW, 2.0, {}, marks=pytest.mark.physics),
    ],
    ids=str,
)
@pytest.mark.physics
def test_linear_rules_have_their_exact_curves(given, alpha, changes):
    """Within error bars; F2 and G are known to 3 % of their size or better."""
    problem, t = linear(given, alpha, **changes), [0.5, 1.0, 2.0, 3.0]
    method = mp.DMFT(dt=0.05, samples=32_000, seed=1)
    found = mp.solve(problem, t, method, two_time=True)
    right = mp.solve(problem, t, mp.Exact(), two_time=True)
    for name in ("R", "Q", "F2", "Eg", "C", "G"):
        error = np.maximum(found[f"{name}_se"], 1e-4)
        z = float((abs(found[name] - right[name]) / error).max())
        assert z < 4, (name, z)
        assert float(error.max()) < 0.03 * float(right[name].max()), name
    plain = mp.solve(linear(None, alpha, **changes), t, mp.Exact())
    assert float(abs(plain.Q / right.Q - 1).max()) > 0.05  # correlations matter here


def test_equal_blocks_are_no_correlation():
    """Two blocks of the same eigenvalue: the numbers of one, by the law of many."""
    same = inputs.Blocks([1.0, 1.0 + 1e-9], power=[1, 1])
    one, other = (
        mp.solve(
            mp.Problem(mp.Teacher(1.0, inputs=given), mp.Adatron(kappa=1.0), rate=1.0),
            [0.5, 1.5],
            mp.DMFT(dt=0.1, samples=8_000, seed=1),
        )
        for given in (same, None)
    )
    for name in ("R", "Q"):
        np.testing.assert_allclose(one[name], other[name], rtol=2e-3, err_msg=name)
    # Means over times around t are shorter where cells of the past are narrower.
    assert (np.abs(one.F2 - other.F2) < 0.25 * other.F2_se).all()


@pytest.mark.physics
@pytest.mark.parametrize("changes", [{"sequence": "reshuffled"}, {"batch_share": 0.25}], ids=str)
def test_orders_and_starts_against_simulation(changes):
    problem = mp.Problem(
        mp.Teacher(1.0, inputs=BLOCKS),
        mp.Adatron(kappa=1.0),
        rate=0.8,
        decay=0.1,
        start=mp.Start(-0.3, 1.0),
        **changes,
    )
    t = [1.0, 2.0]
    found = mp.solve(problem, t, mp.DMFT(samples=32_000, seed=1))
    small, large = (
        mp.solve(problem, t, mp.Simulation(n=n, samples=120_000 // n, seed=n)) for n in (100, 200)
    )
    for name in ("R", "Q", "F2"):
        limit = 2 * large[name] - small[name]
        error = np.sqrt(4 * large[f"{name}_se"] ** 2 + small[f"{name}_se"] ** 2)
        z = (found[name] - limit) / np.hypot(error, found[f"{name}_se"])
        assert float(abs(z).max()) < 4, (name, z.values)
        assert float((error / limit).max()) < 0.03, name


def test_what_is_not_served_is_refused_by_name():
    flow = linear(BLOCKS, 1.0, mode="batch").replace(rule=mp.Logistic())
    with pytest.raises(ValueError, match=r"`inputs` = Blocks.*`mode` = 'batch': use method Simul"):
        mp.solve(flow, [1.0], mp.DMFT())
    with pytest.raises(ValueError, match=r"steady_state\(\) does not serve `inputs`.*Simulation"):
        mp.steady_state(flow.replace(mode="online"), mp.DMFT())
    with pytest.raises(ValueError, match=r"DMFT\(\) does not serve `alpha` = inf"):
        mp.solve(flow.replace(mode="online", alpha=math.inf), [1.0], mp.DMFT())


@pytest.mark.physics
@pytest.mark.parametrize("name", FEW)
def test_nonlinear_rules_agree_with_simulation(name):
    """Up to t = 5; the error that is told is below 1 % of every curve."""
    table = Table(name)
    t = [time for time in table.times if time <= 5]
    found = mp.solve(table.problem, t, mp.DMFT(seed=1))
    for quantity in ("R", "Q", "F2", "Et"):
        limit, error = (part[: len(t)] for part in table.limit(quantity))
        value, own = (found[quantity + end].values for end in ("", "_se"))
        z = (value - limit) / np.hypot(error, own)
        print(name, quantity, z.round(1), (own / limit).round(4))
        assert np.abs(z).max() < 4, (quantity, z)
        full = {"R": np.sqrt(float(found.Q.max())), "Et": 0.5}.get(quantity, limit.max())
        assert own.max() < 0.0101 * full
