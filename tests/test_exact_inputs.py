"""The exact theory of correlated inputs and of fresh examples, against itself and plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

import manypass as mp
from manypass import inputs
from manypass.exact import correlated
from manypass.exact.course import Course
from manypass.spectrum import marchenko_pastur

BLOCKS, LAW = inputs.Blocks([0.3, 2.5], [3, 1]), inputs.PowerLaw(1.2, 1.4, 0.02)
T = np.linspace(0, 8, 33)


def problem(given, alpha=1.2, **changes):
    task = changes.pop("task", "regression")
    settings = {"rate": 0.8, "decay": 0.1, "temperature": 0.1} | changes
    data = mp.Teacher(alpha, task=task, noise=0.3, inputs=given)
    return mp.Problem(data, mp.Adaline(), **settings)


@pytest.mark.parametrize("given", [BLOCKS, LAW, inputs.Blocks([0.1, 8.0], [9, 1])], ids=str)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0, math.inf])
def test_all_densities_have_weight_one(given, alpha):
    found = correlated.nodes(given, alpha)
    sums = [part.sum() for part in (found.rho, found.S, found.theta, found.SB)]
    np.testing.assert_allclose([*sums, found.rho @ found.h], 1, atol=1e-12)
    assert found.rho.min() > 0


def test_blocks_far_apart_make_bands():
    """Each block is then a Marchenko–Pastur law of its own scale: a gap lies between."""
    found = correlated.bands(inputs.Blocks([0.01, 10.0]).law(8.0), 8.0)
    assert len(found) == 2


@pytest.mark.parametrize("alpha", [0.4, 1.0, 2.5])
def test_uncorrelated_inputs_have_the_law_of_marchenko_and_pastur(alpha):
    found, right = correlated.nodes(inputs.Isotropic(), alpha), marchenko_pastur(alpha)
    for look in (lambda h: 1 / (h + 0.1), lambda h: np.exp(-3 * h), lambda h: h**3):
        assert found.rho @ look(found.h) == pytest.approx(right.rho @ look(right.h), rel=1e-9)


@pytest.mark.parametrize("alpha", [0.4, 2.5])
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("rate", [0.8, "cosine:1.2:0.1:6"])
def test_equal_blocks_are_no_correlation(alpha, task, rate):
    """Two blocks of the same eigenvalue: today's numbers, by the other formulas."""
    same = inputs.Blocks([1.0, 1.0 + 1e-13], power=[1, 1])
    one = mp.solve(problem(same, alpha, task=task, rate=rate), T, two_time=True)
    other = mp.solve(problem(None, alpha, task=task, rate=rate), T, two_time=True)
    for name in ("R", "Q", "F2", "Eg", "C", "G"):
        np.testing.assert_allclose(one[name], other[name], atol=3e-9, err_msg=name)


def test_overlaps_against_random_matrices():
    """R, Q, F2 and v_c from matrices themselves: gradient flow, solved in the eigenbasis of H."""
    n, alpha, decay, s, seen = 400, 1.5, 0.1, 2.0, []
    mu, P = BLOCKS.drawn(n)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        B = np.sqrt(P / mu) * rng.choice([-1.0, 1.0], n)
        X = rng.standard_normal((round(alpha * n), n)) * np.sqrt(mu)
        target = X @ B + 0.3 * rng.standard_normal(len(X))
        h, V = np.linalg.eigh(X.T @ X / len(X))
        J = V @ ((V.T @ (X.T @ target / len(X))) * -np.expm1(-(decay + h) * s) / (decay + h))
        feedback = np.mean(h**2 / (h + decay))
        seen.append(((B * mu) @ J, (J * mu) @ J, np.mean((target - X @ J) ** 2), 2 / feedback))
    mean, error = np.mean(seen, axis=0), np.std(seen, axis=0) / math.sqrt(len(seen))
    flow = problem(BLOCKS, alpha, rate=1.0, temperature=0.0, mode="batch")
    found = mp.solve(flow, [s])
    limit = mp.critical_rate(flow.replace(mode="online"))
    theory = np.array([*(float(found[name][0]) for name in ("R", "Q", "F2")), limit])
    assert (error < 0.015 * mean).all()
    assert (np.abs(theory - mean) < 3.5 * error + 2 * mean / n).all(), (theory, mean, error)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("given", [BLOCKS, LAW], ids=str)
