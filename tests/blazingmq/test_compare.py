"""The fake beside a real broker: the same seeded commands, and no difference that nobody knows of.

``FAKEBROKERS_BLAZINGMQ`` is the address of a broker that has the domains of `DOMAINS`;
``FAKEBROKERS_SEQUENCES`` sets how many sequences there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from conformance.compare.compare import Comparer, fake_for, target_of
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.dialect.author import DOMAINS, QUEUES
from fakebrokers.blazingmq.dialect.dialect import QUESTIONS
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    ConfigureQueueStream,
    ConfigureStream,
    HeartbeatRequest,
    OpenQueue,
    Push,
    PushMessage,
    Put,
    StatusResponse,
)
from fakebrokers.blazingmq.protocol import PROTOCOL, WIRE
from fakebrokers.blazingmq.schema import (
    HandleParameters,
    QueueStreamParameters,
    StreamParameters,
    SubQueueId,
)
from fakebrokers.core.dialect import MARK, Login
from fakebrokers.core.frames import Frame

SEQUENCES = int(os.environ.get("FAKEBROKERS_SEQUENCES", "50"))
REAL = os.environ.get("FAKEBROKERS_BLAZINGMQ", "")
DIALECT = WIRE.load_dialect()
TARGET = target_of(PROTOCOL, "blazingmq://127.0.0.1:1")


@pytest.mark.full
@pytest.mark.timeout(60 + 10 * SEQUENCES)
@pytest.mark.skipif(not REAL, reason="no address of a real broker in FAKEBROKERS_BLAZINGMQ")
def test_beside_the_real_broker() -> None:
    target = target_of(PROTOCOL, REAL)
    with fake_for(PROTOCOL, target, "real") as fake:
        comparer = Comparer(DIALECT, (fake.host, fake.port), target.address, target.login)
        result = comparer.run(range(1, SEQUENCES + 1))
    assert (result.sequences, result.unknown) == (SEQUENCES, [])
    assert result.commands > 10 * SEQUENCES


def test_a_seed_gives_the_same_sequence_again() -> None:
    first, again, other = (DIALECT.sequence(Random(seed), Login()) for seed in (1, 1, 2))
    assert first == again != other
    assert [command for command in first if MARK.encode() in (command.data or b"")]


def test_a_fake_is_like_itself() -> None:
    with fake_for(PROTOCOL, TARGET, "real") as one, fake_for(PROTOCOL, TARGET, "real") as two:
        comparer = Comparer(DIALECT, (one.host, one.port), (two.host, two.port), Login())
        result = comparer.run(range(1, 11))
        kinds = {record.kind for record in one.journal}
    assert result.differences == []
    assert {"PUSH", "ACK", "CONFIRM", "openQueueResponse", "status", "configureStreamResponse"} <= kinds


def test_what_is_done_reaches_every_mode() -> None:
    said = b"".join(
        command.data or b"" for seed in range(40) for command in DIALECT.sequence(Random(seed), Login())
    )
    assert all(queue.encode() in said for queue in QUEUES)
    assert {"priority", "fanout", "broadcast"} == {domain.mode for domain in DOMAINS.values()}


def frames(seed: int) -> Iterator[tuple[int, Frame]]:
    """What the clients of a sequence say, each with its number."""
    for command in DIALECT.sequence(Random(seed), Login()):
        for frame, _ in BlazingCodec().feed(command.data or b""):
            yield command.client, frame


def test_no_number_is_for_two_apps_of_a_handle() -> None:
    """Brokers die of that, whether it is the number of a stream or of a subscription (section 15)."""
    older = 0
    for seed in range(1, 1013):
        streams: dict[tuple[int, int, int], str] = {}
        subscriptions: dict[tuple[int, int, int], str] = {}
        for client, frame in frames(seed):
            match frame:
                case OpenQueue(_, HandleParameters(q_id=q_id, sub_id_info=SubQueueId(number, app))) if (
                    q_id < 50
                ):
                    assert streams.setdefault((client, q_id, number), app) == app, seed
                case ConfigureStream(_, q_id, StreamParameters(app, asked)):
                    for each in asked:
                        assert subscriptions.setdefault((client, q_id, each.s_id), app) == app, seed
                case ConfigureQueueStream(_, q_id, QueueStreamParameters(stream)):
                    older += 1
                    stream = stream or SubQueueId()
                    found = subscriptions.setdefault((client, q_id, stream.sub_id), stream.app_id)
                    assert found == stream.app_id, seed
    assert older > 100


def test_no_broadcast_is_twice_in_one_event() -> None:
    """How often a broker delivers such a one is a race."""
    posted = 0
    for seed in range(1, 1013):
        broadcast: set[tuple[int, int]] = set()
        for client, frame in frames(seed):
            match frame:
                case OpenQueue(_, HandleParameters(uri=uri, q_id=q_id)) if uri == QUEUES[2]:
                    broadcast.add((client, q_id))
                case Put(messages):
                    there = [each.guid for each in messages if (client, each.queue_id) in broadcast]
                    guids = [guid for guid in there if guid[0]]
                    posted += len(guids)
                    assert len(set(guids)) == len(guids), seed
    assert posted > 100


def test_a_heartbeat_between_answers_changes_nothing() -> None:
    ack, push = Ack((AckMessage(0, bytes(16)),)), Push((PushMessage(0, bytes(16), b"x"),))
    asked = StatusResponse(QUESTIONS + 1)
    heard = DIALECT.joined([push, HeartbeatRequest(), ack, asked, push, ack])
    assert heard == [ack, ack, push, push]


def test_a_broker_that_differs_is_found() -> None:
    """With the fewest commands that show it."""
    with fake_for(PROTOCOL, TARGET, "real") as one, fake_for(PROTOCOL, TARGET, "real") as two:
        two.configure_domain("bmq.test.mem.priority", mode="broadcast")
        comparer = Comparer(DIALECT, (one.host, one.port), (two.host, two.port), Login())
        seed = next(seed for seed in range(1, 50) if QUEUES[0].encode() in _said(seed))
        (found,) = comparer.run([seed]).unknown
    assert len(found.commands) <= 3
    assert ("flags=2" in found.fake, "flags=7" in found.real) == (True, True)


def _said(seed: int) -> bytes:
    """What the clients of a sequence open at first."""
    commands = DIALECT.sequence(Random(seed), Login())
    return b"".join(each.data or b"" for each in commands[:2])
