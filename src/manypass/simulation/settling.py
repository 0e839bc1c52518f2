"""Whether an ensemble has settled: its networks halfway through `settle`, and at its end."""

from __future__ import annotations

import math
import warnings

import numpy as np
from scipy.special import stdtrit

from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Average, Measured
from manypass.problem import Problem
from manypass.simulation.batch import steepest

WATCHED = ("Q", "R", "F2")
LEAST = 0.005  # moves of half a per cent of the sum, 1 % of either, are let pass
CHANCE = 5e-4  # that settled networks seem to move
LOOKS = 16  # at an epoch, if it has no batches
ALONE = 0.5  # one network has no error bar: only a change by a factor of three is told


def epoch(problem: Problem, p: int, n: int) -> float:
    """How long a pass takes, if the steady state repeats with it, else 0."""
    if problem.sequence == "replacement":
        return 0.0
    return problem.data.alpha if problem.batch_share else p / n


def whole(time: float, epoch: float) -> float:
    """Return the end of the epoch in which a time lies, or the time if there are none."""
    return math.ceil(time / epoch - 1e-9) * epoch if epoch else time


def waits(settle: float, epoch: float) -> tuple[float, float]:
    """When to look whether all has settled: halfway, and at the end; after different epochs.

    Examples
    --------
    >>> waits(20.0, 0.0), waits(20.0, 30.0), waits(20.0, 6.0)
    ((10.0, 20.0), (30.0, 60.0), (12.0, 24.0))
    """
    end = max(whole(settle, epoch), 2 * epoch)
    return whole(end / 2, epoch), end


def looks(problem: Problem, time: float, epoch: float, p: int) -> list[float]:
    """When to look at the next epoch: after each batch, or evenly; and once more at its end."""
    start, share = whole(time, epoch), problem.batch_share
    if problem.batch_size > 1 and not p % problem.batch_size:
        share = problem.batch_size / p
    parts = np.arange(1, round(1 / share) + 1) * share if share else None
    if parts is None or parts.size > 2 * LOOKS:
        parts = (np.arange(LOOKS) + 0.5) / LOOKS
    return [*(start + epoch * parts).tolist(), start + epoch]


def over_epoch(seen: list[Measured]) -> Measured:
    """Mean over all looks but the last, which is the end of the epoch: `*_end`."""
    end = seen[-1]
    mean = {name: np.mean([values[name] for values in seen[:-1]], axis=0) for name in end}
    lost = {"diverged": end["diverged"]}
    return mean | {f"{name}_end": end[name] for name in end if name not in lost} | lost


def moves(before: Measured, now: Measured) -> Array:
    """(b − a)/(a + b) of each network's Q and F2 at two times, ΔR/(√Q_a + √Q_b) (… × names).

    Bounded, so that the few networks which lead a divergence do not hide the others; a network
    that is lost has no move, since its infinite values tell.
    """
    names = [name for name in WATCHED if name in now]
    a, b = (np.stack([values[name] for name in names], -1) for values in (before, now))
    sizes = [{**values, "R": np.sqrt(values["Q"])} for values in (before, now)]
    with np.errstate(invalid="ignore"):
        total = np.stack([sizes[0][name] + sizes[1][name] for name in names], -1)
        share = np.divide(b - a, total, out=np.zeros(a.shape), where=total > 0)
    return np.where(np.isfinite(share), share, 0.0)


def require(problem: Problem, n: int, settle: float) -> None:
    """Refuse a `settle` within which no step is taken: learning has not begun by then.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=0.5, decay=0.1)
    >>> require(problem, 500, 0.0)
    Traceback (most recent call last):
    ValueError: `settle` = 0 waits for no step, 0.002 each: that is where learning begins, ...
    """
    step = 0.0 if problem.mode == "batch" else problem.batch_size / n
    step = problem.batch_share * problem.data.alpha if problem.batch_share else step
    waits = settle >= step * (1 - 1e-9) or problem.sequence != "replacement"  # for a whole epoch
    if settle and waits:
        return
    each = f", {step:g} each" if step else ""
    raise ValueError(
        f"`settle` = {settle:g} waits for no step{each}: that is where learning begins, not a "
        f"steady state: take a longer `settle`, of several relaxation times"
    )


def brief(problem: Problem, settle: float) -> bool:
    """Whether not even one relaxation time 1/[v(λ + |F′|)] has passed, from J = 0.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=0.5, decay=0.1)
    >>> brief(problem, 1.0), brief(problem, 2.0)
    (True, False)
    """
    if problem.layered or isinstance(problem.data, Dataset) or problem.start is not None:
        return False
    try:
        slope = steepest(problem.rule)
    except ValueError:  # not known of forces that are not finite everywhere
        return False
    return problem.rate * (problem.decay + slope) * settle < 1


def tell(
    moved: Average, names: tuple[str, ...], problem: Problem, settle: float, epoch: float = 0.0
) -> None:
    """Warn if the mean over networks of any move is neither small nor chance.

    Where chance is large, of few networks, a move within the first relaxation time is none.
    """
    found = moved.results()
    m, error = found["moved"], found["moved_se"]
    sure = ALONE if moved.count == 1 else stdtrit(moved.count - 1, 1 - CHANCE / 2) * error
    sure = 0.0 if brief(problem, settle) else sure
    told = np.where(np.abs(m) > np.maximum(sure, LEAST), m, 0.0)
    worst = int(np.abs(told).argmax())
    if told[worst]:
        way = "grows" if m[worst] > 0 else "falls"
        half, end = waits(settle, epoch)
        warnings.warn(
            f"`settle` = {settle:g} is too short for a steady state, or there is none: "
            f"{names[worst]} still {way} from t = {half:g} to {end:g}, by "
            f"{abs(2 * m[worst]):.0%} of its mean: take a longer `settle` or another `rate`",
            stacklevel=4,
        )
