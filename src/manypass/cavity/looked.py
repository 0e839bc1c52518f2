"""Averages over a population at one time."""

from __future__ import annotations

from dataclasses import dataclass

from manypass.cavity.blocks import trace
from manypass.checks import Array


@dataclass(slots=True)
class Looked:
    """What drives: D = ⟨F yᵀ⟩ less mR, ⟨F Fᵀ⟩, ⟨(ỹ − σ)g⟩; and what is measured."""

    D: Array
    FF: Array
    second: Array
    F2: float
    Et: float

    def ahead(self, before: Looked, ratio: float) -> Looked:
        """Extrapolate what drives."""
        D = self.D + ratio * (self.D - before.D)
        FF = self.FF + ratio * (self.FF - before.FF)
        second = self.second + ratio * (self.second - before.second)
        if not trace(FF) > trace(self.FF) / 2:
            FF = self.FF / 2
        return Looked(D, FF, second, self.F2, self.Et)
