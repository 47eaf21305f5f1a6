"""What a proxy learns of a bus from what the client says."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.moleculer.redis.frames import Message
from fakebrokers.moleculer.relays import RedisRelay

MESSAGE = Message("MOL.INFO", b"{}")


def hear(relay: Relay, data: bytes) -> list[Frame]:
    frames = [frame for frame, _ in relay.from_client.feed(data)]
    for frame in frames:
        relay.heard(frame)
    return frames


def test_messages_that_a_fault_changed_are_written_in_the_protocol_that_the_client_has_chosen() -> None:
    relay = RedisRelay()
    assert relay.from_server.encode(MESSAGE)[:1] == b"*"
    hear(relay, b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n")
    assert relay.from_server.encode(MESSAGE)[:1] == b">"
    hear(relay, b"HELLO 2\r\n")
    assert relay.from_server.encode(MESSAGE)[:1] == b"*"
