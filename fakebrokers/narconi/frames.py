"""Every request, response and WebSocket message of Narconi.

Sources: docs/protocols/narconi.md, "Routes" and "WebSocket".

HTTP frames keep the method, the target and all headers in wire order, so a fault can rewrite any of
them. Frames of a WebSocket are messages; a published message that came in two (metadata, payload) is
one frame, and so is a delivery.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in

#: Names and values in wire order.
Headers = tuple[tuple[str, str], ...]

#: Fields of requests in which clients send credentials of their own, for a proxy in front of the server, say.
NAMED = ("headers", "target")

DEFAULT_CONTENT_TYPE = "application/octet-stream"

_HTTP: Mapping[int, str] = {status.value: status.phrase for status in HTTPStatus}
#: Of the close of a WebSocket (RFC 6455, 7.4.1, and the registry that it founds).
_CLOSES: Mapping[int, str] = {
    1000: "normal closure",
    1001: "going away",
    1002: "protocol error",
    1003: "unsupported data",
    1005: "no code",
    1006: "abnormal closure",
    1007: "invalid payload data",
    1008: "policy violation",
    1009: "message too big",
    1010: "extension missing",
    1011: "internal error",
    1012: "service restart",
    1013: "try again later",
    1014: "bad gateway",
    1015: "TLS handshake failed",
}


# HTTP, client to server


class HttpRequest(Frame, frozen=True, gc=False):
    """A request that has arrived whole.

    Attributes:
        method: As sent.
        target: Path and query, as sent.
        headers: As sent.
        body: Empty if `too_large`.
        number: Position on its connection, from 1; the answer carries it too (not on the wire).
        project: Decoded from the path; "" where the path has none.
        queue: Likewise.
        minor: 0 for HTTP/1.0, 1 for HTTP/1.1.
        too_large: The body was above the size limit and has been thrown away.
    """

    way = "in"
    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    number: int = 0
    project: str = ""
    queue: str = ""
    minor: int = 1
    too_large: bool = False

    def header(self, name: str) -> str | None:
        """The first value of a header; `name` in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class EnsureQueue(HttpRequest, frozen=True, gc=False):
    """``PUT /v2/:project/queues/:queue``"""

    spec = FrameSpec(Role.OPEN, key="number", named=NAMED)


class DeleteQueue(HttpRequest, frozen=True, gc=False):
    """``DELETE /v2/:project/queues/:queue``"""

    spec = FrameSpec(Role.SHUT, key="number", named=NAMED)


class HttpPublish(HttpRequest, frozen=True, gc=False):
    """``POST /v2/:project/queues/:queue/messages``"""

    spec = FrameSpec(Role.PUBLISH, key="number", bulk=("body",), named=NAMED)


class HttpConsume(HttpRequest, frozen=True, gc=False):
    """``DELETE /v2/:project/queues/:queue/messages``"""

    spec = FrameSpec(Role.REQUEST, key="number", named=NAMED)


class WsUpgrade(HttpRequest, frozen=True, gc=False):
    """``GET /v2/:project/queues/:queue/messages`` with an upgrade to WebSocket."""

    spec = FrameSpec(Role.HANDSHAKE, key="number", named=NAMED)


class OtherRequest(HttpRequest, frozen=True, gc=False):
    """Any other request: unknown paths, other methods, OPTIONS."""

    spec = FrameSpec(Role.REQUEST, key="number", bulk=("body",), named=NAMED)


class Expectation(Frame, frozen=True, gc=False):
    """The head of a request with ``Expect: 100-continue``; its body is still to come."""

    way = "in"
    spec = FrameSpec(Role.FLOW)


# HTTP, server to client


class HttpResponse(Frame, frozen=True, gc=False):
    """An answer.

    Attributes:
        status: The number in the status line.
        headers: In wire order, with all that frame the body. With ``Transfer-Encoding: chunked`` the
            body goes out as one chunk.
        body: The bytes.
        number: `HttpRequest.number` of its request (not on the wire).
        reason: The words in the status line; "" for the standard ones.
    """

    way = "out"
    code_names: ClassVar[Mapping[int, str]] = _HTTP
    status: int
    headers: Headers = ()
    body: bytes = b""
    number: int = 0
    reason: str = ""


class QueueEnsured(HttpResponse, frozen=True, gc=False):
    """201 to `EnsureQueue`, whether or not the queue was there before."""

    spec = FrameSpec(Role.RESPONSE, key="number", status="status", named=("headers",))


class QueueDeleted(HttpResponse, frozen=True, gc=False):
    """204 to `DeleteQueue`, whether or not there was a queue."""

    spec = FrameSpec(Role.RESPONSE, key="number", status="status", named=("headers",))


class HttpConfirm(HttpResponse, frozen=True, gc=False):
    """201 to `HttpPublish`: stored."""

    spec = FrameSpec(Role.CONFIRM, key="number", status="status", named=("headers",))


class HttpReject(HttpResponse, frozen=True, gc=False):
    """The refusal of an `HttpPublish`."""

    spec = FrameSpec(Role.REJECT, key="number", status="status", named=("headers",))


class HttpDeliver(HttpResponse, frozen=True, gc=False):
    """200 to `HttpConsume`: the message, acknowledged already."""

    spec = FrameSpec(Role.DELIVER, key="number", status="status", bulk=("body",), named=("headers",))


class HttpEmpty(HttpResponse, frozen=True, gc=False):
    """204 to `HttpConsume`: the queue is empty."""

    spec = FrameSpec(Role.RESPONSE, key="number", status="status", named=("headers",))


class HttpError(HttpResponse, frozen=True, gc=False):
    """The refusal of any other request."""

    spec = FrameSpec(Role.RESPONSE, key="number", status="status", named=("headers", "body"))


