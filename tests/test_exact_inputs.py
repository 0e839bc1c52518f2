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


@pytest.mark.parametrize("alpha", [0.5, 3.0, math.inf])
def test_averaged_weights_are_averages_over_pairs_of_times(alpha):
    """C̄ = (1/τ²)∬C(t,s), from C itself at late times, by Gauss' rule on either side of t = s."""
    asked, window, late = problem(BLOCKS, alpha), 4.0, 400.0
    u, weight = np.polynomial.legendre.leggauss(24)
    outer, total = window * (1 + u) / 2, 0.0
    for t, w in zip(outer, window * weight / 2, strict=True):
        C = mp.solve(asked, late + np.append(t * (1 + u) / 2, t), two_time=True).C.values
        total += 2 * w * t / 2 * weight @ C[-1, :-1]
    found = mp.steady_state(asked, window=window)
    assert float(found.Q) == pytest.approx(total / window**2, rel=1e-6)
    assert float(found.Q) < float(mp.steady_state(asked).Q)


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


def test_errors_near_zero_keep_their_digits():
    """Without noise and decay E_g falls to zero; ½(1 − 2R + Q) would lose it."""
    data = mp.Teacher(3.0, task="regression", inputs=BLOCKS)
    course = Course(mp.Problem(data, mp.Adaline(), rate=0.5), 400.0)
    error = course.modes.Eg(course.at(np.array([100.0, 200.0, 400.0])), "regression")
    assert error[0] > error[1] > error[2] > 0
    assert error[2] < 1e-12


ALSO = {
    "start": {"start": mp.Start(-0.3, 0.7)},
    "decay": {"decay": "inverse:1:1", "rate": "cosine:1:0.2:5", "start": mp.Start(0.3, 0.5)},
    "flow": {"mode": "batch", "start": mp.Start(0.3, 0.5)},
    "hebbian": {"rule": mp.Hebbian(), "start": mp.Start(0.3, 0.5)},
    "hebbian-reshuffled": {"rule": mp.Hebbian(), "sequence": "reshuffled"},
    "hebbian-fixed": {"rule": mp.Hebbian(), "sequence": "fixed", "batch_share": 0.25},
    "share": {"batch_share": 0.25},
    "reshuffled": {"sequence": "reshuffled"},
    "reshuffled-share": {"sequence": "reshuffled", "batch_share": 0.25},
}


@pytest.mark.parametrize("name", ALSO)
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_equal_blocks_are_no_correlation_whatever_else(name, task):
    times, same = [0.3, 1.2, 2.0, 4.8], inputs.Blocks([1.0, 1.0 + 1e-9], power=[1, 1])
    asked = problem(None, 1.2, task=task).replace(**ALSO[name])
    one, other = (mp.solve(p, times) for p in (asked.replace(inputs=same), asked))
    assert one.attrs["method"] == other.attrs["method"]
    for quantity in ("R", "Q", "F2", "Eg"):
        np.testing.assert_allclose(one[quantity], other[quantity], atol=1e-9, err_msg=quantity)
    if "Et" in other:
        np.testing.assert_allclose(one.Et, other.Et, atol=1e-9)
    if not asked.scheduled and not asked.start:
        one, other = (mp.steady_state(p) for p in (asked.replace(inputs=same), asked))
        for quantity in ("R", "Q", "F2"):
            assert float(one[quantity]) == pytest.approx(float(other[quantity]), rel=1e-8)
        limits = [mp.critical_rate(p) for p in (asked.replace(inputs=same), asked)]
        assert limits[0] == pytest.approx(limits[1], rel=1e-8)


