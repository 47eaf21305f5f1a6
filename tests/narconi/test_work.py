"""The work of decoding grows with the bytes, however small their segments and however they are framed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fakebrokers.narconi import http1, websocket
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.http1 import HEAD_LIMIT, LINE_LIMIT, BadRequest, Request, RequestReader
from fakebrokers.narconi.messages import DEPTH_LIMIT, read_metadata
from fakebrokers.narconi.profile import PROFILES
from fakebrokers.narconi.routes import find_route
from fakebrokers.narconi.websocket import BINARY, CONTINUATION, PING, TEXT, MessageReader, encode_frame
from tests.work import CountedBuffer, CountedPattern, segments

#: Bytes looked at or copied per byte that came, at most, for any size: in segments of one byte the head of a
#: frame is read again for each, and the end of an HTTP head is looked for among the last four.
PER_BYTE = 12

POST = b"POST /v2/gold/queues/orders/messages HTTP/1.1\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> RequestReader:
    """A reader whose every look at its buffer is counted."""
    monkeypatch.setattr(http1, "_BLANK_LINE", CountedPattern(http1._BLANK_LINE))
    monkeypatch.setattr(http1, "_LINE_ENDS", CountedPattern(http1._LINE_ENDS))
    reader = RequestReader(1 << 20, True)
    reader._buffer = CountedBuffer()
    return reader


def work(reader: RequestReader | MessageReader) -> int:
    assert isinstance(reader._buffer, CountedBuffer)
    return reader._buffer.work


def head(size: int) -> bytes:
    """One of that many bytes."""
    line = b"X-A: 0123456789\r\n"
    room = size - len(POST) - 2
    lines = room // len(line) - 1
    rest = room - lines * len(line)
    return POST + line * lines + b"X-B: ".ljust(rest - 2, b"b") + b"\r\n\r\n"


INPUTS: dict[str, Callable[[int], bytes]] = {
    "one long head": lambda size: head(min(size, HEAD_LIMIT)),
    "many heads": lambda size: (POST + b"\r\n") * (size // 49),
    "blank lines, then a head": lambda size: b"\r\n" * min(size // 2, 30_000) + POST + b"\r\n",
    "a body with a length": lambda size: POST + b"Content-Length: %d\r\n\r\n" % size + bytes(size),
    "one long chunk": lambda size: CHUNKED + b"%x\r\n" % size + bytes(size) + b"\r\n0\r\n\r\n",
    "chunks of a byte": lambda size: CHUNKED + b"1\r\na\r\n" * (size // 6) + b"0\r\n\r\n",
    "chunks with long names": lambda size: (
        CHUNKED + (b"1;" + b"x" * (LINE_LIMIT - 4) + b"\r\na\r\n") * (size // LINE_LIMIT) + b"0\r\n\r\n"
    ),
    "a trailer": lambda size: CHUNKED + b"0\r\n" + b"X-A: 0123456789\r\n" * (size // 20) + b"\r\n",
}


@pytest.mark.parametrize("size", [8_000, 32_000])
@pytest.mark.parametrize("segment", [1, 8, 1 << 20])
@pytest.mark.parametrize("kind", INPUTS)
def test_http(reader: RequestReader, kind: str, segment: int, size: int) -> None:
    data = INPUTS[kind](size)
    events = [event for piece in segments(data, segment) for event in reader.feed(piece)]
    assert all(isinstance(event, Request) for event in events)
    assert sum(event.size for event in events if isinstance(event, Request)) == len(data)
    assert work(reader) <= PER_BYTE * len(data)


def frames(opcode: int, pieces: list[bytes]) -> bytes:
    """One message in fragments."""
    last = len(pieces) - 1
    return b"".join(
        encode_frame(CONTINUATION if at else opcode, piece, fin=at == last, masked=True)
        for at, piece in enumerate(pieces)
    )


MESSAGES: dict[str, Callable[[int], bytes]] = {
    "one long frame": lambda size: frames(BINARY, [bytes(size)]),
    "fragments of a byte": lambda size: frames(TEXT, [b"a"] * (size // 7)),
    "empty fragments": lambda size: frames(TEXT, [b""] * (size // 6)),
    "many messages": lambda size: frames(TEXT, [b"abc"]) * (size // 9),
    "pings between fragments": lambda size: (
        encode_frame(TEXT, b"", fin=False)
        + (encode_frame(PING, b"p") + encode_frame(CONTINUATION, b"a", fin=False)) * (size // 6)
        + encode_frame(CONTINUATION, b"")
    ),
    "too large, in one frame": lambda size: frames(BINARY, [bytes(size * 10)]),
    "too large, in fragments": lambda size: frames(BINARY, [bytes(size)] * 10),
}


@pytest.mark.parametrize("size", [8_000, 32_000])
@pytest.mark.parametrize("segment", [1, 8, 1 << 20])
@pytest.mark.parametrize("kind", MESSAGES)
def test_websocket(kind: str, segment: int, size: int) -> None:
    reader = MessageReader(100_000)
    reader._buffer = CountedBuffer()
    data = MESSAGES[kind](size)
    found = [message for piece in segments(data, segment) for message in reader.feed(piece)]
    assert not any(isinstance(message, websocket.BadFrame) for message in found)
    assert sum(message.size for message in found if isinstance(message, websocket.Message)) == len(data)
    assert work(reader) <= PER_BYTE * len(data)


def test_empty_fragments_leave_nothing_behind() -> None:
    reader = MessageReader(100)
    reader.feed(encode_frame(TEXT, b"", fin=False) + encode_frame(CONTINUATION, b"", fin=False) * 10_000)
    assert reader._parts == []


@pytest.mark.parametrize("segment", [1, 1000, 1 << 20])
def test_blank_lines_come_to_an_end(segment: int) -> None:
    """They count as a part of the head behind them."""
    allowed = HEAD_LIMIT - len(POST) - 2
    for count, good in ((allowed, True), (allowed + 1, False), (2 * HEAD_LIMIT, False)):
        reader = RequestReader(100, True)
        data = b"\n" * count + POST + b"\r\n"
        events = [event for piece in segments(data, segment) for event in reader.feed(piece)]
        assert [type(event) for event in events] == [Request if good else BadRequest]
    assert isinstance(events[0], BadRequest)
    assert events[0].problem == f"a head of at most {HEAD_LIMIT} bytes, got more"


@pytest.mark.parametrize("segment", [1, 1 << 20])
@pytest.mark.parametrize(
    ("longest", "problem"),
    [
        (head(HEAD_LIMIT), "a head of at most"),
        (CHUNKED + b"1;" + b"x" * (LINE_LIMIT - 4) + b"\r\n", "a line of at most"),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * (HEAD_LIMIT // 6), "a trailer of at most"),
    ],
    ids=["head", "line", "trailer"],
)
def test_limits_hold_however_it_is_cut(longest: bytes, problem: str, segment: int) -> None:
    at = longest.rindex(b"\r\n" if longest.startswith(CHUNKED) else b"bb")
    for data, problems in ((longest, 0), (longest[:at] + b"bbbbbb" + longest[at:], 1)):
        reader = RequestReader(100, True)
        events = [event for piece in segments(data, segment) for event in reader.feed(piece)]
        bad = [event.problem for event in events if isinstance(event, BadRequest)]
        assert len(bad) == problems
        assert all(text.startswith(problem) for text in bad)


def test_a_trailer_does_not_depend_on_the_body_before_it() -> None:
    reader = RequestReader(100, True)
    (request,) = reader.feed(CHUNKED + b"30d40\r\n" + bytes(200_000) + b"\r\n0\r\nX-A: b\r\n\r\n")
    assert isinstance(request, Request)
    assert request.too_large


def test_a_path_of_slashes() -> None:
    """With a pattern that tries again from every slash this would take days."""
    slashes = "/" * 1_000_000
    for target in (f"/v2{slashes}x/y", f"/v2/a{slashes}x", f"/v2/a/queues{slashes}x/y", f"{slashes}v3"):
        assert find_route(target) is None
    route = find_route(f"{slashes}v2{slashes}gold{slashes}queues{slashes}q{slashes}messages")
    assert route is not None
    assert (route.project, route.queue, route.messages) == ("gold", "q", True)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/v2/p/queues/q", ("p", "q", False)),
        ("/v2/p/queues/q/messages", ("p", "q", True)),
        ("//v2//p//queues//q//messages", ("p", "q", True)),
        ("/v2//queues/q", ("", "q", False)),
        ("/v2/queues/queues/q", ("queues", "q", False)),
        ("/v2//queues/queues/q", ("queues", "q", False)),
        ("/v2/p/queues/", ("p", "", False)),
        ("/v2/p/queues/messages", ("p", "messages", False)),
        ("/v2/p/queues//messages", ("p", "messages", False)),
        ("/v2/queues/q", None),
        ("/v2/p/queues/q/", None),
        ("/v2/p/queues/q/messages/", None),
        ("v2/p/queues/q", None),
    ],
)
def test_paths(target: str, found: tuple[str, str, bool] | None) -> None:
    route = find_route(target)
    assert (route and (route.project, route.queue, route.messages)) == found


@pytest.mark.parametrize("size", [16, 5_000, 80_000])
def test_a_length_of_many_digits_is_none(size: int) -> None:
    """Python refuses to read more than 4,300."""
    (pair,) = NarconiCodec().feed(POST + b"Content-Length: %b\r\n\r\n" % (b"9" * size))
    assert "expected one Content-Length" in pair[0].problem  # type: ignore[attr-defined]


@pytest.mark.parametrize("depth", [DEPTH_LIMIT, DEPTH_LIMIT + 1, 600, 5_000])
@pytest.mark.parametrize("profile", ["real", "seed"])
def test_nested_metadata(depth: int, profile: str) -> None:
    lists = depth - 1  # the metadata itself is an object
    found = read_metadata(b'{"x-a":' + b"[" * lists + b"]" * lists + b"}", PROFILES[profile], 1000)
    if depth > DEPTH_LIMIT:
        assert found.code == "not-json"  # type: ignore[union-attr]
    else:
        assert isinstance(found, tuple)
