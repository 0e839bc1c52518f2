"""What a user sees of m and Σ: mean-square errors, error rates, and the size of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erfc

from manypass import card
from manypass.checks import Array
from manypass.data.moments import Moments


class Measure:
    """F2, Et of the training set, F2_test, Eg of the test set and Q = ⟨|J|²⟩.

    F2 = ⟨F²⟩, over the training set and over the draws, for Adaline the mean squared error;
    F2_test the same over the test set. Regression: Et and Eg = ½⟨(ỹ − x)²⟩, half of these.
    Classification: Et and Eg = P(ỹx < 0), with x taken as Gaussian of mean ξ·m and variance
    ξᵀΣξ: its first two moments are exact, its shape is not.
    """

    def __init__(self, moments: Moments, task: str) -> None:
        self.moments, self.classify = moments, task == "classification"
        self.H_test = moments.examples.H_test
        self.outside = moments.examples.n - moments.examples.rank

    def __call__(self, m: Any, Sigma: Array | None, null: float) -> dict[str, float]:
        """All that can be measured; a diverged Σ (None) has infinite errors, or guesses."""
        found = self.train(m, Sigma) | self.test(m, Sigma, null)
        return {name: found[name] for name in ("Q", "F2", "F2_test", "Et", "Eg") if name in found}

    def train(self, m: Any, Sigma: Array | None) -> dict[str, float]:
        """F2 and Et of weights with mean m and covariance Σ."""
        e, moments = self.moments.examples, self.moments
        if Sigma is None:
            return {"F2": np.inf, "Et": 0.5 if self.classify else np.inf}
        x = e.Y @ m
        f = e.targets - x
        error = max(float(f @ f / f.size + e.h @ moments.variances(Sigma)), 0.0)
        F2 = error if moments.coupled else float(e.targets @ e.targets / f.size)
        if not self.classify:
            return {"F2": F2, "Et": error / 2}
        variance = np.concatenate([moments.spread(Sigma, Y) for _, Y in moments.blocks()])
        return {"F2": F2, "Et": error_rate(e.targets, x, variance)}

    def test(self, m: Any, Sigma: Array | None, null: float) -> dict[str, float]:
        """Q, F2_test and Eg of weights with mean m, covariance Σ, and variance `null` outside."""
        e, moments = self.moments.examples, self.moments
        if Sigma is None:
            lost = {"F2_test": np.inf, "Eg": 0.5 if self.classify else np.inf}
            return {"Q": np.inf} | (lost if e.targets_test.size else {})
        out = {"Q": float(m @ m + moments.variances(Sigma).sum() + self.outside * null)}
        if not e.targets_test.size:
            return out
        x, targets = e.Y_test @ m, e.targets_test
        noise = self.noise(Sigma, null)
        error = max(float(np.mean((targets - x) ** 2)) + noise, 0.0)
        out["F2_test"] = error if moments.coupled else float(np.mean(targets**2))
        if self.classify:
            variance = moments.spread(Sigma, e.Y_test) + null * e.outside
            return out | {"Eg": error_rate(targets, x, variance)}
        return out | {"Eg": error / 2}

    def noise(self, Sigma: Array, null: float) -> float:
        """⟨ξᵀΣξ⟩ over the test set."""
        H = np.diagonal(self.H_test) if self.moments.diagonal else self.H_test
        return float(np.sum(H * Sigma) + null * self.moments.examples.outside.mean())


def error_rate(targets: Array, x: Array, variance: Array) -> float:
    """Mean of P(ỹx < 0) = ½ erfc(ỹx/√(2 variance)); x = 0 for certain is a guess."""
    targets, x, variance = (card.host(a) for a in (targets, x, variance))
    width = np.sqrt(2 * np.maximum(variance, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        certain = np.where(x == 0, 0.0, np.sign(targets * x) * np.inf)
        argument = np.where(width > 0, targets * x / width, certain)
    return float(np.mean(erfc(argument) / 2))


def stack(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Curves from values at one time after the other."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
