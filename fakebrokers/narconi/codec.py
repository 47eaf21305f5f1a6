"""Bytes to frames and back, for one TCP connection: HTTP until an upgrade, then WebSocket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.narconi import frames as f
from fakebrokers.narconi import http1, websocket
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.messages import ENCODERS, encode_error, read_command, read_metadata
from fakebrokers.narconi.profile import REAL, Profile
from fakebrokers.narconi.routes import find_route

_Pair = tuple[Frame, int]

_QUEUE_KINDS: dict[str, type[f.HttpRequest]] = {"PUT": f.EnsureQueue, "DELETE": f.DeleteQueue}
_MESSAGES_KINDS: dict[str, type[f.HttpRequest]] = {"POST": f.HttpPublish, "DELETE": f.HttpConsume}


class NarconiCodec(Codec):
    """See the module's text.

    What WebSocket messages mean depends on the sub-protocol of the upgrade: after ``publish`` a JSON
    object begins a message, else it is a command of a consumer.
    """

    frames = f.FRAMES

    def __init__(self, profile: Profile = REAL, config: Config | None = None) -> None:
        self._profile = profile
        self._config = config or Config()
        self._http = http1.RequestReader(self._config.max_message_size, cut=profile.cuts_bodies)
        # a text message is counted in UTF-16 units, each of which takes at most 3 bytes
        self._ws = websocket.MessageReader(3 * self._config.max_message_size)
        self._read: Callable[[bytes], Iterator[_Pair]] = self._read_http
        self._on_message = self._publish_message
        self._requests = 0
        self._published = 0
        self._metadata: dict[str, Any] | None = None
        self._metadata_size = 0

    def feed(self, unit: bytes) -> Iterator[_Pair]:
        """Yields `HttpRequest` frames, or the client's frames of a WebSocket."""
        yield from self._read(unit)  # looked up here: an upgrade may stand in a unit before this one

    def fresh(self) -> NarconiCodec:
        """An empty codec in the same state: HTTP, publishing or consuming."""
        other = type(self)(self._profile, self._config)
        if self._read == self._read_ws:
            other._read = other._read_ws
            if self._on_message == self._consumer_message:
                other._on_message = other._consumer_message
        return other

    def mend(self, unit: bytes) -> bytes:
        """An HTTP message with the length of its body; chunks and WebSocket frames stay as they are."""
        return http1.mend_length(unit) if unit[:1].isalpha() else unit

    @property
    def partial(self) -> int:
        """Bytes of a request, a WebSocket message or a published pair that has not arrived whole."""
        return self._metadata_size + (
            self._http.partial if self._read == self._read_http else self._ws.partial
        )

    # HTTP

    def _read_http(self, data: bytes) -> Iterator[_Pair]:
        for event in self._http.read(data):
            if isinstance(event, http1.Request):
                yield self._request(event), event.size
                if event.upgrades:
                    yield from self._upgrade(event)
            elif isinstance(event, http1.ContinueExpected):
                yield f.Expectation(), 0
            else:
                yield Malformed(event.data, f"expected {event.problem}", "http"), len(event.data)

    def _request(self, request: http1.Request) -> f.HttpRequest:
        self._requests += 1
        route = find_route(request.target)
        kind: type[f.HttpRequest] = f.OtherRequest
        if request.upgrades:
            kind = f.WsUpgrade
        elif route is not None:
            kinds = _MESSAGES_KINDS if route.messages else _QUEUE_KINDS
            kind = kinds.get(request.method, f.OtherRequest)
        return kind(
            method=request.method,
            target=request.target,
            headers=request.headers,
            body=request.body,
            number=self._requests,
            project=route.project if route else "",
            queue=route.queue if route else "",
            minor=request.minor,
            too_large=request.too_large,
        )

    def _upgrade(self, request: http1.Request) -> Iterator[_Pair]:
        if request.values("sec-websocket-protocol") != ["publish"]:
            self._on_message = self._consumer_message
        self._read = self._read_ws
        return self._read_ws(self._http.take_rest())

    # WebSocket

    def _read_ws(self, data: bytes) -> Iterator[_Pair]:
        for message in self._ws.read(data):
            if isinstance(message, websocket.BadFrame):
                yield Malformed(message.data, message.problem, f"ws-{message.code}"), len(message.data)
            elif message.opcode >= websocket.CLOSE:
                yield self._control(message), message.size
            else:
                found = self._on_message(message)
                if found is not None:
                    yield found

    def _control(self, message: websocket.Message) -> Frame:
        payload = message.payload
        if message.opcode == websocket.PING:
            return f.WsPing(payload)
        if message.opcode == websocket.PONG:
            return f.WsPong(payload)
        if not payload:
            return f.WsClose(None)
        if len(payload) == 1:
            return Malformed(payload, "expected a close code of two bytes, got one", "ws-1002")
        return f.WsClose(int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace"))

    def _publish_message(self, message: websocket.Message) -> _Pair | None:
        """A message of a publisher: metadata, a payload, or both."""
        text = message.opcode == websocket.TEXT
        pending, size = self._metadata, self._metadata_size + message.size
        self._metadata, self._metadata_size = None, 0
        bad = self._unfit(message, text)
        if bad is not None:
            return bad, size
        if pending is not None:
            if text and not message.payload and self._profile.crashes:
                return Malformed(b"", "expected a payload, got an empty text message", "crash"), size
            return self._published_frame(pending, message.payload, "pair", text), size
        if not text and (message.payload or not self._profile.empty_metadata):
            return self._published_frame({}, message.payload, "binary", text), size
        found = read_metadata(message.payload, self._profile, self._config.max_message_size)
        if isinstance(found, Malformed):
            return found, size
        metadata, payload = found
        if payload is not None:
            return self._published_frame(metadata, payload, "single", text), size
        self._metadata, self._metadata_size = metadata, size
        return None

    def _published_frame(self, metadata: dict[str, Any], payload: bytes, form: str, text: bool) -> Frame:
        kind = metadata.get("Content-Type")
        if kind and not isinstance(kind, str):
            return Malformed(payload[:256], f"expected text as Content-Type, got {kind!r:.40}", "crash")
        self._published += 1
        return f.WsPublish(self._published, payload, metadata, form, text)

    def _consumer_message(self, message: websocket.Message) -> _Pair:
        """A message of a consumer: a command, or an empty one."""
        text = message.opcode == websocket.TEXT
        bad = self._unfit(message, text)
        if bad is not None:
            return bad, message.size
        if not message.payload:
            return f.WsStop(text), message.size
        if not text:
            problem = "expected a JSON object, got a binary message"
            return Malformed(message.payload[:256], problem, "not-json"), message.size
        return read_command(message.payload), message.size

    def _unfit(self, message: websocket.Message, text: bool) -> Malformed | None:
        """What is wrong with a message whatever it is for: its size, its UTF-8."""
        limit = self._config.max_message_size
        size = len(message.payload)
        problem, code = "", ""
        if message.too_large or (not text and size > limit):
            problem, code = f"expected at most {limit} bytes, got more", "too-large"
        elif text:
            try:
                decoded = message.payload.decode()
            except UnicodeDecodeError as error:
                problem, code = f"expected UTF-8, got byte 0x{message.payload[error.start]:02x}", "ws-1007"
            else:
                if size > limit and len(decoded.encode("utf-16-le")) > 2 * limit:
                    problem, code = f"expected at most {limit} UTF-16 units, got more", "too-large"
        return Malformed(message.payload[:256], problem, code) if problem else None

    # out

    def encode(self, frame: Frame) -> bytes:
        """The bytes of a frame, of either direction. The client's WebSocket frames come unmasked."""
        encoder = ENCODERS.get(type(frame))
        if encoder is not None:
            return encoder(frame)
        if isinstance(frame, f.HttpResponse):
            return http1.encode_response(frame.status, frame.reason, frame.headers, frame.body)
        if isinstance(frame, f.HttpRequest):
            return http1.encode_request(frame.method, frame.target, frame.headers, frame.body, frame.minor)
        if isinstance(frame, f.WsReject | f.WsError):
            return encode_error(frame.error, frame.code, code_first=self._profile.error_code_first)
        return frame.data if isinstance(frame, Malformed) else b""
