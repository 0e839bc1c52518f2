"""The mean-field theory of two layers against exact theory, simulated tables and itself."""

import math

import numpy as np
import pytest
from references import Table, problems

import manypass as mp

T = np.array([0.75, 1.5, 3.0])
DATA = mp.Teacher(1.5, "regression", 0.3)
NAMES = ("R", "Q", "F2", "Et", "Eg")
NOTHING = mp.Start(R=[[0.0]], Q=[[0.0]])


def scores(found, names, value):
    """Return z-scores of all values of a result against what `value` gives with its error."""
    out = {}
    for name in names:
        expected, error = value(name)
        spread = np.hypot(np.ravel(found[f"{name}_se"]), np.ravel(error))
        apart = np.ravel(found[name]) - np.ravel(expected)
        known = spread > 0
        out[name] = apart[known] / spread[known]
        size = np.abs(expected).max()
        assert (spread <= 0.03 * max(size, math.sqrt(size))).all(), name  # 10 % would be seen
    return out


def agree(found, names, value, most=3.5):
    for name, z in scores(found, names, value).items():
        assert np.abs(z).max() < most, (name, z)


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"sequence": "reshuffled"},
        {"batch_share": 0.25},
        {"batch_share": 0.25, "sequence": "reshuffled"},
        {"temperature": 0.05},
        {"rate": "cosine:1.0:0.1:4"},
    ],
)
@pytest.mark.physics
def test_one_linear_unit_is_an_adaline(order):
    """Adaline's exact numbers, in every order that both serve."""
    adaline = mp.Problem(DATA, mp.Adaline(), rate=1.0, decay=0.1).replace(**order)
    exact = mp.solve(adaline, T, mp.Exact())
    layered = adaline.replace(rule=mp.Committee(1, "linear"), start=NOTHING)
    found = mp.solve(layered, T, mp.DMFT(samples=32_000))
    agree(found, NAMES, lambda name: (exact[name].values, 0.0))


def test_two_linear_units_are_an_adaline():
    """Of two linear units Σ a_k J_k learns as an Adaline at the rate v Σ a_k²."""
    a, R, Q = np.array([1.0, -0.5]), np.array([[0.2], [-0.1]]), 0.3 * np.eye(2) + 0.05
    start, total = mp.Start(float(a @ R[:, 0]), float(a @ Q @ a)), a @ a
    adaline = mp.Problem(DATA, mp.Adaline(), rate=1.0, decay=0.1, start=start)
    exact = mp.solve(adaline, T, mp.Exact())
    rule = mp.Committee(2, "linear", second=a)
    layered = adaline.replace(rule=rule, rate=1 / total, decay=0.1 * total, start=mp.Start(R, Q))
    found = mp.solve(layered, T, mp.DMFT(samples=32_000))
    agree(found, ("Et", "Eg"), lambda name: (exact[name].values, 0.0))
    spread = found.Q_se.values.max() * np.abs(a).sum() ** 2
    assert np.abs(a @ found.Q.values @ a - exact.Q.values).max() < 3 * spread < 0.06
    assert np.abs(found.R.values[:, :, 0] @ a - exact.R.values).max() < 3 * spread


def test_correlations_and_responses_are_exact_of_one_linear_unit():
    adaline = mp.Problem(DATA, mp.Adaline(), rate=1.0, decay=0.1, start=mp.Start(0.2, 0.3))
    exact = mp.solve(adaline, T, mp.Exact(), two_time=True)
    layered = adaline.replace(rule=mp.Committee(1, "linear"), start=mp.Start([[0.2]], [[0.3]]))
    found = mp.solve(layered, T, mp.DMFT(samples=32_000), two_time=True)
    assert found.G.dims == ("t", "s", "unit", "unit2")
    for name in ("C", "G"):
        apart = np.abs(found[name].values[..., 0, 0] - exact[name].values)
        assert (apart < 4 * found[f"{name}_se"].values[..., 0, 0] + 1e-6).all(), name
        assert found[f"{name}_se"].max() < 0.05


