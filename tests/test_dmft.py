"""The mean-field solver: against the exact theory where there is one, and what it refuses."""

import json
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import manypass as mp
from manypass.cavity.dmft import summary
from manypass.cavity.grid import at
from manypass.cavity.moments import averaged
from manypass.cavity.plan import Clock, Grid, Plan, coarsest, make_plan
from manypass.cavity.population import even_examples, lead, lead_parts
from manypass.simulation.kernels import compiled_rule
from manypass.smooth import objection

ADATRON = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
LINEAR = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)


def linear_problems(count, seed):
    rng = np.random.default_rng(seed)

    def sometimes(low, high):
        return float(rng.choice([0.0, rng.uniform(low, high)]))

    for _ in range(count):
        data = mp.Teacher(
            alpha=float(np.exp(rng.uniform(np.log(0.3), np.log(4)))),
            task=str(rng.choice(["classification", "regression"])),
            noise=sometimes(0.1, 0.8),
        )
        rule = mp.Adaline() if rng.random() < 0.8 else mp.Hebbian()
        problem = mp.Problem(
            data, rule, rate=1.0, decay=sometimes(0.02, 1.0), temperature=sometimes(0.01, 0.2)
        )
        limit = min(mp.critical_rate(problem), 2.0)
        mode = str(rng.choice(["online", "online", "batch"]))
        problem = problem.replace(rate=float(rng.uniform(0.1, 0.75)) * limit, mode=mode)
        yield problem, np.linspace(0, float(rng.uniform(2, 8)), 9)


@pytest.mark.physics
def test_the_error_is_what_it_says():
    """Over random linear problems 68 % of all values are within one standard error, 95 % in two."""
    scores = {name: [] for name in ("R", "Q", "F2", "Eg", "Et", "C", "G")}
    for k, (problem, times) in enumerate(linear_problems(14, seed=7)):
        found = mp.solve(problem, times, mp.DMFT(seed=k), two_time=True)
        exact = mp.solve(problem, times, mp.Exact(), two_time=True)
        for name, z in scores.items():
            if name in exact:
                error = found[f"{name}_se"].values
                known = error > 1e-6  # at t = 0 nothing is left to chance
                difference = (found[name] - exact[name]).values
                assert np.abs(difference[~known]).max(initial=0) < 3e-6
                z.append(difference[known] / error[known])
        size = np.abs(exact).max()
        for name in ("R", "Q", "F2"):
            full = float(size.Q) ** 0.5 if name == "R" else float(size[name])
            assert float(found[f"{name}_se"].max()) < 0.0101 * full
    everything = []
    for name, parts in scores.items():
        z = np.abs(np.concatenate(parts))
        print(f"{name:>3} {np.mean(z < 1):.3f} {np.mean(z < 2):.3f} {z.max():.1f}")
        assert np.mean(z < 1) > 0.68, name
        assert np.mean(z < 2) > 0.93, name
        assert z.max() < 5, name
        everything.append(z)
    z = np.concatenate(everything)
    assert np.mean(z < 2) > 0.95
    # and not a comfortable exaggeration: three times smaller it would be wrong
    assert np.mean(z < 1 / 3) < 0.68


def on_grids(problem, end, steps, size, seeds, names, times):
    """Means over populations, with the same examples, on a grid and on every second point of it."""
    clock, keep = Clock(1.0), times if "C" in names else np.zeros(0)
    grid = clock.times(clock.w(end) / steps, times if "C" in names else times[-1:])
    rule, found = compiled_rule(problem.rule), []
    plan = Plan(times, Grid(grid, keep), clock, names, widest=4.0)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        runs = lead(problem, rule, size, plan, rng, split=True)
        found.append([run.at(times, clock.w) for run in runs])
    return [{n: np.mean([run[k][n] for run in found], axis=0) for n in names} for k in (0, 1)]


def test_a_bias_that_is_seen_is_taken_out_and_one_that_is_not_stays_in_the_error():
    rng, truth, bias = np.random.default_rng(0), np.linspace(1.0, 2.0, 5), 0.05
    samples = []
    for _ in range(8):
        noise = rng.normal(0, 0.02, 5)
        values = {name: truth + bias + noise for name in ("Q", "R")}
        moved = {name: np.full(5, 1e-4) for name in values}
        seen = {"Q": bias + rng.normal(0, 0.01, 5), "R": rng.normal(0, 0.01, 5)}
        samples.append((values, moved, seen, 0.0))
    found = summary(samples, "regression", {})
    z = (found["Q"] - truth) / found["Q_se"]
    assert np.abs(z).max() < 2
    assert found["Q_se"].max() < 0.7 * bias
    assert np.abs(found["R"] - truth - bias).max() < 0.015  # chance is no bias
    assert found["budget"]["population"] > 0.001


