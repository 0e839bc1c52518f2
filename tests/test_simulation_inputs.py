"""Correlated inputs and fresh examples at finite N, against plain loops and exact moments."""

import math

import numpy as np
import pytest
from every_rule import RULES
from numpy.testing import assert_allclose
from references import problems, tables
from scipy.linalg import expm

import manypass as mp
from manypass import orders
from manypass.problem import SEQUENCES
from manypass.simulation import coarse
from manypass.simulation.examples import Examples, Fresh, edge

POWER = mp.PowerLaw(1.2, 1.4, cutoff=0.2)
BLOCKS = mp.Blocks([0.3, 2.5], [3, 1])
GIVEN = mp.Eigenvalues([0.5, 0.7, 1.1, 1.9], [0.1, 0.0, 0.5, 0.4])
LAWS = pytest.mark.parametrize("law", [POWER, BLOCKS, GIVEN], ids=repr)


def problem(law=BLOCKS, alpha=1.2, rule=None, task="classification", noise=0.2, **changes):
    data = mp.Teacher(alpha, task, noise, inputs=law)
    return mp.Problem(data, rule or mp.Adaline(), **{"rate": 0.2, "decay": 0.4} | changes)


def sampled(given, n=20, seed=3, **settings):
    return mp.Simulation(n=n, **settings)._maker(given, 1)(np.random.SeedSequence(seed))


def drawn(data, n, seed=0, dtype=float):
    return Examples.draw(data, n, np.random.default_rng(seed), np.dtype(dtype))


# --- what is drawn ----------------------------------------------------------------------------


@LAWS
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_inputs_have_the_covariance_and_the_teacher_its_power(law, dtype):
    data, n = mp.Teacher(500.0, inputs=law), 40
    found, (mu, P) = drawn(data, n, dtype=dtype), law.drawn(n)
    p, X = len(found.X), found.X.astype(float)
    assert found.X.dtype == dtype
    assert_allclose(mu.mean(), 1.0)
    assert_allclose(mu * found.B**2, P, rtol=1e-12)
    assert_allclose(P.sum(), 1.0)
    assert 0 < (found.B > 0).sum() < n
    z = (X.T @ X / p - np.diag(mu)) * math.sqrt(p) / np.sqrt(np.outer(mu, mu))
    z[np.diag_indices(n)] /= math.sqrt(2)
    assert np.abs(z).max() < 4.5
    assert abs(z[np.tril_indices(n)].std() - 1) < 0.1  # 1 % in μ would be 1 standard error
    y = X @ found.B
    assert abs(np.mean(y**2) - 1) < 4 * math.sqrt(2 / p)
    assert (np.sign(y) == found.targets).mean() > 0.9999


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_uncorrelated_inputs_are_the_random_numbers_that_they_were(task):
    for inputs in (mp.Isotropic(), "isotropic", None):
        found = drawn(mp.Teacher(1.5, task, 0.3, inputs=inputs), 20, seed=4)
        rng = np.random.default_rng(4)
        B, X, z = rng.standard_normal(20), rng.standard_normal((30, 20)), rng.standard_normal(30)
        B /= np.linalg.norm(B)
        aims = X @ B + 0.3 * z
        assert (found.X == X).all()
        assert (found.B == B).all()
        assert (found.targets == (np.sign(aims) if task == "classification" else aims)).all()


def test_the_largest_eigenvalue_of_the_examples():
    for alpha in (0.3, 1.0, 4.0):
        assert_allclose(edge(np.ones(5), alpha), (1 + 1 / math.sqrt(alpha)) ** 2, rtol=1e-8)
        for law in (POWER, BLOCKS):
            X = drawn(mp.Teacher(alpha, inputs=law), 500).X
            top = np.linalg.eigvalsh(X.T @ X / len(X))[-1]
            assert_allclose(edge(law.drawn(500)[0], alpha), top, rtol=0.05)


# --- learning and measuring -------------------------------------------------------------------


