"""Frames to bytes and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.encodings import encode_payload, known_encoding
from fakebrokers.narconi.messages import js_text
from fakebrokers.narconi.profile import PROFILES
from fakebrokers.narconi.websocket import BINARY, CONTINUATION, TEXT, encode_frame

Q = "/v2/gold/queues/q"


def upgrade(protocol: str = "publish") -> f.WsUpgrade:
    headers = (("Upgrade", "websocket"), ("Sec-WebSocket-Protocol", protocol))
    return f.WsUpgrade("GET", f"{Q}/messages", headers, number=1, project="gold", queue="q")


def behind(protocol: str, *data: bytes, profile: str = "real", limit: int = 65536) -> list[Frame]:
    """What the codec makes of bytes behind an upgrade."""
    codec = NarconiCodec(PROFILES[profile], Config(max_message_size=limit))
    list(codec.feed(codec.encode(upgrade(protocol))))
    return [frame for piece in data for frame, _ in codec.feed(piece)]


def text(value: str, **options: Any) -> bytes:
    return encode_frame(TEXT, value.encode(), **options)


def codes(found: list[Frame]) -> list[str]:
    return [frame.code if isinstance(frame, Malformed) else type(frame).__name__ for frame in found]


# requests

KINDS = [
    ("PUT", Q, f.EnsureQueue),
    ("DELETE", Q, f.DeleteQueue),
    ("POST", f"{Q}/messages", f.HttpPublish),
    ("DELETE", f"{Q}/messages", f.HttpConsume),
    ("GET", f"{Q}/messages", f.OtherRequest),
    ("OPTIONS", Q, f.OtherRequest),
    ("POST", Q, f.OtherRequest),
]


@pytest.mark.parametrize(("method", "target", "kind"), KINDS)
def test_requests(method: str, target: str, kind: type[f.HttpRequest]) -> None:
    codec = NarconiCodec()
    headers = (("Host", "x"), ("Content-Length", "2"))
    frame = kind(method, target, headers, b"ab", number=1, project="gold", queue="q")
    data = codec.encode(frame)
    assert list(codec.feed(data)) == [(frame, len(data))]


def test_requests_are_numbered() -> None:
    codec = NarconiCodec()
    data = codec.encode(f.EnsureQueue("PUT", Q)) * 3
    assert [frame.number for frame, _ in codec.feed(data)] == [1, 2, 3]  # type: ignore[attr-defined]


def test_names_are_decoded() -> None:
    ((frame, _),) = NarconiCodec().feed(b"PUT /v2/go%6cd/queues/a%20b HTTP/1.1\r\n\r\n")
    assert isinstance(frame, f.EnsureQueue)
    assert (frame.project, frame.queue) == ("gold", "a b")


@given(st.lists(st.integers(0, 600), max_size=6), st.sampled_from(["publish", "consume"]))
def test_units_may_be_fed_before_the_frames_in_front_are_fetched(cuts: list[int], protocol: str) -> None:
    """What the bytes behind an upgrade mean is known when it is fetched, not when they come."""
    codec = NarconiCodec()
    data = codec.encode(f.EnsureQueue("PUT", Q)) + codec.encode(upgrade(protocol))
    data += text("{}") + encode_frame(BINARY, b"hello", masked=True) + text('{"ackId":"1"}')
    at_once = [frame for frame, _ in codec.feed(data)]
    assert [type(frame) for frame in at_once[:2]] == [f.EnsureQueue, f.WsUpgrade]
    codec = NarconiCodec()
    fed = [codec.feed(data[a:b]) for a, b in pairwise([0, *sorted(cuts), len(data)])]
    assert [frame for found in fed for frame, _ in found] == at_once


# messages of a publisher

metadata = st.dictionaries(
    st.sampled_from(["Content-Type", "x-msg-x-a", "other"]), st.text(max_size=20), max_size=3
)


@given(metadata, st.binary(max_size=300), st.text(max_size=50), st.lists(st.integers(0, 900)))
def test_published_messages(values: dict[str, str], data: bytes, words: str, cuts: list[int]) -> None:
    sent = [
        f.WsPublish(1, data, values, "pair"),
        f.WsPublish(2, (words or "x").encode(), values, "single", True),
        f.WsPublish(3, (words or "x").encode(), values, "pair", True),
        f.WsPublish(4, data),
    ]
    codec = NarconiCodec()
    wire = b"".join([codec.encode(upgrade()), *map(codec.encode, sent)])
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    found = [pair for a, b in pairwise(places) for pair in codec.feed(wire[a:b])]
    assert [frame for frame, _ in found] == [upgrade(), *sent]
    assert sum(size for _, size in found) == len(wire)
    assert codec.partial == 0


def test_a_pair_counts_as_unfinished() -> None:
    codec = NarconiCodec()
    list(codec.feed(codec.encode(upgrade())))
    assert list(codec.feed(text("{}"))) == []
    assert codec.partial == 4


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("", "not-json"),
        ("oops", "not-json"),
        ("null", "ignored"),
        ("5", "stuck"),
        ("true", "stuck"),
        ('{"message":""}', "crash"),
        ('{"message":null}', "crash"),
        ('{"message":false}', "crash"),
        ('{"message":0}', "crash"),
        ('{"message":-1}', "crash"),
        ('{"message":1e9}', "crash"),
        ('{"Content-Type":5,"message":"x"}', "crash"),
        ("[" * 100_000, "too-large"),
        ("[" * 50_000, "not-json"),
    ],
)
def test_odd_metadata(sent: str, expected: str) -> None:
    assert codes(behind("publish", text(sent))) == [expected]


@pytest.mark.parametrize(
    ("sent", "payload"),
    [
        ('{"message":5}', bytes(5)),
        ('{"message":1.5}', bytes(2)),
        ('{"message":[65,66.5,"x",-1]}', b"AB\0\xff"),
        ('{"message":[]}', b""),
        ('{"message":{"a":1}}', b""),
    ],
)
def test_a_message_that_is_no_text(sent: str, payload: bytes) -> None:
    (frame,) = behind("publish", text(sent))
    assert isinstance(frame, f.WsPublish)
    assert frame.payload == payload


def test_metadata_followed_by_an_empty_message() -> None:
    assert codes(behind("publish", text("{}"), text(""))) == ["crash"]
    (frame,) = behind("publish", text("{}"), encode_frame(BINARY, b""))
    assert isinstance(frame, f.WsPublish)
    assert (frame.form, frame.payload) == ("pair", b"")


def test_sizes_count_bytes_or_utf16_units() -> None:
    limit = 100
    at_limit = '{"message":"' + "€" * 86 + '"}'  # 100 units, 272 bytes
    assert codes(behind("publish", text(at_limit), limit=limit)) == ["WsPublish"]
    assert codes(behind("publish", text(at_limit + " "), limit=limit)) == ["too-large"]
    pairs = '{"message":"' + "😀" * 43 + '"}'  # two units each
    assert codes(behind("publish", text(pairs), limit=limit)) == ["WsPublish"]
    assert codes(behind("publish", text(pairs + " "), limit=limit)) == ["too-large"]
    assert codes(behind("publish", encode_frame(BINARY, bytes(100)), limit=limit)) == ["WsPublish"]
    assert codes(behind("publish", encode_frame(BINARY, bytes(101)), limit=limit)) == ["too-large"]
    assert codes(behind("publish", encode_frame(BINARY, bytes(9999)), text("{}"), limit=limit)) == [
        "too-large"
    ]


def test_no_utf8() -> None:
    assert codes(behind("publish", encode_frame(TEXT, b'{"message":"\xff"}'))) == ["ws-1007"]


def test_numbers_come_out_as_in_javascript() -> None:
    (frame,) = behind("publish", text('{"x-a":5.0,"x-b":[1.5,2.0],"x-c":{"d":1e3},"message":"m"}'))
    assert isinstance(frame, f.WsPublish)
    assert frame.stored == {"x-a": 5, "x-b": [1.5, 2], "x-c": {"d": 1000}}
    assert [js_text(value) for value in frame.stored.values()] == ["5", "1.5,2", "[object Object]"]
    assert [js_text(value) for value in (None, True, [1, None, "b"])] == ["null", "true", "1,,b"]


def test_document_has_other_rules() -> None:
    pair = behind("publish", text(""), text("payload"), profile="seed")
    assert pair == [f.WsPublish(1, b"payload", {}, "pair", True)]
    pair = behind("publish", encode_frame(BINARY, b""), encode_frame(BINARY, b""), profile="seed")
    assert pair == [f.WsPublish(1, b"", {}, "pair")]
    assert codes(behind("publish", text("{}"), text(""), profile="seed")) == ["WsPublish"]
    assert codes(behind("publish", text('{"message":""}'), profile="seed")) == ["WsPublish"]
    for odd in ("null", "5", "[]", '{"message":5}'):
        assert codes(behind("publish", text(odd), profile="seed")) == ["not-json"]


# messages of a consumer


@pytest.mark.parametrize(
    "frame",
    [
        f.WsAck("7"),
        f.WsAck(None, "7"),
        f.WsAck("7", "8"),
        f.WsStop(True),
        f.WsStop(False),
        f.WsPing(b"p"),
        f.WsPong(b""),
        f.WsClose(1000, "bye"),
        f.WsClose(None),
    ],
)
def test_commands(frame: Frame) -> None:
    assert behind("consume", NarconiCodec().encode(frame)) == [frame]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (text("null"), "crash"),
        (text("hello"), "not-json"),
        (text('"abc"'), "not-json"),
        (text("5"), "not-json"),
        (encode_frame(BINARY, b'{"ackId":"1"}'), "not-json"),
        (text("[]"), "unrecognized"),
        (text('{"ackId":1}'), "unrecognized"),
        (text('{"ackId":1,"ackToId":"2"}'), "WsAck"),
        (encode_frame(8, b"\x03"), "ws-1002"),
        (encode_frame(CONTINUATION, b""), "ws-1002"),
    ],
)
def test_odd_commands(sent: bytes, expected: str) -> None:
    assert codes(behind("consume", sent)) == [expected]


@pytest.mark.parametrize("protocol", ["publish", "consume"])
@pytest.mark.parametrize("profile", ["real", "seed"])
@given(data=st.binary(max_size=60), words=st.text(max_size=30))
def test_garbage_never_raises(protocol: str, profile: str, data: bytes, words: str) -> None:
    behind(protocol, data, profile=profile)
    behind(protocol, text(words), encode_frame(BINARY, data), profile=profile)
    list(NarconiCodec().feed(data))


def test_fresh_codecs_keep_the_state() -> None:
    codec = NarconiCodec()
    assert [type(frame) for frame, _ in codec.fresh().feed(codec.encode(upgrade()))] == [f.WsUpgrade]
    list(codec.feed(codec.encode(upgrade("consume"))))
    assert list(codec.fresh().feed(text('{"ackId":"1"}'))) == [(f.WsAck("1"), 15)]
    other = NarconiCodec()
    list(other.feed(codec.encode(upgrade("publish"))))
    assert [type(frame) for frame, _ in other.fresh().feed(text('{"message":"1"}'))] == [f.WsPublish]


# to the client


def test_deliveries() -> None:
    encode = NarconiCodec().encode
    frame = f.WsDeliver(b"\x00\xff", "a/b", 5, True, "7", {"x-n": {"k": [1, None]}})
    expected = '{"Content-Type":"a/b","timestamp":5,"redelivered":true,"ackId":"7","x-n":{"k":[1,null]}}'
    assert encode(frame) == text(expected) + encode_frame(BINARY, b"\x00\xff")
    bare = f.WsDeliver(b"\x00\xff", None, None, None, encoding="hex")
    assert encode(bare) == text('{"message":"00ff"}')
    as_text = f.WsDeliver(b"abc", None, None, None, text=True)
    assert encode(as_text) == text("{}") + text("abc")


def test_errors() -> None:
    real, seed = NarconiCodec(), NarconiCodec(PROFILES["seed"])
    assert real.encode(f.WsReject("e", 400)) == text('{"error":"e","code":400}')
    assert seed.encode(f.WsError("e", 400)) == text('{"code":400,"error":"e"}')
    assert real.encode(f.WsError(None, 500)) == text('{"code":500}')
    assert real.encode(f.WsConfirm(3)) == b"\x81\x00"
    assert real.encode(f.WsFrame(1, b"x", fin=False, rsv=4)) == b"\x41\x01x"


def test_encodings() -> None:
    data = bytes.fromhex("e900ff6f6b")
    assert encode_payload("UTF-8", data) == "\ufffd\0\ufffdok"
    assert encode_payload("", b"ok") == "ok"
    assert encode_payload("BASE64", data) == "6QD/b2s="
    assert encode_payload("hex", data) == "e900ff6f6b"
    assert encode_payload("ascii", data) == "i\0\x7fok"
    assert encode_payload("binary", data) == "é\0ÿok"
    assert encode_payload("ucs2", data) == "\u00e9\u6fff"
    assert not known_encoding("rot13")


def test_all_frames_have_a_role() -> None:
    kinds = {
        kind
        for kind in vars(f).values()
        if isinstance(kind, type)
        and issubclass(kind, Frame)
        and kind not in (Frame, f.HttpRequest, f.HttpResponse)
    }
    assert kinds | {Malformed} == set(f.FRAMES)
