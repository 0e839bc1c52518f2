"""What a population of networks with K units remembers: `Past` with K normals to a cell.

The push of all other examples in cell c is a K-vector ζ_c = Σ_d L_cd z_d, with K × K blocks L_cd;
the forces with which an example itself was learned are √α f_c = Σ_d L_cd e_d. A row over all
columns is there for each unit. Diagonal blocks are symmetric roots: z and e must be turned alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manypass.cavity.past import PUSHES, SPANNED, neighbours
from manypass.checks import Array

Normals = NDArray[np.float32]
FAINT = 1e-3  # pushes below this share of the largest need not be kept apart


def root_of(square: Array, least: float = 0.0) -> Array:
    """Return the symmetric root, with no eigenvalue of the square below `least`."""
    w, u = np.linalg.eigh((square + square.T) / 2)
    return np.asarray(u * np.sqrt(np.maximum(w, least)) @ u.T)


def quotient(top: Array, bottom: Array, limit: float) -> Array:
    """Return top/bottom, in directions where the bottom is nil `limit` instead."""
    square = bottom @ bottom.T
    nil = 1e-6 * np.trace(square) + 1e-300
    whole = top @ bottom.T + limit * nil * np.eye(len(square))
    return np.asarray(np.linalg.solve(square + nil * np.eye(len(square)), whole.T).T)


class Blocks:
    """Cells, z and e of every example (columns × examples), and rows over the columns."""

    def __init__(
        self, alpha: float, known: Array, per: float, kept: int, K: int, epochs: bool
    ) -> None:
        self.alpha, self.per, self.K, self.count, room = alpha, per, K, 0, 16 * K
        self.first, self.start = 0, 0.0 if epochs else math.inf  # of this epoch
        self.base = np.linalg.qr(known)[0].T.astype(np.float32)
        self.z, self.e = np.zeros((2, room, len(known)), np.float32)
        self.begin, self.end = np.zeros((2, 16))
        self.L, self.rows = np.zeros((room, room)), np.zeros((5 + kept, K, room))
        self.sources = np.zeros((0, K, room))  # ∂e/∂f of a force in each cell of this epoch

    @property
    def n(self) -> int:
        """Columns in use."""
        return self.K * self.count

    def block(self, cell: int) -> slice:
        """Columns of a cell."""
        return slice(self.K * cell, self.K * (cell + 1))

    def start_from(self, z: Normals, root: Array) -> None:
        """Put first weights, of which the teacher knows nothing, before all pushes."""
        self.append(z, 0 * z, 0.0, 0.0)
        own = self.block(0)
        self.L[own, own] = self.rows[0, :, own] = root
        self.first, self.sources = 1, self.sources[:0]

    def append(self, z: Normals, f: Normals, begin: float, end: float) -> None:
        """Begin a cell, with normals made orthonormal to all others and to what is known."""
        if self.count == self.begin.size:
            self._grow()
        n, old, size = self.n, self.z[: self.n], np.float32(z.shape[1])
        z = np.asarray(z - (z @ self.base.T) @ self.base, np.float32)
        z -= (z @ old.T) / size @ old
        inner = np.linalg.cholesky((z @ z.T).astype(float) / size)
        own = slice(n, n + self.K)
        self.z[own] = np.linalg.inv(inner).astype(np.float32) @ z
        self.e[own] = f  # until all forces in the cell are known
        self.begin[self.count], self.end[self.count] = begin, end
        self.count += 1
        self.L[own], self.L[:, own], self.rows[:, :, own] = 0.0, 0.0, 0.0
        if self.start < math.inf:
            new = np.zeros((1, self.K, self.L.shape[0]))
            new[0, :, own] = np.eye(self.K)
            self.sources[:, :, own] = 0.0
            self.sources = np.concatenate([self.sources, new])

    def complete(self, S: Array, temperature: float, P: Array) -> None:
        """Make e of the forces f in the last cell, S = ⟨f eᵀ⟩ with ⟨f fᵀ⟩ as its end; P = ⟨F eᵀ⟩.

        Noise belongs to the push, but to no force; forces known from earlier ones make none.
        """
        n, K = self.n - self.K, self.K
        along = math.sqrt(self.alpha) * S[:, :n]
        heat = 2 * temperature * (self.end[self.count - 1] - self.begin[self.count - 1])
        whole = self.alpha * S[:, n:] + heat * np.eye(K)
        w, u = np.linalg.eigh((whole + whole.T) / 2 - along @ along.T)
        known = w > SPANNED * max(np.trace(whole), 1e-300)
        inner = u * np.where(known, 1 / np.sqrt(np.where(known, w, 1.0)), 0.0) @ u.T
        inverse = inner @ np.hstack([-along, math.sqrt(self.alpha) * np.eye(K)])
        own = slice(n, n + K)
        self.e[own] = inverse.astype(np.float32) @ self.e[: n + K]
        P[:, own] = P @ inverse.T
        self.sources[:, :, own] = self.sources[:, :, : n + K] @ inverse.T
        self.count -= not self.L[own, own].any()

    def turn(self, where: Any, forces: Normals, now: float) -> None:
        """End an epoch, in which examples were learned in some cell of it with some force."""
        n = self.n
        for cell, source in enumerate(self.sources):
            mine = where == cell
            self.e[:n, mine] += source[:, :n].T.astype(np.float32) @ forces[:, mine]
        self.first, self.start, self.sources = self.count, now, self.sources[:0]

    def own(self, A: Array, newest: Array | None = None) -> Array:
        """Coefficients of e in x − h; of f in a last cell not complete, given its response."""
        own, n = A / math.sqrt(self.alpha), A.shape[1] - self.K
        if newest is not None:
            own[:, :n] -= newest @ self.L[n : n + self.K, :n] / math.sqrt(self.alpha)
            own[:, n:] = newest
        return own

    def response(self, A: Array) -> Array:
        """G = A L⁻¹ on the cells (cells × K × K)."""
        n = A.shape[1]
        G = np.linalg.solve(self.L[:n, :n].T, A.T).T
        return np.ascontiguousarray(G.reshape(self.K, -1, self.K).transpose(1, 0, 2))

    def merge(self, now: float) -> None:
        """Unite neighbours that together are shorter than their distance from now, over `per`.

        Of the normals of two cells and the next one third is given up: what is orthogonal to
        h = Σ A z as it is and to the push of all three.
        """
        latest, K = min(now, self.start), self.K
        while True:
            a = int(neighbours(self.begin, self.end, self.count, self.per, now, latest))
            if a < 0:
                return
            n, three = self.n, slice(K * a, K * (a + 3))
            turn = self._joined(a)
            two, rest = slice(K * a, K * (a + 2)), slice(K * (a + 3), n)
            moved = slice(K * (a + 2), n - K)
            for table in (self.L[: n - K], *self.rows, *self.sources):
                table[:, two] = table[:, three] @ turn
                table[:, moved] = table[:, rest].copy()
            for each in (self.z, self.e):
                each[two] = turn.T.astype(np.float32) @ each[three]
                each[moved] = each[rest].copy()
            self.end[a : self.count - 1] = self.end[a + 1 : self.count]
            self.begin[a + 1 : self.count - 1] = self.begin[a + 2 : self.count]
            self.count -= 1
            self.first -= 1

    def _joined(self, a: int) -> Array:
        """Make one row of cells a and a + 1 in L; return how 3K normals turn into 2K."""
        K, n, L = self.K, self.n, self.L
        three = slice(K * a, K * (a + 3))
        L[self.block(a)] += L[self.block(a + 1)]
        push, after = L[self.block(a), three].copy(), L[self.block(a + 2), three].copy()
        L[K * (a + 1) : n - K] = L[K * (a + 2) : n].copy()
        turn = np.zeros((3 * K, 2 * K))
        for way in range(2):
            if way == 0:
                kept = np.linalg.svd(np.vstack([self.rows[0, :, three], push + after]))[2][: 2 * K]
            else:
                inner = np.linalg.svd(push[:, : 2 * K])[2][:K]
                kept = np.zeros((2 * K, 3 * K))
                kept[:K, : 2 * K], kept[K:, 2 * K :] = inner, np.eye(K)
            u, s, v = np.linalg.svd(push @ kept.T)
            one, other = u @ v[:K] @ kept, v[K:] @ kept
            p, q, r = np.linalg.svd(after @ other.T)
            turn[:, :K], turn[:, K:] = one.T, (p @ r @ other).T
            if still(s, push) and still(q, after[:, 2 * K :]):
                break  # both cells still have a push of their own
        return turn

    def _grow(self) -> None:
        more = self.begin.size // 2
        wide = more * self.K
        for name in ("z", "e"):
            setattr(self, name, np.pad(getattr(self, name), ((0, wide), (0, 0))))
        for name in ("rows", "sources"):
            setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, 0), (0, wide))))
        self.L = np.pad(self.L, (0, wide))
        self.begin, self.end = np.pad(self.begin, (0, more)), np.pad(self.end, (0, more))


def still(left: Array, push: Array) -> bool:
    """Whether what is left of a push is enough of it, in every direction that matters."""
    before = np.linalg.svd(push, compute_uv=False)
    matters = before > FAINT * before[0]
    return bool((left[matters] > PUSHES * before[matters]).all())
