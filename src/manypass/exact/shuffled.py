"""Reshuffled epochs of correlated inputs: the map of `reshuffled` where test and training differ.

One pass is learned at the rates v(λ + μ) of Σ, e_μ(τ) = e^{−v(λ+μ)τ}: an example feels what it was
taught through g₁ = Σwμ e_μ, and what others were taught through e_μ ⊗ e_μ. With D₁ = (1 − vc g₁)⁻¹

    V = D₁G₁ = [1 − vc g₁ + vh e₀]⁻¹ e₀
    ⟨F̂F̂′⟩ = Ψ + Σwμ² e_μ[v²F̂2]e_μᵀ + Σwμ e_μ[2T]e_μᵀ,    Ψ = M − v²c Σwμ² e_μ M e_μᵀ
    M = f₀U₀U₀′ + Σ(a²θ + σρ) UU′ + Σρhn VV′
    F2 = F̂2 − 2vc∫g₁(t−u)⟨F̂(t)F̂(u)⟩du + v²c∫g₁²F̂2
    n(t) = G₁²n + v²h V⊗V[F̂2δ − c⟨F̂F̂′⟩] + 2T G₁⊗G₁[δ]

at all times of an epoch, since a test sees the mean m and the noise n of every mode through Σ, as
in `tested`; the slopes ∂m/∂h it needs there are followed too. For Σ = 1 all this is `reshuffled`.
"""

from __future__ import annotations

import math

import numpy as np

from manypass.checks import Array
from manypass.exact.correlated import nodes
from manypass.exact.lines import Line
from manypass.exact.modes import State as Seen
from manypass.exact.reshuffled import Course, Reshuffled, State
from manypass.exact.steady import edges_of
from manypass.problem import Problem

PAIRS = ((0, 0), (0, 1), (1, 1))


