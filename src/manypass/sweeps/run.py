"""`sweep`: compute all points of a grid, keep each as it finishes, survive whatever happens."""

from __future__ import annotations

import json
import os
import pickle
import re
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manypass import checks, files, notebooks, results, verbs
from manypass.sweeps import pools
from manypass.sweeps.grid import Grid
from manypass.sweeps.points import Answer, Point, unseal
from manypass.sweeps.store import Store

AT_ONCE = 0.2  # seconds of work handed to a worker at once
MOST_AT_ONCE = 200
MISSING = "not computed"
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
DIED = "its worker process died, perhaps for lack of memory"


def sweep(
    grid: Grid,
    method: Any = "auto",
    *,
    times: Any = None,
    window: float = 0.0,
    two_time: bool = False,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    client: Any = None,
    progress: bool = False,
) -> xr.Dataset:
    """Answer every point of a grid: steady states or, with `times`, learning curves.

    Parameters
    ----------
    grid : Grid
        Which problems.
    method : Method or str
        As for `solve`; its settings can be swept too.
    times, two_time
        As for `solve`; without times, steady states.
    window : float
        As for `steady_state`.
    out : path, optional
        Folder in which each point is kept as it finishes. A sweep that finds points there, be it
        after an interrupt or with another grid, computes only what is missing.
    workers : int, optional
        Local processes; by default one per core, and never more than one for ``device="cuda"``.
    executor : concurrent.futures.Executor, optional
        Computes the points instead of local processes.
    client : dask.distributed.Client, optional
        Computes the points on its cluster.
    progress : bool
        Show how far it is, how fast, and the time left.

    Returns
    -------
    xarray.Dataset
        The results on the swept fields as dimensions, then t and s. A point that has no answer is
        NaN and has its reason in `error`.

    Examples
    --------
    >>> import manypass as mp
    >>> problem = mp.Problem(mp.Teacher(alpha=1.2), mp.Adaline(), rate=1.9, decay=0.8)
    >>> found = mp.sweep(mp.Grid(problem, rate=[0.5, 1.0, 3.2]), workers=1)
    >>> found.Eg.values.round(4)
    array([0.262 , 0.2863,    nan])
    >>> str(found.error[2].values)[:17]
    'no steady state: '
    """
    if not isinstance(grid, Grid):
        raise ValueError(
            f"`grid` must be a Grid(problem, rate=[...], ...), got {checks.shown(grid)}"
        )
    if workers is not None:
        workers = checks.count("workers", workers, 1, 1024)
    if sum(given is not None for given in (workers, executor, client)) > 1:
        raise ValueError("`workers`, `executor` and `client` exclude each other: give one")
    if executor is not None and (isinstance(executor, type) or not hasattr(executor, "submit")):
        raise ValueError(
            f"`executor` must be a concurrent.futures.Executor, such as ThreadPoolExecutor(2), got "
            f"{checks.shown(executor)}"
        )
    if client is not None and (isinstance(client, type) or not hasattr(client, "get_executor")):
        raise ValueError(f"`client` must be a dask.distributed.Client, got {checks.shown(client)}")
    method = verbs.named(method)  # raises if it is none
    progress = checks.flag("progress", progress)
    points = list(grid.points(method, times, window, two_time))
    store = None if out is None else Store(files.folder("out", out) / "points")
    answers: list[Answer | str] = [MISSING] * len(points)
    missing = []
    for i, point in enumerate(points):
        known = None if isinstance(point, str) or store is None else store.get(point)
        if isinstance(point, str):
            answers[i] = point
        elif known is not None:
            answers[i] = known
        else:
            missing.append(i)

    def keep(i: int, text: str | None, reason: str) -> None:
        point = points[i]
        if text is not None and store is not None and isinstance(point, Point):
            store.put(point, text)
        answers[i] = reason if text is None else unseal(text)

    if client is not None:
        pool = pools.dask(client)
    else:
        # One point fills a card: others would only wait beside it.
        methods = (point.method for point in points if isinstance(point, Point))
        on_card = any(getattr(method, "device", "cpu") == "cuda" for method in methods)
        pool = pools.local(1 if on_card else workers) if executor is None else pools.given(executor)
    shown = _bar(len(points), len(points) - len(missing), progress)
    todo = {i: p for i in missing if isinstance(p := points[i], Point)}
    try:
        if executor is None and client is None:
            shown.set_description_str("compiling")
            pools.warm_up(pool, todo.values())
            shown.set_description_str("sweep")
        run(todo, keep, pool, shown.update)
    except KeyboardInterrupt as stop:
        kept = sum(not isinstance(answer, str) for answer in answers)
        # An interrupt may come when a point has just been written, and nothing else done with it.
        lost = [todo[i] for i in todo if isinstance(answers[i], str)]
        kept += 0 if store is None else sum(point in store for point in lost)
        where = "nothing is kept: give `out`" if out is None else f"kept in {out}: sweep again"
        stop.add_note(f"{kept} of {len(points)} points are finished and {where} to go on")
        raise
    finally:
        pool.close()
        shown.close()
    found = grid.collect(answers, _attributes(grid, method, store))
    unanswered = bool((found.error != "").all())
    if unanswered and not grid.problem.layered:
        found = found.assign(_unanswered(found.error, times))
    if out is not None:
        results.save(found, Path(out) / "sweep.nc")
    _tell(answers)
    if unanswered:
        reason = found.error.values.flat[0]
        words = f"no point of the sweep has an answer: {reason} (all reasons are in `error`)"
        warnings.warn(words, stacklevel=2)
    return found


