"""The explorer's server: the page, quick answers, long runs that stream, and files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import xarray as xr
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send
from threadpoolctl import threadpool_limits

from manypass import checks, results, verbs
from manypass.explorer.answers import ANSWERS, against_rate, rates
from manypass.explorer.guard import Guard
from manypass.explorer.pool import BusyError, Pool, Ticket
from manypass.explorer.runs import RUNS
from manypass.explorer.view import View

STATIC = Path(__file__).parent / "static"
LARGEST = 10_000  # bytes of a request
AT_ONCE = 8  # quick answers of one browser that may be on their way
FILES = {"csv": "text/csv; charset=utf-8", "nc": "application/x-netcdf"}
COOKIE = "manypass-browser"


class RefusedError(Exception):
    """A request that is not served: a status and a reason."""


async def read(request: Request, *allowed: str) -> dict[str, Any]:
    """Return the JSON object in a request, of bounded size and with no unknown key."""
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise RefusedError(415, "`Content-Type` must be application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
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


class Stream:
    """Messages of a run, one JSON object a line; the run is dropped when the browser leaves."""

    def __init__(self, pool: Pool, ticket: Ticket) -> None:
        self.pool, self.ticket = pool, ticket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes until it ends or nobody listens."""

        async def left() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async def tell() -> None:
            headers = [(b"content-type", b"application/x-ndjson")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (message := await self.ticket.messages.get()) is not None:
                line = json.dumps(message, allow_nan=False).encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        tasks = [asyncio.create_task(tell()), asyncio.create_task(left())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.pool.cancel(self.ticket)
            for task in tasks:
                task.cancel()
            with contextlib.suppress(OSError):  # the connection broke while we were sending
                await asyncio.gather(*tasks, return_exceptions=True)


def as_file(result: xr.Dataset, suffix: str) -> bytes:
    """Return what `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"result.{suffix}"
        results.save(result, path)
        return path.read_bytes()


def dataset(pool: Pool, kind: str, view: View) -> xr.Dataset:
    """Return the numbers behind a picture: computed at once, or those of a finished run."""
    checks.choice("kind", kind, RUNS)
    if kind == "curves" and view.too_long:
        raise ValueError(view.too_long)
    if kind == "curves" and view.linear:
        return verbs.solve(view.problem, view.times, view.theory)
    if kind == "steady" and not view.samples_steady_state and view.linear:
        return against_rate(verbs.steady_state, view.lasting, rates(view))
    found = pool.result(kind, view)
    if found is None:
        raise RefusedError(409, f"the run {kind!r} of this view is not finished: wait for it")
    return found


def application(port: int, pool: Pool) -> Guard:
    """Build the server that answers on a port of this machine and lets this pool work."""
    pending = Counter[str]()

    async def quickly(request: Request, work: Callable[[], Any]) -> Any:
        name = client(request)
        if pending[name] >= AT_ONCE:
            raise RefusedError(429, "this browser asks too much at once")
        pending[name] += 1
        try:
            return await anyio.to_thread.run_sync(work)
        finally:
            pending[name] -= 1

    async def page(request: Request) -> Response:
        response = FileResponse(STATIC / "index.html")
        if COOKIE not in request.cookies:
            token = secrets.token_urlsafe(12)
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return response

    async def answer(request: Request) -> Response:
        asked = await read(request, "want")
        view = View.from_dict(asked["view"])
        work = ANSWERS[checks.choice("want", asked["want"], ANSWERS)]
        return JSONResponse(await quickly(request, lambda: work(view)))

    async def run(request: Request) -> Response | Stream:
        asked = await read(request, "kind")
        view = View.from_dict(asked["view"])
        kind = checks.choice("kind", asked["kind"], RUNS)
        return Stream(pool, pool.submit(client(request), kind, view))

    async def data(request: Request) -> Response:
        asked = await read(request, "kind", "format")
        view = View.from_dict(asked["view"])
        suffix = checks.choice("format", asked["format"], FILES)
        body = await quickly(request, lambda: as_file(dataset(pool, asked["kind"], view), suffix))
        name = f'attachment; filename="manypass-{asked["kind"]}.{suffix}"'
        return Response(body, media_type=FILES[suffix], headers={"content-disposition": name})

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Matrices are small: a second thread costs ten times what it gains on a busy machine.
        with threadpool_limits(1):
            pool.start()
            yield
            pool.close()

    routes = [
        Route("/", page),
        *(
            Route(f"/{serve.__name__}", polite(serve), methods=["POST"])
            for serve in (answer, run, data)
        ),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), port)
