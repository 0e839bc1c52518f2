"""Two-time functions of reshuffled epochs: what epoch e has in common with a later one.

For each mode the weights at t, in epoch e, remember those at an earlier s only through the start of
their own epoch, whose influence is G₁, once per epoch in between Ḡ = G₁(α), and π, the covariance
of the weights at s with those at the end of that epoch:

    C(t,s) = Σρ [w m m′ + G₁(t) Ḡ^{e−e′−1} π(s)],    G(t,s) = Σρ G₁(t) Ḡ^{e−e′−1} G₁(end − s)
    π(s) = nG₁(s)Ḡ + ∫₀ˢ [v²hF̂2 VV′ + 2T G₁G₁′ − v²hc (v²F̂2 + 2T) gV gV′]
           − v²hc Σ weight [(VA)(s)(VA)(end) − v²c (gVA)(s)(gVA)(end)],

V, G₁ and gV = g₁V at s − u, primed at end − u. Within one epoch, where no example comes twice,

    ∂C(t,s)/∂t = −vλC + v[⟨ỹF̂(t)⟩ − ⟨F̂(t)F̂(s)⟩],    G = g₁.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manypass.checks import Array
from manypass.exact.lines import Cells
from manypass.exact.reshuffled import Course, Remembered, Reshuffled


class Recollection:
    """C and G of a course of epochs, at any two times in it."""

    def __init__(self, epochs: Reshuffled, given: Sequence[Course]) -> None:
        courses = [course for course in given if isinstance(course, Remembered)]
        self.epochs, self.courses = epochs, courses
        modes, v = epochs.modes, epochs.problem.rate
        self.per_epoch = epochs.G[:, -1]
        self.to_end = self._to_end()
        shared = [self._responses(K) for K in (epochs.V[:-1], epochs.gV[:-1])]
        self.m = np.array([epochs.G * c.before.mu[:, None] + v * epochs.I[:-1] for c in courses])
        self.pi = np.array([self._covariance(c, shared) for c in courses])
        self.within = np.array([self._within(c) for c in courses])
        self.rho, self.w = modes.rho, modes.rho * modes.q / v**2

    def _to_end(self) -> Array:
        """G₁(end − s) of a push at s; in steps the push is felt one step later."""
        G, line = self.epochs.G, self.epochs.line
        if isinstance(line, Cells):
            return np.concatenate([G[:, -2::-1], np.zeros((len(G), 1))], axis=1)
        return G[:, ::-1]

    def _responses(self, kernel: Array) -> list[Array]:
        """(kernel ∗ V)(s), (kernel ∗ ∫V)(s): mode × mode × point."""
        line, epochs = self.epochs.line, self.epochs
        out = [np.zeros((len(kernel), len(epochs.V), line.n + 1)) for _ in range(2)]
        for j in range(1, line.n + 1):
            pull = line.past(j, kernel, "s") * line.inner(j)
            for total, A in zip(out, (epochs.V, epochs.I), strict=True):
                total[:, :, j] = pull @ line.past(j, A, "u").T
        return out

    def _covariance(self, course: Remembered, shared: list[list[Array]]) -> Array:
        epochs, line = self.epochs, self.epochs.line
        modes, v, c = epochs.modes, epochs.problem.rate, epochs.c
        G, n = epochs.G, course.before.n
        out = n[:, None] * G * self.per_epoch[:, None]
        loud, heat = v**2 * modes.h[:, None], modes.heat
        for j in range(1, line.n + 1):
            weight = line.inner(j)
            V, gV, G1 = (
                line.past(j, x, "s") * line.past(j, x, "end")
                for x in (epochs.V[:-1], epochs.gV[:-1], G)
            )
            F_hat, pushes = (line.past(j, x[None], "u")[0] for x in (course.F_hat, course.pushes))
            noise = loud * (V * F_hat - c * gV * pushes) + heat * G1
            out[:, j] += noise @ weight
        unlearned = np.append(1 - modes.h * course.before.mu, 1.0)
        size = unlearned.size
        for sign, (of_V, of_sum) in zip((1.0, -(v**2) * c), shared, strict=True):
            told = of_V * unlearned[:, None] + v * epochs.problem.decay * of_sum
            kept = course.weights[:size] * told[:, :, -1]
            common = np.einsum("hk,hkj->hj", kept, told)
            kept = course.weights[size:] * of_V[:, :-1, -1]
            common += np.einsum("hk,hkj->hj", kept, of_V[:, :-1])
            out -= sign * c * loud * common
        return out

    def _within(self, course: Remembered) -> Array:
        """C(t,s), t ≥ s, as the smooth function that it is on that side of t = s."""
        epochs, line = self.epochs, self.epochs.line
        v, decay = epochs.problem.rate, epochs.problem.decay
        lag = line.s[:, None] - line.s
        fall, once = (_power(rate, lag, line.step) for rate in (v * decay, epochs.once))
        kernel = line.kernel(v * decay)
        yF, A, gA = (line.conv(kernel, x) for x in (course.y_force, course.forces, course.g_forces))
        C = fall * course.Q + v * (yF[:, None] - fall * yF)
        for sign, now, of in ((1.0, A, course.forces), (-(v**2) * epochs.c, gA, course.g_forces)):
            weight = sign * v * course.weights[:, None]
            C -= now.T @ (weight * of) - fall * np.sum(weight * now * of, axis=0)
        return np.asarray(C - course.noise * (fall - once))

    def C(self, e: int, f: int, later: Array, earlier: Array) -> tuple[Array, Array]:
        """C between epochs e ≥ f as two factors, to be multiplied row by row or as matrices.

        Times within their epochs are rows of weights on the points of the line (`Line.at`); in one
        epoch the later ones must be later.
        """
        if e == f:
            return later @ self.within[self._kept(e)], earlier
        m, m2 = (x @ self.m[self._kept(k)].T for x, k in ((later, e), (earlier, f)))
        G = later @ self.epochs.G.T * (self.rho * self.per_epoch ** (e - f - 1))
        pi = earlier @ self.pi[self._kept(f)].T
        return np.concatenate([m * self.w, G], axis=-1), np.concatenate([m2, pi], axis=-1)

    def G(self, e: int, f: int, later: Array, earlier: Array) -> tuple[Array, Array]:
        """G between epochs e > f, in the same way."""
        G = later @ self.epochs.G.T * (self.rho * self.per_epoch ** (e - f - 1))
        return G, earlier @ self.to_end.T

    def G_within(self, lag: Array) -> Array:
        """G(t,s) within one epoch, t − s > 0."""
        step = self.epochs.line.step
        return _power(self.epochs.once, np.maximum(lag - step, 0.0), step)

    def R(self, e: int, times: Array) -> Array:
        """R in epoch e."""
        return np.asarray(times @ self.courses[self._kept(e)].R)

    def _kept(self, e: int) -> int:
        """Epochs after the last that is kept are like it."""
        return min(e, len(self.courses) - 1)


def _power(rate: float, time: Array, step: float) -> Array:
    """e^{−rate t}, or (1 − rate Δ)^{t/Δ}; of `Cells` only t ≥ 0 is of use."""
    if not step:
        return np.exp(-rate * time)
    n = np.maximum(np.rint(time / step), 0.0)
    return np.asarray((1 - rate * step) ** n)
