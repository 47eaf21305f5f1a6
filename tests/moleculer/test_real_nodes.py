"""Real nodes of 0.14 and 0.15 with a fake one, over each transporter and with each serializer."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers import Moleculer
from fakebrokers.faults import drop
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.faults import lose_heartbeats
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.serialization import SERIALIZERS
from fakebrokers.moleculer.services import Context, MoleculerError, Service, Stream
from tests.eventually import PATIENCE_S
from tests.moleculer.real_nodes import RealNode, real_node, require

pytestmark = pytest.mark.full

VERSIONS = ("moleculer-0.14", "moleculer-0.15")
CLIENTS = {"nats": ["nats"], "redis": ["ioredis"], "mqtt": ["mqtt"], "tcp": []}
SCHEMAS = ("ProtoBuf", "Avro", "Thrift")


def fail(ctx: Context) -> None:
    raise MoleculerError("bad", 422, "BAD", {"f": 1}, name="MoleculerClientError")


def fake_node(moleculer: Moleculer, heard: list[Any], **options: Any) -> Node:
    actions = {
        "add": lambda ctx: ctx.params["a"] + ctx.params["b"],
        "fail": fail,
        "down": lambda ctx: Stream([b"fa", b"ke"]),
        "up": lambda ctx: b"".join(ctx.stream.chunks).decode(),
    }
    service = Service("fake", actions, {"shop.*": lambda ctx: heard.append(ctx.params)})
    return moleculer.node("fake-1", [service], heartbeat_s=1.0, **options)


def options_for(moleculer: Moleculer, id: str, serializer: str = "JSON") -> dict[str, Any]:
    if moleculer.transporter != "tcp":
        return {"nodeID": id, "transporter": moleculer.url, "serializer": serializer}
    tcp = {"udpDiscovery": False, "urls": [moleculer.node_url("fake-1")], "gossipPeriod": 0.2}
    return {"nodeID": id, "transporter": {"type": "TCP", "options": tcp}, "serializer": serializer}


def meet(moleculer: Moleculer, node: Node, *real: str) -> None:
    """Wait until the fake node knows the services of these."""

    def known(_: object) -> bool:
        peers = {peer.id: peer for peer in node.core.peers}
        return all(id in peers and f"{id}.add" in peers[id].actions() for id in real)

    moleculer.wait_for(known, timeout=PATIENCE_S)


def talk(moleculer: Moleculer, node: Node, real: RealNode, heard: list[Any]) -> None:
    """Everything that one node may want of another, both ways."""
    meet(moleculer, node, "real-1")
    real.do("waitFor", "fake")
    assert real.do("call", "fake.add", {"a": 1, "b": 2}) == 3
    error = real.do("call", "fake.fail", {})["error"]
    assert (error["name"], error["code"], error["nodeID"]) == ("MoleculerClientError", 422, "fake-1")
    assert real.do("call", "fake.nope", {})["error"]["code"] == 404
    assert real.do("download", "fake.down") == "fake"
    assert real.do("upload", "fake.up", ["ab", "cde"]) == "abcde"
    assert real.do("ping", "fake-1") == "fake-1"
    real.do("emit", "shop.open", {"n": 1})
    real.do("broadcast", "shop.open", {"n": 2})
    assert node.call("real-1.add", {"a": 4, "b": 5}, timeout=PATIENCE_S) == 9
    with pytest.raises(RemoteError, match="Error: boom"):
        node.call("real-1.fail")
    assert node.call("real-1.down") == Stream((b"one", b"two"))
    assert node.call("real-1.up", stream=Stream([b"xy", b"z"])) == "xyz"
    node.emit("user.created", {"n": 3})
    assert node.ping("real-1").sender == "real-1"
    assert real.do("events") == [["user.created", {"n": 3}]]
    assert heard == [{"n": 1}, {"n": 2}]
    assert (node.broken, node.failures) == ([], [])


@pytest.mark.parametrize("transporter", CLIENTS)
@pytest.mark.parametrize("package", VERSIONS)
def test_a_real_and_a_fake_node(package: str, transporter: str) -> None:
    require(package, *CLIENTS[transporter])
    heard: list[Any] = []
    with Moleculer(transporter=transporter) as moleculer:
        node = fake_node(moleculer, heard)
        with real_node(package, **options_for(moleculer, "real-1")) as real:
            talk(moleculer, node, real, heard)
            assert {each["peer"] for each in moleculer.connections} == {"real-1"}
            real.do("stop")
            if transporter != "tcp":
                moleculer.wait_for(lambda _: moleculer.packets("Disconnect"), timeout=PATIENCE_S)
                moleculer.wait_for(lambda _: not node.peers["real-1"].available, timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("package", "serializer"),
    [
        *[("moleculer-0.14", name) for name in SERIALIZERS if name not in ("JSON", "JSONExt")],
        *[("moleculer-0.15", name) for name in SERIALIZERS if name != "JSON" and name not in SCHEMAS],
    ],
)
def test_serializers(package: str, serializer: str) -> None:
    require(package, "nats", "msgpack5", "notepack.io", "cbor-x", "protobufjs", "avsc", "thrift")
    heard: list[Any] = []
    with Moleculer(serializer=serializer) as moleculer:
        node = fake_node(moleculer, heard)
        with real_node(package, **options_for(moleculer, "real-1", serializer)) as real:
            talk(moleculer, node, real, heard)


@pytest.mark.parametrize("transporter", CLIENTS)
@pytest.mark.parametrize("package", VERSIONS)
def test_real_nodes_call_each_other(package: str, transporter: str) -> None:
    require(package, *CLIENTS[transporter])
    with Moleculer(transporter=transporter) as moleculer:
        node = fake_node(moleculer, [])
        first, second = options_for(moleculer, "real-1"), options_for(moleculer, "real-2")
        with real_node(package, **first) as one, real_node(package, **second) as two:
            meet(moleculer, node, "real-1", "real-2")
            one.do("waitFor", "real-2")
            assert one.do("call", "real-2.add", {"a": 1, "b": 2}) == 3
            two.do("waitFor", "real-1")
            assert two.do("download", "real-1.down") == "onetwo"


@pytest.mark.parametrize("package", VERSIONS)
def test_the_balancer_can_be_left_to_the_bus(package: str) -> None:
    require(package, "nats")
    with Moleculer() as moleculer:
        node = fake_node(moleculer, heard := [], disable_balancer=True)
        options = {**options_for(moleculer, "real-1"), "disableBalancer": True}
        with real_node(package, **options) as real:
            meet(moleculer, node, "real-1")
            real.do("waitFor", "fake")
            assert real.do("call", "fake.add", {"a": 1, "b": 2}) == 3
            topic = (
                "MOL.REQB.real-1.add"  # an INFO may tell of the action before the node has subscribed to it
            )
            moleculer.wait_for(lambda record: record.frame.subject == topic, kind="Sub", timeout=PATIENCE_S)  # type: ignore[union-attr]
            assert node.call("real-1.add", {"a": 1, "b": 2}, timeout=PATIENCE_S) == 3
            real.do("emit", "shop.x", 1)
            assert node.ping("real-1").sender == "real-1"
            assert heard == [1]
            topics = {record.frame.subject for record, _ in moleculer.packets("Request") if record.frame}  # type: ignore[attr-defined]
            assert topics == {"MOL.REQB.fake.add", "MOL.REQB.real-1.add"}


@pytest.mark.parametrize("package", VERSIONS)
def test_faults_reach_real_nodes(package: str) -> None:
    require(package, "nats")
    with Moleculer(faults=None) as moleculer:
        node = fake_node(moleculer, [])
        with real_node(package, **options_for(moleculer, "real-1"), requestTimeout=300) as real:
            meet(moleculer, node, "real-1")
            real.do("waitFor", "fake")
            name = moleculer.faults.add(drop(kind="Response", direction="out", peer="real-1", nth=1))
            error = real.do("call", "fake.add", {"a": 1, "b": 2})["error"]
            assert (error["name"], error["code"]) == ("RequestTimeoutError", 504)
            assert real.do("call", "fake.add", {"a": 1, "b": 2}) == 3
            assert moleculer.faults.fired(name) == 1
            lost = moleculer.faults.add(lose_heartbeats(peer="real-1"))
            moleculer.wait_for(
                kind="Pub", role=None, condition=lambda record: lost in record.fault, timeout=PATIENCE_S
            )
            moleculer.impersonate("real-1")
            assert real.process.wait(PATIENCE_S) == 1  # it has met another instance of itself
