"""What a reader of the README met: parts of results, searches, files that others have changed."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import manypass as mp
from manypass.cli import main
from manypass.layers.errors import generalization
from manypass.layers.net import Net

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.1)
LAYERS = mp.Problem(
    mp.Teacher(alpha=np.inf, hidden=2, task="regression"),
    mp.Committee(hidden=2),
    rate=1.0,
    start=mp.Start(R=[[0.1, 0.0], [0.0, 0.1]], Q=[[0.25, 0.0], [0.0, 0.25]]),
)
MANY_DATES = [f"2020-{day}" for day in range(60)]


def test_one_time_of_a_result_is_a_point():
    found = mp.solve(PROBLEM, [1.0, 2.0, 3.0])
    ax = mp.plot.curves(found.sel(t=2.0), variables=["Eg"])
    point = ax.containers[0].lines[0]
    np.testing.assert_allclose(point.get_xydata(), [[2.0, float(found.Eg[1])]])
    plt.close("all")


@pytest.mark.parametrize(
    "part",
    [
        lambda found: found.isel(unit=0),
        lambda found: found.isel(teacher=0),
        lambda found: found.mean("unit"),
    ],
)
def test_parts_of_a_committee_are_not_drawn_nor_begun_with_as_a_whole(part):
    found = mp.solve(LAYERS, [1.0, 2.0])
    with pytest.raises(ValueError, match="`results` of a Committee must hold all of its units"):
        mp.plot.curves(part(found))


def test_a_start_is_that_of_all_units():
    found = mp.solve(LAYERS, [1.0, 2.0])
    assert tuple(map(tuple, found.R.values[-1].tolist())) == mp.Start.of(found).R
    with pytest.raises(ValueError, match="`result` must hold all units of a Committee"):
        mp.Start.of(found.isel(unit=0))


def test_best_takes_nothing_that_it_varies():
    with pytest.raises(ValueError, match="leave out `window`, got 3"):
        mp.best(PROBLEM, "window", window=3)
    with pytest.raises(ValueError, match="`over` varies the time: leave out `at` = 10"):
        mp.best(PROBLEM, "time", at=10)


def test_best_of_a_committee_makes_errors_small_and_no_tables():
    with pytest.raises(ValueError, match="`objective` must be among F2, Et, Eg, got 'Q'"):
        mp.best(LAYERS, "rate", at=2, objective="Q", progress=False)
    with pytest.raises(ValueError, match="`objective` must be among F2, Et, Eg, got 'Q'"):
        mp.best(LAYERS, "schedule", at=2, objective="Q", progress=False)


@pytest.mark.physics
def test_averaged_weights_of_a_committee():
    """Over a window R̄ = ⟨R⟩ and Q̄ = ⟨C⟩: the error of what is averaged, by hand."""
    noisy = mp.Teacher(alpha=np.inf, hidden=2, task="regression", noise=0.7)
    layers = LAYERS.replace(data=noisy, start=mp.Start(R=np.eye(2) * 0.5, Q=np.eye(2)))
    found = mp.best(layers, "schedule", at=8, progress=False).sel(schedule="averaged")
    window = float(found.window)
    assert window > 0
    problem, t = (
        layers.replace(rate=found.best_rate),
        np.linspace(8 - window, 8, round(8 * window) + 1),
    )
    curves = mp.solve(problem, t, two_time=True)
    w = np.ones(t.size)
    w[[0, -1]] = 0.5
    w /= w.sum()
    Q = np.einsum("i,j,ijkl->kl", w, w, curves.C.values)
    R, a = np.tensordot(w, curves.R.values, 1), np.tensordot(w, curves.a.values, 1)
    assert float(found.best_Eg) == pytest.approx(float(generalization(Net.of(problem), R, Q, a)))
    last = float(curves.Eg[-1])
    assert float(found.best_Eg) < last


@pytest.mark.physics
def test_rules_whose_two_times_are_not_known_are_not_averaged():
    adatron = mp.Problem(mp.Teacher(alpha=np.inf), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    found = mp.best(adatron, "schedule", at=1, progress=False)
    assert "averaged" not in found.schedule
    assert (found.best_Eg > 0).all()


def test_what_is_best_is_a_problem():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # at an end of the range
        assert mp.problem_of(mp.best(PROBLEM, "alpha")).data.alpha == 100
    found = mp.best(PROBLEM, "decay")
    assert mp.problem_of(found) == PROBLEM.replace(decay=float(found.best_decay))
    kinds = mp.best(PROBLEM, "schedule", at=3, progress=False)
    for kind in ("constant", "cosine"):
        one = kinds.sel(schedule=kind)
        assert mp.problem_of(one) == PROBLEM.replace(rate=one.best_rate)
        rate = mp.problem_of(one).rate
        assert isinstance(rate, float if kind == "constant" else mp.schedules.Cosine)


def test_files_that_others_have_changed(tmp_path):
    found, path = mp.solve(PROBLEM, [1.0, 2.0]), tmp_path / "x.csv"
    mp.save(found, path)
    text = path.read_text()
    path.write_text(text + "\n\n")  # an editor's
    assert mp.load(path).identical(found)
    path.write_text(text.replace('"', '""'))  # a spreadsheet's
    with pytest.raises(ValueError, match=r"its line '# layout = ...' is not what save\(\) wrote"):
        mp.load(path)


def test_the_folder_of_a_sweep_is_told(tmp_path):
    mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]), out=tmp_path / "s", workers=1, progress=False)
    with pytest.raises(
        ValueError, match=r"is a folder, not a file of a result: its sweep is '.*nc"
    ):
        mp.load(tmp_path / "s")
    with pytest.raises(ValueError, match=r"is a folder, not a file of a result$"):
        mp.load(tmp_path)


@pytest.mark.parametrize("method", [mp.Simulation(n=20, samples=2), mp.DMFT()])
def test_networks_that_never_learn_are_told_by_every_method(method):
    still = PROBLEM.replace(rule=mp.Adatron(kappa=0.0))
    with pytest.warns(UserWarning, match="never learns from J = 0"):
        assert not mp.solve(still, [1.0], method).Q.any()
    with pytest.warns(UserWarning, match="never learns from J = 0"):
        assert not mp.steady_state(still, method).Q


def test_columns_with_a_text_for_every_row():
    pd = pytest.importorskip("pandas")
    held = {"day": MANY_DATES, "kind": list("abc") * 20, "x": np.arange(60.0)}
    y = np.sin(np.arange(60.0))
    with pytest.warns(UserWarning, match="`one_hot` makes a column of every text of day: 60"):
        mp.Dataset(pd.DataFrame(held), y, one_hot=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mp.Dataset(pd.DataFrame(held), y, one_hot=["day", "kind"])  # as it was asked for
        assert mp.Dataset(pd.DataFrame(held), y, one_hot=True, drop=["day"]).n == 4


def test_no_method_is_named_that_nobody_asked_for():
    problem = LAYERS.replace(data=mp.Teacher(alpha=2.0, hidden=2, task="regression"), decay=0.1)
    with pytest.raises(ValueError, match=r"^no method has the steady state of `rule` = Committee"):
        mp.steady_state(problem)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("solve --alpha 1.2 --rate 1 --times 1 2 3", "without blanks, such as --times 1,2,3"),
        ("best --alpha 1.2 --over decay=", "got 'decay=' (none follow the =)"),
        (
            "best --alpha 1.2 --rate 1 --over rate --objective Et",
            "use --method dmft or --method exact --accuracy 1e-2",
        ),
        ("best --alpha 1.2 --rate 1 --over time --at 10", "leave out --at"),
        ("best --alpha 1.2 --rate 1 --over decay --objective eg", "did you mean 'Eg'?"),
        ("solve --alpha 1.2 --rate 1 --times 1 2", "several numbers are one word"),
    ],
)
def test_lines_of_the_shell(command, words, capsys):
    with pytest.raises(SystemExit):
        main(command.split())
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_plan_sweeps_what_data_hold_by_their_own_names(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text("rate = 1.0\ndecay = 0.1\n[sweep]\ndata = [{ alpha = 1.2 }, { alpha = 2.0 }]\n")
    with pytest.raises(SystemExit):
        main(["sweep", str(plan), "--out", str(tmp_path / "s")])
    assert "is swept by its own name, such as alpha = [1.0, 2.0]" in capsys.readouterr().err


def test_lines_of_what_is_best_are_numbers():
    found = mp.best(PROBLEM, "schedule", at=3, progress=False)
    with pytest.raises(ValueError, match=r"`variable` must be .* got 'Eg'; of best\(...\) it is"):
        mp.plot.lines(found)
    with pytest.raises(ValueError, match="`variable` must hold numbers, best_rate holds texts"):
        mp.plot.lines(found, "best_rate")
    ax = mp.plot.lines(found, "best_Eg")
    drawn = np.asarray(ax.containers[0].lines[0].get_ydata(), float)
    np.testing.assert_allclose(drawn, found.best_Eg.values)
    plt.close("all")
