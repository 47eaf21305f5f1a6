"""What no fault touches passes byte by byte: every recording of real clients and servers, cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.relay import Relay, new_relay
from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol, protocols
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.exact import KEPT_LIMIT, ExactBytes, ExactReader
from fakebrokers.proxy.frames import ClientBytes, ServerBytes
from tests.blazingmq import golden as blazingmq
from tests.moleculer import golden as moleculer
from tests.rabbitmq_stream import golden as rabbitmq

Talk = tuple[str, str, list[tuple[bool, bytes]]]  #: protocol, wire, and who (the client?) said what


def talks() -> Iterator[Talk]:
    for case in rabbitmq.cases("4.3.6"):
        steps = [(step.direction == "c2s", step.data) for step in case.steps if step.data]
        yield "rabbitmq-stream", "stream", steps
    scenarios = dict.fromkeys((event.scenario, event.connection) for event in blazingmq.events())
    for scenario, connection in scenarios:
        events = blazingmq.conversation(scenario, connection)
        yield "blazingmq", "events", [(event.direction == "C2S", event.data) for event in events]
    for transporter in ("nats", "redis", "mqtt"):
        for talk in moleculer.talks(transporter):
            yield "moleculer", transporter, [(way == "C>S", whole(data)) for way, data in talk.steps]

    yield "moleculer", "tcp", [(False, row.data) for row in moleculer.rows("frame")]


def whole(data: bytes) -> bytes:
    """Where the recording has a note in place of Redis's long answer to INFO: an answer."""
    return b"$9\r\n# Server\n\r\n" if data.startswith(b"(INFO bulk reply") else data


def relay_of(protocol: str, wire: str) -> Relay:
    return new_relay(find_protocol(protocol).wire(wire))


class Between:
    """A relay between the two sides of a talk; keeps what comes out on each."""

    def __init__(self, relay: Relay) -> None:
        self.kept = ExactBytes(lambda: True)
        self.readers = {
            True: ExactReader(relay.from_client, ClientBytes, self.kept),
            False: ExactReader(relay.from_server, ServerBytes, self.kept),
        }
        self.relay = relay
        self.passed = {True: b"", False: b""}
        self.frames: list[Frame] = []

    def pass_on(self, by_client: bool, data: bytes) -> None:
        for frame, size in self.readers[by_client].feed(data):
            self._take(by_client, frame, size)

    def end(self) -> None:
        for by_client, reader in self.readers.items():
            for frame, size in reader.rest():
                self._take(by_client, frame, size)

    def _take(self, by_client: bool, frame: Frame, size: int) -> None:
        if by_client:
            self.relay.heard(frame)
        data = frame.data if isinstance(frame, ClientBytes | ServerBytes) else self.kept.find(frame)
        assert data is not None
        assert len(data) == size
        self.passed[by_client] += data
        self.frames.append(frame)


def said(steps: list[tuple[bool, bytes]], by_client: bool) -> bytes:
    return b"".join([data for who, data in steps if who == by_client])


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_recordings_pass_unchanged_however_they_are_cut(most: int) -> None:
    random = Random(most)
    count = 0
    for protocol, wire, steps in talks():
        between = Between(relay_of(protocol, wire))
        for by_client, data in steps:
            at = 0
            while at < len(data):
                size = random.randint(1, most)
                between.pass_on(by_client, data[at : at + size])
                at += size
        between.end()
        assert between.passed == {who: said(steps, who) for who in (True, False)}, (protocol, wire)
        count += 1
    assert count > 100


