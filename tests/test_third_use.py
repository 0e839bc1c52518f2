"""What people meet who come back, and what they are then told."""

import gc
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr

import manypass as mp
from manypass import cli
from manypass.data import stepping

RANDOM = np.random.default_rng(0)
PROBLEM = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.9, decay=0.8)
X = RANDOM.standard_normal((50, 3))
Y = X @ [1, 2, 3.0]


@pytest.mark.filterwarnings("error")
def test_data_are_found_while_any_equal_ones_are_in_memory():
    problem = mp.Problem(mp.Dataset(X, Y), "adaline", rate=0.1)
    found = mp.solve(problem, [1.0])
    mp.solve(mp.Problem(mp.Dataset(X, Y), "adaline", rate=0.2), [1.0])  # equal, and dropped
    gc.collect()
    assert mp.problem_of(found) == problem
    assert mp.problem_of(mp.solve(problem, [1.0])).data is problem.data
    swept = mp.sweep(mp.Grid(problem, rate=[0.1, 0.2], decay=[0.1, 0.2]), workers=1, progress=False)
    assert len(mp.plot.heatmap(swept, "F2").lines) == 1  # v_c


def test_data_that_nobody_has_asked_for_yet_are_found_too():
    found = mp.solve(mp.Problem(mp.Dataset(X + 1, Y), "adaline", rate=0.1), [1.0])
    gc.collect()
    with pytest.raises(ValueError, match="came from memory"):
        mp.problem_of(found)
    unnamed, named = mp.Dataset(X + 1, Y), mp.Dataset(X + 1, Y, names=["a", "b", "c"])
    assert mp.problem_of(found).data is unnamed
    found = mp.solve(mp.Problem(named, "adaline", rate=0.1), [1.0])
    assert mp.problem_of(found).data is named


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"test": (X, Y)}, r"`test` = \(array.* takes its test set as `X_test` and `y_test`"),
        ({"test": 0.25}, r"`test` = 0.25 is for files, read_dataset\(.*`X_test`"),
        ({"test": "test.csv"}, "`test` = 'test.csv' is for files"),
        ({"path": 3}, "`path` = 3 is for files, .* has no `path`"),
        ({"target": Y}, "`target` = array.* takes its targets as `y`"),
        ({"sep": ";"}, "`sep` = ';' is for files"),
    ],
)
def test_what_is_said_of_files_is_refused_of_arrays(given, told):
    with pytest.raises(ValueError, match=told):
        mp.Dataset(X, Y, **given)


KINDS = pytest.mark.parametrize("kind", ["nc", "csv", "json"])


def kept(result, path):
    """Return a result after it was saved and opened again."""
    mp.save(result, path)
    return mp.load(path)


@KINDS
@pytest.mark.parametrize(
    "labels",
    [
        pd.array(["a", "b"]),
        pd.Categorical(["a", "b"]),
        np.array(["a", "b"], np.dtypes.StringDType()),
        np.array(["a", "b"], object),
        pd.array([1, 2]),
        pd.array([1, None]),
        np.array([0.5, np.nan], object),
    ],
)
def test_what_pandas_holds_is_opened_again(tmp_path, kind, labels):
    found = mp.solve(PROBLEM, [1, 2]).assign_coords(mine=("t", labels))
    again = kept(found, tmp_path / f"x.{kind}")
    assert again.mine.dtype.kind in "UOif"
    assert again.identical(found)


@KINDS
def test_results_that_were_joined_under_texts_are_opened_again(tmp_path, kind):
    runs = [mp.solve(PROBLEM.replace(rate=rate), [1, 2]) for rate in (1.9, 0.5)]
    found = xr.concat(runs, pd.Index(["fast", "slow"], name="run"), combine_attrs="override")
    again = kept(found, tmp_path / f"x.{kind}")
    assert again.identical(found)
    assert again.sel(run="slow").R.values.tolist() == runs[1].R.values.tolist()