class Discovery(HttpResponse, frozen=True, gc=False):
    """200 to OPTIONS: CORS preflight, or (profile ``seed``) the endpoint in ``Location``."""

    spec = FrameSpec(Role.RESPONSE, key="number", status="status", named=("headers",))


class Continue(HttpResponse, frozen=True, gc=False):
    """``100 Continue``"""

    spec = FrameSpec(Role.FLOW, status="status", named=("headers",))


class WsAccept(HttpResponse, frozen=True, gc=False):
    """``101 Switching Protocols``"""

    spec = FrameSpec(Role.HANDSHAKE, key="number", status="status", named=("headers",))


class WsRefuse(HttpResponse, frozen=True, gc=False):
    """The refusal of a `WsUpgrade`."""

    spec = FrameSpec(Role.HANDSHAKE, key="number", status="status", named=("headers",))


# WebSocket, client to server


class WsPublish(Frame, frozen=True, gc=False):
    """One message to publish.

    Attributes:
        number: Position on its connection, from 1; its confirm carries it too (not on the wire).
        payload: The bytes.
        metadata: The JSON object as sent, without ``message``.
        form: ``single`` (payload in ``message``), ``pair`` (two messages), ``binary`` (no metadata).
        text: Whether the payload came as text.
    """

    spec = FrameSpec(Role.PUBLISH, key="number", bulk=("payload",))
    number: int
    payload: bytes
    metadata: Mapping[str, Any] = {}
    form: str = "binary"
    text: bool = False

    @property
    def content_type(self) -> str:
        """As sent, or the default."""
        return self.metadata.get("Content-Type") or DEFAULT_CONTENT_TYPE

    @property
    def stored(self) -> dict[str, Any]:
        """The metadata that is kept with the message: every key that starts with ``x-``."""
        return {key: value for key, value in self.metadata.items() if key.startswith("x-")}


class WsAck(Frame, frozen=True, gc=False):
    """Acknowledges deliveries.

    Attributes:
        ack_id: One delivery; with `ack_to_id` too, all up to it.
        ack_to_id: All deliveries up to this one; ``"0"`` means all.
    """

    spec = FrameSpec(Role.ACK, key="key", keys=KeyType.TEXT)
    ack_id: str | None = None
    ack_to_id: str | None = None

    @property
    def key(self) -> str:
        """The id that counts."""
        return self.ack_id or self.ack_to_id or ""


class WsStop(Frame, frozen=True, gc=False):
    """An empty message of a consumer: send no more.

    Attributes:
        text: Whether it was a text message.
    """

    spec = FrameSpec(Role.FLOW)
    text: bool = True


# WebSocket, server to client


class WsConfirm(Frame, frozen=True, gc=False):
    """An empty text message: the oldest unconfirmed message is stored.

    Attributes:
        number: `WsPublish.number` (not on the wire).
    """

    spec = FrameSpec(Role.CONFIRM, key="number")
    number: int = 0


class WsReject(Frame, frozen=True, gc=False):
    """A JSON object in place of a confirm."""

    spec = FrameSpec(Role.REJECT, key="number", status="code")
    code_names: ClassVar[Mapping[int, str]] = _HTTP
    error: str | None
    code: int
    number: int = 0


class WsError(Frame, frozen=True, gc=False):
    """News of an error that answers no message."""

    way = "out"
    spec = FrameSpec(Role.EVENT, status="code")
    code_names: ClassVar[Mapping[int, str]] = _HTTP
    error: str | None
    code: int


class WsDeliver(Frame, frozen=True, gc=False):
    """One delivery: metadata and payload, in two messages or, with an encoding, in one.

    Attributes:
        payload: The bytes.
        content_type: None leaves it out, as in the other fields.
        timestamp: Milliseconds since 1970.
        redelivered: Whether a consumer had it before and did not acknowledge it.
        ack_id: Only on connections with ``ack``.
        headers: The stored ``x-`` keys, in order.
        encoding: Name of the encoding of ``message``; None for a payload message of its own.
        text: Whether that payload message is text (profile ``seed``).
    """

    spec = FrameSpec(Role.DELIVER, key="ack_id", keys=KeyType.TEXT, bulk=("payload",))
    payload: bytes
    content_type: str | None = DEFAULT_CONTENT_TYPE
    timestamp: int | None = None
    redelivered: bool | None = False
    ack_id: str | None = None
    headers: Mapping[str, Any] = {}
    encoding: str | None = None
    text: bool = False


# WebSocket, both directions


class WsPing(Frame, frozen=True, gc=False):
    """Opcode 9."""

    spec = FrameSpec(Role.HEARTBEAT)
    payload: bytes = b""


class WsPong(Frame, frozen=True, gc=False):
    """Opcode 10."""

    spec = FrameSpec(Role.HEARTBEAT)
    payload: bytes = b""


class WsClose(Frame, frozen=True, gc=False):
    """Opcode 8.

    Attributes:
        code: None for an empty close frame.
        reason: Text after the code.
    """

    spec = FrameSpec(Role.CLOSE, status="code")
    code_names: ClassVar[Mapping[int, str]] = _CLOSES
    code: int | None = 1000
    reason: str = ""


class WsFrame(Frame, frozen=True, gc=False):
    """One raw WebSocket frame, for faults that inject what Narconi would not send.

    Attributes:
        opcode: 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        payload: The bytes.
        fin: Whether the message ends here.
        rsv: The three reserved bits, as a number.
        masked: Whether it is masked (a server must not).
    """

    spec = FrameSpec(Role.EVENT, bulk=("payload",))
    opcode: int
    payload: bytes = b""
    fin: bool = True
    rsv: int = 0
    masked: bool = False


FRAMES = frame_table(frames_in(sys.modules[__name__]))
