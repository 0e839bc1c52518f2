"""`Simulation`: finite-N learning as a method that `solve` can call."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from manypass import card, checks, forces, memory, orders, results
from manypass.cavity import rest
from manypass.cavity.settling import NotSettledError
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Average, Measured, Progress, cores, in_order, shown
from manypass.problem import SEQUENCES, Problem
from manypass.rules import Rule
from manypass.simulation import coarse, kernels, settling
from manypass.simulation.examples import held, how_many
from manypass.simulation.given import GivenSample, given_examples, table
from manypass.simulation.network import largest_drag
from manypass.simulation.sample import MEASURED_AT_ONCE, Sample, bent
from manypass.smooth import jumps

PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Simulation:
    """Average over networks of N weights, each with its own teacher, training set and sequence.

    On a `Dataset` the training set is given: networks differ by their sequences (and noise) only.

    Parameters
    ----------
    n : int
        Number N of weights; the training set has round(αN) examples. A `Dataset` has its own N,
        which is taken instead of the default; another one is refused.
    samples : int
        Number of independent networks. Error bars come from their scatter.
    seed : int, optional
        The same seed gives the same numbers, on any number of threads; None draws a seed, which
        the result tells.
    sequence : {"replacement", "reshuffled", "fixed"}, optional
        Moved to `Problem(sequence=...)`; given here it stands for that one, with a warning.
    precision : {"float64", "float32"}, optional
        Of weights and inputs; by default double precision, on a card single.
    settle : float
        Time to wait before `steady_state` measures; it warns if the second half of this time
        still moves R, Q or F2 by more than 1 % and chance.
    response : bool
        With `two_time`, also measure G(t,s): one more run from every time s on.
    stimulus : float, optional
        Size of the stimulus to each weight with which the response is measured: by default 1e-6 or,
        where the force jumps, a fifth of the weights' own typical size at that time, since examples
        respond only if it takes them across the jump. What is not linear in it is in `G_se`.
    threads : int, optional
        Networks simulated at the same time; by default one per core.
    device : {"cpu", "cuda"}
        Where to simulate: "cuda" takes an NVIDIA card (``pip install 'manypass[cuda]'``), on which
        an ensemble learns at the speed of its memory. Random numbers differ from the CPU's; the
        same seed gives the same numbers on any card. On-line learning, one example at a time
        and without momentum, up to N = 16,384.

    Notes
    -----
    Time is counted to the nearest step; with a `batch_share`, by the batches that are complete.
    Schedules are taken at the beginning of each step; a teacher's `start` is drawn anew for every
    network; batches of a `batch_size` that does not divide an epoch go on into the next.

    With correlated `inputs` R = BᵀΣJ, Q = JᵀΣJ, C = J(t)ᵀΣJ(s) and G = zᵀΣΔJ/N for a stimulus z;
    vμ_max/N must be small, and a warning says what N would be enough. With `alpha` = inf every step
    takes a fresh example, and F2 and Et are over N others.

    The steady state of a `sequence` other than "replacement" repeats with each epoch: R, Q, F2, Eg,
    Et are means over one, `R_end`, ... the values at its end. An averaging window begins at one.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adatron(kappa=1.0), rate=1.0, decay=0.1)
    >>> data = mp.solve(problem, [1, 2], mp.Simulation(n=100, samples=20, seed=0))
    >>> data.Eg.values.round(2)
    array([0.3 , 0.27])
    """

    finite: ClassVar[bool] = True  # has a number of weights, and takes every problem as it is
    n: int = 500
    samples: int = 100
    seed: Any = 0
    sequence: str | None = None
    precision: str | None = None
    settle: float = 20.0
    response: bool = False
    stimulus: float | None = None
    threads: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        checks.plain(self)
        checks.count("n", self.n, 1, 10**7)
        checks.count("samples", self.samples, 1, 10**9)
        object.__setattr__(self, "seed", checks.seed("seed", self.seed))
        if self.sequence is not None:
            checks.choice("sequence", self.sequence, SEQUENCES)
            warnings.warn(
                f"`sequence` of Simulation has moved to Problem(sequence={self.sequence!r})",
                FutureWarning,
                stacklevel=3,
            )
        checks.choice("device", self.device, card.DEVICES)
        checks.choice("precision", self.number, PRECISIONS)
        checks.number("settle", self.settle, 0, 1e6)
        if self.stimulus is not None:
            checks.number("stimulus", self.stimulus, 1e-12, 1e3)
        checks.flag("response", self.response)
        if self.response and self.number != "float64":
            raise ValueError("`response` is a small difference: it needs precision='float64'")
        if self.threads is not None:
            checks.count("threads", self.threads, 1, 1024)

    @property
    def number(self) -> str:
        """The precision in use."""
        if self.precision is not None:
            return self.precision
        return "float32" if self.device == "cuda" else "float64"

    def refusal(self, problem: Problem) -> str | None:
        """Why this method cannot serve the problem, or None if it can."""
        try:
            problem = self._ordered(problem)
        except ValueError as error:
            return str(error)
        if isinstance(problem.data, Dataset) and self.n != problem.data.n:
            if self.n != Simulation.n:
                return (
                    f"`n` = {self.n}, but {problem.data!r} has N = {problem.data.n}: leave it out"
                )
            return self._on(problem).refusal(problem)
        p, share = how_many(problem.data, self.n), problem.batch_share
        if p < 1:
            return (
                f"`n` = {self.n} at `alpha` = {problem.data.alpha:g} leaves no example: "
                f"alpha·n must be at least 1"
            )
        if math.isinf(problem.data.alpha) and problem.mode == "batch":
            none = "`mode` = 'batch' needs a training set: `alpha` = inf has fresh examples only"
            use = orders.instead(problem, "Simulation")
            return f"{none}; use method {use}" if use else none
        if share and share * p < 1:
            return (
                f"`batch_share` = {share:g} of {p} examples is less than one: take a larger one, "
                f"or 0 for one example at a time"
            )
        largest = largest_drag(problem)
        if problem.mode == "online" and not share and largest >= self.n:
            if not isinstance(problem.data, Dataset):
                return f"`n` = {self.n} must exceed rate·decay = {largest:g}"
            if self.device == "cuda":
                return (
                    f"device='cuda' takes `rate`·`decay` below the N = {self.n} of `data`, got "
                    f"{largest:g}: take device='cpu'"
                )
        if problem.layered:
            units = problem.rule.hidden + problem.teacher.hidden  # type: ignore[attr-defined]
            if self.n < units:
                return f"`n` = {self.n} has no room for {units} hidden units of both networks"
        elif problem.start and problem.start.c and self.n == 1:
            return f"`n` = 1 has no room for a `start` with Q > R², got {problem.start}"
        reason = orders.refusal(problem, "Simulation") or coarse.refusal(problem, self.n)
        return self._refused_by_card(problem) if self.device == "cuda" and not reason else reason

    def steady_refusal(self, problem: Problem) -> str | None:
        """Why there is no steady state of the problem, or None."""
        return self.refusal(problem) or orders.refusal(problem, "Simulation.steady_state")

    def _refused_by_card(self, problem: Problem) -> str | None:
        for name, refused in (
            ("mode", "batch" if problem.mode == "batch" else None),
            ("batch_share", problem.batch_share or None),
            ("batch_size", problem.batch_size if problem.batch_size > 1 else None),
            ("momentum", problem.momentum or None),
            ("response", self.response or None),
            ("n", self.n if self.n > card.LARGEST else None),
        ):
            if refused is not None:
                return (
                    f"device='cuda' does not serve `{name}` = {refused!r} (on-line learning of at "
                    f"most {card.LARGEST} weights, one example at a time, no `response`): take "
                    f"device='cpu'"
                )
        return card.refusal(card.kernels_missing)

    def solve(
        self, problem: Problem, t: Array, *, two_time: bool, progress: Progress
    ) -> xr.Dataset:
        """R, Q, F2, Eg, Et at times t with their standard errors; C and G if asked for."""
        problem = self._ordered(problem)
        self._tell(problem, float(t[-1]))
        if self.response and not two_time:
            warnings.warn(
                "`response` = True measures G(t,s), which nobody asked for: add two_time=True",
                stacklevel=checks.outside(),
            )
        if self.device == "cuda":
            waves = self._waves(problem, lambda networks: networks.curves(t, two_time))
            return self._average(problem, waves, {"t": t}, progress)
        keep = t.size if two_time else min(t.size, MEASURED_AT_ONCE)
        make = self._on(problem)._maker(problem, keep)
        samples = self._samples(problem, lambda seed: make(seed).curves(t, two_time), keep)
        return self._average(problem, samples, {"t": t}, progress)

    def steady_state(self, problem: Problem, *, window: float) -> xr.Dataset:
        """R, Q, Eg of weights averaged over the window after `settle`; F2 and Et at its end.

        Warns if R, Q or F2 still move between half of `settle` and its end; raises
        `NotSettledError` if all networks have diverged.
        """
        problem = self._ordered(problem)
        settling.require(problem, self._on(problem).n, self.settle)
        self._tell(problem, self.settle + window)
        if self.device == "cuda":
            found = self._waves(problem, lambda networks: networks.steady(window))
        else:
            make = self._on(problem)._maker(problem, 1)
            found = self._samples(problem, lambda seed: make(seed).steady(window), 1)
        moved = Average()

        def apart(networks: Iterator[Measured]) -> Iterator[Measured]:
            for values in networks:
                moved.extend({"moved": values.pop("moved")})
                yield values

        out = self._average(problem, apart(found), {"window": window}, progress=False)
        if out.diverged == self.samples:
            raise NotSettledError(
                f"no steady state: `rate` = {problem.rate:g} is too large, |J|² has diverged in "
                f"all {self.samples} networks; `solve` follows them until they do",
                out,
            )
        watched, n = tuple(k for k in settling.WATCHED if k in out), self._on(problem).n
        epoch = settling.epoch(problem, how_many(problem.data, n), n)
        settling.tell(moved, watched, problem, self.settle, epoch)
        return out

    def training_activations(self, problem: Problem, time: float, count: int) -> Measured:
        """y, ỹ and x of the training examples of as many networks as give `count` of them."""
        reason = self.refusal(problem)
        if reason:
            raise ValueError(reason)
        problem = self._ordered(problem)
        until, p, before = time, how_many(problem.data, self.n), None
        if math.isinf(time):
            settling.require(problem, self._on(problem).n, self.settle)
            until, epoch = self.settle, settling.epoch(problem, p, self.n)
            before = max(until - settling.whole(until / 2, epoch), 0.0)
        if self.device == "cuda":
            read = lambda networks: networks.activations(until, before)  # noqa: E731
            found = list(self._waves(problem, read, math.ceil(count / p)))
        else:
            make = self._maker(problem, 1)

            def sample(i: int) -> Measured:
                seed = np.random.SeedSequence(self.seed, spawn_key=(i,))
                return make(seed).activations(until, before)

            networks, threads = range(math.ceil(count / p)), self._threads(problem, 1)
            found = list(in_order(sample, networks, threads))
        moved = Average()
        for network in found:
            if before is not None:
                moved.extend({"moved": network.pop("moved")})
        if before is not None:
            settling.tell(moved, settling.WATCHED, problem, self.settle)
        return {k: np.concatenate([f[k].ravel() for f in found])[:count] for k in found[0]}

    def _tell(self, problem: Problem, until: float) -> None:
        """Warn of steps that are coarse, or too long, and of a force that never moves networks."""
        n = self._on(problem).n
        coarse.tell(problem, n)
        orders.tell_unlearned(problem, n, until)
        if not isinstance(problem.data, Dataset) and rest.told(problem):
            return
        rule, noise = problem.rule, problem.temperature
        if type(rule) is not Rule or problem.start is not None or noise:
            return
        aims = (-1.0, 1.0) if problem.data.task == "classification" else forces.AIMS
        if why := forces.stuck(rule.force_function, tuple(rule.parameters.values()), aims):
            warnings.warn(
                f"networks of `rule` {rule!r} stay at J = 0, where learning begins: {why}. Theory "
                f"takes t → 0⁺; give the force its value at x = 0, or the problem a `start`",
                stacklevel=checks.outside(),
            )

    def _ordered(self, problem: Problem) -> Problem:
        """Return the problem with the order that is given here, if it has none of its own."""
        if self.sequence is None or self.sequence == problem.sequence:
            return problem
        if problem.sequence != "replacement":
            raise ValueError(
                f"`sequence` = {self.sequence!r} of Simulation contradicts that of the problem, "
                f"{problem.sequence!r}: leave it out"
            )
        return problem.replace(sequence=self.sequence)

    def _on(self, problem: Problem) -> Simulation:
        """Return the method with the N of the data, if they have one, and without an order."""
        n = problem.data.n if isinstance(problem.data, Dataset) else self.n
        return (
            self
            if n == self.n and self.sequence is None
            else dataclasses.replace(self, n=n, sequence=None)
        )

    def _maker(
        self, problem: Problem, snapshots: int
    ) -> Callable[[np.random.SeedSequence], Sample]:
        """Return what makes a sample from a seed; given examples are laid out once, for all."""
        if problem.layered:
            from manypass.layers.net import Net
            from manypass.simulation.layered import LayeredSample

            net = Net.of(problem)
            return lambda seed: LayeredSample(self, problem, net, seed)
        force, data = kernels.compiled_force(problem.rule), problem.data
        if not isinstance(data, Dataset):
            return lambda seed: Sample(self, problem, force, seed)
        self._threads(problem, snapshots)  # refuses what does not fit
        examples = given_examples(data, self.number)
        test = (table(data.X_test, self.number), data.y_test) if data.p_test else None

        def make(seed: np.random.SeedSequence) -> Sample:
            sample = GivenSample(self, problem, force, seed, examples)
            sample.test = test
            return sample

        return make

    def _samples(self, problem: Problem, sample: Any, snapshots: int) -> Iterator[Measured]:
        """Networks one by one, each with an axis of length one in front, several threads ahead."""
        seeds = (np.random.SeedSequence(self.seed, spawn_key=(i,)) for i in range(self.samples))
        try:
            for values in in_order(sample, seeds, self._threads(problem, snapshots)):
                yield {name: np.asarray(value)[None] for name, value in values.items()}
        except (ArithmeticError, AssertionError, LookupError, RuntimeError, ValueError) as error:
            if type(problem.rule) is not Rule or "`" in str(error):  # the program's own words
                raise
            what = f"{type(error).__name__}: {error}"  # raised by the user's own compiled lines
            raise ValueError(f"`force` of {problem.rule!r} fails on an example: {what}") from None

    def _waves(
        self, problem: Problem, read: Callable[[Any], Measured], samples: int | None = None
    ) -> Iterator[Measured]:
        """Networks by the wave, as many as fit on the card, which the first axis counts."""
        from manypass.simulation.cuda.networks import waves

        return waves(self._on(problem), problem, read, samples or self.samples)

    def _average(
        self,
        problem: Problem,
        networks: Iterator[Measured],
        coords: dict[str, Any],
        progress: Progress,
    ) -> xr.Dataset:
        average, total = Average(), self.samples
        size = lambda values: len(values["diverged"])  # noqa: E731
        try:
            for values in shown(networks, total, progress, "simulation", "network", size):
                average.extend(values)
                if callable(progress):
                    progress(self._dataset(problem, average, coords))
        except KeyboardInterrupt as stop:
            kept = "nothing is kept"
            if average.count:  # what a method of fewer samples would have given
                fewer = dataclasses.replace(self, samples=average.count)
                stop.so_far = fewer._dataset(problem, average, coords)  # type: ignore[attr-defined]
                kept = "their average is the attribute `so_far` of this KeyboardInterrupt"
            stop.add_note(f"{average.count} of {self.samples} networks are finished: {kept}")
            raise
        return self._dataset(problem, average, coords)

    def _threads(self, problem: Problem, snapshots: int) -> int:
        """How many networks fit into memory at once; none is refused with the number."""
        n, size = self._on(problem).n, np.dtype(self.number).itemsize
        p = how_many(problem.data, n)
        at_once = min(snapshots, MEASURED_AT_ONCE)
        units = problem.rule.hidden if problem.layered else 1  # type: ignore[attr-defined]
        needed = size * p * (n + 2 * at_once * units) + 16 * snapshots * n * units
        needed += 64 * (snapshots * units) ** 2
        if math.isinf(problem.data.alpha):
            needed += size * n * held(n, problem.batch_size)
        remedy = "take a smaller `n`, fewer times or the `precision` float32"
        shared = 0.0
        if isinstance(problem.data, Dataset):  # all networks learn from one table
            rows = p + problem.data.p_test
            shared, needed = size * rows * n, needed + size * (2 * rows * at_once - p * n)
            remedy = "take fewer examples, fewer times or the `precision` float32"
        free = memory.require(shared + needed, remedy) - shared
        return max(1, min(self.threads or cores(), int(free // needed)))

    def _dataset(self, problem: Problem, average: Average, coords: dict[str, Any]) -> xr.Dataset:
        values = average.results()
        diverged = np.rint(values.pop("diverged") * average.count).astype(int)
        values.pop("diverged_se")
        method = self._on(problem)
        if "G" in values and jumps(problem.rule, problem.data.task):
            values["G_se"] = np.hypot(values["G_se"], bent(values, self.stimulus, method.n))
        return results.dataset(problem, method, {**values, "diverged": diverged}, coords)
