"""Who computes the points: local processes, any executor, or a Dask cluster."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits

from manypass import checks
from manypass.ensemble import cores
from manypass.starting import unheard
from manypass.sweeps.points import Point

Outcome = tuple[str | None, str, float]  # answer or None, reason, seconds


def compute(points: list[Point], threads: int) -> list[Outcome]:
    """Answer points one after the other; whatever goes wrong with one stays with it."""
    outcomes: list[Outcome] = []
    with threadpool_limits(threads):
        for point in points:
            start = time.perf_counter()
            text, reason = None, ""
            try:
                text = point.answer(threads)
            except Exception as error:  # a sweep survives whatever happens to one point
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            outcomes.append((text, reason, time.perf_counter() - start))
    return outcomes


class Pool:
    """An executor that can be replaced when it breaks; nothing starts before it is needed.

    Parameters
    ----------
    make : callable
        Returns a fresh `concurrent.futures` executor.
    workers : int
        How many points are computed at the same time.
    threads : int
        For each of them.
    stop : callable, optional
        Shuts the executor down at once; None if it is the caller's, and cannot be replaced.
    """

    def __init__(
        self,
        make: Callable[[], Executor],
        workers: int,
        threads: int,
        stop: Callable[[Any], None] | None,
    ) -> None:
        self.make, self.workers, self.threads, self.stop = make, workers, threads, stop
        self.executor: Executor | None = None

    def submit(self, points: list[Point]) -> Future[list[Outcome]]:
        """Compute points somewhere else."""
        if self.executor is not None:
            return self._submit(self.executor, points)
        with unheard():  # the first one starts the processes
            self.executor = self.make()
            return self._submit(self.executor, points)

    def _submit(self, executor: Executor, points: list[Point]) -> Future[list[Outcome]]:
        try:
            found = executor.submit(compute, points, self.threads)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            if self.stop is not None:
                raise
            raise ValueError(
                f"`executor` takes no points ({error}): give one that is open"
            ) from None
        if isinstance(found, Future):
            return found
        if hasattr(found, "close"):  # of a coroutine: nobody will wait for it
            found.close()
        raise ValueError(
            f"`executor` must give a concurrent.futures.Future for what it is to do, got "
            f"{checks.shown(found)}: give a concurrent.futures.Executor, such as "
            f"ThreadPoolExecutor(2), or a Dask client as `client`"
        )

    def renew(self) -> None:
        """Leave a broken executor."""
        self.close()
        if self.stop is None:
            raise RuntimeError(
                "the `executor` is broken; what was finished is kept: call sweep again"
            )

    def close(self) -> None:
        """Stop at once: what is still running is not wanted any more."""
        executor, self.executor = self.executor, None
        if executor is not None and self.stop is not None:
            with unheard():  # a second Ctrl-C would leave workers behind, and be heard by helpers
                self.stop(executor)


def local(workers: int | None) -> Pool:
    """Return processes on this machine, each with its share of the cores.

    A process of a pool of others may have no children: it computes by itself.
    """
    if multiprocessing.current_process().daemon:
        return Pool(lambda: ThreadPoolExecutor(1), 1, 1, lambda made: made.shutdown(wait=False))
    workers = workers or cores()
    threads = max(1, cores() // workers)

    def make() -> Executor:
        from loky.backend import resource_tracker
        from loky.process_executor import ProcessPoolExecutor

        with _in_silence("loky.backend.resource_tracker"):
            resource_tracker.ensure_running()
        made: Executor = ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),))
        return made

    return Pool(make, workers, threads, lambda made: made.shutdown(kill_workers=True))


def given(executor: Executor) -> Pool:
    """Return a pool of the caller's executor; as many points at once as it says it has workers."""
    if hasattr(executor, "get_executor"):  # a Dask client itself
        return dask(executor, "executor")
    _refuse_asynchronous(getattr(executor, "_client", None), "executor")  # made by a client
    workers = getattr(executor, "_max_workers", None) or cores()
    return Pool(lambda: executor, workers, 1, None)


def dask(client: Any, name: str = "client") -> Pool:
    """Return a pool of the workers of a Dask client, which was given by this name."""
    _refuse_asynchronous(client, name)
    try:
        cores = sum(client.ncores().values())
    except Exception as error:  # whatever a client that has been closed makes of it
        raise ValueError(f"`{name}` does not answer ({error}): give one that is open") from None
    return Pool(client.get_executor, max(cores, 1), 1, lambda made: made.shutdown(wait=False))


def _refuse_asynchronous(client: Any, name: str) -> None:
    """Refuse a Dask client whose answers have to be awaited: a sweep waits for its points itself.

    In the thread of its own event loop it would wait for ever.
    """
    if getattr(client, "asynchronous", False) is True:
        raise ValueError(
            f"`{name}` is an asynchronous Dask client, whose answers have to be awaited: give one "
            f"that is not, Client(address) without asynchronous=True, and from a coroutine call "
            f"the sweep in a thread, asyncio.to_thread(sweep, ...)"
        )


def warm_up(pool: Pool, points: Iterable[Point]) -> None:
    """Compile here, once, while the pool's processes start: they will find it on disk."""
    kinds: dict[Any, tuple[Any, Point]] = {}
    for point in points:
        method = point.resolved
        kind = type(method), point.problem.mode, type(point.problem.rule)
        kinds.setdefault(kind, (getattr(method, "prepare", None), point))
    for prepare, point in kinds.values():
        if prepare is not None:
            if pool.executor is None:
                pool.submit([])  # they start, and import
            with contextlib.suppress(ValueError):  # the point itself will tell it
                prepare(point.problem)


@contextlib.contextmanager
def _in_silence(module: str) -> Iterator[None]:
    """Let a helper that starts here not warn: what is left behind it removes, and the user cannot.

    Workers that are stopped at once leave semaphores, or remove them before their helper does.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{before},ignore:::{module}" if before else f"ignore:::{module}"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _begin(parent: int) -> None:
    """Let the parent handle Ctrl-C, and end when it is gone, even by kill -9."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
