"""HTTP answers with their headers in wire order (docs/protocols/narconi.md, "Responses" and "Handshake")."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from typing import TypeVar

import msgspec

from fakebrokers.narconi import frames as f
from fakebrokers.narconi.broker import Message
from fakebrokers.narconi.messages import js_text
from fakebrokers.narconi.profile import Profile
from fakebrokers.narconi.routes import Refusal, Route
from fakebrokers.narconi.websocket import accept_key

R = TypeVar("R", bound=f.HttpResponse)

_JSON, _TEXT, _BYTES, _SCRIPT = (
    "application/json",
    "text/plain",
    "application/octet-stream",
    "application/javascript",
)
_PREFLIGHT = "accept, accept-version, content-type, request-id, origin, x-api-version, x-request-id"
#: Words for codes that a fault asks for; the server has its own for those that it sends.
_CODES = {
    400: "BadRequest",
    401: "InvalidCredentials",
    403: "NotAuthorized",
    404: "ResourceNotFound",
    409: "InvalidArgument",
    413: "RequestEntityTooLarge",
    429: "RequestThrottled",
    503: "ServiceUnavailable",
}


def keeps_alive(request: f.HttpRequest) -> bool:
    """Whether the connection stays open after the answer."""
    wish = (request.header("connection") or "").lower()
    return wish != "close" if request.minor else wish == "keep-alive"


def closes(response: f.HttpResponse) -> bool:
    """Whether the connection ends after this answer."""
    return ("Connection", "close") in response.headers


def refusal_of(code: int) -> Refusal:
    """The server's kind of refusal for a status that a fault asks for."""
    return Refusal(code, _CODES.get(code, "InternalError"), f"Refused with status {code}.")


