"""The judge's decoder of NATS, and of packets in it, reads what was recorded with real nodes and servers."""

from __future__ import annotations

from typing import Literal

from conformance.decoders.moleculer import is_json, read_packet
from conformance.decoders.nats import NatsDecoder
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.moleculer import packets
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.nats.frames import KINDS, Connect, Msg, Pub, ServerInfo, Sub
from tests.conformance.decoders.alike import differences, nothing_of, otherwise, read
from tests.moleculer.golden import Talk, rows, talks

Side = Literal["client", "server"]
SIDES: tuple[tuple[Side, str], ...] = (("client", "S>C"), ("server", "C>S"))


def frames(talk: Talk, side: Side, direction: str) -> list[Frame]:
    decoder = NatsDecoder(side, KINDS)
    found = read(decoder, [data for way, data in talk.steps if way == direction])
    assert decoder.partial == 0
    assert sum(size for _, size in found) == len(talk.side(direction))
    return [frame for frame, _ in found]


def test_all_of_it_is_read() -> None:
    for talk in talks("nats"):
        for side, direction in SIDES:
            found = frames(talk, side, direction)
            assert [frame for frame in found if isinstance(frame, Malformed)] == [], talk
            assert type(found[0]) is (ServerInfo if side == "client" else Connect), talk


def test_the_fake_reads_the_same_in_it() -> None:
    problems: list[str] = []
    for talk in talks("nats"):
        for side, direction in SIDES:
            units = [data for way, data in talk.steps if way == direction]
            found = differences(NatsCodec(side, 0), NatsDecoder(side, KINDS), units, lambda frame: False)
            problems += [f"{talk}: {each}" for each in found]
    nothing_of(problems)


def test_messages_are_written_back_byte_by_byte() -> None:
    """The lines of a message have one spelling, unlike the JSON of others."""
    for talk in talks("nats"):
        for side, direction in SIDES:
            for frame in frames(talk, side, direction):
                if isinstance(frame, Sub | Pub | Msg):
                    assert NatsCodec(side, 0).encode(frame) in talk.side(direction), talk


def test_recorded_fields_have_the_values_that_the_notes_tell() -> None:
    told = [frame for talk in talks("nats") for frame in frames(talk, "client", "S>C")]
    infos = [frame.options for frame in told if isinstance(frame, ServerInfo)]
    assert {info["max_payload"] for info in infos} == {1048576}
    assert {info["headers"] for info in infos} == {True}
    said = [frame for talk in talks("nats") for frame in frames(talk, "server", "C>S")]
    connects = [frame for frame in said if isinstance(frame, Connect)]
    assert {frame.options["protocol"] for frame in connects} == {1}
    heartbeats = [frame for frame in said if isinstance(frame, Pub) and frame.subject == "MOL.HEARTBEAT"]
    assert heartbeats
    for frame in heartbeats:
        packet = read_packet(frame.subject, frame.payload)
        assert isinstance(packet, packets.Heartbeat)
        assert isinstance(packet.cpu, int)
        assert packet.more == {}


def test_packets_are_read_as_the_fake_does() -> None:
    problems: list[str] = []
    for row in rows("packet"):
        if is_json(row.data):
            packet = read_packet(row.values["topic"], row.data)
            problems += otherwise(str(row), packets.read_packet(row.values["topic"], row.data), packet)
            problems += [f"{row}: {packet}"] if packet is None or packet.more != {} else []
    nothing_of(problems)
