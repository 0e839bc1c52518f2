"""`Dataset`: a user's own examples, as another `data` of a `Problem`."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from manypass import checks
from manypass.data import columns, labels, preparing, tidying
from manypass.data.principal import Principal, principal

TASKS = ("classification", "regression")
ALIVE: WeakValueDictionary[int, Dataset] = WeakValueDictionary()  # to be found again
OF_A_FILE = ("path", "test", "target", "sep", "encoding", "decimal")  # what `read_dataset` says


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """p given examples ξ of N features with targets ỹ, x = J·ξ; and perhaps a test set.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or scipy sparse matrix
        Training inputs, examples × features.
    y : array_like, or the name of a column of X
        Training targets: numbers, or two labels of any kind. If X and y both have an index
        (pandas), it says which belong together.
    X_test, y_test : optional
        A test set, likewise. If `y` is a name, `X_test` has that column too and needs no
        `y_test`.
    task : {"classification", "regression"}, optional
        Classification has targets −1 and +1. By default it is that if all targets are; also if
        they are 0 and 1, booleans or two texts, with a warning that says so.
    standardize : bool
        Shift and scale every feature to mean 0 and variance 1 over the training set, and the test
        set by the same numbers.
    intercept : bool
        Add a feature that is always 1, the last; its weight decays like all others.
    names : sequence of str, optional
        Names of the features; a frame brings its own.
    drop : sequence of str, optional
        Columns to leave out, by name, or by number if they have no names.
    drop_constant : bool
        Leave out the columns that are empty or the same in all rows of the training set.
    one_hot : sequence of str, or True
        Columns of categories: each category of the training set becomes a feature
        'column=category', 0 or 1. True takes every column that holds no number; one of numbers
        with a stray word in it is refused, unless it is named.
    positive : str, bool or number, optional
        The label that is +1; all others are −1.

    Notes
    -----
    Two data sets are equal if their numbers and their task are. A result says which data it is
    about by their shape, names and `hash`, not by the numbers themselves.

    Examples
    --------
    >>> import numpy as np
    >>> import manypass as mp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> data = mp.Dataset(X, np.sign(X[:, 0] + 0.5 * rng.standard_normal(200)))
    >>> data
    Dataset(200 × 5, classification)
    >>> problem = mp.Problem(data, mp.Adaline(), rate=0.1)
    >>> mp.solve(problem, [1, 10, 100]).F2.values.round(3)
    array([0.927, 0.602, 0.497])
    """

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    task: str = ""
    _: KW_ONLY
    standardize: bool = False
    intercept: bool = False
    names: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    drop_constant: bool = False
    one_hot: bool | tuple[str, ...] = ()
    positive: Any = None
    target: str | None = None
    path: str | None = None
    test: str | None = None
    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    remark: str = field(default="", init=False)

    def __post_init__(self) -> None:
        for name in OF_A_FILE:
            if (given := getattr(self, name)) is not None:
                raise ValueError(f"`{name}` = {checks.shown(given)} is {_elsewhere(name)}")
        for flag in ("standardize", "intercept", "drop_constant"):
            self._set(**{flag: checks.flag(flag, getattr(self, flag))})
        if not (self.task is None or (isinstance(self.task, str) and self.task == "")):
            checks.choice("task", self.task, TASKS)
        if isinstance(self.names, str) or not (self.names is None or np.iterable(self.names)):
            raise ValueError(f"`names` must be the columns' names, got {checks.shown(self.names)}")
        self._set(names=None if self.names is None else tuple(map(str, self.names)))
        columns.check_distinct("names", self.names or ())
        drop = tidying.column_list("drop", self.drop)
        one_hot = self.one_hot
        if not isinstance(one_hot, bool):
            one_hot = tidying.column_list("one_hot", one_hot)
        for argument in ("X", "X_test"):
            if isinstance(given := getattr(self, argument), str | os.PathLike):
                raise ValueError(
                    f"`{argument}` must be a table, got {checks.shown(given)}: files are read by "
                    f"read_dataset('train.csv', target)"
                )
        if self.y is None:
            raise ValueError("`y` must be targets, or the name of a column of `X`, got None")
        levels = getattr(getattr(self.X, "columns", None), "nlevels", 1)
        of_levels = isinstance(self.y, tuple) and len(self.y) == levels > 1  # a name, of pandas
        alone = columns.is_frame(self.X) and (checks.array("y", self.y).ndim == 0 or of_levels)
        if isinstance(self.y, str) or alone:
            self._take_column(checks.written(self.y))
        if self.target in drop:
            raise ValueError(f"`drop` names the target, {self.target!r}")
        label = self.target and repr(self.target)
        columns.check_names(self.X, self.names)
        for argument in ("X", "X_test", "y", "y_test"):
            place = f" in column {label}" if label and argument.startswith("y") else ""
            columns.check_single(argument, getattr(self, argument), drop, place)
        if (self.X_test is None) != (self.y_test is None):
            given, missing = ("X_test", "y_test")[:: 1 if self.y_test is None else -1]
            raise ValueError(f"`{given}` is given without `{missing}`")
        y = tidying.aligned("X", self.X, "y", self.y)
        columns.check_without_target(self.X, self.y, y, drop)
        y_test = tidying.aligned("X_test", self.X_test, "y_test", self.y_test)
        X, X_test, names, kept = tidying.tidy(
            self.X,
            self.X_test,
            self.names,
            drop=drop,
            one_hot=one_hot,
            drop_constant=self.drop_constant,
        )
        X, names = columns.inputs("X", X, names, kept)
        called = names or kept or None
        positive = self.positive.item() if isinstance(self.positive, np.generic) else self.positive
        y, y_test, task, positive, remark = labels.read(y, y_test, label, self.task, positive)
        preparing.same_length("X", X, "y", y)
        columns.check_not_constant("X", X, called)
        if told := columns.telling(X, y, called):
            warnings.warn(told, stacklevel=checks.outside())
        if X_test is not None:
            X_test, _ = columns.inputs("X_test", X_test, names)
            preparing.same_length("X_test", X_test, "y_test", y_test)
            if X_test.shape[1] != X.shape[1]:
                raise ValueError(
                    f"`X_test` must have the {X.shape[1]} columns of `X`, got {X_test.shape[1]}"
                )
        if self.standardize:
            X, X_test = preparing.standardized(X, X_test)
        if not (self.intercept or remark):
            remark = preparing.unfitted(X, y, task)
        if self.intercept:
            X, X_test = (
                None if part is None else preparing.with_ones(part) for part in (X, X_test)
            )
            names = None if names is None else (*names, "intercept")
        self._set(X=X, y=y, X_test=X_test, y_test=y_test, task=task, names=names)
        self._set(drop=drop, one_hot=one_hot, positive=positive, remark=remark)
        ALIVE[id(self)] = self
        if remark:
            warnings.warn(remark, stacklevel=checks.outside())

    def _take_column(self, name: str) -> None:
        """Split the column of targets off the frames."""
        tables: dict[str, Any] = {"X": self.X, "X_test": self.X_test}
        if columns.is_frame(self.X_test) and self.y_test is not None:
            raise ValueError(f"`y_test` is given, but `y` = {name!r} is a column of `X_test`")
        for argument, table in tables.items():
            if table is None:
                continue
            held = list(map(str, table.columns)) if columns.is_frame(table) else []
            if name not in held:
                has = f": it has {', '.join(held)}" if held else ": only a frame has named columns"
                raise ValueError(
                    f"`y` must be a column of `{argument}`, got {checks.shown(name)}{has:.300}"
                )
            columns.check_distinct(argument, held)
            column = table.columns[held.index(name)]
            y = "y" if argument == "X" else "y_test"
            self._set(**{argument: table.drop(columns=[column]), y: table[column]})
        self._set(target=name)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def p(self) -> int:
        """Number of training examples."""
        return int(self.X.shape[0])

    @property
    def n(self) -> int:
        """Number N of weights, that of the intercept included."""
        return int(self.X.shape[1])

    @property
    def alpha(self) -> float:
        """Examples per weight, α = p/N: the time that one pass over the data takes."""
        return self.p / self.n

    @property
    def p_test(self) -> int:
        """Number of test examples, 0 without a test set."""
        return 0 if self.X_test is None else int(self.X_test.shape[0])

    @property
    def summary(self) -> str:
        """Say as what the data are taken."""
        test = f", {self.p_test} to test on" if self.p_test else ""
        target = f" of {self.target!r}" if self.target else ""
        classes = "" if self.positive is None else f", {self.positive!r} as +1, all else as -1"
        return (
            f"{self.path or 'data'}: {self.p} examples of {self.n} features{test}; "
            f"{self.task}{target}{classes}" + (f"\nnote: {self.remark}" if self.remark else "")
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all numbers and the task; the same for equal dense and sparse tables."""
        digest = hashlib.sha256(f"{self.p} {self.n} {self.p_test} {self.task}".encode())
        for table, values in ((self.X, self.y), (self.X_test, self.y_test)):
            if table is not None:
                for block in columns.row_blocks(table):
                    digest.update((block + 0.0).data)  # −0 and 0 are the same number
                digest.update((values + 0.0).data)
        return digest.hexdigest()

    @cached_property
    def principal(self) -> Principal:
        """The examples in the eigenbasis of H = (1/p) Σ ξξᵀ; computed once."""
        return principal(self.X, self.y, self.X_test, self.y_test)

    def principal_on(self, device: str) -> Principal:
        """Return the same, on a card if told; there it is not kept, to leave its memory free."""
        if device == "cpu":
            return self.principal
        return principal(self.X, self.y, self.X_test, self.y_test, device)

    def held_out(self, share: float, seed: int) -> Dataset:
        """Return the data with a random share of the training set as a test set."""
        share, seed = checks.number("share", share, 1e-3, 0.999), checks.seed("seed", seed)
        order = np.random.default_rng(seed).permutation(self.p)
        count = min(max(round(share * self.p), 1), self.p - 1)
        test, rest = np.sort(order[:count]), np.sort(order[count:])
        part = object.__new__(Dataset)  # what has been checked is not checked again
        part._set(**{each.name: getattr(self, each.name) for each in fields(self)})
        part._set(X=self.X[rest], y=self.y[rest], X_test=self.X[test], y_test=self.y[test])
        ALIVE[id(part)] = part
        return part

    def read_from(self, **source: str | None) -> Dataset:
        """Return the same data, which say the file and the style that they were read from."""
        self._set(**source)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return file and settings, if they came from one, and shape, names and hash."""
        entry: dict[str, Any] = {
            "path": self.path,
            "target": self.target,
            "test": self.test,
            "task": self.task,
            "standardize": self.standardize,
            "intercept": self.intercept,
            "examples": self.p,
            "features": self.n,
            "test_examples": self.p_test,
            "names": None if self.names is None else list(self.names),
            "hash": self.hash,
        }
        one_hot = self.one_hot if isinstance(self.one_hot, bool) else list(self.one_hot)
        asked = {
            "drop": list(self.drop),
            "drop_constant": self.drop_constant,
            "one_hot": one_hot,
        }
        entry |= {key: value for key, value in asked.items() if value}
        style = ("positive", "sep", "encoding", "decimal", "thousands")
        entry |= {name: getattr(self, name) for name in style}
        return {key: value for key, value in entry.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dataset) and self.hash == other.hash)

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        test = f" + {self.p_test} test" if self.p_test else ""
        classes = "" if self.positive is None else f", {self.positive!r} is +1"
        origin = f", {self.path!r}" if self.path else ""
        return f"Dataset({self.p} × {self.n}{test}, {self.task}{classes}{origin})"

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)
        ALIVE[id(self)] = self


def in_memory(described: dict[str, Any]) -> Dataset | None:
    """Return data that are in memory and have the described hash, rather those of these names."""
    shape = [described.get(key) for key in ("examples", "features", "test_examples")]
    alike = [data for data in list(ALIVE.values()) if [data.p, data.n, data.p_test] == shape]
    found = [data for data in alike if data.hash == described.get("hash")]
    return next((data for data in found if data.to_dict() == described), next(iter(found), None))


def _elsewhere(name: str) -> str:
    """Say where what is said of a file belongs."""
    if name == "test":
        return (
            "for files, read_dataset('train.csv', target, test='test.csv'): a Dataset takes its "
            "test set as `X_test` and `y_test`"
        )
    if name == "target":
        return (
            "for files, read_dataset('train.csv', target='y'): a Dataset takes its targets as `y`, "
            "numbers or the name of a column of `X`"
        )
    return f"for files, read_dataset('train.csv', target, ...): a Dataset of arrays has no `{name}`"
