"""What new users met in a shell: figures, options, files and messages."""

import json

import numpy as np
import pytest

import manypass as mp
from manypass.cavity import accuracy
from manypass.cli import as_flags, main, parser
from manypass.reproduce import FIGURES
from manypass.reproduce.parts import Scale

TIMES = np.array([1e-3, 0.1, 1.0, 4.0, 8.0])


def told(arguments, capsys):
    """Return the one line with which a command ends."""
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in arguments])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def rising(t):
    """Rise from 0 to 1 until t = 8, written as a difference that keeps few digits at first."""
    return 0.5 * (1 - np.cos(np.pi * np.minimum(t, 8.0) / 8))


@pytest.mark.parametrize("rate", ["cosine:0:1:8", rising])
def test_a_rate_that_rises_from_nothing_is_followed(rate):
    """1 − cos ωt had lost all digits where it begins: its panels were refused for ever."""
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=rate)
    found = mp.solve(problem, TIMES)
    near = mp.solve(problem.replace(rate="cosine:1e-6:1:8"), TIMES)
    for name in ("R", "Q", "F2", "Eg"):
        np.testing.assert_allclose(found[name][2:], near[name][2:], rtol=3e-4)
    # R = a∫v dt + ..., a = √(2/π), ∫v dt = ∫sin²(πt/16) dt = π²t³/768 at first
    begun = np.sqrt(2 / np.pi) * np.pi**2 * TIMES[:2] ** 3 / 768
    np.testing.assert_allclose(found.R[:2], begun, rtol=1e-3)


def test_a_rate_that_rises_from_nothing_is_that_of_a_simulation():
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate="cosine:0:1:8")
    runs = mp.solve(problem, [4, 8], mp.Simulation(n=200, samples=200, seed=1))
    theory = mp.solve(problem, [4, 8])
    for name in ("R", "Q", "F2", "Eg"):
        z = (runs[name] - theory[name]) / runs[f"{name}_se"]
        assert (np.abs(z) < 3).all(), name


def test_a_cosine_has_all_its_digits_at_both_ends():
    for rate, t in (("cosine:0:1:8", 1e-6), ("cosine:1:0:8", 8 - 2.0**-20)):
        left = min(t, 8 - t)
        wanted = np.sin(np.pi * left / 16) ** 2
        np.testing.assert_allclose(mp.schedules.read("rate", rate)(t), wanted, rtol=1e-12)
    assert mp.schedules.read("rate", "cosine:1:0:8")([0.0, 8.0, 9.0]).tolist() == [1.0, 0.0, 0.0]


class ReachedError(Exception):
    """A population would begin."""


@pytest.mark.parametrize("quick", [True, False])
def test_figures_sample_more_examples_than_the_theory_needs(quick, monkeypatch):
    """One was refused when steps became shorter; a quarter more than the least is left as room."""
    room = []

    def stop(method, problem, plan, size):
        room.append(size / plan.least)
        raise ReachedError

    monkeypatch.setattr(accuracy, "threads_of", stop)
    parts = [part for module in FIGURES.values() for part in module.parts(Scale(0, quick))]
    sampled = [p for p in parts if isinstance(p.arguments.get("method"), mp.DMFT)]
    asked = 0
    for part in sampled:
        rates = part.arguments.get("rates", [part.problem.rate])
        times = part.arguments["times"]
        for i, rate in enumerate(rates):
            until = [times[i]] if "rates" in part.arguments else times
            with pytest.raises(ReachedError):
                mp.solve(part.problem.replace(rate=rate), until, part.arguments["method"])
            asked += 1
    assert len(room) == asked >= 8
    assert min(room) >= 1.25


ROWS = [[0.3, 1.2, -0.4, 1], [1.1, -0.5, 0.2, 0], [-0.7, 0.1, 0.9, 1], [0.2, 0.8, -1.0, 0]] * 4


@pytest.fixture
def table(tmp_path):
    """A file of three columns and labels."""
    file = tmp_path / "ok.csv"
    lines = [",".join(map(str, [*row[:2], row[2] + i / 9, row[3]])) for i, row in enumerate(ROWS)]
    file.write_text("\n".join(["a,b,c,y", *lines]) + "\n", encoding="utf-8")
    return file


