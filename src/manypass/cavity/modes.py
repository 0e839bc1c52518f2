"""J as examples see it: in components that share an eigenvalue μ of the inputs' covariance.

h = R y + Σ_c A_c z_c is a vector J·(y, z). Its parts with different μ relax at different rates, so
that J lives in more directions than h has shown: q_y of the teacher and q_c, one for each z_c, are
those that were seen. What has not been seen yet at time t makes the new normal of h(t). With
E_c = ⟨F z_c⟩, Gaussian integration by parts gives the mean force on every component,

    dJ/dt = −vλJ + vμ[⟨yF⟩ q_y + Σ_c E_c q_c] + √(wμ²) ζ + √(wμ) η,    R = J·q_y,    A_c = J·q_c

with the pushes ζ of all other examples and heat η. One example's own force comes back through
Ḡ = Σwμ G_k, of which Σ_c Ḡ_c L_cd = Σ_k √w_k J_kd. Without correlations there is one component
for the teacher and one for every push: q_c are these themselves, and J is R and A: see `weights`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manypass.cavity.blocks import fold
from manypass.cavity.weights import Weights
from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.inputs import Inputs
from manypass.spectrum import lanczos

CLOSE = 1e-5  # error of sums over eigenvalues, relative to their largest value
MOST = 40  # nodes


class Few(NamedTuple):
    """Few eigenvalues that stand for a law: nodes of Σwμ f(μ) and of ΣP f(μ), and their error."""

    mu: Array
    w_mu: Array
    mu_y: Array
    P: Array
    error: float


@lru_cache(maxsize=64)
def few(inputs: Inputs, close: float = CLOSE) -> Few:
    """Return nodes with which sums over all relaxations e^{−μs} are right to `close`.

    Examples
    --------
    >>> from manypass import inputs
    >>> len(few(inputs.Isotropic()).mu), len(few(inputs.Blocks([0.3, 2.5])).mu)
    (1, 2)
    >>> len(few(inputs.PowerLaw(1.2, 1.4, 0.005)).mu) < 16
    True
    """
    mu, w, P = inputs.law(1.0)
    power = P > 0
    seen, w_mu, wrong = gauss(mu, w * mu, close)
    taught, P, also = gauss(mu[power], P[power], close)
    return Few(seen, w_mu, taught, P, max(wrong, also))


def gauss(mu: Array, weight: Array, close: float) -> tuple[Array, Array, float]:
    """Gauss nodes in log μ of a measure, as many as relaxations need, and the error left."""
    s = np.concatenate([[0.0], np.geomspace(1e-3 / mu[-1], 30 / mu[0], 100)])

    def sums(at: Array, by: Array) -> Array:
        fading = np.exp(-np.outer(s, at))
        return np.array([fading @ (by * at**power) for power in (-1, 0, 1)])

    right = sums(mu, weight)
    for count in range(1, min(mu.size, MOST + 1)):
        log_mu, turn, _ = lanczos(np.log(mu), weight, count)
        nodes, by = np.exp(log_mu), weight.sum() * turn[0] ** 2
        error = float((np.abs(sums(nodes, by) - right) / right[:, :1]).max())
        if error <= close:
            return nodes, by, error
    return (mu, weight, 0.0) if mu.size <= MOST else (nodes, by, error)


class Modes(Weights):
    """J of one unit, the directions q in which it was seen, and those in which forces push it.

    Rows of `V` are J, q_y, q_0, q_1, ..., rows of `P` the pushes of unit e_0, e_1, ... Components
    are those of the teacher, then some for each step. Heat is `apart`, in components of its own.
    """

    def __init__(self, inputs: Inputs, heat: bool) -> None:
        mu, w_mu, mu_y, power, _ = few(inputs)
        self.K, self.known, self.steps, self.apart = 1, mu_y.size, 0, heat
        kinds, none = 1 + heat, np.zeros(mu.size)
        self.block = kinds * mu.size
        self.force = np.append(np.sqrt(w_mu * mu), none)[: self.block]
        self.heat = np.append(none, np.sqrt(w_mu))[-self.block :]
        start = np.append(np.sqrt(w_mu / mu), none)[: self.block]
        self.start = start / math.sqrt(float(start @ start))
        self.mu = np.concatenate([mu_y, np.tile(mu, kinds * 16)])
        self.V, self.P = np.zeros((18, self.mu.size)), np.zeros((16, self.mu.size))
        self.V[1, : self.known] = np.sqrt(power)
        self.now = self.V[:1].copy()

    @property
    def R(self) -> Array:
        """Overlap with the teacher."""
        return np.asarray(self.V[:1] @ self.V[1])[None]

    def begin(self, R: Array) -> None:
        """Start with a given overlap."""
        self.V[0] = R[0, 0] * self.V[1]

    def own(self, n: int) -> Array:
        """Σ_k √w_k J_k of every push: what comes back to an example of its own force."""
        return np.asarray(self.P[:n] @ (self.V[0] / self.mu))[None]

    def append(self, n: int) -> None:
        """Make room for push n and what will be seen of it."""
        begin = self._end
        self.steps += 1
        more = (len(self.P) // 2 if n == len(self.P) else 0), 0
        if self._end > self.mu.size:
            more = more[0], self.steps // 2 * self.block
            self.mu = np.append(self.mu, np.tile(self.mu[-self.block :], self.steps // 2))
        if any(more):
            self.V, self.P = (
                np.pad(rows, tuple((0, m) for m in more)) for rows in (self.V, self.P)
            )
        for rows, last in ((self.V, n + 2), (self.P, n)):
            rows[:, begin:], rows[last] = 0.0, 0.0
        self.P[n, begin : self._end], self.now = self.force, self.V[:1].copy()

    def place(self, n: int, root: Array) -> None:
        """Add weights that have the same size in all directions, as a push of their own."""
        here = slice(self._end - self.block, self._end)
        self.V[0, here], self.V[n + 2, here] = root[0, 0] * self.start, self.start

    def fresh(self, push: Array, heat: float) -> Array:
        """Return what is new in a step, by component."""
        new = np.asarray(push * self.force)
        return new + math.sqrt(heat) * self.heat if heat else new

    def shown(self, push: Array, heat: float) -> Array:
        """Return how much of it h will show."""
        new = self.fresh(push, heat)
        return np.asarray(np.sqrt(new @ new.T))

    def seen(self, a: int) -> Array:
        """Return the pushes of e_a, e_{a+1} and e_{a+2} in terms of z_a, z_{a+1} and z_{a+2}."""
        return np.asarray(self.P[a : a + 3] @ self.V[a + 2 : a + 5].T)

    def unite(self, a: int, n: int, turn_z: Array, turn_e: Array) -> None:
        """Of what was seen of three pushes make two, and two of the pushes; J stays what it is."""
        fold(self.V[2:].T, a, n, turn_z)
        fold(self.P.T, a, n, turn_e)

    def drop(self) -> None:
        """Forget the last push: there was none."""
        self.steps -= 1

    def _driven(self, *drives: Array) -> tuple[Array, ...]:
        n = drives[0].shape[1]
        found = np.concatenate(drives) @ self.V[1 : 1 + n, : self._end]
        return tuple(found[i : i + 1] for i in range(len(found)))

    def _pushed(self, push: Array, new: Array) -> Array:
        n, end = push.shape[1] - 1, self._end
        seen = self.V[n + 2, end - self.block : end]
        if not seen.any():  # at first all that is seen is what is new
            seen[:] = new[0] / max(math.sqrt(float(new[0] @ new[0])), 1e-300)
        return np.asarray(push[:, :-1] @ self.P[:n, :end])

    def _see(self, J: Array, new: Array, n: int) -> Array:
        return np.asarray(see(self.V, J[0], n, new[0]))[None]

    @property
    def _end(self) -> int:
        """How many components there are."""
        return self.known + self.steps * self.block


@njit(**FAST)
def see(V, J, n, new):  # type: ignore[no-untyped-def]
    """Set J; what of it is not along q_y, ..., q_{n−1} is q_n. Returns A."""
    A, rest = np.zeros(n + 1), J.copy()
    for _ in range(2):  # a rest that is small is otherwise known up to rounding errors only
        for c in range(n + 1):
            along = 0.0
            for i in range(J.size):
                along += V[c + 1, i] * rest[i]
            for i in range(J.size):
                rest[i] -= along * V[c + 1, i]
            if c > 0:
                A[c - 1] += along
    A[n] = math.copysign(math.sqrt((rest**2).sum()), (rest[-new.size :] * new).sum())
    V[n + 2, : J.size] = rest / (A[n] if A[n] != 0 else math.inf)
    V[0, : J.size] = J
    return A
