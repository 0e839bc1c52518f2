"""When examples are learned: by chance, or once in every epoch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from manypass.checks import Array
from manypass.compiling import FAST, njit

STRATA = 64  # neighbours in y of which one is learned in each of so many parts of an epoch


class Events(NamedTuple):
    """Learning instants in a step, those of example k from begin[k] to begin[k + 1], in time.

    Each at a share of the step, where the Brownian motion behind h is off the line between its
    ends by `bridge` (instants × units), in units of √Δ.
    """

    begin: NDArray[np.int64]
    share: Array
    bridge: Array

    @classmethod
    def of(cls, who: Any, share: Array, size: int, normals: Array) -> Events:
        """Sort instants by example and time, and make bridges of normals."""
        begin, share = by_example(who, share, size)
        return cls(begin, share, bridges(begin, share, normals))

    @property
    def often(self) -> NDArray[np.int64]:
        """How often each example is learned."""
        return np.diff(self.begin)

    def half(self, late: bool) -> NDArray[np.bool_]:
        """Tell who is learned in the earlier or in the later half."""
        who = np.repeat(np.arange(self.begin.size - 1), self.often)
        out = np.zeros(self.begin.size - 1, bool)
        out[who[(self.share >= 0.5) == late]] = True
        return out

    def joined(self, other: Events, part: float, z: Array) -> Events:
        """One step of two, of which this is a part; z (2 × units × examples) are their normals."""
        return Events(*joined(self, other, part, z))

    def of_part(self, part: slice) -> Events:
        """Those of some of the examples."""
        if part == slice(None):
            return self
        low, high, _ = part.indices(self.begin.size - 1)
        begin = self.begin[low : high + 1]
        inside = slice(begin[0], begin[-1])
        return Events(begin - begin[0], self.share[inside], self.bridge[inside])


def no_events(size: int, units: int) -> Events:
    """No instants."""
    return Events(np.zeros(size + 1, np.int64), np.zeros(0), np.zeros((0, units)))


class Span(NamedTuple):
    """Everyone is learned all the time, so often in a step."""

    often: float

    def joined(self, other: Span, part: float, z: Array) -> Span:
        """One step of two."""
        return Span(self.often + other.often)

    def of_part(self, part: slice) -> Span:
        """Everyone is."""
        return self


@njit(**FAST)
def by_example(who, share, size):  # type: ignore[no-untyped-def]
    """Where those of each example begin, and their shares of the step in order of time."""
    begin, out = np.zeros(size + 1, np.int64), np.empty(who.size)
    for k in who:
        begin[k + 1] += 1
    begin = np.cumsum(begin)
    filled = begin[:-1].copy()
    for j in range(who.size):
        k, at = who[j], filled[who[j]]
        filled[k] += 1
        while at > begin[k] and out[at - 1] > share[j]:
            out[at] = out[at - 1]
            at -= 1
        out[at] = share[j]
    return begin, out


@njit(**FAST)
def joined(first, second, part, z):  # type: ignore[no-untyped-def]
    """Begin, shares and bridges of two steps as one: what is off a longer line between the ends."""
    begin = first[0] + second[0]
    share, bridge = np.empty(begin[-1]), np.empty((begin[-1], z.shape[1]))
    a, b, left = math.sqrt(part), math.sqrt(1 - part), 1 - part
    for k in range(begin.size - 1):
        at = begin[k]
        for j in range(first[0][k], first[0][k + 1]):
            s = first[1][j]
            share[at] = part * s
            for u in range(z.shape[1]):
                line = a * z[0, u, k] * (s - share[at]) - share[at] * b * z[1, u, k]
                bridge[at, u] = line + a * first[2][j, u]
            at += 1
        for j in range(second[0][k], second[0][k + 1]):
            s = second[1][j]
            share[at] = part + left * s
            for u in range(z.shape[1]):
                line = a * z[0, u, k] * (1 - share[at]) + b * z[1, u, k] * (s - share[at])
                bridge[at, u] = line + b * second[2][j, u]
            at += 1
    return begin, share, bridge


@njit(**FAST)
def bridges(begin, share, normals):  # type: ignore[no-untyped-def]
    """Brownian bridges over a step at the instants of each example, from independent normals."""
    out = np.empty_like(normals)
    for k in range(begin.size - 1):
        for j in range(begin[k], begin[k + 1]):
            left, first = 1 - share[j], j == begin[k]
            before = 1.0 if first else 1 - share[j - 1]
            spread = math.sqrt((before - left) * left / before)
            for u in range(normals.shape[1]):
                mean = 0.0 if first else out[j - 1, u] * left / before
                out[j, u] = mean + spread * normals[j, u]
    return out


class Instants:
    """When each example is learned: evenly in time, by chance who."""

    def __init__(self, size: int, alpha: float, units: int, rng: Any) -> None:
        self.size, self.alpha, self.units = size, alpha, units
        self.rng, self.left = rng, float(rng.random())

    def between(self, low: float, high: float) -> Events:
        """Return what happens between two times."""
        self.left += self.size * (high - low) / self.alpha
        total, rng = int(self.left), self.rng
        self.left -= total
        who, share = rng.integers(self.size, size=total), rng.random(total)
        return Events.of(who, share, self.size, rng.standard_normal((total, self.units)))


class Always:
    """Everyone all the time, at the rate at which others are drawn."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def between(self, low: float, high: float) -> Span:
        """Return how often each example is learned between two times."""
        return Span((high - low) / self.alpha)


class Turns:
    """Which examples are learned when: every one once in an epoch."""

    def __init__(self, y: Array, alpha: float, fixed: bool, units: int, rng: Any) -> None:
        self.order, self.alpha, self.fixed, self.rng = np.argsort(y), alpha, fixed, rng
        self.units = units
        self.epoch, self.phase = 0, self._phases()

    def between(self, low: float, high: float) -> Events:
        """Return what happens between two times of one epoch."""
        epoch = round((low + high) / 2 // self.alpha)
        if epoch > self.epoch:
            self.epoch = epoch
            self.phase = self.phase if self.fixed else self._phases()
        # Phases and edges are never as close to each other as rounding is.
        a, b = np.array([low, high]) / self.alpha - epoch
        if a == b:
            return no_events(self.phase.size, self.units)
        who = np.flatnonzero((a <= self.phase) & (self.phase < b))
        share, normals = (self.phase[who] - a) / (b - a), self.rng.standard_normal
        return Events.of(who, share, self.phase.size, normals((who.size, self.units)))

    def _phases(self) -> Array:
        """Even ones; of `STRATA` neighbours in y one in each of so many parts of the epoch."""
        size = self.order.size
        parts = np.tile(np.arange(STRATA), (-(-size // STRATA), 1))
        phases = np.empty(size)
        phases[self.order] = self.rng.permuted(parts, axis=1).ravel()[:size] + self.rng.random(size)
        return np.asarray(rankdata(phases, method="ordinal") - self.rng.random()) / size
