"""Batch learning of one population: every example all the time, on a grid t_i = iΔ.

dR/dt = −vλR + v⟨yF⟩,  ∂G(t,s)/∂t = −vλG + v ∫ₛᵗ M(t,u) G(u,s) du,  h = R y + ∫ G(t,s) ζ(s) ds:
ζ is the push of all other examples, with covariance (v²/α)⟨F(t)F(s)⟩ + 2T δ(t−s). It has no noise
of its own that would test the response, which therefore follows from slopes:
M = ⟨F′⟩δ(t−u) + what learning at u leaves. C = R Rᵀ + G⟨ζζ⟩Gᵀ is a covariance by construction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manypass.cavity.grid import at, pairs
from manypass.cavity.moments import FAST
from manypass.cavity.online import line_weights
from manypass.checks import Array
from manypass.compiling import njit
from manypass.ensemble import Measured
from manypass.problem import Problem

DRIVE, SQUARE, SLOPE, MISSED = range(4)  # ⟨yF⟩, ⟨F²⟩, ⟨F′⟩, E_t


class Batch:
    """R, G and the Gaussian part of h up to some t_i; second order in the step (Heun)."""

    def __init__(
        self, problem: Problem, rule: Any, examples: Any, normals: Any, end: float
    ) -> None:
        size, steps = normals.shape
        self.problem, self.rule, self.d, self.i = problem, rule, end / steps, 0
        self.examples, self.past = (*examples, normals), np.zeros((2, size, steps + 1))
        self.x = np.zeros(size)
        self.R, self.drive, self.F2, self.Et, self.slope = np.zeros((5, steps + 1))
        self.G = np.eye(steps + 1)  # [t, s]
        # ⟨F(t)F(s)⟩, and the regular part of ∫ M(t,u) G(u,s) du
        self.FF, self.feedback = np.zeros((2, steps + 1, steps + 1))
        self.L = np.zeros((steps, steps))  # pushes between t_j and t_{j+1}: ζ_j = Σ_k L_jk z_k
        self.A = np.zeros((steps + 1, steps))  # h(t_i) = R y + Σ_j A_ij z_j
        self._measure(0)

    def step(self) -> float:
        """Extrapolate to t_{i+1}, measure there, correct, measure again; return Q or ⟨F²⟩."""
        i = self.i
        if i:  # the last push again, now that all is known of it
            self._push(i - 1, True)
        for corrected in (False, True):
            self._advance(i, corrected)
            self._push(i, corrected)
            self._measure(i + 1)
        self.i += 1
        return float(max(self.R[i + 1] ** 2 + self.A[i + 1] @ self.A[i + 1], self.F2[i + 1]))

    def at(self, t: Array, scale: Any) -> Measured:
        """R, Q, F2, Et, C and G at the times, inf where they have diverged."""
        C, n = np.outer(self.R, self.R) + self.A @ self.A.T, self.i + 1
        curves = {"R": self.R[:n], "Q": np.diag(C)[:n], "F2": self.F2[:n], "Et": self.Et[:n]}
        out = at(t, scale, self.d * np.arange(n), curves)
        for name, values in (("C", C), ("G", self.G)):
            values[:, n:] = values[n:] = np.inf
            out[name] = pairs(values, t / self.d)
        out["C"] += np.tril(out["C"], -1).T
        return out

    def _measure(self, i: int) -> None:
        kick = self.problem.rate * self.d / self.problem.data.alpha
        classify = self.problem.data.task == "classification"
        # The response is measured on so few examples that it costs no more than all the rest.
        stride = 1 + int(i**2 / (8.5 * i + 60))
        line, state = (i, self.R[i], kick), (*self.past, self.x)
        A = self.A[i].astype(np.float32)
        one, FF, M = batch(line, A, self.G, self.examples, state, self.rule, classify, stride)
        self.FF[i, : i + 1] = self.FF[: i + 1, i] = FF
        self.slope[i], self.F2[i], self.Et[i] = one[SLOPE], one[SQUARE], one[MISSED]
        self.drive[i] = one[DRIVE] - one[SLOPE] * self.R[i]
        # Trapezoidal in u: at u = t the cell is half by itself, at u = s only its later half.
        total = M @ self.G[: i + 1, :i]
        total[1:] -= M[1:i] / 2
        self.feedback[i, :i] = total

    def _advance(self, i: int, corrected: bool) -> None:
        """R and G at t_{i+1}: averages extrapolated or, once known at t_{i+1}, interpolated.

        The decay with λ − ⟨F′⟩ is integrated exactly, the rest as a straight line in time.
        """
        v, d = self.problem.rate, self.d
        slope = sum(w * self.slope[p] for p, w in midpoint(i, corrected).items())
        keep, now, then = line_weights(v * d * (self.problem.decay - slope))

        def line(f: Array) -> Array:
            """Integrate v times a function given at t_i and, as it may be, t_{i+1} or t_{i−1}."""
            end = f[i + 1] if corrected else 2 * f[i] - f[i - 1] if i else f[i]
            return np.asarray(v * d * (now * f[i] + then * end))

        self.R[i + 1] = keep * self.R[i] + line(self.drive)
        self.G[i + 1, : i + 1] = keep * self.G[i, : i + 1] + line(self.feedback[:, : i + 1])
        if not corrected and i:  # no past of its own: take that of the row before
            last = self.feedback[i, i - 1]
            last += last - self.feedback[i - 1, i - 2] if i > 1 else 0.0
            self.G[i + 1, i] = keep + v * d * then * last

    def _push(self, j: int, corrected: bool) -> None:
        """Covariance (v²Δ²/α)⟨F_j F_k⟩ of the push between t_j and t_{j+1} with earlier; then h."""
        ahead = midpoint(j, corrected).items()
        FF = sum(w * self.FF[p] for p, w in ahead)
        row = np.append((FF[:j] + FF[1 : j + 1]) / 2, max(sum(w * FF[p] for p, w in ahead), 0.0))
        row *= (self.problem.rate * self.d) ** 2 / self.problem.data.alpha
        a, b = self.G[j + 1, : j + 1], self.G[j + 1, 1 : j + 2]
        through, square = (a + b) / 2, (a * a + a * b + b * b) / 3
        # What is independent within an interval comes through in mean square, the rest in mean.
        row[j] += 2 * self.problem.temperature * self.d * square[j] / through[j] ** 2
        cholesky_row(self.L, row)
        self.A[j + 1, : j + 1] = through @ self.L[: j + 1, : j + 1]


def midpoint(i: int, corrected: bool) -> dict[int, float]:
    """Weights that make a value between t_i and t_{i+1} of values on the grid."""
    if corrected:
        return {i: 0.5, i + 1: 0.5}
    return {i: 1.5, i - 1: -0.5} if i else {0: 1.0}


def coarser(normals: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the same noise on a grid of twice the step."""
    return np.ascontiguousarray((normals[:, ::2] + normals[:, 1::2]) * np.float32(np.sqrt(0.5)))


