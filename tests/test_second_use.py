"""What people meet when they go on, and what they are then told."""

import argparse
import gzip
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import time
import warnings
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import manypass as mp
import manypass.__main__
from manypass.cavity import steady
from manypass.cli import as_flags, main
from manypass.commands import heard_from, print_table
from manypass.data.advice import runs_of
from manypass.ensemble import Average
from manypass.exact.training_error import shot_exponent
from manypass.simulation import cost
from manypass.simulation.network import Learner
from manypass.sweeps import clusters

RANDOM = np.random.default_rng(0)
PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
COUNT = itertools.count()
ROWS = "".join(f"{i / 7},{i % 5},{i % 3}\n" for i in range(6))


@pytest.mark.parametrize(
    ("text", "settings", "place"),
    [
        (f"a,b,y\n{ROWS}1,,2\n", {}, "column 'b' is missing in line 8 of "),
        (f"a,b,y\n\n{ROWS}  \n1,,2\n", {}, "column 'b' is missing in line 10 of "),  # empty lines
        (f'a,"b\nc",y\n{ROWS}1,?,2\n', {}, r"got '\?' in column .*, line 9 of "),
        (f"a,b,y\n{ROWS}1,1,\n", {}, r"`y` .* is missing \(nan\) in line 8 of "),
        (
            f"a,b,y\n{ROWS}1_000,1,2\n",
            {},
            "'1_000' in .*, line 8 of '.*': an underscore .* write 1000$",
        ),
        (f"a,b,y\n{ROWS}1,1,١٢\n", {}, "'١٢' in .*, line 8 of '.*': its digits .* write 12$"),
        (f"a,b,y\n{ROWS}1,1,7\n", {"task": "classification"}, "got 0 in line 2 of "),
        (f"a,b,y\n{ROWS}x,1,7\n".replace(",", "  "), {"sep": r"\s+"}, "got 'x' in .*, line 8 of "),
        (f"a,b,y\n{ROWS},1,7\n", {"one_hot": ["a"]}, "'a' is missing in line 8 of "),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_a_cell_of_a_file_is_named_by_its_line(tmp_path, name, text, settings, place):
    path = tmp_path / name
    with (gzip.open if name.endswith("gz") else open)(path, "wt") as file:
        file.write(text)
    with pytest.raises(ValueError, match=place if "$" in place else f"{place}'.*{name}'"):
        mp.read_dataset(path, "y", **settings)


def test_a_cell_of_the_test_file_is_in_the_test_file(tmp_path):
    for name, last in (("train.csv", "1,2,3\n"), ("test.csv", "1,2,inf\n")):
        (tmp_path / name).write_text(f"a,b,y\n{ROWS}{last}")
    with pytest.raises(ValueError, match=r"inf in line 8 of '.*test.csv'"):
        mp.read_dataset(tmp_path / "train.csv", "y", test=tmp_path / "test.csv")


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ("9,7 1,7 2,0", "a decimal comma, '9,7': .*, or say `decimal` = ','"),
        ("941,720 1,720 2,000", "'941,720': .* if these group thousands; if these are decimal com"),
        ("1,234.5 1,720 2,000,000", "commas in its numbers, '1,234.5'.* say `thousands` = ','"),
        ("1,234.5 12 2 3.5", "commas in its numbers, '1,234.5'"),  # one among plain numbers
        ("1'234 12 2", 'digits in groups, "1\'234": .* say `thousands` = "\'"'),
        ("1\xa0234,5 12 2", "digits in groups, .* write them without"),
    ],
)
def test_commas_in_numbers_are_told_for_what_they_may_be(tmp_path, cells, told):
    path = tmp_path / "x.csv"
    rows = "".join(f"{cell};{i};{i % 2}\n" for i, cell in enumerate(cells.split(" ")))
    path.write_text(f"a;b;y\n{rows}")
    with pytest.raises(ValueError, match=f"column 'a' has .*{told}"):
        mp.read_dataset(path, "y", sep=";", positive="1")


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ('a,b,y\n"1,234.5",2,1\n12,3,0\n"-2,000,000",4,1\n', {"thousands": ","}),
        ("a;b;y\n1.234,5;2;1\n12;3;0\n-2.000.000;4;1\n", {"thousands": ".", "decimal": ","}),
        ("a;b;y\n1 234.5;2;1\n12;3;0\n-2 000 000;4;1\n", {"thousands": " "}),
        ("a;b;y\n1'234.5;2;1\n12;3;0\n-2'000'000;4;1\n", {"thousands": "'"}),
    ],
)
@pytest.mark.filterwarnings("default")
def test_grouped_digits_are_read_where_they_are_told(tmp_path, text, settings, capsys):
    path = tmp_path / "x.csv"
    path.write_text(text)
    sep = "," if text[1] == "," else ";"
    data = mp.read_dataset(path, "y", sep=sep, positive="1", **settings)
    assert data.X.tolist() == [[1234.5, 2.0], [12.0, 3.0], [-2e6, 4.0]]
    problem = PROBLEM.replace(data=data, rate=1e-9)
    assert mp.Problem.from_dict(problem.to_dict()) == problem
    flags = [part for name, value in settings.items() for part in (f"--{name}", value)]
    flags += ["--sep", sep, "--positive", "1", "--rule", "adaline", "--rate", "1e-9"]
    main(["solve", "--data", str(path), "--target", "y", *flags, "--times", "0,1"])
    assert "3 examples" in capsys.readouterr().err
    entry = {"path": str(path), "target": "y", "sep": sep, "positive": "1", **settings}
    (tmp_path / "problem.toml").write_text(
        "rule = 'adaline'\nrate = 1e-9\n[data]\n"
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in entry.items())
    )
    main(["solve", str(tmp_path / "problem.toml"), "--times", "0,1"])
    assert "3 examples" in capsys.readouterr().err


def test_what_groups_digits_is_one_of_a_few(tmp_path):
    (tmp_path / "x.csv").write_text("a;b;y\n1;2;1\n")
    for wrong, told in (("x", "must be one of ',', '.', "), (".", "and `decimal` are both '.'")):
        with pytest.raises(ValueError, match=f"`thousands` {told}"):
            mp.read_dataset(tmp_path / "x.csv", "y", sep=";", thousands=wrong)


def test_a_decimal_comma_is_read_where_it_is_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b;y\n9,5;1;1\n1,25;2;0\n2,0;-3,5e2;1\n")
    data = mp.read_dataset(path, "y", sep=";", decimal=",", positive="1")
    assert data.X.tolist() == [[9.5, 1.0], [1.25, 2.0], [2.0, -350.0]]
    problem = PROBLEM.replace(data=data)
    assert mp.Problem.from_dict(problem.to_dict()) == problem
    path.write_text("a;b;y\n9.5;1;1\n1,25;2;0\n2,0;3;1\n")
    with pytest.raises(ValueError, match=r"has a decimal point, '9.5': .* leave `decimal` out"):
        mp.read_dataset(path, "y", sep=";", decimal=",", positive="1")
    with pytest.raises(ValueError, match=r"`decimal` must be '.' or ',', got 'x'"):
        mp.read_dataset(path, "y", decimal="x")
    (tmp_path / "x.parquet").write_text("")
    with pytest.raises(ValueError, match=r"`decimal` .* is for text files"):
        mp.read_dataset(tmp_path / "x.parquet", "y", decimal=",")