@pytest.mark.parametrize("kind", ["nc", "csv"])
@pytest.mark.parametrize("labels", [["a", np.nan], ["a", 1.5]])
def test_texts_beside_numbers_are_refused_where_they_would_be_others(tmp_path, kind, labels):
    found = mp.solve(PROBLEM, [1, 2]).assign_coords(mine=("t", np.array(labels, object)))
    with pytest.raises(ValueError, match=rf"variable 'mine' .* a \.{kind} file cannot hold"):
        mp.save(found, tmp_path / f"x.{kind}")


@KINDS
def test_arrays_without_a_name_are_saved(tmp_path, kind):
    found = mp.solve(PROBLEM, [1, 2])
    again = kept(found.to_array(), tmp_path / f"x.{kind}")
    assert again["values"].sel(variable="R").values.tolist() == found.R.values.tolist()
    alone = found.R.rename(None).assign_attrs(found.attrs)
    assert kept(alone, tmp_path / f"x.{kind}")["values"].values.tolist() == found.R.values.tolist()
    with pytest.raises(ValueError, match="`result` is called 't', as one of its coordinates"):
        mp.save(alone.rename("t"), tmp_path / f"x.{kind}")


@pytest.mark.parametrize("kind", ["nc", "csv"])
def test_attributes_that_would_come_back_as_texts_are_refused(tmp_path, kind):
    found = mp.solve(PROBLEM, [1, 2])
    with pytest.raises(ValueError, match=rf"attribute 'mine' that a \.{kind} file cannot hold"):
        mp.save(found.assign_attrs(mine={"a": 1}), tmp_path / f"x.{kind}")
    found = found.assign_attrs(mine='{"a": 1}')
    assert kept(found, tmp_path / f"x.{kind}").identical(found)


SWEPT = mp.sweep(
    mp.Grid(PROBLEM, rate=[0.5, 1.0, 1.5], decay=[0.1, 0.2]), workers=1, progress=False
)


@pytest.mark.parametrize(
    "result", [SWEPT[["Eg"]] * 2, SWEPT.drop_vars("error"), SWEPT.drop_attrs().drop_vars("error")]
)
def test_parts_of_a_sweep_are_drawn(result):
    assert mp.plot.heatmap(result).get_xlabel() == "$v$"
    assert len(mp.plot.lines(result).containers) == 2


def test_what_is_no_sweep_is_not_drawn():
    with pytest.raises(ValueError, match="`result` has no points"):
        mp.plot.lines(SWEPT[["Eg"]].isel(rate=[]))
    for other in (mp.solve(PROBLEM, [1, 2]), SWEPT.Eg, mp.steady_state(PROBLEM)):
        with pytest.raises(ValueError, match=r"must be a dataset from sweep\(\)"):
            mp.plot.lines(other)


def test_an_axis_that_was_left_out_takes_the_other_field():
    ax = mp.plot.heatmap(SWEPT, x="decay")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"$\lambda$", "$v$")
    ax = mp.plot.heatmap(SWEPT, y="rate")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"$\lambda$", "$v$")
    ax = mp.plot.lines(SWEPT, by="rate")
    assert (ax.get_xlabel(), len(ax.containers)) == (r"$\lambda$", 3)
    for draw, names in ((mp.plot.heatmap, "x y"), (mp.plot.lines, "x by")):
        one, other = names.split()
        with pytest.raises(ValueError, match=f"`{one}` and `{other}` must be .*'rate' twice"):
            draw(SWEPT, **{one: "rate", other: "rate"})
        with pytest.raises(ValueError, match=f"^`{other}` must be among rate, decay, got 'time'"):
            draw(SWEPT, **{other: "time"})
    with pytest.raises(ValueError, match="`by` must be left out"):
        mp.plot.lines(SWEPT.isel(rate=0), by="decay")


