"""Nodes that are clients of the Redis server."""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Malformed
from fakebrokers.errors import WireError
from fakebrokers.moleculer.packets import Discover
from fakebrokers.moleculer.redis.codec import RedisCodec, Side
from tests.moleculer.bench import Bench
from tests.moleculer.golden import Talk, talks
from tests.redis.commands import command

#: Left out by the recorder.
_INFO = b"(INFO bulk reply of a real server, ~4.9 kB, left out)"


@pytest.mark.parametrize("talk", talks("redis"), ids=str)
@pytest.mark.parametrize(("side", "direction"), [("server", "C>S"), ("client", "S>C")])
def test_recordings_are_read_and_written_back(talk: Talk, side: Side, direction: str) -> None:
    data = talk.side(direction).replace(_INFO, b"$0\r\n\r\n")
    codec = RedisCodec(side)
    frames = [frame for frame, _ in codec.feed(data)]
    assert frames
    assert not [frame for frame in frames if isinstance(frame, Malformed)]
    assert b"".join(map(RedisCodec().encode, frames)) == data
    assert codec.partial == 0


def test_a_packet_needs_a_message_around_it() -> None:
    with pytest.raises(WireError, match="expected a frame of Redis, got Discover"):
        RedisCodec().encode(Discover(sender="a"))


def test_a_node_is_known_on_both_of_its_connections() -> None:
    bench = Bench("redis")
    ears, mouth = bench.connect(), bench.connect()
    ears.say(command("subscribe", "MOL.RES.n1"))
    mouth.say(command("publish", "MOL.DISCOVER", '{"ver":"4","sender":"n1"}'))
    assert [ears.connection.peer, mouth.connection.peer] == ["n1", "n1"]
    assert mouth.session.answers_on() is ears.connection


def test_nothing_is_stored() -> None:
    client = Bench("redis").connect()
    assert client.say(command("GET", "a")) == b"$-1\r\n"
    assert client.say(command("SET", "a", "1")).startswith(b"-ERR unknown command")