@pytest.mark.parametrize(
    ("head", "sep"),
    [
        ("# made by\n# y\na,b,y\n", ","),
        ('\ufeff# a,b\n"a",b,y\n', ","),
        ("# by, x, y\n#a,b,y\n", ","),  # the last comment names the columns
        ("# a b y\n", r"\s+"),  # as numpy.savetxt does
        ("#a,b,y\n", ","),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_comments_at_the_head_of_a_file_are_skipped(tmp_path, head, sep, name):
    rows = ROWS if sep == "," else ROWS.replace(",", " ")
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wt", encoding="utf8") as f:
        f.write(head + rows)
    data = mp.read_dataset(tmp_path / name, "y", sep=sep, task="regression")
    assert (data.names, data.p) == (("a", "b"), 6)
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wt", encoding="utf8") as f:
        f.write(head + rows + sep.replace(r"\s+", " ").join("1?3") + "\n")
    with pytest.raises(ValueError, match=f"line {head.count(chr(10)) + 7} of"):
        mp.read_dataset(tmp_path / name, "y", sep=sep, task="regression")


def test_files_that_a_table_names_are_beside_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/mine.csv").write_text(f"a,b,y\n{ROWS}")
    text = "rule = 'adaline'\ndata = { path = 'mine.csv', test = 'mine.csv', target = 'y' }\n"
    (tmp_path / "sub/problem.toml").write_text(f"rate = 0.1\n{text}")
    main(["solve", "sub/problem.toml", "--times", "0,1"])
    assert "sub/mine.csv: 6 examples" in capsys.readouterr().err
    (tmp_path / "sub/plan.toml").write_text(f"method = 'exact'\n{text}[sweep]\nrate = [0.1, 0.2]")
    main(["sweep", "sub/plan.toml", "--workers", "1"])
    assert "sub/mine.csv: 6 examples" in capsys.readouterr().err
    (tmp_path / "mine.csv").write_text(f"a,b,y\n{ROWS}1,2,3\n")  # what is typed is where one is
    main(["solve", "sub/problem.toml", "--data", "mine.csv", "--times", "0,1"])
    assert "mine.csv: 7 examples" in capsys.readouterr().err
    absolute = text.replace("'mine.csv'", f"'{tmp_path / 'mine.csv'}'")
    (tmp_path / "sub/problem.toml").write_text(f"rate = 0.1\n{absolute}")
    main(["solve", "sub/problem.toml", "--times", "0,1"])
    assert "mine.csv: 7 examples" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")  # as on the command line
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--rate", "2.5"], "learning diverges: --rate 2.5 is not below the critical rate v_c = 2"),
        (["--rate", "7", "--batch-size", "3"], "--rate 7 is not below the critical rate v_c = 6"),
        (["--rate", "cosine:50:40:9"], "learning diverges: F2 grows without bound, to inf"),
        (["--rate", "1.9"], ""),
        (["--rate", "0.5", "--start", "9,100"], ""),
    ],
)
def test_curves_that_grow_without_bound_are_told_once(capsys, flags, told):
    main(["solve", "--alpha", "2", "--times", "0,40", *flags])
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == bool(told)


@pytest.mark.filterwarnings("default")
def test_a_column_that_alone_sets_the_critical_rate_is_told(tmp_path, capsys):
    path = tmp_path / "x.csv"
    rows = "".join(f"{10**17 + 77777 * i},{i * i % 5},{i % 3},{i % 2}\n" for i in range(9))
    path.write_text(f"id,a,b,y\n{rows}")
    given = ["--data", str(path), "--target", "y", "--positive", "1"]
    main(["critical-rate", *given])
    hint = "column 'id' is 5e+16 times as large as most others; say --standardize, or leave it"
    assert hint in capsys.readouterr().err
    main(["solve", *given, "--rate", "1", "--times", "0,9"])
    said = capsys.readouterr().err
    assert "--rate 1 is not below the critical rate" in said
    assert hint in said
    for way in (["--standardize"], ["--drop", "id"]):
        main(["critical-rate", *given, *way])
        assert "times as large" not in capsys.readouterr().err


def test_a_folder_that_was_deleted_is_told(tmp_path):
    (tmp_path / "gone").mkdir()
    code = "import os; os.rmdir(os.getcwd()); from manypass.cli import main; main({})"
    for arguments in (
        ["solve", "--alpha", "1", "--rate", "1", "--out", "x.nc"],
        ["sweep", "plan.toml"],
        ["solve", "problem.toml"],
    ):
        (tmp_path / "gone").mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", code.format(arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path / "gone",
            check=False,
        )
        assert done.returncode == 2
        assert "the folder that you are in has been deleted" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("passes", "some"), [("1,2", "2 have"), ("3", "1 has")])
def test_too_few_passes_for_a_fit_are_told(capsys, passes, some):
    main(["worth", "--alpha", "1", "--task", "regression", "--rate", "0.5", "--passes", passes])
    said = capsys.readouterr().out
    assert "nan" not in said
    assert (
        f"R* is not known: it is fitted to the worth of at least 3 numbers of passes, here {some}"
        in said
    )
    main(["worth", "--alpha", "1", "--task", "regression", "--rate", "0.5", "--passes", "1,2,3"])
    assert "R* = " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("slope", "said"),
    [
        (
            lambda x, y: 3 * (y - x) ** 2,
            r"at x = -2\.93, target = -1\.0 it is 11\.17.*gives -11\.17",
        ),
        (lambda x, y: 0.0, "it is 0, a difference"),
        (lambda x, y: np.nan, "it is nan, a difference"),
        (lambda x, y: x[0], "`slope` fails at x = -2.93.*TypeError"),
    ],
)
def test_a_wrong_slope_is_refused_though_nobody_needs_it(slope, said):
    with pytest.raises(ValueError, match=said):
        mp.Rule(lambda x, y: (y - x) ** 3, slope)


@pytest.mark.parametrize(
    ("force", "slope"),
    [
        (lambda x, y, a: a * (y - x) ** 3, lambda x, y, a: -3 * a * (y - x) ** 2),
        (lambda x, y, a: np.sign(y - x) + a, lambda x, y, a: 0.0),
        (lambda x, y, a: np.sqrt(y - x), lambda x, y, a: -0.5 / np.sqrt(y - x)),  # NaN elsewhere
        (lambda x, y, a: np.tanh(1e5 * (y - x)), lambda x, y, a: -1e5 * (abs(y - x) < 1e-9)),
    ],
)
def test_right_slopes_and_those_of_steep_forces_are_taken(force, slope):
    assert mp.Rule(force, slope, a=1e-9).parameters == {"a": 1e-9}


def test_a_rule_may_be_named_as_in_files():
    assert mp.Problem(mp.Teacher(alpha=1.2), "adaline", rate=1.0, decay=0.1) == PROBLEM
    assert PROBLEM.replace(rule={"name": "adatron", "kappa": 0.5}).rule == mp.Adatron(kappa=0.5)
    with pytest.raises(ValueError, match=r"`rule` must be one of 'hebbian', 'adaline'.*'backprop'"):
        PROBLEM.replace(rule="backprop")
    with pytest.raises(ValueError, match=r"such as Hebbian\(\), or its name, got <class"):
        PROBLEM.replace(rule=mp.Hebbian)
    swept = mp.sweep(mp.Grid(PROBLEM, rule=["adaline", "hebbian"]), workers=1)
    assert swept.Eg[0] == mp.steady_state(PROBLEM).Eg


@pytest.mark.parametrize(
    "data", [{"file": "x.csv"}, {"filename": "x"}, {"csv": "x.CSV"}, {"target": "y"}]
)
def test_a_file_of_data_is_called_path(data):
    with pytest.raises(
        ValueError, match=r"its name is `path`: data = { path = 'train.csv', target"
    ):
        mp.Problem.from_dict({"rule": "adaline", "rate": 1.0, "data": data})


