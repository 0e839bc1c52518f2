"""Files: what was saved comes back and says what it is."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import manypass as mp

PROBLEM = mp.Problem(
    mp.Teacher(alpha=0.7, task="regression", noise=0.1),
    mp.Adaline(),
    rate=0.9,
    decay=0.1,
    temperature=0.2,
)


def test_netcdf_round_trip_restores_numbers_and_problem(tmp_path):
    found = mp.solve(PROBLEM, [0.5, 1, 2], two_time=True)
    mp.save(found, tmp_path / "x.nc")
    again = mp.load(tmp_path / "x.nc")
    xr.testing.assert_identical(found, again)
    assert mp.problem_of(again) == PROBLEM
    assert json.loads(again.attrs["method"])["name"] == "Exact"
    assert again.attrs["version"] == mp.__version__
    assert "overlap" in again.R.attrs["long_name"]
    assert [p.name for p in tmp_path.iterdir()] == ["x.nc"]


def test_csv_is_a_table_under_its_attributes(tmp_path):
    found = mp.solve(PROBLEM, [0.5, 1, 2])
    mp.save(found, tmp_path / "x.csv")
    table = pd.read_csv(tmp_path / "x.csv", comment="#")
    assert (table["F2"] == found.F2.values).all()
    mp.save(mp.steady_state(PROBLEM.replace(temperature=0)), tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[-2] == "window,R,Q,F2,Eg,Et,Et_se"


def test_json_is_valid_even_for_infinite_values(tmp_path):
    found = mp.solve(PROBLEM.replace(rate=5), [1.0, 1e6])
    mp.save(found, tmp_path / "x.json")
    entries = json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)
    assert entries["data_vars"]["Q"]["data"][1] is None
    assert entries["coords"]["t"]["data"] == [1.0, 1e6]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.nc"
    mp.save(mp.solve(PROBLEM, [1.0]), path)
    before = path.read_bytes()
    monkeypatch.setattr(xr.Dataset, "to_netcdf", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mp.save(mp.solve(PROBLEM, [2.0]), path)
    assert path.read_bytes() == before


def test_functions_of_their_own_are_saved_too(tmp_path):
    for name, values in (
        ("a", mp.force_autocorrelation(PROBLEM, [0.5, 1])),
        ("b", mp.example_response(PROBLEM, [0.5, 1])),
    ):
        for suffix in ("nc", "csv", "json"):
            mp.save(values, tmp_path / f"{name}.{suffix}")
        assert (mp.load(tmp_path / f"{name}.nc")[values.name] == values).all()


def test_bad_paths_and_foreign_files(tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end in .nc, .csv, .json, got 'x.txt'"):
        mp.save(mp.solve(PROBLEM, [1.0]), "x.txt")
    (tmp_path / "x.nc").write_text("no")
    with pytest.raises(ValueError, match="not a netCDF file"):
        mp.load(tmp_path / "x.nc")
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "y.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="not a manypass result"):
        mp.load(tmp_path / "y.nc")
    with pytest.raises(FileNotFoundError):
        mp.load(tmp_path / "none.nc")


def test_results_of_own_rules_are_saved_and_say_so(tmp_path):
    rule = mp.Rule(force=lambda x, y: y - x, slope=lambda x, y: -1.0)
    with pytest.raises(ValueError, match=r"own force .*lambda"):
        mp.Problem.from_dict(PROBLEM.replace(rule=rule).to_dict())


def test_long_series_are_solved_in_chunks():
    times = np.linspace(0.1, 50, 5001)
    found = mp.solve(PROBLEM, times)
    part = mp.solve(PROBLEM, times[::1000])
    np.testing.assert_allclose(found.F2[::1000], part.F2, rtol=1e-12)
