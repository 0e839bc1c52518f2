"""The pieces that a figure is made of: each computed once and kept, so that a run can go on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manypass import __version__, results
from manypass.checks import Array
from manypass.problem import Problem
from manypass.verbs import solve, steady_state

Parts = dict[str, xr.Dataset]


@dataclass(frozen=True)
class Scale:
    """How much is computed: the paper's own numbers, or fewer of everything."""

    seed: int = 0
    quick: bool = False

    def __call__(self, count: int, least: int = 6) -> int:
        """Return a number of networks or samples: as in the paper, or a twentieth of it."""
        return max(least, count // 20) if self.quick else count


@dataclass(frozen=True)
class Part:
    """One call that returns a result, and how long it is expected to take."""

    name: str
    call: Callable[..., xr.Dataset]
    problem: Problem
    arguments: dict[str, Any] = field(default_factory=dict)
    seconds: float = 1.0

    @property
    def theory(self) -> bool:
        """Whether this is a line, not symbols."""
        return "simulation" not in self.name

    def file(self) -> str:
        """Name of the file that keeps it: another question has another name."""
        asked = [__version__, self.call.__name__, self.problem.to_dict(), self.arguments]
        text = json.dumps(asked, sort_keys=True, default=_plain)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.nc"

    def get(self, folder: Path) -> tuple[xr.Dataset, float]:
        """Open the result, or compute and keep it; and how many seconds that took."""
        path = folder / self.file()
        if path.exists():
            try:
                return results.load(path), 0.0
            except ValueError as error:
                print(f"computing it again: {error}")
        start = time.monotonic()
        result = self.call(self.problem, **self.arguments)
        results.save(result, path)
        return results.load(path), time.monotonic() - start


def steady_curve(
    problem: Problem, rates: Sequence[float] | Array, method: Any, window: float = 0.0
) -> xr.Dataset:
    """Steady states against the learning rate."""
    points = [steady_state(problem.replace(rate=v), method, window=window) for v in rates]
    return along_rate(problem, rates, points)


def late_curve(
    problem: Problem, rates: Sequence[float] | Array, times: Any, method: Any
) -> xr.Dataset:
    """Values at a late time, which may differ from rate to rate, against the learning rate."""
    late = np.broadcast_to(times, np.shape(rates))
    points = [
        solve(problem.replace(rate=v), [t], method).isel(t=0, drop=True)
        for v, t in zip(rates, late, strict=True)
    ]
    return along_rate(problem, rates, points).assign(t=("rate", late))


def along_rate(
    problem: Problem, rates: Sequence[float] | Array, points: list[xr.Dataset]
) -> xr.Dataset:
    """Join points; the attributes are those of the last, the problem is the given one."""
    rate = xr.Variable("rate", np.asarray(rates), {"long_name": "learning rate v"})
    joined = xr.concat([p.drop_vars("window", errors="ignore") for p in points], dim="rate")
    joined.attrs = {**points[-1].attrs, **results.attributes(problem)}
    return joined.assign_coords(rate=rate)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return results.method_entry(value)
