"""Many independent networks: in order, on all threads, within the memory there is."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manypass import notebooks

Measured = dict[str, Any]
Progress = bool | Callable[[Any], None]


class Average:
    """Mean and standard error of samples that come one by one; inf stays inf without a warning."""

    def __init__(self) -> None:
        self.count = 0
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.mean = self.square = self.infinite = np.zeros(0)

    def add(self, values: Measured) -> None:
        """Take one sample."""
        self.extend({name: np.asarray(value)[None] for name, value in values.items()})

    def extend(self, values: Measured) -> None:
        """Take many samples, the first axis of all values (the update of Chan et al., 1979)."""
        rows = np.concatenate([v.reshape(len(v), -1) for v in values.values()], axis=1, dtype=float)
        if not self.count:
            self.shapes = {name: value.shape[1:] for name, value in values.items()}
            self.mean, self.square, self.infinite = np.zeros((3, rows.shape[1]))
        bad = ~np.isfinite(rows)
        rows[bad] = 0.0
        self.infinite += bad.sum(axis=0)
        before, self.count = self.count, self.count + len(rows)
        middle = rows.mean(axis=0)
        step = middle - self.mean
        self.mean += step * (len(rows) / self.count)
        with np.errstate(over="ignore", invalid="ignore"):  # squares of what is about to diverge
            self.square += ((rows - middle) ** 2).sum(axis=0)
            self.square += step**2 * (before * len(rows) / self.count)

    def results(self) -> Measured:
        """`name` and `name_se` of everything that was added; one sample has none (NaN)."""
        lost, count = self.infinite > 0, self.count
        mean = np.where(lost, np.inf, self.mean)
        spread = np.sqrt(self.square / max(count - 1, 1) / count)
        spread = np.where(np.isfinite(spread), spread, np.inf)
        error = np.where(lost, np.inf, spread if count > 1 else np.nan)
        out: Measured = {}
        start = 0
        for name, shape in self.shapes.items():
            part = slice(start, start := start + math.prod(shape))
            out[name], out[f"{name}_se"] = mean[part].reshape(shape), error[part].reshape(shape)
        return out


def averaged(samples: Iterable[Measured]) -> Measured:
    """`name` and `name_se` of samples that come one by one."""
    average = Average()
    for values in samples:
        average.add(values)
    return average.results()


class DivergedError(Exception):
    """One of many has diverged, and so has their average after the first `known` times."""

    def __init__(self, known: int, how: dict[str, Any]) -> None:
        super().__init__(f"{known} times are known")
        self.known, self.how = known, how


def extended(values: Measured, size: int, after: dict[str, float]) -> Measured:
    """Values at the first times, and at those after them inf or what is given by name.

    Examples
    --------
    >>> extended({"Q": np.ones(1), "Eg": np.ones(1)}, 2, {"Eg": 0.5})
    {'Q': array([ 1., inf]), 'Eg': array([1. , 0.5])}
    """
    out = {}
    for name, value in values.items():
        axes = 2 if name.removesuffix("_se") in ("C", "G") else 1  # of time
        shape = (*axes * (size,), *np.shape(value)[axes:])
        out[name] = np.full(shape, after.get(name, np.inf))
        out[name][tuple(slice(0, n) for n in np.shape(value))] = value
    return out


_thread = threading.local()


def _enter(stop: threading.Event) -> None:
    _thread.stop = stop


class StoppedError(Exception):
    """The result is no longer wanted."""


def go_on() -> None:
    """Raise `StoppedError` if the work of this thread is no longer wanted."""
    if stopping():
        raise StoppedError


def stopping() -> bool:
    """Whether the work of this thread is no longer wanted: long loops look now and then."""
    stop: threading.Event | None = getattr(_thread, "stop", None)
    return stop is not None and stop.is_set()


def cores() -> int:
    """Return how many cores this process may use: batch systems often give it a few of all."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return mine or 1


def in_order(
    work: Callable[[Any], Any], items: Iterable[Any], threads: int
) -> Generator[Any, None, None]:
    """Yield work(item) in the order of the items, a few items ahead on so many threads.

    Linear algebra inside is held to one thread, so that results do not depend on their number.
    """
    rest, stop = iter(items), threading.Event()
    with threadpool_limits(1), ThreadPoolExecutor(threads, "", _enter, (stop,)) as pool:
        waiting: deque[Future[Any]] = deque(pool.submit(work, i) for i in islice(rest, 2 * threads))
        try:
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(rest, 1))
        finally:
            stop.set()
            for future in waiting:
                future.cancel()


def apart(work: Callable[[], Any]) -> Any:
    """Return work(), done by another thread: compiled code cannot be interrupted, waiting can."""
    return next(in_order(lambda _: work(), range(1), 1))


def shown(
    items: Iterable[Any],
    total: int,
    progress: Progress,
    what: str,
    unit: str,
    size: Callable[[Any], int] = lambda item: 1,
) -> Iterator[Any]:
    """Pass the items on; with `progress`, show on stderr how many have come."""
    if not progress or callable(progress):  # a function is told by the method itself
        yield from items
        return
    with notebooks.bar(total=total, unit=unit, desc=what) as bar:
        for item in items:
            bar.update(size(item))
            yield item
