"""Checks of user input: each raises a `ValueError` that names the argument and its value."""

from __future__ import annotations

import difflib
import inspect
import math
import secrets
import sys
from collections.abc import Collection, Iterable
from dataclasses import fields
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bare(value: Any) -> Any:
    """Return what a scalar or a 0-d array of numpy or xarray holds, anything else as it is.

    A Decimal, which is no `Real` to Python, is a float.
    """
    if isinstance(value, Decimal):
        return math.nan if value.is_nan() else float(value)
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    held = kind in ("b", "i", "u", "f", "U") and getattr(value, "ndim", None) == 0
    return value.item() if held and not np.ma.is_masked(value) else value


def shown(value: Any, most: int = 60) -> str:
    """Write a value as one line of an objection can hold it.

    Examples
    --------
    >>> shown(np.eye(2))
    'array([[1., 0.], [0., 1.]])'
    """
    try:
        return " ".join(repr(value).split())[:most]
    except Exception:  # a number of more digits than Python writes, a class of someone's own
        return f"a {type(value).__name__} that cannot be written"


def is_real(value: Any) -> bool:
    """Whether this is a real number; numpy takes a span of time for a whole one."""
    return isinstance(value, Real | Decimal) and not isinstance(
        value, bool | np.bool_ | np.timedelta64
    )


def number(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    or_zero: bool = False,
    or_infinite: bool = False,
    or_else: str = "",
) -> float:
    """Return `value` as a float if it is a real number in [low, high], or 0 or inf if allowed.

    `or_else` are words for what else the argument may be.
    """
    value = bare(value)
    also = (or_zero, 0), (or_infinite, math.inf)
    if not (is_real(value) and (low <= value <= high or (True, value) in also)):
        zero, infinite = "0 or " if or_zero else "", " or inf" if or_infinite else ""
        raise ValueError(
            f"`{name}` must be {zero}a number from {low:g} to {high:g}{infinite}{or_else}, "
            f"got {shown(value)}{_quoted(value)}"
        )
    return float(value)


def _quoted(value: Any) -> str:
    """Say of a text that would be a number what keeps it from being one."""
    try:
        number = math.nan if not isinstance(value, str) else float(value)
    except ValueError:
        number = math.nan
    return "" if math.isnan(number) else ", a text: write it without quotes"


def count(name: str, value: Any, low: int, high: int) -> int:
    """Return `value` as an int if it is a whole number in [low, high]."""
    value = bare(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole and low <= value <= high):
        raise ValueError(
            f"`{name}` must be a whole number from {low} to {high}, got {shown(value)}"
        )
    return int(value)


def outside() -> int:
    """Return the stack level of whoever called the package, for a warning of its caller."""
    return 1 + next(i for i, name in enumerate(_callers()) if not name.startswith(OURS))


def maker() -> str:
    """Return the room of the package that makes a problem, or "" if it is none of them."""
    name = next(name for name in _callers() if name not in ("manypass.problem", "dataclasses"))
    return name.removeprefix("manypass.") if name.startswith(OURS) else ""


OURS = ("manypass.", "dataclasses")


