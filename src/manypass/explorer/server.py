"""The explorer's server: the page, quick answers, long runs that stream, and files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import xarray as xr
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from manypass import checks, results
from manypass.explorer.answers import ANSWERS, NUMBERS
from manypass.explorer.guard import Guard
from manypass.explorer.pool import SPARE, BusyError, Pool, Ticket
from manypass.explorer.runs import RUNS
from manypass.explorer.view import View

STATIC = Path(__file__).parent / "static"
LARGEST = 10_000  # bytes of a request
DRAINED = 100_000_000  # of one that is too long are thrown away before it is answered
FILES = {"csv": "text/csv; charset=utf-8", "nc": "application/x-netcdf"}
COOKIE = "manypass-browser"


class RefusedError(Exception):
    """A request that is not served: a status and a reason."""


async def read(request: Request, *allowed: str) -> dict[str, Any]:
    """Return the JSON object in a request, of bounded size and with no unknown key."""
    body, size = b"", 0
    async for part in request.stream():  # to its end: who is cut off while sending hears no answer
        size += len(part)
        body = body + part if size <= LARGEST else b""
        if size > DRAINED:
            break
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise RefusedError(415, "`Content-Type` must be application/json")
    if size > LARGEST:
        raise RefusedError(413, f"a request may have {LARGEST} bytes")
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(400, "the request is not JSON") from None
    if not isinstance(entries, dict) or set(entries) != {"view", *allowed}:
        raise RefusedError(400, f"a request has exactly the keys view, {', '.join(allowed)}")
    return entries


def client(request: Request) -> str:
    """Which browser this is."""
    return request.cookies.get(COOKIE, "")


def polite(serve: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Turn bad input into a message that the page can show."""

    async def served(request: Request) -> Response:
        try:
            answer: Response = await serve(request)
            return answer
        except RefusedError as refused:
            return JSONResponse({"error": refused.args[1]}, refused.args[0])
        except ClientDisconnect:  # in the middle of its request: nobody hears the answer
            return Response(status_code=400)
        except BusyError as busy:
            return JSONResponse({"error": str(busy)}, 429)
        except (ValueError, TypeError, OverflowError) as error:
            return JSONResponse({"error": str(error)}, 422)

    return served


async def while_heard(
    receive: Receive, pool: Pool, ticket: Ticket, work: Coroutine[Any, Any, Any]
) -> Any:
    """Return what comes of this, or its error; the run is dropped when the browser leaves."""

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(work), asyncio.create_task(left())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        pool.cancel(ticket)
        for task in tasks:
            task.cancel()
        found, _ = await asyncio.gather(*tasks, return_exceptions=True)
    return found


class Stream:
    """Messages of a run, one JSON object a line."""

    def __init__(self, pool: Pool, ticket: Ticket) -> None:
        self.pool, self.ticket = pool, ticket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes until it ends or nobody listens."""

        async def tell() -> None:
            headers = [(b"content-type", b"application/x-ndjson")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (message := await self.ticket.messages.get()) is not None:
                line = json.dumps(message, allow_nan=False).encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        await while_heard(receive, self.pool, self.ticket, tell())


def as_file(result: xr.Dataset, suffix: str) -> bytes:
    """Return what `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"result.{suffix}"
        results.save(result, path)
        return path.read_bytes()


def application(port: int, quick: Pool, pool: Pool) -> Guard:
    """Build the server on a port of this machine; one pool answers quickly, one does long runs."""

    async def quickly(request: Request, kind: str, view: View) -> dict[str, Any]:
        ticket = quick.submit(client(request), kind, view)
        last = await while_heard(request.receive, quick, ticket, ticket.last())
        if not isinstance(last, dict):
            raise ClientDisconnect
        if "error" in last:
            raise ValueError(last["error"])
        return last

    async def numbers(request: Request, kind: str, view: View) -> xr.Dataset:
        checks.choice("kind", kind, RUNS)
        if kind == "curves" and view.too_long:
            raise ValueError(view.too_long)
        sampled = kind == "steady" and view.samples_steady_state
        if kind in NUMBERS and view.linear and not sampled:
            await quickly(request, f"data {kind}", view)
            found = quick.result(f"data {kind}", view)
        else:
            found = pool.result(kind, view)
        if found is None:
            raise RefusedError(409, f"the run {kind!r} of this view is not finished: wait for it")
        return found

    async def page(request: Request) -> Response:
        response = FileResponse(STATIC / "index.html")
        if COOKIE not in request.cookies:
            token = secrets.token_urlsafe(12)
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return response

    async def answer(request: Request) -> Response:
        asked = await read(request, "want")
        view = View.from_dict(asked["view"])
        want = checks.choice("want", asked["want"], ANSWERS)
        return JSONResponse((await quickly(request, f"answer {want}", view))["answer"])

    async def run(request: Request) -> Response | Stream:
        asked = await read(request, "kind")
        view = View.from_dict(asked["view"])
        kind = checks.choice("kind", asked["kind"], RUNS)
        return Stream(pool, pool.submit(client(request), kind, view))

    async def data(request: Request) -> Response:
        asked = await read(request, "kind", "format")
        view = View.from_dict(asked["view"])
        suffix = checks.choice("format", asked["format"], FILES)
        found = await numbers(request, asked["kind"], view)
        body = await asyncio.to_thread(as_file, found, suffix)
        name = f'attachment; filename="manypass-{asked["kind"]}.{suffix}"'
        return Response(body, media_type=FILES[suffix], headers={"content-disposition": name})

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        quick.start()
        asyncio.get_running_loop().call_later(SPARE, pool.start)  # not beside the first answer
        yield
        for each in (quick, pool):
            each.close()

    routes = [
        Route("/", page),
        *(
            Route(f"/{serve.__name__}", polite(serve), methods=["POST"])
            for serve in (answer, run, data)
        ),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), port)
