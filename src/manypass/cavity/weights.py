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
        log_mu, by = lanczos(np.log(mu), weight, count)
        nodes = np.exp(log_mu)
        error = float((np.abs(sums(nodes, by) - right) / right[:, :1]).max())
        if error <= close:
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
    """J, the directions q in which it was seen, and those in which forces push it.

    Rows of `V` are J, q_y, q_0, q_1, ..., rows of `P` the pushes of unit e_0, e_1, ... Components
    are those of the teacher, then some for each step, or, if all of J relaxes alike, one for each
    cell of the past. Heat is then a push like others, else it is `apart`, in components of its own.
    """

    def __init__(self, inputs: Inputs, heat: bool) -> None:
        mu, w_mu, mu_y, power, _ = few(inputs)
        self.known, self.steps = mu_y.size, 0
        self.alike = mu.size == mu_y.size == 1  # all of J relaxes alike
        self.apart = heat and not self.alike
        kinds, none = 1 + self.apart, np.zeros(mu.size)
        self.block = kinds * mu.size
        self.force = np.append(np.sqrt(w_mu * mu), none)[: self.block]
        self.heat = np.append(none, np.sqrt(w_mu))[-self.block :]
        start = np.append(np.sqrt(w_mu / mu), none)[: self.block]
        self.start = start / math.sqrt(float(start @ start))
        self.mu = np.concatenate([mu_y, np.tile(mu, kinds * 16)])
        self.V, self.P = np.zeros((18, self.mu.size)), np.zeros((16, self.mu.size))
        self.V[1, : self.known] = np.sqrt(power)
        self.now = self.V[0].copy()

    @property
    def R(self) -> float:
        """Overlap with the teacher."""
        return float(self.V[0] @ self.V[1])

    def own(self, count: int) -> Array:
        """Σ_k √w_k J_k of every push: what comes back to an example of its own force."""
        return np.asarray(self.P[:count] @ (self.V[0] / self.mu))

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
        self.P[n, begin : self._end], self.now = self.force, self.V[0].copy()

    def place(self, n: int, size: float) -> None:
        """Add weights that have the same size in all directions, as a push of their own."""
        here = slice(self._end - self.block, self._end)
        self.V[0, here], self.V[n + 2, here] = size * self.start, self.start

    def fresh(self, push: float, heat: float) -> Array:
        """Return what is new in a step, by component."""
        return push * self.force + math.sqrt(heat) * self.heat

    def advance(self, step: Any, now: Array, then: Array, push: Array, heat: float) -> Array:
        """Take a step from `now`; returns A.

        The step is vΔ, λ and the mean slope m of F on h, whose part is integrated exactly; `now`
        and `then` are the rest of ⟨yF⟩ and ⟨F z_c⟩ at both ends.
        """
        new, past = self.fresh(push[-1], heat), (self.V, self.P, self.now, self.mu)
        begin = self._end - self.block
        return np.asarray(advanced(past, step, (now, then), push[:-1], new, begin))

    def leap(self, step: Any, drive: Array, push: Array, heat: float) -> Array:
        """J ← (1 − vΔλ)J + vΔμ[mJ + ⟨yF⟩ q_y + Σ E q] + push, a batch; returns A."""
        new, past = self.fresh(push[-1], heat), (self.V, self.P, self.now, self.mu)
        begin = self._end - self.block
        return np.asarray(leapt(past, step, drive, push[:-1], new, begin))

    def seen(self, a: int) -> Array:
        """Return the pushes of e_a, e_{a+1} and e_{a+2} in terms of z_a, z_{a+1} and z_{a+2}."""
        return np.asarray(self.P[a : a + 3] @ self.V[a + 2 : a + 5].T)

    def unite(self, a: int, n: int, turn_z: Array, turn_e: Array) -> None:
        """Of what was seen of three pushes make two, and two of the pushes.

        J stays what it is, unless all of it relaxes alike: what is then given up is nothing else.
        """
        fold(self.V[2:].T, a, n, turn_z)
        fold(self.P.T, a, n, turn_e)
        if self.alike:
            fold(self.V, a + 1, n + 1, turn_e)
            fold(self.P, a + 1, n + 1, turn_e)
            self.steps -= 1

    def drop(self) -> None:
        """Forget the last push: there was none."""
        self.steps -= 1

    @property
    def _end(self) -> int:
        """How many components there are."""
        return self.known + self.steps * self.block


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
def added(total, factors, rows):  # type: ignore[no-untyped-def]
    """Add a sum of rows."""
    for c in range(factors.size):
        for i in range(total.size):
            total[i] += factors[c] * rows[c, i]


@njit(**FAST)
def advanced(past, step, drives, push, new, begin):  # type: ignore[no-untyped-def]
    """`Weights.advance`, given what is new in the step and where its components begin."""
    (V, P, before, mu), (size, decay, m), (first, last) = past, step, drives
    n, end = push.size, begin + new.size
    if not V[n + 2, begin:end].any():  # at first all that is seen is what is new
        V[n + 2, begin:end] = new / max(math.sqrt((new**2).sum()), 1e-300)
    J, late, pushed = np.zeros((3, end))
    added(J, first, V[1:])
    added(late, last, V[1:])
    added(pushed, push, P)
    for i in range(end):
        q = size * (decay - m * mu[i])
        keep, a, b = line_weights(q)
        J[i] = keep * before[i] + size * mu[i] * (a * J[i] + b * late[i]) + (a + b) * pushed[i]
        if i >= begin:  # what is independent within the step comes through in mean square
            _, a, b = line_weights(2 * q)
            J[i] += math.sqrt(a + b) * new[i - begin]
    return see(V, J, n, new)


@njit(**FAST)
def leapt(past, step, drive, push, new, begin):  # type: ignore[no-untyped-def]
    """`Weights.leap`, given what is new in the step and where its components begin."""
    (V, P, before, mu), (size, decay, m) = past, step
    J, pushed = np.zeros((2, begin + new.size))
    added(J, drive, V[1:])
    added(pushed, push, P)
    for i in range(J.size):
        drift = mu[i] * (m * before[i] + J[i]) - decay * before[i]
        J[i] = before[i] + size * drift + pushed[i]
    J[begin:] += new
    return see(V, J, push.size, new)


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


@njit(**FAST)
def fold(columns, a, n, turn):  # type: ignore[no-untyped-def]
    """Turn columns a, a + 1, a + 2 of n into two; those behind move up."""
    for row in columns:
        x, y, w = row[a], row[a + 1], row[a + 2]
        row[a] = turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * w
        row[a + 1] = turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * w
        for c in range(a + 2, n - 1):
            row[c] = row[c + 1]
