"""Networks with two layers: what they are, one-pass theory, simulation, files and refusals."""

import dataclasses
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import manypass as mp
from manypass import cli
from manypass.layers import chance
from manypass.layers.activation import ACTIVATIONS, slopes, values
from manypass.layers.averages import Fields
from manypass.layers.errors import generalization, pair
from manypass.layers.net import Net
from manypass.problem import TEACHER_FIELDS

EYE = np.eye(2)
START = mp.Start(R=0.2 * EYE, Q=0.25 * EYE)
DATA = mp.Teacher(2.0, "regression", hidden=2)
PROBLEM = mp.Problem(DATA, mp.Committee(2), rate=1.0, start=START)


def varied(**changes):
    """K = 3 against M = 2, all that can be given."""
    data = mp.Teacher(
        math.inf, "regression", 0.2, hidden=2, second=[1, 1.5], overlaps=[[1, 0.3], [0.3, 1]]
    )
    rule = mp.Committee(3, second=[1, 0.5, 0.7], second_rate=0.3)
    start = mp.Start(R=[[0.1, 0], [0, 0.1], [-0.1, 0.05]], Q=0.25 * np.eye(3) + 0.02)
    return mp.Problem(data, rule, rate=1.0, decay=0.05, start=start).replace(**changes)


def test_a_problem_goes_through_a_dict_pickle_and_toml():
    for problem in (PROBLEM, varied()):
        assert mp.Problem.from_dict(problem.to_dict()) == problem
        assert pickle.loads(pickle.dumps(problem)) == problem
        assert hash(problem) == hash(mp.Problem.from_dict(problem.to_dict()))
    assert "hidden" not in mp.Teacher(1.0).to_dict()
    assert mp.Teacher(1.0, hidden=2, second=[1, 1], overlaps=EYE) == mp.Teacher(1.0, hidden=2)
    assert PROBLEM.replace(rule=mp.Committee(2, "tanh")) != PROBLEM


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"start": None},
            r"a Committee needs a `start`.*stay alike.*\[\[0.1, 0.0\], \[0.0, 0.1\]\]",
        ),
        ({"start": mp.Start(0.1, 0.2)}, r"`start` has R of 1×1.*need 2×2 and 2×2"),
        ({"start": mp.Start(R=EYE, Q=0.5 * EYE)}, r"`start` is of no weights.*-0.5 < 0"),
        ({"mode": "batch"}, r"`mode` = 'batch' is not served with a Committee.*`batch_share` = 1"),
        ({"inputs": "powerlaw:1:1:0.1"}, r"`inputs` = .* is not served with a Committee"),
        ({"rule": mp.Adaline()}, r"`start` of `rule` Adaline\(\) has numbers"),
        ({"rule": mp.Adaline(), "start": None}, r"`hidden` of the teacher = 2 is for two layers"),
        ({"hidden": 0}, r"`hidden` of the teacher must be a whole number from 1 to 16"),
        ({"activation": "sigmoid"}, r"`activation` of the teacher must be .*'relu'.*'sigmoid'"),
        ({"second": [1.0]}, r"`second` of the teacher must be 2 finite numbers"),
        ({"second": [0, 0]}, r"`second` of the teacher must not be all zero"),
        ({"overlaps": np.ones((2, 2))}, r"`overlaps` of the teacher must be positive definite"),
        ({"overlaps": [[1, 2], [3, 4]]}, r"`overlaps` of the teacher must be a symmetric table"),
        ({"overlaps": [[1.0]]}, r"`overlaps` of the teacher must be 2×2 numbers"),
        (
            {"task": "classification", "activation": "relu"},
            r"`second` of the teacher = \[1.0, 1.0\] gives, with ReLU units",
        ),
    ],
)
def test_what_does_not_fit_is_named(change, said):
    taught = {name: change[name] for name in change if name in TEACHER_FIELDS}
    rest = {name: change[name] for name in change if name not in taught}
    with pytest.raises(ValueError, match=said):
        PROBLEM.replace(data=dataclasses.replace(PROBLEM.data, **taught), **rest)


