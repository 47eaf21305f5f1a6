"""The fake against what the SDKs sent: it answers as the experimental broker did, which they accepted.

Conversations in which that broker misbehaved on purpose are not played (`MISBEHAVED`). What may differ is
what `comparable` leaves out, and nothing else.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.domains import Domain
from fakebrokers.blazingmq.frames import (
    AckMessage,
    AdminCommand,
    AdminCommandResponse,
    BrokerResponse,
    DisconnectResponse,
    HeartbeatRequest,
    OpenQueue,
    Push,
    PushMessage,
)
from fakebrokers.blazingmq.options import read_options
from fakebrokers.blazingmq.profile import REAL, SEED
from fakebrokers.blazingmq.schema import Identity
from fakebrokers.blazingmq.uri import parse_uri
from fakebrokers.core.frames import Frame, Malformed
from tests.blazingmq.bench import Bench
from tests.blazingmq.golden import Event, conversation, events, scenarios

#: Refusals, statuses, cuts and orders that were there to see what the SDK makes of them.
MISBEHAVED = {
    "cpp_ack_status_0_to_8",
    "cpp_open_refused",
    "cpp_cut_and_retransmit",
    "cpp_batched_ack_and_push",
    "cpp_push_option_infos",
    "cpp_push_option_packed",
    "cpp_zlib_old_style",  # it passed on what a real broker inflates
}
PLAYED = [
    (scenario, connection)
    for scenario in scenarios()
    if scenario not in MISBEHAVED
    for connection in sorted({each.connection for each in events() if each.scenario == scenario})
]


def bench_for(recorded: list[Event]) -> Bench:
    """A broker with the features and domains of the recording."""
    answer = BlazingCodec().decode(next(each.data for each in recorded if each.direction == "S2C"))
    assert isinstance(answer, BrokerResponse)
    profile = replace(REAL, features=answer.broker_identity.features)
    names = {
        parse_uri(frame.handle_parameters.uri).domain: parse_uri(frame.handle_parameters.uri).app
        for each in recorded
        if isinstance(frame := BlazingCodec().decode(each.data), OpenQueue)
    }
    return Bench(profile, {name: Domain("fanout", ("foo", "bar")) for name in names if "fanout" in name})


def comparable(frame: Frame) -> list[Any]:
    """What both brokers have to say alike; the messages of events one by one.

    Left out: who the broker is, what an admin command prints, GUIDs that the broker has made, the flag of
    redelivered messages (the experimental broker set it only sometimes), and whether a message for two
    subscriptions comes once or twice.
    """
    match frame:
        case BrokerResponse():
            features = frame.broker_identity.features
            return [replace(frame, broker_identity=Identity(1, features=features))]
        case AdminCommandResponse():
            return [replace(frame, text="")]
        case Push():
            return [each for message in frame.messages for each in _each_subscription(message)]
    return list(getattr(frame, "messages", [frame]))


def _each_subscription(message: PushMessage) -> list[Any]:
    infos = read_options(message.options)
    return [(replace(message, options=b"", flags=message.flags & 2), info.number) for info in infos]


def mended(item: Any, is_admin: bool) -> Any:
    """As a real broker has it, which does not watch operators, and does not answer their disconnect."""
    if is_admin and isinstance(item, BrokerResponse):
        return replace(item, max_missed_heartbeats=0)
    return None if is_admin and isinstance(item, DisconnectResponse) else item


def without_made_guids(item: Any, is_cpp: bool) -> Any:
    if is_cpp:
        return item
    if isinstance(item, AckMessage):
        return replace(item, guid=bytes(16))
    if isinstance(item, tuple):
        return replace(item[0], guid=bytes(16)), item[1]
    return item


@pytest.mark.parametrize("document", [False, True], ids=["real", "seed"])
@pytest.mark.parametrize(("scenario", "connection"), PLAYED)
def test_the_fake_answers_as_the_broker_did(scenario: str, connection: int, document: bool) -> None:
    """Profile ``seed`` differs in time and in failures only: it answers alike."""
    recorded = conversation(scenario, connection)
    is_cpp = scenario.startswith("cpp")
    is_admin = any(isinstance(BlazingCodec().decode(each.data), AdminCommand) for each in recorded)
    bench = bench_for(recorded)
    if document:
        bench.broker.profile = replace(SEED, features=bench.broker.profile.features)
    client = bench.connect()
    said, wanted = [], []
    made: dict[bytes, bytes] = {}  # GUIDs of the recorded broker to those of this one
    for event in recorded:
        if event.direction == "C2S":
            data = event.data
            for theirs, ours in made.items():
                data = data.replace(theirs, ours)
            client.send(data)
            for frame in client.frames():
                assert not isinstance(frame, Malformed)
                said += comparable(frame)
        else:
            frame = BlazingCodec().decode(event.data)
            wanted += [] if isinstance(frame, HeartbeatRequest) else comparable(frame)
            if not is_cpp and len(said) >= len(wanted) and isinstance(wanted[-1], AckMessage):
                made[wanted[-1].guid] = said[len(wanted) - 1].guid
    wanted = [item for each in wanted if (item := mended(each, is_admin)) is not None]
    assert [without_made_guids(item, is_cpp) for item in said] == [
        without_made_guids(item, is_cpp) for item in wanted
    ]
    assert not client.ended


def test_after_a_cut_the_sdk_sends_again_what_was_not_answered() -> None:
    """Three messages, a cut, and those two of them that want an answer again, with two more: stored once."""
    bench = Bench()
    for connection in (1, 2):
        client = bench.connect()
        for event in conversation("cpp_cut_and_retransmit", connection):
            if event.direction == "C2S":
                client.send(event.data)
        answers = [len(frame.messages) for frame in client.frames() if hasattr(frame, "messages")]
        assert answers == [[1, 1], [3]][connection - 1]
        if connection == 1:
            client.leave()
    (queue,) = bench.broker.queues.values()
    assert len(queue.messages) == 5


def test_nothing_is_left_out() -> None:
    assert set(scenarios()) >= MISBEHAVED
    assert len(PLAYED) == 17
