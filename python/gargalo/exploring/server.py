"""The server of the page: on the loopback only, with a token, and without state.

A request has the whole scenario; its answer is a stream of JSON objects, one a line: the scenario's text after the
changes, how far the run is, and the parts of `view` as they are made. Whoever closes the stream ends the run.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo.extras import need

need("pages that explore", "starlette", "tomlkit", "uvicorn")

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from gargalo import _core
from gargalo.explaining.model import RECORDED
from gargalo.exploring.difference import difference, packet_difference
from gargalo.exploring.frozen import asset, library, page
from gargalo.exploring.glimpses import Glimpses
from gargalo.exploring.lessons.page import explained, outline
from gargalo.exploring.packets import WindowError, packets, recorded
from gargalo.exploring.papers import FORMATS, file_of
from gargalo.exploring.text import Edit, edited, plain
from gargalo.exploring.view import parts
from gargalo.exploring.watching import told
from gargalo.results import load
from gargalo.running import Text, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from gargalo.exploring.lessons import Lesson
    from gargalo.exploring.view import Part
    from gargalo.results import Run
    from gargalo.running import Progress

ON_DEMAND = {"one-way-delay": "record.datagrams"}
"""Panels for which more is recorded than without them."""
MOST_BODY = 4 << 20
"""Bytes of a request."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
LIBRARY = ("uPlot.iife.js", "uPlot.min.css")
ASSETS = {
    "acts.js": "text/javascript",
    "explore.js": "text/javascript",
    "form.js": "text/javascript",
    "lesson.css": "text/css",
    "lesson.js": "text/javascript",
    "packets.js": "text/javascript",
    "papers.js": "text/javascript",
    "page.css": "text/css",
    "uPlot.iife.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "viewer.js": "text/javascript",
}


@dataclass(frozen=True)
class Preset:
    """A scenario to begin with."""

    name: str
    about: str
    text: str
    path: Path
    """The file beside which its traces are."""
    results: Path | None = None
    """Results of the lab, which are shown while the scenario is as it was: the simulator would give others."""


