"""Many steps of the recursion at once: Σ' = b Σ + source(Σ), the source a slow function of time.

The diagonal part b is exact over any number n of steps. The source is interpolated in time by a
polynomial through its last values (Adams' idea), for which the sum over the n steps is exact too
(`sums`); its degree is the one that foresaw the last value best. A predictor and a corrector give
the error, which chooses n. One step, n = 1, has no error: where everything moves fast this is the
exact recursion, step by step; where everything has settled n grows without bound, however stiff
the spectrum. Directions in which the weights overshoot are followed step by step until they are
still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from manypass.checks import Array
from manypass.data import sums
from manypass.data.moments import Moments, finite

KEPT = 3  # past values of the source
DOUBT = 4  # how much better a higher degree has to be


class Polynomial:
    """The source as a polynomial in u = j/n, j steps from now, through values at nodes."""

    def __init__(self, nodes: list[float], values: list[Array], n: float) -> None:
        self.n = n
        inverse = np.linalg.inv(np.vander(np.array(nodes) / n, increasing=True))
        self.coefficients = [
            sum(w * value for w, value in zip(row, values, strict=True)) for row in inverse
        ]

    @property
    def end(self) -> Array:
        """Its value n steps from now."""
        return sum(self.coefficients)  # type: ignore[no-any-return]

    def advance(self, Sigma: Array, c: Array, j: float) -> Array:
        """Σ after j steps."""
        whole, *M = sums.power_sums(c, j, len(self.coefficients) - 1)
        out = whole * Sigma
        for d, coefficient in enumerate(self.coefficients):
            out += coefficient * (M[d] / self.n**d)
        return out


def follow(
    moments: Moments, steps: Iterable[int], tolerance: float
) -> Iterator[tuple[int, Array | None]]:
    """Yield (k, Σ) at the given rising step numbers; None once learning has diverged."""
    wanted = list(steps)
    k, Sigma, n, degree = 0, moments.zero, 1, 0
    history: list[tuple[int, Array]] = []
    done, restless = 0, moments.restless(tolerance / 10)
    with np.errstate(over="ignore", invalid="ignore"):
        while done < len(wanted) and wanted[done] == 0:
            yield 0, Sigma
            done += 1
        if done < len(wanted):
            history = [(0, moments.source(0, Sigma))]
        while done < len(wanted):
            n = 1 if k < restless else max(1, min(n, wanted[-1] - k))
            nodes = [float(at - k) for at, _ in history[-degree - 1 :]]
            values = [value for _, value in history[-degree - 1 :]]
            polynomial = Polynomial(nodes, values, n)
            after = polynomial.advance(Sigma, moments.c, n)
            error = 0.0
            if n > 1:
                guess = moments.source(k + n, after)
                polynomial = Polynomial([*nodes, float(n)], [*values, guess], n)
                better = polynomial.advance(Sigma, moments.c, n)
                error = _difference(moments, k + n, better, after)
                after = better
            if not error <= tolerance and n > 1 and np.isfinite(Sigma).all():
                n = max(1, int(n * max(0.2, 0.8 * (tolerance / error) ** 0.25)))
                continue
            if not finite(moments.F2(k + n, after)):
                break
            while done < len(wanted) and wanted[done] <= k + n:
                j = wanted[done] - k
                yield wanted[done], after if j == n else polynomial.advance(Sigma, moments.c, j)
                done += 1
            k, Sigma = k + n, after
            if done < len(wanted):
                source = moments.source(k, Sigma)
                degree = _best_degree(history, k, n, source)
                history = [*history, (k, source)][-KEPT:]
            growth = 3.0 if error == 0 else min(3.0, 0.8 * (tolerance / error) ** 0.25)
            n = max(1, n + 1 if error == 0 and n < 4 else int(n * growth))
    for k in wanted[done:]:
        yield k, None


def _best_degree(history: list[tuple[int, Array]], k: int, n: int, source: Array) -> int:
    """Degree of the extrapolation that would have foreseen this source at step k best.

    In motion that is the highest. Where all has settled it is 0, and must be: extrapolating
    what is left of errors by a polynomial makes them grow.
    """
    errors = []
    for degree in range(len(history)):
        nodes = [float(at - k + n) for at, _ in history[-degree - 1 :]]
        values = [value for _, value in history[-degree - 1 :]]
        errors.append(np.linalg.norm(Polynomial(nodes, values, n).end - source))
    best = min(range(len(errors)), key=lambda degree: errors[degree] * DOUBT**degree)
    return best + (len(history) < KEPT)


def _difference(moments: Moments, k: int, one: Array, other: Array) -> float:
    """Return the distance of two Σ, relative to the errors and to the weights they go with."""
    change = one - other
    root = np.sqrt(moments.h)
    scaled = root**2 * change if moments.diagonal else root[:, None] * change * root
    m = moments.mean(k)
    length = float(m @ m + moments.variances(one).sum())
    in_F2 = float(np.linalg.norm(scaled)) / (moments.F2(k, one) or 1.0)
    error = max(in_F2, float(np.linalg.norm(change)) / (length or 1.0))
    return error if np.isfinite(error) else np.inf
