"""Where the second moment stops being bounded: the mean-square critical rate of a data set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from manypass import card
from manypass.checks import Array
from manypass.data.moments import Moments

DENSE = 12  # entries of Σ up to which the operator is written out
PRECISION = 1e-9
ROUNDS = 1000


def critical_step(moments: Moments) -> float:
    """ν_c = 1/ϱ, ϱ the largest eigenvalue of Σ ↦ D⁻¹[(1/p)Σ(ξᵀΣξ)ξξᵀ + λ(HΣ + ΣH) + λ²Σ].

    D multiplies entry ij by h_i + h_j + 2λ. It follows from Σ' = Σ − νDΣ + ν²[…]: the map takes
    positive matrices to positive ones, so that the eigenvalue that first reaches 1 is the
    largest. D^{-½}[…]D^{-½} is symmetric: Lanczos' method finds ϱ in some 20 products. For
    batches of B examples the bracket is […]/B + (1 − 1/B)(H + λ)Σ(H + λ).
    """
    h, decay = moments.h, moments.decay
    pairs = (h + h) if moments.diagonal else (h[:, None] + h)
    product = h * h if moments.diagonal else np.outer(h, h)
    root, share = np.sqrt(pairs + 2 * decay), 1 / moments.batch
    rest = decay * pairs + decay**2 + (1 - share) * product

    def bracket(flat: Array) -> Array:
        Sigma = card.beside(flat, root).reshape(root.shape) / root
        return card.host((share * moments.pull(Sigma) + rest * Sigma) / root).ravel()  # type: ignore[no-any-return]

    return 1 / _largest(bracket, card.host(root))


def steady_covariance(moments: Moments) -> Array:
    """Σ for t → ∞: (1 − b)Σ − (ν²/B)(1/p)Σ_μ(ξᵀΣξ)ξξᵀ = source, by conjugate gradients."""
    still, root = moments.still(), np.sqrt(moments.c)
    if not moments.coupled:
        return still / moments.c

    def operator(flat: Array) -> Array:
        Sigma = card.beside(flat, root).reshape(root.shape) / root
        return flat - moments.weight * card.host(moments.pull(Sigma) / root).ravel()  # type: ignore[no-any-return]

    size = root.size
    linear = LinearOperator((size, size), matvec=operator, dtype=float)
    flat, failed = cg(linear, card.host(still / root).ravel(), rtol=PRECISION, maxiter=ROUNDS)
    if failed:
        raise ValueError("`rate` is too close to the critical rate for a steady state to be found")
    return card.beside(flat, root).reshape(root.shape) / root  # type: ignore[no-any-return]


def _largest(operator: Callable[[Array], Array], root: Array) -> float:
    size = root.size
    if size <= DENSE:
        matrix = np.column_stack([operator(unit) for unit in np.eye(size)])
        return float(eigh((matrix + matrix.T) / 2, eigvals_only=True)[-1])
    start = (np.ones(size) if root.ndim == 1 else np.eye(len(root)) * root).ravel()
    linear = LinearOperator((size, size), matvec=operator, dtype=float)
    return float(
        eigsh(linear, 1, which="LA", v0=start, tol=PRECISION, return_eigenvectors=False)[0]
    )
