"""Networks that learn side by side on a card, and waves of them that make an ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

from manypass import card
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Measured
from manypass.forces import around
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.simulation import settling
from manypass.simulation.cuda import kernels
from manypass.simulation.cuda.kernels import FINE, NOT_A_NUMBER, WARPS
from manypass.simulation.cuda.lanes import LANES
from manypass.simulation.cuda.philox import FRESH, FRESH_TARGETS, INPUTS, TARGETS, TEACHER
from manypass.simulation.examples import directions, how_many
from manypass.simulation.given import table
from manypass.simulation.network import pace
from manypass.simulation.sample import beginning

if TYPE_CHECKING:
    from manypass.simulation.method import Simulation

NUMBERS: dict[str, Any] = {"float32": np.float32, "float64": np.float64}
STEPS = (
    4096 if LANES > 1 else 64
)  # learning steps between two looks at the keyboard, and draws made at once
ROWS = 256 if LANES > 1 else 8  # fresh examples that are held at once
GRID, BLOCK = (4096, 256) if LANES > 1 else (1, 4)  # threads of the kernels that go over a table


class Law:
    """How inputs are correlated: tables on the card, one entry a weight, empty where Σ = 1."""

    def __init__(self, problem: Problem, n: int, real: Any) -> None:
        data = problem.data
        self.scale: Array | float = 1.0  # √μ here
        self.none = self.root = self.mu = self.sizes = cuda.device_array(0, real)
        if not isinstance(data, Dataset) and not data.isotropic:
            sizes, self.scale, _ = directions(data.inputs, n, data.alpha)
            tables = np.zeros((3, padded(n)), real)
            tables[:, :n] = self.scale, self.scale**2, sizes
            self.root, self.mu, self.sizes = map(cuda.to_device, tables)


class Examples:
    """Training sets on the card: one for each network, or one that all share."""

    def __init__(self, X: Any, targets: Any, width: int, apart: int) -> None:
        self.X, self.targets, self.width, self.apart = X, targets, width, apart
        self.p = targets.shape[1]

    @classmethod
    def given(cls, X: Any, targets: Array, real: Any) -> Examples:
        """Copy a table to the card, its rows padded."""
        width = padded(X.shape[1])
        rows = np.zeros((X.shape[0], width), real)
        rows[:, : X.shape[1]] = table(X, real)
        return cls(
            cuda.to_device(rows.ravel()), cuda.to_device(targets[None].astype(real)), width, 0
        )

    @classmethod
    def empty(cls, count: int, p: int, width: int, real: Any) -> Examples:
        """Room for p examples of each network."""
        X, targets = cuda.device_array(count * p * width, real), cuda.device_array((count, p), real)
        return cls(X, targets, width, 1)


def padded(n: int) -> int:
    """Length of a row: the next multiple of four."""
    return 4 * math.ceil(n / 4)


def shape(width: int, busy: bool = False, units: int = 1) -> tuple[int, int]:
    """Quads of weights per thread and warps per network, by what was fastest on an H200.

    Few warps wait for each other least; more than 16 quads do not fit into registers, or half as
    many if there is noise to make or a mean to keep, and fewer if there are several units.
    """
    most = max((8 if busy else 16) // units, 1)
    quads = math.ceil(width / (4 * LANES))  # if there were one warp
    warps = 2 if 2 < quads <= 4 else 1
    while quads > most * warps:
        warps *= 2
    return math.ceil(quads / warps), warps


class Networks:
    """Networks `first` .. `first + count` of an ensemble; `advance` goes on from there."""

    def __init__(
        self, method: Simulation, problem: Problem, first: int, count: int, given: Any
    ) -> None:
        n, self.real = method.n, NUMBERS[method.number]
        self.method, self.problem, self.first, self.count = method, problem, first, count
        self.seed = np.uint64(method.seed)
        self.law = Law(problem, n, self.real)
        self.examples, self.B = given[0], self.law.none
        self.fresh = math.isinf(problem.data.alpha)
        if self.examples is None:
            self.teach(how_many(problem.data, n), padded(n))
        self.test, width = given[1], self.examples.width
        # What is learned: the examples by which one measures, or a table of fresh ones
        self.source = Examples.empty(count, ROWS, width, self.real) if self.fresh else self.examples
        self.J = cuda.to_device(self.beginnings(width))
        self.lost = cuda.to_device(np.zeros(count, np.int32))
        passes = problem.sequence != "replacement"
        self.order = cuda.device_array((count, self.examples.p if passes else STEPS), np.int32)
        if self.fresh:
            self.order = cuda.to_device(np.tile(np.arange(ROWS, dtype=np.int32), (count, 1)))
        self.step, self.drawn = 0, 0
        self.compile()

    def compile(self) -> None:
        """Compile the force."""
        rule = self.problem.rule
        self.parameters = tuple(rule.parameters.values()) or (0.0,)
        function, count = rule.force_function, len(rule.parameters)
        self.force = kernels.device_force(function, count, self.real, around(function))

    def teach(self, p: int, width: int) -> None:
        """Draw teachers and the examples that they label."""
        self.examples = Examples.empty(self.count, p, width, self.real)
        self.B = cuda.device_array(self.count * width, self.real)
        seeds = (self.seed, self.first, TEACHER, 0)
        kernels.fill[GRID, BLOCK](self.B, self.law.none, self.method.n, width, 1, *seeds)
        kernels.unit[self.count, LANES](self.B, self.law.sizes, width)
        self.label(self.examples, INPUTS, TARGETS, 0)

    def label(self, examples: Examples, inputs: Any, noise: Any, start: int) -> None:
        """ξ_j ~ N(0, μ_j) and their targets, from example `start` on."""
        data, width, seeds = self.problem.teacher, examples.width, (self.seed, self.first)
        kernels.fill[GRID, BLOCK](
            examples.X, self.law.root, self.method.n, width, examples.p, *seeds, inputs, start
        )
        how = (data.noise, data.task == "classification")
        kernels.label[self.count, WARPS * LANES](
            examples.X, self.B, examples.targets, width, *how, *seeds, noise, start
        )

    def beginnings(self, width: int) -> Array:
        """J(0) of every network, one behind the other, from the CPU's random numbers."""
        J = np.zeros((self.count, width), self.real)
        if self.problem.start is not None:
            B = self.B.copy_to_host().astype(float).reshape(-1, width)[:, : self.method.n]
            for s in range(self.count):
                seed = np.random.SeedSequence(self.method.seed, spawn_key=(self.first + s, 4))
                teacher = B[s] if len(B) else B
                J[s, : self.method.n] = beginning(self.problem, teacher, self.law.scale, seed)
        return J.ravel()

    def advance(self, until: float, total: Any = None) -> int:
        """Learn until the given time and add J after each step to `total`; returns the steps."""
        left = round(until * self.method.n) - self.step
        problem, n, e = self.problem, self.method.n, self.source
        kick = math.sqrt(2 * problem.temperature) / n
        quads, warps = shape(e.width, kick > 0 or total is not None)
        hot, mean, moving = kick > 0, total is not None, problem.scheduled
        kernel = kernels.learning(self.force, quads, warps, self.real, hot, mean, moving)
        limit = 1e100 if self.real is np.float64 else 1e15
        first = pace(problem, n, np.zeros(1))
        settings, paces = (*first[:, 0].tolist(), kick, limit), cuda.to_device(first)
        sums = self.J if total is None else total
        taken = max(left, 0)
        while left > 0:
            offset = self.draw()
            count = min(left, self.drawn - self.step, STEPS)
            if moving:
                t = np.arange(self.step, self.step + count) / n
                paces = cuda.to_device(pace(problem, n, t))
            span = (n, e.width, e.p, e.apart, offset, count, self.step, self.first, self.seed)
            kernel[self.count, warps * LANES](
                e.X,
                e.targets,
                self.order,
                self.J,
                sums,
                self.lost,
                span,
                settings,
                paces,
                self.parameters,
            )
            self.step += count
            left -= count
            cuda.synchronize()
        if (self.lost.copy_to_host() == NOT_A_NUMBER).any():
            raise ValueError(f"`force` of {problem.rule!r} returned NaN on an example")
        return taken

    def draw(self) -> int:
        """Have examples for the next step; returns where they are in the order."""
        length, kind = int(self.order.shape[1]), self.problem.sequence
        if self.step == self.drawn:
            seeds = (self.seed, self.first, self.step)
            if self.fresh:
                self.label(self.source, FRESH, FRESH_TARGETS, self.step)
            elif kind == "replacement":
                kernels.draw[GRID, BLOCK](self.order, self.examples.p, *seeds)
            elif kind == "reshuffled" or self.step == 0:
                kernels.shuffle[math.ceil(self.count / BLOCK), BLOCK](self.order, *seeds)
            self.drawn += length
        return self.step - self.drawn + length

    def weights(self) -> Array:
        """J of every network (networks × N)."""
        J = self.J.copy_to_host().reshape(self.count, -1)
        return np.asarray(J[:, : self.method.n])

    def measure(self, J: Any = None) -> Measured:
        """Return what `Sample.measure` gives, for every network."""
        J = self.J if J is None else J
        task, lost = self.problem.data.task, self.lost.copy_to_host() != FINE
        F2, Et, Q, R = self.errors(self.examples, J)[0]
        out: Measured = {"Q": Q, "F2": F2, "Et": Et}
        if self.B.size:
            with np.errstate(invalid="ignore", divide="ignore"):  # lost ones
                out |= {"R": R, "Eg": generalization_error(task, R, Q)}
        elif self.test is not None:
            out["F2_test"], out["Eg"] = self.errors(self.test, J)[0][:2]
        for name, values in out.items():
            guess = task == "classification" and name in ("Eg", "Et")
            values[lost] = 0.5 if guess else np.inf
        return out | {"diverged": lost.astype(float)}

    def errors(self, examples: Examples, J: Any, show: bool = False) -> tuple[Array, Any]:
        """F2, E_t, JᵀΣJ and BᵀΣJ by a set of examples; with `show` also each activation."""
        found = cuda.device_array((self.count, 4), np.float64)
        x = cuda.device_array((self.count, examples.p if show else 0), self.real)
        kernel = kernels.measuring(self.force, self.problem.data.task == "classification")
        sets, shape = (examples.X, examples.targets), (examples.width, examples.apart)
        kernel[self.count, WARPS * LANES](
            *sets, J, self.B, self.law.mu, *shape, found, x, self.parameters
        )
        return np.ascontiguousarray(found.copy_to_host().T), x

    def curves(self, t: Array, two_time: bool) -> Measured:
        """All that is measured along one run, with the networks in front (networks × times)."""
        rows, kept = [], []
        for time in t:
            self.advance(time)
            rows.append(self.measure())
            kept += [self.weights()] if two_time else []
        out = {name: np.stack([row[name] for row in rows], axis=1) for name in rows[0]}
        if two_time:
            out["C"] = self.correlations(kept, out["diverged"] > 0)
        return out

    def correlations(self, kept: list[Array], lost: Any) -> Array:
        """C(t,s) of every network (networks × times × times)."""
        K = np.stack(kept, axis=1) * np.asarray(self.law.scale, self.real)
        C = (K @ K.transpose(0, 2, 1)).astype(float)
        return np.where(lost[:, :, None] | lost[:, None, :], np.inf, C)

    def steady(self, window: float) -> Measured:
        """Measure after `settle`, the weights averaged over the window; and what has `moved`."""
        epoch = settling.epoch(self.problem, self.examples.p, self.method.n)
        half, settle = settling.waits(self.method.settle, epoch)
        seen = [self._look(time) for time in (half, settle)]
        total = cuda.to_device(np.zeros(self.J.size, self.real))
        covered = self.advance(settle + window, total)
        now = self._look(settle + window)
        if epoch:
            times = settling.looks(self.problem, settle + window, epoch, self.examples.p)
            now = settling.over_epoch([self._look(time) for time in times])
        out = now | {"moved": settling.moves(*seen)}
        if covered:
            mean = cuda.to_device((total.copy_to_host() / covered).astype(self.real))
            averaged = self.measure(mean)
            out |= {name: averaged[name] for name in averaged if name not in ("F2", "Et")}
        return out

    def _look(self, time: float) -> Measured:
        """Measure at a time."""
        self.advance(time)
        return self.measure()

    def activations(self, time: float, before: float | None = None) -> Measured:
        """y, ỹ and x of every training example (networks × examples); what has `moved`."""
        out = Measured()
        if before is not None:
            out["moved"] = settling.moves(*(self._look(at) for at in (before, time)))
        self.advance(time)
        x, y = (self.errors(self.examples, J, show=True)[1] for J in (self.J, self.B))
        lost = self.lost.copy_to_host() != FINE
        return out | {
            "y": y.copy_to_host().astype(float),
            "target": self.examples.targets.copy_to_host().astype(float),
            "x": np.where(lost[:, None], np.inf, x.copy_to_host().astype(float)),
        }


