"""Questions whether a node answers."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.reference.kit import ClientError, Runtime
from conformance.reference.moleculer.post import Post

Json = dict[str, Any]
DEFAULT_S = 2.0


class Pings:
    """Both ways of pings."""

    def __init__(self, runtime: Runtime, post: Post) -> None:
        self._runtime = runtime
        self._post = post
        self._waiting: dict[str, tuple[str, asyncio.Future[Json]]] = {}

    async def ping(self, node: str, timeout: float | None) -> tuple[Json, float]:
        """The PONG, and the seconds until it came. Raises `ClientError` (timeout, connection)."""
        id = self._post.new_id()
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[id] = (node, future)
        begun = self._runtime.clock.now()
        try:
            self._post.send("PING", node, {"time": self.wall_ms(), "id": id})
            async with asyncio.timeout(DEFAULT_S if timeout is None else timeout):
                pong = await future
        except TimeoutError:
            raise ClientError("timeout", f"no PONG of {node}") from None
        finally:
            self._waiting.pop(id, None)
        return pong, self.round_trip(begun, pong)

    def round_trip(self, begun: float, pong: Json) -> float:
        """Seconds, by the own clock alone."""
        return self._runtime.clock.now() - begun

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return round(self._runtime.clock.wall() * 1000)

    def asked(self, packet: Json) -> None:
        """A PING came."""
        answer = {"time": packet.get("time"), "arrived": self.wall_ms()}
        if packet.get("id") is not None:
            answer["id"] = packet["id"]
        self._post.send("PONG", packet["sender"], answer)

    def answered(self, packet: Json) -> None:
        """A PONG came: it counts for the ping with its id."""
        waiting = self.match(packet)
        if waiting is not None and not waiting.done():
            waiting.set_result(packet)

    def match(self, packet: Json) -> asyncio.Future[Json] | None:
        """The ping that a PONG answers."""
        node, future = self._waiting.get(str(packet.get("id")), ("", None))
        return future if node == packet["sender"] else None
