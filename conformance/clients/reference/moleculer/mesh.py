"""The TCP transporter: nodes talk to each other, and gossip tells them of each other.

See docs/protocols/moleculer.md, 6.4. To the node it looks like a `Bus`: what gossip tells comes as INFO and
DISCONNECT, and what is for all nodes is not sent at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime, Wire
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.moleculer.serializers import serializer_of
from conformance.clients.reference.moleculer.settings import Settings

Json = dict[str, Any]

GOSSIP_S = 0.5
HEADER = 6  #: bytes: checksum, length, type
FRAME_MAX = 1 << 20
TYPES = {
    1: "EVENT",
    2: "REQ",
    3: "RES",
    4: "PING",
    5: "PONG",
    6: "GOSSIP_REQ",
    7: "GOSSIP_RES",
    8: "GOSSIP_HELLO",
}
NUMBERS = {word: number for number, word in TYPES.items()}


def frame(kind: int, body: bytes) -> bytes:
    """One frame."""
    head = (HEADER + len(body)).to_bytes(4, "big") + bytes([kind])
    checksum = 0
    for byte in head:
        checksum ^= byte
    return bytes([checksum]) + head + body


class FrameReader:
    """Frames out of bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Types and bodies. Raises `ClientError` (protocol)."""
        self._buffer += data
        found = []
        while len(self._buffer) >= HEADER:
            size = int.from_bytes(self._buffer[1:5], "big")
            if frame(self._buffer[5], bytes(max(0, size - HEADER)))[:1] != self._buffer[:1] or size < HEADER:
                raise ClientError("protocol", "a frame with a wrong checksum")
            if len(self._buffer) < size:
                break
            found.append((self._buffer[5], bytes(self._buffer[HEADER:size])))
            del self._buffer[:size]
        return found


class Heard(asyncio.Protocol):
    """A connection that another node has opened: it speaks."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._reader = mesh.runtime.part(FrameReader)()
        self._wire: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = transport
        self._mesh.incoming.add(transport)

    def data_received(self, data: bytes) -> None:
        try:
            for kind, body in self._reader.feed(data):
                self._mesh.take(TYPES.get(kind, ""), body)
        except ClientError:
            if self._wire is not None:
                self._wire.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._mesh.incoming.discard(self._wire)


class Spoken(asyncio.Protocol):
    """A connection that this node has opened: the other one says nothing on it."""

    def __init__(self, mesh: Mesh, peer: str) -> None:
        self._mesh = mesh
        self._peer = peer
        self.writable = asyncio.Event()
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        self._mesh.hung_up(self._peer)


class NoCodec:
    """There is no server with limits and subscriptions."""

    max_payload: int | None = FRAME_MAX - HEADER

    def unsubscribe_balanced(self) -> bytes:
        """There is nobody who balances."""
        return b""


