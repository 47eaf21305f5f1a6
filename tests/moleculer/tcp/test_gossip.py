"""Fake nodes that gossip with each other over real sockets, and with a peer that is played by hand."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers import Moleculer
from fakebrokers.core.frames import Frame
from fakebrokers.errors import UsageError
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Packet, Request, Response
from fakebrokers.moleculer.tcp.codec import TcpCodec
from fakebrokers.moleculer.tcp.frames import GossipHello, GossipRequest, GossipResponse
from tests.eventually import PATIENCE_S

SIGNED = {"ver": "4", "sender": "real"}
INFO = {
    "ipList": ["192.0.2.2"],
    "hostname": "h",
    "instanceID": "i",
    "client": {},
    "config": {},
    "port": 1,
    "seq": 3,
    "metadata": {},
    "services": [{"name": "shop", "actions": {"shop.buy": {}}}],
}


@pytest.fixture
def moleculer() -> Iterator[Moleculer]:
    with Moleculer(transporter="tcp", profile="0.14") as moleculer:
        yield moleculer


@pytest.fixture
def fake(moleculer: Moleculer) -> Node:
    """A fake node that is there before anybody connects."""
    return moleculer.node("fake", {"math": {"one": lambda ctx: 1}})


class Real:
    """A node that is played by hand: it listens, and dials once."""

    def __init__(self, moleculer: Moleculer) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE_S)
        self.out = socket.create_connection(("127.0.0.1", moleculer.port))
        self.codec = TcpCodec()
        self.accepted: socket.socket | None = None
        self.frames: list[Frame] = []
        port = self.listener.getsockname()[1]
        self.say(GossipHello(host="unknown.example", port=port, **SIGNED))

    def say(self, *packets: Packet) -> None:
        self.out.sendall(b"".join(map(TcpCodec().encode, packets)))

    def next(self, kind: type[Packet]) -> Any:
        """The next packet of a kind on the connection that the fake has opened."""
        if self.accepted is None:
            self.accepted, _ = self.listener.accept()
            self.accepted.settimeout(PATIENCE_S)
        while True:
            while self.frames:
                frame = self.frames.pop(0)
                if isinstance(frame, kind):
                    return frame
            data = self.accepted.recv(65536)
            assert data, "the fake hung up"
            self.frames += [frame for frame, _ in self.codec.feed(data)]

    def close(self) -> None:
        for sock in (self.listener, self.out, self.accepted):
            if sock is not None:
                sock.close()


@pytest.fixture
def real(moleculer: Moleculer, fake: Node) -> Iterator[Real]:
    real = Real(moleculer)
    yield real
    real.close()


def test_a_node_answers_gossip_on_a_connection_of_its_own(moleculer: Moleculer, real: Real) -> None:
    real.say(GossipRequest(online={"real": [3, 1, 50]}, **SIGNED))
    hello = real.next(GossipHello)
    assert (hello.sender, hello.ver, hello.port) == ("fake", "4", moleculer.port)
    info, cpu_seq, cpu = real.next(GossipResponse).online["fake"]
    assert list(info) == [
        "ipList", "hostname", "instanceID", "client", "config", "port", "seq", "metadata", "services"
    ]  # fmt: skip
    assert (info["port"], cpu_seq, cpu) == (moleculer.port, 1, 0)
    asked = real.next(GossipRequest)
    assert asked.online["fake"] == [info["seq"], 1, 0]
    real.say(Request(id="1", action="math.one", **SIGNED))
    assert real.next(Response).data == 1


def test_a_node_calls_what_gossip_tells_it_of(moleculer: Moleculer, fake: Node, real: Real) -> None:
    real.say(GossipResponse(online={"real": [INFO, 1, 20], "fake": [INFO, 9, 9]}, **SIGNED))
    moleculer.wait_for(kind="GossipResponse")
    future = fake.start_call("shop.buy", {"n": 1})
    request = real.next(Request)
    assert (request.action, request.params) == ("shop.buy", {"n": 1})
    real.say(Response(id=request.id, success=True, data="ok", **SIGNED))
    assert future.result(PATIENCE_S) == "ok"
    assert {each["peer"] for each in moleculer.connections} == {"real"}


def test_who_is_told_that_it_is_offline_says_that_it_is_not(fake: Node, real: Real) -> None:
    real.say(GossipRequest(online={"real": [3, 1, 0]}, offline={"fake": 7}, **SIGNED))
    assert real.next(GossipResponse).online["fake"][0]["seq"] == 8
    assert fake.core.seq == 8
    real.say(GossipRequest(online={"real": [3, 1, 0]}, offline={"fake": 3}, **SIGNED))
    assert real.next(GossipResponse).online["fake"][0]["seq"] == 8  # old news: it never goes back


def test_a_node_that_hangs_up_is_gone(moleculer: Moleculer, fake: Node, real: Real) -> None:
    real.say(GossipResponse(online={"real": [INFO, 1, 20]}, **SIGNED))
    moleculer.wait_for(kind="GossipResponse")
    future = fake.start_call("shop.buy", timeout=PATIENCE_S)
    real.next(Request)
    assert real.accepted is not None
    real.accepted.close()
    with pytest.raises(Exception, match="RequestRejectedError"):
        future.result(PATIENCE_S)
    assert not fake.peers["real"].available


def test_bytes_that_are_no_frame_end_the_connection(real: Real) -> None:
    real.out.sendall(b"\x00" * 6)
    real.out.settimeout(PATIENCE_S)
    with pytest.raises(ConnectionResetError):
        real.out.recv(1)


def test_each_node_has_a_port_of_its_own() -> None:
    with Moleculer(transporter="tcp", gossip_s=0.05) as moleculer:
        first = moleculer.node("one", {"a": {"x": lambda ctx: "from one"}})
        second = moleculer.node("two", {"b": {"y": lambda ctx: "from two"}})
        assert moleculer.urls == {"one": moleculer.node_url("one"), "two": moleculer.node_url("two")}
        port = int(moleculer.node_url("two").rpartition(":")[2].partition("/")[0])
        moleculer.call(lambda: first.core.carrier.gossip.address("two", "127.0.0.1", port))  # type: ignore[attr-defined]
        moleculer.wait_for(kind="GossipResponse", count=2)
        assert first.call("b.y") == "from two"
        assert second.call("a.x") == "from one"


def test_nodes_need_a_fake_that_runs() -> None:
    with pytest.raises(UsageError, match="need a fake that was started"):
        Moleculer(transporter="tcp").node("a")
    with Moleculer() as moleculer, pytest.raises(UsageError, match="only with transporter='tcp'"):
        moleculer.node_url("a")