def waves(
    method: Simulation, problem: Problem, read: Callable[[Networks], Measured], samples: int
) -> Iterator[Measured]:
    """Yield read(networks) of as many networks at once as the card takes, until all have come."""
    data, size = problem.data, np.dtype(method.number).itemsize
    width, p = padded(method.n), how_many(data, method.n)
    make, rows = Networks, 4
    if problem.layered:
        from manypass.simulation.cuda.layered import LayeredNetworks

        make, rows = LayeredNetworks, 4 * (problem.rule.hidden + problem.teacher.hidden)  # type: ignore[attr-defined]
    needed, shared = size * (p * width + p + rows * width) + 4.0 * max(p, STEPS), 0.0
    needed += size * ROWS * (width + 1) if math.isinf(data.alpha) else 0.0
    given: tuple[Any, Any] = (None, None)
    if isinstance(data, Dataset):
        shared, needed = size * width * (p + data.p_test), needed - size * p * (width + 1)
        card.networks_at_once(needed, shared, samples)  # refuses what does not fit
        test = Examples.given(data.X_test, data.y_test, method.number) if data.p_test else None
        given = (Examples.given(data.X, data.y, method.number), test)
    wave = card.networks_at_once(needed, 0.0, samples)
    for first in range(0, samples, wave):
        yield read(make(method, problem, first, min(wave, samples - first), given))
