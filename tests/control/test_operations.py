"""What the fakes of each protocol can be told over HTTP, by the names of their classes."""

from __future__ import annotations

import inspect
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fakebrokers import description as registry
from fakebrokers.control.brokers import Brokers, operations_of
from fakebrokers.control.describe import Control, Operation
from fakebrokers.moleculer.packets import Request
from fakebrokers.protocol import Protocol, find_protocol, protocols
from fakebrokers.renamed import HOOKS
from fakebrokers.server import FakeServer
from tests.benchmarks.stream_load import Connection
from tests.echo import protocol as echo
from tests.eventually import PATIENCE_S, eventually
from tests.marked import PASSWORD
from tests.proxy.control import Api

SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]
#: Public names of the classes that mean something inside the process only, or have a path of their own.
INSIDE = {
    *("start", "stop", "start_async", "stop_async", "check", "call", "say", "wait_for", "wait_for_async"),
    *("expect", "journal_excerpt", "connection", "connect_memory", "connect_memory_socket", "now", "exact"),
    *(
        "runs",
        "port",
        "url",
        "urls",
        "scheme",
        "where",
        "connections",
        "faults",
        "journal",
        "protocol",
        "tls",
    ),
    *("management_url", "tls_port", "broker", "break_backend", "peer_of", "packets"),
    *("nats", "redis", "mqtt", "drop_connections", "say_raw", "check_async", "respond"),
}


class Broker:
    """A broker of a protocol, told things over HTTP."""

    def __init__(self, control: Api, protocol: str, **options: Any) -> None:
        self.control = control
        status, self.row, _ = control(
            "POST", "/brokers", {"protocol": protocol, "name": "b", "options": options}
        )
        assert status == 201, self.row

    def __call__(self, operation: str, **arguments: Any) -> Any:
        status, answer, _ = self.control("POST", f"/brokers/b/{operation}", arguments)
        assert status in (200, 204), answer
        return answer

    def refused(self, operation: str, **arguments: Any) -> str:
        status, answer, _ = self.control("POST", f"/brokers/b/{operation}", arguments)
        assert status == 422, answer
        return str(answer["problem"])


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda protocol: protocol.name)
def test_everything_that_the_class_offers_is_there(protocol: Protocol) -> None:
    kind = protocol.load()
    public = {name for name, _ in inspect.getmembers_static(kind) if not name.startswith("_")}
    assert public - INSIDE - {*HOOKS} - operations_of(protocol).keys() == set()


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda protocol: protocol.name)
def test_every_operation_has_a_text_and_typed_arguments(protocol: Protocol) -> None:
    for operation in operations_of(protocol).values():
        assert operation.about.endswith((".", ")")) or "\n" in operation.about, operation.name
        msgspec.json.schema(operation.arguments, schema_hook=lambda kind: {"type": "string"})


def test_a_protocol_without_a_description_has_what_all_have(
    control: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {**registry._REGISTERED, "echo": "tests.echo.protocol"})
    broker = Broker(control, "echo")
    assert find_protocol("echo").control == ""
    assert {"kill", "crash", "reset"} <= set(broker.row["operations"])
    with socket.create_connection(("127.0.0.1", broker.row["port"]), PATIENCE_S) as client:
        client.sendall(b"Put a\n")
        assert client.recv(100) == b"Stored a 0\n"
        broker("say", connection="c1", kind="Stored", fields={"names": ["z"], "codes": [9]})
        assert client.recv(100) == b"Stored z 9\n"
        broker("say_raw", connection="c1", data={"base64": "AAE="})
        assert client.recv(100) == b"\0\1"


def test_a_description_is_all_that_another_protocol_needs(brokers: Brokers, control: Api) -> None:
    def stored(server: FakeServer, first: int = 0) -> list[str]:
        """The names that are stored."""
        return list(server.broker.stored[first:])  # type: ignore[attr-defined]

    described = Control(operations=(Operation(stored, reads=True), Operation("url")))
    bound = [operation.bind(echo.Echo) for operation in described.operations]
    assert [(each.name, each.reads, each.arguments.__struct_fields__) for each in bound] == [
        ("stored", True, ("first",)),
        ("url", True, ()),
    ]
    with echo.Echo() as server:
        server.broker.stored = ("a", "b")
        assert bound[0].carry_out(server, bound[0].arguments(first=1)) == ["b"]
        assert bound[1].carry_out(server, bound[1].arguments()) == server.url


