"""The effective single example: lookups, identities, and training errors against simulation."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

import manypass as mp
from manypass.cavity import examples, sampling, tables
from manypass.ensemble import cores
from manypass.exact.training_error import gaussian_errors
from manypass.simulation.kernels import compiled_force

FIG2 = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)


ADALINE = (mp.Adaline(),)


def problems(count, seed, rules=ADALINE, tasks=("classification",)):
    rng = np.random.default_rng(seed)
    for i in range(count):
        data = mp.Teacher(
            alpha=(0.5, 0.8, 1.5, 3.0)[i % 4],
            task=tasks[(i // 2) % len(tasks)],
            noise=(0.0, 0.4)[(i // 4) % 2],
        )
        problem = mp.Problem(
            data,
            rules[i % len(rules)],
            rate=1.0,
            decay=float(rng.uniform(0.1, 1.0)),
            temperature=(0.0, 0.1)[i % 3 == 0],
        )
        limit = mp.critical_rate(problem)
        limit = limit if math.isfinite(limit) else 2.0
        yield problem.replace(rate=float((0.2, 0.5, 0.7, 0.9)[(i + i // 4) % 4] * limit))


@pytest.mark.parametrize("problem", [FIG2, FIG2.replace(alpha=0.3, temperature=0.2, rate=0.5)])
def test_lookups_are_far_more_accurate_than_sampling(problem):
    table = tables.exact_tables(problem, 0.0, 5.0)
    t = np.sort(np.random.default_rng(0).uniform(0, 5, 60))
    t[-1] = 5.0
    found = mp.solve(problem, t, two_time=True)
    p = t / table.step
    for i in range(60):
        assert abs(tables.look_up_1(table.R, p[i]) - found.R[i]) < 2e-5
        for j in range(i + 1):
            for name, values in (("C", table.C), ("G", table.G)):
                looked_up = tables.look_up_2(values, p[j], p[i] - p[j])
                assert abs(looked_up - found[name].values[i, j]) < 2e-5


def test_lookups_in_a_result_reach_its_very_edge():
    """A cubic polynomial in each variable is interpolated exactly, at the corners too."""
    t = np.linspace(0, 2, 12)
    values = np.tril((1 + t[:, None] ** 2) * (2 - t) + (t[:, None] - t) ** 3)
    by_lag = tables.by_lag(values)
    step = t[1]
    for later in (0.0, 0.3, 1.0, 1.93, 2.0):
        for earlier in (0.0, 0.1, 0.7, 1.9, 2.0):
            if earlier <= later:
                exact = (1 + later**2) * (2 - earlier) + (later - earlier) ** 3
                found = tables.look_up_2(by_lag, earlier / step, (later - earlier) / step)
                assert found == pytest.approx(exact, rel=1e-10)


IDENTITY = list(problems(8, seed=1))


# Small rates and late times have many instants: seconds; what comes late is steady.
IDENTITIES = [
    pytest.param(
        problem,
        time,
        id=f"a{problem.data.alpha}-v{problem.rate:.2g}-{time}",
        marks=pytest.mark.physics if time == 40 or (problem.rate < 1 and time > 2) else (),
    )
    for problem in IDENTITY
    for time in (0.3, 2.0, 40.0, math.inf)
]


@pytest.mark.parametrize(("problem", "time"), IDENTITIES)
def test_sampled_force_fluctuation_is_F2(problem, time):
    """⟨(ỹ − x)²⟩ over sampled examples closes the circle: theory in, theory out."""
    memory = sampling.Memory(problem, time)
    samples = 24_000 if problem.rate < 1 else 60_000  # small rates: more instants, less scatter
    found = sampling.adaline_moments(problem, memory, time, samples, None, 3)
    exact = mp.steady_state(problem) if math.isinf(time) else mp.solve(problem, [time]).isel(t=0)
    assert abs(found["F2"] - float(exact.F2)) < 3.5 * found["F2_se"]
    assert 3.5 * found["F2_se"] < 0.02 * float(exact.F2)
    assert memory.moved < sampling.MOVED


TRAINING = [
    *problems(8, seed=2),
    *problems(4, seed=3, rules=(mp.Hebbian(),)),
    *problems(4, seed=4, rules=(mp.Adaline(), mp.Hebbian()), tasks=("regression",)),
    FIG2.replace(mode="batch", noise=0.3, rate=0.8),
    FIG2.replace(mode="batch", rule=mp.Hebbian(), rate=0.8),
]


@pytest.mark.physics
def test_training_error_equals_simulation():
    scores, two_percent = [], []
    for i, problem in enumerate(TRAINING):
        times = [0.5, 2.0]
        theory = mp.solve(problem, times, mp.Exact(samples=200_000, seed=i))
        small, large = (
            mp.solve(problem, times, mp.Simulation(n=n, samples=900, seed=i)) for n in (100, 200)
        )
        mean = (2 * large.Et - small.Et).values
        error = np.sqrt(4 * large.Et_se**2 + small.Et_se**2 + theory.Et_se**2).values
        scores.append((mean - theory.Et.values) / error)
        two_percent.append(0.02 * theory.Et.values / error)
    scores = np.array(scores)
    # A 2 % mistake would raise the root mean square of the scores to 1.9 or more.
    assert np.sqrt(1 + np.mean(np.square(two_percent))) > 1.9
    assert len(scores) >= 12
    assert np.abs(scores).max() < 4, scores
    assert abs(scores.mean()) < 0.5
    assert 0.7 < np.sqrt((scores**2).mean()) < 1.4


@pytest.mark.physics
def test_steady_training_error_equals_simulation():
    problem = mp.Problem(mp.Teacher(alpha=0.5), mp.Adaline(), rate=1.2, decay=0.4)
    theory = mp.steady_state(problem, mp.Exact(samples=100_000))
    small, large = (
        mp.steady_state(problem, mp.Simulation(n=n, samples=800, settle=15)) for n in (100, 200)
    )
    mean = 2 * float(large.Et) - float(small.Et)
    error = math.sqrt(4 * float(large.Et_se) ** 2 + float(small.Et_se) ** 2)
    assert abs(mean - float(theory.Et)) < 3.5 * error
    late = mp.solve(problem, [200.0], mp.Exact(samples=100_000, seed=1))
    assert abs(late.Et.item() - float(theory.Et)) < 3.5 * math.hypot(
        late.Et_se.item(), float(theory.Et_se)
    )


@pytest.mark.physics
def test_batch_limit_of_the_sampled_training_error():
    """Small v at fixed vt: many small boosts are the drift of batch learning, up to O(v)."""
    large, small = (
        mp.solve(FIG2.replace(rate=v), [2 / v], mp.Exact(samples=4_000)).isel(t=0)
        for v in (0.04, 0.02)
    )
    batch = mp.solve(FIG2.replace(rate=0.02, mode="batch"), [100.0]).Et.item()
    error = math.hypot(2 * float(small.Et_se), float(large.Et_se))
    assert abs(2 * float(small.Et) - float(large.Et) - batch) < 3.5 * error
    assert 3.5 * error < 0.003


def test_mean_force_training_error_is_batch_for_small_rates_and_too_low_for_large_ones():
    small = FIG2.replace(alpha=0.5, rate=1e-4)
    batch = mp.steady_state(small.replace(mode="batch"))
    assert float(mp.steady_state(small, mp.MeanForce()).Et) == pytest.approx(
        float(batch.Et), abs=1e-3
    )
    large = FIG2.replace(alpha=0.5, rate=2.4)
    exact = mp.steady_state(large, mp.Exact(samples=50_000))
    assert float(mp.steady_state(large, mp.MeanForce()).Et) < float(exact.Et) - 0.02


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_gaussian_errors_by_counting(noise):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(400_000)
    target = np.sign(y + noise * rng.standard_normal(y.size))
    x = 0.4 * y + 0.2 * target + 0.5 * rng.standard_normal(y.size)
    counted = np.mean(target * x < 0)
    data = mp.Teacher(alpha=1.0, noise=noise)
    closed = gaussian_errors(data, np.array([0.4]), np.array([0.2]), np.array([0.25]))[0]
    assert abs(closed - counted) < 3.5 * math.sqrt(counted * (1 - counted) / y.size)


@pytest.mark.parametrize("time", [0.3, 3.0, pytest.param("steady", marks=pytest.mark.physics)])
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_hebbian_closed_forms_equal_samples(time, noise):
    problem = FIG2.replace(rule=mp.Hebbian(), rate=0.7, noise=noise)
    seen = mp.activations(problem, time, samples=225_000, source="exact")  # 2 % of Et
    wrong = np.mean(seen.x.values * seen.target.values < 0)
    exact = mp.steady_state(problem) if time == "steady" else mp.solve(problem, [time]).isel(t=0)
    assert abs(wrong - float(exact.Et)) < 3.5 * math.sqrt(wrong * (1 - wrong) / 225_000)
    x = np.linspace(-12, 14, 2601)
    for y, target in ((0.7, 1.0), (-0.2, -1.0)):
        P = mp.activation_density(problem, time, x, y=y, target=target)
        assert float(P.sum() * 0.01) == pytest.approx(1, abs=1e-6)
        mean = float((P * x).sum() * 0.01)
        pull = (1 - np.exp(-0.7 * 0.8 * (np.inf if time == "steady" else time))) / 0.8 / 1.2
        assert mean == pytest.approx(float(exact.R) * y + target * pull, rel=1e-6)


def test_adaline_density_is_the_distribution_of_samples():
    x = np.linspace(-8, 8, 801)
    P = mp.activation_density(FIG2, 1.0, x, y=0.5, target=1.0, samples=40_000)
    assert float(P.sum() * 0.02) == pytest.approx(1, abs=1e-6)
    memory = sampling.Memory(FIG2, 1.0)
    table, now = memory.tables(1.0)
    draws = examples.Draws.make(FIG2.data, 0.0, now, 40_000, np.random.default_rng(1))
    fixed = draws._replace(y=0 * draws.y + 0.5, target=0 * draws.y + 1)
    normals = np.random.default_rng(2).standard_normal(draws.first[-1] + 40_000)
    from manypass.simulation.kernels import compiled_force

    line = 1.9, now, table.start
    drawn, _ = examples.general(table, line, fixed, normals, compiled_force(FIG2.rule), ())
    cumulated = np.interp(np.sort(drawn), x, np.cumsum(P) * 0.02)
    assert (
        np.abs(cumulated - (np.arange(40_000) + 0.5) / 40_000).max()
        < 1.95 / math.sqrt(40_000) + 0.005
    )


def test_both_ways_of_drawing_adaline_agree():
    seen = mp.activations(FIG2, 2.0, samples=400_000)
    exact = mp.solve(FIG2, [2.0], mp.Exact(samples=400_000)).isel(t=0)
    wrong = np.mean(seen.x.values * seen.target.values < 0)
    error = math.hypot(math.sqrt(wrong * (1 - wrong) / 400_000), float(exact.Et_se))
    assert abs(wrong - float(exact.Et)) < 3.5 * error
    h = seen.h.values
    assert np.mean(h**2) == pytest.approx(float(exact.Q), rel=0.01)
    assert np.mean(h * seen.y.values) == pytest.approx(float(exact.R), rel=0.02)


@pytest.mark.physics
@pytest.mark.parametrize(
    ("alpha", "kappa", "rate", "time"), [(1.0, 1.0, 1.0, 2.0), (0.5, 0.8, 0.5, 3.0)]
)
def test_measured_functions_give_the_measured_distribution(alpha, kappa, rate, time):
    """The paper's consistency check, for Adatron: far from Gaussian, and right."""
    problem = mp.Problem(mp.Teacher(alpha=alpha), mp.Adatron(kappa=kappa), rate=rate, decay=0.1)
    method = mp.Simulation(n=1000, samples=40, seed=1, response=True)
    source = mp.solve(problem, np.linspace(0, time, 31), method, two_time=True)
    theory = mp.activations(problem, time, samples=100_000, source=source)
    data = mp.activations(problem, time, samples=20_000, source=method)
    # Examples of one network share its fluctuations: take few from each.
    stability = (data.x * data.target).values[::7]
    predicted = (theory.x * theory.target).values
    gaussian = np.random.default_rng(0).normal(predicted.mean(), predicted.std(), 100_000)
    assert ks_2samp(predicted, stability).pvalue > 0.01
    assert ks_2samp(gaussian, stability).pvalue < 1e-6


