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
FLAG_NAMES = {"path": "data"}  # where a flag is called otherwise than its argument


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and whose flags are never abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with code 2."""
        fail(message)


def fail(message: str, code: int = 2) -> NoReturn:
    """Say on one line of stderr what is wrong and exit."""
    print(f"manypass: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(code)


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
        as_typed = FLAG_NAMES.get(name) or name.replace("_", "-")
        return f"--{as_typed}" if name in flags and (typed or not from_file) else found[0]

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
        "--times",
        help="first:last:count, or t1,t2,... (default: 0:8:161, or five passes of --data)",
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

    text = "Many problems: a grid over any fields, from a plan in TOML; goes on where it was."
    many = command("sweep", run_sweep, text)
    many.add_argument("plan", help="TOML file: a problem, and a table [sweep]")
    many.add_argument("--out", default="sweep", help="folder to keep points in (default: sweep)")
    who = many.add_mutually_exclusive_group()
    who.add_argument("--workers", type=int, help="local processes (default: one per core)")
    who.add_argument("--cluster", metavar="tcp://HOST:PORT", help="address of a Dask scheduler")
    who.add_argument(
        "--slurm", type=int, metavar="JOBS", help="Slurm jobs, with the plan's table [slurm]"
    )

    text = "The best rate, decay, passes and averaging window for your own data."
    advice = command("advise", run_advise, text, parents=given)
    advice.add_argument("--passes", type=int, default=20, help="the most epochs (default: 20)")
    advice.add_argument("--batch-size", type=int, default=1, help="examples per step (default: 1)")
    advice.add_argument(
        "--holdout",
        type=float,
        default=0.25,
        help="share to test on without --test (default: 0.25)",
    )
    advice.add_argument("--seed", type=int, default=0, help="of the share held out (default: 0)")
    advice.add_argument("--out", help="write the numbers as .nc, .csv or .json")

    text = "The paper's figures 1 to 4, and a fifth for Adatron; by default all."
    again = command("reproduce", run_reproduce, text)
    again.add_argument("figures", nargs="*", type=int, help="figure numbers")
    again.add_argument("--quick", action="store_true", help="a coarse version, in seconds")
    again.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
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
    problem = read_problem(arguments)
    given = getattr(problem.data, "p", None)  # a Dataset: a pass over it takes alpha
    usual = f"0:{5 * problem.data.alpha:.6g}:161" if given else "0:8:161"
    times = read_times(arguments.times or usual)
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
    from manypass.data.dataset import Dataset
    from manypass.problem import Problem

    entries = read_entries(arguments)
    problem = Problem.from_dict({"rate": 1.0, **entries})
    limit = verbs.critical_rate(problem)
    given = isinstance(problem.data, Dataset)
    print(f"v_c = {limit:.6g}" if given else f"v_c = {limit:.6f}")
    if "rate" in entries:
        print(f"v/v_c = {problem.rate / limit:.6f}")
        if not given:
            print(f"slow mode = {verbs.slow_mode(problem):.6f}")


def run_advise(arguments: argparse.Namespace) -> None:
    """Print and save advice; without a rate, that of half the critical one is the start."""
    check_suffix("--out", arguments.out, TABLES)
    from manypass import results
    from manypass.data.advice import advise, text
    from manypass.data.solution import critical_rate
    from manypass.problem import Problem

    entries = read_entries(arguments)
    problem = Problem.from_dict({"rate": 1.0, **entries})
    if "rate" not in entries:
        problem = problem.replace(rate=critical_rate(problem, arguments.batch_size) / 2)
    found = advise(
        problem,
        passes=arguments.passes,
        batch_size=arguments.batch_size,
        holdout=arguments.holdout,
        seed=arguments.seed,
    )
    if arguments.out:
        results.save(found, arguments.out)
    print(text(found))


def run_sweep(arguments: argparse.Namespace) -> None:
    """Compute the points of a plan and say which have no answer."""
    from contextlib import nullcontext

    from manypass.sweeps import clusters
    from manypass.sweeps.plan import read_plan
    from manypass.sweeps.run import closing_table, sweep

    plan = read_plan(arguments.plan)
    if arguments.slurm is not None:
        place: Any = clusters.slurm(arguments.slurm, plan.slurm)
    elif arguments.cluster:
        place = clusters.running(arguments.cluster)
    else:
        place = nullcontext()
    try:
        with place as client:
            found = sweep(
                plan.grid,
                plan.method,
                times=plan.times,
                window=plan.window,
                two_time=plan.two_time,
                out=arguments.out,
                workers=arguments.workers,
                client=client,
                progress=sys.stderr.isatty(),
            )
    except KeyboardInterrupt as stop:
        fail(f"interrupted: {' '.join(stop.__notes__)}", 130)
    for line in closing_table(found):
        print(line)
    print(f"{Path(arguments.out) / 'sweep.nc'}: {dict(found.sizes)}")


def run_reproduce(arguments: argparse.Namespace) -> None:
    """Compute the paper's figures."""
    from manypass.reproduce import reproduce

    options = {"seed": arguments.seed, "quick": arguments.quick, "progress": sys.stderr.isatty()}
    for path in reproduce(arguments.figures, Path(arguments.out), **options):
        print(path)
