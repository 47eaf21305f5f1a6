"""The codec: round trips, strictness of a 4.3 server, tolerance of a client, feeding in pieces."""

from __future__ import annotations

import time
from collections.abc import Iterator
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import Side, StreamCodec
from fakebrokers.rabbitmq_stream.frames import FRAMES, StreamFrame
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.golden import Case, cases
from tests.rabbitmq_stream.strategies import frames

KINDS = [kind for kind in FRAMES if issubclass(kind, StreamFrame)]
SIDES: tuple[Side, ...] = ("server", "client")


def decode(side: Side, hex_body: str) -> Frame:
    body = bytes.fromhex(hex_body)
    (frame,) = [frame for frame, _ in StreamCodec(side).feed(pack(">I", len(body)) + body)]
    return frame


def code(side: Side, hex_body: str) -> str:
    frame = decode(side, hex_body)
    return frame.code if isinstance(frame, Malformed) else "read"


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_round_trip(kind: type[StreamFrame], data: st.DataObject) -> None:
    frame = data.draw(frames(kind))
    for receiver in SIDES:
        if receiver == kind.SENDER:
            continue
        wire = StreamCodec().encode(frame)
        codec = StreamCodec(receiver)
        assert list(codec.feed(wire)) == [(frame, len(wire))]
        assert codec.partial == 0


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_the_sender_itself_does_not_know_the_frame(kind: type[StreamFrame], data: st.DataObject) -> None:
    if kind.SENDER == "both":
        return
    # 3.10 sends the answers of these two with the key of the question
    if kind in {f.Route, f.Partitions}:
        return
    frame = StreamCodec(kind.SENDER).decode(StreamCodec().encode(data.draw(frames(kind)))[4:])
    assert isinstance(frame, Malformed)
    read_before = kind.KEY & 0x8000 or kind is f.PublishError  # one without ids crashes the server
    assert frame.code == "unknown" or (read_before and frame.code == "crash")


def whole_frames(side: Side) -> Iterator[bytes]:
    """What was recorded from clients or servers, without what is cut short."""
    for golden in cases("4.3.6"):
        data = golden.client_bytes if side == "server" else golden.server_bytes
        codec = StreamCodec(side)
        list(codec.feed(data))
        if not codec.partial:
            yield data