def test_same_seed_same_numbers_and_chunks_do_not_matter(monkeypatch):
    runs = []
    for count in (1, 2, 5):
        monkeypatch.setattr("manypass.cavity.sampling.cores", lambda count=count: count)
        runs.append(mp.solve(FIG2, [1.0], mp.Exact(samples=30_000, seed=4)).Et.item())
    assert runs[0] == runs[1] == runs[2]
    other = mp.solve(FIG2, [1.0], mp.Exact(samples=30_000, seed=5)).Et.item()
    assert other != runs[0]
    assert mp.activations(FIG2, 1.0, samples=20_001).sizes == {"example": 20_001}


def test_threads_are_those_of_the_cores_that_a_process_may_use(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    assert cores() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert cores() == 1


def test_accuracy_instead_of_samples():
    coarse = mp.steady_state(FIG2, mp.Exact(accuracy=2e-3))
    fine = mp.steady_state(FIG2, mp.Exact(accuracy=3e-4))
    assert 3e-4 < float(coarse.Et_se) <= 2e-3
    assert float(fine.Et_se) <= 3e-4
    assert abs(float(fine.Et - coarse.Et)) < 3.5 * float(coarse.Et_se)


def test_training_error_of_adaline_is_left_out_unless_asked_for():
    assert "Et" not in mp.solve(FIG2, [1.0])
    assert mp.solve(FIG2.replace(task="regression"), [1.0]).Et_se.item() == 0
    start = mp.solve(FIG2, [0.0, 1.0], mp.Exact(samples=1000))
    assert start.Et.values[0] == 0.5


def test_hebbian_examples_that_are_learned_often_are_drawn_at_once(monkeypatch):
    """The same numbers as by drawing every h that led to x; that would take hours here."""
    problem = FIG2.replace(rule=mp.Hebbian(), decay=0.1)
    quick = mp.activations(problem, 2.0, samples=200)
    monkeypatch.setattr(
        "manypass.cavity.activations.pulled",
        lambda *given: examples.general(*given, compiled_force(problem.rule), ()),
    )
    slow = mp.activations(problem, 2.0, samples=200)
    np.testing.assert_allclose(quick.x, slow.x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(quick.h, slow.h, rtol=1e-9, atol=1e-9)
    monkeypatch.undo()
    few = problem.replace(alpha=1e-3)
    seen, curve = mp.activations(few, 1.0, samples=4000), mp.solve(few, [1.0])
    assert float((seen.h**2).mean()) == pytest.approx(float(curve.Q[0]), rel=0.1)
    assert seen.learned.mean() == pytest.approx(1000, rel=0.01)


def test_what_would_take_hours_is_refused():
    few = FIG2.replace(alpha=5e-3)
    known = mp.solve(few, np.linspace(0, 5, 11), two_time=True)
    with pytest.raises(
        ValueError, match=r"`samples` = 100000 of .* about 1e.03 times .* at most 9970"
    ):
        mp.activations(few, 5.0, source=known)


def test_densities_at_the_ends_of_what_is_allowed(recwarn):
    points, given = [-1.0, 1.0, 1e300], {"y": 0.5, "target": 1.0, "samples": 200}
    with pytest.raises(ValueError, match=r"`alpha` = 1e-06: .* not random"):
        mp.activation_density(FIG2.replace(alpha=1e-6, rate=1.0, decay=0.1), 1.0, points, **given)
    for rule in (mp.Adaline(), mp.Hebbian()):
        assert mp.activation_density(FIG2.replace(rule=rule), 1.0, points, **given)[-1] == 0
    assert not recwarn.list


@pytest.mark.physics
def test_nearly_singular_covariances_do_not_blow_up(monkeypatch):
    """Small α, all learned: rounding must not pass for noise."""
    problem = mp.Problem(mp.Teacher(alpha=0.05), mp.Adaline(), rate=1.9)
    monkeypatch.setattr(sampling, "PILOT", 128)  # dear with 200 instants, and all are taken anyway
    seen = mp.activations(problem, 10.0, samples=500)
    assert np.abs(seen.x).max() < 3
    assert ((seen.target - seen.x) ** 2).mean() < 1e-4
    for alpha in (0.1, 0.3):
        problem = mp.Problem(mp.Teacher(alpha=alpha), mp.Adaline(), rate=0.8, decay=0.2)
        F2 = (
            mp.activations(problem, 4.0, samples=16_000).pipe(lambda s: (s.target - s.x) ** 2)
        ).values
        exact = mp.solve(problem, [4.0]).F2.item()
        assert abs(F2.mean() - exact) < 3.5 * F2.std() / np.sqrt(F2.size)


def test_hebbian_training_error_is_smooth_in_small_decays_and_small_alphas():
    problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Hebbian(), rate=1.0)
    plain = mp.solve(problem, [3.0]).Et.item()
    for decay in (1e-12, 1e-9, 1e-6):
        assert mp.solve(problem.replace(decay=decay), [3.0]).Et.item() == pytest.approx(
            plain, rel=1e-4
        )
    steady = [float(mp.steady_state(problem.replace(decay=d)).Et) for d in (1e-10, 1e-8, 1e-6)]
    assert steady == pytest.approx([steady[0]] * 3, rel=1e-3)
    for alpha in (1e-3, 1e-5):
        assert mp.solve(problem.replace(alpha=alpha, mode="batch"), [1.0]).Et.item() < 1e-9
    P = mp.activation_density(problem.replace(decay=0.8), 2.0, [2000.0, 1e6], y=0.7, target=1.0)
    assert (P == 0).all()


def test_hebbian_training_error_by_brute_force():
    """Adaptive quadrature of both integrals gave this number."""
    problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Hebbian(), rate=1.0, decay=0.5)
    assert mp.solve(problem, [2.0]).Et.item() == pytest.approx(0.1516988846, abs=1e-10)