def test_parts_are_checked():
    for make, said in (
        (lambda: mp.Committee(0), "`hidden`"),
        (lambda: mp.Committee(2, "step"), "`activation`"),
        (lambda: mp.Committee(2, second=[1, np.nan]), "`second`"),
        (lambda: mp.Committee(2, second_rate=-1), "`second_rate`"),
        (lambda: mp.Start(R=EYE, Q=[[1, 2], [3, 4]]), "`Q` must be a symmetric table"),
        (lambda: mp.Start(R=EYE, Q=np.eye(3)), "`R` has 2 rows and `Q` 3"),
        (lambda: mp.Start(R="table", Q=EYE), "`R` and `Q` must both"),
        (lambda: mp.Start(R=EYE, Q=EYE, weights=[1]), "`weights`"),
    ):
        with pytest.raises(ValueError, match=said):
            make()
    with pytest.raises(ValueError, match="learns from a Teacher"):
        PROBLEM.replace(data=mp.Dataset(np.eye(3), np.ones(3), task="regression"), start=None)


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
def test_gaussian_pairs(first, second):
    """⟨g(x) g(y)⟩ against a plain sum over a fine grid."""
    u, v, c = 0.7, 1.3, 0.5
    s = (np.arange(2400) + 0.5) / 2400 * 18 - 9
    w = np.exp(-(s**2) / 2) / np.exp(-(s**2) / 2).sum()
    x, y = math.sqrt(u) * s[:, None], c / math.sqrt(u) * s[:, None] + math.sqrt(v - c * c / u) * s
    expected = np.sum(w[:, None] * w * values(x, first) * values(y, second))
    found = pair(np.array(u), np.array(v), np.array(c), (first, second))
    assert found == pytest.approx(expected, abs=3e-6)


def brute(net, R, Q, a, nodes=20):
    """Averages of forces over all K + M fields by Gauss–Hermite quadrature on their product."""
    K, M = net.units
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grids = np.meshgrid(*(K + M) * [x], indexing="ij")
    weights = np.prod(np.meshgrid(*(K + M) * [w / w.sum()], indexing="ij"), axis=0).ravel()
    root = np.linalg.cholesky(np.block([[Q, R], [R.T, net.T]]))
    fields = root @ np.stack([g.ravel() for g in grids])
    h, y = fields[:K], fields[K:]
    left = net.b @ values(y, net.taught) - a @ values(h, net.kind)
    pull = a[:, None] * slopes(h, net.kind)
    F = left * pull
    noise = net.noise**2 * (pull * weights) @ pull.T
    return (
        (F * weights) @ y.T,
        (F * weights) @ h.T,
        (F * weights) @ F.T + noise,
        (left * weights) @ values(h, net.kind).T,
        0.5 * (left**2 @ weights + net.noise**2),
    )