class TestServerIsAsStrictAs43:
    """docs/protocols/rabbitmq-stream.md, 2 and 5; where it says nothing, rabbit_stream_core of 4.3."""

    @pytest.mark.parametrize(
        ("hex_body", "expected"),
        [
            ("00", "empty"),
            ("000d", "unknown"),
            ("000d0001", "unknown"),
            ("00c8000100000001", "unknown"),
            ("0000000100000001", "unknown"),
            ("000d00020000000100017300000000", "unknown"),  # Create has no version 2
            ("000200030000000000", "unknown"),  # Publish has no version 3
            ("001700010000", "unknown"),  # Heartbeat with something behind it
            ("001500010000000100022f", "unknown"),  # virtual host one byte short
            ("0015000100000001ffff", "unknown"),  # null is a length of 65535 here
            ("000100010000000101ffff000173", "unknown"),  # null reference
            ("000d000100000001000173", "unknown"),  # Create without a map
            ("000d0001000000010001730000000000", "crash"),  # inside the map
            ("000d00010000000100017300000001000161000262", "crash"),
            ("000f00010000000100000001000561", "crash"),
            ("001b0001000000010000000100010001", "crash"),
            ("001d000100000001000173", "unknown"),  # before the first count
            ("001d00010000000100017300000001000170", "crash"),  # no binding keys
            ("001d0001000000010001730000000100017000000000", "crash"),  # no map
            ("001d000100000001000173000000010001700000000000000000", "read"),
            ("00130001000000010005504c41494e", "crash"),  # no data at all
            ("00130001000000010005504c41494e000000016161", "crash"),
            ("00130001000000010005504c41494effffffff", "read"),
            ("0007000100000001010001730000", "bad-offset"),
            ("0007000100000001010001730006", "bad-offset"),
            ("000700010000000101000173ffff", "bad-offset"),
            ("000700010000000101000173", "unknown"),
            ("000700010000000101000173000100", "crash"),  # half a credit
            ("000700010000000101000173000400000000", "crash"),
            ("000700010000000101000173000100000000000000010001", "crash"),  # value behind type 1
            ("00070001000000010100017300010001", "read"),
            ("00070001000000010100017300010001000000", "read"),  # ignored
            ("001f0001000000010001730000", "bad-offset"),
            ("001f0001000000010001730002", "read"),
            ("001f000100000001000173000500", "crash"),
            ("80140001000004000000003c", "read"),  # Tune with the bit of an answer
            ("80160001000000010001", "read"),
            ("8016000100000001000100", "unknown"),  # an answer without a rule
            ("801a0001000000010001", "unknown"),  # a bare code where more is due
            ("801a000100000001000100", "unknown"),
            ("801a00010000000100010000", "read"),
            ("801a0001000000010001000400", "crash"),
            ("801a00010000000100010004000000000000000100", "crash"),
            ("801a00010000000100010006", "bad-offset"),
            ("0002000100000000", "unknown"),  # Publish: before the first entry
            ("0002000100000000010000", "crash"),
            ("00020001000000000100000000000000010000000261", "crash"),
            ("00020001000000000100000000000000018000", "crash"),  # batch header cut
            ("000200010000000001000000000000000180000100000005000000056161", "crash"),
            ("00020002000000000100000000000000010001610000000162", "read"),
            ("00020002000000000100000000000000010001610000000262", "crash"),
            ("0002000200000000010000000000000001000561", "crash"),
            ("0002000200000000010000000000000001ffff80000100000005000000050000000161", "crash"),
        ],
    )
    def test_shape(self, hex_body: str, expected: str) -> None:
        assert code("server", hex_body) == expected

    def test_counts_of_trailing_arrays_are_not_trusted(self) -> None:
        assert decode("server", "000f00010000000100000009000161000162") == f.Metadata(1, ("a", "b"))
        assert decode("server", "000d0001000000010001730000000000016b000176") == f.Create(1, "s", {"k": "v"})

    def test_absent_property_map_is_not_an_empty_one(self) -> None:
        absent = decode("server", "00070001000000010100017300010001")
        empty = decode("server", "0007000100000001010001730001000100000000")
        assert isinstance(absent, f.Subscribe)
        assert isinstance(empty, f.Subscribe)
        assert (absent.properties, empty.properties) == (None, {})

    def test_timestamps_are_signed_and_offsets_are_not(self) -> None:
        last = "ffffffffffffffff"
        by_offset = decode("server", "001f0001000000010001730004" + last)
        by_time = decode("server", "001f0001000000010001730005" + last)
        assert by_offset == f.ResolveOffsetSpec(1, "s", 4, 2**64 - 1)
        assert by_time == f.ResolveOffsetSpec(1, "s", 5, -1)

    def test_credit_is_signed(self) -> None:
        assert decode("server", "0009000101ffff") == f.Credit(1, -1)


class TestClientSkipsWhatItDoesNotKnow:
    def test_bytes_behind_an_answer(self) -> None:
        assert decode("client", "8015000100000001000100000000ab" * 12) == f.OpenResponse(1, 1, {})

    def test_nulls(self) -> None:
        null_value = decode("client", "8011000100000001000100000002000161ffff0001620000")
        assert null_value == f.PeerPropertiesResponse(1, 1, {"a": None, "b": ""})
        assert decode("client", "80150001000000010001ffffffff") == f.OpenResponse(1, 1, {})
        assert decode("client", "800f000100000001ffffffffffffffff") == f.MetadataResponse(1, (), ())

    @pytest.mark.parametrize(
        ("hex_body", "expected"),
        [
            ("80150001000000010001", "read"),  # no properties
            ("8015000100000001000100000009", "malformed"),  # a count without its pairs
            ("0003000101000000020000000000000001", "malformed"),
            ("00030001011fffffff", "malformed"),
            ("0008000101" + "50" * 47, "malformed"),  # a chunk header cut short
            ("000d0001000000010001", "unknown"),  # an answer without its bit
            ("00c80001", "unknown"),
            ("001400020000000000000000", "unknown"),
        ],
    )
    def test_but_not_what_is_missing(self, hex_body: str, expected: str) -> None:
        assert code("client", hex_body) == expected


