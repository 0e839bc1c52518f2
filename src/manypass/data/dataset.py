"""`Dataset`: a user's own examples, as another `data` of a `Problem`."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from manypass import checks
from manypass.data import columns, preparing
from manypass.data.principal import Principal, principal

TASKS = ("classification", "regression")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """p given examples ξ of N features with targets ỹ, x = J·ξ; and perhaps a test set.

    Parameters
    ----------
    X : array_like, pandas.DataFrame or scipy sparse matrix
        Training inputs, examples × features.
    y : array_like, or the name of a column of X
        Training targets.
    X_test, y_test : optional
        A test set, likewise. If `y` is a name, `X_test` has that column too and needs no
        `y_test`.
    task : {"classification", "regression"}, optional
        Classification has targets −1 and +1. By default it is that if all targets are.
    standardize : bool
        Shift and scale every feature to mean 0 and variance 1 over the training set, and the test
        set by the same numbers.
    intercept : bool
        Add a feature that is always 1, the last; its weight decays like all others.
    names : sequence of str, optional
        Names of the features; a frame brings its own.

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
    target: str | None = None
    path: str | None = None
    test: str | None = None

    def __post_init__(self) -> None:
        for flag in ("standardize", "intercept"):
            if not isinstance(getattr(self, flag), bool | np.bool_):
                raise ValueError(f"`{flag}` must be True or False, got {getattr(self, flag)!r}")
        if self.task:
            checks.choice("task", self.task, TASKS)
        self._set(names=None if self.names is None else tuple(map(str, self.names)))
        if isinstance(self.y, str):
            self._take_column(self.y)
        label = self.target and repr(self.target)
        X, names = columns.inputs("X", self.X, self.names)
        y = columns.targets("y", self.y, label)
        preparing.same_length("X", X, "y", y)
        columns.check_not_constant("X", X, names)
        X_test, y_test = None, None
        if (self.X_test is None) != (self.y_test is None):
            given, missing = ("X_test", "y_test")[:: 1 if self.y_test is None else -1]
            raise ValueError(f"`{given}` is given without `{missing}`")
        if self.X_test is not None:
            X_test, _ = columns.inputs("X_test", preparing.in_order(self.X_test, names), names)
            y_test = columns.targets("y_test", self.y_test, label)
            preparing.same_length("X_test", X_test, "y_test", y_test)
            if X_test.shape[1] != X.shape[1]:
                raise ValueError(
                    f"`X_test` must have the {X.shape[1]} columns of `X`, got {X_test.shape[1]}"
                )
        every = y if y_test is None else np.concatenate((y, y_test))
        task = self.task or TASKS[int((np.abs(every) != 1).any())]
        if task == "classification":
            columns.check_classes("y", y, label)
            if y_test is not None:
                columns.check_classes("y_test", y_test, label)
        if self.standardize:
            X, X_test = preparing.standardized(X, X_test)
        if self.intercept:
            X, X_test = (
                None if part is None else preparing.with_ones(part) for part in (X, X_test)
            )
            names = None if names is None else (*names, "intercept")
        self._set(X=X, y=y, X_test=X_test, y_test=y_test, task=task, names=names)

    def _take_column(self, name: str) -> None:
        """Split the column of targets off the frames."""
        tables: dict[str, Any] = {"X": self.X, "X_test": self.X_test}
        if self.X_test is not None and self.y_test is not None:
            raise ValueError(f"`y_test` is given, but `y` = {name!r} is a column of `X_test`")
        for argument, table in tables.items():
            if table is None:
                continue
            held = list(map(str, table.columns)) if columns.is_frame(table) else []
            if name not in held:
                has = f": it has {', '.join(held)}" if held else ": only a frame has named columns"
                raise ValueError(f"`y` must be a column of `{argument}`, got {name!r}{has:.300}")
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
        order = np.random.default_rng(seed).permutation(self.p)
        count = min(max(round(share * self.p), 1), self.p - 1)
        test, rest = np.sort(order[:count]), np.sort(order[count:])
        part = object.__new__(Dataset)  # what has been checked is not checked again
        part._set(**{field.name: getattr(self, field.name) for field in fields(self)})
        part._set(X=self.X[rest], y=self.y[rest], X_test=self.X[test], y_test=self.y[test])
        return part

    def to_dict(self) -> dict[str, Any]:
        """Return file and settings, if they came from one, and shape, names and hash."""
        entry: dict[str, Any] = {
            "path": self.path,
            "target": self.target,
            "test": self.test,
            "task": self.task,
            "standardize": bool(self.standardize),
            "intercept": bool(self.intercept),
            "examples": self.p,
            "features": self.n,
            "test_examples": self.p_test,
            "names": None if self.names is None else list(self.names),
            "hash": self.hash,
        }
        return {key: value for key, value in entry.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dataset) and self.hash == other.hash)

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        test = f" + {self.p_test} test" if self.p_test else ""
        origin = f", {self.path!r}" if self.path else ""
        return f"Dataset({self.p} × {self.n}{test}, {self.task}{origin})"

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