@dataclass(frozen=True)
class Site:
    """What the page is served with: the same for every request."""

    presets: Sequence[Preset]
    first: str
    """Name of the preset that is shown first."""
    lesson: Lesson | None = None
    """What the page asks and tells beside it."""
    refresh: Callable[[], None] = lambda: None
    """Called before a run: loads classes of the user's that have changed."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def find(self, name: Any) -> Preset | None:
        """Return a preset by its name."""
        return next((p for p in self.presets if p.name == name), None)


class BadRequestError(ValueError):
    """A request that the page does not make."""


@dataclass(frozen=True)
class Asked:
    """A request for a run."""

    text: str
    edits: tuple[Edit, ...] = ()
    beside: Path = Path("scenario.toml")
    panels: tuple[str, ...] | None = None
    refresh: Callable[[], None] = lambda: None
    preset: Preset | None = None

    @classmethod
    def read(cls, site: Site, given: Any) -> Asked:
        """Return what a request asks for.

        Raises:
            BadRequestError: It is not as the page writes it.

        """
        if not isinstance(given, dict) or not isinstance(given.get("text"), str):
            msg = "a request needs the scenario as text"
            raise BadRequestError(msg)
        panels, preset = given.get("panels"), site.find(given.get("beside"))
        if panels is not None and not all(isinstance(p, str) for p in panels):
            msg = "panels are names of metrics"
            raise BadRequestError(msg)
        try:
            edits = tuple(Edit.read(e) for e in given.get("edits", ()))
        except (TypeError, ValueError) as e:
            raise BadRequestError(str(e)) from None
        beside = Path("scenario.toml") if preset is None else preset.path
        chosen = None if panels is None else tuple(panels)
        return cls(given["text"], edits, beside, chosen, site.refresh, preset)

    @property
    def measured(self) -> Path | None:
        """Results of the lab, while the scenario is theirs."""
        return self.preset.results if self.preset and self.text == self.preset.text else None

    @property
    def scenario(self) -> Text:
        """The scenario, to be simulated.

        Raises:
            BadRequestError: The lab has run it.

        """
        if self.measured:
            msg = "the lab's run cannot be done again with packets recorded; a changed scenario is simulated, and can"
            raise BadRequestError(msg)
        return Text(self.text, self.beside)

    def run(self, progress: Callable[[Progress], object] | None = None) -> Run:
        """Run the scenario, or read what the lab did of it."""
        if self.measured:
            return load(self.measured)
        self.refresh()
        asked = {ON_DEMAND[p]: True for p in self.panels or () if p in ON_DEMAND}
        return run(self.scenario, set={**RECORDED, **asked}, progress=progress)


def answer(asked: Asked, stop: threading.Event, tell: Callable[[Part], None]) -> None:
    """Change the scenario, run it, and tell everything that the page shows of it.

    Args:
        asked: The request.
        stop: Set when nobody waits for the answer any more.
        tell: Takes each part.

    """
    try:
        changed = edited(asked.text, asked.edits)
        tell({"part": "scenario", "text": changed, "plain": plain(changed)})
    except ValueError as e:
        if asked.edits:
            tell({"part": "error", "diagnostics": [{"message": str(e)}]})
            return
        changed = asked.text  # What is not TOML is named by the engine, with its place.

    again = replace(asked, text=changed)
    glimpses = Glimpses(again.run, asked.panels, tell)

    def progress(now: Progress) -> bool:
        tell(
            {"part": "progress", "phase": now.phase, "fraction": now.fraction, "time_s": now.now_s}
        )
        glimpses.progress(now)
        return not stop.is_set()

    try:
        try:
            done = again.run(progress)
        finally:
            glimpses.end()
        if stop.is_set():
            return
        for part in parts(done, asked.panels):
            tell(part)
        tell({"part": "done"})
    except Exception as e:
        tell(failed(e))


def failed(error: Exception) -> Part:
    """Return what the page shows of a scenario that cannot be run."""
    found = [d.to_json() for d in getattr(error, "diagnostics", ())]
    return {"part": "error", "diagnostics": found or [{"message": told(error)}]}


def application(site: Site) -> Starlette:
    """Return the server as an ASGI application."""
    running = asyncio.Semaphore(2)

    async def index(request: Request) -> Response:
        if request.query_params.get("token"):
            redirect = RedirectResponse("/", status_code=303)
            redirect.set_cookie(cookie(request), site.token, httponly=True, samesite="strict")
            return redirect
        return HTMLResponse(asset("explore.html"))

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("not found", status_code=404)
        content = library(name) if name in LIBRARY else asset(name)
        return Response(content, media_type=ASSETS[name])

    async def start(_: Request) -> Response:
        return answered(beginning(site))

    async def run_it(request: Request) -> Response:
        asked = Asked.read(site, await body(request))
        return StreamingResponse(lines(asked, running), media_type="application/x-ndjson")

    async def differ(request: Request) -> Response:
        given = await body(request)
        a, b = (Asked.read(site, given.get(k) if isinstance(given, dict) else None) for k in "ab")
        return answered(await watched(request, running, lambda stop: apart(a, b, stop.is_set)))

    async def look(request: Request) -> Response:
        given = await body(request)
        asked, (flow, from_s, to_s) = Asked.read(site, given), window(given)
        return answered(
            await watched(
                request,
                running,
                lambda stop: packets(asked.scenario, flow, from_s, to_s, stop.is_set),
            )
        )

    async def freeze(request: Request) -> Response:
        given = await body(request)
        asked = Asked.read(site, given)
        seen = None if given.get("flow") is None else window(given)

        def work(stop: threading.Event) -> str:
            more = []
            if seen is not None:
                more = [{"part": "packets", **packets(asked.scenario, *seen, stop.is_set)}]
            return page(asked.run(), asked.panels, more=more)

        made = await watched(request, running, work)
        return HTMLResponse(made, headers={"Content-Disposition": "attachment; filename=run.html"})

    async def explain(request: Request) -> Response:
        lesson, number = site.lesson, request.path_params["number"]
        if lesson is None or not 1 <= number <= len(lesson.steps):
            return PlainTextResponse("not found", status_code=404)
        async with running:
            return answered(await asyncio.to_thread(explained, lesson, number))

    async def picture(request: Request) -> Response:
        given = await body(request)
        asked = Asked.read(site, given)
        metric, format_, width = (str(given.get(k)) for k in ("metric", "format", "width"))
        span = given.get("span")
        if span is not None and not (
            isinstance(span, list) and [type(t) in (int, float) for t in span] == [True, True]
        ):
            msg = "a span is two instants in seconds"
            raise BadRequestError(msg)
        part = None if span is None else (span[0], span[1])
        try:
            made = await watched(
                request, running, lambda _: file_of(asked.run(), metric, format_, width, part)
            )
        except (_core.ScenarioError, _core.RunError):
            raise
        except ValueError as e:
            raise BadRequestError(str(e)) from None
        return Response(made, media_type=FORMATS[format_])

    async def refused(_: Request, error: Exception) -> Response:
        return answered(failed(error), 400)

    made = Starlette(
        routes=[
            Route("/", index),
            Route("/assets/{name}", file),
            Route("/api/start", start),
            Route("/api/lesson/{number:int}", explain),
            Route("/api/run", run_it, methods=["POST"]),
            Route("/api/difference", differ, methods=["POST"]),
            Route("/api/packets", look, methods=["POST"]),
            Route("/api/frozen", freeze, methods=["POST"]),
            Route("/api/picture", picture, methods=["POST"]),
        ],
        exception_handlers=dict.fromkeys(
            (BadRequestError, WindowError, _core.ScenarioError, _core.RunError), refused
        ),
    )
    made.add_middleware(Guard, site=site)
    return made


async def body(request: Request) -> Any:
    """Return the JSON of a request.

    Raises:
        BadRequestError: It is none, or too large.

    """
    found = b""
    async for chunk in request.stream():
        found += chunk
        if len(found) > MOST_BODY:
            msg = f"a request has at most {MOST_BODY >> 20} MB"
            raise BadRequestError(msg)
    try:
        return json.loads(found)
    except ValueError:
        msg = "a request is JSON"
        raise BadRequestError(msg) from None


def window(given: Any) -> tuple[int, float, float]:
    """Return the flow and the window that a request names.

    Raises:
        BadRequestError: It names none.

    """
    flow, *times = (given.get(k) for k in ("flow", "from_s", "to_s"))
    if type(flow) is not int or any(type(t) not in (int, float) for t in times):
        msg = "packets need the number of a flow, and from_s and to_s in seconds"
        raise BadRequestError(msg)
    return flow, float(times[0]), float(times[1])


def apart(a: Asked, b: Asked, stopped: Callable[[], bool]) -> Part | None:
    """Return the first difference of two scenarios' runs, with the first packet that differs in `packet`.

    Of a run of the lab packets are not known.
    """
    found, packet = difference(a.run(), b.run()), None
    if not (a.measured or b.measured):
        with (
            recorded(a.scenario, stopped=stopped) as one,
            recorded(b.scenario, stopped=stopped) as other,
        ):
            packet = packet_difference(one, other)
    known = [d for d in (packet, found) if d is not None]
    if not known:
        return None
    first = min(known, key=lambda d: d.time_s)
    return {**first.to_json(), "packet": None if packet is None else packet.to_json()}


def answered(found: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    return Response(text, status, media_type="application/json")


async def watched(
    request: Request, running: asyncio.Semaphore, work: Callable[[threading.Event], Any]
) -> Any:
    """Do something in a thread, and tell it to stop when nobody waits for the answer any more."""
    stop = threading.Event()

    async def leave() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.1)
        stop.set()

    async with running:
        leaving = asyncio.ensure_future(leave())
        try:
            return await asyncio.to_thread(work, stop)
        finally:
            stop.set()
            leaving.cancel()


def beginning(site: Site) -> Part:
    """Return what the page needs once: the schema of scenarios and the presets."""
    return {
        "version": _core.__engine__,
        "schema": json.loads(_core.schema()),
        "first": site.first,
        "lesson": None if site.lesson is None else outline(site.lesson),
        "presets": [{"name": p.name, "about": p.about, "text": p.text} for p in site.presets],
    }


async def lines(asked: Asked, running: asyncio.Semaphore) -> AsyncIterator[bytes]:
    """Run a scenario in a thread, and give each part as a line of JSON when it is there."""
    loop, stop = asyncio.get_running_loop(), threading.Event()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def tell(part: Mapping[str, Any]) -> None:
        line = json.dumps(part, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        loop.call_soon_threadsafe(queue.put_nowait, line)

    def work() -> None:
        try:
            answer(asked, stop, tell)
        finally:
            loop.call_soon_threadsafe(queue.put_nowait, None)

    async with running:
        task = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            while (line := await queue.get()) is not None:
                yield line
        finally:
            stop.set()
            await asyncio.shield(task)


def cookie(request: Request) -> str:
    """Return the name of the cookie: those of other ports are other servers'."""
    return f"gargalo_{request.url.port or 80}"