def orthonormal(normals: NDArray[np.float32], examples: Any) -> NDArray[np.float32]:
    """Make normals whose sample covariance is exactly 1, and 0 with y and ỹ: less noise."""
    base = np.linalg.qr(np.stack([np.ones(len(normals)), *examples], 1))[0].astype(np.float32)
    normals = normals - base @ (base.T @ normals)
    covariance = (normals.T @ normals).astype(float) / len(normals)
    inverse = np.linalg.inv(np.linalg.cholesky(covariance)).T
    return np.ascontiguousarray(normals @ inverse.astype(np.float32))


@njit(**FAST)
def cholesky_row(L, row):  # type: ignore[no-untyped-def]
    """Append the row of a covariance to its factor; a direction already spanned adds nothing."""
    j, left = row.size - 1, row[-1]
    for k in range(j):
        rest = row[k]
        for q in range(k):
            rest -= L[j, q] * L[k, q]
        L[j, k] = rest / L[k, k] if L[k, k] > 0 else 0.0
        left -= L[j, k] ** 2
    L[j, j] = np.sqrt(left) if left > 1e-6 * row[j] else 0.0


@njit(**FAST)
def batch(line, A, G, examples, state, rule, classify, stride):  # type: ignore[no-untyped-def]
    """Lead all examples to t_i: averages there, and by cell u ⟨F_i F_u⟩ and F′_i δx_i/δh_u.

    `line` is i, R(t_i) and vΔ/α, the share of one cell, of which the first and the last count
    half; `state` are forces and slopes [example, cell], and x. The response is the mean over
    every stride-th example.
    """
    (i, R, kick), (F, S, x_out), (y, target, normals) = line, state, examples
    parameters, force, slope = rule
    one, FF, M, chain = np.zeros(4), np.zeros(i + 1), np.zeros(i + 1), np.empty(i + 1)
    half, zero, g = 0.5 * kick, A[0] * 0, kick * G[i, : i + 1]
    g[0] *= 0.5
    for k in range(y.size):
        z, aim, past, slopes = normals[k], target[k], F[k], S[k]
        h = zero
        for j in range(i):
            h += A[j] * z[j]
        x = R * y[k] + h
        for u in range(i):
            x += g[u] * past[u]
        if i > 0:
            x += half * force(x + half * force(x, aim, *parameters), aim, *parameters)
        f, s = force(x, aim, *parameters), slope(x, aim, *parameters)
        past[i], slopes[i], x_out[k] = f, s, x
        one[DRIVE] += y[k] * f
        one[SQUARE] += f * f
        one[SLOPE] += s
        one[MISSED] += 0.5 * (1 - np.sign(x * aim)) if classify else 0.5 * (aim - x) ** 2
        for u in range(i + 1):
            FF[u] += f * past[u]
        if k % stride == 0 and i > 0:
            for u in range(i):
                chain[u] = G[i, u] * (1 + half * s)
            M[i] += s * half * s
            for p in range(i - 1, -1, -1):
                share, row = kick if p > 0 else half, G[p]
                answer = share * slopes[p] * (1 + half * slopes[p]) * chain[p]
                M[p] += s * answer
                for u in range(p):
                    chain[u] += answer * row[u]
    return one / y.size, FF / y.size, M / ((y.size + stride - 1) // stride)
