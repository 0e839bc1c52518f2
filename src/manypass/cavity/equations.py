"""The mean-field equations on a grid t_i = iΔ, closed by the averages of a population.

dR/dt = −vλR + v⟨yF⟩,  ∂G(t,s)/∂t = −vλG + v ∫ₛᵗ M(t,u) G(u,s) du,  h = R y + ∫ G(t,s) ζ(s) ds:
ζ is the push of all other examples, with covariance v²[⟨F(t)F(s)⟩/α + ⟨F²⟩ δ(t−s)] + 2T δ(t−s)
over pairs of learning instants. C = R Rᵀ + G⟨ζζ⟩Gᵀ is then a covariance by construction, even
where h is hardly random (small rates, batch mode). M = ⟨F′⟩δ(t−u) + what learning at u leaves.
"""

from __future__ import annotations

import math

import numpy as np

from manypass.cavity.moments import DRIVE, FAST, MISSED, SLOPE, SQUARE
from manypass.checks import Array
from manypass.compiling import njit
from manypass.problem import Problem


class Equations:
    """R, G and the Gaussian part of h up to some t_i; second order in the step."""

    def __init__(self, problem: Problem, step: float, steps: int) -> None:
        self.problem, self.step = problem, step
        size = steps + 1
        self.R, self.drive, self.F2, self.Et, self.slope = np.zeros((5, size))
        self.G = np.eye(size)  # [t, s]
        self.feedback = np.zeros((size, size))  # ∫ M(t,u) G(u,s) du, regular part
        self.L = np.zeros((steps, steps))  # pushes between t_j and t_{j+1}: ζ_j = Σ_k L_jk z_k
        self.A = np.zeros((size, steps))  # h(t_i) = R y + Σ_j A_ij z_j

    def record(self, i: int, one: Array, M: Array) -> None:
        """Take the averages measured at t_i."""
        self.slope[i], self.F2[i], self.Et[i] = one[SLOPE], one[SQUARE], one[MISSED]
        self.drive[i] = one[DRIVE] - one[SLOPE] * self.R[i]
        # Trapezoidal in u: at u = t the cell is half by itself, at u = s only its later half.
        total = M @ self.G[: i + 1, :i]
        total[1:] -= M[1:i] / 2
        self.feedback[i, :i] = total

    def advance(self, i: int, corrected: bool) -> None:
        """R and G at t_{i+1}: averages extrapolated or, once known at t_{i+1}, interpolated.

        The decay with λ − ⟨F′⟩ is integrated exactly, the rest as a straight line in time.
        """
        v, d = self.problem.rate, self.step
        slope = sum(w * self.slope[p] for p, w in midpoint(i, corrected).items())
        keep, now, then = _line_weights(v * d * (self.problem.decay - slope))

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

    def push(self, j: int, row: Array, known: float) -> None:
        """Take the covariance of the push between t_j and t_{j+1} with those up to it; then h."""
        a, b = self.G[j + 1, : j + 1], self.G[j + 1, 1 : j + 2]
        through, square = (a + b) / 2, (a * a + a * b + b * b) / 3
        noise = 2 * self.problem.temperature * self.step
        # What is independent within an interval comes through in mean square, the rest in mean.
        if self.problem.mode == "online":
            through = np.sign(through) * np.sqrt(square)
        else:
            noise *= square[j] / through[j] ** 2
        row[j] += noise
        cholesky_row(self.L, row, known)
        self.A[j + 1, : j + 1] = through @ self.L[: j + 1, : j + 1]

    def Q(self, i: int) -> float:
        """C(t_i, t_i)."""
        return float(self.R[i] ** 2 + self.A[i] @ self.A[i])

    def C(self) -> Array:
        """C(t,s) on the grid."""
        return np.asarray(np.outer(self.R, self.R) + self.A @ self.A.T)


def midpoint(i: int, corrected: bool) -> dict[int, float]:
    """Weights that make a value between t_i and t_{i+1} of values on the grid."""
    if corrected:
        return {i: 0.5, i + 1: 0.5}
    return {i: 1.5, i - 1: -0.5} if i else {0: 1.0}


def _line_weights(q: float) -> tuple[float, float, float]:
    """e^{−q} and the weights of both ends of a line f in ∫₀¹ e^{−q(1−s)} f(s) ds."""
    if abs(q) < 1e-3:
        whole, end = 1 - q / 2 + q * q / 6, 0.5 - q / 6 + q * q / 24
    else:
        whole = -math.expm1(-q) / q
        end = (1 - whole) / q
    return math.exp(-q), whole - end, end


@njit(**FAST)
def cholesky_row(L, row, most):  # type: ignore[no-untyped-def]
    """Append to the factor L the row of a covariance, of which the past explains so much at most.

    Sampling noise beyond that is scaled away; a direction already spanned adds nothing.
    """
    j = row.size - 1
    explained = 0.0
    for k in range(j):
        rest = row[k]
        for q in range(k):
            rest -= L[j, q] * L[k, q]
        L[j, k] = rest / L[k, k] if L[k, k] > 0 else 0.0
        explained += L[j, k] ** 2
    if explained > most:
        L[j, :j] *= np.sqrt(most / explained)
        explained = most
    left = row[j] - explained
    L[j, j] = np.sqrt(left) if left > 1e-6 * row[j] else 0.0