class Guard:
    """Answers only the browser that was given the token, from the page itself."""

    def __init__(self, app: Any, site: Site) -> None:
        self.app, self.site = app, site

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        why = self.wrong(Request(scope))

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                had = {name for name, _ in message.get("headers", [])}
                added = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message = {
                    **message,
                    "headers": [
                        *message.get("headers", []),
                        *(h for h in added if h[0] not in had),
                    ],
                }
            await send(message)

        if why is None:
            await self.app(scope, receive, with_headers)
        else:
            await PlainTextResponse(why, status_code=403)(scope, receive, with_headers)

    def wrong(self, request: Request) -> str | None:
        """Return why a request is refused."""
        host = request.headers.get("host", "")
        if host.rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            return "this server answers at 127.0.0.1 only"
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "requests of other pages are refused"
        if request.method != "GET" and origin is None:
            return "a request that changes something needs its page's origin"
        token = request.query_params.get("token") if request.url.path == "/" else None
        given = token or request.cookies.get(cookie(request), "")
        if not hmac.compare_digest(given.encode(), self.site.token.encode()):
            return "open the link that `gargalo explore` printed: it has the token"
        return None


def serve(site: Site, port: int, opened: Callable[[str], None]) -> None:
    """Serve the page until an interrupt.

    Args:
        site: What is served.
        port: The port, of the loopback; 0 chooses one.
        opened: Told the link, with the token, once the server listens.

    Raises:
        OSError: The port is taken.

    """
    with socket.create_server(("127.0.0.1", port)) as listening:
        chosen = listening.getsockname()[1]
        config = uvicorn.Config(
            application(site),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        opened(f"http://127.0.0.1:{chosen}/?token={site.token}")
        server.run(sockets=[listening])
