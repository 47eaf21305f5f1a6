"""Packets to topics and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.mesh import Mesh
from conformance.clients.reference.moleculer.serializers import serializer_of
from conformance.clients.reference.moleculer.settings import Settings
from conformance.clients.reference.moleculer.streams import limit_of

Json = dict[str, Any]


class Post:
    """Writes packets for the bus that is open at the moment, and reads those that come.

    Attributes:
        bus: None while there is none.
    """

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self.bus: Bus | Mesh | None = None
        self._runtime = runtime
        self._settings = settings
        self._serializer = serializer_of(runtime, settings.serializer)

    def new_id(self) -> str:
        """A UUID."""
        return str(UUID(int=self._runtime.random.getrandbits(128), version=4))

    def topic(self, *words: str) -> str:
        """Such as ``MOL.REQ.node-1``."""
        return ".".join([self._settings.prefix, *[word for word in words if word]])

    def send(self, command: str, rest: str, packet: Mapping[str, Any]) -> None:
        """Publish a packet. Raises `ClientError` (connection, invalid), definite."""
        if self.bus is None or not self.bus.is_open:
            raise ClientError("connection", "there is no transporter connection", definite=True)
        self.bus.publish(self.topic(command, rest), self.written(command, packet))

    def written(self, command: str, packet: Mapping[str, Any]) -> bytes:
        """The packet in bytes; in JSON `ver` and `sender` come last."""
        signed = {**packet, "ver": self._settings.version, "sender": self._settings.node_id}
        return self._serializer.write(command.removesuffix("B"), signed)

    async def drained(self) -> None:
        """More can follow."""
        if self.bus is not None:
            await self.bus.drained()

    @property
    def chunk_limit(self) -> int:
        """Bytes of a stream that fit into one packet."""
        return limit_of(None if self.bus is None else self.bus.codec.max_payload)

    def read(self, topic: str, payload: bytes) -> tuple[str, Json]:
        """The command of a topic, and its packet. Raises `ClientError` (protocol): it is none of ours."""
        head = f"{self._settings.prefix}."
        if not topic.startswith(head):
            raise ClientError("protocol", f"a foreign topic: {topic}")
        packet = self.parsed(topic.removeprefix(head).partition(".")[0], payload)
        if not isinstance(packet.get("sender"), str) or not packet["sender"]:
            raise ClientError("protocol", f"a packet without a sender on {topic}")
        return self.command_of(topic.removeprefix(head), packet), packet

    def command_of(self, words: str, packet: Json) -> str:
        """What kind of packet goes there."""
        return words.partition(".")[0]

    def parsed(self, command: str, payload: bytes) -> Json:
        """A packet of this version. Raises `ClientError` (protocol)."""
        try:
            packet = self._serializer.read(command.removesuffix("B"), payload)
        except (ValueError, KeyError, RecursionError) as error:
            raise ClientError("protocol", f"no {self._settings.serializer}: {error}") from None
        if not isinstance(packet, dict):
            raise ClientError("protocol", "a packet that is no object")
        if not self.speaks(packet.get("ver")):
            raise ClientError("protocol", f"a packet of version {packet.get('ver')!r}")
        return packet

    def speaks(self, version: Any) -> bool:
        """Whether that is the own version."""
        return bool(version == self._settings.version and isinstance(version, str))
