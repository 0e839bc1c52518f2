"""When examples are learned: by chance, or once in every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from manypass.checks import Array

STRATA = 64  # neighbours in y of which one is learned in each of so many parts of an epoch


class Instants:
    """How often each example is learned: evenly in time, by chance who."""

    def __init__(self, size: int, alpha: float, rng: Any) -> None:
        self.size, self.alpha, self.rng, self.left = size, alpha, rng, float(rng.random())

    def between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return counts by example between two times."""
        self.left += self.size * (high - low) / self.alpha
        total = int(self.left)
        self.left -= total
        return np.bincount(self.rng.integers(self.size, size=total), minlength=self.size)


class Always:
    """Everyone all the time, at the rate at which others are drawn."""

    def __init__(self, size: int, alpha: float) -> None:
        self.size, self.alpha = size, alpha

    def between(self, low: float, high: float) -> Array:
        """Return how often each example is learned between two times."""
        return np.full(self.size, (high - low) / self.alpha)


class Turns:
    """Which examples are learned when: every one once in an epoch."""

    def __init__(self, y: Array, alpha: float, fixed: bool, rng: Any) -> None:
        self.order, self.alpha, self.fixed, self.rng = np.argsort(y), alpha, fixed, rng
        self.epoch, self.phase = 0, self._phases()

    def between(self, low: float, high: float) -> NDArray[np.int64]:
        """Return how often each example is learned between two times of one epoch."""
        epoch = round((low + high) / 2 // self.alpha)
        if epoch > self.epoch:
            self.epoch = epoch
            self.phase = self.phase if self.fixed else self._phases()
        # Phases and edges are never as close to each other as rounding is.
        a, b = np.array([low, high]) / self.alpha - epoch
        return np.asarray((a <= self.phase) & (self.phase < b), np.int64)

    def _phases(self) -> Array:
        """Even ones; of `STRATA` neighbours in y one in each of so many parts of the epoch."""
        size = self.order.size
        parts = np.tile(np.arange(STRATA), (-(-size // STRATA), 1))
        phases = np.empty(size)
        phases[self.order] = self.rng.permuted(parts, axis=1).ravel()[:size] + self.rng.random(size)
        return np.asarray(rankdata(phases, method="ordinal") - self.rng.random()) / size
