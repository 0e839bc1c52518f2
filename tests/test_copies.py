"""Examples near a rare force are copied: without bias, and to some use."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import manypass as mp
from manypass.cavity import copies
from manypass.cavity.plan import make_plan
from manypass.cavity.population import lead
from manypass.simulation.kernels import compiled_rule

RARE = mp.Problem(mp.Teacher(alpha=0.3), mp.Perceptron(kappa=0.0), rate=0.3, decay=0.2)


def learned(problem, rng, size=4001):
    """A run whose examples are correct but for few, with margins up to 2√Q."""
    y = rng.standard_normal(size)
    target, x = np.sign(y), 0.1 * np.sign(y) * rng.uniform(-0.02, 2.0, size)
    student = SimpleNamespace(examples=(y, target), x=x, rule=compiled_rule(problem.rule))
    past = SimpleNamespace(share=np.ones(size, np.float32))
    return SimpleNamespace(student=student, past=past, Q=0.01)


@pytest.mark.parametrize("more", [1, 2])
def test_who_matters_is_copied_and_all_means_stay(more, monkeypatch):
    monkeypatch.setattr(copies, "RARE", 0.1)  # these are not that few
    rng = np.random.default_rng(0)
    run = learned(RARE, rng)
    y, margin = run.student.examples[0], run.student.x * run.student.examples[1]
    fails = margin <= 0
    means, draws = [np.mean(v) for v in (y**2, margin, fails)], []
    for _ in range(100):
        who, share = copies.drawn([run], [slice(None)], rng, more)
        draws.append([np.mean(share * v[who]) for v in (y**2, margin, fails)])
    draws = np.array(draws)
    z = (draws.mean(axis=0) - means) / (draws.std(axis=0) / 10)
    assert np.abs(z).max() < 3.5
    assert (draws.std(axis=0) / means).max() < 0.1  # a bias of a few per cent would be seen
    assert fails[who].sum() > 2.5 * more * fails.sum()
    assert who.size == 4000 * more + 1
    assert share.sum() == pytest.approx(who.size, rel=1e-5)
    assert share.max() < 1 / np.sqrt(copies.OTHERS) * 1.05
    first, second = who[: 2000 * more], who[2000 * more : -1]
    assert (first < 2000).all()
    assert ((second >= 2000) & (second < 4000)).all()
    assert who[-1] == 4000


def test_nobody_is_copied_where_all_forces_matter_alike():
    rng = np.random.default_rng(0)
    for rule in (mp.Adaline(), mp.Logistic()):
        run = learned(RARE.replace(rule=rule), rng)
        assert copies.drawn([run], [slice(None)], rng) is None
    nothing = learned(RARE, rng)
    nothing.student.x = nothing.student.examples[1] * 1e3  # no force is near
    assert copies.drawn([nothing], [slice(None)], rng) is None


@pytest.mark.parametrize("inputs", [mp.Isotropic(), mp.Blocks([0.5, 1.5], [0.5, 0.5], [0.3, 0.7])])
def test_copies_go_on_from_where_they_were(inputs, monkeypatch):
    """Shares of all are one, z of new cells is normal by them, and nothing else has moved."""
    problem = RARE.replace(data=mp.Teacher(alpha=0.3, inputs=inputs))
    plan = make_plan(problem, np.array([3.0]), ("Q",), 0.1)
    rule, rng = compiled_rule(problem.rule), np.random.default_rng(1)
    monkeypatch.setattr(copies, "WORTH", 1.2)
    run = lead(problem, rule, 2000, plan, rng, split=False)[0]
    past, share = run.past, run.past.share
    assert share.size == 2000 * copies.MORE
    assert share.std() > 0.2
    assert share.mean() == pytest.approx(1.0, abs=1e-4)
    newest = past.z[:, past.n - 1]
    assert np.mean(share * newest**2) == pytest.approx(1.0, abs=0.02)
    assert np.abs((share * newest) @ past.known / share.size).max() < 0.02
    y, target = run.student.examples
    np.testing.assert_array_equal(np.sign(y), target)
    np.testing.assert_array_equal(past.known, np.stack([np.ones(share.size), y, target], axis=1))


def test_activations_are_those_of_examples_that_stand_for_one_each(monkeypatch):
    monkeypatch.setattr(copies, "WORTH", 0.0)  # whoever is led with copies has some
    found = mp.DMFT().training_activations(RARE, 3.0, 4000)
    assert np.unique(found["y"]).size == 4000
    assert found["y"].std() == pytest.approx(1.0, abs=0.01)


@pytest.mark.physics
def test_small_populations_do_not_die_out():
    """⟨F²⟩ falls to 9e-4 on its way to 0.011, and of 4000 examples four have a force.

    The reference is 30 populations of 256,000 examples without copies, with the same step.
    """
    t = np.linspace(0, 20, 11)
    plan, rule = make_plan(RARE, t, ("Q", "F2"), 0.1), compiled_rule(RARE.rule)

    def curves(copied, seed):
        rng = np.random.default_rng(seed)
        run = lead(RARE, rule, 4000, replace(plan, copies=copied), rng, False)[0]
        return run.at(t, plan.clock.w)

    plain, copied = ([curves(copied, seed) for seed in range(24)] for copied in (False, True))
    assert sum(each["F2"][-1] < 1e-4 for each in plain) > 2
    assert all(each["F2"][-1] > 1e-3 for each in copied)
    Q = np.array([each["Q"] for each in copied])
    right = {1: 0.010135, 3: 0.006849, 5: 0.004605, 7: 0.004145, 8: 0.004698, 10: 0.00566}
    for i, value in right.items():
        error = Q[:, i].std(ddof=1) / np.sqrt(24)
        assert error < 0.008 * right[1]
        assert abs(Q[:, i].mean() - value) < 3 * error


def test_forces_that_grow_are_not_copied():
    """With copies of its largest forces this one diverged, which it does not."""
    problem = mp.Problem(mp.Teacher(alpha=0.5), mp.Adatron(kappa=1.0), rate=2.0, decay=0.4)
    found = mp.solve(problem, [10.0, 12.0], mp.DMFT(dt=1.0, samples=8_000, seed=0))
    np.testing.assert_allclose(found.Et, 0.031, atol=0.01)
    np.testing.assert_allclose(found.Eg, 0.339, atol=0.01)
