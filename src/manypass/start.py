"""Where learning starts from, if not from J = 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from manypass import checks
from manypass.checks import Array
from manypass.data.dataset import Dataset
from manypass.layers import checking

if TYPE_CHECKING:
    import xarray as xr

MOST = 1e6


@dataclass(frozen=True)
class Start:
    """Weights J(0): of overlap B·J = R and length J·J = Q for a teacher, themselves for a Dataset.

    Otherwise J(0) is random, J(0) = R B + √(Q − R²) n with n ⊥ B, |n| = 1, and knows nothing of the
    training set: to go on learning from the *same* examples, make the rate a schedule instead. If
    inputs are correlated this holds for √Σ J and √Σ B: R and Q are all that a test would tell.

    Parameters
    ----------
    R, Q : float
        For a Teacher; Q ≥ R². For a `Committee` of K units and a teacher of M they are tables,
        R_km = J_k·B_m (K×M) and Q_kl = J_k·J_l (K×K).
    weights : sequence of float, optional
        For a Dataset, one number per column.

    Examples
    --------
    >>> import manypass as mp
    >>> start = mp.Start(R=0.5, Q=1.0)
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.0, start=start)
    >>> mp.solve(problem, [0.0]).Eg.values.round(6)  # arccos(½)/π
    array([0.333333])
    """

    R: Any = 0.0
    Q: Any = 0.0
    weights: Any = None

    def __post_init__(self) -> None:
        if checking.is_table(self.R) or checking.is_table(self.Q):
            for name, table in checking.tables(self.R, self.Q, self.weights).items():
                object.__setattr__(self, name, table)
            return
        R = checks.number("R", self.R, -MOST, MOST)
        Q = checks.number("Q", self.Q, 0, MOST**2)
        if Q < R**2 * (1 - 1e-12):
            raise ValueError(f"`Q` = {Q:g} must be at least R² = {R**2:g}: |J|² ≥ (B·J)²")
        object.__setattr__(self, "R", R)
        object.__setattr__(self, "Q", max(Q, R**2))
        if self.weights is None:
            return
        if R or Q:
            raise ValueError("`weights` say all: leave `R` and `Q` out")
        weights = checks.reals("weights", self.weights)
        if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all():
            odd = checks.shown(self.weights)
            raise ValueError(f"`weights` must be finite numbers, one per column, got {odd}")
        object.__setattr__(self, "weights", tuple(weights.tolist()))

    @property
    def c(self) -> float:
        """Q − R², what of the weights the teacher does not know."""
        return float(self.Q - self.R**2)

    @property
    def at_zero(self) -> bool:
        """Whether all weights are 0."""
        return not np.any(self.Q if self.weights is None else self.weights)

    @classmethod
    def of(cls, result: xr.Dataset) -> Start:
        """Return the start where a teacher's result ends: its last R and Q, on fresh examples.

        Examples
        --------
        >>> import manypass as mp
        >>> problem = mp.Problem(mp.Teacher(alpha=2.0), mp.Hebbian(), rate=1.0, decay=1.0)
        >>> mp.Start.of(mp.solve(problem, [1.0])).R == float(mp.solve(problem, [1.0]).R[-1])
        True
        """
        if "R" not in getattr(result, "data_vars", ()) or "Q" not in result:
            raise ValueError(
                f"`result` must be learning curves of a Teacher, with R and Q, got "
                f"{checks.shown(result)}; for a Dataset give Start(weights=...)"
            )
        if other := [str(dim) for dim in result.R.dims if dim not in ("t", "unit", "teacher")]:
            raise ValueError(f"`result` must be one point of a sweep, not along {', '.join(other)}")
        if one := [n for n in ("unit", "teacher") if n in result.coords and n not in result.R.dims]:
            raise ValueError(f"`result` must hold all units of a Committee, not one {one[0]} alone")
        if "unit" in result.dims:
            last = result.isel(t=-1) if "t" in result.dims else result
            return cls(last.R.values, (last.Q.values + last.Q.values.T) / 2)
        R, Q = (float(np.ravel(result[name].values)[-1]) for name in ("R", "Q"))
        if not math.isfinite(Q):
            raise ValueError(f"`result` has diverged by its end: Q = {Q:g}")
        return cls(R, max(Q, R**2))

    def drawn(self, B: Array, rng: np.random.Generator) -> Array:
        """Draw weights with this overlap and length, exactly, for a teacher of length one."""
        if not self.Q:
            return np.zeros(B.size)
        n = rng.standard_normal(B.size)
        n -= B * (B @ n) / (B @ B)
        along: Array = self.R * B / math.sqrt(B @ B)
        return along + math.sqrt(self.c) * n / max(math.sqrt(n @ n), 1e-300)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        if self.weights is not None:
            return {"weights": [*self.weights]}
        plain = checking.plain
        return {"R": plain(self.R), "Q": plain(self.Q)}

    @staticmethod
    def fitting(given: Any, data: Any) -> Start:
        """Return the start that a table or itself stands for, if it fits the data."""
        if isinstance(given, dict):
            unknown = next((key for key in given if key not in ("R", "Q", "weights")), None)
            if unknown is not None:
                odd = " ".join(str(unknown).split())
                raise ValueError(f"`{odd}` is not a field of start: `start` has R, Q, weights")
            try:
                given = Start(**given)
            except ValueError as error:  # it names what is wrong in it, not whose R and Q these are
                raise ValueError(f"`start`: {error}") from None
        if not isinstance(given, Start):
            own = isinstance(data, Dataset)
            like = "weights=[...]" if own else "R=0.5, Q=1.0"
            table = "weights = [...]" if own else "R = 0.5, Q = 1.0"
            raise ValueError(
                f"`start` must be Start({like}), in a file the table {{ {table} }}, "
                f"got {checks.shown(given)}"
            )
        own = isinstance(data, Dataset)
        if own and given.weights is None:
            raise ValueError(
                f"`start` has R = {given.R} and Q = {given.Q}, which are for a Teacher: a Dataset "
                f"has weights, Start(weights=...), in a file the table {{ weights = [...] }}"
            )
        if not own and given.weights is not None:
            raise ValueError("`start` of a Teacher is Start(R=, Q=): `weights` are for a Dataset")
        if own and len(given.weights) != data.n:
            raise ValueError(
                f"`start` has {len(given.weights)} `weights`, but {data!r} has N = {data.n}"
            )
        return given
