"""Results: labelled datasets that say what they are, saved as netCDF, exported as CSV or JSON."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # xarray's own; importing it costs nothing more
import xarray as xr

from manypass import __version__, checks, files, formats
from manypass.data.dataset import Dataset
from manypass.data.reading import matching
from manypass.problem import Problem
from manypass.rules import Rule
from manypass.schedules import Function, plain, read

LATEST = 1e12  # the last time or lag that may be asked for
WRITERS: dict[str, Callable[[xr.Dataset], bytes | str]] = {
    ".nc": lambda result: files.netcdf({"/": result}),
    ".csv": formats.to_csv,
    ".json": formats.to_json,
}
FORMATS = (*WRITERS,)
COORDINATES = ("t", "s", "window", "unit", "unit2", "teacher")

LONG_NAMES = {
    "t": "time, one unit = N learning steps",
    "s": "earlier time",
    "lag": "time lag",
    "window": "averaging window",
    "R": "student-teacher overlap B·J",
    "Q": "squared length of the weights, C(t,t)",
    "a": "second layer",
    "unit": "hidden unit of the student",
    "unit2": "hidden unit of the student",
    "teacher": "hidden unit of the teacher",
    "F2": "force fluctuation <F²> over the training set",
    "F2_test": "force fluctuation <F²> over the test set",
    "Eg": "generalization error, fresh noiseless example",
    "Et": "training error",
    "settled": "time after which nothing is remembered",
    "diverged": "networks that have diverged",
    "C": "autocorrelation of the weights J(t)·J(s)",
    "G": "response of the weights",
    "x": "activation of an example that is learned",
    "y": "activation of the teacher",
    "target": "target",
    "learned": "number of times that the example was learned",
    "P": "density P(x | y, target)",
    "h": "cavity activation: the example is never learned",
    "h_predicted": "cavity activation predicted from x",
    "D": "example response, regular part",
    "FF": "force autocorrelation <F(t)F(s)> over the training set",
}

PRESENT = ("F2", "Et")  # of a steady state with a window: of the weights as they are
UNITS = {"R": ("unit", "teacher"), "a": ("unit",)} | dict.fromkeys("QCG", ("unit", "unit2"))


def dataset(
    problem: Problem, method: Any, values: dict[str, Any], coords: dict[str, Any]
) -> xr.Dataset:
    """Label values by their shape: numbers, curves in t, or functions of (t, s); and by units."""
    variables = {
        name: _variable(_dims(problem, name, value), value, {"long_name": long_name(name)})
        for name, value in values.items()
    }
    if isinstance(problem.data, Dataset) and "Eg" in variables:
        variables["Eg"].attrs["long_name"] = "error on the test set"
    if coords.get("window"):
        for name, variable in variables.items():
            if whose := weights_of(name):
                variable.attrs["long_name"] += f", of {whose} weights"
    if any("s" in variable.dims for variable in variables.values()):
        coords = coords | {"s": coords["t"]}
    if problem.layered:
        K, M = problem.rule.hidden, problem.teacher.hidden  # type: ignore[attr-defined]
        units = np.arange(1, K + 1)
        coords = coords | {"unit": units, "unit2": units, "teacher": np.arange(1, M + 1)}
    out = xr.Dataset(variables, labelled(coords))
    out.attrs = attributes(problem)
    if method is not None:
        out.attrs["method"] = json.dumps(method_entry(method))
    if hasattr(method, "seed"):
        out.attrs["seed"] = method.seed
    return out


def _dims(problem: Problem, name: str, value: Any) -> tuple[str, ...]:
    inner = UNITS.get(name.removesuffix("_se"), ()) if problem.layered else ()
    return (*("t", "s")[: np.ndim(value) - len(inner)], *inner)


def shape(problem: Problem, name: str, size: int) -> tuple[int, ...]:
    """Return the shape of a curve of so many times."""
    times = (size, size) if name in ("C", "G") else (size,)
    if not problem.layered:
        return times
    K, M = problem.rule.hidden, problem.teacher.hidden  # type: ignore[attr-defined]
    return (*times, *({"unit": K, "unit2": K, "teacher": M}[d] for d in UNITS.get(name, ())))


def array(problem: Problem, name: str, values: Any, coords: dict[str, Any]) -> xr.DataArray:
    """One labelled function, its axes in the order of `coords`."""
    attrs = attributes(problem) | {"long_name": LONG_NAMES[name]}
    return xr.DataArray(values, labelled(coords), tuple(coords), name, attrs)


def long_name(name: str) -> str:
    """Say in words what a variable is."""
    if name.endswith("_se"):
        return f"standard error: {long_name(name.removesuffix('_se'))}"
    if name.endswith("_end"):
        return f"{long_name(name.removesuffix('_end'))}, at the end of an epoch"
    if name.endswith("_shuffled"):
        return f"{long_name(name.removesuffix('_shuffled'))}, every example once per epoch"
    return LONG_NAMES[name]


def weights_of(name: str) -> str:
    """Say of which weights a value of a steady state with a window is, if of any.

    Examples
    --------
    >>> from manypass import results
    >>> [results.weights_of(name) for name in ("Eg", "F2_se", "Q_end", "diverged")]
    ['averaged', 'present', 'present', '']
    """
    plain = name.removesuffix("_se")
    if plain in ("settled", "diverged"):
        return ""
    return "present" if plain in PRESENT or plain.endswith("_end") else "averaged"


def problem_of(
    result: xr.Dataset | xr.DataArray,
    data: Dataset | None = None,
    *,
    rule: Any = None,
    rate: Any = None,
    decay: Any = None,
) -> Problem:
    """Restore the problem that a result, fresh or opened from a file, answers.

    A result about a `Dataset` holds a description of the data, not the numbers. They are read
    again if they came from a file, which is looked for where one is and beside the result's file,
    and found while they are in memory; otherwise give them as `data`. In any case their hash must
    be that of the result. Of functions of one's own, forces and rates, it holds the names: give
    the `rule`, `rate` or `decay` that they belong to, which must have the name in the result.
    A point of a sweep, ``found.sel(rate=1.0)``, answers the problem with the values that it has; a
    field along which there are still several is that of the problem given to the `Grid`. What
    `best` found, ``best_rate`` and the like, is in its problem.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Hebbian(), rate=0.5, decay=0.1)
    >>> mp.problem_of(mp.solve(problem, [1.0])) == problem
    True
    >>> mine = problem.replace(rule=mp.Rule(lambda x, y: y - x))
    >>> found = mp.solve(mine, [1.0], mp.Simulation(n=10, samples=2))
    >>> mp.problem_of(found, rule=mine.rule) == mine
    True
    """
    entry = _at_point(problem_entry(result), result)
    for name, value in (("rule", rule), ("rate", rate), ("decay", decay)):
        entry |= _own(name, entry.get(name), value)
    if data is not None:
        if not isinstance(data, Dataset):
            raise ValueError(f"`data` must be a Dataset, got {checks.shown(data)}")
        if "hash" not in entry["data"]:
            raise ValueError(
                f"`data`: this result is about a Teacher, not about data, got {data!r}"
            )
        entry["data"] = matching(data, entry["data"])
    elif "path" in entry["data"]:
        entry["data"] |= _found(entry["data"], result.encoding.get("source"))
    return Problem.from_dict(entry)


def _at_point(entry: dict[str, Any], result: xr.Dataset | xr.DataArray) -> dict[str, Any]:
    """Put what a point of a sweep has of the swept fields into the description of its problem."""
    swept = [name for names in told(result, "grid") for name in names.split(", ")]
    for name in sorted(swept, key=lambda name: name != "rule"):  # whose parameters follow it
        if name not in result.coords and any(
            name in owner for owner in (entry, entry["data"], entry["rule"])
        ):
            raise ValueError(
                f"`result` is of a sweep over `{name}` and says no longer of which: keep this "
                f"coordinate, as found.sel({name}=...) does"
            )
        if name not in result.coords or result.coords[name].ndim:
            continue
        value = result.coords[name].item()
        value = told(result, "held").get(name, {}).get(value, value)
        for owner in (entry, entry["data"], entry["rule"]):
            if name in owner:  # else a setting of the method
                owner[name] = value
    for owner in (entry, entry["data"]):
        for name in owner:
            found = getattr(result, "data_vars", {}).get(f"best_{name}")
            if found is not None and not found.ndim:
                owner[name] = found.item()
    return entry


def _own(name: str, held: Any, given: Any) -> dict[str, Any]:
    """Return what is given for a field of which a result may hold the name of a function alone."""
    if given is None:
        rule = isinstance(held, dict) and held.get("name") == "rule"
        called = held.get("force") if rule else held
        if rule or Function.name in str(held).split(":"):
            raise ValueError(
                f"`{name}` of this result is a function of one's own, of which it holds the name, "
                f"{called}: give it as problem_of(result, {name}=...)"
            )
        return {}
    if name == "rule" and not isinstance(given, Rule):
        raise ValueError(f"`rule` must be a Rule, got {checks.shown(given)}")
    made = given if name == "rule" else read(name, given)
    called = made.to_dict() if name == "rule" else plain(made)
    if called != held:
        raise ValueError(
            f"`{name}` = {checks.shown(called)} is not that of the result, {checks.shown(held)}"
        )
    return {name: made}


def _found(data: dict[str, Any], source: str | None) -> dict[str, str]:
    """Return the files of the data, those that are not here beside the file of the result."""
    out = {}
    for name in ("path", "test"):
        given = data.get(name)
        if not isinstance(given, str) or files.home(given).exists():
            continue
        beside = Path(source or "").parent / given
        if not beside.exists():
            raise ValueError(
                f"`{name}`: there is {files.missing(given)}, which the data of this result were "
                f"read from: give them as problem_of(result, data=...)"
            )
        out[name] = str(beside)
    return out


def save(result: xr.Dataset | xr.DataArray, path: str | os.PathLike[str]) -> None:
    """Write a result as .nc (netCDF, complete), .csv (a flat table) or .json.

    The file appears only when it is whole. CSV starts with `#` lines that hold the attributes;
    JSON writes null for inf and NaN, which it cannot express. `load` reads all three. A single
    array without a name is called `values`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> found = mp.solve(problem, [1, 2, 4])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mp.save(found, Path(folder) / "x.nc")
    ...     mp.load(Path(folder) / "x.nc").identical(found)
    True
    """
    problem_entry(result)
    if isinstance(result, xr.DataArray):
        name = "values" if result.name is None else result.name
        if name in result.coords:
            raise ValueError(
                f"`result` is called {name!r}, as one of its coordinates: result.rename(...)"
            )
        result = result.to_dataset(name=name).assign_attrs(result.attrs)
    suffix = files.suffix(path, FORMATS)
    _check_attributes(result, suffix)
    result = formats.of_numpy(result)
    _check_variables(result, suffix)
    if suffix != ".nc" and (empty := [str(dim) for dim, size in result.sizes.items() if not size]):
        raise ValueError(
            f"`result` has nothing along {', '.join(empty)}, which a {suffix} file cannot hold: "
            f"save it as .nc"
        )
    try:
        content = WRITERS[suffix](result)
        content = content.encode() if isinstance(content, str) else content
    except Exception as error:  # each library has its own, of texts that it cannot hold
        why = " ".join(str(error).split())
        raise ValueError(f"`result` cannot be written as {suffix}: {why:.200}") from None
    files.write(path, content)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Open a result that `save` wrote; of an array, the Dataset that holds it.

    Examples
    --------
    >>> import manypass as mp
    >>> import tempfile, pathlib
    >>> problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Hebbian(), rate=0.5, decay=0.1)
    >>> found, path = mp.solve(problem, [1.0]), pathlib.Path(tempfile.mkdtemp(), "x.csv")
    >>> mp.save(found, path)
    >>> mp.load(path).identical(found)
    True
    """
    if isinstance(path, str | os.PathLike) and os.path.isdir(files.home(path)):
        swept = Path(path, "sweep.nc")
        hint = f": its sweep is {str(swept)!r}" if files.home(swept).is_file() else ""
        name = checks.shown(str(path), 200)
        raise ValueError(f"`path` {name} is a folder, not a file of a result{hint}")
    suffix, name = files.suffix(path, FORMATS), checks.shown(str(path), 200)
    path = files.home(path)
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"`path`: there is {files.missing(path)}") from None
    except OSError as error:
        raise ValueError(f"`path` {name} cannot be read: {error.strerror}") from None
    try:
        if suffix == ".nc":
            result = files.open_netcdf(path, content)
        else:
            text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig").read()
            result = (formats.from_csv if suffix == ".csv" else formats.from_json)(text)
    except MemoryError:
        raise
    except Exception as error:  # each library has its own, of files that are damaged
        kind = {".nc": "netCDF", ".csv": "CSV", ".json": "JSON"}[suffix]
        why = " ".join(str(error).split())
        raise ValueError(f"`path` {name} is not a {kind} file of a result: {why:.300}") from None
    problem_entry(result)
    result.encoding["source"] = str(Path(path).resolve())
    return result


