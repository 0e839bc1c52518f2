"""What can be typed on the command line, and how it is read."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from manypass.files import home, toml

if TYPE_CHECKING:
    from manypass.checks import Array
    from manypass.problem import Problem

DATA_FLAGS = ("alpha", "task", "noise", "inputs")
TEXT_FLAGS = ("sep", "encoding", "decimal", "thousands")
TIDY_FLAGS = ("drop", "drop_constant", "one_hot", "positive", *TEXT_FLAGS)
FILE_ONLY = ("target", "test", "standardize", "intercept", *TIDY_FLAGS)
FILE_FLAGS = ("path", "task", *FILE_ONLY)
RULE_FLAGS = ("kappa", "width", "hidden", "activation", "second", "second_rate")
TEACHER_FLAGS = {  # of two layers, and what they are in the table `data`
    "teacher_hidden": "hidden",
    "teacher_activation": "activation",
    "teacher_second": "second",
    "overlaps": "overlaps",
}
PROBLEM_FLAGS = (
    *("rate", "decay", "temperature", "mode", "sequence"),
    *("batch_share", "batch_size", "momentum", "start"),
)
FIELD_FLAGS = (  # what a problem file may say too
    *(*DATA_FLAGS, *FILE_FLAGS, *RULE_FLAGS, *TEACHER_FLAGS, *PROBLEM_FLAGS, "rule"),
)
EXAMPLE_PLAN = """\
    rule = "adatron"
    data = { alpha = 1.2, noise = 0.5 }
    times = "0:8:81"                            # without: steady states
    method = { name = "simulation", n = 400 }   # without: chosen by the problem

    [sweep]                                     # every combination of these
    rate = { from = 0.1, to = 1.0, count = 10, scale = "log" }
    kappa = [0.5, 1.0]

    [[sweep.together]]                          # these change together
    decay = [0.1, 0.2]
    temperature = [0.0, 0.01]
