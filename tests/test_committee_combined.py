"""Two layers with everything else there is: served, and as simulated, or refused by one line."""

import math
import tomllib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import manypass as mp
from manypass import cli
from manypass.explorer.code import toml

START = mp.Start(R=[[0.2, 0.05], [0.0, 0.15]], Q=0.25 * np.eye(2))
DATA = mp.Teacher(2.0, "regression", 0.2, hidden=2)
PROBLEM = mp.Problem(DATA, mp.Committee(2), rate=1.0, start=START)
FRESH = PROBLEM.replace(alpha=math.inf)
TIMES = [0.5, 1.0]
METHODS = {
    "Exact": mp.Exact(),
    "DMFT": mp.DMFT(samples=16_000),
    "Simulation": mp.Simulation(n=200, samples=150, seed=1),
}
LEARNED = mp.Committee(2, second=[1.0, 0.5], second_rate=0.5)
COSINE = "cosine:1:0.1:0.5"
BOTH, ALL = {"DMFT", "Simulation"}, {"Exact", "DMFT", "Simulation"}
REPEATED = {
    "plain": ({}, BOTH),
    "reshuffled": ({"sequence": "reshuffled"}, BOTH),
    "fixed": ({"sequence": "fixed"}, {"Simulation"}),
    "batches": ({"batch_share": 0.05}, BOTH),
    "reshuffled batches": ({"sequence": "reshuffled", "batch_share": 0.05}, BOTH),
    "fixed batches": ({"sequence": "fixed", "batch_share": 0.05}, {"Simulation"}),
    "descent": ({"batch_share": 0.1, "sequence": "reshuffled", "rate": COSINE}, BOTH),
    "batch size": ({"batch_size": 3, "rate": 3.0}, BOTH),
    "batch size, reshuffled": ({"batch_size": 3, "rate": 3.0, "sequence": "reshuffled"}, BOTH),
    "momentum": ({"momentum": 0.5, "rate": 0.5}, BOTH),
    "momentum, batches": ({"momentum": 0.5, "rate": 0.5, "batch_share": 0.05}, {"Simulation"}),
    "heat": ({"temperature": 0.2}, BOTH),
    "decay": ({"decay": 0.5}, BOTH),
    "schedule": ({"rate": COSINE}, BOTH),
    "schedule of the decay": ({"decay": "steps:0:1:0.25:0.1"}, BOTH),
    "schedule, reshuffled": ({"rate": COSINE, "sequence": "reshuffled"}, BOTH),
    "schedule, fixed": ({"rate": COSINE, "sequence": "fixed"}, {"Simulation"}),
    "second layer": ({"rule": LEARNED}, BOTH),
    "second layer, momentum": ({"rule": LEARNED, "momentum": 0.5, "rate": 0.5}, BOTH),
    "classes": ({"task": "classification"}, BOTH),
    "relu": ({"rule": mp.Committee(2, "relu"), "rate": 0.5}, BOTH),
    "tanh": ({"rule": mp.Committee(2, "tanh")}, BOTH),
    "linear": ({"rule": mp.Committee(2, "linear"), "rate": 0.5}, BOTH),
}
ONE_PASS = {
    "plain": ({}, ALL),
    "heat and decay": ({"temperature": 0.2, "decay": 0.5}, ALL),
    "schedule": ({"rate": COSINE, "decay": "steps:0:1:0.25:0.1"}, ALL),
    "batch size, momentum": ({"batch_size": 2, "momentum": 0.5}, ALL),
    "second layer": ({"rule": LEARNED}, ALL),
    "classes": ({"task": "classification"}, BOTH),
    "tanh": ({"rule": mp.Committee(2, "tanh")}, BOTH),
    "relu": ({"rule": mp.Committee(2, "relu"), "rate": 0.5}, BOTH),
    "linear": ({"rule": mp.Committee(2, "linear"), "rate": 0.5}, ALL),
}
COMBINED = [
    pytest.param(problem.replace(**changes), served, id=f"{kind}: {name}")
    for kind, problem, table in (("repeated", PROBLEM, REPEATED), ("fresh", FRESH, ONE_PASS))
    for name, (changes, served) in table.items()
]


def one_line(error):
    """A refusal is one line that names an argument."""
    text = str(error.value)
    assert "\n" not in text
    assert "`" in text
    return text


@pytest.mark.parametrize(("problem", "served"), COMBINED)
def test_a_problem_is_served_or_refused_with_who_can(problem, served):
    methods = {
        "Exact": mp.Exact(),
        "DMFT": mp.DMFT(samples=6_000),
        "Simulation": mp.Simulation(n=20, samples=2),
    }
    for name, method in methods.items():
        if name in served:
            found = mp.solve(problem, [0.3], method)
            assert found.R.dims == ("t", "unit", "teacher")
            assert found.Q.dims == ("t", "unit", "unit2")
            assert np.isfinite(found.to_array()).all()
            continue
        with pytest.raises(ValueError, match=rf"^{name}\(\) .*: use method ") as error:
            mp.solve(problem, TIMES, method)
        use = one_line(error).split(": use method ")[1]
        names = use.replace("(n=500, samples=100)", "").replace("()", "").split(" or ")
        assert set(names) == served


