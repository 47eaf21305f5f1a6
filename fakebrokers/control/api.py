"""The control API on a port of the loopback interface.

with ControlApi(brokers) as api:
    ...  # curl $URL/openapi.json
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from traceback import print_exc
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote_plus

from fakebrokers.control import routes, rows
from fakebrokers.control.brokers import Brokers, operations_of
from fakebrokers.control.journal import journal_lines
from fakebrokers.control.openapi import document
from fakebrokers.control.problems import Refusal
from fakebrokers.control.values import encode, read, read_json
from fakebrokers.core.http_guard import Bodies, refuse_foreign, runner_of, web
from fakebrokers.core.loop import loop_thread
from fakebrokers.errors import WaitTimeout

#: Bytes of a request, above which it is refused.
LARGEST_REQUEST = 64 * 1024 * 1024
#: Bytes of all requests that have not come to their end.
LARGEST_SUM = 2 * LARGEST_REQUEST
#: Operations that may be carried out at the same time; none of them waits for anything.
_WORKERS = 16
#: Characters of a path or a problem that an answer repeats.
_SHOWN = 2000

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ControlApi:
    """See the module's text. Handlers run on the loop thread, what they do in threads: it may block.

    Args:
        brokers: Those that it controls; they are not stopped with it.
        port: 0 takes a free one.
    """

    host = "127.0.0.1"  #: nowhere else: whoever reaches it may do anything

    def __init__(self, brokers: Brokers, *, port: int = 0) -> None:
        self.brokers = brokers
        self.port = port
        self._runner: web.AppRunner | None = None
        self.bodies = Bodies(LARGEST_REQUEST, LARGEST_SUM)
        self._threads = ThreadPoolExecutor(_WORKERS, "fakebrokers-control")

    @property
    def url(self) -> str:
        """The API's address, such as ``http://127.0.0.1:41231``."""
        return f"http://{self.host}:{self.port}"

    def start(self) -> Self:
        """Listen; `OSError` if the port is taken."""
        loop_thread().run(self._start())
        return self

    async def _start(self) -> None:
        runner = runner_of(self._application(), shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port).start()
        except OSError:
            await runner.cleanup()
            raise
        self.port = runner.addresses[0][1]
        self._runner = runner

    def stop(self) -> None:
        """Listen no more; streams and waits are cut."""
        loop_thread().run(self._stop())
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _stop(self) -> None:
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # routes

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[_with_problems, refuse_foreign])
        router = app.router
        router.add_route("GET", "/openapi.json", self._document)
        for route in routes.ROUTES:
            router.add_route(route.method, route.path, self._handler(route))
        router.add_route("GET", routes.BROKER + "/journal", self._journal)
        router.add_post(routes.BROKER + "/wait_for", self._wait_for)
        router.add_route("GET", routes.BROKER + "/{operation}", self._operate)
        router.add_post(routes.BROKER + "/{operation}", self._operate)
        return app

    async def _in_thread(self, act: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, act, *arguments)

    async def _document(self, request: web.Request) -> web.Response:
        wanted = read(_query(request), rows.DocumentQuery, "query", strict=False)
        return _answer(await self._in_thread(document, wanted.protocol, self.url))

    def _handler(self, route: routes.Route) -> Handler:
        in_query = route.method in ("GET", "DELETE")

        async def handle(request: web.Request) -> web.Response:
            places = dict(request.match_info)
            given: Any = None
            if in_query:
                given = read(_query(request), route.reads, "query", strict=False)
            elif route.reads is Any:
                given = read_json(await self.bodies.read(request))
            else:
                given = read(read_json(await self.bodies.read(request)), route.reads)
            result = await self._in_thread(route.act, self.brokers, places, given)
            return _answer(result, route.status) if route.answers is not None else web.Response(status=204)

        return handle

    async def _operate(self, request: web.Request) -> web.Response:
        name = request.match_info["operation"]
        server = self.brokers.find(request.match_info["broker"])
        operations = operations_of(server.protocol)
        found = operations.get(name)
        if found is None:
            there = ", ".join(operations)
            raise Refusal(
                404, request.path, f"expected an operation of {server.protocol.name} ({there}), got {name!r}"
            )
        if request.method == "POST":
            arguments: Any = read(read_json(await self.bodies.read(request)), found.arguments)
        elif found.reads:
            arguments = read(_query(request), found.arguments, "query", strict=False)
        else:
            raise Refusal(405, request.path, f"expected POST, got {request.method}: {name} changes something")
        if found.waits:
            result = await routes.carry_out_waiting(server, found, arguments)
        else:
            result = await self._in_thread(routes.carry_out, server, found, arguments)
        return web.Response(status=204) if found.returns is None else _answer(result)

    async def _wait_for(self, request: web.Request) -> web.Response:
        server = self.brokers.find(request.match_info["broker"])
        wanted = read(read_json(await self.bodies.read(request)), rows.Wanted)
        try:
            records = await server.wait_for_async(
                **rows.Filter.keywords(wanted), count=wanted.count, timeout=wanted.timeout
            )
        except WaitTimeout as error:
            first, _, _ = str(error).partition(";")
            raise Refusal(408, "body", first, server.journal_excerpt().splitlines()) from None
        return _answer([rows.journal_row(record) for record in records])

    async def _journal(self, request: web.Request) -> web.StreamResponse:
        server = self.brokers.find(request.match_info["broker"])
        query = read(_query(request), rows.JournalQuery, "query", strict=False)
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await answer.prepare(request)
        try:
            async with aclosing(journal_lines(server, query)) as found:
                async for lines in found:
                    if request.transport is None or request.transport.is_closing():
                        return answer
                    await answer.write(lines)
        except ConnectionError:  # whoever listened has gone
            return answer
        await answer.write_eof()
        return answer