def test_lists_of_columns_go_on_when_a_flag_is_repeated(table, capsys):
    given = ["critical-rate", "--data", str(table), "--target", "y"]
    answers = []
    for drop in (["--drop", "a", "--drop", "b"], ["--drop", "a,b"]):
        main([*given, *drop])
        shown = capsys.readouterr()
        assert "16 examples of 1 features" in shown.err
        answers.append(shown.out)
    assert answers[0] == answers[1]
    read = parser().parse_args(["solve", "--one-hot", "a", "--one-hot", "b,c", "--drop", "d"])
    assert (read.one_hot, read.drop) == (["a", "b", "c"], ["d"])
    assert parser().parse_args(["solve", "--one-hot", "a", "--one-hot"]).one_hot is True
    assert parser().parse_args(["solve"]).drop is None


@pytest.mark.parametrize(
    ("command", "flag", "value"),
    [
        ("solve", "--times", "1,2"),
        ("worth", "--passes", "1,2"),
        ("solve", "--second", "1,2"),
        ("solve", "--teacher-second", "1,2"),
        ("steady", "--overlaps", "1,0;0,1"),
    ],
)
def test_numbers_that_make_one_whole_are_given_once(command, flag, value, capsys):
    line = told([command, "--alpha", 1, "--rate", 1, flag, value, flag, value], capsys)
    assert line == f"manypass: argument {flag}: given twice: write all its values in one, A,B,..."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "solve --alpha 1 --rate 1 --window 50",
            "; only `manypass steady`, `manypass best` have it",
        ),
        (
            "solve --alpha 1 --rate 1 --window=50",
            "; only `manypass steady`, `manypass best` have it",
        ),
        ("steady --alpha 1 --plot x.png", "; only `manypass solve`, `manypass worth` have it"),
        ("steady --alpha 1 --times 1,2", "; only `manypass solve` has it"),
        (
            "critical-rate --alpha 1 --n 5",
            "; only `manypass solve`, `manypass steady`, `manypass best`",
        ),
        ("sweep x.toml --alpha 1", "; --alpha is said by the plan, see `manypass sweep --help`"),
        ("sweep x.toml --batch-size 1", "; --batch-size is said by the plan, see `manypass sweep"),
        (
            "solve --alpha 1 --windw 5",
            "; did you mean --window, of `manypass steady`, `manypass best`?",
        ),
        ("solve --alpha 1 --dorp a", "; did you mean --drop?"),
        ("solve --alpha 1 --lr 1", "; here it is --rate (v = N times the factor of a step)"),
    ],
)
def test_what_is_refused_is_not_proposed(words, said, capsys):
    line = told(words.split(), capsys)
    assert line.startswith("manypass: unrecognized arguments: --")
    assert said in line
    refused = next(word for word in line.split() if word.startswith("--"))
    assert f"mean {refused}" not in line


def test_blanks_around_labels_and_categories_make_no_others(tmp_path, capsys):
    file = tmp_path / "blanks.csv"
    words = ["yes", "no", "yes ", " no", '"no "', " yes "] * 3
    kinds = ["red", "red ", "blue", " blue", '" red"', "blue "] * 3
    rows = [
        f"{i % 5 - 2 + i / 7},{k},{w}" for i, (k, w) in enumerate(zip(kinds, words, strict=True))
    ]
    file.write_text("\n".join(["a,kind,y", *rows]) + "\n", encoding="utf-8")
    data = mp.read_dataset(file, "y", one_hot=["kind"], positive="yes")
    assert data.names == ("a", "kind=blue", "kind=red")
    assert data.y.tolist() == [1.0, -1.0, 1.0, -1.0, -1.0, 1.0] * 3
    X = np.arange(18.0)[:, None] - 7
    for positive in ("yes", " yes "):
        same = mp.Dataset(X, [word.strip('"') for word in words], positive=positive)
        assert same.y.tolist() == data.y.tolist()
        assert same.positive == "yes"


