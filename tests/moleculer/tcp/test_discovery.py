"""Nodes find each other by datagrams on loopback."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from fakebrokers import Moleculer
from fakebrokers.moleculer.tcp.discovery import Discovery, parse
from tests.eventually import PATIENCE_S
from tests.moleculer.golden import rows
from tests.moleculer.real_nodes import real_node, require


@pytest.fixture
def udp_port() -> int:
    """A port that nobody uses."""
    try:
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sock:
            sock.bind(("127.0.0.1", 0))
            port: int = sock.getsockname()[1]
        probe = Discovery(port, "", list, lambda id, port: None)
        probe.open()
        probe.close()
    except OSError as problem:
        pytest.skip(f"no multicast on loopback here: {problem}")
    return port


@pytest.mark.parametrize("row", rows("udp"), ids=str)
def test_recorded_datagrams(row: object) -> None:
    data = row.data  # type: ignore[attr-defined]
    found = parse(data)
    assert found is not None
    assert "|".join(map(str, found)).encode() == data


@pytest.mark.parametrize("data", [b"", b"a|b", b"|n|x", b"|n|0", b"|n|70000", b"\xff", b"a|b|c|1"])
def test_other_datagrams(data: bytes) -> None:
    assert parse(data) is None


def test_fake_nodes_find_each_other(udp_port: int) -> None:
    with (
        Moleculer(transporter="tcp", udp_port=udp_port) as one,
        Moleculer(transporter="tcp", udp_port=udp_port) as two,
        Moleculer(transporter="tcp", udp_port=udp_port, namespace="other") as other,
    ):
        stranger = other.node("c")
        first = one.node("a", {"s": {"x": lambda ctx: "found"}})
        second = two.node("b")

        def knows(_: object) -> bool:  # the first response may come from before `a` told its services
            peer = second.core.peers.get("a")
            return peer is not None and "s.x" in peer.actions()

        two.wait_for(knows, timeout=PATIENCE_S)
        assert second.call("s.x") == "found"
        one.wait_for(kind="GossipRequest")
        assert set(first.core.carrier.gossip.known) == {"b"}  # type: ignore[attr-defined]
        assert stranger.peers == {}


@pytest.mark.full
@pytest.mark.parametrize("package", ["moleculer-0.14", "moleculer-0.15"])
def test_a_real_node_finds_a_fake_one(package: str, udp_port: int) -> None:
    require(package)
    with Moleculer(transporter="tcp", udp_port=udp_port, gossip_s=0.2) as moleculer:
        moleculer.node("fake-1", {"fake": {"add": lambda ctx: ctx.params["a"] + ctx.params["b"]}})
        options = {"udpPort": udp_port, "udpBindAddress": "127.0.0.1", "gossipPeriod": 0.2}
        transporter = {"type": "TCP", "options": options}
        with real_node(package, nodeID="real-1", transporter=transporter) as real:
            real.do("waitFor", "fake")
            assert real.do("call", "fake.add", {"a": 1, "b": 2}) == 3