def test_a_bias_that_grows_with_the_cells_of_a_grid_is_no_error_of_the_step():
    """The finer grid has 1.8 times the cells, and the bias: both grids are right but for it."""
    rng, truth, bias, more = np.random.default_rng(0), np.linspace(1.0, 2.0, 5), -0.05, 0.8
    samples = []
    for _ in range(8):
        noise, seen = rng.normal(0, 0.005, (2, 5))
        fine, rough = truth + (1 + more) * bias + noise, truth + bias + noise
        far = fine + (fine - rough) / 3
        own = {name: bias + 0.2 * seen for name in ("Q", "R")}
        samples.append((dict.fromkeys(own, far), dict.fromkeys(own, far - fine), own, more))
    found = summary(samples, "regression", {})
    assert np.abs(found["Q"] - truth).max() < 0.006
    assert found["budget"]["step"] < 0.001  # of (1 + more) bias/3 as a step it would be 0.01


@pytest.mark.parametrize("mode", ["online", "batch"])
@pytest.mark.physics
def test_second_order_in_the_step(mode):
    """Of the plain scheme, before extrapolation; on two grids at a time the same examples."""
    problem = mp.Problem(mp.Teacher(alpha=0.6), mp.Adaline(), rate=1.2, decay=0.5, mode=mode)
    names = ("R", "Q", "F2")
    exact = mp.solve(problem, np.linspace(0, 4, 9), mp.Exact())
    t, changes, fewer = exact.t.values, {}, 16 if mode == "online" else 32
    for steps in (fewer, 2 * fewer):
        fine, coarse = on_grids(problem, 4.0, steps, 20_000, 4, names, t)
        for name in names:
            changes[name, steps] = np.sqrt(np.mean((fine[name] - coarse[name]) ** 2))
    for name in names:
        slope = np.log2(changes[name, fewer] / changes[name, 2 * fewer])
        error = np.abs(fine[name] - exact[name].values).max()
        print(f"{mode} {name}: slope {slope:.2f}, largest error {error:.5f}")
        assert slope > 1.8, name
        assert error < 0.02


def step_errors(problem, finer, seeds, size):
    """Squared change from twice the step, of R, Q, F2 and E_t over their largest values."""
    times, names = np.array([0.25, 0.5, 1.0, 2.0, 4.0]), ("R", "Q", "F2", "Et")
    plan = make_plan(problem, times, names, coarsest(problem) / finer)
    rule, both, found = compiled_rule(problem.rule), 2 * [slice(None)], []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, int(8 * finer)])
        examples = even_examples(problem.teacher, size, rng)
        plain = replace(plan, copies=False)
        runs = lead_parts(problem, rule, examples, both, plain.fitted(size), rng)
        fine, coarse = (run.at(times, plan.clock.w) for run in runs)
        found.append([(fine[n] - coarse[n]) / fine[n].max() for n in names])
    chance = np.var(found, axis=0, ddof=1) / seeds  # which is no error of the step
    return np.mean(np.mean(found, axis=0) ** 2 - chance)


@pytest.mark.physics
def test_second_order_where_forces_jump():
    """From twice the step that is tried first to half of it, in populations without bias."""
    sign = mp.Rule(lambda x, y: 1.0 * (y > x) - 1.0 * (y < x))
    noisy = mp.Teacher(alpha=1.0, task="regression", noise=0.3)
    problems = [
        mp.Problem(mp.Teacher(alpha=1.5), mp.Perceptron(), rate=1.0, decay=0.5),
        mp.Problem(mp.Teacher(alpha=1.5), mp.Perceptron(kappa=0.5), rate=2.0, decay=0.5),
        mp.Problem(noisy, sign, rate=0.5, decay=0.2),
        mp.Problem(mp.Teacher(alpha=0.6, task="regression"), sign, rate=1.0, decay=0.5),
    ]
    large, small = (
        np.mean([step_errors(problem, *how) for problem in problems])
        for how in ((0.5, 6, 32_000), (2.0, 6, 96_000))
    )
    slope = np.log(large / small) / 2 / np.log(4)
    print(f"step errors {np.sqrt(large):.5f}, {np.sqrt(max(small, 0)):.5f}, slope {slope:.2f}")
    assert slope > 1.8


