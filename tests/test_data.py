"""The moments of SGD on given data: against enumeration, plain numpy SGD, and known limits."""

import itertools

import numpy as np
import pytest
from data_sets import NAMES, critical, data_set, error_rates, measured, sgd, squared_errors

import manypass as mp
from manypass.data.averaging import Averages
from manypass.data.moments import Moments

TINY = mp.Dataset(
    [[1.0, 0.5], [-0.3, 1.2], [0.4, -2.0]], [0.7, -1.1, 0.4], [[1.0, 1.0], [0.2, -1.0]], [1.0, 0.5]
)


def problem_on(data, rate, decay=0.05, **more):
    return mp.Problem(data, mp.Adaline(), rate=rate, decay=decay, **more)


def every_run(problem, steps):
    """Weights after each step of every sequence of examples there is: runs × (steps + 1) × N."""
    data, nu, batch = problem.data, problem.rate / problem.data.n, problem.batch_size
    J = np.zeros((1, 1, data.n))
    linear = problem.rule.name == "adaline"
    for _ in range(steps):
        now, grown = J[:, -1], []
        for chosen in itertools.product(range(data.p), repeat=batch):
            X, y = data.X[list(chosen)], data.y[list(chosen)]
            pull = (y - linear * (now @ X.T)) @ X / batch
            after = now + nu * (pull - problem.decay * now)
            grown.append(np.concatenate((J, after[:, None]), axis=1))
        J = np.concatenate(grown)
    return J


@pytest.mark.parametrize("rate", [0.2, 1.0, 4.0])  # far below, near and far above critical
@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Hebbian()])
def test_the_mean_over_all_sequences_is_exact(rate, rule):
    problem = mp.Problem(TINY, rule, rate=rate, decay=0.3)
    J = every_run(problem, 8)
    found = mp.solve(problem, np.arange(9) / 2, two_time=True)
    train = squared_errors(TINY.X, TINY.y, J).mean(axis=0)
    np.testing.assert_allclose(found.Et, train / 2, rtol=1e-9)
    test = squared_errors(TINY.X_test, TINY.y_test, J).mean(axis=0)
    np.testing.assert_allclose(found.Eg, test / 2, rtol=1e-9)
    np.testing.assert_allclose(found.C, np.einsum("rti,rsi->ts", J, J) / len(J), rtol=1e-9)
    if rule.name == "adaline":
        np.testing.assert_allclose(found.F2, train, rtol=1e-9)
        np.testing.assert_allclose(found.F2_test, test, rtol=1e-9)
    else:
        np.testing.assert_allclose(found.F2, np.mean(TINY.y**2), rtol=1e-12)
    if rate == 4.0 and rule.name == "adaline":
        assert mp.critical_rate(problem) < rate
        assert (np.diff(train) > 0).all()


def test_the_mean_over_all_batches_and_averaged_weights_are_exact():
    for batch, steps in ((1, 8), (2, 4)):
        problem = mp.Problem(TINY, mp.Adaline(), rate=0.8 * batch, decay=0.3, batch_size=batch)
        J = every_run(problem, steps)
        moments = Moments(problem, TINY.principal)
        averages = Averages(
            moments, sorted({1, 3, 5, steps} & set(range(steps + 1))), 1e-9, lambda Sigma: Sigma
        )
        for start, end in ((0, steps), (1, 3), (3, steps)):
            mean = J[:, start + 1 : end + 1].mean(axis=1)
            m, half = averages.mean(start, end), averages.halves(start, end)
            spread = np.trace(half + half.T)
            np.testing.assert_allclose(m @ m + spread, np.mean((mean**2).sum(axis=1)), rtol=1e-8)


RUNS = {
    "digits": ((1, 4, 10), 2500),
    "breast cancer": ((1, 4, 10), 12_000),
    "diabetes": ((1, 4, 12), 25_000),
    "student norms": ((1, 4, 8), 20_000),
    "lognormal norms": ((1, 4, 10), 8_000),
}


@pytest.mark.physics
@pytest.mark.parametrize("name", NAMES)
def test_curves_agree_with_plain_sgd(name):
    times, samples = RUNS[name]
    z, errors = [], []
    for i, share in enumerate((0.1, 0.3, 0.6)):
        problem = problem_on(data_set(name), share * critical(name))
        found, theory = (
            measured(problem, sgd(problem, times, samples, [5, i])),
            mp.solve(problem, times),
        )
        for key, (mean, error) in found.items():
            z.append((mean - theory[key].values) / error)
            if key != "Q":
                errors.append(error / mean)
    print(f"{name}: largest |z| {np.abs(z).max():.1f}, rms {np.sqrt(np.mean(np.square(z))):.2f}")
    assert np.abs(z).max() < 4, np.round(z, 1)
    assert np.max(errors) < 0.02 / 3.3  # a mistake of 2 % anywhere would be seen


