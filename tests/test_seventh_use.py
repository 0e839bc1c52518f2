"""What a seventh round of new users met."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import manypass as mp
from manypass import verbs
from manypass.cavity import accuracy
from manypass.cli import main

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


@pytest.mark.parametrize("rate", ["inverse:5:100", "cosine:1.95:2.71:0.1"])
def test_a_rate_that_moves_slowly_may_let_learning_diverge(rate):
    """What is left of the mean force has no digits any more, and panels of time shrank to none."""
    problem = mp.Problem(mp.Teacher(alpha=0.1), mp.Adaline(), rate=rate)
    found = mp.solve(problem, [0.1, 30.0], mp.Exact())
    assert np.isfinite(found.Q[0])
    assert np.isinf(found.Q[1])


def test_advice_on_what_cannot_be_learned_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 40)), rng.standard_normal(80)
    for targets, without in ((y, "weights of 0"), (np.sign(y), "weights of 0")):
        problem = mp.Problem(mp.Dataset(X, targets), mp.Adaline(), rate=0.1)
        with pytest.warns(UserWarning, match=f"the best that was found has .*{without}"):
            mp.advise(problem, passes=10)


def test_the_shell_says_that_any_rule_has_diverged(capsys):
    main(
        [
            "solve",
            "--rule",
            "adatron",
            "--alpha",
            "1.2",
            "--rate",
            "30",
            "--times",
            "1,9",
            "--samples",
            "8000",
        ]
    )
    assert "learning diverges: |J|² is infinite at t = " in capsys.readouterr().err


def test_the_steady_state_is_named_where_its_name_is_misspelt():
    with pytest.raises(ValueError, match="`at` must be 'steady' or a time, got 'Steady'"):
        mp.best(PROBLEM, over="rate", at="Steady")


def test_a_point_of_a_sweep_that_has_lost_its_value_is_no_other_problem():
    found = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.5]), times=[1.0], workers=1)
    assert mp.problem_of(found.isel(rate=0)).rate == 0.5
    assert mp.problem_of(found).rate == PROBLEM.rate
    for lost in (found.isel(rate=0, drop=True), found.rename(rate="v").sel(v=0.5)):
        with pytest.raises(ValueError, match="of a sweep over `rate` and says no longer of which"):
            mp.problem_of(lost)


def test_times_in_any_order_are_one_curve_and_no_times_are_none():
    found = mp.solve(PROBLEM, [1.0, 2.0, 3.0])
    ax = mp.plot.curves(found.isel(t=[2, 0, 1]), variables=["R"])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1.0, 2.0, 3.0])
    plt.close("all")
    with pytest.raises(ValueError, match="`results` must be curves in `t`, got one at no time"):
        mp.plot.curves(found.isel(t=slice(0, 0)))


def test_what_grows_beyond_measure_is_not_known_to_one_per_cent(monkeypatch):
    """Larger populations find larger forces: it was tried for minutes."""
    rounds = []
    whole = accuracy.populations
    monkeypatch.setattr(accuracy, "populations", lambda *a: rounds.append(a) or whole(*a))
    with pytest.warns(UserWarning, match="where it grows so far"):
        mp.solve(PROBLEM.replace(rate=4.0, decay=0.8), [0.5, 2.0], mp.DMFT())
    assert len(rounds) == 1


def test_activations_come_from_whole_results():
    found = mp.solve(PROBLEM, np.linspace(0, 2, 21), two_time=True)
    for part in (found.isel(s=slice(0, 5)), found.mean("s"), found.transpose()):
        with pytest.raises(ValueError, match="`source` must have C and G at all pairs"):
            mp.activations(PROBLEM, 2.0, samples=100, source=part)


def test_curves_of_units_may_be_transposed():
    data = mp.Teacher(2.0, "regression", hidden=2)
    start = mp.Start(R=[[0.2, 0.1], [0.0, 0.2]], Q=[[0.25, 0.0], [0.0, 0.25]])
    problem = mp.Problem(data, mp.Committee(2), rate=1.0, start=start)
    found = mp.solve(problem, [1.0, 2.0, 4.0], mp.Simulation(n=20, samples=2))
    drawn = [mp.plot.curves(each, variables=["R"]) for each in (found, found.transpose())]
    for one, other in zip(*(ax.lines for ax in drawn), strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    plt.close("all")


def test_a_force_that_is_nil_at_nought_for_classes_is_told():
    """F(0, ±1) = 0 is all that matters, not F(0, 0.4)."""
    window = mp.Rule(lambda x, y: np.where(abs(y - x) < 1, y - x, 0.0))
    with pytest.warns(UserWarning, match="stay at J = 0, where learning begins"):
        mp.solve(PROBLEM.replace(rule=window), [1.0], mp.Simulation(n=20, samples=2))


def test_rates_that_have_no_answer_are_told_by_a_search(monkeypatch):
    def refused(problem, *more, **settings):
        if problem.rate < 0.1:
            raise ValueError("examples are learned too often")
        return whole(problem, *more, **settings)

    whole = verbs.steady_state
    monkeypatch.setattr(verbs, "steady_state", refused)
    with pytest.warns(UserWarning, match="Eg is not known for rate from .* learned too often"):
        mp.best(PROBLEM, over={"rate": (0.01, 1.0)}, progress=False)


@pytest.mark.parametrize("interrupted", [True, False])
def test_ctrl_c_that_a_loading_module_takes_for_its_own_failure_is_one_line(interrupted):
    code = f"""
import signal
import manypass.cli
from manypass.__main__ import main
def run():
    try:
        if {interrupted}:
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    raise ImportError("please read this")
manypass.cli.main = run
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if interrupted:
        assert (done.returncode, done.stderr) == (130, "manypass: interrupted\n")
    else:
        assert "please read this" in done.stderr


@pytest.mark.parametrize(("order", "share"), [("fixed", 1e-3), ("reshuffled", 1e-6)])
def test_more_batches_than_can_be_followed_are_refused(order, share):
    problem = PROBLEM.replace(sequence=order, batch_share=share)
    for verb in (lambda: mp.solve(problem, [1.0], mp.Exact()), lambda: mp.steady_state(problem)):
        with pytest.raises(ValueError, match=r"`batch_share` = .* makes .* batches an epoch"):
            verb()


@pytest.mark.parametrize("law", [mp.Blocks([1e-9, 1e9]), mp.Eigenvalues([1e-12, 1, 1e6])])
def test_eigenvalues_too_far_apart_are_told(law):
    problem = PROBLEM.replace(data=mp.Teacher(1.2, inputs=law))
    with pytest.raises(ValueError, match=r"`inputs` have eigenvalues from .* too far apart"):
        mp.solve(problem, [1.0])


def test_columns_that_follow_from_others_are_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    with pytest.warns(UserWarning, match=r"`X` has 8 columns, but they vary along 4 directions"):
        assert len(mp.inputs_of(np.c_[X, X], X[:, 0]).mu) == 4


def test_numbers_as_texts_are_told_before_they_are_categories():
    numbers = [0.1, 0.2, 0.35, 0.7]
    frame = pd.DataFrame({"a": list(map(str, numbers)), "b": [1.0, 2, 3, 5], "y": numbers})
    with pytest.warns(UserWarning, match="`one_hot` makes categories of a, which holds numbers as"):
        mp.Dataset(frame, "y", one_hot=True)
    with pytest.raises(ValueError, match=r"in column 'a'.*: these are numbers as texts, make num"):
        mp.Dataset(frame, "y")
