"""Sweeps: grids, one dataset, and what is kept, reused, reported and skipped."""

import json
import multiprocessing
import pickle
import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

import manypass as mp
from manypass.cli import main
from manypass.sweeps import pools, searching
from manypass.sweeps.points import Point, opened, seal, unseal
from manypass.sweeps.run import closing_table

PROBLEM = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
ON_DATA = PROBLEM.replace(data=mp.Dataset([[1.0, 0.5], [0.3, 2.0], [0.7, 0.1]], [1.0, -1.0, 1.0]))
GENTLE = ON_DATA.replace(rate=0.01)


def shut():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    return pool


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_a_product_of_fields_is_a_dataset_on_them(threads):
    rates, decays = [0.5, 1.0, 2.0], np.array([0.2, 0.8])
    found = mp.sweep(mp.Grid(PROBLEM, rate=rates, decay=decays), executor=threads)
    assert found.Eg.dims == ("rate", "decay")
    assert found.rate.values.tolist() == rates
    for v in rates:
        for lam in decays:
            alone = mp.steady_state(PROBLEM.replace(rate=v, decay=lam))
            assert found.sel(rate=v, decay=lam).F2.item() == alone.F2.item()
    assert (found.error == "").all()
    assert found.Eg.attrs["long_name"].startswith("generalization error")
    assert mp.problem_of(found) == PROBLEM


def test_fields_of_method_rule_and_window_and_fields_that_change_together(threads):
    grid = mp.Grid(PROBLEM, {("alpha", "decay"): [(1.0, 0.1), (2.0, 0.2)]}, window=[0.0, 5.0])
    found = mp.sweep(grid, executor=threads)
    assert found.Eg.dims == ("alpha", "window")
    assert found.decay.dims == ("alpha",)
    one = mp.steady_state(PROBLEM.replace(alpha=2.0, decay=0.2), window=5.0)
    assert found.Eg[1, 1].item() == one.Eg.item()

    adatron = PROBLEM.replace(rule=mp.Adatron(kappa=1.0), rate=0.5)
    grid = mp.Grid(adatron, kappa=[0.5, 1.0], n=[50, 100], seed=range(3))
    found = mp.sweep(grid, mp.Simulation(samples=5), times=[1.0, 2.0], executor=threads)
    assert found.R.dims == ("kappa", "n", "seed", "t")
    one = mp.solve(
        adatron.replace(rule=mp.Adatron(kappa=0.5)),
        [1.0, 2.0],
        mp.Simulation(n=100, samples=5, seed=2),
    )
    assert found.R_se[0, 1, 2].values.tolist() == one.R_se.values.tolist()

    rules = [mp.Adaline(), mp.Hebbian()]
    methods = [mp.Exact(), mp.Simulation(n=50, samples=4)]
    grid = mp.Grid(PROBLEM.replace(rate=0.5), rule=rules, method=methods)
    found = mp.sweep(grid, times=[1.0], two_time=True, executor=threads)
    assert found.C.dims == ("rule", "method", "t", "s")
    assert found.rule.values.tolist() == ["Adaline()", "Hebbian()"]
    assert np.isnan(found.R_se[0, 0]).all()  # exact: no standard error
    assert np.isfinite(found.R_se[0, 1]).all()


def test_a_point_of_a_sweep_answers_the_problem_with_its_values(threads, tmp_path):
    rules, starts = ["adaline", mp.Adatron(2.0)], [None, mp.Start(0.5, 1.0)]
    rates, laws = ["cosine:1:0.1:3", 1.0], ["isotropic", mp.Blocks([1.0, 2.0])]
    together = {("rule", "start", "rate", "inputs"): zip(rules, starts, rates, laws, strict=True)}
    grid = mp.Grid(PROBLEM, together, alpha=[1.0, 2.0], n=[40])
    found = mp.sweep(grid, mp.Simulation(samples=2), times=[1.0], executor=threads)
    mp.save(found, tmp_path / "x.nc")
    for sweep in (found, mp.load(tmp_path / "x.nc")):
        for i, rule in enumerate(["adaline", "Adatron(kappa=2.0)"]):
            asked = PROBLEM.replace(rule=rules[i], start=starts[i], rate=rates[i], inputs=laws[i])
            point = sweep.sel(rule=rule, alpha=2.0)
            assert mp.problem_of(point) == asked.replace(alpha=2.0)
            assert mp.problem_of(sweep.sel(rule=rule)) == asked  # several alphas are left
    own = [lambda t: 1.0, lambda t: 2.0]
    found = mp.sweep(mp.Grid(PROBLEM, rate=own), times=[1.0], executor=threads)
    assert mp.problem_of(found.isel(rate=1), rate=own[1]) == PROBLEM.replace(rate=own[1])


