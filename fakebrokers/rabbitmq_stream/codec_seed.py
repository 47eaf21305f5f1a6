"""The wire by the letter of the early protocol document, for clients that were written from it alone.

Where its listings differ from what servers send (docs/protocols/rabbitmq-stream.md, 10), this codec follows
the listings: Deliver has a u32 version and a chunk header without type, timestamp, trailer and bloom size;
Route is answered with one stream and no code; Partitions without code; SaslAuthenticate with bytes after
every code; a refused Open with an empty array. Subscribe carries eight value bytes for every offset type,
and a string may be null where the document allows it. No real client can be served that way.
"""

from __future__ import annotations

from struct import Struct, error

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.binary import pack_bytes, pack_string
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    DeclarePublisher,
    Deliver,
    OpenResponse,
    PartitionsResponse,
    RouteResponse,
    SaslAuthenticateResponse,
    Subscribe,
)
from fakebrokers.rabbitmq_stream.profile import Profile

_U16 = Struct(">H")
_SIZE = Struct(">I")
#: size, key, version, subscription id; magic, entries, records, epoch, first offset, CRC, data length
_DELIVER = Struct(">IHIBBHIQQII")
_ANSWER = Struct(">HHI")

#: where the first string of Subscribe and of DeclarePublisher begins, after the key
_STRING_AT = 9
_VALUE_SIZE = 8


class SeedCodec(StreamCodec):
    """A server's codec exactly as the document has it."""

    def decode(self, body: bytes) -> Frame:
        """The frame with this body, brought into the shape that servers know."""
        key = body[:2]
        if key == _U16.pack(Subscribe.KEY):
            body = _without_idle_value(body)
        elif key == _U16.pack(DeclarePublisher.KEY) and body[_STRING_AT : _STRING_AT + 2] == b"\xff\xff":
            body = body[:_STRING_AT] + bytes(2) + body[_STRING_AT + 2 :]
        return super().decode(body)

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame, as the document lists them."""
        if isinstance(frame, Deliver):
            return _deliver(frame)
        if isinstance(frame, RouteResponse):
            stream = frame.streams[0] if frame.streams else None
            return _sized(_ANSWER.pack(frame.KEY, 1, frame.correlation_id) + pack_string(stream))
        if isinstance(frame, PartitionsResponse):
            names = b"".join([pack_string(name) for name in frame.streams])
            count = _SIZE.pack(len(frame.streams))
            return _sized(_ANSWER.pack(frame.KEY, 1, frame.correlation_id) + count + names)
        unit = super().encode(frame)
        if isinstance(frame, SaslAuthenticateResponse) and frame.challenge is None:
            return _sized(unit[_SIZE.size :] + pack_bytes(None))
        if isinstance(frame, OpenResponse) and frame.properties is None:
            return _sized(unit[_SIZE.size :] + _SIZE.pack(0))
        return unit


def codec_for(profile: Profile) -> StreamCodec:
    """A server's codec for a profile."""
    kind = SeedCodec if profile.document_layouts else StreamCodec
    return kind(
        response_bit_on_routes=profile.response_bit_on_routes,
        last_command=profile.last_command,
        publish_v2=profile.filters,
        tolerates_answers=profile.tolerates_answers,
    )


def _sized(body: bytes) -> bytes:
    return _SIZE.pack(len(body)) + body


def _deliver(frame: Deliver) -> bytes:
    chunk = frame.chunk
    size = _DELIVER.size - _SIZE.size + len(chunk.data)
    head = _DELIVER.pack(
        size, frame.KEY, 1, frame.subscription_id, chunk.magic, chunk.entries, chunk.records,
        chunk.epoch, chunk.first_offset, chunk.crc, len(chunk.data),
    )  # fmt: skip
    return head + chunk.data


def _without_idle_value(body: bytes) -> bytes:
    """A Subscribe without the value bytes of offset types that have no value."""
    try:
        type_at = _STRING_AT + 2 + _U16.unpack_from(body, _STRING_AT)[0]
        (offset_type,) = _U16.unpack_from(body, type_at)
    except error:
        return body
    if not OffsetType.FIRST <= offset_type <= OffsetType.NEXT:
        return body
    value_at = type_at + 2
    return body[:value_at] + body[value_at + _VALUE_SIZE :]