def test_what_servers_say_is_read() -> None:
    """Servers say what they should, so that all of it comes out as frames; clients of recordings do not."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for protocol, wire, steps in talks():
        between = Between(relay_of(protocol, wire))
        for by_client, data in steps:
            if not by_client:
                between.pass_on(by_client, data)
        unread = [frame for frame in between.frames if isinstance(frame, Malformed | ServerBytes)]
        assert unread == [], (protocol, wire)
        kinds.setdefault((protocol, wire), set()).update(type(frame).__name__ for frame in between.frames)
    assert kinds["rabbitmq-stream", "stream"] >= {"PublishConfirm", "Deliver", "MetadataResponse", "Tune"}
    assert kinds["blazingmq", "events"] >= {"Ack", "Push", "OpenQueueResponse"}
    assert kinds["moleculer", "nats"] >= {"ServerInfo", "Msg", "NatsPong"}
    assert kinds["moleculer", "redis"] >= {"Message", "Subscribed", "Reply"}
    assert kinds["moleculer", "tcp"] >= {"GossipHello", "Request", "Response"}
    assert kinds["moleculer", "mqtt"] >= {"Connack", "Suback", "Publish"}


WIRES = [
    (each.name, wire.name)
    for each in protocols()
    for wire in each.wires
    if wire.relay.startswith("fakebrokers.")
]
#: What talks of these protocols begin with or are made of, so that chance gets further than the first byte.
PIECES = [
    *(b"\0\0\0\x08\0\x17\0\1", b"\0\0\0\x0a\x80\x01\0\1\0\0\0\1\0\1", b"\0\0\0\x10", b"\x80\x15"),
    *(b"INFO {}\r\n", b"PUB a 2\r\nhi\r\n", b"MSG a 1 2\r\nhi\r\n", b"PING\r\n", b"CONNECT {}", b"\r\n"),
    *(b"*2\r\n$4\r\nPING\r\n$1\r\nx\r\n", b"+OK\r\n", b"$5\r\nab", b"*-1\r\n", b"HELLO 3\r\n", b"-ERR\r\n"),
    *(b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0", b"\x30\x05\0\1ahi", b"\xc0\0", b"\x20\x02\0\0"),
    *(b"\0\0\0\x08\x40\x02\0\0", b"\0\0\0\x08\x49\x02\0\0", b"\x41\x02\x20\0"),
    *(b"GET / HTTP/1.1\r\n\r\n", b"PUT /v2/a/queues/b HTTP/1.1\r\nContent-Length: 3\r\n\r\n", b"abc"),
    *(b"GET /v2/a/queues/b/messages HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", b"Expect: 100-continue\r\n"),
    *(
        b"HTTP/1.1 101 X\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"\x81\x02{}",
        b"\x82\x01x",
    ),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
]
step = st.tuples(st.booleans(), st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=30)))


@pytest.mark.parametrize(("protocol", "wire"), WIRES, ids=lambda each: each)
@given(steps=st.lists(step, max_size=25))
def test_whatever_comes_passes_unchanged(protocol: str, wire: str, steps: list[tuple[bool, bytes]]) -> None:
    between = Between(relay_of(protocol, wire))
    for by_client, data in steps:
        between.pass_on(by_client, data)
    between.end()
    assert between.passed == {who: said(steps, who) for who in (True, False)}


def test_bytes_behind_what_cannot_be_read_pass_too() -> None:
    between = Between(relay_of("moleculer", "nats"))
    between.pass_on(True, b"NONSENSE\r\n")
    between.pass_on(True, b"PING\r\n" * 100)
    assert between.passed[True] == b"NONSENSE\r\n" + b"PING\r\n" * 100
    assert isinstance(between.frames[0], Malformed)


def test_the_beginning_of_a_frame_passes_at_the_end() -> None:
    between = Between(relay_of("rabbitmq-stream", "stream"))
    between.pass_on(True, b"\0\0\0\x08\0\x17")
    assert between.passed[True] == b""
    between.end()
    assert between.passed[True] == b"\0\0\0\x08\0\x17"


def test_a_frame_that_waits_for_long_does_not_make_all_others_stay() -> None:
    kept = ExactBytes(lambda: False)
    frames = [ClientBytes(number, b"") for number in range(100)]
    for frame in frames:
        kept.keep(frame, bytes(KEPT_LIMIT // 10))
    found = [frame for frame in frames if kept.find(frame) is not None]
    assert found == frames[-10:]


def test_wires_that_a_library_owns_are_refused() -> None:
    with pytest.raises(UsageError, match="a library owns its bytes"):
        Proxy("127.0.0.1:1", protocol="pzq")
    with pytest.raises(UsageError, match="has no wire 'natz'; did you mean 'nats'"):
        Proxy("127.0.0.1:1", protocol="moleculer", wire="natz")
    with pytest.raises(UsageError, match="name the protocol"):
        Proxy("127.0.0.1:1", record="session.jsonl")
