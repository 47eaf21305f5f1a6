"""The judge's decoder of NATS and of packets in it: by the letter of the notes, beside the fake's codec."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from conformance.decoders.moleculer import TopicParts, read_packet, topic_parts
from conformance.decoders.nats import ARGUMENTS_MAX, GARBAGE, NatsDecoder
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.moleculer import packets
from fakebrokers.moleculer.serializers import Unreadable
from fakebrokers.moleculer.topics import topic_of
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.nats.frames import Connect, Err, Hmsg, Hpub, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from tests.conformance.decoders.alike import is_stricter, read, with_a_byte_changed
from tests.moleculer.test_packets import MAPS, TEXT, VALUES
from tests.nats.test_codec import HEARD, SAID

Side = Literal["client", "server"]
Kinds = st.SearchStrategy[Frame]

SAID_BY_THE_LETTER: dict[bytes, Frame] = {
    b'CONNECT {"user":"u","verbose":false}\r\n': Connect({"verbose": False}, {"user": "u"}),
    b"SUB a.b 7\r\n": Sub(subject="a.b", sid="7"),
    b"sub  a.b \tgroup  7 \r\n": Sub(subject="a.b", sid="7", queue="group"),
    b"UNSUB 7\r\n": Unsub(sid="7"),
    b"UNSUB 7 3\r\n": Unsub(sid="7", limit=3),
    b"PUB a 4\r\n\r\n\r\n\r\n": Pub(subject="a", payload=b"\r\n\r\n"),
    b"PUB a back 0\r\n\r\n": Pub(subject="a", payload=b"", reply="back"),
    b"HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n": Hpub(subject="a", headers=b"NATS/1.0\r\n\r\n", payload=b"hi"),
    b"PING\r\n": Ping(),
    b"PONG\r\n": Pong(),
}
TOLD_BY_THE_LETTER: dict[bytes, Frame] = {
    b'INFO {"max_payload":5} \r\n': Info({"max_payload": 5}),
    b"MSG a 7 2\r\nhi\r\n": Msg(subject="a", sid="7", payload=b"hi"),
    b"MSG a 7 back 2\r\nhi\r\n": Msg(subject="a", sid="7", payload=b"hi", reply="back"),
    b"HMSG a 7 back 12 12\r\nNATS/1.0\r\n\r\n\r\n": Hmsg(
        subject="a", sid="7", headers=b"NATS/1.0\r\n\r\n", payload=b"", reply="back"
    ),
    b"+OK\r\n": Ok(),
    b"-ERR 'Stale Connection'\r\n": Err(text="Stale Connection"),
}


@pytest.mark.parametrize(
    ("side", "data", "frame"),
    [("server", *each) for each in SAID_BY_THE_LETTER.items()]
    + [("client", *each) for each in TOLD_BY_THE_LETTER.items()],
    ids=repr,
)
def test_lines_are_read_by_the_letter(side: Side, data: bytes, frame: Frame) -> None:
    assert read(NatsDecoder(side), [data]) == [(frame, len(data))]
    assert read(NatsDecoder(side), [data[at : at + 1] for at in range(len(data))]) == [(frame, len(data))]


@pytest.mark.parametrize(
    "line",
    [
        b"SUB a\r\n",
        b"PUB 2\r\nhi\r\n",
        b"HPUB a 3 2\r\nhi\r\n",
        b"MSG a 7 2\r\nhi\r\n",
        b"PINGS\r\n",
        b" PING\r\n",
        b"CONNECT []\r\n",
        b'CONNECT {"a":NaN}\r\n',
        b"SUB a\n 7\r\n",
        b"SUB " + b"a" * ARGUMENTS_MAX + b" 7\r\n",
        b"\r\n",
    ],
)
def test_a_line_that_says_nothing_known_is_skipped(line: bytes) -> None:
    (bad, size), good = read(NatsDecoder("server"), [line + b"PING\r\n"])
    assert isinstance(bad, Malformed)
    assert (bad.code != GARBAGE, size, good) == (True, len(line), (Ping(), 6))


@pytest.mark.parametrize(
    "line", [b"PUB a x\r\nhi\r\n", b"PUB a 3\r\nhi\r\n\r\n", b"PUB a 99999999\r\n", b"a" * 65537]
)
def test_nothing_is_read_behind_a_message_of_another_size(line: bytes) -> None:
    decoder = NatsDecoder("server")
    ((bad, size),) = decoder.feed(line)
    assert isinstance(bad, Malformed)
    assert (bad.code, size, decoder.partial) == (GARBAGE, len(line), 0)
    assert decoder.feed(b"PING\r\n") == []


def test_nothing_of_a_login_is_kept() -> None:
    ((bad, _),) = read(NatsDecoder("server"), [b'CONNECT {"pass":"swordfish"\r\n'])
    assert isinstance(bad, Malformed)
    assert "swordfish" not in repr(bad)


WAYS = st.sampled_from([("server", SAID), ("client", HEARD)])


def by_lines(side: Side, data: bytes) -> list[Any]:
    """What the fake's codec makes of each line by itself, as the judge reads on behind what is none."""
    found = [frame for frame, _ in NatsCodec(side, 0).feed(data)]
    return [Malformed if isinstance(frame, Malformed) else frame for frame in found]


