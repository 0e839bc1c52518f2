"""A few workers shared by all browsers: bounded, fair, and quick to drop what nobody wants."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import Counter, OrderedDict
from typing import Any

import xarray as xr

from manypass.explorer.view import View
from manypass.explorer.worker import DROP, Begun, begin, main

WORKERS = 3
RUNNING = 2  # runs of one browser at a time: a worker is left for another
MOST = 8  # runs of one browser, going or waiting
LONGEST = 300.0  # seconds that a run may take
GRACE = 3.0  # seconds to drop a run in peace; then its worker is replaced
SPARE = 2.0  # seconds after which a run that still goes on is worth a spare worker
KEPT = 64  # results, for downloads and for views that come back
Key = tuple[str, View]


class BusyError(Exception):
    """A browser has asked for more than its share."""


class Ticket:
    """One run that a browser waits for; its messages arrive in a queue, the last one is None."""

    def __init__(self, client: str, key: Key) -> None:
        self.client, self.key, self.wanted = client, key, True
        self.messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def last(self) -> dict[str, Any]:
        """Wait for the last message."""
        last: dict[str, Any] = {}
        while (message := await self.messages.get()) is not None:
            last = message
        return last

    def end(self, message: dict[str, Any]) -> None:
        """Deliver the last message."""
        self.messages.put_nowait(message)
        self.messages.put_nowait(None)


class Hand:
    """A worker process, what it is doing, and a thread that listens to it."""

    def __init__(self, pool: Pool) -> None:
        begun, pool.begun = pool.begun, None
        self.process, self.connection = begun or begin(main, pool.nice)
        self.ready = False  # not before it says so: a signal would end it
        self.ticket: Ticket | None = None
        self.timer: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()

        def listen() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before us
                try:
                    while True:
                        message = self.connection.recv()
                        loop.call_soon_threadsafe(pool.heard, self, message)
                except (EOFError, OSError):
                    loop.call_soon_threadsafe(pool.lost, self)

        threading.Thread(target=listen, daemon=True).start()

    def after(self, seconds: float, action: Any, *arguments: Any) -> None:
        """Set the one timer of this worker."""
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(seconds, action, *arguments)


class Pool:
    """Hands out runs: to the browser with the fewest first, to each no more than its share.

    Parameters
    ----------
    nice : int
        How much its workers let other processes go first.
    begun : tuple, optional
        The first worker, if it has begun already.
    """

    def __init__(self, nice: int = 0, begun: Begun | None = None) -> None:
        self.nice, self.begun, self.open = nice, begun, True
        self.hands: list[Hand] = []
        self.waiting: list[Ticket] = []
        self.results: OrderedDict[Key, tuple[dict[str, Any], xr.Dataset]] = OrderedDict()

    def start(self) -> None:
        """Have one worker ready before it is needed: starting takes seconds."""
        if len(self.hands) < WORKERS and all(hand.ticket for hand in self.hands) and self.open:
            self.hands.append(Hand(self))

    def submit(self, client: str, kind: str, view: View) -> Ticket:
        """Queue a run, or answer it from what was computed before."""
        ticket = Ticket(client, (kind, view.relevant(kind)))
        if ticket.key in self.results:
            self.results.move_to_end(ticket.key)
            ticket.end(self.results[ticket.key][0])
            return ticket
        going = [hand.ticket for hand in self.hands if hand.ticket]
        if sum(other.client == client for other in (*self.waiting, *going)) >= MOST:
            raise BusyError("this browser has too many runs: close some of its pages")
        self.waiting.append(ticket)
        self._dispatch()
        return ticket

    def result(self, kind: str, view: View) -> xr.Dataset | None:
        """Return the dataset of a finished run, if it is still held."""
        found = self.results.get((kind, view.relevant(kind)))
        return found[1] if found else None

    def cancel(self, ticket: Ticket) -> None:
        """Drop a run, wherever it is."""
        ticket.wanted = False
        if ticket in self.waiting:
            self.waiting.remove(ticket)
        for hand in self.hands:
            if hand.ticket is ticket and hand.process.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(hand.process.pid, DROP)
                hand.after(GRACE, hand.process.kill)

    def heard(self, hand: Hand, message: tuple[Any, ...]) -> None:
        """Pass a worker's message on; after the last one it is free."""
        ticket = hand.ticket
        if message[0] == "ready":
            hand.ready = True
            self._dispatch()
        if ticket is None:
            return
        if message[0] == "so far":
            if ticket.wanted:
                ticket.messages.put_nowait(message[1])
            return
        _, last, found = message
        if found is not None:
            self.results[ticket.key] = (last, found)
            while len(self.results) > KEPT:
                self.results.popitem(last=False)
        self._free(hand, last)

    def lost(self, hand: Hand) -> None:
        """Replace a worker that has ended."""
        if hand not in self.hands:  # we have ended it
            return
        self.hands.remove(hand)
        self._free(hand, {"error": "the run's process has ended: perhaps it ran out of memory"})

    def close(self) -> None:
        """End all runs and workers."""
        self.open = False
        going = [hand.ticket for hand in self.hands if hand.ticket]
        for ticket in (*self.waiting, *going):
            ticket.end({"error": "the explorer has ended"})
        hands, self.hands, self.waiting = self.hands, [], []
        for hand in hands:
            if hand.timer:
                hand.timer.cancel()
            hand.process.kill()
        for hand in hands:
            hand.process.join(GRACE)

    def _free(self, hand: Hand, last: dict[str, Any]) -> None:
        if hand.timer:
            hand.timer.cancel()
        ticket, hand.ticket = hand.ticket, None
        if ticket and ticket.wanted:
            ticket.end(last)
        self._dispatch()

    def _expire(self, ticket: Ticket) -> None:
        ticket.end({"error": f"stopped: a run on this page may take {LONGEST:g} seconds"})
        self.cancel(ticket)

    def _dispatch(self) -> None:
        while True:
            busy = Counter(hand.ticket.client for hand in self.hands if hand.ticket)
            ready = [ticket for ticket in self.waiting if busy[ticket.client] < RUNNING]
            if ready:
                self.start()
            idle = [hand for hand in self.hands if hand.ready and hand.ticket is None]
            if not ready or not idle:
                return
            ticket = min(ready, key=lambda waiting: busy[waiting.client])  # the oldest of them
            self.waiting.remove(ticket)
            hand = idle[0]
            hand.ticket = ticket
            hand.after(LONGEST, self._expire, ticket)
            asyncio.get_running_loop().call_later(SPARE, self.start)
            with contextlib.suppress(OSError):  # it has just ended: `lost` will say so
                hand.connection.send(ticket.key)