def _query(request: web.Request) -> dict[str, Any]:
    """The query by name; a name that stands there more than once has a list."""
    found: dict[str, Any] = {}
    for part in request.rel_url.raw_query_string.split("&"):
        if not part:
            continue
        name, _, text = part.partition("=")
        try:
            name, text = unquote_plus(name, errors="strict"), unquote_plus(text, errors="strict")
        except UnicodeDecodeError:
            raise Refusal(400, "query", f"expected UTF-8, got {part[:100]!r}") from None
        if name in found:
            found[name] = [*found[name], text] if isinstance(found[name], list) else [found[name], text]
        else:
            found[name] = text
    return found


def _answer(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=encode(value), content_type="application/json")


@web.middleware
async def _with_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever goes wrong is answered in one shape."""
    try:
        answer = await handler(request)
    except Refusal as error:
        return _problem(error)
    except web.HTTPException as error:
        there = (
            f"{error.reason}" if error.status != 405 else f"expected {_methods(error)}, got {request.method}"
        )
        return _problem(Refusal(error.status, request.path, there))
    except Exception as error:
        refusal = routes.refusal_of(error, request.path)
        if refusal is None:
            print_exc()
            refusal = Refusal(500, request.path, f"a defect of fakebrokers, please report it: {error!r}")
        return _problem(refusal)
    if answer.status == 403 and isinstance(answer, web.Response):
        return _problem(Refusal(403, "headers.Host", (answer.text or "").strip()))
    return answer


def _methods(error: web.HTTPException) -> str:
    return " or ".join(sorted(error.allowed_methods)) if isinstance(error, web.HTTPMethodNotAllowed) else ""


def _problem(error: Refusal) -> web.Response:
    told = error.answer
    row = {"status": told.status, "path": _cut(told.path), "problem": _cut(told.problem)}
    if told.journal:
        row["journal"] = told.journal
    body = encode(row)
    return web.Response(status=told.status, body=body, content_type="application/json")


def _cut(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