def test_one_bad_point_has_its_reason_and_the_others_their_answer(threads, tmp_path):
    steps = [(rate, "online", "replacement") for rate in (1.0, 3.2, 4.0)]
    steps.append((5.0, "batch", "fixed"))  # each is a value, together they make no problem
    grid = mp.Grid(PROBLEM, {("rate", "mode", "sequence"): steps})
    found = mp.sweep(grid, executor=threads, out=tmp_path)
    assert np.isfinite(found.Eg[0])
    assert np.isnan(found.Eg[1:]).all()
    assert "v_c = 3.09178" in found.error.values[1]
    assert found.error.values[3].startswith("`mode` = 'batch' is the limit")
    table = closing_table(mp.load(tmp_path / "sweep.nc"))
    assert table[0] == "3 of 4 points have no answer:"
    assert table[1].startswith("  2 such as rate = 3.2: no steady state")


def test_a_rule_without_a_swept_parameter_is_named(threads):
    grid = mp.Grid(PROBLEM, rule=[mp.Hebbian(), mp.Adatron()], kappa=[1.0])
    found = mp.sweep(grid, mp.Simulation(n=20, samples=2), times=[1.0], executor=threads)
    reasons = found.error.values.ravel().tolist()
    assert re.match(r"`rule` Hebbian\(\) has no `kappa`: .* rule=\[Adatron\(kappa=", reasons[0])
    assert reasons[1] == ""


def test_a_sweep_without_any_answer_says_so(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    text = "rule = 'adaline'\ndecay = 0.8\ndata = { alpha = 1.2 }\n"
    plan.write_text(f"{text}[sweep]\nrate = [4.0, 5.0]\n")
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(plan), "--out", str(tmp_path / "out"), "--workers", "1"])
    assert stop.value.code == 1
    assert "no point has an answer" in capsys.readouterr().err
    found = mp.load(tmp_path / "out" / "sweep.nc")
    for draw in (mp.plot.lines, mp.plot.heatmap):
        with pytest.raises(
            ValueError, match=r"`result` has no point with an answer: .*no steady state"
        ):
            draw(found, "Eg")


def test_only_what_is_missing_is_computed(threads, tmp_path):
    first = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0, 3.2]), executor=threads, out=tmp_path)
    ages = {p: p.stat().st_mtime_ns for p in (tmp_path / "points").iterdir()}
    assert len(ages) == 3  # a refusal is an answer too
    again = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0, 3.2]), executor=threads, out=tmp_path)
    xr.testing.assert_identical(first, again)
    changed = mp.Grid(PROBLEM, rate=[1.0, 2.0], decay=[0.8, 0.4])
    other = mp.sweep(changed, mp.Exact(), executor=threads, out=tmp_path)  # what "auto" stood for
    assert other.Eg[0, 0].item() == first.Eg[1].item()
    now = {p: p.stat().st_mtime_ns for p in (tmp_path / "points").iterdir()}
    assert len(now) == 3 + 3
    assert all(now[p] == age for p, age in ages.items())
    assert mp.load(tmp_path / "sweep.nc").sizes == {"rate": 2, "decay": 2}
    inert = mp.sweep(mp.Grid(PROBLEM, threads=[1, 2]), mp.Simulation(n=20, samples=2),
                     executor=threads, out=tmp_path)  # fmt: skip
    assert inert.R[0] == inert.R[1]
    assert len(list((tmp_path / "points").iterdir())) == 7


