"""Data as users bring them: arrays, frames, sparse matrices, files, the command line."""

import dataclasses
import gc
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import manypass as mp
from manypass.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3)) * [1, 2, 5] + [0, 1, 0]
Y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(40) > 0, 1.0, -1.0)
FRAME = pd.DataFrame(X, columns=["size", "age", "cost"]).assign(good=Y.astype(int))


def changed(row, column, value):
    out = FRAME.astype({column: object}) if isinstance(value, str | type(None)) else FRAME.copy()
    out.loc[row, column] = value
    return out


def with_entry(value):
    out = X.copy()
    out[7, 1] = value
    return out


def test_equal_by_value_however_they_come():
    data = mp.Dataset(X, Y)
    for same in (
        mp.Dataset(X.tolist(), Y.astype(int)),
        mp.Dataset(np.asfortranarray(X), Y[:, None]),
        mp.Dataset(FRAME, "good"),
        mp.Dataset(FRAME[["size", "age", "cost"]], FRAME["good"]),
        mp.Dataset(sparse.coo_array(X), Y),
        mp.Dataset(sparse.csc_matrix(X), Y, task="classification"),
        pickle.loads(pickle.dumps(data)),
    ):
        assert same == data
        assert hash(same) == hash(data)
        problem = mp.Problem(same, mp.Adaline(), rate=0.05, decay=0.1)
        assert problem == mp.Problem(data, mp.Adaline(), rate=0.05, decay=0.1)
    for other in (
        mp.Dataset(X, -Y),
        mp.Dataset(X, Y, task="regression"),
        mp.Dataset(X, Y, X, Y),
        mp.Dataset(X, Y, intercept=True),
        mp.Dataset(with_entry(3.0), Y),
    ):
        assert other != data


def test_columns_may_be_numbered_and_entries_of_several_types():
    numbered = FRAME.set_axis([3, 4, 5, 6], axis=1)
    assert mp.Dataset(numbered, 6) == mp.Dataset(numbered, np.int64(6)) == mp.Dataset(FRAME, "good")
    mixed = FRAME.drop(columns="good").assign(age=X[:, 1] > 0)
    assert mixed.values.dtype == object
    assert mp.Dataset(mixed.values, Y) == mp.Dataset(mixed, Y)


def test_sparse_data_give_the_same_curves():
    thin = np.where(np.abs(X) > 1, X, 0.0)
    results = []
    for table in (thin, sparse.csr_matrix(thin)):
        data = mp.Dataset(table, Y, table[:10], Y[:10], intercept=True)
        problem = mp.Problem(data, mp.Adaline(), rate=0.05, decay=0.1)
        simulated = mp.solve(problem, [1, 4], mp.Simulation(samples=3))
        results.append([mp.solve(problem, [1, 4]), mp.steady_state(problem), simulated])
    for one, other in zip(*results, strict=True):
        for key in one:
            np.testing.assert_allclose(one[key], other[key], rtol=1e-9)


def test_nobody_can_change_the_numbers():
    mine = X.copy()
    data = mp.Dataset(mine, Y)
    before = data.hash
    mine[0, 0] = 99.0
    assert mp.Dataset(X, Y) == data
    assert data.hash == before
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1.0
    with pytest.raises(AttributeError):
        data.X = X


