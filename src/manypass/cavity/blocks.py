"""Algebra of K × K blocks: roots, quotients, and what is given up where two cells become one.

One number is a block too, and there are steps in plenty: what it needs no library for is done here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.compiling import FAST, njit

FAINT = 1e-3  # pushes below this share of the largest need not be kept apart
PUSHES = 0.5  # what must be left of the push of a cell when a direction is given up


def root_of(square: Array, least: float) -> Array:
    """Return the symmetric root, with no eigenvalue of the square below `least`."""
    if square.size == 1:
        return np.array([[math.sqrt(max(square[0, 0], least))]])
    w, u = np.linalg.eigh((square + square.T) / 2)
    return np.asarray(u * np.sqrt(np.maximum(w, least)) @ u.T)


def inverse_root(square: Array, least: float) -> Array:
    """Return the inverse of the symmetric root; nil where an eigenvalue is not above `least`."""
    if square.size == 1:
        w = square[0, 0]
        return np.array([[1 / math.sqrt(w) if w > least else 0.0]])
    w, u = np.linalg.eigh((square + square.T) / 2)
    known = w > least
    return np.asarray(u * np.where(known, 1 / np.sqrt(np.where(known, w, 1.0)), 0.0) @ u.T)


def trace(square: Array) -> float:
    """Return the sum of the diagonal."""
    return float(square[0, 0] if square.size == 1 else square.trace())


def orthonormal(z: Any, share: Any) -> Any:
    """Turn columns into such with ⟨z zᵀ⟩ = 1, each row having its share in the mean."""
    size, K = z.shape
    square = z.T @ (share * z)
    if K == 1:
        return z * np.float32(math.sqrt(size / float(square[0, 0])))
    inner = np.linalg.inv(np.linalg.cholesky(square.astype(float) / size))
    return z @ inner.T.astype(np.float32)


def quotient(top: Array, bottom: Array, limit: float) -> Array:
    """Return top/bottom, in directions where the bottom is nil `limit` instead."""
    if bottom.size == 1:
        return top / bottom if bottom[0, 0] else np.array([[limit]])
    square = bottom @ bottom.T
    nil = 1e-6 * trace(square) + 1e-300
    whole = top @ bottom.T + limit * nil * np.eye(len(square))
    return np.asarray(np.linalg.solve(square + nil * np.eye(len(square)), whole.T).T)


def turn_of(A: Array, push: Array, after: Array, pushed: bool) -> Array:
    """Return how 3K normals of two cells and the next turn into 2K; A is what h shows of them.

    What is orthogonal to A and to the push of all three is given up. The first K are then along
    the push of the cells that become one, the others along that of the next. If `pushed`, both must
    keep a push of their own: else it is what is orthogonal to A and to the push of the two, or of
    the next. h is always what it was.
    """
    return two_of_three(A[0], push[0], after[0], pushed) if len(A) == 1 else turned(A, push, after)


def turned(A: Array, push: Array, after: Array) -> Array:
    """`turn_of` for any K."""
    K = len(A)
    turn = np.zeros((3 * K, 2 * K))
    for known in (push + after, push, after):
        kept = np.linalg.svd(np.vstack([A, known]))[2][: 2 * K]
        u, s, v = np.linalg.svd(push @ kept.T)
        one, other = u @ v[:K] @ kept, v[K:] @ kept
        p, q, r = np.linalg.svd(after @ other.T)
        turn[:, :K], turn[:, K:] = one.T, (p @ r @ other).T
        if still(s, push) and still(q, after[:, 2 * K :]):
            break
    return turn


def still(left: Array, push: Array) -> bool:
    """Whether what is left of a push is enough of it, in every direction that matters."""
    before = np.linalg.svd(push, compute_uv=False)
    matters = before > FAINT * before[0]
    return bool((left[matters] > PUSHES * before[matters]).all())


@njit(**FAST)
def two_of_three(A, push, c, pushed):  # type: ignore[no-untyped-def]
    """`turn_of` for K = 1, where what is given up is a cross product."""
    turn = np.empty((3, 2))
    for number, known in enumerate((push + c, push, c)):
        given_up = np.cross(A, known)
        apart = math.sqrt((given_up**2).sum())
        if number < 2 and apart <= 1e-6 * math.sqrt((A**2).sum() * (known**2).sum()):
            continue  # h is this push: nothing but rounding would be given up
        given_up /= max(apart, 1e-150)
        first = push - (push * given_up).sum() * given_up
        size = math.sqrt((first**2).sum())
        first /= max(size, 1e-300)
        second = np.cross(given_up, first)
        second *= math.copysign(1.0, (c * second).sum())
        turn[:, 0], turn[:, 1] = first, second
        left = size > PUSHES * math.sqrt((push**2).sum()) and (c * second).sum() > PUSHES * c[2]
        if left or not pushed:
            break
    return turn


def fold(columns: Any, a: int, n: int, turn: Any) -> None:
    """Turn 3K columns from a on, of n, into 2K; those behind move up."""
    old, new = turn.shape
    if old == 3 and columns.flags.c_contiguous:
        fold_rows(columns.reshape(-1, columns.shape[-1]), a, n, turn)
        return
    columns[..., a : a + new] = columns[..., a : a + old] @ turn
    columns[..., a + new : n - old + new] = columns[..., a + old : n]


@njit(**FAST)
def fold_rows(rows, a, n, turn):  # type: ignore[no-untyped-def]
    """`fold` for K = 1, row by row."""
    for k in range(len(rows)):
        row = rows[k]
        p, q, r = row[a], row[a + 1], row[a + 2]
        row[a] = turn[0, 0] * p + turn[1, 0] * q + turn[2, 0] * r
        row[a + 1] = turn[0, 1] * p + turn[1, 1] * q + turn[2, 1] * r
        for c in range(a + 2, n - 1):
            row[c] = row[c + 1]
