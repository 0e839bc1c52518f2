"""Every rule: force, slope, equality, and the way to a file and back."""

import itertools
import math
import pickle
import re
from functools import partial

import numba
import numpy as np
import pytest
import xarray as xr
from every_rule import RULES, cubic, cubic_slope
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import manypass as mp
from manypass import rules
from manypass.cavity.rest import rests
from manypass.simulation import kernels
from manypass.smooth import jumps


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

    def slope(x, y, w, k):
        return 0.0 * w

    assert mp.Rule(force, slope, w=2, k=1).force(0, 0) == 12
    assert mp.Rule(force, slope, w=2, k=1) == mp.Rule(force, slope, k=1, w=2)
    with pytest.raises(ValueError, match="`force` takes the parameters k, w after"):
        mp.Rule(force, force, k=1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mp.Rule(force=3, slope=abs), "`force`"),
        (lambda: mp.Rule(force=lambda x, y: y, slope=3), "`slope`"),
        (
            lambda: mp.Rule(np.subtract),
            "`force` must .* by def or lambda.*, got <ufunc 'subtract'>",
        ),
        (
            lambda: mp.Rule(lambda x, y: y, math.atan2),
            "`slope` must .* got <built-in function atan2",
        ),
        (lambda: mp.Rule(partial(cubic, strength=1.0)), "`force` must .* got functools.partial"),
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


def test_a_slope_that_is_not_given_is_computed():
    """To nine digits, compiled too; kinks are no jumps."""

    def force(x, y, k):
        return k * np.arctan(y - x)

    given = mp.Rule(force, lambda x, y, k: -k / (1 + (y - x) ** 2), k=1.5)
    own, x = mp.Rule(force, k=1.5), np.linspace(-4, 4, 81)
    np.testing.assert_allclose(own.slope(x, 1.0), given.slope(x, 1.0), rtol=0, atol=2e-9)
    assert own == mp.Rule(force, k=1.5) != given
    problem = mp.Problem(mp.Teacher(alpha=1.0), own, rate=1.0, decay=0.1)
    method = mp.DMFT(dt=0.1, samples=8_000)
    found, expected = (mp.solve(problem.replace(rule=r), [1, 2], method) for r in (own, given))
    xr.testing.assert_allclose(found, expected, rtol=1e-8)
    margin = mp.Rule(lambda x, y: y * max(1.0 - x * y, 0.0))
    adatron = mp.Adatron(kappa=1.0)
    found, expected = (mp.solve(problem.replace(rule=r), [1], method) for r in (margin, adatron))
    assert abs(float(found.R[0] - expected.R[0])) < 1e-3
    step = mp.Rule(lambda x, y: y * (x * y < 0.3))
    found = mp.solve(problem.replace(rule=step), [1], method)
    expected = mp.solve(problem.replace(rule=mp.Perceptron(kappa=0.3)), [1], method)
    xr.testing.assert_allclose(found, expected, rtol=1e-8)
    with pytest.raises(ValueError, match=r"its force jumps by 1 at x = -0.3"):
        mp.solve(problem.replace(rule=step, mode="batch"), [1], method)


def test_a_rule_says_what_it_is():
    def force(x, y, k):
        return k * y - x

    assert repr(mp.Rule(force, k=2.0)) == "Rule(force=force, k=2.0)"

    def slope(x, y, k):
        return -1.0

    assert repr(mp.Rule(force, slope, k=2.0)) == "Rule(force=force, slope=slope, k=2.0)"
    assert re.fullmatch(
        r"Rule\(force=<lambda at test_rules.py:\d+>\)", repr(mp.Rule(lambda x, y: y))
    )
    assert repr(mp.Adatron(kappa=0.5)) == "Adatron(kappa=0.5)"


@pytest.mark.parametrize("function", [lambda x: x, lambda: 1.0, lambda *, x, y: x])
def test_a_wrong_signature_is_told(function):
    for functions in ({"force": function}, {"force": lambda x, y: y, "slope": function}):
        with pytest.raises(ValueError, match=r"`(force|slope)` must be a function of \(x, target"):
            mp.Rule(**functions)


@pytest.mark.parametrize("force", [lambda x, y, z=1.0: z * y, lambda *a: a[1]])
def test_functions_that_cannot_be_compiled_are_named(force):
    with pytest.raises(ValueError, match="`force` must be a function of"):
        mp.Rule(force)


def cube(z):
    return z * z * z


def cut(z):
    return np.clip(cube(z), -1.0, 1.0)


