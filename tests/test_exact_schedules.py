"""The exact theory of rates and decays that change, and of starts, against itself."""

from __future__ import annotations

import numpy as np
import pytest

import manypass as mp
from manypass import schedules
from manypass.exact.course import FEW

T = np.linspace(0, 6, 25)
START = mp.Start(-0.3, 1.0)


def problem(rate, rule=None, **changes):
    task = changes.pop("task", "regression")
    settings = {"decay": 0.2, "temperature": 0.1} | changes
    data = mp.Teacher(changes.pop("alpha", 1.2), task=task, noise=0.5)
    settings.pop("alpha", None)
    return mp.Problem(data, rule or mp.Adaline(), rate=rate, **settings)


def differ(one, other):
    """Return the largest difference of every curve, relative to its largest value."""
    names = [name for name in one.data_vars if not name.endswith("_se")]
    assert {"R", "Q", "F2", "Eg"} <= set(names) == {n for n in other.data_vars if n[-3:] != "_se"}
    return {n: float(abs(one[n] - other[n]).max() / abs(other[n]).max()) for n in names}


@pytest.mark.parametrize("rule", [mp.Adaline(), mp.Hebbian()], ids=str)
@pytest.mark.parametrize("mode", ["online", "batch"])
@pytest.mark.parametrize("start", [None, START], ids=["zero", "start"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_collocation_is_the_closed_solution_where_the_rate_rests(rule, mode, start, task):
    """A function that happens to be constant is followed by collocation, a number is not."""
    closed = problem(1.5, rule, mode=mode, start=start, task=task)
    moving = closed.replace(rate=schedules.Function(lambda t: 1.5))
    found = differ(mp.solve(moving, T, two_time=True), mp.solve(closed, T, two_time=True))
    assert max(found.values()) < 1e-12, found


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("field", ["rate", "decay"])
def test_pieces_are_the_limit_of_what_moves(alpha, field):
    """Closed pieces equal the collocation of the same function to 1e-9 and better."""
    pieces = {"rate": [(0, 1.5), (2, 0.0), (3, 0.7)], "decay": [(0, 0.5), (2, 0.0), (3, 0.1)]}
    steps = schedules.Steps(pieces[field])
    same = schedules.Function(lambda t: float(steps(t)), steps.breaks)
    closed = problem(1.5, alpha=alpha, start=START).replace(**{field: steps})
    moving = closed.replace(**{field: same})
    assert len(steps.pieces) <= FEW
    found = differ(mp.solve(moving, T, two_time=True), mp.solve(closed, T, two_time=True))
    assert max(found.values()) < 1e-10, found


def test_many_small_steps_converge_to_a_smooth_schedule():
    """The error of steps at their midpoints falls by four when they are halved."""
    smooth = mp.solve(problem(schedules.InverseTime(1.5, 2.0)), [6.0])
    errors = []
    for count in (20, 40, 80):
        edges = np.linspace(0, 6, count + 1)
        middle = schedules.InverseTime(1.5, 2.0)((edges[1:] + edges[:-1]) / 2)
        steps = schedules.Steps(list(zip(edges[:-1], middle, strict=True)))
        errors.append(float(abs(mp.solve(problem(steps), [6.0]).F2 / smooth.F2 - 1).values[0]))
    order = np.log2(errors[0] / errors[1]), np.log2(errors[1] / errors[2])
    np.testing.assert_allclose(order, 2, atol=0.05)
    assert errors[-1] < 1e-3


def test_learning_time_alone_counts_for_the_mean():
    """At constant decay R depends on ∫v dt only."""
    moving = mp.solve(problem(schedules.Exponential(1.5, 2.0), start=START), [4.0])
    same = 1.5 * 2.0 * (1 - np.exp(-2.0))
    constant = mp.solve(problem(1.0, start=START), [same])
    assert float(moving.R[0]) == pytest.approx(float(constant.R[0]), rel=1e-12)


def test_a_start_at_the_teacher_stays_there():
    """Without noise and decay J = B is where learning ends: F2 = 0 without a digit left."""
    data = mp.Teacher(2.0, task="regression")
    settled = mp.Problem(data, mp.Adaline(), rate="cosine:1.5:0.1:4", start=mp.Start(1.0, 1.0))
    found = mp.solve(settled, [0.0, 1.0, 5.0])
    assert float(found.F2.max()) < 1e-25
    np.testing.assert_allclose(found.Q, 1, rtol=1e-12)


def test_start_alone_decays_in_the_null_space():
    """Directions that no example has: R₀, Q₀ fall by the decay only."""
    data = mp.Teacher(1e-6, task="regression")
    found = mp.solve(mp.Problem(data, mp.Adaline(), rate=1.0, decay=0.3, start=START), [2.0])
    assert float(found.R[0]) == pytest.approx(-0.3 * np.exp(-0.6), rel=1e-4)
    assert float(found.Q[0]) == pytest.approx(np.exp(-1.2), rel=1e-4)


@pytest.mark.parametrize(
    "changes", [{}, {"alpha": np.inf}, {"mode": "batch"}, {"rule": "hebbian"}], ids=str
)
@pytest.mark.parametrize("rate", [lambda t: 0 if t < 1 else 1, lambda t: max(0.0, t - 1)])
def test_nothing_is_learned_before_the_rate_begins(rate, changes):
    asked = problem(rate, task="classification", temperature=0.0, **changes)
    found = mp.solve(asked, [0.5, 1.0, 3.0])
    assert found.Eg.values[:2].tolist() == [0.5, 0.5]
    assert found.Eg[2] < 0.4


@pytest.mark.parametrize("alpha", [1.2, np.inf])
@pytest.mark.parametrize(("rate", "begin"), [("warmup:1:1", 0.0), (lambda t: max(0.0, t - 1), 1.0)])
def test_the_first_moments_of_a_rising_rate(rate, begin, alpha):
    """R = a t²/2 and Q = F2 t³/3 for v = t, without loss of digits."""
    asked = problem(rate, task="classification", temperature=0.0, alpha=alpha)
    t = np.array([1e-8, 1e-6, 1e-4])
    found = mp.solve(asked, begin + t)
    t = (begin + t) - begin  # as numbers have it
    a, F2 = asked.teacher.moments()
    np.testing.assert_allclose(found.R, a * t**2 / 2, rtol=1e-3)
    np.testing.assert_allclose(found.Q, F2 * t**3 / 3, rtol=1e-3)


def test_a_short_pulse_of_a_function_is_seen():
    pulse, t = problem(lambda t: 2 if 30 < t < 30.2 else 0.01), [8.0, 30.0, 30.2, 40.0]
    found, steps = (
        mp.solve(problem(rate), t) for rate in (pulse.rate, "steps:0:0.01:30:2:30.2:0.01")
    )
    for name in ("R", "Q", "F2"):
        np.testing.assert_allclose(found[name], steps[name], rtol=1e-9)


def test_divergence_is_told_and_means_go_on():
    """Above v_c the transient grows, then is inf; R keeps its value."""
    t = [1.0, 5.0, 100.0, 200.0]
    for rate in ("warmup:1:6", "steps:0:6:50:1"):
        found = mp.solve(problem(rate), t)
        assert np.isinf(found.Q.values[2:]).all(), rate
        assert np.isfinite(found.Q.values[:2]).all()
        batch = mp.solve(problem(rate, mode="batch"), t)
        np.testing.assert_allclose(found.R, batch.R, rtol=1e-9)


def test_late_times_cost_little():
    """1/t without decay to t = 10⁶: F2 falls as a power, in few panels."""
    from manypass.exact.course import Course

    given = problem(schedules.InverseTime(1.5, 2.0), decay=0.0, temperature=0.0)
    course = Course(given, 1e6)
    F2 = course.modes.F2(course.at(np.array([1e2, 1e4, 1e6])))
    assert F2[0] > F2[1] > F2[2] > 0
    assert len(course.pieces[0][1].values) < 60


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"sequence": "reshuffled"},
            r"Exact\(\) does not serve the schedule `rate` = cosine:1.5:0.1:8",
        ),
        ({"batch_share": 0.5}, "does not serve the schedule"),
    ],
)
def test_what_is_not_served_is_named(changes, said):
    with pytest.raises(ValueError, match=said):
        mp.solve(problem("cosine:1.5:0.1:8", **changes), [1.0], "exact")


