"""What a server may also write: RFC 9112 and RFC 6455 leave much of the form of a message open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fakebrokers.core.frames import Frame
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.websocket import CONTINUATION, PING, PONG, TEXT, encode_frame

HEAD_END = b"\r\n\r\n"
BODILESS = (101, 204, 304)
Lines = list[tuple[str, str]]
Parts = list[tuple[int, bytes]]  #: of a unit: opcode and payload of each message


def spellings(frame: Frame, data: bytes) -> Mapping[str, bytes]:
    """Other ways to write a unit, by name."""
    if isinstance(frame, f.HttpResponse):
        return {name: make(frame, data) for name, make in HTTP.items() if _fits(name, frame)}
    parts = list(_parts(data))
    if not parts or parts[0][0] > 2:
        return {}
    return {name: make(parts) for name, make in WEBSOCKET.items()}


# HTTP


def _fits(name: str, frame: f.HttpResponse) -> bool:
    return name != "chunked" or frame.status not in BODILESS


def _otherwise(change: Callable[[Lines], Lines], reason: bool = True) -> Callable[[Any, bytes], bytes]:
    """The head with other lines, and the body as it was."""

    def make(frame: Any, data: bytes) -> bytes:
        head, end, body = data.partition(HEAD_END)
        first, *rest = head.decode("latin-1").split("\r\n")
        lines = [(line.partition(":")[0], line.partition(":")[2]) for line in rest]
        said = first if reason else " ".join(first.split(" ")[:2]) + " "
        text = "\r\n".join([said, *(f"{name}:{value}" for name, value in change(lines))])
        return text.encode("latin-1") + end + body

    return make


def _chunked(frame: Any, data: bytes) -> bytes:
    """The body in chunks of other sizes, the first with an extension."""
    body = bytes(frame.body)
    half = len(body) // 2
    pieces = [piece for piece in (body[:half], body[half:]) if piece]
    chunks = b"".join(b"%X;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    framing = ("content-length", "transfer-encoding")
    head = _otherwise(lambda lines: [row for row in lines if row[0].lower() not in framing])(frame, data)
    return head.partition(HEAD_END)[0] + b"\r\nTransfer-Encoding: Chunked" + HEAD_END + chunks


HTTP: Mapping[str, Callable[[Any, bytes], bytes]] = {
    "lower case": _otherwise(lambda lines: [(name.lower(), value) for name, value in lines]),
    "upper case": _otherwise(lambda lines: [(name.upper(), value) for name, value in lines]),
    "title case": _otherwise(lambda lines: [(name.title(), value) for name, value in lines]),
    "no spaces": _otherwise(lambda lines: [(name, value.strip()) for name, value in lines]),
    "more spaces": _otherwise(lambda lines: [(name, f" \t{value.strip()} \t") for name, value in lines]),
    "reversed": _otherwise(lambda lines: lines[::-1]),
    "more headers": _otherwise(lambda lines: [("X-Unknown", "a: b"), *lines, ("Server", "")]),
    "no reason": _otherwise(lambda lines: lines, reason=False),
    "chunked": _chunked,
    "not the last": lambda frame, data: b"HTTP/1.1 102 Processing\r\nX-A: b\r\n\r\n" + data,
    "to go on": lambda frame, data: b"HTTP/1.1 100 Continue\r\n\r\n" + data,
    "hints": lambda frame, data: 2 * b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + data,
}


# WebSocket


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The messages of a unit of the server."""
    at = 0
    while at + 2 <= len(data):
        size, head = data[at + 1] & 0x7F, 2
        if size >= 126:
            head = 4 if size == 126 else 10
            size = int.from_bytes(data[at + 2 : at + head])
        yield data[at] & 0x0F, data[at + head : at + head + size]
        at += head + size


def _split(opcode: int, payload: bytes, between: bytes = b"") -> bytes:
    """A message in three fragments, one of them empty."""
    half = len(payload) // 2
    return between.join(
        [
            encode_frame(opcode, payload[:half], fin=False),
            encode_frame(CONTINUATION, b"", fin=False),
            encode_frame(CONTINUATION, payload[half:]),
        ]
    )


def _rewritten(write: Callable[[Any], str]) -> Callable[[Parts], bytes]:
    """JSON with other bytes; what is none stays as it is."""

    def make(parts: Parts) -> bytes:
        said = b""
        for opcode, payload in parts:
            value = None
            if opcode == TEXT and payload[:1] == b"{":
                value = json.loads(payload)
            said += encode_frame(opcode, payload if value is None else write(value).encode())
        return said

    return make


def _members_reversed(value: Any) -> str:
    return json.dumps(dict(reversed(value.items())))


WEBSOCKET: Mapping[str, Callable[[Parts], bytes]] = {
    "in fragments": lambda parts: b"".join(_split(*part) for part in parts),
    "pings between": lambda parts: encode_frame(PING, b"there?").join(encode_frame(*p) for p in parts),
    "pongs between": lambda parts: b"".join(
        encode_frame(PONG, b"nobody asked") + encode_frame(*p) for p in parts
    ),
    "pings inside": lambda parts: b"".join(_split(*part, encode_frame(PING, b"still?")) for part in parts),
    "spaced": _rewritten(lambda value: json.dumps(value, indent=1)),
    "escaped": _rewritten(lambda value: json.dumps(value, ensure_ascii=True).replace("x", "\\u0078")),
    "reversed": _rewritten(_members_reversed),
}