def test_one_variable_of_a_result_is_no_result():
    found = mp.solve(PROBLEM, [1.0, 2.0])
    for asked in (mp.problem_of, mp.Start.of, lambda result: mp.save(result, "x.nc")):
        with pytest.raises(ValueError, match=r"`result` (is|must be)") as told:
            asked(found.R)
        assert "\n" not in str(told.value)


PLAN = 'rule = "adaline"\nrate = 1.0\ndata = { alpha = 1.2 }\nsweep = { decay = [0.1] }\n'


def test_jobs_of_slurm_are_a_flag_and_settings_a_table(tmp_path, capsys):
    path = tmp_path / "plan.toml"
    line = ["sweep", str(path), "--workers", "1", "--out", str(tmp_path)]
    path.write_text(f"slurm = 3\n{PLAN}")
    with pytest.raises(SystemExit, match="2"):
        main(line)
    said = capsys.readouterr().err
    assert "'slurm' must be a table of dask-jobqueue's settings" in said
    assert said.count("\n") == 1
    path.write_text(f"{PLAN}[slurm]\nqueue = 'short'\n")
    main(line)
    assert "table [slurm] of the plan is for --slurm JOBS" in capsys.readouterr().err


def test_settings_that_dask_jobqueue_does_not_know_are_one_line(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(
            ValueError, match=r"'colour' in the table \[slurm\] of the plan is no setting"
        ),
        clusters.slurm(1, {"colour": 3}),
    ):
        pass


@pytest.mark.parametrize("rule", ["adaline", "adatron", "logistic"])
def test_what_v_c_means_for_a_schedule_is_told(rule):
    moving = PROBLEM.replace(rule=rule, rate="cosine:1.5:0.1:8")
    with pytest.warns(UserWarning, match=r"limit to constant rates: `rate` = .*v = 1\.5, v/v_c = "):
        limit = mp.critical_rate(moving)
    assert limit == mp.critical_rate(PROBLEM.replace(rule=rule))


@pytest.mark.parametrize("filters", ["default", "error", "ignore"])
def test_the_command_tells_it_too(capsys, filters):
    warnings.simplefilter(filters)  # pytest puts them back
    main(["critical-rate", "--alpha", "1.2", "--decay", "0.1", "--rate", "cosine:1.5:0.1:8"])
    said = capsys.readouterr()
    assert said.out == "v_c = 2.168827\n"
    assert said.err.startswith("manypass: v_c is a limit to constant rates: --rate cosine")


def test_a_law_is_of_inputs_and_targets_that_belong_together():
    X = pd.DataFrame(RANDOM.standard_normal((40, 3)), columns=list("abc"))
    y = X.a + 0.1 * RANDOM.standard_normal(40)
    assert mp.inputs_of(X, y.sample(frac=1, random_state=0)) == mp.inputs_of(X, y)
    with pytest.raises(ValueError, match="`y` must have the index of `X`, got another"):
        mp.inputs_of(X, y.set_axis(range(1, 41)))


def test_eigenvalues_of_too_few_examples_are_called_a_sample():
    X = np.random.default_rng(0).standard_normal((20, 21))
    with pytest.warns(UserWarning, match="`X` has 20 examples of 21 columns: .* of the sample"):
        assert len(mp.inputs_of(X, X[:, 0]).mu) == 20
    assert len(mp.inputs_of(X[:, :20], X[:, 0]).mu) == 20


@pytest.mark.parametrize("sequence", ["replacement", "reshuffled", "fixed"])
@pytest.mark.parametrize("start", [None, mp.Start(R=0.3, Q=1.0)])
def test_before_the_first_batch_nothing_has_been_learned(sequence, start):
    problem = PROBLEM.replace(sequence=sequence, batch_share=0.5, start=start)
    found = mp.solve(problem, [0.1, 0.5], mp.DMFT(samples=20_000))
    begun = mp.solve(problem, [0.0], mp.DMFT(samples=20_000)).isel(t=0)
    for name in ("R", "Q", "F2", "Eg", "Et"):
        np.testing.assert_allclose(found[name], float(begun[name]), atol=1e-12)
    R, Q = (0.3, 1.0) if start else (0.0, 0.0)
    np.testing.assert_allclose([begun.R, begun.Q], [R, Q], atol=1e-6)
    assert float(begun.F2) == pytest.approx(1 - 2 * np.sqrt(2 / np.pi) * R + Q, rel=0.02)


def test_a_network_that_has_diverged_draws_no_more_examples(monkeypatch):
    """With α = ∞ every step draws an example: it was drawn for as long as was asked."""
    planned = []
    plan = Learner.plan
    monkeypatch.setattr(
        Learner, "plan", lambda self, count: planned.append(count) or plan(self, count)
    )
    fast = PROBLEM.replace(alpha=np.inf, rate=20.0)
    found = mp.solve(fast, [1.0, 1e5], mp.Simulation(n=50, samples=2))
    assert found.diverged.values.tolist() == [0, 2]
    assert sum(planned) < 1e6  # of 10⁷


FRESH = {"alpha": np.inf}
HEAT = {"temperature": 0.1, "momentum": 0.5, "rule": "logistic"}


@pytest.mark.parametrize("changes", [{}, FRESH, HEAT, {"mode": "batch"}])
def test_what_a_long_simulation_may_take_is_told_before_it_begins(changes, monkeypatch):
    monkeypatch.setattr(cost, "SMALL", 0.0)
    problem, method = PROBLEM.replace(**changes), mp.Simulation(n=50, samples=1000)
    seconds = cost.estimate(method, problem, 1e3, 20)
    assert 0 < seconds < np.inf
    assert cost.estimate(method, problem, 1e9, 20) > 1e4
    assert cost.told(method, problem, 1e9, 20).startswith("1000 networks of N = 50 may take about ")
    assert cost.told(mp.Exact(), problem, 1e9, 20) is None
    lost = PROBLEM.replace(rate=50.0)  # and then nothing takes time
    assert cost.estimate(method, lost, 1e9, 20) < cost.estimate(method, PROBLEM, 1e9, 20) / 1e3


def test_the_command_line_tells_it(capsys, monkeypatch):
    line = ["--method", "simulation", "--n", "20", "--alpha", "1.2", "--rate", "1", "--decay", "1"]
    main(["solve", *line, "--times", "1"])
    assert "may take" not in capsys.readouterr().err
    monkeypatch.setattr(cost, "SMALL", 0.0)
    monkeypatch.setattr(cost, "LONG", 0.0)
    for command in (["solve", "--times", "1"], ["steady", "--window", "1"]):
        main([*command, *line])
        assert "manypass: 100 networks of N = 20 may take about " in capsys.readouterr().err