@pytest.mark.physics
@pytest.mark.parametrize("name", ALSO)
@pytest.mark.parametrize("given", ["blocks", "powerlaw"])
def test_simulations_agree(name, given):
    """Three sizes, extrapolated in 1/N: one per cent would be seen."""
    law = BLOCKS if given == "blocks" else inputs.PowerLaw(1.2, 1.4, 0.1)
    task = "regression" if given == "blocks" else "classification"
    asked = problem(law, 0.8, task=task, temperature=0.05).replace(**ALSO[name])
    times, sizes, runs = [0.8, 1.6, 4.0], (200, 400, 800), (1200, 600, 300)
    theory, seen = mp.solve(asked, times, "exact"), []
    for n, samples in zip(sizes, runs, strict=True):
        seen.append(mp.solve(asked, times, mp.Simulation(n=n, samples=samples, seed=n)))
    design = np.column_stack([np.ones(3), 1 / np.array(sizes)])
    for quantity in (q for q in ("R", "Q", "F2", "Eg", "Et") if q in theory):
        y = np.array([found[quantity].values for found in seen])
        errors = np.array([found[f"{quantity}_se"].values for found in seen])
        for i, right in enumerate(theory[quantity].values):
            error = np.maximum(errors[:, i], 1e-9)
            inverse = np.linalg.inv(design.T @ (design / error[:, None] ** 2))
            limit, spread = (inverse @ design.T @ (y[:, i] / error**2))[0], math.sqrt(inverse[0, 0])
            size = np.abs(theory[quantity].values).max()
            assert abs(limit - right) < 4 * spread + 1e-9 * size, (quantity, times[i])
            assert 4 * spread < 0.05 * size, (quantity, times[i])
        worst = np.sqrt(np.mean(errors**2)) / np.abs(theory[quantity].values).mean()
        assert worst < 0.02, quantity


def test_a_start_and_a_falling_decay_against_random_matrices():
    """J = e(H)g + E(H)J(0) with a decay that drops once, in the eigenbasis of H."""
    n, alpha, until, seen = 300, 1.5, (0.7, 2.0), []
    start = mp.Start(0.4, 0.9)
    mu, P = BLOCKS.drawn(n)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        B = np.sqrt(P / mu) * rng.choice([-1.0, 1.0], n)
        X = rng.standard_normal((round(alpha * n), n)) * np.sqrt(mu)
        target = X @ B + 0.3 * rng.standard_normal(len(X))
        h, V = np.linalg.eigh(X.T @ X / len(X))
        J = V.T @ (start.drawn(np.sqrt(mu) * B, rng) / np.sqrt(mu))
        pull = V.T @ (X.T @ target / len(X))
        for decay, span in ((1.0, until[0]), (0.05, until[1] - until[0])):
            fall = np.exp(-(decay + h) * span)
            J = J * fall + pull * (1 - fall) / (decay + h)
        J = V @ J
        seen.append(((B * mu) @ J, (J * mu) @ J, np.mean((target - X @ J) ** 2)))
    mean, error = np.mean(seen, axis=0), np.std(seen, axis=0) / math.sqrt(len(seen))
    flow = problem(BLOCKS, alpha, rate=1.0, temperature=0.0, mode="batch", start=start)
    found = mp.solve(flow.replace(decay="steps:0:1:0.7:0.05"), [until[1]])
    theory = np.array([float(found[name][0]) for name in ("R", "Q", "F2")])
    assert (error < 0.01 * mean).all()
    assert (np.abs(theory - mean) < 3.5 * error + 2 * mean / n).all(), (theory, mean, error)


@pytest.mark.parametrize("given", [None, BLOCKS, LAW], ids=str)
def test_the_first_reshuffled_epoch_sees_fresh_examples(given):
    """Every example is new in it, however many there are: two theories with nothing in common."""
    fresh = mp.solve(problem(given, math.inf), [0.5, 1.0])
    epoch = mp.solve(problem(given, 1.0, sequence="reshuffled"), [0.5, 1.0])
    np.testing.assert_allclose(fresh.R, epoch.R, rtol=1e-9)
    np.testing.assert_allclose(fresh.Q, epoch.Q, rtol=1e-8)


