"""Rates and decays that change while learning: v(t) and λ(t), t in units of N examples.

Every schedule has a text that stands for it, ``cosine:1.5:0.1:8``, in files, on the command line,
as a point of a sweep, and wherever a number could stand.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from manypass import checks
from manypass.checks import Array

LARGEST = 1e6
SCANNED = 4000  # parts of the time up to the last one, in which jumps of a function are looked for
CLOSE = 1e-12  # of a time: breaks that are closer are one


class Schedule:
    """A function v(t) ≥ 0 of time, frozen and equal by value; at a jump the later value counts."""

    name: ClassVar[str]

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        raise NotImplementedError

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times at which v(t) is not smooth."""
        return ()

    @property
    def flat(self) -> bool:
        """Whether v(t) is constant between its breaks."""
        return False

    @property
    def largest(self) -> float:
        """Its largest value, as far as some thousand times tell."""
        return float(self(self._looked_at).max())

    @property
    def _looked_at(self) -> Array:
        times = [np.linspace(0, 100, 2001), np.geomspace(100, 1e6, 101), np.array(self.breaks)]
        return np.sort(np.concatenate(times))

    def __str__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = ((getattr(self, field.name), field.default) for field in fields)
        return ":".join([self.name, *(text(v) for v, default in values if v != default)])


@dataclass(frozen=True)
class Steps(Schedule):
    """v(t) = v_i from t_i on.

    Parameters
    ----------
    pieces : sequence of (t_i, v_i)
        Rising times, the first of them 0.

    Examples
    --------
    >>> from manypass import schedules
    >>> rate = schedules.Steps([(0, 1.5), (2, 0.3)])
    >>> rate([0, 1.9, 2, 5]).tolist(), str(rate)
    ([1.5, 1.5, 0.3, 0.3], 'steps:0:1.5:2:0.3')
    """

    pieces: Any
    name: ClassVar[str] = "steps"

    def __post_init__(self) -> None:
        try:
            pairs = [(time, value) for time, value in self.pieces]
        except (TypeError, ValueError):
            raise ValueError(
                f"`pieces` must be pairs (time, value), got {checks.shown(self.pieces)}"
            ) from None
        if not pairs:
            raise ValueError("`pieces` must have at least one pair (0, value), got none")
        times = checks.increasing("pieces", [time for time, _ in pairs], 1e12)
        if times[0] != 0:
            raise ValueError(f"`pieces` must begin at time 0, got {times[0]:g}")
        values = (_amount("pieces", value) for _, value in pairs)
        object.__setattr__(self, "pieces", tuple(zip(times.tolist(), values, strict=True)))

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        times, values = np.array(self.pieces).T
        return np.asarray(values[np.searchsorted(times, _at(t), "right") - 1])

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times of the steps."""
        return tuple(time for time, _ in self.pieces[1:])

    @property
    def flat(self) -> bool:
        """Constant between its breaks."""
        return True

    def __str__(self) -> str:
        return ":".join([self.name, *(text(v) for pair in self.pieces for v in pair)])

    @classmethod
    def read(cls, words: list[str]) -> Steps:
        """Read time:value:time:value..."""
        numbers = [_number(word) for word in words]
        if len(numbers) % 2 or not numbers:
            raise ValueError("it takes pairs, steps:0:1.5:2:0.3")
        return cls(list(zip(numbers[::2], numbers[1::2], strict=True)))


@dataclass(frozen=True)
class InverseTime(Schedule):
    """v(t) = value/(1 + t/τ)^power.

    scikit-learn's ``learning_rate="invscaling"`` is ``InverseTime(eta0*N, 1/N, power_t)``.

    Examples
    --------
    >>> from manypass import schedules
    >>> schedules.InverseTime(1.5, 2.0)([0, 2, 4]).round(6).tolist()
    [1.5, 0.75, 0.5]
    """

    value: float
    tau: float
    power: float = 1.0
    name: ClassVar[str] = "inverse"

    def __post_init__(self) -> None:
        _set(self, value=_amount("value", self.value), tau=_time("tau", self.tau))
        _set(self, power=checks.number("power", self.power, 0, 10))

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        return np.asarray(self.value * (1 + _at(t) / self.tau) ** -self.power)


@dataclass(frozen=True)
class Exponential(Schedule):
    """v(t) = value e^{−t/τ}.

    Examples
    --------
    >>> from manypass import schedules
    >>> float(schedules.Exponential(1.5, 2.0)(2).round(6))
    0.551819
    """

    value: float
    tau: float
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        _set(self, value=_amount("value", self.value), tau=_time("tau", self.tau))

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        return np.asarray(self.value * np.exp(-_at(t) / self.tau))


@dataclass(frozen=True)
class Cosine(Schedule):
    """v(t) = low + (high − low)(1 + cos(πt/until))/2, and low after `until`.

    Examples
    --------
    >>> from manypass import schedules
    >>> schedules.Cosine(1.5, 0.1, 8.0)([0, 4, 8, 9]).round(6).tolist()
    [1.5, 0.8, 0.1, 0.1]
    """

    high: float
    low: float
    until: float
    name: ClassVar[str] = "cosine"

    def __post_init__(self) -> None:
        _set(self, high=_amount("high", self.high), low=_amount("low", self.low))
        _set(self, until=_time("until", self.until))

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        phase = np.minimum(_at(t) / self.until, 1.0)
        # Two squares and no difference: a rate that rises from 0 has all its digits from the start.
        rest, gone = (np.sin(math.pi / 2 * part) ** 2 for part in (1 - phase, phase))
        return np.asarray(self.high * rest + self.low * gone)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Its end."""
        return (self.until,)


