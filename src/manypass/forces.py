"""A user's own force: what it must be, what it takes from around it, and its slope."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import numpy as np

from manypass import checks

Function = Callable[..., Any]
KNOWN = ("numpy", "numba")  # whose functions are the compiler's to know
BESIDE = 1e-12  # of x = 0, closer than activations are
AIMS = (-1.0, -0.37, 0.37, 1.0)  # targets at which a force is tried
ASIDE = (0.137, -0.137)  # activations that are none in particular
STEP = 6e-6  # ∛ε: errors of rounding and of the difference are equal


def central_difference(force, x, target, *parameters):  # type: ignore[no-untyped-def]
    """dF/dx ≈ [F(x + h, ỹ) − F(x − h, ỹ)]/2h."""
    h = STEP * (1.0 + abs(x))
    return (force(x + h, target, *parameters) - force(x - h, target, *parameters)) / (2.0 * h)


@dataclass(frozen=True)
class Difference:
    """The slope of a force for which none was given."""

    force: Function

    def __call__(self, x: Any, target: Any, *parameters: float) -> Any:
        """Return the slope at (x, ỹ)."""
        force = partial(applied, "force", self.force)
        return central_difference(force, x, target, *parameters)  # type: ignore[no-untyped-call]


def around(function: Function, outer: tuple[Function, ...] = ()) -> tuple[Any, ...]:
    """Return what a function takes from around it; compiled, it would keep these values for ever.

    Examples
    --------
    >>> from manypass.forces import around
    >>> g = 2.0
    >>> around(lambda x, y: g * (y - x))
    (('g', 'float', 2.0),)
    """
    if isinstance(function, Difference):
        return around(function.force)
    found = []
    for name, value in sorted(used(function).items()):
        kept = (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
        found.append((name, type(value).__name__, kept if _hashable(kept) else repr(kept)))
    for helper in helpers(function, outer).values():
        found += around(helper, (*outer, function))
    return tuple(found)


def used(function: Function) -> dict[str, Any]:
    """Return what a function names that stands around it."""
    variables = inspect.getclosurevars(getattr(function, "py_func", function))
    return {**variables.globals, **variables.nonlocals}


def helpers(function: Function, outer: tuple[Function, ...] = ()) -> dict[str, Function]:
    """Return the functions written in Python that a function calls, but not what calls it."""
    return {
        name: value
        for name, value in used(function).items()
        if isinstance(value, FunctionType)
        and (value.__module__ or "").partition(".")[0] not in KNOWN
        and value not in (*outer, function)
    }


def with_helpers(
    function: Function, compiled: Function, outer: tuple[Function, ...] = ()
) -> Function:
    """Return a function of Python whose helpers are compiled, each with its own.

    Examples
    --------
    >>> import numba
    >>> half = lambda z: z / 2
    >>> numba.njit(with_helpers(lambda x, y: half(y - x), numba.njit))(0.5, 1.0)
    0.25
    """
    function = getattr(function, "py_func", function)
    made = {
        name: compiled(with_helpers(helper, compiled, (*outer, function)))
        for name, helper in helpers(function, outer).items()
    }
    if not made:
        return function
    code, cells = function.__code__, function.__closure__ or ()
    held = zip(code.co_freevars, cells, strict=True)
    closure = tuple(CellType(made.get(name, cell.cell_contents)) for name, cell in held)
    scope = {**function.__globals__, **made}
    out = FunctionType(code, scope, function.__name__, function.__defaults__, closure)
    out.__qualname__ = function.__qualname__
    return out


def applied(name: str, function: Function, x: Any, target: Any, *parameters: float) -> Any:
    """Return F(x, ỹ) or its slope; what is not finite is told where it is used.

    A function of numbers, with an `if` or of `math`, is asked entry by entry of arrays.

    Examples
    --------
    >>> applied("force", lambda x, y: y if x * y < 0 else 0.0, np.array([1.0, -1.0]), 1.0)
    array([0., 1.])
    """
    x, target = (_numbers(*pair) for pair in (("x", x), ("target", target)))
    check_shapes(x, target)
    shape = np.broadcast_shapes(np.shape(x), np.shape(target))
    with np.errstate(all="ignore"):
        try:
            found = returned(name, function, x, target, *parameters)
            if np.shape(found) == shape:
                return found
        except Exception:
            if not (shape or isinstance(x, np.generic) or isinstance(target, np.generic)):
                raise
        pairs = zip(*(a.ravel().tolist() for a in np.broadcast_arrays(x, target)), strict=True)
        values = [returned(name, function, *pair, *parameters) for pair in pairs]
        for value in values:
            if np.size(value) != 1:
                raise ValueError(
                    f"`{name}` {title(function)} must return one number for one x and one target, "
                    f"got {checks.shown(value)}"
                )
        return np.array(values, float).reshape(shape)[()]


def returned(name: str, function: Function, x: Any, target: Any, *parameters: float) -> Any:
    """Return what a function makes of numbers or arrays, if that is numbers."""
    found = getattr(function, "py_func", function)(x, target, *parameters)
    listed = isinstance(found, tuple | list)  # which numpy would take for arrays
    if listed or checks.array(name, found).dtype.kind not in "biuf":
        raise ValueError(
            f"`{name}` {title(function)} must return a real number for numbers (x, target), got "
            f"{checks.shown(found)}"
        )
    return found


def check_shapes(x: Any, target: Any) -> None:
    """Refuse activations and targets that numpy cannot bring together."""
    try:
        np.broadcast_shapes(np.shape(x), np.shape(target))
    except ValueError:
        shapes = f"{np.shape(x)} and {np.shape(target)}"
        raise ValueError(f"`x` and `target` must fit each other, got shapes {shapes}") from None


def _numbers(name: str, value: Any) -> Any:
    """Return numbers as they are, and lists of them as arrays."""
    if isinstance(value, float | int):
        if abs(value) > sys.float_info.max and value not in (math.inf, -math.inf):
            raise ValueError(
                f"`{name}` must be numbers that a float holds, got {checks.shown(value)}"
            )
        return value
    given = value if hasattr(value, "dtype") else checks.array(name, value)
    if getattr(given.dtype, "kind", "O") not in "iuf":
        raise ValueError(f"`{name}` must be numbers or an array of them, got {checks.shown(value)}")
    return given


def _value(function: Function, x: float, target: float, *values: float) -> float:
    """Return one real number: numpy would make one of a complex number, with a warning."""
    return float(returned("force", function, x, target, *values))


def check_works(rule: Any) -> None:
    """Refuse a rule whose force fails, or is no number, where nothing is particular.

    Examples
    --------
    >>> import manypass as mp
    >>> check_works(mp.Rule(lambda x, y: y - np.sqrt(x - 1)))
    Traceback (most recent call last):
    ...
    ValueError: `force` of Rule(force=<lambda at ...>) is nan at x = 0.25, target = 1.0
    """
    try:
        value = float(rule.force(0.25, 1.0))
    except Exception as error:
        raise ValueError(
            f"`force` of {rule!r} fails at x = 0.25, target = 1.0: {type(error).__name__}: {error}"
        ) from None
    if not math.isfinite(value):
        raise ValueError(f"`force` of {rule!r} is {value} at x = 0.25, target = 1.0")


def unready(force: Function, values: tuple[float, ...]) -> str | None:
    """Say that a force is not finite at x = 0, where learning from J = 0 begins, or None.

    Examples
    --------
    >>> unready(lambda x, y: y / x, ())
    'is -inf at x = 0, target = -1'
    """
    plain = getattr(force, "py_func", force)

    def at(x: float, target: float) -> tuple[float, str]:
        try:
            with np.errstate(all="ignore"):
                found = _value(plain, np.float64(x), np.float64(target), *values)
            return found, f"is {found}"
        except Exception as error:
            return math.nan, f"fails ({error})"

    for target in (-1.0, 0.37, 1.0):
        found, wrong = at(0.0, target)
        # Where it is no number on either side, that is told where it is used
        if not math.isfinite(found) and any(math.isfinite(at(x, target)[0]) for x in ASIDE):
            return f"{wrong} at x = 0, target = {target:g}"
    return None


def stuck(
    force: Function, values: tuple[float, ...], targets: tuple[float, ...] = AIMS
) -> str | None:
    """Say that F(0, ỹ) = 0 for every target, though F(0±, ỹ) ≠ 0 for one: J = 0 never moves.

    Examples
    --------
    >>> stuck(lambda x, y: np.where(x > 0, y, -x), ())
    'F(0, target) = 0, though F(1e-12, -1) = -1'
    >>> stuck(lambda x, y: y * (x * y <= 0), ()), stuck(lambda x, y: np.cbrt(x), ())
    (None, None)
    """
    plain = getattr(force, "py_func", force)

    def F(x: float, y: float) -> float:
        with np.errstate(all="ignore"):
            return _value(plain, np.float64(x), np.float64(y), *values)

    try:
        if any(F(0.0, y) for y in targets):
            return None
        for x in (BESIDE, -BESIDE):
            for y in targets:
                if abs(F(x, y)) > 0.5 * abs(F(1e6 * x, y)) > 0:  # a jump: it does not fall with x
                    return f"F(0, target) = 0, though F({x:g}, {y:g}) = {F(x, y):g}"
    except Exception:  # a force that fails is told where it is used
        return None
    return None


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_arguments(name: str, function: Function, parameters: dict[str, float]) -> None:
    """Check that a user's function takes x, a target and exactly these parameters."""
    if not isinstance(getattr(function, "py_func", function), FunctionType):  # of numba: py_func
        raise ValueError(
            f"`{name}` must be a function of (x, target) written in Python, by def or lambda, so "
            f"that it can be compiled, with numbers of its own by name, Rule(F, k=3.0), got "
            f"{checks.shown(function)}"
        )
    plain = getattr(function, "py_func", function)
    if inspect.iscoroutinefunction(plain) or plain.__code__.co_flags & GENERATES:
        raise ValueError(
            f"`{name}` {title(plain)} must return a number when it is called: write it by def, "
            f"without async, await or yield"
        )
    signature = list(inspect.signature(function).parameters.values())
    if more := [str(p) for p in signature if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]:
        raise ValueError(
            f"`{name}` must be a function of (x, target) and parameters by their names, such as "
            f"force(x, target, k) for Rule(force, k=3.0), to be compiled, got {' and '.join(more)}"
        )
    places = [p for p in signature if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2:
        own = ", ".join(p.name for p in signature)
        raise ValueError(f"`{name}` must be a function of (x, target), got one of ({own})")
    taken = [p.name for p in signature if p.name in parameters or p.default is p.empty][2:]
    if set(taken) != set(parameters):
        given = ", ".join(parameters) or "none"
        own = f"the parameters {', '.join(taken)}" if taken else "no parameter"
        raise ValueError(f"`{name}` takes {own} after (x, target), got {given}")
    if len(places) != 2 + len(parameters) or len(signature) != len(places):
        own = ", ".join(str(p) for p in signature)
        raise ValueError(
            f"`{name}` must be a function of (x, target) and of the parameters that are given, "
            f"with no others that have defaults, to be compiled, got one of ({own})"
        )


GENERATES = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
SPEAKING = {"print", "input", "open"}
PLACES = [(x, y) for x in (-2.93, -0.7, 0.137, 1.63) for y in (-1.0, 0.37, 1.0)]


def checked_jumps(
    force: Function, jumps: Iterable[float], parameters: tuple[float, ...]
) -> tuple[float, ...]:
    """Return activations at which F is said to jump, for ỹ = 1 or −1, after looking there."""
    if isinstance(jumps, str) or not isinstance(jumps, Iterable):
        raise ValueError(f"`jumps` must be activations such as [0.0], got {checks.shown(jumps)}")
    found = tuple(sorted({checks.number("jumps", x, -1e6, 1e6) for x in jumps}))
    for x in found:
        near = 1e-9 * max(abs(x), 1.0)
        sides = [
            [float(applied("force", force, at, y, *parameters)) for at in (x - near, x + near)]
            for y in (-1.0, 1.0)
        ]
        if not max(abs(high - low) for low, high in sides) > 1e-6:
            raise ValueError(f"`jumps`: the force does not jump at x = {x:g} for target -1 or 1")
    return found


def check_slope(force: Function, slope: Function, values: tuple[float, ...]) -> None:
    """Refuse a slope that differs from dF/dx where two differences of the force agree on it."""
    F, dF = (getattr(f, "py_func", f) for f in (force, slope))

    def rise(x: float, y: float, h: float) -> float:
        return (_value(F, x + h, y, *values) - _value(F, x - h, y, *values)) / (2 * h)

    for x, y in PLACES:
        with np.errstate(all="ignore"):
            try:
                size = abs(_value(F, x, y, *values))
                found, finer = rise(x, y, 4 * STEP), rise(x, y, STEP)
            except Exception:  # a force that fails is told where it is used
                return
            try:
                given = _value(dF, x, y, *values)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise ValueError(f"`slope` fails at x = {x}, target = {y}: {what}") from None
        known = abs(found - finer) <= 1e-4 * abs(finer) + 1e-8 * size  # no kink, no jump, finite
        if known and not abs(given - finer) <= 1e-3 * max(abs(given), abs(finer)) + 1e-7 * size:
            raise ValueError(
                f"`slope` is not dF/dx of `force`: at x = {x}, target = {y} it is {given:.6g}, a "
                f"difference of the force gives {finer:.6g}; mend it, or leave it out"
            )


def speaks(function: Function, outer: tuple[Function, ...] = ()) -> bool:
    """Whether a function, or one that it calls, prints or reads.

    Examples
    --------
    >>> speaks(lambda x, y: print(x)), speaks(lambda x, y: max(x, y))
    (True, False)
    """
    named = inspect.getclosurevars(getattr(function, "py_func", function)).builtins
    inner = helpers(function, outer).values()
    return bool(SPEAKING & named.keys()) or any(speaks(f, (*outer, function)) for f in inner)


def check_repeatable(name: str, function: Function, values: tuple[float, ...]) -> None:
    """Refuse a function that draws random numbers: compiled, they follow no seed of a method.

    Nor may it print: where it is one of many arguments of compiled code there is no way to.
    """
    plain = getattr(function, "py_func", function)
    if speaks(plain):
        raise ValueError(
            f"`{name}` {title(plain)} prints, or reads files: compiled it can only compute; leave "
            f"that out"
        )
    drawn = "random" in plain.__code__.co_names
    with np.errstate(all="ignore"):
        for place in PLACES:
            try:
                one, two = (_value(plain, *place, *values) for _ in range(2))
            except Exception:  # a function that fails is told where it is used
                break
            drawn = drawn or not (one == two or (one != one and two != two))
    if drawn:
        raise ValueError(
            f"`{name}` {title(plain)} draws random numbers, or is not the same twice for one "
            f"(x, target): no `seed` would give it again. Noise of targets is the `noise` of a "
            f"Teacher, that of steps the `temperature` of a Problem"
        )


def title(function: Function) -> str:
    """Name of a function; where a nameless one stands."""
    title = getattr(function, "__name__", None) or repr(function)
    code = getattr(function, "__code__", None)
    if title != "<lambda>" or code is None:
        return str(title)
    return f"<lambda at {Path(code.co_filename).name}:{code.co_firstlineno}>"
