"""Big-endian wire primitives that the binary protocols share.

A `Reader` walks over one frame and raises `WireError` with the place when the bytes run out;
the ``pack_*`` functions build what it reads. Lengths are those of RabbitMQ Stream
(docs/protocols/rabbitmq-stream.md, 2): strings carry a u16, byte blocks and arrays a u32; all bits set
means null. Text is UTF-8; bytes that are none come out as lone surrogates (``surrogateescape``) and go back
unchanged, since brokers treat names as opaque bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct, pack, unpack_from
from typing import TypeVar

from fakebrokers.errors import WireError

T = TypeVar("T")

_U16 = Struct(">H")
_U32 = Struct(">I")
_U64 = Struct(">Q")
_I64 = Struct(">q")

NULL_STRING = 0xFFFF
NULL_BYTES = 0xFFFFFFFF
NULL_ARRAY = 0xFFFFFFFF


class Reader:
    """Reads one frame from left to right."""

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: bytes, pos: int = 0, end: int | None = None) -> None:
        self.data = data
        self.pos = pos
        self.end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """Bytes that have not been read yet."""
        return self.end - self.pos

    def _advance(self, size: int, what: str) -> int:
        start = self.pos
        if size > self.end - start:
            raise WireError(f"{what} of {size} bytes", f"{self.end - start} bytes", start)
        self.pos = start + size
        return start

    def u8(self) -> int:
        return self.data[self._advance(1, "u8")]

    def u16(self) -> int:
        return int(_U16.unpack_from(self.data, self._advance(2, "u16"))[0])

    def u32(self) -> int:
        return int(_U32.unpack_from(self.data, self._advance(4, "u32"))[0])

    def u64(self) -> int:
        return int(_U64.unpack_from(self.data, self._advance(8, "u64"))[0])

    def i64(self) -> int:
        return int(_I64.unpack_from(self.data, self._advance(8, "i64"))[0])

    def take(self, size: int) -> bytes:
        """The next `size` bytes as they are."""
        start = self._advance(size, "block")
        return self.data[start : self.pos]

    def counted(self) -> bytes:
        """A u16 length, and so many bytes."""
        start = self.pos + _U16.size
        if start <= self.end:
            stop: int = start + _U16.unpack_from(self.data, self.pos)[0]
            if stop <= self.end:
                self.pos = stop
                return self.data[start:stop]
        return self.take(self.u16())  # which says what is missing

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(self.left)

    def string(self) -> str | None:
        """A u16 length and UTF-8 bytes; None for length 0xFFFF."""
        size = self.u16()
        if size == NULL_STRING:
            return None
        start = self._advance(size, "string")
        return self.data[start : self.pos].decode(errors="surrogateescape")

    def text(self) -> str:
        """A string where null means the empty one."""
        return self.string() or ""

    def blob(self) -> bytes | None:
        """A u32 length and bytes; None for length 0xFFFFFFFF."""
        size = self.u32()
        return None if size == NULL_BYTES else self.take(size)

    def array(self, read: Callable[[], T], smallest: int = 1) -> tuple[T, ...]:
        """A u32 count and that many items, each of at least `smallest` bytes; null means empty."""
        at = self.pos
        count = self.u32()
        if count == NULL_ARRAY:
            return ()
        if count * smallest > self.left:
            raise WireError(f"{count} items of {smallest} bytes or more", f"{self.left} bytes", at)
        return tuple([read() for _ in range(count)])

    def map(self) -> dict[str, str]:
        """A u32 count and that many pairs of strings."""
        return dict(self.array(lambda: (self.text(), self.text()), smallest=4))

    def finish(self) -> None:
        """Demand that nothing is left."""
        if self.pos < self.end:
            raise WireError("the end of the frame", f"{self.left} more bytes", self.pos)


def pack_string(value: str | None) -> bytes:
    """A u16 length and UTF-8 bytes. At most 65534 bytes, else `WireError`."""
    if value is None:
        return b"\xff\xff"
    data = value.encode(errors="surrogateescape")
    if len(data) >= NULL_STRING:
        raise WireError(f"a string of at most {NULL_STRING - 1} bytes", f"{len(data)} bytes")
    return _U16.pack(len(data)) + data


def pack_bytes(value: bytes | None) -> bytes:
    """A u32 length and bytes."""
    return b"\xff\xff\xff\xff" if value is None else _U32.pack(len(value)) + value


def pack_map(pairs: Mapping[str, str]) -> bytes:
    """A u32 count and the pairs in the order given."""
    body = b"".join([pack_string(key) + pack_string(value) for key, value in pairs.items()])
    return _U32.pack(len(pairs)) + body


def pack_ids(ids: Sequence[int]) -> bytes:
    """Publishing ids as `Publish` and `PublishConfirm` hold them: one big-endian u64 each."""
    return pack(f">{len(ids)}Q", *ids)


def unpack_ids(packed: bytes) -> tuple[int, ...]:
    """The counterpart of `pack_ids`."""
    return unpack_from(f">{len(packed) // 8}Q", packed)
