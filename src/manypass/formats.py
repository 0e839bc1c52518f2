"""Results as text: a CSV table under `#` lines, or JSON; both can be read back."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import xarray as xr

KEYS = ("dims", "dtype", "attrs", "data")  # of a variable, in JSON
LAYOUT = "layout"  # the `#` line that says what the columns are, and on which dimensions


def of_numpy(result: xr.Dataset) -> xr.Dataset:
    """Return the same with texts and numbers as numpy has them, where pandas' own are in it.

    Examples
    --------
    >>> import pandas as pd
    >>> of_numpy(xr.Dataset({"a": ("t", pd.array(["one", "two"]))})).a.values.tolist()
    ['one', 'two']
    """
    changed: dict[Any, xr.Variable] = {}
    for name, variable in result.variables.items():
        foreign = not isinstance(variable.dtype, np.dtype) or variable.dtype.kind == "T"
        values = np.asarray(variable.values, dtype=object) if foreign else variable.values
        for kind in (str, float, int, bool) if foreign else (float,):  # object: texts stay
            if values.dtype == object and all(type(value) is kind for value in values.flat):
                values = values.astype(kind)
        if values.dtype != variable.dtype:
            changed[name] = xr.Variable(variable.dims, values, variable.attrs)
    coords = {name: changed.pop(name) for name in [*changed] if name in result.coords}
    return result.assign(changed).assign_coords(coords)


def to_csv(result: xr.Dataset) -> str:
    """One row per point, under `#` lines that hold the attributes and the layout."""
    sizes = {str(dim): size for dim, size in result.sizes.items()}
    names = list(dict.fromkeys(map(str, (*sizes, *result.coords, *result.data_vars))))
    layout = {"sizes": sizes, "columns": {name: _described(result, name) for name in names}}
    text = io.StringIO()
    for key, value in {**result.attrs, LAYOUT: json.dumps(layout)}.items():
        text.write(f"# {key} = {_as_text(value)}\n")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(names)
    table.writerows(zip(*(_column(result[name], sizes) for name in names), strict=True))
    return text.getvalue()


def from_csv(text: str) -> xr.Dataset:
    """Read what `to_csv` wrote."""
    lines = text.splitlines(keepends=True)
    head = [line for line in lines if line.startswith("# ") and " = " in line]
    pairs = [line[2:].rstrip("\n").partition(" = ") for line in head]
    attrs = {key: _as_value(value) for key, _, value in pairs}
    if LAYOUT not in attrs:
        raise ValueError(f"it has no line '# {LAYOUT} = ...', as save() writes")
    try:
        layout = json.loads(attrs.pop(LAYOUT))
    except (TypeError, ValueError):
        raise ValueError(
            f"its line '# {LAYOUT} = ...' is not what save() wrote: a spreadsheet or an editor has "
            f"changed the file"
        ) from None
    table = (line for line in lines if not line.startswith("#"))  # notes of others may be anywhere
    names, *rows = [row for row in csv.reader(table) if row] or [[]]  # an editor may add lines
    sizes, out = layout["sizes"], xr.Dataset(attrs=attrs)
    count = math.prod(sizes.values())
    if len(rows) != count or not text.endswith("\n"):
        end = "" if text.endswith("\n") else ", the last without its end"  # or its last digits
        if len(rows) > count:
            raise ValueError(f"it has {len(rows)} rows, more than the {count} that were saved")
        raise ValueError(f"it is cut off: of {count} rows it has {len(rows)}{end}")
    odd = next((i for i, row in enumerate(rows, 1) if len(row) != len(names)), 0)
    if odd:
        raise ValueError(f"its row {odd} has {len(rows[odd - 1])} values, not {len(names)}")
    lost = layout["columns"].keys() - names
    if lost:
        raise ValueError(f"it has no column {', '.join(sorted(lost))}")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    for name, entry in layout["columns"].items():
        if entry["coord"] is None:  # only counts the points of a dimension
            continue
        whole = _typed(columns[name], entry["dtype"]).reshape(tuple(sizes.values()))
        own = whole[tuple(slice(None) if dim in entry["dims"] else 0 for dim in sizes)]
        dims = [dim for dim in sizes if dim in entry["dims"]]
        variable = xr.Variable(dims, own, entry["attrs"]).transpose(*entry["dims"])
        out[name] = variable
        out = out.set_coords(name) if entry["coord"] else out
    return out


def to_json(result: xr.Dataset) -> str:
    """Coordinates and variables with their dimensions; inf and NaN, which JSON lacks, are null."""

    def entry(name: Any) -> dict[str, Any]:
        values, described = result[name].values, _described(result, str(name))
        out = {key: described[key] for key in ("dims", "dtype", "attrs")}
        if values.dtype.kind == "f":
            infinite = np.flatnonzero(np.isinf(values)).tolist()
            out |= {"infinite": infinite} if infinite else {}
            finite, values = np.isfinite(values), values.astype(object)
            values[~finite] = None
        return out | {"data": values.tolist()}

    tables = {"coords": result.coords, "data_vars": result.data_vars}
    entries = {table: {name: entry(name) for name in names} for table, names in tables.items()}
    return json.dumps({"attrs": _plain(result.attrs), **entries}, indent=1) + "\n"


def from_json(text: str) -> xr.Dataset:
    """Read what `to_json` wrote; null is inf where it is listed as infinite, otherwise NaN."""
    entries = json.loads(text)
    tables = ("attrs", "coords", "data_vars")
    if not isinstance(entries, dict) or not all(name in entries for name in tables):
        raise ValueError(f"it has not the entries {', '.join(tables)}, as save() writes")
    for table in tables:
        held = entries[table]
        if not isinstance(held, dict):
            raise ValueError(f"its entry {table} is no table, as save() writes: {held!r:.60}")
        for name, entry in () if table == "attrs" else held.items():
            if not isinstance(entry, dict) or not all(key in entry for key in KEYS):
                raise ValueError(f"its variable {name!r} has not the entries {', '.join(KEYS)}")
            if not isinstance(entry["dtype"], str) or np.dtype(entry["dtype"]).kind == "V":
                raise ValueError(f"its variable {name!r} has no dtype, got {entry['dtype']!r:.60}")

    def variable(entry: dict[str, Any]) -> xr.Variable:
        values = np.array(entry["data"], dtype=entry["dtype"])
        if values.dtype.kind == "O" and not all(isinstance(v, str | float) for v in values.flat):
            raise ValueError(f"data of dtype object must be texts or numbers, got {values!r:.60}")
        if "infinite" in entry:
            values.reshape(-1)[entry["infinite"]] = np.inf
        return xr.Variable(entry["dims"], values, entry["attrs"])

    coords, data = (
        {name: variable(entry) for name, entry in entries[table].items()}
        for table in ("coords", "data_vars")
    )
    return xr.Dataset(data, coords, entries["attrs"])


def _described(result: xr.Dataset, name: str) -> dict[str, Any]:
    values, known = result[name], name in result.variables
    return {
        "dims": [str(dim) for dim in values.dims],
        "coord": name in result.coords if known else None,
        "dtype": str(values.dtype),
        "attrs": _plain(values.attrs),
    }


def _column(values: xr.DataArray, sizes: dict[str, int]) -> list[Any]:
    """Repeat values along the dimensions that they do not have."""
    own = values.transpose(*(dim for dim in sizes if dim in values.dims)).values
    shape = [size if dim in values.dims else 1 for dim, size in sizes.items()]
    column: list[Any] = np.broadcast_to(own.reshape(shape), tuple(sizes.values())).ravel().tolist()
    return column


def _typed(column: tuple[str, ...], dtype: str) -> Any:
    if dtype == "bool":
        return np.array([value == "True" for value in column])
    return np.array(column, dtype=object).astype(dtype)


def _plain(attrs: Any) -> dict[str, Any]:
    """Return attributes as Python's own numbers and strings."""
    return {
        k: v.tolist() if isinstance(v, np.generic | np.ndarray) else v for k, v in attrs.items()
    }


def _as_text(value: Any) -> str:
    """One line: words as they are, everything that would be read as something else quoted."""
    if isinstance(value, str) and value.isprintable() and _as_value(value) == value:
        return value
    if isinstance(value, dict):  # would be read as a text, as problems and methods are
        raise TypeError
    return json.dumps(_plain({"": value})[""])


def _as_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, dict) else value  # problems and methods stay text