@dataclass(frozen=True)
class Warmup(Schedule):
    """v(t) = then(0) t/until up to `until`, and then(t − until) from there on.

    Parameters
    ----------
    until : float
    then : float or Schedule
        The rate that is reached, or the schedule that begins when it is.

    Examples
    --------
    >>> from manypass import schedules
    >>> rate = schedules.Warmup(1.0, schedules.Cosine(1.5, 0.1, 8.0))
    >>> rate([0, 0.5, 1, 9]).round(6).tolist(), str(rate)
    ([0.0, 0.75, 1.5, 0.1], 'warmup:1:cosine:1.5:0.1:8')
    """

    until: float
    then: Any
    name: ClassVar[str] = "warmup"

    def __post_init__(self) -> None:
        _set(self, until=_time("until", self.until), then=read("then", self.then))
        if isinstance(self.then, Schedule) and not self.then(0.0):
            raise ValueError(
                f"`then` must not begin at 0, or nothing is learned until t = {self.until:g}: got "
                f"{self.then}"
            )

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        t = _at(t)
        rising = at(self.then, 0.0) * np.minimum(t / self.until, 1.0)
        later = at(self.then, np.maximum(t - self.until, 0.0))
        return np.asarray(np.where(t < self.until, rising, later))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Its end, and what comes after."""
        return (self.until, *(self.until + time for time in breaks(self.then)))

    @classmethod
    def read(cls, words: list[str]) -> Warmup:
        """Read until:value or until:schedule."""
        if len(words) < 2:
            raise ValueError("it takes a time and what follows, warmup:1:1.5")
        then = _number(words[1]) if len(words) == 2 else read("then", ":".join(words[1:]))
        return cls(_number(words[0]), then)


@dataclass(frozen=True)
class Function(Schedule):
    """v(t) = f(t), a function of one's own.

    Where it jumps, and where it begins or ceases to be 0, is found up to the last time that is
    asked for. A pulse that is shorter than 1/4000 of that time, and than 1/50 of the time at which
    it is, may be overlooked, and so may a jump of less than the function changes in that span.

    Parameters
    ----------
    function : callable
        Of one number t; it must return a number from 0 to 10⁶.
    breaks_at : float or sequence of float
        Times of pulses that are as short as that, and of kinks: theory needs to know them.

    Examples
    --------
    >>> from manypass import schedules
    >>> float(schedules.Function(lambda t: 1 / (1 + t) ** 0.5)(3.0))
    0.5
    """

    function: Callable[[float], float]
    breaks_at: Any = ()
    role: str = dataclasses.field(default="", compare=False, repr=False)  # rate or decay
    until: float = dataclasses.field(default=math.inf, compare=False, repr=False)  # asked no later
    name: ClassVar[str] = "function"

    def __post_init__(self) -> None:
        if not callable(self.function):
            odd = checks.shown(self.function)
            raise ValueError(f"`function` must be a function of t, got {odd}")
        given = list(self.breaks_at) if np.iterable(self.breaks_at) else [self.breaks_at]
        times = checks.increasing("breaks_at", given, 1e12).tolist() if given else []
        _set(self, breaks_at=tuple(times))
        self(0.0)
        for time in (0.0, 1.0):
            try:
                with np.errstate(all="ignore"):
                    one, two = float(self.function(time)), float(self.function(time))
            except Exception:  # told when this time is asked for
                break
            if one != two and one == one:  # NaN is told with its time, too
                raise ValueError(
                    f"{self._told} must be the same whenever it is asked for, got {one:.6g} and "
                    f"then {two:.6g} at t = {time:g}: draw random numbers once, outside of it"
                )

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        t = np.minimum(_at(t), self.until)
        values, time = [], 0.0
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused below
                for time in t.ravel().tolist():
                    values.append(self.function(time))
        except Exception as error:
            raise ValueError(
                f"{self._told} fails at t = {time:g}: {type(error).__name__}: {error}"
            ) from None
        for value, time in zip(values, t.ravel().tolist(), strict=True):
            if type(value) is float and 0 <= value <= LARGEST:  # asked a million times
                continue
            plain = checks.bare(value)
            if not checks.is_real(plain) or not 0 <= plain <= LARGEST:
                raise ValueError(
                    f"{self._told} must be a number from 0 to {LARGEST:g} at every time, got "
                    f"{checks.shown(plain)} at t = {time:g}"
                )
        return np.array(values, float).reshape(t.shape)

    @cached_property
    def breaks(self) -> tuple[float, ...]:
        """Times that were given, and those of jumps up to the last time asked for."""
        if not 0 < self.until < math.inf:
            return tuple(self.breaks_at)
        times = np.unique(np.concatenate([self.breaks_at, jumps(self, self.until)]))
        # Of t = 1, where v is still what it was, and the next number the latter is the break.
        alone = np.diff(times, append=np.inf) > CLOSE * times
        return tuple(times[alone].tolist())

    @property
    def largest(self) -> float:
        """Its largest value before the first time at which it is none, such as 1 − t after 1."""
        most = 0.0
        for time in self._looked_at:
            try:
                most = max(most, float(self(time)))
            except ValueError:
                break
        return most

    @property
    def _told(self) -> str:
        if self.role:
            return f"`{self.role}`, a function of the time t,"
        return "`function` of the time t, a rate or decay,"

    def __str__(self) -> str:
        return f"function:{getattr(self.function, '__qualname__', repr(self.function))}"


@dataclass(frozen=True)
class Scaled(Schedule):
    """v(t) = factor × schedule(t).

    Examples
    --------
    >>> from manypass import schedules
    >>> float(schedules.Scaled(2.0, schedules.Exponential(0.5, 1.0))(0.0))
    1.0
    """

    factor: float
    schedule: Any
    name: ClassVar[str] = "scaled"

    def __post_init__(self) -> None:
        schedule = read("schedule", self.schedule)
        if not isinstance(schedule, Schedule):
            raise ValueError(
                f"`schedule` must be a schedule such as 'cosine:1.5:0.1:8', got "
                f"{checks.shown(self.schedule)}"
            )
        _set(self, factor=_amount("factor", self.factor), schedule=schedule)

    def __call__(self, t: Any) -> Array:
        """Return v at times t."""
        return np.asarray(self.factor * self.schedule(t))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Those of the schedule."""
        return breaks(self.schedule)

    @property
    def flat(self) -> bool:
        """Whether the schedule is."""
        return flat(self.schedule)

    @classmethod
    def read(cls, words: list[str]) -> Scaled:
        """Read factor:schedule."""
        if len(words) < 2:
            raise ValueError("it takes a factor and a schedule, scaled:2:cosine:1.5:0.1:8")
        return cls(_number(words[0]), ":".join(words[1:]))


