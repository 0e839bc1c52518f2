"""How inputs are correlated: eigenvalues μ of their covariance, and what the teacher has of them.

ξ ~ N(0, Σ). A share w of the directions has the eigenvalue μ, and P = Σ_k B_k² μ_k of the teacher's
⟨y²⟩ comes from it. Every law is normalised: Σw = Σwμ = ΣP = 1, so that |ξ|² = N and ⟨y²⟩ = 1.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from manypass import checks
from manypass.checks import Array
from manypass.data import columns, preparing
from manypass.data.tidying import aligned
from manypass.spectrum import gauss_legendre


class Law(NamedTuple):
    """Eigenvalues, rising, their weights and the teacher's power, normalised."""

    mu: Array
    w: Array
    P: Array

    @classmethod
    def make(cls, mu: Array, w: Array, P: Array) -> Law:
        """Normalise and sort."""
        order = np.argsort(mu)
        return cls((mu * w.sum() / (w @ mu))[order], (w / w.sum())[order], (P / P.sum())[order])


class Inputs:
    """A law of inputs; frozen and equal by value."""

    def law(self, alpha: float) -> Law:
        """Return atoms as dense as sums over the spectrum of H at this α need them."""
        raise NotImplementedError

    def drawn(self, n: int) -> tuple[Array, Array]:
        """Return n eigenvalues μ and the teacher's P on them, of networks of n weights."""
        raise NotImplementedError

    def plain(self) -> Any:
        """Return what stands for it in files: a text or a table."""
        raise NotImplementedError


@dataclass(frozen=True)
class Isotropic(Inputs):
    """Inputs without correlations, Σ = 1: the paper's.

    Examples
    --------
    >>> import manypass as mp
    >>> mp.Teacher(alpha=1.2).inputs
    Isotropic()
    """

    def law(self, alpha: float) -> Law:
        """One eigenvalue."""
        one = np.ones(1)
        return Law(one, one, one)

    def drawn(self, n: int) -> tuple[Array, Array]:
        """All eigenvalues are 1."""
        return np.ones(n), np.full(n, 1 / n)

    def plain(self) -> str:
        """Return its name."""
        return "isotropic"


PANELS = 3000  # of 16 atoms: as many as can be summed over in seconds
UNCORRELATED = Isotropic()


@dataclass(frozen=True)
class PowerLaw(Inputs):
    """μ ∝ (u + cutoff)^−exponent and P ∝ (u + cutoff)^−teacher, 0 < u < 1 evenly.

    Parameters
    ----------
    exponent : float
        Of the eigenvalues against their rank u.
    teacher : float, optional
        Of the teacher's power; by default `exponent`, a teacher with equal weights.
    cutoff : float
        Share of the directions, about, with the largest eigenvalues. A law without one has an
        eigenvalue of order N, with which no theory of many small steps holds: vμ/N must be small.

    Examples
    --------
    >>> from manypass import inputs
    >>> law = inputs.PowerLaw(1.2, cutoff=0.02).law(1.0)
    >>> [round(float(total), 12) for total in (law.w.sum(), law.w @ law.mu, law.P.sum())]
    [1.0, 1.0, 1.0]
    """

    exponent: float
    teacher: float | None = None
    cutoff: float = 0.01

    def __post_init__(self) -> None:
        exponent = checks.number("exponent", self.exponent, 0, 10)
        teacher = exponent if self.teacher is None else self.teacher
        if isinstance(self.cutoff, int | float) and not self.cutoff > 0:
            raise ValueError(
                f"`cutoff` must be above 0, got {checks.shown(self.cutoff)}: without one the "
                f"largest eigenvalue grows with N, and vμ/N never gets small"
            )
        object.__setattr__(self, "exponent", exponent)
        object.__setattr__(self, "teacher", checks.number("teacher", teacher, -10, 20))
        object.__setattr__(self, "cutoff", checks.number("cutoff", self.cutoff, 1e-5, 1e3))

    def law(self, alpha: float) -> Law:
        """Atoms even in 1/u: gaps between them stay below the width ~ u²/α of what they become."""
        a, cut = self.exponent, self.cutoff
        panels = 7 + math.ceil(max(alpha, 0.5) * a * a / cut / 2.5)
        if panels > PANELS:
            raise ValueError(
                f"`alpha` = {alpha:g} is too large for {self!r}: up to "
                f"{2.5 * PANELS * cut / (a * a):.3g}, or inf, or take a larger `cutoff`"
            )
        edges = np.linspace(1 / (1 + cut), 1 / cut, panels)
        u, gauss = gauss_legendre(16)
        r = (edges[:-1, None] + np.diff(edges)[:, None] * (1 + u) / 2).ravel()
        w = (np.diff(edges)[:, None] * gauss / 2).ravel() / r**2
        return Law.make(r**a, w, w * r ** float(self.teacher or 0.0))

    def drawn(self, n: int) -> tuple[Array, Array]:
        """Ranks in the middle of n even cells."""
        u = (np.arange(n) + 0.5) / n + self.cutoff
        law = Law.make(u**-self.exponent, np.ones(n), u ** -float(self.teacher or 0.0))
        return law.mu, law.P

    def plain(self) -> str:
        """Return powerlaw:exponent:teacher:cutoff."""
        return f"powerlaw:{self.exponent!r}:{self.teacher!r}:{checks.shown(self.cutoff)}"