def test_standardize_and_intercept_are_off_unless_asked():
    plain = mp.Dataset(X, Y, X[:5], Y[:5])
    np.testing.assert_array_equal(plain.X, X)
    both = mp.Dataset(FRAME, "good", FRAME[:5], standardize=True, intercept=True)
    np.testing.assert_allclose(both.X[:, :3].mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(both.X[:, :3].std(axis=0), 1)
    np.testing.assert_allclose(both.X_test, both.X[:5])
    assert (both.X[:, 3] == 1).all()
    assert both.names == ("size", "age", "cost", "intercept")
    entry = both.to_dict()
    assert (entry["standardize"], entry["intercept"], entry["features"]) == (True, True, 4)


def test_test_columns_are_matched_by_name():
    shuffled = FRAME[["good", "cost", "size", "age"]]
    assert mp.Dataset(FRAME, "good", shuffled) == mp.Dataset(FRAME, "good", FRAME)


BAD = [
    ((with_entry(np.nan), Y), {}, "`X` must be finite numbers, but column 1 is missing in row 7"),
    ((with_entry(np.inf), Y), {}, "column 1 is inf in row 7"),
    ((with_entry(6.9e303), Y), {}, "`X` must be numbers up to 1e.50 in size, but column 1 is 6.9e"),
    (
        (X * 1e-165, Y),
        {},
        "`X` must have numbers above 1e-50 .* in column 0 the largest is .*e-165",
    ),
    ((sparse.csr_array(X * [1, 1e-99, 1]), Y), {}, "in column 1 the largest is .*e-99: take"),
    ((FRAME * [1, 1, 1e-99, 1], "good"), {"standardize": True}, "in column 'cost' the largest is"),
    ((X[:1], Y[:1]), {}, "`X` must have at least two examples, got 1"),
    (
        (X, np.append(Y[:-1], -1e60)),
        {},
        "`y` must be numbers up to 1e.50 .*, but it is -1e.60",
    ),
    ((changed(3, "age", np.nan), "good"), {}, "column 'age' is missing in row 3"),
    ((changed(3, "age", None), "good"), {}, "column 'age' is missing in row 3"),
    ((changed(3, "age", "old"), "good"), {}, "got 'old' in column 'age', row 3: drop the row"),
    ((FRAME.assign(one=2), "good"), {}, "column 'one' is constant .2.: drop it, .*intercept=True"),
    ((np.column_stack((X, np.zeros((40, 2)))), Y), {}, "column 3 and 1 more are constant"),
    ((sparse.csr_array(np.column_stack((X, np.ones(40)))), Y), {}, "column 3 is constant"),
    ((X, Y[:30]), {}, "`y` must have one entry for each row of `X`: 30 entries, 40 rows"),
    ((X, Y, X, Y[:3]), {}, "`y_test` must have one entry for each row of `X_test`"),
    ((X, Y, X[:, :2], Y), {}, "`X_test` must have the 3 columns of `X`, got 2"),
    ((X, Y, X), {}, "`X_test` is given without `y_test`"),
    ((X, Y, None, Y), {}, "`y_test` is given without `X_test`"),
    ((X, Y + 1), {"task": "classification"}, "`y` must be -1 or .1 for task .*, got [02] in row 0"),
    (
        (FRAME.assign(good=0), "good"),
        {"task": "classification"},
        "`y` .column 'good'. must be -1 or",
    ),
    ((X, Y), {"task": "sort"}, "`task` must be one of 'classification', 'regression', got 'sort'"),
    ((X, "good"), {}, "`y` must be a column of `X`, got 'good': only a frame has named columns"),
    ((FRAME, "bad"), {}, "`y` must be a column of `X`, got 'bad': it has size, age, cost, good"),
    ((FRAME, "good", FRAME.drop(columns="age")), {}, "`X_test` has no column 'age'"),
    ((FRAME, "good", FRAME.assign(more=1)), {}, "`X_test` has a column 'more', which `X` has not"),
    ((FRAME, "good", FRAME, Y), {}, "`y_test` is given, but `y` = 'good' is a column"),
    ((X[:, 0], Y), {}, "`X` must be examples × features"),
    ((np.empty((0, 3)), []), {}, "`X` must be examples × features"),
    (([["a", 1.0]] * 40, Y), {}, "`X` must be a table of numbers, got 'a'"),
    ((X + 1j, Y), {}, "`X` must be a table of numbers"),
    ((changed(3, "age", "old").values, Y), {}, "numbers, got 'old' in row 3, column 1"),
    ((X, None), {}, "`y` must be targets, or the name of a column of `X`, got None"),
    ((X, 5), {}, "`y` must have one dimension"),
    ((FRAME, 5), {}, "`y` must be a column of `X`, got '5': it has size, age, cost, good"),
    ((X, sparse.csr_array(Y[:, None])), {}, "`y` must be an array, got a sparse one: give its toa"),
    ((X, ["a"] * 40), {}, "`y` must be numbers, got 'a'"),
    (
        (X, np.append(Y[:-1], np.nan)),
        {},
        "must be finite numbers, but it is missing .nan. in row 39",
    ),
    ((X, Y), {"standardize": "yes"}, "`standardize` must be True or False, got 'yes'"),
    ((sparse.csr_array(X), Y), {"standardize": True}, "`standardize` would fill a sparse matrix"),
    ((X, Y), {"names": ["a"]}, "`names` must name all 3 columns of `X`, got 1"),
]


@pytest.mark.parametrize(("arguments", "settings", "words"), BAD, ids=range(len(BAD)))
def test_bad_data_name_the_column(arguments, settings, words):
    with pytest.raises(ValueError, match=words):
        mp.Dataset(*arguments, **settings)


def test_what_is_a_theory_of_teachers_refuses_and_names_what_can():
    problem = mp.Problem(mp.Dataset(X, Y), mp.Adaline(), rate=0.05, decay=0.1)
    with pytest.raises(ValueError, match=r"DMFT.. is a theory of random examples.*Exact\(\)"):
        mp.solve(problem, [1], mp.DMFT())
    with pytest.raises(ValueError, match=r"use method Simulation\(samples=100\)"):
        mp.solve(problem.replace(rule=mp.Adatron()), [1], mp.DMFT())
    with pytest.raises(ValueError, match=r"MeanForce.. serves a Teacher.*Exact\(\)"):
        mp.steady_state(problem, mp.MeanForce())
    for question in (mp.force_autocorrelation, mp.example_response, mp.cavity_experiment):
        with pytest.raises(ValueError, match="`data` must be a Teacher for this, got Dataset"):
            question(problem, [1])
    for question in (mp.slow_mode, lambda p: mp.activations(p, 1.0)):
        with pytest.raises(ValueError, match="`data` must be a Teacher for this, got Dataset"):
            question(problem)
    with pytest.raises(ValueError, match="`alpha` is a field of a Teacher"):
        problem.replace(alpha=2.0)
    with pytest.raises(ValueError, match="`samples` is of no use"):
        mp.solve(problem, [1], mp.Exact(samples=10))
    with pytest.raises(ValueError, match=r"`n` = 7, but .* has N = 3"):
        mp.solve(problem, [1], mp.Simulation(n=7))
    with pytest.raises(ValueError, match="`diagonal` approximates the theory of a Dataset"):
        mp.solve(problem.replace(data=mp.Teacher(1.0)), [1], mp.Exact(diagonal=True))
    with pytest.raises(ValueError, match="`eigenvalues` do not determine"):
        mp.critical_rate(problem, eigenvalues=[1.0])
    found = mp.solve(problem.replace(rule=mp.Adatron()), [1], mp.Simulation(samples=3))
    assert {"F2", "Et", "Q"} <= set(found.data_vars)
    assert json.loads(found.attrs["method"])["n"] == 3


@pytest.fixture
def files(tmp_path):
    FRAME[:30].to_csv(tmp_path / "train.csv", index=False)
    FRAME[30:].to_csv(tmp_path / "test.csv", index=False)
    FRAME[:30].to_parquet(tmp_path / "train.parquet")
    return tmp_path


def test_files_of_both_kinds_and_what_a_result_says_of_them(files):
    data = mp.read_dataset(files / "train.csv", "good", test=files / "test.csv", standardize=True)
    assert data == mp.Dataset(FRAME[:30], "good", FRAME[30:], standardize=True)
    assert mp.read_dataset(files / "train.parquet", "good") == mp.Dataset(FRAME[:30], "good")
    problem = mp.Problem(data, mp.Adaline(), rate=0.05, decay=0.1)
    found = mp.solve(problem, [1, 2])
    mp.save(found, files / "x.nc")
    again = mp.load(files / "x.nc")
    assert mp.problem_of(again) == problem
    entry = json.loads(again.attrs["problem"])["data"]
    assert entry["path"] == str(files / "train.csv")
    assert (entry["examples"], entry["features"], entry["test_examples"]) == (30, 3, 10)
    assert entry["names"] == ["size", "age", "cost"]
    assert entry["hash"] == data.hash
    assert again.Eg.attrs["long_name"] == "error on the test set"
    FRAME[:29].to_csv(files / "train.csv", index=False)
    with pytest.raises(ValueError, match="`data` are not those of the result"):
        mp.problem_of(again)
    with pytest.raises(ValueError, match=r"came from memory.*problem_of\(result, data="):
        mp.problem_of(mp.solve(problem.replace(data=mp.Dataset(X, Y)), [1]))


def flags(files, *more):
    return ["--data", str(files / "train.csv"), "--target", "good", "--decay", "0.1", *more]


@pytest.mark.filterwarnings("ignore:.*with fewer than 10:UserWarning")
def test_commands(files, capsys):
    test = ["--test", str(files / "test.csv"), "--rate", "0.05"]
    out = ["--out", str(files / "x.nc"), "--plot", str(files / "x.png")]
    main(["solve", *flags(files, *test, *out), "--times", "1,2", "--intercept"])
    assert capsys.readouterr().out.split()[:6] == ["t", "Q", "F2", "F2_test", "Et", "Eg"]
    assert mp.problem_of(mp.load(files / "x.nc")).data.n == 4
    main(["solve", *flags(files, *test), "--method", "simulation", "--samples", "3"])
    assert "F2_test_se" in capsys.readouterr().out
    main(["steady", *flags(files, *test), "--window", "2"])
    assert "F2_test = " in capsys.readouterr().out
    main(["critical-rate", *flags(files, "--rate", "0.05")])
    assert [line.split(" = ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "v_c",
        "v/v_c",
    ]
    main(["advise", *flags(files), "--passes", "1", "--out", str(files / "a.csv")])
    said = capsys.readouterr().out
    assert "SGDRegressor" in said
    assert "smallest F2_test, the mean squared error on 25% of the data, held out" in said
    assert "start: half this critical rate, " in said
    main(["advise", *flags(files), "--passes", "1", "--rate", "0.1", "--objective", "Eg"])
    said = capsys.readouterr().out
    assert "smallest Eg, the error rate" in said
    assert "start: half" not in said
    (files / "p.toml").write_text(
        f"rule = 'adaline'\nrate = 0.05\ndecay = 0.1\n"
        f"data = {{ path = '{files / 'train.csv'}', target = 'good' }}\n"
    )
    main(["solve", str(files / "p.toml"), "--times", "1", "--standardize"])
    assert "F2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--target", "bad"], "--target must be a column of the --data"),
        (["--data", "none.csv"], "--data: there is no file 'none.csv'"),
        (["--data", "nowhere/none.csv"], "--data: there is no folder 'nowhere'"),
        (
            ["--data", "x.xls"],
            "--data must end in .csv, .tsv, .csv.gz, .tsv.gz, .txt, .dat, .parquet, got 'x.xls'",
        ),
        (["--alpha", "2"], "--alpha (got 2.0) describes a teacher, not --data"),
        (["--task", "sort"], "--task must be one of"),
        *(
            (["--encoding", e], "--encoding must be one that Python knows")
            for e in ("rot13", "hex")
        ),
        (["--sep", "é"], "--sep must be one ASCII character"),
        (["--method", "dmft"], "--method dmft is a theory of random examples"),
        (["--method", "simulation", "--n", "9"], "--n 9, but Dataset(30 × 3"),
    ],
)
def test_bad_flags(files, capsys, more, words):
    with pytest.raises(SystemExit) as stop:
        main(["solve", *flags(files, "--rate", "0.1", *more)])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_blanks_about_commas_are_no_part_of_names(tmp_path):
    (tmp_path / "a.csv").write_text("a, b, t\n1, 2, yes\n2, 3, no\n4, 1, yes\n")
    data = mp.read_dataset(tmp_path / "a.csv", "t", positive="yes")
    assert data.names == ("a", "b")
    assert data.y.tolist() == [1, -1, 1]
    (tmp_path / "b.csv").write_text("a ,b,t \n1,2,yes\n2,3,no\n4,1,yes\n")
    again = mp.read_dataset(tmp_path / "b.csv", "t", positive="yes")
    assert again.names == data.names
    assert again == data


