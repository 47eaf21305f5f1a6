"""Streams as queues, super streams as exchanges with bindings, policies, definitions."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from tests.eventually import PATIENCE_S
from tests.rabbitmq_stream.http import login, reason, request

STREAM = {"arguments": {"x-queue-type": "stream"}}


@pytest.fixture
def broker() -> Iterator[RabbitMQStream]:
    with RabbitMQStream(management=True) as broker:
        broker.create_stream("orders")
        yield broker


def bind(broker: RabbitMQStream, exchange: str, queue: str, **fields: Any) -> tuple[int, Any]:
    return request(broker, "POST", f"/api/bindings/%2F/e/{exchange}/q/{queue}", fields)


def partitions(broker: RabbitMQStream, name: str) -> list[str]:
    return broker.call(lambda: broker.broker.find_super_stream("/", name).partitions)


def test_streams(broker: RabbitMQStream) -> None:
    broker.publish("orders", [b"1", b"2"])
    status, row = request(broker, "GET", "/api/queues/%2F/orders/")
    assert (status, row["type"], row["messages"]) == (200, "stream", 2)
    assert row["node"] == row["leader"] == "rabbit@127.0.0.1"
    path = "/api/queues/%2F/bills"
    wanted = {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-age": "1h"}}
    assert request(broker, "PUT", path, wanted)[0] == 201
    assert request(broker, "PUT", path, wanted)[0] == 204
    assert broker.streams == ["orders", "bills"]
    assert request(broker, "DELETE", path)[0] == 204
    assert request(broker, "DELETE", path)[0] == 404


def test_arguments_are_told_as_they_were_given(broker: RabbitMQStream) -> None:
    given = {
        "x-queue-type": "stream",
        "x-max-length-bytes": 1000,
        "x-max-age": "7D",
        "x-stream-max-segment-size-bytes": 500,
        "x-initial-cluster-size": 1,
        "x-queue-leader-locator": "client-local",
    }
    assert request(broker, "PUT", "/api/queues/%2F/bills", {"arguments": given})[0] == 201
    assert request(broker, "GET", "/api/queues/%2F/bills")[1]["arguments"] == given
    assert request(broker, "GET", "/api/queues/%2F/orders")[1]["arguments"] == STREAM["arguments"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "body.arguments.x-queue-type: expected 'stream'"),
        ([], "body: expected an object, got list"),
        ({"arguments": 5}, "body.arguments: expected object, got int: 5"),
        ({**STREAM, "durable": False}, "body.durable: expected true"),
        ({**STREAM, "durable": 7}, "body.durable: expected bool, got int: 7"),
        ({**STREAM, "auto_delete": "true"}, "body.auto_delete: expected false"),
        (
            {"arguments": {"x-queue-type": "stream", "x-max-length-bytes": "a"}},
            "body.arguments: expected a number",
        ),
        (
            {"arguments": {"x-queue-type": "stream", "x-queue-leader-locator": "a"}},
            "body: expected a name and",
        ),
        (b"{", "body: expected JSON"),
    ],
)
def test_queues_that_are_refused(broker: RabbitMQStream, body: Any, problem: str) -> None:
    assert reason(request(broker, "PUT", "/api/queues/%2F/x", body)).startswith(problem)
    assert broker.streams == ["orders"]


def test_another_queue_of_that_name(broker: RabbitMQStream) -> None:
    other = {"arguments": {"x-queue-type": "stream", "x-max-age": "1h"}}
    told = reason(request(broker, "PUT", "/api/queues/%2F/orders", other))
    assert told.startswith("body.arguments: inequivalent arg for queue 'orders'")
    status, told = request(broker, "PUT", "/api/queues/none/orders", STREAM)
    assert (status, told["reason"]) == (404, "vhost_not_found")


# exchanges and bindings


def test_super_streams_are_exchanges_with_bindings(broker: RabbitMQStream) -> None:
    node = broker.nodes[0]
    broker.call(
        lambda: broker.broker.create_super_stream("/", "invoices", ["i-0", "i-1"], ["a", "b"], {}, node)
    )
    assert request(broker, "GET", "/api/exchanges/%2F/invoices")[1]["arguments"] == {"x-super-stream": True}
    assert [row["name"] for row in request(broker, "GET", "/api/exchanges/")[1]] == ["invoices"]
    _, rows = request(broker, "GET", "/api/exchanges/%2F/invoices/bindings/source")
    assert [(row["routing_key"], row["destination"]) for row in rows] == [("a", "i-0"), ("b", "i-1")]
    _, rows = request(broker, "GET", "/api/bindings")
    assert sorted(row["source"] for row in rows) == ["", "", "", "invoices", "invoices"]
    _, rows = request(broker, "GET", "/api/queues/%2F/i-1/bindings")
    assert sorted(row["source"] for row in rows) == ["", "invoices"]
    assert request(broker, "GET", "/api/exchanges/%2F/invoices/bindings/destination") == (200, [])
    assert request(broker, "PUT", "/api/vhosts/test")[0] == 201
    assert request(broker, "PUT", "/api/queues/test/i-1", STREAM)[0] == 201
    _, (row,) = request(broker, "GET", "/api/queues/test/i-1/bindings")  # of that name elsewhere
    assert (row["source"], row["vhost"]) == ("", "test")


def test_a_super_stream_made_of_an_exchange_and_bindings(broker: RabbitMQStream) -> None:
    """The order counts, as text or as a number; bindings without one come last."""
    exchange = {"type": "direct", "arguments": {"x-super-stream-enabled": "true"}}
    assert request(broker, "PUT", "/api/exchanges/%2F/all", exchange)[0] == 201
    assert request(broker, "PUT", "/api/exchanges/%2F/all", exchange)[0] == 204
    assert request(broker, "GET", "/api/exchanges/%2F/all")[1]["arguments"] == exchange["arguments"]
    for name in ("all-2", "all-1", "all-0", "last-7"):
        broker.create_stream(name)
    order = "x-stream-partition-order"
    assert bind(broker, "all", "last-7", routing_key="7")[0] == 201
    assert bind(broker, "all", "all-2", routing_key="2", arguments={order: "2"})[0] == 201
    assert bind(broker, "all", "all-0", routing_key="0", arguments={order: 0})[0] == 201
    assert bind(broker, "all", "all-1", routing_key="a/b c", arguments={order: "1"})[0] == 201
    assert bind(broker, "all", "all-0", routing_key="0")[0] == 201  # is there already
    assert partitions(broker, "all") == ["all-0", "all-1", "all-2", "last-7"]
    index = [broker.broker.partition_index("/", "all", name) for name in partitions(broker, "all")]
    assert index == [0, 1, 2, 7]
    between = "/api/bindings/%2F/e/all/q/all-1"
    ((row,),) = [request(broker, "GET", between)[1]]
    assert (row["routing_key"], row["properties_key"], row["arguments"]) == ("a/b c", "a%2Fb+c~1", {order: 1})
    assert request(broker, "GET", f"{between}/a%252Fb%2Bc~1")[1] == row
    assert request(broker, "DELETE", f"{between}/a%252Fb%2Bc~1") == (204, None)
    assert request(broker, "DELETE", f"{between}/a%252Fb%2Bc~1")[0] == 404
    assert partitions(broker, "all") == ["all-0", "all-2", "last-7"]
    assert request(broker, "DELETE", "/api/exchanges/%2F/all") == (204, None)
    assert request(broker, "DELETE", "/api/exchanges/%2F/all")[0] == 404
    assert "all-2" in broker.streams


def test_the_place_of_a_binding_is_told(broker: RabbitMQStream) -> None:
    """Tools that keep what they made delete it by the header Location, below the path of the request."""
    request(broker, "PUT", "/api/exchanges/%2F/all", {})
    asked = urllib.request.Request(
        f"{broker.urls['management']}/api/bindings/%2F/e/all/q/orders",
        data=b'{"routing_key": "a/b c"}',
        headers={"Authorization": login("guest", "guest")},
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
        place = answer.headers["Location"]
    assert place == "orders/a%252Fb%2Bc"
    assert request(broker, "DELETE", f"/api/bindings/%2F/e/all/q/{place}") == (204, None)


def test_exchanges_and_bindings_that_are_refused(broker: RabbitMQStream) -> None:
    exchange = "/api/exchanges/%2F/all"
    assert reason(request(broker, "PUT", exchange, {"type": "topic"})).startswith(
        "body.type: expected 'direct'"
    )
    assert request(broker, "PUT", "/api/exchanges/%2F/amq.all", {})[0] == 401
    assert request(broker, "PUT", "/api/exchanges/none/all", {})[0] == 404
    request(broker, "PUT", exchange, {})
    assert bind(broker, "none", "orders")[1]["reason"] == "no exchange 'none' in vhost '/'"
    assert bind(broker, "all", "none")[1]["reason"] == "no queue 'none' in vhost '/'"
    assert reason(bind(broker, "all", "orders", routing_key=5)).startswith("body.routing_key: expected str")
    for order in ("x", -1, True, 1 << 40, {}):
        told = reason(bind(broker, "all", "orders", arguments={"x-stream-partition-order": order}))
        assert told.startswith("body.arguments.x-stream-partition-order: expected a number from 0")
    assert partitions(broker, "all") == []


# policies


def test_a_policy_limits_streams(broker: RabbitMQStream) -> None:
    """Of a stream's own limit and the policy's, the smaller counts; of policies, the most important."""
    path = "/api/policies/%2F/short"
    policy = {"pattern": "^o", "definition": {"max-length-bytes": 2000}, "apply-to": "streams"}
    segments = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 500}
    for name in ("old", "other"):
        assert request(broker, "PUT", f"/api/queues/%2F/{name}", {"arguments": segments})[0] == 201
    assert request(broker, "PUT", path, policy)[0] == 201
    assert request(broker, "PUT", path, {**policy, "pattern": "^ol"})[0] == 204
    assert request(broker, "GET", path)[1] == {
        **{"vhost": "/", "name": "short", "priority": 0},
        **{**policy, "pattern": "^ol"},
    }
    assert request(broker, "PUT", "/api/queues/%2F/older", {"arguments": segments})[0] == 201
    for name in ("old", "older", "other"):
        for _ in range(40):
            broker.publish(name, [b"x" * 200])
    kept = {name: len(broker.messages(name)) for name in ("old", "older", "other")}
    assert kept["other"] == 40 and kept["old"] == kept["older"] < 15
    row = request(broker, "GET", "/api/queues/%2F/old")[1]
    assert (row["policy"], row["effective_policy_definition"]) == ("short", {"max-length-bytes": 2000})
    request(
        broker, "PUT", "/api/policies/%2F/long", {**policy, "priority": 1, "definition": {"max-age": "1h"}}
    )
    assert request(broker, "GET", "/api/queues/%2F/old")[1]["policy"] == "long"
    for _ in range(40):
        broker.publish("old", [b"x" * 200])
    assert len(broker.messages("old")) >= 40
    assert [row["name"] for row in request(broker, "GET", "/api/policies/%2F/")[1]] == ["short", "long"]
    assert request(broker, "DELETE", path)[0] == 204
    assert request(broker, "DELETE", path)[0] == 404
    assert request(broker, "GET", path)[0] == 404


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"pattern": "("}, "body.pattern: expected a regular expression, got '('"),
        ({"definition": {}}, "body.definition: expected at least one of max-age, max-length-bytes"),
        ({"definition": {"ha-mode": "all"}}, "body.definition.ha-mode: expected one of"),
        ({"definition": {"max-age": "1x"}}, "body.definition.max-age: expected an age"),
        ({"definition": {"max-length-bytes": -1}}, "body.definition.max-length-bytes: expected a number"),
        ({"apply-to": "nothing"}, "body.apply-to: expected one of all"),
        ({"priority": "x"}, "body.priority: expected int"),
    ],
)
def test_policies_that_are_refused(broker: RabbitMQStream, changed: Any, problem: str) -> None:
    policy = {"pattern": "^o", "definition": {"max-age": "1h"}} | changed
    assert reason(request(broker, "PUT", "/api/policies/%2F/p", policy)).startswith(problem)
    assert request(broker, "GET", "/api/policies") == (200, [])


# definitions


def test_definitions_can_be_taken_elsewhere(broker: RabbitMQStream) -> None:
    broker.create_stream("all-0", max_age="1h")
    request(broker, "PUT", "/api/exchanges/%2F/all", {"arguments": {"x-super-stream": True}})
    bind(broker, "all", "all-0", routing_key="0", arguments={"x-stream-partition-order": 0})
    request(broker, "PUT", "/api/vhosts/test")
    request(broker, "PUT", "/api/policies/%2F/p", {"pattern": "^o", "definition": {"max-age": "1h"}})
    request(broker, "PUT", "/api/permissions/test/guest", {"configure": "", "write": "^w", "read": ".*"})
    _, told = request(broker, "GET", "/api/definitions")
    assert {part: len(told[part]) for part in ("queues", "exchanges", "bindings", "vhosts", "policies")} == {
        **{"queues": 2, "exchanges": 1, "bindings": 1, "vhosts": 2, "policies": 1}
    }
    with RabbitMQStream(management=True) as other:
        assert request(other, "POST", "/api/definitions", told) == (204, None)
        assert request(other, "GET", "/api/definitions")[1] == told
        _, here = request(other, "GET", "/api/definitions/%2F")
        assert [row["name"] for row in here["queues"]] == ["orders", "all-0"]
        assert "users" not in here and "vhost" not in here["queues"][0]
        assert request(other, "POST", "/api/definitions/test", {"queues": here["queues"]}) == (204, None)
        assert ("test", "all-0") in other.broker.streams


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "body: expected an object, got list"),
        ({"queues": {}}, "body.queues: expected a list, got dict"),
        ({"queues": [5]}, "body.queues[0]: expected an object, got int"),
        ({"queues": [{"name": "a"}]}, "body.queues[0].arguments.x-queue-type: expected 'stream'"),
        ({"queues": [{"name": "a", "vhost": "none"}]}, "body.queues[0].vhost: expected a virtual host"),
        (
            {"users": [{"name": "a", "password_hash": "x", "tags": []}]},
            "body.users[0].password: expected one",
        ),
        ({"bindings": [{"source": "a", "destination": "b"}]}, "body.bindings[0]: expected an exchange and"),
        ({"permissions": [{"user": "guest"}]}, "body.permissions[0].configure: expected text, got nothing"),
    ],
)
def test_definitions_that_are_refused(broker: RabbitMQStream, document: Any, problem: str) -> None:
    assert reason(request(broker, "POST", "/api/definitions", document)).startswith(problem)
