"""The examples of a data set in the eigenbasis of H = (1/p) Σ ξξᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh

from manypass import memory
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


def principal(X: Any, y: Array, X_test: Any, y_test: Any) -> Principal:
    """Rotate the examples; the memory for this is asked for first."""
    (p, n), p_test = X.shape, 0 if X_test is None else X_test.shape[0]
    small = min(p, n)
    needed = 8 * ((p + p_test) * small + 3 * small**2 + n * small)
    memory.require(needed, "take fewer examples or columns")
    if p >= n:
        h, V = eigh(_dense(X.T @ X) / p)
    else:  # the same eigenvalues from the smaller matrix
        h, U = eigh(_dense(X @ X.T) / p)
    kept = h > 4 * n * np.finfo(float).eps * h[-1]
    h = h[kept]
    if p >= n:
        V = np.ascontiguousarray(V[:, kept])
        Y = np.asarray(X @ V)
    else:
        Y = U[:, kept] * np.sqrt(p * h)
        V = np.asarray(X.T @ Y) / (p * h)
    Y_test, outside = np.empty((0, h.size)), np.empty(0)
    if p_test:
        Y_test = np.asarray(X_test @ V)
        length = np.asarray(X_test.multiply(X_test).sum(axis=1) if _sparse(X_test) else _sq(X_test))
        # Below this it is rounding, and the example lies in the span.
        gap = length.ravel() - _sq(Y_test)
        outside = np.where(gap > 1e-9 * length.ravel(), gap, 0.0)
    return Principal(
        n=n,
        h=h,
        Y=np.ascontiguousarray(Y),
        targets=y,
        g=Y.T @ y / p,
        Y_test=Y_test,
        targets_test=np.empty(0) if y_test is None else y_test,
        outside=outside,
    )


def _sq(rows: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _sparse(X: Any) -> bool:
    return hasattr(X, "toarray")


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if _sparse(X) else X)