def test_bad_files(files, monkeypatch):
    FRAME.to_csv(files / "index.csv")
    (files / "empty.csv").write_text("")
    (files / "bytes.csv").write_bytes(b"\xff\xfe\x00a,b\n")
    (files / "bad.parquet").write_text("no")
    for name, words in (
        ("index.csv", "column 0 has no name"),
        ("empty.csv", "is empty"),
        ("bytes.csv", "cannot be read"),
        ("bad.parquet", "cannot be read"),
    ):
        with pytest.raises(ValueError, match=words):
            mp.read_dataset(files / name, "good")

    def missing(*_):
        raise ImportError

    monkeypatch.setattr(pd, "read_parquet", missing)
    with pytest.raises(ValueError, match=r"needs pyarrow: pip install 'manypass\[data\]'"):
        mp.read_dataset(files / "train.parquet", "good")
    with pytest.raises(ValueError, match="`lines` is not a field of data"):
        mp.Problem.from_dict(
            {"data": {"path": "a.csv", "lines": 1}, "rule": "adaline", "rate": 1.0}
        )


def test_pictures_have_an_axis_in_passes():
    problem = mp.Problem(mp.Dataset(X, Y, X, Y), mp.Adaline(), rate=0.05, decay=0.1)
    theory, data = (mp.solve(problem, [1, 26.0], m) for m in (mp.Exact(), mp.Simulation(samples=3)))
    ax = mp.plot.curves(theory, data, variables=["F2", "F2_test"])
    (above,) = ax.child_axes
    assert above.get_xlabel() == "passes over the data"
    ax.figure.draw_without_rendering()
    left, right = above.get_xlim()
    np.testing.assert_allclose((left, right), np.array(ax.get_xlim()) * 3 / 40)
    assert len(mp.plot.overview(theory).axes) == 2
    teacher = mp.Problem(mp.Teacher(1.0), mp.Adaline(), rate=0.5)
    assert not mp.plot.curves(mp.solve(teacher, [1, 2])).child_axes


