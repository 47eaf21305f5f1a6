"""Nodes that join, report themselves and listen to others with a defect."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.mesh import Mesh
from conformance.clients.reference.moleculer.ops import MoleculerOps
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.registry import Peer, Registry
from conformance.clients.reference.moleculer.serving import Service

Json = dict[str, Any]


class Corked(Bus):
    """Can hold back what is written, so that it leaves in one segment."""

    held: bytes | None = None

    def write(self, data: bytes) -> None:
        if self.held is None:
            super().write(data)
        else:
            self.held += data

    def uncork(self) -> None:
        """Write all that was held back."""
        held, self.held = self.held or b"", None
        self.write(held)


@mutant("subscribes-after-discover", tag="wire", breaks=["M1"])
class SubscribesAfterDiscover(MoleculerClient):
    """Asks who is there, and subscribes to what the answer comes on in the same segment.

    A server reads on before another node can answer: nothing is lost by it where the whole segment arrives.
    """

    def new_bus(self) -> Bus | Mesh:
        bus = super().new_bus()
        if isinstance(bus, Bus):
            return Corked(self.runtime, self.settings, self.hear, self.lost_bus)
        return bus

    async def enter(self, bus: Bus | Mesh) -> None:
        self.post.bus = bus
        if not isinstance(bus, Corked):
            await super().enter(bus)
            return
        bus.held = b""
        self.post.send("DISCOVER", "", {})
        for topic in self.topics():
            bus.write(bus.codec.subscribe(topic, ""))
        bus.uncork()
        await bus.synced()


@mutant("asks-once", tag="life-cycle", breaks=["M1"])
class AsksOnce(MoleculerClient):
    """Asks who is there when it joins, and no more after a loss."""

    has_asked = False

    async def enter(self, bus: Bus | Mesh) -> None:
        if self.has_asked:
            await bus.subscribe([(topic, "") for topic in self.topics()])
            self.post.bus = bus
        else:
            self.has_asked = True
            await super().enter(bus)


@mutant("deaf-to-ping-for-all", tag="wire", breaks=["M1"])
class DeafToPingForAll(MoleculerClient):
    """Does not subscribe to PING without its own id."""

    def topics(self) -> list[str]:
        return super().topics()[:-1]


@mutant("ignores-namespace", tag="wire", breaks=["M1"])
class IgnoresNamespace(Post):
    """Uses the topics without a namespace."""

    def topic(self, *words: str) -> str:
        return ".".join(["MOL", *[word for word in words if word]])


@mutant("never-tells-of-services", tag="wire", breaks=["M2"])
class NeverTellsOfServices(MoleculerClient):
    """Broadcasts no INFO."""

    async def report_all(self) -> None:
        """No service is reported."""


@mutant("tells-of-services-once", tag="wire", breaks=["M2"])
class TellsOfServicesOnce(MoleculerClient):
    """Broadcasts no INFO after the first one with a service."""

    reported = False

    async def report_all(self) -> None:
        if not self.reported:
            self.reported = bool(self.server.services)
            await super().report_all()


@mutant("deaf-to-discover", tag="wire", breaks=["M2"])
class DeafToDiscover(MoleculerClient):
    """Answers no DISCOVER."""

    def discovered(self, packet: Json) -> None:
        """Nothing is said."""


@mutant("seq-never-grows", tag="wire", breaks=["M2", "M9"])
class SeqNeverGrows(MoleculerClient):
    """Sends each INFO with the same seq."""

    def send_info(self, target: str, services: list[Json]) -> None:
        self.seq = 1
        super().send_info(target, services)


@mutant("info-before-the-start", tag="life-cycle", breaks=["M11"])
class InfoBeforeTheStart(MoleculerOps):
    """Reports a service while it still starts."""

    @kit.op("mol.serve")
    async def serve(self, session: str, service: str, actions: Any, start_delay_ms: float = 0) -> None:
        handlers = {name: self.handler(session, behaviour) for name, behaviour in actions.items()}
        self.session(session).serve(Service(service, handlers))
        await asyncio.sleep(start_delay_ms / 1000)


@mutant("demands-metadata", tag="wire", breaks=["M9"])
class DemandsMetadata(Registry):
    """Drops an INFO whose metadata is null."""

    def info(self, packet: Json, now: float) -> None:
        dict(packet["metadata"])
        super().info(packet, now)


@mutant("takes-any-version", tag="wire", breaks=["M9"])
class TakesAnyVersion(Post):
    """Reads packets of all versions."""

    def speaks(self, version: Any) -> bool:
        return True


@mutant("conflict-takes-the-services", tag="data", breaks=["M9"])
class ConflictTakesTheServices(MoleculerClient):
    """Loses its services to another node with its id, and goes on."""

    def conflict(self) -> None:
        self.server.services.clear()


@mutant("discovers-itself", tag="wire", breaks=["M9"])
class DiscoversItself(MoleculerClient):
    """Answers its own DISCOVER."""

    def counts(self, command: str, packet: Json) -> bool:
        return command == "DISCOVER" or super().counts(command, packet)


@mutant("services-only-grow", tag="data", breaks=["M2"])
class ServicesOnlyGrow(Registry):
    """Keeps services that an INFO does not list any more."""

    def info(self, packet: Json, now: float) -> None:
        peer = self.peers.get(packet["sender"], Peer(""))
        before = [each for each in peer.services if peer.available]
        super().info(packet, now)
        peer = self.peers[packet["sender"]]
        peer.services = [*peer.services, *[each for each in before if each not in peer.services]]


@mutant("drops-large-packets", tag="data", breaks=["M9"])
class DropsLargePackets(Post):
    """Reads no packet of more than 1 MiB."""

    def parsed(self, command: str, payload: bytes) -> Json:
        if len(payload) > 1 << 20:
            raise ClientError("protocol", "too large")
        return super().parsed(command, payload)


@mutant("dies-of-broken-packets", tag="life-cycle", breaks=["M9"])
class DiesOfBrokenPackets(MoleculerClient):
    """Leaves the bus when it cannot read a packet."""

    def hear(self, topic: str, payload: bytes) -> None:
        try:
            self.post.read(topic, payload)
        except ClientError:
            self.abort()
        super().hear(topic, payload)


@mutant("goes-by-content", tag="wire", breaks=["M1"])
class GoesByContent(Post):
    """Takes every packet with an action for a REQUEST, whatever its topic."""

    def command_of(self, words: str, packet: Json) -> str:
        return "REQ" if "action" in packet else super().command_of(words, packet)


@mutant("gives-up-without-a-server", tag="life-cycle", breaks=["M1", "M2"])
class GivesUpWithoutAServer(MoleculerClient):
    """Does not wait for a server that is not there yet."""

    def is_final(self, error: ClientError) -> bool:
        return True


@mutant("subscribes-half-again", tag="life-cycle", breaks=["M1", "M2"])
class SubscribesHalfAgain(MoleculerClient):
    """Forgets most of its topics when it connects again."""

    is_again = False

    def topics(self) -> list[str]:
        return super().topics()[:3] if self.is_again else super().topics()

    async def rejoin(self) -> None:
        self.is_again = True
        await super().rejoin()


@mutant("hears-double-after-a-loss", tag="data", breaks=["M5"])
class HearsDoubleAfterALoss(MoleculerClient):
    """Handles each packet once more for every time that it has connected again."""

    copies = 1

    def hear(self, topic: str, payload: bytes) -> None:
        for _ in range(self.copies):
            super().hear(topic, payload)

    async def rejoin(self) -> None:
        await super().rejoin()
        self.copies += 1


@mutant("strings-become-values", tag="data", breaks=["M9"])
class StringsBecomeValues(Post):
    """Takes strings that begin with a tag of JSONExt for other values."""

    def parsed(self, command: str, payload: bytes) -> Json:
        found: Json = json.loads(payload) if b"[[" in payload else super().parsed(command, payload)
        if b"[[" in payload:
            found = json.loads(payload, object_hook=_untagged)
        return found


def _untagged(found: Json) -> Json:
    return {key: value[6:] if str(value).startswith("[[") else value for key, value in found.items()}


@mutant("dots-become-levels", tag="data", breaks=["M9"])
class DotsBecomeLevels(Post):
    """Writes a key with a dot as an object in an object."""

    def written(self, command: str, packet: Any) -> bytes:
        params = packet.get("params")
        if isinstance(params, dict) and any("." in key for key in params):
            nested = {key.partition(".")[0]: {key.partition(".")[2]: value} for key, value in params.items()}
            packet = {**packet, "params": nested}
        return super().written(command, packet)


@mutant("writes-latin-letters-only", tag="data", breaks=["M9"])
class WritesLatinLettersOnly(Post):
    """Replaces letters that Latin-1 does not have."""

    def written(self, command: str, packet: Any) -> bytes:
        data = super().written(command, packet)
        is_text = data.startswith(b"{")
        return data.decode().encode("latin-1", "replace").decode("latin-1").encode() if is_text else data


@mutant("instances-do-not-count", tag="life-cycle", breaks=["M4"])
class InstancesDoNotCount(Registry):
    """Takes the INFO of another instance for old while its number is not higher."""

    def counts(self, peer: Peer, seq: int, instance: Any) -> bool:
        return not peer.available or seq > peer.seq