@pytest.mark.physics
def test_a_steady_state_that_is_lost_in_its_error_is_none():
    """|x| never comes near ±1: the force is ±width, its response to x is chance alone."""
    flat = PROBLEM.replace(rule=mp.Huber(width=1e-3))
    with pytest.raises(
        mp.NotSettledError, match=r"`rule` Huber\(width=0.001\) hardly depends on x"
    ):
        mp.steady_state(flat)
    late = mp.solve(flat, [80.0], mp.DMFT(rtol=0.02))
    same = mp.steady_state(PROBLEM.replace(rule="hebbian"))  # but for the size of the force
    assert float(late.Q[0]) == pytest.approx(1e-6 * float(same.Q), rel=0.02)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("solve --alpha 1.2 --rate 1 --times 1", 0),
        ("critical-rate --alpha 1.2", 0),
        ("solve --alpha 1.2 --rate 1 --times 1 --plot x.png", 2),
        ("worth --alpha 1 --task regression --rate 0.5 --passes 1 --plot x.png", 2),
        ("reproduce 4 --quick", 2),
    ],
)
def test_a_wrong_backend_concerns_those_who_draw(tmp_path, line, code):
    command = [sys.executable, "-m", "manypass", *line.split()]
    odd = {**os.environ, "MPLBACKEND": "nonsense"}
    done = subprocess.run(command, cwd=tmp_path, env=odd, capture_output=True, text=True)
    assert done.returncode == code
    told = "manypass: MPLBACKEND = 'nonsense' in the environment is no backend of matplotlib"
    assert done.stderr.startswith(told if code else "")
    assert done.stderr.count("\n") == bool(code)
    assert bool(done.stdout) == (not code)  # told before the work is done


def test_a_force_that_cannot_be_compiled_is_told_in_one_line():
    def importing(x, target):
        import math

        return target - math.tanh(x)

    with pytest.raises(ValueError, match=r"`force` .*importing.* cannot be compiled"):
        mp.solve(PROBLEM.replace(rule=mp.Rule(importing)), [1.0], mp.Simulation(n=20, samples=2))


def test_without_a_compiler_who_needs_one_says_so():
    command = [sys.executable, "-m", "manypass", "solve", "--alpha", "1", "--rate", "1"]
    for more, said in (
        (["--method", "simulation", "--n", "20", "--samples", "2"], "NUMBA_DISABLE_JIT is set"),
        ([], ""),
    ):
        done = subprocess.run(
            [*command, "--times", "1", *more],
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
            check=False,
        )
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode == (2 if said else 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("sep", value) for value in ([], {}, np.array([]), 1, b",", "§", "\udc80")),
        *(
            ("encoding", value)
            for value in ([], {}, np.array([]), 0, "", "none such", "a\0b", "\udc80")
        ),
        *(("task", value) for value in ([], {}, np.array([]), 0, False, b"regression")),
    ],
)
def test_settings_of_a_file_that_are_none(tmp_path, name, value):
    (tmp_path / "x.csv").write_text(f"a,b,y\n{ROWS}")
    with pytest.raises(ValueError, match=f"^`{name}` must be"):
        mp.read_dataset(tmp_path / "x.csv", "y", **{name: value})


@pytest.mark.parametrize("kind", ["nc", "csv", "json"])
@pytest.mark.parametrize("value", [object(), {"a": 1}, [1], None, 1])
def test_a_variable_that_no_file_holds_is_named(tmp_path, kind, value):
    held = np.empty(1, object)
    held[0] = value
    found = mp.solve(PROBLEM, [1.0]).assign(mine=("t", held))
    with pytest.raises(ValueError, match=rf"`result` has a variable 'mine' .* a \.{kind} file"):
        mp.save(found, tmp_path / f"x.{kind}")
    found = mp.solve(PROBLEM, [1.0]).assign(mine=("t", np.array(["text"], object)))
    mp.save(found, tmp_path / f"x.{kind}")
    assert mp.load(tmp_path / f"x.{kind}").mine.item() == "text"


@pytest.mark.parametrize("kind", ["nc", "csv"])
@pytest.mark.parametrize("changes", [{"\udc80": 1.0}, {"": 1.0}, {"mine": "\udc80"}])
def test_texts_that_no_file_holds_are_one_line(tmp_path, kind, changes):
    found = mp.solve(PROBLEM, [1.0])
    found = found.assign({k: v for k, v in changes.items() if v == 1.0})
    found = found.assign_attrs({k: v for k, v in changes.items() if v != 1.0})
    if (kind, *changes) in (("csv", ""), ("csv", "mine")):  # it can
        mp.save(found, tmp_path / "x.csv")
        return
    with pytest.raises(ValueError, match=rf"^`result` cannot be written as \.{kind}: ") as told:
        mp.save(found, tmp_path / f"x.{kind}")
    assert "\n" not in str(told.value)
    assert not list(tmp_path.iterdir())


def rarely(x, target):
    return target - x if np.random.random() > 1e-9 else 0.0  # noqa: NPY002


@pytest.mark.parametrize("name", ["force", "slope"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: y - x + np.random.normal(),  # noqa: NPY002
        lambda x, y: y - x + random.random(),
        lambda x, y: y - next(COUNT),
        rarely,
    ],
)
def test_a_force_that_draws_random_numbers_is_refused(name, function):
    given = {"force": lambda x, y: y - x} | {name: function}
    with pytest.raises(ValueError, match=f"^`{name}` .*draws random numbers.*`temperature`"):
        mp.Rule(**given)


@pytest.mark.parametrize("rule", [mp.Adatron(), mp.Perceptron(), mp.Logistic()])
def test_rules_of_margins_are_for_classes(rule):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = X[:, 0] - X[:, 0].mean()
    with pytest.warns(UserWarning, match="`rule` .* is one of margins .* take Adaline") as told:
        mp.Problem(mp.Dataset(X, y + rng.standard_normal(30)), rule, rate=0.1)
    assert told[0].filename == __file__
    mp.Problem(mp.Dataset(X, np.sign(y)), rule, rate=0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_NUM_THREADS", "abc"),
        ("NUMBA_NUM_THREADS", ""),
        ("NUMBA_NUM_THREADS", "0"),
        ("NUMBA_OPT", "x"),
    ],
)
def test_what_numba_cannot_read_in_the_environment_is_one_line(name, value):
    command = [sys.executable, "-m", "manypass", "solve", "--alpha", "1", "--rate", "1"]
    done = subprocess.run(
        [*command, "--times", "1", "--method", "simulation", "--n", "20", "--samples", "2"],
        capture_output=True,
        text=True,
        env=os.environ | {name: value},
        check=False,
    )
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"manypass: {name} = {value!r} in the environment ")
    assert done.returncode == 2


@pytest.mark.parametrize("method", [mp.Exact(), mp.Simulation(n=20, samples=2)])
def test_a_rate_that_fails_later_is_told_with_its_time(method):
    breaking = PROBLEM.replace(rate=lambda t: 1 / 0 if t > 1.2 else 0.5)
    with pytest.raises(ValueError, match=r"`rate`, a .* fails at t = 1.*ZeroDivisionError"):
        mp.solve(breaking, [2.0], method)


@pytest.mark.parametrize(
    ("share", "seed", "named"),
    [
        *((share, 0, "share") for share in (np.inf, "x", None, 0, 5)),
        *((0.2, seed, "seed") for seed in (-1, "x", 1.5)),
    ],
)
def test_what_is_held_out_is_a_share(share, seed, named):
    X = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.raises((ValueError, TypeError), match=f"`{named}` must be"):
        mp.Dataset(X, X[:, 0] + X[:, 1] ** 2 - 1).held_out(share, seed)


def test_names_and_labels_that_cannot_be():
    X = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.raises(ValueError, match="`names` must be the columns' names, got 0"):
        mp.Dataset(X, X[:, 0] ** 2 - 1, names=0)
    with pytest.raises(ValueError, match="`positive` must be one of the labels"):
        mp.Dataset(X, np.sign(X[:, 0]), positive=10**400)
    assert mp.spectrum.density(1.2, [1.0, 2.0]).shape == (2,)
    with pytest.raises((ValueError, TypeError), match="`alpha` must be"):
        mp.spectrum.marchenko_pastur([])


