"""Pictures: what is drawn is what was computed."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

import manypass as mp

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
TIMES = np.linspace(0, 4, 9)


def as_simulation(result):
    data = result.assign(F2_se=0 * result.F2 + 0.1)
    data.attrs["method"] = json.dumps({"name": "Simulation"})
    return data


def test_theory_is_lines_and_simulation_is_markers():
    theory = mp.solve(PROBLEM, TIMES)
    ax = mp.plot.curves(theory, as_simulation(theory), variables=["R"])
    lines = [line for line in ax.lines if line.get_linestyle() == "-"]
    np.testing.assert_array_equal(lines[0].get_ydata(), theory.R)
    assert len(ax.containers) == 1  # markers
    assert words(ax) == ["$R(t)$", "exact theory", "simulation"]
    by_word = dict(zip(words(ax), ax.get_legend().legend_handles, strict=True))
    assert (by_word["exact theory"].get_linestyle(), by_word["exact theory"].get_marker()) == (
        "-",
        "None",
    )
    assert by_word["simulation"].get_marker() == "o"
    assert words(mp.plot.curves(theory, variables=["R"])) == ["$R(t)$"]  # nothing to tell apart


@pytest.mark.parametrize(
    ("variables", "label"),
    [
        (["Eg"], "$E_g$"),
        (["R", "F2"], "order parameter"),
        (None, "order parameters and errors"),
    ],
)
def test_the_vertical_axis_says_what_it_shows(variables, label):
    assert mp.plot.curves(mp.solve(PROBLEM, TIMES), variables=variables).get_ylabel() == label


def test_the_key_says_what_tells_results_apart():
    theory, slow = mp.solve(PROBLEM, TIMES), mp.solve(PROBLEM.replace(rate=1.0), TIMES)
    ax = mp.plot.curves(theory, slow, as_simulation(slow), variables=["R"])
    assert words(ax)[1:] == ["$v$ = 1.9, exact theory", "$v$ = 1, exact theory",
                             "$v$ = 1, simulation"]  # fmt: skip
    assert words(mp.plot.curves(theory, slow, variables=["R"]))[1:] == ["$v$ = 1.9", "$v$ = 1"]


def test_a_legend_covers_no_curve():
    grid = mp.Grid(PROBLEM, rate=[0.5, 1.5, 2.5], decay=[0.1, 0.4, 1.6, 3.0])
    X = np.random.default_rng(0).standard_normal((30, 3))
    given = PROBLEM.replace(data=mp.Dataset(X, -X[:, 0], task="regression"), rate=0.1)
    theory, data = mp.solve(PROBLEM, TIMES), mp.solve(given, TIMES)
    with ThreadPoolExecutor(1) as one:
        swept = mp.sweep(grid, executor=one)
    for ax in (
        mp.plot.lines(swept, x="rate", by="decay"),
        mp.plot.curves(theory, as_simulation(theory)),
        mp.plot.curves(data, as_simulation(data)),  # with passes above
    ):
        ax.figure.draw_without_rendering()
        legend = ax.get_legend().get_window_extent()
        tops = [a.get_tightbbox().y1 for a in (ax, *ax.child_axes) if a is not ax]
        assert legend.y0 >= max([ax.get_window_extent().y1, *tops])
        assert legend.y1 <= ax.figure.bbox.y1


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_theories_differ_by_line_style_and_symbols_by_colour():
    ax = mp.plot.curves(mp.solve(PROBLEM, TIMES), mp.solve(PROBLEM.replace(rate=1.0), TIMES))
    styles = {line.get_linestyle() for line in ax.lines}
    colours = {line.get_color() for line in ax.lines if len(line.get_xdata())}
    assert styles == {"-", "--"}
    assert len(colours) == 4


def test_draws_into_given_axes_and_simulation_alone():
    ax = mp.plot.curves(as_simulation(mp.solve(PROBLEM, TIMES)), variables=["Q", "R"])
    same = mp.plot.curves(mp.solve(PROBLEM, TIMES), ax=ax, variables=["R"])
    assert same is ax
    assert len(ax.get_legend().get_texts()) == 2


def test_the_rate_against_time_is_a_panel_under_the_curves():
    moving = PROBLEM.replace(rate="steps:0:1.5:2:0.3")
    theory, slow = mp.solve(moving, TIMES), mp.solve(PROBLEM.replace(rate=0.5), TIMES)
    ax = mp.plot.curves(theory, as_simulation(theory), slow, variables=["Eg"], rate=True)
    top, panel = ax.figure.axes
    assert top is ax
    assert (ax.get_xlabel(), panel.get_xlabel(), panel.get_ylabel()) == ("", "$t$", "$v(t)$")
    steps, flat = panel.lines  # one line for theory and simulation of one problem
    at = dict(zip(steps.get_xdata(), steps.get_ydata(), strict=True))
    assert (at[0.0], at[np.nextafter(2, 0)], at[2.0], at[4.0]) == (1.5, 1.5, 0.3, 0.3)
    assert (flat.get_linestyle(), set(flat.get_ydata())) == ("--", {0.5})
    ax.set_xlim(0, 3)
    assert panel.get_xlim() == (0, 3)
    mp.plot.curves(slow, rate=True, ax=ax)
    assert ax.figure.axes == [ax, panel]  # the same panel again
    ax.figure.draw_without_rendering()
    assert panel.get_tightbbox().y1 < ax.get_window_extent().y0

    figure = mp.plot.overview(mp.solve(moving.replace(decay="warmup:1:0.8"), TIMES))
    assert len(figure.axes) == 4  # where the rate moves it is shown
    assert words(figure.axes[2]) == ["$v$", r"$\lambda$"]
    assert len(mp.plot.overview(theory, rate=False).axes) == len(mp.plot.overview(slow).axes) == 2
    placed = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    mp.plot.curves(theory, rate=True, ax=placed)
    assert placed.get_position().y0 > 0.2
    own = theory.assign_attrs(problem=theory.problem.replace("steps:0:1.5:2:0.3", "function:f"))
    assert len(mp.plot.overview(own).axes) == 2
    with pytest.raises(ValueError, match=r"`rate` cannot be drawn: .* a function of one's own"):
        mp.plot.curves(own, rate=True)
    with pytest.raises(ValueError, match="`rate` must be True or False, got 1"):
        mp.plot.curves(own, rate=1)


def test_starts_batches_and_momentum_tell_results_apart():
    started = PROBLEM.replace(start=mp.Start(R=0.5, Q=1), momentum=0.5)
    ax = mp.plot.curves(mp.solve(PROBLEM, TIMES), mp.solve(started, TIMES), variables=["R"])
    assert words(ax)[1:] == ["momentum = 0, start = 0", "momentum = 0.5, start = R 0.5, Q 1"]


def test_curves_of_a_sweep_are_drawn_point_by_point():
    with ThreadPoolExecutor(2) as pool:
        found = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]), times=TIMES, executor=pool)
        alone = mp.sweep(mp.Grid(PROBLEM, rate=[0.5]), "exact", times=TIMES, executor=pool)
        methods = mp.Grid(PROBLEM, method=["exact", mp.Simulation(n=20, samples=2)])
        both = mp.sweep(methods, times=TIMES, executor=pool)
    one, other = found.sel(rate=0.5), found.sel(rate=1.0)
    ax = mp.plot.curves(one, other, variables=["Eg"])
    assert (ax.lines[1].get_ydata() == other.Eg.values).all()
    assert words(ax)[-2:] == ["$v$ = 0.5", "$v$ = 1"]
    assert (mp.plot.curves(alone).lines[0].get_ydata() == one.R.values).all()
    assert len(mp.plot.overview(one).axes) == 2
    ax = mp.plot.curves(both.isel(method=0), both.isel(method=1), variables=["Eg"])
    assert words(ax)[-2:] == ["exact theory", "simulation"]
    with pytest.raises(ValueError, match=r"`results` must be curves in `t`, got one on rate too"):
        mp.plot.curves(found)
    with pytest.raises(ValueError, match=r"got one on rate too: choose by result.sel"):
        mp.plot.overview(found)


def test_one_time_is_drawn_as_a_mark():
    sampled = mp.solve(PROBLEM.replace(rule=mp.Adatron()), [1.0], mp.DMFT(dt=0.25, samples=2_000))
    for result in (mp.solve(PROBLEM, [1.0]), sampled):
        marks = mp.plot.curves(result, variables=["R"]).lines
        (mark,) = [line for line in marks if line.get_marker() not in ("None", "|")]
        assert mark.get_ydata().tolist() == result.R.values.tolist()


def test_a_short_logarithmic_axis_has_plain_numbers_that_do_not_meet():
    found = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0, 2.0]), times=[1.0, 2.0], workers=1)
    longer = mp.sweep(mp.Grid(PROBLEM, rate=np.geomspace(0.5, 2, 21)), times=[1.0], workers=1)
    for ax in (mp.plot.heatmap(found, "Eg"), mp.plot.lines(longer, "Eg")):
        ax.figure.canvas.draw()
        assert ax.get_xscale() == "log"
        shown = [tick for tick in ax.get_xticklabels(which="both") if tick.get_text()]
        assert 3 <= len(shown) <= 5
        assert [float(tick.get_text()) for tick in (shown[0], shown[-1])] == [0.5, 2.0]
        boxes = [tick.get_window_extent() for tick in shown]
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("passes", [[1, 2, 4, 8], [1, 2, 4, 8, 16, 32, 64], [1, 10, 100, 1000]])
def test_numbers_of_passes_do_not_meet(passes):
    problem = mp.Problem(mp.Teacher(1.0, "regression", 0.1), mp.Adaline(), rate=0.5, decay=0.01)
    ax = mp.plot.worth(mp.effective_data(problem, passes))
    ax.figure.canvas.draw()
    for labels, low, high in ((ax.get_xticklabels, "x0", "x1"), (ax.get_yticklabels, "y0", "y1")):
        shown = [tick for tick in labels(which="both") if tick.get_text()]
        boxes = [tick.get_window_extent() for tick in shown]
        assert len(shown) >= 3
        assert all(getattr(a, high) < getattr(b, low) for a, b in pairwise(boxes))


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture_is_the_same_file_again(tmp_path, ending):
    for name in "ab":
        figure = mp.plot.overview(mp.solve(PROBLEM, TIMES))
        mp.plot.save_figure(figure, tmp_path / f"{name}.{ending}")
    content = (tmp_path / f"a.{ending}").read_bytes()
    assert content == (tmp_path / f"b.{ending}").read_bytes()
    assert ending != "svg" or b"<text" in content  # not outlines of letters


def test_bad_input(tmp_path):
    result = mp.solve(PROBLEM, TIMES)
    with pytest.raises(ValueError, match=r"`variables` must be among R, Q, F2, Eg, got \[\]"):
        mp.plot.curves(result, variables=[])
    with pytest.raises(ValueError, match="`ax` must be matplotlib Axes, got 5"):
        mp.plot.curves(result, ax=5)
    with pytest.raises(ValueError, match="`results` must be datasets from solve"):
        mp.plot.overview(None)
    with pytest.raises(ValueError, match="`figure` must be a matplotlib Figure, got None"):
        mp.plot.save_figure(None, tmp_path / "p.png")
    with pytest.raises(ValueError, match="`path` must be the name of a file, got None"):
        mp.plot.save_figure(mp.plot.overview(result), None)
    with pytest.raises(ValueError, match="`results`"):
        mp.plot.curves()
    with pytest.raises(ValueError, match="with curves in `t`, got"):
        mp.plot.curves(mp.steady_state(PROBLEM))
    with pytest.raises(ValueError, match="`variables` must be among R, Q, F2, Eg, got 'E'"):
        mp.plot.curves(mp.solve(PROBLEM, TIMES), variables=["E"])


@pytest.mark.parametrize("extra", [{}, {"decay": [0.1]}])
def test_lines_of_a_sweep_have_their_bars_whatever_has_one_value(extra):
    problem = mp.Problem(mp.Teacher(1.2), mp.Adatron(1.0), rate=1.0, decay=0.1)
    grid = mp.Grid(problem, rate=[0.5, 1.0, 1.5], **extra)
    found = mp.sweep(grid, mp.Simulation(n=20, samples=3), times=[1.0], workers=1, progress=False)
    by = {"by": "decay"} if extra else {}
    for ax in (mp.plot.lines(found), mp.plot.lines(found.isel(t=0), **by)):
        (bars,) = ax.containers[0].lines[2]
        low, high = np.array(bars.get_segments())[:, :, 1].T
        np.testing.assert_allclose((high - low) / 2, found.Eg_se.values.ravel())
    assert len(ax.get_legend_handles_labels()[1]) == len(by)


@pytest.mark.parametrize("broken", ["junk", 5, None, "[" * 100_000, '{"data": {}, "rule": 1}'])
@pytest.mark.parametrize("attribute", ["problem", "method"])
def test_a_broken_description_is_not_drawn(broken, attribute):
    result = mp.solve(PROBLEM, TIMES).assign_attrs({attribute: broken})
    for draw in (mp.plot.curves, mp.plot.overview):
        if attribute == "method" and "data" in str(broken):
            draw(result)  # a table is what a method may be
            continue
        with pytest.raises(ValueError, match=f"the attribute '{attribute}' of `result`"):
            draw(result)


def test_only_real_numbers_are_drawn():
    result = mp.solve(PROBLEM, TIMES)
    for odd in (result * 1j, result.astype(str)):
        with pytest.raises(ValueError, match="`R` of a result must be real numbers, got"):
            mp.plot.curves(odd)


def test_activations_of_no_or_one_example_are_told():
    seen = mp.activations(PROBLEM, 1.0, samples=100)
    for few in (seen.where(seen.learned > 1e3, drop=True), seen.isel(example=slice(1))):
        with pytest.raises(ValueError, match=r"`results` must hold examples with different x"):
            mp.plot.activations(few)


def test_selections_that_hold_nothing_are_told():
    swept = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]), executor=ThreadPoolExecutor(1))
    for draw in (mp.plot.heatmap, mp.plot.lines):
        with pytest.raises(ValueError, match="`result` has no points"):
            draw(swept.sel(rate=slice(5, 9)), "Eg")
    worth = mp.effective_data(PROBLEM.replace(rate=0.5), [1, 2, 4])
    for wrong in (worth.isel(passes=0), worth.isel(passes=[]), worth.drop_vars("fit")):
        with pytest.raises(ValueError, match="`found` must"):
            mp.plot.worth(wrong)
    seen = mp.activations(PROBLEM, 1.0, samples=10)
    with pytest.raises(ValueError, match="with different x"):
        mp.plot.activations(seen.isel(example=0))
    with pytest.raises(ValueError, match="`mode` must be 'online' to ask what passes are worth"):
        mp.effective_data(PROBLEM.replace(mode="batch"), [1, 2, 4])
