"""The paper's Fig. 1: one example seen by the network that learns it and by one that does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, memory, orders, results
from manypass.checks import Array
from manypass.problem import Problem, checked
from manypass.simulation import kernels
from manypass.simulation.examples import Examples, Indices
from manypass.simulation.network import Learner
from manypass.simulation.sample import stimulus as size_of


def cavity_experiment(
    problem: Problem,
    times: Any,
    *,
    n: int = 1000,
    seed: int | None = 0,
    stimuli: int = 20,
    stimulus: float | None = None,
) -> xr.Dataset:
    """x(t) = h(t) + v Σ_{t_r < t} G(t,t_r) F(x(t_r), ỹ), tested on one example of a training set.

    Two networks learn by the same sequence, but the second pauses whenever example 0 is drawn.

    Parameters
    ----------
    problem : Problem
        On-line learning by any rule, one example at a time in any order.
    times : array_like
        When to look, to the nearest step.
    n, seed : int
        Size of the networks; the same seed gives the same numbers, None draws one.
    stimuli : int
        Number of runs, each with a random stimulus to all weights, that G is averaged over.
    stimulus : float, optional
        Size of the stimulus to each weight: by default as `Simulation` has it. The response of a
        force that jumps is rough; it takes many `stimuli`.

    Returns
    -------
    xarray.Dataset
        `x` of the example in the first network and `h` in the second; `h_predicted` from x, with
        the measured `G(t, instant)`; at each learning `instant` the activation `x_before`, the
        force `F`. An attribute `residual` is the root mean square of h_predicted − h.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=0.3), mp.Adatron(kappa=0.8), rate=0.1, decay=0.1)
    >>> seen = mp.cavity_experiment(problem, [0.5, 1.0, 1.5], n=200, seed=1)
    >>> seen.attrs["residual"] < 0.05
    True
    """
    t = checks.increasing("times", times, results.LATEST)
    checked(problem)
    n, stimuli = checks.count("n", n, 2, 10**6), checks.count("stimuli", stimuli, 1, 10**6)
    if stimulus is not None:
        stimulus = checks.number("stimulus", stimulus, 1e-12, 1e3)
    seed = checks.seed("seed", seed)
    for name, plain in (("batch_size", 1), ("momentum", 0.0)):
        if (value := getattr(problem, name)) != plain:
            raise ValueError(
                f"`{name}` = {value:g}: cavity_experiment learns one example at a time at a finite "
                f"`n`, where that is not the same at another rate; leave it out"
            )
    problem = orders.require(problem, "cavity_experiment")
    p = round(problem.teacher.alpha * n)
    if problem.mode != "online" or p < 1 or problem.rate * problem.decay >= n:
        raise ValueError(
            f"`problem` must be on-line learning of at least one example with rate·decay below "
            f"`n` = {n}, got {problem!r}"
        )
    memory.require(8.0 * (n * p + 3 * t[-1] * n + 3 * t.size * n), "take a smaller `n` or `times`")
    trial = _Trial(problem, n, seed, round(t[-1] * n))
    steps = np.rint(t * n).astype(int)
    mine = np.flatnonzero(trial.sequence == 0)  # steps at which example 0 is drawn
    x_seen, x_before = trial.watch(steps, mine, pause=False)
    h_seen, _ = trial.watch(steps, mine, pause=True)
    F = np.array([problem.rule.force(x, trial.target) for x in x_before])
    G = trial.response(steps, mine, stimuli, stimulus)
    predicted = x_seen - problem.rate * G @ F
    out = results.dataset(
        problem, None, {"x": x_seen, "h": h_seen, "h_predicted": predicted}, {"t": t}
    )
    out = out.assign_coords(instant=mine / n).assign(
        x_before=("instant", x_before), F=("instant", F), G=(("t", "instant"), G)
    )
    out.attrs |= {
        "n": n,
        "seed": seed,
        "target": trial.target,
        "residual": float(np.linalg.norm(predicted - h_seen) / np.sqrt(t.size)),
    }
    return out


class _Trial:
    """One training set and one learning sequence, to be run again and again."""

    def __init__(self, problem: Problem, n: int, seed: int, steps: int) -> None:
        data, self.draws, self.noise, own = np.random.SeedSequence(seed).spawn(4)
        self.problem, self.force = problem, kernels.compiled_force(problem.rule)
        self.examples = Examples.draw(
            problem.teacher, n, np.random.default_rng(data), np.dtype(float)
        )
        self.target = float(self.examples.targets[0])
        self.stimulus = np.random.default_rng(own)
        self.sequence, self.offsets = self.network().plan(steps)

    def network(self) -> Learner:
        draws, noise = (np.random.default_rng(seed) for seed in (self.draws, self.noise))
        return Learner(self.problem, self.examples, self.force, draws, noise)

    def learn(self, network: Learner, start: int, stop: int, pause: bool = False) -> None:
        """Take steps start..stop of the sequence; with `pause`, none that draws example 0."""
        chosen = np.arange(start, stop)
        if pause:
            chosen = chosen[self.sequence[start:stop] != 0]
        offsets = self.offsets[chosen] if self.offsets.size else self.offsets
        network.learn(self.sequence[chosen], offsets, network.nothing)
        if network.diverged:
            raise ValueError(f"`rate` = {self.problem.rate:g} makes the network diverge")

    def watch(self, steps: Indices, mine: Indices, pause: bool) -> tuple[Array, Array]:
        """Activation of example 0 at the steps asked for, and before each learning of it."""
        network, found, now = self.network(), {}, 0
        for step in sorted({*steps.tolist(), *mine.tolist()}):
            self.learn(network, now, step, pause)
            found[step], now = float(network.J @ self.examples.X[0]), step
        return np.array([found[s] for s in steps]), np.array([found[s] for s in mine])

    def response(self, steps: Indices, mine: Indices, stimuli: int, given: float | None) -> Array:
        """G(t, t_r) = z·ΔJ(t)/N per unit of a stimulus z = ±1 added by the step at t_r."""
        G = np.zeros((steps.size, mine.size))
        plain = self.weights(steps, 0, self.network())
        for r, instant in enumerate(mine):
            before = self.network()
            self.learn(before, 0, instant + 1)
            later, size = steps > instant, given or size_of(self.problem, before.J)
            for _ in range(stimuli):
                z = self.stimulus.choice((-1.0, 1.0), size=before.J.size)
                network = self.network()
                network.J = before.J + size * z
                moved = self.weights(steps[later], instant + 1, network)
                G[later, r] += (moved - plain[later]) @ z / (size * z.size * stimuli)
        return G

    def weights(self, steps: Indices, start: int, network: Learner) -> Array:
        """Weights at the steps asked for, learning on from step `start`."""
        out = np.empty((steps.size, network.J.size))
        for i, step in enumerate(steps):
            self.learn(network, start, step)
            out[i], start = network.J, step
        return out
