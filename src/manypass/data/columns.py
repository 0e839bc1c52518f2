"""Tables of numbers from arrays, frames and sparse matrices; every objection names the column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from manypass import checks, memory
from manypass.checks import Array

LARGEST = 1e50  # of an entry: squares of squares stay within the floats
SMALLEST = 1e-50  # likewise what a column must exceed somewhere
ROWS = 4096  # of a sparse matrix that are looked at together
Names = tuple[str, ...] | None
Labels = Sequence[str | int] | None


class RowError(ValueError):
    """An objection to one row; `{row}` in the message is where, which who read a file knows better.

    Examples
    --------
    >>> error = RowError("X", 7, "`X` is missing in {row}")
    >>> str(error), error.placed("line 9")
    ('`X` is missing in row 7', '`X` is missing in line 9')
    """

    def __init__(self, argument: str, row: int, message: str) -> None:
        self.argument, self.row, self.message = argument, int(row), message
        super().__init__(self.placed(f"row {row}"))

    def placed(self, place: str) -> str:
        """Return the message with another name of the row."""
        return self.message.replace("{row}", place)


def is_frame(table: Any) -> bool:
    """Whether this is a pandas frame, or something like one, without importing pandas."""
    return hasattr(table, "columns") and hasattr(table, "dtypes")


def is_indexed(table: Any) -> bool:
    """Whether this is a pandas frame or series, whose rows have labels."""
    return hasattr(table, "index") and hasattr(table, "loc")


def labelled(table: Any) -> Any:
    """Return what pandas makes of an array of xarray whose rows have labels, or what was given."""
    known = type(table).__name__ == "DataArray" and 0 < table.ndim < 3
    return table.to_pandas() if known and table.dims[0] in table.indexes else table


def with_rows(frame: Any) -> Any:
    """Return a frame that was read, in which the names of its rows are columns if they have names.

    So they are in text files, and in Parquet, where only pandas knows them from others.
    """
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(named) if named else frame


def is_sparse(table: Any) -> bool:
    """Whether this is a scipy sparse matrix or array."""
    return hasattr(table, "tocsr") and hasattr(table, "nnz")


def inputs(argument: str, table: Any, names: Names, kept: Sequence[int] = ()) -> tuple[Any, Names]:
    """Return a p × N array of floats (or a sparse one) of one's own, and the column names.

    Columns without names may be called by the numbers that were `kept`.
    """
    if is_frame(table):
        labels = tuple(str(name) for name in table.columns)
        check_distinct(argument, labels)
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
        table = dense(argument, table)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"`{argument}` must be examples × features, at least one of each, "
            f"got shape {tuple(table.shape)}"
        )
    if names is not None and len(names) != table.shape[1]:
        raise ValueError(
            f"`names` must name all {table.shape[1]} columns of `{argument}`, got {len(names)}"
        )
    _check_finite(argument, table, names or kept or None)
    return table, names


def check_distinct(argument: str, labels: Iterable[Any]) -> None:
    """Refuse two columns of one name."""
    for label, count in Counter(map(str, labels)).items():
        if count > 1:
            raise ValueError(f"`{argument}` has two columns {label!r}")


def check_single(argument: str, table: Any, drop: Sequence[str] = (), label: str = "") -> None:
    """Refuse entries that hold several values, lists or arrays, in columns that are not dropped."""
    if is_frame(table):
        check_distinct(argument, table.columns)
        for name in table.columns:
            if str(name) not in drop:
                check_single(argument, table[name], label=f" in column {str(name)!r}")
        return
    if not (label or argument.startswith("y")) or table is None or is_sparse(table):
        return  # tables without names are of numbers
    values = checks.array(argument, table)
    for row, v in enumerate(values if values.dtype.kind == "O" and values.ndim == 1 else ()):
        if np.iterable(v) and not isinstance(v, str | bytes):
            remedy = "" if argument.startswith("y") else ": make columns of it, or `drop` it"
            raise RowError(
                argument,
                row,
                f"`{argument}` must have one number or text in each cell, got {checks.shown(v)}"
                f"{label}, {{row}}{remedy}",
            )


def check_names(table: Any, names: Names) -> None:
    """Refuse names of a frame that are not its own."""
    held = tuple(map(str, table.columns)) if is_frame(table) else names
    if names is not None and names != held:
        raise ValueError(
            f"`names` are for tables without any, and `X` is a frame that has "
            f"{', '.join(held or ()):.200}: leave `names` out, or rename its columns"
        )


def check_without_target(table: Any, given: Any, values: Any, drop: Sequence[str]) -> None:
    """Refuse a frame that still has the column which is the target: it would be learned from."""
    name = getattr(given, "name", None)
    if not is_frame(table) or name is None or str(name) in drop or name not in table.columns:
        return
    if np.array_equal(np.asarray(table[name]), np.asarray(values)):
        raise ValueError(
            f"`X` still has the column {str(name)!r}, which is `y`: say Dataset(X, {str(name)!r}), "
            f"or leave it out by drop=[{str(name)!r}]"
        )


def telling(table: Any, values: Array, names: Labels) -> str | None:
    """Say which column is the target itself, as it is or as 0 and 1; one may have wanted it."""
    if values.shape != table.shape[:1]:
        return None  # refused elsewhere
    same, start = np.ones((2, table.shape[1]), bool), 0
    for part in row_blocks(table):
        wanted = values[start : start + len(part), None]
        same &= [(part == wanted).all(axis=0), (2 * part - 1 == wanted).all(axis=0)]
        start += len(part)
    found = np.flatnonzero(same.any(axis=0))
    if not found.size:
        return None
    column = label_of(names, int(found[0]))
    return f"`X`: column {column} is the target `y` itself: if that is not meant, `drop` it"


def numbers(argument: str, values: Any, label: str | None = None) -> Array:
    """Return one column of floats; `label` is how to call it."""
    check_mask(argument, values)
    where = f" in column {label}" if label else ""
    try:
        plain = np.asarray(values)
        if plain.dtype.kind == "O":  # frames with missing entries: pd.NA and None
            cells = [np.nan if missing(v) else v for v in plain.ravel()]
            plain = np.array([float(v) if isinstance(v, Decimal) else v for v in cells])
        if plain.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        flat = np.asarray(values, dtype=object).ravel()
        row, remedy = _odd(flat), ": encode it (`one_hot`) or leave it out (`drop`)"
        if why := nearly(flat[row]):
            remedy = f", {{row}}: {why}"
        elif all(isinstance(v, str) and reads_as_number(v) for v in flat):
            remedy = ": these are numbers as texts, make numbers of them (`pandas.to_numeric`)"
        elif argument.startswith("y"):  # the target can be neither
            remedy = ": targets of a regression are numbers, two labels are a classification"
        elif not reads_as_number(flat[row]) and any(
            is_number(v) or reads_as_number(v) for v in flat
        ):
            remedy = ", {row}: drop the row or the column (`drop`), or name it in `one_hot`"
        raise RowError(
            argument,
            row,
            f"`{argument}` must be numbers, got {checks.shown(flat[row])}{where}{remedy}",
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
        where, row = f" (column {label})" if label else "", bad[0]
        what = f"it is {out[row]:g} in {{row}}"
        if np.isnan(out[row]):
            what = "it is missing (nan) in {row}: drop the row"
        raise RowError(
            argument, row, f"`{argument}`{where} must be {_allowed(out[row])}, but {what}"
        )
    largest = np.abs(out).max(initial=0.0)
    if 0 < largest < SMALLEST:
        where = f" (column {label})" if label else ""
        raise ValueError(
            f"`{argument}`{where} must have numbers above {SMALLEST:g} in size, or zeros alone, "
            f"but the largest is {largest:g}: take another unit"
        )
    out.setflags(write=False)
    return out


def check_classes(argument: str, values: Array, label: str | None) -> None:
    """Refuse targets of a classification task that are not ±1."""
    bad = np.flatnonzero(np.abs(values) != 1)
    if bad.size:
        where = f" (column {label})" if label else ""
        raise RowError(
            argument,
            bad[0],
            f"`{argument}`{where} must be -1 or +1 for task 'classification', got "
            f"{values[bad[0]]:g} in {{row}}: name the class that is +1 by `positive`, or take "
            f"task='regression'",
        )


def constant(table: Any) -> Any:
    """Say of each column of an array whether it is empty or the same in all rows."""
    if is_sparse(table):
        low, high = (np.ravel(m.toarray()) for m in (table.min(axis=0), table.max(axis=0)))
        return low == high
    plain = np.asarray(table)
    if plain.ndim != 2 or 0 in plain.shape or plain.dtype.kind not in "biuf":
        return np.zeros(plain.shape[1:2] or 0, bool)  # refused elsewhere
    return (plain == plain[:1]).all(axis=0) | (plain != plain).all(axis=0)


def check_not_constant(argument: str, table: Any, names: Labels) -> None:
    """Refuse columns that say nothing, or that stand for an intercept; and numbers too small."""
    if table.shape[0] < 2:
        raise ValueError(f"`{argument}` must have at least two examples, got {table.shape[0]}")
    flat = np.flatnonzero(constant(table))
    if flat.size:
        more = f" and {flat.size - 1} more are" if flat.size > 1 else " is"
        raise ValueError(
            f"`{argument}`: column {label_of(names, int(flat[0]))}{more} constant "
            f"({table[0, flat[0]]:g}): drop it, or all such by `drop_constant`; for an intercept "
            f"say intercept=True"
        )
    largest = abs(table).max(axis=0)
    largest = np.ravel(largest.toarray() if is_sparse(largest) else largest)
    column = int(largest.argmin())
    if largest[column] < SMALLEST:
        raise ValueError(
            f"`{argument}` must have numbers above {SMALLEST:g} in size in every column, but in "
            f"column {label_of(names, column)} the largest is {largest[column]:g}: take another "
            f"unit, or drop it"
        )


def check_mask(argument: str, values: Any) -> None:
    """Refuse a masked array that masks anything: its numbers are there, but not to be used."""
    rows = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        masked = np.argwhere(np.ma.getmaskarray(np.ma.array(values)))
        where = ", column ".join(map(str, masked[0]))
        raise ValueError(
            f"`{argument}` must have no masked entries, got {len(masked)}, the first in row "
            f"{where}: drop these rows, or fill them"
        )


def label_of(names: Labels, index: int) -> str:
    """How to call a column."""
    return repr(names[index]) if names is not None else str(index)


def row_blocks(table: Any) -> Iterator[Array]:
    """Dense pieces of a table, one after the other."""
    for start in range(0, table.shape[0], ROWS):
        part = table[start : start + ROWS]
        yield np.ascontiguousarray(part.toarray() if is_sparse(part) else part)


def dense(argument: str, table: Any) -> Array:
    """Return a table as floats of one's own."""
    check_mask(argument, table)
    try:
        plain = np.asarray(table)
        if plain.dtype.kind == "O" and all(is_number(v) or missing(v) for v in plain.flat):
            filled = [np.nan if missing(v) else v for v in plain.flat]  # frames of several types
            plain = np.array(filled, dtype=float).reshape(plain.shape)
        if plain.dtype.kind not in "biuf":
            raise TypeError
    except Exception:  # whatever an object of someone's own raises
        raise ValueError(
            f"`{argument}` must be a table of numbers, got {_describe(table)}"
        ) from None
    memory.require(8 * plain.size, f"take fewer examples or columns of `{argument}`")
    out = np.array(plain, dtype=float, order="C")
    out.setflags(write=False)
    return out


