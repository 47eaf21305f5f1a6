"""Messages of the sequences by which a fake BlazingMQ is compared with a real broker."""

from __future__ import annotations

from random import Random

import msgspec

from fakebrokers.blazingmq.codes import UNSET_GUID, Compression, PutFlag
from fakebrokers.blazingmq.frames import PutMessage
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, Style, write_content
from fakebrokers.core.dialect import MARK
from fakebrokers.extras import needs

with needs("blazingmq", "the fake BlazingMQ"):
    from crc32c import crc32c

_SETS: tuple[dict[str, Property], ...] = (
    {"n": Property(PropertyType.INT32, 1)},
    {"n": Property(PropertyType.INT64, -1), "s": Property(PropertyType.STRING, "a")},
    {"b": Property(PropertyType.BINARY, b"\0\1"), "s": Property(PropertyType.STRING, "b")},
    {"f": Property(PropertyType.BOOL, True), "n": Property(PropertyType.SHORT, 7)},
)


class Posts:
    """Makes messages, and remembers them.

    Attributes:
        guids: Of messages of clients that make them.
        latest: The last such message.
    """

    def __init__(self, random: Random) -> None:
        self.guids: list[bytes] = []
        self.latest: PutMessage | None = None
        self._random = random
        self._count = 0
        self._schemas: set[int] = set()

    def message(self, q_id: int, *, makes_guids: bool) -> PutMessage:
        """A message for a queue, by a client that makes GUIDs or counts."""
        if makes_guids and self.latest is not None and self._random.random() < 0.06:
            return msgspec.structs.replace(self.latest, queue_id=q_id)
        self._count += 1
        data, flags, schema_id, compression = self._content()
        if self._random.random() < 0.7:
            flags |= PutFlag.ACK_REQUESTED
        if makes_guids:
            guid = b"\x40" + self._count.to_bytes(15)
            self.guids.append(guid)
            if self._random.random() < 0.01:
                guid = UNSET_GUID
        else:
            correlation = self._count if flags & PutFlag.ACK_REQUESTED else 0
            guid = b"\0" + correlation.to_bytes(3) + bytes(12)
        found = PutMessage(q_id, guid, data, int(flags), crc32c(data), schema_id, compression)
        if makes_guids:
            self.latest = found
        return found

    def number(self, guid: bytes) -> int:
        """Which message it was."""
        return int.from_bytes(guid[1:])

    def text(self, message: PutMessage) -> str:
        """For tables."""
        ack = " with ACK" if message.flags & PutFlag.ACK_REQUESTED else ""
        style = f" schema {message.schema_id}" if message.has_properties else ""
        return f"{self.number(message.guid)} ({len(message.data)} bytes{style}){ack}"

    def _content(self) -> tuple[bytes, int, int, int]:
        """Data, flags, schema id and compression."""
        size = self._random.choice([0, 0, 0, 50, 2000])
        payload = f"{MARK} {self._count} ".encode() + b"." * size
        compression = Compression.ZLIB if size and self._random.random() < 0.3 else Compression.NONE
        if self._random.random() < 0.6:
            return write_content(Content(payload), Style.OLD, compression), 0, 0, compression
        which = self._random.randrange(len(_SETS))
        style = self._random.choice([Style.OLD, Style.NEW, Style.NEW])
        data = write_content(Content(payload, _SETS[which]), style, compression)
        if style is Style.OLD:
            return data, PutFlag.MESSAGE_PROPERTIES, 0, compression
        is_new = which not in self._schemas or self._random.random() < 0.1
        self._schemas.add(which)
        schema_id = self._random.choice([1, (which + 1) << 1 | is_new])
        return data, PutFlag.MESSAGE_PROPERTIES, schema_id, compression
