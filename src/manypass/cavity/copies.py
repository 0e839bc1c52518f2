"""Forces that are rare: examples near one are copied, and each copy stands for less.

An example stands for a share w_k of all, and means are Σ_k w_k(...)/size. How much it matters is
I_k² = ⟨F²⟩ over a Gaussian around its x, as wide as x may soon move; and some for all the others,
which matter later. With w_k I_k copies of each, of share 1/I_k (both but for a factor), the
variance Σ_k w_k² I_k² is least. An example has its past in common with its copies, but neither
normals nor learning instants to come. Without them small populations die out: once nobody has a
force, nothing moves anybody any more. Few forces are also few to average over: when they become
rare a population grows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass.cavity.moments import averaged
from manypass.compiling import FAST, njit

NEAR = 0.3  # how far x may move before it is looked at again, in units of √Q
OTHERS = 0.3  # what all examples matter, in units of ⟨I²⟩: no share is beyond 1/√OTHERS
WORTH = 2.0  # how many times less variance is worth to copy
RARE = 0.05  # ⟨I²⟩ above which enough examples have a force, and copies unsettle a population
EVERY = 4  # double steps between looks
MORE = 3  # times as many examples there are then


@njit(**FAST)
def near(x, target, variance, parameters, force):  # type: ignore[no-untyped-def]
    """⟨F²⟩ around the x of each example."""
    squares = np.empty(x.size)
    for k in range(x.size):
        squares[k] = averaged(force, parameters, x[k], target[k], variance, k)[2]
    return squares


def parts_of(size: int, count: int) -> list[slice]:
    """Of so many examples: all of them for two runs, and both halves."""
    middle = size // 2
    return [slice(None), slice(None), slice(0, middle), slice(middle, 2 * middle)][:count]


def drawn(runs: Any, parts: Any, rng: Any, more: int = 1) -> tuple[Any, Any] | None:
    """Draw who is continued as which example, and its share; None if it is not worth it.

    The same for all runs, of all or of parts of the examples: who matters in any of them. Each half
    of the population is drawn from itself, so many times as many as there are. Draws are
    systematic, in the order of ỹx.
    """
    student, share = runs[0].student, runs[0].past.share.astype(float)
    (_, target), size = student.examples, share.size
    square = np.zeros(size)
    for run, part in zip(runs, parts, strict=True):
        x, variance = run.student.x, NEAR**2 * run.Q + 1e-300
        square[part] += near(x, target[part], variance, *student.rule)
    mean = float(share @ square) / size
    if not 0 < mean < RARE:
        return None
    matters = np.sqrt(square + OTHERS * mean)
    copies = share * matters / (share @ matters / size)
    if share**2 @ square < WORTH * (share**2 / copies) @ square:
        return None
    *_, first, second = parts_of(size, 4)
    odd = np.arange(second.stop, size)
    who, new = [], []
    for part in (first, second):
        order = np.arange(size)[part][np.argsort((target * student.x)[part])]
        edges, count = np.cumsum(copies[order]), more * order.size
        at = (np.arange(count) + rng.random()) * edges[-1] / count
        who.append(order[np.searchsorted(edges[:-1], at, side="right")])
        each = share[who[-1]] / copies[who[-1]]
        new.append(each * (more * share[part].sum() / each.sum()))
    return np.concatenate([*who, odd]), np.concatenate([*new, share[odd]]).astype(np.float32)


def copy(runs: Any, size: int, rng: Any, more: int) -> int:
    """Copy those that matter, in all runs alike; returns how many examples there are then."""
    found = drawn(runs, parts_of(size, len(runs)), rng, more)
    if found is None:
        return size
    who, share = found
    for run, was, part in zip(
        runs, parts_of(size, len(runs)), parts_of(who.size, len(runs)), strict=True
    ):
        run.take(who[part] - (was.start or 0), share[part])
    return int(who.size)
