"""The command line: the verbs of the package, a problem from flags or from a TOML file.

Heavy imports live inside the commands, so that --help is instant.
"""

from __future__ import annotations

import argparse
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
ROWS = 21  # of a table on the terminal
TABLES = (".nc", ".csv", ".json")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

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
    except (ValueError, OSError) as error:
        fail(as_flags(str(error), arguments))
    except KeyboardInterrupt:
        print("manypass: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:  # `manypass solve … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_flags(message: str, arguments: argparse.Namespace) -> str:
    """Name arguments as they were typed: `rate` becomes --rate, unless it stands in the file."""
    from_file = getattr(arguments, "problem", None) is not None

    def flag(found: re.Match[str]) -> str:
        name = found[1]
        typed = getattr(arguments, name, None) is not None
        return f"--{name}" if hasattr(arguments, name) and (typed or not from_file) else found[0]

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
    solve = command("solve", run_solve, "Learning curves R, Q, F2, Eg against time.", parents=given)
    solve.add_argument(
        "--times", default="0:8:161", help="first:last:count, or t1,t2,... (default: %(default)s)"
    )
    solve.add_argument("--method", choices=("auto", "exact"), default="auto", help="default: auto")
    solve.add_argument("--two-time", action="store_true", help="also C(t,s) and G(t,s), with --out")
    solve.add_argument("--out", help="write the numbers as .nc, .csv or .json")
    solve.add_argument("--plot", help="draw the curves as .png or .pdf")

    steady = command("steady", run_steady, "R, Q, F2, Eg in the steady state.", parents=given)
    steady.add_argument(
        "--window", type=float, default=0.0, help="averaging time of the weights (default: 0)"
    )
    steady.add_argument(
        "--method", choices=("auto", "exact", "mean-force"), default="auto", help="default: auto"
    )
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


def read_problem(arguments: argparse.Namespace, **defaults: Any) -> Problem:
    """Problem from the file, overridden by the flags."""
    import tomllib

    from manypass.problem import Problem

    entries: dict[str, Any] = {}
    if arguments.problem:
        try:
            entries = tomllib.loads(Path(arguments.problem).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{arguments.problem} is not a TOML file: {error}") from None
        except OSError as error:
            raise ValueError(f"cannot read {arguments.problem!r}: {error.strerror}") from None

    def overlay(table: Any, names: Sequence[str]) -> Any:
        given = {
            name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None
        }
        return {**table, **given} if isinstance(table, dict) else table

    rule = arguments.rule or entries.get("rule", "adaline")
    rule = overlay({"name": rule} if isinstance(rule, str) else rule, RULE_FLAGS)
    data = overlay(entries.get("data", {}), DATA_FLAGS)
    if isinstance(data, dict) and "alpha" not in data:
        raise ValueError("`alpha` is missing: give the examples per weight, --alpha 1.2")
    entries = overlay(defaults | entries, PROBLEM_FLAGS) | {"rule": rule, "data": data}
    if "rate" not in entries:
        raise ValueError("`rate` is missing: give the learning rate, --rate 1.0")
    return Problem.from_dict(entries)


def read_times(text: str) -> Array:
    """Read times from first:last:count or t1,t2,..."""
    import numpy as np

    try:
        if ":" in text:
            first, last, count = text.split(":")
            return np.linspace(float(first), float(last), int(count))
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise ValueError(f"`times` must be first:last:count or t1,t2,..., got {text!r}") from None


def check_suffix(flag: str, path: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a file name before the work is done, not after."""
    if path is None:
        return
    if Path(path).suffix not in allowed:
        raise ValueError(f"{flag} must end in {', '.join(allowed)}, got {path!r}")
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

    found = verbs.solve(problem, times, two_time=arguments.two_time)
    names = [str(name) for name in found.data_vars if found[name].dims == ("t",)]
    print_table(["t", *names], [times, *(found[name].values for name in names)])
    if arguments.out:
        results.save(found, arguments.out)
    if arguments.plot:
        from manypass import plot

        plot.save_figure(plot.overview(found), arguments.plot)


def print_table(names: list[str], columns: list[Array]) -> None:
    """Print at most ROWS rows, evenly thinned, and say so."""
    rows = list(zip(*columns, strict=True))
    stride = -(-(len(rows) - 1) // (ROWS - 1)) or 1
    print("  ".join(f"{name:>10}" for name in names))
    for row in rows[::stride]:
        print("  ".join(f"{value:10.6g}" for value in row))
    if stride > 1:
        print(f"({len(rows[::stride])} of {len(rows)} times; --out x.csv writes all)")


def run_steady(arguments: argparse.Namespace) -> None:
    """Print and save the steady state."""
    check_suffix("--out", arguments.out, TABLES)
    problem = read_problem(arguments)
    from manypass import results, verbs
    from manypass.exact.mean_force import MeanForce

    method = MeanForce() if arguments.method == "mean-force" else "auto"
    found = verbs.steady_state(problem, method, window=arguments.window)
    for name, value in found.data_vars.items():
        print(f"{name:>4} = {float(value):.6g}")
    if arguments.out:
        results.save(found, arguments.out)


def run_critical_rate(arguments: argparse.Namespace) -> None:
    """Print v_c; with a rate, also v/v_c and the slow mode."""
    problem = read_problem(arguments, rate=1.0)
    from manypass import verbs

    limit = verbs.critical_rate(problem)
    print(f"v_c = {limit:.6f}")
    if arguments.rate is not None:
        print(f"v/v_c = {problem.rate / limit:.6f}")
        print(f"slow mode = {verbs.slow_mode(problem):.6f}")


def run_reproduce(arguments: argparse.Namespace) -> None:
    """Compute the paper's figures."""
    from manypass.reproduce import reproduce

    for path in reproduce(arguments.figures, Path(arguments.out)):
        print(path)