SCHEDULES: dict[str, Any] = {
    s.name: s for s in (Steps, InverseTime, Exponential, Cosine, Warmup, Scaled)
}
ROLES = ("rate", "decay")
ALSO = " or a schedule such as 'cosine:1.5:0.1:8'"
FORMS = (
    "steps:0:1.5:2:0.3, inverse:VALUE:TAU[:POWER], exponential:VALUE:TAU, cosine:HIGH:LOW:UNTIL, "
    "warmup:UNTIL:THEN or scaled:FACTOR:SCHEDULE"
)


def read(name: str, value: Any, low: float = 0.0, *, or_zero: bool = False) -> Any:
    """Return a number in [low, 10⁶], or the schedule that a text, a function or itself stands for.

    Examples
    --------
    >>> from manypass import schedules
    >>> schedules.read("rate", "warmup:1:0.5")
    Warmup(until=1.0, then=0.5)
    >>> schedules.read("rate", 2)
    2.0
    """
    if isinstance(value, Function) and name in ROLES:
        return dataclasses.replace(value, role=name)
    if isinstance(value, (*SCHEDULES.values(), Function)):
        return value  # another one is no more than a function
    if getattr(value, "ndim", None) == 0 and getattr(value, "dtype", np.dtype("O")).kind == "U":
        value = value.item()  # the text of a `best` schedule
    if isinstance(value, str):
        kind, *words = value.strip().split(":")
        with contextlib.suppress(ValueError):  # so are constants written beside schedules
            return checks.number(name, float(value), low, LARGEST, or_zero=or_zero, or_else=ALSO)
        if kind in SCHEDULES:
            made = SCHEDULES[kind]
            try:
                return made.read(words) if hasattr(made, "read") else made(*map(_number, words))
            except (TypeError, ValueError) as error:
                why = str(error) if isinstance(error, ValueError) else "a wrong number of values"
                given = checks.shown(value)
                raise ValueError(f"`{name}` = {given}: {why}; schedules are {FORMS}") from None
        if kind == Function.name:
            raise ValueError(
                f"`{name}` = {checks.shown(value)} was a function of one's own, of which its name "
                f"alone is kept"
            )
        raise ValueError(f"`{name}` must be a number, or {FORMS}, got {checks.shown(value)}")
    if callable(value) and not isinstance(value, type):
        return Function(value, role=name)
    return checks.number(name, value, low, LARGEST, or_zero=or_zero, or_else=ALSO)


