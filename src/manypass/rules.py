"""The learning rules: each is its force F(x, ỹ) and its slope dF/dx, nothing else.

Forces are plain functions of (x, ỹ, *parameters) that serve a number or an array, so that every
method, compiled or not, uses the same line of physics.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from manypass import checks, forces
from manypass.forces import Difference, Function


class Rule:
    """A learning rule: one step on example ξ adds (v/N) F(x, ỹ) ξ to the weights.

    Parameters
    ----------
    force : callable
        F(x, ỹ), of an activation x and a target ỹ (numbers or numpy arrays). It may call functions
        of one's own, which are compiled with it, and those of numpy and math that make a number of
        numbers, also erf, erfc, expit and ndtr of scipy.special. One that draws random numbers is
        refused: no `seed` would give them again.
    slope : callable, optional
        dF/dx; by default a central difference, good to nine digits or so. One that is given is
        compared with differences at some activations, and refused if it is of another force.
    jumps : sequence of float
        Activations x at which F jumps, for ỹ = 1 or −1. Only needed where two jumps are closer than
        0.01 or beyond |x| = 6: others are found. One that is no jump is refused.
    **parameters : float
        Further arguments of both functions, given by name. A value may change without the
        functions being compiled again.

    Examples
    --------
    >>> import numpy as np
    >>> import manypass as mp
    >>> cubic = mp.Rule(force=lambda x, y: (y - x) ** 3, slope=lambda x, y: -3 * (y - x) ** 2)
    >>> cubic.force(0.5, 1.0)
    0.125
    >>> round(mp.Rule(lambda x, y: (y - x) ** 3).slope(0.5, 1.0), 6)
    -0.75
    >>> mp.Adatron(kappa=1.0).force(np.array([-1.0, 0.5, 2.0]), 1.0)
    array([2. , 0.5, 0. ])
    """

    force_function: Function
    slope_function: Function
    parameters: dict[str, float]
    jumps: tuple[float, ...]
    __slots__ = ("force_function", "jumps", "parameters", "slope_function")
    of_margins = False  # whether it is made for classes: F knows x and ỹ = ±1 by their margin xỹ

    def __init__(
        self,
        force: Function,
        slope: Function | None = None,
        *,
        jumps: Iterable[float] = (),
        **parameters: float,
    ) -> None:
        slope = Difference(force) if slope is None else slope
        for name, function in (("force", force), ("slope", slope)):
            if not isinstance(function, Difference):
                forces.check_arguments(name, function, parameters)
        order = list(inspect.signature(force).parameters) if parameters else []
        values = {
            k: checks.number(k, parameters[k], -BOUND, BOUND) for k in order if k in parameters
        }
        for name, function in (("force", force), ("slope", slope)):
            if not isinstance(function, Difference) and function.__module__ != __name__:
                forces.check_repeatable(name, function, tuple(values.values()))
        if not isinstance(slope, Difference) and slope.__module__ != __name__:
            forces.check_slope(force, slope, tuple(values.values()))
        named = forces.checked_jumps(force, jumps, tuple(values.values()))
        object.__setattr__(self, "jumps", named)
        object.__setattr__(self, "force_function", force)
        object.__setattr__(self, "slope_function", slope)
        object.__setattr__(self, "parameters", values)

    def force(self, x: Any, target: Any) -> Any:
        """F(x, ỹ), of numbers or arrays."""
        return forces.applied("force", self.force_function, x, target, *self.parameters.values())

    def slope(self, x: Any, target: Any) -> Any:
        """dF/dx at (x, ỹ)."""
        return forces.applied("slope", self.slope_function, x, target, *self.parameters.values())

    @property
    def reach(self) -> float:
        """The largest |F|/|x| at activations beside which every constant is nil: 0 if bounded."""
        return self._reach(FAR)

    @property
    def steep(self) -> bool:
        """Whether the force grows faster than x: then no rate is small enough for all examples.

        Examples
        --------
        >>> import manypass as mp
        >>> [mp.Rule(f).steep for f in (lambda x, y: (y - x) ** 3, lambda x, y: 9e5 * (y - x))]
        [True, False]
        """
        near, far = self._reach(LARGE), self._reach(FAR)
        return not far <= 1.5 * near < np.inf

    def _reach(self, x: float) -> float:
        return max(abs(float(self.force(at, y))) for at in (-x, x) for y in (-1.0, 1.0)) / x

    @property
    def bounded(self) -> bool:
        """Whether the force stays small beside large activations."""
        return self.reach < 1e-3

    @property
    def name(self) -> str:
        """Name of the rule in files and on the command line."""
        return type(self).__name__.lower()

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters; a user's own functions are named, not stored."""
        if type(self) is Rule:
            force = getattr(self.force_function, "__qualname__", repr(self.force_function))
            return {**self.parameters, "name": "rule", "force": force}
        return {"name": self.name, **self.parameters}

    def changed(self, **changes: float) -> Rule:
        """Return the rule with some parameters changed; jumps may then be elsewhere."""
        for name in changes:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ValueError(f"`{name}` is no parameter of {self!r}: it has {known}")
        return _rebuild(
            type(self), self.force_function, self.slope_function, (), self.parameters | changes
        )

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self.parameters.items()]
        if type(self) is Rule:
            own = {"force": self.force_function, "slope": self.slope_function}
            given = {k: f for k, f in own.items() if not isinstance(f, Difference)}
            named = [f"jumps={list(self.jumps)}"] if self.jumps else []
            titles = [f"{name}={forces.title(function)}" for name, function in given.items()]
            shown = titles + named + shown
        return f"{type(self).__name__}({', '.join(shown)})"

    def _key(self) -> tuple[Any, ...]:
        return (self.force_function, self.slope_function, self.jumps, *self.parameters.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a rule is frozen: make a new one to change `{name}`")

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.force_function, self.slope_function, self.jumps, self.parameters
        return _rebuild, (type(self), *own)


LARGE = 1e6  # activations beside which all constants of a force are nil
FAR = 1e12  # and beside which every allowed parameter is
BOUND = 1e6  # no parameter of a rule is sensibly larger; keeps every power of it finite


def _rebuild(
    kind: Callable[..., Rule],
    force: Function,
    slope: Function,
    jumps: tuple[float, ...],
    parameters: dict[str, float],
) -> Rule:
    if kind is Rule:
        return Rule(force, slope, jumps=jumps, **parameters)
    return kind(**parameters)


def _hebbian(x, target):  # type: ignore[no-untyped-def]
    return target + 0.0 * x


def _hebbian_slope(x, target):  # type: ignore[no-untyped-def]
    return 0.0 * x * target


def _adaline(x, target):  # type: ignore[no-untyped-def]
    return target - x


def _adaline_slope(x, target):  # type: ignore[no-untyped-def]
    return -1.0 + 0.0 * x * target


def _adatron(x, target, kappa):  # type: ignore[no-untyped-def]
    return target * np.maximum(kappa - x * target, 0.0)


def _adatron_slope(x, target, kappa):  # type: ignore[no-untyped-def]
    return -target * target * (x * target < kappa)


def _perceptron(x, target, kappa):  # type: ignore[no-untyped-def]
    return target * (x * target <= kappa)  # Θ(0) = 1: else J = 0 would never learn at κ = 0


def _perceptron_slope(x, target, kappa):  # type: ignore[no-untyped-def]
    return 0.0 * x * target


def _logistic(x, target):  # type: ignore[no-untyped-def]
    return 0.5 * target * (1.0 - np.tanh(0.5 * x * target))  # ỹ/(1 + e^{xỹ}) without overflow


def _logistic_slope(x, target):  # type: ignore[no-untyped-def]
    return -0.25 * target * target * (1.0 - np.tanh(0.5 * x * target) ** 2)


def _huber(x, target, width):  # type: ignore[no-untyped-def]
    return np.minimum(np.maximum(target - x, -width), width)


def _huber_slope(x, target, width):  # type: ignore[no-untyped-def]
    return -1.0 * (np.abs(target - x) < width)


class Hebbian(Rule):
    """F = ỹ: every example pulls with the same strength, learned or not.

    Examples
    --------
    >>> import manypass as mp
    >>> mp.Hebbian().force(0.5, 1.0)
    1.0
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_hebbian, _hebbian_slope)


class Adaline(Rule):
    """F = ỹ − x: gradient descent on ½(ỹ − x)².

    Examples
    --------
    >>> import manypass as mp
    >>> mp.Adaline().force(0.25, 1.0)
    0.75
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_adaline, _adaline_slope)