def test_a_batch_at_the_start_knows_the_start():
    """Who is learned at t = 0 knows J(0): two engines must agree on it, and the networks."""
    adaline = mp.Problem(DATA, mp.Adaline(), rate=1.0, decay=0.1, batch_share=0.25)
    adaline = adaline.replace(start=mp.Start(0.2, 0.3))
    layered = adaline.replace(rule=mp.Committee(1, "linear"), start=mp.Start([[0.2]], [[0.3]]))
    method, t = mp.DMFT(samples=16_000), [0.4, 0.8]
    one = mp.solve(adaline, t, method)
    agree(mp.solve(layered, t, method), NAMES, lambda n: (one[n].values, one[f"{n}_se"].values))
    runs = mp.solve(adaline, t, mp.Simulation(n=400, samples=60))
    agree(one, ("F2",), lambda n: (runs[n].values, runs[f"{n}_se"].values))


@pytest.mark.parametrize("name", ["erf-few", "relu-classes", "reshuffled"])
def test_tables(name):
    """A few tables of simulated networks, N → ∞, within 3 %."""
    table = Table(f"committee-{name}")
    found = mp.solve(table.problem, table.times[:3], mp.DMFT(rtol=0.03))
    names = ("R", "Q", "F2", "Et", "Eg")
    agree(found, names, lambda n: tuple(v[:3] for v in table.limit(n)), most=4.5)


@pytest.mark.physics
def test_all_tables():
    """Problems up to t = 20 within 1 %: z-scores are those of their errors."""
    every = []
    for name in problems.COMMITTEES:
        table = Table(name)
        if table.problem.sequence == "fixed" or table.problem.rule.hidden > 2:  # not served; long
            continue
        found = mp.solve(table.problem, table.times, mp.DMFT())
        names = ("R", "Q", "F2", "Et", "Eg", *["a"] * (table.problem.rule.second_rate > 0))
        for quantity, z in scores(found, names, table.limit).items():
            assert np.abs(z).max() < 6, (name, quantity, z)
            every.append(z)
    z = np.concatenate(every)
    assert np.sqrt(np.mean(z**2)) < 1.3
    assert np.mean(np.abs(z) < 2) > 0.9


@pytest.mark.physics
def test_one_pass_of_any_activation_is_that_of_networks():
    start = mp.Start(R=0.2 * np.eye(2), Q=0.25 * np.eye(2))
    data = mp.Teacher(math.inf, "regression", 0.1, hidden=2)
    for rule in (mp.Committee(2, "relu", second_rate=0.2), mp.Committee(2, "tanh")):
        problem = mp.Problem(data, rule, rate=0.5, start=start)
        found = mp.solve(problem, [0.5, 1.5], mp.DMFT(rtol=0.03))
        runs = mp.solve(problem, [0.5, 1.5], mp.Simulation(n=300, samples=24))
        names = ("R", "Q", "F2", "Et", "Eg")
        agree(found, names, lambda n, r=runs: (r[n].values, r[f"{n}_se"].values), most=4)
    closed = mp.Problem(data, mp.Committee(2), rate=0.5, start=start)
    same = mp.solve(closed, [1.0], mp.DMFT())
    np.testing.assert_allclose(same.Q, mp.solve(closed, [1.0], mp.Exact()).Q)
    assert (same.Q_se == 0).all()


def test_divergence_is_told():
    linear = mp.Problem(DATA, mp.Committee(1, "linear"), rate=6.0, start=NOTHING)
    with pytest.warns(UserWarning, match="F2 is .* at t = 0.5: where it grows so far"):
        found = mp.solve(linear, [0.5, 20.0], mp.DMFT(dt=0.05, samples=6_400))
    assert np.isinf(found.Q[-1]).all()
    assert found.Q.dims == ("t", "unit", "unit2")


def test_the_same_seed_gives_the_same_numbers():
    problem = problems.problem(problems.EVERY["committee-second"])
    one, two = (mp.solve(problem, [0.5], mp.DMFT(samples=3_200, threads=k, dt=0.2)) for k in (1, 2))
    assert one.equals(two)
    assert one.a.dims == ("t", "unit")