def _allowed(value: float) -> str:
    """Say what a number should have been: finite, or if it is that, not so large."""
    return f"numbers up to {LARGEST:g} in size" if np.isfinite(value) else "finite numbers"


def _check_finite(argument: str, table: Any, names: Labels) -> None:
    start = 0
    for part in row_blocks(table):
        bad = np.argwhere(~(np.abs(part) <= LARGEST))
        if bad.size:
            row, column = bad[0]
            value = part[row, column]
            what = "is missing" if np.isnan(value) else f"is {value:g}"
            where, remedy = f"{what} in {{row}}", "fill it or drop the row"
            if np.isfinite(value):
                remedy = "take another unit, or drop the row"
            if not is_sparse(table) and np.isnan(table[:, column]).all():
                where, remedy = "is empty", "drop it, or all such by `drop_constant`"
            raise RowError(
                argument,
                start + row,
                f"`{argument}` must be {_allowed(value)}, but column "
                f"{label_of(names, int(column))} {where}: {remedy}",
            )
        start += len(part)


def stripped(entries: Any) -> Any:
    """Return entries, texts among them without blanks around: 'yes ' and ' yes' are the same."""
    out = np.empty(len(entries), object)
    out[:] = [v.strip() if isinstance(v, str) else v for v in entries]
    return out


