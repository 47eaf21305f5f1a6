"""The management API of one fake: its listener, who may ask, and how errors look."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from functools import partial
from traceback import print_exc
from typing import Any

import msgspec

from fakebrokers.control.problems import Refusal
from fakebrokers.control.values import plain, read_json
from fakebrokers.core.http_guard import Bodies, refuse_foreign, runner_of, web
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.access import MANAGEMENT_TAGS, User
from fakebrokers.rabbitmq_stream.management import connections, definitions, node, policies, queues, users
from fakebrokers.rabbitmq_stream.management.asked import Asked, Failure, Managed, Route, not_found
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused

ROUTES: tuple[Route, ...] = (
    *node.ROUTES,
    *connections.ROUTES,
    *queues.ROUTES,
    *users.ROUTES,
    *policies.ROUTES,
    *definitions.ROUTES,
)

#: Bytes of a request, above which it is refused.
_LARGEST = 16 * 1024 * 1024
#: Characters of a reason that an answer repeats.
_SHOWN = 2000

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="RabbitMQ Management"'}


class Management:
    """Serves `ROUTES` for one fake. Handlers run on the loop thread, as the fake does."""

    def __init__(self, server: Managed) -> None:
        self._server = server
        self.bodies = Bodies(_LARGEST, 4 * _LARGEST)
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; `port` 0 takes a free one. `OSError` names a port that is taken."""
        runner = runner_of(self._application(), shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[_told_as_json, refuse_foreign])
        for route in ROUTES:
            # tools end a path with a slash or leave it out, as they like
            path, handler = f"/api{route.path}{{_:/?}}", partial(self._carry_out, route)
            if route.method == "GET":
                app.router.add_get(path, handler)  # and HEAD
            else:
                app.router.add_route(route.method, path, handler)
        return app

    async def _carry_out(self, route: Route, request: web.Request) -> web.Response:
        user = self._user(request)
        if route.administrator and "administrator" not in user.tags:
            raise Failure(401, "not_authorised", "Not administrator user")
        at = {name: text for name, text in request.match_info.items() if name != "_"}
        body = read_json(await self.bodies.read(request))
        asked = Asked(self._server, at, dict(request.query), user, body, self.port)
        status, value, *places = self._server.call(route.act, asked)
        headers = {"Location": places[0]} if places else None
        return web.Response(status=status, headers=headers) if value is None else _answer(value, status)

    def _user(self, request: web.Request) -> User:
        """Who asks.

        Raises:
            Failure: Nobody that is known, or somebody who may not: 401.
        """
        try:
            kind, _, text = request.headers.get("Authorization", "").partition(" ")
            name, _, password = base64.b64decode(text, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            kind = name = password = ""
        user = self._server.broker.access.users.get(name)
        if kind.lower() != "basic" or user is None or not password or user.password != password:
            raise Failure(401, "not_authorized", "Login failed")
        if not set(user.tags) & set(MANAGEMENT_TAGS):
            raise Failure(401, "not_authorised", "Not management user")
        return user


@web.middleware
async def _told_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Whatever goes wrong is answered in RabbitMQ's shape."""
    try:
        return await handler(request)
    except Exception as error:
        failure = _failure(error)
        if failure is None:
            print_exc()
            failure = Failure(500, "internal", f"a defect of fakebrokers, please report it: {error!r}")
    headers = _CHALLENGE if failure.status == 401 else None
    return _answer({"error": failure.error, "reason": _cut(failure.reason)}, failure.status, headers)


def _failure(error: Exception) -> Failure | None:
    """What an error means to whoever asked; None for a defect of the fake."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, Refusal):
        return Failure(error.answer.status, "bad_request", f"{error.answer.path}: {error.answer.problem}")
    if isinstance(error, Refused | Crashed | UsageError):
        return Failure(400, "bad_request", str(error))
    if isinstance(error, web.HTTPNotFound):
        return not_found()
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = " or ".join(sorted(error.allowed_methods))
        return Failure(405, "method_not_allowed", f"expected {allowed}, got {error.method}")
    if isinstance(error, web.HTTPException):
        return Failure(error.status, "bad_request", error.reason)
    return None


def _cut(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _answer(value: Any, status: int, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(plain(value))
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