def _tell(answers: list[Answer | str]) -> None:
    """Warn once of what the points were warned of."""
    notes = [attrs["warning"] for a in answers if "warning" in (attrs := _attrs(a))]
    if notes:
        warnings.warn(f"{len(notes)} of {len(answers)} points: {notes[0]}", stacklevel=3)


def _unanswered(error: xr.DataArray, times: Any) -> dict[str, xr.DataArray]:
    """Return R, Q, F2 and Eg of a sweep in which no point has them."""
    none = xr.DataArray(np.full(error.shape, np.nan), error.coords, error.dims)
    if times is not None:
        t = np.atleast_1d(checks.reals("times", times))
        none = none.expand_dims(t=t, axis=-1)
    return {n: none.assign_attrs(long_name=results.long_name(n)) for n in ("R", "Q", "F2", "Eg")}


def _attrs(answer: Answer | str) -> dict[str, Any]:
    return {} if isinstance(answer, str) else answer.get("attrs", {})


def run(
    points: dict[int, Point],
    keep: Callable[[int, str | None, str], None],
    pool: pools.Pool,
    tick: Callable[[int], Any],
) -> None:
    """Compute points in small lots; a lot whose worker dies is tried again point by point."""
    waiting, suspects = deque(points), deque[int]()
    flying: dict[Future[list[pools.Outcome]], list[int]] = {}
    pace = 0.0

    def submit(lot: list[int]) -> None:
        try:
            flying[pool.submit([points[i] for i in lot])] = lot
        except BrokenExecutor:  # noticed late
            pool.renew()
            flying[pool.submit([points[i] for i in lot])] = lot

    alone = False
    while waiting or suspects or flying:
        if suspects and not flying:
            submit([suspects.popleft()])  # alone, so that it is known who did it
            alone = True
        elif not suspects:
            alone = False
            size = 1 if not pace else min(max(int(AT_ONCE / pace), 1), MOST_AT_ONCE)
            while waiting and len(flying) < 2 * pool.workers:
                submit([waiting.popleft() for _ in range(min(size, len(waiting)))])
        done, _ = wait(flying, return_when=FIRST_COMPLETED)
        broken = False
        for future in done:
            lot = flying.pop(future)
            try:
                outcomes = future.result()
            except BrokenExecutor:
                broken = True
                if alone:
                    keep(lot[0], None, DIED)
                    tick(1)
                else:
                    suspects.extend(lot)
                continue
            except (pickle.PicklingError, AttributeError) as error:  # of a function within another
                raise ValueError(
                    f"points cannot be sent to the `executor` ({error}): a function of one's own "
                    f"must be one of a module; or give `workers`, which take any"
                ) from None
            except Exception as error:  # a worker of a cluster that died too often
                if len(lot) > 1:
                    suspects.extend(lot)
                else:
                    keep(lot[0], None, f"{type(error).__name__}: {error}")
                    tick(1)
                continue
            for i, (text, reason, _seconds) in zip(lot, outcomes, strict=True):
                keep(i, text, reason)
            pace = sum(outcome[2] for outcome in outcomes) / len(outcomes)
            tick(len(lot))
        if broken:
            for lot in flying.values():
                suspects.extend(lot)
            flying.clear()
            pool.renew()


def closing_table(found: xr.Dataset) -> list[str]:
    """Say which files were skipped, how many points have no answer, and why: a line each."""
    skipped = json.loads(found.attrs.get("skipped", "{}"))
    lines = [f"skipped {name}: {reason}" for name, reason in skipped.items()]
    alike: dict[str, list[str]] = {}  # reasons that differ in their numbers only
    for place in map(tuple, np.argwhere(found.error.values != "")):
        reason = str(found.error.values[place])
        where = ", ".join(
            f"{dim} = {_short(found[dim].values[i])}"
            for dim, i in zip(found.error.dims, place, strict=True)
        )
        alike.setdefault(NUMBER.sub("#", reason), []).append(f"{where}: {reason}")
    bad = sum(map(len, alike.values()))
    if bad:
        lines.append(f"{bad} of {found.error.size} points have no answer:")
    for group in alike.values():
        lines.append(f"  {len(group)} such as {group[0]}" if len(group) > 1 else f"  {group[0]}")
    return lines


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _attributes(grid: Grid, method: Any, store: Store | None) -> dict[str, Any]:
    attrs = results.attributes(grid.problem) | {"grid": grid.plain(), "held": grid.held()}
    attrs["method"] = json.dumps("auto" if method == "auto" else results.method_entry(method))
    if store is not None and store.skipped:
        attrs["skipped"] = json.dumps(store.skipped)
    return attrs


def _bar(total: int, known: int, progress: bool) -> Any:
    told = {"unit": "point", "desc": "sweep", "disable": not progress}
    return notebooks.bar(total=total, initial=known, **told)
