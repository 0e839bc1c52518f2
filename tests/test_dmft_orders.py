"""The mean-field solver where examples come in epochs, and in batches of a share of them."""

import numpy as np
import pytest
from references import Table, tables

import manypass as mp

NONLINEAR = ("adatron", "perceptron", "logistic", "huber")
QUANTITIES = ("R", "Q", "F2", "Et")
FEW = (
    "reshuffled-perceptron-noisy",
    pytest.param("fixed-adatron-no-decay", marks=pytest.mark.physics),
)


def scores(name, method):
    """(theory − table)/error at half and whole epochs; by quantity the same at its peak."""
    table = Table(name)
    found = mp.solve(table.problem, table.times, method)
    z, peaks = [], {}
    for quantity in QUANTITIES:
        limit, error = table.limit(quantity)
        error = np.hypot(error, found[f"{quantity}_se"].values)
        difference, peak = found[quantity].values - limit, np.argmax(limit)
        z.append(difference / error)
        peaks[quantity] = difference[peak] / limit[peak], error[peak] / limit[peak]
    return np.concatenate(z), peaks


@pytest.mark.parametrize("name", FEW)
@pytest.mark.physics
def test_epochs_agree_with_simulation(name):
    z, peaks = scores(name, mp.DMFT(seed=3))
    print(name, f"largest {np.abs(z).max():.1f}", peaks)
    assert max(error for _, error in peaks.values()) < 0.02
    assert np.abs(z).max() < 4


@pytest.mark.physics
@pytest.mark.parametrize("order", ["reshuffled", "fixed"])
def test_half_a_percent_would_show(order):
    """All tables of nonlinear rules: value by value, and pooled over the tables."""
    every, pooled = [], {quantity: [] for quantity in QUANTITIES}
    for name in tables(NONLINEAR, order):
        z, peaks = scores(name, mp.DMFT(samples=96_000, seed=11))
        print(name, f"largest {np.abs(z).max():.1f}")
        every.append(z)
        for quantity, peak in peaks.items():
            pooled[quantity].append(peak)
    z = np.abs(np.concatenate(every))
    print(f"{order}: {np.mean(z < 1):.3f} in one, {np.mean(z < 2):.3f} in two, {z.max():.1f}")
    assert np.mean(z < 2) > 0.95
    assert z.max() < 4
    for quantity in ("R", "Q", "F2"):
        off, error = np.array(pooled[quantity]).T
        whole = 1 / np.sqrt(np.sum(error**-2.0))
        mean = np.sum(off / error**2) * whole**2
        print(f"{order} {quantity}: {100 * mean:+.2f} ± {100 * whole:.2f} %")
        assert whole < 0.00125
        assert abs(mean) < 4 * whole


def test_the_first_epoch_is_one_pass_learning():
    """Fresh examples for ever are a training set without end."""
    problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    times, method = [0.5, 1.0, 2.0], mp.DMFT(samples=32_000, seed=1)
    fresh = mp.solve(problem.replace(alpha=1e4), times, method)
    for order in ("reshuffled", "fixed"):
        found = mp.solve(problem.replace(sequence=order), times, method)
        for name in ("R", "Q"):
            error = np.hypot(found[f"{name}_se"], fresh[f"{name}_se"])
            print(order, name, float(error.max()), ((found[name] - fresh[name]) / error).values)
            assert error.max() < 0.005
            assert (np.abs(found[name] - fresh[name]) < 3.5 * error).all(), name


