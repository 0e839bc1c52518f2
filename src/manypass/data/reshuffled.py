r"""m and Σ of SGD that takes every example once per epoch: closed by leaving one example out.

With τ the part of an epoch that is over, ā^{pτ} the mean propagator as in `moments` and ā₋ that of
all other examples, one that is learned changes its own error for the rest of the epoch by −L:

    L(τ) = ν ξᵀā₋^{pτ}ξ = L₀ + ∫₀^τ L₀L,  L₀(τ) = ν ξᵀā^{pτ}ξ

Whoever is learned now has not been learned in this epoch: f̂, F̂2 and Σ₋ are the mean error ỹ − ξ·J,
its square and the covariance in runs where it is still to come; f = ỹ − ξ·m, Σ in all. ' is at
τ' < τ, integrals are ∫₀^τ dτ', l = p(τ − τ'). Less what the example has done to some of the runs,

    f̂ = f + ∫Lf̂',  d = ν∫ā₋^l ξ f̂',  F̂2 = f̂² + U·ξ,
    U = Σ₋ξ = Σξ + ∫[L ā^l U' + ν(ξᵀā₋^l U' − L F̂2') ā₋^l ξ] + (ξ·d) d

is what drives the steps of m and Σ:

    m' = m + ν(g − Hm − λm) + (ν/p) Σ_μ ξ(f̂ − f)
    Σ' = āΣā + (ν²/p) Σ_μ F̂2 ξξᵀ − ν(P + Pᵀ),  P = (1/p) Σ_μ (U − Σξ + f̂d) ξᵀ

and the sums of f̄ = g − Hm that keep P that of fluctuations. For examples orthogonal to each other
this is exact. Neglected is what two examples do to each other beyond their mean, and 1/p. To first
order in ν averages over orders are those of Ying et al. (2018) and Smith et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import NoConvergence, anderson

from manypass import memory
from manypass.checks import Array
from manypass.data import sums
from manypass.data.measuring import Measure, stack
from manypass.data.moments import Moments, finite
from manypass.data.stepping import Polynomial

CELLS = (8, 16, 32, 64)  # of an epoch; the next, if two have not agreed
ACCURACY = 1e-3  # to which they have to agree: the theory itself is good to 1e-2
LARGEST = 16.0  # of ν|ξ|² that cells resolve; SGD diverges long before
SETTLED = 1e-9  # change of |J|² from epoch to epoch below which all others are the same
SETTLING = 1e-5  # likewise of weights, in units of the largest, for the steady state
SEARCH: Any = {"alpha": 1.0, "M": 8, "maxiter": 60, "line_search": None}
REMEDY = "use method Simulation(samples=100), which is exact"
State = tuple[Array, Array]


class Epochs:
    """An epoch as a map of (m, Σ), followed on cells of equal length by a second-order rule."""

    def __init__(self, moments: Moments, cells: int) -> None:
        self.moments, self.cells, self.n = moments, cells, moments.examples.targets.size / cells
        Y, nu, lags = moments.examples.Y, moments.nu, np.arange(cells + 1)
        p, rank = Y.shape
        self.Y, self.p, self.width = Y, p, 1 / cells
        needed = 8 * (p * (cells + 1) * (cells + 6 + rank) + 6 * p * rank + 12 * rank**2)
        memory.require(needed, REMEDY)
        self.decays = (1 - moments.q) ** (self.n * lags[:, None])  # lags × rank
        alone = nu * moments.coupled * Y**2 @ self.decays.T  # L₀, p × lags
        self.own = self._resolvent(alone)

    def convolved(self, values: Array) -> Array:
        """Return x(l) + ∫₀^l x(l − τ)L(τ)dτ of values by lag, for every example."""
        out = values.copy()
        for lag in range(1, self.cells + 1):
            out[:, lag:] += self.width * values[:, : out.shape[1] - lag] * self.own[:, lag, None]
        out += self.width / 2 * (values * self.own[:, :1] - values[:, :1] * self.own)
        return out

    def pushing(self, values: Array, weights: Array) -> tuple[Array, Array]:
        """Weights of ā^l ξ in ∫c ā₋^l ξ, for c at the past nodes, and the part of the present."""
        out, k = values.copy(), values.shape[1]
        last = np.einsum("pl,pl->p", values * weights, self.own[:, k:0:-1])
        for lag in range(1, k):
            out[:, lag:] += values[:, : k - lag] * weights[: k - lag] * self.own[:, lag, None]
        out[:, 1:] += self.width / 2 * values[:, 1:] * self.own[:, :1]
        return out * weights, last

    def _resolvent(self, kernel: Array) -> Array:
        """Solve L = L₀ + ∫L₀L for every row, by the trapezoidal rule."""
        out = kernel.copy()
        for k in range(1, self.cells + 1):
            out[:, k] += self.width * (kernel[:, k] * out[:, 0] / 2)
            out[:, k] += self.width * np.einsum("pl,pl->p", kernel[:, k - 1 : 0 : -1], out[:, 1:k])
            out[:, k] /= 1 - self.width * kernel[:, 0] / 2
        return out

    def nodes(self, state: State) -> Iterator[tuple[State, Polynomial]]:
        """Yield each cell of an epoch: (m, Σ) at its beginning, and the sources within it."""
        past = Past(self)
        for k in range(self.cells):
            m, Sigma = state
            first = past.sources(k, m, Sigma, keep=True)
            guess = self.advance(state, Polynomial([0.0], [first], self.n), self.n)
            last = past.sources(k + 1, *guess)
            sources = Polynomial([0.0, self.n], [first, last], self.n)
            yield state, sources
            state = self.advance(state, sources, self.n)

    def advance(self, state: State, sources: Polynomial, steps: float) -> State:
        """(m, Σ) so many steps later."""
        m, Sigma = sources.advance(state, (self.moments.q, self.moments.c), steps)
        return m, Sigma

    def end(self, state: State) -> State:
        """(m, Σ) one epoch later."""
        for begin, sources in self.nodes(state):
            state = self.advance(begin, sources, self.n)
        return state

    def at(self, state: State, steps: list[int]) -> tuple[list[State], State]:
        """(m, Σ) after the given steps of one epoch, none of them 0, and at its end."""
        found: dict[int, State] = {}
        for k, (begin, sources) in enumerate(self.nodes(state)):
            for step in steps:
                if k * self.n < step <= (k + 1) * self.n * (1 + 1e-12):
                    found[step] = self.advance(begin, sources, step - k * self.n)
            state = self.advance(begin, sources, self.n)
        return [found[step] for step in steps], state


class Past:
    """What the cells of this epoch that are over leave behind, and the sources that follow."""

    def __init__(self, epochs: Epochs) -> None:
        self.e, count = epochs, epochs.cells + 1
        self.f, self.F2, self.pushed = np.zeros((3, epochs.p, count))  # f̂, F̂2, 2f̂ − f
        self.U = np.zeros((count, *epochs.Y.shape))
        self.seen = np.zeros((epochs.p, count, count))  # Uā₋ξ, by node and lag
        self.drifts = np.zeros((count, epochs.Y.shape[1]))  # f̄

    def sources(self, k: int, m: Array, Sigma: Array, keep: bool = False) -> tuple[Array, Array]:
        """Return what a step at node k adds to m and Σ beyond their decay, the present included."""
        e, moments = self.e, self.e.moments
        Y, p, nu = e.Y, e.p, moments.nu
        f, drift = moments.force(m), moments.examples.g - moments.h * m
        nodes, half = np.arange(k), e.width / 2 if k else 0.0
        weights, fading = np.full(k, e.width), e.decays[k - nodes]
        weights[:1] /= 2
        own, now = e.own[:, k:0:-1], e.own[:, 0]
        coming = (f + (own * self.f[:, :k]) @ weights) / (1 - half * now)
        d = (self.pushed[:, :k] * weights) @ fading + (half * (2 * coming - f))[:, None]
        d *= nu * Y
        here = Y @ Sigma * moments.coupled
        U = here + np.einsum("pr,pr->p", Y, d)[:, None] * d * moments.coupled
        for j in nodes:
            U += (weights[j] * own[:, j, None]) * (self.U[j] * fading[j])
        back = self.seen[:, nodes, k - nodes] - own * self.F2[:, :k]
        back, last = e.pushing(back, weights)
        U += nu * Y * (back @ fading + (half * last)[:, None])
        # ... and of the present U and F̂2, which this U itself has a part in:
        known = np.einsum("pr,pr->p", Y, U)
        variance = (known - half * now**2 * coming**2) / (1 - half * now * (2 - now))
        variance = np.maximum(variance, 0.0)
        F2 = coming**2 + variance
        U += (half * nu * (variance - now * F2))[:, None] * Y
        U /= (1 - half * now)[:, None]
        pull = (Y * (F2 * nu / 2)[:, None] - U + here - coming[:, None] * d).T @ Y / p
        faded = (self.drifts[:k] * fading * weights[:, None]).sum(axis=0) + (half + 0.5) * drift
        pull += nu * np.outer(faded, drift) - nu * np.outer(drift, drift)
        spread = nu * (pull + pull.T)
        spread[np.diag_indices_from(spread)] += moments.heat
        if keep:
            self.f[:, k], self.F2[:, k], self.drifts[k] = coming, F2, drift
            self.pushed[:, k], self.U[k] = 2 * coming - f, U
            self.seen[:, k] = e.convolved((U * Y) @ e.decays.T)
        return nu * (moments.examples.g + (coming - f) @ Y / p), spread


def curves(moments: Moments, task: str, steps: list[int]) -> dict[str, Array]:
    """Return what is measured after the given steps, on cells fine enough, extrapolated."""
    measure, p = Measure(moments, task), moments.examples.targets.size
    wanted = sorted(set(steps))

    def run(cells: int) -> dict[str, Array]:
        epochs = Epochs(moments, cells)
        state: State = (moments.start, moments.zero)
        seen = {0: state} if 0 in wanted else {}
        left, epoch, before = [k for k in wanted if k], 0, np.nan
        while left:
            here = [k for k in left if k <= (epoch + 1) * p]
            length = float(state[0] @ state[0] + np.trace(state[1]))
            if abs(length - before) <= SETTLED * before:
                here = left  # every further epoch is like this one
            before = length
            inside = sorted({(k - 1) % p + 1 for k in here})
            states, state = epochs.at(state, inside)
            place = dict(zip(inside, states, strict=True))
            seen |= {k: place[(k - 1) % p + 1] for k in here}
            left, epoch = left[len(here) :], epoch + 1
            if not finite(moments.F2(*state)):
                raise ValueError(f"`rate` is too large, and this theory diverges: {REMEDY}")
        return stack([measure(*seen[k], moments.null_variance(k)) for k in steps])

    return extrapolated(moments, run)


def stationary(moments: Moments, task: str, start: State, null: float) -> dict[str, Array]:
    """Means over an epoch for t → ∞, and `*_end`, the values at its end."""
    measure, size = Measure(moments, task), start[0].size
    root, p = np.sqrt(moments.examples.h), moments.examples.targets.size  # errors are h Σ

    def run(cells: int) -> dict[str, Array]:
        epochs = Epochs(moments, cells)

        def left(flat: Array) -> Array:
            """How far it is to the fixed point, if each entry relaxed by itself."""
            state = flat[:size] / root, flat[size:].reshape(size, size) / np.outer(root, root)
            m, Sigma = epochs.end(state)
            gap = (m - state[0]) / (1 - sums.power(moments.q, p))
            far = (Sigma - state[1]) / (1 - sums.power(moments.c, p))
            return np.concatenate([gap * root, (np.outer(root, root) * far).ravel()])

        flat = np.concatenate([start[0] * root, (np.outer(root, root) * start[1]).ravel()])
        try:
            search: Any = anderson  # its stubs know of scalar functions only
            flat = np.asarray(search(left, flat, f_tol=SETTLING * np.abs(flat).max(), **SEARCH))
        except (NoConvergence, np.linalg.LinAlgError):
            raise ValueError(f"no steady state was found: {REMEDY}") from None
        state = flat[:size] / root, flat[size:].reshape(size, size) / np.outer(root, root)
        inner = [measure(*begin, null) for begin, *_ in epochs.nodes(state)]
        end = measure(*epochs.end(state), null)
        rows = stack([*inner[1:], inner[0], end])  # the end and the beginning are half each
        mean = {name: (v.sum() - (v[-1] + v[-2]) / 2) / cells for name, v in rows.items()}
        return mean | {f"{name}_end": np.array(end[name]) for name in end}

    return extrapolated(moments, run)


def extrapolated(moments: Moments, run: Any) -> dict[str, Array]:
    """Return (4 x₂ − x₁)/3 of two numbers of cells whose results agree."""
    fast = float(moments.q.max(initial=0.0))
    large = moments.nu * float((moments.examples.Y**2).sum(axis=1).max())
    if fast >= 1 or large > LARGEST:
        raise ValueError(
            f"`rate` is too large for the theory of reshuffled epochs, a step overshoots: {REMEDY}"
        )
    coarse = None
    for cells in CELLS:
        if 2 * large > cells:
            continue
        fine = run(cells)
        if coarse is not None:
            error = max(
                float(np.max(np.abs(fine[n] - coarse[n]) / np.maximum(np.abs(fine[n]), 1e-300)))
                for n in fine
                if n.startswith("F2")
            )
            if error <= 3 * ACCURACY or cells == CELLS[-1]:
                break
        coarse = fine
    assert coarse is not None  # LARGEST leaves two numbers of cells
    return {n: (4 * fine[n] - coarse[n]) / 3 for n in fine}
