"""Activations g of hidden units and their slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ACTIVATIONS = ("erf", "relu", "tanh", "linear")  # by these numbers compiled code knows them
ERF, RELU, TANH, LINEAR = range(4)
ROOT_HALF, PEAK = math.sqrt(0.5), math.sqrt(2 / math.pi)


def activate(x, kind):  # type: ignore[no-untyped-def]
    """Return g(x) and g′(x): erf(x/√2), x Θ(x), tanh x or x. Compiled for a card as it is."""
    x = 1.0 * x
    if kind == ERF:
        return math.erf(ROOT_HALF * x), PEAK * math.exp(-0.5 * x * x)
    if kind == RELU:
        return (x, 1.0) if x > 0 else (0.0, 0.0)
    if kind == TANH:
        g = math.tanh(x)
        return g, 1.0 - g * g
    return x, 1.0


def values(x: Any, kind: int) -> Any:
    """Return g of an array."""
    x = np.asarray(x)
    if kind == ERF:
        from scipy.special import erf  # a problem is made without it

        return erf(ROOT_HALF * x)
    if kind == RELU:
        return np.maximum(x, 0.0)
    return np.tanh(x) if kind == TANH else x


def slopes(x: Any, kind: int) -> Any:
    """Return g′ of an array."""
    x = np.asarray(x)
    if kind == ERF:
        return PEAK * np.exp(-0.5 * x * x)
    if kind == RELU:
        return 1.0 * (x > 0)
    return 1 - np.tanh(x) ** 2 if kind == TANH else np.ones_like(x)
