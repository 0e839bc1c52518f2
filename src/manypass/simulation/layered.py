"""Networks with two layers that learn, and one sample of an ensemble of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.ensemble import Measured
from manypass.layers.activation import values
from manypass.layers.errors import generalization
from manypass.layers.net import Net
from manypass.problem import Problem
from manypass.simulation import layered_kernels as kernels
from manypass.simulation.descent import Descent
from manypass.simulation.examples import Examples, Indices, Weights, aligned, how_many, labelled
from manypass.simulation.network import Learner
from manypass.simulation.sample import MEASURED_AT_ONCE, Sample

SIGNS, SEEDS = 1 << 13, 64  # points for the sign errors of one network, and sets of them


def made(
    problem: Problem, net: Net, n: int, p: int, rng: Any, dtype: Any
) -> tuple[Examples, Array]:
    """Draw a teacher, first weights of exactly the wanted overlaps, and the training set."""
    B, J = net.weights(rng.standard_normal((sum(net.units), n)))
    X = aligned(p * n, dtype).reshape(p, n)

    def output(y: Array) -> Array:
        return np.asarray(values(y, net.taught) @ net.b)

    targets = labelled(problem.teacher, B, 1.0, X, rng, rng, output)
    return Examples(B, X, targets, 0.0, output=output), J


class LayeredLearner(Learner):
    """On-line learning; J is K × N, a the second layer."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.net: Net = self.force  # a Committee's force is known by its network
        K = len(self.net.a)
        self.J = aligned(K * self.n, self.J.dtype).reshape(K, self.n)
        self.a = self.net.a.copy()
        self.second = self.problem.rule.second_rate / self.n  # type: ignore[attr-defined]

    def plan(self, count: int) -> tuple[Indices, Indices]:
        """Draw the examples of the next steps, and where in the pool the noise of units begins."""
        offsets = np.empty((0, 0), np.int64)
        if self.pool.size:
            offsets = self.noise.integers(-self.offsets, self.offsets, size=(count, len(self.a)))
            offsets += offsets >= 0
        return self.draw(count), offsets

    def learn(self, sequence: Indices, offsets: Indices, total: Weights) -> None:
        """Take the given steps."""
        start, self.steps = self.steps, self.steps + sequence.size
        if self.diverged or not sequence.size:
            return
        fine = kernels.learn(
            self.J,
            self.a,
            self.examples.X,
            self.examples.targets,
            sequence,
            *(self.pace(start) if self.constant is None else self.constant),
            self.second,
            self.net.kind,
            self.limit,
            self.pool,
            offsets,
        )
        self.diverged = not fine


class LayeredDescent(Descent):
    """Steps of many examples, and steps with momentum, which the second layer has too."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.net: Net = self.force
        K, dtype = len(self.net.a), self.J.dtype
        self.J, self.V = (aligned(K * self.n, dtype).reshape(K, self.n) for _ in range(2))
        self.a, self.speed = self.net.a.copy(), np.zeros(K)
        rule: Any = self.problem.rule
        self.second = rule.second_rate / self.n / self.problem.batch_size

    def learn(self, batches: tuple[Indices, Indices], kicks: Weights, total: Weights) -> None:
        """Take the given steps."""
        count = batches[1].size - 1
        fine = kernels.descend(
            self.J,
            self.V,
            self.a,
            self.speed,
            self.examples.X,
            self.examples.targets,
            *batches,
            self.paces(self.steps - count, count),
            self.second,
            self.net.kind,
            self.limit,
            kicks,
        )
        self.diverged = not fine


class LayeredSample(Sample):
    """One teacher and training set, and networks of two layers that learn it."""

    def __init__(
        self, method: Any, problem: Problem, net: Net, seed: np.random.SeedSequence
    ) -> None:
        data, self.draws, self.noise, stimulus, _ = seed.spawn(5)
        self.method, self.problem, self.net, self.force = method, problem, net, net
        self.index = int(seed.spawn_key[-1]) % SEEDS
        rng, p = np.random.default_rng(data), how_many(problem.data, method.n)
        made_of = (method.n, p, rng, np.dtype(method.number))
        self.examples, self.start = made(problem, net, *made_of)
        self.stimulus = np.random.default_rng(stimulus)

    def network(self) -> Any:
        """Every call gives the same start, the same sequence and the same noise."""
        problem, noise = self.problem, np.random.default_rng(self.noise)
        plain = not problem.batch_share and problem.batch_size == 1 and not problem.momentum
        kind, draws = LayeredLearner if plain else LayeredDescent, np.random.default_rng(self.draws)
        network = kind(problem, self.learned(), self.net, draws, noise)
        network.J[:] = self.start
        return network

    def curves(self, t: Array, two_time: bool) -> Measured:
        """All that is measured along one run."""
        network, parts, kept = self.network(), [], []
        for start in range(0, t.size, MEASURED_AT_ONCE):
            J, a, lost = followed(network, t[start : start + MEASURED_AT_ONCE])
            parts.append(self.measured(J, a, lost))
            kept += [J] if two_time else []
        out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if two_time:
            J, lost = np.concatenate(kept), out["diverged"] > 0
            C = np.einsum("tkj,slj->tskl", J, J, optimize=True)
            C[lost] = C[:, lost] = np.inf
            out["C"] = C
            if self.method.response:
                out["G"] = self.response_of(t, J, lost)
        return out

    def response_of(self, t: Array, J: Array, lost: Any) -> Array:
        """G_kl(t,s) = z·ΔJ_k(t)/N per unit of a stimulus z = ±1 to the weights of unit l at s."""
        n, K = self.method.n, J.shape[1]
        G = np.zeros((t.size, t.size, K, K))
        for i, size in enumerate(self.stimuli(J)):
            for unit in range(K):
                z = self.stimulus.choice((-1.0, 1.0), size=n)
                network = self.network()
                followed(network, t[: i + 1])
                network.J[unit] += size * z
                moved = followed(network, t[i:])[0]
                G[i:, i, :, unit] = (moved - J[i:]) @ z / (size * n)
        G[lost] = np.inf
        return G

    def measured(self, J: Array, a: Array, lost: Any) -> Measured:
        """R, Q, a, F2, Eg, Et of weights J (times × K × N) and a (times × K)."""
        net, examples = self.net, self.examples
        J, a = np.where(lost[:, None, None], 0.0, J), np.where(lost[:, None], 0.0, a)
        T, K, n = J.shape
        x = examples.X @ J.reshape(-1, n).T.astype(examples.X.dtype)
        shown = x.reshape(-1, T, K), examples.targets
        F2, Et = kernels.measure(*shown, a, net.kind, net.classify)
        out = {"R": J @ examples.B.T, "Q": J @ np.swapaxes(J, 1, 2), "a": a, "F2": F2, "Et": Et}
        out["Eg"] = generalization(net, out["R"], out["Q"], a, SIGNS, self.index)
        for name, found in out.items():
            found[lost] = 0.5 if net.classify and name in ("Eg", "Et") else np.inf
        return out | {"diverged": lost.astype(float)}


def followed(network: Any, t: Array) -> tuple[Array, Array, Any]:
    """J and a at times t, and whether they had diverged by then."""
    J, a = np.empty((t.size, *network.J.shape)), np.empty((t.size, network.a.size))
    lost = np.zeros(t.size, bool)
    for i, time in enumerate(t):
        network.advance(time)
        J[i], a[i], lost[i] = network.J, network.a, network.diverged
        lost[i] |= not math.isfinite(float(a[i].sum()))
    return J, a, lost
