"""Checks of what belongs to two layers: teachers, starts and problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from manypass import checks
from manypass.layers.activation import ACTIVATIONS
from manypass.layers.rule import BOUND, MOST_UNITS, Committee, vector

if TYPE_CHECKING:
    from manypass.problem import Problem, Teacher

ROUNDING = 1e-9
NEEDED = (
    "a Committee needs a `start`: from J = 0, or from R = 0 or any R with equal rows, its units "
    "stay alike for ever as N → ∞, and what ends that in a network is chance of size 1/√N; give "
    "one with R of {K}×{M} and Q of {K}×{K} numbers, such as Start(R={R}, Q={Q})"
)
Table = tuple[tuple[float, ...], ...]


def table(name: str, given: Any) -> Table:
    """Return a table of finite numbers as nested tuples."""
    found = checks.reals(name, given)
    if found.ndim != 2 or not found.size or not (np.abs(found) <= BOUND).all():
        raise ValueError(
            f"`{name}` must be a table of finite numbers, a list of its rows such as "
            f"[[0.1, 0.0], [0.0, 0.1]], got {checks.shown(given)}"
        )
    return tuple(map(tuple, found.tolist()))


def is_table(value: Any) -> bool:
    """Whether a value is meant as one, though it may be none."""
    return bool(isinstance(value, list | tuple) or getattr(value, "ndim", 0))


def plain(value: Any) -> Any:
    """Return a number as it is, a table as lists."""
    return [list(row) for row in value] if isinstance(value, tuple) else value


def symmetric(name: str, given: Any) -> Table:
    """Return a square table that equals its transpose."""
    found = table(name, given)
    square = np.array(found)
    if square.shape[0] != square.shape[1] or not np.allclose(square, square.T, 1e-9, 1e-12):
        raise ValueError(f"`{name}` must be a symmetric table, got {checks.shown(given)}")
    return found


def tables(R: Any, Q: Any, weights: Any) -> dict[str, Table]:
    """Return R and Q of a start with several units."""
    if weights is not None:
        raise ValueError("`weights` are for a Dataset: leave them out where `R` and `Q` are tables")
    found = {}
    if is_table(R):
        found["R"] = table("R", R)
    if is_table(Q):
        found["Q"] = symmetric("Q", Q)
    if len(found) < 2:
        raise ValueError(
            f"`R` and `Q` must both be numbers or both tables, got {checks.shown(R)} and "
            f"{checks.shown(Q)}"
        )
    if len(found["R"]) != len(found["Q"]):
        raise ValueError(
            f"`R` has {len(found['R'])} rows and `Q` {len(found['Q'])}: one for each hidden unit"
        )
    return found


def teacher(data: Teacher) -> dict[str, Any]:
    """Return what a teacher's two layers are, checked; None where that is the default."""
    try:
        return _teacher(data)
    except ValueError as error:  # a student has fields of these names too
        raise ValueError(re.sub(r"^`(\w+)`", r"`\1` of the teacher", str(error))) from None


def _teacher(data: Teacher) -> dict[str, Any]:
    hidden = checks.count("hidden", data.hidden, 1, MOST_UNITS)
    if data.activation is not None:
        checks.choice("activation", data.activation, ACTIVATIONS)
    second, overlaps = data.second, data.overlaps
    if second is not None:
        second = vector("second", second, hidden)
        second = None if second == (1.0,) * hidden else second
        if second is not None and not any(second):
            raise ValueError("`second` must not be all zero: it would teach nothing")
    if overlaps is not None:
        overlaps = symmetric("overlaps", overlaps)
        T = np.array(overlaps)
        if T.shape[0] != hidden:
            raise ValueError(
                f"`overlaps` must be {hidden}×{hidden} numbers, got {checks.shown(data.overlaps)}"
            )
        if np.linalg.eigvalsh(T)[0] <= ROUNDING * np.trace(T):
            raise ValueError(
                f"`overlaps` must be positive definite, or units of the teacher are none of their "
                f"own, got {checks.shown(data.overlaps)}"
            )
        overlaps = None if (np.eye(hidden) == T).all() else overlaps
    return {"hidden": hidden, "second": second, "overlaps": overlaps}


def taught(rule: Any, data: Any) -> None:
    """Refuse a Committee on given examples."""
    if isinstance(rule, Committee) and not hasattr(data, "overlaps"):
        raise ValueError(
            f"`rule` {rule!r} learns from a Teacher, not from {data!r}: rules of one layer, such "
            f"as Adaline() and Logistic(), do"
        )


def problem(given: Problem) -> None:
    """Refuse two layers that do not fit together, and a start that is missing or impossible."""
    data: Any = given.data
    start = given.start
    if not isinstance(given.rule, Committee):
        if start is not None and isinstance(start.R, tuple):
            raise ValueError(
                f"`start` of `rule` {given.rule!r} has numbers R and Q: tables are for a Committee"
            )
        for name in ("hidden", "activation", "second", "overlaps"):
            value = getattr(data, name, None)
            if value not in (None, 1, "linear"):
                raise ValueError(
                    f"`{name}` of the teacher = {value!r} is for two layers, which `rule` "
                    f"{given.rule!r} does not learn: take a Committee"
                )
        return
    if not data.isotropic:
        raise ValueError(
            f"`inputs` = {data.inputs} is not served with a Committee, by any method: leave it out"
        )
    if given.mode == "batch":
        raise ValueError(
            "`mode` = 'batch' is not served with a Committee: gradient descent in finite steps is "
            "`mode` = 'online' with `batch_share` = 1"
        )
    _sign(given)
    K, M = given.rule.hidden, data.hidden
    T = np.eye(M) if data.overlaps is None else np.array(data.overlaps)
    if start is None and K == 1:
        raise ValueError(
            f"a Committee needs a `start`: one unit may begin with J = 0, Start(R={[M * [0.0]]}, "
            f"Q=[[0.0]])"
        )
    if start is None:
        R = (0.1 * np.eye(K, M)).tolist()
        raise ValueError(NEEDED.format(K=K, M=M, R=R, Q=(0.25 * np.eye(K)).tolist()))
    R, Q = np.atleast_2d(start.R), np.atleast_2d(start.Q)
    if R.shape != (K, M) or Q.shape != (K, K):
        raise ValueError(
            f"`start` has R of {R.shape[0]}×{R.shape[1]} and Q of {Q.shape[0]}×{Q.shape[1]} "
            f"numbers: a Committee of {K} units and a teacher of {M} need {K}×{M} and {K}×{K}"
        )
    left = np.linalg.eigvalsh(Q - R @ np.linalg.solve(T, R.T))[0]
    if left < -ROUNDING * max(np.trace(Q), 1e-300):
        raise ValueError(
            f"`start` is of no weights: Q − R T⁻¹ Rᵀ, T the teacher's overlaps, has the eigenvalue "
            f"{left:.3g} < 0; take a larger Q or a smaller R"
        )


def _sign(given: Problem) -> None:
    """Refuse classes of a teacher whose output has one sign only."""
    data: Any = given.data
    activation = data.activation or given.rule.activation  # type: ignore[attr-defined]
    second = data.second or (1.0,) * data.hidden
    one_sign = min(second) >= 0 or max(second) <= 0
    if data.task == "classification" and activation == "relu" and one_sign:
        raise ValueError(
            f"`second` of the teacher = {list(second)} gives, with ReLU units, outputs of one "
            f"sign: for classification it must have both; or take another `activation`, or `task` "
            f"'regression'"
        )