@pytest.mark.parametrize(
    ("force", "written_out"),
    [
        (lambda x, y: cut(y - x), lambda x, y: min(max((y - x) ** 3, -1.0), 1.0)),  # of helpers
        (numba.njit(lambda x, y: cube(y - x)), lambda x, y: (y - x) ** 3),
        (lambda x, y: y * np.heaviside(0.2 - x * y, 0.5), lambda x, y: y if x * y < 0.2 else 0.0),
        (
            lambda x, y: special.erf(y - x) - special.erfc(x) * special.ndtr(y),
            lambda x, y: math.erf(y - x) - math.erfc(x) * 0.5 * math.erfc(-y / math.sqrt(2)),
        ),
        (lambda x, y: y * special.expit(-x * y), lambda x, y: y / (1 + math.exp(x * y))),
    ],
)
def test_forces_may_call_helpers_and_functions_that_numba_does_not_know(force, written_out):
    one, two = (kernels.compiled_force(mp.Rule(f)) for f in (force, written_out))
    for x, y in itertools.product((-1.3, 0.1, 0.7), (-1.0, 1.0)):
        assert one(x, y) == pytest.approx(two(x, y), rel=1e-13, abs=1e-15)
        assert one(x, y) == pytest.approx(float(mp.Rule(force).force(x, y)), rel=1e-13)


def test_a_helper_that_changes_is_compiled_again():
    def times(k):
        def helper(z):
            return k * z

        return lambda x, y: helper(y - x)

    assert [kernels.compiled_force(mp.Rule(times(k)))(0.5, 1.0) for k in (2.0, 4.0)] == [1.0, 2.0]


async def later(x, y):
    return y - x


def each(x, y):
    yield y - x


NUMBERS = {"k": 2.0}


class Called:
    def __call__(self, z):
        return z


CALLED = Called()


def again(z):
    return again(z / 2) if z > 1 else z


@pytest.mark.parametrize(
    ("force", "told"),
    [
        (later, "later must return a number when it is called: .* without async"),
        (each, "each must return a number when it is called"),
        (lambda x, y, **k: y - x, r"Rule\(force, k=3.0\), to be compiled, got \*\*k"),
        (lambda x, y: np.piecewise(y - x, [y < x], [-1.0, 1.0]), "piecewise.*by `if` or np.where"),
        (lambda x, y: np.select([y < x], [-1.0], 1.0), "select.*by `if` or np.where"),
        (
            lambda x, y: special.j0(y - x),
            "'j0' .*needs its decorator numba.njit.*; .* cbrt, clip, ",
        ),
        (lambda x, y: CALLED(y - x), "'CALLED'.* functions by def or lambda, no objects that can"),
        (lambda x, y: NUMBERS["k"] * (y - x), r"'dict'>; give numbers of its own by name, Rule\("),
        (lambda x, y: again(y - x), "'again'.* needs its decorator numba.njit"),
        (
            lambda x, y: float(f"{y - x}"),
            "be compiled.* could not convert string to float",
        ),
    ],
)
def test_forces_that_cannot_be_compiled_are_told_what_would_do(force, told):
    with pytest.raises(ValueError, match=f"^`force` .*{told}") as refused:
        kernels.compiled_force(mp.Rule(force))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("rule", "x", "target", "told"),
    [
        (mp.Adaline(), "a", 1.0, "`x` must be numbers or an array of them, got 'a'"),
        (
            mp.Rule(lambda x, y: y - x),
            0.5,
            None,
            "`target` must be numbers or an array of them, got None",
        ),
        (mp.Adaline(), 10**400, 1.0, "`x` must be numbers that a float holds, got 1000"),
        (mp.Huber(), [1.0, 2.0], [1.0] * 3, r"must fit each other, got shapes \(2,\) and \(3,\)"),
        (mp.Committee(2), [1, 2, 3], 1.0, r"`x` must have 2 activations, .* got \[1, 2, 3\]"),
        (mp.Committee(2), "ab", 1.0, "`x` must be real numbers, got 'ab'"),
        (mp.Committee(2), np.eye(2), np.ones(3), "`x` and `target` must fit each other"),
    ],
)
def test_a_force_is_one_of_numbers(rule, x, target, told):
    with pytest.raises(ValueError, match=told):
        rule.force(x, target)


@pytest.mark.parametrize("found", [None, "a", (1.0,), [1.0], 1j], ids=repr)
def test_a_force_returns_numbers(found):
    rule = mp.Rule(lambda x, y: found)
    for ask in (rule.force, rule.slope):
        with pytest.raises(ValueError, match=r"^`force` <lambda at .* must return a real number"):
            ask(0.5, 1.0)