class Adatron(Rule):
    """F = ỹ (κ − xỹ) Θ(κ − xỹ): gradient descent on the squared hinge of margin κ.

    Examples
    --------
    >>> import manypass as mp
    >>> [float(mp.Adatron(kappa=0.5).force(x, 1.0)) for x in (-0.25, 0.75)]  # known: no force
    [0.75, 0.0]
    """

    __slots__ = ()
    of_margins = True

    def __init__(self, kappa: float = 1.0) -> None:
        super().__init__(_adatron, _adatron_slope, kappa=kappa)


class Perceptron(Rule):
    """F = ỹ Θ(κ − xỹ); its slope is zero except for the jump at the threshold.

    Examples
    --------
    >>> import manypass as mp
    >>> [mp.Perceptron().force(x, 1.0) for x in (-2.0, 2.0)]
    [1.0, 0.0]
    """

    __slots__ = ()
    of_margins = True

    def __init__(self, kappa: float = 0.0) -> None:
        super().__init__(_perceptron, _perceptron_slope, kappa=kappa)


class Logistic(Rule):
    """F = ỹ / (1 + e^{xỹ}): gradient descent on log(1 + e^{−xỹ}).

    Examples
    --------
    >>> import manypass as mp
    >>> float(mp.Logistic().force(0.0, 1.0))
    0.5
    """

    __slots__ = ()
    of_margins = True

    def __init__(self) -> None:
        super().__init__(_logistic, _logistic_slope)


