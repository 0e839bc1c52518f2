"""Weights averaged over the last steps of a run that has not settled yet.

With J̄ = (1/n) Σ J(l) over the n steps up to k, and because ⟨δJ(l+j) δJ(l)ᵀ⟩ = ā^j Σ(l),

    mean  m̄ = (1/n) Σ_l m(l)
    cov.  V_ij = (1/n²) Σ_l Σ_ij(l) [1 + G_i(k−l) + G_j(k−l)],    G_i(d) = a_i + … + a_i^d.

Σ(l) is interpolated between knots by cubics, for which the sums over all steps are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from manypass.checks import Array
from manypass.data import sums
from manypass.data.moments import Moments, State
from manypass.data.stepping import follow

FIRST = (1 / 64, 1 / 16, 1 / 4)  # of the first stop: knots where Σ is still young
RESTLESS = 400  # steps that are summed one by one if weights overshoot


@dataclass(frozen=True, eq=False)
class Interval:
    """Σ_l S(l) and Σ_l a^{end−l} S(l) over the steps l = start+1..end, S something linear in Σ."""

    start: int
    end: int
    plain: Array
    faded: Array
    last: Array  # S(end)


class Averages:
    """A run cut into intervals at its stops, from which every window between two stops follows.

    `reduce` takes Σ to what is kept of it: Σ itself, or the vector Σ_j (H_test)_ij Σ_ij, which
    is enough for ⟨ξᵀVξ⟩ over the test set.
    """

    def __init__(
        self, moments: Moments, stops: list[int], tolerance: float, reduce: Callable[[Array], Array]
    ) -> None:
        self.moments = moments
        # A mode that has not moved by the end has no variance either: its rate may be larger.
        self.q = np.maximum(moments.q, 1e-9 / stops[-1])
        young = {max(1, int(share * stops[0])) for share in FIRST}
        restless = moments.restless(tolerance)
        knots = sorted({0, *range(4, int(min(restless, RESTLESS, stops[-1])), 4), *young, *stops})
        nodes = {end: interval_nodes(start, end) for start, end in pairwise(knots)}
        wanted = sorted({k for places in nodes.values() for k in places})
        self.diverged = math.isinf(restless)
        self.intervals: list[Interval] = []
        if self.diverged:
            return
        path = follow(moments, wanted, tolerance)
        for start, end in pairwise(knots):
            values = self._values(path, len(nodes[end]), reduce)
            if values is None:
                self.diverged = True
                return
            self.intervals.append(self._interval(start, end, nodes[end], values))

    @staticmethod
    def _values(
        path: Iterator[tuple[int, State | None]], count: int, reduce: Callable[[Array], Array]
    ) -> list[Array] | None:
        found = [next(path)[1] for _ in range(count)]
        return (
            None
            if any(s is None for s in found)
            else [reduce(s.Sigma) for s in found if s is not None]
        )

    def _interval(self, start: int, end: int, nodes: list[int], values: list[Array]) -> Interval:
        length, degree = end - start, len(nodes) - 1
        places = np.array([(k - start - 1) / length for k in nodes])
        inverse = np.linalg.inv(np.vander(places, increasing=True))
        _, *even = sums.power_sums(np.zeros(1), length, degree)
        _, *fading = sums.power_sums(self.q, length, degree)
        plain, faded = np.zeros_like(values[0]), np.zeros_like(values[0])
        for d, row in enumerate(inverse):
            coefficient = sum(w * v for w, v in zip(row, values, strict=True)) / length**d
            plain += even[d][0] * coefficient
            faded += rows(fading[d], coefficient) * coefficient
        return Interval(start, end, plain, faded, values[-1])

    def mean(self, start: int, end: int) -> Array:
        """m̄ over the steps start+1..end; m at the end if start = end − 1."""
        n = end - start
        limit = self.moments.nu * self.moments.examples.g / self.q
        gone = sums.power(self.q, start + 1) * sums.learned(self.q, n) / n
        return limit + gone * (self.moments.start - limit)  # type: ignore[no-any-return]

    def halves(self, start: int, end: int) -> Array:
        """(1/n²) Σ_l S(l) [½ + G_i(end − l)]: V is this plus its transpose, or twice its sum."""
        n, weight = end - start, (1 - self.q) / self.q
        total: Array | float = 0.0
        for part in self.intervals:
            if start <= part.start and part.end <= end:
                late = weight * sums.power(self.q, end - part.end)
                total = total + rows(0.5 + weight, part.plain) * part.plain
                total = total - rows(late, part.faded) * part.faded
        return total / n**2  # type: ignore[return-value]

    def at(self, end: int) -> Array:
        """S at a stop."""
        return next(part.last for part in self.intervals if part.end == end)


def rows(vector: Array, matrix: Array) -> Array:
    """Shape a vector so that it multiplies the rows of a matrix, or the entries of a vector."""
    return vector[:, None] if matrix.ndim == 2 else vector


def interval_nodes(start: int, end: int) -> list[int]:
    """Up to four steps among start+1..end, evenly spaced."""
    return sorted({start + 1 + round((end - start - 1) * share / 3) for share in range(4)})
