"""A sweep from a TOML file: a problem, a method, and the fields that vary."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from manypass import checks
from manypass.files import toml
from manypass.flags import (
    MOST_TIMES,
    PLAN_KEYS,
    SETTINGS,
    make_method,
    make_problem,
    read_times,
)
from manypass.problem import PROBLEM_FIELDS, TEACHER_FIELDS
from manypass.sweeps.grid import Grid, refuse_unknown

SCALES = ("linear", "log")
LARGEST = 1e300  # of a range: an integer of a file may be none of the floats


@dataclass(frozen=True)
class Plan:
    """What a plan file asks for."""

    grid: Grid
    method: Any
    times: Any
    window: float
    two_time: bool
    slurm: dict[str, Any]


def read_plan(path: str | Path) -> Plan:
    """Read a plan: the keys of a problem file and PLAN_KEYS."""
    entries = toml(path)
    plan = {key: entries.pop(key) for key in PLAN_KEYS if key in entries}
    if not isinstance(plan.get("sweep"), dict):
        raise ValueError(f"{path} has no table [sweep] that names the fields to vary")
    _check_places(entries, plan["sweep"])
    axes = _axes(plan["sweep"])
    if not axes:
        raise ValueError(f"{path}: the table [sweep] is empty: name fields to vary, rate = [1, 2]")
    refuse_unknown(chain.from_iterable([n] if isinstance(n, str) else n for n in axes))
    slurm = plan.get("slurm", {})
    if not isinstance(slurm, dict):
        raise ValueError(
            f"{path}: 'slurm' must be a table of dask-jobqueue's settings such as [slurm] with "
            f"memory = '2GB', got {checks.shown(slurm)}; how many jobs is a flag, --slurm JOBS"
        )
    problem = make_problem(_filled(entries, axes))
    times = plan.get("times")
    return Plan(
        Grid(problem, axes),
        _method(plan.get("method", "auto")),
        read_times(times) if isinstance(times, str) else times,
        plan.get("window", 0.0),
        plan.get("two_time", False),
        slurm,
    )


def _check_places(entries: dict[str, Any], sweep: dict[str, Any]) -> None:
    """Refuse what stands in [sweep] but is the same for all points, and settings of no method."""
    for name, entry in sweep.items():
        if name == "data" and isinstance(entry, list):
            raise ValueError(
                "`data` is one for all points, a table at the top of the plan; what changes in it "
                "is swept by its own name, such as alpha = [1.0, 2.0] in [sweep]"
            )
        alone = name == "method" and not isinstance(entry, list)
        if alone or name in ("times", "two_time", "slurm", "data"):
            more = ", or is a list of methods to compare" if alone else ""
            raise ValueError(
                f"`{name}` is the same for all points: it stands at the top of the plan, "
                f"{name} = {_typed(entry)} above [sweep]{more}"
            )
    for name in entries:
        if name in ("out", "workers", "cluster"):
            raise ValueError(
                f"the plan has the key {name!r}, which is a flag of the command: manypass sweep "
                f"plan.toml --{name} ..."
            )
        owner = next((method for method, known in SETTINGS.items() if name in known), None)
        if owner and name not in PROBLEM_FIELDS:
            setting = f"{name} = {_typed(entries[name])}"
            raise ValueError(
                f'`{name}` is a setting of a method: method = {{ name = "{owner}", {setting} }}'
            )


def _typed(value: Any) -> str:
    """Write a value as TOML does, if it is a short one."""
    short = isinstance(value, str | int | float | list) and len(str(value)) < 60
    return json.dumps(value, default=str) if short else "..."


def _filled(entries: dict[str, Any], axes: dict[Any, list[Any]]) -> dict[str, Any]:
    """Let the first value of a swept field stand where the problem itself leaves it out."""
    given, filled = entries.get("data", {}), dict(entries)
    table = isinstance(given, dict)  # else nothing is filled in: making the problem says so
    data = dict(given) if table else {}
    for names, steps in axes.items():
        first = [(names, steps[0])] if isinstance(names, str) else zip(names, steps[0], strict=True)
        for name, value in first:
            if name in TEACHER_FIELDS:
                data.setdefault(name, value)
            elif name in ("rate", "rule"):
                filled.setdefault(name, value)
    return filled | {"data": data if table else given}


def _axes(sweep: dict[str, Any]) -> dict[Any, list[Any]]:
    """Return the axes: every key is one; each table in `together` is one of several fields."""
    axes: dict[Any, list[Any]] = {}
    together = sweep.pop("together", [])
    for name, entry in sweep.items():
        axes[name] = _values(name, entry)
    if not isinstance(together, list) or not all(isinstance(t, dict) and t for t in together):
        raise ValueError(f"`together` must be tables of fields, got {checks.shown(together)}")
    for table in together:
        columns = {name: _values(name, entry) for name, entry in table.items()}
        sizes = {name: len(values) for name, values in columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"fields of a table `together` must be as long as each other: {sizes}")
        axes[tuple(columns)] = list(zip(*columns.values(), strict=True))
    return axes


def _values(name: str, entry: Any) -> list[Any]:
    """Read a list, or a range { from, to, count, scale }."""
    if isinstance(entry, list):
        if not entry:
            raise ValueError(f"`{name}` must have at least one value, got []")
        return [_method(value) for value in entry] if name == "method" else entry
    if name in ("rule", "method"):
        raise ValueError(f"`{name}` must be a list, got {checks.shown(entry)}")
    if not isinstance(entry, dict) or not {"from", "to", "count"} <= set(entry):
        raise ValueError(
            f"`{name}` must be a list or {{ from = ..., to = ..., count = ... }}, "
            f"got {checks.shown(entry)}"
        )
    scale = entry.get("scale", "linear")
    unknown = set(entry) - {"from", "to", "count", "scale"}
    if unknown or scale not in SCALES:
        raise ValueError(f"`{name}` has from, to, count and scale = 'linear' or 'log': {entry!r}")
    first, last, count = entry["from"], entry["to"], entry["count"]
    numbers = all(checks.is_real(x) and abs(x) <= LARGEST for x in (first, last))
    whole = isinstance(count, int) and not isinstance(count, bool)
    if not numbers or not whole or not 1 <= count <= MOST_TIMES:
        raise ValueError(
            f"`{name}` needs finite numbers from and to, and a whole count up to {MOST_TIMES}: "
            f"{checks.shown(entry, 200)}"
        )
    if count == 1 and first != last:
        raise ValueError(
            f"`{name}` asks for one value alone, and names two: count is how many there are, both "
            f"ends among them: {checks.shown(entry, 200)}"
        )
    if scale == "log" and min(first, last) <= 0:
        raise ValueError(f"`{name}` needs from and to above 0 on a log scale: {entry!r}")
    space: Any = np.geomspace if scale == "log" else np.linspace
    values: list[Any] = space(first, last, count).tolist()
    return values


def _method(entry: Any) -> Any:
    """Make a method from its name, or from a table with its name and settings."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "name" not in table:
        raise ValueError(
            f"`method` must be a name or a table with `name`, got {checks.shown(entry)}"
        )
    return make_method(table["name"], {k: v for k, v in table.items() if k != "name"})
