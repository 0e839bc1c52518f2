"""Data as they lie about: labels, masks, indices, useless columns, categories, odd files."""

import gzip
import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import manypass as mp
from manypass.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
UP = X[:, 0] + 0.3 * RNG.standard_normal(40) > 0
SIGNS = np.where(UP, 1.0, -1.0)
WORDS = np.where(UP, "good", "bad")
NUMBERS = X @ [1.0, 2.0, 3.0]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("y", "more"),
    [
        (np.ones(40), {}),
        (np.zeros(40, bool), {}),
        (["yes"] * 40, {"positive": "yes"}),
        (np.ones(40), {"task": "classification"}),
    ],
)
def test_one_class_is_no_classification(y, more):
    with pytest.raises(ValueError, match=r"`y` must have two classes, got one alone \("):
        mp.Dataset(X, y, **more)


def test_two_columns_may_not_have_one_name():
    with pytest.raises(ValueError, match="`names` has two columns 'a'"):
        mp.Dataset(X, SIGNS, names=["a", "b", "a"])
    twice = FRAME.set_axis(["a", "y", "y"], axis=1)
    with pytest.raises(ValueError, match="`X` has two columns 'y'"):
        mp.Dataset(twice, "y")


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (UP, "False, True"),
        (UP.astype(int), "0, 1"),
        (UP.astype(float), "0, 1"),
        (UP.astype(object), "False, True"),
        (WORDS, "'bad', 'good'"),
        (pd.Series(WORDS, dtype="category"), "'bad', 'good'"),
    ],
)
def test_two_labels_are_classes_and_a_warning_says_so(y, labels):
    with pytest.warns(UserWarning, match=f"has the labels {labels}: taken as class") as caught:
        data = mp.Dataset(X, y)
    assert caught[0].filename == __file__
    assert data == mp.Dataset(X, SIGNS)
    assert "is +1" in repr(data)
    for said in ({"task": "classification"}, {"positive": data.positive}):  # nothing to warn of
        assert mp.Dataset(X, y, **said) == data


