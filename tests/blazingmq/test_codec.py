"""The codec on its own: round trips, and what it makes of bytes that are no events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.blazingmq.frames import (
    CONTROL_FRAMES,
    Ack,
    AckMessage,
    AdminCommand,
    AdminCommandResponse,
    BrokerResponse,
    Confirm,
    ConfirmMessage,
    ControlFrame,
    HeartbeatRequest,
    OpenQueue,
    Push,
    PushMessage,
    Put,
    PutMessage,
    StatusResponse,
)
from fakebrokers.blazingmq.schema import HandleParameters, Status
from fakebrokers.core.frames import Frame, Malformed, Role, parts_of
from fakebrokers.errors import WireError
from tests.blazingmq.golden import events
from tests.blazingmq.strategies import control_frames, event_frames

GUID = bytes(range(16))


def one(data: bytes, codec: BlazingCodec | None = None) -> Frame:
    """The one frame of these bytes."""
    codec = codec or BlazingCodec()
    ((frame, size),) = codec.feed(data)
    assert size == len(data)
    return frame


def malformed(data: bytes) -> Malformed:
    frame = one(data)
    assert isinstance(frame, Malformed)
    return frame


@pytest.mark.parametrize("kind", CONTROL_FRAMES, ids=lambda kind: kind.kind)
@given(drawing=st.data(), encoding=st.sampled_from(Encoding))
def test_control_frames_come_back_the_same(
    kind: type[ControlFrame], drawing: st.DataObject, encoding: Encoding
) -> None:
    frame = drawing.draw(control_frames(kind))
    codec = BlazingCodec(encoding)
    assert one(codec.encode(frame)) == frame


@given(frame=event_frames)
def test_other_frames_come_back_the_same(frame: Frame) -> None:
    assert one(BlazingCodec().encode(frame)) == frame


@given(frames=st.lists(event_frames, max_size=5), cuts=st.lists(st.integers(1, 30), max_size=20))
def test_however_the_bytes_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    codec = BlazingCodec()
    data = b"".join([codec.encode(frame) for frame in frames])
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(data[at : at + cut])
        at += cut
    found = [frame for piece in [*pieces, data[at:]] for frame, _ in codec.feed(piece)]
    assert found == frames
    assert codec.partial == 0


@given(data=st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for frame, _ in BlazingCodec().feed(data):
        assert isinstance(frame, Frame)


@given(st.sampled_from(events()), st.data())
def test_recorded_events_with_other_bytes(event: object, drawing: st.DataObject) -> None:
    data = bytearray(event.data)  # type: ignore[attr-defined]
    for _ in range(drawing.draw(st.integers(1, 4))):
        data[drawing.draw(st.integers(4, len(data) - 1))] = drawing.draw(st.integers(0, 255))
    codec = BlazingCodec()
    for frame, _ in codec.feed(bytes(data)):
        if not isinstance(frame, Malformed):
            codec.encode(frame)


@given(st.sampled_from([each for each in events() if each.data[4] == 0x41]), st.data())
def test_control_messages_that_end_early(event: object, drawing: st.DataObject) -> None:
    data: bytes = event.data  # type: ignore[attr-defined]
    cut = data[8 : drawing.draw(st.integers(9, len(data) - data[-1] - 1))]
    whole = (len(cut) + 9).to_bytes(4) + data[4:8] + cut + b"\1"
    assert isinstance(one(whole), Malformed)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("00000000 41020000", "framing"),
        ("00000007 41020000", "framing"),
        ("7fffffff 42020000", "too-large"),
        ("80000008 41020000", "framing"),
        ("ffffffff 42020000", "framing"),
    ],
)
def test_behind_an_impossible_header_nothing_is_read(data: str, code: str) -> None:
    codec = BlazingCodec()
    ((frame, _),) = codec.feed(bytes.fromhex(data) + codec.encode(HeartbeatRequest()))
    assert isinstance(frame, Malformed)
    assert frame.code == code
    assert frame.problem.startswith("expected a")
    assert codec.partial == 0  # what is thrown away is no beginning of an event
    assert list(codec.feed(codec.encode(HeartbeatRequest()))) == []


@pytest.mark.parametrize("data", ["00000008 4b010000", "00000008 4b030000", "0000000c 42000000 00000000"])
def test_after_a_header_of_a_size_that_cannot_be_the_next_event_is_read(data: str) -> None:
    codec = BlazingCodec()
    (first, _), (second, _) = codec.feed(bytes.fromhex(data) + codec.encode(HeartbeatRequest()))
    assert isinstance(first, Malformed)
    assert first.code == "event"
    assert second == HeartbeatRequest()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("00000008 41020000", "an identifier and a length at byte 0, got 0 bytes"),
        ("0000000c 41020000 00000005", "tag 0x30 at byte 2, got 0x00"),
        ("0000000c 41024000 04040404", "an encoding of 0 (BER) or 1 (JSON)"),
        ("00000010 41020000 3080000004040404", "a choice, got nothing"),
        ("00000010 41022000 7b7d202004040404", "a choice of a control message, got nothing"),
        ("0000000c 41022000 5b5d0202", "an object for the message"),
        ("0000000c 41022000 7b200202", "a JSON document"),
    ],
)
def test_control_messages_that_cannot_be_read(data: str, problem: str) -> None:
    frame = malformed(bytes.fromhex(data))
    assert frame.code == "control"
    assert problem in frame.problem


def test_deep_nesting_is_refused() -> None:
    body = b"\x30\x80" * 5000 + bytes(10_000) + b"\4\4\4\4"
    assert "within each other" in malformed((len(body) + 8).to_bytes(4) + b"\x41\2\0\0" + body).problem
    body = b"[" * 100_000 + b"\4\4\4\4"
    assert malformed((len(body) + 8).to_bytes(4) + b"\x41\2\x20\0" + body).code == "control"


def test_definite_lengths_are_read_too() -> None:
    """openQueue with a uri alone; everything else has its default."""
    uri = b"bmq://d/q"
    parameters = b"\xa0" + bytes((len(uri) + 2,)) + b"\x80" + bytes((len(uri),)) + uri
    chosen = b"\xaa" + bytes((len(parameters),)) + parameters
    body = b"\x80\1\7" + b"\xa1" + bytes((len(chosen),)) + chosen
    message = b"\x30" + bytes((len(body),)) + body
    padding = 4 - len(message) % 4
    event = (8 + len(message) + padding).to_bytes(4) + b"\x41\2\0\0" + message + bytes([padding]) * padding
    assert one(event) == OpenQueue(7, HandleParameters("bmq://d/q", 0))


def test_unknown_elements_are_skipped_and_absent_ones_have_their_default() -> None:
    event = BlazingCodec(Encoding.JSON).encode(StatusResponse(3, -6, 9, "no"))
    changed = event[8 : -event[-1]].replace(b'"code":9', b'"new":{"x":[1,null]}')
    changed += b"\4" * 4 if len(changed) % 4 == 0 else bytes([4 - len(changed) % 4]) * (4 - len(changed) % 4)
    frame = one((8 + len(changed)).to_bytes(4) + event[4:8] + changed)
    assert frame == StatusResponse(3, -6, 0, "no")


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ('{"rId":"x","disconnect":{}}', "a number from -2147483648 to 2147483647 for rId"),
        ('{"rId":2147483648,"disconnect":{}}', "a number from -2147483648 to 2147483647 for rId"),
        ('{"rId":1,"status":{"category":"E_NONE"}}', "one of E_SUCCESS, E_UNKNOWN"),
        ('{"rId":1,"status":{"code":1e-3}}', "a number from -2147483648 to 2147483647 for code"),
        ('{"rId":1,"status":{"message":7}}', "a string for message"),
        ('{"rId":1,"closeQueue":{"isFinal":1}}', "true or false for isFinal"),
        (
            '{"rId":1,"configureStream":{"streamParameters":{"subscriptions":{}}}}',
            "an array for subscriptions",
        ),
        ('{"rId":1,"openQueue":[]}', "an object for openQueue"),
    ],
)
def test_json_of_the_wrong_shape(json: str, problem: str) -> None:
    body = json.encode()
    pad = 4 - len(body) % 4
    frame = malformed((8 + len(body) + pad).to_bytes(4) + b"\x41\2\x20\0" + body + bytes([pad]) * pad)
    assert problem in frame.problem


def test_half_a_surrogate_pair_can_be_answered() -> None:
    body = b'{"rId":1,"adminCommand":{"command":"\\ud800 \xff"}}'
    pad = 4 - len(body) % 4
    frame = one((8 + len(body) + pad).to_bytes(4) + b"\x41\2\x20\0" + body + bytes([pad]) * pad)
    assert isinstance(frame, AdminCommand)
    for encoding in Encoding:
        answer = AdminCommandResponse(1, frame.command)
        assert one(BlazingCodec(encoding).encode(answer)) == answer


def test_a_header_with_more_words_is_skipped() -> None:
    event = BlazingCodec().encode(Confirm((ConfirmMessage(1, GUID, 2),)))
    longer = (len(event) + 4).to_bytes(4) + event[4:5] + b"\3" + event[6:8] + b"new!" + event[8:]
    assert one(longer) == Confirm((ConfirmMessage(1, GUID, 2),))


def test_messages_before_the_one_that_cannot_be_read_count() -> None:
    codec = BlazingCodec()
    good = codec.encode(Put((PutMessage(1, GUID, b"a"), PutMessage(2, GUID, b"b"))))
    event = (len(good) + 12).to_bytes(4) + good[4:] + bytes(12)
    frame = one(event)
    assert isinstance(frame, Put)
    assert [message.data for message in frame.messages] == [b"a", b"b"]
    assert frame.rest == bytes(12)
    assert codec.encode(frame) == event
    assert malformed((20).to_bytes(4) + good[4:8] + bytes(12)).code == "event"


def test_old_and_long_message_headers() -> None:
    codec = BlazingCodec()
    for put in (
        PutMessage(1, GUID, b"a", crc=7, header_words=8),
        PutMessage(1, GUID, b"a", crc=7, schema_id=3, header_words=11),
    ):
        assert one(codec.encode(Put((put,)))) == Put((put,))
    for push in (
        PushMessage(1, GUID, b"a", header_words=7),
        PushMessage(1, GUID, b"a", schema_id=3, header_words=9),
    ):
        assert one(codec.encode(Push((push,)))) == Push((push,))
    without_schema = replace(PushMessage(1, GUID, b"a", schema_id=3), header_words=7)
    assert one(codec.encode(Push((without_schema,)))) == Push((replace(without_schema, schema_id=0),))


def test_longer_answers_in_an_ack() -> None:
    ack = Ack((AckMessage(1, GUID, 2, 3), AckMessage(2, GUID)), item_words=9)
    event = BlazingCodec().encode(ack)
    assert len(event) == 8 + 4 + 2 * 36
    assert one(event) == ack


def test_what_does_not_fit_is_told() -> None:
    codec = BlazingCodec()
    with pytest.raises(WireError, match="a PUT that fits the wire"):
        codec.encode(Put((PutMessage(1 << 40, GUID, b""),)))
    with pytest.raises(WireError, match="a frame of BlazingMQ"):
        codec.encode(Frame())


def test_mending_makes_the_length_right() -> None:
    codec = BlazingCodec()
    event = codec.encode(HeartbeatRequest())
    assert one(codec.mend(event + b"more")) == HeartbeatRequest()


def test_settings_go_to_a_fresh_codec() -> None:
    codec = BlazingCodec(Encoding.JSON, 1000)
    list(codec.feed(b"\0\0"))
    fresh = codec.fresh()
    assert (fresh.encoding, fresh.max_event, fresh.partial) == (Encoding.JSON, 1000, 0)


def test_items_differ_in_role_status_and_queue() -> None:
    numbered = AckMessage(4, GUID, 1, correlation_id=7)
    ack = Ack((AckMessage(4, GUID), AckMessage(5, GUID, 2), numbered, AckMessage(4, GUID)))
    parts = parts_of(ack, ack.spec, "out")
    assert [(part.role, part.status, part.scope, part.indices) for part in parts] == [
        (Role.CONFIRM, 0, 4, (0, 3)),
        (Role.REJECT, 2, 5, (1,)),
        (Role.REJECT, 1, 4, (2,)),
    ]
    assert ack.guids == GUID * 2 + bytes.fromhex("00000007") + bytes(12) + GUID
    put = PutMessage(4, bytes.fromhex("00000007") + bytes(12), b"")
    assert (put.key, put.correlation_id) == (numbered.key, 7)
    assert ack.spec.items is not None
    assert ack.spec.items.select(ack, [2]) == Ack((numbered,))


def test_the_status_of_an_answer() -> None:
    assert BrokerResponse(Status(-6, 0)).category == -6
