"""Networks of K units in two layers: averages over their population.

Averages are those of F(x) − βF(h) over the population and β times those of F(h), which are known:
h is Gaussian, see `layers.averages`. The share β of F(h) that is in F(x) is measured too. Before an
example is learned x = h, and nothing is left to chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass.cavity.blocks import trace
from manypass.cavity.online import Looked
from manypass.checks import Array
from manypass.compiling import FAST, njit
from manypass.layers.averages import Averages, Fields
from manypass.problem import Problem
from manypass.simulation.layered_kernels import pulls


class Network:
    """F_k = (ỹ − σ) a_k g′(x_k), σ = Σ_k a_k g(x_k); arrays are (examples × K)."""

    edge = 0.0  # m|h| at t → 0⁺
    young = 1.0  # of ⟨F zᵀ⟩ in its first step: m is not all of the slope by which F follows h

    def __init__(self, problem: Problem, fields: Fields, examples: tuple[Array, Array]) -> None:
        self.fields, self.net, self.examples = fields, fields.net, examples
        net, (y, target), (K, M) = fields.net, examples, fields.net.units
        self.known = np.column_stack([np.ones(len(target)), y, target])
        self.shapes = {"R": (K, M), "Q": (K, K), "a": (K,)}
        self.R, self.a, self.root, self.onto = net.R.copy(), net.a.copy(), net.root, net.onto
        self.second_rate = problem.rule.second_rate  # type: ignore[attr-defined]
        self.slope = np.zeros((K, K))
        self.x = np.zeros((len(target), K), np.float32)  # in epochs: if its turn were now

    def look(self, run: Any, J: Any, own: Array, instants: Any, response: Array) -> Any:
        """Look at the population of a run, on whose way examples are learned."""
        (_, A, a), past, size = J, run.past, len(self.known)
        fields, out = self._room(past, J, own)
        (_, events, after, at_once), v_after = instants, run.pace(run.t, run.t)[0]
        new = slice(max(A.shape[1] - past.K, 0), None)
        step = events, run.v, np.ascontiguousarray(A[:, new])
        latest = at_once, np.ascontiguousarray(own[:, new]), past.e[:, new]
        present, net = (after, v_after, run.where, run.forces), (a, self.net.kind)
        fields, target = (*fields, self.x), self.examples[1]
        F, left = look(fields, target, net, step, latest, response, present, out)
        m, one, E, P = self._averages(past, J, *out)
        FH, share = out[1], shared(F, out[1]) ** 2
        square = float(np.vdot(F, F) - share * np.vdot(FH, FH)) / size
        one.F2 = square + share * self.squared
        one.Et = self._missed(left, out[4], one.Et)
        return m, one, E, P, run.forces_on(events.often > 0, new.start)

    def rise(self, m: float) -> Array:
        """Slope of F, beyond m, before it was ever seen."""
        return self.slope - m * np.eye(len(self.slope))

    def ended(self, learned: Any) -> None:
        """End an epoch."""

    def _room(self, past: Any, J: Any, own: Array) -> Any:
        """Activations x and h of all examples, and room for forces and errors at both."""
        (R, A, _), n = J, J[1].shape[1]
        H = (self.examples[0] @ (R @ self.onto).T).astype(np.float32)
        H += past.z[:, :n] @ A.T.astype(np.float32)
        X = H + past.e[:, :n] @ own.T.astype(np.float32)
        (F, FH), (g, g_h) = np.empty((2, *H.shape), np.float32), np.empty((2, *H.shape))
        left, left_h = np.empty((2, len(H)))
        return (X, H), (F, FH, left, g, left_h, g_h)

    def _known(self, J: Any) -> Averages:
        """Averages of F at h; keeps their mean slope and their square."""
        R, A, a = J
        Q = R @ self.onto @ R.T + A @ A.T
        known = self.fields.at(R, Q, a)
        self.slope, self.squared = known.slope(self.net, R, Q), trace(known.FF)
        return known

    def _averages(
        self, past: Any, J: Any, F: Any, FH: Any, left: Any, g: Any, left_h: Any, g_h: Any
    ) -> Any:
        """Return m and what else drives; Et is that of h."""
        (R, A, _), known, (size, K) = J, self._known(J), F.shape
        n, share, part = A.shape[1], shared(F, FH), shared(left, left_h)
        rest = F - np.float32(share) * FH
        D = rest.T @ self.examples[0] / size + share * known.FY
        FF = (F.T @ F - share**2 * FH.T @ FH).astype(float) / size + share**2 * known.FF
        E = (rest.T @ past.z[:, :n]).astype(float) / size + share * self.slope @ A
        P = (F.T @ past.e[:, :n]).astype(float) / size
        second = (left @ g - part * left_h @ g_h) / size + part * known.second
        m = share * trace(self.slope) / K
        return m, Looked(D - m * R, FF, second, 0.0, known.error), E - m * A, P

    def _missed(self, left: Array, left_h: Array, known: float) -> float:
        """E_t, with the error at h for comparison, whose mean is known."""
        target = self.examples[1]
        if self.net.classify:
            wrong, wrong_h = (
                0.5 * (1 - np.sign((target - each) * target)) for each in (left, left_h)
            )
            share = shared(wrong - wrong.mean(), wrong_h - wrong_h.mean())
            return float(np.mean(wrong - share * wrong_h)) + share * known
        part = shared(left, left_h) ** 2
        return float(np.mean(left**2 - part * left_h**2)) / 2 + part * known


def shared(F: Any, FH: Any) -> float:
    """Return the share of F(h) that is in F(x), from none to all."""
    size = float(np.vdot(FH, FH))
    return min(max(float(np.vdot(F, FH)) / size, 0.0), 1.0) if size else 0.0


@njit(**FAST)
def learned(s, step, before, x, net, aim, total):  # type: ignore[no-untyped-def]
    """Fill in Σ vF of an example at its instants in a step: see `moments.learned`."""
    ((begin, share, bridge), v, noise), (a, kind), K = step, net, x.size
    at, g, force = np.empty(K), np.empty(K), np.empty(K)
    total[:] = 0.0
    for i in range(begin[s], begin[s + 1]):
        for k in range(K):
            at[k] = before[k] + share[i] * (x[k] - before[k]) + total[k]
            for j in range(K):
                at[k] += noise[k, j] * bridge[i, j]
        pulls(at, a, aim, kind, g, force)
        for k in range(K):
            total[k] += v * force[k]


@njit(**FAST)
def look(fields, target, net, step, latest, response, present, out):  # type: ignore[no-untyped-def]
    """Learn and measure: fill in F, F(h), errors ỹ − σ and g; carry x on from `before`.

    Returns F and ỹ − σ as they are. `step` holds instants, v and what is new in h; `latest` whether
    what is learned is known at once, the response to a force in the newest cell, and its forces.
    If it is not, what is filled in is as if every turn were now. `present` is this epoch: who is
    learned so often right now, and at which rate; in which of its cells an example was learned
    (−1: not yet) and with which force; `response` is that to a force in each of its cells.
    """
    (X, H, before), (a, kind), begin, (at_once, own, f) = fields, net, step[0][0], latest
    (F, FH, left, g, left_h, g_h), (after, v_after, where, forces) = out, present
    size, K = X.shape
    real, measured = (F, left) if at_once else (np.empty_like(F), np.empty_like(left))
    one = np.zeros(K)
    for s in range(size):
        turn = begin[s] < begin[s + 1]
        left_h[s] = pulls(H[s], a, target[s], kind, g_h[s], FH[s])
        if at_once and turn:
            learned(s, step, before[s], X[s], net, target[s], forces[s])
            for k in range(K):
                f[s, k] = forces[s, k]
                for j in range(K):
                    X[s, k] += own[k, j] * forces[s, j]
        left[s] = measured[s] = pulls(X[s], a, target[s], kind, g[s], F[s])
        if at_once:
            before[s] = X[s]
            continue
        real[s] = F[s]
        if turn:
            learned(s, step, before[s], X[s], net, target[s], forces[s])
            where[s] = len(response) - 1
        elif after[s] > 0:
            where[s] = len(response)
            for k in range(K):
                forces[s, k] = after[s] * v_after * F[s, k]
        before[s] = X[s]
        if 0 <= where[s] < len(response):
            for k in range(K):
                for j in range(K):
                    X[s, k] += response[where[s], k, j] * forces[s, j]
            measured[s] = pulls(X[s], a, target[s], kind, one, real[s])
    return real, measured
