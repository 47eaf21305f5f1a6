"""Both directions of a connection that a proxy passes on to a Narconi server.

What a response means depends on its request, and what a WebSocket message means on the upgrade: so the codec
of the answers is told which requests reach the server.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.relay import Relay
from fakebrokers.core.session import Codec
from fakebrokers.narconi import frames as f
from fakebrokers.narconi import http1, websocket
from fakebrokers.narconi.codec import NarconiCodec

_Pair = tuple[Frame, int]

_STATUS_LINE = re.compile(r"HTTP/1\.[01] (\d{3})(?: (.*))?\Z")
_NO_BODY = (204, 304)
_EXCERPT = 256
_ANY_SIZE = 1 << 62
_CLIENTS_WS = (f.WsPublish, f.WsAck, f.WsStop, f.WsPing, f.WsPong, f.WsClose)

#: By the request: the frame of its success, of an empty queue, and of anything else.
_KINDS: dict[type[f.HttpRequest], tuple[dict[int, type[f.HttpResponse]], type[f.HttpResponse]]] = {
    f.EnsureQueue: ({201: f.QueueEnsured}, f.HttpError),
    f.DeleteQueue: ({204: f.QueueDeleted}, f.HttpError),
    f.HttpPublish: ({201: f.HttpConfirm}, f.HttpReject),
    f.HttpConsume: ({200: f.HttpDeliver, 204: f.HttpEmpty}, f.HttpError),
    f.WsUpgrade: ({101: f.WsAccept}, f.WsRefuse),
}


class _Head(NamedTuple):
    """The head of a response; `end`: where its body begins in the buffer."""

    status: int
    reason: str
    headers: f.Headers
    end: int

    def value(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class ServerCodec(Codec):
    """What the server says. A response without a length never ends, so it comes out as no frame."""

    def __init__(self) -> None:
        self.asked: deque[f.HttpRequest] = deque()  #: what the server has to answer, in order
        self._buffer = bytearray()
        self._lost = False
        self._ws = websocket.MessageReader(_ANY_SIZE)
        self._on_message: Callable[[websocket.Message], _Pair | None] | None = None
        self._confirmed = 0
        self._metadata: dict[str, Any] | None = None
        self._metadata_size = 0
        self._writer = NarconiCodec()

    @property
    def partial(self) -> int:
        """Bytes of a response, a message or a delivery that has not arrived whole."""
        return len(self._buffer) + self._metadata_size + self._ws.partial

    def feed(self, unit: bytes) -> Iterator[_Pair]:
        """Yields responses, or the server's frames of a WebSocket."""
        if self._lost:
            return
        self._buffer += unit
        while self._buffer and self._on_message is None:
            try:
                found = self._response()
            except ValueError as problem:
                size, self._lost = len(self._buffer), True
                data = bytes(self._buffer[:_EXCERPT])
                self._buffer.clear()
                yield Malformed(data, f"expected {problem}", "http"), size
                return
            if found is None:
                return
            yield found
        if self._on_message is not None:
            data = bytes(self._buffer)
            self._buffer.clear()
            yield from self._messages(data)

    def encode(self, frame: Frame) -> bytes:
        return self._writer.encode(frame)

    def mend(self, unit: bytes) -> bytes:
        return self._writer.mend(unit)

    # HTTP

    def _response(self) -> _Pair | None:
        """The next response; None as long as it has not arrived whole. `ValueError` if it is none."""
        head = self._head()
        if head is None:
            return None
        request = self.asked[0] if self.asked else None
        found = self._body(head, request)
        if found is None:
            return None
        body, end = found
        del self._buffer[:end]
        if head.status >= 200 or head.status == 101:
            self._answered()
        if head.status == 101 and request is not None:
            publishes = request.header("sec-websocket-protocol") == "publish"
            self._on_message = self._to_publisher if publishes else self._to_consumer
        kind, number = _kind(head.status, request), request.number if request else 0
        return kind(head.status, head.headers, body, number, head.reason), end

    def _answered(self) -> None:
        if self.asked:
            self.asked.popleft()

    def _head(self) -> _Head | None:
        end = self._buffer.find(b"\r\n\r\n", 0, http1.HEAD_LIMIT)
        if end < 0:
            if len(self._buffer) > http1.HEAD_LIMIT:
                raise ValueError(f"a head of at most {http1.HEAD_LIMIT} bytes, got more")
            return None
        first, *lines = bytes(self._buffer[:end]).decode("utf-8", "replace").split("\r\n")
        line = _STATUS_LINE.match(first)
        if line is None:
            raise ValueError(f"a status line of HTTP/1, got {first[:80]!r}")
        pairs = [header.partition(":") for header in lines]
        headers = tuple([(name, value.strip(" \t")) for name, _, value in pairs])
        return _Head(int(line[1]), line[2] or "", headers, end + 4)

    def _body(self, head: _Head, request: f.HttpRequest | None) -> tuple[bytes, int] | None:
        """The body, and where it ends in the buffer."""
        if head.status < 200 or head.status in _NO_BODY or (request and request.method == "HEAD"):
            return b"", head.end
        if (head.value("transfer-encoding") or "").lower() == "chunked":
            return self._chunks(head.end)
        length = head.value("content-length")
        if length is None:
            return None
        end = head.end + int(length)
        return (bytes(self._buffer[head.end : end]), end) if len(self._buffer) >= end else None

    def _chunks(self, at: int) -> tuple[bytes, int] | None:
        body = bytearray()
        while (stop := self._buffer.find(b"\r\n", at)) >= 0:
            size = int(bytes(self._buffer[at:stop]).split(b";")[0], 16)
            end = stop + 2 + size + 2
            if len(self._buffer) < end:
                return None
            body += self._buffer[stop + 2 : end - 2]
            at = end
            if not size:
                return bytes(body), end
        return None

    # WebSocket

    def _messages(self, data: bytes) -> Iterator[_Pair]:
        assert self._on_message is not None
        for message in self._ws.read(data):
            if isinstance(message, websocket.BadFrame):
                self._metadata_size = 0
                yield Malformed(message.data, message.problem, f"ws-{message.code}"), len(message.data)
            elif message.opcode >= websocket.CLOSE:
                yield _control(message), message.size
            else:
                found = self._on_message(message)
                if found is not None:
                    yield found

    def _to_publisher(self, message: websocket.Message) -> _Pair:
        """An empty message confirms the oldest publish, an object refuses it."""
        self._confirmed += 1
        if not message.payload:
            return f.WsConfirm(self._confirmed), message.size
        values = _object(message.payload)
        if values is None:
            return Malformed(message.payload[:_EXCERPT], "expected a JSON object", "not-json"), message.size
        return f.WsReject(values.get("error"), _code(values), self._confirmed), message.size

    def _to_consumer(self, message: websocket.Message) -> _Pair | None:
        """Metadata, or the payload after them."""
        pending, size = self._metadata, self._metadata_size + message.size
        self._metadata, self._metadata_size = None, 0
        if pending is not None:
            return _delivery(pending, message.payload, text=message.opcode == websocket.TEXT), size
        values = _object(message.payload)
        if values is None:
            return Malformed(message.payload[:_EXCERPT], "expected a JSON object", "not-json"), size
        if "Content-Type" not in values and "code" in values:
            return f.WsError(values.get("error"), _code(values)), size
        if "message" in values:
            payload = str(values.pop("message")).encode("utf-8", "surrogatepass")
            return _delivery(values, payload, encoding="utf8"), size
        self._metadata, self._metadata_size = values, size
        return None


