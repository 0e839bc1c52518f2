"""What is learned, and how: one immutable object that every method understands."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manypass import checks, rules, schedules
from manypass.data.dataset import TASKS, Dataset
from manypass.data.reading import FORMATS, SETTINGS
from manypass.data.reading import from_dict as data_from_dict
from manypass.inputs import UNCORRELATED, Isotropic
from manypass.inputs import read as read_inputs
from manypass.layers import checking
from manypass.layers.rule import Committee
from manypass.start import Start

USERS = ("", "flags", "sweeps.grid")  # who make problems as they are asked to: others made them
MODES = ("online", "batch")
SEQUENCES = ("replacement", "reshuffled", "fixed")


def told(thing: Any, *always: str) -> str:
    """Return the repr of a dataclass with the fields that differ from their defaults alone."""
    shown = (
        f"{f.name}={value!r}"
        for f in dataclasses.fields(thing)
        if repr(value := getattr(thing, f.name)) != repr(f.default) or f.name in always
    )
    return f"{type(thing).__name__}({', '.join(shown)})"


@dataclass(frozen=True)
class Teacher:
    """Examples from a random teacher: p = αN Gaussian inputs ξ, y = B·ξ with ⟨y²⟩ = 1, N → ∞.

    ỹ = sgn(y + εz) for classification and ỹ = y + εz for regression, z ~ N(0, 1).

    Parameters
    ----------
    alpha : float
        Examples per weight, α = p/N; ``math.inf`` is a fresh example in every step, one pass.
    task : {"classification", "regression"}
    noise : float
        Amplitude ε of the noise in the targets.
    inputs : Inputs
        How inputs are correlated, by one of `manypass.inputs` or its text; by default not at all.
        With covariance Σ the order parameters are R = BᵀΣJ and Q = JᵀΣJ.
    hidden : int
        Number M of hidden units of a teacher with two layers, whose output Σ_m b_m g(y_m) with
        y_m = B_m·ξ takes the place of y; it is learned by a `Committee`.
    activation : {"erf", "relu", "tanh", "linear"}, optional
        g of the teacher; by default that of the student.
    second : sequence of float, optional
        Second layer b of the teacher; by default all 1.
    overlaps : M×M numbers, optional
        B_m·B_n; by default units are orthogonal, of length 1.

    Examples
    --------
    >>> import manypass as mp
    >>> data = mp.Teacher(alpha=1.2, task="regression", noise=0.5)
    >>> data.a, data.b  # ⟨yỹ⟩ and ⟨ỹ²⟩
    (1.0, 1.25)
    """

    alpha: float
    task: str = "classification"
    noise: float = 0.0
    inputs: Any = UNCORRELATED
    hidden: int = 1
    activation: str | None = None
    second: Any = None
    overlaps: Any = None

    def __repr__(self) -> str:
        return told(self, "task", "noise")

    def __post_init__(self) -> None:
        alpha = checks.number("alpha", self.alpha, 1e-6, 1e6, or_infinite=True)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "inputs", read_inputs(self.inputs))
        checks.choice("task", self.task, TASKS)
        object.__setattr__(self, "noise", checks.number("noise", self.noise, 0, 1e6))
        for name, value in checking.teacher(self).items():
            object.__setattr__(self, name, value)

    @property
    def isotropic(self) -> bool:
        """Whether inputs are uncorrelated."""
        return isinstance(self.inputs, Isotropic)

    def to_dict(self) -> dict[str, Any]:
        """Return plain strings and numbers; of two layers only if there are."""
        plain = {**vars(self), "inputs": self.inputs.plain()}
        return {k: v for k, v in plain.items() if k not in LAYERED or v != LAYERED[k]}

    @property
    def a(self) -> float:
        """⟨yỹ⟩, how much of the teacher is in the targets."""
        return self.moments()[0]

    @property
    def b(self) -> float:
        """⟨ỹ²⟩, the size of the targets."""
        return self.moments()[1]

    def moments(self, power: float = 1.0) -> tuple[float, float]:
        """⟨yỹ⟩/⟨y²⟩ and ⟨ỹ²⟩ for inputs of another ⟨y²⟩ than 1."""
        total = checks.number("power", power, 1e-300, 1e300) + self.noise**2
        return (
            (math.sqrt(2 / (math.pi * total)), 1.0)
            if self.task == "classification"
            else (1.0, total)
        )


LAYERED = {f.name: f.default for f in dataclasses.fields(Teacher)[4:]}


@dataclass(frozen=True)
class Problem:
    """One step takes one example: J ← J + (v/N)[F(x, ỹ) ξ − λJ] + η/N, x = J·ξ, t ← t + 1/N.

    Learning starts from J = 0 unless a `start` is given; η has variance 2T per weight and step. In
    batch mode every step uses the mean force of the whole training set: the limit v → 0 at fixed vt
    and T/v.

    With a `batch_share` β one step takes βp examples, all forces at the same weights:
    J ← (1 − vλΔ)J + (v/N) Σ F ξ + η√(Δ/N), t ← t + Δ, Δ = βα. β = 1 is, in epochs (`sequence`
    "reshuffled" or "fixed"), gradient descent on the whole training set with a finite step, vα in
    the mean loss; drawn with replacement, a step takes p examples of which some are the same.

    With a `batch_size` b one step takes the mean force of b examples, t ← t + b/N; with `momentum`
    β the velocity V ← βV + ⟨F ξ⟩ − λJ moves the weights, J ← J + (v/N)V. For N → ∞ this is plain
    learning at the rate v/[b(1 − β)], which is what theories of a Teacher compute.

    Parameters
    ----------
    data : Teacher or Dataset
        Where the examples come from: a random teacher, N → ∞, or a user's own matrix.
    rule : Rule or str
        The force F, by one of the rules, one's own `Rule`, or a name such as "adaline".
    rate : float or Schedule
        Learning rate v; v(t) by one of `manypass.schedules`, its text ("cosine:1.5:0.1:8") or a
        function of t, which may jump (`schedules.Function` says how short a pulse may be).
    decay : float or Schedule
        Weight decay λ, or λ(t).
    temperature : float
        Dynamical noise T; |J|² gains 2T per unit time.
    mode : {"online", "batch"}
    sequence : {"replacement", "reshuffled", "fixed"}
        The order of the examples: drawn with replacement; every example once in each pass over the
        training set (epoch), in a new order each time; or in one order for ever.
    batch_share : float
        Share β of the training set that one step takes; 0 is one example at a time. Drawn with
        replacement a batch may hold an example twice; otherwise an epoch is cut into 1/β batches.
    batch_size : int
        Number b of examples of which one step takes the mean force; time counts examples.
    momentum : float
        Share β of the velocity that is kept from one step to the next, as in PyTorch's SGD.
    start : Start, optional
        Weights J(0); zero by default.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> problem.replace(rate=0.5).rate
    0.5
    >>> mp.Problem.from_dict(problem.to_dict()) == problem
    True
    """

    data: Teacher | Dataset
    rule: rules.Rule
    _: dataclasses.KW_ONLY
    rate: float  # or, where `scheduled`, a Schedule: who has not said that it serves one gets none
    decay: float = 0.0
    temperature: float = 0.0
    mode: str = "online"
    sequence: str = "replacement"
    batch_share: float = 0.0
    batch_size: int = 1
    momentum: float = 0.0
    start: Start | None = None

    if TYPE_CHECKING:  # what may be given is wider than what is then there

        def __init__(
            self,
            data: Teacher | Dataset,
            rule: rules.Rule | str | dict[str, Any],
            *,
            rate: float | str | schedules.Schedule | Callable[[float], float],
            decay: float | str | schedules.Schedule | Callable[[float], float] = 0.0,
            temperature: float = 0.0,
            mode: str = "online",
            sequence: str = "replacement",
            batch_share: float = 0.0,
            batch_size: int = 1,
            momentum: float = 0.0,
            start: Start | None = None,
        ) -> None: ...

    def __new__(cls, *_: Any, **given: Any) -> Problem:
        """Say what an argument is called, or where it belongs, that a problem has not."""
        for key in given.keys() - {*PROBLEM_FIELDS}:
            where = f"a problem has {', '.join(PROBLEM_FIELDS)}{checks.meant(key, PROBLEM_FIELDS)}"
            if key in TEACHER_FIELDS:
                where = f"it belongs to the data, Teacher({key}=...)"
            elif key in rules.PARAMETERS:
                where = f"it belongs to the rule, {rules.PARAMETERS[key]}({key}=...)"
            raise TypeError(f"`{key}` is no argument of Problem: {where}")
        return object.__new__(cls)

    def __repr__(self) -> str:
        return told(self, "decay")

    def __post_init__(self) -> None:
        if not isinstance(self.data, Teacher | Dataset):
            raise ValueError(
                f"`data` must be a Teacher or a Dataset, got {checks.shown(self.data)}"
            )
        if isinstance(self.rule, str | dict):  # as files say it
            object.__setattr__(self, "rule", rules.from_dict(self.rule))
        if not isinstance(self.rule, rules.Rule):
            raise ValueError(
                f"`rule` must be a rule such as {_meant(self.rule)}, or its name, "
                f"got {checks.shown(self.rule)}"
            )
        checking.taught(self.rule, self.data)
        # Wide enough for any use; narrow enough that no square or quotient leaves the floats.
        numbers = {
            "rate": schedules.read("rate", self.rate, 1e-12),
            "decay": schedules.read("decay", self.decay, 1e-12, or_zero=True),
            "temperature": checks.number("temperature", self.temperature, 0, 1e6),
            "batch_share": checks.number("batch_share", self.batch_share, 1e-6, 1, or_zero=True),
            "batch_size": checks.count("batch_size", self.batch_size, 1, 10**6),
            "momentum": checks.number("momentum", self.momentum, 0, 0.999),
            "start": None if self.start is None else Start.fitting(self.start, self.data),
        }
        for name, value in numbers.items():
            object.__setattr__(self, name, value)
        checks.choice("mode", self.mode, MODES)
        checks.choice("sequence", self.sequence, SEQUENCES)
        self._check_order()
        checking.problem(self)
        if isinstance(self.data, Dataset) and self.batch_size > self.data.p:
            self._warn(
                f"`batch_size` = {self.batch_size} is more than the {self.data.p} examples of "
                f"`data`, which come several times in a batch: mode='batch' learns all of them"
            )
        if self.rule.of_margins and self.data.task == "regression":
            classes = "two classes, the one that is +1 named by `positive`"
            if isinstance(self.data, Teacher):
                classes = "a `task` of classes"
            self._warn(
                f"`rule` {self.rule!r} is one of margins xỹ, for classes ỹ = ±1, but {self.data!r} "
                f"has other targets, which it does not fit: take Adaline(), Huber() or {classes}"
            )

    def _warn(self, text: str) -> None:
        """Warn where a user makes a problem, not of those that are made of it."""
        if checks.maker() in USERS:
            warnings.warn(text, stacklevel=checks.outside())

    @property
    def layered(self) -> bool:
        """Whether it is a network with two layers that learns."""
        return isinstance(self.rule, Committee)

    def _check_order(self) -> None:
        """Refuse orders that contradict themselves."""
        order, share = self.sequence, self.batch_share
        given = {
            "sequence": order != "replacement",
            "batch_share": share,
            "batch_size": self.batch_size > 1,
            "momentum": self.momentum,
        }
        if self.mode == "batch" and any(given.values()):
            name = next(name for name, value in given.items() if value)
            wrong = f"`{name}` = {getattr(self, name)!r}"
            raise ValueError(
                f"`mode` = 'batch' is the limit of small rates, where no order is left: it "
                f"excludes {wrong} (gradient descent by finite steps is `mode` = 'online' with "
                f"`batch_share` = 1 and `sequence` = 'reshuffled')"
            )
        if self.data.alpha == math.inf and (order != "replacement" or share):
            wrong = f"`batch_share` = {share:g}" if share else f"`sequence` = {order!r}"
            raise ValueError(f"`alpha` = inf has no epochs: {wrong} says nothing, leave it out")
        if share and self.batch_size > 1:
            raise ValueError(
                f"`batch_size` = {self.batch_size} and `batch_share` = {share:g} both say how many "
                f"examples a step takes: give one of them"
            )
        if not share or order == "replacement":
            return
        batches = round(1 / share)
        object.__setattr__(self, "batch_share", 1 / batches)  # not a digit short of it
        if abs(batches * share - 1) > 1e-9:
            raise ValueError(
                f"`batch_share` = {share!r} does not cut an epoch into whole batches, which "
                f"`sequence` = {order!r} needs: take 1/{batches} = {1 / batches!r}"
            )

    def _repr_html_(self) -> str:
        from manypass import notebooks

        return notebooks.table(self)

    @property
    def scheduled(self) -> bool:
        """Whether the rate or the decay changes with time."""
        return any(isinstance(v, schedules.Schedule) for v in (self.rate, self.decay))

    def v(self, t: Any) -> Any:
        """Return v(t)."""
        return schedules.at(self.rate, t)

    def decays(self, t: Any) -> Any:
        """Return λ(t)."""
        return schedules.at(self.decay, t)

    @property
    def teacher(self) -> Teacher:
        """The teacher, for what is a theory of random examples only."""
        if isinstance(self.data, Teacher):
            return self.data
        raise ValueError(
            f"`data` must be a Teacher for this, got {self.data!r}: curves, steady states, the "
            f"critical rate and advice are what there is for a Dataset"
        )

    def replace(self, **changes: Any) -> Problem:
        """Return the problem with some fields changed, those of its teacher and rule included.

        Examples
        --------
        >>> import manypass as mp
        >>> problem = mp.Problem(mp.Teacher(alpha=1.2), "adaline", rate=1.0)
        >>> problem.replace(rule="adatron", kappa=2, alpha=3).rule
        Adatron(kappa=2.0)
        """
        rule = changes.get("rule", self.rule)
        rule = rules.from_dict(rule) if isinstance(rule, str | dict) else rule
        given = rule.parameters if isinstance(rule, rules.Rule) else {}
        for key in changes.keys() & LAYERED if isinstance(rule, Committee) else ():
            if key in rule.to_dict():
                raise ValueError(
                    f"`{key}` is one of the student's and of the teacher's: say whose, by a `rule` "
                    f"= Committee(...) or `data` = Teacher(...) that has it; a Grid takes several"
                )
        own = given.keys() - {*PROBLEM_FIELDS, *TEACHER_FIELDS}
        of_rule = {key: changes.pop(key) for key in own if key in changes}
        if of_rule:
            changes["rule"] = rule.changed(**of_rule)
        for key in changes.keys() & rules.PARAMETERS:
            raise ValueError(
                f"`{key}` is a parameter of {rules.PARAMETERS[key]}(), and `rule` is {rule!r}"
            )
        _known(changes, (*PROBLEM_FIELDS, *TEACHER_FIELDS), "a problem")
        inner = {key: changes.pop(key) for key in TEACHER_FIELDS if key in changes}
        if inner:
            data = changes.get("data", self.data)
            if not isinstance(data, Teacher):
                key = next(iter(inner))
                raise ValueError(f"`{key}` is a field of a Teacher, but `data` is {data!r}")
            changes["data"] = dataclasses.replace(data, **inner)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain strings and numbers that restore the problem; also the layout of a TOML file."""
        plain = {key: getattr(self, key) for key in PROBLEM_FIELDS}
        given = self.data
        data = given.to_dict()
        plain |= {name: schedules.plain(plain[name]) for name in ("rate", "decay")}
        start = self.start.to_dict() if self.start else None
        return plain | {"data": data, "rule": self.rule.to_dict(), "start": start}

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> Problem:
        """Build a problem from `to_dict`'s layout; what is left out takes its default."""
        if not isinstance(entries, dict):
            raise ValueError(f"`entries` must be a dict, got {checks.shown(entries)}")
        for key in TEACHER_FIELDS:
            if key in entries:
                raise ValueError(
                    f"`{key}` belongs to `data`: data = {{ {key} = {entries[key]!r} }}"
                )
        for key in entries.keys() & rules.PARAMETERS:
            name, value = rules.PARAMETERS[key].lower(), checks.shown(entries[key])
            raise ValueError(
                f"`{key}` belongs to `rule`: rule = {{ name = '{name}', {key} = {value} }}"
            )
        _known(entries, PROBLEM_FIELDS, "a problem")
        missing = [key for key in ("data", "rule", "rate") if key not in entries]
        if missing:
            raise ValueError(f"`{missing[0]}` is missing: a problem needs data, rule and rate")
        data, rule = _data(entries["data"]), entries["rule"]
        rule = rule if isinstance(rule, rules.Rule) else rules.from_dict(rule)
        return cls(**entries | {"data": data, "rule": rule})


