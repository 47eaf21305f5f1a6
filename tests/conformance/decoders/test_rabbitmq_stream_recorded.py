"""The judge's decoder of RabbitMQ Stream reads what was recorded on three real server versions."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from conformance.decoders.rabbitmq_stream import StreamDecoder
from conformance.decoders.rabbitmq_stream.messages import (
    entries_in,
    is_intact,
    names_its_length,
    offset_behind,
)
from fakebrokers.core.frames import Malformed
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import Deliver, PeerPropertiesResponse
from tests.conformance.decoders.alike import assert_alike, read
from tests.rabbitmq_stream.golden import Case, case, cases
from tests.rabbitmq_stream.test_golden import MALFORMED, NEVER_WHOLE, NOT_IDENTICAL

Side = Literal["client", "server"]
RECORDED = pytest.mark.parametrize("golden", cases(), ids=str)


def written_back(side: Side, golden: Case, found: list[tuple[Any, int]]) -> bytes:
    writer = StreamCodec(side, response_bit_on_routes=golden.server != "3.10.8")
    return b"".join(writer.encode(frame) for frame, _ in found)


@RECORDED
def test_what_a_server_said_is_read_whole(golden: Case) -> None:
    client = StreamDecoder("client")
    found = read(client, [step.data for step in golden.steps if step.direction == "s2c"])
    assert [frame for frame, _ in found if isinstance(frame, Malformed)] == []
    assert client.partial == 0
    assert sum(size for _, size in found) == len(golden.server_bytes)
    assert written_back("server", golden, found) == golden.server_bytes


@RECORDED
def test_what_a_client_said_is_read_as_a_server_does(golden: Case) -> None:
    server = StreamDecoder("server")
    found = read(server, [step.data for step in golden.steps if step.direction == "c2s"])
    assert sum(isinstance(frame, Malformed) for frame, _ in found) == (golden.id in MALFORMED)
    if golden.id in NEVER_WHOLE:
        assert found == []
        assert server.partial == len(golden.client_bytes)
    elif golden.id not in MALFORMED and golden.id not in NOT_IDENTICAL:
        assert server.partial == 0
        assert written_back("client", golden, found) == golden.client_bytes


def test_recorded_fields_have_the_values_that_the_notes_tell() -> None:
    ((said, size),) = read(StreamDecoder("client"), [case("4.3.6", "peer_properties").server_bytes])
    assert (type(said), size) == (PeerPropertiesResponse, 252)
    assert list(said.properties) == sorted(said.properties)  # type: ignore[attr-defined]
    assert said.properties["product"] == "RabbitMQ"  # type: ignore[attr-defined]
    (committed,) = deliveries(case("4.3.6", "deliver_v2"))
    assert (committed.subscription_id, committed.committed_chunk_id) == (1, 16)


def deliveries(golden: Case) -> list[Deliver]:
    return [
        frame
        for frame, _ in read(StreamDecoder("client"), [golden.server_bytes])
        if isinstance(frame, Deliver)
    ]


def test_recorded_chunks_are_intact() -> None:
    chunks = [delivery.chunk for golden in cases() for delivery in deliveries(golden)]
    assert len(chunks) > 100
    for chunk in chunks:
        assert (chunk.magic, chunk.epoch) == (0x50, 1)
        assert is_intact(chunk)
        assert names_its_length(chunk)
        found = list(entries_in(chunk.data))
        assert (len(found), sum(entry.records for entry in found)) == (chunk.entries, chunk.records)
    first, second, *_ = deliveries(case("4.3.6", "subscribe_first"))
    assert offset_behind(first.chunk) == second.chunk.first_offset == 3


@RECORDED
def test_the_fake_reads_the_same_in_it(golden: Case) -> None:
    """Fields that the codec reads and writes in the wrong place come back as they were written."""
    for side, direction in (("client", "s2c"), ("server", "c2s")):
        units = [step.data for step in golden.steps if step.direction == direction]
        codec = StreamCodec(side, response_bit_on_routes=golden.server != "3.10.8")  # type: ignore[arg-type]
        assert_alike(codec, StreamDecoder(side), units, lambda frame: False)  # type: ignore[arg-type]
