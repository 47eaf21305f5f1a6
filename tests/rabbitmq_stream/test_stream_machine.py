"""A stream against a naive model of it: a list of records, searched from the front."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fakebrokers.rabbitmq_stream.arguments import StreamArguments
from fakebrokers.rabbitmq_stream.binary import pack_ids, unpack_ids
from fakebrokers.rabbitmq_stream.chunking import PerPublish
from fakebrokers.rabbitmq_stream.cluster import Membership
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.stream import Publisher
from fakebrokers.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.writer import Batch
from tests.rabbitmq_stream.writing import TimedStream

REFERENCES = st.sampled_from(["", "a", "b"])
IDS = st.lists(st.integers(0, 12), min_size=1, max_size=6)


class Piece(NamedTuple):
    """One chunk of the model; no bodies: tracking data."""

    first: int
    bodies: list[bytes] | None
    at_ms: int

    @property
    def after(self) -> int:
        return self.first + (1 if self.bodies is None else len(self.bodies))


class StreamMachine(RuleBasedStateMachine):
    """Publishes, stores offsets, reads and truncates; time only goes forward."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stream = TimedStream(
            "/", "s", StreamArguments(), Membership(None), lambda now: now, PerPublish()
        )
        self.pieces: list[Piece] = []
        self.next_offset = 0
        self.highest: dict[str, int] = {}
        self.offsets: dict[str, int] = {}
        self.confirms: list[int] = []
        self.reader = Subscription(self.stream, 1, (OffsetType.FIRST, 0), 10**6, 0, {}, lambda *_: None)
        self.reader.attach(None, 0.0)
        self.read: list[int] = []
        self.body = 0

    def confirmed(self, publisher: Publisher, publishing_ids: bytes, now: float) -> None:
        """The machine is the owner of its publishers."""
        self.confirms += unpack_ids(publishing_ids)

    def write(self, ids: list[int], reference: str) -> list[bytes]:
        self.confirms.clear()
        bodies = [b"%d" % (self.body + index) for index in range(len(ids))]
        self.body += len(ids)
        batch = Batch(pack_ids(ids), simple_entries(bodies), len(ids), len(ids))
        Publisher(self, self.stream, 1, reference).publish(batch, self.now)
        return bodies

    def add(self, bodies: list[bytes] | None) -> None:
        piece = Piece(self.next_offset, bodies, int(self.now * 1000))
        self.pieces.append(piece)
        self.next_offset = piece.after

    @rule(ids=IDS, reference=REFERENCES)
    def publish(self, ids: list[int], reference: str) -> None:
        self.now += 1
        bodies = self.write(ids, reference)
        kept = []
        for publishing_id, body in zip(ids, bodies, strict=True):
            if not reference or publishing_id > self.highest.get(reference, -1):
                kept.append(body)
                if reference:
                    self.highest[reference] = publishing_id
        if kept:
            self.add(kept)
        assert sorted(self.confirms) == sorted(ids)

    @rule(reference=REFERENCES.filter(bool), offset=st.integers(0, 20))
    def store(self, reference: str, offset: int) -> None:
        self.now += 1
        self.stream.writer.store_offset(reference, offset, self.now)
        self.stream.timers.run(self.now)
        self.offsets[reference] = offset
        self.add(None)

    @rule(offset=st.integers(0, 40))
    def truncate(self, offset: int) -> None:
        self.stream.truncate(offset)
        self.pieces = [piece for piece in self.pieces if piece.after > offset]

    @rule()
    def read_on(self) -> None:
        while (chunk := self.reader.next_chunk()) is not None:
            self.read.append(chunk.first_offset)
            (piece,) = [piece for piece in self.pieces if piece.first == chunk.first_offset]
            assert piece.bodies is not None
            assert chunk.data == simple_entries(piece.bodies)
            assert chunk.crc_ok
        assert self.read == sorted(set(self.read))
        wanted = [piece.first for piece in self.pieces if piece.bodies is not None]
        assert set(wanted) <= set(self.read)

    @invariant()
    def offsets_lead_to_their_chunks(self) -> None:
        for offset in range(self.next_offset + 2):
            holders = [piece.first for piece in self.pieces if piece.first <= offset < piece.after]
            if holders:
                expected = holders[0]
            elif self.pieces and offset < self.pieces[0].first:
                expected = self.pieces[0].first
            else:
                expected = self.next_offset
            assert self.stream.resolve(OffsetType.OFFSET, offset, self.now) == expected

    @invariant()
    def times_lead_to_their_chunks(self) -> None:
        for at_ms in range(0, int(self.now * 1000) + 1001, 500):
            young = [piece.first for piece in self.pieces if piece.at_ms >= at_ms]
            expected = young[0] if young else self.next_offset
            assert self.stream.resolve(OffsetType.TIMESTAMP, at_ms, self.now) == expected

    @invariant()
    def ends_are_where_they_should_be(self) -> None:
        users = [piece.first for piece in self.pieces if piece.bodies is not None]
        first = self.pieces[0].first if self.pieces else self.next_offset
        assert self.stream.resolve(OffsetType.FIRST, 0, self.now) == first
        assert self.stream.resolve(OffsetType.LAST, 0, self.now) == (users[-1] if users else self.next_offset)
        assert self.stream.resolve(OffsetType.NEXT, 0, self.now) == self.next_offset

    @invariant()
    def everything_is_remembered(self) -> None:
        assert self.stream.tracking.sequences == self.highest
        assert self.stream.tracking.offsets == self.offsets
        stored = [body for piece in self.pieces for body in piece.bodies or ()]
        assert [message.body for message in self.stream.messages()] == stored
        assert len(self.stream) == len(stored)


TestStreamMachine = StreamMachine.TestCase
TestStreamMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