def test_passes_that_do_harm_are_worth_nothing():
    """More passes than are good: no example at all does as well, which is 0 and not infinity."""
    data = mp.Teacher(1.0, task="regression", noise=0.1)
    problem = mp.Problem(data, mp.Adaline(), rate=0.5)
    found = mp.effective_data(problem, [1, 100, 1e4, 1e6])
    np.testing.assert_allclose(found.effective_data[:3], [0.72, 3.13, 1.02], atol=0.01)
    assert found.Eg[-1] > 0.5
    assert found.effective_data[-1] == 0


def test_a_start_is_one_point_of_a_sweep():
    found = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]), times=[1.0], workers=1, progress=False)
    with pytest.raises(ValueError, match="`result` must be one point of a sweep, not along rate"):
        mp.Start.of(found)
    assert mp.Start.of(found.isel(rate=0)).Q > 0


GAIN = 2.0
GAINS = np.array([2.0])


@pytest.mark.physics
def test_a_force_has_the_values_around_it_that_hold_when_it_is_used(monkeypatch):
    """Compiled, a function keeps what it found: R was that of the first value for ever."""

    def first(x, y):
        return GAIN * (y - x)

    def second(x, y):
        return GAINS[0] * (y - x)

    amount = 2.0

    def third(x, y):
        return amount * (y - x)

    of_networks, of_theory = mp.Simulation(n=30, samples=3), mp.DMFT(dt=0.2, samples=4_000)

    def R(force, method):
        problem = mp.Problem(mp.Teacher(1.2), mp.Rule(force), rate=1.0, decay=0.1)
        return float(mp.solve(problem, [1.0], method).R[0])

    def all_R():
        pointed = [R(force, of_theory) for force in (first, second, third)]
        return [R(first, of_networks), *pointed]

    before = all_R()
    monkeypatch.setitem(globals(), "GAIN", 0.1)
    GAINS[0] = amount = 0.1
    after = all_R()
    GAINS[0] = 2.0
    for found, same in ((before, lambda x, y: 2.0 * (y - x)), (after, lambda x, y: 0.1 * (y - x))):
        assert found == [R(same, of_networks), *[R(same, of_theory)] * 3]


@pytest.mark.physics
def test_a_force_by_numpys_where_is_one_that_jumps():
    def hinge(x, y):
        return np.where(y * x < 0.5, y, 0.0)

    problem = mp.Problem(mp.Teacher(1.2), mp.Rule(hinge), rate=1.0, decay=0.1)
    known = problem.replace(rule=mp.Perceptron(kappa=0.5))
    for method in (mp.Simulation(n=30, samples=3), mp.DMFT(dt=0.2, samples=4_000)):
        found, same = (mp.solve(p, [1.0], method) for p in (problem, known))
        np.testing.assert_allclose(found.R, same.R, rtol=1e-12)


def test_a_force_that_raises_is_named():
    def careful(x, y):
        if abs(x) > 1:
            raise RuntimeError("too large")
        return y - x

    problem = mp.Problem(mp.Teacher(1.2), mp.Rule(careful), rate=1.0)
    with pytest.raises(ValueError, match=r"`force` of Rule\(force=careful\) fails .*too large"):
        mp.solve(problem, [1.0], mp.Simulation(n=30, samples=3))


def test_a_damaged_netcdf_file_is_told_before_hdf5_looks_for_its_end(tmp_path):
    found = mp.solve(mp.Problem(mp.Teacher(1.2), "adaline", rate=1.0), [1, 2, 4])
    path = tmp_path / "result.nc"
    mp.save(found, path)
    content = path.read_bytes()
    path.write_bytes(content[:1000] + bytes(200) + content[1200:])
    with pytest.raises(ValueError, match=r"`path` .*result\.nc.* is damaged"):
        mp.load(path)
    found.to_netcdf(path, engine="h5netcdf")  # of others: no seal, and none is needed
    assert mp.load(path).identical(found)


def test_rules_of_a_grid_that_are_called_alike_are_told():
    problem = mp.Problem(mp.Teacher(1.2), "adaline", rate=1.0)
    rules = [mp.Rule(f) for f in (lambda x, y: y - x, lambda x, y: 0.1 * (y - x))]
    with pytest.raises(ValueError, match="`rule` must not repeat a value; two functions are call"):
        mp.Grid(problem, rule=rules)


def test_a_parameter_that_a_rule_does_not_have_is_named():
    with pytest.raises(ValueError, match=r"`width` is no parameter of Adatron\(.*: it has kappa"):
        mp.Adatron(kappa=1.0).changed(width=2.0)


def test_many_points_are_checked_at_once_and_too_many_are_refused(monkeypatch):
    """Of an array only its ends are tried, and 0 and inf, which are ranges of their own."""
    tried, replace = [], mp.Problem.replace
    monkeypatch.setattr(mp.Problem, "replace", lambda *a, **k: tried.append(k) or replace(*a, **k))
    assert mp.Grid(PROBLEM, rate=np.linspace(0.1, 1, 10**4)).shape == (10**4,)
    assert [k["rate"] for k in tried if "rate" in k] == [0.1, 1.0]
    with pytest.raises(ValueError, match="`rate` has 10000000 values: at most 1000000"):
        mp.Grid(PROBLEM, rate=np.linspace(0.1, 1, 10**7))
    with pytest.raises(ValueError, match=r"the grid of `rate`, `decay` has 1e.07 points: at most"):
        mp.Grid(PROBLEM, rate=np.linspace(0.1, 1, 10**4), decay=np.linspace(0, 1, 1000))
    for bad in (-0.5, 1e7, np.nan, np.inf, 1e-20, True):
        with pytest.raises(ValueError, match="`rate` must be"):
            mp.Grid(PROBLEM, rate=[0.5, bad, 0.7])
    assert mp.Grid(PROBLEM, decay=[0, 0.1, 1.0], alpha=[1.0, np.inf, 2.0]).shape == (3, 3)
    with pytest.raises(ValueError, match=r"`decay` must be .* got 1e-20"):
        mp.Grid(PROBLEM, decay=[0, 1e-20, 1.0])


@pytest.mark.parametrize("rate", [lambda t: RANDOM.random(), lambda t: t * RANDOM.random()])
def test_a_random_rate_is_refused_when_it_is_made(rate):
    with pytest.raises(ValueError, match=r"`rate`, a function of .* at t = [01]: draw random"):
        PROBLEM.replace(rate=rate)


def test_a_warmup_that_rises_to_nothing_is_refused():
    with pytest.raises(ValueError, match=r"`then` must not begin at 0, .* until t = 2: got warmup"):
        PROBLEM.replace(rate="warmup:2:warmup:1:1")
    assert PROBLEM.replace(rate="warmup:2:cosine:1:0:3").rate(2.0) == 1


@pytest.mark.parametrize("count", [100_000, 161, 30, 2, 1])
def test_a_long_table_begins_with_the_first_time(capsys, count):
    print_table(["t"], [np.linspace(8, 9, count)], "")
    rows = [row.split() for row in capsys.readouterr().out.splitlines() if row[:1] == " "][1:]
    assert (rows[0][0], rows[-1][0]) == ("8", "9" if count > 1 else "8")
    assert len(rows) <= 21


def test_words_that_are_nearly_right_are_asked_for():
    for change, word in (
        ({"rule": "adalin"}, "adaline"),
        ({"rule": "Adatron"}, "adatron"),
        ({"mode": "on-line"}, "online"),
        ({"temprature": 1}, "temperature"),
    ):
        with pytest.raises(ValueError, match=f"; did you mean '{word}'\\?$"):
            PROBLEM.replace(**change)
    with pytest.raises(ValueError, match="; did you mean 'simulation'"):
        mp.solve(PROBLEM, [1.0], "simulaton")
    with pytest.raises(ValueError, match="`rule` must be") as told:
        PROBLEM.replace(rule="backpropagation")
    assert "did you mean" not in str(told.value)