# RabbitMQ


def test_streams(control: Api) -> None:
    broker = Broker(control, "rabbitmq-stream", nodes=2)
    broker("create_stream", name="orders", arguments={"max_age": "1h"})
    broker("publish", name="orders", bodies=["tea", {"base64": "AP8="}])
    broker("store_offset", name="orders", reference="reader", offset=1)
    broker("store_sequence", name="orders", reference="writer", publishing_id=7)
    assert [row["body"] for row in broker("messages", name="orders")] == ["tea", {"base64": "AP8="}]
    broker("move_leader", name="orders", node=2)
    assert broker("stream_named", name="orders") == {
        "name": "orders",
        "messages": 2,
        "leader": "rabbit2@127.0.0.1",
        "members": ["rabbit2@127.0.0.1", "rabbit@127.0.0.1"],
        "offsets": {"reader": 1},
        "sequences": {"writer": 7},
    }
    broker("stop_node", node=2)
    assert [(row["number"], row["up"]) for row in broker("nodes")] == [(1, True), (2, False)]
    assert broker("stream_named", name="orders")["leader"] == "rabbit@127.0.0.1"
    broker("start_node", node=2)
    assert broker.refused("move_leader", name="orders", node=3) == "expected a node from 1 to 2, got 3"
    assert broker.refused("stop_node", node=0) == "expected a node from 1 to 2, got 0"
    broker("create_super_stream", name="all", partitions=["all-0", "all-1"], keys=["0", "1"])
    assert broker("streams") == ["orders", "all-0", "all-1"]
    broker("delete_super_stream", name="all")
    broker("delete_stream", name="orders")
    assert broker("streams") == []
    assert broker.refused("create_stream", name="") == "code 17: precondition failed"


def test_users_and_rights(control: Api, brokers: Brokers) -> None:
    broker = Broker(control, "rabbitmq-stream", users=[f"bob:{PASSWORD}"])
    broker("add_virtual_host", name="test")
    broker("set_permissions", user="bob", virtual_host="test", read="^orders$", write="")
    broker("add_user", name="eve", password=PASSWORD, permissions={}, max_connections=1)
    assert broker("virtual_hosts") == {"/": None, "test": None}
    guest, bob, eve = broker("users")
    assert guest["loopback_only"] and "password" not in guest
    assert bob["permissions"]["test"] == {"configure": ".*", "write": "", "read": "^orders$"}
    assert (eve["permissions"], eve["max_connections"]) == ({}, 1)
    server: Any = brokers.find("b")
    assert server.broker.access.users["bob"].may("read", "test", "orders")
    assert not server.broker.access.users["bob"].may("write", "test", "orders")
    broker("clear_permissions", user="bob", virtual_host="test")
    broker("delete_user", name="eve")
    broker("delete_virtual_host", name="test")
    assert [row["name"] for row in broker("users")] == ["guest", "bob"]
    assert broker.refused("delete_user", name="eve") == "no user 'eve'; there are: guest, bob"
    assert "expected a regular expression" in broker.refused("set_permissions", user="bob", read="(")
    assert "expected a user as NAME:PASSWORD" in str(
        control("POST", "/brokers", {"protocol": "rabbitmq-stream", "options": {"users": ["bob"]}})[1][
            "problem"
        ]
    )


def test_a_confirm_is_lost_and_the_server_closes(control: Api) -> None:
    broker = Broker(control, "rabbitmq-stream")
    client = Connection("127.0.0.1", broker.row["port"])
    (listed,) = control("GET", "/brokers/b/connections")[1]
    assert listed["state"] and listed["peer"] == ""
    broker("say_close", connection="c1", reason="enough")
    assert b"enough" in client.socket.recv(1000)
    client.close()


