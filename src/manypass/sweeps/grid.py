"""`Grid`: which problems a sweep asks for, and how their answers make one dataset."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import length_hint
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, results
from manypass.data.dataset import Dataset
from manypass.problem import PROBLEM_FIELDS, TEACHER_FIELDS, Problem, Teacher, checked
from manypass.rules import RULES, Adaline, Rule, from_dict
from manypass.sweeps.labels import canonical, coordinate, entry, label
from manypass.sweeps.points import Answer, Point
from manypass.verbs import METHODS, named

MOST_POINTS = 1_000_000
Fields = dict[str, Any]


class Grid:
    """The product of axes; an axis is one field, or several that change together.

    Parameters
    ----------
    problem : Problem
        What is not swept.
    axes : mapping, optional
        From a field to its values, or from a tuple of fields to a list of tuples of values: fields
        that change together. A field is one of the problem (alpha, task, noise, rule, rate, decay,
        temperature, mode, sequence, batch_share, batch_size, momentum, start), a parameter of its
        rule (kappa, width), `window`, `method`, or a setting of the method (n, samples, seed, ...).
        Where schedules and numbers are mixed, all are texts in the result: ``sel(rate="1")``.
    **fields : sequence
        Further axes of one field each.

    Examples
    --------
    >>> import numpy as np
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> grid = mp.Grid(problem, rate=np.linspace(0.5, 3, 50), decay=[0.1, 0.2])
    >>> grid.shape
    (50, 2)
    >>> print(str(grid).split(";")[0])
    <Grid of 50 x 2 points: rate=0.5 ... 3.0, decay=0.1, 0.2
    >>> mp.Grid(problem, {("alpha", "decay"): [(1, 0.1), (2, 0.2)]}, noise=[0, 1, 2]).shape
    (2, 3)
    """

    def __init__(
        self, problem: Problem, axes: Mapping[Any, Any] | None = None, **fields: Any
    ) -> None:
        self.problem = checked(problem)
        self.axes: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        if axes is not None and not isinstance(axes, Mapping):
            raise ValueError(f"`axes` must map fields to their values, got {checks.shown(axes)}")
        for key, values in [*(axes or {}).items(), *fields.items()]:
            names = key if isinstance(key, tuple) else (key,)
            if not names or not all(isinstance(name, str) for name in names):
                raise ValueError(
                    f"`axes` must map fields or tuples of fields, got {checks.shown(key)}"
                )
            for i, name in enumerate(names):
                if name in (*self._names, *names[:i]):
                    raise ValueError(f"`{name}` is swept twice")
            self.axes[names] = _steps(names, values)
        if not self.axes:
            raise ValueError("`axes` must name at least one field to sweep")
        size = np.prod([float(len(steps)) for steps in self.axes.values()])
        if size > MOST_POINTS:
            of = ", ".join(f"`{name}`" for name in self._names)
            raise ValueError(f"the grid of {of} has {size:.3g} points: at most {MOST_POINTS}")
        self._check_values()

    def __repr__(self) -> str:
        axes = ", ".join(f"{'/'.join(names)}={_short(names, s)}" for names, s in self.axes.items())
        size = " x ".join(map(str, self.shape))
        return f"<Grid of {size} points: {axes}; else {self.problem!r}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of steps along each axis."""
        return tuple(len(steps) for steps in self.axes.values())

    @property
    def counted(self) -> str:
        """Say how many points there are, and along what."""
        along = [
            f"{n} of {'/'.join(names)}" for names, n in zip(self.axes, self.shape, strict=True)
        ]
        size = math.prod(self.shape)
        axes = " x ".join(along) if len(along) > 1 else "/".join(next(iter(self.axes)))
        return f"{size} point{'s' if size > 1 else ''}, {axes}"

    def points(
        self, method: Any, times: Any = None, window: float = 0.0, two_time: bool = False
    ) -> Iterator[Point | str]:
        """Yield all points in order, or in place of one the reason why it cannot be asked."""
        self.check_fields(method)
        if "method" in self._names and method != "auto":
            raise ValueError(f"`method` = {checks.shown(method)} is swept: leave it out of one")
        t = None if times is None else checks.increasing("times", times, results.LATEST)
        window = checks.number("window", window, 0, results.LATEST)
        if window and "window" in self._names:
            raise ValueError(f"`window` = {window:g} is swept: leave it out of one of the two")
        if t is not None and (window or "window" in self._names):
            raise ValueError("`window` is for steady states: leave out either it or `times`")
        if checks.flag("two_time", two_time) and t is None:
            raise ValueError("`two_time` is for learning curves: give `times`")
        when = None if t is None else tuple(t.tolist())
        for steps in itertools.product(*self.axes.values()):
            chosen = dict(zip(self._names, itertools.chain(*steps), strict=True))
            try:
                yield self._point(chosen, method, when, window, two_time)
            except (ValueError, TypeError) as error:
                yield str(error)

    def _point(
        self, chosen: Fields, method: Any, times: Any, window: float, two_time: bool
    ) -> Point:
        method, window = named(chosen.pop("method", method)), chosen.pop("window", window)
        if times is None:
            window = checks.number("window", window, 0, results.LATEST)
        rule = chosen.pop("rule", self.problem.rule)
        rule = from_dict(rule) if isinstance(rule, str) else rule
        inner = {k: chosen.pop(k) for k in list(chosen) if k in rule.parameters}
        if inner:
            rule = rule.changed(**inner)
        outer = {k: chosen.pop(k) for k in list(chosen) if k in PROBLEM_SIDE}
        for name in chosen:
            if name in self._rules():
                having = self._rules()[name].changed(**{name: chosen[name]})
                raise ValueError(
                    f"`rule` {rule!r} has no `{name}`: to compare it, sweep rules that have their "
                    f"own, rule=[{having!r}, {rule!r}]"
                )
        if chosen:
            method = dataclasses.replace(method, **chosen)
        return Point(self.problem.replace(rule=rule, **outer), method, times, window, two_time)

    def check_fields(self, *methods: Any) -> None:
        """Refuse a field that nobody has; without methods, one that no method has."""
        methods = methods or (*map(named, METHODS),)
        known = {"window", "method", "rule", *self._problem_side, *self._rules()}
        for each in (*methods, *self._swept("method")):
            known |= _settings(named(each))
        refuse_unknown(self._names, known)

    def _check_values(self) -> None:
        """Refuse a field that nobody has, and a value that it cannot have at any point."""
        self.check_fields()
        plain = self.problem if self.problem.layered else PLAIN.replace(data=self.problem.data)
        rules, methods = self._rules(), [named(m) for m in (*METHODS, *self._swept("method"))]
        for name in self._names:
            owners = [m for m in methods if name in _settings(m)]
            for value in _telling(self._swept(name)):
                if name == "window":
                    checks.number(name, value, 0, results.LATEST)
                elif name in rules:
                    rules[name].changed(**{name: value})
                elif name in PROBLEM_SIDE or name == "rule":
                    plain.replace(**{name: value})
                elif name != "method":
                    _taken(owners, name, value)

    @property
    def _problem_side(self) -> set[str]:
        """Fields of the problem; a data set of one's own has none of a teacher's."""
        given = isinstance(self.problem.data, Dataset)
        return PROBLEM_SIDE - {*TEACHER_FIELDS} if given else PROBLEM_SIDE

    def _rules(self) -> dict[str, Rule]:
        """Return the parameters of the rules, each with a rule that has it."""
        swept = (from_dict(r) if isinstance(r, str) else r for r in self._swept("rule"))
        rules = [self.problem.rule, *swept]
        return {name: rule for rule in rules if isinstance(rule, Rule) for name in rule.parameters}

    def collect(self, answers: Sequence[Answer | str], attrs: Fields) -> xr.Dataset:
        """One dataset on the swept fields; a point without an answer is NaN, with its `error`."""
        count = len(answers)
        found: dict[str, np.ndarray[Any, Any]] = {}
        inner: dict[str, list[str]] = {}
        coords: dict[str, Any] = {}
        errors = np.full(count, "", dtype=object)
        for i, answer in enumerate(answers):
            if isinstance(answer, str) or "error" in answer:
                errors[i] = answer if isinstance(answer, str) else answer["error"]
                continue
            for name, (dims, values) in answer["values"].items():
                if name in results.COORDINATES:
                    coords[name] = values
                    continue
                if name not in found:
                    found[name] = np.full((count, *np.shape(values)), np.nan)
                    inner[name] = dims
                found[name][i] = values
        dims = self.dims
        variables = {
            name: xr.Variable(
                (*dims, *inner[name]),
                values.reshape(*self.shape, *values.shape[1:]),
                {"long_name": results.long_name(name)},
            )
            for name, values in found.items()
        }
        note = {"long_name": "why there is no answer"}
        variables["error"] = xr.Variable(dims, errors.reshape(self.shape), note)
        axes = self._coordinates()
        coords = {k: v for k, v in coords.items() if k not in axes}
        return xr.Dataset(variables, results.labelled(coords) | axes, attrs)

    @property
    def dims(self) -> tuple[str, ...]:
        """An axis is called by its first field."""
        return tuple(names[0] for names in self.axes)

    def _coordinates(self) -> dict[str, xr.Variable]:
        return {
            name: xr.Variable(names[0], coordinate(name, (step[i] for step in steps)))
            for names, steps in self.axes.items()
            for i, name in enumerate(names)
        }

    @property
    def _names(self) -> list[str]:
        return [name for names in self.axes for name in names]

    def _swept(self, name: str) -> list[Any]:
        return [
            step[names.index(name)]
            for names, steps in self.axes.items()
            if name in names
            for step in steps
        ]

    def plain(self) -> str:
        """Return the axes as JSON, to be an attribute of the result."""
        return json.dumps(
            {
                ", ".join(names): [list(map(label, names, step)) for step in steps]
                for names, steps in self.axes.items()
            }
        )

    def held(self) -> str:
        """Return as JSON what stands in files for values of the problem that are named by texts."""
        named_by = {name: coordinate(name, self._swept(name)) for name in self._names}
        return json.dumps(
            {
                name: dict(zip(texts, (entry(name, v) for v in self._swept(name)), strict=True))
                for name, texts in named_by.items()
                if name in {*PROBLEM_SIDE, "rule"} and isinstance(texts[0], str)
            }
        )