def acceptable_type(accept: str | None) -> str | None:
    """The type of an error's body for a header ``Accept``, or None if nothing fits."""
    wishes = []
    for place, part in enumerate((accept or "*/*").split(",")):
        kind, *parameters = (item.strip() for item in part.lower().split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        wishes.append((-_quality(quality), place, kind))
    for weight, _, kind in sorted(wishes):
        for offered in (_JSON, _TEXT, _BYTES, _SCRIPT):
            if weight < 0 and kind in ("*/*", offered, f"{offered.split('/')[0]}/*"):
                return offered
    return None


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


class Answers:
    """Makes the answers of one profile.

    Args:
        profile: Which server.
        wall: Seconds since 1970 for a monotonic `now`.
    """

    def __init__(self, profile: Profile, wall: Callable[[float], float]) -> None:
        self._profile = profile
        self._wall = wall

    def _date(self, now: float) -> tuple[str, str]:
        return ("Date", formatdate(self._wall(now), usegmt=True))

    def make(
        self,
        kind: type[R],
        request: f.HttpRequest,
        now: float,
        status: int,
        headers: f.Headers = (),
        body: bytes | None = b"",
        *,
        chunked: bool = False,
    ) -> R:
        """An answer; `headers` come first.

        A body of None has no length (204). One that is not chunked has its length after the other
        headers, unless `headers` hold it already.
        """
        alive = keeps_alive(request)
        framing: f.Headers = ()
        if chunked and request.minor == 0:
            alive = False  # HTTP/1.0 knows no chunks: the end of the connection ends the body
        elif chunked:
            framing = (("Transfer-Encoding", "chunked"),) if request.method != "HEAD" else ()
        elif body is not None and not any(name == "Content-Length" for name, _ in headers):
            framing = (("Content-Length", str(len(body))),)
        connection: f.Headers = (("Connection", "keep-alive" if alive else "close"),)
        if alive and self._profile.keep_alive:
            connection += (("Keep-Alive", self._profile.keep_alive),)
        return kind(
            status=status,
            headers=(*headers, self._date(now), *connection, *framing),
            body=b"" if request.method == "HEAD" or body is None else body,
            number=request.number,
        )

    def done(self, kind: type[R], request: f.HttpRequest, now: float) -> R:
        """201 without a body."""
        return self.make(kind, request, now, 201, chunked=self._profile.chunked)

    def none(self, kind: type[R], request: f.HttpRequest, now: float) -> R:
        """204."""
        return self.make(kind, request, now, 204, body=None)

    def message(self, request: f.HttpRequest, message: Message, now: float) -> f.HttpDeliver:
        """200 with a stored message."""
        values = {
            "x-msg-timestamp": str(message.timestamp),
            "x-msg-redelivered": "true" if message.redelivered else "false",
            **{_one_line(name): _one_line(js_text(value)) for name, value in message.headers.items()},
            "Content-Type": _one_line(message.content_type),
        }
        return self.make(
            f.HttpDeliver,
            request,
            now,
            200,
            tuple(values.items()),
            message.payload,
            chunked=self._profile.chunked_delivery,
        )

    def error(
        self, kind: type[R], request: f.HttpRequest, refusal: Refusal, now: float, allow: str = ""
    ) -> R:
        """A refusal, in the form that the request's ``Accept`` asks for; 406 if it fits none."""
        first: f.Headers = (("Allow", allow),) if allow else ()
        form = acceptable_type(request.header("accept"))
        if form is None:
            return self.make(kind, request, now, 406, first, chunked=self._profile.chunked)
        body = self._error_body(refusal, form)
        headers = (*first, ("Content-Type", form), ("Content-Length", str(len(body))))
        return self.make(kind, request, now, refusal.status, headers, body)

    def _error_body(self, refusal: Refusal, form: str) -> bytes:
        if form == _TEXT:
            return refusal.message.encode()
        if form == _BYTES:
            name = refusal.code.removesuffix("Error")
            return f"{name}Error: {refusal.message}".encode()
        values = {"message": refusal.message}
        if self._profile.error_word:
            values = {"code": refusal.code, **values}
        return msgspec.json.encode(values)

    def preflight(self, request: f.HttpRequest, route: Route, now: float) -> f.Discovery:
        """200 to a CORS preflight."""
        methods = ", ".join(route.methods)
        headers = (
            ("Allow", methods),
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Allow-Methods", methods),
            ("Access-Control-Allow-Headers", _PREFLIGHT),
            ("Access-Control-Max-Age", "3600"),
        )
        return self.make(f.Discovery, request, now, 200, headers, chunked=self._profile.chunked)

    def endpoint(self, request: f.HttpRequest, route: Route, now: float) -> f.Discovery:
        """200 with the WebSocket endpoint of a queue (the document's discovery)."""
        host = request.header("host") or "localhost"
        location = f"ws://{host}/v2/{route.project}/queues/{route.queue}"
        return self.make(f.Discovery, request, now, 200, (("Location", location),))

    def upgraded(self, request: f.HttpRequest, protocol: str) -> f.WsAccept:
        """101; no date, no extensions."""
        headers = (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", accept_key(request.header("sec-websocket-key") or "")),
            ("Sec-WebSocket-Protocol", protocol),
        )
        return f.WsAccept(101, headers, number=request.number)

    def not_upgraded(self, request: f.HttpRequest, refusal: Refusal, now: float) -> f.WsRefuse:
        """A refused upgrade: no body, or a standard HTTP error."""
        if not self._profile.refused_upgrade_body:
            bare = (("Connection", "close"), self._date(now))
            return f.WsRefuse(refusal.status, bare, number=request.number, reason="Connection Not Upgraded")
        body = self._error_body(refusal, _JSON)
        headers = (
            ("Content-Type", _JSON),
            ("Content-Length", str(len(body))),
            self._date(now),
            ("Connection", "close"),
        )
        return f.WsRefuse(refusal.status, headers, body, request.number)

    def bad_handshake(self, request: f.HttpRequest) -> f.WsRefuse:
        """An upgrade without a key, or of an unknown version."""
        return f.WsRefuse(400, (("Content-type", "text/html"),), number=request.number)


def _one_line(text: str) -> str:
    """Text that cannot begin a header of its own."""
    return text.replace("\r", "").replace("\n", "")
