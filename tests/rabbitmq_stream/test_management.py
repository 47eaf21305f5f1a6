"""The management HTTP API in RabbitMQ's shape."""

from __future__ import annotations

import base64
import json
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import pytest

from fakebrokers import RabbitMQStream
from tests.benchmarks.stream_load import Connection, frame, text

GUEST = base64.b64encode(b"guest:guest").decode()


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


def request(
    broker: RabbitMQStream, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    wanted = {"Authorization": f"Basic {GUEST}", **headers}
    asked = urllib.request.Request(broker.urls["management"] + path, method=method, data=data, headers=wanted)
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except HTTPError as error:
        with error:
            return error.code, error.read()


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
    assert request(broker, "GET", "/api/stream/consumers/other") == (200, [])


def test_streams_are_queues(broker: RabbitMQStream) -> None:
    broker.publish("orders", [b"1", b"2"])
    status, row = request(broker, "GET", "/api/queues/%2F/orders")
    assert (status, row["type"], row["messages"]) == (200, "stream", 2)
    stream = {"arguments": {"x-queue-type": "stream", "x-max-age": "1h"}}
    assert request(broker, "PUT", "/api/queues/%2F/bills", stream)[0] == 201
    assert request(broker, "PUT", "/api/queues/%2F/bills", stream)[0] == 204
    assert broker.stream_names == ["orders", "bills"]
    assert request(broker, "DELETE", "/api/queues/%2F/bills")[0] == 204
    assert request(broker, "DELETE", "/api/queues/%2F/bills")[0] == 404
    assert request(broker, "PUT", "/api/queues/%2F/classic", {})[0] == 400


def test_super_streams_are_exchanges_with_bindings(broker: RabbitMQStream) -> None:
    node = broker.nodes[0]
    broker.call(
        lambda: broker.broker.create_super_stream("/", "invoices", ["i-0", "i-1"], ["a", "b"], {}, node)
    )
    assert request(broker, "GET", "/api/exchanges/%2F/invoices")[1]["arguments"] == {"x-super-stream": True}
    _, rows = request(broker, "GET", "/api/exchanges/%2F/invoices/bindings/source")
    assert [(row["routing_key"], row["destination"]) for row in rows] == [("a", "i-0"), ("b", "i-1")]
    assert len(request(broker, "GET", "/api/bindings")[1]) == 2


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Basic " + base64.b64encode(b"guest:wrong").decode()}, 401),
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
    assert overview["node"] == overview["cluster_name"] == "rabbit@node1"
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
