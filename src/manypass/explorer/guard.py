"""Who may talk to the explorer: pages that it served itself, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def refusal(headers: Mapping[str, str], method: str, path: str, port: int) -> str | None:
    """Why a request is refused, or None.

    A name other than this machine's own in `Host` is how a foreign page would come in by DNS
    rebinding; `Origin` and `Sec-Fetch-Site` tell where a browser's request comes from. A link on
    a foreign page may open the explorer, nothing else.
    """
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
    hosts += ["127.0.0.1", "localhost"] if port == 80 else []
    host = headers.get("host", "")
    if host not in hosts:
        return f"`Host` must be {hosts[0]}, got {host!r:.80}"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return f"requests from other origins are refused, got `Origin` {origin!r:.80}"
    site = headers.get("sec-fetch-site", "same-origin")
    opened = (method, path, headers.get("sec-fetch-mode")) == ("GET", "/", "navigate")
    if site not in ("same-origin", "none") and not opened:
        return f"requests from other origins are refused, got `Sec-Fetch-Site` {site!r:.80}"
    return None


class Guard:
    """Refuse foreign requests; forbid the page to load anything from elsewhere."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app, self.port = app, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        reason = refusal(Headers(scope=scope), scope["method"], scope["path"], self.port)
        answer: Any = JSONResponse({"error": reason}, 403) if reason else self.app
        await answer(scope, receive, labelled)
