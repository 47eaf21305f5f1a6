"""Bytes to frames and back, for both sides of a connection (docs/protocols/rabbitmq-stream.md, 2 and 3).

A server reads as strictly as RabbitMQ 4.3.6; a client skips bytes after what it knows, as every
well-made client does. What cannot be read comes out as `Malformed` with one of these codes:

    too-large   size prefix above `max_frame`; nothing after it is read any more
    empty       a frame of size 0 or 1
    unknown     key, version or shape that the receiver does not know: a server answers Close 13
    crash       a server's process would crash: the connection ends without a frame
    bad-offset  likewise, because of an offset type that does not exist
    malformed   client side only: a known frame of the wrong shape

Places in the texts (``at byte 10``) count from the key, without the size prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import takewhile
from struct import Struct, error
from typing import Any, Literal, NamedTuple, get_args, get_type_hints
from zlib import crc32

from msgspec.structs import astuple

from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.answers import answer_crashes
from fakebrokers.rabbitmq_stream.binary import Reader
from fakebrokers.rabbitmq_stream.chunk import HEADER_SIZE, Chunk
from fakebrokers.rabbitmq_stream.frames import (
    FRAMES,
    RESPONSE_BIT,
    Deliver,
    Partitions,
    PartitionsResponse,
    Publish,
    Request,
    Response,
    Route,
    RouteResponse,
    SaslAuthenticate,
    StreamFrame,
    Tune,
)
from fakebrokers.rabbitmq_stream.publishing import (
    DamagedEntries,
    read_publish_v1,
    read_publish_v2,
    write_publish,
)
from fakebrokers.rabbitmq_stream.wiretypes import BadOffset, Crash, Wire

Side = Literal["server", "client"]

_SIZE = Struct(">I")
_HEAD = Struct(">HH")
#: bytes of these two; to ask a `Struct` for its size takes longer than to unpack it
_SIZE_BYTES, _HEAD_BYTES = 4, 4
_DELIVER_V1 = Struct(">IHHB")
_DELIVER_V2 = Struct(">IHHBQ")

#: PublishConfirm and PublishError: bytes of an item, and of the fewest that there may be
_ITEMS = {b"\x00\x03\x00\x01": (8, 0), b"\x00\x04\x00\x01": (10, 10)}
_HEAD_OF_ITEMS = 9  #: bytes in front of the items: key, version, publisher, count

_EXCERPT = 256  #: bytes of a malformed frame that are kept
_SMALLEST = 2  #: bytes of a body that a server looks at


class _Layout(NamedTuple):
    """How a frame is read and written.

    Attributes:
        key: What it begins with.
        fields: All, in their order on the wire.
        numbers: Those that the fields begin with, behind key and version.
        head: Size, key, version, and these numbers.
        rest: The fields behind these numbers.
    """

    key: int
    fields: tuple[Wire, ...]
    numbers: Struct
    head: Struct
    rest: tuple[Wire, ...]


@cache
def _layout(kind: type[Frame]) -> _Layout:
    """From the annotations of the class.

    Raises:
        WireError: It is no frame of this protocol.
    """
    if not issubclass(kind, StreamFrame):
        raise WireError("a frame of RabbitMQ Stream", kind_of(kind))
    hints = get_type_hints(kind, include_extras=True)
    fields = tuple([get_args(hints[name])[1] for name in kind.__struct_fields__])
    codes = "".join(takewhile(bool, (wire.code for wire in fields)))
    return _Layout(kind.KEY, fields, Struct(">4x" + codes), Struct(">IHH" + codes), fields[len(codes) :])


def _read(kind: type[StreamFrame], strict: bool, body: bytes) -> StreamFrame:
    _, fields, numbers, _, rest = _layout(kind)
    values: list[Any] = []
    if len(body) >= (begin := numbers.size):
        values += numbers.unpack_from(body)
        reader, fields = Reader(body, begin), rest
    else:  # which says what is missing
        reader = Reader(body, _HEAD_BYTES)
    for wire in fields:
        values.append(wire.read(reader, values[-1]) if wire.behind else wire.read(reader))
    if strict:
        reader.finish()
    return kind(*values)


def _read_deliver(version: int, body: bytes) -> Deliver:
    reader = Reader(body, 4)
    subscription_id = reader.u8()
    committed = reader.u64() if version == 2 else None
    return Deliver(subscription_id, Chunk.parse(body, reader.pos), committed)


@cache
def _readers(
    side: Side, last_command: int, publish_v2: bool
) -> Mapping[bytes, Callable[[bytes], StreamFrame]]:
    """Key and version, as they are on the wire, to what reads such a frame's body on this side."""
    senders = ("client", "both") if side == "server" else ("server", "both")
    readers: dict[bytes, Callable[[bytes], StreamFrame]] = {
        _HEAD.pack(kind.KEY, 1): partial(_read, kind, side == "server")
        for kind in FRAMES
        if issubclass(kind, StreamFrame) and kind.SENDER in senders
    }
    if side == "server":
        readers[_HEAD.pack(Publish.KEY, 1)] = read_publish_v1
        if publish_v2:
            readers[_HEAD.pack(Publish.KEY, 2)] = read_publish_v2
        readers[_HEAD.pack(Tune.KEY | RESPONSE_BIT, 1)] = readers[_HEAD.pack(Tune.KEY, 1)]
        unknown = [head for head in readers if _HEAD.unpack(head)[0] & ~RESPONSE_BIT > last_command]
        for head in unknown:
            del readers[head]
    else:
        readers[_HEAD.pack(Deliver.KEY, 1)] = partial(_read_deliver, 1)
        readers[_HEAD.pack(Deliver.KEY, 2)] = partial(_read_deliver, 2)
        # 3.10 answers these two with the key of the request
        readers[_HEAD.pack(Route.KEY, 1)] = readers[_HEAD.pack(RouteResponse.KEY, 1)]
        readers[_HEAD.pack(Partitions.KEY, 1)] = readers[_HEAD.pack(PartitionsResponse.KEY, 1)]
    return readers