@pytest.mark.parametrize("method", [mp.Simulation(n=20, samples=2), mp.DMFT(), "auto"])
@pytest.mark.parametrize(
    ("force", "told"),
    [
        (lambda x, y: np.sin(x) / x, "is nan"),
        (lambda x, y: y / x, "is -inf"),
        (lambda x, y: y * math.log(abs(x)), r"fails \(math domain error\)"),
    ],
)
def test_a_force_must_be_finite_where_learning_begins(force, told, method):
    problem = mp.Problem(mp.Teacher(1.0), mp.Rule(force), rate=1.0)
    with pytest.raises(ValueError, match=f"its force {told} at x = 0, target = -1, where learning"):
        mp.solve(problem, [1.0], method)


@pytest.mark.parametrize(
    "force",
    [
        lambda x, y: y if x * y < 0 else 0.0,
        lambda x, y: math.tanh(y - x),
        lambda x, y: max(0, 1 - x * y) * y,
        lambda x, y: round(y - x, 1),
        lambda x, y: np.mean(y - x),
        lambda x, y: 1.0,
    ],
)
def test_forces_of_numbers_serve_arrays_entry_by_entry(force):
    rule, x, y = mp.Rule(force), np.array([[0.3], [-0.4]]), np.array([1.0, -1.0])
    for function in (rule.force, rule.slope):
        each = [[function(float(a), float(b)) for b in y] for a in x[:, 0]]
        np.testing.assert_array_equal(function(x, y), each)


def test_jumps_that_are_too_close_to_be_found_are_named():
    def pulse(x, y):
        return y * (abs(x - 0.5003) < 0.001)

    found, named = mp.Rule(pulse), mp.Rule(pulse, jumps=[0.5013, 0.4993])
    assert not jumps(found, "classification")
    assert jumps(named, "classification")
    assert named.jumps == (0.4993, 0.5013)
    assert named != found
    assert "jumps=[0.4993, 0.5013]" in repr(named)
    step = mp.Rule(lambda x, y, at: 1.0 * (x > at), jumps=[0.5], at=0.5)
    assert step.changed(at=1.0).jumps == ()
    data = mp.Teacher(alpha=1.0)
    batch = mp.Problem(data, named, rate=1.0, mode="batch")
    with pytest.raises(ValueError, match=r"its force jumps at x = 0.4993"):
        mp.solve(batch, [1.0], mp.DMFT())
    with pytest.raises(ValueError, match=r"`jumps`: the force does not jump at x = 0.3 "):
        mp.Rule(pulse, jumps=[0.3])
    for wrong in ("0", 0.5, [math.nan], ["a"]):
        with pytest.raises(ValueError, match=r"`jumps` must"):
            mp.Rule(pulse, jumps=wrong)


def test_a_force_read_from_a_text_may_call_helpers():
    """Functions that exec() makes belong to no module."""
    scope = {}
    exec("import math\ndef g(a): return math.tanh(a)\ndef f(x, y): return g(y - x)", scope)
    problem = mp.Problem(mp.Teacher(1.2), mp.Rule(scope["f"]), rate=1.0, decay=0.1)
    found = mp.solve(problem, [0.5], mp.Simulation(n=20, samples=2))
    assert 0 < float(found.Q[0]) < 10


def test_a_force_that_prints_is_refused():
    """Compiled, it filled the screen with errors of others and came to no end."""

    def shown(x):
        print(x)
        return x

    for force in (lambda x, y: print(x) or y - x, lambda x, y: y - shown(x)):
        with pytest.raises(ValueError, match=r"`force` <lambda at .*> prints"):
            mp.Rule(force)


@pytest.mark.parametrize("force", [lambda x, y: (y > x) - (y < x), lambda x, y: -(x > y)])
def test_forces_of_comparisons_serve_numbers_of_numpy(force):
    """True − True is none of numpy's."""
    rule = mp.Rule(force)
    assert rule.force(np.float64(2.0), np.float64(1.0)) == rule.force(2.0, 1.0) == -1
    assert rests(mp.Problem(mp.Teacher(1.2, "regression"), rule, rate=0.5)) is False


def test_a_table_that_is_too_short_for_a_force_is_told():
    """Compiled code read beyond its end, and the program died."""
    table = np.linspace(1, 0.1, 8)
    rule = mp.Rule(lambda x, y: y * table[int(abs(8 * x))])
    problem = mp.Problem(mp.Teacher(1.2), rule, rate=1.0, decay=0.1)
    with pytest.raises(ValueError, match=r"`force` .* fails on an example: IndexError"):
        mp.solve(problem, [1.0], mp.Simulation(n=30, samples=3))
