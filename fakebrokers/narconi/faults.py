"""Faults that exist only here, as effects and by name (docs/protocols/narconi.md, "Faults worth injecting").

narconi.faults.add(lose_consume_response(), publish_201_lost(nth=2))
narconi.faults.add(fault(CutBody(keep=40), Fin(), kind="HttpDeliver"))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fakebrokers.core.frames import Role
from fakebrokers.core.session import HangUp
from fakebrokers.errors import PlanError
from fakebrokers.faults.build import fault
from fakebrokers.faults.effect import Action, Effect, EffectOnFake, Passage, Realism
from fakebrokers.faults.effects import Fin, HalfOpen, Rst, Silent
from fakebrokers.faults.plan import Fault
from fakebrokers.narconi import forging
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.websocket import PING, encode_frame

if TYPE_CHECKING:
    from fakebrokers.core.host import Host
    from fakebrokers.narconi.server import Narconi

_ENDS: Mapping[str, type[Effect]] = {"fin": Fin, "rst": Rst, "half-open": HalfOpen}


class HttpAnswer(Effect, frozen=True, tag="http-answer"):
    """Another answer than the server's, as a gateway might give it.

    For a request, the server never sees it; for an answer, it takes the answer's place.

    Attributes:
        status: Its number.
        body: Its text.
        content_type: Of the text; "" for no such header.
        headers: Further ones, such as ``Location``.
        close: Whether the connection ends after it.
    """

    status: int
    body: str = ""
    content_type: str = "text/html"
    headers: Mapping[str, str] = {}
    close: bool = False

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if not isinstance(frame, f.HttpRequest | f.HttpResponse):
            return passage.pass_on(frame) if frame is not None else None
        body = self.body.encode()
        described = (("Content-Type", self.content_type),) if self.content_type and body else ()
        headers = (
            *self.headers.items(),
            *described,
            ("Connection", "close" if self.close else "keep-alive"),
            ("Content-Length", str(len(body))),
        )
        refuses = isinstance(frame, f.HttpPublish | f.HttpConfirm | f.HttpReject)
        kind = f.HttpReject if refuses else f.HttpError
        answer = kind(self.status, headers, body, frame.number)
        if passage.direction == "in":
            passage.answer(answer)
        else:
            passage.pass_on(answer)
        if self.close:
            passage.hang_up(HangUp.FIN)
        return None


class WithoutHeader(Effect, frozen=True, tag="without-header"):
    """A header of the answer is missing.

    Attributes:
        header: Its name.
    """

    direction = "out"
    realism = Realism.ILLEGAL
    header: str

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, f.HttpResponse):
            kept = tuple(pair for pair in frame.headers if pair[0].lower() != self.header.lower())
            frame = msgspec.structs.replace(frame, headers=kept)
        if frame is not None:
            passage.pass_on(frame)


class WithLength(Effect, frozen=True, tag="with-length"):
    """The answer has a ``Content-Length`` instead of chunks (as from a gateway, or from node 20)."""

    direction = "out"
    realism = Realism.LEGAL

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, f.HttpResponse):
            length = ("Content-Length", str(len(frame.body)))
            headers = [length if name == "Transfer-Encoding" else (name, v) for name, v in frame.headers]
            frame = msgspec.structs.replace(frame, headers=tuple(headers))
        if frame is not None:
            passage.pass_on(frame)


class CutBody(Effect, frozen=True, tag="cut-body"):
    """The answer's head, and only the front of its body; usually an end of the connection follows.

    Chunked answers send the front as a whole chunk, without the last one; others promise all of it.

    Attributes:
        keep: Bytes of the body that leave.
    """

    needs_bytes = True
    direction = "out"
    keep: int = 0

    def apply(self, passage: Passage) -> None:
        head, body, chunked = _head_and_body(passage)
        front = body[: self.keep]
        if chunked and front:
            front = b"%x\r\n%b\r\n" % (len(front), front)
        passage.pass_raw(head + front)


class SlowBody(Effect, frozen=True, tag="slow-body"):
    """The answer's head at once, its body byte by byte.

    Attributes:
        bytes_per_s: How fast.
    """

    needs_bytes = True
    direction = "out"
    bytes_per_s: float = 1.0

    def apply(self, passage: Passage) -> None:
        head, body, chunked = _head_and_body(passage)
        pieces = [bytes((byte,)) for byte in body]
        if chunked:
            pieces = [b"1\r\n%b\r\n" % piece for piece in pieces]
            pieces.append(b"0\r\n\r\n")
        passage.pass_pieces([head, *pieces], [1 / self.bytes_per_s] * len(pieces) + [0.0])

    def check(self, path: str) -> None:
        if not self.bytes_per_s > 0:
            raise PlanError(f"{path}.bytes_per_s", f"expected a number above 0, got {self.bytes_per_s}")


def _head_and_body(passage: Passage) -> tuple[bytes, bytes, bool]:
    assert passage.frame is not None
    data: bytes = passage.encode(passage.frame)
    if not isinstance(passage.frame, f.HttpResponse):
        return data, b"", False
    end = data.index(b"\r\n\r\n") + 4
    return data[:end], passage.frame.body, ("Transfer-Encoding", "chunked") in passage.frame.headers


class SplitDelivery(Effect, frozen=True, tag="split-delivery"):
    """A delivery's metadata now, its payload message later or never.

    Attributes:
        gap_s: Seconds between them; None for no payload (an end of the connection may follow).
        pings: Pings in the gap, evenly.
    """

    needs_bytes = True
    direction = "out"
    realism = Realism.LEGAL
    gap_s: float | None = None
    pings: int = 0

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        assert frame is not None
        data: bytes = passage.encode(frame)
        if not isinstance(frame, f.WsDeliver) or frame.encoding is not None:
            return passage.pass_on(frame)
        payload = encode_frame(1 if frame.text else 2, frame.payload)
        metadata = data[: -len(payload)]
        if self.gap_s is None:
            return passage.pass_raw(metadata)
        pings = [encode_frame(PING, b"%d" % number) for number in range(self.pings)]
        gaps = [self.gap_s / (self.pings + 1)] * (self.pings + 1)
        return passage.pass_pieces([metadata, *pings, payload], [*gaps, 0.0])


class FailInstead(Effect, frozen=True, tag="fail-instead"):
    """The server's error object in place of a confirm or a delivery.

    Attributes:
        error: Its text; "" for none.
        code: Its number.
        close: Whether close frame 1000 and the end of TCP follow, as from the real server.
    """

    direction = "out"
    realism = Realism.LEGAL
    error: str = "AMQP channel was closed."
    code: int = 500
    close: bool = True

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, f.WsConfirm):
            passage.pass_on(f.WsReject(self.error or None, self.code, frame.number))
        else:
            passage.pass_on(f.WsError(self.error or None, self.code))
        if self.close:
            passage.pass_on(f.WsClose())
            passage.hang_up(HangUp.FIN)


class LoseBackend(Action, frozen=True):
    """RabbitMQ goes away; see `BreakBackend`."""

    down_s: float

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: Narconi = host.server
        server.break_backend(self.down_s, fault)
        host.engine.until_over(fault, server.restore_backend)


class BreakBackend(EffectOnFake, frozen=True, tag="break-backend"):
    """RabbitMQ goes away: WebSocket connections end with an error.

    Attributes:
        down_s: Seconds in which requests and upgrades get 500; 0 for none.
        pass_frame: Whether the frame that matched still goes on.
    """

    needs_broker = True
    down_s: float = 0.0
    pass_frame: bool = True

    def apply(self, passage: Passage) -> None:
        if passage.frame is not None and self.pass_frame:
            passage.pass_on(passage.frame)
        passage.host(self.action())

    def action(self) -> Action:
        return LoseBackend(self.down_s)


EFFECTS = (
    *(HttpAnswer, WithoutHeader, WithLength, CutBody, SlowBody, SplitDelivery, FailInstead, BreakBackend),
    *forging.EFFECTS,
)

End = Literal["fin", "rst", "half-open"]


def lose_consume_response(end: End = "fin", keep: int | None = None, **match: Any) -> Fault:
    """The message is taken and the connection ends before its answer, or after `keep` bytes of body."""
    if keep is None:
        return fault(_end(end, pass_frame=False), kind="HttpDeliver", direction="out", **match)
    return fault(CutBody(keep=keep), _end(end), kind="HttpDeliver", direction="out", **match)


def publish_201_lost(end: End = "fin", **match: Any) -> Fault:
    """The message is stored and the connection ends before the 201."""
    return fault(_end(end, pass_frame=False), kind="HttpConfirm", direction="out", **match)


def error_instead_of_confirm(
    error: str = "AMQP channel was closed.", code: int = 500, *, close: bool = True, **match: Any
) -> Fault:
    """The message is stored, but its confirm is an error object."""
    effect = FailInstead(error=error, code=code, close=close)
    return fault(effect, kind="WsConfirm", direction="out", **match)


def cut_between_frames(end: End = "fin", **match: Any) -> Fault:
    """A delivery's metadata, then the end of the connection."""
    return fault(SplitDelivery(), _end(end), kind="WsDeliver", direction="out", **match)


def dead_consumer(**match: Any) -> Fault:
    """101, then nothing but pongs."""
    effect = Silent(spare=(Role.HANDSHAKE, Role.HEARTBEAT, Role.CLOSE))
    return fault(effect, kind="WsUpgrade", direction="in", **match)


def _end(end: End, *, pass_frame: bool = True) -> Effect:
    return _ENDS[end](pass_frame=pass_frame)
