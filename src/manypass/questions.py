"""Commands that answer a question: what is best, what repetition is worth, what to set."""

from __future__ import annotations

import argparse
import math
import re
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from manypass.commands import TABLES, check_drawing, heard_from, saved_after, spare_data
from manypass.flags import (
    check_suffix,
    describe,
    make_problem,
    read_entries,
    read_method,
    read_over,
    read_times,
)

if TYPE_CHECKING:
    import xarray as xr


def run_best(arguments: argparse.Namespace) -> None:
    """Print and save the values that make an error least."""
    check_suffix("--out", arguments.out, TABLES)
    from manypass import checks
    from manypass.sweeps.best import FIELDS, best

    over, entries = read_over(arguments.over), read_entries(arguments)
    names = [over] if isinstance(over, str) else list(over)
    for name in names:
        checks.choice("over", name, (*FIELDS, *(["schedule"] if over == name else [])))
    varied = {"rate", "schedule"} & {*names}
    problem = make_problem({"rate": 1.0, **entries} if varied else entries)
    spare_data(arguments.out, problem)
    verb = "steady_state" if arguments.at == "steady" and "time" not in names else "solve"
    method = read_method(arguments, problem, verb)
    progress = sys.stderr.isatty()
    with nullcontext() if progress else heard_from():
        found = best(
            problem,
            over,
            objective=arguments.objective,
            at=arguments.at,
            method=method,
            window=arguments.window,
            progress=progress,
        )
    describe(problem)
    with saved_after(found, arguments.out):
        print_best(found)


def print_best(found: xr.Dataset) -> None:
    """Print the best values, or a row for each kind of schedule, whose rate may be pasted."""
    values = {str(name): value for name, value in found.data_vars.items()}
    if "schedule" not in found.dims:
        for name, value in values.items():
            if not value.dims:
                print(f"{name:>16} = {float(value):.6g}")
        return

    def cell(value: Any) -> str:
        return re.sub(r"\d+\.\d+", lambda n: f"{float(n[0]):.6g}", f"{value}")

    columns = {"schedule": found.schedule} | values
    table = [[*columns]]
    table += [[cell(v.values[i]) for v in columns.values()] for i in range(found.schedule.size)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(f"{v:<{w}}" for v, w in zip(row, widths, strict=True)).rstrip())


def run_worth(arguments: argparse.Namespace) -> None:
    """Print, save and draw what repeated data are worth."""
    check_suffix("--out", arguments.out, TABLES)
    check_drawing(arguments.plot)
    from manypass.worth import FITTED, effective_data

    passes = read_times(arguments.passes, "passes")
    entries = read_entries(arguments)
    if named_file(entries):
        raise ValueError(
            "worth needs a teacher, --alpha: what fresh examples would give is not known of --data"
        )
    with heard_from():
        found = effective_data(make_problem(entries), passes, tuned=arguments.tuned)
    with saved_after(found, arguments.out):
        R_star = float(found.R_star)
        known = R_star >= 0  # not NaN
        unknown = {"R_star"} if known else {"R_star", "fit"}
        columns = [str(name) for name in ("passes", *found.data_vars) if name not in unknown]
        print("".join(f"{name:>16}" for name in columns))
        for row in zip(*(found[name].values for name in columns), strict=True):
            print("".join(f"{value:16.6g}" for value in row))
        some = int(((found.effective_data > 0) & (found.effective_data < math.inf)).sum())
        ends = {0.0: ": more passes add nothing", math.inf: ": all are worth as much as the first"}
        print(
            f"R* = {R_star:.4g}{ends.get(R_star, '')}"
            if known
            else f"R* is not known: it is fitted to the worth of at least {FITTED} numbers of "
            f"passes, here {some} {'has' if some == 1 else 'have'} one: give more in --passes"
        )
    if arguments.plot:
        from manypass import plot

        figure, (ax,) = plot.new_figure(1)
        plot.worth(found, ax=ax)
        plot.save_figure(figure, arguments.plot)


def named_file(entries: dict[str, Any]) -> bool:
    """Whether the examples are one's own, from a file."""
    data = entries["data"]
    return isinstance(data, dict) and "path" in data


def run_advise(arguments: argparse.Namespace) -> None:
    """Print and save advice; without a rate, that of half the critical one is the start."""
    check_suffix("--out", arguments.out, TABLES)
    from manypass import checks
    from manypass.data.advice import advise, text, trained_on
    from manypass.data.search import LIMITS
    from manypass.data.solution import critical_rate

    entries = read_entries(arguments)
    if not named_file(entries):
        raise ValueError(
            "advise needs --data FILE and --target COLUMN: it is about examples of your own"
        )
    problem = make_problem({"rate": 1.0, **entries})
    spare_data(arguments.out, problem)
    if "rate" not in entries:
        part = trained_on(problem, arguments.holdout, checks.seed("seed", arguments.seed))
        half = critical_rate(part) / 2
        problem = problem.replace(rate=min(max(half, LIMITS[0]), LIMITS[1]))
    progress = sys.stderr.isatty()
    with nullcontext() if progress else heard_from():
        found = advise(
            problem,
            passes=arguments.passes,
            objective=arguments.objective,
            holdout=arguments.holdout,
            seed=arguments.seed,
            schedules=arguments.schedules,
            progress=progress,
        )
    describe(problem)
    with saved_after(found, arguments.out):
        print(text(found))
        if "rate" not in entries:
            print(f"start: half this critical rate, {problem.rate:.5g}, since no --rate was given")
