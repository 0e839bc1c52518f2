"""Files: what was saved comes back and says what it is."""

import dataclasses
import errno
import gc
import json
import os
from pathlib import Path

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


@pytest.mark.parametrize(
    ("name", "mine", "other"),
    [
        ("rule", mp.Rule(lambda x, y, k: k * (y - x), k=2.0), mp.Adaline()),
        ("rate", mp.schedules.Warmup(1.0, lambda t: 1 / (1 + t)), 0.3),
        ("decay", mp.schedules.Function(np.exp), "cosine:1:0.1:8"),
    ],
)
def test_functions_of_ones_own_are_given_to_the_problem_of_a_result(name, mine, other):
    problem = PROBLEM.replace(**{name: mine})
    found = xr.Dataset(attrs={"problem": json.dumps(problem.to_dict())})
    assert mp.problem_of(found, **{name: mine}) == problem
    with pytest.raises(ValueError, match=rf"^`{name}` of .* give it as .*\(result, {name}=...\)$"):
        mp.problem_of(found)
    with pytest.raises(ValueError, match=rf"^`{name}` = .* is not that of the result, "):
        mp.problem_of(found, **{name: other})


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


@pytest.mark.parametrize("suffix", ["nc", "csv", "json"])
def test_every_format_is_read_back_as_it_was(tmp_path, suffix):
    simulation = mp.Simulation(n=20, samples=2, seed=3)
    results = [
        mp.solve(PROBLEM, [0.5, 1, 2], two_time=True),
        mp.solve(PROBLEM.replace(rate=5), [1.0, 1e6]),  # inf
        mp.solve(PROBLEM, [0.5, 1], dataclasses.replace(simulation, samples=1)),  # NaN, whole
        mp.steady_state(PROBLEM.replace(temperature=0), window=2),
        mp.activations(PROBLEM, 1.0, samples=5, source=simulation),  # no coordinates
        mp.sweep(mp.Grid(PROBLEM, mode=["online", "batch"], rate=[1.0, 99.0]), workers=1),  # words
    ]
    for found in results:
        mp.save(found, tmp_path / f"x.{suffix}")
        again = mp.load(tmp_path / f"x.{suffix}")
        xr.testing.assert_identical(again, found)
        assert {k: type(v) for k, v in again.attrs.items() if k != "seed"} == {
            k: type(v) for k, v in found.attrs.items() if k != "seed"
        }
        assert mp.problem_of(again) == mp.problem_of(found)


def test_attributes_of_any_kind_come_back_from_csv(tmp_path):
    found = mp.solve(PROBLEM, [1.0]).assign_attrs(a="7", b=7, c=0.5, d="two\nlines", e="a = b")
    mp.save(found, tmp_path / "x.csv")
    assert mp.load(tmp_path / "x.csv").attrs == found.attrs


@pytest.mark.parametrize("suffix", ["nc", "csv", "json"])
def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path, monkeypatch, suffix):
    path, write = tmp_path / f"x.{suffix}", Path.write_bytes
    mp.save(mp.solve(PROBLEM, [1.0]), path)
    before = path.read_bytes()

    def full(self, content):
        write(self, content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=rf"No space left on device: '.*x.{suffix}'"):
        mp.save(mp.solve(PROBLEM, [2.0]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_called_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' to write 'x.csv' to"):
        mp.save(mp.solve(PROBLEM, [1.0]), tmp_path / "nowhere" / "x.csv")


@pytest.mark.parametrize("cut", [-1, -3, -30])
def test_a_table_that_was_cut_off_is_refused(tmp_path, cut):
    path = tmp_path / "x.csv"
    mp.save(mp.solve(PROBLEM, [1.0, 2.0]), path)
    path.write_text(path.read_text()[:cut])
    with pytest.raises(ValueError, match=r"not a CSV file of a result: it is cut off: of 2 rows"):
        mp.load(path)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder here that takes no files")
def test_a_folder_that_takes_no_files_is_not_called_missing():
    with pytest.raises(OSError, match=r"cannot write the file: (the folder|Permission)"):
        mp.save(mp.solve(PROBLEM, [1.0]), "/proc/x.csv")


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
    for suffix in ("csv", "json"):
        (tmp_path / f"x.{suffix}").write_text("t,R\n1,2\n" if suffix == "csv" else "[1]")
        with pytest.raises(ValueError, match=f"not a {suffix.upper()} file of a result"):
            mp.load(tmp_path / f"x.{suffix}")
        with pytest.raises(FileNotFoundError):
            mp.load(tmp_path / f"none.{suffix}")
    result = mp.solve(PROBLEM, [1.0])
    for wrong in (None, 5):
        with pytest.raises(ValueError, match=f"`path` must be the name of a file, got {wrong}"):
            mp.save(result, wrong)
        with pytest.raises(ValueError, match=f"`path` must be the name of a file, got {wrong}"):
            mp.load(wrong)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"it has no line '# layout = \.\.\.', as save\(\) writes"):
        mp.load(tmp_path / "x.csv")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ValueError, match="it has not the entries attrs, coords, data_vars"):
        mp.load(tmp_path / "x.json")
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*none.nc'"):
        mp.load(tmp_path / "none.nc")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere'"):
        mp.load(tmp_path / "nowhere" / "x.nc")
    with pytest.raises(ValueError, match=r"`path` must end in .nc, .csv, .json, got 'x.txt'"):
        mp.load("x.txt")


