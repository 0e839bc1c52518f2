"""Examples that live in a steady state: stationary paths of h, closed on themselves, in laps.

x(t) = h(t) + v Σ_r G(t−t_r) F_r is led twice around, with learning instants of its own on each lap:
the first lap forgets the start, on the second one measures. G is a sum of exponentials, so that
all of an example's past is a few numbers. What is measured are averages over examples and times:
⟨yF⟩, ⟨F²⟩, E_t, and of F with exponential filters of h (they give the response, by Gaussian
integration by parts: no slope is needed, and forces may jump) and of past forces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.fft
from scipy.special import ndtri
from scipy.stats import qmc

from manypass import memory
from manypass.cavity.stationary import Stationary
from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.problem import Problem

EVEN = 8  # slowest frequencies of h that are drawn as evenly as y
DOUBT = 10.0  # how much more than chance alone makes us doubt a response in some direction
DRIVE, SQUARE, MISSED, FROZEN = range(4)  # ⟨yF⟩, ⟨F²⟩, E_t, ⟨F F_r⟩ for r on the lap before


@njit(**FAST, inline="always")  # called twice a step, and mostly for nothing
def learn(x, kick, e, end, slots, half, share, aim, rule, v):  # type: ignore[no-untyped-def]
    """Return x and the sum of forces after the learning instants of a half cell, and the next."""
    while e < end and slots[e] == half:
        f = share * rule[1](x, aim, *rule[0])
        if share < 1:  # a piece of a flow: midpoint rule
            f = share * rule[1](x + 0.5 * v * f, aim, *rule[0])
        x, kick, e = x + v * f, kick + f, e + 1
    return x, kick, e


@njit(**FAST)
def around(h, R, examples, events, keep, modes, rule, v, classify):  # type: ignore[no-untyped-def]
    """Return the averages, ⟨F · filters of h⟩ with ⟨F h⟩ last, ⟨F · filters of F_r⟩, and x at last.

    Learning instants are rounded to half cells: those just before a point of the grid happen before
    the measurement there, those just after it afterwards. In batch mode there is one in every half
    cell, which counts as a `share` of one.
    """
    y, target = examples
    begin, end, slots, share = events
    turn, amplitude = modes
    parameters, force = rule[0], rule[1]
    size, n = h.shape
    decay, spin, gain, lean = turn.real, turn.imag, v * amplitude.real, v * amplitude.imag
    one, Fh, Fe = np.zeros(4), np.zeros(keep.size + 1), np.zeros(keep.size)
    memory, other = np.empty(turn.size), np.empty(turn.size)
    seen, learned, last = np.empty(keep.size), np.empty(keep.size), np.empty(size)
    for k in range(size):
        memory[:], other[:], seen[:], learned[:] = 0, 0, 0, 0
        e, aim, early, late = begin[k], target[k], 0.0, 0.0
        for i in range(2 * n):
            g = h[k, i % n]
            x = R * y[k] + g
            for q in range(turn.size):
                new = decay[q] * memory[q] - spin[q] * other[q]
                other[q] = decay[q] * other[q] + spin[q] * memory[q]
                memory[q] = new
                x += new
            for j in range(keep.size):
                learned[j] *= keep[j]
            x, kick, e = learn(x, 0.0, e, end[k], slots, 2 * i - 1, share, aim, rule, v)
            if i >= n:
                f = force(x, aim, *parameters)
                one[DRIVE] += y[k] * f
                one[SQUARE] += f * f
                one[MISSED] += 0.5 * (1 - np.sign(x * aim) if classify else (aim - x) ** 2)
                late += f
                last[k] = x
                Fh[keep.size] += f * g
                for j in range(keep.size):
                    Fh[j] += f * (seen[j] + 0.5 * g)
                    Fe[j] += f * (learned[j] + kick)
            x, kick, e = learn(x, kick, e, end[k], slots, 2 * i, share, aim, rule, v)
            early += kick if n // 2 <= i < n else 0.0
            for j in range(keep.size):
                seen[j] = keep[j] * (seen[j] + g)
                learned[j] += kick
            for q in range(turn.size):
                memory[q] += gain[q] * kick
                other[q] += lean[q] * kick
        one[FROZEN] += early * late / (n - n // 2)
    return one / (size * n), Fh / (size * n), Fe / (size * n), last


@dataclass(frozen=True, eq=False)
class Box:
    """Some examples with everything random about them; the same on grids of one or two steps."""

    problem: Problem
    period: float
    steps: int
    each: tuple[Any, ...]  # example: y, target, normals by frequency, first event and end
    slots: Any  # half cells of the events
    share: float
    every: int = 1  # second point of h is on the grid

    @classmethod
    def make(cls, problem: Problem, period: float, steps: int, size: int, rng: Any) -> Box:
        """Draw them: evenly in y, noise, what is frozen in h, and the slowest of its motion."""
        even = min(EVEN, steps // 4)
        uniform = qmc.Sobol(3 + 2 * even, rng=rng).random(size)
        drawn = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12)).T
        target = drawn[0] + problem.teacher.noise * drawn[1]
        if problem.teacher.task == "classification":
            target = np.where(target < 0, -1.0, 1.0)
        normals = scipy.fft.rfft(rng.standard_normal((size, steps)), axis=1) / math.sqrt(steps)
        normals[:, 0] = drawn[2]
        normals[:, 1 : even + 1] = (drawn[3 : even + 3] + 1j * drawn[even + 3 :]).T / math.sqrt(2)
        halves, alpha = 2 * steps / period, problem.teacher.alpha
        if problem.mode == "batch":  # every example all the time
            begin, end = np.zeros(size, np.int64), np.full(size, 4 * steps)
            slots, share = np.arange(4 * steps), 1 / (halves * alpha)
        else:
            remedy = "a steady state this far away is a curve up to a late time, by `solve`; or "
            remedy += f"`alpha` = {alpha:g} or `rate` = {problem.rate:g} is too small"
            memory.require(24 * size * 2 * period / alpha, remedy)
            counts = rng.poisson(2 * period / alpha, size)
            end, share = np.cumsum(counts), 1.0
            begin = end - counts
            slots = (rng.random(end[-1]) * 4 * steps).astype(np.int64)
            slots += np.repeat(np.arange(size), counts) * 4 * steps
            slots.sort()
            slots %= 4 * steps
        return cls(problem, period, steps, (drawn[0], target, normals, begin, end), slots, share)

    def coarser(self) -> Box:
        """Return the same examples on a grid of twice the step."""
        return replace(self, every=2, slots=self.slots >> 1)

    def halves(self) -> list[Box]:
        """Return the same examples as two populations that know nothing of each other."""
        middle = self.each[0].size // 2
        parts = slice(0, middle), slice(middle, 2 * middle)
        return [replace(self, each=tuple(values[part] for values in self.each)) for part in parts]

    def measure(self, state: Stationary, rule: Any) -> tuple[Stationary, float, Array]:
        """Return what the examples make of the state that drives them; E_t; and x at the end."""
        steps, rates = self.steps // self.every, state.rates
        y, target, normals, begin, end = self.each
        step, v, alpha = self.period / steps, state.problem.rate, state.problem.data.alpha
        power = state.power(self.period / self.steps, self.steps)
        amplitudes = normals * np.sqrt(power * self.steps)
        h = scipy.fft.irfft(amplitudes, n=self.steps, axis=1)[:, :: self.every]
        p, g, _ = state.modes
        keep, modes = np.exp(-rates * step), (np.exp(-p * step), g)
        classify = state.problem.data.task == "classification"
        h, events = np.ascontiguousarray(h), (begin, end, self.slots, self.share)
        one, Fh, Fe, x = around(h, state.R, (y, target), events, keep, modes, rule, v, classify)
        # F = ∫M h + what is not correlated with h: least squares, on the paths that there are
        power = power * np.mean(np.abs(normals) ** 2, axis=0)
        power = np.concatenate([power, power[-2:0:-1]])
        power = power.reshape(self.every, steps).mean(0)
        back = np.exp(-2j * np.pi * np.arange(steps) / steps)
        filters = [step * (1 / (1 - q * back) - 0.5) for q in keep] + [np.ones(steps)]
        hh = (np.conj(filters) * power @ np.transpose(filters)).real / steps
        number = y.size * self.period * state.fastest / DOUBT  # of independent F
        doubt = one[SQUARE] / number / (state.m * rates) ** 2
        M = fitted(hh + np.diag(np.append(doubt, 0.0)), np.append(step * Fh[:-1], Fh[-1]))
        # S(τ), by its overlaps with exponentials and between the two laps
        T, SS = self.period, np.ones((rates.size + 1, rates.size + 1))
        SS[:-1, :-1], SS[:-1, -1] = 1 / (rates[:, None] + rates), 1 / rates
        SS[-1, :-1] = 2 * np.expm1(-rates * T) * np.expm1(-rates * T / 2) / (rates * T) ** 2
        S = np.linalg.solve(SS, alpha * np.append(Fe, one[FROZEN] / step))
        R = state.R + state.chi * (one[DRIVE] - state.problem.decay * state.R)
        values = np.concatenate([[R, one[SQUARE], S[-1]], S[:-1], M[-1:], M[:-1]])
        return replace(state, values=values), float(one[MISSED]), x


def fitted(A: Array, b: Array) -> Array:
    """Least squares by the normal equations, without directions that are only rounding."""
    scale = 1 / np.sqrt(np.diag(A))
    if not np.isfinite(A).all():  # forces have diverged
        return np.full(b.shape, np.nan)
    return np.asarray(scale * np.linalg.lstsq(A * scale[:, None] * scale, scale * b, 1e-9)[0])
