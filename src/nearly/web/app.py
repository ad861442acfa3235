"""The HTTP application: the page, and the API that it uses and others may use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any
from urllib.parse import unquote_plus

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from nearly.errors import NearlyError, SchemaError
from nearly.web.access import Access, Guard, refused
from nearly.web.asking import EARLY, EXACT, ClientQuery, Desk, Watch, Wish
from nearly.web.browsing import describe, overview
from nearly.web.changing import StatementRunner
from nearly.web.encoding import ARROW_TYPE, FORMATS, answer_json, facts
from nearly.web.explaining import taken_apart
from nearly.web.limits import TooMuch
from nearly.web.openapi import document
from nearly.web.ranging import WebRanger

BEAT_SECONDS = 1.0
"""A stream that has nothing to tell says so as often, so that a client that is gone is noticed."""
LOGIN_SECONDS = 1.0
"""A wrong password is answered so late."""
STATIC = {
    "style.css": "text/css", "app.js": "text/javascript", "editor.js": "text/javascript", "table.js": "text/javascript",
    "chart.js": "text/javascript", "plan.js": "text/javascript", "side.js": "text/javascript", "dom.js": "text/javascript",
    "gaps.js": "text/javascript", "icon.svg": "image/svg+xml",
}  # fmt: skip
"""The page's files by name; nothing else of the disk is served."""

Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """What the paths of the server do."""

    def __init__(self, desk: Desk, access: Access, changer: StatementRunner) -> None:
        self.desk = desk
        self.access = access
        self.changer = changer
        self.ranger = WebRanger(desk)

    # --- the page ----------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """The page; with the token in its address, the browser gets to remember that and the address is made clean."""
        given = request.query_params.get("token")
        if given is not None and self.access.is_right(given):
            response: Response = RedirectResponse("/", 303)
            self.access.remember(response)
            return response
        if given is None and self.access.is_known(request.headers):
            return HTMLResponse(_file("index.html"))
        return HTMLResponse(_file("login.html" if self.access.password is not None else "token.html"), 401)

    async def login(self, request: Request) -> Response:
        """Take the password of a form."""
        form = (await request.body()).decode("utf-8", "replace")
        password = dict(pair.split("=", 1) for pair in form.split("&") if "=" in pair).get("password", "")
        if self.access.password is None or not self.access.is_right(unquote_plus(password)):
            await asyncio.sleep(LOGIN_SECONDS)
            return HTMLResponse(_file("login.html"), 401)
        response = RedirectResponse("/", 303)
        self.access.remember(response)
        return response

    async def static(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        return Response(_file(name), media_type=STATIC[name])

    # --- what there is -----------------------------------------------------------------------------------------------

    async def catalog(self, _: Request) -> Response:
        found = await run_in_threadpool(overview, self.desk.db)
        return JSONResponse(found | {"changes": self.changer.allowed, "functions": self.changer.functions})

    async def thing(self, request: Request) -> Response:
        kind, name = request.path_params["kind"], request.path_params["name"]
        return JSONResponse(await run_in_threadpool(describe, self.desk.db, kind, name))

    async def openapi(self, _: Request) -> Response:
        return JSONResponse(document(self.desk.limits))

    async def status(self, _: Request) -> Response:
        """How busy the server is."""
        pool = self.desk.pool
        return JSONResponse({"running": pool.running, "waiting": pool.waiting, "most": self.desk.limits.queries})

    # --- queries -----------------------------------------------------------------------------------------------------

    async def query(self, request: Request) -> Response:
        """The last answer, as JSON or, where the client accepts it, as an Arrow stream."""
        wish = await self._wish(request, EXACT)
        watch = Watch()
        asking = self.desk.ask(wish, client_of(request), watch)
        try:
            await _until_over(request, asking, watch)
        except ClientDisconnect:
            return Response(status_code=499)
        finally:
            await self._let_go(asking)
        answer = asking.newest
        if asking.trouble is not None or answer is None:
            raise asking.trouble or TooMuch("the query ended without an answer")
        self.desk.limits.check_rows(answer.table.num_rows)
        if ARROW_TYPE in request.headers.get("accept", ""):
            return Response(await run_in_threadpool(FORMATS["arrow"][1], answer), media_type=ARROW_TYPE)
        told = await run_in_threadpool(answer_json, answer, self.desk.limits.rows)
        return JSONResponse({"id": asking.id, "seconds": asking.elapsed, "ended": asking.why, **told})

    async def stream(self, request: Request) -> Response:
        """Answers as they come, as server-sent events: `began`, `answer` and `over`."""
        wish = await self._wish(request, EARLY)
        watch = Watch()
        asking = self.desk.ask(wish, client_of(request), watch)
        return StreamingResponse(self._events(asking, watch), media_type="text/event-stream")

    async def _events(self, asking: ClientQuery, watch: Watch) -> AsyncIterator[bytes]:
        shown, state = None, ""
        try:
            yield _event("began", {"id": asking.id})
            while True:
                over, answer = asking.over, asking.newest
                if asking.state != state and not over:
                    state = asking.state
                    yield _event("state", {"state": state, "seconds": asking.elapsed})
                if answer is not None and answer is not shown:
                    shown = answer
                    told = await run_in_threadpool(answer_json, answer, self.desk.limits.shown, True)
                    yield _event("answer", {"seconds": asking.elapsed, **told})
                if over:
                    break
                if not await watch.news(BEAT_SECONDS):
                    yield b": waiting\n\n"
            yield _event("over", _ending(asking))
        finally:
            await self._let_go(asking)

    async def _let_go(self, asking: ClientQuery) -> None:
        """Whoever asked is served or gone: nothing runs for it any more."""
        if not asking.over:
            asyncio.get_running_loop().run_in_executor(None, self.desk.drop, asking, "the client is gone")

    async def control(self, request: Request) -> Response:
        """Stop, pause or resume a query, or change the error at which it is good enough."""
        asking = self.desk.find(request.path_params["id"])
        if asking is None:
            return refused(404, "unknown", "there is no such query, or it is forgotten")
        match request.path_params["verb"]:
            case "stop":
                await run_in_threadpool(self.desk.drop, asking)
            case "pause":
                await run_in_threadpool(asking.pause)
            case "resume":
                await run_in_threadpool(asking.go_on)
            case "goal":
                await run_in_threadpool(asking.aim, _positive((await _body(request)).get("error")))
        return JSONResponse({"id": asking.id, "state": asking.state})

    async def export(self, request: Request) -> Response:
        """The newest answer of a query as a file."""
        asking = self.desk.find(request.path_params["id"])
        if asking is None or asking.newest is None:
            return refused(404, "unknown", "there is no answer to export, or it is forgotten; run the query again")
        chosen = FORMATS.get(request.query_params.get("format", "csv"))
        if chosen is None:
            raise SchemaError(f"format must be one of {', '.join(FORMATS)}")
        self.desk.limits.check_rows(asking.newest.table.num_rows)
        media, write = chosen
        name = f"answer.{request.query_params.get('format', 'csv')}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Nearly": json.dumps(facts(asking.newest))}
        return Response(await run_in_threadpool(write, asking.newest), media_type=media, headers=headers)

    async def explain(self, request: Request) -> Response:
        wish = await self._wish(request, EARLY)
        self.desk.limits.check_text(wish.text)
        text = await run_in_threadpool(lambda: self.desk.db.sql(wish.text).explain())
        return JSONResponse(taken_apart(text))

    async def range(self, request: Request) -> Response:
        """The range that an answer can take where rows are missing, given what is stated of them."""
        body = await _body(request)
        answer = await run_in_threadpool(self.ranger.answer, body, client_of(request))
        return JSONResponse(await run_in_threadpool(answer_json, answer, self.desk.limits.shown, True))

    async def execute(self, request: Request) -> Response:
        """Run a statement that changes a table, where the server allows it."""
        return JSONResponse(await run_in_threadpool(self.changer.run, str((await _body(request)).get("sql") or "")))

    async def _wish(self, request: Request, mode: str) -> Wish:
        body = await _body(request)
        known = {"sql", "error", "seconds", "confidence", "mode", "seed"}
        if not body.keys() <= known:
            raise SchemaError(f"unknown: {', '.join(sorted(body.keys() - known))}; known are {', '.join(sorted(known))}")
        if isinstance(body.get("sql"), str):
            self.changer.refuse(body["sql"])
        goal = body.get("error") is not None or body.get("seconds") is not None
        return Wish(
            body.get("sql") or "", body.get("error"), body.get("seconds"), body.get("confidence", 0.95),
            body.get("mode", EARLY if goal else mode), body.get("seed", 0),
        )  # fmt: skip


