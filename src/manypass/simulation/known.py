"""Functions of numpy, scipy and math that forces call and numba does not know, of numbers."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import scipy  # its rooms open on first use
from numba import types
from numba.extending import overload

ROOT2 = math.sqrt(2.0)
EQUIVALENTS: dict[Any, Any] = {
    np.clip: lambda a, a_min, a_max: min(max(a, a_min), a_max),
    np.heaviside: lambda x1, x2: x2 if x1 == 0 else (1.0 * (x1 > 0) if x1 == x1 else x1),
    math.cbrt: lambda x: np.cbrt(x),
    scipy.special.erf: lambda x: math.erf(x),
    scipy.special.erfc: lambda x: math.erfc(x),
    scipy.special.expit: lambda x: 1.0 / (1.0 + math.exp(-x)),
    scipy.special.ndtr: lambda x: 0.5 * math.erfc(-x / ROOT2),
}
INSTEAD = {  # of what no number is made of
    "piecewise": "`if` or np.where",
    "select": "`if` or np.where",
    "interp": "`if`, min and max",
    "vectorize": "the function itself, of numbers",
}


def _serve(function: Any, equivalent: Any) -> None:
    """Let numba compile a function as another one, if its arguments are numbers."""
    many = equivalent.__code__.co_argcount

    def typed(*kinds: Any) -> Any:
        numbers = len(kinds) == many and all(isinstance(k, types.Number) for k in kinds)
        return equivalent if numbers else None

    overload(function, strict=False)(typed)


for _function, _equivalent in EQUIVALENTS.items():
    _serve(_function, _equivalent)


def why(error: Exception) -> str:
    """Say on one line what numba cannot compile, and what would do instead."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if "mode pipeline" not in line] or lines
    end = next((i for i, line in enumerate(said) if line.startswith("File")), 2)  # its text follows
    what = " ".join(said[: min(max(end, 1), 2)])[:200]
    other = next((use for name, use in INSTEAD.items() if name in what), None)
    if other:
        return f"{what}; write it by {other}"
    if "Untyped global name" in what or "Unknown attribute" in what:
        if re.search(r"<class '(dict|list|type|set|str)'>", what):
            return f"{what}; give numbers of its own by name, Rule(force, k=3.0)"
        served = ", ".join(sorted(f.__name__ for f in EQUIVALENTS))
        return (
            f"{what}; helpers of your own are compiled with it if they are functions by def or "
            f"lambda, no objects that can be called, and do not call themselves (one that does "
            f"needs its decorator numba.njit); of others the compiler knows most of math and "
            f"numpy, and {served}"
        )
    return what
