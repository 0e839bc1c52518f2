"""Many steps of the recursion at once: s' = b s + source(s), the source a slow function of time.

The diagonal part b is exact over any number n of steps. The source is interpolated in time by a
polynomial through its last values (Adams' idea), for which the sum over the n steps is exact too
(`sums`); its degree is the one that foresaw the last value best. A predictor and a corrector give
the error, which chooses n. One step, n = 1, has no error: where everything moves fast this is the
exact recursion, step by step; where everything has settled n grows without bound, however stiff
the spectrum. Directions in which the weights overshoot are followed step by step until they are
still.

Where a schedule changes b slowly, b̄ of the middle is what is exact, and (b − b̄)s goes with the
source. No interval contains a jump.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from manypass import schedules
from manypass.checks import Array
from manypass.data import sums
from manypass.data.moments import Moments, State, finite

KEPT = 3  # past values of the source
DOUBT = 4  # how much better a higher degree has to be
NEVER = 1 << 62  # steps
ROUNDING = 1e-13  # of targets and activations: what is left of their difference is no error
INTERVALS = 16  # at least, while a schedule moves: what lies between them is not looked at


class Polynomial:
    """Sources as polynomials in u = j/n, j steps from now, through values at nodes."""

    def __init__(self, nodes: list[float], values: Sequence[Sequence[Array]], n: float) -> None:
        self.n = n
        inverse = np.linalg.inv(np.vander(np.array(nodes) / n, increasing=True))
        self.coefficients = [
            [column[0]]  # a constant
            if all(value is column[0] for value in column)
            else [sum(w * value for w, value in zip(row, column, strict=True)) for row in inverse]
            for column in zip(*values, strict=True)
        ]

    def end(self, i: int) -> Array:
        """Value of the i-th source n steps from now."""
        return sum(self.coefficients[i])  # type: ignore[no-any-return]

    def advance(self, state: Iterable[Array], rates: Iterable[Array], j: float) -> list[Array]:
        """Return the state after j steps, b = 1 − rates."""
        out = []
        for value, c, coefficients in zip(state, rates, self.coefficients, strict=True):
            whole, *M = sums.power_sums(c, j, len(coefficients) - 1)
            after = whole * value
            for d, coefficient in enumerate(coefficients):
                after += coefficient * (M[d] / self.n**d)
            out.append(after)
        return out


class Past(NamedTuple):
    """A step that was looked at."""

    k: int
    state: State
    moments: Moments
    sources: tuple[Array, Array]

    @classmethod
    def of(cls, k: int, state: State, moments: Moments) -> Past:
        """Evaluate the sources."""
        return cls(k, state, moments, moments.sources(state))

    def beside(self, middle: Moments) -> tuple[Array, ...]:
        """Return the sources beyond what the rates of another step leave of the state."""
        mine, its = self.moments, middle
        if mine is its:
            return self.sources
        changes = (its.fading - mine.fading, its.c - mine.c)
        return tuple(
            source + change * value
            for source, change, value in zip(self.sources, changes, self.state, strict=True)
        )


def follow(
    moments: Moments, steps: Iterable[int], tolerance: float
) -> Iterator[tuple[int, State | None]]:
    """Yield (k, state) at the given rising step numbers; None once learning has diverged."""
    wanted = list(steps)
    k, state, n, degree, done, since = 0, moments.first, 1, 0, 0, 0
    while done < len(wanted) and wanted[done] == 0:
        yield 0, state
        done += 1
    most = _longest(moments, wanted)
    jumps = [*moments.jumps, NEVER]
    with np.errstate(over="ignore", invalid="ignore"):
        history = [Past.of(0, state, moments)] if done < len(wanted) else []
        restless = moments.restless(tolerance / 10)
        while done < len(wanted):
            n = 1 if k - since < restless else min(n, wanted[-1] - k, most)
            n = max(1, min(n, jumps[0] - 1 - k))  # the last step before a jump is alone
            now = history[-1].moments
            middle = now.at(k + (n - 1) / 2)
            known = history[-degree - 1 :]
            nodes = [float(past.k - k) for past in known]
            values = [past.beside(middle) for past in known]
            rates, error = (middle.fading, middle.c), 0.0
            polynomial = Polynomial(nodes, values, n)
            after = State(*polynomial.advance(state, rates, n))
            if n > 1:
                guess = Past.of(k + n, after, now.at(k + n)).beside(middle)
                polynomial = Polynomial([*nodes, float(n)], [*values, guess], n)
                better = State(*polynomial.advance(state, rates, n))
                error = _difference(moments, better, after)
                after = better
            if not error <= tolerance and n > 1 and np.isfinite(state.Sigma).all():
                n = max(1, int(n * max(0.2, 0.8 * (tolerance / error) ** 0.25)))
                continue
            if not finite(moments.F2(after.m, after.Sigma)):
                break
            while done < len(wanted) and wanted[done] <= k + n:
                j = wanted[done] - k
                inside = after if j == n else State(*polynomial.advance(state, rates, j))
                yield wanted[done], inside
                done += 1
            k, state = k + n, after
            if done == len(wanted):
                break
            past = Past.of(k, state, now.at(k))
            if k >= jumps[0]:
                jumps = [jump for jump in jumps if jump > k]
                history, n, degree, since = [past], 1, 0, k
                restless = past.moments.restless(tolerance / 10)
                continue
            degree = _best_degree(history, past, n, middle)
            history = [*history, past][-KEPT:]
            growth = 3.0 if error == 0 else min(3.0, 0.8 * (tolerance / error) ** 0.25)
            n = max(1, n + 1 if error == 0 and n < 4 else int(n * growth))
    for k in wanted[done:]:
        yield k, None


def _longest(moments: Moments, wanted: list[int]) -> int:
    """Return how many steps an interval may have."""
    if schedules.flat(moments.problem.rate, moments.problem.decay):
        return NEVER
    return max(1, wanted[-1] // INTERVALS)


def _best_degree(history: list[Past], past: Past, n: int, middle: Moments) -> int:
    """Degree of the extrapolation that would have foreseen this source of Σ best.

    In motion that is the highest. Where all has settled it is 0, and must be: extrapolating
    what is left of errors by a polynomial makes them grow.
    """
    errors, here = [], past.beside(middle)[1]
    for degree in range(len(history)):
        known = history[-degree - 1 :]
        nodes = [float(one.k - past.k + n) for one in known]
        foreseen = Polynomial(nodes, [one.beside(middle)[1:] for one in known], n).end(0)
        errors.append(np.linalg.norm(foreseen - here))
    best = min(range(len(errors)), key=lambda degree: errors[degree] * DOUBT**degree)
    return best + (len(history) < KEPT)


def _difference(moments: Moments, one: State, other: State) -> float:
    """Return the distance of two states, relative to the errors and to the weights they have.

    Where the examples are learned to the last digit F2 is what rounding leaves, and so are its
    changes: these would be errors as large as F2 itself, however short the step.
    """
    line, change = one.line - other.line, one.Sigma - other.Sigma
    root = np.sqrt(moments.h)
    scaled = root**2 * change if moments.diagonal else root[:, None] * change * root
    outside = moments.examples.n - moments.h.size
    length = float(one.m @ one.m + moments.variances(one.Sigma).sum()) + outside * one.null
    F2 = max(moments.F2(one.m, one.Sigma), 0.0)
    targets = moments.examples.targets
    size = float(targets @ targets / targets.size + moments.h @ one.m**2)
    in_F2 = float(np.linalg.norm(scaled) + 2 * np.sqrt(F2) * np.linalg.norm(root * line[:-1]))
    in_Q = float(np.linalg.norm(change) + 2 * np.sqrt(length) * np.linalg.norm(line[:-1]))
    in_Q += outside * abs(float(line[-1]))
    error = max(max(in_F2 - ROUNDING**2 * size, 0.0) / (F2 or 1.0), in_Q / (length or 1.0))
    return error if np.isfinite(error) else np.inf
