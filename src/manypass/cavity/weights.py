"""J as examples see it: in components that share an eigenvalue μ of the inputs' covariance.

h = R y + Σ_c A_c z_c is a vector J·(y, z). Its parts with different μ relax at different rates, so
that J lives in more directions than h has shown: q_y of the teacher and q_c, one for each z_c, are
those that were seen. What has not been seen yet at time t makes the new normal of h(t). With
E_c = ⟨F z_c⟩, Gaussian integration by parts gives the mean force on every component,

    dJ/dt = −vλJ + vμ[⟨yF⟩ q_y + Σ_c E_c q_c] + √(wμ²) ζ + √(wμ) η,    R = J·q_y,    A_c = J·q_c

with the pushes ζ of all other examples and heat η. One example's own force comes back through
Ḡ = Σwμ G_k, of which Σ_c Ḡ_c L_cd = Σ_k √w_k J_kd. Without correlations there is one component
for the teacher and one for every push: q_c are these themselves, and J is R and A.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from manypass.cavity.moments import FAST
from manypass.checks import Array
from manypass.compiling import njit
from manypass.inputs import Inputs

CLOSE = 1e-5  # error of sums over eigenvalues, relative to their largest value
MOST = 40  # nodes


class Few(NamedTuple):
    """Few eigenvalues that stand for a law: nodes of Σwμ f(μ) and of ΣP f(μ), and their error."""

    mu: Array
    w_mu: Array
    mu_P: Array
    P: Array
    error: float


@lru_cache(maxsize=64)
def few(inputs: Inputs) -> Few:
    """Return nodes with which sums over all relaxations e^{−μs} are right to `CLOSE`.

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
    *seen, wrong = gauss(mu, w * mu)
    *taught, also = gauss(mu[power], P[power])
    return Few(*seen, *taught, max(wrong, also))


def gauss(mu: Array, weight: Array) -> tuple[Array, Array, float]:
    """Gauss nodes in log μ of a measure, as many as relaxations need, and the error left."""
    s = np.concatenate([[0.0], np.geomspace(1e-3 / mu[-1], 30 / mu[0], 100)])

    def sums(at: Array, by: Array) -> Array:
        fading = np.exp(-np.outer(s, at))
        return np.array([fading @ (by * at**power) for power in (-1, 0, 1)])

    right = sums(mu, weight)
    for count in range(1, min(mu.size, MOST + 1)):
        log_mu, by = lanczos(np.log(mu), weight, count)
        nodes = np.exp(log_mu)
        error = float((np.abs(sums(nodes, by) - right) / right[:, :1]).max())
        if error <= CLOSE:
            return nodes, by, error
    return (mu, weight, 0.0) if mu.size <= MOST else (nodes, by, error)


