"""A student and a teacher of two layers, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from manypass.checks import Array
from manypass.layers.activation import ACTIVATIONS

if TYPE_CHECKING:
    from manypass.problem import Problem


@dataclass(frozen=True, eq=False)
class Net:
    """σ = Σ_k a_k g(x_k), taught by Σ_m b_m g(y_m) + εz or its sign; B_m·B_n = T_mn."""

    kind: int  # activation of the student
    taught: int  # and of the teacher
    a: Array
    b: Array
    T: Array
    R: Array
    Q: Array
    noise: float
    classify: bool

    @classmethod
    def of(cls, problem: Problem) -> Net:
        """Return the networks of a problem; its start has been checked."""
        rule: Any = problem.rule
        data, start = problem.teacher, problem.start
        M = data.hidden
        taught = ACTIVATIONS.index(data.activation or rule.activation)
        b = np.ones(M) if data.second is None else np.array(data.second)
        T = np.eye(M) if data.overlaps is None else np.array(data.overlaps)
        assert start is not None
        R, Q = np.atleast_2d(start.R).astype(float), np.atleast_2d(start.Q).astype(float)
        classify = data.task == "classification"
        return cls(rule.kind, taught, np.array(rule.second), b, T, R, Q, data.noise, classify)

    @property
    def units(self) -> tuple[int, int]:
        """K and M."""
        K, M = self.R.shape
        return K, M

    @cached_property
    def onto(self) -> Array:
        """T⁻¹."""
        return np.asarray(np.linalg.inv(self.T), float)

    @cached_property
    def root(self) -> Array:
        """Symmetric root of P = Q − R T⁻¹ Rᵀ, what of the first weights the teacher knows not."""
        w, u = np.linalg.eigh(self.Q - self.R @ self.onto @ self.R.T)
        return np.asarray(u * np.sqrt(np.maximum(w, 0.0)) @ u.T)

    def weights(self, Z: Array) -> tuple[Array, Array]:
        """Turn normals (... × (M + K) × N) into B and J of exactly these overlaps."""
        M = len(self.T)
        Z = np.linalg.solve(np.linalg.cholesky(Z @ np.swapaxes(Z, -1, -2)), Z)  # orthonormal
        B = np.linalg.cholesky(self.T) @ Z[..., :M, :]
        return B, self.R @ self.onto @ B + self.root @ Z[..., M:, :]