@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Adatron(kappa=1.0), mp.Perceptron()], ids=repr)
@pytest.mark.physics
def test_what_a_step_changes(rule):
    """Instants rounded to a grid, young pushes as they were, or lines in t, not in √t: twice."""
    problem = LINEAR.replace(rule=rule, decay=0.5)
    names, times = ("R", "F2", "Et"), np.linspace(0.5, 6, 12)
    for steps, most in ((32, 0.0018), (64, 0.0009)):
        fine, coarse = on_grids(problem, 6.0, steps, 20_000, 4, names, times)
        for name in names:
            change = np.sqrt(np.mean((fine[name] - coarse[name]) ** 2))
            print(f"{steps} {name}: {change:.5f}")
            assert change < most, name


@pytest.mark.physics
def test_extrapolation_gains_an_order():
    """In batch mode, where hardly anything is left to chance."""
    problem, times = LINEAR.replace(mode="batch"), np.linspace(0, 4, 9)
    exact = mp.solve(problem, times, two_time=True)
    fine, coarse = on_grids(problem, 4.0, 32, 4_000, 1, ("Q", "C", "G"), times)
    assert np.abs(fine["G"] - exact.G.values).max() < 0.006  # which is sampled
    for name in ("Q", "C"):
        plain = np.abs(fine[name] - exact[name].values).max()
        better = np.abs((4 * fine[name] - coarse[name]) / 3 - exact[name].values).max()
        assert better < plain / 4, name


def test_the_response_in_batch_mode_is_felt_at_once():
    """By those who are pushed late as well, when others hardly move any more."""
    problem, times = LINEAR.replace(mode="batch"), np.linspace(0, 4, 5)
    found = mp.solve(problem, times, mp.DMFT(dt=0.12, samples=16_000, seed=3), two_time=True)
    exact = mp.solve(problem, times, mp.Exact(), two_time=True)
    assert float(np.abs(found.G - exact.G).max()) < 1.5e-3


def test_what_is_fresh_is_averaged_exactly_for_a_straight_force():
    parameters, force = compiled_rule(mp.Adaline())
    found = [averaged(force, parameters, 0.3, 1.0, 0.49, shift) for shift in range(64)]
    np.testing.assert_allclose(found, [(0.7, -1.0, 0.98)] * 64, rtol=1e-12)


@pytest.mark.physics
def test_a_growing_transient_is_followed_until_it_is_infinite():
    problem, times = LINEAR.replace(rate=3.3), np.array([1.0, 3.0, 5.0])
    found = mp.solve(problem, times, mp.DMFT(dt=0.03, samples=40_000))
    exact = mp.solve(problem, times)
    assert float(exact.Q[-1]) > 5 * float(exact.Q[0])
    assert (np.abs((found.Q - exact.Q) / found.Q_se) < 3.5).all()
    far = mp.solve(problem.replace(rate=8.0), [1.0, 8.0], mp.DMFT(dt=0.2, samples=16_000))
    assert np.isinf(far.Q.values[-1])
    assert np.isinf(far.Q_se.values[-1])


@pytest.mark.physics
def test_the_population_is_the_distribution_of_activations():
    """Adatron: far from Gaussian, with a sharp peak at the margin, and the shape is right."""
    from scipy.stats import ks_2samp

    time, kappa = 4.0, 1.0
    theory = mp.activations(ADATRON, time, samples=100_000, source=mp.DMFT(dt=0.1))
    data = mp.activations(ADATRON, time, samples=28_000, source=mp.Simulation(n=1000, seed=5))
    stability = (data.x * data.target).values[::7]  # few from each network: they are correlated
    predicted = (theory.x * theory.target).values
    gaussian = np.random.default_rng(0).normal(predicted.mean(), predicted.std(), 100_000)
    assert ks_2samp(predicted, stability).pvalue > 0.01
    assert ks_2samp(gaussian, stability).pvalue < 1e-6
    at_margin, beside = (np.mean(np.abs(predicted - x) < 0.05) for x in (kappa, kappa + 0.3))
    assert at_margin > 2 * beside
    assert theory.attrs["source"] == "theory"


@pytest.mark.physics
def test_a_result_feeds_the_sampler():
    """Two routes to the training error: the population's own, and sampling from R, C, G."""
    times = np.linspace(0, 4, 33)
    found = mp.solve(ADATRON, times, mp.DMFT(dt=0.125, samples=80_000), two_time=True)
    seen = mp.activations(ADATRON, 4.0, samples=200_000, source=found)
    error = float((seen.x * seen.target < 0).mean())
    assert error == pytest.approx(float(found.Et[-1]), abs=4 * np.sqrt(error / 200_000) + 0.001)


