"""One sample of an ensemble: a training set, the network that learns it, and what is measured."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.ensemble import Measured
from manypass.observables import generalization_error
from manypass.problem import Problem
from manypass.simulation import kernels, settling
from manypass.simulation.batch import Flow
from manypass.simulation.descent import Descent
from manypass.simulation.examples import Examples, Fresh
from manypass.simulation.network import Learner, largest_drag
from manypass.smooth import jumps

if TYPE_CHECKING:
    from manypass.simulation.method import Simulation

MEASURED_AT_ONCE = 64  # times whose activations of all examples are held together
SMALL = 1e-6  # stimulus to each weight of a network whose force is continuous
CARRIED = 0.2  # and where it jumps, in units of the weights' own size: some examples cross the jump
Flags = NDArray[np.bool_]


class Sample:
    """One teacher and training set, and networks that learn it by the same sequence."""

    def __init__(
        self,
        method: Simulation,
        problem: Problem,
        force: Any,
        seed: np.random.SeedSequence,
        examples: Examples | None = None,
    ) -> None:
        data, self.draws, self.noise, stimulus, start = seed.spawn(5)
        self.method, self.problem, self.force = method, problem, force
        dtype = np.dtype(method.number)
        self.examples = examples or Examples.draw(
            problem.teacher, method.n, np.random.default_rng(data), dtype
        )
        self.stimulus = np.random.default_rng(stimulus)
        self.start = beginning(problem, self.examples.B, self.examples.root, start)

    def network(self) -> Learner | Flow | Descent:
        """Every call gives the same start, the same sequence and the same noise."""
        problem, noise = self.problem, np.random.default_rng(self.noise)
        network: Learner | Flow | Descent
        if problem.mode == "batch":
            network = Flow(problem, self.examples, self.force, noise)
        else:
            plain = not problem.batch_share and problem.batch_size == 1 and not problem.momentum
            # A step that turns the weights round, as N of given examples may be too small for
            turned = isinstance(problem.data, Dataset) and largest_drag(problem) >= problem.data.n
            plain = plain and not turned
            kind, draws = Learner if plain else Descent, np.random.default_rng(self.draws)
            network = kind(problem, self.learned(), self.force, draws, noise)
        network.J[:] = self.start
        return network

    def learned(self) -> Examples | Fresh:
        """Return what to learn: the training set, by which one measures too, or fresh examples."""
        if math.isinf(self.problem.data.alpha):
            return Fresh(self.problem.teacher, self.examples, self.problem.batch_size)
        return self.examples

    def curves(self, t: Array, two_time: bool) -> Measured:
        """All that is measured along one run."""
        network, parts, kept = self.network(), [], []
        for start in range(0, t.size, MEASURED_AT_ONCE):
            J, diverged = follow(network, t[start : start + MEASURED_AT_ONCE])
            parts.append(self.measure(J, diverged))
            kept += [J] if two_time else []
        out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if two_time:
            J, lost = np.concatenate(kept).astype(float), out["diverged"] > 0
            K = J * self.examples.root
            out["C"] = np.where(lost[:, None] | lost, np.inf, K @ K.T)
            if self.method.response:
                out["G"] = self.response(t, J, lost)
        return out

    def response(self, t: Array, J: Array, lost: Flags) -> Array:
        """G(t,s) = zᵀΣΔJ(t)/N per unit of a stimulus z = ±1 to every weight at time s."""
        G, mu = np.zeros((t.size, t.size)), np.square(self.examples.root)
        for i, size in enumerate(self.stimuli(J)):
            z = self.stimulus.choice((-1.0, 1.0), size=self.method.n)
            network = self.network()
            follow(network, t[: i + 1])
            network.J = (network.J + size * z).astype(network.J.dtype)
            moved, _ = follow(network, t[i:])
            G[i:, i] = (moved - J[i:]) @ (mu * z) / (size * self.method.n)
        return np.where(lost[:, None], np.inf, G)

    def stimuli(self, J: Array) -> Array:
        """Size of a stimulus to every weight at each time, given J (times first)."""
        J = J.reshape(len(J), -1)
        moving = np.any(J, axis=1, keepdims=True)
        J = np.where(moving, J, np.roll(J, -1, axis=0))  # J = 0: as soon as it moves
        given = self.method.stimulus
        return np.array(
            [stimulus(self.problem, weights) if given is None else given for weights in J]
        )

    def steady(self, window: float) -> Measured:
        """Measure after `settle`, the weights averaged over the window; and what has `moved`."""
        network, epoch = self.network(), settling.epoch(self.problem, *self.examples.X.shape)
        half, settle = settling.waits(self.method.settle, epoch)
        look = partial(self._look, network)
        seen = [look(time) for time in (half, settle)]
        mean = np.zeros(self.examples.X.shape[1])
        covered = network.advance(settle + window, mean)
        now = look(settle + window)
        if epoch:
            times = settling.looks(self.problem, settle + window, epoch, len(self.examples.X))
            now = settling.over_epoch([look(time) for time in times])
        out = now | {"moved": settling.moves(*seen)}
        if covered:
            averaged = self.measure(mean[None] / covered, np.array([network.diverged]))
            out |= {name: averaged[name] for name in averaged if name not in ("F2", "Et")}
        return {name: value[0] for name, value in out.items()}

    def activations(self, time: float, before: float | None = None) -> Measured:
        """y, ỹ and x of every training example; what has `moved` since a time before, if given."""
        network, examples, out = self.network(), self.examples, Measured()
        if before is not None:
            out["moved"] = settling.moves(*(self._look(network, at) for at in (before, time)))
        network.advance(time)
        x = np.where(network.diverged, np.inf, (examples.X @ network.J).astype(float))
        y = (examples.X @ examples.B.astype(examples.X.dtype)).astype(float)
        return out | {"y": y, "target": examples.targets, "x": x}

    def _look(self, network: Learner | Flow | Descent, time: float) -> Measured:
        """Measure a network at a time."""
        network.advance(time)
        return self.measure(network.J[None].astype(float), np.array([network.diverged]))

    def measure(self, J: Array, lost: Flags) -> Measured:
        """R, Q, F2, Eg, Et of weights J (times × N); a diverged network has inf, or guesses."""
        task, examples = self.problem.data.task, self.examples
        J = np.where(lost[:, None], 0.0, J)
        x = examples.X @ J.T.astype(examples.X.dtype)
        F2, Et = kernels.measure(
            self.force,
            tuple(self.problem.rule.parameters.values()),
            x,
            examples.targets,
            task == "classification",
        )
        K = J * examples.root
        R, Q = K @ (examples.root * examples.B), np.einsum("tj,tj->t", K, K)
        out = {"R": R, "Q": Q, "F2": F2, "Eg": generalization_error(task, R, Q), "Et": Et}
        for name, values in out.items():
            values[lost] = 0.5 if task == "classification" and name in ("Eg", "Et") else np.inf
        return out | {"diverged": lost.astype(float)}


def stimulus(problem: Problem, J: Array) -> float:
    """Size of a stimulus to each of the weights J by which a response is seen."""
    size = math.sqrt(float(np.mean(J**2)))
    return CARRIED * size if size and jumps(problem.rule, problem.data.task) else SMALL


def bent(values: Measured, stimulus: float | None, n: int) -> Array:
    """How far G of a force that jumps may be off since the stimulus is not small: ε²/2⟨Q⟩ of 1 − G.

    What responds is the density of x at the jump, as the stimulus, of length ε, has smeared it.
    """
    Q = values["Q"] if values["Q"].ndim == 1 else np.einsum("tkk->tk", values["Q"]).mean(axis=1)
    start = np.where(Q > 0, Q, np.append(Q[1:], 1.0))
    square = CARRIED**2 * start if stimulus is None else np.full(Q.size, stimulus**2 * n)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.minimum(square / np.maximum(Q[:, None] + Q, 1e-300), 1.0)
    share = np.tril(share, -1).reshape(share.shape + (values["G"].ndim - 2) * (1,))
    one = np.eye(values["G"].shape[-1]) if values["G"].ndim > 2 else 1.0
    return np.asarray(share * np.abs(one - values["G"]))


def beginning(
    problem: Problem, B: Array, root: Array | float, seed: np.random.SeedSequence
) -> Array | float:
    """J(0): zero unless the problem has a start, which for a teacher is one of K = √μ J."""
    start = problem.start
    if start is None:
        return 0.0
    if start.weights is not None:
        return np.array(start.weights)
    return start.drawn(root * B, np.random.default_rng(seed)) / root


def follow(network: Learner | Flow | Descent, t: Array) -> tuple[Array, Flags]:
    """Weights at times t (times × N), and whether they had diverged by then."""
    J, lost = np.empty((t.size, network.J.size)), np.zeros(t.size, bool)
    for i, time in enumerate(t):
        network.advance(time)
        J[i], lost[i] = network.J, network.diverged
    return J, lost
