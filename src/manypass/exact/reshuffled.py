"""Adaline with reshuffled epochs, exactly: one epoch is a closed map of the modes of H.

Given the training set, epochs are independent, and all that one of them hands to the next is, for
each eigenvalue h of H, the mean μ of the weights (in units of the pull of the examples) and the
variance n about it. Within an epoch every example is learned once, at a uniform time: with c = 1/α,
g₁(τ) = e^{−v(1+λ)τ}, the response of one-pass learning, and D₁ = (1 − vc g₁)⁻¹,

    G₁ = [∂ + vλ + vh D₁]⁻¹,   V = D₁G₁,   m = G₁μ + v∫V,
    U = (1 − hμ)V + vλ∫V                      (the mean force of an example not yet learned)
    ⟨F̂F̂′⟩ = Ψ + g₁[v²F̂2 + 2T]g₁ᵀ,             F̂2 = ⟨F̂F̂⟩ on the diagonal,
    Ψ = (1 − v²c g₁⊗g₁)[f₀U₀U₀′ + Σρf UU′ + Σρhn VV′]
    n ← G₁²n + v²h V⊗V[F̂2δ − c⟨F̂F̂′⟩] + 2T G₁⊗G₁[δ]   at the end of the epoch.

A hat marks an example as if its turn were now; products of kernels are convolutions. V is two
exponentials: V/v = e^{−(b+λ)τ}[cos ωτ + (1−b) sin(ωτ)/ω], b = (1−c+h)/2, ω² = h − b², τ in 1/v.
The sums over modes inside ⟨F̂F̂′⟩ are what turns the correlation of different examples back into
one-pass learning. Batches that are a share of the training set: the same on `Cells`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from manypass.checks import Array
from manypass.exact.lines import Line, Smooth
from manypass.exact.modes import Modes, linear_modes
from manypass.problem import Problem
from manypass.spectrum import edges


@dataclass(frozen=True, eq=False)
class State:
    """What one epoch hands to the next: μ and n of every mode, and Q."""

    mu: Array
    n: Array
    Q: float
    slope: Array = field(default_factory=lambda: np.zeros(0))  # ∂μ/∂h, for correlated inputs


@dataclass(frozen=True, eq=False)
class Course:
    """One epoch; what is `after` it is the start of the next, and a look what it is in between."""

    before: State
    after: State
    look: Callable[[], tuple[Array, Array, Array]]  # R, Q, F2 at the points of its line

    @cached_property
    def seen(self) -> tuple[Array, Array, Array]:
        """R, Q and F2, once."""
        return self.look()

    R = property(lambda self: self.seen[0])
    Q = property(lambda self: self.seen[1])
    F2 = property(lambda self: self.seen[2])


@dataclass(frozen=True, eq=False)
class Remembered(Course):
    """One epoch with what C between its times is made of."""

    F_hat: Array  # F̂2
    pushes: Array  # v²F̂2 + 2T
    noise: Array  # g₁[v²F̂2 + 2T]g₁ᵀ on its diagonal
    y_force: Array  # ⟨ỹF̂⟩
    weights: Array  # of the forces A in Ψ = Σ weight (A A′ − v²c gA gA′), gA = g₁A
    forces: Array
    g_forces: Array


def force_response(problem: Problem, line: Line, h: Array) -> Array:
    """V of each mode at the points of a line."""
    v, decay, c = problem.rate, problem.decay, 1 / problem.data.alpha
    if isinstance(line, Smooth):
        b = ((1 - c + h) / 2)[:, None]
        t = v * line.s
        angle = np.sqrt((h[:, None] - b**2).astype(complex)) * t
        small = np.abs(angle) < 1e-6
        sinc = np.where(small, 1 - angle**2 / 6, np.sin(angle) / np.where(small, 1, angle))
        return np.asarray((np.exp(-(b + decay) * t) * (np.cos(angle) + (1 - b) * t * sinc)).real)
    d = v * line.step
    q, one_pass = 1 - decay * d, 1 - (1 + decay) * d
    other = one_pass + c * d
    V = np.zeros((h.size, line.n + 1))
    V[:, 0], V[:, 1] = 1.0, q + other - d * h - one_pass
    for i in range(2, line.n + 1):
        V[:, i] = (q + other - d * h) * V[:, i - 1] - (q * other - d * h * one_pass) * V[:, i - 2]
    return V


class Reshuffled:
    """The map of one epoch for a problem, on a line."""

    def __init__(self, problem: Problem, line: Line, until: float = math.inf) -> None:
        self.problem, self.line = problem, line
        self.modes: Modes = linear_modes(problem).resolved(problem.rate * until)
        self.c, self.once = 1 / problem.teacher.alpha, problem.rate * (1 + problem.decay)
        self._prepare()

    def _prepare(self) -> None:
        """V, G₁ and ∫V."""
        problem, line, modes, v = self.problem, self.line, self.modes, self.problem.rate
        twice = self._square(self.once)
        self.g1 = line.kernel(self.once)
        self.g1_square, self.growth = line.kernel(twice), line.kernel(twice - v**2)
        self.g1_cube = (1 - self.once * line.step) * line.kernel(twice, 1)
        self.sum = line.kernel(0.0)
        # The last row is the part of the targets that no weights can reach: h = μ = 0.
        self.V = force_response(problem, line, np.append(modes.h, 0.0))
        self.I = line.conv(self.sum, self.V)
        self.gV, self.gI = line.conv(self.g1, self.V), line.conv(self.g1, self.I)
        self.G = (self.V - v * self.c * self.gV)[:-1]
        self.ends = [line.end(K, B) for K in (self.V[:-1], self.gV[:-1]) for B in (self.V, self.I)]

    def _square(self, rate: float) -> float:
        """Return the rate at which e² decays."""
        return 2 * rate - rate**2 * self.line.step

    def start(self) -> State:
        """J = 0."""
        return State(np.zeros_like(self.modes.h), np.zeros_like(self.modes.h), 0.0)

    def epoch(self, state: State) -> Course:
        """Follow one epoch."""
        problem, line, modes, c = self.problem, self.line, self.modes, self.c
        v, decay, heat = problem.rate, problem.decay, modes.heat
        unlearned = np.append(1 - modes.h * state.mu, 1.0)[:, None]
        targets = np.append(modes.rho * modes.f, modes.f0)
        weights = np.concatenate([targets, modes.rho * modes.h * state.n])

        def forces(V: Array, of_sum: Array) -> Array:
            return np.concatenate([unlearned * V + v * decay * of_sum, V[:-1]])

        A, gA = forces(self.V, self.I), forces(self.gV, self.gI)
        ggA = line.conv(self.g1, gA)
        psi = weights @ (A**2 - v**2 * c * gA**2)
        psi += heat * line.conv(self.g1_square, np.ones_like(psi))
        F_hat = psi + v**2 * line.conv(self.growth, psi)
        pushes = v**2 * F_hat + heat
        noise = line.conv(self.g1_square, pushes)
        y_force = targets @ A[: targets.size]
        cross = weights @ (gA * A - v**2 * c * ggA * gA) + line.conv(self.g1_cube, pushes)
        F2 = F_hat - 2 * v * c * cross + v**2 * c * line.conv(self.g1_square, F_hat)
        # |J|² gains 2v⟨x̂F̂⟩ and the pushes; in a whole step also what its examples do to each other.
        q, soon = 1 - v * decay * line.step, F_hat
        if line.step:
            after = (x[:, :-1] * x[:, 1:] for x in (A, gA))
            soon = weights @ (next(after) - v**2 * c * next(after))
            soon = np.append(soon + (1 - self.once * line.step) * noise[:-1], 0.0)
        gain = v * ((1 + q) * y_force - q * F_hat - soon) + pushes
        shrink = self._square(v * decay)
        Q = state.Q * line.decay(shrink) + line.conv(line.kernel(shrink), gain)
        R = self.overlap(state.mu)
        kept: dict[str, Any] = {"F_hat": F_hat, "pushes": pushes, "noise": noise}
        mu = self.mean(state, 1)
        n = self._noise(state, F_hat, pushes, targets, unlearned[:, 0])
        after_state = State(mu, n, float(Q[-1]))
        kept |= {"y_force": y_force, "weights": weights, "forces": A, "g_forces": gA}
        return Remembered(state, after_state, lambda: (R, Q, F2), **kept)

    def mean(self, state: State, epochs: int) -> Array:
        """Return μ after so many epochs."""
        mu = state.mu
        for _ in range(epochs):
            mu = self.G[:, -1] * mu + self.problem.rate * self.I[:-1, -1]
        return mu

    def overlap(self, mu: Array) -> Array:
        """R of an epoch that starts with μ."""
        m = self.G * mu[:, None] + self.problem.rate * self.I[:-1]
        return np.asarray((self.modes.rho * self.modes.r / self.problem.rate) @ m)

    def _noise(
        self, state: State, F_hat: Array, pushes: Array, targets: Array, unlearned: Array
    ) -> Array:
        """Return n at the end of an epoch."""
        line, modes, v, c = self.line, self.modes, self.problem.rate, self.c
        VV, VI, kV, kI = self.ends
        shift = v * self.problem.decay
        told = (VV * unlearned + shift * VI) ** 2 - v**2 * c * (kV * unlearned + shift * kI) ** 2
        white = v**2 * modes.h * line.end(self.V[:-1] ** 2, F_hat[None])[:, 0]
        white += modes.heat * line.end(self.G**2, np.ones_like(F_hat)[None])[:, 0]
        white -= v**2 * c * modes.h * line.end(self.gV[:-1] ** 2, pushes[None])[:, 0]
        shared = told @ targets + self._shared() @ (modes.rho * modes.h * state.n)
        return np.asarray(self.G[:, -1] ** 2 * state.n + white - v**2 * c * modes.h * shared)

    def _shared(self) -> Array:
        VV, _, kV, _ = self.ends
        return np.asarray((VV**2 - self.problem.rate**2 * self.c * kV**2)[:, :-1])

    def noise_map(self) -> Array:
        """Return the matrix that takes n over one epoch, nothing else acting."""
        line, modes, v, c = self.line, self.modes, self.problem.rate, self.c
        psi = self.V[:-1] ** 2 - v**2 * c * self.gV[:-1] ** 2
        F_hat = psi + v**2 * line.conv(self.growth, psi)  # of one unit of ρhn in each mode
        fed = line.end(self.V[:-1] ** 2 - v**2 * c * self.gV[:-1] ** 2, F_hat)
        matrix = v**2 * modes.h[:, None] * (fed - c * self._shared()) * (modes.rho * modes.h)
        return np.asarray(matrix + np.diag(self.G[:, -1] ** 2))

    def at_edges(self) -> Array:
        """G₁(α)² at the edges of the spectrum."""
        h = np.array([h for h in edges(self.problem.teacher.alpha) if h])
        V = force_response(self.problem, self.line, h)
        G = V - self.problem.rate * self.c * self.line.conv(self.g1, V)
        return np.asarray(G[:, -1] ** 2)

    def settled(self) -> State:
        """Return the state that an epoch reproduces."""
        v, modes = self.problem.rate, self.modes
        moves = self.G[:, -1] < 1  # without decay the null space of H stays where it started
        mu = np.where(moves, v * self.I[:-1, -1] / np.where(moves, 1 - self.G[:, -1], 1.0), 0.0)
        source = self.epoch(State(mu, np.zeros_like(mu), 0.0)).after.n
        n = np.zeros_like(mu)
        keep = np.ix_(moves, moves)
        n[moves] = np.linalg.solve(np.eye(int(moves.sum())) - self.noise_map()[keep], source[moves])
        Q = float(modes.rho @ (modes.q / v**2 * mu**2 + n))
        return State(mu, n, Q)


def epochs_of(problem: Problem, line: Line, until: float = math.inf) -> Reshuffled:
    """Return the map of one epoch, whatever the inputs, for times up to `until`."""
    if problem.teacher.isotropic:
        return Reshuffled(problem, line)
    from manypass.exact.shuffled import Shuffled  # most problems need none of it

    return Shuffled(problem, line, until)
