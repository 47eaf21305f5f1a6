"""What a proxy learns of a bus from what the client says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fakebrokers import Moleculer
from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.moleculer.redis.frames import Message
from fakebrokers.moleculer.relays import RedisRelay
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.replay import Replay
from tests.moleculer.real_nodes import real_node, require

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


@pytest.mark.parametrize(("transporter", "package"), [("nats", "nats"), ("mqtt", "mqtt")])
def test_a_real_node_gets_its_answers_from_a_recording(
    tmp_path: Path, transporter: str, package: str
) -> None:
    """Requests and pings have ids of their own in each run, and so have their answers."""
    require("moleculer-0.15", package)
    file = tmp_path / "session.jsonl"

    def talk(url: str) -> list[Any]:
        with real_node("moleculer-0.15", nodeID="real-1", transporter=url) as real:
            real.do("waitFor", "shop")
            calls = [real.do("call", "shop.double", {"of": of}) for of in (4, 5)]
            return [*calls, real.do("ping", "fake-1")]

    with Moleculer(transporter=transporter) as bus:
        bus.node("fake-1", {"shop": {"double": lambda ctx: ctx.params["of"] * 2}}, heartbeat_s=0.5)
        with Proxy(bus.url, protocol="moleculer", wire=transporter, record=file) as proxy:
            real = talk(proxy.url)
    with Replay(file) as replay:
        assert replay.url.startswith(f"{transporter}://")
        assert talk(replay.url) == real == [8, 10, "fake-1"]
