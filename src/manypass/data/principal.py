"""The examples of a data set in the eigenbasis of H = (1/p) Σ ξξᵀ."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manypass import card, memory
from manypass.checks import Array


@dataclass(frozen=True, eq=False)
class Principal:
    """ξ = V Y + (what lies outside): V the eigenvectors of H whose eigenvalue h is not zero.

    Examples pull within the span of V: outside of it there is only dynamical noise, and what is
    left of the weights that learning started from (`started`). In this basis H is diagonal.
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


def started(examples: Principal, data: Any, weights: Any) -> tuple[Principal, Array]:
    """Return J(0) in this basis, to which its part outside the span is added: a first one, h = 0.

    VᵀJ = Yᵀ(XJ)/ph and V = XᵀY/ph, so that V itself need not be kept.
    """
    J, Y, scale = np.array(weights), examples.Y, examples.targets.size * examples.h
    inside = Y.T @ card.beside(data.X @ J, Y) / scale
    rest = J - data.X.T @ card.host(Y @ (inside / scale))
    length = np.sqrt(rest @ rest)
    if examples.rank == examples.n or length <= 1e-7 * np.sqrt(J @ J):  # rounding
        return examples, inside
    Y_test, outside = np.pad(examples.Y_test, ((0, 0), (1, 0))), examples.outside
    if examples.targets_test.size:
        Y_test[:, 0] = card.beside(data.X_test @ (rest / length), Y)
        outside = np.maximum(outside - Y_test[:, 0] ** 2, 0.0)
    wider = dataclasses.replace(
        examples,
        h=np.pad(examples.h, (1, 0)),
        Y=np.pad(Y, ((0, 0), (1, 0))),
        g=np.pad(examples.g, (1, 0)),
        Y_test=Y_test,
        outside=outside,
    )
    return wider, np.pad(inside, (1, 0), constant_values=length)


def _sq(rows: Array) -> Array:
    return np.einsum("ij,ij->i", rows, rows)  # type: ignore[no-any-return]


def _sparse(X: Any) -> bool:
    return hasattr(X, "toarray")


def _dense(X: Any) -> Array:
    return X.toarray() if _sparse(X) else X  # type: ignore[no-any-return]