class TestMalformed:
    def test_text_says_what_and_where(self) -> None:
        frame = decode("server", "000d00010000000500326162")
        assert isinstance(frame, Malformed)
        assert frame.problem == (
            "Create (key 0x000d, version 1, correlation id 5): "
            "expected block of 50 bytes at byte 10, got 2 bytes"
        )
        assert frame.data == bytes.fromhex("0000000c000d00010000000500326162")

    def test_keeps_an_excerpt_only(self) -> None:
        frame = decode("server", "00c80001" + "00" * 5000)
        assert isinstance(frame, Malformed)
        assert len(frame.data) == 256

    def test_credentials_are_left_out(self) -> None:
        for codec, wire in [
            (StreamCodec(), bytes.fromhex("0000001b00130001000000030005504c41494e000000ff") + b"\0user\0pa"),
            (
                StreamCodec(max_frame=20),
                bytes.fromhex("0000001b00130001000000030005504c41494e") + b"\0user\0pa",
            ),
        ]:
            ((frame, _),) = codec.feed(wire)
            assert isinstance(frame, Malformed)
            assert b"user" not in frame.data
            assert "user" not in frame.problem

    def test_frame_of_size_0(self) -> None:
        ((frame, size),) = StreamCodec().feed(bytes(4))
        assert isinstance(frame, Malformed)
        assert (frame.code, size) == ("empty", 4)

    def test_does_not_end_the_reading(self) -> None:
        wire = bytes.fromhex("000000000000000400c800010000000400170001")
        assert [type(frame) for frame, _ in StreamCodec().feed(wire)] == [Malformed, Malformed, f.Heartbeat]


class TestFrameMax:
    def test_size_itself_is_allowed(self) -> None:
        wire = StreamCodec().encode(f.Delete(1, "s"))
        assert [frame for frame, _ in StreamCodec(max_frame=len(wire) - 4).feed(wire)] == [f.Delete(1, "s")]

    def test_one_byte_more_is_too_large_as_soon_as_the_size_is_known(self) -> None:
        wire = StreamCodec().encode(f.Delete(1, "s"))
        codec = StreamCodec(max_frame=len(wire) - 5)
        assert list(codec.feed(wire[:3])) == []
        ((frame, size),) = codec.feed(wire[3:4])
        assert isinstance(frame, Malformed)
        assert (frame.code, frame.data, size) == ("too-large", wire[:4], 4)
        assert frame.problem == "expected a frame of at most 10 bytes, got a size prefix of 11"

    def test_nothing_behind_it_is_read_or_kept(self) -> None:
        codec = StreamCodec(max_frame=100)
        assert len(list(codec.feed(bytes.fromhex("000000040017000100000065") + b"x" * 500))) == 2
        assert list(codec.feed(StreamCodec().encode(f.Heartbeat()))) == []
        assert codec.partial == 0

    def test_may_be_set_between_two_frames_of_one_unit(self) -> None:
        codec = StreamCodec()
        seen = []
        for frame, _ in codec.feed(StreamCodec().encode(f.Tune(5, 0)) * 2):
            seen.append(type(frame))
            codec.max_frame = 5
        assert seen == [f.Tune, Malformed]