def test_the_steady_state_is_where_curves_end(given, alpha):
    asked = problem(given, alpha)
    steady, late = mp.steady_state(asked), mp.solve(asked, [3000.0])
    for name in ("R", "Q", "F2", "Eg"):
        assert float(steady[name]) == pytest.approx(float(late[name][0]), rel=1e-6), name
    nodes = correlated.nodes(given, alpha)
    feedback = nodes.rho @ (nodes.h**2 / (nodes.h + 0.1))
    assert mp.critical_rate(asked) == pytest.approx(2 / feedback, rel=1e-9)
    assert mp.slow_mode(asked.replace(rate=1.05 * mp.critical_rate(asked))) < 0


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_fresh_examples_are_the_limit_of_many(task):
    """α → ∞ as 1/α; in one pass the training error is a test error: F2 = b − 2aR + Q."""
    for given in (BLOCKS, None):
        fresh = mp.solve(problem(given, math.inf, task=task), T)
        apart = [
            abs(mp.solve(problem(given, alpha, task=task), T).Q - fresh.Q).max()
            for alpha in (200.0, 400.0)
        ]
        assert float(apart[0] / apart[1]) == pytest.approx(2, rel=0.05)
        a, b = mp.Teacher(1.0, task=task, noise=0.3).moments()
        np.testing.assert_allclose(fresh.F2, b - 2 * a * fresh.R + fresh.Q, rtol=1e-9)


def test_one_pass_is_the_first_reshuffled_epoch():
    """Every example is new in the first epoch, however many there are."""
    fresh = mp.solve(problem(None, math.inf), [0.5, 1.0])
    epoch = mp.solve(problem(None, 1.0, sequence="reshuffled"), [0.5, 1.0])
    np.testing.assert_allclose(fresh.R, epoch.R, rtol=1e-8)
    np.testing.assert_allclose(fresh.Q, epoch.Q, rtol=1e-8)


def test_errors_near_zero_keep_their_digits():
    """Without noise and decay E_g falls to zero; ½(1 − 2R + Q) would lose it."""
    data = mp.Teacher(3.0, task="regression", inputs=BLOCKS)
    course = Course(mp.Problem(data, mp.Adaline(), rate=0.5), 400.0)
    error = course.modes.generalization(course.at(np.array([100.0, 200.0, 400.0])))
    assert error[0] > error[1] > error[2] > 0
    assert error[2] < 1e-12


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"sequence": "reshuffled"}, "sequence"),
        ({"batch_share": 0.5}, "batch_share"),
        ({"start": mp.Start(0.1, 0.5)}, "start"),
        ({"decay": "inverse:1:1"}, "decay"),
        ({"rule": mp.Hebbian()}, "rule"),
    ],
)
def test_what_is_not_served_is_named(changes, name):
    with pytest.raises(ValueError, match=f"not `{name}` = .*: use method Simulation"):
        mp.solve(problem(BLOCKS).replace(**changes), [1.0], mp.Exact())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("powerlow:1", "`inputs` must be isotropic, powerlaw:"),
        ("powerlaw:1:1:0", "`cutoff` must be above 0"),
        ({"values": [1, -1]}, "`values` must be numbers from above 0"),
        ({"values": [1, 2], "power": [1]}, "`power` must be 2 numbers"),
        ({"valus": [1]}, "`inputs` must be isotropic"),
        (3, "`inputs` must be"),
    ],
)
def test_bad_inputs_are_named(given, said):
    with pytest.raises(ValueError, match=said):
        mp.Teacher(1.0, inputs=given)


@pytest.mark.parametrize("given", [None, LAW, BLOCKS, inputs.Eigenvalues([1, 2, 5])], ids=str)
def test_problems_with_inputs_come_back_from_their_dict(given):
    asked = problem(given, math.inf)
    assert mp.Problem.from_dict(asked.to_dict()) == asked
    assert hash(asked) == hash(mp.Problem.from_dict(asked.to_dict()))


def test_laws_may_come_as_arrays():
    same = inputs.Eigenvalues([1.0, 2.0], [1.0, 0.0])
    assert inputs.Eigenvalues(np.array([1, 2]), np.array([1, 0])) == same
    assert inputs.Blocks(np.array([1.0, 2.0])) == inputs.Blocks([1.0, 2.0])
    with pytest.raises(ValueError, match="`X` is zero everywhere"):
        mp.inputs_of(np.zeros((9, 2)), np.ones(9))
    with pytest.raises(ValueError, match="`X` and `y` must be real numbers"):
        mp.inputs_of(np.ones((9, 2)), "y")


def test_no_epochs_of_fresh_examples():
    with pytest.raises(ValueError, match="`alpha` = inf has no epochs"):
        problem(None, math.inf, sequence="reshuffled")