def test_parameters_of_a_rule_are_replaced_with_it():
    assert PROBLEM.replace(rule="adatron", kappa=2).rule == mp.Adatron(kappa=2)
    assert PROBLEM.replace(rule=mp.Huber(), width=3).replace(width=2, rate=1).rule == mp.Huber(2)
    with pytest.raises(ValueError, match=r"`kappa` is a parameter of Adatron\(\), .* Adaline\(\)"):
        PROBLEM.replace(kappa=2)


def test_values_of_a_grid_are_told_apart():
    problem = mp.Problem(mp.Teacher(1.2), "adaline", rate=1.0)
    with pytest.raises(ValueError, match=r"`rate` must not repeat a value$"):
        mp.Grid(problem, rate=[1, 1.0])
    with pytest.raises(ValueError, match="`rate` must have a list of values, got array"):
        mp.Grid(problem, rate=np.ones((2, 2)))


def test_what_diverges_has_no_steady_state_and_no_error_of_numpys():
    data = mp.Teacher(1.2)
    for force in (lambda x, y: (y - x) ** 3, lambda x, y: y * np.exp(-x * y)):
        with pytest.raises(ValueError, match="no steady state: `rate` = 1 is too large"):
            mp.steady_state(mp.Problem(data, mp.Rule(force), rate=1.0, decay=0.1))


@pytest.mark.physics
def test_a_critical_rate_knows_how_steep_a_force_is():
    def problem(alpha, rule):
        return mp.Problem(mp.Teacher(alpha), rule, rate=1.0, decay=0.1)

    steep = mp.Rule(lambda x, y: 100 * (y - x))
    found = float(mp.critical_rate(problem(1.2, steep)))
    exact = mp.critical_rate(problem(1.2, mp.Adaline()).replace(decay=0.001)) / 100
    assert found == pytest.approx(exact, rel=0.02)
    for force in (mp.Huber(width=1000.0), mp.Rule(lambda x, y: np.sign(y - x) * abs(y - x) ** 0.5)):
        assert mp.critical_rate(problem(1.2, force)) == np.inf  # slower than x, be it late
    few = problem(0.15, mp.Adatron(kappa=1.0))  # of which few do not settle
    (one, error), (other, also) = (mp.DMFT(seed=seed).critical_rate(few) for seed in (0, 2))
    assert abs(one - other) < 3 * math.hypot(error, also) < 0.05 * one


