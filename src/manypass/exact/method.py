"""`Exact`: the closed theory of linear rules as a method that `solve` can call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from manypass import card, checks, memory, orders, results, spectrum
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Progress
from manypass.exact import refusals
from manypass.exact.course import Course
from manypass.exact.modes import Modes, State, linear_modes
from manypass.exact.refusals import SIMULATED
from manypass.exact.steady import check_steady, critical_rate, ordered, stationary
from manypass.exact.training_error import closed_training_error
from manypass.exact.two_time import correlation, response
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.rules import Adaline, Hebbian

CHUNK = 2048  # times solved at once: bounds the memory of long time series


@dataclass(frozen=True)
class Exact:
    """Closed solution for N → ∞ of Adaline and Hebbian learning: no time step, no sampling.

    With fresh examples for ever, `alpha` = inf, also of every other rule (`exact.onepass`).

    Parameters
    ----------
    eigenvalues : sequence of float, optional
        Eigenvalues of a given H = (1/p) Σ ξξᵀ that replace the Marchenko–Pastur law.
    samples : int
        Examples to sample per time for the training error of on-line Adaline classification,
        the only one that needs it; 0 leaves it out. All other training errors are always there.
    accuracy : float, optional
        Sample until the standard error of Et is below this, `samples` (or 10⁸) at most; if that
        is not enough, a warning says so.
    seed : int, optional
        The same seed gives the same samples; None draws a seed, which the result tells.
    diagonal : bool
        On a `Dataset`, follow only the variances of the weights in the eigenbasis of H: an
        approximation at 1/N of the price, and labelled as one in the result.
    device : {"cpu", "cuda"}
        On a `Dataset`, on-line: "cuda" computes on an NVIDIA card, in double precision, with the
        same result (``pip install 'manypass[cuda]'``).

    Notes
    -----
    Of a `Committee` one-pass learning is closed (`alpha` = inf, erf or linear units, regression):
    the equations of Saad and Solla, integrated to 1e-9.

    Epochs (`sequence`) and batches (`batch_share`) of a `Teacher`'s examples are closed as well, to
    1e-8 of a curve's size: see `exact.reshuffled`, `exact.fixed`, `exact.steps`. Of them only the
    Et of reshuffled Adaline classification, and of batches with replacement, is sampled. Steady
    states of epochs are means over one, with `R_end`, ... at its end; a window begins with one.

    On a `Dataset` the mean and the covariance of the weights close for any finite N, and are
    followed step by step: Q, F2, Et, and with a test set F2_test and Eg, with a relative error
    below `accuracy` (1e-5 unless given), at rates and decays that may change with time, from any
    weights and in batches of any size. Error rates of classification take activations as
    Gaussian with these moments. With `sequence="reshuffled"` it is an approximation, labelled as
    one (`data.reshuffled`): mean squared errors were within 1 % of simulations on three data sets
    at 0.1, 0.3 and 0.6 of the critical rate. `Simulation` has no such error, and is what "auto"
    takes.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> mp.solve(problem, [1, 2], method=mp.Exact()).R.values.round(6)
    array([0.338436, 0.35083 ])
    """

    eigenvalues: Sequence[float] | None = None
    samples: int = 0
    accuracy: float | None = None
    seed: Any = 0
    diagonal: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        checks.plain(self)
        checks.count("samples", self.samples, 0, 10**10)
        checks.choice("device", self.device, card.DEVICES)
        checks.flag("diagonal", self.diagonal)
        object.__setattr__(self, "seed", checks.seed("seed", self.seed))
        if self.accuracy is not None:
            checks.number("accuracy", self.accuracy, 1e-5, 1)
        if self.eigenvalues is not None:
            spectrum.empirical(self.eigenvalues)  # raises on bad input
            object.__setattr__(self, "eigenvalues", tuple(np.asarray(self.eigenvalues).tolist()))

    @property
    def law(self) -> spectrum.Spectrum | None:
        """The given spectrum, if any."""
        return None if self.eigenvalues is None else spectrum.empirical(self.eigenvalues)

    def refusal(self, problem: Problem) -> str | None:
        """Why this method cannot serve the problem, or None if it can."""
        return refusals.refusal(self, problem)

    def steady_refusal(self, problem: Problem) -> str | None:
        """Why there is no steady state to be had, or None."""
        return refusals.steady_refusal(self, problem)

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """R, Q, F2, Eg, Et at times t, and C(t,s), G(t,s) if asked for."""
        if problem.layered:
            from manypass.layers.alike import tell
            from manypass.layers.averages import Fields
            from manypass.layers.net import Net
            from manypass.layers.onepass import curves as one_pass

            tell(Net.of(problem))
            closed = one_pass(problem, Fields(Net.of(problem)), t, two_time)
            return results.dataset(problem, self, closed, {"t": t})
        if isinstance(problem.data, Dataset):
            from manypass.data import solution  # a Teacher needs nothing of it

            orders.tell_unlearned(problem, problem.data.n, float(t[-1]))
            return self._on_data(
                problem,
                {"t": t},
                solution.curves(
                    problem,
                    t,
                    accuracy=self.accuracy,
                    diagonal=self.diagonal,
                    two_time=two_time,
                    progress=progress,
                    device=self.device,
                ),
            )
        if not isinstance(problem.rule, Adaline | Hebbian):
            from manypass.cavity import rest
            from manypass.exact import onepass

            if two_time:
                raise ValueError(
                    f"`two_time`: C and G of `alpha` = inf are known for Adaline and Hebbian, not "
                    f"for `rule` {problem.rule!r}: use method {SIMULATED}"
                )
            found = rest.values(problem, t) or onepass.curves(problem, t)
            found = {name: value for name, value in found.items() if "_se" not in name}
            return results.dataset(problem, self, found, {"t": t})
        if ordered(problem):
            from manypass.exact.ordered import curves as ordered_curves

            if two_time and not problem.teacher.isotropic and isinstance(problem.rule, Adaline):
                share = f" with `batch_share` = {problem.batch_share:g}" * bool(problem.batch_share)
                raise ValueError(
                    f"`two_time`: C and G of correlated `inputs` are known where they are drawn "
                    f"one by one with replacement, not for `sequence` = {problem.sequence!r}"
                    f"{share}: use method {SIMULATED}"
                )
            found = ordered_curves(problem, t, two_time=two_time, sampling=self._sampling())
            self._tell(found)
            return results.dataset(problem, self, found, {"t": t})
        if two_time:
            memory.require(8 * 8 * t.size**2, "take fewer `times` or two_time=False")
        course = Course(problem, float(t[-1]), self.law)
        modes, parts = course.modes, []
        for start in range(0, t.size, CHUNK):
            times = t[start : start + CHUNK]
            state = course.at(times)
            part = {"R": modes.R(state), "Q": modes.Q(state), "F2": modes.F2(state)}
            part["Eg"] = modes.Eg(state, problem.data.task)
            parts.append(part | self._training_error(problem, modes, times, state, part))
        curves = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if two_time:
            state = course.at(t)
            curves["C"] = correlation(modes, state)
            curves["G"] = response(course.all_modes, state)
        curves |= self._sampled_error(problem, t, curves)
        return results.dataset(problem, self, curves, {"t": t})

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """R, Q, Eg of weights averaged over the window, F2 and Et of the present ones, t → ∞."""
        if isinstance(problem.data, Dataset):
            from manypass.data import solution

            found = solution.stationary(
                problem, diagonal=self.diagonal, window=window, device=self.device
            )
            return self._on_data(problem, {"window": window}, found)
        if not isinstance(problem.rule, Adaline | Hebbian):
            from manypass.cavity import rest
            from manypass.exact import onepass

            found = rest.values(problem, np.zeros(())) or onepass.steady(problem, window)
            found = {name: value for name, value in found.items() if "_se" not in name}
            return results.dataset(problem, self, found, {"window": window})
        if problem.start is not None:  # which is forgotten
            forgotten = self.steady_state(problem.replace(start=None), window=window)
            return forgotten.assign_attrs(results.attributes(problem))
        if ordered(problem):
            from manypass.exact.ordered import steady as ordered_steady

            found = ordered_steady(problem, window, self._sampling())
            self._tell(found)
            return results.dataset(problem, self, found, {"window": window})
        law = self.law
        check_steady(problem, law)
        feedback = problem.rate / critical_rate(problem, law)
        modes = linear_modes(problem, law).driven
        values = stationary(modes, feedback, window)
        Eg = generalization_error(problem.data.task, values["R"], values["Q"])
        now = values if not window else stationary(modes, feedback)
        forever = np.array([np.inf])
        Et = self._training_error(problem, modes, forever, modes.end, now)
        Et |= self._sampled_error(problem, forever, Et)
        Et = {name: value[0] for name, value in Et.items()}
        return results.dataset(problem, self, {**values, "Eg": Eg, **Et}, {"window": window})

    def _on_data(self, problem: Problem, coords: Any, found: dict[str, Any]) -> xr.Dataset:
        out = results.dataset(problem, self, found, coords)
        if self.diagonal:
            out.attrs["approximation"] = "diagonal: only the variances in the eigenbasis of H"
        if problem.sequence == "reshuffled":
            out.attrs["approximation"] = (
                "reshuffled: what two examples do to each other is taken as what they do on "
                "average; up to 0.6 v_c squared errors were within 1 % of simulations at "
                "p/N = 14 to 33, and within 5 % at p = N"
            )
        return out

    def _training_error(
        self, problem: Problem, modes: Modes, t: Array, state: State, found: Any
    ) -> dict[str, Any]:
        if self.eigenvalues is not None:
            return {}
        Et = closed_training_error(problem, modes, t, state, found)
        return {} if Et is None else {"Et": Et, "Et_se": np.zeros(t.size)}

    def _sampled_error(self, problem: Problem, t: Array, found: Any) -> dict[str, Any]:
        sampling = self._sampling()
        if "Et" in found or not sampling["samples"] or self.eigenvalues is not None:
            return {}
        from manypass.cavity.sampling import adaline_training_error  # compiles: only when needed

        sampled = {"Et": np.full(t.size, 0.5), "Et_se": np.zeros(t.size)}  # the diverged guess
        known = np.isfinite(found["Q"]) if "Q" in found else np.ones(t.size, bool)
        if known.any():
            for name, value in adaline_training_error(problem, t[known], **sampling).items():
                sampled[name][known] = value
        self._tell(sampled)
        return sampled

    def _sampling(self) -> dict[str, Any]:
        samples = self.samples or (10**8 if self.accuracy else 0)
        return {"samples": samples, "accuracy": self.accuracy, "seed": self.seed}

    def _tell(self, sampled: dict[str, Any]) -> None:
        """Warn if the accuracy that was asked for is not reached."""
        worst = float(np.max(sampled.get("Et_se", 0.0)))
        if self.accuracy is not None and not worst <= self.accuracy * (1 + 1e-9):  # NaN: unknown
            warnings.warn(
                f"`accuracy` = {self.accuracy:g} is not reached with `samples` = "
                f"{self._sampling()['samples']}: the largest error of Et is {worst:.2g}",
                stacklevel=5,
            )
