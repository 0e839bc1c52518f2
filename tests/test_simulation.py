"""The simulator: the dynamics step by step, its bookkeeping, and what it refuses."""

import math
import warnings

import numpy as np
import pytest
from every_rule import RULES
from numpy.testing import assert_allclose

import manypass as mp
from manypass import forces
from manypass.ensemble import Average
from manypass.problem import SEQUENCES
from manypass.simulation import batch, kernels, network
from manypass.simulation.examples import Examples, drawing

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)


def learner(problem, n=20, dtype=float, seed=0):
    examples = Examples.draw(problem.data, n, np.random.default_rng(seed), np.dtype(dtype))
    force = kernels.compiled_force(problem.rule)
    draws, noise = np.random.default_rng(seed + 1), np.random.default_rng(seed + 2)
    return network.Learner(problem, examples, force, draws, noise)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_every_step_is_the_definition(rule, task, temperature):
    problem = mp.Problem(
        mp.Teacher(alpha=1.2, task=task, noise=0.2),
        rule,
        rate=0.7,
        decay=0.5,
        temperature=temperature,
    )
    fast, n = learner(problem), 20
    sequence, offsets = fast.plan(300)
    total = np.zeros(n)
    fast.learn(sequence, offsets, total)
    J, summed = np.zeros(n), np.zeros(n)
    for s, mu in enumerate(sequence):
        xi = fast.examples.X[mu]
        F = rule.force(J @ xi, fast.examples.targets[mu])
        J = J + 0.7 / n * (F * xi - 0.5 * J)
        if temperature:
            start = abs(offsets[s])
            J = J + np.sign(offsets[s]) * fast.pool[start : start + n]
        summed += J
    assert_allclose(fast.J, J, rtol=1e-10, atol=1e-12)
    assert_allclose(total, summed, rtol=1e-10, atol=1e-10)


def test_learning_in_pieces_is_learning_at_once():
    one, two = learner(PROBLEM), learner(PROBLEM)
    one.advance(3.0)
    for t in (0.1, 1.0, 1.0, 2.95, 3.0):
        two.advance(t)
    # The pieces draw the same examples: numpy's generator does not care how they are asked for.
    assert_allclose(one.J, two.J, rtol=1e-10)


def test_strong_decay_does_not_underflow():
    problem = PROBLEM.replace(decay=15.0)
    net = learner(problem)
    sequence, offsets = net.plan(2000)
    net.learn(sequence, offsets, net.nothing)
    J = np.zeros(20)
    for mu in sequence:
        xi = net.examples.X[mu]
        J = J + 1 / 20 * ((net.examples.targets[mu] - J @ xi) * xi - 15 * J)
    assert_allclose(net.J, J, rtol=1e-9)


@pytest.mark.physics
def test_noise_has_the_variance_of_the_temperature():
    """Pure diffusion: |J|² = 2Tt."""
    silent = mp.Adatron(kappa=-1e3)  # no activation is as wrong as that
    problem = mp.Problem(mp.Teacher(alpha=1.0), silent, rate=1.0, temperature=0.3)
    for mode in ("online", "batch"):
        data = mp.solve(
            problem.replace(mode=mode),
            [0.5, 2.0],
            mp.Simulation(n=100, samples=240, seed=1),
            two_time=True,
        )
        z = (data.C.values - 0.6 * np.array([[0.5, 0.5], [0.5, 2.0]])) / data.C_se.values
        assert np.abs(z).max() < 3.5, (mode, z)
        assert (data.Q_se / data.Q < 0.01).all()


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences(kind):
    take = drawing(kind, 7, np.random.default_rng(0))
    drawn = np.concatenate([take(5), take(16), take(0), take(700 * 7 - 21)]).reshape(700, 7)
    whole = (np.sort(drawn, axis=1) == np.arange(7)).all(axis=1)
    if kind == "replacement":
        assert whole.mean() < 0.1
        assert np.abs(np.bincount(drawn.ravel()) - 700).max() < 5 * math.sqrt(700)
    else:
        assert whole.all()
        repeats = (drawn[1:] == drawn[:-1]).all(axis=1)
        assert repeats.all() if kind == "fixed" else repeats.mean() < 0.02


