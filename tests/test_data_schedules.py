"""Rates that change, starts and batches on given data: against the recursion, step by step."""

import numpy as np
import pytest
from data_sets import critical, data_set, measured, sgd
from scipy.integrate import solve_ivp

import manypass as mp
from manypass import schedules
from manypass.data.moments import Moments
from manypass.data.stepping import follow

RNG = np.random.default_rng(3)
STIFF = RNG.standard_normal((60, 6)) * np.array([3, 1, 0.3, 0.1, 0.03, 0.01]) + [4, 0, 0, 0, 0, 0]
STIFF = np.column_stack((STIFF, STIFF[:, 1] - STIFF[:, 2]))  # a direction without examples
DATA = mp.Dataset(
    STIFF,
    STIFF[:, 1] + RNG.standard_normal(60),
    RNG.standard_normal((20, 7)),  # not in the span
    RNG.standard_normal(20),
)
WEIGHTS = mp.Start(weights=RNG.standard_normal(7))


def problem_on(data=DATA, rate=0.1, decay=0.05, **more):
    return mp.Problem(data, mp.Adaline(), rate=rate, decay=decay, **more)


def recursion(problem, steps):
    """⟨J⟩ and ⟨JJᵀ⟩ in the given columns, one step at a time: F2, F2_test, Q."""
    data, B, T = problem.data, problem.batch_size, problem.temperature
    X, y, n = data.X, data.y, data.n
    H, g = X.T @ X / data.p, X.T @ y / data.p
    m = np.array(problem.start.weights) if problem.start else np.zeros(n)
    S, out = np.outer(m, m), []

    def squares(X, y):
        return y**2 - 2 * y * (X @ m) + ((X @ S) * X).sum(axis=1)

    for k in range(max(steps) + 1):
        if k in steps:
            out.append(
                (squares(X, y).mean(), squares(data.X_test, data.y_test).mean(), np.trace(S))
            )
        t = k * B / n
        nu, decay = float(problem.v(t)) / n, float(problem.decays(t))
        P, mixed = np.outer(m, g) - S @ H, np.outer(g, m) @ H
        forces = (X.T * squares(X, y)) @ X / data.p / B
        forces += (1 - 1 / B) * (np.outer(g, g) - mixed - mixed.T + H @ S @ H)
        forces += decay**2 * S - decay * (P + P.T)
        S = S + nu * (P + P.T - 2 * decay * S) + nu**2 * forces + 2 * T * B / n**2 * np.eye(n)
        m = m + nu * (g - H @ m - decay * m)
    return dict(zip(("F2", "F2_test", "Q"), np.transpose(out), strict=True))


LIMIT = mp.critical_rate(problem_on())
SCHEDULES = {
    "steps": {"rate": schedules.Steps([(0, 0.6 * LIMIT), (5, 0.1 * LIMIT), (40.1, 0.3 * LIMIT)])},
    "inverse": {"rate": schedules.InverseTime(0.5 * LIMIT, 4.0)},
    "invscaling": {"rate": schedules.InverseTime(2 * LIMIT, 1 / 7, 0.25)},
    "exponential": {"rate": schedules.Exponential(0.8 * LIMIT, 30.0)},
    "cosine": {"rate": schedules.Cosine(0.7 * LIMIT, 0.0, 50.0)},
    "warmup": {"rate": schedules.Warmup(10.0, 0.5 * LIMIT)},
    "function": {"rate": lambda t: LIMIT * (0.3 + 0.2 * np.sin(t / 5))},
    "decay": {"rate": 0.3 * LIMIT, "decay": schedules.Cosine(1.0, 0.01, 60.0)},
    "both": {
        "rate": schedules.Exponential(0.8 * LIMIT, 30.0),
        "decay": schedules.Steps([(0, 0.5), (20, 0.0)]),
    },
}
STEPS = (0, 1, 2, 5, 30, 35, 36, 200, 281, 1000)


@pytest.mark.parametrize("more", [{}, {"start": WEIGHTS, "temperature": 0.01, "batch_size": 3}])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_give_what_single_steps_give(name, more):
    """Stiff, with a direction that no example has, in which a start and heat live on."""
    problem = problem_on(**SCHEDULES[name], **more)
    times = np.array(STEPS) * problem.batch_size / 7
    found = mp.solve(problem, times)
    for key, values in recursion(problem, STEPS).items():
        np.testing.assert_allclose(found[key], values, rtol=1e-5, err_msg=key)