@dataclass(frozen=True)
class Blocks(Inputs):
    """Few eigenvalues, each of a share of the directions.

    Parameters
    ----------
    values : sequence of float
        Eigenvalues, up to their scale.
    weights : sequence of float, optional
        Shares of the directions; equal by default.
    power : sequence of float, optional
        The teacher's power in each; by default weights × values, a teacher with equal weights.

    Examples
    --------
    >>> from manypass import inputs
    >>> inputs.Blocks([0.5, 4.0], weights=[3, 1]).law(1.0).mu.round(6).tolist()
    [0.363636, 2.909091]
    """

    values: Any
    weights: Any = None
    power: Any = None

    def __post_init__(self) -> None:
        values = _positive("values", self.values, None)
        size = len(values)
        weights = (1.0,) * size if self.weights is None else self.weights
        weights = _positive("weights", weights, size)
        even = tuple(w * v for w, v in zip(weights, values, strict=True))
        power = _positive("power", even if self.power is None else self.power, size, or_zero=True)
        for name, given in (("values", values), ("weights", weights), ("power", power)):
            object.__setattr__(self, name, given)

    def law(self, alpha: float) -> Law:
        """Return the blocks themselves."""
        return Law.make(*(np.array(part) for part in (self.values, self.weights, self.power)))

    def drawn(self, n: int) -> tuple[Array, Array]:
        """Blocks of whole directions; each has its power, whatever its rounded size."""
        edges = np.rint(np.cumsum((0.0, *self.weights)) / sum(self.weights) * n).astype(int)
        sizes = np.diff(edges)
        if (sizes == 0).any():
            raise ValueError(f"`n` = {n} leaves no direction for one of the blocks {self!r}")
        each = np.array(self.power) / sizes
        law = Law.make(np.repeat(self.values, sizes), np.ones(n), np.repeat(each, sizes))
        return law.mu, law.P

    def plain(self) -> dict[str, list[float]]:
        """Return a table."""
        return {name: [*getattr(self, name)] for name in ("values", "weights", "power")}


@dataclass(frozen=True)
class Eigenvalues(Inputs):
    """Given eigenvalues, all of the same weight, as `inputs_of` finds them.

    Parameters
    ----------
    mu : sequence of float
    power : sequence of float, optional
        The teacher's power in each direction; by default that of equal weights, ∝ μ.

    Examples
    --------
    >>> import manypass as mp
    >>> mp.Eigenvalues([1.0, 3.0]).law(1.0).mu.tolist()  # normalised to a mean of 1
    [0.5, 1.5]
    """

    mu: Any
    power: Any = None

    def __post_init__(self) -> None:
        mu = _positive("mu", self.mu, None)
        power = mu if self.power is None else self.power
        power = _positive("power", power, len(mu), or_zero=True)
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "power", power)

    def law(self, alpha: float) -> Law:
        """Return the eigenvalues themselves."""
        return Law.make(np.array(self.mu), np.ones(len(self.mu)), np.array(self.power))

    def drawn(self, n: int) -> tuple[Array, Array]:
        """Each eigenvalue as often as it fits, the teacher's power spread over its copies."""
        owner = np.floor((np.arange(n) + 0.5) / n * len(self.mu)).astype(int)
        counts = np.bincount(owner, minlength=len(self.mu))
        if (counts == 0).any():
            raise ValueError(f"`n` = {n} is less than the {len(self.mu)} eigenvalues of the inputs")
        law = Law.make(np.array(self.mu)[owner], np.ones(n), (np.array(self.power) / counts)[owner])
        return law.mu, law.P

    def plain(self) -> dict[str, list[float]]:
        """Return a table."""
        return {"mu": [*self.mu], "power": [*self.power]}


def read(value: Any) -> Inputs:
    """Return the law that a text, a table or itself stands for.

    Examples
    --------
    >>> from manypass import inputs
    >>> inputs.read("powerlaw:1.2:1.4:0.005")
    PowerLaw(exponent=1.2, teacher=1.4, cutoff=0.005)
    """
    if isinstance(value, Inputs):
        return value
    if value is None or (isinstance(value, str) and value == "isotropic"):
        return Isotropic()
    try:
        if isinstance(value, str) and value.startswith("powerlaw:"):
            return PowerLaw(**_numbers(value.split(":")[1:]))
        if isinstance(value, dict) and ("mu" in value or "values" in value):
            kind = Eigenvalues if "mu" in value else Blocks
            known = [field.name for field in fields(kind)]
            if odd := [key for key in value if key not in known]:
                raise ValueError(f"`{odd[0]}` is not a field of it: it has {', '.join(known)}")
            return kind(**value)
    except ValueError as error:  # it names what is wrong in the law, not whose law it is
        raise ValueError(f"`inputs` = {checks.shown(value)}: {error}") from None
    raise ValueError(
        f"`inputs` must be isotropic, powerlaw:EXPONENT:TEACHER:CUTOFF, a table of values, weights "
        f"and power, or of mu and power, got {checks.shown(value)}"
    )