@pytest.mark.physics
def test_shuffling_helps_late_in_learning():
    """Without replacement the noise of the sequence averages out within a pass."""
    problem = PROBLEM.replace(alpha=2.0, task="regression", noise=0.5, decay=0.0, rate=0.5)
    Eg = {}
    for kind in SEQUENCES:
        method = mp.Simulation(n=100, samples=1000, seed=2)
        found = mp.solve(problem.replace(sequence=kind), [12.0], method)
        Eg[kind] = found.Eg.item(), found.Eg_se.item()
    with_replacement, error = Eg["replacement"]
    for kind in ("reshuffled", "fixed"):
        assert with_replacement - Eg[kind][0] > 4 * math.hypot(error, Eg[kind][1]), kind


@pytest.mark.parametrize("mode", ["online", "batch"])
def test_same_seed_same_numbers_on_any_number_of_threads(mode):
    problem = PROBLEM.replace(mode=mode, temperature=0.1)
    runs = [
        mp.solve(
            problem, [0.5, 2], mp.Simulation(n=60, samples=30, seed=5, threads=k), two_time=True
        )
        for k in (1, 2, 5)
    ]
    for other in runs[1:]:
        assert all((runs[0][name].values == other[name].values).all() for name in runs[0])
    fresh = mp.solve(problem, [0.5, 2], mp.Simulation(n=60, samples=30, seed=6))
    assert (fresh.R.values != runs[0].R.values).all()


def test_measurements_are_the_definitions():
    problem = PROBLEM.replace(task="regression", noise=0.3)
    method = mp.Simulation(n=50, samples=1, seed=3)
    found = mp.solve(problem, [0.0, 1.0, 2.0], method, two_time=True)
    data, draws, noise, _ = np.random.SeedSequence(3, spawn_key=(0,)).spawn(4)
    examples = Examples.draw(problem.data, 50, np.random.default_rng(data), np.dtype(float))
    net = network.Learner(
        problem,
        examples,
        kernels.compiled_force(problem.rule),
        np.random.default_rng(draws),
        np.random.default_rng(noise),
    )
    net.advance(1.0)
    J1 = net.J.copy()
    net.advance(2.0)
    x = examples.X @ net.J
    assert_allclose(found.R[2], net.J @ examples.B)
    assert_allclose(found.Q[2], net.J @ net.J)
    assert_allclose(found.C[2, 1], net.J @ J1)
    assert_allclose(found.F2[2], np.mean((examples.targets - x) ** 2))
    assert_allclose(found.Et[2], 0.5 * found.F2[2])
    assert_allclose(found.Eg[2], 0.5 * np.sum((net.J - examples.B) ** 2))
    assert np.isnan(found.R_se).all()  # one sample has no error bar


def test_training_error_counts_wrong_signs_and_half_of_the_undecided():
    force = kernels.compiled_force(mp.Adatron(kappa=1.0))
    x = np.array([[0.0, 2.0], [0.0, -0.5], [0.0, -3.0], [0.0, 0.5]])
    F2, Et = kernels.measure(force, (1.0,), x, np.array([1.0, 1.0, -1.0, -1.0]), True)
    assert_allclose(Et, [0.5, 0.5])
    assert_allclose(F2, [1.0, (0 + 1.5**2 + 0 + 1.5**2) / 4])


@pytest.mark.physics
def test_single_precision_gives_the_same_physics():
    times, settings = [0.5, 2.0], {"n": 200, "samples": 400}
    double = mp.solve(PROBLEM, times, mp.Simulation(**settings, seed=1))
    single = mp.solve(PROBLEM, times, mp.Simulation(**settings, seed=2, precision="float32"))
    for name in ("R", "Q", "F2", "Eg", "Et"):
        z = (single[name] - double[name]) / np.hypot(single[f"{name}_se"], double[f"{name}_se"])
        assert np.abs(z).max() < 3.5, (name, z.values)