@pytest.mark.physics
def test_noise_and_batches_agree_with_plain_sgd():
    problem = problem_on(data_set("breast cancer"), 0.6, temperature=0.05, batch_size=6)
    times = (1.6, 4.8)
    found, theory = measured(problem, sgd(problem, times, 6000, 3)), mp.solve(problem, times)
    for name in ("F2", "F2_test", "Q"):
        assert (np.abs(theory[name] - found[name][0]) < 3.5 * found[name][1]).all()
    assert (found["F2"][1] < 0.005 * found["F2"][0]).all()


@pytest.mark.physics
def test_big_steps_give_what_single_steps_give():
    """Stiff, overshooting, heated, with collinear columns: against the recursion itself."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 6)) * np.array([3, 1, 0.3, 0.1, 0.03, 0.01]) + [4, 0, 0, 0, 0, 0]
    X = np.column_stack((X, X[:, 1] - X[:, 2]))
    y = X[:, 1] + rng.standard_normal(60)
    data = mp.Dataset(X, y)
    limit = mp.critical_rate(problem_on(data, 1.0, 0.01))
    for share, T in ((0.05, 0.0), (0.5, 0.01), (0.9, 0.0), (1.05, 0.0)):
        problem = problem_on(data, share * limit, 0.01, temperature=T)
        steps = (1, 2, 5, 30, 200, 1500)
        found = mp.solve(problem, np.array(steps) / 7)
        H, g, nu, lam = X.T @ X / 60, X.T @ y / 60, problem.rate / 7, 0.01
        m, S = np.zeros(7), np.zeros((7, 7))
        F2, Q = [], []
        for k in range(max(steps) + 1):
            F = y**2 - 2 * y * (X @ m) + ((X @ S) * X).sum(axis=1)
            if k in steps:
                F2.append(F.mean())
                Q.append(np.trace(S))
            P = np.outer(m, g) - S @ H
            noise = (X.T * F) @ X / 60 - lam * (P + P.T) + lam**2 * S
            S = S + nu * (P + P.T - 2 * lam * S) + nu**2 * noise + 2 * T / 49 * np.eye(7)
            m = m + nu * (g - H @ m - lam * m)
        np.testing.assert_allclose(found.F2, F2, rtol=1e-5)
        np.testing.assert_allclose(found.Q, Q, rtol=1e-5)


def test_late_times_are_the_steady_state():
    for name, share in (("diabetes", 0.6), ("breast cancer", 0.9)):
        problem = problem_on(data_set(name), share * critical(name))
        late, steady = mp.solve(problem, [1e3, 1e9]), mp.steady_state(problem)
        for key in late:
            np.testing.assert_allclose(late[key][-1], steady[key], rtol=1e-5)


@pytest.mark.physics
def test_steady_state_windows_and_two_times_agree_with_the_simulator():
    problem = problem_on(data_set("diabetes"), 0.4, 0.3, temperature=0.02)
    simulation = mp.Simulation(samples=2000, settle=25, seed=2)
    measured = mp.steady_state(problem, simulation, window=3.0)
    theory = mp.steady_state(problem, window=3.0)
    for key in ("Q", "F2", "F2_test", "Et", "Eg"):
        assert abs(measured[key] - theory[key]) < 4 * measured[f"{key}_se"], key
    assert float(measured.F2_test_se / measured.F2_test) < 0.006
    assert float(theory.F2_test) < 0.95 * float(mp.steady_state(problem).F2_test)
    times = [0.5, 2, 6]
    measured = mp.solve(problem, times, mp.Simulation(samples=400, response=True), two_time=True)
    theory = mp.solve(problem, times, two_time=True)
    for key in ("C", "G"):
        z = (measured[key] - theory[key]) / np.maximum(measured[f"{key}_se"], 1e-9)
        assert np.abs(z).max() < 4
        assert theory[key].shape == (3, 3)


@pytest.mark.parametrize("sequence", ["replacement", "reshuffled", "fixed"])
def test_simulation_runs_on_the_very_examples(sequence):
    """Orders of three examples are few: the average over them can be written down."""
    problem = mp.Problem(TINY, mp.Adaline(), rate=1.0, decay=0.1, sequence=sequence)
    orders = list(itertools.permutations(range(3)))
    if sequence == "replacement":
        orders = list(itertools.product(range(3), repeat=3))
    following = [(a, b) for a in orders for b in (orders if sequence != "fixed" else [a])]
    finals = []
    for a, b in following:
        J = np.zeros(2)
        for mu in (*a, *b):
            J = J + 0.5 * ((TINY.y[mu] - J @ TINY.X[mu]) * TINY.X[mu] - 0.1 * J)
        finals.append(J)
    exact = squared_errors(TINY.X_test, TINY.y_test, np.array(finals)).mean()
    found = mp.solve(problem, [3.0], mp.Simulation(samples=2500, seed=1))
    assert abs(float(found.F2_test[0]) - exact) < 4 * float(found.F2_test_se[0])
    assert "R" not in found
    assert int(found.diverged[0]) == 0


def test_batch_learning_is_the_same_by_theory_and_simulation():
    problem = problem_on(data_set("diabetes"), 0.5, mode="batch")
    theory = mp.solve(problem, [1, 5])
    found = mp.solve(problem, [1, 5], mp.Simulation(samples=2))
    for key in theory:
        np.testing.assert_allclose(found[key], theory[key], rtol=1e-4)
    assert mp.critical_rate(problem) == np.inf
    hot = problem.replace(temperature=0.1)
    found = mp.solve(hot, [3], mp.Simulation(samples=400))
    assert abs(float((found.Q - mp.solve(hot, [3]).Q)[0])) < 4 * float(found.Q_se[0])
    late = mp.solve(hot, [1e7])
    for key in late:
        np.testing.assert_allclose(late[key][0], mp.steady_state(hot)[key], rtol=1e-9)
    assert float(mp.steady_state(hot, window=50).Q) < float(mp.steady_state(hot).Q)


@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_critical_rate_is_where_the_exact_map_reaches_one(decay):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((9, 4)) * rng.lognormal(0, 1, (9, 1))
    for data in (
        mp.Dataset(X, -X[:, 0]),
        mp.Dataset(X[:3], -X[:3, 0]),
    ):  # and fewer examples than N
        rate = mp.critical_rate(problem_on(data, 1.0, decay))
        A = [(1 - rate * decay / 4) * np.eye(4) - rate / 4 * np.outer(x, x) for x in data.X]
        top = np.linalg.eigvalsh(np.mean([np.kron(a, a) for a in A], axis=0))
        top = top[np.abs(top - 1) > 1e-9] if decay == 0 and data.p < 4 else top
        near = np.sort(top)[-1] if decay or data.p > 4 else 1.0
        np.testing.assert_allclose(near, 1, atol=1e-7)
        assert (top < 1 + 1e-7).all()
    data = data_set("digits")
    eigenvalues = np.linalg.eigvalsh(data.X.T @ data.X / data.p)
    spectral = 2 / np.mean(eigenvalues**2 / (eigenvalues + 0.05))
    assert 25 < spectral / critical("digits") < 45  # large norms are not in the spectrum


@pytest.mark.parametrize("rule", [mp.Hebbian(), mp.Logistic(), mp.Huber(), mp.Perceptron()])
@pytest.mark.filterwarnings("ignore:`rule` .* is one of margins")
def test_bounded_forces_have_a_critical_rate_only_by_their_decay(rule):
    problem = mp.Problem(TINY, rule, rate=0.1, sequence="reshuffled")
    assert mp.critical_rate(problem) == np.inf
    assert (
        mp.critical_rate(problem.replace(decay=2.0, mode="batch", sequence="replacement")) == np.inf
    )
    limit = mp.critical_rate(problem.replace(decay=2.0))
    assert limit == 2 * TINY.n / 2.0
    for factor, grows in ((0.97, False), (1.03, True)):
        J, v, Q = np.full(TINY.n, 0.1), factor * limit / TINY.n, []
        for step in range(1200):
            i = step % TINY.p
            J = (1 - 2.0 * v) * J + v * rule.force(TINY.X[i] @ J, TINY.y[i]) * TINY.X[i]
            Q.append(J @ J)
        assert bool(Q[-1] > 1e3 * Q[599]) is grows


@pytest.mark.filterwarnings("ignore:`rule` .* is one of margins")
def test_rules_without_a_critical_rate_say_so():
    problem = mp.Problem(TINY, mp.Adatron(), rate=0.1)
    with pytest.raises(
        ValueError, match=r"neither linear nor bounded: .* Simulation\(samples=100\)"
    ):
        mp.critical_rate(problem)
    assert mp.critical_rate(problem.replace(mode="batch")) == np.inf


@pytest.mark.physics
def test_runs_above_the_critical_rate_diverge_in_the_mean():
    data = data_set("diabetes")
    times, samples = (0.5, 1.0, 1.5), 100_000
    problem = problem_on(data, 1.1 * critical("diabetes"))
    J, theory = sgd(problem, times, samples, 7), mp.solve(problem, [*times, 50])
    runs = squared_errors(data.X, data.y, J)
    mean, error = runs.mean(axis=1), runs.std(axis=1) / np.sqrt(samples)
    assert (np.abs(mean - theory.F2.values[:3]) < 4 * error).all()
    assert (np.diff(mean) > 5 * error[1:]).all()
    assert theory.F2[3] > 1e8
    assert np.isinf(mp.solve(problem.replace(rate=30.0), [1e4]).F2[0])
    # Rare bad runs do it: a hundredth of them has most of the sum, the typical one looks fine.
    late = np.sort(squared_errors(data.X, data.y, sgd(problem, (10,), 4000, 8)[0]))
    assert late[-40:].sum() > 0.5 * late.sum()
    assert late[:2000].sum() < 0.05 * late.sum()
    with pytest.raises(ValueError, match=r"`rate` = .* is not below the critical rate v_c = "):
        mp.steady_state(problem)
    calm = mp.solve(problem.replace(rate=0.98 * critical("diabetes")), [1e6]).F2[0]
    assert np.isfinite(calm)


@pytest.mark.physics
def test_gaussian_data_become_the_teacher_as_n_grows():
    teacher = mp.Problem(mp.Teacher(alpha=2.0), mp.Adaline(), rate=0.8, decay=0.3)
    times, rng = [0.5, 1, 2, 4], np.random.default_rng(0)
    theory, mean, error, scatter = mp.solve(teacher, times), {}, {}, {}
    for n, count in ((12, 40), (24, 24), (48, 16)):
        off = []
        for _ in range(count):
            X, B = rng.standard_normal((2 * n, n)), rng.standard_normal(n)
            data = mp.Dataset(X, np.sign(X @ B))
            found = mp.solve(teacher.replace(data=data), times, mp.Exact(accuracy=1e-2))
            off.append([(found[k] / theory[k] - 1).values for k in ("Q", "F2")])
        mean[n], scatter[n] = np.mean(off, axis=0), np.std(off, axis=0)
        error[n] = scatter[n] / np.sqrt(count)
    for n in (12, 24):  # what is left is of order 1/N: extrapolated it is gone
        gap, width = 2 * mean[2 * n] - mean[n], np.hypot(2 * error[2 * n], error[n])
        print("extrapolated z:", (gap / width).round(1).tolist())
        assert np.abs(gap / width).max() < 4
        assert width.max() < 0.12
    assert (scatter[48] < 0.8 * scatter[12]).all()  # single matrices come near as well
    X, B = rng.standard_normal((300, 150)), rng.standard_normal(150)
    one = teacher.replace(data=mp.Dataset(X, np.sign(X @ B)))
    found = mp.solve(one, times, mp.Exact(accuracy=1e-2))
    for i, key in enumerate(("Q", "F2")):  # fluctuations go as 1/√N at least
        allowed = 3 * scatter[48][i] * np.sqrt(48 / 150)
        assert (np.abs(found[key] / theory[key] - 1) < allowed).all()
    assert abs(mp.critical_rate(one) / mp.critical_rate(teacher) - 1) < 0.1


def test_error_rates_are_those_of_gaussian_activations():
    for name, share, allowed in (("digits", 0.6, 0.002), ("breast cancer", 0.3, 0.005)):
        problem = problem_on(data_set(name), share * critical(name))
        J, theory = sgd(problem, (4, 10), 600, 4), mp.solve(problem, [4, 10])
        data = problem.data
        for i in range(2):
            for key, X, y in (("Et", data.X, data.y), ("Eg", data.X_test, data.y_test)):
                runs = error_rates(X, y, J[i])
                error = runs.std() / np.sqrt(runs.size)
                assert abs(runs.mean() - float(theory[key][i])) < allowed + 3.5 * error, (name, key)


@pytest.mark.parametrize("mode", ["online", "batch"])
def test_before_learning_classes_are_guessed(mode):
    problem = mp.Problem(mp.Dataset(np.eye(3), [1, -1, 1]), mp.Adaline(), rate=0.1, mode=mode)
    assert mp.solve(problem, [0, 1]).Et[0] == 0.5


def test_the_diagonal_approximation_is_near_and_says_so():
    far = {}
    for name in ("digits", "breast cancer"):
        problem = problem_on(data_set(name), 0.8 * critical(name))
        full, rough = mp.steady_state(problem), mp.steady_state(problem, mp.Exact(diagonal=True))
        assert "diagonal" in rough.attrs["approximation"]
        assert "approximation" not in full.attrs
        far[name] = abs(float(rough.F2 / full.F2) - 1)
        late = mp.solve(problem, [1e7], mp.Exact(diagonal=True))
        np.testing.assert_allclose(late.F2[0], rough.F2, rtol=1e-5)
    assert far["digits"] < 0.003
    assert 0.01 < far["breast cancer"] < 0.3


def test_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setattr("manypass.memory.available", lambda: 1e6)
    with pytest.raises(ValueError, match=r"GB of memory .* fewer examples or columns"):
        mp.Dataset(np.random.default_rng(0).standard_normal((1000, 200)), np.ones(1000))