PLAIN = Problem(Teacher(alpha=1.0), Adaline(), rate=1.0)  # one field of it may have any value
PROBLEM_SIDE = {*PROBLEM_FIELDS, *TEACHER_FIELDS} - {"data", "rule"}


def refuse_unknown(names: Iterable[str], known: Collection[str] | None = None) -> None:
    """Refuse a field that is not known; by default one that no problem, rule or method has."""
    if known is None:
        owners: tuple[Iterable[str], ...] = (*(kind().parameters for kind in RULES.values()),)
        owners += tuple(_settings(named(method)) for method in METHODS)
        known = PROBLEM_SIDE.union({"window", "method", "rule"}, *owners)
    for name in names:
        if name not in known:
            raise ValueError(
                f"`{name}` cannot be swept{_whose(name)}: choose from {', '.join(sorted(known))}"
                f"{checks.meant(name, known)}"
            )


def _whose(name: str) -> str:
    """Say which rules or methods have a field that those of a sweep have not."""
    having = [k.__name__ for k in RULES.values() if name in k().parameters]
    what, which = "parameter", "rule"
    if not having:
        having = [type(m).__name__ for m in map(named, METHODS) if name in _settings(m)]
        what, which = "setting", "method"
    owners = " and ".join(f"{one}()" for one in having)
    return f", it is a {what} of {owners}, which `{which}` would have to be" if having else ""


