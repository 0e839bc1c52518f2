"""Which task the targets stand for, and labels of all kinds as −1 and +1."""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass import checks
from manypass.checks import Array
from manypass.data import columns

SHOWN = 6  # labels that an objection lists
CLASSES = 10  # so few whole numbers may be classes
Targets = tuple[Array, Array | None, str, Any, str]


def read(y: Any, y_test: Any, label: str | None, task: str, positive: Any) -> Targets:
    """Return y and y_test as numbers, the task, the label that is +1 (None: they are ±1).

    Two text labels, booleans, and 0 and 1 are classes unless the task is regression. The last
    that is returned is a remark on what was taken for granted, or nothing.
    """
    if positive is not None and not isinstance(positive, str | bool | int | float):
        raise ValueError(
            f"`positive` must be a label, a text or a number, got {checks.shown(positive)}"
        )
    if positive is not None and task == "regression":
        raise ValueError(
            f"`positive` = {checks.shown(positive)} names a class, but `task` is 'regression'"
        )
    remark = ""
    positive = positive.strip() if isinstance(positive, str) else positive
    parts = [_plain(name, v, label) for name, v in (("y", y), ("y_test", y_test)) if v is not None]
    if positive is not None:
        hit = [_equal(values, positive) for values in parts]
        if not hit[0].any():
            held = _listed(_distinct(parts[0]))
            raise ValueError(
                f"`positive` must be one of the labels of {_called(label)}, {held}, "
                f"got {checks.shown(positive)}"
            )
        seen = {*_distinct(parts[0])}
        if odd := [each for values in parts[1:] for each in _distinct(values) if each not in seen]:
            remark = f"`y_test` has labels that `y` has not, {_listed(odd)}: they are -1"
    else:
        pair = None if task == "regression" else _pair(parts[0], label)
        if pair is None:
            return _numbers(parts, label, task)
        _known(parts[1:], pair, label)
        positive = pair[1]
        hit = [_equal(values, positive) for values in parts]
        if not task:
            remark = (
                f"{_called(label)} has the labels {_listed(pair)}: taken as classification, "
                f"{pair[0]!r} as -1 and {positive!r} as +1. Say so by `positive`"
            )
            if parts[0].dtype.kind != "O":
                remark += ", or say `task` 'regression'"
    signs = [np.where(each, 1.0, -1.0) for each in hit]
    for each in signs:
        each.setflags(write=False)
    _check_two(signs[0], parts[0], label)
    return signs[0], signs[1] if y_test is not None else None, "classification", positive, remark