def at(value: float | Schedule, t: Any) -> Any:
    """Return v(t), of a number or a schedule."""
    return value(t) if isinstance(value, Schedule) else np.full(np.shape(t), value)


def breaks(*values: float | Schedule) -> tuple[float, ...]:
    """Return the times at which any of them is not smooth."""
    every: Iterable[float] = (b for v in values if isinstance(v, Schedule) for b in v.breaks)
    return tuple(sorted(set(every)))


def moments(value: float | Schedule, end: float, points: int) -> Array:
    """Return times at which to draw v(t): evenly spaced, and both sides of every jump."""
    sides = np.array([time for time in breaks(value) if time < end])
    even = np.linspace(0, end, points)
    return np.unique(np.concatenate([even, sides, np.nextafter(sides, 0)]))


def held(value: Any, end: float) -> Any:
    """Return what is the same up to a time, after which no function of one's own is asked.

    Examples
    --------
    >>> from manypass import schedules
    >>> schedules.held(schedules.Function(lambda t: 1 - t), 1.0)([0.5, 1, 2]).tolist()
    [0.5, 0.0, 0.0]
    """
    if isinstance(value, Function):
        return dataclasses.replace(value, until=end)
    if isinstance(value, Warmup):
        return dataclasses.replace(value, then=held(value.then, max(end - value.until, 0.0)))
    if isinstance(value, Scaled):
        return dataclasses.replace(value, schedule=held(value.schedule, end))
    return value