def test_one_pass_equations_by_an_independent_integration():
    """Saad and Solla's equations, their averages by brute force, to 1e-6."""
    data = mp.Teacher(math.inf, "regression", 0.3, hidden=2, second=[1.0, 0.8])
    rule = mp.Committee(2, second=[0.9, 0.6], second_rate=0.4)
    start = mp.Start(R=[[0.3, 0.1], [0.0, 0.2]], Q=[[0.4, 0.05], [0.05, 0.3]])
    problem = mp.Problem(data, rule, rate=1.2, decay=0.1, temperature=0.02, start=start)
    net = Net.of(problem)

    def rates(R, Q, a):
        FY, FH, FF, second, _ = brute(net, R, Q, a)
        pull = FH - 0.1 * Q
        noise = 1.2**2 * FF + 0.04 * EYE
        return 1.2 * (FY - 0.1 * R), 1.2 * (pull + pull.T) + noise, 0.4 * second

    state, d = (net.R, net.Q, net.a), 0.1
    for _ in range(4):
        k1 = rates(*state)
        k2 = rates(*(s + d / 2 * k for s, k in zip(state, k1, strict=True)))
        k3 = rates(*(s + d / 2 * k for s, k in zip(state, k2, strict=True)))
        k4 = rates(*(s + d * k for s, k in zip(state, k3, strict=True)))
        slopes_ = [(p + 2 * q + 2 * r + u) / 6 for p, q, r, u in zip(k1, k2, k3, k4, strict=True)]
        state = tuple(s + d * k for s, k in zip(state, slopes_, strict=True))
    found = mp.solve(problem, [0.4])
    assert '"Exact"' in found.attrs["method"]
    for name, value in zip(("R", "Q", "a"), state, strict=True):
        np.testing.assert_allclose(found[name][-1], value, rtol=0, atol=1e-6)
    FF, error = (brute(net, *state)[i] for i in (2, 4))
    assert found.F2[-1] == pytest.approx(np.trace(FF), abs=1e-6)
    assert found.Et[-1] == pytest.approx(error, abs=1e-6)
    assert found.Eg[-1] == pytest.approx(error - 0.045, abs=1e-6)


@pytest.mark.parametrize(
    ("units", "rate", "decay", "noise"), [((2, 2), 3.0, 0.5, 0.0), ((3, 2), 1.5, 2.0, 1.0)]
)
@pytest.mark.physics
def test_one_pass_stays_where_it_has_settled(units, rate, decay, noise):
    """Q is symmetric for ever: what rounding made of it grew, and E_g was 20 % off at t = 100."""
    K, M = units
    start = mp.Start(R=0.15 * np.eye(K, M) + 0.05, Q=0.25 * np.eye(K))
    data = mp.Teacher(math.inf, "regression", noise, hidden=M)
    problem = mp.Problem(data, mp.Committee(K), rate=rate, decay=decay, start=start)
    found = mp.solve(problem, [100.0, 1000.0])
    assert (found.Q.values == found.Q.values.transpose(0, 2, 1)).all()
    Q = found.Q.values[0] + 1e-9 * np.eye(K)  # units have become alike
    FY, FH, FF, _, _ = brute(Net.of(problem), found.R.values[0], Q, np.ones(K))
    np.testing.assert_allclose(FY, decay * found.R[0], atol=1e-6)  # nothing changes any more
    pull = FH - decay * found.Q.values[0]
    np.testing.assert_allclose(pull + pull.T + rate * FF, 0, atol=1e-5)
    np.testing.assert_allclose(found.Eg[1], found.Eg[0], rtol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_sampled_averages_are_those_of_quadrature(activation):
    data = mp.Teacher(1.0, "regression", 0.3, hidden=2, activation="tanh")
    problem = mp.Problem(data, mp.Committee(2, activation), rate=1.0, start=START)
    net = Net.of(problem)
    R, Q, a = np.array([[0.4, 0.1], [0.0, 0.3]]), 0.4 * EYE + 0.1, np.array([1.0, 0.7])
    nodes = 60 if activation == "relu" else 22
    found, expected = Fields(net, 1 << 16).at(R, Q, a), brute(net, R, Q, a, min(nodes, 30))
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=6e-3 if nodes == 60 else 1e-3)


def test_one_pass_without_units_is_adaline():
    """Of linear units only Σ a_k J_k matters: an Adaline at the rate v Σ a_k²."""
    t = np.array([0.5, 1.0, 2.0, 5.0])
    teacher = mp.Teacher(math.inf, "regression", 0.3)
    v, decay, a = 0.6, 0.1, np.array([1.0, -0.5])
    start = mp.Start(R=[[0.0], [0.0]], Q=np.zeros((2, 2)))
    rule = mp.Committee(2, "linear", second=a)
    two = mp.solve(mp.Problem(teacher, rule, rate=v, decay=decay, start=start), t)
    total = a @ a
    one = mp.solve(mp.Problem(teacher, mp.Adaline(), rate=v * total, decay=decay / total), t)
    np.testing.assert_allclose(two.R.values[:, :, 0] @ a, one.R, rtol=1e-7)
    np.testing.assert_allclose(a @ two.Q.values @ a, one.Q, rtol=1e-7)
    np.testing.assert_allclose(two.Eg, one.Eg, rtol=1e-7)
    np.testing.assert_allclose(two.F2, total * one.F2, rtol=1e-7)


