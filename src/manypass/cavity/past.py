"""What a population remembers: the past in cells that widen with their age.

The push of all other examples in cell c is ζ_c = Σ_d L_cd z_d with independent normals z, and f_c
is the sum of the v F with which an example itself was learned there. Then
h = R y + Σ_c A_c z_c and x = h + Σ_c G_c f_c with A = G L.
Pushes have covariance α⟨f f⟩ + 2TΔ: e with √α f_c = Σ_d L_cd e_d are to the forces what z are
to the pushes. The push of a force F is Σ_c (vΔ/√α)⟨F e_c⟩ z_c and something new, and
x = h + Σ_c A_c e_c/√α: nothing has to be inverted.
Two cells become one when they lie far enough back. The number of cells grows as log t, so that
time grows as t.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from manypass.cavity.tables import FAST
from manypass.cavity.weights import Weights, fold
from manypass.checks import Array
from manypass.compiling import njit

PUSHES = 0.5  # what must be left of the push of a cell when a direction is given up


BEFORE = -1e-9  # when a start begins: who is learned at t = 0 knows it
SPANNED = 1e-8  # share of forces that is lost in single precision


class Past:
    """Cells, z and e of every example, and vectors over the cells.

    The latter are coefficients of z or e: A, what is measured, what is kept of A, and, where every
    example is learned once an epoch, what a force in each cell of this epoch is in terms of e. The
    forces of this epoch come into e when it ends: until then an example is as if its turn were
    still to come.
    """

    def __init__(
        self,
        weights: Weights,
        alpha: float,
        known: Array,
        per: float,
        kept: int,
        epochs: bool = False,
    ) -> None:
        self.weights, self.alpha, self.per, self.count = weights, alpha, per, 0
        self.first, self.start = 0, 0.0 if epochs else math.inf  # of this epoch
        self.base = np.linalg.qr(known)[0].astype(np.float32)
        self.z, self.e = np.zeros((2, len(known), 16), np.float32)
        self.begin, self.end = np.zeros((2, 16))
        self.L, self.rows = np.zeros((16, 16)), np.zeros((5 + kept, 16))
        self.sources = slice(5 + kept, None)

    def start_from(self, z: NDArray[np.float32], size: float) -> None:
        """Put weights of a given size, of which the teacher knows nothing, before all pushes."""
        self.append(z, z * 0, BEFORE, BEFORE)
        self.L[0, 0] = self.rows[0, 0] = size
        self.weights.place(0, size)
        self.first, self.rows[self.sources] = 1, 0.0

    def append(
        self, z: NDArray[np.float32], f: NDArray[np.float32], begin: float, end: float
    ) -> None:
        """Begin a cell, with normals that are made orthonormal to all others, to 1, y and ỹ.

        The population then has the covariance that it is given, not one that is off by chance.
        """
        n = self.count
        if n == self.begin.size:
            self._grow()
        z = z - self.base @ (self.base.T @ z)
        old = self.z[:, :n]
        z -= old @ ((z @ old) / np.float32(z.size))
        self.z[:, n] = z * np.float32(math.sqrt(z.size / float(z @ z)))
        self.e[:, n] = f  # until all forces in the cell are known
        self.begin[n], self.end[n], self.count = begin, end, n + 1
        self.L[n], self.L[:, n], self.rows[:, n] = 0.0, 0.0, 0.0
        self.weights.append(n)
        if self.start < math.inf:
            source = self.sources.start + n - self.first
            if source == len(self.rows):
                self.rows = np.pad(self.rows, ((0, 16), (0, 0)))
            self.rows[source, n] = 1.0

    def row(self, S: Array, heat: float) -> Array:
        """Coefficients of e in √α f of the last cell, given S = ⟨f e⟩, and of a new one.

        Heat belongs to the push, but to no force; forces known from earlier ones make none.
        """
        n = S.size - 1
        along = math.sqrt(self.alpha) * S[:n]
        whole = self.alpha * S[n] + heat
        left = whole - along @ along
        return np.append(along, math.sqrt(left) if left > SPANNED * whole else 0.0)

    def complete(self, row: Array, P: Array) -> None:
        """Make e of the forces in the last cell, √α f = Σ row e; P = ⟨F e⟩ as well.

        A cell without any push is none.
        """
        n = self.count - 1
        inverse = np.append(-row[:n], math.sqrt(self.alpha)) / (row[n] or math.inf)
        self.e[:, n] = self.e[:, : n + 1] @ inverse.astype(np.float32)
        P[n] = P @ inverse
        self.rows[self.sources, n] = self.rows[self.sources, : n + 1] @ inverse
        if self.L[n, n] == 0:
            self.count -= 1
            self.weights.drop()

    def turn(self, where: NDArray[np.int64], forces: Array, now: float) -> None:
        """End an epoch, in which examples were learned in some cell of it with some force."""
        n, sources = self.count, self.rows[self.sources]
        self.e[:, :n] += sources[where, :n] * forces[:, None]
        self.first, self.start, sources[:] = n, now, 0.0

    def own(self, count: int, newest: float | None = None) -> Array:
        """Coefficients of e in x − h = Σ G f; of f in a last cell not complete, given its G."""
        own, n = self.weights.own(count) / math.sqrt(self.alpha), count - 1
        if count and newest is not None:
            own[:n] -= newest / math.sqrt(self.alpha) * self.L[n, :n]
            own[n] = newest
        return own

    def newest(self, count: int) -> float:
        """G of the last cell."""
        n = count - 1
        return float(self.weights.own(count)[n] / self.L[n, n]) if count else 0.0

    def response(self, count: int) -> Array:
        """G on the cells: what comes back of the push of each, L⁻¹ times it."""
        return np.asarray(solve_transposed(self.L[:count, :count], self.weights.own(count)))

    def merge(self, now: float) -> None:
        """Unite neighbours that together are shorter than their distance from now, over `per`.

        Of the normals of two cells and the next one direction is given up: the one orthogonal to
        h = Σ A z as it is and to the push of all three. h is what it was, and may change as the
        response to these pushes does.
        """
        latest = min(now, self.start)
        while True:
            a = neighbours(self.begin, self.end, self.count, self.per, now, latest)
            if a < 0:
                return
            n, weights = self.count, self.weights
            push, c = joined(self.L, a, n)
            z = e = two_of_three(weights.own(n)[a : a + 3], push, c, True)
            if not weights.alike:
                seen = weights.seen(a)
                z = two_of_three(self.rows[0, a : a + 3], push @ seen, c @ seen, False)
            for columns, turn in ((self.L, e), (self.rows[:3], z), (self.rows[3:5], e)):
                fold(columns, a, n, turn)
            fold(self.rows[5 : self.sources.start], a, n, z)
            fold(self.rows[self.sources], a, n, e)
            fold(self.z, a, n, z.astype(np.float32))
            fold(self.e, a, n, e.astype(np.float32))
            weights.unite(a, n, z, e)
            self.end[a : self.count - 1] = self.end[a + 1 : self.count]
            self.begin[a + 1 : self.count - 1] = self.begin[a + 2 : self.count]
            self.count -= 1
            self.first -= 1

    def _grow(self) -> None:
        more = self.begin.size // 2
        for name in ("z", "e", "rows"):
            setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, more))))
        for name in ("begin", "end", "L"):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))


@njit(**FAST)
def solve_transposed(L, b):  # type: ignore[no-untyped-def]
    """Return b L⁻¹ of a lower triangle."""
    x = b.copy()
    for i in range(x.size - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]
    return x


@njit(**FAST)
def neighbours(begin, end, count, per, now, latest):  # type: ignore[no-untyped-def]
    """Return the first of two cells to unite, or −1; a push at one time stays alone."""
    for a in range(count - 2):
        b = a + 1
        if end[b] > latest or end[b] - begin[a] > (now - end[b]) / per:
            continue
        if begin[a] < end[a] and begin[b] < end[b] and begin[b + 1] < end[b + 1]:
            return a
    return -1


@njit(**FAST)
def joined(L, a, n):  # type: ignore[no-untyped-def]
    """Make one row of L of a and a + 1; return this push and the next."""
    L[a] += L[a + 1]
    push, c = L[a, a : a + 3].copy(), L[a + 2, a : a + 3].copy()
    L[a + 1 : n - 1] = L[a + 2 : n].copy()
    return push, c


@njit(**FAST)
def two_of_three(A, push, c, pushed):  # type: ignore[no-untyped-def]
    """Return the turn of three normals into two; if `pushed`, both keep a push of their own."""
    turn = np.empty((3, 2))
    for way in range(2):
        given_up = np.cross(A, push + c) if way == 0 else np.array([-push[1], push[0], 0.0])
        given_up /= math.sqrt(max((given_up**2).sum(), 1e-300))
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
