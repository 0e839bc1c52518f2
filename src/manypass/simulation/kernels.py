"""The hot loops, compiled by numba; everything that depends on the rule comes in as a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from manypass.compiling import FAST, njit  # before numba: it tells what numba cannot read

# isort: split
from numba import cfunc, config, float64, types
from numba.core.errors import NumbaWarning

from manypass import rules
from manypass.forces import Difference, around, central_difference, check_works, with_helpers
from manypass.rules import Rule
from manypass.simulation import known

FINE, DIVERGED, NOT_A_NUMBER = 0, 1, 2


HELPER = njit(nogil=True, error_model="numpy", boundscheck=True)
DIFFERENCE = njit(nogil=True, error_model="numpy")(central_difference)


@njit(**FAST)
def moved(J, step, here, then):  # type: ignore[no-untyped-def]
    """J ← J + step ξ; returns J·ξ' of the next example, so that every weight is touched once."""
    dot = J[0] * 0
    for j in range(J.size):
        k = J[j] + step * here[j]
        J[j] = k
        dot += k * then[j]
    return dot


@njit(**FAST)
def shaken(J, step, here, then, offset, kick, noise):  # type: ignore[no-untyped-def]
    """J ← J + step ξ ± kick η as `moved`, η from |offset| on in a pool, with the offset's sign."""
    dot, kick, kicks = J[0] * 0, kick * np.sign(offset), noise[abs(offset) :]
    for j in range(J.size):
        k = J[j] + step * here[j] + kick * kicks[j]
        J[j] = k
        dot += k * then[j]
    return dot


@njit(**FAST)
def learn(force, parameters, J, X, targets, sequence, rates, keeps, limit, noise, offsets, total):  # type: ignore[no-untyped-def]
    """J ← keep J + rate F(x, ỹ) ξ + noise, for each example of the sequence in turn.

    `rates` and `keeps` have one number a step, or one for all.
    Each pass over the weights finishes one step and computes the activation for the next, so that
    every weight is touched once per step; the decay is one number, J = scale K. `noise` is a pool
    of Gaussian numbers, of which step s uses those from |offset| on, with the offset's sign.
    `total`, unless empty, gathers the sum of J after every step. Returns a status, and where.
    """
    n, scale, zero = J.size, 1.0, J[0] * 0
    here, dot = X[sequence[0]], zero
    for j in range(n):
        dot += J[j] * here[j]
    for s in range(sequence.size):
        x = scale * dot
        F = force(x, targets[sequence[s]], *parameters)
        if not abs(x) < limit:
            return DIVERGED, s
        if np.isnan(F):
            return NOT_A_NUMBER, s
        now = min(s, rates.size - 1)
        scale *= keeps[now]
        step = zero + rates[now] * F / scale
        here, then = X[sequence[s]], X[sequence[min(s + 1, sequence.size - 1)]]
        if noise.size:
            dot = shaken(J, step, here, then, offsets[s], zero + 1 / scale, noise)
        else:
            dot = moved(J, step, here, then)
        if total.size:
            for j in range(n):
                total[j] += scale * J[j]
        if scale < 1e-9:  # long before the weights would overflow
            J *= zero + scale
            dot *= scale
            scale = 1.0
    J *= zero + scale
    return FINE, sequence.size


@njit(**FAST)
def descend(force, parameters, J, V, X, targets, sequence, ends, paces, limit, kicks, total):  # type: ignore[no-untyped-def]
    """V ← βV + Σ F(x, ỹ) ξ − drag J, J ← keep J + rate V + kick, batch by batch.

    `ends` are their bounds in `sequence`; `paces` are β, and the rate, keep and drag of each batch.

    `total`, unless empty, gathers the sum of J after every step. Returns a status, and where.
    """
    momentum, rates, keeps, drags = paces
    for b in range(ends.size - 1):
        V *= momentum
        for s in range(ends[b], ends[b + 1]):
            xi, x = X[sequence[s]], J[0] * 0
            for j in range(J.size):
                x += J[j] * xi[j]
            F = force(x, targets[sequence[s]], *parameters)
            if not abs(x) < limit:
                return DIVERGED, s
            if np.isnan(F):
                return NOT_A_NUMBER, s
            F = J[0] * 0 + F
            for j in range(J.size):
                V[j] += F * xi[j]
        rate, keep, drag = rates[b], keeps[b], drags[b]
        if drag:
            for j in range(J.size):
                V[j] -= drag * J[j]
        for j in range(J.size):
            J[j] = keep * J[j] + rate * V[j]
        if kicks.size:
            J += kicks[b]
        if total.size:
            total += J
    return FINE, sequence.size


@njit(**FAST)
def measure(force, parameters, x, targets, classify):  # type: ignore[no-untyped-def]
    """⟨F²⟩ and E_t over the training set, for each column of activations x (examples × times)."""
    p, count = x.shape
    F2, Et = np.zeros(count), np.zeros(count)
    for i in range(p):
        for t in range(count):
            F2[t] += force(x[i, t], targets[i], *parameters) ** 2
            if classify:
                Et[t] += 0.5 * (1 - np.sign(x[i, t] * targets[i]))
            else:
                Et[t] += 0.5 * (targets[i] - x[i, t]) ** 2
    return F2 / p, Et / p