def test_the_same_seed_gives_the_same_numbers_on_any_number_of_threads():
    one, two, other = (
        mp.solve(ADATRON, [1.0, 2.0], mp.DMFT(dt=0.25, samples=4_000, seed=seed, threads=threads))
        for seed, threads in ((3, 1), (3, 2), (4, 2))
    )
    np.testing.assert_array_equal(one.R, two.R)
    np.testing.assert_array_equal(one.F2_se, two.F2_se)
    assert (one.R != other.R).all()


def test_the_result_says_how_it_was_found():
    found = mp.solve(ADATRON, [0.0, 1.0], mp.DMFT(rtol=0.02, seed=2))
    assert found.attrs["samples"] >= 8_000
    assert found.attrs["dt"] <= 0.25
    shares = json.loads(found.attrs["errors"])
    assert set(shares) == {"sampling", "step", "population"}
    assert 0 < np.sqrt(sum(v**2 for v in shares.values())) <= 0.02
    assert mp.problem_of(found) == ADATRON
    assert float(found.R[0]) == 0.0
    assert float(found.Q_se[0]) < 1e-6


def test_only_the_start_can_be_asked_for():
    found = mp.solve(ADATRON, [0.0], mp.DMFT(dt=0.1, samples=4_000), two_time=True)
    assert float(found.F2[0]) == pytest.approx(1.0, abs=1e-6)
    assert float(found.Eg[0]) == float(found.Et[0]) == 0.5
    assert float(found.G[0, 0]) == 1.0


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({"rate": "cosine:1:0.1:8"}, {}),  # exact, as any `rtol` asks
        ({"alpha": 1e5, "sequence": "reshuffled"}, {"dt": 0.25, "samples": 1600}),
        ({"alpha": 1e6, "sequence": "reshuffled", "rate": 1e-3}, {"samples": 1600}),
    ],
)
def test_the_start_is_known_at_every_scale_of_time(changes, settings):
    found = mp.solve(ADATRON.replace(**changes), [0.0], mp.DMFT(**settings))
    assert [float(found[name][0]) for name in ("R", "Q", "Q_se", "F2")] == [0, 0, 0, 1]


def test_heat_alone():
    """Q = 2Tt, in every direction, and nothing else: cells of the past that become one keep it."""
    problem = ADATRON.replace(rate="steps:0:0:9:1", temperature=0.1)
    found = mp.solve(problem, [1.0, 4.0], mp.DMFT(dt=0.25, samples=8_000))
    np.testing.assert_allclose(found.Q, [0.2, 0.8], rtol=1e-3)


def test_forces_at_the_ends_of_numbers():
    with pytest.raises(ValueError, match=r"there are .*e\+\d\d\d time steps of .* more than 20000"):
        mp.solve(ADATRON.replace(rule=mp.Rule(steep)), [1.0], mp.DMFT(dt=0.5, samples=1600))
    with pytest.raises(ValueError, match=r"its force is .*e-\d\d\d at most"):
        mp.solve(ADATRON.replace(rule=mp.Rule(faint)), [0.5], mp.DMFT())


def steep(x, y):
    return 1e300 * (y - x)


def faint(x, y):
    return 1e-300 * (y - x)


def test_auto_is_exact_where_it_can_be():
    assert json.loads(mp.solve(LINEAR, [1.0]).attrs["method"])["name"] == "Exact"
    found = mp.solve(ADATRON, [0.5])
    assert json.loads(found.attrs["method"])["name"] == "DMFT"


