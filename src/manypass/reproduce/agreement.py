"""How well symbols and lines agree: z-scores, what finite size does to them, and a verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from scipy.special import stdtr

from manypass.checks import Array

AXES = {"t": "t", "rate": "v", "x": "ỹx", "passes": "k"}
ENOUGH = 10  # networks to judge by
SAME = 1e-9  # places that differ by less are one
SURE = 0.01  # chance of a false alarm in a panel


@dataclass(frozen=True)
class Symbol:
    """One plotted symbol and the theory that it should lie on; what there is not is NaN."""

    name: str
    at: str
    theory: float
    value: float
    error: float
    z: float
    z_infinite: float = math.nan  # after extrapolation from two sizes to N → ∞


@dataclass(frozen=True)
class Panel:
    """The symbols of one panel, and how many samples stand behind each error bar."""

    title: str
    symbols: list[Symbol]
    samples: int
    remarks: list[str] = field(default_factory=list)

    def worst(self, infinite: bool = False) -> tuple[Symbol, float]:
        """Symbol with the largest |z|, and the chance that one of so many is larger."""
        scores = np.abs([s.z_infinite if infinite else s.z for s in self.compared])
        found = int(np.argmax(scores))
        chance = 2 * stdtr(self.samples - 1, -scores[found]) * scores.size  # Student's t
        return self.compared[found], min(float(chance), 1.0)

    @property
    def compared(self) -> list[Symbol]:
        """The symbols that have a line to lie on."""
        return [s for s in self.symbols if not math.isnan(s.z)]

    @property
    def agrees(self) -> bool:
        """Whether nothing speaks against the theory for N → ∞."""
        if not self.compared or self.worst()[1] >= SURE:
            return True
        extrapolated = not any(math.isnan(s.z_infinite) for s in self.compared)
        return extrapolated and self.worst(infinite=True)[1] >= SURE

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if not self.compared:
            return "No verdict: there is no line at any of the symbols."
        worst, chance = self.worst()
        where = f"{worst.name} at {worst.at}"
        largest = f"the largest of {len(self.compared)} z-scores is {abs(worst.z):.1f} ({where})"
        if math.isnan(worst.z_infinite) and self.samples < ENOUGH:
            return f"{largest[0].upper()}{largest[1:]}; no verdict from so few networks."
        if chance >= SURE:
            return f"Agrees: {largest}."
        off = f"{(worst.value / worst.theory - 1):+.1%}" if worst.theory else "off"
        if self.agrees:
            left, _ = self.worst(infinite=True)
            return (
                f"Agrees for N → ∞. The finite size shows: {largest}, {off}; extrapolated from two "
                f"sizes as 1/N, the largest is {abs(left.z_infinite):.1f} "
                f"({left.name} at {left.at})."
            )
        return f"Disagrees: {largest}, {off}."


def compare(
    names: Sequence[str],
    theory: xr.Dataset,
    large: xr.Dataset,
    small: xr.Dataset | None = None,
    label: str = "",
) -> Iterator[Symbol]:
    """Symbols along the one dimension of `large`; `small` is the same of half the size.

    A symbol is compared with the line at its own place; where that is not known, with nothing.
    """
    dim = str(next(iter(large[names[0]].dims)))
    moved = large[dim] > 0 if dim == "t" else slice(None)  # at t = 0 nothing is to be compared
    large = large.isel({dim: moved})
    small = small if small is None else small.isel({dim: moved})
    there = theory.sortby(dim).reindex({dim: large[dim]}, method="nearest", tolerance=SAME)
    for name in names:
        line = there[name].values
        blur = there[f"{name}_se"].values if f"{name}_se" in there else np.zeros(line.size)
        value, error = large[name].values, large[f"{name}_se"].values
        z = ratio(value - line, np.hypot(error, blur))
        z_infinite = np.full(line.size, np.nan)
        if small is not None:
            limit = 2 * value - small[name].values
            spread = np.sqrt(4 * error**2 + small[f"{name}_se"].values ** 2 + blur**2)
            z_infinite = ratio(limit - line, spread)
        for i, x in enumerate(large[dim].values):
            at = f"{AXES[dim]} = {x:.4g}" + label
            yield Symbol(name, at, line[i], value[i], error[i], z[i], z_infinite[i])


def ratio(difference: Array, error: Array) -> Array:
    """Return z-scores; where nothing scatters (no error in any network), equal is equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(difference) < 1e-9, 0.0, difference / error)


def samples_of(result: xr.Dataset) -> int:
    """Return the number of networks behind the error bars of a result."""
    return int(json.loads(result.attrs["method"])["samples"])


def size_of(result: xr.Dataset) -> int:
    """Return N of the networks of a result."""
    return int(json.loads(result.attrs["method"])["n"])


def networks(result: xr.Dataset) -> str:
    """Say how many networks of what size were simulated."""
    return f"{samples_of(result)} networks with N = {size_of(result)}"