EUROPEAN = "a;b;c;y\n1,5;2,5;0,25;1\n0,5;-1,5;3,25;-1\n2,5;0,1;-0,5;1\n"
PLAIN = "a,b,c,y\n1.5,2.5,0.25,1\n0.5,-1.5,3.25,-1\n2.5,0.1,-0.5,1\n"


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (EUROPEAN, [], "is --sep right? It looks like --sep ';' and --decimal ,"),
        (EUROPEAN, ["--sep", "tab"], "is --sep right? It looks like --sep ';' and --decimal ,"),
        (EUROPEAN.replace(",", "."), [], "is --sep right? It looks like --sep ';'"),
        (PLAIN.replace(",", "\t"), [], "is --sep right? It looks like --sep tab"),
        (PLAIN, ["--sep", ";"], "is --sep right? It looks like --sep ,"),
        (f"My table\n{PLAIN}", [], "a title above the names must go, or begin with #"),
        (f"My table\n\n{EUROPEAN}", [], "--sep ';' and --decimal ,; and a title above the names"),
        (f"My table, new\n{PLAIN}", [], "line 1 names 2 columns, those after it have 4 entries"),
        (f"My table,,,\n{PLAIN}", [], "a title above the names must go, or begin with #"),
        (f"My table\n\n{EUROPEAN}", ["--sep", ";"], "line 1 names 1 column, those after it have 4"),
    ],
)
def test_what_separates_entries_is_asked_for(text, more, said, tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_text(text, encoding="utf-8")
    assert said in told(["critical-rate", "--data", file, "--target", "y", *more], capsys)


def test_what_a_table_looks_like_is_how_it_is_read(tmp_path, capsys):
    (tmp_path / "x.csv").write_text(EUROPEAN, encoding="utf-8")
    (tmp_path / "y.csv").write_text(PLAIN, encoding="utf-8")
    data = mp.read_dataset(tmp_path / "x.csv", "y", sep=";", decimal=",")
    assert data == mp.read_dataset(tmp_path / "y.csv", "y")


def test_columns_without_names_are_named_at_once_and_left_out_if_empty(tmp_path, capsys):
    file, plain = tmp_path / "x.csv", tmp_path / "y.csv"
    lines = PLAIN.splitlines()
    plain.write_text(PLAIN, encoding="utf-8")
    file.write_text("".join(f"{line},,,\n" for line in lines), encoding="utf-8")
    asked = ["critical-rate", "--data", file, "--target", "y"]
    said = "columns 4, 5 and 6 have no name and are empty, or the same in all rows: leave them out "
    assert f"{said}by --drop-constant" in told(asked, capsys)
    same = mp.read_dataset(plain, "y")
    assert mp.read_dataset(file, "y", drop_constant=True) == same
    both = mp.read_dataset(file, "y", test=plain, drop_constant=True)
    assert (both.names, both.p_test) == (("a", "b", "c"), 3)
    rows = [f"{number},{line},,\n" for number, line in zip(["", 0, 1, 2], lines, strict=True)]
    file.write_text("".join(rows), encoding="utf-8")
    line = told(asked, capsys)
    assert "columns 0, 5 and 6 have no name; if they hold row numbers, or nothing" in line
    assert line.endswith("by --drop 'Unnamed: 0,Unnamed: 5,Unnamed: 6'")
    assert "column 0 has no name; if it" in told([*asked, "--drop-constant"], capsys)
    main([*map(str, asked), "--drop-constant", "--drop", "Unnamed: 0"])
    assert capsys.readouterr().out.startswith("v_c = ")


@pytest.mark.parametrize("cell", ["128.818,48", "1.234.567", "128'818,48", "128 818,48"])
def test_grouped_thousands_are_called_so(cell, tmp_path, capsys):
    file = tmp_path / "x.csv"
    rows = [f"{i},5;{c};{(-1) ** i}" for i, c in enumerate([cell, "3,5", "4.128,5", "2,25"])]
    file.write_text("\n".join(["a;b;y", *rows]) + "\n", encoding="utf-8")
    line = told(
        ["critical-rate", "--data", file, "--target", "y", "--sep", ";", "--decimal", ","], capsys
    )
    assert "column 'b' has grouped thousands" in line
    assert "one-hot" not in line


def test_a_share_to_hold_out_is_for_data_without_a_test_set(table, capsys):
    asked = ["advise", "--data", table, "--target", "y", "--test", table, "--holdout", 0.2]
    line = told(asked, capsys)
    assert "--holdout 0.2 is for data without a --test set, and these have one, of 16" in line
    data = mp.read_dataset(table, "y", test=table, positive=1)
    with pytest.raises(ValueError, match=r"`holdout` = 0.25 is for data without"):
        mp.advise(mp.Problem(data, mp.Adaline(), rate=0.1), holdout=0.25)


def test_a_plan_whose_data_are_no_table_is_told_so(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text('rule = "adaline"\ndata = [1.2]\n[sweep]\nrate = [0.5]\n', encoding="utf-8")
    line = told(["sweep", plan, "--out", tmp_path / "out"], capsys)
    assert "`data` must be a table with `alpha`, got [1.2]" in line


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1,0", "--start: `Q` = 0 must be at least R² = 1"),
        ("0,-1", "--start: `Q` must be a number from 0 to"),
        ("nan,1", "--start: `R` must be a number from"),
    ],
)
def test_a_start_that_cannot_be_names_its_flag(typed, said, capsys):
    line = told(["solve", "--alpha", 1, "--rate", 1, "--start", typed], capsys)
    assert line.startswith(f"manypass: {said}")