def missing(value: Any) -> bool:
    """Whether an entry of a frame is missing: None, NaN, pd.NA, pd.NaT."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _describe(table: Any) -> str:
    if is_sparse(table):
        return "a sparse matrix of another kind"
    try:
        entries = np.asarray(table, dtype=object)
    except Exception:  # no table at all
        return checks.shown(table)
    if not entries.size or all(map(is_number, entries.flat)):
        return checks.shown(table)
    place = np.unravel_index(_odd(entries.ravel()), entries.shape)
    where = f" in row {place[0]}, column {place[1]}" if len(place) == 2 else ""
    return f"{checks.shown(entries[place])}{where}"


def _odd(entries: Any) -> int:
    """Where the first entry is that is no number: rather '?' than '0.8', which it made a text."""
    texts = [i for i, v in enumerate(entries) if not is_number(v) and not missing(v)]
    odd = (i for i in texts if not reads_as_number(entries[i]) or nearly(entries[i]))
    return next(odd, texts[0] if texts else 0)


def nearly(value: Any) -> str:
    """Say what keeps a text from being a number, if it is one character."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    try:
        held = float(text)
    except ValueError:
        held = None
    if held is not None and not reads_as_number(text):  # Python takes both, a table neither
        plain = f"{held:.15g}"
        if "_" in text:
            return f"an underscore is no part of a number: write {plain}"
        return f"its digits are not 0 to 9: write {plain}"
    if held is not None and np.isinf(held) and any(map(str.isdigit, text)):
        return "it is larger than any number of a table: take another unit, or drop the row"
    if text.endswith("%") and reads_as_number(text[:-1]):
        return f"a percentage is a text: write {text[:-1].strip()}, without %"
    for sign in "\N{MINUS SIGN}\N{EN DASH}\N{EM DASH}":
        if text.startswith(sign) and reads_as_number(text[1:]):
            return f"its minus is U+{ord(sign):04X}, not the '-' of a number: write -{text[1:]}"
    return ""


def reads_as_number(value: Any) -> bool:
    """Whether an entry is a text that would be a number, were it not for others in its column."""
    if not isinstance(value, str) or not value.isascii() or "_" in value:
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def is_number(value: Any) -> bool:
    """Whether an entry is a real number or a boolean."""
    return isinstance(value, int | float | np.number | np.bool_) and not isinstance(
        value, np.complexfloating
    )
