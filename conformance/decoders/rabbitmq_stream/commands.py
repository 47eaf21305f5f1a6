"""The commands (docs/protocols/rabbitmq-stream.md, 3), by the four bytes of key and version.

A table names the fields of a frame in the order of the wire; the frame is filled by name, so the order of the
fields in its class means nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.decoders import Unreadable
from conformance.decoders.rabbitmq_stream import fields as wire
from conformance.decoders.rabbitmq_stream import messages
from conformance.decoders.rabbitmq_stream.fields import FieldReader, i16, text, u8, u16, u32, u64
from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream import frames as f

Reader = Callable[[bytes], Frame]
Field = tuple[str, FieldReader]
Specs = tuple[tuple[str, str], FieldReader]  #: two fields that are read together

CORRELATION: Field = ("correlation_id", u32)
CODE: Field = ("code", u16)
REFERENCE: Field = ("reference", text)
STREAM: Field = ("stream", text)
PUBLISHER: Field = ("publisher_id", u8)
SUBSCRIPTION: Field = ("subscription_id", u8)
SPEC: Specs = (("offset_type", "offset"), wire.offset_spec)
PROPERTIES: Field = ("properties", wire.request_map)
MAYBE_PROPERTIES: Field = ("properties", wire.if_any(wire.trailing_map))
ARGUMENTS: Field = ("arguments", wire.request_map)
FOUND_STREAMS: Field = ("streams", wire.array(wire.answered_text))
VERSIONS = wire.sequence(u16, u16, u16)
TUNE: tuple[Field, ...] = (("frame_max", u32), ("heartbeat", u32))


def _broker(body: bytes, at: int) -> tuple[f.BrokerAddress, int]:
    (reference, host, port), at = _BROKER(body, at)
    return f.BrokerAddress(reference=reference, host=host, port=port), at


def _stream(body: bytes, at: int) -> tuple[f.StreamMetadata, int]:
    (name, code, leader, replicas), at = _STREAM(body, at)
    return f.StreamMetadata(stream=name, code=code, leader=leader, replicas=replicas), at


_BROKER = wire.sequence(u16, wire.answered_text, u32)
_STREAM = wire.sequence(wire.answered_text, u16, u16, wire.array(u16))


def _versions(body: bytes, at: int) -> tuple[f.CommandVersions, int]:
    (key, lowest, highest), at = VERSIONS(body, at)
    return f.CommandVersions(key=key, min_version=lowest, max_version=highest), at


def _packed_ids(body: bytes, at: int) -> tuple[bytes, int]:
    count, at = u32(body, at)
    end = at if count == wire.NULL_32 else at + messages.ID * count
    if end > len(body):
        raise Unreadable(f"expected {count} publishing ids at byte {at}, the frame ends at {len(body)}")
    return body[at:end], end


def _challenge(body: bytes, at: int) -> tuple[bytes | None, int]:
    """A string, though the document says bytes."""
    value, at = wire.nullable_text(body, at)
    return None if value is None else value.encode("utf-8", "surrogateescape"), at


REQUESTS: dict[int, tuple[type[Frame], *tuple[Field | Specs, ...]]] = {
    0x0001: (f.DeclarePublisher, CORRELATION, PUBLISHER, REFERENCE, STREAM),
    0x0005: (f.QueryPublisherSequence, CORRELATION, REFERENCE, STREAM),
    0x0006: (f.DeletePublisher, CORRELATION, PUBLISHER),
    0x0007: (f.Subscribe, CORRELATION, SUBSCRIPTION, STREAM, SPEC, ("credit", u16), MAYBE_PROPERTIES),
    0x0009: (f.Credit, SUBSCRIPTION, ("credit", i16)),
    0x000A: (f.StoreOffset, REFERENCE, STREAM, ("offset", u64)),
    0x000B: (f.QueryOffset, CORRELATION, REFERENCE, STREAM),
    0x000C: (f.Unsubscribe, CORRELATION, SUBSCRIPTION),
    0x000D: (f.Create, CORRELATION, STREAM, ARGUMENTS),
    0x000E: (f.Delete, CORRELATION, STREAM),
    0x000F: (f.Metadata, CORRELATION, ("streams", wire.array_to_end(text))),
    0x0011: (f.PeerProperties, CORRELATION, PROPERTIES),
    0x0012: (f.SaslHandshake, CORRELATION),
    0x0013: (f.SaslAuthenticate, CORRELATION, ("mechanism", text), ("data", wire.nullable_bytes)),
    0x0014: (f.Tune, *TUNE),
    0x8014: (f.Tune, *TUNE),
    0x0015: (f.Open, CORRELATION, ("virtual_host", text)),
    0x0016: (f.Close, CORRELATION, CODE, ("reason", text)),
    0x8016: (f.CloseResponse, CORRELATION, CODE),
    0x0017: (f.Heartbeat,),
    0x0018: (f.Route, CORRELATION, ("routing_key", text), ("super_stream", text)),
    0x0019: (f.Partitions, CORRELATION, ("super_stream", text)),
    0x801A: (f.ConsumerUpdateResponse, CORRELATION, CODE, (SPEC[0], wire.answered_offset_spec)),
    0x001B: (f.ExchangeCommandVersions, CORRELATION, ("commands", wire.array_to_end(_versions))),
    0x001C: (f.StreamStats, CORRELATION, STREAM),
    0x001D: (
        f.CreateSuperStream,
        CORRELATION,
        ("name", text),
        ("partitions", wire.array_inside(text)),
        ("binding_keys", wire.array_inside(text)),
        ARGUMENTS,
    ),
    0x001E: (f.DeleteSuperStream, CORRELATION, ("name", text)),
    0x001F: (f.ResolveOffsetSpec, CORRELATION, STREAM, SPEC, MAYBE_PROPERTIES),
}

ANSWERS: dict[int, tuple[type[Frame], *tuple[Field | Specs, ...]]] = {
    0x8001: (f.DeclarePublisherResponse, CORRELATION, CODE),
    0x0003: (f.PublishConfirm, PUBLISHER, ("publishing_ids", _packed_ids)),
    0x0004: (f.PublishError, PUBLISHER, ("errors", wire.array(wire.sequence(u64, u16)))),
    0x8005: (f.QueryPublisherSequenceResponse, CORRELATION, CODE, ("sequence", u64)),
    0x8006: (f.DeletePublisherResponse, CORRELATION, CODE),
    0x8007: (f.SubscribeResponse, CORRELATION, CODE),
    0x8009: (f.CreditResponse, CODE, SUBSCRIPTION),
    0x800B: (f.QueryOffsetResponse, CORRELATION, CODE, ("offset", u64)),
    0x800C: (f.UnsubscribeResponse, CORRELATION, CODE),
    0x800D: (f.CreateResponse, CORRELATION, CODE),
    0x800E: (f.DeleteResponse, CORRELATION, CODE),
    0x800F: (
        f.MetadataResponse,
        CORRELATION,
        ("brokers", wire.array(_broker)),
        ("streams", wire.array(_stream)),
    ),
    0x0010: (f.MetadataUpdate, CODE, ("stream", wire.answered_text)),
    0x8011: (f.PeerPropertiesResponse, CORRELATION, CODE, ("properties", wire.answer_map)),
    0x8012: (
        f.SaslHandshakeResponse,
        CORRELATION,
        CODE,
        ("mechanisms", wire.array(wire.answered_text)),
    ),
    0x8013: (f.SaslAuthenticateResponse, CORRELATION, CODE, ("challenge", wire.if_any(_challenge))),
    0x0014: (f.Tune, *TUNE),
    0x8015: (f.OpenResponse, CORRELATION, CODE, ("properties", wire.if_any(wire.answer_map))),
    0x0016: (f.Close, CORRELATION, CODE, ("reason", wire.answered_text)),
    0x8016: (f.CloseResponse, CORRELATION, CODE),
    0x0017: (f.Heartbeat,),
    0x8018: (f.RouteResponse, CORRELATION, CODE, FOUND_STREAMS),
    0x0018: (f.RouteResponse, CORRELATION, CODE, FOUND_STREAMS),  # 3.10.8
    0x8019: (f.PartitionsResponse, CORRELATION, CODE, FOUND_STREAMS),
    0x0019: (f.PartitionsResponse, CORRELATION, CODE, FOUND_STREAMS),  # 3.10.8
    0x001A: (f.ConsumerUpdate, CORRELATION, SUBSCRIPTION, ("active", u8)),
    0x801B: (
        f.ExchangeCommandVersionsResponse,
        CORRELATION,
        CODE,
        ("commands", wire.array(_versions)),
    ),
    0x801C: (
        f.StreamStatsResponse,
        CORRELATION,
        CODE,
        ("stats", wire.as_dict(wire.array(wire.sequence(wire.answered_text, wire.i64)))),
    ),
    0x801D: (f.CreateSuperStreamResponse, CORRELATION, CODE),
    0x801E: (f.DeleteSuperStreamResponse, CORRELATION, CODE),
    0x801F: (f.ResolveOffsetSpecResponse, CORRELATION, CODE, ("offset_type", u16), ("offset", u64)),
}


def _reader(kind: type[Frame], fields: tuple[Field | Specs, ...], strict: bool) -> Reader:
    """Reads a frame's body; `strict`: nothing may follow its fields."""

    def read(body: bytes) -> Frame:
        values: dict[str, Any] = {}
        at = 4
        for name, field in fields:
            value, at = field(body, at)
            if isinstance(name, str):
                values[name] = value
            else:
                values.update(zip(name, value, strict=True))
        if strict and at < len(body):
            raise Unreadable(f"expected the end at byte {at}, {len(body) - at} bytes follow")
        return kind(**values)

    return read


def _readers(
    layouts: dict[int, Any], by_hand: dict[tuple[int, int], Reader], strict: bool
) -> dict[bytes, Reader]:
    """By key and version as they are on the wire; what is not read by hand has version 1."""
    tables = {(key, 1): _reader(kind, tuple(rest), strict) for key, (kind, *rest) in layouts.items()}
    return {
        key.to_bytes(2) + version.to_bytes(2): read for (key, version), read in (tables | by_hand).items()
    }


#: What a server is sent, and what a client is sent.
FROM_CLIENT = _readers(
    REQUESTS, {(2, 1): messages.read_publish, (2, 2): messages.read_filtered_publish}, True
)
FROM_SERVER = _readers(
    ANSWERS, {(8, 1): messages.read_deliver, (8, 2): messages.read_committed_deliver}, False
)

NAMES = {key.to_bytes(2): kind.__name__ for key, (kind, *_) in {**ANSWERS, **REQUESTS}.items()} | {
    b"\0\2": "Publish",
    b"\0\x08": "Deliver",
}