def test_rules_that_cannot_be_served_are_refused():
    batch = ADATRON.replace(mode="batch")
    with pytest.raises(ValueError, match=r"Perceptron.*jumps by 1 at x = 0.*Simulation"):
        mp.solve(batch.replace(rule=mp.Perceptron()), [1.0])
    singular = mp.Rule(force=lambda x, y: y / x, slope=lambda x, y: -y / x**2)
    for problem in (ADATRON, batch):
        with pytest.raises(ValueError, match=r"force is -inf at x = 0.* where learning"):
            mp.solve(problem.replace(rule=singular), [1.0])
        with pytest.raises(ValueError, match=r"force.*not finite at x = 0.*Simulation"):
            mp.solve(problem.replace(rule=singular, start=mp.Start(R=0.1, Q=0.5)), [1.0])
    steep = mp.Rule(force=lambda x, y: np.tanh(20 * (y - x)))
    assert objection(steep, "regression", flow=True) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dt": 0.0}, "`dt` must be a number"),
        ({"samples": 10}, "`samples` must be a whole number from 800"),
        ({"rtol": 2.0}, "`rtol` must be a number"),
        ({"rtol": 0.01, "dt": 0.1}, "`rtol` chooses dt and samples"),
        ({"seed": -1}, "`seed`"),
        ({"memory": 0}, "`memory`"),
        ({"threads": 0}, "`threads`"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        mp.DMFT(**settings)


def test_what_cannot_be_computed_is_refused_with_the_number():
    with pytest.raises(
        ValueError, match=r"50000 time steps of 0.001 up to .* take earlier `times`"
    ):
        mp.solve(ADATRON, [50.0], mp.DMFT(dt=1e-3))
    with pytest.raises(ValueError, match=r"`samples` = 1000 is too few for 2\d\d time steps"):
        mp.solve(ADATRON, [1.0], mp.DMFT(dt=0.01, samples=1000))
    with pytest.raises(ValueError, match=r"needs .* GB of memory and 0.01 GB are allowed"):
        mp.solve(ADATRON, [8.0], mp.DMFT(dt=0.1, samples=10**6, memory=0.01))


def test_a_rule_that_does_not_compile_is_located():
    odd = mp.Rule(lambda x, y: y - x * len(json.dumps(y)) / 3)
    with pytest.raises(ValueError, match=r"`force` .*test_dmft.py.* cannot be compiled"):
        mp.solve(ADATRON.replace(rule=odd), [1.0], mp.DMFT(dt=0.1))


def test_an_unreachable_accuracy_is_told(monkeypatch):
    monkeypatch.setattr("manypass.cavity.accuracy.ROUNDS", 1)
    with pytest.warns(
        UserWarning, match=r"`rtol` = 0.001 is not reached: the error of \w+ is 0\.0"
    ):
        mp.solve(ADATRON, [1.0], mp.DMFT(rtol=0.001))


def test_a_force_that_teaches_nothing_does_not_ask_for_ever_more_samples():
    """R = 0 exactly: its error cannot be a small fraction of it."""
    constant = mp.Rule(force=lambda x, y: 1.0 + 0.0 * x, slope=lambda x, y: 0.0 * x)
    found = mp.solve(ADATRON.replace(rule=constant), [1.0, 4.0], mp.DMFT(rtol=0.05))
    assert found.attrs["samples"] < 100_000
    assert np.abs(found.R).max() < 0.01


@pytest.mark.filterwarnings("ignore:.*never learns")
@pytest.mark.parametrize("rule", [mp.Adatron(0.0), mp.Adatron(-1.0), mp.Perceptron(-1.0)])
@pytest.mark.parametrize("mode", ["online", "batch"])
def test_a_force_that_is_zero_at_the_start_never_learns(rule, mode):
    """J = 0 stays exactly: no noise of rounding grows, and nothing is asked to be sampled."""
    problem = ADATRON.replace(rule=rule, mode=mode, noise=2.0)
    if mode == "online" or isinstance(rule, mp.Adatron):  # in batch mode forces may not jump
        found = mp.solve(problem, [0.0, 0.3, 3.0])
        for name in ("R", "Q", "F2"):
            assert not found[name].any()
            assert not found[f"{name}_se"].any()
        assert (found[["Eg", "Et"]].to_array() == 0.5).all()
    for decay in (0.0, 0.3):
        settled = mp.steady_state(problem.replace(decay=decay))
        assert settled.R == settled.Q == settled.F2 == settled.Q_se == settled.Et_se == 0
        assert settled.Eg == settled.Et == 0.5
    if mode == "online":
        assert not mp.activations(problem, 1.0, samples=100, source="dmft").x.any()


@pytest.mark.filterwarnings("ignore:.*never learns")
def test_what_leaves_the_start_is_followed():
    still = ADATRON.replace(rule=mp.Adatron(-1.0))
    both = mp.solve(still, [0.0, 1.0], two_time=True)
    assert (both.C == 0).all()
    np.testing.assert_allclose(both.G, [[1, 0], [np.exp(-0.1), 1]])
    with pytest.raises(ValueError, match=r"kink.*`two_time`"):
        mp.solve(ADATRON.replace(rule=mp.Adatron(0.0)), [0.0, 1.0], two_time=True)
    regression = mp.solve(still.replace(task="regression", noise=1.0), [1.0])
    assert (regression.Et, regression.Eg) == (1.0, 0.5)
    quick = mp.DMFT(dt=0.25, samples=4000)
    for moving in (still.replace(temperature=0.1), still.replace(rule=mp.Perceptron(0.0))):
        assert mp.solve(moving, [1.0], quick).Q > 0.1


def test_a_step_that_is_far_too_large_is_not_taken():
    problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adaline(), rate=1.0, decay=0.1)
    found = mp.solve(problem, [4.0, 16.0], mp.DMFT(dt=4.0, samples=16_000))
    assert found.attrs["dt"] < 0.4
    assert (np.abs(found.Q - mp.solve(problem, [4.0, 16.0]).Q) < 4 * found.Q_se).all()