def test_methods_are_said_as_they_are_typed_by_every_command(table, tmp_path, capsys):
    given = ["--data", table, "--target", "y", "--rule", "adatron"]
    line = told(["critical-rate", *given], capsys)
    assert line.endswith("come from `manypass solve --method simulation --samples 100`")
    said = "learning curves come from method Exact() or Simulation(n=500, samples=100)"
    typed = "`manypass solve --method exact` or `manypass solve --method simulation --n 500"
    for command in ("steady", "critical-rate", "worth", "advise"):
        arguments = parser().parse_args([command])
        assert f"come from {typed} --samples 100`" in as_flags(said, arguments)
    arguments = parser().parse_args(["sweep", "x.toml"])
    assert as_flags("use method Simulation(n=500)", arguments) == (
        'use method = { name = "simulation", n = 500 }'
    )


def test_a_window_says_which_weights_are_averaged(table, tmp_path, capsys):
    out = tmp_path / "x.nc"
    teacher = ["--alpha", "1.2", "--rate", "0.5", "--decay", "0.5", "--window", "50"]
    main(["steady", *teacher, "--out", str(out)])
    said = "(R, Q, Eg: of weights averaged over 50; F2: of the present ones)"
    assert capsys.readouterr().out.splitlines()[-1] == said
    found = mp.load(out)
    for name, kind in (("R", "averaged"), ("Q", "averaged"), ("Eg", "averaged"), ("F2", "present")):
        assert found[name].long_name.endswith(f", of {kind} weights")
    data = ["--data", str(table), "--target", "y", "--test", str(table), "--rate", "0.05"]
    main(["steady", *data, "--decay", "0.1", "--window", "9"])
    said = "(Q, F2_test, Eg: of weights averaged over 9; F2, Et: of the present ones)"
    assert capsys.readouterr().out.splitlines()[-1] == said
    main(["steady", *teacher[:-2]])
    assert "weights" not in capsys.readouterr().out
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=0.5, decay=0.5)
    assert "weights," not in mp.steady_state(problem).Eg.long_name
    with pytest.raises(SystemExit):
        main(["steady", "--help"])
    assert "of averaged weights" in " ".join(capsys.readouterr().out.split())


def test_data_have_a_number_of_weights_of_their_own(table, capsys):
    given = ["--data", table, "--target", "y", "--rate", 0.05]
    for n in (500, 50):
        asked = ["solve", *given, "--method", "simulation", "--samples", 2, "--n", n]
        assert f"manypass: --n {n}, but Dataset(16 × 3" in told(asked, capsys)
    main([*map(str, asked[:-1]), "3", "--times", "1"])
    assert capsys.readouterr().out.splitlines()[1].startswith("         1")
    problem = mp.Problem(mp.read_dataset(table, "y", positive=1), mp.Adaline(), rate=0.05)
    for method in (mp.Simulation(), mp.Simulation(n=3), "simulation"):
        assert problem_size(mp.solve(problem, [1.0], method)) == 3


def problem_size(found):
    """N of the networks of a result."""
    return json.loads(found.attrs["method"])["n"]
