"""Run the kernels for a card in numba's simulator and replay them in numpy; `test_cuda` starts it.

The simulator must be chosen before numba is imported, so this is a program of its own.
"""

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import json
import math
import traceback
import warnings

import numpy as np
from numba import cuda

import manypass as mp
from manypass import card
from manypass.layers.activation import values
from manypass.layers.net import Net
from manypass.simulation.cuda import layered, networks
from manypass.simulation.cuda.philox import HEAT, normals, philox


@cuda.jit
def four_words(start, key, out):
    a = philox(start, start, start, start, key, key)
    for i in range(4):
        out[i] = a[i]


@cuda.jit
def some_normals(seed, network, place, out):
    z = normals(seed, network, HEAT, place)
    for i in range(4):
        out[i] = z[i]


def test_philox_gives_the_published_numbers():
    """The known answers of Random123 for Philox 4x32-10."""
    known = {
        0: (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        0xFFFFFFFF: (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    }
    for word, expected in known.items():
        out = np.zeros(4, np.uint64)
        four_words[1, 1](np.uint64(word), np.uint64(word), out)
        assert tuple(int(v) for v in out) == expected


def kick(seed, network, step, n):
    """The normal numbers of one step."""
    quads = networks.padded(n) // 4
    out = np.zeros((quads, 4))
    for q in range(quads):
        some_normals[1, 1](np.uint64(seed), np.uint64(network), np.uint64(step * quads + q), out[q])
    return out.ravel()[:n]


def replay(net, problem, orders):
    """Learn the same examples in the same order, in plain numpy; returns J after each step."""
    n, p = net.method.n, net.examples.p
    X = net.examples.X.copy_to_host().reshape(-1, p, net.examples.width)[:, :, :n].astype(float)
    targets = net.examples.targets.copy_to_host().astype(float)
    out = np.zeros((net.count, orders.shape[1] + 1, n))
    for s in range(net.count):
        out[s, 0] = net.beginnings(net.examples.width).reshape(net.count, -1)[s, :n]
        table = s if net.examples.apart else 0
        for i, m in enumerate(orders[s]):
            J = out[s, i]
            F = problem.rule.force(J @ X[table, m], targets[table, m])
            v, decay = float(problem.v(i / n)), float(problem.decays(i / n))
            J = J + v / n * (F * X[table, m] - decay * J)
            if problem.temperature:
                noise = kick(net.method.seed, net.first + s, i, n)
                J = J + np.sqrt(2 * problem.temperature) / n * noise
            out[s, i + 1] = J
    return out


def learned(problem, steps, **settings):
    """Networks after some steps, and the order in which they learned."""
    method = mp.Simulation(device="cuda", **settings)
    net = networks.Networks(method, problem, 3, method.samples, (None, None))
    orders = []
    for _ in range(steps):
        place = net.draw()
        orders.append(net.order.copy_to_host()[:, place].copy())
        net.advance((net.step + 1) / method.n)
    return net, np.stack(orders, axis=1)


def own_force(x, target, strength):
    return strength * np.tanh(target - x)


OWN = mp.Rule(own_force, strength=0.7)


def test_learning_is_the_same_as_in_numpy():
    for rule in (mp.Adaline(), mp.Adatron(0.5), mp.Perceptron(), mp.Logistic(), mp.Huber(), OWN):
        problem = mp.Problem(mp.Teacher(1.0, noise=0.3), rule, rate=1.2, decay=0.3)
        net, orders = learned(problem, 12, n=9, samples=2, seed=5, precision="float64")
        expected = replay(net, problem, orders)[:, -1]
        np.testing.assert_allclose(net.weights(), expected, rtol=1e-6, atol=1e-9)


def test_schedules_and_starts():
    changes = {"rate": "cosine:1.2:0.1:8", "decay": "steps:0:0.3:0.5:0.9:8:0.1"}
    start = mp.Start(0.4, 1.5)
    problem = mp.Problem(mp.Teacher(1.0, noise=0.3), mp.Huber(), start=start, **changes)
    for kind in ("replacement", "reshuffled", "fixed"):
        given = problem.replace(sequence=kind)
        net, orders = learned(given, 6, n=9, samples=2, seed=5, precision="float64")
        first = net.beginnings(net.examples.width).reshape(2, -1)
        B = net.B.copy_to_host().reshape(2, -1)
        np.testing.assert_allclose(np.sum(first * B, axis=1), 0.4, rtol=1e-6)
        np.testing.assert_allclose(np.sum(first**2, axis=1), 1.5, rtol=1e-6)
        assert (first[:, 9:] == 0).all()
        expected = replay(net, given, orders)[:, -1]
        np.testing.assert_allclose(net.weights(), expected, rtol=1e-6, atol=1e-9)
    # Many steps at once, over the bound of what is launched together, and in any waves.
    method = mp.Simulation(n=9, samples=3, seed=5, device="cuda", precision="float64")
    found = mp.solve(problem, [0.0, 12.0], method)
    assert networks.STEPS < 12 * 9
    np.testing.assert_allclose([found.R[0], found.Q[0]], [0.4, 1.5], rtol=1e-6)
    net = networks.Networks(method, problem, 0, 3, (None, None))
    orders = []
    for _ in range(108):
        place = net.draw()
        orders.append(net.order.copy_to_host()[:, place].copy())
        net.advance((net.step + 1) / 9)
    last = replay(net, problem, np.stack(orders, axis=1))[:, -1]
    np.testing.assert_allclose(found.Q[1], np.mean(np.sum(last**2, axis=1)), rtol=1e-6)
    whole = mp.solve(problem, [0.0, 1.0], method)
    card.ENOUGH = card.MOST = 2
    parts = mp.solve(problem, [0.0, 1.0], method)
    card.ENOUGH, card.MOST = 2048, 16_384
    np.testing.assert_allclose(parts.Q, whole.Q, rtol=1e-12)


def test_given_weights_on_the_card():
    X = np.eye(6)[:, :5] + 0.1
    weights = [0.5, -1.0, 0.25, 0.0, 2.0]
    data = mp.Dataset(X, X @ np.ones(5), task="regression")
    problem = mp.Problem(data, mp.Adaline(), rate=0.5, start=mp.Start(weights=weights))
    found = mp.solve(problem, [0.0], mp.Simulation(samples=2, device="cuda", precision="float64"))
    np.testing.assert_allclose(found.Q[0], np.sum(np.square(weights)))
    np.testing.assert_allclose(found.F2[0], np.mean((data.y - X @ weights) ** 2))


def test_noise_in_the_weights_and_single_precision():
    problem = mp.Problem(mp.Teacher(0.8), mp.Adaline(), rate=1.0, decay=0.1, temperature=0.2)
    net, orders = learned(problem, 6, n=10, samples=2, seed=1)
    assert net.weights().dtype == np.float32
    np.testing.assert_allclose(net.weights(), replay(net, problem, orders)[:, -1], atol=1e-5)


def test_sequences():
    for kind in ("reshuffled", "fixed"):
        problem = mp.Problem(mp.Teacher(1.0), mp.Adaline(), rate=0.5, sequence=kind)
        _, orders = learned(problem, 21, n=7, samples=3)
        first, second, third = orders[:, :7], orders[:, 7:14], orders[:, 14:]
        for epoch in (first, second, third):
            assert (np.sort(epoch, axis=1) == np.arange(7)).all()
        assert (first == second).all() == (kind == "fixed")
        assert not (first[0] == first[1]).all()
    _, orders = learned(problem.replace(sequence="replacement"), 64, n=7, samples=2)
    counts = np.bincount(orders[0], minlength=7)
    assert counts.sum() == 64
    assert counts.max() < 25
    assert (np.diff(orders[0]) == 0).any()  # with replacement


def test_what_is_measured():
    problem = mp.Problem(
        mp.Teacher(1.2, "regression", noise=0.5), mp.Huber(0.8), rate=1.0, decay=0.2
    )
    net, _ = learned(problem, 10, n=10, samples=3, precision="float64")
    found, J = net.measure(), net.weights()
    X = net.examples.X.copy_to_host().reshape(3, 12, 12)[:, :, :10]
    B = net.B.copy_to_host().reshape(3, 12)
    targets = net.examples.targets.copy_to_host()
    np.testing.assert_allclose(np.sum(B**2, axis=1), 1.0)
    x = np.einsum("spj,sj->sp", X, J)
    np.testing.assert_allclose(found["R"], np.sum(B[:, :10] * J, axis=1))
    np.testing.assert_allclose(found["Q"], np.sum(J**2, axis=1))
    np.testing.assert_allclose(found["F2"], np.mean(problem.rule.force(x, targets) ** 2, axis=1))
    np.testing.assert_allclose(found["Et"], np.mean((targets - x) ** 2, axis=1) / 2)
    y = np.einsum("spj,sj->sp", X, B[:, :10])
    assert 0.1 < np.std(targets - y) < 1.0  # the noise in the targets
    seen = net.activations(net.step / 10)
    np.testing.assert_allclose(seen["x"], x)
    np.testing.assert_allclose(seen["y"], y, rtol=1e-6)


def test_correlated_inputs():
    """The law of inputs and teacher, learning, and what is measured in the metric."""
    law = mp.PowerLaw(1.2, 1.4, cutoff=0.2)
    mu, P = law.drawn(10)
    data = mp.Teacher(60.0, noise=0.3, inputs=law)
    given = mp.Problem(data, mp.Huber(0.8), rate=0.1, decay=0.2, start=mp.Start(-0.3, 0.9))
    net, orders = learned(given, 12, n=10, samples=3, seed=4, precision="float64")
    X = net.examples.X.copy_to_host().reshape(3, 600, 12)
    B = net.B.copy_to_host().reshape(3, 12)[:, :10]
    assert (X[:, :, 10:] == 0).all()
    X = X[:, :, :10]
    np.testing.assert_allclose(mu * B**2, np.tile(P, (3, 1)), rtol=1e-12)
    assert 0 < (B > 0).sum() < 30
    z = (np.einsum("spi,spj->ij", X, X) / 1800 - np.diag(mu)) / np.sqrt(np.outer(mu, mu) / 1800)
    z[np.diag_indices(10)] /= np.sqrt(2)
    assert np.abs(z).max() < 4.5
    assert 0.7 < z[np.tril_indices(10)].std() < 1.3
    targets = net.examples.targets.copy_to_host()
    y = np.einsum("spj,sj->sp", X, B)
    assert 0.85 < (np.sign(y) == targets).mean() < 0.98  # arctan(ε)/π = 9 % are wrong
    first = net.beginnings(12).reshape(3, 12)[:, :10]
    np.testing.assert_allclose(np.sum(B * mu * first, axis=1), -0.3, rtol=1e-9)
    np.testing.assert_allclose(np.sum(mu * first**2, axis=1), 0.9, rtol=1e-9)
    path = replay(net, given, orders)
    J, found = net.weights(), net.measure()
    np.testing.assert_allclose(J, path[:, -1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found["R"], np.sum(B * mu * J, axis=1))
    np.testing.assert_allclose(found["Q"], np.sum(mu * J**2, axis=1))
    x = np.einsum("spj,sj->sp", X, J)
    np.testing.assert_allclose(found["F2"], np.mean(given.rule.force(x, targets) ** 2, axis=1))
    method = mp.Simulation(n=10, samples=3, seed=4, device="cuda", precision="float64")
    both = mp.solve(given, [0.0, 0.5], method, two_time=True)
    np.testing.assert_allclose(np.diagonal(both.C), both.Q, rtol=1e-9)
    coarse = given.replace(rate=0.5)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        mp.solve(coarse, [0.0], method)
    assert any("`n` = 10 is small for these inputs" in str(each.message) for each in told)


def test_fresh_examples():
    """Every step takes a row that never was; they are those of any wave, and of any time."""
    law = mp.Blocks([0.3, 2.5], [3, 1])
    data = mp.Teacher(math.inf, "regression", noise=0.3, inputs=law)
    problem = mp.Problem(data, mp.Adaline(), rate=0.1, decay=0.2)
    method = mp.Simulation(n=10, samples=2, seed=4, device="cuda", precision="float64")
    net = networks.Networks(method, problem, 3, 2, (None, None))
    assert net.examples.p == 10
    B, J, seen = net.B.copy_to_host().reshape(2, 12)[:, :10], np.zeros((2, 10)), []
    steps = 3 * networks.ROWS + 2
    for k in range(steps):
        place = net.draw()
        X = net.source.X.copy_to_host().reshape(2, networks.ROWS, 12)[:, place, :10]
        aims = net.source.targets.copy_to_host()[:, place]
        J = J + 0.1 / 10 * ((aims - np.sum(J * X, axis=1))[:, None] * X - 0.2 * J)
        seen.append((X, aims - np.sum(B * X, axis=1)))
        net.advance((k + 1) / 10)
    np.testing.assert_allclose(net.weights(), J, rtol=1e-6, atol=1e-9)
    X, noise = (np.array(part) for part in zip(*seen, strict=True))
    own = net.examples.X.copy_to_host().reshape(2, 10, 12)[:, :, :10]
    assert np.unique(np.concatenate([X.ravel(), own.ravel()])).size == X.size + own.size
    assert np.unique(noise.round(12)).size == noise.size
    assert 0.2 < noise.std() < 0.4
    z = (np.mean(X**2, axis=(0, 1)) / law.drawn(10)[0] - 1) * np.sqrt(steps)  # of 2 networks
    assert np.abs(z).max() < 4.5
    again = networks.Networks(method, problem, 4, 1, (None, None))
    again.advance(steps / 10)
    np.testing.assert_allclose(again.weights()[0], J[1], rtol=1e-6, atol=1e-9)
    assert np.isfinite(mp.solve(problem, [0.0, 1.0], method).F2).all()


def test_waves_give_the_same_numbers():
    problem = mp.Problem(mp.Teacher(1.0), mp.Adatron(), rate=1.0, decay=0.2)
    method = mp.Simulation(n=8, samples=5, seed=3, device="cuda")
    whole = mp.solve(problem, [0.5, 1.0], method, two_time=True)
    card.ENOUGH = card.MOST = 2
    told = []
    parts = mp.solve(problem, [0.5, 1.0], method, two_time=True, progress=told.append)
    card.ENOUGH, card.MOST = 2048, 16_384
    assert len(told) == 3
    for name in ("R", "Q", "F2", "Et", "Eg", "C", "R_se", "F2_se"):
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(whole.C), whole.Q, rtol=1e-5)


def test_averaged_weights():
    problem = mp.Problem(mp.Teacher(1.0), mp.Adaline(), rate=1.0, decay=0.5)
    method = mp.Simulation(n=8, samples=2, seed=2, settle=1.0, device="cuda", precision="float64")
    found = mp.steady_state(problem, method, window=1.0)
    net = networks.Networks(method, problem, 0, 2, (None, None))
    net.draw()
    path = replay(net, problem, net.order.copy_to_host()[:, :16])
    mean = path[:, 9:17].mean(axis=1)
    np.testing.assert_allclose(found.Q, np.mean(np.sum(mean**2, axis=1)), rtol=1e-6)


def test_a_state_that_is_not_steady_is_told():
    problem = mp.Problem(mp.Teacher(1.0), mp.Adaline(), rate=0.05, decay=0.5)
    method = mp.Simulation(n=8, samples=6, settle=2.0, device="cuda")
    for window in (0.0, 0.5):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            assert "moved" not in mp.steady_state(problem, method, window=window)
        assert any("Q still grows from t = 1 to 2" in str(each.message) for each in told)


def test_given_data():
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((9, 5)), rng.standard_normal(5)
    data = mp.Dataset(X[:6], X[:6] @ w, X[6:], X[6:] @ w, task="regression")
    problem = mp.Problem(data, mp.Adaline(), rate=0.5, decay=0.1, sequence="fixed")
    method = mp.Simulation(samples=2, device="cuda", precision="float64")
    found = mp.solve(problem, [0.6, 1.2], method)
    given = (networks.Examples.given(data.X, data.y, "float64"), None)
    net = networks.Networks(method._on(problem), problem, 0, 2, given)
    net.draw()
    path = replay(net, problem, net.order.copy_to_host())[:, [3, 6]]
    square = np.mean((data.y_test - path @ data.X_test.T) ** 2, axis=(0, 2))
    np.testing.assert_allclose(found.F2_test, square, rtol=1e-6)
    np.testing.assert_allclose(found.Q, np.mean(np.sum(path**2, axis=2), axis=0), rtol=1e-6)


def test_divergence_is_counted_and_nan_is_named():
    problem = mp.Problem(mp.Teacher(0.5, "regression"), mp.Adaline(), rate=60.0)
    found = mp.solve(problem, [1.0, 20.0], mp.Simulation(n=8, samples=3, device="cuda"))
    assert int(found.diverged[-1]) == 3
    assert np.isinf(found.Q[-1])
    broken = mp.Rule(lambda x, target: 1.0 if x < 0.3 else np.nan, lambda x, target: 0.0 * x)
    method = mp.Simulation(n=8, samples=3, device="cuda")
    try:
        mp.solve(problem.replace(rule=broken, rate=5.0), [4.0], method)
    except ValueError as error:
        assert "NaN" in str(error)
    else:
        raise AssertionError("NaN was not noticed")


def committee(activation="tanh", **changes):
    """A problem of two layers; both learn. The activation is the teacher's."""
    data = mp.Teacher(1.0, "regression", 0.2, hidden=2, second=[1.0, -0.7], activation=activation)
    rule = mp.Committee(3, "erf", second=[0.5, -0.4, 1.0], second_rate=0.3)
    start = mp.Start(0.2 * np.eye(3, 2), 0.3 * np.eye(3) + 0.05)
    problem = mp.Problem(data, rule, rate=1.2, decay=0.3, start=start)
    return problem.replace(**changes)


def test_two_layers_learn_as_in_numpy():
    for changes in (
        {},
        {"rate": "cosine:1.2:0.1:8", "sequence": "reshuffled"},
        {"task": "classification", "temperature": 0.1, "alpha": math.inf},
        {"rule": mp.Committee(3, "relu"), "sequence": "fixed", "activation": "linear"},
    ):
        problem, n, steps = committee(**changes), 10, 12
        method = mp.Simulation(device="cuda", n=n, samples=2, seed=5, precision="float64")
        net = layered.LayeredNetworks(method, problem, 3, 2, (None, None))
        J, B = net.weights().copy(), net.B.copy_to_host().reshape(2, 2, -1)[:, :, :n]
        a = net.second.copy_to_host()
        np.testing.assert_allclose(np.einsum("skj,smj->skm", J, B)[1], problem.start.R, atol=1e-9)
        np.testing.assert_allclose(np.einsum("skj,slj->skl", J, J)[0], problem.start.Q, atol=1e-9)
        rule = problem.rule
        for i in range(steps):
            place = net.draw()
            orders = net.order.copy_to_host()[:, place]
            X = net.source.X.copy_to_host().reshape(2, net.source.p, -1)[:, :, :n]
            targets = net.source.targets.copy_to_host()
            for s, m in enumerate(orders):
                own = rule.changed(second=a[s])
                x = J[s] @ X[s, m]
                F = own.force(x, targets[s, m])
                left = targets[s, m] - values(x, rule.kind) @ a[s]
                v, decay = float(problem.v(i / n)), float(problem.decays(i / n))
                a[s] += rule.second_rate / n * left * values(x, rule.kind)
                J[s] += v / n * (F[:, None] * X[s, m] - decay * J[s])
                if problem.temperature:
                    kicks = [kick(5, 3 + s, 3 * i + unit, n) for unit in range(3)]
                    J[s] += np.sqrt(2 * problem.temperature) / n * np.array(kicks)
            net.advance((i + 1) / n)
        np.testing.assert_allclose(net.weights(), J, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(net.second.copy_to_host(), a, rtol=1e-6)
        y = np.einsum("spj,smj->spm", X, B)
        clean = values(y, Net.of(problem).taught) @ Net.of(problem).b
        if problem.data.task == "classification":
            assert set(np.unique(targets)) <= {-1.0, 1.0}
        else:
            assert abs(np.std(targets - clean) / 0.2 - 1) < 0.5


def test_what_is_measured_of_two_layers():
    for task in ("regression", "classification"):
        problem = committee(task=task)
        method = mp.Simulation(device="cuda", n=9, samples=3, seed=5, precision="float64")
        found = mp.solve(problem, [0.5, 1.0], method, two_time=True)
        net = layered.LayeredNetworks(method, problem, 0, 3, (None, None))
        net.advance(1.0)
        J, a = net.weights(), net.second.copy_to_host()
        X = net.examples.X.copy_to_host().reshape(3, 9, -1)[:, :, :9]
        targets = net.examples.targets.copy_to_host()
        x = np.einsum("skj,spj->spk", J, X)
        left = targets - np.einsum("spk,sk->sp", values(x, 0), a)
        F = np.stack([problem.rule.changed(second=a[s]).force(x[s], targets[s]) for s in range(3)])
        np.testing.assert_allclose(found.F2[-1], np.mean(np.sum(F**2, axis=2)), rtol=1e-6)
        wrong = np.mean((targets - left) * targets < 0)
        error = wrong if task == "classification" else np.mean(left**2) / 2
        np.testing.assert_allclose(found.Et[-1], error, rtol=1e-6)
        Q = np.einsum("skj,slj->kl", J, J) / 3
        np.testing.assert_allclose(found.Q[-1], Q, rtol=1e-6)
        np.testing.assert_allclose(found.C[-1, -1], Q, rtol=1e-6)
        np.testing.assert_allclose(found.a[-1], a.mean(axis=0), rtol=1e-9)
        assert found.R.dims == ("t", "unit", "teacher")
        assert found.C.dims == ("t", "s", "unit", "unit2")


if __name__ == "__main__":
    found = {}
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            try:
                check()
                found[name] = ""
            except Exception:
                found[name] = traceback.format_exc()
    print(json.dumps(found))