@pytest.mark.parametrize("t", [np.nan, [0.0, np.nan], float("nan")])
def test_no_schedule_is_asked_at_no_time(t):
    for made in (mp.schedules.Exponential(1, 1), mp.schedules.Steps([(0, 1.0), (2, 0.5)])):
        with pytest.raises(ValueError, match="`t` must be from 0 on, got nan"):
            made(t)


COMMITTEE = mp.Problem(
    mp.Teacher(np.inf, "regression", hidden=2),
    mp.Committee(2),
    rate=0.5,
    start=mp.Start(R=[[0.12, 0.02], [0, 0.1]], Q=[[0.25, 0], [0, 0.25]]),
)


def test_committees_start_where_a_chosen_time_was():
    found = mp.solve(COMMITTEE, [1, 2])
    assert mp.Start.of(found.sel(t=1)) == mp.Start.of(found.isel(t=[0]))
    assert mp.Start.of(found.sel(t=2)) == mp.Start.of(found)


def test_examples_that_are_learned_to_the_last_digit_take_no_more_steps(monkeypatch):
    looks, look = [], stepping._difference

    def counted(*states):
        looks.append(look(*states))
        return looks[-1]

    monkeypatch.setattr(stepping, "_difference", counted)
    found = mp.solve(mp.Problem(mp.Dataset(X, Y), "adaline", rate=0.1), [100, 300, 1e5, 1e9])
    assert len(looks) < 1000  # 3 for each further unit of time before
    assert found.F2.values[0] == pytest.approx(8.3723766e-06, rel=1e-4)
    assert found.F2.values[1] == pytest.approx(1.757054e-17, rel=1e-4)
    assert (found.F2.values >= 0).all()
    assert found.F2.values[2:].max() < 1e-24
    assert found.Q.values[-1] == pytest.approx(14.0)


def test_steps_that_turn_the_weights_of_few_columns_round_are_simulated():
    noisy = mp.Dataset(X, Y + RANDOM.standard_normal(50))
    problem = mp.Problem(noisy, "adaline", rate=0.5, decay=7.0)  # rate·decay > N = 3
    theory = mp.solve(problem, [1, 2])
    found = mp.solve(problem, [1, 2], mp.Simulation(samples=1000))
    assert (abs(found.F2 - theory.F2) < 4 * found.F2_se).all()
    assert (found.F2_se < 0.02 * found.F2).all()
    assert np.isfinite(mp.solve(problem.replace(sequence="reshuffled"), [1]).F2).all()
    advice = mp.advise(problem.replace(rate=100.0, decay=0.1), 2)
    assert advice.F2_test.sel(advice="start") > 1e9
    assert advice.F2_test_shuffled.sel(advice="all") < 3
    with pytest.raises(ValueError, match=r"`rate`·`decay` must stay below the N = 3 of `data`, go"):
        mp.solve(problem.replace(rate=1, decay=lambda t: 1 + t), [9], "simulation")


