"""J as examples see it: what the mean-field equations are about, one step on.

h = R T⁻¹y + Σ_c A_c z_c of K units; J is R and A. With E_c = ⟨F z_cᵀ⟩, Gaussian integration by
parts gives the mean force on every component,

    dR/dt = −vλR + v⟨F yᵀ⟩,    dA_c/dt = −vλA_c + vE_c + push of all other examples.

With correlated inputs the parts of J relax at different rates: see `modes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manypass.cavity.blocks import fold
from manypass.checks import Array
from manypass.compiling import FAST, njit


class Weights:
    """J of K units where all of it relaxes alike: R, of M teachers, and A are its components.

    `now` is J when a step begins. Heat is a push like others.
    """

    apart = False

    def __init__(self, K: int, M: int) -> None:
        self.K, self.known, self.mu = K, M, np.ones(M + 16 * K)
        self.J = self.now = np.zeros((K, self.mu.size))

    @property
    def R(self) -> Array:
        """Overlaps with the teachers, K × M."""
        return self.J[:, : self.known].copy()

    def begin(self, R: Array) -> None:
        """Start with given overlaps."""
        self.J[:, : self.known] = R

    def own(self, n: int) -> Array:
        """Σ_k √w_k J_k of every push: what comes back to an example of its own force."""
        return self.J[:, self.known : self.known + n]

    def append(self, n: int) -> None:
        """Make room for the push of columns n, ... and what will be seen of it."""
        end = self.known + n + self.K
        if end > self.mu.size:
            more = self.mu.size // 2 + self.K
            self.J, self.mu = np.pad(self.J, ((0, 0), (0, more))), np.append(self.mu, np.ones(more))
        self.J[:, end - self.K :] = 0.0
        self.now = self.J.copy()

    def place(self, n: int, root: Array) -> None:
        """Add weights that have the same size in all directions, as a push of their own."""
        self.J[:, self.known + n : self.known + n + self.K] = root

    def fresh(self, push: Array, heat: float) -> Array:
        """Return what is new in a step, by component."""
        return push

    def shown(self, push: Array, heat: float) -> Array:
        """Return how much of it h will show."""
        return push

    def advance(self, step: Any, now: Array, then: Array, push: Array, heat: float) -> Array:
        """Take a step from `now`; returns A.

        The step is vΔ, λ and the mean slope m of F on h, whose part is integrated exactly; `now`
        and `then` are the rest of ⟨F yᵀ⟩ and ⟨F z_cᵀ⟩ at both ends.
        """
        new = self.fresh(push[:, -self.K :], heat)
        pushed = self._pushed(push, new)
        J = advanced(self.now, self._driven(now, then), pushed, new, self.mu, step)
        return self._see(J, new, push.shape[1] - self.K)

    def leap(self, step: Any, drive: Array, push: Array, heat: float) -> Array:
        """J ← (1 − vΔλ)J + vΔμ[mJ + ⟨yF⟩ q_y + Σ E q] + push, a batch; returns A."""
        (size, decay, m), new = step, self.fresh(push[:, -self.K :], heat)
        J, (drive,) = self._pushed(push, new), self._driven(drive)
        end = J.shape[1]
        now, mu = self.now[:, :end], self.mu[:end]
        J += now + size * (mu * (m * now + drive) - decay * now)
        J[:, end - new.shape[1] :] += new
        return self._see(J, new, push.shape[1] - self.K)

    def unite(self, a: int, n: int, turn_z: Array, turn_e: Array) -> None:
        """Of what was seen of three pushes make two, and two of the pushes."""
        fold(self.J, self.known + a, self.known + n, turn_e)

    def drop(self) -> None:
        """Forget the last push: there was none, and nothing is kept of it."""

    def _driven(self, *drives: Array) -> tuple[Array, ...]:
        """Turn what is along q_y, q_0, ... into components."""
        return drives

    def _pushed(self, push: Array, new: Array) -> Array:
        """Turn the part of a push that is not new into components."""
        out = np.zeros((self.K, self.known + push.shape[1]))
        out[:, self.known : -self.K] = push[:, : -self.K]
        return out

    def _see(self, J: Array, new: Array, n: int) -> Array:
        """Set J; returns A."""
        self.J[:, : J.shape[1]] = J
        return J[:, self.known :]


@njit(**FAST)
def line_weights(q):  # type: ignore[no-untyped-def]
    """e^{−q} and the weights of both ends of a line f in ∫₀¹ e^{−q(1−s)} f(s) ds."""
    if abs(q) < 1e-3:
        whole, end = 1 - q / 2 + q * q / 6, 0.5 - q / 6 + q * q / 24
    else:
        whole = -math.expm1(-q) / q
        end = (1 - whole) / q
    return math.exp(-q), whole - end, end


@njit(**FAST)
def advanced(before, drives, push, new, mu, step):  # type: ignore[no-untyped-def]
    """J a step on, by component, of which the last are those of what is new."""
    (first, last), (size, decay, m) = drives, step
    K, end = first.shape
    J = np.empty((K, end))
    for i in range(end):
        q = size * (decay - m * mu[i])
        keep, a, b = line_weights(q)
        for k in range(K):
            drive = a * first[k, i] + b * last[k, i]
            J[k, i] = keep * before[k, i] + size * mu[i] * drive + (a + b) * push[k, i]
        own = i - end + new.shape[1]
        if own >= 0:  # what is independent within the step comes through in mean square
            _, a, b = line_weights(2 * q)
            for k in range(K):
                J[k, i] += math.sqrt(a + b) * new[k, own]
    return J
