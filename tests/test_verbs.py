"""What the verbs take: methods by name, seeds or none."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import manypass as mp

LINEAR = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, decay=0.8)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exact", mp.Exact),
        ("simulation", mp.Simulation),
        ("dmft", mp.DMFT),
        ("mean-force", mp.MeanForce),
    ],
)
def test_a_method_goes_by_the_name_it_has_in_files(name, kind, monkeypatch):
    """With its default settings, wherever a method is taken."""
    asked = []

    def answer(self, *_, **__):
        asked.append(self)
        return xr.Dataset()

    for verb in ("solve", "steady_state"):
        monkeypatch.setattr(kind, verb, answer)
    mp.solve(LINEAR, [1.0], name)
    mp.steady_state(LINEAR, name)
    assert asked == [kind(), kind()]


def test_names_in_sweeps_searches_and_activations():
    grid = mp.Grid(LINEAR, method=["exact", "mean-force"], rate=[0.5, 1.0])
    found = mp.sweep(grid, workers=1)
    assert found.method.values.tolist() == ["exact", "mean-force"]
    assert float(found.Eg[0, 0]) == float(mp.steady_state(LINEAR.replace(rate=0.5), mp.Exact()).Eg)
    assert (found.Eg[0] != found.Eg[1]).all()
    named = mp.sweep(mp.Grid(LINEAR, rate=[0.5, 1.0]), "exact", workers=1)
    assert '"Exact"' in named.attrs["method"]
    assert mp.best(LINEAR, over="decay", method="exact").best_Eg > 0
    assert mp.activations(LINEAR, 0.2, samples=10, source="simulation").x.size == 10


@pytest.mark.parametrize("method", ["exakt", mp.Exact, 3, None])
def test_what_is_no_method_is_refused(method):
    names = "'auto', 'exact', 'dmft', 'simulation', 'mean-force' or a method such as Exact"
    with pytest.raises(ValueError, match=f"`method` must be {names}"):
        mp.solve(LINEAR, [1.0], method)


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda flag: mp.Simulation(response=flag), "response"),
        (lambda flag: mp.Exact(diagonal=flag), "diagonal"),
        (lambda flag: mp.Dataset([[1.0], [2.0]], [0.5, 2.5], intercept=flag), "intercept"),
        (lambda flag: mp.solve(LINEAR, [1.0], two_time=flag), "two_time"),
        (lambda flag: list(mp.Grid(LINEAR, rate=[1]).points("auto", [1], 0, flag)), "two_time"),
    ],
)
def test_a_flag_is_true_or_false(ask, name):
    for wrong in ("no", 1, None):
        with pytest.raises(ValueError, match=f"`{name}` must be True or False, got {wrong!r}"):
            ask(wrong)
    ask(np.bool_(True))


@pytest.mark.parametrize(
    "method", [mp.Simulation(n=20, samples=3), mp.DMFT(dt=0.3, samples=1600), mp.Exact(samples=500)]
)
def test_without_a_seed_a_fresh_one_is_taken_and_told(method):
    first, second = (dataclasses.replace(method, seed=None) for _ in range(2))
    found = mp.solve(LINEAR, [1.0], first)
    assert found.attrs["seed"] == first.seed != second.seed
    again = mp.solve(LINEAR, [1.0], dataclasses.replace(method, seed=found.attrs["seed"]))
    assert found.identical(again)
    other = mp.solve(LINEAR, [1.0], second)
    assert any(float(found[name][0]) != float(other[name][0]) for name in found)


def test_functions_without_a_seed_tell_theirs():
    found = mp.activations(LINEAR, 1.0, samples=50, seed=None)
    assert found.identical(mp.activations(LINEAR, 1.0, samples=50, seed=found.attrs["seed"]))
    seen = mp.cavity_experiment(LINEAR, [0.5], n=50, stimuli=1, seed=None)
    again = mp.cavity_experiment(LINEAR, [0.5], n=50, stimuli=1, seed=seen.attrs["seed"])
    assert seen.identical(again)


def test_names_of_pictures_are_all_there_is():
    assert dir(mp.plot) == sorted(mp.plot.__all__)
    assert all(getattr(mp.plot, name).__module__.startswith("manypass") for name in dir(mp.plot))
    assert {"curves", "lines", "heatmap", "activations"} <= set(dir(mp.plot))


@pytest.mark.parametrize("verb", [mp.critical_rate, mp.slow_mode, mp.steady_state, mp.advise])
def test_what_is_no_problem_is_refused_by_name(verb):
    with pytest.raises(ValueError, match="`problem` must be a Problem, got None"):
        verb(None)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (mp.Simulation, {"n": np.int64(20), "samples": np.int32(2), "threads": np.int64(1)}),
        (mp.Simulation, {"n": 20, "samples": 2, "settle": Fraction(1, 2)}),
        (mp.Simulation, {"n": 20, "samples": 2, "response": np.bool_(True)}),
        (mp.Exact, {"accuracy": np.float32(0.25), "samples": np.int64(2000)}),
        (mp.DMFT, {"samples": np.int64(2000), "dt": np.float64(0.5), "memory": np.float32(1)}),
    ],
)
def test_settings_may_be_numbers_of_numpy(kind, settings, tmp_path):
    found = mp.solve(LINEAR, [0.5], kind(**settings), two_time="response" in settings)
    mp.save(found, tmp_path / "x.json")
    kept = json.loads(mp.load(tmp_path / "x.json").attrs["method"])
    assert {name: kept[name] for name in settings} == settings
