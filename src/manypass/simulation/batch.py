"""Batch learning at finite N: dJ/dt = v(t)[(1/p) Σ F ξ − λ(t)J] + noise, by Runge–Kutta steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import simpson

from manypass import schedules
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import stopping
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian, Rule
from manypass.simulation import kernels
from manypass.simulation.examples import Examples, Weights

STEP = 0.25  # in units of the fastest relaxation time; fourth order: errors below 1e-4
NOISY_STEP = 0.1  # the noise is split off symmetrically; second order: errors below 1e-3
MOST_STEPS = 10**8  # from one time to the next: more would take hours
BLOCK = 1024  # steps whose noise is drawn at once
SPAN = 16  # steps of one length where the rate is never constant
MISSED = 1e-7  # of ∫v(t) dt times the slope of the force, in as many steps


class Flow:
    """Gradient flow of one network over its training set; `advance` goes on from where it was."""

    def __init__(
        self, problem: Problem, examples: Examples, force: Any, rng: np.random.Generator
    ) -> None:
        self.problem, self.examples, self.force, self.rng = problem, examples, force, rng
        self.parameters = tuple(problem.rule.parameters.values())
        self.T, self.slope = problem.temperature, steepest(problem.rule) * examples.top
        self.step = NOISY_STEP if self.T else STEP
        self.J = np.zeros(examples.X.shape[1], examples.X.dtype)
        self.time, self.diverged = 0.0, False

    def advance(self, until: float, integral: Weights | None = None) -> float:
        """Flow until the given time; add ∫J dt to `integral`. Returns how long that was."""
        total = np.zeros(0 if integral is None else self.J.size, self.J.dtype)
        for d, v, decay in self.blocks(self.time, until):
            if self.diverged or stopping():
                break
            kernels.flow(
                self.force,
                self.parameters,
                self.J,
                self.examples.X,
                self.examples.targets,
                v,
                decay,
                d,
                self.kicks(v.size // 2, d),
                total,
            )
            self.diverged = not np.isfinite(self.J).all()
        duration, self.time = until - self.time, until
        if integral is not None:
            integral += total
        return duration

    def blocks(self, start: float, end: float) -> Iterator[tuple[float, Array, Array]]:
        """Yield steps of one length, none across a break: it, and v and λ at every half step."""
        changing = self.problem.rate, self.problem.decay
        inner = [b for b in schedules.breaks(*changing) if start < b < end]
        for low, high in pairwise([start, *inner, end]):
            now, between = low, (low, high)
            while now < high:
                fastest = self.fastest(*self.pace(np.array([now]), between))[0]
                stop, count = high, self.needed(high - now, fastest)
                if not schedules.flat(*changing):
                    stop = high if count <= SPAN else now + (high - now) * SPAN / count
                    count = self.resolving(now, stop, between)
                d = (stop - now) / count
                for first in range(0, count, BLOCK):
                    halves = np.arange(2 * first, 2 * min(first + BLOCK, count) + 1)
                    yield d, *self.pace((now + d / 2 * halves).astype(float), between)
                now = stop

    def pace(self, t: Array, between: tuple[float, float]) -> tuple[Array, Array]:
        """Return v and λ at times between two breaks, of which each belongs to what follows."""
        low, high = between
        edge = 1e-9 * (high - low)
        t = np.clip(t, low + edge, high - edge)
        return self.problem.v(t), self.problem.decays(t)

    def fastest(self, v: Array, decay: Array) -> Array:
        """Rate of the fastest relaxation."""
        return v * (self.slope + decay)

    def needed(self, duration: float, fastest: float) -> int:
        """How many steps it takes at least."""
        count = duration * fastest / self.step
        if count > MOST_STEPS:
            raise ValueError(
                f"`mode` = 'batch' would take {count:.2g} steps of a simulation from one time to "
                f"the next, at most {MOST_STEPS:.0e}: the largest eigenvalue of the examples is "
                f"{self.examples.top:.2g}; take a smaller `rate`, earlier times"
                f"{self.remedy}"
            )
        return max(math.ceil(count), 1)

    @property
    def remedy(self) -> str:
        """Who has no steps to take, or what makes them fewer."""
        if not isinstance(self.problem.data, Dataset):
            return ""
        exact = " or method Exact()" if isinstance(self.problem.rule, Adaline | Hebbian) else ""
        return f", `standardize` = True for the columns of `data`{exact}"

    def resolving(self, start: float, stop: float, between: tuple[float, float]) -> int:
        """How many steps it takes to follow v(t) and λ(t): as Simpson's rule integrates them."""
        peak = self.fastest(*self.pace(np.linspace(start, stop, 2 * SPAN + 1), between)).max()
        count = max(4, self.needed(stop - start, peak))
        while count < BLOCK:
            v, decay = self.pace(np.linspace(start, stop, 4 * count + 1), between)
            f = v * (1 + self.slope + decay)
            coarse, fine = (simpson(part) / (part.size - 1) for part in (f[::2], f))
            if abs(coarse - fine) * (stop - start) < MISSED:
                break
            count *= 2
        return count

    def kicks(self, count: int, d: float) -> Weights:
        """Noise before each step and after the last, where it counts half: |J|² gains 2T dt."""
        if not self.T:
            return np.empty((0, 0), self.J.dtype)
        size = np.full(count + 1, math.sqrt(2 * self.T * d / self.J.size))
        size[[0, -1]] *= math.sqrt(0.5)
        noise = self.rng.standard_normal((count + 1, self.J.size))
        return (size[:, None] * noise).astype(self.J.dtype)


def steepest(rule: Rule) -> float:
    """Largest |ΔF/Δx| over usual activations: what limits the step of an explicit method.

    A jump of the force counts as a steep slope, so that its steps are small.
    """
    x = np.linspace(-6, 6, 241)
    F = np.array([[rule.force(float(at), target) for at in x] for target in (-2.0, -1.0, 1.0, 2.0)])
    slope = float(np.abs(np.diff(F.astype(float), axis=1)).max() / (x[1] - x[0]))
    if not math.isfinite(slope):
        raise ValueError(f"`force` of {rule!r} is not finite for all x between -6 and 6")
    return slope