def test_a_critical_rate_that_is_not_found_says_so(monkeypatch):
    monkeypatch.setattr(steady, "ROUNDS", 1)
    problem = mp.Problem(mp.Teacher(0.1), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    with pytest.raises(ValueError, match=r"no critical rate was found .* `alpha` = 0\.1"):
        mp.critical_rate(problem)


def test_networks_that_have_not_settled_are_told_even_if_they_are_few():
    with pytest.warns(UserWarning, match=r"`settle` = 0.1 is too short"):
        mp.steady_state(PROBLEM, mp.Simulation(n=50, samples=4, settle=0.1))


@pytest.mark.parametrize(
    ("changes", "settle", "step"),
    [
        ({}, 0, ", 0.1 each"),
        ({}, 1e-9, ", 0.1 each"),
        ({"batch_size": 3}, 0.2, ", 0.3 each"),
        ({"mode": "batch"}, 0, ""),
        ({"sequence": "reshuffled"}, 0, ", 0.1 each"),
        ({"batch_share": 0.5}, 0.5, ", 0.6 each"),
    ],
)
def test_networks_that_have_not_begun_have_no_steady_state(changes, settle, step):
    method, told = mp.Simulation(n=10, samples=2, settle=settle), f"waits for no step{step}: "
    problem = PROBLEM.replace(**changes)
    with pytest.raises(ValueError, match=f"`settle` = {settle:g} {told}"):
        mp.steady_state(problem, method)
    if not {"batch_share", "batch_size", "mode"} & changes.keys():
        with pytest.raises(ValueError, match=f"`settle` = {settle:g} {told}"):
            mp.activations(problem, "steady", source=method, samples=10)


@pytest.mark.filterwarnings("ignore:`settle`")
def test_flows_over_no_time_take_one_step():
    slow, method = PROBLEM.replace(mode="batch", rate=1e-12), mp.Simulation(n=10, samples=2)
    assert float(mp.solve(slow, [5e-324], method).Q[0]) == 0.0  # 0 steps of 5e-324/0
    brief = mp.Simulation(n=10, samples=2, settle=5e-324)
    assert float(mp.steady_state(slow, brief).Q) == 0.0


def test_flows_of_too_many_steps_are_refused_at_once():
    X, y = 1e8 * RANDOM.normal(size=(40, 5)), RANDOM.normal(size=40)
    problem = PROBLEM.replace(data=mp.Dataset(X, y, task="regression"), mode="batch")
    told = r"`mode` = 'batch' would take .* steps .* `standardize` = True .* method Exact\(\)"
    with pytest.raises(ValueError, match=told):
        mp.solve(problem, [1.0], mp.Simulation(samples=2))
    assert mp.solve(problem, [1.0]).F2[0] < 2  # which takes none


@pytest.mark.parametrize("finished", [0, 2])
def test_an_interrupted_simulation_says_what_is_kept(finished, monkeypatch):
    extend = Average.extend

    def interrupted(average, values):
        if average.count == finished:
            raise KeyboardInterrupt
        extend(average, values)

    monkeypatch.setattr(Average, "extend", interrupted)
    with pytest.raises(KeyboardInterrupt) as told:
        mp.solve(PROBLEM, [1.0], mp.Simulation(n=10, samples=4))
    note = told.value.__notes__[0]
    assert note.startswith(f"{finished} of 4 networks are finished: ")
    assert ("nothing is kept" in note) == (not finished) == (not hasattr(told.value, "so_far"))


@pytest.mark.parametrize(
    ("task", "target", "told"), [("classification", -1, "says 1$"), ("regression", 1, "says 0.5$")]
)
def test_a_target_that_no_noiseless_teacher_gives_is_refused(task, target, told):
    given = {"y": 0.5, "target": target}
    with pytest.raises(ValueError, match=f"^`target` = {target} cannot be at `y` = 0.5: .*{told}"):
        mp.activation_density(PROBLEM.replace(task=task), 1.0, [0.0], **given)


def test_rules_of_margins_on_a_regression_are_told_where_they_are_given():
    problem = PROBLEM.replace(task="regression")
    for make in (
        lambda: mp.Problem(problem.data, "perceptron", rate=1.0),
        lambda: problem.replace(rule="adatron"),
    ):
        with pytest.warns(UserWarning, match="is one of margins .* or a `task` of classes") as told:
            make()
        assert told[0].filename == __file__


def test_numbers_are_what_python_takes_for_them():
    assert PROBLEM.replace(rate=Decimal("0.5"), decay=Fraction(1, 4)).rate == 0.5
    assert mp.solve(PROBLEM, [Decimal("0.5"), 2]).t.values.tolist() == [0.5, 2.0]
    with pytest.raises(ValueError, match=r"^`times` must be real numbers, got \[True, 2\]"):
        mp.solve(PROBLEM, [True, 2])
    with pytest.raises(ValueError, match=r"^`rate` must be a number .* got nan"):
        PROBLEM.replace(rate=Decimal("sNaN"))


def test_a_result_says_that_learning_diverges():
    found = mp.solve(PROBLEM.replace(rate=5.0), [1, 40])
    assert "`rate` = 5 is not below the critical rate v_c = 2.1" in found.attrs["diverges"]
    assert "diverges" not in mp.solve(PROBLEM, [1, 40]).attrs


@pytest.mark.parametrize(
    ("word", "here"),
    [("lr", "rate"), ("weight_decay", "decay"), ("epochs", "times"), ("learning_rate", "rate")],
)
def test_names_from_elsewhere_are_told_what_they_are_here(tmp_path, capsys, word, here):
    for make in (
        lambda: mp.Problem(PROBLEM.data, "adaline", **{"rate": 1.0, word: 0.5}),
        lambda: PROBLEM.replace(**{word: 0.5}),
        lambda: mp.Grid(PROBLEM, {word: [0.5]}),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^`{word}` .*; here it is `{here}`"):
            make()
    (tmp_path / "x.toml").write_text(f"{word} = 0.5\nrule = 'adaline'\ndata = {{alpha = 1}}\n")
    for typed in (["--alpha", "1", f"--{word.replace('_', '-')}", "1"], [str(tmp_path / "x.toml")]):
        with pytest.raises(SystemExit, match="2"):
            main(["solve", *typed])
        assert re.search(f"; here it is (--|`){here}", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("solv --alpha 1", "did you mean 'solve'?"),
        ("solve --alpha 1 --tims 0,1", "did you mean --times?"),
        ("solve --alpha 1 --rate 1 --method exakt", "did you mean 'exact'?"),
        ("solve --alpha 1 --rate 1 --n 9", "exact, which auto takes: say --method simulation"),
        ("solve x.csv --rate 1", "examples of your own are given as --data x.csv --target COLUMN"),
    ],
)
def test_commands_and_flags_that_are_nearly_right_are_asked_for(capsys, typed, told):
    with pytest.raises(SystemExit, match="2"):
        main(typed.split())
    assert capsys.readouterr().err.endswith(f" {told}\n")


def test_arguments_of_others_are_told_where_they_belong():
    for key, told in (("alpha", "the data, Teacher"), ("kappa", r"the rule, Adatron")):
        with pytest.raises(
            TypeError, match=f"`{key}` is no argument of Problem: it belongs to {told}"
        ):
            mp.Problem(PROBLEM.data, "adaline", rate=1.0, **{key: 1.0})
    for key, told in (
        ("kappa", r"parameter of Adatron\(\) and Perceptron"),
        ("n", "of Simulation"),
    ):
        with pytest.raises(ValueError, match=f"`{key}` cannot be swept, it is a .*{told}"):
            mp.sweep(mp.Grid(PROBLEM, {key: [1, 2]}))


def test_python_names_of_verbs_are_commands_on_the_command_line():
    said = as_flags("`steady_state` at several rates, or `solve`", argparse.Namespace(rate=None))
    assert said == "`manypass steady` at several rates, or `manypass solve`"


def test_columns_of_several_levels_are_targets():
    names = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c"), ("y", "z")])
    frame = pd.DataFrame(RANDOM.standard_normal((9, 3)), columns=names)
    assert mp.Dataset(frame, ("y", "z")).n == 2
    index = pd.MultiIndex.from_product([range(3), range(3)])
    with pytest.raises(ValueError, match="`y` must have the index of `X`, got another"):
        mp.Dataset(frame.iloc[:, :2].set_index(index), frame["y", "z"])


@pytest.mark.parametrize("end", ["nc", "csv", "json"])
def test_data_are_found_beside_the_file_of_their_result(tmp_path, monkeypatch, end):
    (tmp_path / "d.csv").write_text(f"a,b,y\n{ROWS}")
    monkeypatch.chdir(tmp_path)
    problem = mp.Problem(mp.read_dataset("d.csv", "y", task="regression"), "adaline", rate=0.1)
    mp.save(mp.solve(problem, [1.0]), f"r.{end}")
    monkeypatch.chdir("/")
    found = mp.load(tmp_path / f"r.{end}")
    assert mp.problem_of(found) == problem
    (tmp_path / "d.csv").rename(tmp_path / "e.csv")
    with pytest.raises(
        ValueError, match=r"no file 'd.csv', .* give them as problem_of\(result, data"
    ):
        mp.problem_of(found)
    assert mp.problem_of(found, problem.data) == problem


def test_a_list_of_results_is_drawn_and_rows_too_many_are_counted(tmp_path):
    found = mp.solve(PROBLEM, [1, 2])
    assert len(mp.plot.curves([found, found]).lines) == len(mp.plot.curves(found, found).lines)
    mp.save(found, tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_text()
    (tmp_path / "x.csv").write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(ValueError, match="it has 3 rows, more than the 2 that were saved"):
        mp.load(tmp_path / "x.csv")


def test_a_command_that_takes_long_is_heard_from(monkeypatch, capsys):
    monkeypatch.setattr("manypass.commands.SILENT", 0.05)
    with heard_from():
        time.sleep(0.3)
    assert capsys.readouterr().err.count("manypass: at work for 0 s\n") == 1
    with heard_from():
        pass
    assert capsys.readouterr().err == ""


def test_advice_shows_its_rows(capsys):
    X = RANDOM.standard_normal((40, 2))
    problem = PROBLEM.replace(data=mp.Dataset(X, X @ [1.0, 0.3]))
    assert mp.advise(problem, 2, progress=True).attrs["runs"] == 64
    assert "6/6" in capsys.readouterr().err
    search = SimpleNamespace(stops=[10**6], data=SimpleNamespace(p=200, n=10))
    assert runs_of(search) == 8  # a step of ten columns takes as long as one of a hundred


@pytest.mark.parametrize("decay", [0.0, 0.05, 2.0])
def test_the_boosts_of_an_example_are_those_of_many_nodes(decay):
    """Fewer nodes than 400 do where the phase hardly turns."""
    problem = PROBLEM.replace(rule="hebbian", rate=3.0, decay=decay)
    k, (nodes, weights) = np.linspace(0, 100, 50), np.polynomial.legendre.leggauss(1000)
    for t in (0.01, 0.6, 4.0):
        age = t * (1 + nodes) / 2
        many = np.expm1(3j * np.multiply.outer(k, np.exp(-3 * decay * age))) @ weights * t / 2.4
        np.testing.assert_allclose(shot_exponent(problem, t, k), many, rtol=0, atol=1e-11)


def test_networks_of_an_interrupted_simulation_are_kept(tmp_path, monkeypatch, capsys):
    flags = ["--alpha", "1.2", "--rate", "1", "--decay", "0.1", "--times", "1,2"]
    out, extend = str(tmp_path / "x.nc"), Average.extend

    def interrupted(average, values):
        if average.count == 3:
            raise KeyboardInterrupt
        extend(average, values)

    monkeypatch.setattr(Average, "extend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["solve", *flags, "--method", "simulation", "--n", "20", "--out", out])
    assert "x.nc has the 3 networks so far\n" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        main(["solve", *flags, "--method", "simulation", "--n", "20"])
    assert "the 3 networks so far are lost: --out x.nc would" in capsys.readouterr().err
    monkeypatch.undo()
    assert mp.load(out).identical(mp.solve(PROBLEM, [1, 2], mp.Simulation(n=20, samples=3)))


@pytest.mark.parametrize("flag", ["--out x.csv", "--plot x.png"])
def test_a_folder_that_may_not_be_written_to_is_told_before_the_work(monkeypatch, capsys, flag):
    monkeypatch.setattr("os.access", lambda folder, how: False)
    with pytest.raises(SystemExit, match="2"):
        main(["solve", "--alpha", "1", "--rate", "1", *flag.split()])
    said = capsys.readouterr()
    assert re.search(f"{flag.split()[0]}: the folder '.*' may not be written to", said.err)
    assert said.out == ""


def test_files_and_frames_go_where_they_belong(tmp_path):
    frame, path = pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 3.0]}), tmp_path / "x.csv"
    with pytest.raises(ValueError, match=r"`X` must be a table, got 'x.csv': .* by read_dataset"):
        mp.Dataset("x.csv", "y")
    with pytest.raises(ValueError, match=r"`path` must be the name .*: Dataset\(frame, target\)"):
        mp.read_dataset(frame, "y")
    with pytest.raises(ValueError, match=r"`path` must be the name of a file, got None"):
        mp.read_dataset(None, "y")
    with pytest.raises(ValueError, match=r"a file of this machine, got 'http://a.b/x.csv'"):
        mp.read_dataset("http://a.b/x.csv", "y")
    path.write_text("a,b,y\n")
    with pytest.raises(ValueError, match=r"x.csv' has no examples, names of columns alone"):
        mp.read_dataset(path, "y")
    path.write_text("a, b , y \n" + ROWS)
    assert mp.read_dataset(path, "y", drop=["b"]).names == ("a",)


