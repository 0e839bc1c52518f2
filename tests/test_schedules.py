"""Schedules, starts, small batches and momentum as fields of a problem."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

import manypass as mp
from manypass import schedules

EVERY = (
    schedules.Steps([(0, 1.5), (2, 0.3)]),
    schedules.InverseTime(1.5, 2.0),
    schedules.InverseTime(1.5, 2.0, 0.25),
    schedules.Exponential(1.5, 3.0),
    schedules.Cosine(1.5, 0.1, 8.0),
    schedules.Warmup(1.0, 0.5),
    schedules.Warmup(0.1, schedules.Steps([(0, 1.5), (2, 0.0)])),
    schedules.Scaled(2.0, schedules.Steps([(0, 1.5), (2, 0.3)])),
)


def problem(**changes):
    settings = {"rate": 1.0, "decay": 0.2} | changes
    return mp.Problem(mp.Teacher(1.2), mp.Adaline(), **settings)


@pytest.mark.parametrize("schedule", EVERY, ids=str)
def test_text_gives_the_schedule_back(schedule):
    assert schedules.read("rate", str(schedule)) == schedule
    given = problem(rate=schedule, decay=str(schedule), start=mp.Start(0.1, 0.5))
    again = mp.Problem.from_dict(json.loads(json.dumps(given.to_dict())))
    assert again == given
    assert hash(again) == hash(given)


@pytest.mark.parametrize("schedule", EVERY, ids=str)
def test_smooth_between_breaks(schedule):
    """Nothing jumps or bends but at the breaks; at a jump the later value counts."""
    edges = [0.0, *schedules.breaks(schedule), 12.0]
    for low, high in pairwise(edges):
        t = np.linspace(low, high, 401)[:-1]
        bends = np.abs(np.diff(schedule(t), 3))
        assert bends.max() < 1e-4, (low, high)
        if schedule.flat:
            assert np.ptp(schedule(t)) == 0


def test_own_function():
    rate = schedules.read("rate", lambda t: 1 / (1 + t))
    assert rate([0, 1]).tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match="its name alone is kept"):
        mp.Problem.from_dict(problem(rate=rate).to_dict())


@pytest.mark.parametrize(
    ("function", "end", "found"),
    [
        (lambda t: 2 if 30 < t < 30.2 else 0.01, 40.0, [30.0, 30.2]),
        (lambda t: 2 - t if t < 0.3 else 1.0, 2.0, [0.3]),
        (lambda t: 0.9 ** int(t / 1.2), 100.0, [1.2 * k for k in range(1, 84)]),
        (lambda t: 1 if t < 0.001 else 0.1 if t < 0.002 else 0.01, 1e4, [0.001, 0.002]),
        (lambda t: max(0.0, t - 1), 3.0, [1.0]),  # where learning begins, without a jump
        (lambda t: max(0.0, 1 - t), 3.0, [1.0]),
        (lambda t: 5.0 if t == 1 else 1.0, 4.0, [1.0]),  # two jumps, but no time between them
        (lambda t: 0.0 if t <= 0 else 1.0, 4.0, []),
        (lambda t: 1 / (1 + t) ** 0.5, 8.0, []),
        (lambda t: t**0.3, 1e4, []),
        (lambda t: 1 + math.sin(40 * t), 8.0, []),
        (lambda t: math.sin(t) ** 2 + math.cos(t) ** 2, 10.0, []),  # rounding does not jump
    ],
)
def test_jumps_of_a_function_are_found(function, end, found):
    rate = schedules.held(schedules.Scaled(2.0, schedules.Function(function)), end)
    np.testing.assert_allclose(rate.breaks, found, rtol=1e-14)


def test_a_jump_that_is_named_and_found_is_one():
    rate = schedules.Function(lambda t: 2.0 if t <= 1 else 1.0, [1.0, 1.5])
    assert rate.breaks == (1.0, 1.5)
    assert schedules.held(rate, 3.0).breaks == (np.nextafter(1.0, 2.0), 1.5)
    assert schedules.held(rate, 0.0).breaks == (1.0, 1.5)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("cos:1", "`rate` must be a number, or steps:"),
        ("cosine:1:2", "a wrong number of values"),
        ("cosine:1:a:2", "'a' is not a number"),
        ("steps:1:2", "must begin at time 0, got 1"),
        ("steps:0:2:0:1", "strictly increasing"),
        ("warmup:0:1", "`until` must be a number from 1e-09"),
        ("inverse:-1:1", "`value` must be 0 or a number"),
        (
            lambda t: -1.0,
            r"`rate`, a function of the time t, must be a number .* got -1.0 at t = 0",
        ),
        (np.log, "`rate`, a function of the time t, must be .* got -inf at t = 0"),
        (lambda: 1.0, "`rate`, a function of the time t, fails .* takes 0 positional"),
        (0.0, "`rate` must be a number from 1e-12"),
        (None, "`rate` must be a number"),
    ],
)
def test_bad_schedules_are_named(value, said):
    with pytest.raises(ValueError, match=said):
        problem(rate=value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: schedules.Function(float, None),
            "`breaks_at` must be real numbers",
        ),
        *(
            (lambda of=of: schedules.Scaled(2.0, of), "`schedule` must be a ")
            for of in (1.0, schedules.Cosine)
        ),
        (lambda: schedules.Scaled(2.0, "x"), "`schedule` must be a number, or steps:"),
        *(
            (lambda factor=factor: schedules.Scaled(factor, "cosine:1:0.1:3"), "`factor` must be")
            for factor in (None, float("nan"), -2.0, "2")
        ),
    ],
)
def test_bad_parts_of_schedules_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("schedule", [*EVERY, schedules.Function(abs)], ids=str)
@pytest.mark.parametrize("t", ["x", 1j, {}, 10**400, None, b"1", [True]], ids=lambda t: f"{t!r:.5}")
def test_times_are_numbers(schedule, t):
    with pytest.raises(ValueError, match="`t` must be real numbers, got "):
        schedule(t)


@pytest.mark.parametrize("schedule", [*EVERY, schedules.Function(abs)], ids=str)
@pytest.mark.parametrize("t", [-1.0, [1, -2]])
def test_times_are_from_zero_on(schedule, t):
    with pytest.raises(ValueError, match="`t` must be from 0 on, got -"):
        schedule(t)


def test_one_break_may_be_a_number():
    assert schedules.Function(abs, 2).breaks == schedules.Function(abs, [2.0]).breaks == (2.0,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start": 1.0}, "`start` must be Start"),
        ({"start": {"P": 1}}, "`P` is not a field of start"),
        ({"start": {"weights": [1, 2]}}, "`weights` are for a Dataset"),
        ({"batch_size": 0}, "`batch_size` must be a whole number from 1"),
        ({"batch_size": 2, "batch_share": 0.5}, "give one of them"),
        ({"momentum": 1.0}, "`momentum` must be a number from 0 to 0.999"),
        ({"momentum": 0.5, "mode": "batch"}, "excludes `momentum` = 0.5"),
        ({"batch_size": 5, "mode": "batch"}, "excludes `batch_size` = 5"),
    ],
)
def test_bad_fields_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        problem(**changes)


def test_bad_starts_are_named():
    with pytest.raises(ValueError, match=r"`Q` = 0.1 must be at least R² = 0.25"):
        mp.Start(0.5, 0.1)
    data = mp.Dataset(np.eye(3), np.ones(3), task="regression")
    for start, said in (
        (mp.Start(0.5, 1.0), "a Dataset has weights, Start"),
        (mp.Start(weights=[1.0]), "has 1 `weights`, but .* has N = 3"),
    ):
        with pytest.raises(ValueError, match=said):
            mp.Problem(data, mp.Adaline(), rate=0.1, start=start)


def test_start_of_a_result():
    found = mp.solve(problem(), [1.0, 2.0])
    start = mp.Start.of(found)
    assert (float(found.R[-1]), float(found.Q[-1])) == (start.R, start.Q)
    with pytest.raises(ValueError, match="with R and Q"):
        mp.Start.of(found[["F2"]])


def test_drawn_start_has_its_overlap_and_length():
    rng = np.random.default_rng(0)
    B = rng.standard_normal(50)
    B /= np.linalg.norm(B)
    J = mp.Start(-0.3, 2.0).drawn(B, rng)
    assert pytest.approx([-0.3, 2.0], abs=1e-12) == [J @ B, J @ J]


def test_small_batches_and_momentum_are_a_smaller_and_a_larger_rate():
    """v/b(1 − β), for every theory; the result tells the problem that was asked."""
    given, plain = problem(batch_size=5, momentum=0.8, rate=1.2), problem(rate=1.2)
    found, same = mp.solve(given, [1.0, 3.0]), mp.solve(plain, [1.0, 3.0])
    np.testing.assert_allclose(found.Q, same.Q, rtol=1e-13)
    assert mp.problem_of(found) == given
    assert mp.critical_rate(given) == pytest.approx(mp.critical_rate(plain), rel=1e-12)
    given = problem(batch_size=4, rate=4 * 1.2)
    assert mp.slow_mode(given) == pytest.approx(mp.slow_mode(plain), rel=1e-12)
    assert mp.critical_rate(given) == pytest.approx(4 * mp.critical_rate(plain), rel=1e-12)
    assert float(mp.steady_state(given).F2) == pytest.approx(float(mp.steady_state(plain).F2))


def test_the_command_line_takes_schedules_and_starts(capsys):
    from manypass.cli import main

    given = "--alpha 1.2 --task regression --rate cosine:1.5:0.1:8 --start=-0.3,1 --times 0,2"
    more = "--batch-size 2 --momentum 0.5 --decay steps:0:0.2:1:0.1"
    main(["solve", *given.split(), *more.split()])
    row = capsys.readouterr().out.splitlines()[-1].split()
    asked = problem(
        rate="cosine:1.5:0.1:8", decay="steps:0:0.2:1:0.1", start=mp.Start(-0.3, 1.0)
    ).replace(task="regression")
    found = mp.solve(asked, [2.0])
    assert float(row[1]) == pytest.approx(float(found.R[0]), rel=1e-5)
    assert float(row[2]) == pytest.approx(float(found.Q[0]), rel=1e-5)
    for flags, said in (
        ("--rate cosin:1", "--rate must be a number, or steps:"),
        ("--rate 1 --start 1", "--start: must be two numbers R,Q, or two tables R/Q, got '1'"),
        ("--rate 1 --momentum 2", "--momentum must be a number from 0 to 0.999"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["solve", "--alpha", "1.2", *flags.split()])
        assert stop.value.code == 2
        assert said in capsys.readouterr().err


def test_what_is_varied_need_not_have_been_constant():
    moving = mp.best(problem(rate="cosine:1:0:4"), over="rate", at=4.0)
    assert float(moving.best_rate) == float(mp.best(problem(), over="rate", at=4.0).best_rate)