def test_settings_that_are_not_plain_numbers_are_recognised(threads, tmp_path):
    exact = mp.Exact(eigenvalues=(0.5, 1.0, 1.5))
    grid = mp.Grid(PROBLEM, rate=[0.5, 1.0])
    first = mp.sweep(grid, exact, executor=threads, out=tmp_path)
    again = mp.sweep(grid, exact, executor=threads, out=tmp_path)
    assert "skipped" not in again.attrs
    xr.testing.assert_identical(first, again)


def test_data_of_ones_own(threads, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    data = mp.Dataset(X, X @ rng.standard_normal(5) + rng.standard_normal(60), task="regression")
    problem = mp.Problem(data, mp.Adaline(), rate=0.2, decay=0.1)
    grid = mp.Grid(problem, rate=[0.1, 0.2], decay=[0.0, 0.1])
    found = mp.sweep(grid, times=[1.0, 20.0], executor=threads, out=tmp_path)
    alone = mp.solve(problem, [1.0, 20.0])
    assert found.F2[1, 1].values.tolist() == alone.F2.values.tolist()
    other = mp.Dataset(X + 1, data.y, task="regression")
    mp.sweep(mp.Grid(problem.replace(data=other), rate=[0.1]), executor=threads, out=tmp_path)
    assert len(list((tmp_path / "points").iterdir())) == 5  # other data, other points
    local = mp.sweep(grid, times=[1.0, 20.0], workers=1)
    xr.testing.assert_identical(local, found)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('unpickled')",))


def test_damaged_and_foreign_files_are_named_and_skipped(threads, tmp_path):
    grid = mp.Grid(PROBLEM, rate=[0.5, 1.0, 1.5, 2.0])
    first = mp.sweep(grid, executor=threads, out=tmp_path)
    points = tmp_path / "points"
    files = sorted(points.iterdir())
    files[0].write_text(files[0].read_text()[:200])  # cut short
    text = files[1].read_text()
    files[1].write_text(text.replace('"Eg":[[],0.', '"Eg":[[],0.1'))  # a digit changed
    files[2].write_text(files[3].read_text())  # the answer to another question
    files[3].write_bytes(pickle.dumps(Bomb()))
    (points / "notes.txt").write_text("mine")
    (points / f"{'0' * 32}.point").write_text("{}")  # never asked for: never opened
    (points / ".x.point.1.part").write_text("half")
    again = mp.sweep(grid, executor=threads, out=tmp_path)
    skipped = json.loads(again.attrs.pop("skipped"))
    assert skipped.pop("notes.txt").startswith("foreign")
    assert skipped.pop(files[0].name).startswith("damaged")
    assert skipped.pop(files[1].name).startswith("damaged")
    assert skipped.pop(files[2].name) == "foreign: it answers another question"
    assert skipped == {files[3].name: "foreign: not a text"}
    xr.testing.assert_identical(first, again)
    once_more = mp.sweep(grid, executor=threads, out=tmp_path)  # all are whole again
    assert json.loads(once_more.attrs["skipped"]).keys() == {"notes.txt"}
    assert (points / "notes.txt").read_text() == "mine"


def test_an_answer_restores_what_was_computed():
    point = Point(PROBLEM, mp.Simulation(n=50, samples=3), (0.0, 1.0), two_time=True)
    xr.testing.assert_identical(opened(unseal(point.answer())), point.compute())
    steady = Point(PROBLEM.replace(rate=3.5), "auto")
    with pytest.raises(ValueError, match="no steady state"):
        opened(unseal(steady.answer()))
    with pytest.raises(ValueError, match="damaged"):
        unseal(seal({"asked": {}}).replace("asked", "asket"))


def test_a_rule_of_ones_own_is_swept_but_not_kept(threads, tmp_path):
    mine = mp.Rule(force=lambda x, y, a: a * (y - x), slope=lambda x, y, a: -a + 0 * x, a=1.0)
    grid = mp.Grid(PROBLEM.replace(rule=mine), a=[0.5, 1.0])
    theory = mp.DMFT(dt=0.2, samples=2_000)  # compiles a force alone, a simulation all around it
    found = mp.sweep(grid, theory, times=[1.0], executor=threads)
    assert found.R[0] < found.R[1]
    with pytest.raises(ValueError, match=r"`rule` .* sweep without a folder"):
        mp.sweep(grid, theory, times=[1.0], executor=threads, out=tmp_path)
    local = mp.sweep(grid, theory, times=[1.0], workers=1)  # functions travel to processes
    xr.testing.assert_identical(local, found)


def test_schedules_starts_and_momentum_are_swept(threads, tmp_path):
    cosine, start = mp.schedules.Cosine(1.5, 0.1, 2), mp.Start(0.5, 1)
    grid = mp.Grid(PROBLEM, rate=[cosine, "inverse:1.5:2", 1.0], start=[None, start])
    found = mp.sweep(grid, times=[1.0, 3.0], executor=threads, out=tmp_path)
    assert found.rate.values.tolist() == ["cosine:1.5:0.1:2", "inverse:1.5:2", "1"]
    assert found.start.values.tolist() == ["R=0, Q=0", "R=0.5, Q=1"]
    one = mp.solve(PROBLEM.replace(rate=cosine, start=start), [1.0, 3.0])
    assert (found.sel(rate="cosine:1.5:0.1:2", start="R=0.5, Q=1").Q == one.Q).all()
    assert (found.sel(rate="1", start="R=0, Q=0").Q > 0).all()
    assert mp.load(tmp_path / "sweep.nc").identical(found)
    ax = mp.plot.heatmap(found.isel(t=-1))
    assert [t.get_text() for t in ax.get_yticklabels()] == found.start.values.tolist()
    ax = mp.plot.lines(found.isel(t=-1), x="rate", by="start")
    assert {line.get_linestyle() for line in ax.lines} == {"None"}  # nothing between words

    together = {("momentum", "rate"): [(0.0, 1.0), (0.5, 0.5)]}
    same = mp.sweep(mp.Grid(PROBLEM, together), times=[1.0], executor=threads)
    assert same.Q[0] == same.Q[1]  # v/(1 − β)
    own = mp.Grid(PROBLEM, rate=[lambda t: 1 / (1 + t), lambda t: 2 / (1 + t)])
    found = mp.sweep(own, times=[1.0], executor=threads)
    assert all(label.startswith("function:") for label in found.rate.values)
    assert found.Q[0] != found.Q[1]
    assert found.Q[1] == found.sel(rate=found.rate[1]).Q  # one of them: their names are alike
    with pytest.raises(ValueError, match=r"`rate` Function.* sweep without a folder"):
        mp.sweep(own, times=[1.0], executor=threads, out=tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mp.Grid(PROBLEM), "`axes` must name"),
        (lambda: mp.Grid(PROBLEM, rate=0.5), "`rate` must have a list of values, got 0.5"),
        (lambda: mp.Grid(PROBLEM, rate=[]), "`rate` must have at least one value"),
        (lambda: mp.Grid(PROBLEM, rate=[1, 1]), "`rate` must not repeat a value"),
        (lambda: mp.Grid(PROBLEM, {"rate": [1]}, rate=[2]), "`rate` is swept twice"),
        (lambda: mp.Grid(PROBLEM, {("alpha", "rate"): [1, 2]}), "change together"),
        (lambda: mp.Grid(PROBLEM, {"rate": range(10**4), "decay": range(10**4)}), "1e\\+08 points"),
        (lambda: mp.Grid(PROBLEM, {3: [1]}), "`axes` must map fields or tuples of fields, got 3"),
        *(
            (lambda value=value: mp.Grid(PROBLEM, rate=[1.0, value]), "`rate` must be a number")
            for value in ("a", True, np.nan, [1, 2], None, -1.0)
        ),
        (lambda: mp.Grid(PROBLEM, rate=["cosine:1:2"]), "`rate` = 'cosine:1:2': a wrong number"),
        (lambda: mp.Grid(PROBLEM, start=["here"]), r"`start` must be Start.*, got 'here'"),
        (
            lambda: mp.Grid(PROBLEM, rate=["inverse:1:2:1", mp.schedules.InverseTime(1, 2)]),
            "`rate` must not repeat a value",
        ),
        (
            lambda: mp.Grid(PROBLEM, foo=[1]),
            "`foo` cannot be swept: choose from accuracy, activation, alpha",
        ),
        (
            lambda: mp.Grid(PROBLEM, kappa=[1]),
            "`kappa` cannot be swept, it is a parameter of",
        ),
        (lambda: mp.Grid(PROBLEM, mode=["on"]), "`mode` must be one of"),
        (lambda: mp.Grid(PROBLEM, rule=["adeline"]), "`rule` must be one of"),
        (lambda: mp.Grid(PROBLEM, {("rate", "rate"): [(1, 2)]}), "`rate` is swept twice"),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, window=[0, 1]), window=3, workers=1),
            "`window` = 3 is swept: leave it out of one of the two",
        ),
        (lambda: mp.Grid(PROBLEM, method=["x"]), "`method` must be 'auto'"),
        (lambda: mp.Grid(PROBLEM, window=[-1]), "`window` must be a number from 0"),
        (lambda: mp.Grid(PROBLEM, rule=[mp.Adatron()], kappa=["x"]), "`kappa` must be a number"),
        (lambda: mp.Grid(PROBLEM, n=[1.5]), "`n` must be a whole number"),
        (lambda: mp.Grid(ON_DATA, alpha=[1.0]), "`alpha` cannot be swept"),
        (lambda: mp.Grid("x", rate=[1]), "`problem` must be a Problem"),
        (lambda: mp.sweep(PROBLEM), "`grid` must be a Grid"),
        (lambda: mp.sweep(mp.Grid(PROBLEM, n=[1])), "`n` cannot be swept"),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), "exakt"),
            "`method` must be 'auto', ",
        ),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), times=[2, 1]), "`times` must be strictly"),
        (lambda: mp.Grid(PROBLEM, rate=range(10**9)), "`rate` has 1000000000 values: at most"),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), window=-1), "`window` must be a number"),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), two_time=True), "`two_time` is for learning"),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), times=[1], window=2.0),
            "`window` is for steady states",
        ),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, window=[1, 2]), times=[1]),
            "`window` is for steady states",
        ),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), workers=0), "`workers` must be"),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), executor=5), "`executor` must be a conc"),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), client=5), "`client` must be a dask"),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), out=5), "`out` must be the name of a folder"),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), out=f"{__file__}/x"),
            "`out`: no folder .* can be made",
        ),
        (lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), out=__file__), "`out` must be a folder"),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), workers=1, executor=1),
            "exclude each other",
        ),
        (
            lambda: mp.sweep(mp.Grid(PROBLEM, rate=[1]), executor=shut()),
            r"`executor` takes no points \(cannot schedule new futures after shutdown\)",
        ),
    ],
)
def test_bad_sweeps(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_pictures(threads):
    grid = mp.Grid(PROBLEM, rate=[0.5, 1.5, 2.5, 3.5], decay=[0.1, 0.4, 1.6])
    found = mp.sweep(grid, executor=threads)
    ax = mp.plot.heatmap(found)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("$v$", r"$\lambda$", "log")
    limit = ax.lines[0].get_xdata()
    assert limit[0] == mp.critical_rate(PROBLEM.replace(decay=0.1))
    ax = mp.plot.heatmap(found, "Q", x="decay", y="rate")
    assert ax.get_xlabel() == r"$\lambda$"
    ax = mp.plot.lines(found, x="rate", by="decay")
    assert [t.get_text() for t in ax.get_legend().get_texts()][1] == r"$\lambda$ = 0.4"
    for rates in ([1.0], [1.0, 2.0]):  # one cell, one row of cells
        one = mp.sweep(mp.Grid(PROBLEM, rate=rates, decay=[0.4]), executor=threads)
        ax = mp.plot.heatmap(one)
        assert ax.collections[0].get_array().shape == (1, len(rates))
        assert (np.diff([ax.get_xlim(), ax.get_ylim()]) > 0).all()
        assert [*ax.lines[0].get_xdata()] == 2 * [mp.critical_rate(PROBLEM.replace(decay=0.4))]
    assert not mp.plot.lines(one).get_legend()  # a field with one value is none
    words = mp.sweep(mp.Grid(PROBLEM, task=["classification", "regression"]), executor=threads)
    assert [t.get_text() for t in mp.plot.lines(words).get_xticklabels()] == [
        "classification",
        "regression",
    ]
    for call, message in [
        (lambda: mp.plot.heatmap(found.isel(rate=0)), "`result` must have 2 dimensions, got decay"),
        (lambda: mp.plot.heatmap(found, "Et"), "`variable` must be among"),
        (lambda: mp.plot.heatmap(found, x="alpha"), "`x` must be among rate, decay"),
        (lambda: mp.plot.lines(found, x="t"), "`x` must be among rate, decay"),
        (lambda: mp.plot.lines(found, by="t"), "`by` must be among rate, decay"),
        (lambda: mp.plot.lines(mp.solve(PROBLEM, [1])), "dataset from sweep"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_point_that_was_just_written_is_counted_when_interrupted(threads, tmp_path, monkeypatch):
    def interrupted(text):
        raise KeyboardInterrupt

    monkeypatch.setattr("manypass.sweeps.run.unseal", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]), executor=threads, out=tmp_path)
    kept = len(list((tmp_path / "points").glob("*.point")))
    assert kept == 1
    assert stop.value.__notes__[0].startswith("1 of 2 points are finished and kept in")


@pytest.mark.physics
@pytest.mark.filterwarnings("ignore:the least Eg lies at an end")  # it does
def test_best_is_where_brute_force_finds_it():
    weak = PROBLEM.replace(rate=1.0, decay=0.1)
    found = mp.best(weak, over="decay")
    decays = np.linspace(0.1, 0.3, 201)
    values = [mp.steady_state(weak.replace(decay=d)).Eg.item() for d in decays]
    assert abs(found.best_decay.item() - decays[np.argmin(values)]) < 2e-3
    assert found.best_Eg.item() <= min(values) + 1e-9
    assert found.Eg.dims == ("decay",)
    assert found.attrs["bound"] == ""

    stop = mp.best(weak.replace(decay=0.0), over="time")
    t = np.linspace(0.5, 20, 4000)
    curve = mp.solve(weak.replace(decay=0.0), t).Eg
    assert abs(stop.best_time.item() / t[int(curve.argmin("t"))] - 1) < 5e-3
    assert stop.best_Eg.item() <= curve.min().item() + 1e-9

    both = mp.best(weak, over={"rate": (0.05, 3.0), "decay": (0.01, 10.0)}, at=2.0)
    rates, decays = np.linspace(0.3, 1.2, 10), np.linspace(0.05, 0.5, 10)
    values = [
        mp.solve(weak.replace(rate=v, decay=d), [2.0]).Eg.item() for v in rates for d in decays
    ]
    assert both.best_Eg.item() <= min(values) + 1e-9

    wide = mp.best(weak, over="window")
    assert wide.best_window.item() == pytest.approx(100, rel=1e-3)
    with pytest.warns(UserWarning, match="the least Q lies at an end"):
        least = mp.best(weak, over="rate", objective="Q", at=1.0)
    assert least.best_rate.item() == pytest.approx(least.rate.min().item())


def test_a_range_may_begin_at_zero_where_zero_is_a_value():
    weak = PROBLEM.replace(rate=1.0, decay=0.1)
    found = mp.best(weak, over={"noise": (0, 2)})  # noise does harm: none is best, nothing beyond
    assert found.best_noise.item() == 0
    assert found.best_Eg.item() == mp.steady_state(weak).Eg.item()
    assert found.attrs["bound"] == ""
    assert found.noise.values[0] == 0
    inside = mp.best(weak, over={"decay": (0, 10)})
    assert inside.best_decay.item() == pytest.approx(
        mp.best(weak, over="decay").best_decay.item(),
        rel=1e-4,  # of the search
    )
    both = mp.best(weak, over={"decay": (0, 10), "noise": (0, 2)})
    assert both.best_noise.item() == 0
    assert both.best_Eg.item() == pytest.approx(inside.best_Eg.item())
    with pytest.raises(ValueError, match=r"`over\[rate\]` must be a number from 1e-12"):
        mp.best(weak, over={"rate": (0, 2)})


def test_an_optimum_at_the_end_of_the_range_is_warned_of():
    with pytest.warns(UserWarning, match="least Eg lies at an end of the range of rate, 0.1 to 2:"):
        slow = mp.best(PROBLEM.replace(decay=0.1), over={"rate": (0.1, 2.0)})
    assert slow.attrs["bound"] == "rate"  # the slower, the better


@pytest.mark.physics
def test_best_of_sampled_values_looks_coarsely_first_and_says_what_it_costs(monkeypatch, capfd):
    weak, exact = PROBLEM.replace(rate=1.0, decay=0.1), mp.verbs.solve
    asked = []

    def solve(problem, times, method, **options):
        asked.append(method.rtol)
        return exact(problem, times, method, **options)

    monkeypatch.setattr("manypass.verbs.solve", solve)
    monkeypatch.setattr(searching, "LONG", 0.0)
    over = {"rate": (0.1, 2.5)}
    found = mp.best(weak, over, at=1.0, method=mp.DMFT(rtol=0.1))
    assert asked[: 1 + searching.COARSE] == [0.4] * (1 + searching.COARSE)
    assert set(asked[1 + searching.COARSE :]) == {0.1}
    assert len(asked) <= 1 + searching.COARSE + searching.CLOSE[1]
    said = capfd.readouterr().err
    assert "best: 9 coarse values and up to 8 close ones by DMFT; the first took" in said
    assert found.rate.size == len(asked) - 1
    monkeypatch.undo()
    least = mp.best(weak, over, at=1.0, progress=False)
    right = exact(weak.replace(rate=found.best_rate.item()), [1.0]).Eg.item()
    assert right < least.best_Eg.item() + 0.004
    assert abs(found.best_Eg.item() - right) < 4 * found.best_Eg_se.item()
    assert "best_Eg_se" not in least
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore:the least Eg lies at an end")  # small decays are alike
def test_best_of_sampled_values_over_two_fields_and_over_time(monkeypatch):
    weak, exact = PROBLEM.replace(rate=1.0, decay=0.1), mp.verbs.solve
    asked = []

    def solve(problem, times, *rest, **options):
        asked.append(times)
        return exact(problem, times, *rest, **options)

    monkeypatch.setattr("manypass.verbs.solve", solve)
    simulation = mp.Simulation(n=50, samples=10)
    over = {"rate": (0.05, 3.0), "decay": (0.01, 10.0)}
    both = mp.best(weak, over, at=2.0, method=simulation, progress=False)
    assert len(asked) <= 1 + searching.FEW**2 + searching.CLOSE[2] + 1
    right = exact(
        weak.replace(rate=both.best_rate.item(), decay=both.best_decay.item()), [2.0]
    ).Eg.item()
    assert right < mp.best(weak, over, at=2.0).best_Eg.item() + 0.02
    asked.clear()
    stop = mp.best(weak, {"time": (0.1, 20.0)}, method=simulation)
    assert len(asked) <= 3  # one run has all times
    assert 2 < stop.best_time.item() < 15
    assert stop.best_Eg_se.item() > 0


def test_compiling_is_done_once_while_the_workers_start(monkeypatch):
    events = []

    class Fake:
        executor = None

        def submit(self, points):
            events.append(("start", len(points)))
            self.executor = self

    def prepare(self, problem):
        events.append((type(problem.rule).__name__, problem.mode))
        raise ValueError("is told by the point itself")

    monkeypatch.setattr(mp.DMFT, "prepare", prepare)
    adatron = PROBLEM.replace(rule=mp.Adatron(kappa=1.0))
    grid = mp.Grid(adatron, rule=[mp.Adaline(), mp.Adatron(), mp.Huber()], rate=[0.1, 0.2])
    pools.warm_up(Fake(), grid.points("auto", [1.0]))
    assert events == [("start", 0), ("Adatron", "online"), ("Huber", "online")]


def test_a_prepared_solver_compiles_nothing_more():
    adatron = PROBLEM.replace(rule=mp.Adatron(kappa=1.0))
    mp.DMFT().prepare(adatron)

    def compiled():
        modules = [m for name, m in sys.modules.items() if name.startswith("manypass.cavity")]
        loops = [f for m in modules for f in vars(m).values() if hasattr(f, "nopython_signatures")]
        return {f.py_func.__name__: len(f.nopython_signatures) for f in loops}

    before = compiled()
    assert sum(before.values()) >= 3
    mp.solve(adatron, [1.0, 2.0], mp.DMFT(dt=0.5, samples=4000))
    assert compiled() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"over": "kappa"}, "`over` must be one of"),
        ({"over": {}}, "`over` must be a field"),
        ({"over": {"decay": 5}}, r"`over\[decay\]` must be two bounds, got 5"),
        ({"over": {"rate": (2, 1)}}, r"`over\[rate\]` must rise"),
        ({"over": "rate", "objective": "X"}, "`objective` must be among Q, F2, Eg, got 'X'$"),
        (
            {"over": "decay", "objective": "Et"},
            r"got 'Et', .* use method DMFT\(\) or method Exact\(accuracy=1e-2\)",
        ),
        (
            {"over": "decay", "problem": GENTLE},
            "got 'Eg', which needs a test set: `test`, a file, or Dataset",
        ),
        ({"over": "rate", "at": -1}, "`at` must be a number"),
        ({"over": "window", "at": 2.0}, "`window` is varied in the steady state only"),
        ({"over": "decay", "at": 2.0, "window": 3}, "`window` is for the steady state only, got 3"),
        ({"over": {"rate": (4, 5)}}, "no rate from 4 to 5 serves: no steady state"),
        ({"over": {"rate": (4, 5), "decay": (0.1, 0.2)}}, "nothing within the bounds"),
        ({"over": {"rate": (9e4, 1e5)}, "at": 200.0, "objective": "F2"}, "diverged by t = 200$"),
    ],
)
def test_bad_questions_to_best(arguments, message):
    with pytest.raises(ValueError, match=message):
        mp.best(**{"problem": PROBLEM} | arguments)


