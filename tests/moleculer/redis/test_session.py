"""What the Redis server answers; ``vectors/redis-7.0.15*.json`` has what redis-server 7.0.15 answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.moleculer.bench import Bench

VECTORS = Path(__file__).parents[1] / "vectors"


def measured(name: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = json.loads((VECTORS / name).read_text("utf-8"))
    return found


OPEN, CLOSED = measured("redis-7.0.15.json"), measured("redis-7.0.15-password.json")


def answer(said: bytes, password: str = "", *, byte_by_byte: bool = False) -> str:
    bench = Bench("redis", password=password)
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


def command(*words: str) -> bytes:
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])


def test_info_is_what_clients_look_at_first() -> None:
    text = answer(command("info"))
    assert "redis_version:7.0.15\r\n" in text
    assert "loading:0\r\n" in text
    assert "# Server" not in answer(command("INFO", "clients"))


def test_messages_go_to_channels_first_and_then_to_patterns() -> None:
    bench = Bench("redis")
    ears, mouth = bench.connect(), bench.connect()
    ears.say(command("PSUBSCRIBE", "n*", "news.[ab]?"), command("SUBSCRIBE", "news.a1"))
    assert mouth.say(command("PUBLISH", "news.a1", "x")) == b":3\r\n"
    kinds = re.findall(rb"\$\d+\r\n(p?message)\r\n", ears.take())
    assert kinds == [b"message", b"pmessage", b"pmessage"]
    assert mouth.say(command("PUBLISH", "other", "x")) == b":0\r\n"


def test_what_a_client_listened_to_ends_with_it() -> None:
    bench = Bench("redis")
    ears = bench.connect()
    ears.say(command("SUBSCRIBE", "a"), command("PSUBSCRIBE", "a*"))
    assert len(bench.fake.broker.bus.subscriptions) == 2
    ears.leave()
    assert len(bench.fake.broker.bus.subscriptions) == 0


def test_a_node_is_known_on_both_of_its_connections() -> None:
    bench = Bench("redis")
    ears, mouth = bench.connect(), bench.connect()
    ears.say(command("subscribe", "MOL.RES.n1"))
    mouth.say(command("publish", "MOL.DISCOVER", '{"ver":"4","sender":"n1"}'))
    assert [ears.connection.peer, mouth.connection.peer] == ["n1", "n1"]
    assert mouth.session.answers_on() is ears.connection


def test_passwords_stay_out_of_the_journal() -> None:
    bench = Bench("redis", password="hush")
    bench.connect().say(command("AUTH", "hush"), command("HELLO", "3", "AUTH", "default", "hush"))
    assert "hush" not in str(bench.fake.journal.records())