def test_a_map_of_a_sweep_over_data_in_memory_has_its_line(tmp_path):
    data = mp.Dataset(X, Y)
    problem = mp.Problem(data, mp.Adaline(), rate=0.01)
    grid = mp.Grid(problem, rate=[0.01, 0.02, 0.04], decay=[0.1, 0.2])
    found = mp.sweep(grid, workers=1, out=tmp_path)
    line = mp.plot.heatmap(found, "F2").lines[0]
    limits = [mp.critical_rate(problem.replace(decay=d)) for d in (0.1, 0.2)]
    np.testing.assert_allclose(line.get_xdata(), limits)
    assert mp.problem_of(found) == problem  # the data are in memory
    del data, problem, grid
    gc.collect()
    with pytest.warns(UserWarning, match=r"no line v_c: .*came from memory.*problem_of"):
        assert not mp.plot.heatmap(mp.load(tmp_path / "sweep.nc"), "F2").lines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.5,1.5,2\n1,2,3\n4,5,7\n", "the first line must name the columns, but has numbers only"),
        ("2,2,2\n1,2,3\n4,5,7\n", "first line must name the columns, .*, 2, 2, 2: write a line"),
        ("", "is empty: it must have a line that names the columns"),
        ("a,b,2\n1,2,3\n1,2,3,4,5\n", "line 3 has 5 entries, those before it 3: is `sep` right"),
        ("# a\n# b\na,b,2\n1,2,3\n1,2,3,4\n", "line 5 has 4 entries, those before it 3"),
        ('a,b,2\n1,"2,3\n1,2,3\n', "a quote that opens in line 2 is never closed$"),
        ("a,b,2\n30%,2,3\n4%,4,5\n5%,3,7\n", "'30%' in column 'a', line 2 .* write 30, without %"),
        ("a,b,2\n1,2,3\n−3,4,5\n5,3,7\n", r"'−3' in .* line 3 .* minus is U\+2212, .* write -3"),
        (f"a,b,2\n1,2,3\n{'9' * 200_000},4,5\n5,3,7\n", "column 'a', line 3 .*: it is larger"),
        (f"a,b,2\n1,2,3\n{'x' * 200_000},4,5\n5,3,7\n", "column 'a', line 3 of .*: drop the"),
        ("a,b,2\n1,2,3\n3,4,5\n5,3,7%\n", "'7%' in column '2', line 4 .* write 7, without %"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_our_words(tmp_path, text, said):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as told:
        mp.read_dataset(path, "2")
    assert "tokeniz" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("names", ["0,1,2", "1,2,3"])
def test_numbers_that_count_are_names(tmp_path, names):
    path = tmp_path / "x.csv"
    path.write_text(f"{names}\n1,2,3\n4,5,7\n0,1,1\n")
    assert mp.read_dataset(path, "2").p == 3


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "\ufeffSEP=;\r"])
def test_the_separator_may_stand_on_the_first_line(tmp_path, first):
    """Excel writes it so."""
    path = tmp_path / "x.csv"
    path.write_text(f"{first}\na;b;y\n1;2;3\n4;5;7\n0;1;1\n", newline="")
    data = mp.read_dataset(path, "y")
    assert (data.p, data.names) == (3, ("a", "b"))
    path.write_text("sep=;\n# a comment\na;b;y\n1;2;3\n4;?;7\n0;1;1\n")
    with pytest.raises(ValueError, match=r"got '\?' in column 'b', line 5"):
        mp.read_dataset(path, "y")
    path.write_text("sep=;\na,b,y\n1,2,3\n4,5,7\n0,1,1\n")
    assert mp.read_dataset(path, "y", sep=",").names == ("a", "b")


@pytest.mark.parametrize(("unit", "lost"), [(1e20, 3), (1e30, 3), (1e45, None)])
def test_numbers_too_large_for_single_precision_are_diverged_or_refused(unit, lost):
    data = mp.Dataset(X * unit, X[:, 0], X * unit, X[:, 0])
    problem, method = mp.Problem(data, "adaline", rate=0.1), mp.Simulation(samples=3, seed=0)
    single = dataclasses.replace(method, precision="float32")
    assert np.isfinite(mp.solve(problem, [0.4], method).F2).all()
    if lost is None:
        with pytest.raises(ValueError, match=r"`precision` float32 holds numbers up to 3.4e\+38"):
            mp.solve(problem, [0.4], single)
        return
    found = mp.solve(problem, [0.4], single)
    assert found.diverged.item() == lost
    assert np.isinf(found.F2).all()
