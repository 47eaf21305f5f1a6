"""How single fields look on the wire: ``Annotated`` types that the frame classes are written in.

Requests are read as RabbitMQ 4.3.6 reads them (docs/protocols/rabbitmq-stream.md, 2; rabbit_stream_core):
strings have no null, the counts of trailing arrays are ignored and the array ends with the frame, and
whatever is wrong inside such a tail makes the server's process crash (`Crash`), while anything else that does
not fit makes the frame unknown. Answers are read as a careful client reads them: counts are trusted, null
strings are empty ones, null arrays too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from struct import Struct, pack
from typing import Annotated, Any, NamedTuple, TypeVar

from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.binary import Reader, pack_bytes, pack_string
from fakebrokers.rabbitmq_stream.codes import OffsetType

T = TypeVar("T")

_MASK = 0xFFFFFFFFFFFFFFFF
_pack_u16, _pack_u32 = Struct(">H").pack, Struct(">I").pack


class Crash(WireError):
    """What crashes the server's process of this connection: FIN, and no frame."""


class BadOffset(Crash):
    """An offset type that this command does not have; also a crash."""


class Wire(NamedTuple):
    """How a field is read and written.

    Attributes:
        read: From a reader to the value; also given the field before it if `behind`.
        pack: The value's bytes.
        behind: The form depends on the field before.
        code: Of a number, that of `struct`; "" for anything else.
    """

    read: Callable[..., Any]
    pack: Callable[[Any], bytes]
    behind: bool = False
    code: str = ""


def _crashing(read: Callable[..., T]) -> Callable[..., T]:
    """Make every `WireError` of `read` a `Crash`: here the server cannot call the frame unknown any more."""

    @wraps(read)
    def read_or_crash(*args: Any) -> T:
        try:
            return read(*args)
        except Crash:
            raise
        except WireError as error:
            raise Crash(error.expected, error.got, error.at) from None

    return read_or_crash


def _read_i16(reader: Reader) -> int:
    return int.from_bytes(reader.take(2), signed=True)


def _read_text(reader: Reader) -> str:
    """A string that cannot be null: the server takes 0xFFFF for a length."""
    return reader.counted().decode(errors="surrogateescape")


def _tail(read: Callable[[Reader], T]) -> Callable[[Reader], tuple[T, ...]]:
    read_item = _crashing(read)

    def read_tail(reader: Reader) -> tuple[T, ...]:
        reader.u32()  # the count, which the server does not look at
        items = []
        while reader.left:
            items.append(read_item(reader))
        return tuple(items)

    return read_tail


def _read_pair(reader: Reader) -> tuple[str, str]:
    return _read_text(reader), _read_text(reader)


_read_pairs = _tail(_read_pair)


def _read_map(reader: Reader) -> dict[str, str]:
    return dict(_read_pairs(reader))


def _read_optional_map(reader: Reader) -> dict[str, str] | None:
    """None if nothing is there. The server ignores fewer than four bytes."""
    if not reader.left:
        return None
    if reader.left < 4:
        reader.rest()
        return {}
    return _read_map(reader)


_read_text_or_crash = _crashing(_read_text)


def _read_counted_texts(reader: Reader) -> tuple[str, ...]:
    """The server counts these, but also stops where the frame ends."""
    count = reader.u32()
    items: list[str] = []
    while reader.left and len(items) < count:
        items.append(_read_text_or_crash(reader))
    if reader.left < 4:
        raise Crash("another array", f"{reader.left} bytes", reader.pos)
    return tuple(items)


@_crashing
def _read_sasl_data(reader: Reader) -> bytes | None:
    data = reader.blob()
    reader.finish()
    return data


@_crashing
def _read_offset(reader: Reader, offset_type: int) -> int | None:
    """The value after the offset type of Subscribe and ResolveOffsetSpec."""
    if offset_type == OffsetType.OFFSET:
        return reader.u64()
    if offset_type == OffsetType.TIMESTAMP:
        return reader.i64()
    if not OffsetType.FIRST <= offset_type <= OffsetType.NEXT:
        raise BadOffset("an offset type of 1 to 5", str(offset_type), reader.pos - 2)
    return None


def _read_answered_offset(reader: Reader, offset_type: int) -> int | None:
    """The value in the answer to ConsumerUpdate: rstream sends one with every type."""
    value = None if offset_type == OffsetType.NONE else _read_offset(reader, offset_type)
    if value is None:
        rest = reader.rest()
        value = int.from_bytes(rest) if len(rest) == 8 else None
    return value


def _read_optional_reply_map(reader: Reader) -> dict[str, str | None] | None:
    return _read_reply_map(reader) if reader.left else None


def _read_reply_map(reader: Reader) -> dict[str, str | None]:
    return dict(reader.array(lambda: (reader.text(), reader.string()), smallest=4))


def _read_reply_texts(reader: Reader) -> tuple[str, ...]:
    return reader.array(reader.text, smallest=2)


def _read_stats(reader: Reader) -> dict[str, int]:
    return dict(reader.array(lambda: (reader.text(), reader.i64()), smallest=10))


def _read_challenge(reader: Reader) -> bytes | None:
    return reader.counted() if reader.left else None


def _pack_text(value: str) -> bytes:
    data = value.encode(errors="surrogateescape")
    return _pack_u16(len(data)) + data


