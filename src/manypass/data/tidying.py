"""Tables as people have them, on request made fit: columns dropped, categories as 0 and 1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from manypass import checks, memory
from manypass.data import columns, preparing

MANY = 20  # different texts of a column that may be one for each row


def column_list(argument: str, given: Any) -> tuple[str, ...]:
    """Names, or numbers, of columns; one alone need not be in a list."""
    entries = (given,) if isinstance(given, str | int) and not isinstance(given, bool) else given
    try:
        entries = tuple(entries)
        if all(isinstance(v, str | int | np.integer) for v in entries):
            return tuple(map(checks.written, entries))
    except TypeError:
        pass
    raise ValueError(f"`{argument}` must be a list of columns, got {checks.shown(given)}")


def aligned(one: str, table: Any, other: str, values: Any) -> Any:
    """Targets in the order of the inputs, if both have an index; an index that differs is refused.

    Frames that were shuffled or sorted apart keep their row labels: these say what goes together.
    """
    table, values = columns.labelled(table), columns.labelled(values)
    if not (columns.is_indexed(table) and columns.is_indexed(values)):
        return values
    if len(table.index) != len(values.index) or table.index.equals(values.index):
        return values  # another length is refused with its numbers
    unique = table.index.is_unique and values.index.is_unique
    levels = table.index.nlevels == values.index.nlevels
    if not (unique and levels and table.index.isin(values.index).all()):
        raise ValueError(
            f"`{other}` must have the index of `{one}`, got another: to pair them by position, "
            f"give {other}.to_numpy()"
        )
    return values.loc[table.index]


def tidy(
    X: Any,
    X_test: Any,
    names: columns.Names,
    *,
    drop: tuple[str, ...],
    one_hot: Any,
    drop_constant: bool,
) -> Any:
    """Return X, X_test with the columns of X in their order, and the names, as asked for.

    And, of columns without names, which of the given ones they are.
    """
    if (drop or drop_constant) and not columns.is_frame(X) and not columns.is_sparse(X):
        X = columns.dense("X", X)
    for argument, table in (("X", X), ("X_test", X_test)):
        if columns.is_frame(table):
            columns.check_distinct(argument, table.columns)
    known = (drop or drop_constant) and not columns.is_frame(X)
    kept = list(range(len(held_by(X)))) if known else []
    if drop:
        kept = left(X, names, drop, kept)
        X, X_test, names = without(X, X_test, names, drop)
    X_test = preparing.in_order(X_test, tuple(held_by(X)) if columns.is_frame(X) else names)
    if one_hot:
        X, X_test = encoded(X, X_test, one_hot)
    if drop_constant:
        drop = constant(X, names)
        kept = left(X, names, drop, kept)
        X, X_test, names = without(X, X_test, names, drop)
    return X, X_test, names, kept


def left(X: Any, names: columns.Names, drop: tuple[str, ...], kept: list[int]) -> list[int]:
    """Return numbers of columns without those that are dropped; there are none of a frame."""
    return [i for i, name in zip(kept, held_by(X, names), strict=False) if name not in drop]


def without(X: Any, X_test: Any, names: columns.Names, drop: tuple[str, ...]) -> Any:
    """Return X, X_test and the names without some columns, which X must have."""
    held = held_by(X, names)
    known = set(held)
    for name in drop:
        if name not in known:
            raise ValueError(
                f"`drop` must name columns of `X`, got {checks.shown(name)}: "
                f"it has {', '.join(held):.200}"
            )
    unwanted = set(drop)
    keep = [i for i, name in enumerate(held) if name not in unwanted]
    if columns.is_frame(X_test):
        others = [str(name) for name in X_test.columns]
        X_test = _take(X_test, [i for i, name in enumerate(others) if name not in unwanted])
    elif X_test is not None:
        X_test = _take(X_test, keep, len(held))
    return _take(X, keep), X_test, None if names is None else tuple(names[i] for i in keep)


def constant(X: Any, names: columns.Names) -> tuple[str, ...]:
    """Return columns that are empty or the same in all rows; not all may be."""
    if columns.is_frame(X):
        flat = [same(X[name]) for name in X.columns]
    else:
        flat = columns.constant(X).tolist()
    drop = tuple(name for name, same in zip(held_by(X, names), flat, strict=True) if same)
    if len(drop) == len(flat):
        raise ValueError("`drop_constant` leaves nothing: every column of `X` is constant or empty")
    return drop


def encoded(X: Any, X_test: Any, wanted: Any) -> tuple[Any, Any]:
    """Give each category that a column of X has a column of its own, 'name=category', 0 or 1."""
    if not columns.is_frame(X) or not (X_test is None or columns.is_frame(X_test)):
        raise ValueError("`one_hot` needs frames, whose columns have names")
    held = {str(name): np.asarray(X[name]) for name in X.columns}
    every = wanted is True
    if every:
        wanted = [name for name, values in held.items() if _is_text(values)]
    for name in wanted:
        if name not in held:
            raise ValueError(
                f"`one_hot` must name columns of `X`, got {checks.shown(name)}: "
                f"it has {', '.join(held):.200}"
            )
    kinds = {name: _categories(name, held[name]) for name in wanted}
    if texts := [n for n in kinds if every and _numbers_as_texts(kinds[n])]:
        warnings.warn(
            f"`one_hot` makes categories of {', '.join(texts):.200}, which holds numbers as texts: "
            f"if numbers are meant, make them numbers first (`pandas.to_numeric`)",
            stacklevel=checks.outside(),
        )
    if names := [n for n in kinds if every and MANY < len(kinds[n]) > held[n].size / 2]:
        few = f"{len(kinds[names[0]])} different texts in {held[names[0]].size} rows"
        warnings.warn(
            f"`one_hot` makes a column of every text of {', '.join(names):.200}: {few}, such as a "
            f"date or a name has, say nothing of other rows; leave it out (`drop`)",
            stacklevel=checks.outside(),
        )
    return _indicators("X", X, kinds), None if X_test is None else _indicators(
        "X_test", X_test, kinds
    )


def _numbers_as_texts(kinds: list[Any]) -> bool:
    """Whether all of them are numbers, and not only codes."""
    texts = all(isinstance(kind, str) and columns.reads_as_number(kind) for kind in kinds)
    return texts and not all(kind.strip().lstrip("+-").isdigit() for kind in kinds)


def _indicators(argument: str, table: Any, kinds: dict[str, list[Any]]) -> Any:
    memory.require(8 * len(table) * sum(map(len, kinds.values())), "encode fewer columns")
    out: dict[str, Any] = {}
    for name in table.columns:
        values, label = np.asarray(table[name]), str(name)
        if label not in kinds:
            out[label] = values
            continue
        places = {kind: i for i, kind in enumerate(kinds[label])}
        found = np.array([places.get(v, -1) for v in values.tolist()])
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise columns.RowError(
                argument,
                row,
                f"`{argument}` has {checks.shown(values[row])} in column {label!r}, "
                f"{{row}}, which `X` has not: drop the row, or the column by `drop`",
            )
        for kind, i in places.items():
            out[f"{label}={kind}"] = (found == i).astype(float)
    return type(table)(out)


def _categories(name: str, values: Any) -> list[Any]:
    absent = [i for i, v in enumerate(values.tolist()) if columns.missing(v)]
    if absent:
        raise columns.RowError(
            "X",
            absent[0],
            f"`X` must have no gaps, but column {name!r} is missing in {{row}}: fill it "
            f"or drop the row",
        )
    held = set(values.tolist())
    try:
        return sorted(held)
    except TypeError:  # words and numbers
        return sorted(held, key=str)


def _is_text(values: Any) -> bool:
    """Whether no entry is a number; a column of numbers with a stray word in it is not text.

    Files make all entries of such a column texts: then most of them, not all, read as numbers.
    """
    if values.dtype.kind in "biuf":
        return False
    there = [v for v in values.tolist() if not columns.missing(v)]
    numeric = sum(map(columns.reads_as_number, there))
    stray = len(there) / 2 < numeric < len(there)
    return bool(there) and not stray and not any(map(columns.is_number, there))


def same(column: Any) -> bool:
    """Whether a column is empty, or the same in all rows."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return bool(columns.constant(values[:, None])[0])
    absent = [columns.missing(v) for v in values.tolist()]
    return all(absent) or (not any(absent) and len(set(map(str, values.tolist()))) == 1)


def held_by(table: Any, names: columns.Names = None) -> list[str]:
    """Return what the columns of a table are called: by name, or by number."""
    if columns.is_frame(table):
        return [str(name) for name in table.columns]
    shape = np.shape(table)
    width = shape[1] if len(shape) == 2 else 0
    return list(names) if names is not None else [str(i) for i in range(width)]


def _take(table: Any, keep: list[int], width: int | None = None) -> Any:
    if columns.is_frame(table):
        return table[[table.columns[i] for i in keep]]
    if columns.is_sparse(table):
        table = table.tocsr()
    elif not isinstance(table, np.ndarray) or isinstance(table, np.ma.MaskedArray):
        table = columns.dense("X_test", table)
    if width is not None and (table.ndim != 2 or table.shape[1] != width):
        raise ValueError(f"`X_test` must have the {width} columns of `X`, got shape {table.shape}")
    return table[:, keep]
