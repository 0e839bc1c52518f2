"""What the page asks for: a problem and how to look at it, checked and bounded."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from manypass import checks, orders
from manypass.cavity.method import DMFT
from manypass.checks import Array
from manypass.exact.method import Exact
from manypass.problem import Problem
from manypass.simulation.method import Simulation

DATA = ("alpha", "task", "noise", "inputs", "hidden")  # of a teacher
MOST_UNITS = 3  # of both layers of hidden units that a picture can tell apart
MOST_BLOCKS = 8  # eigenvalues that a request may list
LATEST = 1000.0  # last time that the page may ask for
POINTS = {"adaline": 241, "hebbian": 61, "committee": 161}  # of exact curves: all at once
FEW = 81  # points of a curve that takes long
MOVING = {"hebbian": 31}  # of exact curves while the rate changes
SAMPLED = 21  # times or rates at which the training error is sampled
SYMBOLS = 13  # times at which a simulation is measured
SAMPLES = 8192  # examples for each sampled training error
SEEN = 40_000  # examples in a distribution of activations
RTOL, LAYERED_RTOL = 0.01, 0.05  # of DMFT curves: of one layer, of two
EPOCHS = {"fixed": 20, "reshuffled": 2000}  # that exact curves follow within a few seconds
MOST_N, MOST_SAMPLES = 2000, 500
MOST_INPUTS = 2e7  # numbers in one training set: 160 MB
MEMORY = 2.0  # GB that one DMFT run may take


@dataclass(frozen=True)
class View:
    """One problem with what the page says about the picture of it.

    Parameters
    ----------
    problem : Problem
    end : float
        Last time of the curves.
    window : float
        Averaging time τ of the steady state.
    n, samples : int
        Size and number of simulated networks.
    """

    problem: Problem
    end: float = 8.0
    window: float = 5.0
    n: int = 200
    samples: int = 40

    @classmethod
    def from_dict(cls, entries: Any) -> View:
        """Check everything that came from outside; each error names what is wrong."""
        if not isinstance(entries, dict):
            raise ValueError(
                f"`view` must be a table with a `problem`, got {checks.shown(entries)}"
            )
        allowed = [field.name for field in fields(cls)]
        for key in entries:
            if key not in allowed:
                raise ValueError(f"`{key!s:.40}` is not a field of a view: {', '.join(allowed)}")
        if "problem" not in entries:
            raise ValueError("`problem` is missing")
        view = cls(**entries | {"problem": _problem(entries["problem"])})
        checks.number("end", view.end, 0.01, LATEST)
        checks.number("window", view.window, 0, LATEST)
        checks.count("n", view.n, 10, MOST_N)
        checks.count("samples", view.samples, 2, MOST_SAMPLES)
        return view

    def relevant(self, kind: str) -> View:
        """Return the view with everything at rest that does not matter to a run of this kind."""
        if kind.startswith(("answer ", "data ")):  # at once: not worth a thought
            return self
        if kind == "simulation":
            return replace(self, window=0.0)
        if kind == "steady":  # goes through all rates
            return View(self.lasting.replace(rate=1.0), window=0.0)
        if kind == "sweep":
            return View(self.lasting, window=0.0)
        rest = View(self.problem, self.end, window=0.0)
        drawn = kind == "activations" and isinstance(self.source, Simulation)
        return replace(rest, n=self.n) if drawn else rest

    @property
    def linear(self) -> bool:
        """Whether the exact theory answers."""
        return Exact().refusal(self.problem) is None

    @property
    def layered(self) -> bool:
        """Whether there are hidden units."""
        return self.problem.layered

    @property
    def too_long(self) -> str:
        """Why the exact curves would not come at once, or nothing."""
        order, epochs = self.problem.sequence, self.end / self.problem.data.alpha
        if not self.linear or epochs <= EPOCHS.get(order, np.inf):
            return ""
        return (
            f"`end` = {self.end:g} is {epochs:.0f} epochs, and the page follows {EPOCHS[order]} "
            f"with `sequence` = {order!r}: choose an earlier one, or use `manypass solve`."
        )

    @property
    def lasting(self) -> Problem:
        """The problem of the steady state: any decay forgets the start, which units still need."""
        forgets = self.problem.decay and not self.layered
        return self.problem.replace(start=None) if forgets else self.problem

    @property
    def count(self) -> int:
        """Number of times of the theory's curves."""
        name, table = self.problem.rule.name, MOVING if self.problem.scheduled else {}
        if self.correlated_epochs or not self.linear:
            return FEW
        return table.get(name) or POINTS.get(name, FEW)

    @property
    def correlated_epochs(self) -> bool:
        """Whether each look at an epoch takes its time."""
        data, epochs = self.problem.teacher, self.problem.sequence != "replacement"
        return epochs and not data.isotropic and self.problem.rule.name == "adaline"

    @property
    def times(self) -> Array:
        """Where the theory's curves are computed: closest where most happens, early."""
        return np.asarray(np.linspace(0, 1, self.count) ** 2 * self.end)

    @property
    def sampled_times(self) -> Array:
        """Where a training error that needs sampling is computed."""
        return np.asarray(np.linspace(0, 1, SAMPLED) ** 2 * self.end)  # most happens early

    @property
    def symbols(self) -> Array:
        """Where a simulation is measured."""
        return np.linspace(0, self.end, SYMBOLS)[1:]

    @property
    def theory(self) -> Exact | DMFT:
        """The method of the curves."""
        return Exact() if self.linear else DMFT(rtol=self.rtol, memory=MEMORY)

    @property
    def rtol(self) -> float:
        """Accuracy of curves that take long."""
        return LAYERED_RTOL if self.layered else RTOL

    @property
    def sampler(self) -> Exact | DMFT | None:
        """The method of a training error that needs sampling, if it does and there is one."""
        problem = self.problem
        kind = (problem.rule.name, problem.mode, problem.data.task)
        if not self.linear or kind != ("adaline", "online", "classification"):
            return None
        methods = Exact(samples=SAMPLES), DMFT(rtol=self.rtol, memory=MEMORY)
        return next((method for method in methods if method.refusal(problem) is None), None)

    @property
    def source(self) -> str | DMFT | Simulation:
        """Where activations come from."""
        if self.linear and orders.refusal(self.problem, "activations") is None:
            return "exact"
        theory = DMFT(memory=MEMORY)
        return theory if theory.refusal(self.problem) is None else self.simulation

    @property
    def samples_steady_state(self) -> bool:
        """Whether the training error of the steady state is sampled."""
        return isinstance(replace(self, problem=self.lasting).sampler, Exact)

    @property
    def simulation(self) -> Simulation:
        """The networks to simulate."""
        return Simulation(n=self.n, samples=self.samples)

    def check_simulation(self) -> None:
        """Refuse networks with too large a training set; fresh examples need not be kept."""
        inputs = self.problem.data.alpha * self.n**2
        if MOST_INPUTS < inputs < np.inf:
            raise ValueError(
                f"`n` = {self.n} at `alpha` = {self.problem.data.alpha:g} makes {inputs:.3g} "
                f"inputs: the page simulates up to {MOST_INPUTS:.3g}"
            )


