"""The judge's decoder of RabbitMQ Stream reads what was recorded on three real server versions."""

from __future__ import annotations

from typing import Any, Literal

from conformance.decoders.rabbitmq_stream import StreamDecoder
from conformance.decoders.rabbitmq_stream.messages import (
    counts_its_entries,
    entries_in,
    is_intact,
    names_its_length,
    offset_behind,
)
from fakebrokers.core.frames import Malformed
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import Deliver, PeerPropertiesResponse
from tests.conformance.decoders.alike import differences, nothing_of, otherwise, read
from tests.rabbitmq_stream.golden import Case, case, cases
from tests.rabbitmq_stream.test_golden import MALFORMED, NEVER_WHOLE, NOT_IDENTICAL

Side = Literal["client", "server"]
SIDES: tuple[tuple[Side, str], ...] = (("client", "s2c"), ("server", "c2s"))


def written_back(side: Side, golden: Case, found: list[tuple[Any, int]]) -> bytes:
    writer = StreamCodec(side, response_bit_on_routes=golden.server != "3.10.8")
    return b"".join(writer.encode(frame) for frame, _ in found)


def test_what_a_server_said_is_read_whole() -> None:
    problems: list[str] = []
    for golden in cases():
        client = StreamDecoder("client")
        found = read(client, [step.data for step in golden.steps if step.direction == "s2c"])
        problems += [f"{golden}: {frame}" for frame, _ in found if isinstance(frame, Malformed)]
        problems += otherwise(f"{golden}: bytes left", 0, client.partial)
        problems += otherwise(f"{golden}: size", len(golden.server_bytes), sum(size for _, size in found))
        problems += otherwise(str(golden), golden.server_bytes, written_back("server", golden, found))
    nothing_of(problems)


def test_what_a_client_said_is_read_as_a_server_does() -> None:
    problems: list[str] = []
    for golden in cases():
        server = StreamDecoder("server")
        found = read(server, [step.data for step in golden.steps if step.direction == "c2s"])
        malformed = sum(isinstance(frame, Malformed) for frame, _ in found)
        problems += otherwise(f"{golden}: malformed", int(golden.id in MALFORMED), malformed)
        if golden.id in NEVER_WHOLE:
            problems += otherwise(
                f"{golden}: frames", ([], len(golden.client_bytes)), (found, server.partial)
            )
        elif golden.id not in MALFORMED and golden.id not in NOT_IDENTICAL:
            problems += otherwise(f"{golden}: bytes left", 0, server.partial)
            problems += otherwise(str(golden), golden.client_bytes, written_back("client", golden, found))
    nothing_of(problems)


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
        assert counts_its_entries(chunk)
        assert sum(1 for _ in entries_in(chunk.data)) == chunk.entries
    first, second, *_ = deliveries(case("4.3.6", "subscribe_first"))
    assert offset_behind(first.chunk) == second.chunk.first_offset == 3


def test_the_fake_reads_the_same_in_it() -> None:
    """Fields that the codec reads and writes in the wrong place come back as they were written."""
    problems: list[str] = []
    for golden in cases():
        for side, direction in SIDES:
            units = [step.data for step in golden.steps if step.direction == direction]
            codec = StreamCodec(side, response_bit_on_routes=golden.server != "3.10.8")
            found = differences(codec, StreamDecoder(side), units, lambda frame: False)
            problems += [f"{golden}: {each}" for each in found]
    nothing_of(problems)
