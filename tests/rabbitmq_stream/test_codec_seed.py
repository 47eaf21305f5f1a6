from __future__ import annotations

import msgspec
import pytest

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codec_seed import SeedCodec, codec_for
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    CreateResponse,
    DeclarePublisher,
    Deliver,
    OpenResponse,
    PartitionsResponse,
    RouteResponse,
    SaslAuthenticateResponse,
    Subscribe,
)
from fakebrokers.rabbitmq_stream.profile import SEED, V3_10, V4_3

CHUNK = Chunk.build(b"\0\0\0\1x", entries=1, records=1, first_offset=7, timestamp_ms=99, epoch=2)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (RouteResponse(5, 1, ("s", "t")), "0000000b 8018 0001 00000005 0001 73"),
        (RouteResponse(5, 1), "0000000a 8018 0001 00000005 ffff"),
        (RouteResponse(5, 2), "0000000a 8018 0001 00000005 ffff"),
        (PartitionsResponse(5, 1, ("s", "t")), "00000012 8019 0001 00000005 00000002 0001 73 0001 74"),
        (PartitionsResponse(5, 2), "0000000c 8019 0001 00000005 00000000"),
        (SaslAuthenticateResponse(5, 8), "0000000e 8013 0001 00000005 0008 ffffffff"),
        (OpenResponse(5, 12), "0000000e 8015 0001 00000005 000c 00000000"),
        (OpenResponse(5, 1, {"a": "b"}), "00000014 8015 0001 00000005 0001 00000001 0001 61 0001 62"),
        (CreateResponse(5, 1), "0000000a 800d 0001 00000005 0001"),
        (
            Deliver(3, CHUNK, 9),
            "0000002b 0008 00000001 03 50 0001 00000001 0000000000000002 0000000000000007"
            f" {CHUNK.crc:08x} 00000005 00000001 78",
        ),
    ],
)
def test_frames_look_as_the_document_lists_them(frame: Frame, expected: str) -> None:
    assert SeedCodec().encode(frame) == bytes.fromhex(expected)


def feed(text: str) -> Frame:
    body = bytes.fromhex(text)
    (frame,) = [frame for frame, _ in SeedCodec().feed(len(body).to_bytes(4, "big") + body)]
    return frame


@pytest.mark.parametrize("kind", [OffsetType.FIRST, OffsetType.LAST, OffsetType.NEXT])
def test_every_offset_type_has_a_value(kind: OffsetType) -> None:
    frame = feed(f"0007 0001 00000005 01 0001 73 {kind:04x} 0000000000000000 000a 00000000")
    assert frame == Subscribe(5, 1, "s", kind, None, 10, {})


def test_offsets_are_read_as_ever() -> None:
    frame = feed("0007 0001 00000005 01 0001 73 0004 0000000000000063 000a 00000000")
    assert frame == Subscribe(5, 1, "s", OffsetType.OFFSET, 99, 10, {})


def test_a_publisher_may_have_null_as_its_reference() -> None:
    assert feed("0001 0001 00000005 01 ffff 0001 73") == DeclarePublisher(5, 1, "", "s")
    assert feed("0001 0001 00000005 01 0001 72 0001 73") == DeclarePublisher(5, 1, "r", "s")


@pytest.mark.parametrize(
    "text", ["0007", "0007 0001 00000005 01 0005 73", "0007 0001 00000005 01 0001 73 00"]
)
def test_what_is_cut_short_is_no_frame(text: str) -> None:
    assert isinstance(feed(text), Malformed)


def test_a_profile_has_its_codec() -> None:
    assert type(codec_for(SEED)) is SeedCodec
    assert type(codec_for(msgspec.structs.replace(SEED, document_layouts=False))) is StreamCodec
    assert codec_for(V4_3).encode(RouteResponse(5, 2))[4] == 0x80
    assert codec_for(V3_10).encode(RouteResponse(5, 2))[4] == 0