def test_what_was_reached_is_kept_when_more_does_not_fit():
    with pytest.warns(UserWarning, match="`rtol` = 0.0003 is not reached"):
        found = mp.solve(ADATRON, [1.0], mp.DMFT(rtol=0.0003, memory=0.01))
    assert 0.3 < float(found.R[0]) < 0.5
    assert found.attrs["samples"] == 64_000  # all populations of a round, though it was hopeless


@pytest.mark.physics
def test_a_hopeless_round_ends_early_and_one_that_just_misses_goes_on(monkeypatch):
    from manypass.cavity import accuracy

    rounds, whole = [], accuracy.populations

    def watched(method, problem, plan, samples, *more):
        found, how = whole(method, problem, plan, samples, *more)
        rounds.append((samples, how["samples"], math.hypot(*found["budget"].values())))
        return found, how

    monkeypatch.setattr(accuracy, "populations", watched)
    mp.solve(ADATRON, [1.0], mp.DMFT(rtol=0.1))
    [(samples, made, error)] = rounds
    assert made == samples
    assert error < 0.02
    mp.solve(ADATRON, [1.0], mp.DMFT(rtol=0.96 * error))
    (_, made, better), *_ = rounds[1:]
    assert samples < made <= 1.5 * samples
    assert better < error
    rounds.clear()
    mp.solve(ADATRON, [1.0], mp.DMFT(rtol=error / 3))
    assert rounds[0][1] == accuracy.LOOK * samples / accuracy.POPULATIONS
    assert rounds[-1][1] >= rounds[-1][0] > samples
    assert rounds[-1][2] <= error / 3


def test_activations_of_a_diverged_problem_are_refused():
    with pytest.raises(ValueError, match="learning has diverged before `time` = 20"):
        mp.activations(LINEAR.replace(rate=6.0), 20.0, samples=5_000, source=mp.DMFT(dt=0.1))


@pytest.mark.physics
def test_gradient_flow_of_a_force_that_is_steep():
    """Slopes ỹ² of noisy targets, up to 80 times those of most; networks of 300 weights."""
    data = mp.Teacher(alpha=0.3, task="regression", noise=2.0)
    problem = mp.Problem(data, mp.Adatron(kappa=1.0), rate=1.0, decay=0.1, mode="batch")
    times, step, found = np.array([0.25, 1.0, 3.0]), 0.01, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, J = rng.standard_normal((90, 300)), np.zeros(300)
        y = X[:, 0] + data.noise * rng.standard_normal(90)
        for i in range(301):
            F = problem.rule.force(X @ J, y)
            if np.isclose(i * step, times).any():
                found.append((J[0], J @ J, F @ F / 90))
            J += step * (F @ X / 90 - problem.decay * J)
    found = np.reshape(found, (40, 3, 3))
    theory = mp.solve(problem, times, mp.DMFT(seed=1))
    for name, values in zip(("R", "Q", "F2"), np.moveaxis(found, 2, 0), strict=True):
        mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(39)
        error = np.hypot(error, theory[f"{name}_se"].values)
        assert (np.abs(theory[name] - mean) < 3.5 * error).all(), name
    assert float(theory.Q_se.max()) < 0.0101 * float(theory.Q.max())


@pytest.mark.physics
def test_heat_in_batch_mode():
    """Hardly any sampling error here: the step has to answer for itself."""
    data = mp.Teacher(alpha=0.5, task="regression", noise=0.5)
    problem = mp.Problem(data, mp.Adaline(), rate=1.0, decay=0.1, temperature=3.0, mode="batch")
    found, exact = (mp.solve(problem, [1, 3], method) for method in (mp.DMFT(), mp.Exact()))
    for name in ("R", "Q", "F2", "Et"):
        assert (np.abs(found[name] - exact[name]) < 2.5 * found[f"{name}_se"]).all(), name


