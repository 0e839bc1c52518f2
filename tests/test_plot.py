"""Pictures: what is drawn is what was computed."""

import json

import numpy as np
import pytest

import manypass as mp

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
TIMES = np.linspace(0, 4, 9)


def as_simulation(result):
    data = result.assign(R_se=0 * result.R + 0.1)
    data.attrs["method"] = json.dumps({"name": "Simulation"})
    return data


def test_theory_is_lines_and_simulation_is_markers():
    theory = mp.solve(PROBLEM, TIMES)
    ax = mp.plot.curves(theory, as_simulation(theory), variables=["R"])
    lines = [line for line in ax.lines if line.get_linestyle() == "-"]
    np.testing.assert_array_equal(lines[0].get_ydata(), theory.R)
    assert len(ax.containers) == 1  # the error bars
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$R(t)$"]


def test_theories_differ_by_line_style_and_symbols_by_colour():
    ax = mp.plot.curves(mp.solve(PROBLEM, TIMES), mp.solve(PROBLEM.replace(rate=1.0), TIMES))
    styles = {line.get_linestyle() for line in ax.lines}
    colours = {line.get_color() for line in ax.lines}
    assert styles == {"-", "--"}
    assert len(colours) == 4


def test_draws_into_given_axes_and_simulation_alone():
    ax = mp.plot.curves(as_simulation(mp.solve(PROBLEM, TIMES)), variables=["Q", "R"])
    same = mp.plot.curves(mp.solve(PROBLEM, TIMES), ax=ax, variables=["R"])
    assert same is ax
    assert len(ax.get_legend().get_texts()) == 2


def test_bad_input():
    with pytest.raises(ValueError, match="`results`"):
        mp.plot.curves()
    with pytest.raises(ValueError, match="without curves in `t`"):
        mp.plot.curves(mp.steady_state(PROBLEM))
    with pytest.raises(ValueError, match="`variables` must be among R, Q, F2, Eg, got 'E'"):
        mp.plot.curves(mp.solve(PROBLEM, TIMES), variables=["E"])
