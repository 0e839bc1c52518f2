"""What a seventh round of new users met."""

import numpy as np
import pytest

import manypass as mp

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.5)


def test_a_force_of_two_numbers_is_told():
    both = mp.Rule(lambda x, y: np.array([x, y]))
    with pytest.raises(ValueError, match=r"`force` .* must return one number .* got array"):
        both.force(0.3, 1.0)


@pytest.fixture
def saved(tmp_path):
    found, path = mp.solve(PROBLEM, [1.0, 2.0]), tmp_path / "x.csv"
    mp.save(found, path)
    return found, path


def test_notes_that_an_editor_left_in_a_result_are_passed_over(saved):
    found, path = saved
    text = path.read_text()
    for noted in (text + "# mine\n", "#mine\n" + text, text.replace("\n1.0,", "\n#\n1.0,")):
        path.write_text(noted)
        assert mp.load(path).identical(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: [row for row in rows if row[0] == "#"], "of 2 rows it has 0"),
        (lambda rows: [*rows[:-1], rows[-1] + ",5"], r"its row 2 has \d values, not \d"),
        (
            lambda rows: [row if row[0] == "#" else row.rpartition(",")[0] for row in rows],
            "it has no column",
        ),
    ],
)
def test_damaged_tables_are_told(change, said, saved):
    path = saved[1]
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    with pytest.raises(ValueError, match=said):
        mp.load(path)
