"""`manypass best`: what `best` finds, from the shell."""

import numpy as np
import pytest

import manypass as mp
from manypass.cli import main

ADALINE = ["best", "--alpha", "1.2", "--decay", "0.1"]
PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)


def values(out):
    """Read lines name = value."""
    return {name.strip(): float(value) for name, value in (line.split("=") for line in out)}


def test_the_shell_finds_what_python_finds(capsys, tmp_path):
    file = tmp_path / "best.nc"
    main([*ADALINE, "--rate", "1", "--over", "decay", "--out", str(file)])
    shown, found = values(capsys.readouterr().out.splitlines()), mp.best(PROBLEM, "decay")
    assert shown == {n: pytest.approx(float(found[n]), rel=1e-5) for n in ("best_decay", "best_Eg")}
    assert mp.load(file).best_Eg == found.best_Eg


def test_several_fields_have_bounds_and_a_rate_that_is_varied_is_not_asked_for(capsys):
    main([*ADALINE, "--over", "rate=0.5:2", "--over", "noise=0.1:0.5"])
    shown = capsys.readouterr()
    found = values(shown.out.splitlines())
    assert (found["best_rate"], found["best_noise"]) == pytest.approx((0.5, 0.1), rel=1e-3)
    assert shown.err.count("--over can set another range") == 2


def test_schedules_are_rows_that_can_be_typed(capsys):
    main([*ADALINE, "--task", "regression", "--noise", "0.5", "--over", "schedule", "--at", "6"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["schedule", "best_Eg", "best_rate", "window"]
    row = next(row for row in rows if row.startswith("exponential")).split()
    again = PROBLEM.replace(task="regression", noise=0.5, rate=row[2])
    Eg = mp.solve(again, [6.0]).Eg.values[-1]
    assert np.isclose(Eg, float(row[1]), rtol=1e-5)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--over", "speed"], "--over must be one of 'rate', 'decay'"),
        (["--over", "decay"], "--rate is missing"),
        (["--rate", "1", "--over", "decay=1"], "--over must be FIELD or FIELD=LOW:HIGH, got"),
        (["--over", "rate", "--over", "decay=0:1"], "several are varied: each needs its bounds"),
        (["--over", "rate=1:2", "--over", "rate=1:3"], "--over rate is given twice"),
        (["--over", "rate=2:1"], "must rise, got 2 to 1"),
        (["--over", "schedule"], "--at must be a time for --over schedule"),
        (["--rate", "1", "--over", "window", "--at", "3"], "got --at 3"),
        ([], "the following arguments are required: --over"),
    ],
)
def test_wrong_questions_are_one_line(flags, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*ADALINE, *flags])
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