def test_what_points_are_warned_of_is_told_once_and_kept(tmp_path):
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=0.05, decay=0.1)
    grid, method = mp.Grid(problem, rate=[0.05, 0.06]), mp.Simulation(n=40, samples=20, settle=4)
    for _ in range(2):  # computed, then found
        with pytest.warns(UserWarning, match="2 of 2 points: `settle` = 4 is too short") as told:
            mp.sweep(grid, method=method, out=tmp_path, workers=1)
        assert len(told) == 1


def test_a_sweep_without_any_answer_warns_of_it():
    problem = mp.Problem(mp.Teacher(1.2), mp.Adaline(), rate=1.0, decay=0.1)
    with pytest.warns(UserWarning, match=r"no point of the sweep has an answer: .* `error`"):
        found = mp.sweep(mp.Grid(problem, rate=[3.2, 4.0]), executor=ThreadPoolExecutor(1))
    assert (found.error != "").all()
    assert found.Eg.shape == (2,)
    assert np.isnan(found.Eg).all()
    fixed = problem.replace(sequence="fixed", momentum=0.5)
    grid = mp.Grid(fixed, rate=["cosine:1:0:8"])
    with pytest.warns(UserWarning, match="no point of the sweep"):
        found = mp.sweep(grid, mp.Exact(), times=[1, 2], executor=ThreadPoolExecutor(1))
    assert found.R.dims == ("rate", "t")
    with pytest.raises(ValueError, match=r"`executor` must be .* such as ThreadPoolExecutor\(2\)"):
        mp.sweep(mp.Grid(problem, rate=[1.0]), executor=ThreadPoolExecutor)


def test_what_cannot_be_sent_to_an_executor_is_told():
    grid = mp.Grid(PROBLEM, rule=[mp.Rule(lambda x, y: y - x)])
    with ProcessPoolExecutor(1) as executor, pytest.raises(ValueError, match="or give `workers`"):
        mp.sweep(grid, mp.Simulation(n=20, samples=1), times=[1], executor=executor)


def test_a_process_that_may_have_no_children_sweeps_by_itself(monkeypatch):
    """As those of multiprocessing.Pool."""
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
    found = mp.sweep(mp.Grid(PROBLEM, rate=[0.5, 1.0]))
    assert np.isfinite(found.Eg).all()
