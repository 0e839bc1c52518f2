"""Schedules, starts, small batches, momentum at finite N, against plain loops of the same draws."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import manypass as mp
from manypass import orders, schedules
from manypass.problem import SEQUENCES
from manypass.simulation import batch
from manypass.simulation.examples import drawing

RNG = np.random.default_rng(5)
TEACHER = mp.Teacher(1.2, noise=0.2)
GIVEN = mp.Dataset(RNG.standard_normal((18, 12)), RNG.standard_normal(18), task="regression")
EVERY = (
    schedules.Steps([(0, 0.9), (0.3, 0.0), (0.7, 0.4)]),
    schedules.InverseTime(0.9, 0.5),
    schedules.InverseTime(0.9, 0.5, 0.25),
    schedules.Exponential(0.9, 0.6),
    schedules.Cosine(0.9, 0.1, 1.1),
    schedules.Warmup(0.4, 0.8),
    schedules.Warmup(0.1, schedules.Steps([(0, 0.9), (0.5, 0.2)])),
    schedules.Function(lambda t: 0.8 / (1 + t**2)),
)
START = {"Teacher": mp.Start(0.3, 0.8), "Dataset": mp.Start(weights=RNG.standard_normal(12) / 4)}
DATA = pytest.mark.parametrize("data", [TEACHER, GIVEN], ids=["Teacher", "Dataset"])
ORDER = pytest.mark.parametrize("sequence", SEQUENCES)


def problem(data=TEACHER, rule=None, **changes):
    settings = {"rate": 0.9, "decay": 0.4} | changes
    return mp.Problem(data, rule or mp.Adaline(), **settings)


def sampled(given, **settings):
    """One sample of 20 weights, or of as many as the data have."""
    method = mp.Simulation(**{"n": 20} | settings)
    if isinstance(given.data, mp.Dataset):
        method = mp.Simulation(**settings)._on(given)
    return method._maker(given, 1)(np.random.SeedSequence(3))


def plain(sample, steps, t, b, noise):
    """J after so many steps of b examples at times t, as `Problem` says it, β on what V was."""
    given, (X, aims) = sample.problem, (sample.examples.X, sample.examples.targets)
    n = X.shape[1]
    draw = drawing(given.sequence, len(X), np.random.default_rng(sample.draws))
    J, V = np.zeros(n) + sample.start, np.zeros(n)
    for k in range(steps):
        chosen = draw(b)
        F = np.array([given.rule.force(X[m] @ J, aims[m]) for m in chosen])
        V = given.momentum * V + X[chosen].T @ F / b - float(given.decays(t(k))) * J
        J = J + float(given.v(t(k))) / n * V + noise(k)
    return J


@DATA
@ORDER
@pytest.mark.parametrize("schedule", EVERY, ids=str)
def test_one_at_a_time_takes_the_rate_of_its_step(data, sequence, schedule):
    for changes in ({"rate": schedule}, {"decay": schedule}, {"rate": schedule, "decay": schedule}):
        start = START[type(data).__name__]
        sample = sampled(problem(data, sequence=sequence, start=start, **changes))
        net, n = sample.network(), sample.examples.X.shape[1]
        for time in (0.5, 0.6, 2.0):  # in pieces
            net.advance(time)
        expected = plain(sample, 2 * n, lambda k, n=n: k / n, 1, lambda k: 0.0)
        assert_allclose(net.J, expected, rtol=1e-11, atol=1e-13)


def test_noise_in_the_weights_does_not_follow_the_rate():
    sample = sampled(problem(rate=EVERY[4], decay=EVERY[1], temperature=0.3, rule=mp.Logistic()))
    net = sample.network()
    sequence, offsets = net.plan(40)
    total = np.zeros(20)
    net.learn(sequence[:17], offsets[:17], total)
    net.learn(sequence[17:], offsets[17:], total)
    kick = [np.sign(o) * net.pool[abs(o) : abs(o) + 20] for o in offsets]
    assert_allclose(net.J, plain(sample, 40, lambda k: k / 20, 1, kick.__getitem__), rtol=1e-11)


@pytest.mark.filterwarnings("ignore:`batch_size` = 30 is more than")
@DATA
@ORDER
@pytest.mark.parametrize("b", [1, 4, 7, 30])
@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_batches_of_a_size_and_momentum(data, sequence, b, momentum, temperature):
    given = problem(
        data,
        sequence=sequence,
        batch_size=b,
        momentum=momentum,
        rate=EVERY[4],
        decay=EVERY[2],
        temperature=temperature,
        start=START[type(data).__name__],
    )
    if b == 1 and not momentum and temperature:
        return  # its noise comes from a pool, see above
    sample = sampled(given)
    net, n, count = sample.network(), sample.examples.X.shape[1], 12
    for steps in (1, 5, count):
        net.advance(steps * b / n)
    kicks = np.random.default_rng(sample.noise).standard_normal((count, n))
    noise = (math.sqrt(2 * temperature * b) / n * kicks).__getitem__
    expected = plain(sample, count, lambda k: k * b / n, b, noise)
    assert_allclose(net.J, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("share", [1 / 6, 0.5, 1.0])
@pytest.mark.parametrize("momentum", [0.0, 0.6])
@ORDER
def test_batches_that_are_a_share(share, momentum, sequence):
    """V ← βV + Σ F ξ − λNΔJ, J ← J + (v/N)V with v, λ as the batch begins; Δ = βα."""
    rate = schedules.Steps([(0, 0.3), (0.6, 0.1), (1.8, 0.2)])  # 3·0.6 < 1.8 by rounding
    given = problem(
        sequence=sequence, batch_share=share, momentum=momentum, rate=rate, decay=EVERY[2]
    )
    sample = sampled(given)
    net, X, aims = sample.network(), sample.examples.X, sample.examples.targets
    draw = drawing(sequence, 24, np.random.default_rng(sample.draws))
    J, V, step, each = np.zeros(20), np.zeros(20), 1.2 * share, round(24 * share)
    for k in range(8):
        t = k * step + 1e-12
        chosen = draw(each)
        V = momentum * V + X[chosen].T @ (aims[chosen] - X[chosen] @ J)
        V -= float(given.decays(t)) * 20 * step * J
        J = J + float(rate(t)) / 20 * V
    net.advance(8 * step)
    assert_allclose(net.J, J, rtol=1e-9, atol=1e-12)


def test_momentum_is_that_of_pytorch():
    """torch.optim.SGD(lr, momentum, weight_decay): g ← ∇L + λw, buf ← β buf + g, w ← w − lr buf."""
    sample = sampled(problem(GIVEN, batch_size=3, momentum=0.9, sequence="reshuffled"))
    X, y, n = sample.examples.X, sample.examples.targets, 12
    w, buf, lr = np.zeros(n), None, 0.9 / n
    draw = drawing("reshuffled", 18, np.random.default_rng(sample.draws))
    for _ in range(25):
        chosen = draw(3)
        gradient = X[chosen].T @ (X[chosen] @ w - y[chosen]) / 3  # of the mean of ½(y − x·w)²
        gradient += 0.4 * w
        buf = gradient if buf is None else 0.9 * buf + gradient
        w = w - lr * buf
    net = sample.network()
    net.advance(25 * 3 / n)
    assert_allclose(net.J, w, rtol=1e-11)


def test_without_momentum_a_batch_of_one_is_one_example_at_a_time():
    """The kernel of many examples gives the steps of the kernel of one."""
    single = sampled(problem(rate=EVERY[4])).network()
    nearly = sampled(problem(rate=EVERY[4], momentum=1e-13)).network()
    for t in (0.124, 0.126, 1.5):  # 2.48 and 2.52 steps: to the nearest
        single.advance(t)
        nearly.advance(t)
        assert single.steps == nearly.steps == round(20 * t)
        assert_allclose(nearly.J, single.J, rtol=1e-9)


def test_single_precision_keeps_a_small_decay():
    """1 − vλ/N in single precision would be off by a share of λ; the drag is not."""
    silent = mp.Rule(force=lambda x, y: 0.0 * x, slope=lambda x, y: 0.0 * x)
    given = problem(rule=silent, decay=1e-4, batch_size=2, start=mp.Start(0.0, 1.0))
    sample = sampled(given, n=200, precision="float32")
    net = sample.network()
    net.advance(100.0)
    assert -math.log(net.J @ net.J) == pytest.approx(2 * 0.9 / 2 * 1e-4 * 100, rel=0.02)


# --- batch mode -------------------------------------------------------------------------------


def flowed(sample, times):
    """Weights by an integrator of high order, piece by piece."""
    given, X, aims = sample.problem, sample.examples.X, sample.examples.targets

    def drift(t, J):
        F = given.rule.force(X @ J, aims)
        return float(given.v(t)) * (X.T @ F / len(X) - float(given.decays(t)) * J)

    J, out = np.zeros(X.shape[1]) + sample.start, []
    edges = {0.0, *times, *schedules.breaks(given.rate, given.decay)}
    for low, high in pairwise(sorted(edges)):
        inside = (low * (1 + 1e-14) + 1e-14, high * (1 - 1e-14))
        J = solve_ivp(drift, inside, J, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
        out += [J] if high in times else []
    return np.array(out)


@DATA
@pytest.mark.parametrize("schedule", [*EVERY, schedules.Exponential(5.0, 0.02)], ids=str)
def test_gradient_flow_follows_its_schedules(data, schedule):
    for changes in ({"rate": schedule}, {"decay": schedule, "rate": 0.7}):
        given = problem(data, mode="batch", start=START[type(data).__name__], **changes)
        sample = sampled(given)
        net, times = sample.network(), (0.05, 2.0, 7.0)
        for time, expected in zip(times, flowed(sample, times), strict=True):
            net.advance(time)
            assert_allclose(net.J, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.physics
def test_gradient_flow_of_a_force_without_slope_follows_the_rate():
    """Hebbian learning: J(t) = ∫v dt times one vector, however fast v changes."""
    sample = sampled(problem(rule=mp.Hebbian(), rate=schedules.Cosine(1.0, 0.0, 8.0), decay=0.0))
    given = sample.problem.replace(mode="batch")
    other = sampled(given).network()
    other.advance(5.0)
    X, aims = sample.examples.X, sample.examples.targets
    area = 2.5 + 4 / math.pi * math.sin(5 * math.pi / 8)
    assert_allclose(other.J, area * X.T @ aims / len(X), rtol=1e-6)


@pytest.mark.physics
def test_noise_of_gradient_flow_does_not_follow_the_rate():
    silent = mp.Rule(force=lambda x, y: 0.0 * x, slope=lambda x, y: 0.0 * x)
    given = problem(rule=silent, rate=EVERY[4], decay=0.0, temperature=0.3, mode="batch")
    found = mp.solve(given, [0.5, 2.0], mp.Simulation(n=100, samples=240, seed=1))
    z = (found.Q.values - 0.6 * found.t.values) / found.Q_se.values
    assert np.abs(z).max() < 3.5
    assert (found.Q_se / found.Q < 0.01).all()


def test_a_jump_that_was_not_told_ends():
    sample = sampled(problem(mode="batch", rate=lambda t: 1.0 if t < 0.3333 else 0.1))
    told = schedules.Steps([(0, 1.0), (0.3333, 0.1)])
    same = sampled(problem(mode="batch", rate=told)).network()
    net = sample.network()
    for each in (net, same):
        each.advance(2.0)
    assert_allclose(net.J, same.J, atol=2e-3)
    assert max(v.size for _, v, _ in net.blocks(0.0, 2.0)) < 4 * batch.BLOCK


# --- the method -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["online", "batch"])
def test_a_start_has_its_overlap_and_is_drawn_anew(mode):
    given = problem(mode=mode, start=mp.Start(0.3, 0.8))
    found = mp.solve(given, [0.0, 1.0], mp.Simulation(n=30, samples=4), two_time=True)
    assert_allclose([found.R[0], found.Q[0]], [0.3, 0.8], rtol=1e-12)
    first, second = (sampled(given) for _ in range(2))
    assert (first.network().J == second.network().J).all()
    other = mp.Simulation(n=20)._maker(given, 1)(np.random.SeedSequence(4))
    assert not (first.network().J == other.network().J).all()
    # The other random numbers are those without a start.
    assert (first.examples.X == sampled(problem(mode=mode)).examples.X).all()


def test_a_start_of_zero_is_no_start():
    method = mp.Simulation(n=20, samples=3)
    same = mp.solve(problem(start=mp.Start()), [1.0, 2.0], method)
    assert (same.Q.values == mp.solve(problem(), [1.0, 2.0], method).Q.values).all()


def test_given_weights_are_the_start():
    found = mp.solve(problem(GIVEN, start=START["Dataset"]), [0.0], mp.Simulation(samples=2))
    w = np.array(START["Dataset"].weights)
    assert float(found.Q[0]) == pytest.approx(w @ w, rel=1e-14)
    assert float(found.F2[0]) == pytest.approx(np.mean((GIVEN.y - GIVEN.X @ w) ** 2), rel=1e-12)


@DATA
@ORDER
@pytest.mark.parametrize(
    "changes", [{"batch_size": 3, "rate": 1.8}, {"momentum": 0.5}, {}], ids=str
)
def test_steady_states_of_the_same_dynamics(data, sequence, changes):
    """Forgotten starts, and means over an epoch after every batch of it."""
    given = problem(data, sequence=sequence, **{"rate": 0.6} | changes)
    method = mp.Simulation(n=20 if data is TEACHER else 500, samples=2, settle=90.0)
    with_start = given.replace(start=START[type(data).__name__])
    one, two = (mp.steady_state(each, method, window=3.0) for each in (given, with_start))
    assert_allclose(one.F2, two.F2, rtol=1e-6)
    assert_allclose(one.Q, two.Q, rtol=1e-6)
    if sequence == "fixed" and "batch_size" in changes:
        p, n = (24, 20) if data is TEACHER else (18, 12)
        end = math.ceil(90 / (p / n) - 1e-9) * p / n
        start = math.ceil((end + 3.0) / (p / n) - 1e-9) * p / n
        cycle = mp.solve(given, start + 3 / n * np.arange(1, p // 3 + 1), method)
        assert_allclose(one.F2, cycle.F2.mean(), rtol=1e-6)


@pytest.mark.parametrize("changes", [{"batch_size": 3}, {"momentum": 0.5}, {"rate": EVERY[4]}])
def test_averaged_weights_are_the_mean_of_all_steps(changes):
    given = problem(**{"start": mp.Start(0.3, 0.8)} | changes)
    at_once, path, total = sampled(given).network(), sampled(given).network(), np.zeros(20)
    step = given.batch_size / 20
    at_once.advance(10 * step)
    path.advance(10 * step)
    assert at_once.advance(30 * step, total) == pytest.approx(20 * step)
    summed = np.zeros(20)
    for k in range(11, 31):
        path.advance(k * step)
        summed += path.J
    assert_allclose(total, step * summed, rtol=1e-10)


@pytest.mark.parametrize("changes", [{}, {"batch_size": 5, "rate": "steps:0:4:0.5:2"}], ids=str)
def test_the_response_of_weights_that_only_decay(changes):
    """Hebbian learning: G(t,s) = Π(1 − vλ/N) over the steps from s to t."""
    given = problem(rule=mp.Hebbian(), **{"rate": EVERY[4], "decay": EVERY[0]} | changes)
    method, t = mp.Simulation(n=20, samples=1, response=True), np.array([0.25, 0.5, 1.0, 2.0])
    G = mp.solve(given, t, method, two_time=True).G.values
    times = np.arange(40 // given.batch_size) * given.batch_size / 20
    keep = np.cumprod([1.0, *(1 - given.v(times) * given.decays(times) / 20)])
    at = keep[np.rint(t * 20 / given.batch_size).astype(int)]
    assert_allclose(G, np.tril(at[:, None] / at), atol=1e-7)


@DATA
def test_no_steady_state_while_the_rate_changes(data):
    for changes in ({"rate": "cosine:1:0.1:2"}, {"decay": "steps:0:1:2:0.5"}):
        name = next(iter(changes))
        said = rf"no steady state of the schedule `{name}` = .*: give the constant value"
        with pytest.raises(ValueError, match=said):
            mp.steady_state(problem(data, **changes), mp.Simulation(samples=2))
        assert orders.refusal(problem(data, **changes), "Simulation") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decay": "steps:0:1:2:30"}, r"`n` = 20 must exceed rate·decay = 27"),
        ({"decay": lambda t: 40 * t}, r"`n` = 20 must exceed rate·decay, \d.* at t = "),
        ({"decay": 30.0, "momentum": 0.5}, r"`n` = 20 must exceed rate·decay = 27"),
        ({"rate": lambda t: 1 - t}, r"`rate`, a function .* number from 0 .* at t = 1\.05"),
    ],
)
def test_refusals(changes, said):
    with pytest.raises(ValueError, match=said):
        mp.solve(problem(**changes), [3.0], mp.Simulation(n=20, samples=2))


def test_one_weight_has_no_room_beside_the_teacher():
    with pytest.raises(ValueError, match=r"`n` = 1 has no room for a `start` with Q > R²"):
        mp.solve(problem(start=mp.Start(0.3, 0.8)), [1.0], mp.Simulation(n=1, samples=2))


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"batch_size": 4}, "`batch_size` = 4"), ({"momentum": 0.5}, "`momentum` = 0.5")],
)
def test_a_card_refuses_batches_and_momentum(changes, said):
    with pytest.raises(ValueError, match=rf"does not serve {said} .*: take device='cpu'"):
        mp.solve(problem(**changes), [1.0], mp.Simulation(n=20, device="cuda"))


@pytest.mark.parametrize("changes", [{"rate": "cosine:1:0.1:2"}, {"start": mp.Start(0.1, 0.2)}])
def test_the_cavity_experiment_refuses_by_name(changes):
    with pytest.raises(
        ValueError, match=rf"cavity_experiment\(\) does not serve .*`{next(iter(changes))}`"
    ):
        mp.cavity_experiment(problem(**changes), [0.5], n=20)


@pytest.mark.physics
@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 8, "rate": 8.0},
        {"momentum": 0.9, "rate": 0.1},
        {"batch_size": 3, "momentum": 0.6, "rate": 1.2},
    ],
    ids=str,
)
def test_small_batches_and_momentum_are_another_rate_at_large_n(changes):
    """v/b(1 − β): the same examples in the same order at that rate, corrections being of order 1/N.

    That plain learning is what the exact theory says is told elsewhere.
    """
    given = mp.Problem(mp.Teacher(1.5, noise=0.3), mp.Adaline(), decay=0.2, **changes)
    times, names, mean, error = np.array([1.0, 2.0, 4.0]), ("R", "Q", "F2"), {}, {}
    for n in (300, 600):
        gaps = []
        for i in range(200):
            one, two = (
                mp.Simulation(n=n)
                ._maker(each, 1)(np.random.SeedSequence(n, spawn_key=(i,)))
                .curves(times, False)
                for each in (given, orders.equivalent(given))
            )
            gaps.append([one[name] - two[name] for name in names])
        mean[n], error[n] = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / math.sqrt(200)
    limit, sigma = 2 * mean[600] - mean[300], np.hypot(2 * error[600], error[300])
    exact = mp.solve(given, times, mp.Exact())
    assert (sigma < 0.0028 * np.array([exact[name] for name in names])).all()  # 1 % would be seen
    assert np.abs(limit / sigma).max() < 3.5
    assert np.sqrt(np.mean((limit / sigma) ** 2)) < 1.6


@pytest.mark.physics
@pytest.mark.parametrize(
    ("changes", "n", "samples"),
    [
        ({"rate": "cosine:1.5:0.1:3", "decay": "steps:0:0.1:1.5:0.6"}, 200, 1500),
        ({"rate": "warmup:0.8:inverse:1.4:2", "temperature": 0.1}, 200, 1500),
        ({"rate": "exponential:2:1.5", "temperature": 0.1, "mode": "batch"}, 100, 1500),
    ],
    ids=lambda value: value.get("mode", value["rate"]) if isinstance(value, dict) else "",
)
def test_schedules_and_starts_against_the_exact_theory(changes, n, samples):
    """z-scores of what two sizes extrapolate to; corrections are of order 1/N."""
    start = mp.Start(0.4, 1.2)
    given = mp.Problem(mp.Teacher(1.5, noise=0.3), mp.Adaline(), start=start, **changes)
    times = [1.0, 2.0, 4.0]
    small, large = (
        mp.solve(given, times, mp.Simulation(n=size, samples=samples, seed=size))
        for size in (n, 2 * n)
    )
    exact, z = mp.solve(given, times, mp.Exact()), []
    for name in ("R", "Q", "F2"):
        error = np.hypot(2 * large[f"{name}_se"], small[f"{name}_se"])
        assert float((error / exact[name]).max()) < 0.006, name  # 2 % would be seen
        z += ((2 * large[name] - small[name] - exact[name]) / error).values.tolist()
    assert np.abs(z).max() < 3.5
    assert np.sqrt(np.mean(np.square(z))) < 1.8
