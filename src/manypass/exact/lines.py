"""Time within one epoch: functions at points of [0, α], and what the theory does with them.

Learning one example after the other is smooth within an epoch: Chebyshev points and polynomials
through them (`Smooth`). Batches that are a share β of the training set are steps of length
Δ = βα, and these steps are all there is (`Cells`): integrals are sums over the cells before, a
push given in cell j is first felt at j + 1, and exponentials are powers. Otherwise both read alike:

    conv(e, A)(s) = ∫₀ˢ e(s−u) A(u) du,      end(A, B) = ∫₀^α A(α−u) B(u) du
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from manypass.checks import Array
from manypass.spectrum import gauss_legendre

Kernel = Callable[[Array], Array]


class Smooth:
    """n + 1 Chebyshev points of an epoch of length α, ends included."""

    step = 0.0

    def __init__(self, alpha: float, n: int) -> None:
        self.alpha, self.n = alpha, n
        angle = np.pi * np.arange(n + 1) / n
        self.s = alpha * np.sin(angle / 2) ** 2
        even = np.arange(0, n + 1, 2)
        share = np.where((even == 0) | (even == n), 0.5, 1.0) * 2 / (1.0 - even**2)
        self.weights = np.cos(np.outer(angle, even)) @ share * alpha / n  # Clenshaw–Curtis
        self.weights[[0, -1]] /= 2
        u, weight = gauss_legendre(n + 8)
        self.before = np.outer(self.s, (1 + u) / 2)  # points between 0 and s
        self.between = np.outer(self.s, weight / 2)
        self.through = self.at(self.before)

    @cached_property
    def lags(self) -> Array:
        """Values at the lags s − u as weights on those at the points."""
        return self.at(self.s[:, None] - self.before)

    def at(self, times: Array) -> Array:
        """Values at times in [0, α] of the polynomials that are 1 at one point, 0 at the others."""
        sign = (-1.0) ** np.arange(self.n + 1)
        sign[[0, -1]] /= 2
        gap = np.asarray(times)[..., None] - self.s
        hit = gap == 0
        share = sign / np.where(hit, 1.0, gap)
        share = np.where(hit.any(axis=-1, keepdims=True), hit, share)
        return np.asarray(share / share.sum(axis=-1, keepdims=True))

    def kernel(self, rate: float, power: int = 0) -> Array:
        """Operator of τ^power e^{−rate τ}."""
        lag = self.s[:, None] - self.before
        weight = self.between * lag**power * np.exp(-rate * lag)
        return np.asarray(np.einsum("iq,iqj->ij", weight, self.through))

    def conv(self, kernel: Array, A: Array) -> Array:
        """∫₀ˢ e(s−u) A(u) du at the points, for e made by `kernel`."""
        return np.asarray(A @ kernel.T)

    def convolve(self, A: Array, B: Array) -> Array:
        """∫₀ˢ A(s−u) B(u) du at the points, row by row, or of all rows of A with one of B."""
        if len(B) == 1:
            weights = self.between * (self.through @ B[0])
            return np.asarray(A @ np.einsum("iq,iqj->ji", weights, self.lags))
        past, now = self.lags @ A.T, self.through @ B.T  # point × moment × row
        return np.asarray(np.einsum("iq,iqr,iqr->ri", self.between, past, now))

    def decay(self, rate: float) -> Array:
        """e^{−rate s}."""
        return np.asarray(np.exp(-rate * self.s))

    def end(self, A: Array, B: Array) -> Array:
        """∫₀^α A(α−u) B(u) du for every pair of rows."""
        return np.asarray((A[:, ::-1] * self.weights) @ B.T)

    def inner(self, j: int) -> Array:
        """Weights of the moments that `past` speaks of."""
        return np.asarray(self.between[j])

    def past(self, j: int, A: Array, lag: str) -> Array:
        """Return A at the moments u before point j: at u, at s_j − u, or at α − u."""
        u = self.before[j]
        when = {"u": u, "s": self.s[j] - u, "end": self.alpha - u}[lag]
        return np.asarray(A @ self.at(when).T)

    def mean(self, A: Array) -> Array:
        """Average over the epoch."""
        return np.asarray(A @ self.weights / self.alpha)


class Cells:
    """m steps of an epoch of length α; values before each step and, as the last, after all."""

    def __init__(self, alpha: float, m: int) -> None:
        self.alpha, self.n, self.step = alpha, m, alpha / m
        self.s: Array = self.step * np.arange(m + 1, dtype=float)

    def at(self, times: Array) -> Array:
        """Pick the steps that times are."""
        index = np.rint(np.asarray(times) / self.step).astype(int)
        return np.asarray(np.eye(self.n + 1)[index])

    def kernel(self, rate: float, power: int = 0) -> Array:
        """Values at 1 … m steps of (1 − rate Δ)^{n−1}; with power 1 of Δ(n−1) base^{n−2}."""
        n, base = np.arange(self.n), 1 - rate * self.step
        if power:
            return self.step * n * base ** np.maximum(n - 1, 0)
        return np.asarray(base**n)

    def conv(self, kernel: Array, A: Array) -> Array:
        """Sum over the cells before."""
        out = np.zeros_like(A)
        if self.n <= 64:
            for lag in range(1, self.n + 1):
                out[..., lag:] += self.step * kernel[lag - 1] * A[..., :-lag]
            return out
        size = 2 * self.n
        product = np.fft.rfft(kernel, size) * np.fft.rfft(A[..., :-1], size)
        out[..., 1:] = self.step * np.fft.irfft(product, size)[..., : self.n]
        return out

    def convolve(self, A: Array, B: Array) -> Array:
        """Sum over the cells before, in the same way."""
        out = np.zeros_like(A)
        for lag in range(1, self.n + 1):
            out[:, lag:] += self.step * A[:, lag - 1 : lag] * B[:, :-lag]
        return out

    def decay(self, rate: float) -> Array:
        """(1 − rate Δ)^i."""
        return np.asarray((1 - rate * self.step) ** np.arange(self.n + 1))

    def end(self, A: Array, B: Array) -> Array:
        """Sum over all cells of what each leaves at the end of the epoch."""
        return np.asarray(self.step * A[:, -2::-1] @ B[:, :-1].T)

    def inner(self, j: int) -> Array:
        """Weights of the cells that `past` speaks of."""
        return np.full(j, self.step)

    def past(self, j: int, A: Array, lag: str) -> Array:
        """Return A at the cells u before point j: at u, or at the lag from u to j or to the end."""
        u = np.arange(j)
        return A[:, {"u": u, "s": j - 1 - u, "end": self.n - 1 - u}[lag]]

    def mean(self, A: Array) -> Array:
        """Average over the epoch."""
        return np.asarray(A[..., :-1].mean(axis=-1))


Line = Smooth | Cells
LOOKS = 32  # batches of an epoch, at most, at which one looks


def looks(alpha: float, share: float) -> tuple[Array, Array]:
    """Phases at which to look at a steady state, the last its end, and weights of its mean."""
    if share:
        m = round(1 / share)
        steps = np.unique(np.rint(np.linspace(0, m, min(m, LOOKS) + 1))[1:])
        return alpha / m * steps, np.full(steps.size, 1 / steps.size)
    line = Smooth(alpha, 8)
    return line.s, line.weights / alpha