def lanczos(x: Array, weight: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss's rule for a sum of atoms."""
    a, b = np.zeros(count), np.zeros(count)
    basis = [np.sqrt(weight / weight.sum())]
    for i in range(count):
        z = x * basis[i]
        a[i] = basis[i] @ z
        known = np.array(basis)
        for _ in range(2):
            z = z - known.T @ (known @ z)
        b[i] = math.sqrt(float(z @ z))
        basis.append(z / max(b[i], 1e-300))
    nodes, turn = np.linalg.eigh(np.diag(a) + np.diag(b[:-1], 1) + np.diag(b[:-1], -1))
    return nodes, weight.sum() * turn[0] ** 2


class Weights:
    """J, q_y and all q_c; components are those of the teacher, then those of each push.

    `V` has the rows J, q_y, q_0, q_1, ... Heat is a push like others if all of them relax alike,
    else it has components of its own.
    """

    def __init__(self, inputs: Inputs, heat: bool) -> None:
        mu, w_mu, mu_P, P, _ = few(inputs)
        self.single, self.known = mu.size == mu_P.size == 1, P.size
        self.apart = heat and not self.single
        kinds, none = 1 + self.apart, np.zeros(mu.size)
        self.block = kinds * mu.size
        self.force = np.append(np.sqrt(w_mu * mu), none)[: self.block]
        self.heat = np.append(none, np.sqrt(w_mu))[-self.block :]
        self.seen = np.append(np.sqrt(w_mu / mu), none)[: self.block]
        self.start = self.seen / math.sqrt(float(self.seen @ self.seen))
        self.mu = np.concatenate([mu_P, np.tile(mu, kinds * 16)])
        self.V = np.zeros((18, self.mu.size))
        self.V[1, : self.known] = np.sqrt(P)
        self.now = self.V[0].copy()

    @property
    def R(self) -> float:
        """Overlap with the teacher."""
        return float(self.V[0] @ self.V[1])

    def own(self, count: int) -> Array:
        """Σ_k √w_k J_k of every push: what comes back to an example of its own force."""
        return self.V[0, self.known : self._width(count)].reshape(count, self.block) @ self.seen

    def append(self, n: int) -> None:
        """Make room for push n and what will be seen of it."""
        if n + 2 == len(self.V):
            more = len(self.V) // 2
            self.mu = np.append(self.mu, np.tile(self.mu[-self.block :], more))
            self.V = np.pad(self.V, ((0, more), (0, more * self.block)))
        self.V[:, self._width(n) : self._width(n + 1)] = 0.0
        self.V[n + 2] = 0.0
        self.now = self.V[0].copy()

    def place(self, n: int, size: float) -> None:
        """Add weights that have the same size in all directions, as a push of their own."""
        here = slice(self._width(n), self._width(n + 1))
        self.V[0, here], self.V[n + 2, here] = size * self.start, self.start

    def fresh(self, push: float, heat: float) -> Array:
        """What is new in a step, by component."""
        return push * self.force + math.sqrt(heat) * self.heat

    def advance(self, step: Any, now: Array, then: Array, push: Array, heat: float) -> Array:
        """Take a step from `now`; returns A.

        The step is vΔ, λ and the mean slope m of F on h, whose part is integrated exactly; `now`
        and `then` are the rest of ⟨yF⟩ and ⟨F z_c⟩ at both ends.
        """
        return np.asarray(advanced(self.V, self.now, step, (now, then), (push, heat), self._parts))

    def leap(self, step: Any, drive: Array, push: Array, heat: float) -> Array:
        """J ← (1 − vΔλ)J + vΔμ[mJ + ⟨yF⟩ q_y + Σ E q] + push, a batch; returns A."""
        return np.asarray(leapt(self.V, self.now, step, drive, (push, heat), self._parts))

    def unite(self, a: int, n: int, turn: Array) -> None:
        """Of the pushes a, a + 1, a + 2 and what was seen of them make two."""
        turned(self.V, a, n, turn, self.known, self.block)

    @property
    def _parts(self) -> Any:
        return self.mu, self.known, self.force, self.heat

    def _width(self, count: int) -> int:
        return self.known + count * self.block


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
def advanced(V, now, step, drives, pushes, parts):  # type: ignore[no-untyped-def]
    """`Weights.advance`."""
    (size, decay, m), (first, last), (push, heat) = step, drives, pushes
    mu, known, force, hot = parts
    n, block = push.size - 1, force.size
    begin, new = known + n * block, push[n] * force + math.sqrt(heat) * hot
    if not V[n + 2, begin : begin + block].any():  # at first all that is seen is what is new
        V[n + 2, begin : begin + block] = new / max(math.sqrt((new**2).sum()), 1e-300)
    J, late = np.zeros((2, begin + block))
    for c in range(n + 2):
        for i in range(J.size):
            J[i] += first[c] * V[c + 1, i]
            late[i] += last[c] * V[c + 1, i]
    for i in range(J.size):
        q = size * (decay - m * mu[i])
        keep, a, b = line_weights(q)
        J[i] = keep * now[i] + size * mu[i] * (a * J[i] + b * late[i])
        if i >= begin:  # what is independent within the step comes through in mean square
            _, a, b = line_weights(2 * q)
            J[i] += math.sqrt(a + b) * new[i - begin]
        elif i >= known:
            J[i] += (a + b) * push[(i - known) // block] * force[(i - known) % block]
    return seen(V, J, n, new)


@njit(**FAST)
def leapt(V, now, step, drive, pushes, parts):  # type: ignore[no-untyped-def]
    """`Weights.leap`."""
    (size, decay, m), (push, heat) = step, pushes
    mu, known, force, hot = parts
    n, block = push.size - 1, force.size
    begin, new = known + n * block, push[n] * force + math.sqrt(heat) * hot
    J = np.zeros(begin + block)
    for c in range(n + 2):
        for i in range(J.size):
            J[i] += drive[c] * V[c + 1, i]
    for i in range(J.size):
        J[i] = (1 - size * decay) * now[i] + size * mu[i] * (m * now[i] + J[i])
        if i >= begin:
            J[i] += new[i - begin]
        elif i >= known:
            J[i] += push[(i - known) // block] * force[(i - known) % block]
    return seen(V, J, n, new)


@njit(**FAST)
def seen(V, J, n, new):  # type: ignore[no-untyped-def]
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


@njit(**FAST)
def turned(V, a, n, turn, known, block):  # type: ignore[no-untyped-def]
    """Turn three pushes into two, and three rows of what was seen; those behind move up."""
    for row in V[: n + 2]:
        for k in range(block):
            i = known + a * block + k
            x, y, w = row[i], row[i + block], row[i + 2 * block]
            row[i] = turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * w
            row[i + block] = turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * w
        for i in range(known + (a + 2) * block, known + (n - 1) * block):
            row[i] = row[i + block]
    for i in range(known + (n - 1) * block):
        x, y, w = V[a + 2, i], V[a + 3, i], V[a + 4, i]
        V[a + 2, i] = turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * w
        V[a + 3, i] = turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * w
        for c in range(a + 4, n + 1):
            V[c, i] = V[c + 1, i]
