"""The mean-force approximation of the steady state, for comparison only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from manypass import orders, results
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Progress
from manypass.exact.modes import linear_modes
from manypass.exact.steady import check_steady, stationary
from manypass.exact.training_error import gaussian_activation, gaussian_errors
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.rules import Adaline

ZERO = np.zeros(1)


@dataclass(frozen=True)
class MeanForce:
    """C₀ = C_batch + v F2_batch / (2(1+λ) − v): sequence noise as if every mode had h = 1.

    The approximation of Heimel and Coolen to the steady state of Adaline learning, which the
    paper compares with in its Fig. 3. It diverges at v = 2(1+λ) instead of at v_c.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=0.5), mp.Adaline(), rate=2.4, decay=0.8)
    >>> [round(float(mp.steady_state(problem, m).Eg), 4) for m in (mp.MeanForce(), mp.Exact())]
    [0.3779, 0.3982]
    """

    def refusal(self, problem: Problem) -> str | None:
        """Why this method cannot serve the problem, or None if it can."""
        if isinstance(problem.data, Dataset):
            return f"MeanForce() serves a Teacher, not {problem.data!r}: use method Exact()"
        if isinstance(problem.rule, Adaline) and problem.mode == "online":
            return orders.refusal(problem, "MeanForce.steady_state")
        use = orders.instead(problem, "", "steady_state") or orders.instead(problem, "")
        return (
            f"MeanForce() serves on-line Adaline only, not `rule` {problem.rule!r} in "
            f"{problem.mode} mode: use method {use}"
        )

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """Refuse: the approximation has no transient."""
        raise ValueError(
            "MeanForce() has a steady state only: use method Exact() for curves in time"
        )

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """R, Q, F2, Eg, Et for t → ∞."""
        if window:
            raise ValueError(f"MeanForce() knows no `window` (got {window:g}): use method Exact()")
        limit = 2 * (1 + problem.decay)
        if problem.rate >= limit:
            raise ValueError(
                f"no steady state: `rate` = {problem.rate:g} is not below the mean-force limit "
                f"2(1 + decay) = {limit:.6g}"
            )
        batch = problem.replace(mode="batch")
        check_steady(batch)
        modes = linear_modes(batch).driven
        values = stationary(modes, feedback=0.0)
        noise = problem.rate * values["F2"] / (limit - problem.rate)
        still = gaussian_activation(batch.teacher, modes, modes.end, values["F2"] + ZERO)
        values["Q"] += noise
        values["F2"] += noise
        Eg = generalization_error(problem.data.task, values["R"], values["Q"])
        if problem.data.task == "regression":
            Et = values["F2"] / 2
        else:
            y_part, target_part, variance = still
            Et = float(gaussian_errors(problem.teacher, y_part, target_part, variance + noise)[0])
        return results.dataset(problem, self, {**values, "Eg": Eg, "Et": Et}, {"window": window})