@pytest.mark.physics
@pytest.mark.parametrize(
    ("rule", "order", "share"),
    [
        (mp.Adatron(kappa=1.0), "reshuffled", 1.0),
        (mp.Perceptron(kappa=0.2), "replacement", 0.25),
        (mp.Logistic(), "fixed", 0.5),
    ],
    ids=str,
)
def test_batches_agree_with_simulation(rule, order, share):
    problem = mp.Problem(
        mp.Teacher(alpha=1.2), rule, rate=0.8, decay=0.1, sequence=order, batch_share=share
    )
    times = 1.2 * np.array([1, 2, 4, 6])
    theory = mp.solve(problem, times, mp.DMFT(samples=64_000, seed=3))
    half, whole = (
        mp.solve(problem, times, mp.Simulation(n=n, samples=160, seed=n)) for n in (150, 300)
    )
    for name in ("R", "Q", "F2"):
        limit = 2 * whole[name] - half[name]
        error = np.sqrt(
            (2 * whole[f"{name}_se"]) ** 2 + half[f"{name}_se"] ** 2 + theory[f"{name}_se"] ** 2
        )
        z = (theory[name] - limit) / error
        print(name, z.values.round(1), f"{float(error.max() / limit.max()):.4f}")
        assert (np.abs(z) < 3.5).all(), name


def test_full_batch_is_gradient_descent():
    """β = 1: iterating gradient descent by hand on one large training set."""
    rng, n, alpha, rate, decay = np.random.default_rng(5), 2500, 1.2, 0.6, 0.2
    B, X = rng.standard_normal(n) / np.sqrt(n), rng.standard_normal((int(alpha * n), n))
    B /= np.linalg.norm(B)
    target, J, found = np.sign(X @ B), np.zeros(n), []
    for _ in range(4):
        force = target * np.maximum(1.0 - target * (X @ J), 0.0)
        J = (1 - rate * decay * alpha) * J + rate / n * (force @ X)
        found.append((J @ B, J @ J))
    problem = mp.Problem(
        mp.Teacher(alpha=alpha), mp.Adatron(kappa=1.0), rate=rate, decay=decay,
        sequence="reshuffled", batch_share=1.0,
    )  # fmt: skip
    theory = mp.solve(problem, alpha * np.arange(1, 5), mp.DMFT(samples=16_000))
    R, Q = np.array(found).T
    np.testing.assert_allclose(theory.R, R, atol=4 / np.sqrt(n) * 0.25)  # J·B varies by 1/√N
    np.testing.assert_allclose(theory.Q, Q, rtol=0.03)


def test_a_time_between_batches_is_that_of_the_last():
    problem = mp.Problem(
        mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=0.5, decay=0.1, batch_share=0.25
    )
    found = mp.solve(problem, [0.2, 0.25, 0.45, 0.5], mp.DMFT(samples=8_000))
    R = found.R.values
    assert R[0] == 0
    assert R[1] == R[2] != R[3]


def test_what_batches_do_not_have_is_said():
    problem = mp.Problem(
        mp.Teacher(alpha=1.0), mp.Adatron(kappa=1.0), rate=0.5, decay=0.1, batch_share=0.25
    )
    with pytest.raises(ValueError, match="`two_time`"):
        mp.solve(problem, [1.0], mp.DMFT(), two_time=True)
    with pytest.raises(ValueError, match="`dt` is one batch"):
        mp.solve(problem, [1.0], mp.DMFT(dt=0.1))
    with pytest.raises(ValueError, match="at least 8 in every epoch"):
        mp.solve(problem.replace(batch_share=0.0, sequence="fixed", alpha=1e-4), [1.0], mp.DMFT())


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_large_batches_are_within_their_small_errors(share):
    """Hardly anything is left to chance; what even draws of y have in common is in the error."""
    problem = mp.Problem(
        mp.Teacher(1.2), mp.Adaline(), rate=0.3, decay=0.3, batch_share=share, sequence="reshuffled"
    )
    exact = mp.solve(problem, [1.2, 2.4, 3.6])
    for seed in range(3):
        found = mp.solve(problem, exact.t.values, mp.DMFT(rtol=0.02, seed=seed))
        z = np.concatenate([((found[n] - exact[n]) / found[f"{n}_se"]).values for n in "RQ"])
        assert np.abs(z).max() < 3
        assert float((found.R_se / found.R).max()) < 0.005
