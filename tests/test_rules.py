"""Every rule: force, slope, equality, and the way to a file and back."""

import pickle

import numpy as np
import pytest
from every_rule import RULES, cubic, cubic_slope
from hypothesis import given
from hypothesis import strategies as st

import manypass as mp
from manypass import rules


@pytest.mark.parametrize("rule", RULES, ids=repr)
@given(x=st.floats(-5, 5), target=st.sampled_from([-1.0, 1.0, 0.3, -2.0]))
def test_slope_is_the_derivative_of_the_force(rule, x, target):
    d = 1e-6
    kinks = {
        "adatron": [0.8 / target],
        "perceptron": [0.2 / target],
        "huber": [target - 0.7, target + 0.7],
    }
    if min((abs(x - k) for k in kinks.get(rule.name, [])), default=1) < 2 * d:
        return
    numeric = (rule.force(x + d, target) - rule.force(x - d, target)) / (2 * d)
    assert rule.slope(x, target) == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_numbers_and_arrays_agree(rule):
    x, target = np.linspace(-3, 3, 7), np.array([1, -1, 1, -1, 1, -1, 1.0])
    for function in (rule.force, rule.slope):
        together = function(x, target)
        assert together.shape == x.shape
        np.testing.assert_allclose(
            together, [function(*pair) for pair in zip(x, target, strict=True)]
        )


@pytest.mark.parametrize(
    ("rule", "x", "target", "force"),
    [
        (mp.Hebbian(), 3.0, -1.0, -1.0),
        (mp.Adaline(), 0.25, 1.0, 0.75),
        (mp.Adatron(kappa=0.5), -1.0, 1.0, 1.5),
        (mp.Adatron(kappa=0.5), -1.0, -1.0, 0.0),
        (mp.Perceptron(), 0.1, -1.0, -1.0),
        (mp.Perceptron(), 0.1, 1.0, 0.0),
        (mp.Logistic(), 0.0, 1.0, 0.5),
        (mp.Logistic(), -1000.0, 1.0, 1.0),
        (mp.Huber(width=0.5), 0.0, 2.0, 0.5),
        (mp.Huber(width=0.5), 0.0, -0.25, -0.25),
    ],
)
def test_forces(rule, x, target, force):
    assert rule.force(x, target) == pytest.approx(force, abs=1e-15)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_rules_are_values(rule):
    copy = pickle.loads(pickle.dumps(rule))
    assert copy == rule
    assert hash(copy) == hash(rule)
    with pytest.raises(AttributeError, match="frozen"):
        rule.parameters = {}
    if type(rule) is not mp.Rule:
        assert rules.from_dict(rule.to_dict()) == rule


def test_parameters_tell_rules_apart():
    assert mp.Adatron(kappa=1) == mp.Adatron(kappa=1.0)
    assert mp.Adatron(kappa=1) != mp.Adatron(kappa=2)
    assert mp.Adatron(kappa=0) != mp.Perceptron(kappa=0)


def test_own_rules_may_have_parameters():
    rule = mp.Rule(
        lambda x, y, power: (y - x) ** power,
        lambda x, y, power: -power * (y - x) ** (power - 1),
        power=3,
    )
    assert rule.force(0.0, 2.0) == 8.0


def test_parameters_are_matched_by_name():
    def force(x, y, k, w):
        return 10 * k + w

    assert mp.Rule(force, force, w=2, k=1).force(0, 0) == 12
    assert mp.Rule(force, force, w=2, k=1) == mp.Rule(force, force, k=1, w=2)
    with pytest.raises(ValueError, match="`force` takes the parameters k, w after"):
        mp.Rule(force, force, k=1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mp.Rule(force=3, slope=abs), "`force`"),
        (lambda: mp.Rule(force=abs, slope=None), "`slope`"),
        (lambda: mp.Adatron(kappa=np.nan), "`kappa`"),
        (lambda: mp.Adatron(kappa="1"), "`kappa`"),
        (lambda: mp.Huber(width=0), "`width`"),
        (lambda: rules.from_dict("adalin"), "`rule` must be one of .* got 'adalin'"),
        (lambda: rules.from_dict({"name": "adaline", "kappa": 1}), "no `kappa`"),
        (lambda: rules.from_dict({"kappa": 1}), "`rule`"),
        (lambda: rules.from_dict(mp.Rule(cubic, cubic_slope, strength=1.0).to_dict()), "own force"),
    ],
)
def test_bad_rules(make, words):
    with pytest.raises(ValueError, match=words):
        make()