def test_welford():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((50, 3)) + 1e6
    average = Average()
    for value in values:
        average.add({"x": value})
    out = average.results()
    assert_allclose(out["x"], values.mean(axis=0), rtol=1e-14)
    assert_allclose(out["x_se"], values.std(axis=0, ddof=1) / math.sqrt(50), rtol=1e-6)


def test_the_scatter_of_huge_values_is_infinite():
    average = Average()
    for Q in (1e190, 3e190):
        average.add({"Q": np.array([Q, 1.0])})
    found = average.results()
    assert found["Q"].tolist() == [2e190, 1.0]
    assert found["Q_se"].tolist() == [np.inf, 0.0]


def test_divergence_is_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mp.solve(
            PROBLEM.replace(rate=6.0),
            [0.5, 5.0, 100.0],
            mp.Simulation(n=50, samples=20),
            two_time=True,
        )
    assert found.diverged.values.tolist() == [0, 0, 20]
    for name in ("R", "Q", "F2"):
        assert np.isfinite(found[name][:2]).all()
        assert np.isinf(found[name][2])
    assert np.isinf(found.C[2, 0])
    assert found.Eg[2] == 0.5
    with pytest.raises(mp.NotSettledError, match="diverged in all 4 networks") as told:
        mp.steady_state(
            PROBLEM.replace(rate=6.0), mp.Simulation(n=50, samples=4, settle=200), window=1
        )
    assert np.isinf(told.value.result.Q)
    assert int(told.value.result.diverged) == 4


@pytest.mark.physics
def test_batch_steps_are_small_enough(monkeypatch):
    for temperature, largest in ((0.0, 1e-4), (0.2, 2e-3)):
        problem = mp.Problem(
            mp.Teacher(alpha=0.8),
            mp.Adatron(kappa=1.0),
            rate=1.0,
            decay=0.1,
            temperature=temperature,
            mode="batch",
        )
        method = mp.Simulation(n=100, samples=300 if temperature else 20, seed=1)
        usual = mp.solve(problem, [0.5, 3.0], method)
        monkeypatch.setattr(batch, "STEP", batch.STEP / 2)
        monkeypatch.setattr(batch, "NOISY_STEP", batch.NOISY_STEP / 2)
        halved = mp.solve(problem, [0.5, 3.0], method)
        monkeypatch.undo()
        for name in ("R", "Q", "F2"):
            scatter = 3.5 * np.hypot(usual[f"{name}_se"], halved[f"{name}_se"]) * (temperature > 0)
            gap = np.abs(usual[name] - halved[name]) - scatter
            assert (gap / usual[name] < largest).all(), name


def test_measured_response_of_hebbian_learning_is_its_decay():
    problem = PROBLEM.replace(rule=mp.Hebbian())
    method = mp.Simulation(n=100, samples=2, seed=0, response=True)
    G = mp.solve(problem, [0.5, 1.0, 2.0], method, two_time=True).G.values
    steps = 100 * np.array([[0, 0, 0], [0.5, 0, 0], [1.5, 1, 0]])
    assert_allclose(G, np.tril((1 - 0.8 / 100) ** steps), atol=1e-8)


@pytest.mark.physics
@pytest.mark.parametrize("mode", ["online", "batch"])
def test_measured_response_of_adaline_is_the_exact_one(mode):
    problem = PROBLEM.replace(mode=mode, temperature=0.1)
    times = [0.3, 1.0, 2.0]
    exact = mp.solve(problem, times, two_time=True).G.values
    found = [
        mp.solve(
            problem, times, mp.Simulation(n=n, samples=1400, seed=4, response=True), two_time=True
        )
        for n in (60, 120)
    ]
    lower = np.tril_indices(3, -1)
    G = 2 * found[1].G.values[lower] - found[0].G.values[lower]
    error = np.hypot(2 * found[1].G_se.values[lower], found[0].G_se.values[lower])
    assert np.abs((G - exact[lower]) / error).max() < 3.5
    assert (3.5 * error < 0.03 * np.maximum(exact[lower], 0.2)).all()


