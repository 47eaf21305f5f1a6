"""The fake on real sockets: addresses, nodes, what tests do to queues, and bytes of all kinds."""

from __future__ import annotations

import random
import socket
import threading
from asyncio.trsock import TransportSocket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fakebrokers
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import (
    AdminCommand,
    AdminCommandResponse,
    BrokerResponse,
    Confirm,
    ConfirmMessage,
    OpenQueue,
    OpenQueueResponse,
    Put,
)
from fakebrokers.blazingmq.properties import Property, PropertyType
from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol
from tests.blazingmq.bench import ADMIN, FANOUT, Q, guid, parameters, put
from tests.blazingmq.golden import events
from tests.blazingmq.peer import Peer
from tests.eventually import PATIENCE_S, eventually


@pytest.fixture(autouse=True)
def _closed_peers() -> Iterator[None]:
    yield
    Peer.close_all()


def test_the_fixture(blazingmq: BlazingMQ) -> None:
    assert isinstance(Peer(blazingmq).next(), BrokerResponse)


def test_addresses() -> None:
    assert fakebrokers.BlazingMQ is BlazingMQ
    assert find_protocol("blazingmq").port == 30114
    with BlazingMQ(nodes=3) as broker:
        assert broker.url == f"tcp://127.0.0.1:{broker.port}"
        assert broker.urls == {
            "node2": f"tcp://127.0.0.1:{broker.nodes[1].port}",
            "node3": f"tcp://127.0.0.1:{broker.nodes[2].port}",
        }


def test_what_tests_put_in_and_see() -> None:
    with BlazingMQ() as broker:
        properties = {"n": Property(PropertyType.INT32, 5)}
        posted = broker.publish(Q, b"x" * 2000, properties, compression=Compression.ZLIB)
        (message,) = broker.messages(Q)
        assert (message.guid, message.payload, message.content.properties) == (
            posted,
            b"x" * 2000,
            properties,
        )
        assert message.size < 100
        assert (broker.queues, broker.queue(Q).uri) == ([Q], Q)
        peer = Peer(broker).open()
        peer.push()
        broker.redeliver(Q)
        (again,) = peer.push().messages
        assert (again.guid, again.out_of_order) == (posted, True)
        assert broker.connections[0]["queues"][0]["unconfirmed"] == 1
        assert broker.purge(Q) == 1
        assert broker.messages(Q) == []


def test_messages_of_one_app() -> None:
    with BlazingMQ(domains={"d": {"mode": "fanout", "app_ids": ["a", "b"]}}) as broker:
        broker.publish("bmq://d/q", b"1")
        assert broker.purge("bmq://d/q", "a") == 1
        assert [message.payload for message in broker.messages("bmq://d/q", "b")] == [b"1"]
        assert broker.messages("bmq://d/q", "a") == []


def test_wrong_usage() -> None:
    for arguments, problem in (
        ({"nodes": 0}, "1 node or more"),
        ({"profile": "reel"}, "no profile 'reel'; did you mean 'real'"),
        ({"switches": {"x": 1}}, "no switch 'x'"),
        ({"domains": {"d": {"mode": "x"}}}, "domain 'd'"),
    ):
        with pytest.raises(UsageError, match=problem):
            BlazingMQ(**arguments)  # type: ignore[arg-type]
    with BlazingMQ() as broker:
        with pytest.raises(UsageError, match="no queue 'bmq://d/q'; there are: none"):
            broker.messages("bmq://d/q")
        with pytest.raises(UsageError, match="json' doesn't exist"):
            broker.publish("bmq://d/q", b"x")
        with pytest.raises(UsageError, match="a node from 1 to 1, got 2"):
            broker.stop_node(2)


def test_domains_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "domains.toml"
    path.write_text('[domains."my.domain"]\nqueue_messages = 1\n')
    with BlazingMQ(domains=path) as broker:
        peer = Peer(broker)
        peer.next()
        peer.send(OpenQueue(1, parameters("bmq://my.domain/q", write=True)))
        assert isinstance(peer.next(), OpenQueueResponse)
        for number in (1, 2, 3):
            peer.post(number)
        assert [*peer.acks(), *peer.acks(), *peer.acks()] == [(guid(1), 0), (guid(2), 0), (guid(3), 1)]
        broker.configure_domain("my.domain", queue_messages=2)
        peer.post(4)
        assert peer.acks() == [(guid(4), 0)]


