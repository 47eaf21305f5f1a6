"""Bytes to frames and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from fakebrokers.blazingmq import ber, control, json_control
from fakebrokers.blazingmq.codec import HEADER_SIZE, BlazingCodec
from fakebrokers.blazingmq.codes import Category, Encoding
from fakebrokers.blazingmq.events import unpadded
from fakebrokers.blazingmq.frames import StatusResponse
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError

EVENT_MAX = 128 << 20


class Frames:
    """Of one connection."""

    def __init__(self) -> None:
        self.codec: BlazingCodec = FutureCodec(max_event=EVENT_MAX)

    def encode(self, frame: Frame) -> bytes:
        """One event. Raises `WireError` if it does not fit."""
        return self.codec.encode(frame)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes."""
        for frame, _ in self.codec.feed(data):
            yield frame


class FutureCodec(BlazingCodec):
    """Reads a status whose category nobody knows, too: newer brokers may have more of them."""

    def decode(self, event: bytes) -> Frame:
        frame = super().decode(event)
        if isinstance(frame, Malformed) and frame.code == "control":
            with suppress(WireError, ValueError):  # then something else is wrong with it
                read = _json if Encoding(event[6] >> 5) is Encoding.JSON else _ber
                return read(unpadded(event[HEADER_SIZE:])) or frame
        return frame


def _ber(body: bytes) -> StatusResponse | None:
    """The number takes the place of a known one while the rest is read."""
    message = ber.parse(body)
    *head, choice = message.parts
    (chosen,) = choice.parts
    category, *rest = chosen.parts
    known = category._replace(content=ber.pack_integer(Category.E_UNKNOWN))
    chosen = chosen._replace(content=(known, *rest))
    message = message._replace(content=(*head, choice._replace(content=(chosen,))))
    frame = control.read(ber.write(message), Encoding.BER)
    if not isinstance(frame, StatusResponse) or not isinstance(category.content, bytes):
        return None
    return replace(frame, category=int.from_bytes(category.content, signed=True))


def _json(body: bytes) -> StatusResponse | None:
    """A word has no number: it goes into the text."""
    table = json_control.parse(body)
    status = table.get("status")
    if not isinstance(status, dict):
        return None
    text = f"{status.get('category')}: {status.get('message', '')}"
    known = {**status, "category": Category.E_UNKNOWN.name, "message": text}
    frame = control.read(json_control.write({**table, "status": known}), Encoding.JSON)
    return frame if isinstance(frame, StatusResponse) else None