@pytest.mark.parametrize("name", ["x.csv", "x.json"])
def test_a_mark_of_an_editor_before_a_result_is_none_of_it(tmp_path, name):
    found, path = mp.solve(PROBLEM, [1.0, 2.0]), tmp_path / name
    mp.save(found, path)
    path.write_bytes("\ufeff".encode() + path.read_bytes())
    assert mp.load(path).identical(found)


def test_an_eigenvalue_that_is_none_is_named():
    with pytest.raises(ValueError, match=r"`eigenvalues` must lie from 0 to 1e9, .* got nan"):
        mp.Exact(eigenvalues=[1.0, np.nan])


def test_force_autocorrelations_that_do_not_fit_are_told_before():
    with pytest.raises(ValueError, match="GB are free: take fewer `times`"):
        mp.force_autocorrelation(PROBLEM, np.linspace(0, 8, 10**6))


def test_figures_may_be_written_elsewhere(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("manypass.reproduce.reproduce", lambda *_, **__: ["figure"])
    monkeypatch.setattr(os, "access", lambda *_: False)  # where the command stands
    main(["reproduce", "1", "--out", str(tmp_path)])
    assert capsys.readouterr().out == "figure\n"


def test_an_interrupt_that_compiled_code_has_wrapped_twice_is_one(monkeypatch, capsys):
    def interrupted():
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as stop:
                raise SystemError("returned a result with an exception set") from stop
        except SystemError as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr("manypass.cli.main", interrupted)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as stop:
        manypass.__main__.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "manypass: interrupted\n"


def test_memory_of_a_simulation_is_told_in_words_of_flags(capsys):
    with pytest.raises(SystemExit):
        main(["solve", "--alpha", "2", "--rate", "1", "--method", "simulation", "--n", "10000000"])
    assert "GB are free: take a smaller --n" in capsys.readouterr().err


def test_who_has_diverged_guesses_without_being_sampled():
    found = mp.solve(PROBLEM.replace(rate=9.0), [1.0, 1000.0], mp.Exact(samples=512))
    assert np.isinf(found.Q[1])
    assert found.Et[1] == 0.5


@pytest.mark.filterwarnings("ignore:the least Eg lies at an end")
def test_a_search_warns_once_of_what_many_values_are_warned_of():
    method = mp.Simulation(n=8, samples=2, settle=0.5)
    with pytest.warns(UserWarning, match="values that were looked at") as told:
        mp.best(PROBLEM, {"rate": (0.01, 0.1)}, method=method, progress=False)
    of_settle = [str(w.message) for w in told if "`settle`" in str(w.message)]
    assert len(of_settle) == 1
    assert re.match(r"\d+ of \d+ values that were looked at: `settle` = 0.5 is too", of_settle[0])
    assert all(w.filename == __file__ for w in told)


def test_what_has_diverged_is_drawn_without_words_of_others(recwarn):
    """Errors of infinite values are infinite: a bar would go from inf − inf."""
    data = mp.Teacher(2.0, "regression", hidden=2)
    start = mp.Start(R=[[0.1, 0.0], [0.0, 0.1]], Q=[[0.25, 0.0], [0.0, 0.25]])
    problem = mp.Problem(data, mp.Committee(2, second_rate=50.0), rate=40.0, start=start)
    found = mp.solve(problem, [0.5, 5.0, 50.0], mp.Simulation(n=30, samples=3))
    assert np.isinf(found.a.values[-1]).all()
    assert np.isinf(found.Q.values[-1]).all()
    one = PROBLEM.replace(rate=40.0)
    single = mp.solve(one, [0.5, 500.0], mp.Simulation(n=10, samples=3))
    recwarn.clear()
    for result in (found, single):
        ax = mp.plot.curves(result)
        ax.figure.canvas.draw()
    assert [str(w.message) for w in recwarn] == []


@pytest.mark.parametrize("method", ["exact", "dmft", "mean-force"])
def test_refusals_tell_the_rate_that_was_given(method):
    """Theories compute with v/[b(1 − β)], which is not what one has typed."""
    problem = PROBLEM.replace(rate=10.0, batch_size=4, momentum=0.5)
    told = r"`rate` = 10 is .* \(`batch_size` = 4 and `momentum` = 0.5 divide rates by 2\)$"
    with pytest.raises(ValueError, match=told) as refused:
        mp.steady_state(problem, method)
    if method == "exact":
        assert f"v_c = {mp.critical_rate(problem):.5g} (" in str(refused.value)
    with pytest.raises(
        ValueError, match=r"`rate` = 10 .* \(`momentum` = 0.75 multiplies rates by 4"
    ):
        mp.steady_state(problem.replace(batch_size=1, momentum=0.75), method)
    with pytest.raises(ValueError, match=r"`rate` = 10 is [^(]*(\(1 \+ decay\) = 2.2)?$"):
        mp.steady_state(PROBLEM.replace(rate=10.0), method)


def test_a_force_that_is_infinite_at_zero_is_named_wherever_learning_begins_there():
    """Its networks were counted as diverged, whatever the rate."""
    endless = PROBLEM.replace(rule=mp.Rule(lambda x, y: y / x), start=mp.Start(R=0.0, Q=0.0))
    with pytest.raises(
        ValueError, match=r"its force is -inf at x = 0, target = -1, where .* J = 0"
    ):
        mp.solve(endless, [1.0], mp.Simulation(n=10, samples=2))
    data = mp.Dataset([[1.0, 2.0], [3.0, 1.0]], [1.0, -1.0], task="regression")
    given = endless.replace(data=data, start=mp.Start(weights=[0.0, 0.0]))
    with pytest.raises(ValueError, match=r"its force is -inf at x = 0"):
        mp.solve(given, [1.0], mp.Simulation(samples=2))


@pytest.mark.parametrize("changes", [{"alpha": 1e-6}, {"rate": 1e-9}])
def test_steady_states_that_are_too_far_away_are_refused_in_one_line(changes):
    problem = PROBLEM.replace(rule="adatron", **changes)
    with pytest.raises(ValueError, match=r"this needs .* GB of memory .* by `solve`; or `alpha` ="):
        mp.steady_state(problem)
