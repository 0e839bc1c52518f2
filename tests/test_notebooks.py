"""What a notebook shows: problems as tables, pictures as pictures, progress as a bar."""

import importlib.util
import re
import sys
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

import manypass as mp
from manypass import notebooks

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)


class Balanced(HTMLParser):
    """Raises where tags are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def cells(problem):
    page, reader = problem._repr_html_(), Balanced()
    reader.feed(page)
    assert not reader.open
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return {
        re.search(r"<code>(\w+)", row)[1]: re.findall(r"<td.*?>(.*?)</td>", row)[1] for row in rows
    }


def test_a_problem_is_a_table_of_what_is_not_as_usual():
    shown = cells(PROBLEM)
    assert shown["rate"] == "1.9"
    assert shown["decay"] == "0.8"
    assert "alpha=1.2" in shown["data"]
    assert "momentum" not in shown
    assert cells(PROBLEM.replace(momentum=0.5))["momentum"] == "0.5"


def test_schedules_starts_and_odd_names_are_written_as_they_are_given():
    moving = PROBLEM.replace(rate="cosine:1.9:0.05:8", start=mp.Start(R=0.5, Q=1.0))
    shown = cells(moving)
    assert shown["rate"] == "cosine:1.9:0.05:8"
    assert "0.5" in shown["start"]
    odd = mp.Rule(force=lambda x, y: y - x)
    assert "&lt;" in cells(PROBLEM.replace(rule=odd))["rule"]  # <lambda>, not a tag


def test_a_picture_shows_itself_as_the_last_line_of_a_cell():
    ax = mp.plot.curves(mp.solve(PROBLEM, [1, 2, 4]))
    for shown in (ax, ax.figure, mp.plot.overview(mp.solve(PROBLEM, [1, 2, 4]))):
        assert shown._repr_png_().startswith(b"\x89PNG")
    own = Figure().subplots()
    assert mp.plot.curves(mp.solve(PROBLEM, [1, 2]), ax=own) is own  # pyplot shows its own


@pytest.mark.parametrize(("kernel", "widgets"), [(True, True), (True, False), (False, True)])
def test_bars_are_widgets_only_where_there_are_widgets(monkeypatch, kernel, widgets):
    import tqdm
    import tqdm.notebook

    monkeypatch.setattr(notebooks, "find_spec", lambda name: widgets)
    monkeypatch.setattr(tqdm.notebook, "tqdm", lambda **options: "widget")
    monkeypatch.setattr(tqdm, "tqdm", lambda **options: "line")
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if kernel:
        monkeypatch.setitem(sys.modules, "ipykernel", importlib.util)
    assert notebooks.bar(total=1) == ("widget" if kernel and widgets else "line")