def inputs_of(X: Any, y: Any) -> Eigenvalues:
    """Estimate the law of a user's inputs: eigenvalues of XᵀX/p, and the power of a linear teacher.

    The teacher is the least-squares solution w, with P_k = μ_k (v_k·w)²; neither has a unit: the
    mean of the μ_k is 1, and the sum of the P_k. With fewer examples than
    some ten per column both are distorted: eigenvalues are spread, and w fits the noise. With fewer
    examples than columns, p < N, a warning says that they are the sample's, not the population's.
    If X and y both have an index (pandas), it says which belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from manypass import inputs
    >>> X = np.random.default_rng(0).standard_normal((2000, 2)) * [1.0, 3.0]
    >>> law = inputs.inputs_of(X, X @ [1.0, 0.0]).law(1.0)
    >>> law.mu.round(1).tolist(), law.P.round(2).tolist()
    ([0.2, 1.8], [1.0, 0.0])
    """
    if isinstance(y, str):
        raise ValueError(
            f"`y` must be the targets, got {y!r}: of a frame inputs_of(frame.drop(columns={y!r}), "
            f"frame[{y!r}]); of a file, read it first"
        )
    y = columns.targets("y", checks.array("y", aligned("X", X, "y", y)), None)
    if set(np.unique(y)) == {0.0, 1.0}:
        y = 2 * y - 1
        warnings.warn("`y` has 0 and 1 alone: taken as the classes -1 and +1", stacklevel=2)
    X, _ = columns.inputs("X", X, None)
    preparing.same_length("X", X, "y", y)
    for name, largest in (("X", abs(X).max()), ("y", abs(y).max())):
        if largest < columns.SMALLEST:
            least = f"not above {columns.SMALLEST:g}" if largest else "zero"
            raise ValueError(f"`{name}` is {least} everywhere: there is no law to find")
    p, N = X.shape
    if p < N:
        warnings.warn(
            f"`X` has {p} examples of {N} columns: these are eigenvalues of the "
            f"sample, at most {p}, not of the population, and the teacher fits every example; "
            f"give more examples than columns",
            stacklevel=2,
        )
    covariance = X.T @ X / p
    mu, V = np.linalg.eigh(covariance.toarray() if columns.is_sparse(X) else covariance)
    kept = mu > 1e-12 * mu[-1]
    mu, V = mu[kept], V[:, kept]
    if mu.size < min(p, N):
        warnings.warn(
            f"`X` has {N} columns, but they vary along {mu.size} directions only: these are taken, "
            f"`alpha` = {p / mu.size:.4g} counts them; leave out what follows from other columns",
            stacklevel=2,
        )
    w = V.T @ (X.T @ y / p) / mu
    power = mu * w**2
    return Eigenvalues((mu / mu.mean()).tolist(), (power / power.sum()).tolist())


def _numbers(words: list[str]) -> dict[str, Any]:
    """Return the numbers of a power law by their names; what is left empty takes its default."""
    names = [field.name for field in fields(PowerLaw)]
    if len(words) > len(names):
        raise ValueError(f"{len(words)} numbers, but a power law has only {', '.join(names)}")
    out = {}
    for name, word in zip(names, words, strict=False):
        if word in ("", "None"):
            continue
        try:
            out[name] = float(word)
        except ValueError:
            raise ValueError(f"`{name}` must be a number, got {checks.shown(word)}") from None
    if "exponent" not in out:
        raise ValueError("`exponent` is missing: powerlaw:EXPONENT:TEACHER:CUTOFF")
    return out


def _positive(name: str, values: Any, size: int | None, *, or_zero: bool = False) -> Any:
    given = np.atleast_1d(checks.reals(name, values))
    numbers = given.tolist() if given.ndim == 1 else []
    low = 0.0 if or_zero else 1e-12
    wrong = next((v for v in numbers if not low <= v <= 1e12), None)
    if not numbers or wrong is not None or sum(numbers) == 0:
        least = "0 to 1e12, not all of them 0" if or_zero else "above 0 to 1e12"
        raise ValueError(f"`{name}` must be numbers from {least}, got {checks.shown(values)}")
    if size is not None and len(numbers) != size:
        raise ValueError(f"`{name}` must be {size} numbers, got {len(numbers)}")
    return tuple(numbers)