@pytest.mark.physics
def test_responses_and_correlations_of_one_pass_are_those_of_networks():
    times = [0.5, 1.0, 2.0]
    theory = mp.solve(varied(), times, two_time=True)
    method = mp.Simulation(n=200, samples=24, response=True, seed=3)
    runs = mp.solve(varied(), times, method, two_time=True)
    assert theory.C.dims == runs.G.dims == ("t", "s", "unit", "unit2")
    for name in ("R", "Q", "a", "C", "G"):
        apart = (runs[name] - theory[name]).values
        error = np.hypot(runs[f"{name}_se"].values, 0.02 * np.abs(theory[name]).max().item())
        z = apart[error > 0] / error[error > 0]
        assert np.abs(z).max() < 4, name
        assert np.sqrt(np.mean(z**2)) < 1.2, name


ORDERS = [
    {},
    {"sequence": "reshuffled"},
    {"sequence": "fixed", "batch_share": 0.25},
    {"temperature": 0.05},
    {"rate": "cosine:1.0:0.1:4", "decay": "inverse:0.1:2"},
]


def plain(problem, n, steps, rng):
    """Learn in plain numpy, one example after the other."""
    net = Net.of(problem)
    B, J = net.weights(rng.standard_normal((sum(net.units), n)))
    p = round(problem.data.alpha * n)
    X, a = rng.standard_normal((p, n)), net.a.copy()
    targets = values(X @ B.T, net.taught) @ net.b + net.noise * rng.standard_normal(p)
    order = np.concatenate([rng.permutation(p) for _ in range(steps // p + 1)])
    if problem.sequence == "replacement":
        order = rng.integers(p, size=steps)
    for i, m in enumerate(order[:steps]):
        v, decay, x = float(problem.v(i / n)), float(problem.decays(i / n)), J @ X[m]
        left = targets[m] - values(x, net.kind) @ a
        F = left * a * slopes(x, net.kind)
        a += problem.rule.second_rate / n * left * values(x, net.kind)
        J = J + v / n * (F[:, None] * X[m] - decay * J)
        J += math.sqrt(2 * problem.temperature) / n * rng.standard_normal(J.shape)
    left = targets - values(X @ J.T, net.kind) @ a
    return J @ B.T, J @ J.T, a, 0.5 * np.mean(left**2)


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("order", [0, 1, 3, 4])
def test_networks_learn_as_in_plain_numpy(activation, order):
    changes = ORDERS[order] | {"rule": mp.Committee(2, activation, second_rate=0.3)}
    problem, n = PROBLEM.replace(noise=0.2, **changes), 40
    rng = np.random.default_rng(1)
    rows = list(zip(*(plain(problem, n, 60, rng) for _ in range(150)), strict=True))
    found = mp.solve(problem, [1.5], mp.Simulation(n=n, samples=600, seed=1))
    for name, samples in zip(("R", "Q", "a", "Et"), rows, strict=True):
        mean, error = np.mean(samples, axis=0), np.std(samples, axis=0) / math.sqrt(150)
        z = (found[name].values[0] - mean) / np.hypot(error, found[f"{name}_se"].values[0])
        assert np.abs(z).max() < 4, name
        assert np.abs(error / np.abs(mean).max()).max() < 0.06


@pytest.mark.parametrize("order", ORDERS)
def test_one_unit_that_is_linear_is_an_adaline(order):
    """The same law of networks: R, Q, F2, E_g, E_t within errors of 1 %."""
    data = mp.Teacher(1.5, "regression", 0.3)
    adaline = mp.Problem(data, mp.Adaline(), rate=1.0, decay=0.1, start=mp.Start(0.2, 0.3))
    adaline = adaline.replace(**order)
    layered = adaline.replace(rule=mp.Committee(1, "linear"), start=mp.Start([[0.2]], [[0.3]]))
    method, t = mp.Simulation(n=100, samples=400), [1.5, 3.0]
    one, two = mp.solve(adaline, t, method), mp.solve(layered, t, method.__class__(n=100, seed=7))
    for name in ("R", "Q", "F2", "Eg", "Et"):
        mine, error = two[name].values.ravel(), two[f"{name}_se"].values.ravel()
        z = (mine - one[name].values) / np.hypot(error, one[f"{name}_se"].values)
        assert np.abs(z).max() < 3.5, name


def test_momentum_and_small_batches_are_plain_learning_at_another_rate():
    problem = PROBLEM.replace(rule=mp.Committee(2, second_rate=0.4), noise=0.2)
    quick = problem.replace(batch_size=2, momentum=0.5)
    same = mp.Simulation(n=400, samples=60, seed=2)
    one, two = mp.solve(problem, [2.0], same), mp.solve(quick, [2.0], same)
    for name in ("R", "Q", "a", "Eg"):
        error = np.hypot(one[f"{name}_se"].values, two[f"{name}_se"].values)
        assert (np.abs((one[name] - two[name]).values) < 4 * error + 0.01).all(), name


def test_classes_are_signs():
    problem = PROBLEM.replace(task="classification")
    net = Net.of(problem)
    # The sign of two error functions is that of the sum of their arguments.
    exact = math.acos(net.R.sum() / math.sqrt(net.Q.sum() * 2)) / math.pi
    assert generalization(net, net.R[None], net.Q[None], net.a[None])[0] == pytest.approx(
        exact, abs=5e-4
    )
    found = mp.solve(problem, [0.0, 4.0], mp.Simulation(n=200, samples=60))
    assert abs(found.Eg[0] - exact) < 0.003
    assert found.Et[-1] < found.Eg[-1] < found.Eg[0]
    noisy = mp.solve(problem.replace(noise=1.0), [4.0], mp.Simulation(n=200, samples=20))
    assert found.Eg[-1] < noisy.Eg[-1]


@pytest.mark.parametrize("suffix", [".nc", ".csv", ".json"])
def test_files_hold_units(tmp_path, suffix):
    found = mp.solve(varied(), [1.0, 2.0], two_time=True)
    mp.save(found, tmp_path / f"x{suffix}")
    again = mp.load(tmp_path / f"x{suffix}")
    assert again.identical(found)
    assert mp.problem_of(again) == varied()
    assert again.R.sel(unit=3, teacher=2, t=1.0) == found.R[0, 2, 1]
    on = mp.Start.of(again)
    np.testing.assert_allclose(on.R, found.R[-1])
    assert varied(start=on).start == on


def test_who_does_not_serve_says_who_does():
    simulation = r"Simulation\(n=500, samples=100\)"
    for verb, problem, said in (
        (
            lambda p: mp.solve(p, [1], mp.Exact()),
            PROBLEM,
            rf"`alpha` = 2: use method .*{simulation}",
        ),
        (
            lambda p: mp.solve(p, [1], mp.Exact()),
            varied(rule=mp.Committee(3, "relu")),
            rf"`rule` Committee\(hidden=3, activation='relu'\): use method .*{simulation}",
        ),
        (
            lambda p: mp.solve(p, [1], mp.Exact()),
            varied(task="classification"),
            "`task` = 'classification'",
        ),
        (lambda p: mp.solve(p, [1], mp.Exact(samples=9)), varied(), "`samples` is of no use"),
        (mp.critical_rate, PROBLEM, r"does not serve `rule` = Committee.*no other method"),
        (mp.slow_mode, PROBLEM, r"slow_mode\(\) does not serve `rule` = Committee"),
        (mp.steady_state, PROBLEM, "no method has the steady state of `rule` = Committee"),
        (mp.effective_data, PROBLEM, "`alpha` = 2"),
        (lambda p: mp.activations(p, 1.0), PROBLEM, r"activations\(\) does not serve `rule`"),
        (
            lambda p: mp.activations(p, 1.0, source="simulation"),
            PROBLEM,
            r"activations\(\) does not serve `rule`",
        ),
        (lambda p: mp.cavity_experiment(p, [1.0]), PROBLEM, "does not serve `rule`"),
        (
            lambda p: mp.solve(p, [1], mp.Simulation(n=3)),
            PROBLEM,
            "`n` = 3 has no room for 4 hidden units",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            verb(problem, *([[1.0]] if verb is mp.effective_data else []))


def test_divergence_is_told():
    linear = PROBLEM.replace(rule=mp.Committee(2, "linear"), rate=30.0)
    found = mp.solve(linear, [0.5, 30.0], mp.Simulation(n=50, samples=3))
    assert found.diverged[-1] == 3
    assert np.isinf(found.Q[-1]).all()
    assert np.isinf(mp.solve(linear.replace(alpha=math.inf), [60.0]).Eg[0])


def test_from_the_command_line(tmp_path, capsys):
    line = "--rule committee --task regression --teacher-hidden 2 --rate 1 --times 1,2"
    flags = line.split()
    start = ["--start", "0.2,0;0,0.2/0.25,0;0,0.25"]
    cli.main(["solve", *flags, "--alpha", "inf", *start, "--out", str(tmp_path / "x.nc")])
    shown = capsys.readouterr().out.split()
    assert shown[:5] == ["t", "R11", "R12", "R21", "R22"]
    expected = mp.solve(PROBLEM.replace(alpha=math.inf), [1, 2])
    assert mp.load(tmp_path / "x.nc").equals(expected)
    line = "--hidden 3 --second 1,0.5,0.7 --second-rate 0.3 --teacher-second 1,1.5"
    more = line.split()
    plan = tmp_path / "p.toml"
    plan.write_text(
        'rate = 1.0\ndecay = 0.05\ndata = { alpha = inf, task = "regression", noise = 0.2, '
        'hidden = 2 }\nrule = "committee"\n[start]\nR = [[0.1, 0], [0, 0.1], [-0.1, 0.05]]\n'
        "Q = [[0.27, 0.02, 0.02], [0.02, 0.27, 0.02], [0.02, 0.02, 0.27]]\n"
    )
    overlaps = ["--overlaps", "1,0.3;0.3,1", "--times", "1", "--out", str(tmp_path / "y.nc")]
    cli.main(["solve", str(plan), *more, *overlaps])
    assert mp.problem_of(mp.load(tmp_path / "y.nc")) == varied()
    capsys.readouterr()
    for wrong, said in (
        ([*flags, "--alpha", "2"], "a Committee needs a --start"),
        ([*flags, "--alpha", "2", "--start", "1;2/x"], "two tables R/Q"),
        ([*flags, "--alpha", "2", *start, "--hidden", "3"], "--start has R of 2×2"),
        (["--data", "x.csv", "--teacher-hidden", "2"], "--teacher-hidden"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(["solve", *wrong])
        told = capsys.readouterr().err
        assert stop.value.code == 2
        assert said in told
        assert told.count("\n") == 1


def test_sweeps(tmp_path):
    problem = varied()
    grid = mp.Grid(problem, rate=[0.5, 1.0], second_rate=[0.0, 0.3])
    found = mp.sweep(grid, times=[1.0, 2.0], out=tmp_path / "out", executor=ThreadPoolExecutor(1))
    assert found.R.dims == ("rate", "second_rate", "t", "unit", "teacher")
    one = mp.solve(problem, [1.0, 2.0])
    np.testing.assert_allclose(found.R.sel(rate=1.0, second_rate=0.3), one.R)
    assert (found.a.sel(second_rate=0.0) == np.array([1, 0.5, 0.7])).all()
    starts = [problem.start, mp.Start(R=0.1 * np.eye(3, 2), Q=0.25 * np.eye(3))]
    again = mp.sweep(mp.Grid(problem, start=starts), times=[1.0], executor=ThreadPoolExecutor(1))
    assert again.sizes["start"] == 2


def test_a_symmetric_start_never_specialises_and_says_so():
    for R, said in (
        (np.zeros((2, 2)), "units 1 and 2 alike"),
        (np.full((2, 2), 0.1), "units 1 and 2 alike"),
        ([[0.1, 0.1], [0.2, 0.2]], "units 1 and 2 of the teacher alike"),
    ):
        problem = PROBLEM.replace(alpha=math.inf, start=mp.Start(R=R, Q=0.25 * EYE))
        with pytest.warns(UserWarning, match=said):
            found = mp.solve(problem, [200.0])
        assert np.abs(np.diff(found.R.values, axis=2)).max() < 1e-6
        with pytest.raises(ValueError, match=f"{said}.*`n` gives starts"):
            mp.specialization(problem, [1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mp.solve(PROBLEM.replace(alpha=math.inf), [1.0])


@pytest.mark.physics
def test_finite_networks_leave_the_plateau_as_predicted():
    problem, t = PROBLEM.replace(alpha=math.inf, rate=1.5), np.arange(0.0, 141.0, 2.0)
    n, draws = 200, 40
    theory = mp.specialization(problem, t, n=n, draws=draws)
    runs = mp.specialization(problem, t, mp.Simulation(n=n, samples=1), n=n, draws=draws)
    error = math.hypot(theory.time_se.item(), runs.time_se.item())
    assert error < 6  # of some forty
    assert abs(theory.time.item() - runs.time.item()) < 2.5 * error


@pytest.mark.physics
def test_the_plateau_ends_later_in_larger_networks():
    """By τ/2 log n: a tenth of the asymmetry takes as much longer from n to 100 n as to 10⁴ n."""
    problem, t = PROBLEM.replace(alpha=math.inf, rate=2.0), np.linspace(0, 200, 101)
    ends = [
        mp.specialization(problem, t, n=n, draws=2, seed=1).time.item()
        for n in (10**3, 10**5, 10**7)
    ]
    assert ends[0] + 10 < ends[1] < ends[2] - 10 < 190
    assert ends[2] - ends[1] == pytest.approx(ends[1] - ends[0], rel=0.25)


def test_chance_of_what_diverges_is_told():
    rule, t = mp.Committee(2, "relu"), np.linspace(0, 40, 9)
    problem = PROBLEM.replace(alpha=math.inf, rate=3.0, rule=rule)
    R, Q = chance.curves(problem, Fields(Net.of(problem), 256), t, 50, np.random.default_rng(0))
    assert np.isfinite(R[0]).all()
    assert np.isinf(Q[-1]).all()
    assert math.isinf(mp.specialization(problem, t, n=50, draws=1).time.item())


@pytest.mark.physics
def test_chance_on_the_way_is_that_of_networks():
    """Scatter of R and Q over networks; noise at the end of its step would make it 15 % larger."""
    problem = PROBLEM.replace(
        alpha=math.inf,
        noise=0.3,
        rate=1.5,
        decay=0.1,
        start=mp.Start(R=[[0.2, 0.05], [0.0, 0.15]], Q=0.25 * EYE),
    )
    t, n, count = np.array([0.5, 2.0]), 300, 800
    runs = mp.solve(problem, t, mp.Simulation(n=n, samples=count, seed=3))
    rng, fields = np.random.default_rng(0), Fields(Net.of(problem))
    drawn = [chance.curves(problem, fields, t, n, rng) for _ in range(count)]
    for name, values_of in zip("RQ", zip(*drawn, strict=True), strict=True):
        scatter = np.std(values_of, axis=0)
        ratio = runs[f"{name}_se"].values * math.sqrt(count) / scatter
        assert np.abs(ratio - 1).max() < 0.1
        assert abs(ratio.mean() - 1) < 0.05


def test_the_plateau_of_networks_is_the_one_that_is_predicted():
    problem = PROBLEM.replace(rate=2.0, start=mp.Start(R=[[0.15, 0.05], [0.05, 0.1]], Q=0.25 * EYE))
    t = np.linspace(0, 30, 31)
    fresh = mp.specialization(problem, t, alpha=[math.inf])
    runs = mp.specialization(problem, t, mp.Simulation(n=300, samples=12), alpha=[math.inf])
    assert 0 < fresh.time.item() < 30
    assert runs.time.item() == pytest.approx(fresh.time.item(), rel=0.15)
    np.testing.assert_allclose(runs.specialization, fresh.specialization, atol=0.12)
    recycled = mp.specialization(problem, t, mp.Simulation(n=300, samples=12), alpha=[4.0])
    assert recycled.time.item() > 1.1 * runs.time.item()
    for wrong, said in (
        (mp.Problem(mp.Teacher(1.0), mp.Adaline(), rate=1.0), "must have a Committee"),
        (problem.replace(rule=mp.Committee(1), start=mp.Start([[0.1, 0]], [[1]])), "one hidden"),
    ):
        with pytest.raises(ValueError, match=said):
            mp.specialization(wrong, t)
    with pytest.raises(ValueError, match=r"`n` = 100 is not that of `method` Simulation\(n=300\)"):
        mp.specialization(problem, t, mp.Simulation(n=300), n=100)


def test_pictures_show_units_as_colours_and_teachers_as_dashes():
    theory = mp.solve(varied(), np.linspace(0, 4, 9))
    runs = mp.solve(varied(), [1.0, 4.0], mp.Simulation(n=40, samples=4))
    ax = mp.plot.curves(theory, runs, variables=["R"])
    shown = [line for line in ax.lines if len(line.get_xdata()) == 9]
    assert len(shown) == 6
    assert len({line.get_color() for line in shown}) == 3
    assert len({str(line.get_linestyle()) for line in shown}) == 2
    labels = ax.get_legend_handles_labels()[1]
    assert {"unit 1", "unit 2", "unit 3", "teacher 1", "teacher 2"} <= {*labels}
    assert ax.get_ylabel() == "$R(t)$"
    figure = mp.plot.overview(theory, runs)
    assert len(figure.axes) == 2
    assert mp.plot.curves(theory, variables=["Q", "a"]) is not None


@pytest.mark.parametrize("change", [{"hidden": 3}, {"activation": "relu"}, {"second": [1.0, 2.0]}])
def test_whose_a_field_of_both_networks_is_must_be_said(change):
    (name,) = change
    with pytest.raises(ValueError, match=f"`{name}` is one of the student's and of the teacher's"):
        PROBLEM.replace(**change)
    with pytest.raises(ValueError, match=f"`{name}` is one of the student's and of the teacher's"):
        mp.Grid(PROBLEM, **{name: [*change.values()]})


def test_one_random_start_has_no_error_bar():
    found = mp.specialization(PROBLEM.replace(alpha=math.inf), [0.0, 1.0, 2.0], n=100, draws=1)
    assert np.isnan(found.time_se).all()
    assert not mp.specialization(PROBLEM.replace(alpha=math.inf), [0.0, 1.0]).time_se.any()


def test_one_unit_is_told_that_it_may_begin_with_nothing():
    with pytest.raises(ValueError, match=r"J = 0, Start\(R=\[\[0.0\]\], Q=\[\[0.0\]\]\)"):
        mp.Problem(mp.Teacher(2.0, "regression"), mp.Committee(1), rate=0.5)
    start = mp.Start(R=[[0.0]], Q=[[0.0]])
    mp.Problem(mp.Teacher(2.0, "regression"), mp.Committee(1), rate=0.5, start=start)
