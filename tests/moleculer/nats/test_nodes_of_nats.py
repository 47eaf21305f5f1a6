"""Nodes that are clients of the NATS server."""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Malformed
from fakebrokers.errors import WireError
from fakebrokers.moleculer.nats.codec import NatsCodec, Side
from fakebrokers.moleculer.packets import Discover
from tests.moleculer.bench import Bench, Client
from tests.moleculer.golden import Talk, talks

CONNECT = b'CONNECT {"verbose":false,"pedantic":false}\r\n'


@pytest.mark.parametrize("talk", talks("nats"), ids=str)
@pytest.mark.parametrize(("side", "direction"), [("server", "C>S"), ("client", "S>C")])
def test_recordings_are_read_and_written_back(talk: Talk, side: Side, direction: str) -> None:
    data = talk.side(direction)
    codec = NatsCodec(side)
    frames = [frame for frame, _ in codec.feed(data)]
    assert not [frame for frame in frames if isinstance(frame, Malformed)]
    assert b"".join(map(NatsCodec().encode, frames)) == data
    assert codec.partial == 0


def test_recordings_are_many() -> None:
    assert sum(len(talk.steps) for talk in talks("nats")) > 90


def test_a_packet_needs_a_message_around_it() -> None:
    with pytest.raises(WireError, match="expected a frame of NATS, got Discover"):
        NatsCodec().encode(Discover(sender="a"))


def open_client(bench: Bench, connect: bytes) -> Client:
    client = bench.connect()
    assert client.take().startswith(b"INFO {")
    client.say(connect)
    return client


def test_answers_to_a_node_leave_on_its_newest_connection() -> None:
    bench = Bench()
    old, new = open_client(bench, CONNECT), open_client(bench, CONNECT)
    for client in (old, new):
        client.say(b"SUB MOL.RES.n1 1\r\n")
    links = bench.fake.broker.bus.links
    assert links["n1"] is new.connection
    old.leave()
    assert links["n1"] is new.connection
    new.leave()
    assert "n1" not in links


def test_a_node_is_known_by_the_topic_of_its_answers() -> None:
    bench = Bench()
    client = open_client(bench, CONNECT)
    client.say(b"SUB MOL.REQ.node.1 1\r\nSUB MOL.RES.> 2\r\n")
    assert client.connection.peer == ""
    client.say(b"SUB MOL-dev.RES.node.1 3\r\n")
    assert client.connection.peer == "node.1"
