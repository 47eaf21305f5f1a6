"""Where chunks end: what a step brings goes together, unless frames are counted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunking import Doubling, PerStep
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    DeclarePublisher,
    DeletePublisher,
    DeletePublisherResponse,
    Deliver,
    Open,
    PeerProperties,
    Publish,
    PublishConfirm,
    PublishError,
    QueryOffset,
    QueryOffsetResponse,
    QueryPublisherSequence,
    QueryPublisherSequenceResponse,
    SaslAuthenticate,
    SaslHandshake,
    StoreOffset,
    Subscribe,
    SubscribeResponse,
    Tune,
)
from fakebrokers.rabbitmq_stream.publishing import publish

OPENING = (
    PeerProperties(1, {}),
    SaslHandshake(2),
    SaslAuthenticate(3, "PLAIN", b"\0guest\0guest"),
    Tune(1 << 20, 0),
    Open(4, "/"),
    Create(5, "s", {}),
    DeclarePublisher(6, 1, "", "s"),
    DeclarePublisher(7, 2, "ref", "s"),
)


class Core:
    """A fake without its sockets, and one client with two publishers on the stream ``s``.

    Implements `send_path.Transport`.
    """

    def __init__(self, **options: Any) -> None:
        self.fake = RabbitMQStream(**options)
        self.fake._bound = lambda: None  # type: ignore[method-assign]
        self.now = 0.0
        self.came: list[Frame] = []
        self._codec = StreamCodec("client")
        session, codec = self.fake._new_session(self.fake.nodes[0], None)
        self.connection = self.fake.engine.accept(self.fake._wires[0], session, codec, self, 0.0)
        for frame in OPENING:
            self.send(frame)
        assert session.state == "open"
        self.came.clear()

    def send(self, *frames: Frame) -> list[Frame]:
        """Send frames in one segment; returns what came back in the step that this was."""
        self.now += 1.0
        self.came.clear()
        engine = self.fake.engine
        engine.receive(self.connection, b"".join(map(self._codec.encode, frames)), self.now)
        engine.flush(self.now)
        while engine.next_deadline() <= self.now:
            engine.handle_timers(self.now)
            engine.flush(self.now)
        return list(self.came)

    @property
    def chunks(self) -> list[int]:
        """How many entries each chunk has."""
        return [chunk.entries for chunk in self.fake.broker.stream("s").log]

    def write(self, units: list[bytes]) -> None:
        for unit in units:
            self.came += [frame for frame, _ in self._codec.feed(unit)]

    def hang_up(self, how: HangUp) -> None: ...

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def messages(first: int, count: int = 1, publisher: int = 1) -> Publish:
    return publish(publisher, [(first + n, b"x") for n in range(count)])


def confirm(*ids: int, publisher: int = 1) -> PublishConfirm:
    return PublishConfirm(publisher, pack_ids(ids))


def test_one_chunk_and_one_confirm_for_what_a_step_brings() -> None:
    core = Core()
    assert core.send(messages(1), messages(2), messages(3, 4)) == [confirm(1, 2, 3, 4, 5, 6)]
    assert core.send(messages(7)) == [confirm(7)]
    assert core.chunks == [6, 1]


def test_the_journal_keeps_every_frame_with_its_size() -> None:
    core = Core()
    since = core.fake.journal.last_seq
    frames = [messages(1), messages(2), messages(3, 4)]
    core.send(*frames)
    records = core.fake.journal.select(kind="Publish", tap=Tap.IN, since=since)
    sizes = [len(StreamCodec("client").encode(frame)) for frame in frames]
    assert [(record.keys, record.size) for record in records] == [
        ((1,), sizes[0]),
        ((2,), sizes[1]),
        ((3, 4, 5, 6), sizes[2]),
    ]
    (record,) = core.fake.journal.select(kind="PublishConfirm", since=since)
    assert record.keys == (1, 2, 3, 4, 5, 6)


def test_publishers_in_one_chunk_get_confirms_of_their_own() -> None:
    core = Core()
    sent = core.send(messages(1), messages(2), messages(5, publisher=2), messages(3))
    assert sent == [confirm(1, 2), confirm(5, publisher=2), confirm(3)]
    assert core.chunks == [4]


@pytest.mark.parametrize(
    "count",
    [
        lambda core: core.fake.faults.add(drop(kind="Route")),
        lambda core: setattr(core.fake, "_always_exact", True),
    ],
    ids=["while there is a fault", "on request"],
)
def test_each_publish_has_its_own_where_frames_are_counted(count: Callable[[Core], object]) -> None:
    core = Core()
    count(core)
    assert core.send(messages(1), messages(2), messages(3, 4)) == [
        confirm(1),
        confirm(2),
        confirm(3, 4, 5, 6),
    ]
    assert core.chunks == [1, 1, 4]


def test_faults_that_come_and_go() -> None:
    core = Core()
    name = core.fake.faults.add(drop(kind="Route"))
    core.send(messages(1), messages(2))
    core.fake.faults.remove(name)
    core.send(messages(3), messages(4))
    assert core.chunks == [1, 1, 2]


@pytest.mark.parametrize("options", [{"memory": True}, {"exact": True}, {"chunking": "publish"}])
def test_exact_from_the_start(options: dict[str, Any]) -> None:
    core = Core(**options)
    assert core.send(messages(1), messages(2)) == [confirm(1), confirm(2)]


@pytest.mark.parametrize(
    ("rule", "chunks"),
    [("publish", [32, 8, 1]), ("step", [32, 9]), ("whole", [40, 1]), ("message", [1] * 41)],
)
def test_a_rule_by_hand_holds_whatever_is_counted(rule: str, chunks: list[int]) -> None:
    core = Core(chunking=rule, exact=True)
    core.send(messages(1, 40), messages(41))
    assert core.chunks == chunks


def test_a_rule_by_hand_stands_in_the_journal() -> None:
    with RabbitMQStream(chunking="message") as broker:
        assert [record.note for record in broker.journal.select(kind="chunking")] == ["message"]
    with RabbitMQStream() as broker:
        assert broker.journal.select(kind="chunking") == []


def test_a_rule_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"publish, step, whole, message; got 'mesage' \(did you mean"):
        RabbitMQStream(chunking="mesage")


def test_other_commands_come_behind_the_publishes_in_front_of_them() -> None:
    core = Core()
    assert core.send(messages(1), DeletePublisher(9, 1)) == [confirm(1), DeletePublisherResponse(9, Code.OK)]
    assert core.send(
        messages(7, publisher=2), QueryPublisherSequence(10, "ref", "s"), messages(8, publisher=2)
    ) == [
        confirm(7, publisher=2),
        QueryPublisherSequenceResponse(10, Code.OK, 7),
        confirm(8, publisher=2),
    ]
    assert core.chunks == [1, 1, 1]


def test_a_reader_from_the_end_gets_nothing_that_came_before_it() -> None:
    core = Core()
    sent = core.send(messages(1), Subscribe(9, 1, "s", OffsetType.NEXT, None, 10, {}), messages(2))
    assert sent[:3] == [confirm(1), SubscribeResponse(9, Code.OK), confirm(2)]
    (deliver,) = sent[3:]
    assert isinstance(deliver, Deliver)
    assert deliver.chunk.first_offset == 1


def test_a_stored_offset_stays_behind_the_publishes_in_front_of_it() -> None:
    core = Core()
    core.send(messages(1), StoreOffset("app", "s", 0), messages(2), messages(3), QueryOffset(9, "app", "s"))
    assert QueryOffsetResponse(9, Code.OK, 0) in core.came
    log = core.fake.broker.stream("s").log
    assert [(chunk.entries, chunk.trailer_length > 0) for chunk in log] == [(1, False), (2, True)]


def test_duplicates_within_a_step() -> None:
    core = Core()
    core.send(messages(4, publisher=2), messages(4, publisher=2), messages(5, publisher=2))
    ids = [key for frame in core.came if isinstance(frame, PublishConfirm) for key in _ids(frame)]
    assert sorted(ids) == [4, 4, 5]
    assert core.chunks == [2]


def test_a_refusal_in_the_midst_of_a_step() -> None:
    core = Core()
    sent = core.send(messages(1), messages(1, publisher=9), messages(2))
    assert sorted(map(type, sent), key=lambda kind: kind.__name__) == [PublishConfirm, PublishError]
    assert confirm(1, 2) in sent


def test_what_came_before_the_client_left_is_stored() -> None:
    core = Core()
    engine = core.fake.engine
    codec = StreamCodec("client")
    engine.receive(core.connection, codec.encode(messages(1)) + codec.encode(messages(2)), 99.0)
    engine.lost(core.connection, 99.0)
    engine.flush(99.0)
    assert core.chunks == [2]
    assert core.fake.journal.select(kind="PublishConfirm") == []


def test_messages_of_the_test_do_not_join_those_of_a_step() -> None:
    core = Core()
    core.fake.publish("s", [b"a"])
    core.fake.publish("s", [b"b"])
    assert core.chunks == [1, 1]


def test_over_a_socket() -> None:
    """All that one segment brings, from the socket to the confirm."""
    with RabbitMQStream() as broker, socket.create_connection((broker.host, broker.port)) as client:
        codec = StreamCodec("client")
        for frame in OPENING:
            client.sendall(codec.encode(frame))
            broker.wait_for(kind="Tune" if isinstance(frame, Tune) else f"{type(frame).__name__}Response")
        client.sendall(b"".join(codec.encode(messages(number)) for number in range(1, 11)))
        (record,) = broker.wait_for(kind="PublishConfirm")
        assert record.keys == tuple(range(1, 11))
        assert len(broker.journal.select(kind="Publish")) == 10


# the rule itself


def cuts(rule: PerStep, *counts: int) -> list[int]:
    """The sizes of the chunks that Publishes of these counts become in one step."""
    sizes: list[int] = []
    left = 0
    for count in counts:
        *whole, last = rule.cut(count)
        for size in whole:
            sizes.append(left + size)
            left = 0
        left += last
        if not rule.leave_open():
            sizes.append(left)
            left = 0
    if left:
        sizes.append(left)
        rule.step_ended()
    return sizes


@pytest.mark.parametrize("count", [1, 31, 32, 33, 95, 96, 97, 2000, 100_000])
def test_a_publish_alone_is_cut_as_by_default(count: int) -> None:
    assert cuts(PerStep(), count) == [size for size in Doubling().cut(count) if size]


def test_what_a_step_brings_goes_together_unless_a_publish_is_long() -> None:
    assert cuts(PerStep(), *[1] * 100) == [100]
    assert cuts(PerStep(), *[10] * 30) == [300]
    assert cuts(PerStep(), 100, 100, 2000) == [32, 64, 128, 256, 512, 1024, 184]


def test_no_chunk_grows_beyond_what_a_writer_takes_at_once() -> None:
    assert set(cuts(PerStep(), *[1] * 100_000)[:-1]) == {8192}
    assert max(cuts(PerStep(), *[500] * 200)) < 8192 + 500


def test_a_long_publish_is_cut_by_how_much_came_before() -> None:
    rule = PerStep()
    assert cuts(rule, *[1] * 100, 300) == [128, 256, 16]
    assert cuts(rule, 300) == [256, 44]  # 512 was next, so half of that
    assert cuts(rule, 1) == [1]
    assert cuts(rule, *[1] * 40) == [40]
    assert cuts(rule, 200) == [64, 128, 8]


def _ids(frame: PublishConfirm) -> list[int]:
    packed = frame.publishing_ids
    return [int.from_bytes(packed[at : at + 8], "big") for at in range(0, len(packed), 8)]