class TestFeeding:
    @given(st.data())
    def test_pieces_give_the_same_as_the_whole(self, data: st.DataObject) -> None:
        sent = data.draw(
            st.lists(st.sampled_from([k for k in KINDS if k.SENDER != "server"]).flatmap(frames), max_size=5)
        )
        wire = b"".join(map(StreamCodec().encode, sent))
        codec, pos, received = StreamCodec(), 0, []
        while pos < len(wire):
            size = data.draw(st.integers(1, len(wire) - pos))
            received.extend(codec.feed(wire[pos : pos + size]))
            pos += size
        assert received == list(StreamCodec().feed(wire))
        assert [frame for frame, _ in received] == sent

    @pytest.mark.parametrize("side", SIDES)
    def test_byte_by_byte(self, side: Side) -> None:
        wire = b"".join(whole_frames(side))
        codec = StreamCodec(side)
        pieces = [item for byte in wire for item in codec.feed(bytes([byte]))]
        assert pieces == list(StreamCodec(side).feed(wire))
        assert len(pieces) > 100

    def test_partial_counts_what_has_arrived(self) -> None:
        codec = StreamCodec()
        wire = codec.encode(f.Heartbeat())
        list(codec.feed(wire + wire[:6]))
        assert codec.partial == 6
        list(codec.feed(wire[6:]))
        assert codec.partial == 0

    def test_frames_that_were_not_fetched_are_not_lost(self) -> None:
        codec = StreamCodec()
        first = next(iter(codec.feed(codec.encode(f.Delete(1, "a")) + codec.encode(f.Delete(2, "b")))))
        rest = list(codec.feed(codec.encode(f.Delete(3, "c"))))
        assert [frame for frame, _ in (first, *rest)] == [
            f.Delete(1, "a"),
            f.Delete(2, "b"),
            f.Delete(3, "c"),
        ]

    def test_time_is_linear_in_the_size_of_a_frame(self) -> None:
        """Half a megabyte byte by byte: copying the buffer each time would take minutes."""
        wire = StreamCodec().encode(publish(1, [(1, bytes(500_000))]))
        codec = StreamCodec()
        started = time.process_time()
        received = [item for at in range(len(wire)) for item in codec.feed(wire[at : at + 1])]
        assert len(received) == 1
        assert time.process_time() - started < 5

    @given(st.binary(max_size=200))
    def test_random_bytes_never_raise(self, data: bytes) -> None:
        for side in SIDES:
            list(StreamCodec(side, max_frame=100).feed(data))
            list(StreamCodec(side).feed(pack(">I", len(data)) + data))

    @given(st.sampled_from(KINDS), st.integers(1, 2), st.binary(max_size=80))
    def test_random_content_of_known_frames_never_raises(
        self, kind: type[StreamFrame], version: int, content: bytes
    ) -> None:
        for side in SIDES:
            frame = StreamCodec(side).decode(pack(">HH", kind.KEY, version) + content)
            if not isinstance(frame, Malformed):
                StreamCodec().encode(frame)

    @given(st.sampled_from(cases("4.3.6")), st.integers(0), st.integers(0, 255))
    def test_damaged_recordings_never_raise(self, golden: Case, at: int, byte: int) -> None:
        for side, data in zip(SIDES, (golden.client_bytes, golden.server_bytes), strict=True):
            if data:
                damaged = bytearray(data)
                damaged[at % len(data)] = byte
                list(StreamCodec(side).feed(bytes(damaged)))


class TestEncode:
    def test_nothing_is_corrected(self) -> None:
        """Faults rewrite fields; what they ask for has to be sent."""
        chunk = Chunk.build(b"\0\0\0\1a", entries=1, records=1, first_offset=9, timestamp_ms=1)
        wrong = Chunk(0, 7, 8, 1, 1, 9, 0xDEADBEEF, chunk.data, 14, 16, 0x60, 1234)
        ((frame, _),) = StreamCodec("client").feed(StreamCodec().encode(f.Deliver(1, wrong)))
        assert frame == f.Deliver(1, wrong)
        assert b"\xde\xad\xbe\xef" in StreamCodec().encode(frame)

    def test_null_values_can_be_sent(self) -> None:
        wire = StreamCodec().encode(f.PeerPropertiesResponse(1, 1, {"a": None}))
        assert wire.endswith(b"\0\1a\xff\xff")

    def test_count_of_a_publish_is_sent_as_it_stands(self) -> None:
        frame = publish(1, [(1, b"a")])
        lying = f.Publish(1, 5, frame.publishing_ids, frame.entries, 1)
        ((received, _),) = StreamCodec().feed(StreamCodec().encode(lying))
        assert received == replace(frame, claimed=5)

    def test_malformed_passes_as_it_came(self) -> None:
        assert StreamCodec().encode(Malformed(b"abc", "?")) == b"abc"

    def test_non_utf8_names_pass_unchanged(self) -> None:
        wire = bytes.fromhex("0000000c000e0001000000050002fffe")
        ((frame, _),) = StreamCodec().feed(wire)
        assert isinstance(frame, f.Delete)
        assert frame.stream == "\udcff\udcfe"
        assert StreamCodec().encode(frame) == wire

    @pytest.mark.parametrize(
        "frame",
        [
            f.Credit(256, 1),
            f.Credit(1, 40_000),
            f.Delete(-1, "s"),
            f.Delete(1, "s" * 65_536),
            f.Delete(1, None),  # type: ignore[arg-type]
            f.Metadata(1, 5),  # type: ignore[arg-type]
            f.Deliver(300, Chunk.build(b"", entries=0, records=0, first_offset=0, timestamp_ms=0)),
            f.Publish(1, 1, bytes(8), b"\0\0", 1),
        ],
    )
    def test_what_does_not_fit_is_a_wire_error(self, frame: Frame) -> None:
        with pytest.raises(WireError, match=type(frame).__name__):
            StreamCodec().encode(frame)

    def test_frames_of_others_are_refused(self) -> None:
        class Foreign(Frame, frozen=True):
            pass

        with pytest.raises(WireError, match="Foreign"):
            StreamCodec().encode(Foreign())