def _kind(status: int, request: f.HttpRequest | None) -> type[f.HttpResponse]:
    if status == 100:
        return f.Continue
    if request is None or type(request) not in _KINDS:
        options = request is not None and request.method == "OPTIONS" and status < 300
        return f.Discovery if options else f.HttpError
    good, otherwise = _KINDS[type(request)]
    return good.get(status, otherwise)


def _control(message: websocket.Message) -> Frame:
    payload = message.payload
    if message.opcode == websocket.PING:
        return f.WsPing(payload)
    if message.opcode == websocket.PONG:
        return f.WsPong(payload)
    if len(payload) < 2:
        return f.WsClose(None)
    return f.WsClose(int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace"))


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _code(values: dict[str, Any]) -> int:
    code = values.get("code")
    return code if isinstance(code, int) else 0


def _delivery(
    metadata: dict[str, Any], payload: bytes, *, text: bool = False, encoding: str | None = None
) -> Frame:
    stamp = metadata.get("timestamp")
    return f.WsDeliver(
        payload=payload,
        content_type=metadata.get("Content-Type"),
        timestamp=stamp if isinstance(stamp, int) else None,
        redelivered=metadata.get("redelivered"),
        ack_id=metadata.get("ackId"),
        headers={name: value for name, value in metadata.items() if name.startswith("x-")},
        encoding=encoding,
        text=text,
    )


class ClientCodec(NarconiCodec):
    """What the client says; WebSocket frames that a fault has changed are masked, as servers want them."""

    def encode(self, frame: Frame) -> bytes:
        data = super().encode(frame)
        if not isinstance(frame, _CLIENTS_WS):
            return data
        messages = websocket.MessageReader(_ANY_SIZE).feed(data)
        return b"".join(
            [
                websocket.encode_frame(each.opcode, each.payload, masked=True)
                for each in messages
                if isinstance(each, websocket.Message)
            ]
        )


class NarconiRelay(Relay):
    """A client that waits for ``100 Continue`` gets it at once: only whole requests are passed on."""

    def __init__(self) -> None:
        self._server = ServerCodec()
        super().__init__(ClientCodec(), self._server)

    def heard(self, frame: Frame) -> None:
        if isinstance(frame, f.HttpRequest):
            self._server.asked.append(frame)

    def prompt(self, frame: Frame) -> Frame | None:
        return f.Continue(100) if isinstance(frame, f.Expectation) else None
