"""Rates that change with time in `advise`: the best of each kind for all passes, side by side."""

from __future__ import annotations

import math

import xarray as xr

from manypass import families, notebooks
from manypass.data.measuring import Measure
from manypass.data.search import DECAYS, LARGE, LIMITS, RATES, TOLERANCE, Choice, Search
from manypass.data.stepping import follow

EVALUATIONS = 36  # of each kind, after a coarse grid
FIRST = "constant"
ALIKE = 1e-3  # what the search does not tell apart


def compared(search: Search, best: Choice, progress: bool = False) -> dict[str, Choice]:
    """Return the best rate of each kind, and the best decay, from that of a constant rate on."""
    passes = search.stops[-1]
    step = search.batch / search.data.n
    until = search.steps(passes) * step
    kinds = families.FAMILIES | {"invscaling": families.invscaling(step)}
    rates = RATES[0] * search.limit, 1.5 * search.limit
    low, high = (min(max(d * search.scale, LIMITS[0]), LIMITS[1]) for d in DECAYS)
    also = {"decay": (low, high, min(max(best.decay, low), high))} if best.decay else {}

    def error(rate: object, decay: float = best.decay) -> float:
        choice = Choice(rate, decay, passes, passes, math.nan)
        return search.reported(expected(search, choice, TOLERANCE, search.examples.rank > LARGE))

    found = {}
    told = {"desc": "schedules", "unit": "kind", "disable": not progress, "leave": False}
    for name, family in notebooks.bar(iterable=kinds.items(), **told):
        least, rate, more = families.least(error, family, rates, until, EVALUATIONS, also)
        found[name] = Choice(rate, more.get("decay", best.decay), passes, passes, least)
    return found


def expected(
    search: Search, choice: Choice, tolerance: float, diagonal: bool = False
) -> dict[str, float]:
    """Return what a schedule gives after its passes."""
    problem = search.problem.replace(rate=choice.rate, decay=choice.decay)
    moments = search.moments(problem, diagonal=diagonal)
    ((_, state),) = follow(moments, [search.steps(choice.passes)], tolerance)
    measure = Measure(moments, search.data.task)
    return measure(state.m, state.Sigma, state.null) if state else measure(None, None, 0.0)


def comparison(found: xr.Dataset, what: str) -> list[str]:
    """Say whether a rate that falls beats averaging of the weights."""
    names = [str(n) for n in found.advice.values if found.schedule.sel(advice=n).item()]
    constant, averaged = (float(found[what].sel(advice=n)) for n in (FIRST, "all"))
    errors = {n: float(found[what].sel(advice=n)) for n in names}
    winner = min(errors, key=lambda n: errors[n])
    inverse = errors["inverse"]
    more = errors[winner] / averaged - 1
    return [
        f"a constant rate gives {what} = {constant:.5g}, with its weights averaged at best "
        f"{averaged:.5g}; 1/t gives {inverse:.5g}: {verdict(inverse, averaged)}",
        f"the best schedule is {winner}, {errors[winner]:.5g}, {more:+.2%} against averaging",
    ]


def verdict(inverse: float, averaged: float) -> str:
    """Say which of two errors is the smaller one, if the search can tell."""
    if abs(inverse - averaged) <= ALIKE * averaged:
        return f"it is as good as averaging, to {ALIKE:.1%}"
    return "it beats averaging" if inverse < averaged else "it does not beat averaging"
