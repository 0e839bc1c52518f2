"""Start the explorer: a socket on this machine only, its address on the terminal, a browser."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import webbrowser

from manypass import checks
from manypass.explorer.worker import begin, main

HOST = "127.0.0.1"
PORT = 8642
TRIED = 20  # ports, if none was asked for


def listen(port: int | None) -> socket.socket:
    """Return a listening socket on this port, or on the first free one from PORT on."""
    if port is not None:
        checks.count("port", port, 0, 65535)
    for candidate in range(PORT, PORT + TRIED) if port is None else [port]:
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((HOST, candidate))
            opened.listen(64)
            return opened
        except OSError as error:
            opened.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    tried = f"{PORT} to {PORT + TRIED - 1}" if port is None else f"{port}"
    raise ValueError(f"`port` {tried} is in use or not allowed: choose another one")


def explore(port: int | None = None, *, browser: bool = True) -> None:
    """Serve the explorer until Ctrl-C.

    Parameters
    ----------
    port : int, optional
        Port on this machine, 0 for any; by default 8642 or the next free one.
    browser : bool
        Open the page in the browser.
    """
    opened = listen(port)  # before the long imports: a port in use is said at once
    begun = begin(main, 0)  # it imports what we import, beside us
    import uvicorn

    from manypass.explorer.patience import Patient
    from manypass.explorer.pool import Pool
    from manypass.explorer.server import application

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print(f"manypass explorer at {address} (Ctrl-C ends it)", flush=True)
            if browser:
                # in its own thread: a browser in a terminal would not return
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for pool in pools:  # else open streams would be waited for
                pool.close()
            # One who still reads is cut off: what his request says to that is not for the terminal.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await super().shutdown(sockets)

    pools = Pool(0, begun), Pool(nice=5)  # quick answers come before long runs
    address = f"http://{HOST}:{opened.getsockname()[1]}/"
    config = uvicorn.Config(
        application(opened.getsockname()[1], *pools),
        http=Patient,
        log_level="error",
        timeout_graceful_shutdown=1,
        ws="none",
        lifespan="on",
    )
    try:
        Server(config).run(sockets=[opened])
    except KeyboardInterrupt:
        print()