def test_plot_of_activations():
    theory = mp.activations(FIG2, 2.0, samples=5000)
    data = mp.activations(FIG2, 2.0, samples=2000, source=mp.Simulation(n=100))
    ax = mp.plot.activations(theory, data)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 6
    with pytest.raises(ValueError, match="`results`"):
        mp.plot.activations(mp.solve(FIG2, [1.0]))


BAD = [
    ({"time": 0}, "`time` must be a number"),
    ({"time": "late"}, "`time` must be a number or 'steady', got 'late'"),
    ({"samples": 0}, "`samples`"),
    ({"seed": 1.5}, "`seed`"),
    ({"source": "magic"}, "`source` must be one of 'exact', 'simulation', 'dmft', got 'magic'"),
    ({"source": 3}, "`source` must be 'exact', a DMFT, a Simulation, or a result"),
    ({"source": "two"}, "two_time=True"),
    ({"source": mp.Simulation}, "`source` must be 'exact', a DMFT, a Simulation, or a result"),
    ({"source": "short", "problem": FIG2.replace(rate=1.0)}, "answers another problem"),
    ({"source": "few"}, "`source` must be given at 8 or more evenly spaced times from 0"),
    ({"source": "short", "time": 3.0}, "`time` must be within `source`, up to 2, got 3"),
    ({"problem": FIG2.replace(rule=mp.Logistic())}, "'exact' serves Adaline and Hebbian"),
    ({"problem": FIG2.replace(mode="batch")}, "`mode` must be 'online'"),
    ({"problem": FIG2.replace(rate=4.0), "time": "steady"}, "critical rate v_c"),
    (
        {"problem": FIG2.replace(rule="hebbian", decay=0.0), "time": "steady"},
        "no steady state: with `decay` = 0 Hebbian weights grow for ever",
    ),
    (
        {"problem": FIG2.replace(rate=9.0), "time": 20.0},
        "learning has diverged before `time` = 20: no distribution",
    ),
    (
        {"problem": FIG2.replace(rate=30.0), "time": 100, "source": mp.Simulation(n=50)},
        "learning has diverged before `time` = 100: no distribution",
    ),
]