class Shuffled(Reshuffled):
    """The map of one epoch of correlated inputs, on a line."""

    def __init__(self, problem: Problem, line: Line, until: float = math.inf) -> None:
        super().__init__(problem, line, until)
        v, c, h, V, A = problem.rate, self.c, self.modes.h, self.V[:-1], self._parts
        rates = v * (problem.decay + self.mu)
        self.felt, self.heard = self.w * self.mu, self.w * self.mu**2
        self.e = np.array([line.decay(rate) for rate in rates])
        self.e_op = [operator(line, line.kernel(rate)) for rate in rates]
        self.squares = np.array([operator(line, line.kernel(self._square(r))) for r in rates])
        self.feedback = np.eye(line.n + 1) - v**2 * np.tensordot(self.heard, self.squares, 1)
        # Of two of the parts V and ∫V of a force: M − v²c Σwμ² e_μMe_μᵀ at equal times, and what
        # V makes of it by the end. What n hears of a force at a lag: its own push, less what the
        # others' pushes tell of it
        self.equal = [A[i] * A[j] for i, j in PAIRS]
        ends = [line.end(V, x) for x in A]
        self.at_end = [ends[i] * ends[j] for i, j in PAIRS]
        self.white, self.warm = V**2, self.G**2
        for felt, heard, op in zip(self.felt, self.heard, self.e_op, strict=True):
            pushed, fed = [x @ op.T for x in A], -(v**2) * c * heard
            ends = [line.end(pushed[0][:-1], x) for x in A]
            self.white = self.white + fed * pushed[0][:-1] ** 2
            self.warm = self.warm - v**2 * c * felt * h[:, None] * pushed[0][:-1] ** 2
            for pair, (i, j) in enumerate(PAIRS):
                self.equal[pair] = self.equal[pair] + fed * pushed[i] * pushed[j]
                self.at_end[pair] = self.at_end[pair] + fed * ends[i] * ends[j]
        self.white = v**2 * h[:, None] * self.white

    @property
    def _parts(self) -> tuple[Array, Array]:
        return self.V, self.problem.rate * self.problem.decay * self.I

    def _prepare(self) -> None:
        """V, G₁ and ∫V, and their slopes in h."""
        problem, line, v, c = self.problem, self.line, self.problem.rate, self.c
        fresh = nodes(problem.teacher.inputs, math.inf)
        self.mu, self.w = fresh.h, fresh.rho
        rates = v * (problem.decay + self.mu)
        kernels = np.array([line.kernel(rate) for rate in rates])
        self.g1 = np.tensordot(self.w * self.mu, kernels, 1)
        rest, self.sum = line.kernel(v * problem.decay), line.kernel(0.0)
        h = np.append(self.modes.h, 0.0)
        self.V_op = self._responses(h, operator(line, rest))
        self.V = self._responses(h, line.decay(v * problem.decay)[:, None])[..., 0]
        slope = -v * np.einsum("hij,hj->hi", self.V_op, self.V)[:-1]
        self.I, self.I_slope = (line.conv(self.sum, x) for x in (self.V, slope))
        gV, g_slope = (line.conv(self.g1, x) for x in (self.V, slope))
        self.G, self.G_slope = (self.V - v * c * gV)[:-1], slope - v * c * g_slope

    def _responses(self, h: Array, push: Array) -> Array:
        """[1 − vc g₁ + vh e₀]⁻¹ of a push, for every h."""
        line, v = self.line, self.problem.rate
        rest = operator(line, line.kernel(v * self.problem.decay))
        one = np.eye(line.n + 1) - v * self.c * operator(line, self.g1)
        return np.array([np.linalg.solve(one + v * each * rest, push) for each in h])

    def start(self) -> State:
        """J = 0."""
        none = np.zeros_like(self.modes.h)
        return State(none, none, 0.0, none)

    def epoch(self, state: State) -> Course:
        """Follow one epoch to its end."""
        line, modes, v = self.line, self.modes, self.problem.rate
        weights = self._weights(state)
        loud = np.append(modes.rho * modes.h * state.n, 0.0)
        psi = sum(w @ part for w, part in zip(weights, self.equal, strict=True))
        psi = psi + loud @ self.equal[0] + self.felt @ self._warmth()
        F_hat = np.asarray(np.linalg.solve(self.feedback, psi), float)
        told = sum(part @ w for w, part in zip(weights, self.at_end, strict=True))
        told = told + self.at_end[0] @ loud
        n = self.G[:, -1] ** 2 * state.n - v**2 * self.c * modes.h * told
        n = n + line.end(self.white, F_hat[None])[:, 0]
        n = n + modes.heat * line.end(self.warm, np.ones_like(F_hat)[None])[:, 0]
        m, slope = self._means(state)
        Q = float(modes.Q(self._seen(m[:, -1:], slope[:, -1:], n[:, None]))[0])
        after = State(m[:, -1], n, Q, slope[:, -1])
        return Course(state, after, lambda: self._look(state, F_hat))

    def _weights(self, state: State) -> tuple[Array, Array, Array]:
        """Of the three pairs of parts of all forces U = (1 − hμ)V + vλ∫V in M."""
        modes = self.modes
        unlearned = np.append(1 - modes.h * state.mu, 1.0)
        targets = np.append(modes.targets, modes.f0)
        return targets * unlearned**2, 2 * targets * unlearned, targets

    def _warmth(self) -> Array:
        """∫e_μ² 2T, of every μ."""
        return np.asarray(self.modes.heat * self.squares.sum(axis=2))

    def _means(self, state: State) -> tuple[Array, Array]:
        """Return m and its slope all along."""
        v, mu, slope = self.problem.rate, state.mu[:, None], state.slope[:, None]
        m = self.G * mu + v * self.I[:-1]
        return m, self.G_slope * mu + self.G * slope + v * self.I_slope

    def _look(self, state: State, F_hat: Array) -> tuple[Array, Array, Array]:
        """R, Q and F2 all along."""
        line, modes, v, c = self.line, self.modes, self.problem.rate, self.c
        (V, late), (both, mixed, only) = self._parts, self._weights(state)
        both = both + np.append(modes.rho * modes.h * state.n, 0.0)
        M = V.T @ (both[:, None] * V) + late.T @ (only[:, None] * late)
        M = M + (half := V.T @ (mixed[:, None] / 2 * late)) + half.T
        psi = M - v**2 * c * sum(
            share * op @ M @ op.T for share, op in zip(self.heard, self.e_op, strict=True)
        )
        shrink = 1 - v * (self.problem.decay + self.mu) * line.step
        g1 = self.felt @ self.e
        noise = self.heard[:, None] * v**2 * (self.squares @ F_hat)
        noise = noise + self.felt[:, None] * self._warmth()
        cross = np.sum(operator(line, self.g1) * psi, axis=1)
        cross = cross + line.convolve(g1 * self.e * shrink[:, None], noise).sum(axis=0)
        own = line.convolve(g1[None] ** 2, F_hat[None])[0]
        F2 = F_hat - 2 * v * c * cross + v**2 * c * own
        told = np.sum(self.V_op[:-1] @ psi * self.V_op[:-1], axis=2)
        n = self.G**2 * state.n[:, None] - v**2 * c * modes.h[:, None] * told
        n = n + line.convolve(self.white, F_hat[None])
        n = n + modes.heat * line.convolve(self.warm, np.ones_like(F_hat)[None])
        seen = self._seen(*self._means(state), n)
        return modes.R(seen), modes.Q(seen), F2

    def _seen(self, m: Array, slope: Array, n: Array) -> Seen:
        """Return m and n as a state that tests understand."""
        h, none = self.modes.h[:, None], np.zeros_like(m)
        return Seen(m, 1 - h * m, none, n, m + h * slope, np.zeros((2, m.shape[1])))

    def overlap(self, mu: Array) -> Array:
        """R of an epoch that starts with μ."""
        m = self.G * mu[:, None] + self.problem.rate * self.I[:-1]
        return np.asarray(self.modes.R(self._seen(m, 0 * m, 0 * m)))

    def noise_map(self) -> Array:
        """Return the matrix that takes n over one epoch, nothing else acting."""
        modes, v = self.modes, self.problem.rate
        F_hat = np.linalg.solve(self.feedback, self.equal[0][:-1].T)  # of one ρhn in each mode
        matrix = self.line.end(self.white, np.asarray(F_hat.T, float))
        matrix = matrix - v**2 * self.c * modes.h[:, None] * self.at_end[0][:, :-1]
        return np.asarray(matrix * (modes.rho * modes.h) + np.diag(self.G[:, -1] ** 2))

    def settled(self) -> State:
        """Return the state that an epoch reproduces."""
        v, end = self.problem.rate, self.G[:, -1]
        moves = end < 1  # without decay the null space of H stays where it started
        gap = np.where(moves, 1 - end, 1.0)
        mu = np.where(moves, v * self.I[:-1, -1] / gap, 0.0)
        slope = np.where(moves, (v * self.I_slope[:, -1] + self.G_slope[:, -1] * mu) / gap, 0.0)
        source = self.epoch(State(mu, np.zeros_like(mu), 0.0, slope)).after.n
        n = np.zeros_like(mu)
        keep = np.ix_(moves, moves)
        n[moves] = np.linalg.solve(np.eye(int(moves.sum())) - self.noise_map()[keep], source[moves])
        seen = self._seen(*(x[:, None] for x in (mu, slope, n)))
        return State(mu, n, float(self.modes.Q(seen)[0]), slope)

    def at_edges(self) -> Array:
        """G₁(α)² at the edges of the spectrum."""
        problem, line = self.problem, self.line
        h = np.array([h for h in edges_of(problem.teacher.inputs, problem.teacher.alpha) if h])
        V = self._responses(h, line.decay(problem.rate * problem.decay)[:, None])[..., 0]
        return np.asarray((V - problem.rate * self.c * line.conv(self.g1, V))[:, -1] ** 2)


def operator(line: Line, kernel: Array) -> Array:
    """Return the matrix of a convolution with a kernel of the line."""
    return np.asarray(line.conv(kernel, np.eye(line.n + 1)).T)
