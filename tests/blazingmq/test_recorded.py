"""The fake against a real broker: the codec on every recorded event, and the sessions played again.

What is left out is what `answers` says, and nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from msgspec.structs import replace

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.blazingmq.domains import Domain
from fakebrokers.blazingmq.frames import (
    Ack,
    BrokerResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    Push,
    PushMessage,
    Put,
)
from fakebrokers.blazingmq.options import PushOption, read_options, write_options
from fakebrokers.blazingmq.profile import REAL
from fakebrokers.core.frames import Frame, Malformed
from tests.blazingmq.bench import Bench, Client
from tests.blazingmq.recorded import Recorded, recorded, session, sessions

#: Seconds by which a recorded answer may come later than the fake's.
LATER = 0.05
#: Sessions with events that neither side sends.
ODD = ("events", "before", "definite", "headers", "unnumbered", "events_of_brokers")
DOMAINS = {
    "bmq.test.mem.poison": Domain(max_delivery_attempts=3),
    "bmq.compare.small": Domain(queue_messages=3, queue_bytes=2000, max_producers=2, max_consumers=2),
    "bmq.measure.dedup": Domain(deduplication_time_ms=1500),
    "bmq.measure.ttl1": Domain(message_ttl_s=1),
    "bmq.measure.queues": Domain(max_queues=2),
    "bmq.measure.attempts": Domain(max_delivery_attempts=6),
    "bmq.measure.domain": Domain(domain_messages=3, domain_bytes=100_000),
}

Answers = dict[int, list[tuple[float, Any]]]


def sound(event: Recorded) -> bool:
    """Whether it is one that clients or a broker send; some sessions are about others."""
    return bool(event.data) and (event.session not in ODD or event.direction == "S2C")


@pytest.mark.parametrize("event", list(filter(sound, recorded())), ids=str)
def test_read_and_written_back(event: Recorded) -> None:
    encoding = Encoding(event.data[6] >> 5)
    codec = BlazingCodec(encoding)
    ((frame, size),) = codec.feed(event.data)
    assert not isinstance(frame, Malformed), frame
    assert (size, codec.partial) == (len(event.data), 0)
    if encoding is Encoding.JSON:  # whose text has more than one form
        assert codec.decode(codec.encode(frame)) == frame
    else:
        assert codec.encode(frame) == event.data


def answers(frame: Frame) -> list[Any]:
    """What is compared of an answer, message by message.

    Left out: where the broker runs and the number of its session; heartbeats, which a broker sends in step to
    all connections; the GUIDs that it makes for clients that count; which of several subscriptions of one
    delivery is named first.
    """
    match frame:
        case BrokerResponse():
            identity = replace(frame.broker_identity, process_name="", host_name="", pid=0, session_id=0)
            return [replace(frame, broker_identity=identity)]
        case HeartbeatRequest():
            return []
        case Push():
            return [replace(each, options=_sorted(each.options)) for each in frame.messages]
        case Ack():
            return [replace(each, guid=bytes(16)) if each.correlation_id else each for each in frame.messages]
    return [frame]


def _sorted(options: bytes) -> bytes:
    infos = read_options(options)
    return write_options(sorted(infos), PushOption.IDS) if len(infos) > 1 else options


def played(name: str) -> tuple[Answers, Answers]:
    """What the fake says, and what the broker said, by connection: when, and what."""
    bench = Bench(domains=DOMAINS)
    clients: dict[int, Client] = {}
    said: Answers = defaultdict(list)
    wanted: Answers = defaultdict(list)

    def listen() -> None:
        for number, client in clients.items():
            said[number] += [(bench.now, each) for frame in client.frames() for each in answers(frame)]

    for event in session(name):
        while (due := bench.broker.timers.next_due) <= event.at:
            bench.advance(max(0.0, due - bench.now))
            listen()
        bench.advance(event.at - bench.now)
        if event.direction == "S2C":
            frame = BlazingCodec().decode(event.data) if event.data else HeartbeatRequest()
            wanted[event.connection] += [(event.at, each) for each in answers(frame)]
            continue
        client = clients.get(event.connection)
        if client is None:
            client = clients[event.connection] = bench.connect()
        if not event.data:
            client.leave()
        elif not isinstance(BlazingCodec().decode(event.data), HeartbeatResponse):
            client.send(event.data)
        listen()
    return said, wanted


def posted(name: str) -> set[bytes]:
    """The GUIDs that clients of a session have made."""
    events = [
        BlazingCodec().decode(each.data) for each in session(name) if each.direction == "C2S" and each.data
    ]
    return {message.guid for event in events if isinstance(event, Put) for message in event.messages}


def numbered(answers: list[tuple[float, Any]], known: set[bytes]) -> list[tuple[float, Any]]:
    """With the schemas of properties numbered from 1: the recorded queues had been used before.

    And without GUIDs that no client has made.
    """
    numbers: dict[int, int] = {}
    found = []
    for at, each in answers:
        if isinstance(each, PushMessage) and each.schema_id > 1:
            number = numbers.setdefault(each.schema_id >> 1, len(numbers) + 1)
            each = replace(each, schema_id=number << 1 | each.schema_id & 1)
        if isinstance(each, PushMessage) and each.guid not in known:
            each = replace(each, guid=bytes(16))
        found.append((at, each))
    return found


def kinds(answers: list[tuple[float, Any]]) -> dict[str, list[tuple[float, Any]]]:
    """Apart: which of an ACK and the delivery of the same message is written first is the broker's choice."""
    found = defaultdict(list)
    for at, each in answers:
        found[type(each).__name__ if hasattr(each, "guid") else ""].append((at, each))
    return found


@pytest.mark.parametrize("name", sessions())
def test_the_fake_answers_as_the_broker_did(name: str) -> None:
    said, wanted = played(name)
    known = posted(name)
    assert said.keys() <= wanted.keys()
    for number in wanted:
        ours, theirs = (kinds(numbered(each[number], known)) for each in (said, wanted))
        for kind in ours.keys() | theirs.keys():
            assert [each for _, each in ours[kind]] == [each for _, each in theirs[kind]]
            for (sooner, each), (later, _) in zip(ours[kind], theirs[kind], strict=True):
                assert sooner - 0.01 <= later <= sooner + LATER, each


def test_silent_clients_are_asked_and_cut_off_as_often_as_by_a_broker() -> None:
    """The first has said nothing since its identity, the second has, the third has none."""
    events = session("silence")
    ends = {each.connection: each.at for each in events if each.direction == "S2C" and not each.data}
    asked = Counter(each.connection for each in events if each.data[4:5] == b"\x4b")
    assert (ends.keys(), asked) == ({1, 2, 3}, {1: 70, 2: 10})
    for number, end in ends.items():
        bench = Bench(replace(REAL, watches_clients=True))
        client = bench.connect()
        client.send(*[each.data for each in events if (each.connection, each.direction) == (number, "C2S")])
        bench.advance(end - 1)
        assert not client.ended
        bench.advance(4)  # a broker's clock ticks for all connections at once
        assert client.ended
        assert len([each for each in client.frames() if isinstance(each, HeartbeatRequest)]) == asked[number]


def test_what_was_recorded() -> None:
    assert len(sessions()) == 62
    assert len([each for each in recorded() if each.data]) == 1839