def application(desk: Desk, access: Access, changer: StatementRunner) -> ASGIApp:
    """The application behind its guard."""
    api = Api(desk, access, changer)
    routes = [
        Route("/", api.page), Route("/login", api.login, methods=["POST"]),
        *(Route(f"/{name}", api.static) for name in STATIC),
        Route("/api/openapi.json", api.openapi), Route("/api/status", api.status),
        Route("/api/catalog", api.catalog), Route("/api/{kind}/{name}", api.thing, methods=["GET"]),
        Route("/api/query", api.query, methods=["POST"]), Route("/api/stream", api.stream, methods=["POST"]),
        Route("/api/explain", api.explain, methods=["POST"]), Route("/api/range", api.range, methods=["POST"]),
        Route("/api/execute", api.execute, methods=["POST"]),
        Route("/api/queries/{id}/export", api.export),
        Route("/api/queries/{id}/{verb:str}", api.control, methods=["POST"]),
    ]  # fmt: skip
    handlers: dict[Any, Any] = {NearlyError: _told, HTTPException: _no_such, Exception: _broken}
    inner = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(inner, access, 4 * desk.limits.characters + 4096)


async def _told(_: Request, trouble: Exception) -> Response:
    """An error of the user's making, in words."""
    status = 413 if isinstance(trouble, TooMuch) else 400
    return refused(status, type(trouble).__name__, str(trouble))


