"""What the Redis server answers; ``vectors/redis-7.0.15*.json`` has what redis-server 7.0.15 answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fakebrokers import Redis
from tests.bench import Bench
from tests.marked import PASSWORD, shown_in
from tests.redis.commands import command

VECTORS = Path(__file__).parents[1] / "moleculer" / "vectors"


def measured(name: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = json.loads((VECTORS / name).read_text("utf-8"))
    return found


OPEN, CLOSED = measured("redis-7.0.15.json"), measured("redis-7.0.15-password.json")


def answer(said: bytes, password: str = "", *, byte_by_byte: bool = False) -> str:
    bench = Bench(Redis(password=password))
    client = bench.connect()
    heard = client.say(*[said[at : at + 1] for at in range(len(said))] if byte_by_byte else [said])
    bench.check()
    text = heard.decode("latin-1") + ("<end>" if client.ended else "")
    return re.sub(r"id\r\n:\d+", "id\r\n:1", text)


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("byte_by_byte", [False, True])
def test_measured_answers(name: str, byte_by_byte: bool) -> None:
    said, expected = OPEN[name]
    assert answer(said.encode("latin-1"), byte_by_byte=byte_by_byte) == expected


@pytest.mark.parametrize("name", CLOSED)
def test_measured_answers_where_a_password_is_needed(name: str) -> None:
    said, expected = CLOSED[name]
    assert answer(said.encode("latin-1"), "pw") == expected


def test_info_is_what_clients_look_at_first() -> None:
    text = answer(command("info"))
    assert "redis_version:7.0.15\r\n" in text
    assert "loading:0\r\n" in text
    assert "# Server" not in answer(command("INFO", "clients"))


def test_a_server_that_loads_refuses_what_needs_its_data() -> None:
    bench = Bench(Redis())
    client = bench.connect()
    bench.fake.broker.loading = True
    for refused in ("PING", "GET a", "SET a b", "DBSIZE", "FLUSHALL", "SCAN 0"):
        heard = client.say(command(*refused.split()))
        assert heard == b"-LOADING Redis is loading the dataset in memory\r\n", refused
    for done in (
        "HELLO 3",
        "CLIENT SETNAME a",
        "ECHO a",
        "SELECT 0",
        "PUBLISH a b",
        "MULTI",
        "DISCARD",
        "WATCH a",
    ):
        assert not client.say(command(*done.split())).startswith(b"-"), done
    assert b"loading:1" in client.say(command("INFO", "persistence"))
    assert b"subscribe" in client.say(command("SUBSCRIBE", "a"))
    bench.fake.broker.loading = False
    assert b"PONG" in client.say(command("PING"))


def test_messages_go_to_channels_first_and_then_to_patterns() -> None:
    bench = Bench(Redis())
    ears, mouth = bench.connect(), bench.connect()
    ears.say(command("PSUBSCRIBE", "n*", "news.[ab]?"), command("SUBSCRIBE", "news.a1"))
    assert mouth.say(command("PUBLISH", "news.a1", "x")) == b":3\r\n"
    kinds = re.findall(rb"\$\d+\r\n(p?message)\r\n", ears.take())
    assert kinds == [b"message", b"pmessage", b"pmessage"]
    assert mouth.say(command("PUBLISH", "other", "x")) == b":0\r\n"


def test_what_a_client_listened_to_ends_with_it() -> None:
    bench = Bench(Redis())
    ears = bench.connect()
    ears.say(command("SUBSCRIBE", "a"), command("PSUBSCRIBE", "a*"))
    assert len(bench.fake.broker.subscriptions) == 2
    ears.leave()
    assert len(bench.fake.broker.subscriptions) == 0


def test_passwords_stay_out_of_the_journal() -> None:
    bench = Bench(Redis(password=PASSWORD))
    bench.connect().say(command("AUTH", PASSWORD), command("HELLO", "3", "AUTH", "default", PASSWORD))
    assert not shown_in(str(bench.fake.journal.records()))


def test_sharded_channels_have_names_and_counts_of_their_own() -> None:
    bench = Bench(Redis())
    ears, mouth = bench.connect(), bench.connect()
    ears.say(command("SUBSCRIBE", "a"))
    assert ears.say(command("SSUBSCRIBE", "a")).endswith(b"$1\r\na\r\n:1\r\n")
    assert mouth.say(command("SPUBLISH", "a", "x")) == b":1\r\n"
    assert ears.take() == b"*3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\nx\r\n"
    assert mouth.say(command("PUBSUB", "SHARDNUMSUB", "a")) == b"*2\r\n$1\r\na\r\n:1\r\n"
    assert ears.say(command("SUNSUBSCRIBE")).endswith(b":0\r\n")
    ears.leave()
    assert mouth.say(command("PUBSUB", "SHARDCHANNELS")) == b"*0\r\n"


def test_clients_can_be_killed() -> None:
    bench = Bench(Redis())
    first, second, third = bench.connect(), bench.connect(), bench.connect()
    assert third.say(command("CLIENT", "KILL", "ID", "1")) == b":1\r\n"
    assert third.say(command("CLIENT", "KILL", "127.0.0.1:50001")) == b"+OK\r\n"
    assert [each.ended is not None for each in (first, second, third)] == [True, True, False]
    assert third.say(command("CLIENT", "KILL", "ID", "3")) == b":0\r\n"
    assert third.say(command("CLIENT", "KILL", "ADDR")) == b"-ERR No such client\r\n"


def test_the_list_of_clients_tells_what_they_said_last() -> None:
    bench = Bench(Redis())
    ears, other = bench.connect(), bench.connect()
    ears.say(command("subscribe", "a"))
    told = other.say(command("CLIENT", "LIST")).decode()
    assert re.findall(r"id=(\d+).* sub=(\d+) .*cmd=(\S+)", told) == [
        ("1", "1", "subscribe"),
        ("2", "0", "client|list"),
    ]
