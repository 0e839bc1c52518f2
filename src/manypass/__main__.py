"""`python -m manypass` and `manypass` are the command line."""

import io
import math
import os
import signal
import sys
import threading
import time
from types import FrameType

MOMENT = 1.0  # seconds in which further Ctrl-Cs are the same: `timeout -s INT` sends two at once
AGAIN = 0.05  # seconds after which one that came to nothing is sent again


def main() -> None:
    """Run one command; Ctrl-C is no traceback, neither while modules load nor at the end."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # `>&-`; in this order each gets the number that it had
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack letters, as stderr knows
        sys.stdout.reconfigure(errors="backslashreplace")
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # unless in background
    last = -math.inf

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last > MOMENT:
            last = time.monotonic()
            raise KeyboardInterrupt

    def ignored(what: "sys.UnraisableHookArgs") -> None:
        """Hear a Ctrl-C within a callback of the compiler, or a destructor: Python drops it."""
        nonlocal last
        if not issubclass(what.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(what)
            return
        last = -math.inf
        main = threading.main_thread().ident  # who may be asleep: it is woken
        again = threading.Timer(AGAIN, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()

    if heard:
        signal.signal(signal.SIGINT, stop)
        if hasattr(signal, "pthread_kill"):  # not on Windows
            sys.unraisablehook = ignored
    try:
        from manypass.cli import main as run

        run()
    except (KeyboardInterrupt, SystemError, ImportError) as error:
        # Compiled code that is interrupted wraps the one into the other, or takes it for a module
        # that cannot be loaded.
        reason: BaseException | None = error
        while isinstance(reason, SystemError):
            reason = reason.__cause__ or reason.__context__
        unloaded = isinstance(error, ImportError) and last > -math.inf
        if not (isinstance(reason, KeyboardInterrupt) or unloaded):
            raise
        print("manypass: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        if heard:  # all is said and done: a further one ends the process at once
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":  # the explorer's workers import this module again
    main()
