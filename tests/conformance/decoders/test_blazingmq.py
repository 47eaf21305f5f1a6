"""The judge's decoder of BlazingMQ by the letter of the notes, and beside the fake's codec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq import BlazingDecoder
from conformance.decoders.blazingmq.contents import content_in, subscriptions_in
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Compression, Encoding
from fakebrokers.blazingmq.frames import (
    CONTROL_FRAMES,
    Ack,
    AckMessage,
    Confirm,
    ConfirmMessage,
    ControlFrame,
    Disconnect,
    HandleParameters,
    HeartbeatRequest,
    HeartbeatResponse,
    OpenQueue,
    Push,
    PushMessage,
    StatusResponse,
)
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, read_options, write_options
from fakebrokers.blazingmq.properties import Content, Style, read_content, write_content
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from scenarios.blazingmq.traits import TRAITS
from tests.blazingmq.layouts import by_the_notes
from tests.blazingmq.layouts_control import by_the_notes as control_by_the_notes
from tests.blazingmq.strategies import control_frames, event_frames, properties, styles
from tests.conformance.decoders.alike import (
    assert_alike,
    damaged,
    differences,
    nothing_of,
    read,
    with_a_byte_changed,
)
from tests.conformance.decoders.fake_contents import in_our_words

ENCODINGS = st.sampled_from(Encoding)
FRAMES = st.one_of(event_frames, st.sampled_from(CONTROL_FRAMES).flatmap(control_frames))

GUID = bytes.fromhex("4000000000000080DE8747FC14A25188")
HANDLE = HandleParameters("bmq://bmq.test.mem.priority/q1", 0, None, 6, 1, 1, 0)
OPEN = """30 80 80 01 01 A1 80 AA 80 A0 80
    80 1E 626D713A2F2F626D712E746573742E6D656D2E7072696F726974792F7131
    81 01 00 83 01 06 84 01 01 85 01 01 86 01 00 00 00 00 00 00 00 00 00 0202"""
REFUSED = "30 80 80 01 01 A1 80 A0 80 80 01 {} 81 01 FA 82 02 6E6F 00 00 00 00 00 00 03 03 03"
PUSH = f"0000000C 00000208 00000000 {GUID.hex()} 00000000 04000002 00000001 68656C6C6F 030303"


def event(start: str, body: str) -> bytes:
    """An event: its header without the length, and its body."""
    rest = bytes.fromhex(start + body)
    return (len(rest) + 4).to_bytes(4) + rest


BY_THE_LETTER: list[tuple[str, str, Frame]] = [
    ("4B020000", "", HeartbeatRequest()),
    ("4C020000", "61626364", HeartbeatResponse()),
    ("4B050000", "00" * 12, HeartbeatRequest()),
    ("44020000", PUSH, Push((PushMessage(0, GUID, b"hello", options=bytes.fromhex("0400000200000001")),))),
    ("45020000", f"16000000 06000007 {GUID.hex()} 00000003", Ack((AckMessage(3, GUID, 6, 7),))),
    ("43020000", f"16000000 FFFFFFFF {GUID.hex()} 00000002", Confirm((ConfirmMessage(-1, GUID, 2),))),
    ("41020000", OPEN, OpenQueue(1, HANDLE)),
    ("41020000", "30 80 80 01 06 A1 80 A1 80 00 00 00 00 00 00 01", Disconnect(6)),
    ("41020000", "30 09 80 01 06 A1 04 A1 02 85 00 01", Disconnect(6)),  # unknown, and definite lengths
    ("41020000", REFUSED.format("FA"), StatusResponse(1, -6, -6, "no")),
    ("41020000", REFUSED.format("9D"), StatusResponse(1, -99, -6, "no")),
    ("41022000", b'{"x":1,"rId":6,"disconnect":{}}\1'.hex(), Disconnect(6)),
]


@pytest.mark.parametrize(("start", "body", "frame"), BY_THE_LETTER)
def test_events_are_read_by_the_letter(start: str, body: str, frame: Frame) -> None:
    data = event(start, body)
    assert read(BlazingDecoder(), [data]) == [(frame, len(data))]
    decoder = BlazingDecoder()
    assert read(decoder, [data[at : at + 1] for at in range(len(data))]) == [(frame, len(data))]
    assert decoder.partial == 0


@pytest.mark.parametrize(
    ("start", "body", "code"),
    [
        ("45010000", "16000000", "event"),  # a header of one word
        ("45090000", "16000000", "event"),  # and of more than there are
        ("45020000", "15000000", "event"),  # five words per answer
        ("44020000", PUSH.replace("0000000C", "0000000D"), "event"),
        ("44020000", PUSH.replace("030303", "030305"), "event"),
        ("41020000", "31 80 80 01 06 A1 80 A1 80 00 00 00 00 00 00 01", "control"),
        ("41020000", "30 80 80 01 06 A1 80 61 80 00 00 00 00 00 00 01", "control"),
        ("41020000", "30 80 80 01 06 A1 80 A9 80 00 00 00 00 00 00 01", "control"),
        ("41026000", "01", "control"),
        ("41022000", b'{"rId":"x","disconnect":{}}\1'.hex(), "control"),
        ("41022000", b'{"rId":6,"clusterMessage":{}}\3\3\3'.hex(), "control"),
    ],
)
def test_an_event_that_cannot_be_read_is_skipped(start: str, body: str, code: str) -> None:
    data = event(start, body)
    (bad, size), good = read(BlazingDecoder(), [data + event("4B020000", "")])
    assert isinstance(bad, Malformed)
    assert (bad.code, size, good) == (code, len(data), (HeartbeatRequest(), 8))
    assert not TRAITS.reading.is_garbage(bad)


@pytest.mark.parametrize(
    ("data", "code"), [("00000007", "framing"), ("80000008", "framing"), ("7FFFFFFF", "too-large")]
)
def test_nothing_is_read_behind_an_impossible_length(data: str, code: str) -> None:
    decoder = BlazingDecoder()
    ((bad, size),) = decoder.feed(bytes.fromhex(data))
    assert isinstance(bad, Malformed)
    assert (bad.code, size, decoder.partial) == (code, 4, 0)
    assert TRAITS.reading.is_garbage(bad)
    assert decoder.feed(event("4B020000", "")) == []


def test_what_stands_behind_the_last_message_that_can_be_read_is_kept() -> None:
    ((push, _),) = read(BlazingDecoder(), [event("44020000", PUSH + "0000FFFF")])
    assert isinstance(push, Push)
    assert (len(push.messages), push.rest) == (1, b"\0\0\xff\xff")


def test_nothing_of_a_login_is_kept() -> None:
    ((bad, _),) = read(
        BlazingDecoder(), [event("4F022000", b'{"authenticationRequest":{"data":"c2Vjcm"}}\1'.hex())]
    )
    assert isinstance(bad, Malformed)
    assert "c2Vj" not in repr(bad)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ("", {0}),
        ("04000003 00000005 00000009", {5, 9}),
        ("0C400003 00000005 80000000", {5}),
        ("0E000080", {0}),
        ("08000002 61620202 04000002 00000007", {7}),
    ],
)
def test_options_name_subscriptions(options: str, numbers: set[int]) -> None:
    assert subscriptions_in(bytes.fromhex(options)) == numbers


@pytest.mark.parametrize("options", ["04000003 00000005", "04000000", "04"])
def test_an_option_that_goes_on_cannot_be_read(options: str) -> None:
    with pytest.raises(Unreadable):
        subscriptions_in(bytes.fromhex(options))


def alike(*units: bytes) -> None:
    assert_alike(BlazingCodec(), BlazingDecoder(), units, TRAITS.reading.is_garbage)


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8; the fake takes others in JSON, too, which is malformed to the judge."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(FRAMES, ENCODINGS)
def test_it_reads_what_the_fake_writes(frame: Frame, encoding: Encoding) -> None:
    written = BlazingCodec(encoding).encode(frame)
    if isinstance(frame, ControlFrame) and encoding is Encoding.JSON and not is_text(written[8:]):
        ((bad, _),) = read(BlazingDecoder(), [written])
        assert isinstance(bad, Malformed)
        return
    assert read(BlazingDecoder(), [written]) == [(frame, len(written))]


@given(FRAMES, ENCODINGS, st.data())
def test_both_make_the_same_of_damage(frame: Frame, encoding: Encoding, data: st.DataObject) -> None:
    whole = BlazingCodec(encoding).encode(frame)
    assume(not isinstance(frame, ControlFrame) or encoding is Encoding.BER or is_text(whole[8:]))
    cut = data.draw(st.integers(0, len(whole)))
    at, value = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 255))
    alike(whole[:cut], whole[cut:], whole)
    for changed in (cut.to_bytes(4) + whole[4:cut], with_a_byte_changed(whole, at, value)):
        if not is_odd_to_the_judge_alone(changed):
            alike(changed, whole)


def is_odd_to_the_judge_alone(data: bytes) -> bool:
    """A status of an unknown category answers its request all the same; JSON is UTF-8 to the judge."""
    frames = [frame for frame, _ in BlazingDecoder().feed(data)]
    theirs = [frame for frame, _ in BlazingCodec().feed(data)]
    if not frames or not theirs or isinstance(frames[0], Malformed) == isinstance(theirs[0], Malformed):
        return False
    return isinstance(frames[0], StatusResponse) or (data[6] >> 5 == Encoding.JSON and not data.isascii())


@given(properties, st.binary(max_size=40), styles, st.sampled_from(Compression))
def test_contents_are_read_alike(
    found: dict[str, Any], payload: bytes, style: Style, how: Compression
) -> None:
    content = Content(payload, found)
    settings: dict[str, Any] = {
        "has_properties": True,
        "schema_id": 0 if style is Style.OLD else 3,
        "compression": how,
    }
    data = write_content(content, style, how)
    assert content_in(data, **settings) == in_our_words(content)


@given(properties, st.binary(max_size=40), styles, st.integers(0), st.integers(0, 255))
def test_both_make_the_same_of_damaged_contents(
    found: dict[str, Any], payload: bytes, style: Style, at: int, value: int
) -> None:
    data = write_content(Content(payload, found), style, Compression.NONE)
    data = with_a_byte_changed(data, at, value)
    settings: dict[str, Any] = {
        "has_properties": True,
        "schema_id": 0 if style is Style.OLD else 3,
        "compression": 0,
    }
    try:
        theirs = in_our_words(read_content(data, **settings))
    except WireError:
        with pytest.raises(Unreadable):
            content_in(data, **settings)
    else:
        assert content_in(data, **settings) == theirs


NUMBERS = st.lists(st.integers(0, 2**32 - 1), max_size=4, unique=True)


@given(NUMBERS, st.sampled_from([PushOption.IDS, PushOption.INFOS]), st.integers(0), st.integers(0, 255))
def test_options_are_read_alike(numbers: list[int], form: PushOption, at: int, value: int) -> None:
    options = write_options([SubscriptionInfo(number) for number in numbers], form)
    assert subscriptions_in(options) == (set(numbers) or {0})
    changed = with_a_byte_changed(options, at, value) if options else options
    try:
        theirs = {info.number for info in read_options(changed)}
    except WireError:
        with pytest.raises(Unreadable):
            subscriptions_in(changed)
    else:
        assert subscriptions_in(changed) == theirs


def test_both_make_the_same_of_each_event_with_any_byte_wrong_or_lost() -> None:
    problems: list[str] = []
    for each in [*by_the_notes(), *control_by_the_notes()]:
        if each.name.endswith(": usual 0") and "Json" not in each.name:
            for data in damaged(each.wire, 4, lambda size: size.to_bytes(4)):
                units = [data, each.wire]
                found = differences(BlazingCodec(), BlazingDecoder(), units, TRAITS.reading.is_garbage)
                if found and not is_odd_to_the_judge_alone(data):
                    problems += [f"{each.name}, {data.hex()}: {one}" for one in found]
    nothing_of(problems)