@pytest.mark.physics
@pytest.mark.parametrize("window", [0.0, 2.0, 10.0])
def test_averaged_weights_in_the_steady_state(window):
    problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Adaline(), rate=1.0, decay=0.2, temperature=0.05)
    exact = mp.steady_state(problem, window=window)
    small, large = (
        mp.steady_state(
            problem, mp.Simulation(n=n, samples=500, seed=7, settle=15.0), window=window
        )
        for n in (75, 150)
    )
    for name in ("R", "Q", "F2", "Eg"):
        mean = 2 * float(large[name]) - float(small[name])
        error = math.hypot(2 * float(large[f"{name}_se"]), float(small[f"{name}_se"]))
        assert abs(mean - float(exact[name])) < 3.5 * error, name
        assert 3.5 * error < 0.04 * float(exact[name]), name


def test_windows_shorter_than_a_step_are_no_windows():
    method = mp.Simulation(n=100, samples=20, seed=1, settle=10.0)
    plain = mp.steady_state(PROBLEM, method)
    for window in (0.001, 0.004):
        assert float(mp.steady_state(PROBLEM, method, window=window).Q) == float(plain.Q)
    for window in (0.006, 0.013):
        short = mp.steady_state(PROBLEM, method, window=window)
        assert float(short.Q) == pytest.approx(float(plain.Q), rel=0.1)


def test_the_perceptron_starts_to_learn():
    problem = PROBLEM.replace(rule=mp.Perceptron(), decay=0.0)
    assert mp.solve(problem, [2.0], mp.Simulation(n=100, samples=10)).R.item() > 0.2


def test_a_force_that_jumps_at_nought_never_starts_finite_networks():
    few, rule = mp.Simulation(n=20, samples=2), mp.Rule(lambda x, y: np.where(x > 0, y, -x))
    with pytest.warns(UserWarning, match=r"stay at J = 0, .*: F\(0, target\) = 0, though F\(1e-12"):
        assert mp.solve(PROBLEM.replace(rule=rule), [1.0], few).Q == 0
    for moved in ({"temperature": 0.1}, {"start": mp.Start(0.1, 1.0)}):
        assert mp.solve(PROBLEM.replace(rule=rule, **moved), [1.0], few).Q > 0


@pytest.mark.parametrize(
    ("force", "jumps"),
    [
        (lambda x, y: y * (x * y < 0), True),
        (lambda x, y: 1 / x if x else 0.0, True),
        (lambda x, y: y * (x * y <= 0), False),
        (lambda x, y: x * (y - x), False),
        (lambda x, y: 1e9 * np.sin(x), False),
        (lambda x, y: max(-y * x, 0.0) ** 0.2, False),
    ],
)
def test_only_forces_that_jump_at_nought_are_stuck(force, jumps):
    assert (forces.stuck(force, ()) is not None) == jumps


def test_steps_of_batch_learning_are_small_for_a_force_with_a_jump():
    problem = PROBLEM.replace(rule=mp.Perceptron(kappa=0.5), decay=0.0, mode="batch")
    method = mp.Simulation(n=100, samples=4)
    few = mp.solve(problem, [5.0], method)
    many = mp.solve(problem, np.linspace(0.005, 5, 1000), method)
    assert few.Q.item() == pytest.approx(many.Q.values[-1], rel=0.01)


ADATRON = mp.Problem(mp.Teacher(alpha=0.3), mp.Adatron(kappa=0.8), rate=0.1, decay=0.1)


