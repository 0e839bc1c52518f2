"""The hot loops of networks with K units: lead a population to t_i and measure its forces.

Averages are those of F(x) − βF(h) over the population and β times those of F(h), which are known:
h is Gaussian. The share β of F(h) that is in F(x) is measured too. Before an example is learned
x = h, and nothing is left to chance.
"""

from __future__ import annotations

import numpy as np

from manypass.cavity.moments import FAST
from manypass.compiling import njit
from manypass.simulation.layered_kernels import pulls


@njit(**FAST)
def online(X, H, target, a, kind, instants, rates, newest, f, F, FH, errors):  # type: ignore[no-untyped-def]
    """Learn, measure, learn: fill in F, F(h), and errors at x and at h; returns forces after t_i.

    X is (K × examples); `rates` are v before and after, `newest` the response to a force in the
    newest cell, whose forces f grow. `errors` are ỹ − σ and g at x, and the same at h.
    """
    (before, after), (v, v_after), K = instants, rates, X.shape[0]
    left, g, left_h, g_h = errors
    x, one, force, new = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros_like(X)
    for s in range(X.shape[1]):
        for k in range(K):
            x[k] = H[k, s]
        left_h[s] = pulls(x, a, target[s], kind, one, force)
        for k in range(K):
            FH[k, s], g_h[k, s], x[k] = force[k], one[k], X[k, s]
        for _ in range(before[s]):
            pulls(x, a, target[s], kind, one, force)
            for k in range(K):
                f[k, s] += v * force[k]
                for j in range(K):
                    x[k] += v * newest[k, j] * force[j]
        left[s] = pulls(x, a, target[s], kind, one, force)
        for k in range(K):
            F[k, s], g[k, s], X[k, s] = force[k], one[k], x[k]
        for i in range(after[s]):
            if i:
                pulls(x, a, target[s], kind, one, force)
            for k in range(K):
                new[k, s] += v_after * force[k]
                x[k] += v_after * force[k]
    return new


@njit(**FAST)
def epoch(X, H, target, a, kind, instants, rates, response, present, t, F, FH, errors, after_F):  # type: ignore[no-untyped-def]
    """Learn those whose turn it is; F and errors are as if every turn were now, `after_F` as it is.

    `present` is this epoch: in which of its cells an example was learned (−1: not yet), with which
    force and when; `response` is that to a force in each of its cells.
    """
    (before, after), (v, v_after), K = instants, rates, X.shape[0]
    (left, g, left_h, g_h), (where, forces) = errors, present
    x, one, force = np.zeros(K), np.zeros(K), np.zeros(K)
    measured = np.zeros(X.shape[1])
    for s in range(X.shape[1]):
        for k in range(K):
            x[k] = H[k, s]
        left_h[s] = pulls(x, a, target[s], kind, one, force)
        for k in range(K):
            FH[k, s], g_h[k, s], x[k] = force[k], one[k], X[k, s]
        left[s] = pulls(x, a, target[s], kind, one, force)
        for k in range(K):
            F[k, s], g[k, s] = force[k], one[k]
        often = before[s] + after[s]
        if often > 0:
            rate = v if before[s] > 0 else v_after
            where[s] = len(response) - (before[s] > 0)
            for k in range(K):
                forces[k, s] = often * rate * force[k]
        measured[s] = left[s]
        if 0 <= where[s] < len(response):
            for k in range(K):
                for j in range(K):
                    x[k] += response[where[s], k, j] * forces[j, s]
            measured[s] = pulls(x, a, target[s], kind, one, force)
        for k in range(K):
            after_F[k, s] = force[k]
    return measured