def test_progress_is_told_population_by_population():
    problem = mp.Problem(mp.Teacher(1.0), mp.Adatron(), rate=1.0, decay=0.1)
    told, method = [], mp.DMFT(dt=0.25, samples=8_000)
    result = mp.solve(problem, [1, 2], method, progress=told.append)
    assert [int(part.attrs["samples"]) for part in told] == list(range(1000, 8001, 1000))
    assert told[-1].identical(result)
    assert result.identical(mp.solve(problem, [1, 2], method))
    assert np.isnan(told[0].Q_se).all()  # one population has no scatter
    assert told[3].Q_se.mean() > result.Q_se.mean()


@pytest.mark.parametrize("mode", ["online", "batch"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_force_that_overflows_has_diverged(task, mode):
    rule = mp.Rule(lambda x, y: y + x**3, lambda x, y: 3 * x**2)
    problem = mp.Problem(mp.Teacher(alpha=1.0, task=task), rule, rate=0.5, decay=0.1, mode=mode)
    method = mp.DMFT(dt=0.02, samples=12_800)
    told = pytest.warns(UserWarning, match="faster than x") if mode == "online" else nullcontext()
    with told:
        found = mp.solve(problem, [0.0, 0.05, 4.0], method, two_time=True)
    assert np.isfinite(found.isel(t=slice(2), s=slice(2)).to_array()).all()
    assert found.Q[1] > 0
    assert np.isinf(found.Q[2])
    assert np.isinf(found.C[2]).all()
    assert np.isinf(found.R_se[2])
    assert found.Eg[2] == (0.5 if task == "classification" else np.inf)


@pytest.mark.parametrize(("left", "told"), [(1e-6, 1), (0.5, 0)])
def test_what_diverges_when_all_is_learned_is_told(monkeypatch, left, told, recwarn):
    """Few examples of a population then have a force: by chance one of them runs away."""
    from manypass.cavity import accuracy, dmft

    def lost(*a):
        far, *rest = dmft.sample(*a)
        late = a[3].t > 1
        far["Q"] = np.where(late, np.inf, far["Q"])
        return far | ({"faded": left} if late.any() else {}), *rest

    monkeypatch.setattr(accuracy, "sample", lost)
    problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(), rate=1.0, decay=0.1)
    found = mp.solve(problem, [0.5, 1.5], mp.DMFT(dt=0.25, samples=4_000))
    assert list(np.isinf(found.Q.values)) == [False, True]
    said = [w for w in recwarn if "has diverged after ⟨F²⟩ had fallen to 1e-06" in str(w.message)]
    assert len(said) == told


def test_the_first_population_that_diverges_ends_a_run(monkeypatch):
    from manypass.cavity import dmft

    made = []
    monkeypatch.setattr(dmft, "lead", lambda *a, **k: made.append(a[2]) or lead(*a, **k))
    problem = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(), rate=40.0, decay=0.1)
    found = mp.solve(problem, [1.0, 2.0], mp.DMFT(dt=0.01, samples=16_000, threads=1))
    assert np.isinf(found.Q).all()
    assert len(made) <= 3  # one that is looked at, and those that were under way


@pytest.mark.physics
def test_a_set_that_is_learned_to_the_last_example_pushes_no_more():
    """Perceptron, few examples: F2 falls to zero, and weights stay; N = 400, 400 networks."""
    problem = mp.Problem(mp.Teacher(alpha=0.3), mp.Perceptron(), rate=0.3)
    found = mp.solve(problem, [8.0, 20.0], mp.DMFT(dt=0.2, samples=16_000))
    assert (np.abs(found.Q - 0.0124) < 3 * np.hypot(found.Q_se, 0.0001)).all()
    assert (found.F2 < 1e-3).all()


def test_the_response_to_the_first_push_is_right():
    """The first cell of the past and the next are not told apart: alone it was 0.012 off."""
    times = np.linspace(0, 2, 6)
    found = mp.solve(LINEAR, times, mp.DMFT(dt=0.2, samples=256_000, seed=1), two_time=True)
    exact = mp.solve(LINEAR, times, two_time=True)
    assert float(np.abs(found.G - exact.G)[:, 0].max()) < 0.005