async def _no_such(request: Request, trouble: Exception) -> Response:
    """A path that there is not, or a method that it does not take, told as all errors are."""
    status = trouble.status_code if isinstance(trouble, HTTPException) else 404
    words = f"{request.method} is not what this path takes" if status == 405 else "there is no such path"
    response = refused(status, "path", f"{words}; /api/openapi.json describes them all")
    response.headers.update((trouble.headers or {}) if isinstance(trouble, HTTPException) else {})
    return response


async def _broken(_: Request, trouble: Exception) -> Response:
    """An error of ours: what it was is for the server's log."""
    return refused(500, "internal", "the server met an error of its own; its log says more")


async def _body(request: Request) -> dict[str, Any]:
    """The request's JSON object. Only JSON is taken: a form of another site cannot send that."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise SchemaError("send JSON, with Content-Type: application/json")
    try:
        found = json.loads(await request.body())
    except ValueError as trouble:
        raise SchemaError(f"the request is no JSON: {trouble}") from None
    except RecursionError:
        raise SchemaError("the request is no JSON that is taken: it is nested too deeply") from None
    if not isinstance(found, dict):
        raise SchemaError('send a JSON object, such as {"sql": "select 1 as a"}')
    return found


async def _until_over(request: Request, asking: ClientQuery, watch: Watch) -> None:
    """Wait for the end of a query, as long as the client waits, too."""
    while not asking.over:
        await watch.news(0.25)
        if not asking.over and await request.is_disconnected():
            raise ClientDisconnect


def _ending(asking: ClientQuery) -> dict[str, Any]:
    trouble = asking.trouble
    told = None
    if trouble is not None:
        ours = isinstance(trouble, NearlyError)
        told = {"kind": type(trouble).__name__ if ours else "internal", "message": str(trouble) if ours else "see the server's log"}
    return {"id": asking.id, "seconds": asking.elapsed, "waited": asking.waited, "ended": asking.why, "error": told}


def _event(name: str, content: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def client_of(request: Request) -> str:
    """Who asks: the page that says so, of an address; programs by their address alone."""
    address = request.client.host if request.client is not None else ""
    return f"{address} {request.headers.get('x-nearly-client', '')[:64]}"


def _positive(value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        raise SchemaError(f"error={value!r} must be a number above 0, or null")
    return value


def _file(name: str) -> str:
    return files("nearly.web").joinpath("static", name).read_text("utf-8")
