"""Simulated curves of many problems at three sizes, made on a card by `make.py` and kept."""

import json
from pathlib import Path

import numpy as np

from . import problems

QUANTITIES = ("R", "Q", "F2", "Et", "C")


class Table:
    """One table: its problem, and limits for N → ∞ with their standard errors."""

    def __init__(self, name):
        path = Path(__file__).parent / f"{name}.json"
        self.name, self.content = name, json.loads(path.read_text(encoding="utf-8"))
        self.entry = problems.EVERY[name]
        self.problem, self.times = problems.problem(self.entry), self.entry["times"]

    def limit(self, quantity):
        """Values for N → ∞ and their standard errors; of C the part below its diagonal."""
        return tuple(self.flat(quantity, self.content[quantity][k]) for k in ("limit", "limit_se"))

    def at_size(self, quantity, n):
        """Means and standard errors at one of the sizes."""
        index = self.content["sizes"].index(n)
        return tuple(self.flat(quantity, self.content[quantity][k][index]) for k in ("mean", "se"))

    def flat(self, quantity, values):
        """One number per time, or per pair of different times."""
        values = np.asarray(values)
        return values[np.tril_indices(len(self.times), -1)] if quantity == "C" else values


def tables(rules=None, sequence="replacement", moving=False, inputs=False):
    """Names of tables of some rules and one order, that move or not, with `inputs` or not."""
    return [
        name
        for name, entry in problems.CASES.items()
        if (rules is None or entry["rule"] in rules)
        and entry.get("sequence", "replacement") == sequence
        and problems.moves(entry) == moving
        and ("inputs" in entry) == inputs
    ]