def test_certificates(control: Api) -> None:
    import ssl

    pytest.importorskip("trustme", reason="missing: trustme (pip install 'fakebrokers[tls]')")
    broker = Broker(control, "narconi", tls="self-signed")
    port = int(broker.row["urls"]["tls"].rpartition(":")[2])

    def shown() -> str:
        context = ssl.create_default_context(cafile=broker.row["ca_file"])
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as raw:
            try:
                with context.wrap_socket(raw, server_hostname="localhost"):
                    return "good"
            except ssl.SSLCertVerificationError as error:
                return error.verify_message

    assert shown() == "self-signed certificate"
    words = {
        "good": "good",
        "expired": "certificate has expired",
        "unknown-authority": "unable to get local issuer certificate",
        "wrong-host": "Hostname mismatch",
    }
    for kind, word in words.items():
        broker("show_certificate", kind=kind)
        assert word in shown()
    broker("show_certificate", kind="self-signed")
    assert "self-signed" in shown()
    certificate, key = broker("client_certificate", name="ann")
    assert Path(certificate).is_file() and Path(key).is_file()


# the others


def test_pzq(control: Api) -> None:
    broker = Broker(control, "pzq", proxied=True)
    key = broker("put", body=["a", "b"])
    assert broker("messages") == [{"key": key, "body": ["a", "b"], "in_flight": False}]
    assert broker("statistics")["messages"] == 1
    assert "a key that no stored message has" in broker.refused("put", body=["x"], key=key)
    plan = {"faults": [{"name": "slow", "effect": {"type": "latency", "seconds": 0.1}}]}
    assert broker("add_proxy_faults", plan=plan) == ["slow"]
    broker("clear_proxy_faults")
    broker("expire")
    assert "a library owns this wire" in broker.refused("say_raw", connection="c1", data="x")
    broker("change_identity", identity="other")
    assert "expected at most 255 bytes" in broker.refused("change_identity", identity="x" * 256)
    assert broker("receive_url") == broker.row["urls"]["receive"]


def test_narconi(control: Api) -> None:
    broker = Broker(control, "narconi", config={"max_message_size": 10})
    where = {"project": "gold", "queue": "orders"}
    broker("ensure", **where)
    broker("put", **where, payload="tea", headers={"x-a": "1"}, redelivered=True)
    (row,) = broker("messages", **where)
    assert (row["payload"], row["headers"], row["redelivered"]) == ("tea", {"x-a": "1"}, True)
    assert broker("unacked", **where) == 0
    assert broker("messages_url", **where).endswith("/v2/gold/queues/orders/messages")
    broker("lose_backend", down=True)
    broker("restore_backend")
    broker("delete", **where)
    assert broker("queues") == []


def test_blazingmq(control: Api) -> None:
    broker = Broker(control, "blazingmq", nodes=2, domains={"d": {"mode": "fanout", "app_ids": ["a", "b"]}})
    uri = "bmq://d/orders"
    properties = {
        "n": {"type": "INT32", "number": 5},
        "t": {"text": "x"},
        "b": {"type": "BINARY", "text": "y"},
    }
    guid = broker("post", uri=uri, payload="tea", properties=properties, compression="ZLIB")
    (row,) = broker("messages", uri=uri)
    assert (row["guid"], row["payload"], row["waiting"]) == (guid, "tea", ["a", "b"])
    assert row["properties"]["n"] == {"type": "INT32", "text": None, "number": 5}
    assert row["properties"]["b"] == {"type": "BINARY", "text": "y", "number": None}
    assert broker("queue", uri=uri)["apps"] == {"a": 1, "b": 1}
    assert broker("purge", uri=uri, app_id="a") == 1
    assert broker("messages", uri=uri, app_id="a") == []
    broker("redeliver", uri=uri)
    broker("configure_domain", name="e", fields={"mode": "broadcast"})
    assert broker("queues") == [uri]
    assert "Invalid enum value" in broker.refused("configure_domain", name="e", fields={"mode": "x"})
    assert "properties.n: expected number" in broker.refused(
        "post", uri=uri, payload="", properties={"n": {"type": "INT32", "text": "x"}}
    )
    broker("stop_node", node=2)
    assert [row["up"] for row in broker("nodes")] == [True, False]
    broker("start_node", node=2)
    broker("shut_down", node=1, timeout_s=0.1)
    assert broker("nodes")[0]["stopping"] is True
    broker("reset")
    assert [(row["up"], row["stopping"]) for row in broker("nodes")] == [(True, False), (True, False)]


