"""Bytes that a capture makes of a journal's fields are those that went over the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakebrokers.core.frames import kind_of
from fakebrokers.core.relay import new_relay
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.capture import _Capture
from fakebrokers.journal.pcapng import Writer
from fakebrokers.protocol import find_protocol
from tests.moleculer.golden import talks
from tests.rabbitmq_stream.golden import cases


def conversations(protocol: str, wire: str) -> Iterator[tuple[bytes, bytes]]:
    """What clients and real servers have said to each other, connection by connection."""
    if protocol == "moleculer":
        yield from ((talk.side("C>S"), talk.side("S>C")) for talk in talks(wire))
        return
    for case in cases("4.3.6"):
        said, answered = (
            b"".join(s.data for s in case.steps if s.direction == way) for way in ("c2s", "s2c")
        )
        yield said, answered


class Nowhere:
    """A file that keeps nothing."""

    def write(self, data: bytes) -> int:
        return len(data)


@pytest.mark.parametrize(
    ("protocol", "wire", "kinds"),
    [
        ("rabbitmq-stream", "stream", 50),
        ("moleculer", "nats", 7),
        ("moleculer", "redis", 2),
        ("moleculer", "mqtt", 5),
    ],
)
def test_frames_become_the_bytes_that_they_were(protocol: str, wire: str, kinds: int) -> None:
    seen = set()
    for sides in conversations(protocol, wire):
        relay = new_relay(find_protocol(protocol).wire(wire))
        written = RunJournal(None, "r", run="r", frames=True, body_limit=None, protocol=protocol)
        journal = Journal(find_protocol(protocol).wire(wire).frames)
        journal.sink = written
        wanted = []
        codecs = relay.from_client, relay.from_server
        for tap, codec, data in zip((Tap.IN, Tap.OUT), codecs, sides, strict=True):
            for frame, size in codec.feed(data):
                if not frame.spec.secret and not frame.spec.named:
                    journal.add(1.0, "c1", tap, frame, size)
                    wanted.append((kind_of(frame), codec.encode(frame)))
        journal.flush()
        log = written.log()
        capture = _Capture(Writer(Nowhere(), "test"), log)  # type: ignore[arg-type]
        rows = [row for row in log.frames if not row.part and not row.envelope]
        assert [(row.kind, capture._bytes_of(row)) for row in rows] == wanted
        seen |= {kind for kind, _ in wanted}
    assert len(seen) >= kinds
