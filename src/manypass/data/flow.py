"""Gradient flow over the training set: dm/dt = v(g − Hm − λm), dΣ/dt = 2T/N − 2v(H + λ)Σ.

Closed while v and λ are constant. Where they change smoothly they are taken as constant on short
pieces, at their values in the middle, and two lengths of pieces are extrapolated to none.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from manypass import card, schedules
from manypass.checks import Array
from manypass.data.measuring import Measure, stack
from manypass.data.moments import Moments
from manypass.exact.modes import learned
from manypass.problem import Problem

ACCURACY = 1e-7
PIECES = (4, 2048)  # at first, and at most, between two times


class Flow(NamedTuple):
    """Modes and last what lies outside the span of the examples: of shape times × modes."""

    means: Array
    variances: Array
    exponents: Array  # ∫v(h + λ)dt


def curves(problem: Problem, moments: Moments, t: Array, two_time: bool) -> dict[str, Any]:
    """Return what is measured at times t, and C and G."""
    measure, n = Measure(moments, problem.data.task), moments.examples.n
    flow = _converged(problem, moments, t)
    rows = []
    for m, variances in zip(flow.means[:, :-1], flow.variances, strict=True):
        Sigma = variances[:-1] if moments.diagonal else np.diag(variances[:-1])
        rows.append(measure(m, Sigma, float(variances[-1])))
    out = stack(rows)
    if two_time:
        count = np.ones(moments.h.size + 1)
        count[-1] = measure.outside
        lag = np.abs(flow.exponents[:, None] - flow.exponents)
        early = np.minimum(np.arange(t.size)[:, None], np.arange(t.size))
        decays = count * np.exp(-lag)
        noise = np.einsum("tsi,tsi->ts", decays, flow.variances[early])
        out["C"] = flow.means @ flow.means.T + noise
        out["G"] = np.tril(decays.sum(axis=-1) / n)
    return out


def _converged(problem: Problem, moments: Moments, t: Array) -> Flow:
    pieces, most = PIECES
    if schedules.flat(problem.rate, problem.decay):
        return _flow(problem, moments, t, 1)
    coarse = _flow(problem, moments, t, pieces)
    while True:
        pieces *= 2
        fine = _flow(problem, moments, t, pieces)
        error = max(
            float(np.abs(b - a).max() / max(np.abs(b).max(), 1e-300))
            for a, b in zip(coarse, fine, strict=True)
        )
        if error < np.sqrt(ACCURACY) * 0.1 or pieces >= most:  # of fourth order then
            return Flow(*((4 * b - a) / 3 for a, b in zip(coarse, fine, strict=True)))
        coarse = fine


def _flow(problem: Problem, moments: Moments, t: Array, pieces: int) -> Flow:
    h, g, start = (
        np.append(card.host(a), 0.0) for a in (moments.h, moments.examples.g, moments.start)
    )
    heat = 2 * problem.temperature / moments.examples.n
    breaks = [b for b in schedules.breaks(problem.rate, problem.decay) if b < t[-1]]
    stops = np.unique([0.0, *breaks, *t])
    m, variance, total = start, np.zeros_like(h), np.zeros_like(h)
    seen = {0.0: (m, variance, total)}
    for begin, end in pairwise(stops.tolist()):
        width = (end - begin) / pieces
        middles = begin + width * (np.arange(pieces) + 0.5)
        for v, decay in zip(problem.v(middles), problem.decays(middles), strict=True):
            x, span = v * (decay + h), np.array([width])
            a = np.exp(-x * width)
            m = a * m + v * g * learned(x, span)[:, 0]
            variance = a**2 * variance + heat * learned(2 * x, span)[:, 0]
            total = total + x * width
        seen[end] = m, variance, total
    return Flow(
        *(np.array(part) for part in zip(*(seen[time] for time in t.tolist()), strict=True))
    )
