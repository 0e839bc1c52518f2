"""Data sets that the tests share, and SGD on them in plain numpy: the judge of the theory."""

import functools

import numpy as np
from sklearn import datasets

import manypass as mp

NAMES = ("digits", "breast cancer", "diabetes", "student norms", "lognormal norms")


def standard(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def numbers(name):
    rng = np.random.default_rng(8)
    if name == "digits":
        found = datasets.load_digits()
        return standard(found.data), np.where(found.target % 2, 1.0, -1.0)
    if name == "breast cancer":
        found = datasets.load_breast_cancer()
        return standard(found.data), 2.0 * found.target - 1
    if name == "diabetes":
        found = datasets.load_diabetes()
        return standard(found.data), standard(found.target[:, None])[:, 0]
    X = rng.standard_normal((400, 20)) / np.sqrt(np.arange(1, 21))
    if name == "student norms":
        X *= rng.standard_t(4, (400, 1))
        return X, X[:, 0] + 0.5 * rng.standard_normal(400)
    X *= rng.lognormal(0, 0.7, (400, 1))
    return X, np.sign(X @ rng.standard_normal(20) + 0.5 * rng.standard_normal(400))


@functools.cache
def data_set(name):
    X, y = numbers(name)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(order, [3 * len(X) // 4])
    return mp.Dataset(X[train], y[train], X[test], y[test])


@functools.cache
def critical(name, decay=0.05):
    return mp.critical_rate(mp.Problem(data_set(name), mp.Adaline(), rate=1.0, decay=decay))


def sgd(problem, times, samples, seed):
    """Weights of many runs of the problem's own step rule: times × samples × N."""
    rng, data = np.random.default_rng(seed), problem.data
    n, T, batch = data.n, problem.temperature, problem.batch_size
    J, out, steps = np.zeros((samples, n)), [], [round(t * n / batch) for t in times]
    J += problem.start.weights if problem.start else 0.0
    for step in range(max(steps) + 1):
        if step in steps:
            out.append(J.copy())
        pull = np.zeros_like(J)
        for _ in range(batch):
            drawn = rng.integers(data.p, size=samples)
            xi = data.X[drawn]
            x = np.einsum("sn,sn->s", J, xi) if problem.rule.name == "adaline" else 0.0
            pull += (data.y[drawn] - x)[:, None] * xi
        v, decay = (float(value(step * batch / n)) for value in (problem.v, problem.decays))
        J = J + v / n * (pull / batch - decay * J)
        if T:
            J += np.sqrt(2 * T * batch) / n * rng.standard_normal(J.shape)
    return np.array(out)


def squared_errors(X, y, J):
    """Mean of (y − x)² over a set, for every run."""
    H, g = X.T @ X / len(y), X.T @ y / len(y)
    return np.einsum("...i,...i->...", J @ H, J) - 2 * J @ g + np.mean(y**2)


def error_rates(X, y, J):
    return np.mean(y[:, None] * (X @ J.T) < 0, axis=0)


def measured(problem, J):
    """Mean and standard error of Q, F2 and F2_test."""
    data = problem.data
    values = {
        "Q": np.einsum("tsn,tsn->ts", J, J),
        "F2": squared_errors(data.X, data.y, J),
        "F2_test": squared_errors(data.X_test, data.y_test, J),
    }
    return {
        name: (v.mean(axis=1), v.std(axis=1, ddof=1) / np.sqrt(v.shape[1]))
        for name, v in values.items()
    }


def agrees(errors, predicted):
    """Trained networks have the predicted error, and 2 % would be seen."""
    error = errors.std() / np.sqrt(errors.size)
    z = (errors.mean() - predicted) / error
    print(f"predicted {predicted:.5f}, got {errors.mean():.5f} +- {error:.5f}, z = {z:.1f}")
    assert abs(z) < 4
    assert error < 0.005 * predicted  # 2 % would be seen
