"""The judge's decoder of RabbitMQ Stream by the letter of the notes, and beside the fake's codec."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.decoders import Unreadable
from conformance.decoders.rabbitmq_stream import StreamDecoder
from conformance.decoders.rabbitmq_stream.messages import (
    Entry,
    entries_in,
    publishing_ids,
    whole_entries,
)
from fakebrokers.core.frames import Malformed
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import FRAMES, StreamFrame, Tune
from scenarios.rabbitmq_stream.traits import LARGEST, TRAITS
from tests.conformance.decoders.alike import (
    assert_alike,
    damaged,
    differences,
    nothing_of,
    read,
    with_a_byte_changed,
)
from tests.rabbitmq_stream.layouts import by_the_notes
from tests.rabbitmq_stream.strategies import frames

Side = Literal["client", "server"]
KINDS = [kind for kind in FRAMES if issubclass(kind, StreamFrame)]

#: What a client can read no more; what clients send is read on whatever comes.
GARBAGE = {"client": TRAITS.reading.is_garbage, "server": lambda frame: False}


def decoder(side: Side) -> StreamDecoder:
    return StreamDecoder(side, LARGEST if side == "client" else 0)


def codec(side: Side) -> StreamCodec:
    return StreamCodec(side, LARGEST if side == "client" else 0)


def test_tune_is_spelled_as_in_the_notes() -> None:
    data = bytes.fromhex("0000000c 0014 0001 00100000 0000003c")
    assert read(decoder("client"), [data]) == [(Tune(frame_max=1 << 20, heartbeat=60), 16)]


def test_an_answer_is_none_in_the_other_direction() -> None:
    data = bytes.fromhex("0000000a 800d 0001 00000007 0001")
    ((frame, _),) = read(decoder("server"), [data])
    assert isinstance(frame, Malformed)
    assert frame.problem == "CreateResponse version 1: not known on this side"
    ((frame, _),) = read(decoder("client"), [data])
    assert frame.code == 1  # type: ignore[attr-defined]


def test_nothing_is_read_behind_a_size_above_the_limit() -> None:
    client = StreamDecoder("client", 16)
    ((frame, size),) = client.feed(bytes.fromhex("00000011 0017 0001 ffff"))
    assert isinstance(frame, Malformed)
    assert (frame.code, size, client.partial) == ("too-large", 10, 0)
    assert client.feed(bytes.fromhex("00000004 0017 0001")) == []


def test_entries_lie_back_to_back() -> None:
    simple, batch = bytes.fromhex("00000002 6162"), bytes.fromhex("90 0003 00000010 00000001 ff")
    assert list(entries_in(simple + batch)) == [Entry(None, 1, 2, 0, 4, 6), Entry(1, 3, 16, 6, 17, 18)]
    assert whole_entries(simple + batch[:-1]) == [Entry(None, 1, 2, 0, 4, 6)]
    with pytest.raises(Unreadable, match="1 bytes at byte 6, 0 are left"):
        list(entries_in(simple + batch[:-1]))
    assert publishing_ids(bytes.fromhex("0000000000000001 ffffffffffffffff")) == [1, 2**64 - 1]


def sides(frame: StreamFrame) -> list[Side]:
    return {"client": ["server"], "server": ["client"], "both": ["client", "server"]}[frame.SENDER]  # type: ignore[return-value]


def alike(side: Side, *units: bytes) -> None:
    assert_alike(codec(side), decoder(side), units, GARBAGE[side])


@given(st.sampled_from(KINDS).flatmap(frames))
def test_it_reads_what_the_fake_writes(frame: StreamFrame) -> None:
    for side in sides(frame):
        written = codec("client" if side == "server" else "server").encode(frame)
        assert read(decoder(side), [written]) == [(frame, len(written))]


@given(st.sampled_from(KINDS).flatmap(frames), st.integers(0), st.integers(0, 255))
def test_both_make_the_same_of_damage(frame: StreamFrame, at: int, value: int) -> None:
    whole = codec("client" if sides(frame)[0] == "server" else "server").encode(frame)
    cut = at % (len(whole) + 1)
    for side in sides(frame):
        alike(side, whole[:cut], whole[cut:], whole)
        alike(side, max(cut - 4, 0).to_bytes(4) + whole[4:cut], whole)
        alike(side, with_a_byte_changed(whole, at, value), whole)


def test_both_make_the_same_of_each_frame_with_any_byte_wrong_or_lost() -> None:
    problems: list[str] = []
    for each in by_the_notes():
        if ": usual" in each.name and len(each.wire) < 200:
            for data in damaged(each.wire, 8, lambda size: (size - 4 if size else 0).to_bytes(4)):
                both = codec(each.reader), decoder(each.reader)
                found = differences(*both, [data, each.wire], GARBAGE[each.reader])
                problems += [f"{each.name}, {data.hex()}: {one}" for one in found]
    nothing_of(problems)


@given(st.binary(max_size=80), st.sampled_from(["client", "server"]))
@example(b"\0\0\0\2\0\3" * 2, "client")
def test_both_make_the_same_of_any_bytes(data: bytes, side: Side) -> None:
    alike(side, data)
    alike(side, len(data).to_bytes(4) + data)
