"""What the codec reads and writes in these tests is read by the judge's decoder too, and it says the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.decoders.nats import NatsDecoder
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.nats.frames import Err
from tests.conformance.decoders.alike import is_stricter

Found = tuple[Frame, int]


class Beside:
    """A decoder beside each codec, for what that reads; a fresh one for each frame that it writes."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self._given_up: set[int] = set()
        self._readers: dict[int, tuple[NatsCodec, NatsDecoder, deque[Found]]] = {}

    def _reader(self, codec: NatsCodec) -> tuple[NatsDecoder, deque[Found]]:
        key = id(codec)
        if key not in self._readers:
            self._readers[key] = codec, NatsDecoder(codec._side, codec.kinds), deque()
        return self._readers[key][1:]

    def fed(self, codec: NatsCodec, unit: bytes) -> None:
        decoder, waiting = self._reader(codec)
        waiting.extend(decoder.feed(unit))

    def read(self, codec: NatsCodec, found: Found) -> None:
        """Behind what a server cannot read, and what the judge cannot, nothing is compared."""
        decoder, waiting = self._reader(codec)
        ours = waiting.popleft() if waiting else None
        is_over = isinstance(found[0], Malformed) or (ours is not None and is_stricter(ours[0]))
        if is_over or (ours is None and _waits_for_cr(decoder, found[1])):
            self._given_up.add(id(codec))
        elif id(codec) not in self._given_up and ours != found:
            self.differences.append(f"read {found!r:.300}, the judge {ours!r:.300}")

    def written(self, codec: NatsCodec, frame: Frame, data: bytes) -> None:
        way = frame.way or ("out" if isinstance(frame, Err) else "")
        for side in {"in": ("server",), "out": ("client",)}.get(way, ("client", "server")):
            ours = list(NatsDecoder(side, codec.kinds).feed(data))  # type: ignore[arg-type]
            if ours != [(frame, len(data))]:
                self.differences.append(f"written {frame!r:.300}, the judge read {ours!r:.300}")


def _waits_for_cr(decoder: NatsDecoder, size: int) -> bool:
    """Whether the line of so many bytes is none to the judge, for it ends with LF alone."""
    line = decoder._buffer[:size]
    return line.endswith(b"\n") and not line.endswith(b"\r\n")


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    """Fails the test in which the two say different things."""
    found = Beside()
    feed, encode = NatsCodec.feed, NatsCodec.encode

    def feed_both(codec: NatsCodec, unit: bytes) -> Iterator[Found]:
        found.fed(codec, unit)
        for each in feed(codec, unit):
            found.read(codec, each)
            yield each

    def encode_and_read(codec: NatsCodec, frame: Any) -> bytes:
        data = encode(codec, frame)
        if not isinstance(frame, Malformed):
            found.written(codec, frame, data)
        return data

    monkeypatch.setattr(NatsCodec, "feed", feed_both)
    monkeypatch.setattr(NatsCodec, "encode", encode_and_read)
    yield found
    assert not found.differences, "\n".join(found.differences[:10])
