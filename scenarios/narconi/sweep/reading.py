"""What a client is handed, read by docs/protocols/narconi.md, "Responses", and RFC 6455; no client's code.

What an answer means depends on its request, so the decoders of the two directions share a line of requests.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections import deque
from collections.abc import Iterator, Mapping
from string import digits, hexdigits
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.routes import find_route
from fakebrokers.narconi.websocket import (
    CLOSE,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TEXT,
    BadFrame,
    Message,
    MessageReader,
    accept_key,
)
from scenarios.narconi.sweep.legal import is_by_the_letter

LARGEST = 16 << 20  #: bytes of a message that a correct client lets in
HUGE = 1 << 31  #: bytes of a message that no client lets in
LONG_HEAD, LONG_SIZE, TOO_LARGE = 10, 127, 1009
LENGTHS = {126: 2, LONG_SIZE: 8}  #: bytes of a length after the head, by the number in the head
SHORTEST = {126: 126, LONG_SIZE: 1 << 16}  #: and the shortest that needs them
LINE_END = b"\r\n"
#: How the names of headers begin that belong to a message.
HANDED_ON = ("x-", "content-type")
HEAD_END = 2 * LINE_END
BEGINNING = b"HTTP/1."
CHUNKED = -1
ODD = "odd"  #: `Malformed.code` of what a client may read, or take for an error
SWITCHING, NO_CONTENT, NOT_MODIFIED = 101, 204, 304
SHOWN = 256

#: The answer to each kind of request, with any status.
ANSWERS: dict[type[Frame], type[f.HttpResponse]] = {
    f.EnsureQueue: f.QueueEnsured,
    f.DeleteQueue: f.QueueDeleted,
    f.HttpPublish: f.HttpConfirm,
    f.HttpConsume: f.HttpDeliver,
    f.OtherRequest: f.HttpError,
    f.WsUpgrade: f.WsAccept,
}
_Pair = tuple[Frame, int]


class _Bad(Exception):
    """Ends the reading; the text says what was expected."""


class _ClientReader(MessageReader):
    """A length takes as few bytes as it fits into (RFC 6455, 5.2), which servers do not look at."""

    def _read_frame(self, pos: int) -> int:
        head = self._buffer[pos : pos + LONG_HEAD]
        code = head[1] & 0x7F if len(head) > 1 else 0
        width = LENGTHS.get(code, 0)
        if width and len(head) >= 2 + width and int.from_bytes(head[2 : 2 + width]) < SHORTEST[code]:
            return self._fail(pos, "a length in as few bytes as it fits into", PROTOCOL_ERROR)
        return super()._read_frame(pos)


class Requests(NarconiCodec):
    """What the server is handed; `open` are the requests without an answer, `sent` counts messages."""

    def __init__(self) -> None:
        super().__init__(
            config=Config(max_message_size=LARGEST)
        )  # what is too large is for the server to say
        self._ws = _ClientReader(3 * LARGEST)
        self.open: deque[f.HttpRequest] = deque()
        self.sent = 0

    def feed(self, unit: bytes) -> Iterator[_Pair]:
        for frame, size in super().feed(unit):
            if isinstance(frame, f.HttpRequest):
                self.open.append(frame)
            elif isinstance(frame, f.WsPublish):
                self.sent += 1
            yield frame, size


class Answers(NarconiCodec):
    """What the client is handed."""

    def __init__(self, requests: Requests) -> None:
        super().__init__()
        self._asked = requests
        self._bytes = bytearray()
        self._frames: Frames | None = None
        self._is_dead = False
        self._has_odd_head = False

    @property
    def partial(self) -> int:
        return self._frames.partial if self._frames is not None else len(self._bytes)

    def feed(self, unit: bytes) -> Iterator[_Pair]:
        if self._is_dead:
            return
        if self._frames is not None:
            yield from self._frames.feed(unit)
            return
        self._bytes += unit
        try:
            while self._goes_on and (found := self._response()) is not None:
                yield found
                if self._frames is not None:
                    rest = bytes(self._bytes)
                    yield from self._frames.feed(rest)
                    return
        except _Bad as bad:
            self._is_dead = True
            data = bytes(self._bytes)
            self._bytes.clear()
            yield Malformed(data[:SHOWN], str(bad), "http"), len(data)

    @property
    def _goes_on(self) -> bool:
        return bool(self._bytes) and not self._is_dead

    def _response(self) -> _Pair | None:
        """The next answer, taken from the bytes; None while it is not whole."""
        if not self._asked.open:
            raise _Bad("expected nothing, because nothing was asked")
        if not BEGINNING.startswith(self._bytes[: len(BEGINNING)]):
            raise _Bad(f"expected {BEGINNING.decode()}, got {bytes(self._bytes[:SHOWN])!r:.60}")
        request = self._asked.open[0]
        head, end, rest = bytes(self._bytes).partition(HEAD_END)
        if not end:
            return None
        status, reason, headers = _head(head)
        if 100 <= status < 200 and status != SWITCHING:
            self._bytes = bytearray(rest)
            return f.Continue(status, headers, reason=reason), len(head) + len(end)
        found = _body(request.method, status, headers, rest)
        if found is None:
            return self._odd(head, status, headers, reason)
        body, used = found
        self._asked.open.popleft()
        self._has_odd_head = False
        self._bytes = bytearray(rest[used:])
        answer = ANSWERS[type(request)](status, headers, body, request.number, reason)
        if isinstance(request, f.WsUpgrade):
            if is_accepted(request, answer):
                self._frames = Frames(request, self._asked)
            else:
                self._is_dead = True
        return answer, len(head) + len(end) + used

    def _odd(self, head: bytes, status: int, headers: f.Headers, reason: str) -> _Pair | None:
        """Reported once: a head whose body is not there yet, and that a client need not wait for."""
        if self._has_odd_head or is_by_the_letter(f.HttpResponse(status, headers, reason=reason)):
            return None
        self._has_odd_head = True
        return Malformed(head[:SHOWN], "expected a head by the letter", ODD), 0


def is_accepted(request: f.HttpRequest, answer: f.HttpResponse) -> bool:
    """Whether an upgrade has worked (RFC 6455, 4.1).

    An answer that names no sub-protocol is an acceptance, with which a client need not be content.
    """
    headers = {name.lower(): value for name, value in reversed(answer.headers)}
    return (
        answer.status == SWITCHING
        and headers.get("upgrade", "").lower() == "websocket"
        and "upgrade" in [option.strip() for option in headers.get("connection", "").lower().split(",")]
        and headers.get("sec-websocket-accept") == accept_key(request.header("sec-websocket-key") or "")
        and headers.get("sec-websocket-protocol") in (None, request.header("sec-websocket-protocol"))
    )


def _head(data: bytes) -> tuple[int, str, f.Headers]:
    first, *lines = data.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status, _, reason = rest.partition(" ")
    if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdecimal()):
        raise _Bad(f"expected a status line, got {first[:40]!r}")
    rows = (line.partition(":") for line in lines)
    return int(status), reason, tuple((name, value.strip()) for name, _, value in rows)


def _body(method: str, status: int, headers: f.Headers, rest: bytes) -> tuple[bytes, int] | None:
    """A body and the bytes that it takes; None while it is not whole."""
    named = {name.lower(): value for name, value in reversed(headers)}
    if method == "HEAD" or status in (SWITCHING, NO_CONTENT, NOT_MODIFIED):
        return b"", 0
    if named.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(rest)
    length = named.get("content-length")
    if length is None:
        return (b"", 0) if method == "GET" else None  # refused upgrades have no body; others end with the end
    size = _number(length, 10)
    return (rest[:size], size) if len(rest) >= size else None


def _chunks(data: bytes) -> tuple[bytes, int] | None:
    body, at = b"", 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        size = _number(data[at:end].partition(b";")[0].decode("latin-1").rstrip(" \t"), 16)
        at = end + 2
        if len(data) < at + size + len(LINE_END):
            return None
        body += data[at : at + size]
        at += size + len(LINE_END)
        if data[at - len(LINE_END) : at] != LINE_END:
            raise _Bad(f"expected the end of a chunk, got {data[at - len(LINE_END) : at]!r}")
        if size == 0:
            return body, at  # the fake sends no trailers


def _number(text: str, base: int) -> int:
    if not text or not set(text) <= set(hexdigits if base == 16 else digits):
        raise _Bad(f"expected a length, got {text[:40]!r}")
    return int(text, base)


class _ServerReader(MessageReader):
    """A server must not mask (RFC 6455, 5.1), and no client waits for a message of any size."""

    def _read_frame(self, pos: int) -> int:
        head = self._buffer[pos : pos + LONG_HEAD]
        whole = 2 + LENGTHS.get(head[1] & 0x7F, 0) if len(head) > 1 else LONG_HEAD
        if len(head) >= whole and head[1] & 0x80:  # clients may wait for all of a head
            return self._fail(pos, "a frame without a mask", PROTOCOL_ERROR)
        if len(head) == LONG_HEAD and head[1] == LONG_SIZE and int.from_bytes(head[2:]) >= HUGE:
            return self._fail(pos, "a frame of a size that a client takes", TOO_LARGE)
        return super()._read_frame(pos)


class Frames:
    """The WebSocket behind an upgrade."""

    def __init__(self, request: f.HttpRequest, requests: Requests) -> None:
        route = find_route(request.target)
        self._encoding = route.query.get("encoding") if route is not None else None
        self._publishes = request.header("sec-websocket-protocol") == "publish"
        self._requests = requests
        self._reader = _ServerReader(LARGEST)
        self._reported = 0
        self._metadata: tuple[dict[str, Any], int] | None = None
        self._is_dead = False

    @property
    def partial(self) -> int:
        """Bytes of what has begun."""
        return self._reader.partial + (self._metadata[1] if self._metadata is not None else 0)

    def feed(self, data: bytes) -> Iterator[_Pair]:
        """Take in bytes; yield what is complete."""
        for message in self._reader.feed(data):
            if self._is_dead:
                return
            if isinstance(message, BadFrame):
                yield Malformed(message.data, message.problem, "ws"), len(message.data)
                return
            try:
                found = self._frame(message)
            except (_Bad, UnicodeDecodeError) as bad:
                self._is_dead = True
                yield Malformed(message.payload[:SHOWN], str(bad), "ws"), message.size
                return
            if found is not None:
                yield found

    def _frame(self, message: Message) -> _Pair | None:
        payload = message.payload
        if message.opcode == CLOSE:
            if len(payload) == 1:
                raise _Bad("expected a close code of two bytes, got one")
            reason = payload[2:].decode()
            return f.WsClose(int.from_bytes(payload[:2]) if payload else None, reason), message.size
        if message.opcode in (PING, PONG):
            return (f.WsPing if message.opcode == PING else f.WsPong)(payload), message.size
        if message.too_large:
            raise _Bad(f"expected at most {LARGEST} bytes, got more")
        if message.opcode == TEXT:
            payload.decode()
        if self._publishes:
            return self._word(message), message.size
        return self._delivery(message)

    def _word(self, message: Message) -> Frame:
        """What a publisher gets: its next confirm."""
        if not message.payload:
            if self._reported >= self._requests.sent:
                raise _Bad("expected nothing, because every message has its confirm")
            self._reported += 1
            return f.WsConfirm(self._reported)
        value = _object(message.payload)
        code = value.get("code")
        if not isinstance(code, int):
            raise _Bad("expected a confirm or an error")
        if self._reported >= self._requests.sent:
            return f.WsError(value.get("error"), code)
        self._reported += 1
        return f.WsReject(value.get("error"), code, self._reported)

    def _delivery(self, message: Message) -> _Pair | None:
        if self._metadata is not None:
            (metadata, size), self._metadata = self._metadata, None
            return _deliver(metadata, message.payload, None, message.opcode == TEXT), size + message.size
        metadata = _object(message.payload)
        if "code" in metadata:
            return f.WsError(metadata.get("error"), metadata["code"]), message.size
        if self._encoding is None:
            self._metadata = metadata, message.size
            return None
        body = _decoded(self._encoding.lower(), metadata.pop("message", None))
        return _deliver(metadata, body, self._encoding, False), message.size


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _Bad("expected a JSON object")
    return value


def _decoded(encoding: str, text: Any) -> bytes:
    if not isinstance(text, str):
        raise _Bad("expected a message as text")
    try:
        if encoding == "base64":
            return b64decode(text, validate=True)
        return bytes.fromhex(text) if encoding == "hex" else text.encode()
    except (ValueError, binascii.Error):
        raise _Bad(f"expected {encoding}") from None


def _deliver(metadata: dict[str, Any], body: bytes, encoding: str | None, text: bool) -> Frame:
    own = ("Content-Type", "timestamp", "redelivered", "ackId")
    return f.WsDeliver(
        body,
        metadata.get("Content-Type"),
        metadata.get("timestamp"),
        metadata.get("redelivered"),
        metadata.get("ackId"),
        {name: value for name, value in metadata.items() if name not in own},
        encoding,
        text,
    )


def metadata(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers of a message that a client hands on; what else the server sends may be ignored."""
    return {name: value for name, value in headers.items() if name.lower().startswith(HANDED_ON)}