@pytest.mark.physics
@pytest.mark.parametrize(("problem", "served"), COMBINED)
def test_theory_is_what_is_simulated(problem, served):
    runs = mp.solve(problem, TIMES, METHODS["Simulation"])
    for name in served - {"Simulation"}:
        assert apart(runs, mp.solve(problem, TIMES, METHODS[name])) == []


def apart(runs, theory):
    """Name what differs by more than chance and 1/N allow."""
    names = [name for name in ("R", "Q", "a", "F2", "Eg", "Et") if f"{name}_se" in runs]
    out = []
    for name in names:
        error = np.hypot(runs[f"{name}_se"], theory.get(f"{name}_se", 0.0))
        allowed = 4.5 * error + 0.015 * np.abs(theory[name]).max()
        out += [name] * bool((np.abs(runs[name] - theory[name]) > allowed).any())
    return out


def test_these_bounds_see_a_rate_that_is_a_tenth_off():
    runs = mp.solve(FRESH, TIMES, METHODS["Simulation"])
    assert "R" in apart(runs, mp.solve(FRESH.replace(rate=1.1), TIMES))


REFUSED = {
    "batch mode": (lambda p: p.replace(mode="batch"), r"`mode` = 'batch'.*`batch_share` = 1"),
    "inputs": (lambda p: p.replace(inputs="powerlaw:1:1:0.1"), r"`inputs` = .*by any method"),
    "Dataset": (
        lambda p: mp.Problem(
            mp.Dataset(np.eye(4), [1, -1, 1, -1]), mp.Committee(2), rate=1.0, start=START
        ),
        r"`rule` Committee.* learns from a Teacher.*Adaline",
    ),
    "MeanForce": (
        lambda p: mp.steady_state(p, mp.MeanForce()),
        r"MeanForce\(\) .*`rule` Committee.*use method .*Simulation\(n=500",
    ),
    **{
        f"steady state, {name}": (
            lambda p, method=method: mp.steady_state(p, method, window=1.0),
            r"no method has .* of `rule` = Committee.*late time come from.*Simulation",
        )
        for name, method in METHODS.items()
    },
    "critical rate": (mp.critical_rate, r"critical_rate\(\) .*`rule` = Committee.*Simulation"),
    "critical rate, DMFT": (
        lambda p: mp.DMFT().critical_rate(p),
        r"DMFT\(\).critical_rate\(\) .*`rule` = Committee.*Simulation",
    ),
    "slow mode": (mp.slow_mode, r"slow_mode\(\) .*`rule` = Committee.*Simulation"),
    "worth": (lambda p: mp.effective_data(p, [1, 2]), r"`alpha` = (2|inf)|finite `alpha`"),
    "advise": (mp.advise, r"`data` must be a Dataset"),
    "best": (
        lambda p: mp.best(p, over="rate", method=mp.DMFT()),
        r"`rule` = Committee.*late time come from.*Simulation",
    ),
    "activations": (lambda p: mp.activations(p, 1.0), r"`rule` = Committee.*Simulation"),
    "activations, DMFT": (
        lambda p: mp.activations(p, 1.0, source=mp.DMFT()),
        r"`rule` = Committee.*Simulation",
    ),
    "density": (
        lambda p: mp.activation_density(p, 1.0, [0.0], y=1.0, target=1.0),
        r"`rule` = Committee.*Simulation",
    ),
    "cavity": (lambda p: mp.cavity_experiment(p, [1.0]), r"`rule` = Committee.*Simulation"),
    "autocorrelation": (
        lambda p: mp.force_autocorrelation(p, [1.0]),
        r"`rule` = Committee.*Simulation",
    ),
    "response": (lambda p: mp.example_response(p, [1.0]), r"`rule` = Committee.*Simulation"),
}


@pytest.mark.parametrize("problem", [PROBLEM, FRESH], ids=["repeated", "fresh"])
@pytest.mark.parametrize("name", REFUSED)
def test_verbs_that_know_nothing_of_units_say_so(name, problem):
    verb, said = REFUSED[name]
    with pytest.raises(ValueError, match=said) as error:
        verb(problem)
    one_line(error)


@pytest.mark.parametrize("problem", [p.values[0] for p in COMBINED], ids=[p.id for p in COMBINED])
def test_every_combination_goes_through_a_file_and_a_plan(problem, tmp_path, monkeypatch):
    assert mp.Problem.from_dict(tomllib.loads(toml(problem))) == problem
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.toml").write_text(toml(problem))
    method = ["--method", "simulation", "--n", "20", "--samples", "2"]
    cli.main(["solve", "problem.toml", "--times", "0.5", *method, "--out", "found.nc"])
    assert mp.problem_of(mp.load(tmp_path / "found.nc")) == problem


def test_best_rates_sweeps_and_pictures():
    few = mp.Simulation(n=20, samples=2)
    found = mp.best(FRESH, over="rate", at=2.0)
    assert 0.1 < float(found.best_rate) < 10
    grid = mp.Grid(PROBLEM, rate=[0.5, COSINE], momentum=[0.0, 0.5], batch_size=[1, 2])
    with ThreadPoolExecutor(2) as executor:
        swept = mp.sweep(grid, few, times=[1.0], executor=executor)
    assert swept.R.dims == ("rate", "momentum", "batch_size", "t", "unit", "teacher")
    assert np.isfinite(swept.R).all()
    figure = mp.plot.overview(mp.solve(FRESH.replace(rate=COSINE), TIMES))
    assert len(figure.axes) >= 2
