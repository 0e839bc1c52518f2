"""The examples of a data set in the eigenbasis of H = (1/p) Σ ξξᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manypass import card, memory
from manypass.checks import Array


@dataclass(frozen=True, eq=False)
class Principal:
    """ξ = V Y + (what lies outside): V the eigenvectors of H whose eigenvalue h is not zero.

    Weights start at zero and examples pull within the span of V, so that outside of it there is
    only dynamical noise. In this basis H is diagonal and the mean of the weights is known at once.
    """

    n: int  # N, the number of weights
    h: Array  # eigenvalues that are not zero
    Y: Array  # p × rank
    targets: Array
    g: Array  # (1/p) Σ ỹ ξ
    Y_test: Array  # p_test × rank, empty without a test set
    targets_test: Array
    outside: Array  # |ξ|² of each test example outside the span

    @property
    def rank(self) -> int:
        """Number of directions that the training examples span."""
        return self.h.size

    @cached_property
    def H_test(self) -> Array:
        """(1/p) Σ ξξᵀ of the test set."""
        return self.Y_test.T @ self.Y_test / max(self.targets_test.size, 1)


def principal(X: Any, y: Array, X_test: Any, y_test: Any, device: str = "cpu") -> Principal:
    """Rotate the examples, on a card if told; the memory for this is asked for first."""
    (p, n), p_test = X.shape, 0 if X_test is None else X_test.shape[0]
    small = min(p, n)
    needed = 8 * ((p + p_test) * small + 3 * small**2 + n * small)
    if device != "cpu":
        needed += 8 * (p + p_test) * n  # the examples as they were
        memory.require(needed, "take fewer examples or columns", free=card.free_for_arrays())
        X, y = (card.place(_dense(a), device) for a in (X, y))
        if p_test:
            X_test, y_test = (card.place(_dense(a), device) for a in (X_test, y_test))
    else:
        memory.require(needed, "take fewer examples or columns")
    # the same eigenvalues from the smaller matrix
    h, U = np.linalg.eigh(_dense(X.T @ X if p >= n else X @ X.T) / p)
    kept = h > 4 * n * np.finfo(float).eps * h[-1]
    h = h[kept]
    if p >= n:
        V = U[:, kept].copy(order="C")
        Y = X @ V
    else:
        Y = U[:, kept] * np.sqrt(p * h)
        V = (X.T @ Y) / (p * h)
    Y_test, outside = Y[:0], h[:0]
    if p_test:
        Y_test = X_test @ V
        length = np.asarray(X_test.multiply(X_test).sum(axis=1)) if _sparse(X_test) else _sq(X_test)
        # Below this it is rounding, and the example lies in the span.
        gap = length.ravel() - _sq(Y_test)
        outside = np.where(gap > 1e-9 * length.ravel(), gap, 0.0)
    return Principal(
        n=n,
        h=h,
        Y=Y.copy(order="C"),
        targets=y,
        g=Y.T @ y / p,
        Y_test=Y_test,
        targets_test=y[:0] if y_test is None else y_test,
        outside=outside,
    )


def _sq(rows: Array) -> Array:
    return np.einsum("ij,ij->i", rows, rows)  # type: ignore[no-any-return]


def _sparse(X: Any) -> bool:
    return hasattr(X, "toarray")


def _dense(X: Any) -> Array:
    return X.toarray() if _sparse(X) else X  # type: ignore[no-any-return]
