from __future__ import annotations

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.access import Access, Permission, User
from fakebrokers.rabbitmq_stream.cluster import Cluster, Node
from fakebrokers.rabbitmq_stream.codes import Code
from tests.rabbitmq_stream.brokers import Watching, create, create_super, new_broker, refusal

# --- nodes ------------------------------------------------------------------------------------


def test_members_of_a_stream() -> None:
    broker = new_broker(nodes=3)
    n0, n1, n2 = broker.cluster.nodes
    stream = create(broker)
    assert (stream.membership.leader, stream.membership.replicas) == (n0, [n1, n2])
    small = broker.create("/", "small", {"initial-cluster-size": "2"}, n2)
    assert (small.membership.leader, small.membership.replicas) == (n2, [n0])
    assert refusal(broker.find_member, "/", "small", n1) == Code.STREAM_NOT_AVAILABLE
    assert broker.find_member("/", "small", n0) is small


def test_streams_are_placed_on_nodes_that_are_up() -> None:
    broker = new_broker(nodes=3)
    broker.cluster.nodes[0].up = False
    for locator in ("client-local", "balanced"):
        stream = create(broker, locator, queue_leader_locator=locator)
        assert stream.membership.leader in broker.cluster.nodes[1:]


def test_balanced_streams_spread_over_the_nodes() -> None:
    broker = new_broker(nodes=3)
    create_super(broker, "a", "b", "c", "d")
    leaders = [stream.membership.leader for stream in broker.streams.values()]
    assert [node.name for node in leaders if node] == ["n0", "n1", "n2", "n0"]


def test_a_stream_without_leader_cannot_be_written() -> None:
    broker = new_broker(nodes=3)
    watching = Watching(create(broker))
    broker.move_leader("s", None, 1.0)
    assert watching.lost == [("s", 1.0)]
    assert refusal(broker.find_led, "/", "s") == Code.STREAM_NOT_AVAILABLE
    assert broker.find_member("/", "s", broker.cluster.nodes[1]).name == "s"
    broker.move_leader("s", broker.cluster.nodes[1], 2.0)
    assert broker.find_led("/", "s").epoch == 3


def test_a_stream_that_is_not_available() -> None:
    broker = new_broker()
    create(broker).membership.available = False
    assert refusal(broker.find_led, "/", "s") == Code.STREAM_NOT_AVAILABLE
    assert refusal(broker.find_member, "/", "s", broker.cluster.nodes[0]) == Code.STREAM_NOT_AVAILABLE


def test_when_a_node_dies_another_member_leads() -> None:
    broker = new_broker(nodes=2)
    n0, n1 = broker.cluster.nodes
    stream, alone = create(broker), create(broker, "alone", initial_cluster_size="1")
    broker.publish("s", [b"x"], 0.0)
    broker.stop_node(n0, 1.0)
    assert (stream.membership.leader, stream.membership.replicas) == (n1, [n0])
    assert (stream.epoch, [m.body for m in stream.messages()]) == (2, [b"x"])
    assert alone.membership.leader is None
    broker.start_node(n0, 2.0)
    assert alone.membership.leader is n0
    assert stream.membership.leader is n1


def test_a_node_leads_no_stream_that_it_has_no_member_of() -> None:
    broker = new_broker(nodes=2)
    n0, n1 = broker.cluster.nodes
    stream = create(broker, initial_cluster_size="1")
    for node in (n0, n1):
        broker.stop_node(node, 1.0)
    broker.start_node(n1, 2.0)
    assert (stream.membership.leader, stream.epoch) == (None, 2)
    broker.start_node(n0, 3.0)
    assert stream.membership.leader is n0


def test_a_load_balancer_hands_connections_round() -> None:
    nodes = [Node(f"n{number}") for number in range(3)]
    cluster = Cluster(nodes, load_balancer=True)
    nodes[1].up = False
    assert [cluster.accept(nodes[0]).name for _ in range(4)] == ["n0", "n2", "n0", "n2"]
    assert Cluster(nodes).accept(nodes[2]) is nodes[2]
    assert cluster.node("n2") is nodes[2]
    with pytest.raises(UsageError, match="n0, n1, n2"):
        cluster.node("n9")


# --- users ------------------------------------------------------------------------------------


def test_logging_in() -> None:
    access = Access()
    assert access.authenticate("guest", "guest", loopback=True).name == "guest"
    assert access.authenticate("guest", None, loopback=True).name == "guest"
    assert refusal(lambda: access.authenticate("guest", "wrong", loopback=True)) == 8
    assert refusal(lambda: access.authenticate("nobody", None, loopback=True)) == 8
    assert refusal(lambda: access.authenticate("guest", "guest", loopback=False)) == 11
    access.add_user(User("app", "secret"))
    assert access.authenticate("app", "secret", loopback=False).name == "app"


def test_permissions_are_regular_expressions() -> None:
    user = User("app", "x", permissions={"/": Permission(configure="", write="^orders", read=".*")})
    assert user.may("write", "/", "orders-1")
    assert not user.may("write", "/", "my-orders")
    assert not user.may("configure", "/", "orders-1")
    assert user.may("read", "/", "anything")
    assert not user.may("read", "other", "anything")


def test_virtual_hosts_and_limits() -> None:
    access = Access()
    user = access.add_user(User("app", "x", max_connections=2))
    access.virtual_hosts["closed"] = None
    access.check_virtual_host(user, "/", [("app", "/")])
    assert refusal(access.check_virtual_host, user, "/", [("app", "/")] * 2) == 12
    assert refusal(access.check_virtual_host, user, "closed", []) == 12
    assert refusal(access.check_virtual_host, user, "nosuch", []) == 12
    access.virtual_hosts["/"] = 1
    assert refusal(access.check_virtual_host, user, "/", [("other", "/")]) == 12
    access.virtual_hosts["/"] = None
    access.max_connections = 3
    assert refusal(access.check_virtual_host, user, "/", [("other", "elsewhere")] * 3) == 12