"""
PLAN_KEYS = ("method", "times", "window", "two_time", "sweep", "slurm")  # beside the problem
MOST_TIMES = 10**6
SETTINGS = {
    "simulation": (
        "n",
        "samples",
        "seed",
        "sequence",
        "precision",
        "settle",
        "response",
        "threads",
        "device",
    ),
    "exact": ("samples", "accuracy", "seed", "diagonal", "device"),
    "dmft": ("dt", "samples", "seed", "rtol", "memory", "threads"),
    "mean-force": (),
}


def fail(message: str, code: int = 2) -> NoReturn:
    """Say on one line of stderr what is wrong and exit."""
    short = re.sub(r"(\S{300})\S+", r"\1...", message)  # a value of pages
    print(f"manypass: {' '.join(short.split())}", file=sys.stderr)
    raise SystemExit(code)


class AddUp(argparse.Action):
    """A list of columns that goes on when the flag is repeated: argparse keeps the last one."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        """Add to the list; the flag alone stands for all."""
        before = getattr(namespace, self.dest) or []
        every = values is True or before is True
        setattr(namespace, self.dest, True if every else [*before, *values])


class Once(argparse.Action):
    """Numbers that make one whole: where the flag is repeated, one cannot know what is meant."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        """Keep the numbers, if there are none so far."""
        if getattr(namespace, self.dest) not in (None, self.default):
            raise argparse.ArgumentError(self, "given twice: write all its values in one, A,B,...")
        setattr(namespace, self.dest, values)


def problem_flags() -> argparse.ArgumentParser:
    """Return the flags that make a problem, shared by all commands."""
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument(
        "problem", nargs="?", help="TOML file with the problem; flags override its keys"
    )
    group = flags.add_argument_group("problem")
    group.add_argument(
        "--rule",
        help="adaline (default), hebbian, adatron, perceptron, logistic, huber or committee",
    )
    group.add_argument(
        "--alpha", type=float, help="examples per weight, p/N; inf: a fresh one in every step"
    )
    group.add_argument(
        "--rate",
        type=number,
        help="learning rate v, or a schedule: cosine:HIGH:LOW:UNTIL, inverse:VALUE:TAU[:POWER], "
        "exponential:VALUE:TAU, steps:0:1.5:2:0.3, warmup:UNTIL:THEN",
    )
    own = flags.add_argument_group("your own data, instead of --alpha and --noise")
    own.add_argument(
        "--data",
        dest="path",
        metavar="FILE",
        help="training set: .csv, .tsv, .txt, .csv.gz, .parquet",
    )
    own.add_argument("--target", metavar="COLUMN", help="the column that holds the targets")
    own.add_argument("--test", metavar="FILE", help="test set, with the same columns")
    for name, text in (
        ("standardize", "features to mean 0, variance 1 over the training set"),
        ("intercept", "add a feature that is always 1"),
        ("drop-constant", "leave out columns that are empty or the same in all rows"),
    ):
        own.add_argument(f"--{name}", action="store_true", default=None, help=text)
    own.add_argument(
        "--drop",
        type=_columns,
        action=AddUp,
        metavar="A,B",
        help="columns to leave out; may be repeated",
    )
    own.add_argument(
        "--one-hot",
        type=_columns,
        action=AddUp,
        nargs="?",
        const=True,
        metavar="A,B",
        help="columns of categories, each to become a feature 0 or 1; alone: all that hold text",
    )
    own.add_argument("--positive", metavar="LABEL", help="the target that is +1; others are -1")
    own.add_argument("--sep", help="between the entries of a line: one character, or tab")
    own.add_argument("--encoding", help="of text files, such as latin-1 (default: utf-8)")
    own.add_argument("--decimal", help="before the decimals of text files: . (default) or ,")
    own.add_argument("--thousands", help="what groups digits in text files: , . ' or a blank")
    group.add_argument(
        "--decay", type=number, help="weight decay lambda, or a schedule (default: 0)"
    )
    group.add_argument("--task", help="classification (default) or regression")
    group.add_argument("--noise", type=float, help="noise in the targets, epsilon (default: 0)")
    group.add_argument(
        "--inputs",
        help="isotropic (default), or correlated: powerlaw:EXPONENT:TEACHER:CUTOFF; tables of "
        "blocks and eigenvalues go into a file",
    )
    group.add_argument("--temperature", type=float, help="dynamical noise T (default: 0)")
    group.add_argument("--mode", help="online (default) or batch")
    group.add_argument(
        "--sequence", help="order of the examples: replacement (default), reshuffled or fixed"
    )
    group.add_argument(
        "--batch-share",
        type=float,
        help="share of the training set that a step takes (default: 0, one example)",
    )
    group.add_argument(
        "--batch-size", type=int, help="examples whose mean force a step takes (default: 1)"
    )
    group.add_argument("--momentum", type=float, help="share of the velocity that stays (0)")
    group.add_argument(
        "--start",
        type=_start,
        metavar="R,Q",
        help="overlap and length of J(0) (default: J = 0); of a committee rows R/Q: "
        "0.1,0;0,0.1/0.25,0;0,0.25",
    )
    group.add_argument("--kappa", type=float, help="margin of adatron and perceptron")
    group.add_argument("--width", type=float, help="width of huber")
    layers = flags.add_argument_group("two layers, --rule committee")
    layers.add_argument("--hidden", type=int, help="hidden units (default: 2)")
    kinds = "erf (default), relu, tanh or linear"
    layers.add_argument("--activation", help=f"of the hidden units: {kinds}")
    once: dict[str, Any] = {"action": Once, "type": _row, "metavar": "A,B"}
    layers.add_argument("--second", **once, help="second layer (default: 1,1...)")
    layers.add_argument("--second-rate", type=float, help="its learning rate (default: 0)")
    layers.add_argument("--teacher-hidden", type=int, help="units of the teacher (default: 1)")
    layers.add_argument("--teacher-activation", help="by default that of the student")
    layers.add_argument("--teacher-second", **once, help="its second layer")
    layers.add_argument(
        "--overlaps",
        type=_table,
        action=Once,
        metavar="A,B;C,D",
        help="of its units (default: orthogonal)",
    )
    return flags


def number(text: str) -> float | str:
    """Return a number, or the text of a schedule as it is: `Problem` knows what is wrong."""
    try:
        return float(text)
    except ValueError:
        return text


def _row(text: str) -> list[float]:
    """Read numbers between commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers A,B,..., got {text!r}") from None


