"""redis-py, unmodified, against the fake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers import Redis
from fakebrokers.core.frames import Role
from fakebrokers.faults import drop, reply, rst
from fakebrokers.journal import Tap
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD

redis = pytest.importorskip("redis", reason="missing: redis")


@pytest.fixture(params=[2, 3])
def client(fake_redis: Redis, request: pytest.FixtureRequest) -> Iterator[Any]:
    made = redis.Redis(port=fake_redis.port, protocol=request.param, socket_timeout=PATIENCE_S)
    yield made
    made.close()


def test_publish_subscribe_patterns_and_shards(client: Any, fake_redis: Redis) -> None:
    with client.pubsub() as ears:
        ears.subscribe("news")
        ears.psubscribe("n*")
        ears.ssubscribe("s")
        kinds = [ears.get_message(timeout=PATIENCE_S)["type"] for _ in range(3)]
        assert kinds == ["subscribe", "psubscribe", "ssubscribe"]
        assert (client.publish("news", "hello"), fake_redis.publish("next", "by hand")) == (2, 1)
        assert client.spublish("s", "shard") == 1
        heard = [ears.get_message(timeout=PATIENCE_S) for _ in range(4)]
        assert [(each["type"], each["data"]) for each in heard] == [
            ("message", b"hello"),
            ("pmessage", b"hello"),
            ("pmessage", b"by hand"),
            ("smessage", b"shard"),
        ]
    roles = {record.kind: record.role for record in fake_redis.journal.records() if record.frame}
    assert (roles["Publish"], roles["Published"]) == (Role.PUBLISH, Role.CONFIRM)
    assert (roles["Message"], roles["Pmessage"], roles["Subscribe"]) == (
        Role.DELIVER,
        Role.DELIVER,
        Role.OPEN,
    )
    (first, *_) = fake_redis.journal.select(role="deliver", tap=Tap.SENT)
    assert first.keys == ("news",)


def test_strings_counters_and_lists(client: Any, fake_redis: Redis) -> None:
    assert client.set("a", "1") and client.incr("a") == 2 and client.get("a") == b"2"
    assert client.expire("a", 100) and 90 < client.ttl("a") <= 100
    assert client.delete("a", "b") == 1 and client.get("a") is None
    assert client.rpush("l", "x", "y", "z") == 3
    assert [*client.blpop("l", 1)] == [b"l", b"x"]
    assert client.lrange("l", 0, -1) == [b"y", b"z"] == fake_redis.messages("l")
    assert list(client.scan_iter()) == [b"l"]
    with client.pipeline() as pipe:
        assert pipe.set("q", "1").incr("q").lpop("l").execute() == [True, 2, b"y"]


def test_a_pop_waits_for_a_push(client: Any, fake_redis: Redis) -> None:
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.extend(client.blpop("l", 0)))
    thread.start()
    fake_redis.wait_for(kind="Command", count=1, tap=Tap.HEARD)
    assert fake_redis.push("l", "x") == 1
    thread.join(PATIENCE_S)
    assert (got, fake_redis.messages("l")) == ([b"l", b"x"], [])


def test_passwords_and_tls() -> None:
    with Redis(password=PASSWORD, tls=True) as fake:
        assert fake.tls is not None
        client = redis.Redis(
            port=fake.tls_port, password=PASSWORD, ssl=True, ssl_ca_certs=str(fake.tls.ca_file)
        )
        assert client.set("a", "1")
        client.close()
        for shown, error in ((None, "Authentication required"), ("x", "invalid username-password")):
            stranger = redis.Redis(port=fake.port, password=shown, protocol=2)
            with pytest.raises(redis.exceptions.AuthenticationError, match=error):
                stranger.get("a")
            stranger.close()


def test_faults_by_role(client: Any, fake_redis: Redis) -> None:
    fake_redis.faults.add(
        drop(role="deliver", nth=1),
        reply(1, role="publish", where={"channel": "closed"}),
        rst(kind="Command", where={"verb": "INCRBY"}, nth=1, scope="run"),
    )
    with client.pubsub(ignore_subscribe_messages=True) as ears:
        ears.subscribe("news")
        ears.get_message(timeout=PATIENCE_S)
        assert (client.publish("news", "lost"), client.publish("news", "comes")) == (1, 1)
        assert ears.get_message(timeout=PATIENCE_S)["data"] == b"comes"
    with pytest.raises(redis.exceptions.ResponseError, match="refused with code 1"):
        client.publish("closed", "x")
    assert client.incr("n") == 2  # the first one was carried out, and redis-py asks again
