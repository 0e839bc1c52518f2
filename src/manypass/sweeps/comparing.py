"""`best(problem, over="schedule")`: how a rate should change until a given time, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, families, notebooks, results, verbs
from manypass.data.dataset import Dataset
from manypass.layers.errors import generalization
from manypass.layers.net import Net
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian
from manypass.schedules import Cosine, Schedule, plain
from manypass.sweeps.searching import Notes, measured

EVALUATIONS = 60  # of each kind, after a coarse grid
NODES = 65  # of times at which weights are averaged
AVERAGED = ("Eg", "Q")  # what is known of averaged weights


def compare(problem: Problem, objective: str, at: Any, method: Any, progress: bool) -> xr.Dataset:
    """Return the least objective at a time with the best rate of each kind."""
    if at == "steady":
        raise ValueError("`at` must be a time for `over` = 'schedule': by when should it be small?")
    until = checks.number("at", at, 1e-9, results.LATEST)
    if problem.mode == "batch" and not (problem.temperature or isinstance(problem.decay, Schedule)):
        raise ValueError(
            "`over` = 'schedule' says nothing in `mode` = 'batch', where the rate only sets the "
            "unit of time, and all schedules of equal ∫v dt end alike: take `over` = 'time'"
        )
    asked = verbs.resolve(problem.replace(rate=Cosine(1.0, 0.0, until)), method, "solve")
    rough = getattr(asked, "rougher", lambda: asked)()
    limit = 2.0
    if isinstance(problem.rule, Adaline) and problem.mode == "online":
        limit = verbs.critical_rate(problem.replace(rate=1.0))
    bounds = (1e-3 * limit, 1.5 * limit)
    bar = notebooks.bar(desc="best", unit="value", delay=3.0, disable=not progress)

    notes = Notes()

    def value(rate: Any, method: Any = rough) -> float:
        bar.update()
        with notes.taken():
            found = verbs.solve(problem.replace(rate=rate), [until], method)
        return float(measured(found, objective).values[-1])

    def averaged(rate: Any) -> float:
        bar.update()
        return _windows(problem.replace(rate=rate), until, objective, asked)[0]

    try:
        rows: dict[str, tuple[float, Any, float]] = {}
        for name, family in families.FAMILIES.items():
            least, rate, _ = families.least(value, family, bounds, until, EVALUATIONS)
            rows[name] = (least if rough is asked else value(rate, asked)), rate, 0.0
        known = problem.layered or isinstance(problem.rule, Adaline | Hebbian)  # C, by Exact()
        closed = rough is asked and known and not isinstance(problem.data, Dataset)
        if closed and objective in AVERAGED:
            family = families.FAMILIES["constant"]
            least, rate, _ = families.least(averaged, family, bounds, until, EVALUATIONS)
            window = _windows(problem.replace(rate=rate), until, objective, asked)[1]
            rows = {"constant": rows.pop("constant"), "averaged": (least, rate, window), **rows}
    except LookupError as error:
        raise ValueError(str(error.args[0])) from None
    finally:
        bar.close()
    notes.tell()
    errors, rates, windows = zip(*rows.values(), strict=True)
    out = xr.Dataset(
        {
            f"best_{objective}": ("schedule", list(errors)),
            "best_rate": ("schedule", [_text(rate) for rate in rates]),
            "window": ("schedule", list(windows)),
        },
        {"schedule": list(rows)},
    )
    out.attrs = results.attributes(problem) | {"at": until}
    return out


def _windows(problem: Problem, until: float, objective: str, method: Any) -> tuple[float, float]:
    """Least objective of weights averaged over the last part of the time, and how long that is.

    R̄ = ⟨R(s)⟩ and Q̄ = ⟨C(s, s')⟩ over the window.
    """
    t = np.linspace(0, until, NODES)
    found = verbs.solve(problem, t, method, two_time=True)
    best = float(found[objective].values[-1]), 0.0
    for i in range(NODES - 1):
        weights = np.ones(NODES - i)
        weights[[0, -1]] = 0.5
        weights /= weights.sum()
        Q = np.einsum("i,j,ij...", weights, weights, found.C.values[i:, i:])
        R = np.tensordot(weights, found.R.values[i:], 1)
        if problem.layered:
            a = np.tensordot(weights, found.a.values[i:], 1)
            error: Any = generalization(Net.of(problem), R, Q, a)
        else:
            error = Q if objective == "Q" else generalization_error(problem.teacher.task, R, Q)
        best = min(best, (float(error), until - float(t[i])))
    return best


def _text(rate: float | Schedule) -> str:
    value = plain(rate)
    return value if isinstance(value, str) else f"{value!r}"
