"""Steady states from stationary functions: against exact theory, simulations, and each other."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import references

import manypass as mp
from manypass.cavity.laps import Box
from manypass.cavity.settle import settle
from manypass.cavity.stationary import Stationary
from manypass.simulation.kernels import compiled_rule

LINEAR = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.5, decay=0.8)
ADATRON = mp.Problem(mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.3)
PERCEPTRON = mp.Problem(mp.Teacher(alpha=1.5), mp.Perceptron(), rate=1.0, decay=0.5)
NAMES = ("R", "Q", "F2", "Eg", "Et")


def linear_problems(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        data = mp.Teacher(
            alpha=float(np.exp(rng.uniform(np.log(0.3), np.log(4)))),
            task=str(rng.choice(["classification", "regression"])),
            noise=float(rng.choice([0.0, rng.uniform(0.1, 0.8)])),
        )
        decay = float(np.exp(rng.uniform(np.log(0.2), 0)))
        heat = float(rng.choice([0.0, rng.uniform(0.01, 0.2)]))
        mode = str(rng.choice(["online", "online", "batch"]))
        problem = mp.Problem(data, mp.Adaline(), rate=1.0, decay=decay, temperature=heat)
        rate = float(rng.uniform(0.1, 0.7)) * mp.critical_rate(problem)
        yield problem.replace(rate=rate, mode=mode), float(rng.choice([0.0, 2.0]))


@pytest.mark.physics
def test_the_error_is_what_it_says():
    """Over random linear problems, on-line and batch, with and without a window."""
    scores = []
    for k, (problem, window) in enumerate(linear_problems(16, seed=3)):
        found = mp.steady_state(problem, mp.DMFT(samples=8192, seed=k), window=window)
        exact = mp.steady_state(problem, mp.Exact(), window=window)
        for name in [n for n in NAMES if n in exact]:
            error = float(found[f"{name}_se"])
            scores.append(abs(float(found[name] - exact[name])) / error)
    z = np.array(scores)
    print(f"within one {np.mean(z < 1):.2f}, two {np.mean(z < 2):.2f}, largest {z.max():.1f}")
    assert np.mean(z < 1) > 0.68
    assert np.mean(z < 2) > 0.95
    assert z.max() < 4
    assert np.mean(z < 1 / 4) < 0.68  # four times smaller it would be wrong


def solved(problem, steps, size, seed, times):
    """Return the fixed points of the same examples on grids of so many times the step."""
    rates = np.geomspace(problem.rate * problem.decay, 5 * problem.rate, 3)
    state = Stationary.guess(problem, rates, 0.5, -0.5)
    box = Box.make(problem, 7 / rates[0], steps, size, np.random.default_rng(seed))
    out, rule = [], compiled_rule(problem.rule)
    for _ in range(times):
        out.append(settle(box, state, rule, 1e-5).state)
        box = replace(box, slots=box.slots >> 1, every=2 * box.every)
    return out


@pytest.mark.physics
def test_second_order_in_the_step():
    """Of the plain scheme: R, Q, F2, C and G on the same examples."""
    lag = np.array([0.3, 1.0, 2.0])

    def read(state):
        return np.concatenate([[state.R, state.Q(), state.F2], state.C(lag), state.G(lag)])

    runs = [[read(s) for s in solved(LINEAR, 256, 2048, seed, 3)] for seed in range(4)]
    fine, middle, coarse = np.mean(runs, axis=0)
    slope = np.log2(np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine))
    print(f"slope {slope:.2f}")
    assert slope > 1.7


@pytest.mark.physics
def test_correlation_and_response_are_those_of_the_exact_theory():
    lag = np.linspace(0, 4, 9)
    late = 60 + lag
    exact = mp.solve(LINEAR, late, two_time=True)
    states = [solved(LINEAR, 256, 1024, seed, 1)[0] for seed in range(6)]
    for found, known in (("C", exact.C[0].values), ("G", exact.G[:, 0].values)):
        values = np.array([getattr(state, found)(lag) for state in states])
        error = values.std(axis=0, ddof=1) / np.sqrt(len(states)) + 2e-3
        assert (np.abs(values.mean(axis=0) - known) < 3 * error).all(), found


@pytest.mark.physics
@pytest.mark.parametrize(
    ("problem", "known"),
    [  # simulations extrapolated to N → ∞
        (PERCEPTRON, {"R": 0.2045, "Q": 0.1227, "F2": 0.1804}),
        (ADATRON.replace(decay=0.1), {"R": 0.671, "Q": 0.966, "F2": 0.0487, "Et": 0.0031}),
    ],
)
def test_nonlinear_rules_agree_with_simulation(problem, known):
    found = mp.steady_state(problem, mp.DMFT(seed=1))
    for name, value in known.items():
        error = float(found[f"{name}_se"])
        assert abs(float(found[name]) - value) < 3 * error + 0.0005 * value, name
        assert error < 0.011 * (0.5 if name == "Et" else float(found.Q) ** 0.5)
    shares = json.loads(found.attrs["errors"])
    assert set(shares) == {"sampling", "step", "population", "memory", "iteration"}
    assert np.hypot.reduce(list(shares.values())) <= 0.01


@pytest.mark.physics
def test_the_last_times_of_simulated_tables():
    """Of those problems whose memory is shorter than the table."""
    scores = []
    for k, name in enumerate(references.tables(("adatron", "logistic", "perceptron", "huber"))):
        table = references.Table(name)
        if table.problem.rate * table.problem.decay * table.times[-1] < 7:
            continue
        found = mp.steady_state(table.problem, mp.DMFT(samples=8192, seed=k))
        for quantity in ("R", "Q", "F2", "Et"):
            limit, error = (part[-1] for part in table.limit(quantity))
            both = np.hypot(float(found[f"{quantity}_se"]), error)
            scores.append(abs(float(found[quantity]) - limit) / both)
    print("z", np.round(scores, 1))
    assert len(scores) >= 12
    assert np.mean(np.array(scores) < 2) > 0.9
    assert max(scores) < 3.5


@pytest.mark.physics
def test_batch_learning_is_the_limit_of_small_rates():
    slow = mp.steady_state(ADATRON.replace(rate=0.05), mp.DMFT(samples=4096))
    batch = mp.steady_state(ADATRON.replace(mode="batch"), mp.DMFT(samples=4096))
    for name in ("R", "Q", "F2"):
        tolerance = 3 * np.hypot(slow[f"{name}_se"], batch[f"{name}_se"]) + 0.03 * batch[name]
        assert abs(float(slow[name] - batch[name])) < float(tolerance), name


@pytest.mark.physics
def test_the_examples_of_a_steady_state():
    seen = mp.activations(ADATRON, "steady", samples=8_000, source=mp.DMFT(samples=4096, seed=2))
    found = mp.steady_state(ADATRON, mp.DMFT(samples=4096, seed=3))
    force = ADATRON.rule.force(seen.x.values, seen.target.values)
    spread = (force**2).std() / np.sqrt(force.size)
    assert abs((force**2).mean() - float(found.F2)) < 4 * np.hypot(spread, float(found.F2_se))


@pytest.mark.physics
def test_the_same_seed_gives_the_same_numbers_on_any_number_of_threads():
    one, two, other = (
        mp.steady_state(PERCEPTRON, mp.DMFT(samples=1024, seed=seed, threads=threads))
        for seed, threads in ((3, 1), (3, 2), (4, 2))
    )
    assert one.F2.item() == two.F2.item()
    assert one.R_se.item() == two.R_se.item()
    assert one.R.item() != other.R.item()


@pytest.mark.physics
def test_there_is_none_above_the_critical_rate():
    limit, error = mp.DMFT(seed=1).critical_rate(LINEAR)
    assert abs(limit - mp.critical_rate(LINEAR)) < 3 * error < 0.1
    nonlinear = mp.critical_rate(ADATRON)
    below = mp.steady_state(ADATRON.replace(rate=0.9 * nonlinear), mp.DMFT(samples=4096))
    assert float(below.Q) > 20
    message = r"no steady state: `rate` = .* is too large, \|J\|² diverges.*`solve`"
    with pytest.raises(mp.NotSettledError, match=message) as caught:
        mp.steady_state(ADATRON.replace(rate=1.1 * nonlinear), mp.DMFT(samples=4096))
    assert caught.value.result.F2.item() > 1e6
    with pytest.raises(mp.NotSettledError):  # sampled too little to tell, and not told to do more
        mp.steady_state(ADATRON.replace(rate=0.99 * nonlinear), mp.DMFT(samples=1024))
    for rule in (mp.Perceptron(), mp.Logistic(), mp.Huber()):
        assert mp.critical_rate(ADATRON.replace(rule=rule)) == np.inf
    cubic = mp.Rule(force=lambda x, y: (y - x) ** 3, slope=lambda x, y: -3 * (y - x) ** 2)
    with pytest.raises(ValueError, match=r"no critical rate is known .* grows faster than x"):
        mp.critical_rate(ADATRON.replace(rule=cubic))
    with pytest.raises(ValueError, match=r"no critical rate is known .* `decay` = 0"):
        mp.critical_rate(ADATRON.replace(decay=0.0))


@pytest.mark.physics
def test_without_decay_there_may_be_none():
    with pytest.raises(mp.NotSettledError, match=r"with `decay` = 0 weights may .*`solve`"):
        mp.steady_state(ADATRON.replace(decay=0.0))
    separable = mp.Problem(mp.Teacher(1.0), mp.Logistic(), rate=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mp.NotSettledError, match="with `decay` = 0"):
            mp.steady_state(separable, mp.DMFT(samples=1024))
    noisy = mp.Problem(mp.Teacher(4.0, "regression", 0.5), mp.Huber(1.0), rate=0.5)
    assert 0.9 < float(mp.steady_state(noisy, mp.DMFT(samples=1024)).R) < 1.1


@pytest.mark.physics
def test_a_user_force_that_jumps_is_served():
    sign = mp.Rule(force=lambda x, y: np.sign(y - x), slope=lambda x, y: 0.0 * x)
    data = mp.Teacher(2.0, "regression", 0.3)
    problem = mp.Problem(data, sign, rate=0.5, decay=0.2)
    found = mp.steady_state(problem, mp.DMFT(samples=4096))
    assert float(found.F2) == pytest.approx(1.0, abs=0.01)
    assert 0.2 < float(found.R) < 1


def test_a_force_that_jumps_is_refused_in_batch_mode():
    """All examples on the threshold hold each other there: laps of a finite step do not."""
    flow = mp.Problem(mp.Teacher(1.0), mp.Perceptron(kappa=0.5), rate=1.0, decay=0.5, mode="batch")
    with pytest.raises(ValueError, match=r"Perceptron.*jumps by 1 at x = -0.5.*Simulation"):
        mp.steady_state(flow, mp.DMFT(samples=1024))


def test_what_does_not_fit_is_refused_and_what_is_not_reached_is_told(monkeypatch):
    with pytest.raises(ValueError, match=r"needs .* GB of memory and 0.001 GB are allowed"):
        mp.steady_state(ADATRON, mp.DMFT(samples=100_000, memory=1e-3))
    monkeypatch.setattr("manypass.cavity.steady.MOST_POINTS", 1)
    with pytest.warns(UserWarning, match=r"`rtol` = 0.005 is not reached: the error of \w+ is"):
        mp.steady_state(PERCEPTRON, mp.DMFT(rtol=5e-3))


def test_the_explorer_draws_them_against_the_rate(monkeypatch):
    from manypass.explorer import runs
    from manypass.explorer.view import View

    monkeypatch.setattr(runs, "SWEPT", 2)
    said = []
    answer, found = runs.sweep(View(PERCEPTRON.replace(rule=mp.Logistic())), said.append)
    assert said[-1]["word"] == f"steady states, {found.rate.size} of 3 rates"
    assert answer["steady"]["rate"] == found.rate.values.tolist()
    assert (np.diff(found.rate) > 0).all()


@pytest.mark.filterwarnings("ignore:.*never learns")
def test_the_explorer_shows_that_nothing_is_learned():
    from manypass.explorer import runs
    from manypass.explorer.view import View

    view = View(ADATRON.replace(rule=mp.Perceptron(-0.5)))
    assert set(runs.curves(view, lambda word: None)[0]["curves"]["Eg"]) == {0.5}
    assert set(runs.sweep(view, lambda word: None)[0]["steady"]["Eg"]) == {0.5}
    with pytest.raises(ValueError, match="nothing is learned"):
        runs.activations(view, lambda word: None)


@pytest.mark.endurance
def test_a_steady_state_can_be_interrupted_while_it_is_looked_for():
    """Compiled code that met the signal turned it into a SystemError, or went on."""
    script = """if True:
        import os, signal, threading, time
        import manypass as mp
        from manypass.cavity import settle
        signal.signal(signal.SIGINT, signal.default_int_handler)  # behind & it would be ignored
        measured, sent = settle.Box.measure, []
        def measure(*arguments):
            if not sent:
                sent.append(time.perf_counter())
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            return measured(*arguments)
        settle.Box.measure = measure
        data = mp.Teacher(alpha=1.2)
        problem = mp.Problem(data, mp.Logistic(), rate=1.0, decay=1e-4)
        try:
            mp.steady_state(problem, mp.DMFT(rtol=0.1))
        except KeyboardInterrupt:
            print("interrupted" if time.perf_counter() - sent[0] < 5 else "too late")
    """
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.stderr) == ("interrupted", "")
