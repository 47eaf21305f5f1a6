"""The management HTTP API in RabbitMQ's shape."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from fakebrokers import RabbitMQStream
from tests.benchmarks.stream_load import Connection, frame, text
from tests.marked import PASSWORD
from tests.rabbitmq_stream.http import login, reason, request


@pytest.fixture
def broker() -> Iterator[RabbitMQStream]:
    with RabbitMQStream(management=True) as broker:
        broker.create_stream("orders")
        yield broker


@pytest.fixture
def client(broker: RabbitMQStream) -> Iterator[Connection]:
    connection = Connection(broker.host, broker.port)
    yield connection
    connection.close()


def test_connections_are_listed_and_cut(broker: RabbitMQStream, client: Connection) -> None:
    _, rows = request(broker, "GET", "/api/connections")
    (row,) = rows
    assert (row["user"], row["vhost"], row["protocol"]) == ("guest", "/", "stream")
    assert row["name"].endswith(f"-> {broker.host}:{broker.port}")
    assert request(broker, "DELETE", "/api/connections/" + quote(row["name"], safe="")) == (204, None)
    assert client.socket.recv(100) == b""  # FIN without a Close frame
    assert request(broker, "GET", "/api/connections") == (200, [])


def test_publishers_and_consumers(broker: RabbitMQStream, client: Connection) -> None:
    client.ask(frame(1, bytes([0, 0, 0, 6, 7]) + text("ref") + text("orders")))
    client.ask(frame(7, bytes([0, 0, 0, 8, 3]) + text("orders") + b"\0\1\0\5" + bytes(4)))
    _, (publisher,) = request(broker, "GET", "/api/stream/publishers/%2F")
    assert (publisher["publisher_id"], publisher["reference"], publisher["queue"]["name"]) == (
        7,
        "ref",
        "orders",
    )
    _, (consumer,) = request(broker, "GET", "/api/stream/consumers")
    assert (consumer["subscription_id"], consumer["credits"]) == (3, 5)
    client.ask(frame(7, bytes([0, 0, 0, 9, 4]) + text("orders") + b"\0\1\0\0" + bytes(4)))  # no credit
    broker.publish("orders", [b"a", b"b"])
    _, consumers = request(broker, "GET", "/api/stream/consumers")
    assert [(row["offset"], row["offset_lag"]) for row in consumers] == [(2, 0), (0, 2)]
    assert request(broker, "GET", "/api/stream/consumers/other")[0] == 404


def test_what_belongs_to_one_connection_or_stream(broker: RabbitMQStream, client: Connection) -> None:
    broker.create_stream("other")
    client.ask(frame(1, bytes([0, 0, 0, 6, 7]) + text("ref") + text("orders")))
    properties = b"\0\0\0\1" + text("identifier") + text("me")
    client.ask(frame(7, bytes([0, 0, 0, 8, 3]) + text("orders") + b"\0\1\0\5" + properties))
    (row,) = request(broker, "GET", "/api/connections")[1]
    name = quote(row["name"], safe="")
    for path in (
        "/api/stream/publishers/%2F/orders",
        f"/api/stream/connections/%2F/{name}/publishers/",
        "/api/stream/publishers/",
    ):
        assert [each["reference"] for each in request(broker, "GET", path)[1]] == ["ref"]
    for path in ("/api/stream/consumers/%2F/", f"/api/stream/connections/%2F/{name}/consumers"):
        (consumer,) = request(broker, "GET", path)[1]
        assert (consumer["properties"], consumer["connection_details"]["name"]) == (
            {"identifier": "me"},
            row["name"],
        )
    for path in ("/api/stream/publishers/%2F/other", "/api/stream/consumers/%2F/other", "/api/channels"):
        assert request(broker, "GET", path) == (200, [])
    assert request(broker, "PUT", "/api/vhosts/test")[0] == 201
    assert (
        request(broker, "PUT", "/api/queues/test/orders", {"arguments": {"x-queue-type": "stream"}})[0] == 201
    )
    for path in ("/api/stream/publishers/test/orders", "/api/stream/consumers/test/orders"):
        assert request(broker, "GET", path) == (200, [])  # a stream of that name in another virtual host
    for path in ("/api/stream/publishers/%2F/none", "/api/stream/connections/%2F/none/consumers"):
        assert request(broker, "GET", path)[0] == 404
    (consumer,) = request(broker, "GET", "/api/consumers/%2F")[1]
    assert (consumer["consumer_tag"], consumer["activity_status"], consumer["arguments"]) == (
        "stream.subid-3",
        "up",
        {"identifier": "me"},
    )
    assert consumer["channel_details"]["connection_name"] == row["name"]
    (again,) = request(broker, "GET", "/api/queues/%2F/orders")[1]["consumer_details"]
    assert again == consumer
    assert request(broker, "GET", f"/api/connections/{name}")[1]["name"] == row["name"]
    assert request(broker, "GET", "/api/connections/username/guest")[1][0]["user"] == "guest"
    assert request(broker, "DELETE", "/api/connections/username/guest") == (204, None)
    assert client.socket.recv(100) == b""


def test_single_active_consumers_and_those_that_wait(broker: RabbitMQStream, client: Connection) -> None:
    named = text("name") + text("app") + text("single-active-consumer") + text("true")
    for number in (3, 4):
        body = bytes([0, 0, 0, 8, number]) + text("orders") + b"\0\1\0\5" + bytes([0, 0, 0, 2]) + named
        client.ask(frame(7, body))
        if number == 3:
            corr = client.read()[4:8]  # of ConsumerUpdate; the answer lets it read from the start
            client.socket.sendall(frame(0x801A, corr + b"\0\1\0\1"))
    while request(broker, "GET", "/api/consumers")[1][0]["activity_status"] != "single_active":
        pass
    _, rows = request(broker, "GET", "/api/consumers")
    assert [(row["activity_status"], row["active"]) for row in rows] == [
        ("single_active", True),
        ("waiting", False),
    ]


def test_overview_and_nodes() -> None:
    with RabbitMQStream(management=True, nodes=2, advertised_host="localhost") as broker:
        broker.create_stream("orders")
        _, overview = request(broker, "GET", "/api/overview")
        assert overview["object_totals"]["queues"] == 1
        assert (overview["node"], overview["product_name"]) == ("rabbit@localhost", "RabbitMQ")
        assert overview["rabbitmq_version"] == broker.broker.profile.version
        broker.stop_node(2)
        _, rows = request(broker, "GET", "/api/nodes/")
        assert [(row["name"], row["running"]) for row in rows] == [
            ("rabbit@localhost", True),
            ("rabbit2@localhost", False),
        ]
        assert request(broker, "GET", "/api/nodes/rabbit2@localhost")[1]["running"] is False
        assert request(broker, "GET", "/api/nodes/other")[0] == 404
        assert request(broker, "GET", "/api/healthchecks/node/rabbit2@localhost")[0] == 503


def test_health_checks(broker: RabbitMQStream, client: Connection) -> None:
    port = broker.port
    healthy = ["alarms", "local-alarms", "virtual-hosts", "is-in-service", "ready-to-serve-clients"]
    healthy += ["below-node-connection-limit", f"port-listener/{port}", "protocol-listener/stream"]
    for check in healthy:
        status, told = request(broker, "GET", f"/api/health/checks/{check}")
        assert (status, told["status"]) == (200, "ok"), check
    assert request(broker, "GET", "/api/health/checks/port-listener/1")[1]["missing"] == 1
    assert request(broker, "GET", "/api/health/checks/protocol-listener/amqp")[0] == 503
    assert "expected a port" in reason(request(broker, "GET", "/api/health/checks/port-listener/x"))
    broker.call(lambda: setattr(broker.broker, "disk_alarm", True))
    broker.call(lambda: setattr(broker.broker.access, "max_connections", 1))
    assert request(broker, "GET", "/api/health/checks/alarms")[1]["alarms"][0]["resource"] == "disk"
    for check in ("local-alarms", "below-node-connection-limit", "ready-to-serve-clients"):
        assert request(broker, "GET", f"/api/health/checks/{check}")[0] == 503
    broker.stop_node(1)
    assert request(broker, "GET", "/api/health/checks/is-in-service")[0] == 503
    assert request(broker, "GET", "/api/aliveness-test/%2F")[0] == 200
    assert request(broker, "GET", "/api/aliveness-test/none")[0] == 404


def test_the_node_that_streams_need() -> None:
    with RabbitMQStream(management=True, nodes=3) as broker:
        broker.create_stream("orders")
        path = "/api/health/checks/node-is-quorum-critical"
        assert request(broker, "GET", path) == (200, {"status": "ok"})
        broker.stop_node(2)
        status, told = request(broker, "GET", path)
        assert (status, [row["name"] for row in told["queues"]]) == (503, ["orders"])
    with RabbitMQStream(management=True, nodes=2) as broker:  # one of two members is no majority
        broker.create_stream("orders")
        assert request(broker, "GET", path)[0] == 503


def test_pages_and_columns(broker: RabbitMQStream) -> None:
    for name in ("bills", "tea", "teapots"):
        broker.create_stream(name)
    _, page = request(broker, "GET", "/api/queues?page=2&page_size=3&columns=name")
    assert page["items"] == [{"name": "teapots"}]
    assert (page["total_count"], page["page_count"], page["item_count"]) == (4, 2, 1)
    _, page = request(broker, "GET", "/api/queues/%2F?page=1&name=tea&columns=name")
    assert page["items"] == [{"name": "tea"}, {"name": "teapots"}]
    assert page["filtered_count"] == 2
    for query in ("name=TEA", "name=%5ET.A&use_regex=true"):
        _, page = request(broker, "GET", f"/api/queues/%2F?page=1&columns=name&{query}")
        assert page["items"] == [{"name": "tea"}, {"name": "teapots"}], query
    assert "query.name: expected a regular expression" in reason(
        request(broker, "GET", "/api/queues?page=1&use_regex=true&name=(")
    )
    assert request(broker, "GET", "/api/queues?page=7")[1]["error"] == "page_out_of_range"
    assert (
        reason(request(broker, "GET", "/api/queues?page=x"))
        == "query.page: expected a number from 1, got 'x'"
    )


def test_what_is_not_there(broker: RabbitMQStream) -> None:
    nothing = {"error": "Object Not Found", "reason": "Not Found"}
    for path in ("/api/nothing", "/api/queues/none", "/api/queues/%2F/none", "/api/connections/none"):
        assert request(broker, "GET", path) == (404, nothing)
    status, told = request(broker, "POST", "/api/overview", {})
    assert (status, told["reason"]) == (405, "expected GET or HEAD, got POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": login("guest", "wrong")}, 401),
        ({"Authorization": "nonsense"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
    ],
)
def test_strangers_and_web_pages_are_kept_out(
    broker: RabbitMQStream, headers: dict[str, str], status: int
) -> None:
    assert request(broker, "GET", "/api/overview", None, **headers)[0] == status


def test_overview(broker: RabbitMQStream, client: Connection) -> None:
    """What client libraries and their tests read of it: which server it is, and how much there is."""
    status, overview = request(broker, "GET", "/api/overview")
    assert (status, overview["product_name"], overview["rabbitmq_version"]) == (200, "RabbitMQ", "4.3.6")
    assert overview["node"] == overview["cluster_name"] == "rabbit@127.0.0.1"
    assert (overview["object_totals"]["connections"], overview["object_totals"]["queues"]) == (1, 1)
    client.close()
    broker.create_stream("bills")
    broker.wait_for(kind="closed")
    totals = request(broker, "GET", "/api/overview")[1]["object_totals"]
    assert (totals["connections"], totals["queues"]) == (0, 2)


def test_it_goes_with_the_fake() -> None:
    with RabbitMQStream(management=True) as broker:
        port = int(broker.urls["management"].rpartition(":")[2])
        socket.create_connection((broker.host, port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((broker.host, port))


def test_patterns_without_an_end_hold_nobody_up(broker: RabbitMQStream) -> None:
    for number in range(20):
        broker.create_stream("a" * 60 + f"!{number}!")
    begun = time.process_time()
    evil = {"pattern": "(a+)+$", "definition": {"max-age": "1h"}, "apply-to": "streams"}
    assert request(broker, "PUT", "/api/policies/%2F/slow", evil)[0] == 201
    rights = dict.fromkeys(("configure", "write", "read"), "(a+)+$")
    assert request(broker, "PUT", "/api/users/bob", {"password": PASSWORD, "tags": "management"})[0] == 201
    assert request(broker, "PUT", "/api/permissions/%2F/bob", rights)[0] == 201
    assert request(broker, "GET", "/api/queues?page=1&use_regex=true&name=(a%2B)%2B%24")[1]["items"] == []
    bob = broker.broker.access.users["bob"]
    assert not broker.call(bob.may, "configure", "/", "a" * 60 + "!")
    assert time.process_time() - begun < 1  # of which a search used to take years