def _check_attributes(result: xr.Dataset, suffix: str) -> None:
    """Refuse attributes of a user's own that a file of this kind cannot hold."""
    tables = (result.attrs, *(result[name].attrs for name in result.variables))
    for attrs in tables:
        for name, value in attrs.items():
            if isinstance(value, str | float):
                continue
            try:
                WRITERS[suffix](xr.Dataset(attrs={name: value}))
            except Exception:  # each library has its own
                raise ValueError(
                    f"`result` has an attribute {name!r} that a {suffix} file cannot hold, "
                    f"{checks.shown(value)}: make it a text or a number"
                ) from None


def _check_variables(result: xr.Dataset, suffix: str) -> None:
    """Refuse variables of a user's own that a file of this kind cannot hold, or not read again."""
    for name, variable in result.variables.items():
        kind = variable.dtype.kind
        try:
            held = str | float if suffix == ".json" else str  # elsewhere numbers would become texts
            if kind == "O" and not all(isinstance(v, held) for v in variable.values.flat):
                raise TypeError
            if not isinstance(name, str):
                raise TypeError
            if kind not in "biufUO":
                WRITERS[suffix](xr.Dataset({name: variable}))
        except Exception:  # each library has its own
            raise ValueError(
                f"`result` has a variable {checks.shown(name)} of {variable.dtype} that a {suffix} "
                f"file cannot hold, {checks.shown(variable.values)}: make it "
                f"numbers or texts, or leave it out"
            ) from None