def test_other_answers_refuse_what_moves():
    moving = problem("cosine:1.5:0.1:8")
    for ask in (
        mp.steady_state,
        mp.slow_mode,
        lambda p: mp.example_response(p, [1.0]),
        lambda p: mp.activations(p, 1.0, samples=10),
        lambda p: mp.activation_density(p, 1.0, [0.0], y=0.0, target=1.0),
        lambda p: mp.steady_state(p, mp.MeanForce()),
        lambda p: mp.cavity_experiment(p, [1.0], n=20),
    ):
        with pytest.raises(ValueError, match=r"the schedule `rate` = cosine:1.5:0.1:8"):
            ask(moving)
    with pytest.warns(UserWarning, match=r"a limit to constant rates: `rate` = .*reaches v = 1\.5"):
        assert mp.critical_rate(moving) == mp.critical_rate(problem(1.0))
    started = problem(1.0, start=mp.Start(R=0.5, Q=1.0))
    assert mp.slow_mode(started) == mp.slow_mode(problem(1.0))  # modes relax from anywhere


@pytest.mark.parametrize(
    "changes",
    [{}, {"sequence": "reshuffled"}, {"batch_share": 0.5}, {"rule": mp.Hebbian()}],
    ids=str,
)
def test_steady_states_forget_the_start(changes):
    plain = problem(0.5, **changes)
    started = plain.replace(start=START)
    found, right = mp.steady_state(started, window=2.0), mp.steady_state(plain, window=2.0)
    assert found.identical(right.assign_attrs(found.attrs))
    assert mp.problem_of(found) == started


def test_what_no_example_shows_of_a_start_is_not_forgotten_without_decay():
    with pytest.raises(ValueError, match=r"`start` = .* `decay` = 0 and `alpha` = 0\.8"):
        mp.steady_state(problem(1.0, alpha=0.8, decay=0.0, start=START), mp.Exact())


def test_sampled_training_error_is_for_constant_rates():
    with pytest.raises(ValueError, match=r"`samples` of Exact\(\) samples Et at a constant rate"):
        mp.solve(problem("warmup:1:1", task="classification"), [1.0], mp.Exact(samples=100))