@pytest.mark.parametrize(
    ("rule", "rate", "settle"), [("adatron", 20.0, 20.0), ("adaline", 1.0, 0.3)]
)
def test_simulated_activations_that_have_not_settled_are_told(rule, rate, settle):
    problem, source = FIG2.replace(rule=rule, rate=rate), mp.Simulation(n=50, settle=settle)
    with pytest.warns(UserWarning, match=rf"`settle` = {settle:g} is too short .* Q still grows"):
        mp.activations(problem, "steady", samples=6_000, source=source)


@pytest.mark.parametrize("sequence", ["replacement", "reshuffled"])
def test_simulated_activations_that_have_settled_are_not(sequence):
    problem = FIG2.replace(rate=1.0, sequence=sequence)
    mp.activations(problem, "steady", samples=600, source=mp.Simulation(n=50, settle=10.0))


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_bad_input(changes, words):
    two_time = {"few": [0.0, 1.0, 2.0], "short": np.linspace(0, 2, 11)}
    arguments = {"problem": FIG2, "time": 1.0} | changes
    if changes.get("source") in two_time:
        arguments["source"] = mp.solve(FIG2, two_time[changes["source"]], two_time=True)
    elif changes.get("source") == "two":
        arguments["source"] = mp.solve(FIG2, [1.0])
    with pytest.raises(ValueError, match=words):
        mp.activations(**arguments)


