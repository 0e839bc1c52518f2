"""From order parameters to the errors that a user sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from manypass.checks import Array


def generalization_error(task: str, R: ArrayLike, Q: ArrayLike) -> Array:
    """E_g = arccos(R/√Q)/π (classification) or ½(1 − 2R + Q) (regression), fresh clean example.

    A student with J = 0 guesses: its classification error is ½.

    Examples
    --------
    >>> float(generalization_error("regression", R=0.5, Q=0.5))
    0.25
    """
    R, Q = np.asarray(R, float), np.asarray(Q, float)
    if task == "regression":
        finite = np.where(
            np.isfinite(Q), 0.5 * (1 - 2 * np.where(np.isfinite(R), R, 0.0) + Q), np.inf
        )
        return np.asarray(np.maximum(finite, 0.0))  # ½|B − J|²: what is below is rounding
    length = np.sqrt(np.where(Q > 0, Q, np.inf))
    cosine = np.where(np.isfinite(R), R, 0.0) / length  # a diverged student guesses
    return np.asarray(np.arccos(np.clip(cosine, -1, 1)) / np.pi)