def _meant(rule: Any) -> str:
    """Write the rule whose class was given as one would have to."""
    if isinstance(rule, type) and issubclass(rule, rules.Rule) and rule is not rules.Rule:
        return f"{rule.__name__}()"
    return "Adaline()"


PROBLEM_FIELDS = tuple(field.name for field in dataclasses.fields(Problem))
TEACHER_FIELDS = tuple(field.name for field in dataclasses.fields(Teacher))


def _data(entry: Any) -> Teacher | Dataset:
    """Return the teacher or the data set that an entry describes; a data set may come as itself."""
    if isinstance(entry, Dataset):
        return entry
    if not isinstance(entry, dict):
        raise ValueError(
            f"`data` must be a table with `alpha`, got {checks.shown(entry)}, or with the `path` "
            f"of a file and its `target`"
        )
    if "path" in entry or "hash" in entry:
        return data_from_dict(entry)
    for key, value in entry.items():
        if key not in TEACHER_FIELDS and (key in SETTINGS or "file" in key or _is_file(value)):
            raise ValueError(
                f"`{key}` is not a field of a teacher: if the data come from a file, its name is "
                f"`path`: data = {{ path = 'train.csv', target = 'COLUMN' }}"
            )
    _known(entry, TEACHER_FIELDS, "data")
    if "alpha" not in entry:
        raise ValueError("`alpha` is missing: data needs the examples per weight, alpha = p/N")
    return Teacher(**entry)


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.lower().endswith(FORMATS)


def checked(problem: Any) -> Problem:
    """Return `problem` if it is one."""
    if not isinstance(problem, Problem):
        raise ValueError(f"`problem` must be a Problem, got {checks.shown(problem)}")
    return problem


def _known(entries: Any, allowed: tuple[str, ...], what: str) -> None:
    for key in entries:
        if key not in allowed:
            raise ValueError(
                f"`{key}` is not a field of {what}: it has {', '.join(allowed)}"
                f"{checks.meant(key, allowed)}"
            )
