"""The whole space of problems: an answer or a ValueError that names the argument."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import manypass as mp
from manypass.problem import PROBLEM_FIELDS, TEACHER_FIELDS

GOOD = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
ARGUMENTS = {*PROBLEM_FIELDS, *TEACHER_FIELDS, "times", "window"}

anything = st.one_of(
    st.floats(),
    st.integers(),
    st.none(),
    st.text(max_size=3),
    st.booleans(),
    st.complex_numbers(),
    st.lists(st.floats(), max_size=2),
)
sizes = st.one_of(
    st.floats(0, 10), st.floats(0, 1e6), st.sampled_from([1e-300, 1e-6, 1.0, 2.0, 5e-324])
)


def random_problem(draw):
    data = mp.Teacher(
        alpha=draw(st.one_of(st.floats(1e-6, 1e6), st.floats(0.5, 2))),
        task=draw(st.sampled_from(["classification", "regression"])),
        noise=draw(sizes),
    )
    return mp.Problem(
        data,
        draw(st.sampled_from([mp.Adaline(), mp.Hebbian()])),
        rate=draw(sizes.filter(lambda v: v >= 1e-12)),
        decay=draw(sizes.filter(lambda v: v == 0 or v >= 1e-12)),
        temperature=draw(sizes),
        mode=draw(st.sampled_from(["online", "batch"])),
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_valid_problem_has_curves_without_nan(data):
    problem = random_problem(data.draw)
    gaps = data.draw(
        st.lists(st.one_of(st.floats(1e-9, 10), st.floats(1, 1e6)), min_size=1, max_size=5)
    )
    curves = mp.solve(problem, np.cumsum(gaps), two_time=True)
    for name in curves:
        assert not np.isnan(curves[name]).any(), (name, problem)
    for name in ("Q", "F2", "Eg"):
        assert (curves[name] >= 0).all(), (name, problem)
    if problem.mode == "batch" or mp.critical_rate(problem) > problem.rate:
        assert np.isfinite(curves.Q).all()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_valid_problem_has_a_steady_state_or_a_reason(data):
    problem = random_problem(data.draw)
    window = data.draw(st.one_of(st.just(0.0), st.floats(0, 1e6)))
    try:
        steady = mp.steady_state(problem, window=window)
    except ValueError as error:
        assert str(error).startswith("no steady state")
        assert "`rate`" in str(error) or "`decay`" in str(error)
    else:
        for name in steady:
            assert float(steady[name]) >= 0, (name, problem)
    assert mp.critical_rate(problem) > 0
    assert not np.isnan(mp.slow_mode(problem))


@settings(max_examples=250, deadline=None)
@given(
    name=st.sampled_from([*PROBLEM_FIELDS, *TEACHER_FIELDS]),
    value=anything,
)
def test_any_value_of_any_field_is_taken_or_refused_by_name(name, value):
    try:
        problem = GOOD.replace(**{name: value})
    except ValueError as error:
        assert f"`{name}`" in str(error)
    else:
        again = mp.Problem.from_dict(problem.to_dict())
        assert again == problem
        assert hash(again) == hash(problem)


@settings(max_examples=120, deadline=None)
@given(
    st.one_of(
        anything, st.lists(st.floats(), max_size=4), st.lists(st.text(max_size=2), max_size=3)
    )
)
def test_any_times_are_taken_or_refused_by_name(times):
    try:
        curves = mp.solve(GOOD, times)
    except ValueError as error:
        assert "`times`" in str(error)
    else:
        assert not np.isnan(curves.F2).any()


@pytest.mark.parametrize(
    "times", [[], [2, 1], [1, 1], [-1, 2], [np.nan], [0, np.inf], [[1, 2]], ["1"], None, 1j]
)
def test_bad_times(times):
    with pytest.raises(ValueError, match="`times`"):
        mp.solve(GOOD, times)


def test_what_is_masked_is_not_taken():
    hidden, shown = (np.ma.masked_array([1.0, 2.0], mask) for mask in ([0, 1], [0, 0]))
    for name, ask in (
        ("times", lambda a: mp.solve(GOOD, a)),
        ("eigenvalues", lambda a: mp.Exact(eigenvalues=a)),
        ("x", lambda a: mp.activation_density(GOOD, 1.0, a, y=1.0, target=1.0)),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must have no masked entries"):
            ask(hidden)
        ask(shown)


@pytest.mark.parametrize("wrap", [np.array, np.float32, xr.DataArray], ids=lambda w: w.__name__)
def test_a_number_may_come_as_a_0d_array(wrap):
    found = mp.Problem(mp.Teacher(wrap(1.5)), mp.Adatron(kappa=wrap(0.5)), rate=wrap(2.0))
    assert found.to_dict() == mp.Problem(mp.Teacher(1.5), mp.Adatron(0.5), rate=2.0).to_dict()
    assert type(found.rate) is float
    assert mp.steady_state(GOOD, window=wrap(2.0)).identical(mp.steady_state(GOOD, window=2.0))
    whole = wrap(20).astype(int)
    method = mp.Simulation(n=whole, samples=whole, response=np.array(True))
    assert method == mp.Simulation(n=20, samples=20, response=True)
    assert [type(value) for value in (method.n, method.response)] == [int, bool]
    assert mp.Grid(GOOD, rate=[wrap(1.0), wrap(2.0)]).axes == {("rate",): [(1.0,), (2.0,)]}


def test_what_best_finds_can_be_put_into_the_problem():
    found = mp.best(GOOD, over="decay", progress=False)
    assert GOOD.replace(decay=found.best_decay).decay == found.best_decay.item()
    kinds = mp.best(GOOD, over="schedule", at=2, progress=False)  # constants are texts there, too
    constant = kinds.best_rate.sel(schedule="constant")
    assert GOOD.replace(rate=constant).rate == float(constant.item())
    with pytest.raises(ValueError, match="`rate` must be a number, or steps:"):
        GOOD.replace(rate=np.array("one"))


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0]),
        np.ma.masked,
        np.array(True),
        np.timedelta64(1, "s"),
        np.array(5, "m8[ns]"),
        xr.DataArray([1.0, 2.0]),
    ],
    ids=repr,
)
def test_other_arrays_are_no_numbers(value):
    with pytest.raises(ValueError, match="`rate` must be a number from"):
        GOOD.replace(rate=value)
    with pytest.raises(ValueError, match="`n` must be a whole number from"):
        mp.Simulation(n=value)


@pytest.mark.parametrize("window", [-1, np.nan, np.inf, "2", None])
def test_bad_window(window):
    with pytest.raises(ValueError, match="`window`"):
        mp.steady_state(GOOD, window=window)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("alpha", 0, "from 1e-06 to 1e.06"),
        ("rate", 0, "from 1e-12 to 1e.06"),
        ("rate", -1.0, "a number from 1e-12"),
        ("rate", True, "a number"),
        ("decay", -0.1, "0 or a number from 1e-12"),
        ("temperature", np.inf, "from 0 to"),
        ("noise", np.nan, "from 0 to"),
        ("task", "classify", "'classification', 'regression'"),
        ("mode", None, "'online', 'batch'"),
        ("sequence", "sorted", "'replacement', 'reshuffled', 'fixed'"),
        ("batch_share", 1.5, "0 or a number from 1e-06 to 1"),
        ("rule", 7, r"such as Adaline\(\), or its name"),
        ("rule", "backprop", "'hebbian', 'adaline'"),
        ("rule", mp.Huber, r"such as Huber\(\)"),
        ("data", 1.2, "a Teacher"),
    ],
)
def test_messages_name_argument_value_and_what_is_allowed(name, value, allowed):
    with pytest.raises(ValueError, match=f"`{name}` must be .*{allowed}.*got {value!r}"):
        GOOD.replace(**{name: value})


def test_unknown_fields_are_named():
    with pytest.raises(ValueError, match="`lambda` is not a field of a problem"):
        GOOD.replace(**{"lambda": 1})
    with pytest.raises(ValueError, match="`beta` is not a field of data"):
        mp.Problem.from_dict(GOOD.to_dict() | {"data": {"alpha": 1, "beta": 2}})
    with pytest.raises(ValueError, match="`rate` is missing"):
        mp.Problem.from_dict({"data": {"alpha": 1}, "rule": "adaline"})


def test_problem_is_a_frozen_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GOOD.rate = 1.0
    assert mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=np.float64(1.9), decay=0.8) == GOOD
    assert type(GOOD.replace(rate=2).rate) is float


def fails(x, target):
    raise RuntimeError("no")


def test_methods_refuse_what_they_cannot_serve():
    with pytest.raises(ValueError, match=r"Exact\(\) serves the linear rules .* Adatron"):
        mp.solve(GOOD.replace(rule=mp.Adatron()), [1], mp.Exact())
    with pytest.raises(ValueError, match=r"use method Exact\(\)"):
        mp.solve(GOOD, [1], mp.MeanForce())
    with pytest.raises(ValueError, match="knows no `window`"):
        mp.steady_state(GOOD, mp.MeanForce(), window=1)
    with pytest.raises(ValueError, match=r"MeanForce\(\) serves on-line Adaline only"):
        mp.steady_state(GOOD.replace(mode="batch"), mp.MeanForce())
    with pytest.raises(ValueError, match="`method` must be"):
        mp.solve(GOOD, [1], "magic")
    with pytest.raises(ValueError, match="`method` must be"):
        mp.solve(GOOD, [1], mp.Exact)
    for question in (mp.solve, mp.force_autocorrelation, mp.example_response, mp.cavity_experiment):
        with pytest.raises(ValueError, match="`problem` must be"):
            question("magic", [1])
    with pytest.raises(ValueError, match=r"GB of memory .* fewer `times`"):
        mp.solve(GOOD, np.linspace(0, 1, 10**6), two_time=True)
    own = mp.Dataset(np.eye(3), [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match=r"use method Simulation\(samples=100\)$"):
        mp.solve(GOOD.replace(data=own, rule=mp.Logistic()), [1], mp.Exact())
    with pytest.raises(ValueError, match=r"fails at x = 0.25, target = 1.0: RuntimeError: no$"):
        mp.solve(GOOD.replace(rule=mp.Rule(fails)), [1], mp.DMFT())
    root = mp.Rule(lambda x, y: np.sqrt(y - x))  # numpy's own warning would be an error
    with pytest.raises(ValueError, match="not finite at x = -0"):
        mp.solve(GOOD.replace(rule=root), [1], mp.DMFT())
    with pytest.raises(ValueError, match="slow mode is known for"):
        mp.slow_mode(GOOD.replace(rule=mp.Logistic()))
