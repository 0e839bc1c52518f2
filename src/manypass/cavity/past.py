"""What a population remembers: the past in cells that widen with their age, K normals to a cell.

The push of all other examples in cell c is a K-vector ζ_c = Σ_d L_cd z_d with independent normals z
and K × K blocks L_cd, and f_c is the sum of the v F with which an example itself was learned there.
Then h = R T⁻¹y + Σ_c A_c z_c and x = h + Σ_c G_c f_c with A = G L.
Pushes have covariance α⟨f fᵀ⟩ + 2TΔ: e with √α f_c = Σ_d L_cd e_d are to the forces what z are
to the pushes. The push of a force F is Σ_c (vΔ/√α)⟨F e_cᵀ⟩ z_c and something new, and
x = h + Σ_c A_c e_c/√α: nothing has to be inverted. Diagonal blocks are symmetric roots, so that z
and e are turned alike.
Two cells become one when they lie far enough back. The number of cells grows as log t, so that
time grows as t.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manypass.cavity.blocks import fold, inverse_root, orthonormal, quotient, trace, turn_of
from manypass.cavity.modes import Modes
from manypass.cavity.weights import Weights
from manypass.checks import Array
from manypass.compiling import FAST, njit

Normals = NDArray[np.float32]
BEFORE = -1e-9  # when a start begins: who is learned at t = 0 knows it
SPANNED = 1e-8  # share of forces that is lost in single precision


class Past:
    """Cells, z and e of every example (examples × columns), and rows over the columns, K of each.

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
        self.K, self.one, room = weights.K, np.eye(weights.K), 16 * weights.K
        self.first, self.start = 0, 0.0 if epochs else math.inf  # of this epoch
        self._weigh(known, np.ones(len(known), np.float32))
        # One unit is led example by example, more of them by products of matrices.
        order: Any = "C" if self.K == 1 else "F"
        self.z, self.e = (np.zeros((len(known), room), np.float32, order) for _ in range(2))
        self.begin, self.end, self.learned = np.zeros((3, 16))
        self.L, self.rows = np.zeros((room, room)), np.zeros((5 + kept, self.K, room))
        self.kept, self.sources = slice(5, 5 + kept), slice(5 + kept, None)

    @property
    def n(self) -> int:
        """Columns in use."""
        return self.K * self.count

    @property
    def newest(self) -> slice:
        """Columns of the last cell."""
        return slice(self.n - self.K, self.n)

    def start_from(self, z: Normals, root: Array) -> None:
        """Put first weights, of which the teacher knows nothing, before all pushes."""
        self.append(z, 0.0, BEFORE, BEFORE)
        self.L[: self.K, : self.K] = self.rows[0, :, : self.K] = root
        self.weights.place(0, root)
        self.first, self.rows[self.sources] = 1, 0.0

    def append(self, z: Normals, f: Any, begin: float, end: float, v: float = 1.0) -> None:
        """Begin a cell, with normals (K × examples) made orthonormal to all others, 1, y and ỹ.

        The population then has the covariance that it is given, not one that is off by chance. What
        is learned in a cell is ∫v dt.
        """
        n, size = self.n, np.float32(z.shape[1])
        if self.count == self.begin.size:
            self._grow()
        share, old = self.share[:, None], self.z[:, :n]
        z = z.T - self.base @ (self.base.T @ (share * z.T))
        z -= old @ ((old.T @ (share * z)) / size)
        self.begin[self.count], self.end[self.count] = begin, end
        self.learned[self.count], self.count = v * (end - begin), self.count + 1
        own = self.newest
        self.z[:, own] = orthonormal(z, share)
        self.e[:, own] = f  # until all forces in the cell are known
        self.L[own], self.L[:, own], self.rows[:, :, own] = 0.0, 0.0, 0.0
        self.weights.append(n)
        if self.start < math.inf:
            source = self.sources.start + self.count - 1 - self.first
            if source == len(self.rows):
                self.rows = np.pad(self.rows, ((0, 16), (0, 0), (0, 0)))
            self.rows[source, :, own] = self.one

    def take(self, who: Any, share: Normals) -> None:
        """Go on with these examples, each of which stands for a share of all."""
        self.z, self.e = self.z[who], self.e[who]
        self._weigh(self.known[who], share)

    def row(self, S: Array, heat: float) -> tuple[Array, Array]:
        """Coefficients of e in √α f of the last cell, given S = ⟨f eᵀ⟩; of a new e, inverted.

        Heat belongs to the push, but to no force; forces known from earlier ones make none.
        """
        n = S.shape[1] - self.K
        along, whole = math.sqrt(self.alpha) * S[:, :n], self.alpha * S[:, n:] + heat * self.one
        left = whole - along @ along.T
        return along, inverse_root(left, SPANNED * max(trace(whole), 1e-300))

    def complete(self, along: Array, inner: Array, P: Array) -> None:
        """Make e of the forces in the last cell, √α f = Σ along e + inner⁻¹ e; P = ⟨F eᵀ⟩ as well.

        A cell without any push is none.
        """
        own, n = self.newest, self.n
        inverse = inner @ np.concatenate([-along, math.sqrt(self.alpha) * self.one], axis=1)
        self.e[:, own] = self.e[:, :n] @ inverse.T.astype(np.float32)
        P[:, own] = P @ inverse.T
        self.rows[self.sources, :, own] = self.rows[self.sources, :, :n] @ inverse.T
        if not self.L[own, own].any():
            self.count -= 1
            self.weights.drop()

    def turn(self, where: NDArray[np.int64], forces: Array, now: float) -> None:
        """End an epoch, in which examples were learned in some cell of it with some force."""
        sources = self.rows[self.sources]
        for k in range(self.K if len(sources) else 0):  # or nothing has been learned at all
            self.e[:, : self.n] += sources[where, k, : self.n] * forces[:, k, None]
        self.first, self.start, sources[:] = self.count, now, 0.0

    def own(self, n: int, latest: Array | None = None) -> Array:
        """Coefficients of e in x − h = Σ G f; of f in a last cell not complete, given its G."""
        own, old = self.weights.own(n) / math.sqrt(self.alpha), n - self.K
        if n and latest is not None:
            own[:, :old] -= latest @ self.L[old:n, :old] / math.sqrt(self.alpha)
            own[:, old:] = latest
        return own

    def latest(self, n: int) -> Array:
        """G of the last cell."""
        old = n - self.K
        own = self.weights.own(n)
        return quotient(own[:, old:], self.L[old:n, old:n], 1.0) if n else self.one

    def response(self, n: int) -> Array:
        """G on the cells (cells × K × K): what comes back of the push of each, times L⁻¹."""
        G = np.linalg.solve(self.L[:n, :n].T, self.weights.own(n).T)
        return np.ascontiguousarray(G.reshape(-1, self.K, self.K).transpose(0, 2, 1))

    def merge(self, now: float) -> None:
        """Unite neighbours that together are shorter than their distance from now, over `per`.

        Shorter in time, and in what was learned: where the rate falls, early cells are long ones.
        Of the normals of two cells and the next one third is given up: what is orthogonal to
        h = Σ A z as it is and to the push of all three. h is what it was, and may change as the
        response to these pushes does.
        """
        latest, K, weights = min(now, self.start), self.K, self.weights
        while True:
            cells = self.begin, self.end, self.learned
            cell = neighbours(cells, self.count, self.per, now, latest)
            if cell < 0:
                return
            n, a = self.n, K * cell
            three = slice(a, a + 3 * K)
            push, after = self._joined(a)
            z = e = turn_of(weights.own(n)[:, three], push, after, True)
            tables = [(slice(None), e)]
            if isinstance(weights, Modes):  # what was seen of pushes turns by itself
                seen = weights.seen(a)
                z = turn_of(self.rows[0, :, three], push @ seen, after @ seen, False)
                tables = [(slice(3), z), (slice(3, 5), e), (self.kept, z), (self.sources, e)]
            for rows, turn in tables:
                fold(self.rows[rows], a, n, turn)
            fold(self.L, a, n, e)
            fold(self.z, a, n, z.astype(np.float32))
            fold(self.e, a, n, e.astype(np.float32))
            weights.unite(a, n, z, e)
            self.end[cell : self.count - 1] = self.end[cell + 1 : self.count]
            self.begin[cell + 1 : self.count - 1] = self.begin[cell + 2 : self.count]
            self.learned[cell] += self.learned[cell + 1]
            self.learned[cell + 1 : self.count - 1] = self.learned[cell + 2 : self.count]
            self.count -= 1
            self.first -= 1

    def _weigh(self, known: Array, share: Normals) -> None:
        """Set shares, and a basis of what is known of examples, orthonormal by them."""
        root = np.sqrt(share)[:, None]
        self.known, self.share = known, share
        self.base = (np.linalg.qr(root * known)[0] / root).astype(np.float32)

    def _joined(self, a: int) -> tuple[Array, Array]:
        """Make one of the rows of L of two cells; return this push and the next."""
        L, K, n = self.L, self.K, self.n
        three = slice(a, a + 3 * K)
        L[a : a + K] += L[a + K : a + 2 * K]
        push, after = L[a : a + K, three].copy(), L[a + 2 * K : a + 3 * K, three].copy()
        L[a + K : n - K] = L[a + 2 * K : n].copy()
        return push, after

    def _grow(self) -> None:
        more = self.begin.size // 2
        wide = more * self.K
        for name in ("z", "e", "rows"):
            table = getattr(self, name)
            setattr(self, name, np.pad(table, (*(table.ndim - 1) * [(0, 0)], (0, wide))))
        self.L = np.pad(self.L, (0, wide))
        for name in ("begin", "end", "learned"):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))


@njit(**FAST)
def neighbours(cells, count, per, now, latest):  # type: ignore[no-untyped-def]
    """Return the first of two cells to unite, or −1; a push at one time stays alone."""
    (begin, end, learned), first, since = cells, -1, 0.0
    for a in range(count - 3, -1, -1):
        b = a + 1
        since += learned[b + 1]
        if end[b] > latest or end[b] - begin[a] > (now - end[b]) / per:
            continue
        if learned[a] + learned[b] > since / per * (1 + 1e-9):  # at an even rate the same
            continue
        if begin[a] < end[a] and begin[b] < end[b] and begin[b + 1] < end[b + 1]:
            first = a
    return first
