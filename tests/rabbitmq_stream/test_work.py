"""The work of decoding grows with the bytes, however small their segments and their items."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import Side, StreamCodec
from fakebrokers.rabbitmq_stream.entries import messages, simple_entries
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    Deliver,
    Heartbeat,
    Metadata,
    MetadataResponse,
    PartitionsResponse,
    PeerProperties,
    Publish,
    PublishConfirm,
    PublishError,
    SaslAuthenticate,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata
from tests.work import CountedBuffer, CountedBytes, segments

#: Bytes looked at or copied per byte that came, at most, for any size.
PER_BYTE = 4

FRAMES: dict[str, tuple[Side, Callable[[int], Frame]]] = {
    "one long message": ("server", lambda size: publish(1, [(1, bytes(size))])),
    "empty messages": ("server", lambda size: publish(1, [(n, b"") for n in range(size // 12)])),
    "filter values": (
        "server",
        lambda size: publish(1, [(n, b"") for n in range(size // 16)], ["ab"] * (size // 16)),
    ),
    "batches": (
        "server",
        lambda size: _batches(size // 26),
    ),
    "names": ("server", lambda size: Metadata(1, ("abc",) * (size // 5))),
    "arguments": ("server", lambda size: Create(1, "s", {f"{n:05}": "" for n in range(size // 9)})),
    "properties": ("server", lambda size: PeerProperties(1, {f"{n:05}": "" for n in range(size // 9)})),
    "login": ("server", lambda size: SaslAuthenticate(1, "AMQPLAIN", b"\x01aS\0\0\0\x01b" * (size // 8))),
    "chunk": ("client", lambda size: Deliver(1, _chunk(simple_entries([b"a"] * (size // 5))), 1)),
    "confirms": ("client", lambda size: PublishConfirm(1, bytes(size // 8 * 8))),
    "errors": ("client", lambda size: PublishError(1, ((1, 2),) * (size // 10))),
    "partitions": ("client", lambda size: PartitionsResponse(1, 1, ("abc",) * (size // 5))),
    "brokers": ("client", lambda size: MetadataResponse(1, (BrokerAddress(1, "h", 5552),) * (size // 9), ())),
    "streams": (
        "client",
        lambda size: MetadataResponse(1, (), (StreamMetadata("s", 1, 0, (1, 2, 3)),) * (size // 17)),
    ),
}


def _batches(count: int) -> Publish:
    entry = batch_entry([b"abc"])
    return Publish(1, count, bytes(8 * count), entry * count, records=count, batches=count)


def _chunk(data: bytes) -> Chunk:
    return Chunk.build(data, entries=1, records=1, first_offset=0, timestamp_ms=0)


@pytest.mark.parametrize("size", [8_000, 32_000])
@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_many_items(kind: str, size: int) -> None:
    side, make = FRAMES[kind]
    unit = StreamCodec().encode(make(size))
    assert len(unit) > size * 0.9
    body = CountedBytes(unit[4:])
    assert not isinstance(StreamCodec(side).decode(body), Malformed)
    assert body.work <= PER_BYTE * len(body)


@pytest.mark.parametrize("size", [8_000, 32_000])
@pytest.mark.parametrize("segment", [1, 8, 1 << 20])
@pytest.mark.parametrize("fetched", [True, False])
def test_frames_in_tiny_segments(size: int, segment: int, fetched: bool) -> None:
    """Also when nobody fetches the frames for a while."""
    codec = StreamCodec()
    codec._buffer = buffer = CountedBuffer()
    heartbeat, long = codec.encode(Heartbeat()), codec.encode(publish(1, [(1, bytes(size // 4))]))
    data = heartbeat * (size // 16) + long * 2
    frames: list[Frame] = []
    waiting = []
    for piece in segments(data, segment):
        found = codec.feed(piece)
        if fetched:
            frames += [frame for frame, _ in found]
        else:
            waiting.append(found)
    frames += [frame for found in waiting for frame, _ in found]
    assert len(frames) == size // 16 + 2
    assert buffer.work <= PER_BYTE * len(data)


def test_what_is_stored_is_read_in_one_go() -> None:
    for count in (1_000, 4_000):
        entries = CountedBytes(simple_entries([b"a"] * count) + batch_entry([b"abc"] * count))
        assert sum(1 for _ in messages(entries)) == 2 * count
        assert entries.work <= PER_BYTE * len(entries)
