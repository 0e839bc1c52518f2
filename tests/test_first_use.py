"""What people type in their first hours, and what they are then told."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from every_rule import RULES

import manypass as mp
from manypass import verbs
from manypass.cavity.settling import warn_of
from manypass.cavity.stationary import Stationary
from manypass.cli import main
from manypass.exact import training_error
from manypass.explorer.answers import curves
from manypass.explorer.view import View

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.standard_normal((60, 3)), columns=["a", "b", "c"])
FRAME["good"] = np.where(FRAME.a + FRAME.b > 0, 1, -1)


@pytest.mark.parametrize(
    ("closed", "flags", "code", "out", "err"),
    [
        (">&-", "--alpha 1.2", 0, "", ""),
        ("2>&-", "--alpha 1.2", 0, "v_c = 2.000000\n", ""),
        ("2>&-", "--alpha -1", 2, "", ""),
        ("<&- >&-", "--alpha -1", 2, "", "manypass: --alpha must be a number"),
        ("<&- >&- 2>&-", "--alpha 1.2", 0, "", ""),
    ],
)
def test_closed_streams_are_as_good_as_nobody_who_reads(closed, flags, code, out, err):
    line = f"{sys.executable} -m manypass critical-rate {flags} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, out)
    assert done.stderr.startswith(err)
    assert done.stderr.count("\n") == bool(err)


def test_a_terminal_that_lacks_letters_loses_no_answer(tmp_path):
    plan = 'rule = "adaline"\nrate = 1.0\ndata = { alpha = 1.2 }\nsweep = { decay = [0.1] }\n'
    (tmp_path / "plan.toml").write_text(plan)
    line = [sys.executable, "-m", "manypass", "sweep", "plan.toml", "--workers", "1", "--out", "ö"]
    letters = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(line, cwd=tmp_path, env=letters, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xf6/sweep.nc" in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("powerlaw:a", "`exponent` must be a number, got 'a'"),
        ("powerlaw:1:b", "`teacher` must be a number, got 'b'"),
        ("powerlaw:", "`exponent` is missing"),
        ("powerlaw:1:2:3:4", "4 numbers, but a power law has only exponent, teacher, cutoff"),
        ({"values": [1, 2], "wieghts": [1, 1]}, "`wieghts` is not a field of it: it has values"),
    ],
)
def test_mistakes_in_the_text_of_inputs_are_named(given, said):
    with pytest.raises(ValueError, match=said) as error:
        mp.Teacher(1.0, inputs=given)
    assert str(error.value).startswith(f"`inputs` = {given!r}: ")


def test_an_infinite_value_of_a_swept_field_is_drawn():
    found = mp.sweep(mp.Grid(PROBLEM, alpha=[1.0, 2.0, math.inf], rate=[0.5, 1.0]), workers=1)
    for axes in (mp.plot.heatmap(found, x="alpha", y="rate"), mp.plot.lines(found, x="alpha")):
        axes.figure.canvas.draw()
        assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "inf"]


@pytest.mark.parametrize(
    ("problem", "over", "objective"),
    [
        (PROBLEM.replace(mode="batch"), "rate", "Eg"),
        (PROBLEM.replace(mode="batch"), {"decay": (0.01, 1), "rate": (0.1, 2)}, "Eg"),
        (PROBLEM.replace(mode="batch"), "window", "Eg"),
        (PROBLEM.replace(rule=mp.Hebbian()), "time", "F2"),
    ],
)
def test_there_is_no_best_of_what_changes_nothing(problem, over, objective):
    name = over if isinstance(over, str) else "rate"
    with pytest.raises(ValueError, match=f"`over` = '{name}': {objective}.* does not depend on it"):
        mp.best(problem, over=over, objective=objective)


def test_schedules_are_not_compared_where_only_their_integral_counts():
    batch = PROBLEM.replace(mode="batch")
    ends = [mp.solve(batch.replace(rate=v), [4.0]).Eg.item() for v in (0.5, "steps:0:0.9:2:0.1")]
    assert ends[0] == pytest.approx(ends[1], rel=1e-8)
    with pytest.raises(ValueError, match="`over` = 'schedule' says nothing in `mode` = 'batch'"):
        mp.best(batch, over="schedule", at=4.0)


def test_the_page_takes_a_decay_that_moves_and_refuses_endless_examples():
    entry = {"data": {"alpha": 1.2}, "rule": "adaline", "rate": 1.0, "decay": "cosine:1:0.1:8"}
    said = curves(View.from_dict({"problem": entry}))
    assert said["critical_rate"] is None
    assert len(said["curves"]["Eg"]) > 100
    endless = entry | {"data": json.loads('{"alpha": Infinity}'), "decay": 0.1}
    with pytest.raises(
        ValueError, match="`alpha` must be finite on the page but for a committee, got inf"
    ):
        View.from_dict({"problem": endless})


@pytest.mark.parametrize("frame", [FRAME, FRAME[::-1]], ids=["as it is", "in another order"])
def test_a_frame_that_still_has_its_target_is_refused(frame):
    with pytest.raises(ValueError, match=r"`X` still has the column 'good', which is `y`"):
        mp.Dataset(frame, FRAME["good"])
    same = mp.Dataset(frame, "good")
    assert mp.Dataset(frame, FRAME["good"], drop=["good"]) == same
    assert same.n == 3
    mp.Dataset(FRAME.rename(columns={"a": "good", "good": "x"}).drop(columns="x"), FRAME["good"])


@pytest.mark.parametrize("scale", [lambda y: y, lambda y: (y + 1) / 2], ids=["±1", "0 and 1"])
def test_a_column_that_is_the_target_is_told(scale):
    X = np.column_stack([FRAME[["a", "b", "c"]], scale(FRAME["good"])])
    with pytest.warns(UserWarning, match="`X`: column 3 is the target `y` itself"):
        mp.Dataset(X, FRAME["good"].to_numpy())


@pytest.mark.parametrize("rule", RULES[2:], ids=str)
@pytest.mark.parametrize("mode", ["online", "batch"])
def test_automatic_simulates_what_no_theory_of_given_data_serves(rule, mode):
    problem = mp.Problem(mp.Dataset(FRAME, "good"), rule, rate=0.1, decay=0.5, mode=mode)
    for verb in ("solve", "steady_state"):
        assert verbs.automatic(problem, verb) == "simulation"


def test_a_nonlinear_rule_learns_given_data_without_being_told_how():
    problem = mp.Problem(mp.Dataset(FRAME, "good"), mp.Adatron(kappa=1.0), rate=0.1, decay=0.5)
    found = mp.solve(problem, [1.0])
    assert json.loads(found.attrs["method"])["name"] == "Simulation"
    assert mp.best(problem, over="rate", objective="Et", at=5.0).best_Et < found.Et.item()


def test_poles_that_meet_are_not_stable_and_nothing_is_said_of_it():
    """As with forces that are nothing beside what they act on, Huber(1e-12)."""
    rates = np.array([0.5, 2.0])
    values = np.concatenate([[0.1, 1.0, 0.0], np.ones(2), [0.0], np.zeros(2)])
    state = Stationary(PROBLEM, rates, values)
    assert not state.stable


def test_an_overlap_is_known_beside_the_length_of_the_weights():
    noisy = mp.Problem(mp.Teacher(0.5, noise=3.0), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    found = mp.solve(noisy, [1.0, 2.0, 4.0])
    assert 0.01 * found.R.max() < found.R_se.max() < 0.01 * np.sqrt(found.Q.max())
    values = {name: np.ones(1) for name in ("R", "Q", "F2", "Et", "Eg")}
    errors = {f"{name}_se": np.full(1, 0.001) for name in values}
    with pytest.warns(
        UserWarning, match=r"the error of F2 is 0\.02, its largest value 1: try more"
    ):
        warn_of(values | errors | {"F2_se": np.full(1, 0.02)}, "regression", 0.01, "try more", 1)


def test_a_start_in_a_file_is_a_table():
    entry = PROBLEM.to_dict() | {"start": "0.5,1"}
    with pytest.raises(ValueError, match=r"in a file the table \{ R = 0.5, Q = 1.0 \}, got '0.5"):
        mp.Problem.from_dict(entry)


def test_training_errors_of_a_moving_hebbian_rate_follow_one_course(monkeypatch):
    made = []

    class Course(training_error.Course):
        def __init__(self, *given):
            made.append(given)
            super().__init__(*given)

    monkeypatch.setattr(training_error, "Course", Course)
    moving = PROBLEM.replace(rule=mp.Hebbian(), rate="cosine:1:0.1:8")
    found = mp.solve(moving, np.linspace(0, 8, 9))
    assert len(made) == 1
    alone = [mp.solve(moving, [t]).Et.item() for t in (3.0, 8.0)]
    assert found.Et.sel(t=[3.0, 8.0]).values.tolist() == pytest.approx(alone, abs=1e-9)


SWEPT = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0], decay=[0.1, 0.2]), workers=1)
SOLVED = mp.solve(PROBLEM, [1.0, 2.0])


@pytest.mark.parametrize(
    "odd", [3, np.nan, 10**400, 1j, b"Eg", [[1]], pd.NA, np.ma.masked], ids=repr
)
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("over", lambda odd: mp.best(PROBLEM, over=odd)),
        ("objective", lambda odd: mp.best(PROBLEM, over="decay", objective=odd)),
        ("variables", lambda odd: mp.plot.curves(SOLVED, variables=odd)),
        ("variable", lambda odd: mp.plot.heatmap(SWEPT, odd)),
        ("x", lambda odd: mp.plot.heatmap(SWEPT, x=odd)),
        ("x", lambda odd: mp.plot.lines(SWEPT, x=odd)),
        ("by", lambda odd: mp.plot.lines(SWEPT, by=odd)),
        ("inputs", lambda odd: PROBLEM.replace(inputs=odd)),
        ("weights", lambda odd: mp.Start(weights=odd)),
        ("X", lambda odd: mp.Dataset(odd, [1, -1])),
        ("X", lambda odd: mp.inputs_of(odd, [1.0, 2.0])),
        ("power", lambda odd: mp.inputs.Blocks([1.0, 2.0], power=odd)),
    ],
)
def test_odd_values_are_refused_by_name(name, asked, odd):
    with pytest.raises(ValueError, match=f"`{name}`"):
        asked(odd)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("solve --alpha 1 --rate 1 --times -1,1", "--times must lie from 0 to 1e+12"),
        ("advise --alpha 1.2", "advise needs --data FILE and --target COLUMN"),
        ("solve --data . --target y --rate 1", "--data must end in .csv"),
        ("solve --data folder.csv --target y --rate 1", "no file 'folder.csv': it is a folder"),
    ],
)
def test_what_was_typed_is_named(line, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(SystemExit) as end:
        main(line.split())
    words = capsys.readouterr().err
    assert (end.value.code, words.count("\n")) == (2, 1)
    assert said in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--times=--"], "argument --times: expected one argument, got '--'"),
        (["--out=--"], "argument --out: expected one argument, got '--'"),
        (["--teacher-hidden", "0"], "--teacher-hidden must be a whole number from 1 to 16, got 0"),
        (["--teacher-activation", "x"], "--teacher-activation must be one of"),
        (["--teacher-second", "nan"], "--teacher-second must be 1 finite numbers"),
        (["--teacher-second", "2"], "--teacher-second (2.0,) is for two layers"),
        (["--rule", "committee", "--hidden", "0"], "--hidden must be a whole number"),
        (["--target", "z" * 5000], "--target (got 'zzz"),
    ],
)
def test_the_flag_that_was_typed_is_the_one_that_is_named(words, said, capsys):
    with pytest.raises(SystemExit) as end:
        main(["solve", "--alpha", "1", "--rate", "1", *words])
    told = capsys.readouterr().err
    assert end.value.code == 2
    assert told.startswith(f"manypass: {said}")
    assert told.count("\n") == 1
    assert len(told) < 500


@pytest.mark.parametrize("command", ["solve", "steady", "advise"])
def test_data_are_not_written_over(tmp_path, capsys, command):
    text = "a,b,y\n" + "".join(f"{i % 5},{i % 3 - 1},{i % 7 - 3}\n" for i in range(35))
    path = tmp_path / "x.csv"
    path.write_text(text)
    words = ["--data", f"{path}", "--target", "y", "--task", "regression", "--rate", "0.1"]
    with pytest.raises(SystemExit):
        main([command, *words, "--out", f"{tmp_path}/../{tmp_path.name}/x.csv"])
    assert "is a file of the data, which would be lost" in capsys.readouterr().err
    assert path.read_text() == text


def test_the_command_line_warns_of_rules_of_margins_too(tmp_path, capsys):
    rows = "".join(f"{i % 5},{i % 3 - 1},{i % 7 - 3.5}\n" for i in range(35))
    (tmp_path / "x.csv").write_text(f"a,b,y\n{rows}")
    words = ["--target", "y", "--rule", "logistic", "--rate", "0.1", "--times", "1"]
    main(["solve", "--data", f"{tmp_path / 'x.csv'}", *words, "--n", "2", "--samples", "2"])
    assert "manypass: --rule Logistic() is one of margins" in capsys.readouterr().err


def test_what_is_allowed_is_all_told():
    with pytest.raises(
        ValueError, match=r"`alpha` must be a number from 1e-06 to 1e.06 or inf, got"
    ):
        mp.Teacher(-1.0)
    with pytest.raises(ValueError, match="`power` must be numbers from 0 to 1e12, not all of them"):
        mp.Eigenvalues([1, 2, 3], [0, 0, 0])
    assert mp.Teacher(np.float32("inf")) == mp.Teacher(float("inf"))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("data = 3\n[sweep]\nrate = [1]", "`data` must be a table with `alpha`, got 3"),
        ('data = "a"\n[sweep]\nrate = [1]', "`data` must be a table with `alpha`, got 'a'"),
        (
            "data = { alpha = 1 }\n[sweep]\ndecay = { from = 1, to = inf, count = 2 }",
            "`decay` needs finite numbers",
        ),
        *(
            (
                f"data = {{ alpha = 1 }}\n[sweep]\ndecay = {{ {given} }}",
                "`decay` needs finite numbers",
            )
            for given in (
                f"from = {10**400}, to = 1, count = 2",
                f"from = 1, to = {10**400}, count = 2",
                "from = 1, to = 2, count = true",
            )
        ),
        (
            "data = { alpha = 1 }\n[sweep]\nrule = { from = 1, to = 2, count = 2 }",
            "`rule` must be a list",
        ),
    ],
)
def test_odd_plans_are_one_line(tmp_path, capsys, plan, said):
    path = tmp_path / "plan.toml"
    path.write_text(f'rule = "adaline"\nrate = 1\n{plan}\n')
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(path)])
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1)
    assert said.replace("`", "") in told.replace("`", "").replace("--", "")


def test_a_negative_overlap_is_no_flag(capsys):
    main(["solve", "--alpha", "1", "--rate", "1", "--times", "0,1", "--start", "-0.5,1"])
    assert "-0.5" in capsys.readouterr().out


def test_a_folder_is_no_result(tmp_path):
    (tmp_path / "x.nc").mkdir()
    with pytest.raises(ValueError, match="is a folder, not a file of a result"):
        mp.load(tmp_path / "x.nc")