def _steps(names: tuple[str, ...], values: Any) -> list[tuple[Any, ...]]:
    fields = " ".join(", ".join(names).split())
    if isinstance(values, str | bytes | bytearray | Mapping) or not np.iterable(values):
        raise ValueError(f"`{fields}` must have a list of values, got {checks.shown(values)}")
    if (size := length_hint(values)) > MOST_POINTS:  # known before it is gone through
        raise ValueError(f"`{fields}` has {size} values: at most {MOST_POINTS}")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.ndim == 1:
        values = checks.unmasked(fields, values).tolist()  # at once, not one by one
    steps = [_tuple(v) if len(names) > 1 else (v,) for v in values]
    if not steps:
        raise ValueError(f"`{fields}` must have at least one value")
    if any(len(step) != len(names) for step in steps):
        raise ValueError(f"`{fields}` change together: give a list of {len(names)} values each")
    plain = [tuple(map(canonical, names, map(checks.bare, step))) for step in steps]
    seen: dict[str, tuple[Any, ...]] = {}
    for step in plain:
        if any(isinstance(value, np.ndarray) for value in step):
            raise ValueError(f"`{fields}` must have a list of values, got {checks.shown(values)}")
        # 1 and 1.0 are the same place on an axis
        number = [float(v) if type(v) is int and abs(v) < 1e15 else v for v in step]
        called = checks.shown(tuple(number), 10**6)
        if called in seen:
            alike = bool(seen[called] != step)
            why = f"; two functions are called {called:.60}: give them names by def" * alike
            raise ValueError(f"`{fields}` must not repeat a value{why}")
        seen[called] = step
    return plain


def _telling(values: list[Any]) -> list[Any]:
    """Leave out numbers between others that are checked: a field has a range, and perhaps 0 or inf.

    Examples
    --------
    >>> _telling([0.5, 1.0, 0.7, 0.6, 0.0]), _telling(["a", "b", "c"])
    ([0.0, 0.5, 1.0], ['a', 'b', 'c'])
    """
    told = [value for value in values if type(value) not in (int, float)]
    for kind in (int, float):
        numbers = {value for value in values if type(value) is kind}
        usual = {value for value in numbers if value and abs(value) < math.inf}  # no NaN either
        told += sorted(numbers - usual | {end(usual) for end in (min, max) if usual})
    return told


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if np.iterable(value) and not isinstance(value, str) else (value,)


def _settings(method: Any) -> set[str]:
    fields = dataclasses.fields(method) if dataclasses.is_dataclass(method) else ()
    return {field.name for field in fields}


def _taken(owners: Sequence[Any], name: str, value: Any) -> None:
    """Raise what the last of the methods objects to, if none takes the value of its setting."""
    for i, owner in enumerate(owners):
        try:
            dataclasses.replace(owner, **{name: value})
            return
        except ValueError:
            if i == len(owners) - 1:
                raise


def _short(names: tuple[str, ...], steps: list[tuple[Any, ...]]) -> str:
    """All steps of an axis if they are few, else the first and the last."""
    labels = (tuple(map(label, names, step)) for step in steps)
    shown = [str(each[0] if len(each) == 1 else each) for each in labels]
    return ", ".join(shown) if len(shown) <= 4 else f"{shown[0]} ... {shown[-1]}"