def measured(sample, J):
    """R, Q, F2, Et of weights J (times × N) by their definitions."""
    given, (B, X) = sample.problem, (sample.examples.B, sample.examples.X)
    aims, S = sample.examples.targets, np.diag(given.data.inputs.drawn(X.shape[1])[0])
    x = J @ X.T
    F = np.array([[given.rule.force(a, b) for a, b in zip(row, aims, strict=True)] for row in x])
    wrong = x * aims < 0 if given.data.task == "classification" else (x - aims) ** 2 / 2
    return {
        "R": J @ S @ B,
        "Q": np.diagonal(J @ S @ J.T),
        "C": J @ S @ J.T,
        "F2": (F**2).mean(axis=1),
        "Et": np.mean(wrong, axis=1),
    }


@pytest.mark.parametrize(("law", "task"), [(POWER, "classification"), (GIVEN, "regression")])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_learning_is_that_of_a_plain_loop(law, rule, task):
    given = problem(law, rule=rule, task=task, start=mp.Start(0.3, 0.8))
    sample = mp.Simulation(n=20)._maker(given, 1)(np.random.SeedSequence(0, spawn_key=(0,)))
    X, aims = sample.examples.X, sample.examples.targets
    J, path = sample.start, [sample.start]
    for m in np.random.default_rng(sample.draws).integers(24, size=30):
        J = J + 0.2 / 20 * (rule.force(X[m] @ J, aims[m]) * X[m] - 0.4 * J)
        path.append(J)
    times = [0, 10, 30]
    method = mp.Simulation(n=20, samples=1, seed=0)
    found = mp.solve(given, np.array(times) / 20, method, two_time=True)
    for name, values in measured(sample, np.array(path)[times]).items():
        assert_allclose(found[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
    assert_allclose([found.R[0], found.Q[0]], [0.3, 0.8], rtol=1e-12)  # the start is in the metric


@pytest.mark.parametrize(
    "how",
    [
        {"sequence": "reshuffled", "rate": "cosine:0.3:0.1:2"},
        {"sequence": "fixed", "batch_share": 0.5},
        {"batch_size": 3, "momentum": 0.5, "rate": 0.3, "temperature": 0.1},
        {"mode": "batch", "rate": 0.5, "temperature": 0.2, "start": mp.Start(-0.2, 0.5)},
    ],
    ids=str,
)
def test_every_way_of_learning_takes_them(how):
    """In whitened weights K = √μ J all is measured as for Σ = 1."""
    given = problem(POWER, alpha=1.5, **how)
    method = mp.Simulation(n=20, samples=2, seed=5)
    found = mp.solve(given, [0.9, 2.0], method, two_time=True)
    each = []
    for i in range(2):
        sample = method._maker(given, 1)(np.random.SeedSequence(5, spawn_key=(i,)))
        net, J = sample.network(), []
        for t in (0.9, 2.0):
            net.advance(t)
            J.append(net.J.copy())
        each.append(measured(sample, np.array(J)))
    for name in each[0]:
        mean = (each[0][name] + each[1][name]) / 2
        assert_allclose(found[name], mean, rtol=1e-9, err_msg=name)
        assert np.abs(mean).min() > 1e-4
    if "rate" not in how or isinstance(how["rate"], float):
        steady = mp.steady_state(given, mp.Simulation(n=20, samples=2, settle=60.0), window=1.2)
        assert 0 < float(steady.R) < 1.2


def test_the_response_is_what_an_example_sees():
    """G = (1/N) tr Σ exp(−(λ + H)v(t−s)): gradient flow of a linear rule, one stimulus a time."""
    given = problem(POWER, mode="batch", rate=0.5)
    times, n = np.array([0.0, 0.7, 2.0]), 20
    method = mp.Simulation(n=n, samples=1, seed=1, response=True)
    found = mp.solve(given, times, method, two_time=True)
    sample = method._maker(given, 1)(np.random.SeedSequence(1, spawn_key=(0,)))
    X, mu = sample.examples.X, POWER.drawn(n)[0]
    A = X.T @ X / len(X) + 0.4 * np.eye(n)
    for i, s in enumerate(times):
        z = sample.stimulus.choice((-1.0, 1.0), size=n)
        for k, t in enumerate(times):
            G = z @ np.diag(mu) @ expm(-0.5 * (t - s) * A) @ z / n if t >= s else 0.0
            assert_allclose(found.G[k, i], G, rtol=1e-4, atol=1e-9)
    assert_allclose(np.diagonal(found.G), 1.0, rtol=1e-7)


def moments(given, n, steps):
    """R, Q, F2 of on-line regression by fresh examples, averaged exactly at finite N (Wick)."""
    (mu, P), v, eps2 = given.data.inputs.drawn(n), given.rate / n, given.data.noise**2
    B, m, S, out = np.sqrt(P / mu), np.zeros(n), np.zeros(n), []
    keep = 1 - v * given.decay
    for _ in range(steps):
        M = B**2 - 2 * B * m + S  # ⟨(B − J)²⟩
        pull = v**2 * (mu * (mu @ M) + 2 * mu**2 * M + eps2 * mu)
        S = keep**2 * S + 2 * keep * v * mu * (B * m - S) + pull
        S += 2 * given.temperature / n**2
        m = keep * m + v * mu * (B - m)
        out.append((B * mu @ m, mu @ S, mu @ (B**2 - 2 * B * m + S) + eps2))
    return np.array(out)


@pytest.mark.parametrize(
    ("law", "how"),
    [(mp.Isotropic(), {}), (POWER, {"temperature": 0.1}), (BLOCKS, {})],
    ids=str,
)
@pytest.mark.physics
def test_fresh_examples_give_the_exact_moments(law, how):
    """Σ is in the metric, the inputs and the teacher: no free number is left."""
    given = problem(law, math.inf, task="regression", noise=0.5, rate=0.7, decay=0.1, **how)
    n, t = 60, np.array([0.5, 1.0, 3.0])
    found = mp.solve(given, t, mp.Simulation(n=n, samples=2400, seed=2))
    expected = moments(given, n, 180)[np.rint(t * n).astype(int) - 1]
    for name, values in zip(("R", "Q", "F2"), expected.T, strict=True):
        z = (found[name].values - values) / found[f"{name}_se"].values
        assert np.abs(z).max() < 4, (name, z)
        assert (found[f"{name}_se"].values < 0.005 * values.max()).all()  # 2 % would be seen
    assert_allclose(found.Et, found.F2 / 2)


def test_one_pass_over_many_examples_is_fresh_examples():
    given = problem(BLOCKS, math.inf, mp.Adatron(0.5), rate=0.7)
    once = given.replace(alpha=4.0, sequence="reshuffled")
    method = mp.Simulation(n=60, samples=150, seed=1)
    for name in ("R", "Q"):
        a, b = (mp.solve(each, [1.0, 4.0], method) for each in (given, once))
        error = np.hypot(a[f"{name}_se"], b[f"{name}_se"])
        assert (np.abs(a[name] - b[name]) < 4 * error).all()
        assert (error < 0.03 * a[name]).all()


@pytest.mark.parametrize("how", [{}, {"batch_size": 7}, {"momentum": 0.5}], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fresh_examples_do_not_depend_on_how_one_looks(how, dtype, monkeypatch):
    given = problem(POWER, math.inf, noise=0.3, **how)
    whole = sampled(given, precision=dtype).network()
    whole.advance(20.3)
    monkeypatch.setattr("manypass.simulation.examples.HELD", 20 * 16)
    pieces = sampled(given, precision=dtype).network()
    for t in (0.05, 0.35, 1.4, 7.0, 20.3):
        pieces.advance(t)
    assert pieces.examples.most == 16
    assert_allclose(pieces.J, whole.J, rtol=1e-9 if dtype == "float64" else 1e-3, atol=1e-4)
    assert_allclose(whole.J @ whole.J, pieces.J @ pieces.J, rtol=1e-3)


def test_no_fresh_example_comes_twice():
    known = drawn(mp.Teacher(math.inf, inputs=BLOCKS), 20)
    assert known.X.shape == (20, 20)  # to measure by
    fresh = Fresh(mp.Teacher(math.inf, inputs=BLOCKS), known, 1)
    take = fresh.drawing("replacement", np.random.default_rng(0))
    seen = [known.X[:, 0].copy()]
    for count in (5, 1, 30):
        assert take(count).tolist() == list(range(count))
        assert (np.sign(fresh.X @ known.B) == fresh.targets).all()
        seen.append(fresh.X[:, 0].copy())
    assert len(np.unique(np.concatenate(seen))) == 20 + 36


def test_a_steady_state_and_activations_of_fresh_examples():
    given = problem(BLOCKS, math.inf, task="regression", noise=0.5)
    found = mp.steady_state(given, mp.Simulation(n=100, samples=200, settle=40.0))
    expected = moments(given, 100, 4000)[-1]
    for name, value in zip(("R", "Q", "F2"), expected, strict=True):
        assert abs(float(found[name]) - value) < 4 * float(found[f"{name}_se"])
    seen = mp.activations(given, 2.0, samples=250, source=mp.Simulation(n=100))
    assert seen.x.size == 250


# --- warnings and refusals --------------------------------------------------------------------


@LAWS
def test_too_few_weights_are_told_with_the_number_that_is_enough(law):
    given = problem(law, rate=1.0)
    method = mp.Simulation(n=20, samples=2, settle=30.0)
    share = law.drawn(20)[0].max() / 20
    pattern = rf"`n` = 20 is small .* rate·μ_max/n = {share:.2g}.*: take `n` = (\d+) or more"
    with pytest.warns(UserWarning, match=pattern) as told:
        mp.solve(given, [0.5], method)
    with pytest.warns(UserWarning, match=pattern):
        mp.steady_state(given, method)
    assert told[0].filename == __file__
    enough = int(str(told[0].message).split("take `n` = ")[1].split()[0])
    assert law.drawn(enough)[0].max() / enough <= coarse.LARGEST
    assert law.drawn(enough // 2)[0].max() / (enough // 2) > coarse.LARGEST
    mp.solve(given, [0.1], mp.Simulation(n=enough, samples=2))  # no warning


def test_where_there_is_nothing_to_warn_of():
    method = mp.Simulation(n=20, samples=2)
    mp.solve(problem(mp.Isotropic(), rate=2.0), [0.5], method)
    mp.solve(problem(rate=1.0, mode="batch"), [0.5], method)
    mp.solve(problem(rate=1.0, batch_size=5), [0.5], method)
    with pytest.warns(UserWarning, match="`n` = 20 is small"):
        mp.solve(problem(rate="steps:0:0.2:1:1.0"), [0.5], method)
    with pytest.warns(UserWarning, match="`n` = 20 is small"):
        mp.solve(problem(rate=0.2, momentum=0.9), [0.5], method)


@pytest.mark.parametrize(
    ("given", "n", "named"),
    [
        (problem(BLOCKS, math.inf, mode="batch"), 20, "`mode` = 'batch' needs"),
        (problem(BLOCKS), 1, "`n` = 1 leaves no direction"),
        (problem(GIVEN), 3, "`n` = 3 is less than the 4 eigenvalues"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(given, n, named):
    method = mp.Simulation(n=n, samples=2)
    for ask in (lambda: mp.solve(given, [1], method), lambda: mp.steady_state(given, method)):
        with pytest.raises(ValueError, match=named):
            ask()


def test_the_cavity_experiment_refuses_them():
    with pytest.raises(ValueError, match=r"cavity_experiment\(\) does not serve `inputs` = Blocks"):
        mp.cavity_experiment(problem(), [1.0], n=50)
    with pytest.raises(ValueError, match=r"does not serve `alpha` = inf"):
        mp.cavity_experiment(problem(mp.Isotropic(), math.inf), [1.0], n=50)


def test_the_table_of_orders_recommends_simulations():
    given = problem(rule=mp.Logistic())
    for who in ("Simulation", "Simulation.steady_state"):
        assert orders.refusal(given.replace(alpha=math.inf), who) is None
        for order in SEQUENCES:
            assert orders.refusal(given.replace(sequence=order, batch_share=0.5), who) is None


def test_tables_of_correlated_inputs():
    """Twelve problems whose networks of 500 weights have weights enough."""
    names = tables(inputs=True)
    assert len(names) == 12
    assert not set(names) & set(tables())
    assert {problems.CASES[name]["alpha"] > 1 for name in names} == {True, False}
    for name in names:
        given = problems.problem(problems.CASES[name])
        assert not given.data.isotropic
        assert given.rate * given.data.inputs.drawn(500)[0].max() / 500 <= 0.02, name
