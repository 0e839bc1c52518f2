"""How long the explorer waits for the rest of a request: heads and bodies that never end."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0  # seconds from the first byte that is waited for to the last


class Patient(H11Protocol):
    """HTTP whose requests must arrive in time; one that does not is hung up on, in silence."""

    limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request from now on."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Wait on, or no longer: a byte now and then does not buy more time."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._arrived()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End with the server; nothing is owed to half a request."""
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.close()
        super().shutdown()

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._arrived()
        elif self.limit is None:
            self.limit = self.loop.call_later(PATIENCE, self.transport.close)

    def _arrived(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None