def test_the_best_time_of_a_curve_that_settles_is_the_earliest():
    with pytest.warns(UserWarning, match="Eg no longer falls after about t = 6"):
        found = mp.best(PROBLEM, over="time", progress=False)
    assert found.best_time == pytest.approx(6.2, rel=0.1)  # 866 before, for rounding
    assert found.best_Eg == pytest.approx(mp.steady_state(PROBLEM).Eg.item(), rel=2e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mp.best(PROBLEM.replace(rate=1.0, decay=0.0), over="time", progress=False)
    assert found.best_time == pytest.approx(5.006, rel=1e-3)  # a minimum, and it rises again


@pytest.mark.parametrize("over", ["decay", "schedule"])
def test_what_should_be_large_is_no_objective(over):
    with pytest.raises(ValueError, match=r"`objective` = 'R', .* should be large.*: take 'Eg'"):
        mp.best(PROBLEM, over=over, objective="R", at=3.0)


def test_a_plateau_that_ended_before_one_looked_is_not_known():
    with pytest.warns(UserWarning, match=r"`alpha` = inf ended before .* `times`, 60, when is not"):
        found = mp.specialization(COMMITTEE, [60, 80])
    assert np.isnan(found.time.item())
    assert np.isnan(found.time_se.item())
    different = COMMITTEE.replace(start=mp.Start(R=[[0.4, 0], [0, 0.4]], Q=[[0.25, 0], [0, 0.25]]))
    assert mp.specialization(different, [0, 60]).time.item() == 0.0


def test_networks_that_have_all_diverged_are_no_steady_state():
    problem = mp.Problem(mp.Teacher(1.0), mp.Adatron(), rate=50.0, decay=0.3)
    with pytest.raises(mp.NotSettledError, match=r"`rate` = 50 is too large, .* all 4 net") as told:
        mp.steady_state(problem, mp.Simulation(n=40, samples=4))
    assert told.value.result.diverged == 4


@pytest.mark.parametrize("force", [lambda x, y: np.log(x * y), lambda x, y: np.log(-x * y)])
def test_forces_that_are_infinite_where_learning_begins_are_refused(force):
    with pytest.raises(
        ValueError, match=r"its force is -inf at x = 0, target = -1, where learning"
    ):
        mp.solve(PROBLEM.replace(rule=mp.Rule(force)), [1.0], mp.Simulation(n=20, samples=2))


def test_batches_that_are_never_complete_are_told():
    method = mp.Simulation(n=60, samples=2, settle=2.0)
    problem = PROBLEM.replace(batch_size=1000)
    said = r"no batch is learned by t = 2: `batch_size` = 1000 takes t = 16\.67 at N = 60; take"
    with pytest.warns(UserWarning, match=said):
        mp.solve(problem, [1.0, 2.0], method)
    with pytest.raises(ValueError, match=r"`settle` = 2 waits for no step, 16.6667 each"):
        mp.steady_state(problem, method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mp.solve(problem, [0.0], method)
        mp.solve(problem, [0.0, 17.0], method)


@pytest.mark.parametrize("sequence", ["reshuffled", "fixed"])
def test_steady_states_of_long_epochs_are_told_where_they_have_not_settled(sequence):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))  # an epoch is 30 long, `settle` 20
    y = X @ [2, -1, 0, 0] + 0.3 * rng.standard_normal(120)
    problem = mp.Problem(mp.Dataset(X, y), "adaline", rate=0.02, sequence=sequence)
    with pytest.warns(UserWarning, match=r"`settle` = 20 is too short .* from t = 30 to 60, by"):
        mp.steady_state(problem, mp.Simulation(samples=4))


def test_examples_that_are_learned_often_are_sampled_by_other_threads(monkeypatch):
    """Compiled code in the main thread answers Ctrl-C by a SystemError; and few are quick."""
    from manypass.cavity import sampling

    seen, gaussian = [], sampling.gaussian

    def watched(*given):
        seen.append((threading.current_thread() is threading.main_thread(), given[2].y.size))
        return gaussian(*given)

    monkeypatch.setattr(sampling, "gaussian", watched)
    problem = mp.Problem(mp.Teacher(alpha=0.1), mp.Adaline(), rate=0.2, decay=0.1)
    mp.steady_state(problem, mp.Exact(accuracy=0.02))
    assert not any(main for main, _ in seen)
    assert min(count for _, count in seen) < sampling.FEW


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_law_of_inputs_has_no_unit(scale):
    law = mp.inputs_of(X * scale, Y / scale)
    usual = mp.inputs_of(X, Y)
    np.testing.assert_allclose(law.mu, usual.mu, rtol=1e-12)
    np.testing.assert_allclose(law.power, usual.power, rtol=1e-10)
    sparse = mp.inputs_of(sp.csr_array(X * scale), Y)
    np.testing.assert_allclose(sparse.mu, usual.mu, rtol=1e-12)
    assert np.mean(law.mu) == pytest.approx(1) == np.sum(law.power)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        (X * 1e200, Y, "`X` must be numbers up to 1e.50 in size, but column 0 is"),
        (X * 1e-200, Y, "`X` is not above 1e-50 everywhere: there is no law to find"),
        (X, 0 * Y, "`y` is zero everywhere"),
        (
            np.where(np.arange(150).reshape(50, 3) == 7, np.nan, X),
            Y,
            "column 1 is missing in row 2",
        ),
        (X, np.where(np.arange(50) == 4, np.nan, Y), r"`y` .* is missing \(nan\) in row 4"),
        (X, Y[1:], "`y` must have one entry for each row of `X`: 49 entries, 50 rows"),
    ],
)
def test_what_has_no_law_is_told_where(X, y, said):
    with pytest.raises(ValueError, match=said):
        mp.inputs_of(X, y)