@given(WAYS, st.data())
def test_it_reads_what_the_fake_writes(
    way: tuple[Side, st.SearchStrategy[Frame]], data: st.DataObject
) -> None:
    side, kinds = way
    said = data.draw(st.lists(kinds, max_size=4))
    units = [NatsCodec(side, 0).encode(frame) for frame in said]
    assert read(NatsDecoder(side), units) == [
        (frame, len(unit)) for frame, unit in zip(said, units, strict=True)
    ]
    whole = b"".join(units)
    cut = data.draw(st.integers(0, len(whole)))
    decoder = NatsDecoder(side)
    assert [frame for frame, _ in read(decoder, [whole[:cut], whole[cut:]])] == said
    assert decoder.partial == 0


@given(WAYS, st.integers(0), st.integers(0, 255), st.data())
def test_both_make_the_same_of_damage(
    way: tuple[Side, Kinds], at: int, value: int, data: st.DataObject
) -> None:
    """Of the first frame; a server gives up behind it, while the judge reads on."""
    side, kinds = way
    changed = with_a_byte_changed(NatsCodec(side, 0).encode(data.draw(kinds)), at, value)
    ours = [frame for frame, _ in read(NatsDecoder(side), [changed])][:1]
    theirs = by_lines(side, changed)[:1]
    if ours and isinstance(ours[0], Malformed):
        assert theirs in ([Malformed], []) or is_stricter(ours[0])
    elif not ours:
        assert theirs in ([Malformed], []) or b"\r\n" not in changed
    else:
        assert ours == theirs


TOPICS = st.lists(
    st.sampled_from(["MOL", "MOL-", "MOL-x", "REQ", "REQB", "EVENT", "INFO", "PING", "x", "", ".", "/", "."]),
    max_size=7,
).map("".join)


@given(TOPICS)
@example("MOL-a.INFO.PING.INFO")
@example("MOL/REQ/a.b")
def test_topics_are_taken_apart_alike(topic: str) -> None:
    theirs = topic_of(topic)
    assert topic_parts(topic) == (None if theirs is None else TopicParts(*theirs))


def test_a_topic_is_taken_apart_by_the_letter() -> None:
    assert topic_parts("MOL.REQ.node-1.x") == ("MOL", ".", "REQ", "node-1.x")
    assert topic_parts("MOL-my.net.EVENTB.mail.user.created") == (
        "MOL-my.net",
        ".",
        "EVENTB",
        "mail.user.created",
    )
    assert topic_parts("MOL/HEARTBEAT") == ("MOL", "/", "HEARTBEAT", "")
    assert topic_parts("OTHER.REQ.a") is None


def test_packets_are_read_by_the_letter() -> None:
    payload = b'{"cpu":13,"seq":2,"ver":"4","sender":null}'
    heartbeat = packets.Heartbeat(cpu=13, more={"seq": 2}, ver="4", sender=None)
    assert read_packet("MOL.HEARTBEAT", payload) == heartbeat
    request = read_packet("MOL.REQB.math.add", b'{"id":"1","params":null}')
    assert isinstance(request, packets.Request)
    assert (request.params, request.meta) == (None, UNSET)
    assert read_packet("MOL.PING", b"null") == packets.Ping()
    assert read_packet("MOL.PING", b"[]") is None
    assert read_packet("MOL.PING", b'{"id":NaN}') is None
    assert read_packet("MOL.NOPE", b"{}") is None


COMMANDS = st.sampled_from(
    ["DISCOVER", "INFO", "DISCONNECT", "HEARTBEAT", "PING", "PONG", "REQ", "RES", "EVENT"]
)


@given(COMMANDS, st.dictionaries(st.sampled_from(["id", "cpu", "data", "more", "x"]) | TEXT, VALUES | MAPS))
def test_packets_are_read_alike(command: str, values: dict[str, Any]) -> None:
    topic, payload = f"MOL.{command}.a", json.dumps(values).encode()
    assert read_packet(topic, payload) == packets.read_packet(topic, payload)


@given(COMMANDS, MAPS, st.integers(0), st.integers(0, 255))
def test_both_make_the_same_of_a_damaged_packet(
    command: str, values: dict[str, Any], at: int, value: int
) -> None:
    payload = b"{" + with_a_byte_changed(json.dumps(values).encode(), at, value)[1:]
    try:
        theirs = packets.read_packet(f"MOL.{command}", payload)
    except Unreadable:
        theirs = None
    assert read_packet(f"MOL.{command}", payload) == theirs