def test_a_regression_on_two_values_is_one_that_was_asked_for():
    with pytest.warns(UserWarning, match=r"mean 0.4 and standard deviation 0.49, and no column"):
        data = mp.Dataset(X, UP, task="regression")
    assert (data.task, set(data.y)) == ("regression", {0.0, 1.0})
    with pytest.warns(UserWarning, match="values 0, 1 and 2 alone: taken as regression"):
        mp.Dataset(X, np.arange(40) % 3)
    with pytest.warns(UserWarning, match="value 0 alone: taken as regression"):
        mp.Dataset(X, np.zeros(40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mp.Dataset(X, np.arange(40) % 3 - 1, task="regression").task == "regression"
        assert mp.Dataset(X, np.arange(40) % 11 - 4).task == "regression"  # rather counts
        assert mp.Dataset(X, np.arange(40) % 3, positive=2).task == "classification"
    with pytest.warns(UserWarning, match="values 1 and 2 alone: taken as regression"):
        assert mp.Dataset(X, UP + 1).task == "regression"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mp.Dataset(X, NUMBERS).task == "regression"


def test_the_label_that_is_positive():
    kinds = np.array(["x", "y", "z"])[RNG.integers(3, size=40)]
    data = mp.Dataset(X, kinds, X, kinds, positive="y")
    np.testing.assert_array_equal(data.y, np.where(kinds == "y", 1, -1))
    np.testing.assert_array_equal(data.y_test, data.y)
    codes = pd.Series(kinds).map({"x": 3, "y": 5, "z": 8})
    for label in (5, 5.0, "5", "5.0", np.int64(5)):
        assert mp.Dataset(X, codes, X, codes, positive=label) == data
    assert mp.Dataset(X, UP, positive="false") == mp.Dataset(X, -SIGNS)


BAD = [
    ((X, ["x", "y", "z", "z"] * 10), {}, "`y` must be numbers, got 'x', or two labels, got 3"),
    ((X, WORDS), {"task": "regression"}, "`y` must be numbers, got '(good|bad)': targets of a"),
    ((X, WORDS), {"positive": "fine"}, "`positive` must be one of .* 'bad', 'good', got 'fine'"),
    ((X, UP), {"positive": True, "task": "regression"}, "`positive` = True names a class"),
    ((X, WORDS), {"positive": ["good"]}, "`positive` must be a label"),
    ((X, [*WORDS[:-1], None]), {}, "`y` is missing in row 39"),
    ((X, WORDS, X, [*WORDS[:-1], "Good"]), {}, "`y_test` must have the labels of `y`.*'Good'"),
    ((X, SIGNS, X, UP.astype(int)), {}, "`y_test` must be -1 or .1 .*got 0 in row"),
    ((np.ma.masked_greater(X, 1), SIGNS), {}, r"`X` must have no masked entries, got \d+, the fi"),
    ((list(np.ma.masked_greater(X, 1)), SIGNS), {}, "`X` must have no masked entries"),
    ((np.ma.masked_greater(X, 1), SIGNS), {"drop_constant": True}, "`X` must have no masked"),
    ((X, np.ma.array(SIGNS, mask=[0] * 7 + [1] * 33)), {}, "`y` must have no masked.*33.*row 7:"),
    ((X, SIGNS, np.ma.masked_greater(X, 1), SIGNS), {"drop": 1}, "`X_test` must have no masked"),
    ((FRAME, pd.Series(SIGNS, index=range(1, 41))), {}, r"`y` must have the index.*y.to_numpy\(\)"),
    ((FRAME.set_axis([0] * 40), pd.Series(SIGNS)), {}, "`y` must have the index of `X`"),
    ((X, SIGNS), {"drop": ["a"]}, "`drop` must name columns of `X`, got 'a': it has 0, 1, 2"),
    ((X, SIGNS), {"drop": 0.5}, "`drop` must be a list of columns, got 0.5"),
    ((FRAME.assign(y=SIGNS), "y"), {"drop": ["y"]}, "`drop` names the target, 'y'"),
    ((X, SIGNS, X[:, :2], SIGNS), {"drop": [1]}, "`X_test` must have the 3 columns of `X`"),
    ((FRAME.assign(no=np.nan), SIGNS), {}, "column 'no' is empty: drop it, or .*`drop_constant`"),
    ((FRAME.assign(k="u"), SIGNS), {}, "got 'u' in column 'k': encode it .`one_hot`. or leave it"),
    ((FRAME[["a"]] * 0, SIGNS), {"drop_constant": True}, "`drop_constant` leaves nothing"),
    ((X, SIGNS), {"one_hot": True}, "`one_hot` needs frames"),
    ((FRAME.set_axis(list("aab"), axis=1), SIGNS), {"one_hot": "b"}, "`X` has two columns 'a'"),
    ((FRAME, SIGNS), {"one_hot": "k"}, "`one_hot` must name columns of `X`, got 'k'"),
    *(
        (arguments, settings, f"`{name}` must have one number or text in .*, got .*row 0{end}$")
        for cell in ([1.0], {"a": 1}, {1}, np.ones(1), np.ones(2))
        for arguments, settings, name, end in (
            ((FRAME.assign(c=[cell] * 40), SIGNS), {}, "X", ": make columns of it, or `drop` it"),
            ((FRAME.assign(c=[cell] * 40), SIGNS), {"one_hot": ["c"]}, "X", ": make .*"),
            ((FRAME.assign(c=[cell] * 40), "c"), {}, "y", ""),
            ((FRAME, SIGNS, FRAME, pd.Series([cell] * 40)), {}, "y_test", ""),
        )
    ),
    ((X, [{1}] * 40), {}, "`y` must have one number or text in each cell, got .1., row 0"),
    ((FRAME, SIGNS), {"names": ["u", "v"]}, "`names` are for tables without any.* has a, b, c: "),
    ((X, SIGNS * 1e-200), {}, "`y` must have numbers above 1e-50 in size, .* largest is 1e-200"),
    ((X, SIGNS), {"drop_constant": 1}, "`drop_constant` must be True or False, got 1"),
]


@pytest.mark.parametrize(("arguments", "settings", "words"), BAD, ids=range(len(BAD)))
def test_nothing_is_taken_in_silence(arguments, settings, words):
    with pytest.raises(ValueError, match=words):
        mp.Dataset(*arguments, **settings)


@pytest.mark.parametrize("settings", [{}, {"one_hot": True}])
def test_a_stray_word_among_numbers_is_named_and_makes_no_categories(tmp_path, settings):
    path, words = tmp_path / "x.csv", FRAME.b.astype(object)
    words[3] = "?"
    FRAME.assign(b=words, y=SIGNS).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"got '\?' in column 'b', line 5 of '.*: drop the row or"):
        mp.read_dataset(path, "y", **settings)
    assert len(mp.read_dataset(path, "y", one_hot=["b"]).names) == 42  # as was asked
    codes = FRAME.assign(k=np.resize(["1", "2"], 40))  # all of them: categories
    assert mp.Dataset(codes, SIGNS, one_hot=True).names[-2:] == ("k=1", "k=2")


def test_a_mask_that_masks_nothing_is_no_objection():
    assert mp.Dataset(np.ma.array(X), np.ma.array(SIGNS)) == mp.Dataset(X, SIGNS)


def test_an_index_says_what_belongs_together():
    y = pd.Series(NUMBERS)
    same = mp.Dataset(X, NUMBERS, X, NUMBERS)
    mixed = y.sample(frac=1, random_state=1)
    assert not (mixed.to_numpy() == NUMBERS).all()
    assert mp.Dataset(FRAME, mixed, FRAME, mixed.to_frame()) == same
    assert mp.Dataset(FRAME, mixed.to_numpy()) != mp.Dataset(X, NUMBERS)  # by position, as said
    named = FRAME.set_axis([f"r{i}" for i in range(40)])
    assert mp.Dataset(named, y.set_axis(named.index)[::-1]) == mp.Dataset(X, NUMBERS)


def test_columns_are_dropped_on_request():
    wide = np.column_stack((X[:, :1], np.ones(40), X[:, 1:], np.full(40, np.nan)))
    for data in (
        mp.Dataset(wide, SIGNS, wide, SIGNS, drop_constant=True),
        mp.Dataset(wide, SIGNS, wide, SIGNS, drop=[1, 4]),
        mp.Dataset(wide.tolist(), SIGNS, wide.tolist(), SIGNS, drop=["1", "4"]),
        mp.Dataset(FRAME.assign(n=0), SIGNS, FRAME, SIGNS, drop="n"),
    ):
        assert data == mp.Dataset(X, SIGNS, X, SIGNS)
    many = sparse.hstack([sparse.csr_array(X), sparse.csr_array((40, 5000))], format="csr")
    assert mp.Dataset(many, SIGNS, many, SIGNS, drop_constant=True).n == 3
    useless = FRAME.assign(n=0, t="x", e=None, f=np.nan, d=pd.NaT)
    data = mp.Dataset(useless, SIGNS, useless.assign(t="other"), SIGNS, drop_constant=True)
    assert data.names == ("a", "b", "c")
    named = mp.Dataset(X, SIGNS, names=["a", "b", "c"], drop=["b"])
    assert named.names == ("a", "c")


def test_categories_become_columns_on_request():
    kind, month = RNG.choice(["red", "blue"], 40), RNG.integers(1, 4, 40)
    frame = FRAME.assign(kind=kind, month=month)
    data = mp.Dataset(frame, SIGNS, frame[["month", "kind", "c", "b", "a"]], SIGNS, one_hot=True)
    assert data.names == ("a", "b", "c", "kind=blue", "kind=red", "month")
    np.testing.assert_array_equal(data.X[:, 4], kind == "red")
    np.testing.assert_array_equal(data.X_test, data.X)
    both = mp.Dataset(frame, SIGNS, one_hot=["kind", "month"])
    assert both.names[-3:] == ("month=1", "month=2", "month=3")
    np.testing.assert_array_equal(both.X[:, -1], month == 3)
    stray = frame.astype({"a": object})
    stray.loc[3, "a"] = "old"
    with pytest.raises(ValueError, match="got 'old' in column 'a'"):  # a typo, not 40 categories
        mp.Dataset(stray, SIGNS, one_hot=True)
    new = frame.assign(kind="green")
    with pytest.raises(ValueError, match="`X_test` has 'green' in column 'kind', row 0, which"):
        mp.Dataset(frame, SIGNS, new, SIGNS, one_hot=True)
    gap = frame.assign(kind=[None, *kind[1:]])
    with pytest.raises(ValueError, match="column 'kind' is missing in row 0"):
        mp.Dataset(gap, SIGNS, one_hot=True)


@pytest.fixture
def messy(tmp_path):
    """A file with all that is unwelcome, and the same data as they should be read."""
    city = np.array(["Köln", "Bonn"])[RNG.integers(2, size=40)]
    table = FRAME.assign(id=range(40), city=city, useless=1, nothing=np.nan, good=WORDS)
    table.to_csv(tmp_path / "messy.csv", sep=";", encoding="latin-1", index=False)
    table[:9].to_csv(tmp_path / "test.csv", sep=";", encoding="latin-1", index=False)
    clean = FRAME.assign(Bonn=1.0 * (city == "Bonn"), koeln=1.0 * (city == "Köln"))
    return tmp_path, mp.Dataset(clean, SIGNS, clean[:9], SIGNS[:9])


SETTINGS = {
    "sep": ";",
    "encoding": "latin-1",
    "drop": ["id"],
    "drop_constant": True,
    "one_hot": ["city"],
    "positive": "good",
}
FLAGS = ["--sep", ";", "--encoding", "latin-1", "--drop", "id", "--drop-constant"]
FLAGS += ["--one-hot", "city", "--positive", "good"]


def test_a_messy_file_in_python_and_in_a_saved_result(messy):
    folder, clean = messy
    data = mp.read_dataset(folder / "messy.csv", "good", test=folder / "test.csv", **SETTINGS)
    assert data == clean
    assert data.names == ("a", "b", "c", "city=Bonn", "city=Köln")
    found = mp.solve(mp.Problem(data, mp.Adaline(), rate=0.05), [1.0])
    mp.save(found, folder / "x.nc")
    command = "import manypass as mp, sys; print(mp.problem_of(mp.load(sys.argv[1])).data.hash)"
    again = subprocess.run(  # another session, which must not warn either
        [sys.executable, "-Werror::UserWarning", "-c", command, folder / "x.nc"],
        capture_output=True,
        text=True,
    )
    assert (again.stdout.strip(), again.stderr) == (data.hash, "")


@pytest.mark.filterwarnings("ignore:.*with fewer than 10:UserWarning")
def test_a_messy_file_on_the_command_line_in_toml_and_in_sweeps(messy, capsys):
    folder, clean = messy
    files = ["--data", str(folder / "messy.csv"), "--test", str(folder / "test.csv")]
    common = [*files, "--target", "good", *FLAGS, "--decay", "0.1"]
    main(["solve", *common, "--rate", "0.05", "--times", "1", "--out", str(folder / "x.nc")])
    said = capsys.readouterr().err
    assert "40 examples of 5 features, 9 to test on; classification of 'good'" in said
    assert "'good' as +1, all else as -1" in said
    assert mp.problem_of(mp.load(folder / "x.nc")).data == clean
    for command in (["steady", "--rate", "0.05"], ["critical-rate"], ["advise", "--passes", "1"]):
        main([*command, *common])
        assert "classification of 'good', 'good' as +1" in capsys.readouterr().err
    table = json.dumps(SETTINGS).replace('": ', '" = ')[1:-1]
    entry = f"data = {{ path = '{folder / 'messy.csv'}', target = 'good', {table} }}\n"
    (folder / "p.toml").write_text(f"rule = 'adaline'\nrate = 0.05\n{entry}", encoding="utf-8")
    main(
        [
            "solve",
            str(folder / "p.toml"),
            "--times",
            "1",
            "--one-hot",
            "--out",
            str(folder / "y.nc"),
        ]
    )
    assert mp.problem_of(mp.load(folder / "y.nc")).data.names[3] == "city=Bonn"
    plan = f"rule = 'adaline'\n{entry}[sweep]\nrate = [0.02, 0.05]\ndecay = [0.1]\n"
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    capsys.readouterr()
    main(["sweep", str(folder / "plan.toml"), "--out", str(folder / "s"), "--workers", "1"])
    assert "classification of 'good'" in capsys.readouterr().err
    swept = mp.load(folder / "s" / "sweep.nc")
    problem = mp.Problem(mp.Dataset(clean.X, clean.y), mp.Adaline(), rate=0.05, decay=0.1)
    np.testing.assert_allclose(swept.F2[1, 0], mp.steady_state(problem).F2, rtol=1e-9)
    assert mp.problem_of(swept).data == problem.data


def test_the_command_line_says_what_it_took_for_granted(tmp_path, capsys):
    for name, y, words in (
        (
            "zero.csv",
            UP.astype(int),
            "classification of 'y', 1 as +1, all else as -1\nnote: `y` (column",
        ),
        ("number.csv", NUMBERS, "regression of 'y'\n"),
        (
            "two.csv",
            UP + 1,
            "regression of 'y'\nnote: `y` (column 'y') has the values 1 and 2 alone",
        ),
    ):
        FRAME.assign(y=y).to_csv(tmp_path / name, index=False)
        main(["critical-rate", "--data", str(tmp_path / name), "--target", "y"])
        found = capsys.readouterr()
        assert words in found.err
        assert found.out.startswith("v_c = ")
        assert ("--positive" in found.err) == ("note" in words)


def test_endings_and_separators(tmp_path):
    table, same = FRAME.assign(y=NUMBERS), mp.Dataset(X, NUMBERS)
    for name, written, said in (
        ("x.tsv", {"sep": "\t"}, {}),
        ("x.csv.gz", {}, {}),
        ("x.tsv.gz", {"sep": "\t"}, {}),
        ("x.CSV", {"sep": "|"}, {"sep": "|"}),
        ("y.csv", {"sep": "\t"}, {"sep": "tab"}),
        ("z.csv", {"sep": "\t"}, {"sep": "\\t"}),
        ("s.csv", {"sep": " "}, {"sep": r"\s+"}),
        ("x.txt", {"sep": " "}, {}),
        ("x.dat", {"sep": " "}, {}),
        ("y.txt", {}, {"sep": ","}),
        ("u.csv", {"encoding": "utf-16"}, {"encoding": "utf-16"}),
        ("b.csv", {"encoding": "utf-8-sig"}, {}),
    ):
        table.to_csv(tmp_path / name, index=False, **written)
        assert mp.read_dataset(tmp_path / name, "y", **said) == same, name
    table.to_csv(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match=r"column 0 has no name; .* by `drop` = 'Unnamed: 0'"):
        mp.read_dataset(tmp_path / "rows.csv", "y")
    assert mp.read_dataset(tmp_path / "rows.csv", "y", drop="Unnamed: 0") == same
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n" * 999)[:40])
    (tmp_path / "latin.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    (tmp_path / "twice.csv").write_text("a,b,a,y\n1,2,3,1\n2,1,3,-1\n")
    table.to_parquet(tmp_path / "x.parquet")
    table.assign(b=X[:, 1]).to_csv(tmp_path / "commas.csv", sep=";", decimal=",", index=False)
    for name, said, words in (
        ("y.csv", {}, "`target` must be a column .*; it is one column: is `sep` right"),
        ("twice.csv", {}, "`path` has two columns 'a'"),
        ("cut.csv.gz", {}, "`path` .*cut.csv.gz' cannot be read"),
        ("latin.csv", {}, "cannot be read as UTF-8: .*say its `encoding`"),
        ("latin.csv", {"encoding": "klingon"}, "`encoding` must be one that Python knows, such as"),
        ("latin.csv", {"sep": "; "}, "`sep` must be one ASCII character, 'tab' or .*, got '; '"),
        ("commas.csv", {"sep": ";"}, "commas.csv': column 'a' has a decimal comma, '[-0-9,]*'"),
        ("x.parquet", {"sep": ";"}, "`sep` .got ';'. is for text files, not for"),
    ):
        with pytest.raises(ValueError, match=words):
            mp.read_dataset(tmp_path / name, "y", **said)


def test_a_mean_of_the_targets_that_nothing_can_fit_is_told():
    y = 3 + X[:, 0] + 0.3 * np.cos(np.arange(40))
    with pytest.warns(UserWarning, match=r"mean [23].* no column has a mean .*intercept=True"):
        mp.Dataset(X, y, standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mp.Dataset(X, y, standardize=True, intercept=True)
        mp.Dataset(X, y - y.mean(), standardize=True)
        mp.Dataset(np.column_stack([X, 5 + X[:, 0]]), y)  # a column has a mean of its own
        mp.Dataset(sparse.csr_array(X), y)
        mp.Dataset(X, np.sign(X[:, 0] + 0.3), standardize=True)  # nearly balanced classes
        mp.Dataset(X[:16, :2], y[:16] - 2.6)  # a mean by chance
    with pytest.warns(
        UserWarning, match=r"^92% of the targets are \+1, and no .* could fit it: say"
    ):
        mp.Dataset(X, np.where(y > 1, 1.0, -1.0), standardize=True)  # unbalanced classes
    with pytest.warns(UserWarning, match=r"mean 0.7.* could fit it: subtract it, or say"):
        mp.Dataset(X, y - 2.1, standardize=True)


def test_columns_without_names_keep_their_numbers_when_others_are_dropped():
    """What a warning says to drop must be what `drop` takes."""
    A = np.random.default_rng(0).standard_normal((50, 4))
    with pytest.warns(UserWarning, match=r"column 2 is the target `y` itself"):
        mp.Dataset(A, A[:, 2], drop=[0])
    A[:, 1] = 1.0
    with pytest.warns(UserWarning, match=r"column 3 is the target `y` itself"):
        mp.Dataset(A, A[:, 3], drop=[0], drop_constant=True)
    with pytest.raises(ValueError, match=r"column 1 is constant"):
        mp.Dataset(A, A[:, 3], drop=[0])
    A[4, 3] = np.nan
    with pytest.raises(ValueError, match=r"column 3 is missing in row 4"):
        mp.Dataset(A, A[:, 2], drop=[0, 1])


@pytest.mark.parametrize("more", [{}, {"drop": [0]}, {"drop_constant": True}])
def test_rows_of_different_length_are_told(more):
    with pytest.raises(ValueError, match=r"`X` "):
        mp.Dataset([[1, 2], [3]], [1, 2], **more)


@pytest.mark.parametrize(
    "text", ["a,b,y\n7,1,2,1\n8,2,1,2\n9,5,5,3\n", "a,b,y\n1,2,1,\n2,1,2,\n5,5,3,\n"]
)
def test_a_line_of_names_with_one_too_few_is_told(tmp_path, text):
    """Columns were shifted by one, in silence."""
    (tmp_path / "short.csv").write_text(text)
    with pytest.raises(ValueError, match=r"line 1 names 3 columns, those after it have 4 entries"):
        mp.read_dataset(tmp_path / "short.csv", "y")
