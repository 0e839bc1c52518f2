"""Tables of numbers from arrays, frames and sparse matrices; every objection names the column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from manypass import memory
from manypass.checks import Array

LARGEST = 1e50  # of an entry: squares of squares stay within the floats
ROWS = 4096  # of a sparse matrix that are looked at together
Names = tuple[str, ...] | None


def is_frame(table: Any) -> bool:
    """Whether this is a pandas frame, or something like one, without importing pandas."""
    return hasattr(table, "columns") and hasattr(table, "dtypes")


def is_sparse(table: Any) -> bool:
    """Whether this is a scipy sparse matrix or array."""
    return hasattr(table, "tocsr") and hasattr(table, "nnz")


def inputs(argument: str, table: Any, names: Names) -> tuple[Any, Names]:
    """Return a p × N array of floats (or a sparse one) of one's own, and the column names."""
    if is_frame(table):
        labels = tuple(str(name) for name in table.columns)
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"`{argument}` has two columns {label!r}")
        parts = [numbers(argument, table[name], label=repr(str(name))) for name in table.columns]
        if not parts:
            raise ValueError(f"`{argument}` has no columns besides the target")
        table, names = np.column_stack(parts), labels
    if is_sparse(table):
        table = table.tocsr().astype(float)  # a copy
        table.sort_indices()
        table.sum_duplicates()
        table.data.setflags(write=False)
    else:
        table = _dense(argument, table)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"`{argument}` must be examples × features, at least one of each, "
            f"got shape {tuple(table.shape)}"
        )
    if names is not None and len(names) != table.shape[1]:
        raise ValueError(
            f"`names` must name all {table.shape[1]} columns of `{argument}`, got {len(names)}"
        )
    _check_finite(argument, table, names)
    return table, names


def numbers(argument: str, values: Any, label: str | None = None) -> Array:
    """Return one column of floats; `label` is how to call it."""
    where = f" in column {label}" if label else ""
    try:
        plain = np.asarray(values)
        if plain.dtype.kind == "O":  # frames with missing entries: pd.NA and None
            plain = np.array([np.nan if _missing(v) else v for v in plain.ravel()])
        if plain.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        flat = np.asarray(values, dtype=object).ravel()
        odd = next((v for v in flat if not isinstance(v, int | float | np.number)), flat[:1])
        raise ValueError(
            f"`{argument}` must be numbers, got {odd!r:.60}{where}: encode or drop it"
        ) from None
    if plain.ndim == 2 and plain.shape[1] == 1:
        plain = plain[:, 0]
    if plain.ndim != 1:
        raise ValueError(f"`{argument}` must have one dimension, got shape {plain.shape}{where}")
    return plain.astype(float)


def targets(argument: str, values: Any, label: str | None) -> Array:
    """Return finite targets that nobody else can change."""
    out = numbers(argument, values, label)
    bad = np.flatnonzero(~(np.abs(out) <= LARGEST))
    if bad.size:
        where = f" (column {label})" if label else ""
        raise ValueError(
            f"`{argument}`{where} must be finite numbers, got {out[bad[0]]} in row {bad[0]}"
        )
    out.setflags(write=False)
    return out


def check_classes(argument: str, values: Array, label: str | None) -> None:
    """Refuse targets of a classification task that are not ±1."""
    bad = np.flatnonzero(np.abs(values) != 1)
    if bad.size:
        where = f" (column {label})" if label else ""
        raise ValueError(
            f"`{argument}`{where} must be -1 or +1 for task 'classification', got "
            f"{values[bad[0]]:g} in row {bad[0]}: map the classes to -1 and +1, or take "
            f"task='regression'"
        )


def check_not_constant(argument: str, table: Any, names: Names) -> None:
    """Refuse columns that say nothing, or that stand for an intercept."""
    if is_sparse(table):
        low, high = (
            np.asarray(m.toarray()).ravel() for m in (table.min(axis=0), table.max(axis=0))
        )
    else:
        low, high = table.min(axis=0), table.max(axis=0)
    flat = np.flatnonzero(low == high)
    if flat.size:
        more = f" and {flat.size - 1} more" if flat.size > 1 else ""
        raise ValueError(
            f"`{argument}`: column {label_of(names, int(flat[0]))}{more} is constant "
            f"({low[flat[0]]:g}): drop it, and for an intercept say intercept=True"
        )


def label_of(names: Sequence[str] | None, index: int) -> str:
    """How to call a column."""
    return repr(names[index]) if names is not None else str(index)


def row_blocks(table: Any) -> Iterator[Array]:
    """Dense pieces of a table, one after the other."""
    for start in range(0, table.shape[0], ROWS):
        part = table[start : start + ROWS]
        yield np.ascontiguousarray(part.toarray() if is_sparse(part) else part)


def _dense(argument: str, table: Any) -> Array:
    try:
        plain = np.asarray(table)
        if plain.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise ValueError(
            f"`{argument}` must be a table of numbers, got {_describe(table)}"
        ) from None
    memory.require(8 * plain.size, f"take fewer examples or columns of `{argument}`")
    out = np.array(plain, dtype=float, order="C")
    out.setflags(write=False)
    return out


def _check_finite(argument: str, table: Any, names: Names) -> None:
    start = 0
    for part in row_blocks(table):
        bad = np.argwhere(~(np.abs(part) <= LARGEST))
        if bad.size:
            row, column = bad[0]
            value = part[row, column]
            what = "is missing" if np.isnan(value) else f"is {value:g}"
            raise ValueError(
                f"`{argument}` must be finite numbers, but column {label_of(names, int(column))} "
                f"{what} in row {start + row}: fill it or drop the row"
            )
        start += len(part)


def _missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _describe(table: Any) -> str:
    if is_sparse(table):
        return "a sparse matrix of another kind"
    plain = np.asarray(table, dtype=object) if isinstance(table, list | tuple) else table
    odd = [v for v in np.ravel(np.asarray(plain, dtype=object)) if not _is_number(v)]
    return f"{odd[0]!r:.60}" if odd else f"{table!r:.60}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, np.complexfloating)