def real(result: xr.Dataset, name: str) -> xr.DataArray:
    """Return a variable if it holds real numbers, which alone can be drawn."""
    values = result[name]
    if values.dtype.kind not in "biuf":
        raise ValueError(f"`{name}` of a result must be real numbers, got {values.dtype}")
    return values


def told(result: xr.Dataset | xr.DataArray, attribute: str) -> Any:
    """Return what a result says of its problem or method, {} if it was lost on the way.

    Others' arithmetic drops attributes; what is there must be readable.
    """
    if attribute not in result.attrs:
        return {}
    if attribute == "problem":
        return problem_entry(result)
    held = result.attrs[attribute]
    try:
        entry = json.loads(held)
    except (TypeError, ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict | str):
        raise ValueError(f"the attribute {attribute!r} of `result` says none: {checks.shown(held)}")
    return entry


def problem_entry(result: Any) -> dict[str, Any]:
    """Return the description of the problem that a result answers."""
    if "problem" not in getattr(result, "attrs", {}):
        if isinstance(result, xr.DataArray):
            raise ValueError(
                f"`result` is the variable {result.name!r} alone, which does not say its problem: "
                f"give the whole Dataset"
            )
        raise ValueError(
            f"not a manypass result: `result` has no attribute 'problem': {checks.shown(result)}"
        )
    try:
        entry: Any = json.loads(result.attrs["problem"])
    except (TypeError, ValueError, RecursionError):
        entry = None
    tables = ("data", "rule")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(t), dict) for t in tables):
        raise ValueError(
            f"not a manypass result: the attribute 'problem' of `result` describes none: "
            f"{checks.shown(result.attrs['problem'])}"
        )
    return entry


def attributes(problem: Problem) -> dict[str, Any]:
    """Attributes that every result carries."""
    return {"problem": json.dumps(problem.to_dict()), "version": __version__}


def method_entry(method: Any) -> dict[str, Any]:
    """Name and settings of a method, as plain strings and numbers."""
    return {"name": type(method).__name__, **vars(method)}


def labelled(coords: dict[str, Any]) -> dict[str, xr.Variable]:
    """Return coordinates with their long names."""
    out = {}
    for name, value in coords.items():
        attrs = {"long_name": LONG_NAMES[name]}
        if np.ndim(value) == 0:
            out[name] = _variable((), value, attrs)
        else:
            index: Any = xr.IndexVariable
            out[name] = index(name, pd.Index(value), attrs, fastpath=True)
    return out


def _variable(dims: tuple[str, ...], values: Any, attrs: dict[str, Any]) -> xr.Variable:
    """Label values; by its slow path xarray would import dask, just to ask whose they are."""
    return xr.Variable(dims, np.asarray(values), attrs, fastpath=True)