def _problem(entries: Any) -> Problem:
    """Build the problem of a teacher: a request may name no file, be it there or not."""
    if not isinstance(entries, dict):
        raise ValueError(f"`problem` must be a table with `data`, got {checks.shown(entries)}")
    data = entries.get("data")
    for key in data if isinstance(data, dict) else ():
        if key not in DATA:
            allowed = ", ".join(DATA)
            raise ValueError(f"`{key!s:.40}` is not a field of data on the page: it has {allowed}")
    inputs = data.get("inputs") if isinstance(data, dict) else None
    for key, values in inputs.items() if isinstance(inputs, dict) else ():
        if not isinstance(values, list) or len(values) > MOST_BLOCKS:
            raise ValueError(f"`{key!s:.40}` of `inputs` must be a list of up to {MOST_BLOCKS}")
    if isinstance(data, dict) and data.get("alpha") == "inf":  # JSON has no number for it
        entries = entries | {"data": data | {"alpha": np.inf}}
    problem = Problem.from_dict(entries)
    if problem.data.alpha == np.inf and not problem.layered:
        raise ValueError(
            "`alpha` must be finite on the page but for a committee, got inf: `manypass solve` "
            "takes it"
        )
    units = max(getattr(problem.rule, "hidden", 1), problem.teacher.hidden)
    if units > MOST_UNITS:
        raise ValueError(
            f"`hidden` must be at most {MOST_UNITS} on the page, got {units}: `manypass solve` "
            f"takes more"
        )
    return problem
