"""Questions whether a node answers."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.registry import Registry

Json = dict[str, Any]
DEFAULT_S = 2.0


class Round:
    """A ping of all nodes.

    Attributes:
        took: Seconds until the PONG of each; None while there is none.
        complete: All have answered.
    """

    def __init__(self, nodes: list[str], begun: float) -> None:
        self.took: dict[str, float | None] = dict.fromkeys(nodes)
        self.complete = asyncio.Event()
        self._begun = begun
        self.check()

    def answered(self, node: str, now: float) -> None:
        """A PONG came; a second one of the same node changes nothing."""
        if self.took.get(node) is None:
            self.took[node] = now - self._begun
        self.check()

    def check(self) -> None:
        """See whether somebody is missing."""
        if None not in self.took.values():
            self.complete.set()


class Pings:
    """Both ways of pings."""

    def __init__(self, runtime: Runtime, post: Post, registry: Registry) -> None:
        self._runtime = runtime
        self._post = post
        self._registry = registry
        self._waiting: dict[str, tuple[str, asyncio.Future[Json]]] = {}
        self._rounds: dict[str, Round] = {}

    @property
    def pending(self) -> int:
        """Pings without an answer, of one node or of all."""
        return len(self._waiting) + len(self._rounds)

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

    async def ping_all(self, timeout: float | None) -> dict[str, float | None]:
        """The seconds until each node that is there has answered, None for those that do not.

        Raises:
            ClientError: connection.
        """
        id = self._post.new_id()
        nodes = [each.id for each in self._registry if each.available and each.id != self._registry.own]
        asked = self._rounds[id] = self._runtime.part(Round)(nodes, self._runtime.clock.now())
        try:
            self._post.send("PING", "", {"time": self.wall_ms(), "id": id})
            async with asyncio.timeout(DEFAULT_S if timeout is None else timeout):
                await asked.complete.wait()
        except TimeoutError:
            pass  # the silent ones have no time
        finally:
            del self._rounds[id]
        return asked.took

    def end(self) -> None:
        """The node is stopped: nobody gets an answer any more."""
        stopped = ClientError("closed", "the node was stopped", definite=False)
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(stopped)
        for asked in self._rounds.values():
            asked.complete.set()

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
        asked = self._rounds.get(str(packet.get("id")))
        if asked is not None:
            asked.answered(packet["sender"], self._runtime.clock.now())
        waiting = self.match(packet)
        if waiting is not None and not waiting.done():
            waiting.set_result(packet)

    def match(self, packet: Json) -> asyncio.Future[Json] | None:
        """The ping that a PONG answers."""
        node, future = self._waiting.get(str(packet.get("id")), ("", None))
        return future if node == packet["sender"] else None
