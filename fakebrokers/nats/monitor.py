"""The monitoring port of the NATS server: ``/varz /connz /subsz /healthz``, as far as tools read them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakebrokers.core.http_guard import refuse_foreign, runner_of, web
from fakebrokers.nats.broker import NatsBroker
from fakebrokers.nats.client import NatsClient
from fakebrokers.nats.codec import MAX_CONTROL_LINE
from fakebrokers.nats.session import MAX_PENDING, NatsSession

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer

#: Rows of an answer, unless another number is asked for.
LIMIT = 1024

Row = dict[str, Any]


class Monitor:
    """The pages of one fake. Handlers run on the loop thread, as the fake does.

    Args:
        find: The broker that the pages are about.
    """

    def __init__(self, server: FakeServer, find: Callable[[], NatsBroker]) -> None:
        self._server = server
        self._find = find
        self._runner: web.AppRunner | None = None
        self._started = 0.0
        self._asked: dict[str, int] = {}
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; `port` 0 takes a free one."""
        app = web.Application(middlewares=[refuse_foreign])
        pages: dict[str, Callable[[web.Request], Row]] = {
            "/varz": self._varz,
            "/connz": self._connz,
            "/subsz": self._subsz,
            "/subscriptionsz": self._subsz,
            "/healthz": lambda request: {"status": "ok"},
            "/routez": lambda request: {**self._head(), "num_routes": 0, "routes": []},
        }
        for path, page in pages.items():
            app.router.add_get(path, self._page(path, page))
        self._started = self._server.engine.now
        self._runner = runner_of(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    def _page(self, path: str, page: Callable[[web.Request], Row]) -> Any:
        async def answer(request: web.Request) -> web.Response:
            self._asked[path] = self._asked.get(path, 0) + 1
            try:
                return web.json_response(page(request))
            except ValueError as problem:
                return web.Response(status=400, text=f"error decoding query: {problem}\n")

        return answer

    def _at(self, now: float) -> str:
        moment = datetime.datetime.fromtimestamp(self._server.clock.wall(now), datetime.UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _head(self) -> Row:
        return {"server_id": self._find().nodes[0].id, "now": self._at(self._server.now)}

    def _varz(self, request: web.Request) -> Row:
        broker, now = self._find(), self._server.now
        profile, node = broker.profile, broker.nodes[0]
        return {
            "server_id": node.id,
            "server_name": node.id,
            "version": profile.version,
            "proto": 1,
            "go": profile.go,
            "host": node.host,
            "port": node.port,
            **({"auth_required": True} if broker.logins.is_needed else {}),
            "max_connections": 65536,
            "ping_interval": round(profile.ping_interval_s * 1e9),
            "ping_max": profile.ping_max,
            "http_host": node.host,
            "http_port": self.port,
            "auth_timeout": profile.auth_timeout_s,
            "max_control_line": MAX_CONTROL_LINE,
            "max_payload": profile.max_payload,
            "max_pending": MAX_PENDING,
            "cluster": {},
            "jetstream": {},
            "start": self._at(self._started),
            "now": self._at(now),
            "uptime": _span(now - self._started),
            "mem": 0,
            "cores": os.cpu_count() or 1,
            "cpu": 0,
            "connections": len(broker.sessions),
            "total_connections": broker.connected,
            "routes": 0,
            "remotes": 0,
            "leafnodes": 0,
            "in_msgs": broker.published,
            "out_msgs": broker.delivered,
            "in_bytes": broker.published_bytes,
            "out_bytes": broker.delivered_bytes,
            "slow_consumers": 0,
            "subscriptions": len(broker.subscriptions),
            "http_req_stats": dict(self._asked),
        }

    def _connz(self, request: web.Request) -> Row:
        offset, limit = _window(request)
        wanted = request.query.get("subs", "0") not in ("0", "false", "")
        sessions = list(self._find().sessions.values())
        rows = [self._connection(each, wanted) for each in sessions[offset : offset + limit]]
        page = {"num_connections": len(rows), "total": len(sessions), "offset": offset, "limit": limit}
        return {**self._head(), **page, "connections": rows}

    def _connection(self, session: NatsClient, wanted: bool) -> Row:
        now = self._server.now
        host, _, port = session.link.address.rpartition(":")
        reported = {
            name: session.client[name] for name in ("name", "lang", "version") if name in session.client
        }
        row = {
            "cid": session.number,
            "kind": "Client",
            "type": "nats",
            "ip": host,
            "port": int(port) if port.isdecimal() else 0,
            "start": self._at(session.opened_at),
            "last_activity": self._at(session.heard_at),
            "uptime": _span(now - session.opened_at),
            "idle": _span(now - session.heard_at),
            "pending_bytes": 0,
            "in_msgs": session.in_msgs,
            "out_msgs": session.out_msgs,
            "in_bytes": session.in_bytes,
            "out_bytes": session.out_bytes,
            "subscriptions": len(session.subscriptions),
            **reported,
        }
        if wanted:
            row["subscriptions_list"] = sorted(each.pattern for each in session.subscriptions.values())
        return row

    def _subsz(self, request: web.Request) -> Row:
        subscriptions = list(self._find().subscriptions)
        page: Row = {
            "num_subscriptions": len(subscriptions),
            "num_cache": self._find().subscriptions.remembered,
            "num_inserts": 0,
            "num_removes": 0,
            "num_matches": self._find().published,
            "cache_hit_rate": 0,
            "max_fanout": 0,
            "avg_fanout": 0,
        }
        if request.query.get("subs", "0") in ("0", "false", ""):
            return page
        offset, limit = _window(request)
        clients = [each for each in subscriptions if isinstance(each.owner, NatsSession)]
        rows = [
            {
                "account": "$G",
                "subject": each.pattern,
                **({"qgroup": each.queue} if each.queue else {}),
                "sid": each.key,
                "msgs": each.delivered,
                "cid": each.owner.number,
            }
            for each in clients[offset : offset + limit]
        ]
        listed = {"total": len(clients), "offset": offset, "limit": limit, "subscriptions_list": rows}
        return {**self._head(), **page, **listed}


def _window(request: web.Request) -> tuple[int, int]:
    """Which rows are wanted. `ValueError` for what is no number."""
    return max(0, int(request.query.get("offset", 0))), max(0, int(request.query.get("limit", LIMIT)))


def _span(seconds: float) -> str:
    """Such as ``1m29s``."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
