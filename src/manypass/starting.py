"""Starting and stopping worker processes such that Ctrl-C and a hang-up are the parent's alone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

UNHEARD = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def unheard() -> Iterator[None]:
    """Ignore Ctrl-C and hang-ups while processes start, which inherit it, or stop."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change what a signal does
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in UNHEARD}
    try:
        yield
    finally:
        for number, heard in before.items():
            signal.signal(number, heard)
