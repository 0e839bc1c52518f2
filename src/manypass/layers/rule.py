"""`Committee`: gradient descent on the squared error of a network with one hidden layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from manypass import checks, forces, rules
from manypass.layers.activation import ACTIVATIONS, slopes, values

MOST_UNITS = 16
BOUND = 1e6


def vector(name: str, given: Any, size: int) -> tuple[float, ...]:
    """Return so many finite numbers, ones where none are given."""
    if given is None:
        return (1.0,) * size
    found = np.atleast_1d(checks.reals(name, given))
    if found.shape != (size,) or not (np.abs(found) <= BOUND).all():
        raise ValueError(
            f"`{name}` must be {size} finite numbers, one a unit, got {checks.shown(given)}"
        )
    return tuple(found.tolist())


class Committee(rules.Rule):
    """F_k = (ỹ − σ) a_k g′(x_k), σ = Σ_k a_k g(x_k): gradient descent on ½(ỹ − σ)².

    K hidden units with weights J_k, x_k = J_k·ξ; one step adds (v/N) F_k ξ to J_k and, if the
    second layer learns, (v_a/N)(ỹ − σ) g(x_k) to a_k. For classification ỹ = ±1 is the sign of the
    teacher's output, and errors are those of the sign of σ.

    Parameters
    ----------
    hidden : int
        Number K of hidden units.
    activation : {"erf", "relu", "tanh", "linear"}
        g; "erf" is erf(x/√2). With "linear" the network is an Adaline in disguise.
    second : sequence of float, optional
        Second layer a at the start, one number a unit; by default all 1.
    second_rate : float
        Learning rate v_a of the second layer, which has no decay; 0 keeps it as it is.

    Examples
    --------
    >>> import manypass as mp
    >>> rule = mp.Committee(hidden=2, activation="relu", second=[1.0, -1.0])
    >>> rule.force([2.0, 0.5], 1.0)  # (1 − 1.5)·(1, −1)
    array([-0.5,  0.5])
    """

    hidden: int
    activation: str
    second: tuple[float, ...]
    __slots__ = ("activation", "hidden", "second")

    def __init__(
        self,
        hidden: int = 2,
        activation: str = "erf",
        second: Any = None,
        second_rate: float = 0.0,
    ) -> None:
        hidden = checks.count("hidden", hidden, 1, MOST_UNITS)
        checks.choice("activation", activation, ACTIVATIONS)
        rate = checks.number("second_rate", second_rate, 0, BOUND)
        for name, value in (
            ("hidden", hidden),
            ("activation", activation),
            ("second", vector("second", second, hidden)),
            ("parameters", {"second_rate": rate}),
            ("jumps", ()),
            ("force_function", None),
            ("slope_function", None),
        ):
            object.__setattr__(self, name, value)

    @property
    def kind(self) -> int:
        """Number of the activation in compiled code."""
        return ACTIVATIONS.index(self.activation)

    @property
    def second_rate(self) -> float:
        """Learning rate of the second layer."""
        return self.parameters["second_rate"]

    def force(self, x: Any, target: Any) -> Any:
        """F, on the last axis of x its K units."""
        given, target, a = (
            checks.reals("x", x),
            checks.reals("target", target),
            np.array(self.second),
        )
        if given.shape[-1:] != a.shape:
            raise ValueError(
                f"`x` must have {self.hidden} activations, one a unit, on its last axis, got "
                f"{checks.shown(x)}"
            )
        forces.check_shapes(given[..., 0], target)
        error = target - values(given, self.kind) @ a
        return error[..., None] * a * slopes(given, self.kind)

    def slope(self, x: Any, target: Any) -> Any:
        """Refused: the slope of K forces is a matrix, which no method needs."""
        raise ValueError("`slope` of a Committee is a matrix: its methods do without")

    @property
    def reach(self) -> float:
        """Forces of erf and tanh vanish at large activations; others grow as they do."""
        growing = self.activation in ("relu", "linear")
        return sum(a * a for a in self.second) if growing else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters."""
        return {
            "name": "committee",
            "hidden": self.hidden,
            "activation": self.activation,
            "second": list(self.second),
            **self.parameters,
        }

    def changed(self, **changes: Any) -> Committee:
        """Return the rule with some parameters changed."""
        entries = {k: v for k, v in self.to_dict().items() if k != "name"}
        return Committee(**entries | changes)

    def __repr__(self) -> str:
        shown = [f"hidden={self.hidden}", f"activation={self.activation!r}"]
        if self.second != (1.0,) * self.hidden:
            shown.append(f"second={list(self.second)}")
        shown += [f"second_rate={self.second_rate!r}"] * (self.second_rate > 0)
        return f"Committee({', '.join(shown)})"

    def _key(self) -> tuple[Any, ...]:
        return ("committee", self.hidden, self.activation, self.second, self.second_rate)

    def __reduce__(self) -> tuple[Any, ...]:
        return Committee, (self.hidden, self.activation, self.second, self.second_rate)


rules.RULES["committee"] = Committee
