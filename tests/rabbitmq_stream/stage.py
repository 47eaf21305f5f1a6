"""Replaying recordings: a broker of the recorded version, and the comparison with what was recorded."""

from __future__ import annotations

import re

from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.cluster import Node
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.entries import messages
from fakebrokers.rabbitmq_stream.frames import (
    Deliver,
    PublishConfirm,
)
from fakebrokers.rabbitmq_stream.profile import V3_10, V4_0, V4_3
from tests.rabbitmq_stream.bench import EOF, Bench, Client, Sent
from tests.rabbitmq_stream.golden import Case, cases

PROFILES = {"3.10.8": V3_10, "4.0.5": V4_0, "4.3.6": V4_3}
NODES = {
    "3.10.8": Node("rmqs310@vm", "localhost", 25552),
    "4.0.5": Node("rmqs405@vm", "localhost", 26552),
    "4.3.6": Node("rmqs43@vm", "localhost", 27552),
}

#: seconds that the recorder's clock and the real server's timers may be off
TOLERANCE = 0.25


class Stage:
    """One broker of one version, and what was recorded from it."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.cases = {case.id: case for case in cases(server)}
        self.bench = Bench(PROFILES[server].with_delays(), [NODES[server]])
        self.played: set[str] = set()

    @property
    def run(self) -> str:
        """The recorder's prefix of stream names."""
        found = re.search(rb"v17\d{8}", self.cases["create_ok"].client_bytes)
        assert found
        return found[0].decode()

    def play(
        self,
        name: str,
        client: Client,
        *,
        start: float | None = None,
        pad: int = 0,
        segment: int | None = None,
    ) -> None:
        """Replay a case on a connection, if this server was asked for it.

        Args:
            name: The case.
            client: Its connection.
            start: Time in the recording at which the replay begins; None: when its first step was.
            pad: Bytes that the file cut off the first request.
            segment: Bytes to send at once; None: as recorded.
        """
        case = self.cases.get(name)
        if case is None:
            return
        self.played.add(name)
        begin = case.steps[0].at if start is None else start
        zero = self.bench.now - begin
        client.sent.clear()
        for index, step in enumerate(case.steps):
            self.bench.advance_to(zero + step.at)
            if step.direction == "c2s":
                data = step.data + step.data[-1:] * (pad if index == 0 else 0)
                for at in range(0, len(data), segment or len(data)):
                    client.send_bytes(data[at : at + (segment or len(data))])
        self.bench.advance(0.001)
        compare(case, client.sent, zero)

    def skip(self, name: str) -> Case | None:
        """A case that the scene plays out itself; None: this server was not asked for it."""
        if name in self.cases:
            self.played.add(name)
        return self.cases.get(name)


def compare(case: Case, sent: list[Sent], zero: float) -> None:
    """Same bytes, same order, same time."""
    expected = [Sent(step.at, step.data) for step in case.steps if step.direction != "c2s"]
    got = [Sent(at - zero, data) for at, data in sent]
    expected, got = normal(expected), normal(got)
    assert [data.hex() for _, data in got] == [data.hex() for _, data in expected], case.desc
    for ours, theirs in zip(got, expected, strict=True):
        ended_late = theirs.data == EOF and len({s.at for s in case.steps if s.direction == "c2s"}) > 1
        early = TOLERANCE if not ended_late else 1.0
        assert theirs.at - early <= ours.at <= theirs.at + 0.001, (case.desc, ours, theirs)


def normal(sent: list[Sent]) -> list[Sent]:
    """Without what differs from run to run."""
    once = [one for index, one in enumerate(sent) if one.data != EOF or one not in sent[:index]]
    return joined([Sent(at, without_times(data)) for at, data in once])


def without_times(data: bytes) -> bytes:
    """Chunk time stamps set to 0."""
    if data[4:6] != b"\0\x08":
        return data
    start = 8 + 1 + (8 if data[7] == 2 else 0) + 8
    return data[:start] + bytes(8) + data[start + 8 :]


def joined(sent: list[Sent]) -> list[Sent]:
    """Neighbouring confirms of one publisher as one, and neighbouring chunks as one."""
    result: list[Sent] = []
    for one in sent:
        if result and (both := merge(result[-1].data, one.data)) is not None:
            result[-1] = Sent(result[-1].at, both)
        else:
            result.append(one)
    return result


def merge(first: bytes, second: bytes) -> bytes | None:
    """Two frames as one; None: they do not belong together."""
    if not first or not second or first[4:6] != second[4:6] or first[5] not in (3, 8):
        return None
    one, two = (frame for data in (first, second) for frame, _ in StreamCodec("client").feed(data))
    if isinstance(one, PublishConfirm) and isinstance(two, PublishConfirm):
        same = one.publisher_id == two.publisher_id
        both: object = PublishConfirm(one.publisher_id, one.publishing_ids + two.publishing_ids)
        return StreamCodec().encode(both) if same else None  # type: ignore[arg-type]
    assert isinstance(one, Deliver)
    assert isinstance(two, Deliver)
    a, b = one.chunk, two.chunk
    similar = (a.chunk_type, a.trailer_length, a.bloom_size) == (b.chunk_type, b.trailer_length, b.bloom_size)
    if a.next_offset != b.first_offset or not similar:
        return None
    chunk = Chunk.build(
        a.data + b.data,
        entries=a.entries + b.entries,
        records=a.records + b.records,
        first_offset=a.first_offset,
        timestamp_ms=0,
        epoch=a.epoch,
        chunk_type=a.chunk_type,
        trailer_length=a.trailer_length,
        bloom_size=a.bloom_size,
    )
    return StreamCodec().encode(Deliver(one.subscription_id, chunk, one.committed_chunk_id))


def expect(stage: Stage, name: str, client: Client) -> None:
    """The fake has already said what was recorded; the recording has no request."""
    case = stage.skip(name)
    if case is not None:
        sent = [Sent(case.steps[0].at, data) for _, data in client.sent]
        compare(case, sent, 0.0)
    client.sent.clear()


def chunk_of(step: bytes) -> Chunk:
    """The chunk in a recorded Deliver."""
    (frame,) = [frame for frame, _ in StreamCodec("client").feed(step)]
    assert isinstance(frame, Deliver)
    return frame.chunk


def rebuild(stage: Stage, name: str, stream: str, below: int = 1000) -> None:
    """Write what a recorded subscription was sent, with the same chunks and times, up to an offset."""
    bench = stage.bench
    for step in stage.cases[name].steps:
        if step.data[4:6] == b"\0\x08":
            chunk = chunk_of(step.data)
            if chunk.first_offset < below:
                bench.wall_offset = chunk.timestamp_ms / 1000 - bench.now + 0.0001
                bench.broker.publish(stream, [body for _, body in messages(chunk.data)], bench.now)
