"""The search behind `advise`: runs of the exact moments over rates, decays, stops and windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from manypass.checks import Array
from manypass.data.averaging import Averages
from manypass.data.critical import critical_step
from manypass.data.measuring import Measure, error_rate
from manypass.data.moments import Moments
from manypass.data.solution import data_of
from manypass.problem import Problem

TOLERANCE = 1e-3  # of a step
LARGE = 100  # directions beyond which the search takes the diagonal approximation
RATES = (1e-3, 0.9)  # between which the rate is sought, in units of the critical one
DECAYS = (1e-5, 10.0)  # likewise the decay, in units of the mean eigenvalue of H
LIMITS = (1e-12, 1e6)  # of rates and decays that a problem may have


@dataclass(frozen=True)
class Choice:
    """One way to train, and what it gives of the objective on the test set."""

    rate: Any  # a number or a schedule
    decay: float
    passes: int
    start: int  # the pass after which averaging begins; `passes` if there is none
    error: float


class Search:
    """Expected test errors of all ways to train, computed once each.

    The objective is F2_test = ⟨(ỹ − x)²⟩, or Eg: half of that, or for classes the error rate.
    """

    def __init__(self, problem: Problem, passes: int, objective: str) -> None:
        self.problem, self.data, self.batch = problem, data_of(problem), problem.batch_size
        self.by_rate = objective == "Eg" and self.data.task == "classification"
        self.examples = self.data.principal
        self.stops = sorted({round(s) for s in np.geomspace(1, passes, min(passes, 8))})
        self.limit = critical_step(self.moments(problem)) * self.data.n
        self.scale = float(self.examples.h.sum() / self.data.n)
        low, high = (share * self.limit for share in RATES)
        if not LIMITS[0] <= low < high <= LIMITS[1]:
            raise ValueError(
                f"in the units of `X` the critical rate is {self.limit:.3g}: good rates are beyond "
                f"{LIMITS[0]:g} to {LIMITS[1]:g}; say standardize=True, or take another unit"
            )
        self.known: dict[tuple[float, float], list[Choice]] = {}

    def rate(self, z: float) -> float:
        """Rate at position z from 0 to 1 of the range searched."""
        return self.limit * float(np.exp(np.interp(z, (0, 1), np.log(RATES))))

    def decay(self, z: float) -> float:
        """Decay at position z from 0 to 1 of the range searched."""
        decay = self.scale * float(np.exp(np.interp(z, (0, 1), np.log(DECAYS))))
        return min(max(decay, LIMITS[0]), LIMITS[1])

    def reported(self, row: dict[str, float]) -> float:
        """Return the objective of a reported row, a number that can be compared."""
        error = row["Eg" if self.by_rate else "F2_test"]
        return error if math.isfinite(error) else 1e300

    def along(
        self,
        settings: Callable[[float], tuple[float, float]],
        allowed: Callable[[Choice], bool],
    ) -> Choice:
        """Best choice on a line of (rate, decay): a grid, then a search about its best point."""

        def best(z: float) -> Choice:
            return min(filter(allowed, self.run(*settings(z))), key=error_of)

        grid = np.linspace(0, 1, 8)
        found = [best(z) for z in grid]
        i = int(np.argmin([error_of(c) for c in found]))
        bounds = (grid[max(i - 1, 0)], grid[min(i + 1, 7)])
        end = minimize_scalar(
            lambda z: error_of(best(z)), bounds=bounds, method="bounded", options={"maxiter": 5}
        )
        return min((*found, best(float(end.x))), key=error_of)

    def together(self) -> Choice:
        """Best rate, decay, number of passes and window at once."""

        def best(z: Any) -> float:
            z = np.clip(z, 0, 1)
            return error_of(min(self.run(self.rate(z[0]), self.decay(z[1])), key=error_of))

        starts = [np.array((a, b)) for a in (0.4, 0.65, 0.9) for b in (0.1, 0.4, 0.6, 0.8)]
        first = min(starts, key=best)
        simplex = first + np.array([[0, 0], [0.1, 0], [0, 0.1]])
        end = minimize(
            best,
            first,
            method="Nelder-Mead",
            options={"maxfev": 20, "initial_simplex": simplex, "xatol": 0.01, "fatol": 0},
        )
        rate = self.rate(float(np.clip(end.x[0], 0, 1)))
        self.run(rate, 0.0)
        return min((c for found in self.known.values() for c in found), key=error_of)

    def run(self, rate: float, decay: float) -> list[Choice]:
        """Every number of passes and every window that one run offers."""
        if (rate, decay) not in self.known:
            self.known[rate, decay] = self._run(rate, decay)
        return self.known[rate, decay]

    def _run(self, rate: float, decay: float) -> list[Choice]:
        if rate * decay >= self.data.n:  # a step of which turns the weights round
            return [Choice(rate, decay, s, s, math.inf) for s in self.stops]
        problem = self.problem.replace(rate=rate, decay=decay)
        moments = self.moments(problem, diagonal=self.examples.rank > LARGE)
        H = self.examples.H_test
        H = np.diagonal(H) if moments.diagonal else H

        def reduced(Sigma: Array) -> Array:
            """Keep what the objective needs of Σ: an error rate needs all of it."""
            if self.by_rate:
                return Sigma
            return np.asarray(H * Sigma if moments.diagonal else (H * Sigma).sum(axis=1))

        averages = Averages(moments, [self.steps(s) for s in self.stops], TOLERANCE, reduced)
        if averages.diverged:
            return [Choice(rate, decay, s, s, math.inf) for s in self.stops]
        out = []
        for stop in self.stops:
            end = self.steps(stop)
            error = self._error(moments, moments.mean(end), averages.at(end) / 2, end)
            out.append(Choice(rate, decay, stop, stop, error))
            for first in (0, *(s for s in self.stops if s < stop)):
                start = self.steps(first)
                m, half = averages.mean(start, end), averages.halves(start, end)
                out.append(Choice(rate, decay, stop, first, self._error(moments, m, half, end)))
        return out

    def _error(self, moments: Moments, m: Array, half: Array, end: int) -> float:
        """Return the objective for weights of mean m; `half` is half of what is kept of Σ."""
        if not self.by_rate:
            noise = 2 * float(half.sum())
            if noise < 0:  # grows too fast to be interpolated
                return math.inf
            return self._bias(m) + noise + self._null(moments, end)
        Sigma = 2 * half if moments.diagonal else half + half.T
        if moments.variances(Sigma).sum() < 0:
            return math.inf
        null = moments.null_variance(end)
        return Measure(moments, self.data.task).test(m, Sigma, null)["Eg"]

    def _null(self, moments: Moments, k: int) -> float:
        """Noise outside the span of the training set; averaging is not counted on for it."""
        outside = self.examples.outside
        return moments.null_variance(k) * float(outside.mean()) if moments.heat else 0.0

    def _bias(self, m: Array) -> float:
        return float(np.mean((self.examples.targets_test - self.examples.Y_test @ m) ** 2))

    def moments(self, problem: Problem, diagonal: bool = False) -> Moments:
        """Return the moments of a problem on these data."""
        return Moments(problem, self.examples, diagonal=diagonal)

    def steps(self, passes: float) -> int:
        """Return the number of steps in so many passes."""
        return max(1, round(passes * self.data.p / self.batch)) if passes else 0

    def batch_decay(self) -> float:
        """Decay with which batch learning does best: ridge regression's."""
        e = self.examples

        def still(m: Array) -> float:
            x = e.Y_test @ m
            return error_rate(e.targets_test, x, 0 * x) if self.by_rate else self._bias(m)

        def error(z: float) -> float:
            return still(e.g / (self.decay(z) + e.h))

        grid = np.linspace(0, 1, 41)
        i = int(np.argmin([error(z) for z in grid]))
        end = minimize_scalar(
            error, bounds=(grid[max(i - 1, 0)], grid[min(i + 1, 40)]), method="bounded"
        )
        better = still(e.g / e.h) <= error(float(end.x))
        return 0.0 if better else self.decay(float(end.x))


def only(choices: list[Choice], passes: int, start: int) -> Choice:
    """Return the choice with these passes and this start of averaging."""
    return next(c for c in choices if c.passes == passes and c.start == start)


def error_of(choice: Choice) -> float:
    """Return its error, a number that can be compared even if it has diverged."""
    return choice.error if math.isfinite(choice.error) else 1e300