def test_a_node_goes_down_and_the_others_have_its_messages() -> None:
    with BlazingMQ(nodes=2) as broker:
        first = Peer(broker).open(read=False)
        first.post(1)
        first.next()
        broker.stop_node(1)
        with pytest.raises(EOFError):
            first.next()
        second = Peer(broker, port=broker.nodes[1].port).open()
        assert [message.data for message in second.push().messages] == [b"1"]
        refused = Peer(broker)
        with pytest.raises((EOFError, ConnectionError)):
            refused.next()
        broker.start_node(1)
        assert isinstance(Peer(broker).next(), BrokerResponse)


def test_a_shutdown_in_order() -> None:
    with BlazingMQ() as broker:
        peer = Peer(broker).open()
        peer.post(1, ack=False)
        peer.push()
        broker.shut_down(timeout_s=PATIENCE_S)
        peer.send(Confirm((ConfirmMessage(0, guid(1)),)))
        with pytest.raises(EOFError):
            peer.next()


def test_a_crash_keeps_messages_or_loses_them() -> None:
    with BlazingMQ() as broker:
        broker.publish(Q, b"1")
        broker.crash(keep_state=True)
        broker.restart()
        assert len(broker.messages(Q)) == 1
        broker.crash(keep_state=False)
        broker.restart()
        assert broker.queues == []


def test_an_operator() -> None:
    with BlazingMQ() as broker:
        broker.publish(FANOUT, b"1")
        peer = Peer(broker, ADMIN)
        peer.next()
        peer.send(AdminCommand(1, "DOMAINS DOMAIN bmq.test.mem.fanout PURGE"))
        answer = peer.next()
        assert isinstance(answer, AdminCommandResponse)
        assert "Purged 1 message(s)" in answer.text


def test_an_end_in_the_middle_of_an_event() -> None:
    with BlazingMQ() as broker:
        for event in events()[:10]:
            client = socket.create_connection((broker.host, broker.port))
            client.sendall(event.data[: len(event.data) // 2])
            client.close()
        broker.wait_for(kind="closed", count=10)


def recorded(scenario: str) -> bytes:
    found = [each.data for each in events() if (each.scenario, each.direction) == (scenario, "C2S")]
    return b"".join(found)


@pytest.mark.parametrize("seed", range(8))
def test_recordings_with_other_bytes_do_not_kill_the_broker(seed: int) -> None:
    """Whole conversations in which bytes were changed; leaving the fake raises what went wrong inside."""
    chance = random.Random(seed)
    conversations = [
        recorded(name) for name in ("cpp_lifecycle", "java_lifecycle", "cpp_fanout", "node_zlib")
    ]
    identities = [each.data for each in events() if "clientIdentity" in each.description][::7]
    with BlazingMQ() as broker:
        for _ in range(60):
            data = bytearray(chance.choice(identities)) + chance.choice(conversations)
            for _ in range(chance.randrange(1, 12)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            client = socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S)
            reader = threading.Thread(target=_drain, args=(client,))
            reader.start()
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the broker has hung up already
            reader.join()
            client.close()
        assert isinstance(Peer(broker).next(), BrokerResponse)


def _drain(client: socket.socket) -> None:
    try:
        while client.recv(1 << 16):
            pass
    except OSError:
        pass


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux acknowledges at once on request")
def test_what_is_read_and_not_answered_is_acknowledged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C++ SDK's send buffer is so small that delayed acknowledgements would stop a large message."""
    asked: list[tuple[Any, ...]] = []
    real = TransportSocket.setsockopt

    def spy(self: TransportSocket, *args: Any) -> None:
        asked.append(args)
        real(self, *args)

    monkeypatch.setattr(TransportSocket, "setsockopt", spy)
    with BlazingMQ() as broker:
        peer = Peer(broker).open()
        event = peer.codec.encode(Put((put(bytes(5000)),)))
        asked.clear()
        peer.socket.sendall(event[:2500])
        eventually(lambda: asked == [(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)])
        peer.socket.sendall(event[2500:])
        assert len(peer.acks()) == 1
        assert len(asked) == 1  # the answer acknowledges, too