def test_few_evaluations_are_needed(monkeypatch):
    """A thousand times fewer than steps."""
    data = data_set("diabetes")
    calls, before = [], Moments.pull
    monkeypatch.setattr(Moments, "pull", lambda *a: calls.append(1) or before(*a))
    rate = schedules.Cosine(0.5 * critical("diabetes"), 0.0, 1e5)
    mp.solve(problem_on(data, rate), [1e5])
    assert len(calls) < 1e5 * data.n / 1000


def test_steps_are_a_chain_of_constants():
    v, w, k = 0.6 * LIMIT, 0.2 * LIMIT, 70
    both = Moments(
        problem_on(rate=schedules.Steps([(0, v), (k / 7, w)]), start=WEIGHTS), DATA.principal
    )
    one, two = (Moments(problem_on(rate=rate, start=WEIGHTS), DATA.principal) for rate in (v, w))
    (_, middle), (_, end) = follow(both, [k, 200], 1e-7)
    (_, state), *_ = follow(one, [k], 1e-7)
    np.testing.assert_allclose(middle.Sigma, state.Sigma, rtol=1e-9)

    class Later(Moments):
        first = state

    two.__class__ = Later
    (_, last), *_ = follow(two, [200 - k], 1e-7)
    np.testing.assert_allclose(end.Sigma, last.Sigma, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(end.m, last.m, rtol=1e-9)
    same = mp.solve(problem_on(rate=schedules.Steps([(0, v), (10, v)])), [30.0])
    np.testing.assert_allclose(same.F2, mp.solve(problem_on(rate=v), [30.0]).F2, rtol=1e-5)


def test_two_times_of_a_schedule():
    """C(t,s) of the mean over all sequences there are."""
    data = mp.Dataset([[1.0, 0.5], [-0.3, 1.2], [0.4, -2.0]], [0.7, -1.1, 0.4])
    rate = schedules.InverseTime(1.5, 1.0)
    problem = problem_on(data, rate, 0.3, start=mp.Start(weights=[0.5, -1.0]))
    J = np.full((1, 1, 2), problem.start.weights)
    for k in range(7):
        now, nu = J[:, -1], float(rate(k / 2)) / 2
        grown = []
        for xi, y in zip(data.X, data.y, strict=True):
            after = now + nu * ((y - now @ xi)[:, None] * xi - 0.3 * now)
            grown.append(np.concatenate((J, after[:, None]), axis=1))
        J = np.concatenate(grown)
    found = mp.solve(problem, np.arange(8) / 2, two_time=True)
    np.testing.assert_allclose(found.C, np.einsum("rti,rsi->ts", J, J) / len(J), rtol=1e-8)
    H = data.X.T @ data.X / 3
    one = np.eye(2) - float(rate(0.5)) / 2 * (H + 0.3 * np.eye(2))
    np.testing.assert_allclose(found.G[2, 1], np.trace(one) / 2, rtol=1e-12)


@pytest.mark.physics
@pytest.mark.parametrize(
    ("name", "samples"), [("digits", 2500), ("breast cancer", 15_000), ("diabetes", 25_000)]
)
def test_curves_agree_with_plain_sgd(name, samples):
    data = data_set(name)
    v, rng, z, errors = critical(name), np.random.default_rng(1), [], []
    start = mp.Start(weights=rng.standard_normal(data.n) / np.sqrt(data.n))
    for i, (rate, more) in enumerate(
        (
            (schedules.InverseTime(0.3 * v, 2.0), {"start": start}),
            (schedules.Cosine(0.8 * v, 0.0, 8.0), {"batch_size": 4}),
            (schedules.Steps([(0, 0.3 * v), (4, 0.1 * v)]), {"decay": "exponential:0.5:3"}),
        )
    ):
        problem = problem_on(data, rate, **{"decay": 0.05} | more)
        times = np.array([1, 3, 8]) * data.n / problem.batch_size  # whole steps
        times = np.floor(times) * problem.batch_size / data.n
        found = measured(problem, sgd(problem, times, samples, [7, i]))
        theory = mp.solve(problem, times)
        for key, (mean, error) in found.items():
            z.append((mean - theory[key].values) / error)
            if key != "Q":
                errors.append(error / mean)
    print(f"{name}: largest |z| {np.abs(z).max():.1f}, rms {np.sqrt(np.mean(np.square(z))):.2f}")
    assert np.abs(z).max() < 4, np.round(z, 1)
    assert np.max(errors) < 0.02 / 3.3  # a mistake of 2 % anywhere would be seen


@pytest.mark.parametrize("more", [{}, {"diagonal": True}])
@pytest.mark.parametrize("decay", [0.05, "cosine:1:0:5"])
@pytest.mark.parametrize("rate", [0.3, "cosine:0.5:0:8", "steps:0:0.2:3:0.05"])
def test_batch_learning(rate, decay, more):
    """Gradient flow, by a solver of differential equations."""
    problem = problem_on(rate=rate, decay=decay, mode="batch", start=WEIGHTS, temperature=0.1)
    H, g = DATA.X.T @ DATA.X / 60, DATA.X.T @ DATA.y / 60

    def slope(t, flat):
        v, decay = float(problem.v(t)), float(problem.decays(t))
        m, S = flat[:7], flat[7:].reshape(7, 7)
        A = v * (H + decay * np.eye(7))
        return np.concatenate([v * g - A @ m, (0.2 / 7 * np.eye(7) - A @ S - S @ A).ravel()])

    flat = np.concatenate([WEIGHTS.weights, np.zeros(49)])
    for begin, end in ((0, 3 - 1e-12), (3, 7)):
        flat = solve_ivp(slope, (begin, end), flat, "LSODA", rtol=1e-9, atol=1e-11).y[:, -1]
    m, S = flat[:7], flat[7:].reshape(7, 7)
    Q = m @ m + np.trace(S)
    F2 = np.mean((DATA.y_test - DATA.X_test @ m) ** 2 + ((DATA.X_test @ S) * DATA.X_test).sum(1))
    found = mp.solve(problem, [1.0, 7.0], mp.Exact(**more), two_time=True)
    np.testing.assert_allclose(found.Q[-1], Q, rtol=1e-6)
    np.testing.assert_allclose(found.C[-1, -1], Q, rtol=1e-6)
    if not more:
        np.testing.assert_allclose(found.F2_test[-1], F2, rtol=1e-6)


def test_steady_states_forget_the_start():
    problem = problem_on(rate=0.3 * LIMIT, batch_size=2)
    there = mp.steady_state(problem)
    np.testing.assert_allclose(mp.steady_state(problem.replace(start=WEIGHTS)).Q, there.Q)
    late = mp.solve(problem.replace(start=WEIGHTS), [1e6])
    np.testing.assert_allclose(late.F2[-1], there.F2, rtol=1e-5)
    alone = mp.steady_state(problem.replace(batch_size=1))
    assert alone.F2 > there.F2  # the noise of two examples is half that of one
    with pytest.raises(ValueError, match="part of `start` that lies in no example"):
        mp.steady_state(problem.replace(start=WEIGHTS, decay=0.0))


def test_reshuffled_epochs_start_anywhere():
    data = data_set("diabetes")
    start = mp.Start(weights=np.linspace(-1, 1, data.n))
    problem = problem_on(data, 0.3 * critical("diabetes"), sequence="reshuffled", start=start)
    near = mp.solve(problem, [0.0, 0.5], mp.Exact())
    other = mp.solve(problem.replace(sequence="replacement"), [0.0, 0.5])
    np.testing.assert_allclose(near.F2[0], other.F2[0], rtol=1e-12)
    np.testing.assert_allclose(near.F2[1], other.F2[1], rtol=0.01)


def test_the_critical_rate_of_batches_is_per_step():
    moving = problem_on(rate="cosine:1:0:3", start=WEIGHTS)
    with pytest.warns(UserWarning, match="a limit to constant rates"):
        assert mp.critical_rate(moving) == LIMIT
    problem = moving.replace(rate=1.0)
    assert LIMIT < mp.critical_rate(problem.replace(batch_size=4)) < 4 * LIMIT
    above = problem_on(rate=1.1 * mp.critical_rate(problem_on(batch_size=4)), batch_size=4)
    with pytest.raises(ValueError, match="not below the critical rate"):
        mp.steady_state(above)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"momentum": 0.9}, "`momentum` = 0.9"),
        ({"rate": "cosine:1:0:3", "sequence": "reshuffled"}, "the schedule `rate` = cosine:1:0:3"),
        ({"batch_size": 2, "sequence": "reshuffled"}, "`batch_size` = 2 with `sequence`"),
        ({"batch_share": 0.5, "start": WEIGHTS}, "`batch_share` = 0.5"),
    ],
)
def test_what_is_not_served_is_named(change, said):
    with pytest.raises(ValueError, match=said):
        mp.solve(problem_on().replace(**change), [1.0], mp.Exact())


def test_there_is_no_steady_state_of_a_schedule():
    with pytest.raises(ValueError, match="no steady state of the schedule `decay` = cosine:1:0:3"):
        mp.steady_state(problem_on(decay="cosine:1:0:3"), mp.Exact())
    with pytest.raises(ValueError, match="does not serve the schedule `decay`"):
        mp.critical_rate(problem_on(decay="cosine:1:0:3"))
