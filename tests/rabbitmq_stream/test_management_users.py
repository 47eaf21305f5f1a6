"""Virtual hosts, users, permissions and limits."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from tests.benchmarks.stream_load import Connection
from tests.marked import PASSWORD
from tests.rabbitmq_stream.http import login, reason, request

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def broker() -> Iterator[RabbitMQStream]:
    with RabbitMQStream(management=True) as broker:
        yield broker


def test_virtual_hosts(broker: RabbitMQStream) -> None:
    """Whoever makes one may do everything there."""
    assert request(broker, "PUT", "/api/vhosts/test")[0] == 201
    assert request(broker, "PUT", "/api/vhosts/test/", {"description": "of tests"})[0] == 204
    assert [row["name"] for row in request(broker, "GET", "/api/vhosts/")[1]] == ["/", "test"]
    assert request(broker, "GET", "/api/vhosts/test")[1]["cluster_state"] == {"rabbit@127.0.0.1": "running"}
    assert request(broker, "GET", "/api/vhosts/test/permissions")[1] == [
        {"user": "guest", "vhost": "test", **ALL}
    ]
    stream = {"arguments": {"x-queue-type": "stream"}}
    assert request(broker, "PUT", "/api/queues/test/orders", stream)[0] == 201
    assert request(broker, "DELETE", "/api/vhosts/test") == (204, None)
    assert request(broker, "DELETE", "/api/vhosts/test")[0] == 404
    assert request(broker, "GET", "/api/queues") == (200, [])
    assert request(broker, "GET", "/api/permissions")[1] == [{"user": "guest", "vhost": "/", **ALL}]
    assert reason(request(broker, "PUT", "/api/vhosts/x", [1])) == "body: expected an object, got list"


def test_a_deleted_virtual_host_ends_its_connections(broker: RabbitMQStream) -> None:
    client = Connection(broker.host, broker.port)
    assert request(broker, "DELETE", "/api/vhosts/%2F") == (204, None)
    assert client.socket.recv(1) == b""
    client.close()


def test_users(broker: RabbitMQStream) -> None:
    path = "/api/users/bob"
    assert request(broker, "PUT", path, {"password": PASSWORD, "tags": "monitoring,management"})[0] == 201
    assert request(broker, "PUT", path, {"password": PASSWORD, "tags": ["monitoring"]})[0] == 204
    _, row = request(broker, "GET", path)
    hashed = base64.b64decode(row.pop("password_hash"))
    assert hashed[4:] == sha256(hashed[:4] + PASSWORD.encode()).digest()
    assert row == {
        **{"name": "bob", "tags": ["monitoring"], "limits": {}},
        **{"hashing_algorithm": "rabbit_password_hashing_sha256"},
    }
    assert request(broker, "GET", "/api/whoami")[1] == {"name": "guest", "tags": ["administrator"]}
    assert request(broker, "GET", "/api/users/bob/permissions") == (200, [])
    assert request(broker, "DELETE", path) == (204, None)
    assert request(broker, "DELETE", path)[0] == 404
    assert request(broker, "GET", path)[0] == 404


def test_a_deleted_user_loses_the_connections(broker: RabbitMQStream) -> None:
    client = Connection(broker.host, broker.port)
    request(broker, "PUT", "/api/users/bob", {"password": PASSWORD, "tags": "administrator"})
    bob = {"Authorization": login("bob", PASSWORD)}
    told = reason(request(broker, "POST", "/api/users/bulk-delete", {"users": ["guest", "eve"]}, **bob))
    assert told == "body.users[1]: expected a user that exists, got 'eve'"
    assert request(broker, "POST", "/api/users/bulk-delete", {"users": ["guest"]}, **bob) == (204, None)
    assert client.socket.recv(1) == b""
    client.close()
    assert [row["name"] for row in request(broker, "GET", "/api/users", **bob)[1]] == ["bob"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "body.tags: expected a value, got nothing"),
        ({"tags": 5}, "body.tags: expected str | array, got int: 5"),
        ({"tags": "", "password": 5}, "body.password: expected str, got int: 5"),
        ({"tags": "", "password_hash": "abc"}, "body.password_hash: expected none"),
    ],
)
def test_users_that_are_refused(broker: RabbitMQStream, body: Any, problem: str) -> None:
    assert reason(request(broker, "PUT", "/api/users/bob", body)).startswith(problem)
    assert request(broker, "GET", "/api/users/bob")[0] == 404


@pytest.mark.parametrize(
    ("tags", "reads", "changes"),
    [("", 401, 401), ("other", 401, 401), ("monitoring", 200, 401), ("administrator", 200, 201)],
)
def test_what_tags_allow(broker: RabbitMQStream, tags: str, reads: int, changes: int) -> None:
    request(broker, "PUT", "/api/users/bob", {"password": PASSWORD, "tags": tags})
    bob = {"Authorization": login("bob", PASSWORD)}
    assert request(broker, "GET", "/api/overview", **bob)[0] == reads
    assert request(broker, "PUT", "/api/vhosts/test", **bob)[0] == changes
    assert request(broker, "GET", "/api/users", **bob)[0] == min(changes, 401) - (changes == 201)


def test_a_user_without_password_does_not_log_in(broker: RabbitMQStream) -> None:
    request(broker, "PUT", "/api/users/bob", {"tags": "administrator"})
    assert request(broker, "GET", "/api/overview", Authorization=login("bob", ""))[0] == 401


def test_permissions(broker: RabbitMQStream) -> None:
    request(broker, "PUT", "/api/users/bob", {"password": PASSWORD, "tags": "management"})
    path = "/api/permissions/%2F/bob"
    rights = {"configure": "", "write": "^w", "read": ".*"}
    assert request(broker, "GET", path)[0] == 404
    assert request(broker, "PUT", path, rights)[0] == 201
    assert request(broker, "PUT", path, rights)[0] == 204
    assert request(broker, "GET", path)[1] == {"user": "bob", "vhost": "/", **rights}
    bob = broker.broker.access.users["bob"]
    assert (bob.may("write", "/", "wine"), bob.may("configure", "/", "wine")) == (True, False)
    assert len(request(broker, "GET", "/api/permissions/")[1]) == 2
    assert request(broker, "DELETE", path) == (204, None)
    assert request(broker, "DELETE", path)[0] == 404
    stream = {"arguments": {"x-queue-type": "stream"}}
    status, told = request(broker, "PUT", "/api/queues/%2F/x", stream, Authorization=login("bob", PASSWORD))
    assert (status, told["reason"]) == (401, "User not authorised to access virtual host")


def test_permissions_that_are_refused(broker: RabbitMQStream) -> None:
    path = "/api/permissions/%2F/guest"
    assert reason(request(broker, "PUT", path, {})) == "body.configure: expected text, got nothing"
    assert "body.read: expected a regular expression" in reason(
        request(broker, "PUT", path, {**ALL, "read": "("})
    )
    for other in ("/api/permissions/none/guest", "/api/permissions/%2F/eve"):
        assert "vhost_or_user_not_found" in reason(request(broker, "PUT", other, ALL))


def test_limits_on_connections(broker: RabbitMQStream) -> None:
    access = broker.broker.access
    assert request(broker, "PUT", "/api/vhost-limits/%2F/max-connections", {"value": 3}) == (204, None)
    assert request(broker, "PUT", "/api/user-limits/guest/max-connections", {"value": "2"}) == (204, None)
    assert (access.virtual_hosts["/"], access.users["guest"].max_connections) == (3, 2)
    assert request(broker, "GET", "/api/vhost-limits/%2F")[1] == [
        {"vhost": "/", "value": {"max-connections": 3}}
    ]
    assert request(broker, "GET", "/api/user-limits")[1] == [
        {"user": "guest", "value": {"max-connections": 2}}
    ]
    assert request(broker, "DELETE", "/api/vhost-limits/%2F/max-connections") == (204, None)
    assert request(broker, "PUT", "/api/user-limits/guest/max-connections", {"value": -1}) == (204, None)
    assert (
        request(broker, "GET", "/api/vhost-limits") == request(broker, "GET", "/api/user-limits") == (200, [])
    )
    assert request(broker, "PUT", "/api/vhost-limits/%2F/max-connections", {"value": 0}) == (204, None)
    assert access.virtual_hosts["/"] == 0  # a limit that lets nobody in
    assert "expected max-connections" in reason(
        request(broker, "PUT", "/api/vhost-limits/%2F/x", {"value": 1})
    )
    assert "body.value" in reason(request(broker, "PUT", "/api/vhost-limits/%2F/max-connections", {}))
