"""One process that does one run or answer at a time, and can be told to drop it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from manypass.starting import unheard

DROP = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else signal.SIGINT
AGAIN = signal.SIGALRM if hasattr(signal, "SIGALRM") else None
SOON = 0.02  # seconds until a drop that came at a bad moment is tried again
# These hold locks of the whole process: left in the middle, one would hang the next run.
LOCKED = {"numba", "llvmlite", "importlib", "_frozen_importlib", "_frozen_importlib_external"}
Begun = tuple[BaseProcess, Connection]


class DroppedError(BaseException):
    """The run is no longer wanted; not an `Exception`, so that nothing on the way swallows it."""


class Worker:
    """Sends ("ready",); for (kind, view), ("so far", message) and ("end", message, dataset)."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.running = self.sending = self.dropped = False

    def drop(self, number: int, frame: FrameType | None) -> None:
        """Leave the run, but never in the middle of a message, a compilation or an import."""
        if number == AGAIN and not self.dropped:  # that run has ended meanwhile
            return
        self.dropped = self.running
        if not self.running or self.sending:
            return
        if not locked(frame):
            raise DroppedError
        if AGAIN is not None:
            signal.setitimer(signal.ITIMER_REAL, SOON)

    def send(self, *message: Any) -> None:
        """Send one whole message, then see whether it was the last that is wanted."""
        self.sending = True
        self.connection.send(message)
        self.sending = False
        if self.dropped:
            raise DroppedError

    def work(self, kind: str, view: Any) -> tuple[Any, ...]:
        """Return the last message of a run: its result, or what went wrong."""
        from manypass.explorer.runs import JOBS

        self.dropped = False
        try:
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always", UserWarning)
                self.running = True
                told, found = JOBS[kind](view, lambda message: self.send("so far", message))
            texts = [str(note.message) for note in notes if note.category is UserWarning]
            return "end", {**told, "done": True, "note": " ".join(texts)}, found
        except DroppedError:
            return "end", {"dropped": True}, None
        except (ValueError, MemoryError) as error:
            return "end", {"error": str(error) or "out of memory"}, None
        except Exception as error:  # a mistake of ours: the page says so, the worker lives on
            return "end", {"error": f"{type(error).__name__}: {error}"}, None
        finally:
            self.running = False


def locked(frame: FrameType | None) -> bool:
    """Whether this frame was called by one that may hold a lock of the whole process."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in LOCKED:
            return True
        frame = frame.f_back
    return False


def mind_no_drop(lost: sys.UnraisableHookArgs) -> None:
    """Say nothing of a drop that came inside a destructor: the next message will end the run."""
    if not isinstance(lost.exc_value, DroppedError):
        sys.__unraisablehook__(lost)


def main(connection: Connection, nice: int) -> None:
    """Work until the other side hangs up; the nicer, the more others come first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which hangs up
    worker = Worker(connection)
    for number in filter(None, (DROP, AGAIN)):
        signal.signal(number, worker.drop)
    sys.unraisablehook = mind_no_drop
    from threadpoolctl import threadpool_limits

    from manypass.explorer import runs  # noqa: F401  the long import, while nobody waits

    with contextlib.suppress(OSError, AttributeError):
        os.nice(nice)  # not before it has started
    # Matrices are small: a second thread costs ten times what it gains on a busy machine.
    with threadpool_limits(1), contextlib.suppress(EOFError, OSError):
        connection.send(("ready",))
        while True:
            kind, view = connection.recv()
            try:
                last = worker.work(kind, view)
            except DroppedError:  # it came while the run was already ending
                last = "end", {"dropped": True}, None
                worker.running = False
            connection.send(last)


def begin(main: Callable[[Connection, int], None], nice: int) -> Begun:
    """Start a worker; it says when it is ready, seconds later."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=main, args=(theirs, nice), daemon=True)
    with unheard():
        process.start()
    theirs.close()
    return process, ours