#: the first bytes of Deliver, versions 1 and 2
_DELIVER_HEADS = (b"\x00\x08\x00\x01", b"\x00\x08\x00\x02")
_CRC_AT = 32  # in a chunk's header (docs/protocols/rabbitmq-stream.md, 7)


class StreamCodec(Codec):
    """One connection's codec.

    Attributes:
        max_frame: Largest size field (bytes) that is accepted; 0 for no limit. May be set at any time:
            it holds from the next frame on, also within a unit that was fed already.
        damaged: The last Publish that could not be read to its end, and what stands in front of the damage.
    """

    def __init__(
        self,
        side: Side = "server",
        max_frame: int = 0,
        *,
        response_bit_on_routes: bool = True,
        last_command: int = 31,
        publish_v2: bool = True,
        tolerates_answers: bool = True,
    ) -> None:
        """
        Args:
            side: Whose incoming frames are decoded. Both sides encode every frame.
            max_frame: See the attribute.
            response_bit_on_routes: False writes the answers to Route and Partitions as 3.10 does.
            last_command: A server calls frames unknown whose key is higher, without looking at them.
            publish_v2: A server calls Publish version 2 unknown otherwise.
            tolerates_answers: See `answers.answer_crashes`.
        """
        self.damaged: tuple[Malformed, Publish] | None = None
        self.max_frame = max_frame
        self._side: Side = side
        self._readers = _readers(side, last_command, publish_v2)
        self._last_command = last_command
        self._tolerates_answers = tolerates_answers
        self._bit_on_routes = response_bit_on_routes
        self._buffer = bytearray()
        self._pos = 0  # in the buffer: everything before it has come out as frames
        self._lost = False

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._buffer) - self._pos

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        """Take in bytes at once; what comes out as they are iterated over: see `Codec.feed`.

        Frames that are not fetched wait for the next call.
        """
        if not self._lost:
            self._buffer += unit
        return self._complete_frames()

    def _complete_frames(self) -> Iterator[tuple[Frame, int]]:
        buffer = self._buffer
        while (arrived := len(buffer) - self._pos) >= _SIZE_BYTES:
            (size,) = _SIZE.unpack_from(buffer, self._pos)
            if 0 < self.max_frame < size:
                yield self._too_large(size), arrived
                return
            whole = _SIZE_BYTES + size
            if whole > arrived:
                break
            start, self._pos = self._pos + _SIZE_BYTES, self._pos + whole
            yield self.decode(bytes(buffer[start : self._pos])), whole
        del buffer[: self._pos]
        self._pos = 0

    def mend(self, unit: bytes) -> bytes:
        """The bytes of one frame with its size field made right, and the CRC of a chunk."""
        body = bytearray(unit[_SIZE_BYTES:])
        if body[:4] in _DELIVER_HEADS:
            chunk = 5 if body[3] == 1 else 13
            data = chunk + HEADER_SIZE
            if len(body) >= data:
                body[chunk + _CRC_AT : chunk + _CRC_AT + 4] = crc32(body[data:]).to_bytes(4, "big")
        return _SIZE.pack(len(body)) + bytes(body)

    def _too_large(self, size: int) -> Malformed:
        """Where the next frame begins is unknown from here on."""
        arrived = bytes(self._buffer[self._pos : self._pos + _EXCERPT])
        problem = f"expected a frame of at most {self.max_frame} bytes, got a size prefix of {size}"
        self._lost = True
        self._buffer.clear()
        self._pos = 0
        return Malformed(_without_secrets(arrived), problem, "too-large")

    def decode(self, body: bytes) -> Frame:
        """The frame with this body (all but the size prefix). Never raises."""
        read = self._readers.get(body[:_HEAD_BYTES])
        if read is None:
            problem = WireError(
                "a key and a version that this side knows", body[:_HEAD_BYTES].hex() or "none", 0
            )
            code = (
                "empty" if len(body) < _SMALLEST else self._code(problem, body) if self._server else "unknown"
            )
            return _malformed(body, problem, code)
        try:
            return read(body)
        except DamagedEntries as problem:
            malformed = _malformed(body, problem, "crash" if self._server else "malformed")
            self.damaged = malformed, problem.whole
            return malformed
        except WireError as problem:
            return _malformed(body, problem, self._code(problem, body))

    def _code(self, problem: WireError, body: bytes) -> str:
        if not self._server:
            return "malformed"
        if isinstance(problem, BadOffset):
            return "bad-offset"
        crash = isinstance(problem, Crash)
        if body[:4] in _ITEMS:
            crash = self._items_crash(body)
        elif body[0] & 0x80:
            crash = answer_crashes(body, self._last_command, tolerant=self._tolerates_answers)
        return "crash" if crash else "unknown"

    def _items_crash(self, body: bytes) -> bool:
        """A server reads confirms too; its process crashes over an id that is cut off, or if no id failed."""
        size, least = _ITEMS[body[:4]]
        ids = len(body) - _HEAD_OF_ITEMS
        return ids >= 0 and (ids % size > 0 or ids < least)

    @property
    def _server(self) -> bool:
        return self._side == "server"

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame, as it stands: nothing is corrected.

        Raises:
            WireError: A field does not fit its place on the wire, or this is no frame of this protocol.
        """
        if type(frame) is Malformed:  # `isinstance` would ask the metaclass of the frames, which takes long
            return frame.data
        try:
            if type(frame) is Deliver:
                return _write_deliver(frame)
            if type(frame) is Publish:
                body = b"".join(write_publish(frame))
                return _SIZE.pack(len(body)) + body
            return self._write(frame)
        except (error, TypeError, AttributeError, ValueError) as problem:
            raise WireError(f"a {kind_of(frame)} that fits the wire", str(problem)) from None

    def _write(self, frame: Frame) -> bytes:
        key, fields, _, head, rest = _layout(type(frame))
        if not self._bit_on_routes and isinstance(frame, RouteResponse | PartitionsResponse):
            key ^= RESPONSE_BIT
        size, values = head.size - _SIZE_BYTES, astuple(frame)
        if not rest:
            return head.pack(size, key, 1, *values)
        tail, behind = b"", len(fields) - len(rest)
        for at, wire in enumerate(rest, behind):
            tail += wire.pack(values[at])
        return head.pack(size + len(tail), key, 1, *values[:behind]) + tail


def _write_deliver(frame: Deliver) -> bytes:
    """The chunk's data is copied once, from the chunk into the frame."""
    chunk, committed = frame.chunk, frame.committed_chunk_id
    if committed is None:
        size = _DELIVER_V1.size - _SIZE_BYTES + HEADER_SIZE + len(chunk.data)
        head = _DELIVER_V1.pack(size, frame.KEY, 1, frame.subscription_id)
    else:
        size = _DELIVER_V2.size - _SIZE_BYTES + HEADER_SIZE + len(chunk.data)
        head = _DELIVER_V2.pack(size, frame.KEY, 2, frame.subscription_id, committed)
    return b"".join((head, chunk.header(), chunk.data))


def _malformed(body: bytes, problem: WireError, code: str) -> Malformed:
    excerpt = (_SIZE.pack(len(body)) + body[:_EXCERPT])[:_EXCERPT]
    return Malformed(_without_secrets(excerpt), f"{_label(body)}: {problem}", code)


def _label(body: bytes) -> str:
    """The name, key, version and correlation id of a frame that could not be read, as far as they go."""
    if len(body) < _HEAD_BYTES:
        return f"a frame of {len(body)} bytes"
    key, version = _HEAD.unpack_from(body)
    kind = next((kind for kind in FRAMES if getattr(kind, "KEY", None) == key), None)
    name = kind.__name__ if kind else "a frame"
    label = f"{name} (key 0x{key:04x}, version {version}"
    if kind and issubclass(kind, Request | Response) and len(body) >= 8:
        label += f", correlation id {_SIZE.unpack_from(body, 4)[0]}"
    return label + ")"


def _without_secrets(data: bytes) -> bytes:
    """Of an unreadable SaslAuthenticate only what stands in front of the credentials."""
    is_secret = data[4:6] == _HEAD.pack(SaslAuthenticate.KEY, 0)[:2]
    return data[:12] if is_secret else data