@pytest.mark.physics
def test_cavity_experiment_predicts_h_from_x():
    """The paper's Fig. 1: residuals are small against x − h, and shrink with N."""
    times = np.linspace(0, 3, 31)
    found = {
        n: [mp.cavity_experiment(ADATRON, times, n=n, seed=seed) for seed in range(12)]
        for n in (250, 1000)
    }
    residual = {
        n: np.mean([run.attrs["residual"] ** 2 for run in runs]) ** 0.5 for n, runs in found.items()
    }
    shift = np.mean([float(((run.x - run.h) ** 2).mean()) for run in found[1000]]) ** 0.5
    assert residual[1000] < 0.12 * shift
    assert residual[1000] < 0.65 * residual[250]  # 1/√N would be 0.5
    draws = [run.instant.size for run in found[1000]]
    assert 7 < np.mean(draws) < 13  # Poisson with mean t/α = 10


def test_cavity_experiment_boosts_the_example_at_its_learning_instants():
    run = mp.cavity_experiment(ADATRON, np.arange(0, 3001) / 1000, n=1000, seed=3, stimuli=1)
    instants = np.rint(run.instant.values * 1000).astype(int)
    jumps = np.diff(run.x.values)
    boost = 0.1 * run.F.values  # v F ξ²/N, |ξ|² ≈ N
    assert_allclose(jumps[instants], boost, rtol=0.15)
    others = np.delete(jumps, instants)
    assert np.abs(others).max() < 0.3 * np.abs(boost).max()
    assert run.attrs["target"] in (-1.0, 1.0)
    assert mp.problem_of(run) == ADATRON


def test_cavity_relation_is_exact_for_hebbian_learning_but_for_the_length_of_the_example():
    problem = ADATRON.replace(rule=mp.Hebbian(), temperature=0.1)
    run = mp.cavity_experiment(problem, [1.0, 3.0], n=500, seed=1, stimuli=1)
    shift = (run.x - run.h).values
    assert_allclose((run.x - run.h_predicted).values, shift, rtol=0.2)


def test_cavity_experiments_that_make_no_sense():
    with pytest.raises(ValueError, match="rate·decay below `n` = 100"):
        mp.cavity_experiment(ADATRON.replace(rate=1000.0, decay=0.8), [1.0], n=100)
    with pytest.raises(ValueError, match="makes the network diverge"):
        mp.cavity_experiment(ADATRON.replace(rule=mp.Adaline(), rate=100.0), [1.0, 20.0], n=100)
    with pytest.raises(ValueError, match="GB of memory"):
        mp.cavity_experiment(ADATRON, [1.0], n=10**6)


BAD = [
    ({"n": 0}, "`n` must be a whole number from 1"),
    ({"n": 10.5}, "`n`"),
    ({"samples": 0}, "`samples` must be a whole number from 1"),
    ({"samples": True}, "`samples`"),
    ({"seed": -1}, "`seed`"),
    ({"sequence": "sorted"}, "`sequence` must be one of 'replacement', 'reshuffled', 'fixed'"),
    ({"precision": "float16"}, "`precision` must be one of 'float64', 'float32'"),
    ({"settle": -1}, "`settle`"),
    ({"stimulus": 0}, "`stimulus`"),
    ({"threads": 0}, "`threads`"),
    ({"response": True, "precision": "float32"}, "`response` .* needs precision='float64'"),
]


@pytest.mark.parametrize(("settings", "words"), BAD)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        mp.Simulation(**settings)


def test_problems_that_do_not_fit_a_size():
    with pytest.raises(ValueError, match=r"`n` = 3 at `alpha` = 0.1 leaves no example"):
        mp.solve(PROBLEM.replace(alpha=0.1), [1], mp.Simulation(n=3))
    with pytest.raises(ValueError, match="`n` = 10 must exceed rate·decay = 20"):
        mp.solve(PROBLEM.replace(decay=20.0), [1], mp.Simulation(n=10))
    with pytest.raises(ValueError, match=r"needs 9\.6e\+03 GB of memory and .* GB are free: .*`n`"):
        mp.solve(PROBLEM, [1], mp.Simulation(n=10**6))


