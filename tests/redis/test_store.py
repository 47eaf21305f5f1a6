"""Strings and lists: what redis-server 7.0.15 answered, byte by byte, and what waits, on virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fakebrokers import Redis
from fakebrokers.errors import UsageError
from fakebrokers.faults import Plan, drop, reply
from fakebrokers.redis.build import evict
from fakebrokers.redis.session import MAX_POSTPONED
from tests.bench import Bench, Client
from tests.redis.commands import command

#: Commands in the order in which they were said, and the answers in RESP2 and in RESP3; null: not compared.
MEASURED: list[tuple[str, str | None, str | None]] = json.loads(
    (Path(__file__).parent / "vectors" / "redis-7.0.15-store.json").read_text("utf-8")
)


def two(*faults: Any) -> tuple[Bench, Client, Client]:
    bench = Bench(Redis(faults=Plan(faults=faults)))
    return bench, bench.connect(), bench.connect()


@pytest.mark.parametrize("version", [2, 3])
def test_measured_answers(version: int) -> None:
    bench, client, _ = two()
    client.say(command("HELLO", str(version)))
    for row in MEASURED:
        heard = client.say(command(*row[0].split(" ")))
        if not heard:  # it waits
            bench.advance(2.0)
            heard = client.take()
        expected = row[version - 1]
        assert expected is None or heard == expected.encode("latin-1"), row[0]
    bench.check()
    assert len(MEASURED) > 150


def test_what_expires_goes_by_the_time_of_the_fake() -> None:
    bench, client, _ = two()
    client.say(
        command("SET", "a", "1", "EX", "10"), command("RPUSH", "l", "x"), command("PEXPIRE", "l", "500")
    )
    bench.advance(0.6)
    assert client.say(command("EXISTS", "a", "l")) == b":1\r\n"
    bench.advance(9.3)
    assert client.say(command("TTL", "a")) == b":0\r\n"
    bench.advance(0.2)
    assert client.say(command("GET", "a"), command("DBSIZE")) == b"$-1\r\n:0\r\n"


@pytest.mark.parametrize(
    "said",
    [("SETEX", "a", "10", "v"), ("PSETEX", "a", "10000", "v"), ("SET", "a", "v", "EX", "10")],
    ids=lambda said: said[0],
)
def test_what_is_left_is_rounded_to_seconds(said: tuple[str, ...]) -> None:
    bench, client, _ = two()
    client.say(command(*said))
    for passes, left in ((0.3, 10), (0.3, 9), (0.8, 9), (0.2, 8)):
        bench.advance(passes)
        assert client.say(command("TTL", "a")) == b":%d\r\n" % left
    assert client.say(command("PTTL", "a")) == b":8400\r\n"


def test_who_waits_longest_gets_what_comes() -> None:
    bench, first, second = two()
    third, pusher = bench.connect(), bench.connect()
    assert first.say(command("BLPOP", "a", "b", "0")) == second.say(command("BLPOP", "b", "0")) == b""
    assert third.say(command("BRPOPLPUSH", "b", "c", "0")) == b""
    assert pusher.say(command("RPUSH", "b", "1", "2", "3")) == b":3\r\n"
    assert first.take() == b"*2\r\n$1\r\nb\r\n$1\r\n1\r\n"
    assert second.take() == b"*2\r\n$1\r\nb\r\n$1\r\n2\r\n"
    assert third.take() == b"$1\r\n3\r\n"
    assert pusher.say(command("LRANGE", "c", "0", "-1")) == b"*1\r\n$1\r\n3\r\n"


def test_what_waits_gives_up_and_goes_on_with_what_was_said_meanwhile() -> None:
    bench, client, other = two()
    assert client.say(command("BLPOP", "a", "1.5"), command("PING"), command("BLPOP", "a", "1")) == b""
    bench.advance(1.4)
    assert client.take() == b""
    bench.advance(0.2)
    assert client.take() == b"*-1\r\n+PONG\r\n"
    other.say(command("LPUSH", "a", "x"))
    assert client.take() == b"*2\r\n$1\r\na\r\n$1\r\nx\r\n"
    bench.check()


def test_a_client_that_has_gone_takes_nothing() -> None:
    bench, client, other = two()
    client.say(command("BLPOP", "a", "0"))
    client.leave()
    other.say(command("RPUSH", "a", "x"))
    assert other.say(command("LLEN", "a")) == b":1\r\n"
    assert not bench.fake.broker.waiting


def test_a_client_that_waits_is_not_heard_without_end() -> None:
    bench, client, other = two()
    client.say(command("BLPOP", "a", "0"), *[command("PING")] * (MAX_POSTPONED + 10))
    assert len(client.session._postponed) <= MAX_POSTPONED + 10
    other.say(command("RPUSH", "a", "x"))
    assert client.take().count(b"+PONG") == MAX_POSTPONED + 10
    bench.check()


def test_in_a_transaction_nothing_waits_and_others_see_all_at_once() -> None:
    _, client, other = two()
    assert other.say(command("BLPOP", "a", "0")) == b""
    queued = client.say(command("MULTI"), command("RPUSH", "a", "x"), command("RPUSH", "a", "y"))
    assert (queued, other.take()) == (b"+OK\r\n+QUEUED\r\n+QUEUED\r\n", b"")
    assert client.say(command("EXEC")) == b"*2\r\n:1\r\n:2\r\n"
    assert other.take() == b"*2\r\n$1\r\na\r\n$1\r\nx\r\n"


def test_what_is_not_stored_is_no_part_of_a_transaction() -> None:
    _, client, _ = two()
    client.say(command("MULTI"))
    assert client.say(command("PUBLISH", "a", "x")).startswith(b"-ERR this fake queues only")
    assert client.say(command("ECHO", "x")).startswith(b"-ERR this fake queues only")
    assert client.say(command("EXEC")).startswith(b"-EXECABORT")


def test_a_watched_key_that_changes_ends_the_transaction() -> None:
    _, client, other = two()
    client.say(command("WATCH", "a"), command("MULTI"), command("SET", "b", "1"))
    other.say(command("SET", "a", "1"))
    assert client.say(command("EXEC"), command("EXISTS", "b")) == b"*-1\r\n:0\r\n"


def test_reset_forgets_transaction_and_database_and_a_crash_all_that_is_stored() -> None:
    bench, client, _ = two()
    client.say(command("SELECT", "3"), command("SET", "a", "1"), command("MULTI"))
    assert client.say(command("RESET"), command("GET", "a")) == b"+RESET\r\n$-1\r\n"
    assert client.say(command("SELECT", "3"), command("GET", "a")) == b"+OK\r\n$1\r\n1\r\n"
    client.leave()
    bench.fake.broker.reset()
    assert bench.connect().say(command("SELECT", "3"), command("GET", "a")) == b"+OK\r\n$-1\r\n"


def test_all_keys_come_in_one_page() -> None:
    _, client, _ = two()
    client.say(command("MSET", "a1", "x", "a2", "x", "b", "x"))
    assert client.say(command("SCAN", "0", "MATCH", "a*", "COUNT", "1")) == (
        b"*2\r\n$1\r\n0\r\n*2\r\n$2\r\na1\r\n$2\r\na2\r\n"
    )


def test_a_pattern_that_would_take_long_is_given_up() -> None:
    _, client, _ = two()
    client.say(command("SET", "a" * 5000, "x"))
    assert client.say(command("KEYS", "*a" * 5000 + "b")) == b"*0\r\n"


def test_faults_on_commands_and_answers() -> None:
    _, client, _ = two(
        reply(1, kind="Command", where={"verb": "INCR"}),
        drop(role="confirm", nth=1),
        drop(kind="Reply", nth=3),
    )
    assert client.say(command("INCR", "a")) == b"-ERR refused with code 1\r\n"
    assert client.say(command("PUBLISH", "a", "x")) == b""
    assert client.say(command("SET", "a", "1"), command("GET", "a")) == b"+OK\r\n$1\r\n1\r\n"
    assert client.say(command("GET", "a")) == b""


def test_a_key_is_evicted() -> None:
    bench, client, _ = two(evict("a", kind="Command", where={"verb": "GET"}, nth=2))
    assert client.say(command("SET", "a", "1"), command("GET", "a")) == b"+OK\r\n$1\r\n1\r\n"
    assert client.say(command("GET", "a")) == b"$-1\r\n"
    assert [each.note for each in bench.fake.journal.select(kind="deleted")] == ["a"]


def test_what_tests_do() -> None:
    fake = Redis()
    bench = Bench(fake)
    client = bench.connect()
    assert client.say(command("BLPOP", "l", "0"), command("SUBSCRIBE", "c")) == b""
    assert fake.push("l", "a", b"b") == 2
    bench.engine.flush(bench.now)
    assert client.take().startswith(b"*2\r\n$1\r\nl\r\n$1\r\na\r\n*3")
    fake.store("s", "v", expires_s=1.0)
    assert (fake.messages("l"), fake.value("s"), fake.value("none"), fake.keys) == (
        [b"b"],
        b"v",
        None,
        ["l", "s"],
    )
    assert (fake.publish("c", "x"), fake.publish("d", "x"), fake.subscriptions) == (1, 0, ["c"])
    with pytest.raises(UsageError, match="WRONGTYPE"):
        fake.value("l")
    bench.check()
