"""Training and test tables made to fit each other: order of columns, scale, intercept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.data import columns

UNFITTED = 0.5  # mean of the targets, in units of their deviation: a fifth of ⟨ỹ²⟩ stays for ever
CHANCE = 4.0  # times its standard error: of few examples a mean may be nothing but chance
LARGE = 1e3  # times as large as most columns: others then learn nothing in a million passes


def same_length(one: str, table: Any, other: str, values: Any) -> None:
    """Refuse targets and inputs that do not go together."""
    if table.shape[0] != len(values):
        raise ValueError(
            f"`{other}` must have one entry for each row of `{one}`: {len(values)} entries, "
            f"{table.shape[0]} rows"
        )


def in_order(table: Any, names: columns.Names) -> Any:
    """Columns of a test frame as the training frame has them."""
    if not columns.is_frame(table) or names is None:
        return table
    held = {str(name): name for name in table.columns}
    for name in names:
        if name not in held:
            raise ValueError(f"`X_test` has no column {name!r}, which `X` has")
    for name in held:
        if name not in names:
            raise ValueError(f"`X_test` has a column {name!r}, which `X` has not")
    return table[[held[name] for name in names]]


def standardized(X: Any, X_test: Any) -> tuple[Any, Any]:
    """(ξ − mean)/deviation per column, both taken over the training set."""
    if columns.is_sparse(X) or columns.is_sparse(X_test):
        raise ValueError(
            "`standardize` would fill a sparse matrix: scale its columns yourself, or give dense X"
        )
    mean, scale = X.mean(axis=0), X.std(axis=0)
    out = [None if part is None else (part - mean) / scale for part in (X, X_test)]
    for part in out:
        if part is not None:
            part.setflags(write=False)
    return out[0], out[1]


def unfitted(X: Any, y: Array, task: str) -> str:
    """Say that the mean of the targets cannot be learned, where columns have none and it matters.

    Sparse columns, whose zeros stay zeros, and others that are not centred can carry a mean.
    """
    mean, spread = float(np.mean(y)), float(np.std(y))
    if columns.is_sparse(X) or abs(mean) <= max(UNFITTED, CHANCE / math.sqrt(len(y))) * spread:
        return ""
    if np.sum(X.mean(axis=0) ** 2 / np.mean(X**2, axis=0)) > 0.2:  # of a constant, what they hold
        return ""
    what, remedy = (
        f"targets have mean {mean:.3g} and standard deviation {spread:.3g}",
        "subtract it, or ",
    )
    if task == "classification":
        what, remedy = f"{np.mean(y > 0):.0%} of the targets are +1", ""
    return (
        f"{what}, and no column has a mean that could fit it: {remedy}say intercept=True "
        f"(--intercept)"
    )


def uneven(data: Any) -> str:
    """Say which column of a data set is much larger than most; nothing of a teacher."""
    X = getattr(data, "X", None)
    if X is None or X.shape[1] < 2:
        return ""
    sparse = columns.is_sparse(X)
    squares = X.multiply(X).sum(axis=0) if sparse else np.einsum("ij,ij->j", X, X)
    sizes = np.sqrt(np.ravel(squares))
    largest = int(sizes.argmax())
    ratio = sizes[largest] / np.median(np.delete(sizes, largest))
    if ratio < LARGE:
        return ""
    return (
        f": column {columns.label_of(data.names, largest)} is {ratio:.2g} times as large as most "
        f"others; say standardize=True, or leave it out (`drop`)"
    )


def with_ones(X: Any) -> Any:
    """Add a column that is always 1."""
    ones = np.ones((X.shape[0], 1))
    if columns.is_sparse(X):
        from scipy.sparse import csr_array, hstack

        return hstack([X, csr_array(ones)], format="csr")
    out = np.hstack([X, ones])
    out.setflags(write=False)
    return out