def test_a_bare_test_table_has_no_named_target():
    frame = pd.DataFrame(X, columns=["a", "b", "y"])
    with pytest.raises(ValueError, match=r"column of `X_test`, got 'y': only a frame has named"):
        mp.Dataset(frame, "y", X[:, :2], Y)
    with pytest.raises(ValueError, match="`y_test` is given, but `y` = 'y' is a column of"):
        mp.Dataset(frame, "y", frame, Y)


@pytest.mark.parametrize("given", [{"momentum": 0.5}, {"batch_size": 3}])
def test_a_refused_schedule_is_the_one_that_was_given(given):
    problem = PROBLEM.replace(rate="cosine:1:0.1:3", sequence="fixed", **given)
    with pytest.raises(ValueError, match=r"schedule `rate` = cosine:1:0\.1:3 with"):
        mp.solve(problem, [1.0], mp.Exact())


def test_a_result_about_a_teacher_has_no_data():
    found = mp.solve(PROBLEM, [1.0])
    with pytest.raises(ValueError, match="`data`: this result is about a Teacher, not about data"):
        mp.problem_of(found, mp.Dataset(X, Y))


@pytest.mark.filterwarnings("error")
def test_a_complex_force_is_told_without_warnings_of_numpy():
    problem = PROBLEM.replace(rule=mp.Rule(lambda x, y: np.sqrt(x - y + 0j)))
    for method in (mp.Simulation(n=20, samples=2), mp.DMFT()):
        with pytest.raises(ValueError, match="must return a real number"):
            mp.solve(problem, [1.0], method)