def _numbers(parts: list[Any], label: str | None, task: str) -> Targets:
    """Targets that are numbers already: ±1 are classes, all else is regression."""
    found = [columns.targets(n, v, label) for n, v in zip(("y", "y_test"), parts, strict=False)]
    held, remark = np.unique(found[0]), ""
    if len(parts) > 1 and parts[1].dtype.kind == "b" != parts[0].dtype.kind:
        raise ValueError(
            f"`y_test` has booleans, but {_called(label)} has the numbers of a regression"
        )
    if not task:
        task = "classification" if (np.abs(held) == 1).all() else "regression"
        few = held.size <= min(CLASSES, max(2, found[0].size // 4))
        if few and task == "regression" and (held == held.round()).all():
            *rest, last = (f"{value + 0.0:g}" for value in held)  # no -0
            alone = f"values {', '.join(rest)} and {last}" if rest else f"value {last}"
            remark = (
                f"{_called(label)} has the {alone} alone: taken as regression. If these are "
                f"classes, name the one that is +1 by `positive`; if not, say `task` 'regression'"
            )
    if task == "classification":
        for name, values in zip(("y", "y_test"), found, strict=False):
            columns.check_classes(name, values, label)
        _check_two(found[0], found[0], label)
    return found[0], found[1] if found[1:] else None, task, None, remark


def _check_two(signs: Array, held: Any, label: str | None) -> None:
    """Refuse a training set of one class: whatever is asked, the answer is known."""
    if signs.size > 1 and (signs == signs[0]).all():  # fewer examples are refused elsewhere
        raise ValueError(
            f"{_called(label)} must have two classes, got one alone ({_listed(_distinct(held))})"
        )


def _plain(argument: str, values: Any, label: str | None) -> Any:
    """One dimension of finite numbers, booleans or labels without blanks around; none missing."""
    columns.check_mask(argument, values)
    if columns.is_sparse(values):
        raise ValueError(f"`{argument}` must be an array, got a sparse one: give its toarray()")
    plain = checks.array(argument, values)
    if plain.ndim == 2 and plain.shape[1] == 1:
        plain = plain[:, 0]
    if plain.dtype.kind == "b" and plain.ndim == 1:
        return plain
    if plain.dtype.kind in "iuf" or plain.ndim != 1:
        return columns.targets(argument, plain, label)
    plain = plain.astype(object)
    absent = [i for i, v in enumerate(plain) if columns.missing(v)]
    if absent:
        where = f" (column {label})" if label else ""
        missing = f"`{argument}`{where} is missing in {{row}}: drop the row"
        raise columns.RowError(argument, absent[0], missing)
    if plain.size and all(isinstance(v, bool | np.bool_) for v in plain):
        return plain.astype(bool)
    numbers = all(map(columns.is_number, plain))
    return columns.targets(argument, plain, label) if numbers else columns.stripped(plain)


def _pair(values: Any, label: str | None) -> tuple[Any, Any] | None:
    """Return the labels that stand for −1 and +1, or None if the targets are numbers."""
    if values.dtype.kind == "b":
        return False, True
    if values.dtype.kind != "O":
        zeros, ones = values == 0, values == 1
        return (0, 1) if (zeros | ones).all() and zeros.any() and ones.any() else None
    held = _distinct(values)
    if len(held) != 2:
        if any(map(columns.nearly, held)):  # numbers are meant
            columns.numbers("y", values, label)
        where = f" in column {label}" if label else ""
        odd = min(held, key=lambda v: columns.is_number(v) + columns.reads_as_number(v))
        raise ValueError(
            f"`y` must be numbers, got {checks.shown(odd)}{where}, or two labels, got {len(held)} "
            f"({_listed(held)}): name the one that is to be +1 by `positive`"
        )
    return held[0], held[1]


def _known(parts: list[Any], pair: tuple[Any, Any], label: str | None) -> None:
    """Refuse labels of the test set that the training set has not."""
    for values in parts:
        bad = np.flatnonzero(~(_equal(values, pair[0]) | _equal(values, pair[1])))
        if bad.size:
            where = f" (column {label})" if label else ""
            raise columns.RowError(
                "y_test",
                bad[0],
                f"`y_test`{where} must have the labels of `y`, {_listed(pair)}, got "
                f"{_item(values[bad[0]])!r} in {{row}}",
            )


def _equal(values: Any, label: Any) -> Any:
    """Where the label stands; one that was typed, a text, may stand for a number or a boolean."""
    if values.dtype.kind == "O":
        return np.array([str(v) == checks.written(label) for v in values])
    if isinstance(label, str):
        words = {"true": 1.0, "false": 0.0} if values.dtype.kind == "b" else {}
        try:
            label = words.get(label.lower()) if label.lower() in words else float(label)
        except ValueError:
            return np.zeros(values.shape, bool)
    try:
        return np.asarray(values == label)
    except OverflowError:  # a number that no table holds
        return np.zeros(values.shape, bool)


def _distinct(values: Any) -> list[Any]:
    """Labels in order; kinds that cannot be compared, in the order of their words."""
    held = {_item(v) for v in (values if values.dtype.kind == "O" else np.unique(values))}
    try:
        return sorted(held)
    except TypeError:
        return sorted(held, key=str)


def _item(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def _listed(labels: Any) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(f"{checks.shown(v, 40)}" for v in labels[:SHOWN]) + more


def _called(label: str | None) -> str:
    return f"`y` (column {label})" if label else "`y`"