def _pack_array(pack_item: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def pack_items(items: Iterable[Any]) -> bytes:
        packed = [pack_item(item) for item in items]
        return _pack_u32(len(packed)) + b"".join(packed)

    return pack_items


def _pack_pairs(pack_value: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    pack_items = _pack_array(lambda pair: _pack_text(pair[0]) + pack_value(pair[1]))
    return lambda pairs: pack_items(pairs.items())


def _optional(pack_value: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: b"" if value is None else pack_value(value)


def _pack_offset(value: int) -> bytes:
    return (value & _MASK).to_bytes(8)


def _pack_challenge(value: bytes) -> bytes:
    return _pack_u16(len(value)) + value


U8 = Annotated[int, Wire(Reader.u8, Struct(">B").pack, code="B")]
U16 = Annotated[int, Wire(Reader.u16, _pack_u16, code="H")]
I16 = Annotated[int, Wire(_read_i16, Struct(">h").pack, code="h")]
U32 = Annotated[int, Wire(Reader.u32, _pack_u32, code="I")]
InitialCredit = Annotated[int, Wire(_crashing(Reader.u16), _pack_u16)]
U64 = Annotated[int, Wire(Reader.u64, Struct(">Q").pack, code="Q")]

Text = Annotated[str, Wire(_read_text, _pack_text)]
Texts = Annotated[tuple[str, ...], Wire(_tail(_read_text), _pack_array(_pack_text))]
CountedTexts = Annotated[tuple[str, ...], Wire(_read_counted_texts, _pack_array(_pack_text))]
Map = Annotated[dict[str, str], Wire(_read_map, _pack_pairs(_pack_text))]
OptionalMap = Annotated[dict[str, str] | None, Wire(_read_optional_map, _optional(_pack_pairs(_pack_text)))]
SaslData = Annotated[bytes | None, Wire(_read_sasl_data, pack_bytes)]
Offset = Annotated[int | None, Wire(_read_offset, _optional(_pack_offset), behind=True)]
AnsweredOffset = Annotated[int | None, Wire(_read_answered_offset, _optional(_pack_offset), behind=True)]

ReplyText = Annotated[str, Wire(Reader.text, _pack_text)]
ReplyTexts = Annotated[tuple[str, ...], Wire(_read_reply_texts, _pack_array(_pack_text))]
ReplyMap = Annotated[dict[str, str | None], Wire(_read_reply_map, _pack_pairs(pack_string))]
OptionalReplyMap = Annotated[
    dict[str, str | None] | None,
    Wire(_read_optional_reply_map, _optional(_pack_pairs(pack_string))),
]
Challenge = Annotated[bytes | None, Wire(_read_challenge, _optional(_pack_challenge))]
Stats = Annotated[dict[str, int], Wire(_read_stats, _pack_pairs(Struct(">q").pack))]


class CommandVersions(NamedTuple):
    """The versions of one command that a peer understands."""

    key: int
    min_version: int
    max_version: int


class BrokerAddress(NamedTuple):
    """A node in MetadataResponse; streams refer to it by `reference`."""

    reference: int
    host: str
    port: int


class StreamMetadata(NamedTuple):
    """A stream in MetadataResponse; a leader of `codes.NO_LEADER` means none."""

    stream: str
    code: int
    leader: int
    replicas: tuple[int, ...]


_VERSIONS = Struct(">HHH")
_ERROR = Struct(">QH")


def _read_versions(reader: Reader) -> CommandVersions:
    return CommandVersions(*_VERSIONS.unpack(reader.take(6)))


def _read_broker(reader: Reader) -> BrokerAddress:
    return BrokerAddress(reader.u16(), reader.text(), reader.u32())


def _read_stream(reader: Reader) -> StreamMetadata:
    return StreamMetadata(reader.text(), reader.u16(), reader.u16(), reader.array(reader.u16, smallest=2))


def _pack_broker(broker: tuple[int, str, int]) -> bytes:
    reference, host, port = broker
    return _pack_u16(reference) + _pack_text(host) + _pack_u32(port)


def _pack_stream(stream: tuple[str, int, int, tuple[int, ...]]) -> bytes:
    name, code, leader, replicas = stream
    count = len(replicas)
    return _pack_text(name) + pack(f">HHI{count}H", code, leader, count, *replicas)


def _array_of(read: Callable[[Reader], T], smallest: int) -> Callable[[Reader], tuple[T, ...]]:
    return lambda reader: reader.array(lambda: read(reader), smallest)


def _read_packed_ids(reader: Reader) -> bytes:
    return reader.take(8 * reader.u32())


def _pack_packed_ids(ids: bytes) -> bytes:
    return _pack_u32(len(ids) // 8) + ids


def _read_error(reader: Reader) -> tuple[int, int]:
    publishing_id, code = _ERROR.unpack(reader.take(10))
    return publishing_id, code


_pack_versions = _pack_array(lambda versions: _VERSIONS.pack(*versions))

Versions = Annotated[tuple[CommandVersions, ...], Wire(_tail(_read_versions), _pack_versions)]
ReplyVersions = Annotated[tuple[CommandVersions, ...], Wire(_array_of(_read_versions, 6), _pack_versions)]
Brokers = Annotated[tuple[BrokerAddress, ...], Wire(_array_of(_read_broker, 8), _pack_array(_pack_broker))]
Streams = Annotated[tuple[StreamMetadata, ...], Wire(_array_of(_read_stream, 10), _pack_array(_pack_stream))]
PackedIds = Annotated[bytes, Wire(_read_packed_ids, _pack_packed_ids)]
Errors = Annotated[
    tuple[tuple[int, int], ...],
    Wire(_array_of(_read_error, 10), _pack_array(lambda error: _ERROR.pack(*error))),
]