@njit(**FAST)
def drift(force, parameters, J, X, targets, v, decay, out):  # type: ignore[no-untyped-def]
    """v[(1/p) Σ F ξ − λJ]; each example is read once, for its activation and its pull."""
    p, n = X.shape
    out[:] = 0
    for i in range(p):
        xi, x = X[i], J[0] * 0
        for j in range(n):
            x += J[j] * xi[j]
        F = J[0] * 0 + force(x, targets[i], *parameters) / p
        for j in range(n):
            out[j] += F * xi[j]
    for j in range(n):
        out[j] = v * (out[j] - decay * J[j])


@njit(**FAST)
def flow(force, parameters, J, X, targets, v, decay, d, kicks, total):  # type: ignore[no-untyped-def]
    """Runge–Kutta steps of length d, with a kick (if any) before each and after the last.

    `v` and `decay` are those at the beginning of each step, at its middle, and at the very end.

    `total`, unless empty, gathers ∫J dt.
    """
    k1, k2, k3, k4 = np.empty_like(J), np.empty_like(J), np.empty_like(J), np.empty_like(J)
    count = v.size // 2
    for i in range(count):
        if kicks.size:
            J += kicks[i]
        a, b, c = 2 * i, 2 * i + 1, 2 * i + 2
        drift(force, parameters, J, X, targets, v[a], decay[a], k1)
        drift(force, parameters, J + d / 2 * k1, X, targets, v[b], decay[b], k2)
        drift(force, parameters, J + d / 2 * k2, X, targets, v[b], decay[b], k3)
        drift(force, parameters, J + d * k3, X, targets, v[c], decay[c], k4)
        step = d / 6 * (k1 + 2 * (k2 + k3) + k4)
        if total.size:
            total += d * (J + step / 2)
        J += step
    if kicks.size:
        J += kicks[count]


def compiled_force(rule: Rule) -> Any:
    """Return the rule's force compiled; it is called as force(x, target, *parameters)."""
    check_works(rule)
    function = rule.force_function
    return _compiled("force", function, len(rule.parameters), around(function))


def compiled_rule(rule: Rule) -> tuple[tuple[float, ...], Any]:
    """Parameters and force as a pointer: loops that take them compile once.

    A tuple that begins with a pointer would make numba warn at every call, from every thread.
    """
    compiled_force(rule)
    parameters, function = tuple(rule.parameters.values()), rule.force_function
    return parameters, _pointer(function, len(parameters), around(function))


@lru_cache(maxsize=64)
def _compiled(name: str, function: Callable[..., Any], count: int, taken: Any) -> Any:
    """Compile a function for what it takes from around it now."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise ValueError("NUMBA_DISABLE_JIT is set: simulations and DMFT need the compiler")
    # What a user's force does may change without its text, and then it must be compiled again.
    ours = not isinstance(function, Difference) and function.__module__ == rules.__name__
    checked = {"cache": ours, "boundscheck": not ours}  # a table of one's own may be too short
    compiled = njit(**FAST | checked)(_plain(function, count))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)  # of what is then refused, or served
            compiled.compile((float64,) * (2 + count))
    except Exception as error:  # of its own kinds, and whatever its parts raise
        raise ValueError(
            f"`{name}` {getattr(function, '__qualname__', function)} ({_place(function)}) cannot "
            f"be compiled, it must be a plain numeric function of the numbers (x, target), as by "
            f"min, max, abs, if and np.exp: {known.why(error)}"
        ) from None
    returned = compiled.nopython_signatures[0].return_type
    if isinstance(returned, types.Array) and returned.ndim == 0:  # of np.where and the like
        return njit(**FAST)(_called("F({}).item()", compiled, count))
    if not isinstance(returned, types.Integer | types.Float | types.Boolean):
        raise ValueError(
            f"`{name}` {function.__qualname__} ({_place(function)}) must return a real number "
            f"for numbers (x, target), got {returned}"
        )
    return compiled


@lru_cache(maxsize=64)
def _pointer(function: Callable[..., Any], count: int, taken: Any) -> Any:
    signature = float64(*(float64,) * (2 + count))
    compiled = _compiled("force", function, count, taken)
    return cfunc(signature, error_model="numpy")(compiled.py_func)


def _plain(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a function that numba can compile: of a fixed number of arguments."""
    if not isinstance(function, Difference):
        return with_helpers(function, HELPER)
    force = _compiled("force", function.force, count, around(function.force))
    return _called("difference(F, {})", force, count)


def _called(how: str, force: Any, count: int) -> Callable[..., Any]:
    """Return a function of x, y and parameters that calls a compiled one."""
    names = ", ".join(("x", "y", *(f"p{i}" for i in range(count))))
    scope = {"F": force, "difference": DIFFERENCE}
    made: Callable[..., Any] = eval(f"lambda {names}: {how.format(names)}", scope)
    return made


def _place(function: Callable[..., Any]) -> str:
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    return f"line {code.co_firstlineno} of {code.co_filename}" if code else "source not found"
