"""Bytes to requests: however they are cut, whatever they are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.narconi.http1 import (
    HEAD_LIMIT,
    BadRequest,
    ContinueExpected,
    Request,
    RequestReader,
    encode_response,
)

PLAIN = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
WITH_LENGTH = b"POST /p?ttl=1 HTTP/1.1\r\nhost: x\r\nContent-Length: 5\r\nX-A:  a b \r\n\r\nhello"
CHUNKED = (
    b"POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n2;note=1\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"
)


def read(*pieces: bytes, limit: int = 100, cut: bool = True) -> list[object]:
    reader = RequestReader(limit, cut)
    return [event for piece in pieces for event in reader.feed(piece)]


@given(st.lists(st.integers(0, len(PLAIN + WITH_LENGTH + CHUNKED)), max_size=12))
def test_any_segments(cuts: list[int]) -> None:
    data = PLAIN + WITH_LENGTH + CHUNKED
    pieces = [data[a:b] for a, b in pairwise([0, *sorted(cuts), len(data)])]
    first, second, third = read(*pieces)
    assert first == Request("GET", "/nothing", (("Host", "x"),), 1, size=len(PLAIN))
    assert second == Request(
        "POST",
        "/p?ttl=1",
        (("host", "x"), ("Content-Length", "5"), ("X-A", "a b")),
        1,
        b"hello",
        size=len(WITH_LENGTH),
    )
    assert isinstance(third, Request)
    assert (third.body, third.size) == (b"abcde", len(CHUNKED))


def chunks(*sizes: int) -> bytes:
    parts = b"".join(b"%x\r\n%b\r\n" % (size, b"a" * size) for size in sizes)
    return b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("sizes", "cut", "body", "too_large"),
    [
        ((100,), True, 100, False),
        ((100, 1), True, 100, False),  # the count has stopped at the limit
        ((50, 50, 7, 9), True, 100, False),
        ((99, 2), True, 0, True),
        ((100, 1), False, 0, True),
        ((101,), True, 0, True),
    ],
)
def test_size_rule(sizes: tuple[int, ...], cut: bool, body: int, too_large: bool) -> None:
    (request,) = read(chunks(*sizes), cut=cut)
    assert isinstance(request, Request)
    assert (len(request.body), request.too_large) == (body, too_large)


def test_a_large_body_is_not_kept() -> None:
    reader = RequestReader(100, True)
    reader.feed(b"POST / HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n")
    for _ in range(100):
        assert reader.feed(b"a" * 10_000) == []
        assert len(reader._buffer) == 0
        assert not reader._parts


def test_continue() -> None:
    reader = RequestReader(100, True)
    head = b"POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"
    assert reader.feed(head) == [ContinueExpected()]
    (request,) = reader.feed(b"x")
    assert isinstance(request, Request)
    assert request.body == b"x"


def test_behind_an_upgrade_there_is_no_http() -> None:
    reader = RequestReader(100, True)
    (request,) = reader.feed(b"GET / HTTP/1.1\r\nUpgrade: WebSocket\r\n\r\n\x81\x00")
    assert isinstance(request, Request)
    assert request.upgrades
    assert reader.take_rest() == b"\x81\x00"
    assert reader.feed(b"GET / HTTP/1.1\r\n\r\n") == []


def test_credentials_are_not_kept() -> None:
    (request,) = read(b"GET / HTTP/1.1\r\nAuthorization: Basic c2VjcmV0\r\nCookie: a=b\r\n\r\n")
    assert isinstance(request, Request)
    assert request.headers == (("Authorization", "***"), ("Cookie", "***"))


def test_a_header_that_is_none_is_not_shown_whole() -> None:
    (event,) = read(b"GET / HTTP/1.1\r\nAuthorization Basic c2VjcmV0\r\n\r\n")
    assert isinstance(event, BadRequest)
    assert "got 'Authorization' of 28 characters" in event.problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x16\x03\x01\x02\x00", "a method"),  # a TLS client; not one byte more is waited for
        (b"hello\r\n\r\n", "request line"),
        (b"get / HTTP/1.1\r\n\r\n", "request line"),
        (b"GET /a b HTTP/1.1\r\n\r\n", "request line"),
        (b"GET / HTTP/2.0\r\n\r\n", "request line"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "a header"),
        (b"GET / HTTP/1.1\r\nbad name: 1\r\n\r\n", "a header"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "one Content-Length"),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "one Content-Length"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "chunked"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "size of a chunk"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "end of a chunk"),
        (b"x" * (HEAD_LIMIT + 1), "at most"),
    ],
)
def test_no_http(data: bytes, problem: str) -> None:
    (event,) = read(data, PLAIN)
    assert isinstance(event, BadRequest)
    assert problem in event.problem


@given(st.binary(max_size=200), st.integers(0, 200))
def test_garbage_never_raises(data: bytes, cut: int) -> None:
    read(data[:cut], data[cut:])
    read(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + data[:cut], data[cut:])


def test_responses() -> None:
    chunked = (("Transfer-Encoding", "chunked"),)
    assert encode_response(201, "", chunked, b"") == (
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert encode_response(200, "", chunked, b"a" * 26).endswith(
        b"\r\n\r\n1a\r\n" + b"a" * 26 + b"\r\n0\r\n\r\n"
    )
    assert encode_response(404, "Connection Not Upgraded", (), b"") == (
        b"HTTP/1.1 404 Connection Not Upgraded\r\n\r\n"
    )
