"""Toxiproxy's control API (version 2.12): its clients control these proxies unchanged.

with ToxiproxyApi() as api:
    ...  # toxiproxy-cli --host api.url, toxiproxy-python, the Go, Java, Node clients
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

import msgspec

from fakebrokers.core.http_guard import Bodies, refuse_foreign, runner_of, web
from fakebrokers.core.loop import loop_thread
from fakebrokers.proxy.control import ApiError, MakeProxy, ManagedProxy, Proxies
from fakebrokers.proxy.server import Proxy

#: The version of Toxiproxy whose API this is.
VERSION = "2.12.0"

#: Bytes of a request, above which it is refused.
_LARGEST = 1024 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ToxiproxyApi:
    """The API on a port of its own.

    Args:
        host: Address to listen on.
        port: 0 takes a free one; Toxiproxy's own is 8474.
        seed: Of all random decisions (Toxiproxy does not keep its own).
        make: Makes each proxy that a client of the API asks for.
    """

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, seed: int = 0, make: MakeProxy = Proxy
    ) -> None:
        self.host = host
        self.port = port
        self.proxies = Proxies(seed, make)
        self.bodies = Bodies(_LARGEST, 16 * _LARGEST)
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The API's address, such as ``http://127.0.0.1:8474``."""
        return f"http://{self.host}:{self.port}"

    def proxy(self, name: str) -> ManagedProxy:
        """A proxy by name, to look at its journal or to add other faults. `ApiError` if there is none."""
        return self.proxies.find(name)

    def add(self, name: str, listen: str, upstream: str, make: MakeProxy) -> ManagedProxy:
        """A further proxy, of its own making; `ApiError` if it cannot listen. Any thread."""
        return loop_thread().call(self.proxies.add, name, listen, upstream, make)

    def start(self) -> ToxiproxyApi:
        """Listen; returns once the port is open."""
        loop_thread().run(self._start())
        return self

    async def _start(self) -> None:
        runner = runner_of(self._application())
        await runner.setup()
        site = web.TCPSite(runner, self.host, self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        self._runner = runner

    def stop(self) -> None:
        """End the API and all its proxies."""
        loop_thread().run(self._stop())

    async def _stop(self) -> None:
        self.proxies.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def __enter__(self) -> ToxiproxyApi:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # routes

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[refuse_foreign, _like_toxiproxy])
        toxics, toxic = "/proxies/{proxy}/toxics", "/proxies/{proxy}/toxics/{toxic}"
        app.add_routes(
            [
                web.get("/version", self._version),
                web.get("/proxies", self._list),
                web.post("/proxies", self._create),
                web.post("/populate", self._populate),
                web.post("/reset", self._reset),
                web.get("/proxies/{proxy}", self._show),
                web.post("/proxies/{proxy}", self._update),
                web.patch("/proxies/{proxy}", self._update),
                web.delete("/proxies/{proxy}", self._delete),
                web.get(toxics, self._toxics),
                web.post(toxics, self._add_toxic),
                web.get(toxic, self._show_toxic),
                web.post(toxic, self._change_toxic),
                web.patch(toxic, self._change_toxic),
                web.delete(toxic, self._remove_toxic),
            ]
        )
        return app

    async def _version(self, request: web.Request) -> web.Response:
        text = f'{{"version": "{VERSION}"}}\n'
        return web.Response(text=text, content_type="application/json", charset="utf-8")

    async def _list(self, request: web.Request) -> web.Response:
        return _answer({name: managed.as_json() for name, managed in self.proxies.by_name.items()})

    async def _create(self, request: web.Request) -> web.Response:
        return _answer(self.proxies.create(await self._body(request)).as_json(), 201)

    async def _populate(self, request: web.Request) -> web.Response:
        try:
            done = self.proxies.populate(await self._body(request))
        except ApiError as error:
            return _answer({"proxies": None, **error.as_json()}, error.status)
        return _answer({"proxies": [managed.as_json() for managed in done]}, 201)

    async def _reset(self, request: web.Request) -> web.Response:
        self.proxies.reset()
        return web.Response(status=204)

    async def _show(self, request: web.Request) -> web.Response:
        return _answer(self.proxies.find(request.match_info["proxy"]).as_json())

    async def _update(self, request: web.Request) -> web.Response:
        return _answer(self.proxies.update(request.match_info["proxy"], await self._body(request)).as_json())

    async def _delete(self, request: web.Request) -> web.Response:
        self.proxies.delete(request.match_info["proxy"])
        return web.Response(status=204)

    async def _toxics(self, request: web.Request) -> web.Response:
        return _answer(self.proxies.find(request.match_info["proxy"]).as_json()["toxics"])

    async def _add_toxic(self, request: web.Request) -> web.Response:
        toxic = self.proxies.add_toxic(request.match_info["proxy"], await self._body(request))
        return _answer(toxic.as_json())

    async def _show_toxic(self, request: web.Request) -> web.Response:
        _, toxic = self.proxies.find_toxic(request.match_info["proxy"], request.match_info["toxic"])
        return _answer(toxic.as_json())

    async def _change_toxic(self, request: web.Request) -> web.Response:
        names = request.match_info["proxy"], request.match_info["toxic"]
        return _answer(self.proxies.change_toxic(*names, await self._body(request)).as_json())

    async def _remove_toxic(self, request: web.Request) -> web.Response:
        managed, toxic = self.proxies.find_toxic(request.match_info["proxy"], request.match_info["toxic"])
        managed.remove(toxic.name)
        return web.Response(status=204)

    async def _body(self, request: web.Request) -> Any:
        """The JSON of a request, whatever its content type says."""
        try:
            return msgspec.json.decode(await self.bodies.read(request))
        except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
            raise ApiError(400, f"bad request body: {error}") from None


@web.middleware
async def _like_toxiproxy(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Browsers are refused, errors have Toxiproxy's shape, every answer of a route a request id."""
    if request.headers.get("User-Agent", "").startswith("Mozilla/"):
        return web.Response(status=403, text="User agent not allowed\n")
    try:
        answer = await handler(request)
    except ApiError as error:
        answer = web.Response(status=error.status, text=json.dumps(error.as_json()) + "\n")
        answer.headers["X-Content-Type-Options"] = "nosniff"
    except web.HTTPNotFound:
        return web.Response(status=404, text="404 page not found\n")
    except web.HTTPMethodNotAllowed:
        return web.Response(status=405)
    answer.headers["X-Toxiproxy-Request-Id"] = "".join(
        secrets.choice(string.ascii_lowercase + string.digits) for _ in range(20)
    )
    return answer


def _answer(body: Any, status: int = 200) -> web.Response:
    text = json.dumps(body, separators=(",", ":"))
    return web.Response(status=status, body=text.encode(), content_type="application/json")
