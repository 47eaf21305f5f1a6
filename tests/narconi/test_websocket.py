"""Bytes to WebSocket messages: however they are cut, whatever they are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.narconi.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PROTOCOL_ERROR,
    TEXT,
    BadFrame,
    Message,
    MessageReader,
    accept_key,
    encode_frame,
)


def read(*pieces: bytes, limit: int = 1000) -> list[Message | BadFrame]:
    reader = MessageReader(limit)
    return [message for piece in pieces for message in reader.feed(piece)]


def test_accept_key() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3


def test_frames_of_the_specification() -> None:
    assert encode_frame(TEXT, b"Hello") == bytes.fromhex("810548656c6c6f")  # RFC 6455, 5.7
    assert encode_frame(TEXT, b"Hello", masked=True) == bytes.fromhex("818537fa213d7f9f4d5158")
    assert encode_frame(TEXT, b"Hel", fin=False) == bytes.fromhex("010348656c")
    assert encode_frame(BINARY, bytes(256))[:4] == bytes.fromhex("827e0100")
    assert encode_frame(BINARY, bytes(65536))[:10] == bytes.fromhex("827f0000000000010000")
    assert encode_frame(TEXT, b"", rsv=4) == bytes.fromhex("c100")


messages = st.lists(
    st.tuples(st.sampled_from([TEXT, BINARY]), st.binary(max_size=400), st.booleans(), st.integers(1, 4)),
    max_size=6,
)


@given(messages, st.lists(st.integers(0, 3000), max_size=10))
def test_any_segments_and_fragments(sent: list[tuple[int, bytes, bool, int]], cuts: list[int]) -> None:
    data, expected = b"", []
    for opcode, payload, masked, parts in sent:
        start, step = len(data), max(1, len(payload) // parts)
        pieces = [payload[i : i + step] for i in range(0, len(payload), step)] or [b""]
        for number, piece in enumerate(pieces):
            code = opcode if number == 0 else CONTINUATION
            data += encode_frame(code, piece, fin=number == len(pieces) - 1, masked=masked)
        expected.append(Message(opcode, payload, len(data) - start))
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert read(*[data[a:b] for a, b in pairwise(places)]) == expected


def test_control_frames_between_fragments() -> None:
    data = encode_frame(TEXT, b"a", fin=False) + encode_frame(PING, b"p") + encode_frame(CONTINUATION, b"b")
    assert read(data) == [Message(PING, b"p", 3), Message(TEXT, b"ab", 6)]


@pytest.mark.parametrize("parts", [(5000,), (600, 600), (600, 600, 600), (0, 1001)])
def test_too_large_is_read_over(parts: tuple[int, ...]) -> None:
    last = len(parts) - 1
    frames = [
        encode_frame(CONTINUATION if n else BINARY, bytes(size), fin=n == last, masked=True)
        for n, size in enumerate(parts)
    ]
    data = b"".join(frames)
    behind = encode_frame(TEXT, b"next", masked=True)
    reader = MessageReader(1000)
    found = []
    for start in range(0, len(data + behind), 100):
        found += reader.feed((data + behind)[start : start + 100])
        assert reader.partial <= len(data)
        assert len(reader._buffer) <= 1000 + 14
    assert found == [Message(BINARY, b"", len(data), True), Message(TEXT, b"next", 10)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xc1\x00", "reserved bits"),
        (b"\x83\x00", "opcode"),
        (b"\x80\x00", "start of a message"),
        (b"\x01\x00\x81\x00", "continuation"),
        (b"\x09\x00", "control frame"),
        (b"\x88\x7e\x00\x80", "control frame"),
    ],
)
def test_no_frame(data: bytes, problem: str) -> None:
    *_, bad = read(data, encode_frame(TEXT, b"behind"))
    assert isinstance(bad, BadFrame)
    assert bad.code == PROTOCOL_ERROR
    assert problem in bad.problem


@given(st.binary(max_size=100))
def test_garbage_never_raises(data: bytes) -> None:
    read(data)
    for message in read(data, limit=10):
        assert isinstance(message, BadFrame) or message.opcode >= CLOSE or len(message.payload) <= 10