class Huber(Rule):
    """F = ỹ − x cut at ±width: gradient descent on the Huber loss.

    Examples
    --------
    >>> import manypass as mp
    >>> float(mp.Huber(width=0.5).force(-3.0, 1.0))
    0.5
    """

    __slots__ = ()

    def __init__(self, width: float = 1.0) -> None:
        checks.number("width", width, 1e-12, BOUND)
        super().__init__(_huber, _huber_slope, width=width)


RULES: dict[str, Callable[..., Rule]] = {
    kind.__name__.lower(): kind for kind in (Hebbian, Adaline, Adatron, Perceptron, Logistic, Huber)
}
PARAMETERS = {  # each with a rule that has it
    name: type(rule).__name__
    for rule in reversed([kind() for kind in RULES.values()])
    for name in rule.parameters
}


def from_dict(entry: Any) -> Rule:
    """Rebuild a named rule from its name or from what `Rule.to_dict` wrote."""
    entry = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(entry, dict) or "name" not in entry:
        raise ValueError(
            f"`rule` must be a name or a table with a `name`, got {checks.shown(entry)}"
        )
    parameters = {key: value for key, value in entry.items() if key != "name"}
    if entry["name"] == "rule" and "force" in entry:
        raise ValueError(
            f"`rule` is a user's own force {entry.get('force')}: give it as a Rule object"
        )
    kind = RULES[checks.choice("rule", entry["name"], RULES)]
    allowed = {k: v for k, v in kind().to_dict().items() if k != "name"}
    for key in parameters:
        if key not in allowed:
            takes = ", ".join(f"`{k}`" for k in allowed) or "no parameters"
            raise ValueError(
                f"rule {entry['name']!r} has no `{key}` (got {checks.shown(parameters[key])}); "
                f"it takes {takes}"
            )
    return kind(**parameters)