def test_names_that_cannot_be_are_told(tmp_path):
    result = mp.solve(PROBLEM, [1.0])
    with pytest.raises(ValueError, match="`path` must be the name of a file, got"):
        mp.save(result, "a\0b.csv")
    with pytest.raises(OSError, match="cannot write the file: File name too long"):
        mp.save(result, tmp_path / ("x" * 300 + ".nc"))
    with pytest.raises(ValueError, match=r"`path` 'xxx.* cannot be read: File name too long"):
        mp.load("x" * 300 + ".nc")
    with pytest.raises(ValueError, match="`path`: there is no file 'xxx"):
        mp.read_dataset("x" * 300 + ".csv", "y")


@pytest.mark.parametrize("broken", ["{", "[]", "{}", 3, None], ids=repr)
def test_a_broken_description_is_named(broken, tmp_path):
    result = mp.solve(PROBLEM, [1.0]).assign_attrs(problem=broken)
    for ask in (mp.problem_of, lambda found: mp.save(found, tmp_path / "x.csv")):
        with pytest.raises(ValueError, match=r"attribute 'problem' of `result` describes none"):
            ask(result)


@pytest.mark.parametrize("suffix", ["nc", "csv", "json"])
def test_attributes_of_ones_own_are_kept_or_refused_by_name(suffix, tmp_path):
    result, path = mp.solve(PROBLEM, [1.0]), tmp_path / f"x.{suffix}"
    for value in ("note", 3, 0.5, [1.0, 2.0]):
        mp.save(result.assign_attrs(mine=value), path)
        assert np.all(mp.load(path).attrs["mine"] == value)
    bad = [object(), np.datetime64("2020-01-01")]
    bad += [{"a": 1}, None, True, ["a", 1]] if suffix == "nc" else []
    for value in bad:
        for odd in (result.assign_attrs(mine=value), result.copy()):
            odd.R.attrs["mine"] = value
            with pytest.raises(ValueError, match=f"attribute 'mine' that a .{suffix} file cannot"):
                mp.save(odd, path)


def test_results_of_own_rules_are_saved_and_say_so(tmp_path):
    rule = mp.Rule(force=lambda x, y: y - x, slope=lambda x, y: -1.0)
    with pytest.raises(ValueError, match=r"own force .*lambda"):
        mp.Problem.from_dict(PROBLEM.replace(rule=rule).to_dict())


def test_long_series_are_solved_in_chunks():
    times = np.linspace(0.1, 50, 5001)
    found = mp.solve(PROBLEM, times)
    part = mp.solve(PROBLEM, times[::1000])
    np.testing.assert_allclose(found.F2[::1000], part.F2, rtol=1e-12)


@pytest.mark.parametrize("place", [123, 656, 4469, -10, -75], ids=str)
def test_a_damaged_netcdf_file_is_told_in_one_line(place, tmp_path, capfd):
    mp.save(mp.solve(PROBLEM, [1.0, 2.0]), tmp_path / "x.nc")
    content = bytearray((tmp_path / "x.nc").read_bytes())
    content[place] ^= 0xFF
    content = content if place < 0 else content[:-81]  # without its seal HDF5 has to find it
    (tmp_path / "x.nc").write_bytes(content)
    with pytest.raises(ValueError, match="is not a netCDF file of a result") as told:
        mp.load(tmp_path / "x.nc")
    gc.collect()
    assert "\n" not in str(told.value)
    assert capfd.readouterr().err == ""


def broken(entries, **changes):
    entries["data_vars"]["R"] |= changes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e.update(coords=None), "its entry coords is no table"),
        (lambda e: e.update(data_vars=5), "its entry data_vars is no table"),
        (lambda e: e["coords"].update(t=5), "its variable 't' has not the entries dims"),
        (lambda e: broken(e, data=[10**400, 1]), "int too large"),
        (lambda e: broken(e, dtype=[]), r"its variable 'R' has no dtype, got \[\]"),
        (lambda e: broken(e, dtype="object", data=[[1], {}]), "must be texts or numbers"),
    ],
)
def test_json_that_was_edited_is_told(change, words, tmp_path):
    path = tmp_path / "x.json"
    mp.save(mp.solve(PROBLEM, [1.0, 2.0]), path)
    entries = json.loads(path.read_text())
    change(entries)
    path.write_text(json.dumps(entries))
    with pytest.raises(ValueError, match=f"not a JSON file of a result: .*{words}"):
        mp.load(path)
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="not a JSON file of a result: maximum recursion"):
        mp.load(path)


@pytest.mark.parametrize("suffix", ["nc", "csv", "json"])
def test_what_is_empty_is_read_back_or_not_written(suffix, tmp_path):
    empty, path = mp.solve(PROBLEM, [1.0]).isel(t=[]), tmp_path / f"x.{suffix}"
    if suffix == "nc":
        mp.save(empty, path)
        assert mp.load(path).identical(empty)
        return
    with pytest.raises(ValueError, match=f"has nothing along t, which a .{suffix} file cannot"):
        mp.save(empty, path)
    assert not path.exists()