def _callers() -> list[str]:
    """Return the modules of the calls under way, from the one that asks on."""
    frame, names = sys._getframe(2), list[str]()
    while frame:
        names.append(frame.f_globals.get("__name__", ""))
        frame = frame.f_back  # type: ignore[assignment]
    return [*names, ""]


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool if it is one: "no" would count as True."""
    value = bare(value)
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be True or False, got {shown(value)}")
    return value


def progress(value: Any) -> Any:
    """Return `value` if it is a bool or a function to be told."""
    if isinstance(value, type) or not (isinstance(bare(value), bool) or callable(value)):
        raise ValueError(f"`progress` must be True, False or a function, got {shown(value)}")
    if callable(value):
        try:
            inspect.signature(value).bind(None)
        except TypeError as error:
            raise ValueError(
                f"`progress` must be a function of the result so far, got {shown(value)}: {error}"
            ) from None
        except ValueError:  # of a builtin, which does not say what it takes
            pass
    return value


def seed(name: str, value: Any) -> int:
    """Return `value` if it can be a seed; for None a fresh one, to be told in the result."""
    return secrets.randbits(53) if value is None else count(name, value, 0, 2**63 - 1)


def plain(settings: Any) -> None:
    """Turn numpy's and other numbers in a frozen dataclass into Python's, which files can hold."""
    for field in fields(settings):
        value = bare(getattr(settings, field.name))
        value = float(value) if is_real(value) and not isinstance(value, int) else value
        object.__setattr__(settings, field.name, value)


def choice(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the allowed strings."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {shown(value)}"
            f"{meant(value, allowed)}"
        )
    return value


ELSEWHERE = {  # what others call what is said here
    **dict.fromkeys(("lr", "learning_rate", "eta", "eta0", "step_size"), "rate"),
    **dict.fromkeys(("weight_decay", "l2", "lambda_", "lam", "ridge"), "decay"),
    **dict.fromkeys(("epochs", "n_epochs", "num_epochs", "max_iter", "steps"), "times"),
    **dict.fromkeys(("batchsize", "minibatch"), "batch_size"),
    **dict.fromkeys(("shuffle", "order"), "sequence"),
    **dict.fromkeys(("beta", "nesterov"), "momentum"),
    **dict.fromkeys(("loss", "model", "algorithm"), "rule"),
    **dict.fromkeys(("random_state", "rng"), "seed"),
    **dict.fromkeys(("sigma", "noise_std"), "noise"),
}
UNITS = {
    "rate": " (v = N times the factor of a step)",
    "times": " of `solve` (a pass over the data takes alpha = p/N)",
}


def meant(value: Any, allowed: Iterable[str]) -> str:
    """Ask for the allowed word that is nearly this one, or say how one of others' is called here.

    Examples
    --------
    >>> meant("adalin", ["adaline", "adatron"]), meant(3, ["adaline"])
    ("; did you mean 'adaline'?", '')
    """
    low = value.lower() if isinstance(value, str) else ""
    here = ELSEWHERE.get(low.replace("-", "_"))
    if here and (here in allowed or here == "times"):
        return f"; here it is `{here}`{UNITS.get(here, '')}"
    allowed = list(allowed)
    near = [word for word in allowed if word.lower() == low]
    near = near or difflib.get_close_matches(low, allowed, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def unmasked(name: str, values: Any) -> Any:
    """Return `values` if none of them is masked: numpy would take what is under the mask."""
    if np.ma.is_masked(values):
        raise ValueError(f"`{name}` must have no masked entries, got {shown(values)}")
    return values


def written(value: Any) -> str:
    """Return `str(value)`, and of what has none how it is shown."""
    try:
        return str(value)
    except Exception:
        return shown(value)


def array(name: str, values: Any) -> NDArray[Any]:
    """Return `values` as numpy takes them, if it does: not if they are ragged, or a result."""
    try:
        return np.asarray(values)
    except Exception:  # whatever an object of someone's own raises
        raise ValueError(f"`{name}` must be an array, got {shown(values)}") from None


def reals(name: str, values: Any) -> Array:
    """Return `values`, of any shape, as floats: numpy would take texts, truths and dates too."""
    unmasked(name, values)
    try:
        found = np.asarray(values)
        kind = found.dtype.kind
        if isinstance(values, list | tuple) and any(isinstance(v, bool) for v in values):
            raise TypeError  # numpy takes True for 1 beside numbers
        if kind not in "iuf" and not (kind == "O" and all(map(is_real, found.ravel()))):
            raise TypeError
        return found.astype(float)
    except Exception:  # whatever an object of someone's own raises
        raise ValueError(f"`{name}` must be real numbers, got {shown(values)}") from None


def increasing(name: str, values: Any, high: float) -> Array:
    """Return `values` as a float array if they rise strictly within [0, high]."""
    found = np.atleast_1d(reals(name, values))
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"`{name}` must be a non-empty 1-D array, got shape {found.shape}")
    bad = found[~((found >= 0) & (found <= high))]  # NaN fails both comparisons
    if bad.size:
        raise ValueError(f"`{name}` must lie from 0 to {high:g}, got {bad[0]:g}")
    falls = np.flatnonzero(np.diff(found) <= 0)
    if falls.size:
        first, then = found[falls[0]], found[falls[0] + 1]
        raise ValueError(f"`{name}` must be strictly increasing, got {first:g} before {then:g}")
    return found