def uncompilable(x, target):
    return float(str(x)) + len(target)


def nan_for_large(x, target):
    return np.sqrt(0.5 - x * target)


def fails(x, target):
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("force", "words"),
    [
        (uncompilable, r"`force` .*fails at x = 0\.25.*"),
        (nan_for_large, "`force` returned NaN on an example with target"),
        (fails, r"`force` of Rule\(.*\) fails at x = 0.25, target = 1.0: RuntimeError: no"),
        (lambda x, y: np.nan, "`force` of Rule.* is nan at x = 0.25"),
    ],
)
def test_bad_forces(force, words):
    rule = mp.Rule(force=force)
    with pytest.raises(ValueError, match=words):
        mp.solve(PROBLEM.replace(rule=rule, rate=3.0), [5.0], mp.Simulation(n=20, samples=5))


def test_a_force_that_cannot_be_compiled_is_located():
    def force(x, target):
        table = {"a": x}
        return table.popitem()[1] - sorted([target], key=str)[0]

    with pytest.raises(ValueError, match=r"test_simulation\.py.*cannot be compiled"):
        mp.solve(PROBLEM.replace(rule=mp.Rule(force)), [1], mp.Simulation(n=20))


def test_progress_is_shown_on_request(capsys):
    mp.solve(PROBLEM, [0.1], mp.Simulation(n=20, samples=7), progress=True)
    assert "7/7" in capsys.readouterr().err
    mp.solve(PROBLEM, [0.1], mp.Simulation(n=20, samples=7))
    assert capsys.readouterr().err == ""


def test_results_are_saved_with_their_seed(tmp_path):
    found = mp.solve(PROBLEM, [0.5, 1], mp.Simulation(n=20, samples=3, seed=11))
    mp.save(found, tmp_path / "x.nc")
    again = mp.load(tmp_path / "x.nc")
    assert again.attrs["seed"] == 11
    assert "standard error" in again.R_se.attrs["long_name"]
    assert mp.plot.curves(again).lines


def test_progress_is_told_network_by_network():
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, decay=0.1)
    told, method = [], mp.Simulation(n=30, samples=4)
    result = mp.solve(problem, [1, 2], method, progress=told.append)
    assert len(told) == 4
    assert told[-1].identical(result)
    assert result.identical(mp.solve(problem, [1, 2], method))
    few = mp.solve(problem, [1, 2], mp.Simulation(n=30, samples=2))
    np.testing.assert_array_equal(told[1].Q_se, few.Q_se)


@pytest.mark.parametrize(
    ("changes", "samples", "words"),
    [
        ({"rate": 0.05, "decay": 0.1}, 50, "`settle` = 20 is too short .*still grows"),
        ({"rate": 6.0}, 5, "or there is none: Q still grows"),  # above v_c, a few lead by far
        ({"rate": 6.0}, 1, "still grows"),
        ({"mode": "batch", "rate": 0.05, "decay": 0.1}, 5, "still grows"),
    ],
)
def test_a_state_that_is_not_steady_is_told(changes, samples, words):
    with pytest.warns(UserWarning, match=words):
        mp.steady_state(PROBLEM.replace(**changes), mp.Simulation(n=60, samples=samples))


def test_a_data_set_that_is_not_learned_yet_is_told():
    X = np.random.default_rng(0).standard_normal((40, 5))
    problem = mp.Problem(mp.Dataset(X, -X[:, 0], task="regression"), mp.Adaline(), rate=0.05)
    with pytest.warns(UserWarning, match="Q still grows"):
        mp.steady_state(problem, mp.Simulation(samples=20))


@pytest.mark.physics
def test_settled_networks_are_not_said_to_move():
    for seed in range(40):
        mp.steady_state(PROBLEM, mp.Simulation(n=20, samples=3 + seed, seed=seed))