class Mesh:
    """See the module's text.

    Args:
        info: The node's own INFO.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        heard: Callable[[str, bytes], None],
        info: Callable[[], Json],
    ) -> None:
        self.codec = NoCodec()
        self.incoming: OrderedSet[Any] = OrderedSet()
        self.is_open = False
        self.is_joined = False
        self.runtime = runtime
        self._settings = settings
        self._serializer = serializer_of(runtime, settings.serializer)
        self._heard = heard
        self._info = info
        self._addresses: dict[str, str] = {}
        self._lines: dict[str, tuple[Wire, Spoken]] = {}
        self._seqs: dict[str, int] = {}  #: of the nodes that are online
        self._server: asyncio.Server | None = None
        for url in settings.endpoints:
            place, _, id = url.removeprefix("tcp://").partition("/")
            self._addresses[id] = place

    async def open(self) -> None:
        """Listen, and ask those that are named."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Heard(self), "127.0.0.1", 0)
        self.is_open = True
        self.runtime.tasks.spawn(self._rounds())

    async def subscribe(self, topics: list[tuple[str, str]]) -> None:
        """Everything that comes is for this node."""

    async def drained(self) -> None:
        """What was sent is on its way."""
        for _, line in list(self._lines.values()):
            await line.writable.wait()

    def write(self, data: bytes) -> None:
        """There is nobody to tell."""

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a packet to the node that its topic names. Raises `ClientError` (connection, invalid)."""
        command, _, target = topic.removeprefix(f"{self._settings.prefix}.").partition(".")
        if not target or command not in NUMBERS:
            return
        if len(payload) > FRAME_MAX - HEADER:
            raise ClientError("invalid", f"{len(payload)} bytes are more than nodes take")
        if target == self._settings.node_id:
            self._heard(topic, payload)
        elif target in self._lines:
            self._lines[target][0].write(frame(NUMBERS[command], payload))
        else:
            self.runtime.tasks.spawn(self._dial_and_send(target, frame(NUMBERS[command], payload)))

    async def _dial_and_send(self, peer: str, data: bytes) -> None:
        try:
            (await self._line(peer)).write(data)
        except (OSError, KeyError):
            self.hung_up(peer)

    async def _line(self, peer: str) -> Wire:
        if peer not in self._lines:
            line = Spoken(self, peer)
            wire = await self.runtime.network.dial(self._addresses[peer], lambda: line)
            if peer in self._lines:  # another task was quicker
                wire.close()
                return self._lines[peer][0]
            self._lines[peer] = (wire, line)
            wire.write(self._packet("GOSSIP_HELLO", {"host": "127.0.0.1", "port": self.port}))
        return self._lines[peer][0]

    def _packet(self, command: str, packet: Json) -> bytes:
        signed = {**packet, "ver": self._settings.version, "sender": self._settings.node_id}
        return frame(NUMBERS[command], self._serializer.write(command, signed))

    @property
    def port(self) -> int:
        """Where this node listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    # gossip

    async def _rounds(self) -> None:
        while True:
            for peer in list(self._addresses):
                await self._dial_and_send(peer, self._packet("GOSSIP_REQ", {"online": self._online()}))
            await asyncio.sleep(GOSSIP_S)

    def _online(self) -> Json:
        own = {self._settings.node_id: [self._info()["seq"], 1, 0]}
        return own | {id: [seq, 0, 0] for id, seq in self._seqs.items()}

    def take(self, command: str, body: bytes) -> None:
        """One frame of another node."""
        if not command.startswith("GOSSIP"):
            if command:
                self._heard(f"{self._settings.prefix}.{command}.{self._settings.node_id}", body)
            return
        try:
            packet = self._serializer.read(command, body)
            handler = {"GOSSIP_HELLO": self._hello, "GOSSIP_REQ": self._asked, "GOSSIP_RES": self._learn}
            handler[command](packet)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.runtime.callbacks.trouble("decode", ClientError("protocol", f"{command}: {error!r}"))

    def _hello(self, packet: Json) -> None:
        self._addresses[packet["sender"]] = f"127.0.0.1:{packet['port']}"

    def _asked(self, packet: Json) -> None:
        own = self._info()
        row = (packet.get("online") or {}).get(self._settings.node_id)
        is_gone = self._settings.node_id in (packet.get("offline") or {})
        if is_gone or not isinstance(row, list) or row[0] < own["seq"]:
            reported = {self._settings.node_id: [{**own, "port": self.port}, 1, 0]}
            answer = self._packet("GOSSIP_RES", {"online": reported})
            self.runtime.tasks.spawn(self._dial_and_send(packet["sender"], answer))

    def _learn(self, packet: Json) -> None:
        for id, row in (packet.get("online") or {}).items():
            if id != self._settings.node_id and len(row) == 3:
                info = row[0]
                self._seqs[id] = info.get("seq", 1)
                self._addresses.setdefault(id, f"127.0.0.1:{info.get('port')}")
                self._reported("INFO", {**info, "sender": id})
        for id in packet.get("offline") or {}:
            if self._seqs.pop(id, None) is not None:
                self._reported("DISCONNECT", {"sender": id})

    def _reported(self, command: str, packet: Json) -> None:
        payload = self._serializer.write(command, {**packet, "ver": self._settings.version})
        self._heard(f"{self._settings.prefix}.{command}", payload)

    def hung_up(self, peer: str) -> None:
        """A connection to a node is gone, and so is the node until it shows again."""
        self._lines.pop(peer, None)
        if self._seqs.pop(peer, None) is not None and self.is_open:
            self._reported("DISCONNECT", {"sender": peer})

    # the end

    def close(self) -> None:
        """Leave."""
        self.abort()

    def abort(self) -> None:
        """Drop everything."""
        self.is_open = False
        if self._server is not None:
            self._server.close()
        for wire, _ in list(self._lines.values()):
            wire.close()
        for transport in list(self.incoming):
            transport.close()
