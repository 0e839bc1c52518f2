"""What each command does: read, compute, print, save and draw.

Heavy imports live inside the functions, so that --help is instant.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manypass.flags import (
    check_suffix,
    describe,
    fail,
    make_problem,
    read_entries,
    read_method,
    read_problem,
    read_times,
)

if TYPE_CHECKING:
    import xarray as xr

    from manypass.checks import Array
    from manypass.problem import Problem

PICTURES = (".png", ".pdf", ".svg")
ROWS = 21  # of a table on the terminal
SILENT, AGAIN = 10.0, 60.0  # seconds
TABLES = (".nc", ".csv", ".json")


def run_explore(arguments: argparse.Namespace) -> None:
    """Serve the page until Ctrl-C."""
    from manypass.explorer.launch import explore

    explore(arguments.port, browser=not arguments.no_browser)


def run_solve(arguments: argparse.Namespace) -> None:
    """Print, save and draw learning curves."""
    check_suffix("--out", arguments.out, TABLES)
    check_drawing(arguments.plot)
    if arguments.two_time and not arguments.out:
        raise ValueError("--two-time gives functions of (t, s), too large to print: add --out x.nc")
    if arguments.response and not arguments.two_time:
        raise ValueError("--response measures a function of (t, s): add --two-time and --out x.nc")
    if arguments.show_rate is not None and not arguments.plot:
        raise ValueError("--show-rate is for a picture: add --plot x.png")
    problem = read_problem(arguments)
    spare_data(arguments.out, problem)
    given = getattr(problem.data, "p", None)  # a Dataset: a pass over it takes alpha
    usual = f"0:{5 * problem.data.alpha:.6g}:161" if given else "0:8:161"
    times = read_times(usual if arguments.times is None else arguments.times)
    from manypass import verbs

    method, progress = read_method(arguments, problem), sys.stderr.isatty()
    tell_cost(problem, method, float(times[-1]), len(times))
    shows = progress and not hasattr(method, "eigenvalues")  # Exact, which has no bar
    try:
        with nullcontext() if shows else heard_from():
            found = verbs.solve(
                problem, times, method, two_time=arguments.two_time, progress=progress
            )
    except KeyboardInterrupt as stop:
        keep(getattr(stop, "so_far", None), arguments.out)
        raise
    describe(problem)
    from manypass import growth

    if not getattr(method, "diagonal", True):  # Exact, unless data are too large for v_c
        warn(growth.told(problem, found))
    elif "Q" in found:
        warn(growth.lost(found))
    columns = dict(printed(found))
    advice = "" if arguments.out else "; --out x.csv writes all"
    with saved_after(found, arguments.out, arguments.plot, arguments.show_rate):
        print_table(["t", *columns], [times, *columns.values()], advice)


def keep(so_far: xr.Dataset | None, out: str | None) -> None:
    """Save the networks of a simulation that was interrupted, and say how many."""
    if so_far is None:
        return
    count = json.loads(so_far.attrs["method"])["samples"]
    if out is None:
        lost = f"the {count} networks so far are lost: --out x.nc would have kept them"
        print(f"manypass: {lost}", file=sys.stderr)
        return
    from manypass import results

    results.save(so_far, out)
    print(f"manypass: {out} has the {count} networks so far", file=sys.stderr)


def warn(line: str | None) -> None:
    """Say something on stderr, in the words of flags, if there is anything to say."""
    if line:
        warnings.warn(line, stacklevel=2)


def check_drawing(picture: str | None) -> None:
    """Refuse a picture before the work is done, by its name or since matplotlib does not start."""
    check_suffix("--plot", picture, PICTURES)
    if picture is not None:
        check_matplotlib()


def check_matplotlib() -> None:
    """Say before the work is done why matplotlib does not start, if it does not."""
    # Where it may write no folder of its own it takes another, and tells: nobody here can mend it.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib  # noqa: F401
    except ValueError as error:
        backend = os.environ.get("MPLBACKEND")
        if backend is None:
            raise
        raise ValueError(
            f"MPLBACKEND = {backend!r} in the environment is no backend of matplotlib, which "
            f"does not start: unset it, or say MPLBACKEND=agg"
        ) from error


def spare_data(out: str | None, problem: Problem) -> None:
    """Refuse to write over the files that the data are read from."""
    for name in ("path", "test"):
        file = getattr(problem.data, name, None)
        if out and file and Path(out).resolve() == Path(file).resolve():
            raise ValueError(
                f"--out {out} is a file of the data, which would be lost: name another"
            )


def tell_cost(problem: Problem, method: Any, until: float, looks: int) -> None:
    """Say on stderr how long a long simulation may take, before it begins."""
    if not getattr(method, "finite", False):
        return
    from manypass.simulation import cost

    if line := cost.told(method, problem, until, looks):
        print(f"manypass: {line}", file=sys.stderr, flush=True)


@contextmanager
def heard_from() -> Iterator[None]:
    """Say on stderr after some seconds, and then every minute, that a command is still at work."""
    done, begun = threading.Event(), time.monotonic()

    def say() -> None:
        wait = SILENT
        while not done.wait(wait):
            spent, wait = time.monotonic() - begun, AGAIN
            print(f"manypass: at work for {spent:.0f} s", file=sys.stderr, flush=True)

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def printed(found: xr.Dataset) -> Iterator[tuple[str, Array]]:
    """Yield curves by their names; those of several units with the numbers of these, R12."""
    for name, values in found.data_vars.items():
        if "t" not in values.dims or "s" in values.dims:
            continue
        flat = values.values.reshape(values.sizes["t"], -1)
        stem, _, error = str(name).partition("_")
        for i in range(flat.shape[1]):
            yield f"{stem}{units(i, values.shape[1:])}{'_' if error else ''}{error}", flat[:, i]


def units(index: int, shape: tuple[int, ...]) -> str:
    """Return the numbers of the units that a column is about."""
    out = ""
    for size in reversed(shape):
        index, here = divmod(index, size)
        out = f"{here + 1}{out}"
    return out


@contextmanager
def saved_after(
    found: xr.Dataset, out: str | None, picture: str | None = None, rate: bool | None = None
) -> Iterator[None]:
    """Save after printing, so that a full disk loses no number, even if nobody reads them."""
    from manypass import results

    try:
        yield
        sys.stdout.flush()
    finally:
        if out:
            results.save(found, out)
        if picture:
            from manypass import plot

            plot.save_figure(plot.overview(found, rate=rate), picture)


def print_table(names: list[str], columns: list[Array], advice: str) -> None:
    """Print at most ROWS rows, evenly thinned, and say so."""
    rows = list(zip(*columns, strict=True))
    stride = -(-(len(rows) - 1) // (ROWS - 1)) or 1
    print("  ".join(f"{name:>10}" for name in names))
    shown = rows[::-stride][::-1]  # the last row is always among them, and so is the first
    shown = shown if shown[0] is rows[0] else [rows[0], *shown]
    for row in shown:
        print("  ".join(f"{value:10.6g}" for value in row))
    if stride > 1:
        print(f"({len(shown)} of {len(rows)} times{advice})")


def run_steady(arguments: argparse.Namespace) -> None:
    """Print and save the steady state."""
    check_suffix("--out", arguments.out, TABLES)
    problem = read_problem(arguments)
    spare_data(arguments.out, problem)
    from manypass import verbs

    method = read_method(arguments, problem, "steady_state")
    tell_cost(problem, method, getattr(method, "settle", 0.0) + arguments.window, 3)
    with heard_from():
        found = verbs.steady_state(problem, method, window=arguments.window)
    describe(problem)
    with saved_after(found, arguments.out):
        for name, value in found.data_vars.items():
            print(f"{name:>8} = {float(value):.6g}")
        if arguments.window:
            print(f"({whose_weights(found)})")


def whose_weights(found: xr.Dataset) -> str:
    """Say which values are of averaged weights, and which of the present ones."""
    from manypass.results import weights_of

    names = [str(name) for name in found.data_vars if not str(name).endswith("_se")]
    averaged, present = (
        ", ".join(name for name in names if weights_of(name) == kind)
        for kind in ("averaged", "present")
    )
    window = float(found.window)
    return f"{averaged}: of weights averaged over {window:g}; {present}: of the present ones"


def run_critical_rate(arguments: argparse.Namespace) -> None:
    """Print v_c; with a rate, also v/v_c and the slow mode."""
    from manypass import orders, verbs
    from manypass.data.dataset import Dataset
    from manypass.data.preparing import uneven

    entries = read_entries(arguments)
    problem = make_problem({"rate": 1.0, **entries})
    with heard_from():
        limit = verbs.critical_rate(problem, device=arguments.device)
    describe(problem)
    if hint := uneven(problem.data):
        warn(f"v_c = {limit:.4g} is that of the largest numbers{hint}")
    given = isinstance(problem.data, Dataset)
    print(f"v_c = {limit:.6g}" if given else f"v_c = {limit:.6f}")
    if "rate" in entries and not problem.scheduled:
        print(f"v/v_c = {problem.rate / limit:.6f}")
        if not given and orders.refusal(problem, "slow_mode") is None:
            print(f"slow mode = {verbs.slow_mode(problem):.6f}")


def run_sweep(arguments: argparse.Namespace) -> None:
    """Compute the points of a plan and say which have no answer."""
    from manypass.sweeps import clusters
    from manypass.sweeps.plan import read_plan
    from manypass.sweeps.run import closing_table, sweep

    plan = read_plan(arguments.plan)
    if plan.slurm and arguments.slurm is None:
        idle = "the table [slurm] of the plan is for --slurm JOBS, without which it has no effect"
        print(f"manypass: {idle}", file=sys.stderr)
    if arguments.slurm is not None:
        place: Any = clusters.slurm(arguments.slurm, plan.slurm)
    elif arguments.cluster is not None:
        place = clusters.running(arguments.cluster)
    else:
        place = nullcontext()
    try:
        with ended_in_order(), place as client:
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
        notes = " ".join(getattr(stop, "__notes__", ["before any point was finished"]))
        fail(f"interrupted: {notes}", 128 + getattr(stop, "number", signal.SIGINT))
    describe(plan.grid.problem)
    for line in closing_table(found):
        print(line)
    print(f"{Path(arguments.out) / 'sweep.nc'}: {plan.grid.counted}")
    if (found.error != "").all():
        fail("no point has an answer", 1)


class Terminated(KeyboardInterrupt):
    """SIGTERM came, as queues send it before they kill, or SIGHUP, as a terminal that is closed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let these end a command as Ctrl-C does: workers are stopped, what is kept is said."""

    def stop(number: int, _: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # once is enough
        raise Terminated(number)

    if threading.current_thread() is not threading.main_thread():  # who has no signals
        yield
        return
    ends = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in ends if signal.getsignal(n) != signal.SIG_IGN}
    try:
        for number in before:  # not under nohup, which ignores hang-ups
            signal.signal(number, stop)
        yield
    finally:
        for number, heard in before.items():
            signal.signal(number, heard)


def run_reproduce(arguments: argparse.Namespace) -> None:
    """Compute the paper's figures."""
    check_matplotlib()
    from manypass.reproduce import reproduce

    options = {"seed": arguments.seed, "quick": arguments.quick, "progress": True}
    with nullcontext() if sys.stderr.isatty() else heard_from():
        written = reproduce(arguments.figures, Path(arguments.out), **options)
    for path in written:
        print(path)
