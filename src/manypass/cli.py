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
from manypass.flags import (
    check_suffix,
    method_flags,
    problem_flags,
    read_entries,
    read_method,
    read_problem,
    read_times,
)

if TYPE_CHECKING:
    from manypass.checks import Array

PICTURES = (".png", ".pdf")
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
    method_flags(solve, "auto", "exact", "dmft", "simulation")
    solve.add_argument("--two-time", action="store_true", help="also C(t,s) and G(t,s), with --out")
    solve.add_argument("--out", help="write the numbers as .nc, .csv or .json")
    solve.add_argument("--plot", help="draw the curves as .png or .pdf")

    steady = command("steady", run_steady, "R, Q, F2, Eg in the steady state.", parents=given)
    steady.add_argument(
        "--window", type=float, default=0.0, help="averaging time of the weights (default: 0)"
    )
    method_flags(steady, "auto", "exact", "dmft", "mean-force", "simulation")
    steady.add_argument("--out", help="write the numbers as .nc, .csv or .json")

    text = "The rate v_c above which learning diverges, and the slow mode if --rate is given."
    command("critical-rate", run_critical_rate, text, parents=given)

    again = command(
        "reproduce", run_reproduce, "The paper's figures, by default all that are implemented."
    )
    again.add_argument("figures", nargs="*", type=int, help="figure numbers")
    again.add_argument("--out", default="figures", help="folder to write to (default: %(default)s)")

    page = command("explore", run_explore, "A page on this machine: learning curves to play with.")
    page.add_argument("--port", type=int, help="by default 8642 or the next free one")
    page.add_argument("--no-browser", action="store_true", help="only print the address")
    return top


def run_explore(arguments: argparse.Namespace) -> None:
    """Serve the page until Ctrl-C."""
    from manypass.explorer.launch import explore

    explore(arguments.port, browser=not arguments.no_browser)


def run_solve(arguments: argparse.Namespace) -> None:
    """Print, save and draw learning curves."""
    check_suffix("--out", arguments.out, TABLES)
    check_suffix("--plot", arguments.plot, PICTURES)
    if arguments.two_time and not arguments.out:
        raise ValueError("--two-time gives functions of (t, s), too large to print: add --out x.nc")
    if arguments.response and not arguments.two_time:
        raise ValueError("--response measures a function of (t, s): add --two-time and --out x.nc")
    problem, times = read_problem(arguments), read_times(arguments.times)
    from manypass import results, verbs

    method, progress = read_method(arguments, problem), sys.stderr.isatty()
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

    found = verbs.steady_state(problem, read_method(arguments, problem), window=arguments.window)
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
