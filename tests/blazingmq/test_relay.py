"""The C++ SDK through a proxy that reads BlazingMQ's events, and through a recording of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.blazingmq.frames_control import Disconnect
from fakebrokers.blazingmq.relay import BlazingRelay
from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.faults import drop, rewrite
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.replay import Replay
from tests.blazingmq.sdk import need_sdk, run

need_sdk()


@pytest.fixture
def broker() -> Iterator[BlazingMQ]:
    with BlazingMQ() as server:
        yield server


def test_both_sides_of_the_proxy_see_the_same(broker: BlazingMQ) -> None:
    with Proxy(broker.url, protocol="blazingmq") as proxy:
        done = run(
            proxy,
            """
            client.open(Q, read=True, write=True)
            for number in range(5):
                client.post(Q, b"%d" % number)
            client.wait(acks=5, messages=5)
            client.stop()
            tell(acks=client.acks, data=[data for _, data, _ in client.messages])
            """,
        )
        assert done.told["acks"] == ["SUCCESS"] * 5
        kinds = [(r.kind, r.size) for r in proxy.journal.select() if r.size]
        assert sorted(kinds) == sorted((r.kind, r.size) for r in broker.journal.select() if r.size)
        assert {"PUT", "ACK", "PUSH", "CONFIRM"} <= {kind for kind, _ in kinds}


def test_a_lost_confirm_and_a_changed_control_message(broker: BlazingMQ) -> None:
    with Proxy(broker.url, protocol="blazingmq") as proxy:
        proxy.faults.add(
            drop(role="confirm", nth=2, unit="item", name="lost"),
            rewrite({"sdk_version": 20_000}, kind="clientIdentity", name="changed"),
        )
        done = run(
            proxy,
            """
            client.open(Q, write=True)
            for number in range(3):
                client.post(Q, b"%d" % number)
            client.wait(acks=2)
            tell(acks=client.acks)
            """,
        )
        assert done.told["acks"] == ["SUCCESS"] * 2
        assert proxy.faults.fired("lost") == 1
        identity = broker.journal.select(kind="clientIdentity")[0].frame
        assert identity is not None
        assert identity.sdk_version == 20_000  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", list(Encoding))
def test_control_messages_are_written_as_the_last_one_was(encoding: Encoding) -> None:
    event = BlazingCodec(encoding).encode(Disconnect(7))
    codec = BlazingRelay().from_client
    ((frame, _),) = codec.feed(event)
    assert codec.encode(frame) == event


def test_a_recording_plays(broker: BlazingMQ, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    program = """
        client.open(Q, read=True, write=True)
        client.post(Q, b"one")
        client.wait(acks=1, messages=1)
        client.close(Q)
        client.stop()
        tell(acks=client.acks, data=[repr(data) for _, data, _ in client.messages])
        """
    with Proxy(broker.url, protocol="blazingmq", record=file) as proxy:
        real = run(proxy, program)
    with Replay(file) as replay:
        assert run(replay, program).told == real.told
    assert real.told == {"acks": ["SUCCESS"], "data": ["b'one'"]}
