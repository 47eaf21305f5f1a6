"""A small management HTTP API in RabbitMQ's shape, for tools and test suites that cut connections.

Lists and kills connections; lists queues (streams), stream publishers and consumers, exchanges and
bindings (super streams); creates and deletes what the stream protocol can. Names are percent-encoded in
paths (``%2F`` is the virtual host "/"). Every request needs Basic authentication with a user of the fake.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from fakebrokers.core.connection import Connection
from fakebrokers.core.http_guard import refuse_foreign
from fakebrokers.core.session import HangUp
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.session import StreamSession
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.superstreams import SuperStream

if TYPE_CHECKING:
    from fakebrokers.rabbitmq_stream.server import RabbitMQStream

Row = dict[str, Any]


class Management:
    """The API of one fake. Handlers run on the loop thread, as the fake does."""

    def __init__(self, server: RabbitMQStream) -> None:
        self._server = server
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; `port` 0 takes a free one."""
        self._runner = web.AppRunner(self._app(), access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[refuse_foreign, self._authenticate])
        listings: dict[str, Callable[[], Iterable[Row]]] = {
            "/api/connections": self._connections,
            "/api/stream/connections": self._connections,
            "/api/stream/publishers": self._publishers,
            "/api/stream/consumers": self._consumers,
            "/api/queues": self._queues,
            "/api/exchanges": self._exchanges,
            "/api/bindings": self._bindings,
            "/api/vhosts": lambda: [{"name": name} for name in self._broker.access.virtual_hosts],
            "/api/users": lambda: [{"name": name, "tags": []} for name in self._broker.access.users],
            "/api/nodes": lambda: [{"name": n.name, "running": n.up} for n in self._broker.cluster.nodes],
        }
        for path, rows in listings.items():
            app.router.add_get(path, _listing(rows))
            if path not in ("/api/vhosts", "/api/users", "/api/nodes"):
                app.router.add_get(path + "/{vhost}", _listing(rows))
        app.router.add_get("/api/overview", self._overview)
        app.router.add_get("/api/whoami", self._overview)
        app.router.add_get("/api/connections/{vhost}/{name}", self._one(self._connections))
        app.router.add_delete("/api/connections/{name}", self._kill)
        app.router.add_delete("/api/stream/connections/{vhost}/{name}", self._kill)
        app.router.add_get("/api/queues/{vhost}/{name}", self._one(self._queues))
        app.router.add_put("/api/queues/{vhost}/{name}", self._create)
        app.router.add_delete("/api/queues/{vhost}/{name}", self._delete)
        app.router.add_get("/api/queues/{vhost}/{name}/bindings", self._bindings_of_queue)
        app.router.add_get("/api/exchanges/{vhost}/{name}", self._one(self._exchanges))
        app.router.add_get("/api/exchanges/{vhost}/{name}/bindings/source", self._bindings_of_exchange)
        return app

    @property
    def _broker(self) -> Any:
        return self._server.broker

    @web.middleware
    async def _authenticate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            kind, _, text = request.headers.get("Authorization", "").partition(" ")
            user, _, password = base64.b64decode(text, validate=True).decode().partition(":")
            known = self._broker.access.users.get(user)
            allowed = kind.lower() == "basic" and known is not None and known.password == password
        except (binascii.Error, UnicodeDecodeError):
            allowed = False
        if not allowed:
            return _answer(
                {"error": "not_authorized", "reason": "Login failed"},
                401,
                {"WWW-Authenticate": 'Basic realm="RabbitMQ Management"'},
            )
        return await handler(request)

    # rows

    def _sessions(self) -> Iterable[tuple[Connection, StreamSession]]:
        for connection in self._server.engine.connections.values():
            if isinstance(connection.session, StreamSession) and connection.session.virtual_host is not None:
                yield connection, connection.session

    def _name(self, connection: Connection, session: StreamSession) -> str:
        host, port = session.address_of(session.node)
        return f"{connection.address} -> {host}:{port}"

    def _connections(self) -> Iterable[Row]:
        for connection, session in self._sessions():
            peer_host, _, peer_port = connection.address.rpartition(":")
            host, port = session.address_of(session.node)
            yield {
                "name": self._name(connection, session),
                "node": session.node.name,
                "protocol": "stream",
                "type": "network",
                "state": "running",
                "user": session.user.name if session.user else "",
                "vhost": session.virtual_host,
                "auth_mechanism": session.mechanism,
                "client_properties": session.client_properties,
                "frame_max": session.frame_max,
                "heartbeat": session.heartbeat_s,
                "host": host,
                "port": port,
                "peer_host": peer_host,
                "peer_port": int(peer_port) if peer_port.isdecimal() else 0,
                "ssl": session.tls,
                "recv_oct": connection.received_bytes,
                "send_oct": connection.sent_bytes,
                "connected_at": int(self._server.clock.wall(connection.opened_at) * 1000),
            }

    def _publishers(self) -> Iterable[Row]:
        for connection, session in self._sessions():
            for number, publisher in session.publishing.publishers.items():
                yield {
                    "publisher_id": number,
                    "reference": publisher.reference,
                    "queue": {"name": publisher.stream.name, "vhost": session.virtual_host},
                    "connection_details": {"name": self._name(connection, session)},
                }

    def _consumers(self) -> Iterable[Row]:
        for connection, session in self._sessions():
            for number, subscription in session.consuming.subscriptions.items():
                yield {
                    "subscription_id": number,
                    "credits": subscription.credit,
                    "offset": subscription.position,
                    "active": subscription.active,
                    "queue": {"name": subscription.stream.name, "vhost": session.virtual_host},
                    "connection_details": {"name": self._name(connection, session)},
                }

    def _queues(self) -> Iterable[Row]:
        stream: Stream
        for (vhost, name), stream in self._broker.streams.items():
            place = stream.membership
            leader = place.leader.name if place.leader else None
            yield {
                "name": name,
                "vhost": vhost,
                "type": "stream",
                "durable": True,
                "auto_delete": False,
                "exclusive": False,
                "arguments": {"x-queue-type": "stream"},
                "messages": len(stream),
                "messages_ready": len(stream),
                "state": "running",
                "leader": leader,
                "node": leader,
                "members": [member.name for member in place.members],
                "online": [member.name for member in place.members if member.up],
            }

    def _exchanges(self) -> Iterable[Row]:
        found: SuperStream
        for (vhost, name), found in self._broker.super_streams.items():
            yield {
                "name": found.name or name,
                "vhost": vhost,
                "type": "direct",
                "durable": True,
                "arguments": {"x-super-stream": True},
            }

    def _bindings(self) -> Iterable[Row]:
        found: SuperStream
        for (vhost, name), found in self._broker.super_streams.items():
            for number, binding in enumerate(found.bindings):
                yield {
                    "source": name,
                    "vhost": vhost,
                    "destination": binding.partition,
                    "destination_type": "queue",
                    "routing_key": binding.key,
                    "arguments": {"x-stream-partition-order": number},
                    "properties_key": binding.key,
                }

    # requests

    async def _overview(self, request: web.Request) -> web.Response:
        return _answer(
            {
                "product_name": "RabbitMQ",
                "rabbitmq_version": self._broker.profile.version,
                "cluster_name": self._broker.cluster.nodes[0].name,
                "node": self._broker.cluster.nodes[0].name,
                "object_totals": {
                    "connections": len(list(self._sessions())),
                    "queues": len(self._broker.streams),
                },
            }
        )

    def _one(self, rows: Callable[[], Iterable[Row]]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handler(request: web.Request) -> web.Response:
            vhost, name = request.match_info["vhost"], request.match_info["name"]
            for row in rows():
                if row["vhost"] == vhost and row["name"] == name:
                    return _answer(row)
            return _not_found()

        return handler

    async def _kill(self, request: web.Request) -> web.Response:
        """End a connection as an operator does: FIN without a Close frame.

        Rule: docs/protocols/rabbitmq-stream.md, 5, what a real broker does then.
        """
        for connection, session in tuple(self._sessions()):
            if self._name(connection, session) == request.match_info["name"]:
                self._server.call(self._server.engine.kill, connection, HangUp.FIN, self._server.engine.now)
                return web.Response(status=204)
        return _not_found()

    async def _create(self, request: web.Request) -> web.Response:
        vhost, name = request.match_info["vhost"], request.match_info["name"]
        try:
            body = json.loads(await request.read() or b"{}")
        except (ValueError, RecursionError):
            return _bad_request("the body is no JSON, or nested too deep")
        arguments = body.get("arguments") or {} if isinstance(body, dict) else None
        if not isinstance(arguments, dict):
            return _bad_request("expected a JSON object in which arguments is one too")
        if arguments.get("x-queue-type") != "stream":
            return _bad_request("this fake has queues of type stream only: arguments.x-queue-type")
        wire = {key.removeprefix("x-"): str(v) for key, v in arguments.items() if key != "x-queue-type"}
        if vhost not in self._broker.access.virtual_hosts:
            return _not_found()
        if (vhost, name) in self._broker.streams:
            return web.Response(status=204)
        try:
            self._server.call(self._broker.create, vhost, name, wire, self._broker.cluster.nodes[0])
        except Refused as refused:
            return _bad_request(f"refused with code {int(refused.code)}")
        except Crashed as problem:
            return _bad_request(str(problem))
        return web.Response(status=201)

    async def _delete(self, request: web.Request) -> web.Response:
        vhost, name = request.match_info["vhost"], request.match_info["name"]
        if (vhost, name) not in self._broker.streams:
            return _not_found()
        self._server.call(lambda: self._broker.delete(name, self._server.engine.now, vhost))
        return web.Response(status=204)

    async def _bindings_of_exchange(self, request: web.Request) -> web.Response:
        return _answer([row for row in self._bindings() if row["source"] == request.match_info["name"]])

    async def _bindings_of_queue(self, request: web.Request) -> web.Response:
        return _answer([row for row in self._bindings() if row["destination"] == request.match_info["name"]])


def _listing(rows: Callable[[], Iterable[Row]]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        vhost = request.match_info.get("vhost")
        found = [row for row in rows() if vhost is None or _vhost_of(row) == vhost]
        return _answer(found)

    return handler


def _vhost_of(row: Row) -> Any:
    return row.get("vhost") or row.get("queue", {}).get("vhost")


def _answer(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    body = json.dumps(data, default=str).encode()
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def _not_found() -> web.Response:
    return _answer({"error": "Object Not Found", "reason": "Not Found"}, 404)


def _bad_request(reason: str) -> web.Response:
    return _answer({"error": "bad_request", "reason": reason}, 400)
