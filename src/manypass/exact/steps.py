"""Adaline by batches that are drawn with replacement, a share β of the training set each.

One step of length Δ = βα takes every example a Poisson number of times, β on average, all at the
same weights. The mean takes the mean force and the scatter of these numbers is the noise, so that
the modes stay on their own, as in learning one by one, with powers for exponentials: q = 1 − xΔ,

    e_i = (1 − qⁱ)/x,   n_{i+1} = q²n_i + Δ(kF2_i + 2T),   F2_i = f₀ + Σρf u_i² + Σρhn_i.

Hebbian learning, of one mode, is the same.
"""

from __future__ import annotations

import numpy as np
import scipy  # its rooms open on first use: most answers need none of them

from manypass import orders
from manypass.checks import Array
from manypass.exact.epochs import HUGE, Index
from manypass.exact.modes import State, linear_modes
from manypass.exact.steady import edges_of, pairs, spectrum_of
from manypass.problem import Problem

MOST = 200_000  # steps


class Steps:
    """A problem's modes after so many batches."""

    C: Array  # where it is asked for

    def __init__(self, problem: Problem, t: Array) -> None:
        self.problem, self.step = problem, problem.batch_share * problem.teacher.alpha
        self.index: Index = orders.steps_by(problem, t).astype(np.int64)
        if self.index[-1] > MOST:
            raise ValueError(
                f"`times` up to {self.index[-1]} batches of `batch_share` = "
                f"{problem.batch_share:g}: at most {MOST} are followed; take earlier ones, a "
                f"larger share, or 0 for one example at a time"
            )
        self.modes = linear_modes(problem)
        self.q = 1 - self.modes.x * self.step
        self.n, F2 = self._noise()
        self.state = self._state()
        self.curves = {"R": self.modes.R(self.state), "Q": self.modes.Q(self.state), "F2": F2}

    def _state(self) -> State:
        """Return e_i and what goes with it, modes × times."""
        modes, i = self.modes, self.index
        v, x, powers = modes.v, modes.x[:, None], self.q[:, None] ** i
        e = np.where(x > 0, (1 - powers) / np.where(x > 0, x, 1.0), i * self.step) * v
        end = modes.u_end[:, None]
        w = v * (1 - end) * self.step * i * self.q[:, None] ** np.maximum(i - 1, 0) + end * e
        time = np.outer([v, v * modes.decay], i * self.step)
        return State(e, end + (1 - end) * powers, powers, self.n, w, time)

    def _noise(self) -> tuple[Array, Array]:
        modes, step = self.modes, self.step
        n, out = np.zeros_like(modes.x), np.zeros((modes.x.size, self.index.size))
        F2s, power = np.full(self.index.size, np.inf), np.ones_like(n)
        weight, goes, loud = modes.targets, 1 - modes.u_end, modes.rho * modes.h
        for i in range(int(self.index[-1]) + 1):
            F2 = modes.f0 + weight @ (modes.u_end + goes * power) ** 2 + loud @ n
            here = self.index == i
            out[:, here], F2s[here] = n[:, None], F2
            if not F2 < HUGE:
                out[:, self.index > i] = np.inf
                break
            n = self.q**2 * n + step * (modes.k * F2 + modes.heat)
            power = power * self.q
        return out, F2s

    def two_time(self) -> tuple[Array, Array]:
        """C(t,s), and G(t,s) for t ≥ s, else 0."""
        modes = self.modes
        lag = self.index[:, None] - self.index
        first = np.minimum(*np.indices(lag.shape))
        C, G = np.empty(lag.shape), np.empty(lag.shape)
        for i in range(len(lag)):
            fall = self.q[:, None] ** np.abs(lag[i]) * modes.S[:, None]
            C[i], G[i] = np.sum(fall * self.n[:, first[i]], axis=0), fall.sum(axis=0)
        return C + modes.mean_C(self.state), np.tril(G)


def stationary(problem: Problem, window: float) -> dict[str, float]:
    """R, Q and F2 for t → ∞; weights averaged over the batches in a window."""
    step, modes = problem.batch_share * problem.teacher.alpha, linear_modes(problem).driven
    q = 1 - modes.x * step
    loose = step / (1 - q**2)  # of what one step brings, this much stays
    still = modes.f0 + modes.targets @ modes.u_end**2
    still += (modes.rho * modes.h * modes.heat) @ loose
    F2 = still / (1 - (modes.rho * modes.h * modes.k) @ loose)
    n = loose * (modes.k * F2 + modes.heat)
    count = int(orders.steps_by(problem, np.array([window]))[0])
    kept = (1 + 2 * q * pairs(q, count) / count) / count if count else 1.0
    Q = modes.mean_Q(modes.end)[0] + modes.S @ (n * kept)
    return {"R": float(modes.R(modes.end)[0]), "Q": float(Q), "F2": float(F2)}


def critical_rate(problem: Problem) -> float:
    """v_c: where v²Σρh²Δ/(1 − q²) = 1, or where q = −1 at the upper edge if that comes first."""
    step, law = problem.batch_share * problem.teacher.alpha, spectrum_of(problem)
    h, rho = law.h[law.h > 0], law.rho[law.h > 0]
    total = problem.decay + h

    def left(v: float) -> float:
        """1 − v Σρh²/((h + λ)(2 − v(h + λ)Δ))."""
        return 1 - float(v * rho @ (h**2 / (total * (2 - v * total * step))))

    most = 2 / (step * (problem.decay + edges_of(problem.teacher.inputs, problem.teacher.alpha)[1]))
    if left(most) > 0:
        return most
    return float(scipy.optimize.brentq(left, 1e-12 * most, most))


def growth(problem: Problem) -> float:
    """By what factor one step multiplies the slowest of the noise; 1 at the critical rate."""
    step, modes = problem.batch_share * problem.teacher.alpha, linear_modes(problem)
    seen = modes.h > 0
    h, rho, x = modes.h[seen], modes.rho[seen], modes.x[seen]
    root = np.sqrt(rho) * h * problem.rate  # symmetric: k = v²h
    matrix = np.diag((1 - x * step) ** 2) + step * np.outer(root, root)
    low_high = edges_of(problem.teacher.inputs, problem.teacher.alpha)
    at_edges = problem.rate * (problem.decay + np.array(low_high))
    return max(float(np.linalg.eigvalsh(matrix)[-1]), float(np.max((1 - at_edges * step)[1:] ** 2)))