FAILING = {
    "of a name": (lambda x, y: y - nowhere, "NameError: name 'nowhere'"),  # noqa: F821
    "of a call": (lambda x, y: y * np.heaviside(0.3 - x * y), "TypeError: heaviside"),
    "of zero": (lambda x, y: y / 0, "ZeroDivisionError"),
}
VERBS = {
    "dmft": lambda p: mp.solve(p, [1.0], mp.DMFT()),
    "simulation": lambda p: mp.solve(p, [1.0], mp.Simulation(n=20, samples=2)),
    "one pass": lambda p: mp.solve(p.replace(data=mp.Teacher(np.inf)), [1.0], mp.Exact()),
    "steady": mp.steady_state,
    "critical": mp.critical_rate,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", FAILING)
def test_forces_that_fail_are_told_by_every_verb(kind, verb):
    force, why = FAILING[kind]
    problem = mp.Problem(mp.Teacher(1.2), mp.Rule(force), rate=0.5, decay=0.1)
    told = rf"`force` of Rule\(.* fails at x = 0.25, target = 1.0: {why}"
    with pytest.raises(ValueError, match=told):
        VERBS[verb](problem)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("verb", VERBS)
def test_forces_that_are_no_number_somewhere_are_told_by_every_verb(verb):
    problem = mp.Problem(mp.Teacher(1.2), mp.Rule(lambda x, y: y - np.sqrt(x)), rate=0.5, decay=0.1)
    told = {
        "simulation": "`force` returned NaN on an example",
        "critical": r"no critical rate is known .* not finite at x = -5.999",
    }
    rest = r"not finite at x = -5.999.* use method Simulation.*, as long as no activation comes"
    with pytest.raises(ValueError, match=told.get(verb, rest)):
        VERBS[verb](problem)


def test_forces_without_numbers_are_told():
    problem = mp.Problem(mp.Teacher(np.inf), mp.Rule(lambda x, y: np.nan), rate=0.5)
    with pytest.raises(ValueError, match=r"is nan at x = 0.25, target = 1.0"):
        mp.solve(problem, [0.5])


def test_forces_that_single_precision_loses_are_refused():
    rule = mp.Rule(lambda x, y, s: s * (y - x), s=1e-30)
    problem = mp.Problem(mp.Teacher(1.2), rule, rate=0.5)
    with pytest.raises(ValueError, match=r"its force is 7e-30 at most: give .* `rate`; use method"):
        mp.solve(problem, [0.5], mp.DMFT())


@pytest.mark.filterwarnings("error")
def test_one_pass_of_huge_forces_diverges_in_silence():
    problem = mp.Problem(mp.Teacher(np.inf), mp.Rule(lambda x, y: 1e200 * (y - x)), rate=0.5)
    assert np.isinf(mp.solve(problem, [0.5, 1.0]).Q).all()


@pytest.mark.parametrize("force", [lambda x, y: (y - x) ** 3, lambda x, y: y - np.sinh(x)])
def test_forces_that_grow_faster_than_x_are_told(force):
    problem = mp.Problem(mp.Teacher(1.2), mp.Rule(force), rate=0.1, decay=0.1)
    with pytest.warns(UserWarning, match=r"grows faster than x.* method Simulation\(n="):
        mp.solve(problem, [0.1], mp.DMFT(samples=8000))
    with pytest.raises(ValueError, match=r"its force grows faster than x"):
        mp.critical_rate(problem)
    one_pass = problem.replace(data=mp.Teacher(np.inf))
    with warnings.catch_warnings():  # of fresh examples averages are what they are
        warnings.simplefilter("error")
        mp.solve(one_pass, [0.1])
        mp.solve(problem.replace(rule=mp.Huber(1.0)), [0.1], mp.DMFT(samples=8000))


@pytest.mark.parametrize("heat", [0.0, 0.1])
@pytest.mark.parametrize("batch", [0.0, 0.25])
@pytest.mark.physics
def test_windows_of_a_fixed_order_may_be_as_long_as_any(heat, batch):
    problem = mp.Problem(
        mp.Teacher(1.2),
        mp.Adaline(),
        rate=0.5,
        decay=0.1,
        sequence="fixed",
        temperature=heat,
        batch_share=batch,
    )
    short, long, longest = (mp.steady_state(problem, window=w) for w in (6e3, 1.2e4, 1.2e11))
    limit = float(longest.Q)
    still = mp.steady_state(problem.replace(temperature=0.0), window=1.2)  # once around the cycle
    assert limit == pytest.approx(float(still.Q), rel=1e-6)
    # What noise adds falls as one over the window
    assert float(short.Q) - limit == pytest.approx(2 * (float(long.Q) - limit), rel=2e-3, abs=1e-9)


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    frame = pd.DataFrame(X).assign(y=Y)
    frame.to_csv(tmp_path / "z.csv", index=False)
    data = mp.read_dataset("~/z.csv", "y")
    found = mp.solve(mp.Problem(data, "adaline", rate=0.1), [1.0])
    mp.save(found, "~/found.nc")
    assert (tmp_path / "found.nc").exists()
    assert mp.load("~/found.nc").identical(found)
    assert mp.problem_of(mp.load("~/found.nc")).data.p == 50
    (tmp_path / "p.toml").write_text(
        'rule = "adaline"\nrate = 0.1\n[data]\npath = "~/z.csv"\ntarget = "y"\n'
    )
    assert cli.main(["solve", "~/p.toml", "--times", "1", "--out=~/again.nc"]) is None
    assert np.array_equal(mp.load("~/again.nc").F2, found.F2)
