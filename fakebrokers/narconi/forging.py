"""Faults in what messages say, where their frames stay right: more than is known, or one wrong byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fakebrokers.core.frames import Frame
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism
from fakebrokers.narconi import frames as f

#: Header lines that say where a response ends.
_FRAMING = (b"content-length:", b"transfer-encoding:")


class WithHeaders(Effect, frozen=True, tag="with-headers"):
    """The answer has more headers.

    Attributes:
        headers: Their names and values.
    """

    direction = "out"
    realism = Realism.LEGAL
    headers: Mapping[str, str]

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, f.HttpResponse):
            frame = msgspec.structs.replace(frame, headers=(*self.headers.items(), *frame.headers))
        if frame is not None:
            passage.pass_on(frame)


class CorruptContent(Effect, frozen=True, tag="corrupt-content"):
    """One byte, drawn from the seed, is another one; all lengths and the heads of frames stay right.

    Attributes:
        xor: Mask for the byte.
    """

    needs_bytes = True
    direction = "out"
    realism = Realism.ILLEGAL
    xor: int = 0xFF

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        data = bytearray(passage.encode(passage.frame))
        places = list(_content(passage.frame, bytes(data)))
        if places:
            data[passage.random.choice(places)] ^= self.xor
        passage.pass_raw(bytes(data))

    def check(self, path: str) -> None:
        if not 1 <= self.xor <= 0xFF:
            raise PlanError(f"{path}.xor", f"expected 1..255, got {self.xor}")


def _content(frame: Frame, data: bytes) -> Iterator[int]:
    """Where the bytes stand that frame nothing."""
    if not isinstance(frame, f.HttpResponse):
        yield from _payloads(data)
        return
    head, _, body = data.partition(b"\r\n\r\n")
    at = 0
    for line in head.split(b"\r\n"):
        if not line.lower().startswith(_FRAMING):
            yield from range(at, at + len(line))
        at += len(line) + 2
    if frame.body:
        start = len(head) + 4 + body.index(frame.body)
        yield from range(start, start + len(frame.body))


def _payloads(data: bytes) -> Iterator[int]:
    """Where the payloads of unmasked WebSocket frames stand."""
    at = 0
    while at < len(data):
        size, head = data[at + 1], 2
        if size >= 126:
            head = 4 if size == 126 else 10
            size = int.from_bytes(data[at + 2 : at + head], "big")
        yield from range(at + head, at + head + size)
        at += head + size


EFFECTS = (WithHeaders, CorruptContent)