def test_moleculer(control: Api) -> None:
    broker = Broker(control, "moleculer", transporter="nats", nodes=1)
    actions = {
        "echo": {"echo": True},
        "five": {"returns": 5},
        "fails": {"error": {"message": "no", "code": 422}},
        "silent": {"answers": False},
    }
    services = [{"name": "math", "actions": actions, "events": ["order.*"]}]
    made = broker("node", id="shop", services=services)
    assert made["services"] == ["math"]
    eventually(lambda: any("shop" in row["peers"] for row in broker("nodes")))
    assert broker("node_call", node="fake-1", action="math.echo", params={"a": [1]}) == {"a": [1]}
    assert broker("node_call", node="fake-1", action="math.five") == 5
    assert broker.refused("node_call", node="fake-1", action="math.fails").endswith("MoleculerError: no")
    assert "RequestTimeoutError" in broker.refused(
        "node_call", node="fake-1", action="math.silent", timeout=0.05
    )
    broker("node_emit", node="fake-1", event="order.made", data={"id": 1})
    broker("node_broadcast", node="fake-1", event="order.sent")
    assert broker("node_ping", node="fake-1", target="shop")["sender"] == "shop"
    heard = broker("node_received", node="shop", kind="Event")
    assert [row["fields"]["event"] for row in heard] == ["order.made", "order.sent"]
    broker("node_send", node="fake-1", command="HEARTBEAT", fields={"cpu": 7})
    assert broker("node_received", node="shop", kind="Heartbeat")[-1]["fields"]["cpu"] == 7
    broker("partition", senders=["fake-1"], receivers=["shop"])
    assert "expected" not in broker.refused("node_call", node="fake-1", action="math.five", timeout=0.05)
    broker("heal")
    for act in ("heartbeat", "stop_heartbeats", "resume_heartbeats", "stop", "restart", "kill"):
        broker(f"node_{act}", node="shop")
    assert [row["alive"] for row in broker("nodes")] == [True, False]
    assert broker.refused("node_stop", node="x") == "no fake node 'x'; there are: fake-1, shop"
    broker("impersonate", node="fake-1")
    broker("reset")
    assert broker("nodes") == []


def test_any_number_of_calls_wait_and_others_are_served(control: Api, brokers: Brokers) -> None:
    broker = Broker(control, "moleculer", transporter="nats", nodes=1)
    actions = {"silent": {"answers": False}, "five": {"returns": 5}}
    broker("node", id="shop", services=[{"name": "shop", "actions": actions}])
    eventually(lambda: any("shop" in row["peers"] for row in broker("nodes")))
    call = b'{"node": "fake-1", "action": "shop.silent", "timeout": 3600}'
    head = b"POST /brokers/b/node_call HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(call)
    address = ("127.0.0.1", int(control.url.rpartition(":")[2]))
    with ExitStack() as stack:
        for _ in range(50):
            client = stack.enter_context(socket.create_connection(address, PATIENCE_S))
            client.sendall(head + call)
        server: Any = brokers.find("b")
        (shop,) = (node for node in server.broker.nodes.values() if node.id == "shop")
        eventually(lambda: sum(isinstance(packet, Request) for packet in list(shop.received)) == 50)
        assert broker("node_call", node="fake-1", action="shop.five") == 5


@pytest.mark.parametrize(
    ("protocol", "operation", "given"),
    [
        ("moleculer", "node_call", {"node": "fake-1", "action": "a.b"}),
        ("moleculer", "node_ping", {"node": "fake-1", "target": "b"}),
        ("blazingmq", "shut_down", {}),
        ("narconi", "wait_for", {}),
    ],
)
def test_waits_have_a_longest_time(
    control: Api, protocol: str, operation: str, given: dict[str, str]
) -> None:
    Broker(control, protocol)
    name = "timeout_s" if operation == "shut_down" else "timeout"
    status, answer, _ = control("POST", f"/brokers/b/{operation}", {**given, name: 3.2e9})
    assert (status, answer["path"]) == (400, f"body.{name}")
    assert answer["problem"] == "expected float <= 3600.0: 3200000000.0"
    document = control("GET", f"/openapi.json?protocol={protocol}")[1]
    body = document["paths"][f"/brokers/{{broker}}/{operation}"]["post"]["requestBody"]
    wanted = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert document["components"]["schemas"][wanted]["properties"][name]["maximum"] == 3600.0