def _table(text: str) -> list[list[float]]:
    """Read rows between semicolons."""
    return [_row(row) for row in text.split(";")]


def _start(text: str) -> dict[str, Any]:
    """Read R,Q; of a committee two tables, R/Q."""
    try:
        if "/" in text:
            one, two = text.split("/")
            return {"R": _table(one), "Q": _table(two)}
        R, Q = map(float, text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(
            f"must be two numbers R,Q, or two tables R/Q, got {text!r}"
        ) from None
    return {"R": R, "Q": Q}


def typed_start(said: str) -> str | None:
    """Return --start as it is typed, of R=..., Q=... as Python says them.

    Examples
    --------
    >>> typed_start("R=[[0.1, 0.0]], Q=[[0.25]]"), typed_start("R=0.5, Q=1.0")
    ('--start 0.1,0/0.25', '--start 0.5,1')
    """
    parts = re.fullmatch(r"R=([][\d., e+-]+), Q=([][\d., e+-]+)", said)
    if parts is None:
        return None
    R, Q = (part.replace(" ", "").replace("],[", ";").strip("[]") for part in parts.groups())
    short = re.sub(r"\.0\b", "", f"{R}{'/' if '[' in said else ','}{Q}")
    return f"--start {shlex.quote(short)}"


def _columns(text: str) -> list[str]:
    return text.split(",")


def seed_flag(group: Any, default: int | None, text: str) -> None:
    """Add --seed: a number, or none for one that is drawn, and told for another time."""

    def seed(typed: str) -> int:
        if typed.lower() != "none":
            return int(typed)
        import secrets

        drawn = secrets.randbits(53)
        print(f"manypass: drawn: --seed {drawn}", file=sys.stderr)
        return drawn

    group.add_argument("--seed", type=seed, default=default, help=text)


def method_flags(command: argparse.ArgumentParser, *choices: str) -> None:
    """Add the method and its settings."""
    group = command.add_argument_group("method")
    group.add_argument("--method", choices=choices, default="auto", help="default: auto")
    group.add_argument(
        "--n", type=int, help="simulation: weights of a network (default: 500, or those of --data)"
    )
    group.add_argument(
        "--samples",
        type=int,
        help="simulation: independent networks (default: 100); dmft: sampled examples (default: "
        "40,000 if --dt is given); exact: examples sampled for the training error of on-line "
        "Adaline classification (default: none)",
    )
    group.add_argument("--dt", type=float, help="dmft: largest time step")
    group.add_argument(
        "--rtol", type=float, help="dmft: relative error to reach, instead of --dt and --samples"
    )
    group.add_argument("--memory", type=float, help="dmft: the most to take, in GB (default: 8)")
    group.add_argument(
        "--accuracy",
        type=float,
        help="exact: standard error of Et to sample down to; with --data, of the curves",
    )
    group.add_argument(
        "--diagonal",
        action="store_true",
        default=None,
        help="exact, with --data: an approximation for many columns",
    )
    seed_flag(group, None, "same seed, same numbers (default: 0); none draws one")
    group.add_argument(
        "--precision", help="simulation: float64 (default) or float32 (default on a card)"
    )
    group.add_argument(
        "--device", help="simulation, and exact with --data: cpu (default) or cuda, an NVIDIA card"
    )
    if "mean-force" in choices:  # a steady state
        group.add_argument(
            "--settle", type=float, help="simulation: time to wait before measuring (default: 20)"
        )
    else:
        group.add_argument(
            "--response",
            action="store_true",
            default=None,
            help="simulation, with --two-time: also measure G(t,s)",
        )
    group.add_argument(
        "--threads",
        type=int,
        help="simulation, dmft: networks or populations at a time (default: one per core)",
    )


def read_method(arguments: argparse.Namespace, problem: Problem, verb: str = "solve") -> Any:
    """Return the method that the flags ask for."""
    from manypass.verbs import automatic

    name = arguments.method
    if name == "auto":
        name = automatic(problem, verb)
    every = sorted({flag for flags in SETTINGS.values() for flag in flags} - {*PROBLEM_FLAGS})
    given = {k: v for k in every if (v := getattr(arguments, k, None)) is not None}
    for key, value in given.items():
        if key not in SETTINGS[name]:
            owner = next(method for method, settings in SETTINGS.items() if key in settings)
            taken = (
                f", which auto takes: say --method {owner}" if arguments.method == "auto" else ""
            )
            raise ValueError(f"--{key} (got {value!r}) is no setting of --method {name}{taken}")
    own = getattr(problem.data, "n", None)  # of given data; in a method 500 may be the default
    if own is not None and given.get("n", own) != own:
        raise ValueError(f"--n {given['n']}, but {problem.data!r} has N = {own}: leave it out")
    return make_method(name, given)


def make_method(name: str, settings: dict[str, Any]) -> Any:
    """Return the method of a name, or "auto"."""
    from manypass import checks

    if name not in ("auto", *SETTINGS) or (name == "auto" and settings):
        raise ValueError(
            f"`method` must be one of auto, {', '.join(SETTINGS)} (auto has no settings), "
            f"got {name!r}{checks.meant(name, SETTINGS)}"
        )
    for key in settings:
        if key not in SETTINGS[name]:
            allowed = ", ".join(SETTINGS[name]) or "none"
            hint = checks.meant(key, SETTINGS[name])
            raise ValueError(f"`{key}` is no setting of method {name}: it has {allowed}{hint}")
    from manypass.verbs import named

    return dataclasses.replace(named(name), **settings) if settings else named(name)


def read_entries(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read what the file says of the problem, overridden by the flags."""
    entries: dict[str, Any] = {}
    if arguments.problem is not None:
        if (
            Path(arguments.problem)
            .name.lower()
            .endswith((".csv", ".tsv", ".gz", ".txt", ".dat", ".parquet"))
        ):
            raise ValueError(
                f"{arguments.problem} is no TOML file: examples of your own are given as --data "
                f"{arguments.problem} --target COLUMN"
            )
        if re.fullmatch(r"[-+.:,e\d]+", arguments.problem) and not Path(arguments.problem).exists():
            raise ValueError(
                f"no file {arguments.problem!r}: several numbers are one word, without blanks, "
                f"such as --times 1,2,3"
            )
        entries = toml(arguments.problem)
        if key := next((key for key in entries if key in PLAN_KEYS), None):
            raise ValueError(
                f"{arguments.problem}: {key!r} is no field of a problem: only a plan for "
                f"`manypass sweep` has it; otherwise it is a flag"
            )

    def overlay(table: Any, names: Sequence[str]) -> Any:
        typed = {k: v for k in names if (v := getattr(arguments, k)) is not None}
        return {**table, **typed} if isinstance(table, dict) else table

    if arguments.rule is not None:
        entries["rule"] = arguments.rule
    elif arguments.problem is None:
        entries["rule"] = "adaline"
    if "rule" in entries:
        rule = entries["rule"]
        entries["rule"] = overlay({"name": rule} if isinstance(rule, str) else rule, RULE_FLAGS)
    data = entries.get("data", {})
    own = arguments.path is not None or (isinstance(data, dict) and "path" in data)
    if own and not (isinstance(data, dict) and "path" in data):
        data = {}  # a file of examples instead of the file's teacher
    for flag in ("alpha", "noise", "inputs", *TEACHER_FLAGS) if own else FILE_ONLY:
        if (value := getattr(arguments, flag)) is not None:
            why = "describes a teacher, not --data" if own else "needs --data"
            raise ValueError(f"--{flag.replace('_', '-')} (got {value!r}) {why}")
    data = overlay(data, FILE_FLAGS if own else DATA_FLAGS)
    for flag, key in TEACHER_FLAGS.items():
        if (value := getattr(arguments, flag)) is not None and isinstance(data, dict):
            data[key] = value
    merged: dict[str, Any] = overlay(entries, PROBLEM_FLAGS) | {"data": data}
    return merged


def read_problem(arguments: argparse.Namespace) -> Problem:
    """Make the problem that the file and the flags describe."""
    return make_problem(read_entries(arguments))


def make_problem(entries: dict[str, Any]) -> Problem:
    """Make a problem in silence; `describe` then says what was made of the data."""
    import warnings

    from manypass.problem import Problem

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("default", "`rule`", UserWarning)  # which is not of the data
        return Problem.from_dict(entries)


def describe(problem: Problem) -> None:
    """Say on stderr as what one's own data were taken, once there is an answer about them."""
    summary = getattr(problem.data, "summary", None)
    if summary:
        print(re.sub("`(positive|task)`", r"--\1", summary), file=sys.stderr)


def read_times(text: str, name: str = "times") -> Array:
    """Read times from first:last:count or t1,t2,...

    Examples
    --------
    >>> read_times("0:8:5").tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    import numpy as np

    try:
        if ":" not in text:
            return np.array([float(part) for part in text.split(",")])
        ends, count = [float(part) for part in text.split(":")[:-1]], int(text.split(":")[-1])
    except ValueError:
        ends, count = [], 0
    if len(ends) != 2 or not math.isfinite(sum(ends)) or not 0 < count <= MOST_TIMES:
        raise ValueError(
            f"`{name}` must be t1,t2,... or first:last:count, a whole count up to {MOST_TIMES}, "
            f"got {text!r}"
        )
    if count == 1 and ends[0] != ends[1]:
        raise ValueError(
            f"`{name}` = {text!r} asks for one value alone, and names two: the third number is "
            f"how many there are, both ends among them, not a step"
        )
    return np.linspace(ends[0], ends[1], count)


def read_over(typed: Sequence[str]) -> Any:
    """Return a field, or fields and their bounds, from --over FIELD or --over FIELD=LOW:HIGH.

    Examples
    --------
    >>> read_over(["rate"]), read_over(["rate=0.1:2", "decay=0:1"])
    ('rate', {'rate': (0.1, 2.0), 'decay': (0.0, 1.0)})
    """
    if len(typed) == 1 and "=" not in typed[0]:
        return typed[0]
    bounds = {}
    for each in typed:
        name, _, ends = each.partition("=")
        try:
            low, high = map(float, ends.split(":"))
        except ValueError:
            why = "bounds are numbers" if ends else "none follow the ="
            if "=" not in each:
                why = "several are varied: each needs its bounds"
            raise ValueError(
                f"--over must be FIELD or FIELD=LOW:HIGH, got {each!r} ({why})"
            ) from None
        if name in bounds:
            raise ValueError(f"--over {name} is given twice: it has one pair of bounds")
        bounds[name] = (low, high)
    return bounds


def check_suffix(flag: str, path: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a file name before the work is done, not after."""
    if path is None:
        return
    if Path(path).suffix.lower() not in allowed:
        raise ValueError(f"{flag} must end in {', '.join(allowed)}, got {path!r}")
    if home(path).is_dir():
        raise ValueError(f"{flag}: {path!r} is a folder, not a file")
    folder = home(path).resolve().parent
    if not folder.is_dir():
        raise ValueError(f"{flag}: no folder {str(home(path).parent)!r} to write {path!r} to")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{flag}: the folder {str(folder)!r} may not be written to")
