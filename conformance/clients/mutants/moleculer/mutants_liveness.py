"""Nodes that are wrong about who lives."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.pings import Pings, Round
from conformance.clients.reference.moleculer.registry import Peer, Registry
from conformance.clients.reference.moleculer.settings import STOP_DELAY_S

Json = dict[str, Any]


@mutant("beats-half-as-often", tag="life-cycle", breaks=["M3"])
class BeatsHalfAsOften(MoleculerClient):
    """Waits two intervals before each heartbeat."""

    async def heartbeats(self) -> None:
        while True:
            await asyncio.sleep(2 * self.settings.heartbeat_s)
            self.post.send("HEARTBEAT", "", {"cpu": 0})


@mutant("waits-for-the-dead", tag="life-cycle", breaks=["M4"])
class WaitsForTheDead(Registry):
    """Never misses a heartbeat."""

    def silent(self, since: float) -> list[str]:
        return []


@mutant("impatient", tag="life-cycle", breaks=["M4", "X3"])
class MoleculerImpatient(MoleculerClient):
    """Gives a peer up after half the time."""

    async def sweeps(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            limit = self.runtime.clock.now() - self.settings.heartbeat_timeout_s / 2
            for peer in self.registry.silent(limit):
                self.gone(peer)


@mutant("heartbeat-revives", tag="data", breaks=["M2", "M4"])
class HeartbeatRevives(Registry):
    """Takes a peer that was gone as back with its first heartbeat."""

    def heartbeat(self, packet: Json, now: float) -> bool:
        peer = self.peers.get(packet["sender"])
        if peer is not None and not peer.available:
            peer.available = True
        return super().heartbeat(packet, now)


@mutant("ignores-strangers", tag="wire", breaks=["M2"])
class IgnoresStrangers(MoleculerClient):
    """Does not ask an unknown node who it is."""

    def beaten(self, packet: Json) -> None:
        if packet["sender"] in self.registry.peers:
            super().beaten(packet)


@mutant("asks-at-plain-heartbeats", tag="wire", breaks=["M2", "M3"])
class AsksAtPlainHeartbeats(Registry):
    """Takes a heartbeat without a seq for one with a new seq."""

    def is_outdated(self, peer: Peer, packet: Json) -> bool:
        return packet.get("seq") != peer.seq


@mutant("asks-again-and-again", tag="wire", breaks=["M4"])
class AsksAgainAndAgain(MoleculerClient):
    """Sends a DISCOVER for every heartbeat."""

    def beaten(self, packet: Json) -> None:
        super().beaten(packet)
        self.post.send("DISCOVER", packet["sender"], {})


@mutant("deaf-to-disconnect", tag="data", breaks=["M8"])
class DeafToDisconnect(MoleculerClient):
    """Does not notice that a peer stops."""

    def left(self, packet: Json) -> None:
        """Nothing is done."""


@mutant("leaves-without-a-word", tag="life-cycle", breaks=["M8", "M12"])
class LeavesWithoutAWord(MoleculerClient):
    """Sends no DISCONNECT."""

    async def send_close(self, patience_s: float) -> None:
        self.seq += 1
        self.send_info("", [])
        await asyncio.sleep(STOP_DELAY_S)
        if self.post.bus is not None:
            self.post.bus.close()


@mutant("answers-behind-its-goodbye", tag="life-cycle", breaks=["M8", "M12"])
class AnswersBehindItsGoodbye(MoleculerClient):
    """Says DISCONNECT before it ends what runs."""

    async def send_close(self, patience_s: float) -> None:
        self.post.send("DISCONNECT", "", {})
        await self.server.finished(patience_s)
        await super().send_close(patience_s)


@mutant("deaf-while-stopping", tag="life-cycle", breaks=["M12"])
class DeafWhileStopping(MoleculerClient):
    """Drops the requests that come while it stops."""

    async def send_close(self, patience_s: float) -> None:
        self._handlers["REQ"] = lambda packet: None
        await super().send_close(patience_s)


@mutant("pong-without-time", tag="wire", breaks=["M7"])
class PongWithoutTime(Pings):
    """Answers a PING without the time in it."""

    def asked(self, packet: Json) -> None:
        super().asked({**packet, "time": None})


@mutant("keeps-old-pongs", tag="data", breaks=["M7"])
class KeepsOldPongs(Pings):
    """Takes a PONG that came before for the answer to the next ping."""

    kept: Json | None = None

    def answered(self, packet: Json) -> None:
        if self.match(packet) is None:
            self.kept = packet
        super().answered(packet)

    async def ping(self, node: str, timeout: float | None) -> tuple[Json, float]:
        kept, self.kept = self.kept, None
        if kept is not None:
            self._post.send("PING", node, {"time": self.wall_ms(), "id": self._post.new_id()})
            return kept, 0.0
        return await super().ping(node, timeout)


@mutant("pings-stay-under-way", tag="life-cycle", breaks=["X8"])
class PingsStayUnderWay(Pings):
    """Keeps each ping among those that wait for an answer."""

    async def ping(self, node: str, timeout: float | None) -> tuple[Json, float]:
        try:
            return await super().ping(node, timeout)
        finally:
            answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
            answered.cancel()
            self._waiting[self._post.new_id()] = node, answered


@mutant("pings-for-ever", tag="life-cycle", breaks=["M7"])
class PingsForEver(Pings):
    """Waits for a PONG without end."""

    async def ping(self, node: str, timeout: float | None) -> tuple[Json, float]:
        return await super().ping(node, 3600.0)

    async def ping_all(self, timeout: float | None) -> dict[str, float | None]:
        return await super().ping_all(3600.0)


@mutant("round-trip-by-two-clocks", tag="data", breaks=["M7"])
class RoundTripByTwoClocks(Pings):
    """Measures a ping with the clock of the other node."""

    def round_trip(self, begun: float, pong: Json) -> float:
        return float(pong["arrived"] - pong["time"]) / 1000


@mutant("first-pong-is-all", tag="data", breaks=["M7"])
class FirstPongIsAll(Round):
    """Ends a ping of all nodes when the first has answered."""

    def check(self) -> None:
        if any(self.took.values()):
            self.complete.set()


@mutant("one-round-trip-for-all", tag="data", breaks=["M7"])
class OneRoundTripForAll(Round):
    """Reports the last round trip of a ping of all nodes for each that has answered."""

    def answered(self, node: str, now: float) -> None:
        super().answered(node, now)
        last = self.took[node]
        self.took.update({id: last for id, took in self.took.items() if took is not None})


@mutant("looks-after-the-last-heard", tag="life-cycle", breaks=["M4"])
class LooksAfterTheLastHeard(Registry):
    """Looks for silent nodes when the one that was heard last would be one."""

    def heard_since(self, now: float) -> float:
        return max((p.heard_at for p in self if p.available and p.id != self.own), default=now)