def up_to(problem: Any, end: float) -> Any:
    """Return a problem whose own functions are asked up to a time, and no later."""
    own_ones = {name: getattr(problem, name) for name in ROLES if own(getattr(problem, name))}
    if not own_ones:
        return problem
    return problem.replace(**{name: held(value, end) for name, value in own_ones.items()})


def flat(*values: float | Schedule) -> bool:
    """Whether all of them are constant between breaks."""
    return all(value.flat for value in values if isinstance(value, Schedule))


def largest(value: float | Schedule) -> float:
    """Return the largest value at any time."""
    return value.largest if isinstance(value, Schedule) else value


def plain(value: float | Schedule) -> float | str:
    """Return the number, or the text of the schedule."""
    return str(value) if isinstance(value, Schedule) else value


def own(value: float | Schedule) -> bool:
    """Whether a function of one's own is in it, which no text can hold."""
    return isinstance(value, Schedule) and Function.name in str(value).split(":")


def scaled(value: float | Schedule, factor: float) -> Any:
    """Return v times a factor."""
    if factor == 1:
        return value
    return Scaled(factor, value) if isinstance(value, Schedule) else factor * value


def jumps(v: Schedule, end: float) -> Array:
    """Return the times up to `end` from which on v is another: at jumps and beside v = 0.

    Parts of the time are halved, each towards the larger change, until they are as short as numbers
    can tell; the change of a smooth function shrinks with them, a jump stays.

    Examples
    --------
    >>> from manypass import schedules
    >>> schedules.jumps(schedules.Function(lambda t: 2 - t if t < 0.3 else 1.0), 1.0).tolist()
    [0.3]
    """
    t = np.concatenate([np.linspace(0, end, SCANNED + 1), np.geomspace(CLOSE * end, end, SCANNED)])
    t = np.unique(t)
    values = v(t)
    low, high, below, above = t[:-1], t[1:], values[:-1], values[1:]
    least = np.full(low.size, 1e-9 * values.max())  # what is less may be rounding
    for halving in range(60):
        beside = (below > 0) != (above > 0)  # of v = 0: where that ends matters without a jump
        if halving % 5 == 0:
            change = np.abs(above - below)
            kept = beside | (change > least)
            low, high, below, above, beside = (
                part[kept] for part in (low, high, below, above, beside)
            )
            least = np.maximum(least, change / 2)[kept]
        middle = (low + high) / 2
        now = v(middle)
        nearer = np.abs(now - below) > np.abs(above - now)
        early = np.where(beside, (now > 0) != (below > 0), nearer)
        low, below = np.where(early, low, middle), np.where(early, below, now)
        high, above = np.where(early, middle, high), np.where(early, now, above)
    return np.asarray(high[low > 0])


def _set(schedule: Schedule, /, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(schedule, name, value)


def _amount(name: str, value: Any) -> float:
    return checks.number(name, value, 1e-12, LARGEST, or_zero=True)


def _time(name: str, value: Any) -> float:
    return checks.number(name, value, 1e-9, 1e12)


def _at(t: Any) -> Array:
    """Return times from 0 on as floats; asked at every step, what is surely a number is quick."""
    times = np.asarray(t) if type(t) in (float, np.float64) else checks.reals("t", t)
    if times.size and not times.min() >= 0:  # nor NaN
        raise ValueError(f"`t` must be from 0 on, got {times.min():g}")
    return times


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{word!r} is not a number") from None


def text(value: Any) -> str:
    """Return the shortest text that gives a number back: 8 for 8.0."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