@pytest.mark.parametrize("changes", [{"sequence": "reshuffled"}, {"batch_share": 0.5}], ids=str)
@pytest.mark.parametrize("alpha", [0.6, 2.0])
def test_epochs_and_batches_settle(changes, alpha):
    asked = problem(BLOCKS, alpha, decay=0.3).replace(**changes)
    limit = mp.critical_rate(asked)
    asked = asked.replace(rate=0.6 * limit)
    steady, late = mp.steady_state(asked), mp.solve(asked, [200 * alpha])
    for name in ("R", "Q", "F2", "Eg"):
        value = steady[f"{name}_end"] if f"{name}_end" in steady else steady[name]
        assert float(value) == pytest.approx(float(late[name][0]), rel=1e-6), name
    times = alpha * np.array([200.0, 220.0])
    for rate, grows in ((0.98 * limit, False), (1.02 * limit, True)):
        Q = mp.solve(asked.replace(rate=rate), times).Q.values
        assert (Q[1] > 1.01 * Q[0]) == grows, (rate, Q)


def test_fresh_examples_are_wrong_as_often_as_noisy_tests():
    """E_t at α = ∞ is that of examples not seen before."""
    fresh = problem(BLOCKS, math.inf, task="classification")
    found = mp.solve(fresh, [1.0, 4.0])
    noisy = np.arccos(found.R / np.sqrt(found.Q * (1 + 0.3**2))) / np.pi
    np.testing.assert_allclose(found.Et, noisy, rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sequence": "fixed"}, "not `sequence` = 'fixed': use method Simulation"),
        ({"rule": mp.Adatron(kappa=1.0)}, "not `rule` Adatron.*: use method .*Simulation"),
    ],
)
def test_what_is_not_served_is_named(changes, said):
    with pytest.raises(ValueError, match=said):
        mp.solve(problem(BLOCKS).replace(**changes), [1.0], mp.Exact())


def test_what_is_not_known_of_epochs_is_named():
    asked = problem(BLOCKS, sequence="reshuffled")
    with pytest.raises(ValueError, match="`two_time`: C and G of correlated"):
        mp.solve(asked, [1.0], two_time=True)
    with pytest.raises(ValueError, match="`window` = 2: averages over reshuffled"):
        mp.steady_state(asked, window=2)
    with pytest.raises(ValueError, match=r"`samples` of Exact.* leave it out, or use method"):
        mp.solve(asked.replace(task="classification"), [1.0], mp.Exact(samples=10))


METHODS = {"Exact": mp.Exact(), "DMFT": mp.DMFT(), "Simulation": mp.Simulation(n=500, samples=100)}


@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Hebbian(), mp.Adatron(kappa=1.0)], ids=str)
@pytest.mark.parametrize("given", [None, BLOCKS], ids=["isotropic", "blocks"])
@pytest.mark.parametrize("alpha", [1.2, math.inf])
def test_no_refusal_names_a_method_that_refuses(rule, given, alpha):
    for sequence in ("replacement", "reshuffled", "fixed"):
        for changes in ({}, {"mode": "batch"}, {"start": mp.Start(0.1, 0.5)}, {"batch_share": 0.5}):
            try:
                asked = problem(given, alpha, sequence=sequence, **changes).replace(rule=rule)
            except ValueError:  # no such problem
                continue
            for method in METHODS.values():
                _, _, advice = (method.refusal(asked) or "").partition("use method")
                for name, other in METHODS.items():
                    if f"{name}(" in advice:
                        assert other.refusal(asked) is None, (asked, advice)


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
    with pytest.raises(ValueError, match="`y` must be the targets, got 'y'"):
        mp.inputs_of(np.ones((9, 2)), "y")


def test_no_epochs_of_fresh_examples():
    with pytest.raises(ValueError, match="`alpha` = inf has no epochs"):
        problem(None, math.inf, sequence="reshuffled")