def test_what_is_measured_is_a_mean_over_times_around():
    """Of parabolas and slow decays there is no bias; one value that is off is one of many."""
    t, at_once = np.linspace(0, 16, 513), np.array([4.0, 8.0, 12.0])
    smooth = np.exp(-t / 4)
    table = np.column_stack([t, t, smooth, 1 + t**3, t**3])
    found = at(at_once, lambda t: t, table, fading=0.0)
    np.testing.assert_allclose(found[:, 2], np.exp(-at_once / 4), rtol=1e-4)
    np.testing.assert_allclose(found[:, 3], 1 + at_once**3, rtol=1e-9)
    np.testing.assert_allclose(found[:, 4], at_once**3, rtol=1e-9)
    off = table.copy()
    off[t == 8.0, 1:] += 0.1
    moved = at(at_once, lambda t: t, off, fading=0.0) - found
    assert abs(moved[1, 2]) < 0.02
    assert abs(moved[1, 3]) < 0.02
    np.testing.assert_allclose(moved[1, 4], 0.1, rtol=1e-9)
    last = at(np.array([16.0]), lambda t: t, off, fading=0.0)  # nothing is known beyond it
    np.testing.assert_allclose(last[0, 2:], table[-1, 2:], rtol=1e-12)
    broken = at(np.array([8.0]), lambda t: t, off, [8.0], fading=0.0)  # not across an end
    np.testing.assert_allclose(broken[0, 2], smooth[256] + 0.1, rtol=1e-12)


def test_what_has_faded_by_its_decay_lets_means_reach_farther():
    """Parabolas are what they are, noise is less."""
    t, times = np.linspace(0, 106, 5301), np.array([60.0, 90.0, 105.0])
    flat = 0.05 + 0.95 * np.exp(-t)
    noise = np.random.default_rng(0).standard_normal((200, t.size))

    def read(fading, curve):
        return at(times, lambda t: t, np.column_stack([t, flat, flat, curve]), fading=fading)[:, 3]

    far, near = (np.std([read(fading, each) for each in noise], axis=0) for fading in (0.1, 0.0))
    assert (far / near)[0] < 0.97
    assert (far / near)[1] < 0.87
    assert (far / near)[2] == pytest.approx(1.0)  # the last time is what holds both
    parabola = 0.05 + 1e-4 * (t - 80) ** 2 / 20
    expected = 0.05 + 1e-4 * (times - 80) ** 2 / 20
    np.testing.assert_allclose(read(0.1, parabola), expected, rtol=1e-9)


def test_means_over_times_have_no_bias_that_matters():
    """Of exact curves, from far away and close to divergence as well: 2·10⁻⁴ of the largest F2."""
    for alpha, rate, decay, start in (
        (0.3, 1.9, 0.8, None),
        (1.0, 0.3, 0.1, None),
        (3.0, 2.3, 0.8, mp.Start(R=0.5, Q=9.0)),
        (0.3, 1.5, 0.01, mp.Start(R=0.5, Q=9.0)),
        (1.2, 3.0, 0.8, None),  # v_c = 3.09: F2 comes slowly
        (1.2, 2.9, 0.8, mp.Start(R=0.5, Q=9.0)),
    ):
        data = mp.Teacher(alpha=alpha, noise=0.3)
        problem = mp.Problem(data, mp.Adaline(), rate=rate, decay=decay, start=start)
        for end in (3.0, 10.0, 60.0):
            times = np.linspace(0, end, 13)[1:]
            plan = make_plan(problem, times, ("R", "Q", "F2", "Et"), coarsest(problem))
            curves = mp.solve(problem, plan.grid.t)
            table = np.column_stack([plan.grid.t, curves.Q, curves.F2, curves.F2])
            found = at(times, plan.clock.w, table, fading=rate * decay)[:, 2]
            exact = mp.solve(problem, times).F2.values
            assert np.abs(found - exact).max() < 2e-4 * exact.max()


def test_growth_to_come_is_not_in_the_error_of_what_was_before():
    """A force that drives x away: Q grows by 10⁶ from t = 1 to 3."""
    away = mp.Rule(lambda x, y: x - y, lambda x, y: 1.0 + 0 * x)
    problem = mp.Problem(mp.Teacher(1.2, "regression"), away, rate=1.0, decay=0.1)
    method = mp.DMFT(dt=0.2, samples=32_000)
    alone = mp.solve(problem, [1.0], method).isel(t=0)
    with pytest.warns(UserWarning, match=r"F2 is .* at t = 3: where it grows so far"):
        followed = mp.solve(problem, [1.0, 3.0], method).isel(t=0)
    for name in ("R", "Q", "F2", "Et"):
        error = float(np.hypot(alone[f"{name}_se"], followed[f"{name}_se"]))
        assert error < abs(float(alone[name]))  # it was up to 10⁷ times as large
        assert abs(float(alone[name] - followed[name])) < 2 * error
