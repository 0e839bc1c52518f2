"""What people meet when they go on, and what they are then told."""

import gzip


import pytest

import manypass as mp
from manypass.cli import main


PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
ROWS = "".join(f"{i / 7},{i % 5},{i % 3}\n" for i in range(6))


@pytest.mark.parametrize(
    ("text", "settings", "place"),
    [
        (f"a,b,y\n{ROWS}1,,2\n", {}, "column 'b' is missing in line 8 of "),
        (f"a,b,y\n\n{ROWS}  \n1,,2\n", {}, "column 'b' is missing in line 10 of "),  # empty lines
        (f'a,"b\nc",y\n{ROWS}1,?,2\n', {}, r"got '\?' in column .*, line 9 of "),
        (f"a,b,y\n{ROWS}1,1,\n", {}, "`y` .* got nan in line 8 of "),
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
    with pytest.raises(ValueError, match=f"{place}'.*{name}'"):
        mp.read_dataset(path, "y", **settings)


def test_a_cell_of_the_test_file_is_in_the_test_file(tmp_path):
    for name, last in (("train.csv", "1,2,3\n"), ("test.csv", "1,2,inf\n")):
        (tmp_path / name).write_text(f"a,b,y\n{ROWS}{last}")
    with pytest.raises(ValueError, match=r"inf in line 8 of '.*test.csv'"):
        mp.read_dataset(tmp_path / "train.csv", "y", test=tmp_path / "test.csv")


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
