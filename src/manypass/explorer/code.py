"""The Python and the TOML that give the same curves as the page."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from manypass import schedules
from manypass.explorer.view import SAMPLED, SYMBOLS, View
from manypass.inputs import Inputs
from manypass.problem import PROBLEM_FIELDS, Problem
from manypass.start import Start


def python(view: View, *, simulated: bool = False) -> str:
    """Return a script that computes what the page shows."""
    problem, teacher, theory = view.problem, view.problem.data, view.theory
    default = Problem(teacher, problem.rule, rate=1.0, start=problem.start)
    given = {key: getattr(problem, key) for key in PROBLEM_FIELDS if key not in ("data", "rule")}
    others = [
        f"{key}={_value(value)}"
        for key, value in given.items()
        if (key in ("rate", "start") and value is not None) or value != getattr(default, key)
    ]
    known = theory.refusal(problem) is None
    lines = [
        "import numpy as np",
        "import manypass as mp",
        "",
        f"teacher = mp.{_call(teacher)}",
        f"problem = mp.Problem(teacher, mp.{problem.rule!r}, {', '.join(others)})",
    ]
    drawn = []
    if known:
        method = "" if view.linear else f", mp.{_call(theory)}"
        lines.append(f"theory = mp.solve(problem, {_squares(view, view.count)}{method})")
        drawn.append("theory")
    if view.sampler:
        times, method = _squares(view, SAMPLED), f"mp.{_call(view.sampler)}"
        lines.append(f"sampled = mp.solve(problem, {times}, {method})")
        drawn.append('sampled[["Et", "Et_se"]]')
    if simulated:
        times, method = _linspace(view, SYMBOLS), f"mp.{_call(view.simulation)}"
        lines.append(f"data = mp.solve(problem, {times}[1:], {method})")
        drawn.append("data")
    if drawn:
        lines.append(f'mp.plot.overview({", ".join(drawn)}).savefig("curves.png")')
    return "\n".join(lines) + "\n"


def toml(problem: Problem) -> str:
    """Return a file for `manypass solve problem.toml`."""

    def value(entry: Any) -> str:
        if isinstance(entry, dict):
            return "{ " + ", ".join(f"{key} = {value(item)}" for key, item in entry.items()) + " }"
        return f'"{entry}"' if isinstance(entry, str) else repr(entry)

    entries = {key: entry for key, entry in problem.to_dict().items() if entry is not None}
    return "".join(f"{key} = {value(entry)}\n" for key, entry in entries.items())


def _squares(view: View, count: int) -> str:
    return f"np.linspace(0, 1, {count})**2 * {view.end!r}"


def _linspace(view: View, count: int) -> str:
    return f"np.linspace(0, {view.end!r}, {count})"


def _value(value: Any) -> str:
    """Return a number, a schedule by its text, or a start."""
    return f"mp.{_call(value)}" if isinstance(value, Start) else repr(schedules.plain(value))


def _text(value: Any) -> str:
    """Return what makes a value: a law of inputs by its text or table."""
    if value == math.inf:
        return "np.inf"
    return repr(value.plain() if isinstance(value, Inputs) else value)


def _call(thing: Any) -> str:
    """Return the constructor's call, without what is default."""
    given = [
        f"{field.name}={_text(getattr(thing, field.name))}"
        for field in dataclasses.fields(thing)
        if field.default is dataclasses.MISSING or getattr(thing, field.name) != field.default
    ]
    return f"{type(thing).__name__}({', '.join(given)})"
