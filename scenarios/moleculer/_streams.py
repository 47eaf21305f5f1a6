"""Streams by hand: the packets of an upload and of a download, in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.clients.adapter.messages import same_body
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Packet, Request
from scenarios.moleculer._steps import (
    request,
    respond,
    until,
)
from scenarios.moleculer._wire import (
    came,
)

ERROR = {"name": "MoleculerError", "message": "the source broke", "code": 500, "nodeID": "peer"}


def buffer(data: bytes) -> dict[str, Any]:
    """Bytes as packets in JSON have them."""
    return {"type": "Buffer", "data": list(data)}


def kibibytes(count: int) -> list[bytes]:
    """So many chunks of 1 KiB, no two alike."""
    return [hashlib.sha256(b"%d" % number).digest() * 32 for number in range(count)]


def version_of(broker: Moleculer) -> Any:
    """The protocol that the client speaks, by its first packet; None if it has sent none."""
    return next((packet.ver for record, packet in broker.packets() if record.tap & Tap.RECEIVED), None)


class Upload:
    """An upload of a peer to an action of the client, packet by packet.

    Args:
        chunks: Bytes, or objects with `object_mode`.
    """

    def __init__(
        self, broker: Moleculer, node: Node, action: str, chunks: Sequence[Any], *, object_mode: bool = False
    ) -> None:
        self.id = node.core.new_id()
        self._node = node
        self._broker = broker
        self._action = action
        self._chunks = chunks
        self._flags = {"$streamObjectMode": True} if object_mode else {}

    @property
    def end(self) -> int:
        """The number of the end packet."""
        return len(self._chunks) + 1

    def send(self, *order: int) -> None:
        """Send the packets with these numbers: 0 opens, 1 is the first chunk, `end` ends."""
        for seq in order:
            chunk = self._chunks[seq - 1] if 0 < seq < self.end else None
            params = buffer(chunk) if isinstance(chunk, bytes) else chunk
            self._packet(seq, seq < self.end, params, {})

    def fail(self, seq: int) -> None:
        """The end packet with an error."""
        self._packet(seq, False, None, {"$streamError": ERROR})

    def _packet(self, seq: int, more: bool, params: Any, flags: Mapping[str, Any]) -> None:
        is_old = version_of(self._broker) == "4"
        where = {**self._flags, **flags}
        fields: dict[str, Any] = {"meta": where} if is_old else {"meta": {}, "headers": where}
        request(self._node, self._action, params, id=self.id, stream=more, seq=seq, **fields)

    async def answers(self, count: int = 1, within_s: float = 2.0) -> list[Any]:
        """The RESPONSEs to it, as soon as there are `count`."""
        found = await came(self._broker, "Response", count=count, within_s=within_s, where=self._is_mine)
        return [packet for _, packet in found]

    def _is_mine(self, packet: Any) -> bool:
        return bool(packet.id == self.id)


class Download:
    """A stream as the answer to a request, packet by packet."""

    def __init__(
        self, node: Node, asked: Request, chunks: Sequence[Any], *, object_mode: bool = False
    ) -> None:
        self._node = node
        self._asked = asked
        self._chunks = chunks
        self._flags = {"$streamObjectMode": True} if object_mode else {}

    @property
    def end(self) -> int:
        """The number of the end packet."""
        return len(self._chunks) + 1

    def send(self, *order: int) -> None:
        """Send the packets with these numbers, as `Upload.send`."""
        for seq in order:
            chunk = self._chunks[seq - 1] if 0 < seq < self.end else None
            data = buffer(chunk) if isinstance(chunk, bytes) else chunk
            self._packet(seq, seq < self.end, data=data)

    def fail(self, seq: int) -> None:
        """The end packet with an error."""
        self._packet(seq, False, success=False, data=None, error=ERROR)

    def _packet(self, seq: int, more: bool, **fields: Any) -> None:
        is_old = self._asked.ver == "4"
        flags: dict[str, Any] = {"meta": self._flags} if is_old else {"meta": {}, "headers": self._flags}
        respond(self._node, self._asked, stream=more, seq=seq, **flags, **fields)


def is_stream(found: Any, chunks: Iterable[bytes]) -> bool:
    """Whether what the adapter reports is a stream of these bytes."""
    return isinstance(found, Mapping) and "stream" in found and same_body(found["stream"], b"".join(chunks))


def reads(client: Client, **of: Any) -> int:
    """How many bytes of a stream were read: of a call (``id=``), or by a served action (``request=``)."""
    notes = [e for e in client.events if e.event == "note" and e["what"] == "read"]
    fitting = [e["bytes"] for e in notes if all(e[name] == value for name, value in of.items())]
    return max(fitting, default=0)


async def read_two(client: Client, expect: Expect, **of: Any) -> None:
    """Two chunks have been read: the reader is attached."""
    there = await until(lambda: reads(client, **of) >= 2 * 1024, 2.0)
    expect.exercised(
        there,
        f"two chunks were read, not {reads(client, **of)} bytes",
        id=slug("two-chunks-were-read-not-{}-bytes", reads(client, **of)),
    )


def uploaded(requests: Sequence[Packet]) -> tuple[bytes, list[int], bool]:
    """Of the REQUESTs of one upload: the bytes, the numbers in their order, and whether it has ended."""
    data, numbers, ended = [], [], False
    for each in requests:
        assert isinstance(each, Request)
        numbers.append(each.seq)
        if each.stream is True and each.seq:
            data.append(chunk_of(each))
        ended = ended or each.stream is False
    return b"".join(data), numbers, ended


def chunk_of(packet: Request) -> bytes:
    """The bytes of a chunk; none where it has none."""
    params: Any = packet.params
    listed = params.get("data") if isinstance(params, Mapping) else params
    return bytes(listed) if isinstance(listed, list | bytes) else b""


def failed_remotely(found: Any) -> bool:
    """Whether a RESPONSE, or what `ask` gave, is an error."""
    return isinstance(found, RemoteError) or getattr(found, "success", None) is False
