"""The command line: the verbs of the package, a problem from flags or from a TOML file.

Heavy imports live inside the commands, so that --help is instant.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from manypass import __version__

if TYPE_CHECKING:
    from manypass.checks import Array
    from manypass.problem import Problem

DATA_FLAGS = ("alpha", "task", "noise")
RULE_FLAGS = ("kappa", "width")
PROBLEM_FLAGS = ("rate", "decay", "temperature", "mode")
PICTURES = (".png", ".pdf")
MOST_TIMES = 10**6
ROWS = 21  # of a table on the terminal
TABLES = (".nc", ".csv", ".json")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and whose flags are never abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with code 2."""
        fail(message)


def fail(message: str) -> NoReturn:
    """Say on one line of stderr what is wrong and exit with code 2."""
    print(f"manypass: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command."""
    arguments = parser().parse_args(argv)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `manypass solve … | head`: files are written, nobody reads the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except MemoryError as error:
        fail(f"out of memory: {error}")
    except (ValueError, OSError) as error:
        fail(as_flags(str(error), arguments))
    except KeyboardInterrupt:
        print("manypass: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def as_flags(message: str, arguments: argparse.Namespace) -> str:
    """Name arguments as they were typed: `rate` becomes --rate, unless it stands in the file."""
    from_file = getattr(arguments, "problem", None) is not None
    flags = {*vars(arguments)} - {"problem", "figures", "run"}

    def flag(found: re.Match[str]) -> str:
        name = found[1]
        typed = getattr(arguments, name, None) is not None
        return f"--{name}" if name in flags and (typed or not from_file) else found[0]

    return re.sub(r"`(\w+)`", flag, message)


def parser() -> Parser:
    """All commands and flags."""
    top = Parser(
        prog="manypass",
        description="Learning curves of on-line learning that passes many times over "
        "a finite training set.",
        epilog="Example: manypass solve --rule adaline --alpha 1.2 --rate 1.9 --decay 0.8",
    )
    top.add_argument("--version", action="version", version=f"manypass {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Any, text: str, **options: Any) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, **options)
        made.set_defaults(run=run)
        return made

    given = [problem_flags()]
    solve = command("solve", run_solve, "Learning curves against time.", parents=given)
    solve.add_argument(
        "--times", default="0:8:161", help="first:last:count, or t1,t2,... (default: %(default)s)"
    )
    method_flags(solve, "auto", "exact", "simulation")
    solve.add_argument("--two-time", action="store_true", help="also C(t,s) and G(t,s), with --out")
    solve.add_argument("--out", help="write the numbers as .nc, .csv or .json")
    solve.add_argument("--plot", help="draw the curves as .png or .pdf")

    steady = command("steady", run_steady, "R, Q, F2, Eg in the steady state.", parents=given)
    steady.add_argument(
        "--window", type=float, default=0.0, help="averaging time of the weights (default: 0)"
    )
    method_flags(steady, "auto", "exact", "mean-force", "simulation")
    steady.add_argument("--out", help="write the numbers as .nc, .csv or .json")

    text = "The rate v_c above which learning diverges, and the slow mode if --rate is given."
    command("critical-rate", run_critical_rate, text, parents=given)

    again = command(
        "reproduce", run_reproduce, "The paper's figures, by default all that are implemented."
    )
    again.add_argument("figures", nargs="*", type=int, help="figure numbers")
    again.add_argument("--out", default="figures", help="folder to write to (default: %(default)s)")
    return top


def problem_flags() -> argparse.ArgumentParser:
    """Return the flags that make a problem, shared by all commands."""
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument(
        "problem", nargs="?", help="TOML file with the problem; flags override its keys"
    )
    group = flags.add_argument_group("problem")
    group.add_argument("--rule", help="adaline, hebbian, adatron, perceptron, logistic or huber")
    group.add_argument("--alpha", type=float, help="examples per weight, p/N")
    group.add_argument("--rate", type=float, help="learning rate v")
    group.add_argument("--decay", type=float, help="weight decay lambda (default: 0)")
    group.add_argument("--task", help="classification (default) or regression")
    group.add_argument("--noise", type=float, help="noise in the targets, epsilon (default: 0)")
    group.add_argument("--temperature", type=float, help="dynamical noise T (default: 0)")
    group.add_argument("--mode", help="online (default) or batch")
    group.add_argument("--kappa", type=float, help="margin of adatron and perceptron")
    group.add_argument("--width", type=float, help="width of huber")
    return flags


def method_flags(command: argparse.ArgumentParser, *choices: str) -> None:
    """Add the method and its settings."""
    group = command.add_argument_group("method")
    group.add_argument("--method", choices=choices, default="auto", help="default: auto")
    group.add_argument("--n", type=int, help="simulation: weights of a network (default: 500)")
    group.add_argument(
        "--samples",
        type=int,
        help="simulation: independent networks (default: 100); exact: examples sampled for the "
        "training error of on-line Adaline classification (default: none)",
    )
    group.add_argument(
        "--accuracy", type=float, help="exact: standard error of Et to sample down to"
    )
    group.add_argument("--seed", type=int, help="same seed, same numbers (default: 0)")
    group.add_argument("--sequence", help="simulation: replacement (default), reshuffled or fixed")
    group.add_argument("--precision", help="simulation: float64 (default) or float32")
    group.add_argument(
        "--settle", type=float, help="simulation: time before a steady state (default: 20)"
    )
    group.add_argument(
        "--threads", type=int, help="simulation: networks at a time (default: one per core)"
    )


SETTINGS = {
    "simulation": ("n", "samples", "seed", "sequence", "precision", "settle", "threads"),
    "exact": ("samples", "accuracy", "seed"),
    "mean-force": (),
}


def read_method(arguments: argparse.Namespace) -> Any:
    """Return the method that the flags ask for."""
    name = "exact" if arguments.method == "auto" else arguments.method
    every = sorted({flag for flags in SETTINGS.values() for flag in flags})
    given = {k: v for k in every if (v := getattr(arguments, k)) is not None}
    for key, value in given.items():
        if key not in SETTINGS[name]:
            raise ValueError(f"--{key} (got {value!r}) is no setting of --method {name}")
    if name == "simulation":
        from manypass.simulation.method import Simulation

        return Simulation(**given)
    if name == "mean-force":
        from manypass.exact.mean_force import MeanForce

        return MeanForce()
    from manypass.exact.method import Exact

    return Exact(**given)


def read_entries(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read what the file says of the problem, overridden by the flags."""
    import tomllib

    entries: dict[str, Any] = {}
    if arguments.problem:
        try:
            entries = tomllib.loads(Path(arguments.problem).read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{arguments.problem} is not a TOML file: {error}") from None
        except OSError as error:
            raise ValueError(f"cannot read {arguments.problem!r}: {error.strerror}") from None

    def overlay(table: Any, names: Sequence[str]) -> Any:
        typed = {k: v for k in names if (v := getattr(arguments, k)) is not None}
        return {**table, **typed} if isinstance(table, dict) else table

    rule = arguments.rule or entries.get("rule", "adaline")
    rule = overlay({"name": rule} if isinstance(rule, str) else rule, RULE_FLAGS)
    data = overlay(entries.get("data", {}), DATA_FLAGS)
    merged: dict[str, Any] = overlay(entries, PROBLEM_FLAGS) | {"rule": rule, "data": data}
    return merged


def read_problem(arguments: argparse.Namespace) -> Problem:
    """Make the problem that the file and the flags describe."""
    from manypass.problem import Problem

    return Problem.from_dict(read_entries(arguments))


def read_times(text: str) -> Array:
    """Read times from first:last:count or t1,t2,..."""
    import numpy as np

    try:
        if ":" in text:
            first, last, count = text.split(":")
            if math.isfinite(float(first) + float(last)) and 0 < int(count) <= MOST_TIMES:
                return np.linspace(float(first), float(last), int(count))
            raise ValueError
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise ValueError(
            f"`times` must be t1,t2,... or first:last:count with at most {MOST_TIMES} times, "
            f"got {text!r}"
        ) from None


def check_suffix(flag: str, path: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a file name before the work is done, not after."""
    if path is None:
        return
    if Path(path).suffix.lower() not in allowed:
        raise ValueError(f"{flag} must end in {', '.join(allowed)}, got {path!r}")
    if Path(path).is_dir():
        raise ValueError(f"{flag}: {path!r} is a folder, not a file")
    if not Path(path).resolve().parent.is_dir():
        raise ValueError(f"{flag}: no folder {str(Path(path).parent)!r} to write {path!r} to")


def run_solve(arguments: argparse.Namespace) -> None:
    """Print, save and draw learning curves."""
    check_suffix("--out", arguments.out, TABLES)
    check_suffix("--plot", arguments.plot, PICTURES)
    if arguments.two_time and not arguments.out:
        raise ValueError("--two-time gives functions of (t, s), too large to print: add --out x.nc")
    problem, times = read_problem(arguments), read_times(arguments.times)
    from manypass import results, verbs

    method, progress = read_method(arguments), sys.stderr.isatty()
    found = verbs.solve(problem, times, method, two_time=arguments.two_time, progress=progress)
    if arguments.out:
        results.save(found, arguments.out)
    if arguments.plot:
        from manypass import plot

        plot.save_figure(plot.overview(found), arguments.plot)
    names = [str(name) for name in found.data_vars if found[name].dims == ("t",)]
    print_table(["t", *names], [times, *(found[name].values for name in names)])


def print_table(names: list[str], columns: list[Array]) -> None:
    """Print at most ROWS rows, evenly thinned, and say so."""
    rows = list(zip(*columns, strict=True))
    stride = -(-(len(rows) - 1) // (ROWS - 1)) or 1
    print("  ".join(f"{name:>10}" for name in names))
    shown = rows[::-stride][::-1]  # the last row is always among them
    for row in shown:
        print("  ".join(f"{value:10.6g}" for value in row))
    if stride > 1:
        print(f"({len(shown)} of {len(rows)} times; --out x.csv writes all)")


def run_steady(arguments: argparse.Namespace) -> None:
    """Print and save the steady state."""
    check_suffix("--out", arguments.out, TABLES)
    problem = read_problem(arguments)
    from manypass import results, verbs

    found = verbs.steady_state(problem, read_method(arguments), window=arguments.window)
    if arguments.out:
        results.save(found, arguments.out)
    for name, value in found.data_vars.items():
        print(f"{name:>8} = {float(value):.6g}")


def run_critical_rate(arguments: argparse.Namespace) -> None:
    """Print v_c; with a rate, also v/v_c and the slow mode."""
    from manypass import verbs
    from manypass.problem import Problem

    entries = read_entries(arguments)
    problem = Problem.from_dict({"rate": 1.0, **entries})
    limit = verbs.critical_rate(problem)
    print(f"v_c = {limit:.6f}")
    if "rate" in entries:
        print(f"v/v_c = {problem.rate / limit:.6f}")
        print(f"slow mode = {verbs.slow_mode(problem):.6f}")


def run_reproduce(arguments: argparse.Namespace) -> None:
    """Compute the paper's figures."""
    from manypass.reproduce import reproduce

    for path in reproduce(arguments.figures, Path(arguments.out)):
        print(path)