def test_bad_settings_of_exact():
    for settings in ({"samples": -1}, {"accuracy": 0}, {"seed": "a"}):
        with pytest.raises(ValueError, match=f"`{next(iter(settings))}`"):
            mp.Exact(**settings)
    with pytest.raises(ValueError, match="closed form for Adaline and Hebbian only"):
        mp.activation_density(FIG2.replace(rule=mp.Logistic()), 1.0, [0.0], y=0.0, target=1.0)
    with pytest.raises(ValueError, match="`target` must be -1 or 1 for classification, got 3"):
        mp.activation_density(FIG2, 1.0, [0.0], y=1.0, target=3)


def test_one_example_has_no_error_bar():
    assert np.isnan(mp.solve(FIG2, [1.0], mp.Exact(samples=1)).Et_se[0])
    values = np.array([1.0, 2.0, 4.0])
    found = sampling.sample_average(lambda count, rng: {"Et": values}, 3, None, 0)
    assert found["Et_se"] == pytest.approx(values.std(ddof=1) / math.sqrt(3))


def test_an_accuracy_that_is_not_reached_is_told():
    for samples in (1, 10):
        with pytest.warns(UserWarning, match="`accuracy` = 0.01 is not reached with `samples` = 1"):
            mp.solve(FIG2, [1.0], mp.Exact(accuracy=0.01, samples=samples))
