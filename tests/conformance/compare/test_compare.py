"""Comparing two servers: what differs is found, made small, and looked up; the rest is not reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest
from click.testing import CliRunner

from conformance.cli.compare import compare_command
from conformance.compare.compare import Comparer, Difference, fake_for, target_of
from fakebrokers import Moleculer
from fakebrokers.core.dialect import MARK, Command, Known, Login
from fakebrokers.errors import UsageError
from fakebrokers.faults import delay, drop
from fakebrokers.moleculer.protocol import PROTOCOL
from fakebrokers.nats.dialect import NatsDialect
from fakebrokers.rabbitmq_stream.protocol import PROTOCOL as RABBIT

QUIET = Command(0, b'CONNECT {"verbose":false}\r\n', "CONNECT")
OTHER = Command(1, b'CONNECT {"verbose":false}\r\n', "CONNECT")
LISTEN = Command(0, f"SUB {MARK}.a 1\r\n".encode(), "SUB a")
SAY = Command(1, f"PUB {MARK}.a 2\r\nhi\r\n".encode(), "PUB a")
ELSEWHERE = Command(1, f"PUB {MARK}.b 2\r\nhi\r\n".encode(), "PUB b")


@pytest.fixture
def one() -> Iterator[Moleculer]:
    with Moleculer() as bus:
        yield bus


@pytest.fixture
def two() -> Iterator[Moleculer]:
    with Moleculer() as bus:
        yield bus


def differences(
    one: Moleculer, two: Moleculer, *commands: Command, known: tuple[Known, ...] = ()
) -> list[Difference]:
    dialect = NatsDialect()
    dialect.known = known
    return Comparer(dialect, (one.host, one.port), (two.host, two.port), Login()).differences(7, commands)


ALL = (QUIET, OTHER, ELSEWHERE, LISTEN, ELSEWHERE, SAY, ELSEWHERE)


def test_equal_servers_do_not_differ(one: Moleculer, two: Moleculer) -> None:
    assert differences(one, two, *ALL) == []


def test_a_difference_is_made_small(one: Moleculer, two: Moleculer) -> None:
    one.faults.add(drop(kind="Msg"))
    [found] = differences(one, two, *ALL)
    # both are as few as can be: without CONNECT the publisher hears +OK from both
    assert found == Difference(7, ["0: SUB a", "1: PUB a"], "0: nothing", f"0: MSG {MARK}.a 1 b'hi'")


def test_a_known_difference_is_named_and_left_as_it_is(one: Moleculer, two: Moleculer) -> None:
    one.faults.add(drop(kind="Msg"))
    known = (Known("SUB", "", "", "not this one"), Known("PUB", "nothing", "MSG", "it is lost"))
    [found] = differences(one, two, *ALL, known=known)
    assert (found.known, found.commands[-1], len(found.commands)) == ("it is lost", "1: PUB a", 6)


def test_what_does_not_stay_is_none(one: Moleculer, two: Moleculer) -> None:
    one.faults.add(drop(kind="Msg", nth=1, scope="run"))
    assert differences(one, two, *ALL) == []


def test_a_slow_server_is_waited_for(one: Moleculer, two: Moleculer) -> None:
    one.faults.add(delay(0.3, kind="Msg"))
    one.faults.add(delay(0.3, kind="NatsPong"))
    assert differences(one, two, *ALL) == []


def test_a_closed_connection_shows_once(one: Moleculer, two: Moleculer) -> None:
    bad = Command(0, b"FOO\r\n", "FOO")
    one.faults.add(drop(kind="Err"))
    [found] = differences(one, two, QUIET, bad, LISTEN)
    assert found.commands == ["0: FOO"]
    assert (found.fake.endswith(" version, end"), found.real.endswith("Operation', end")) == (True, True)


def test_targets() -> None:
    target = target_of(PROTOCOL, "mqtt://me:p%40ss@example.org")
    assert target == ("mqtt", ("example.org", 1883), ("me", "p@ss"))
    assert target_of(RABBIT, "rabbitmq-stream://localhost:5").address == ("localhost", 5)
    assert target_of(RABBIT, "localhost:5") == target_of(RABBIT, "rabbitmq-stream://localhost:5")
    for url in ("http://localhost", "nats", "nats://localhost:x"):
        with pytest.raises(UsageError, match="expected"):
            target_of(PROTOCOL, url)


def test_the_fake_lets_the_same_clients_in() -> None:
    target = target_of(PROTOCOL, "redis://:secret@127.0.0.1")
    with fake_for(PROTOCOL, target, "real") as one, fake_for(PROTOCOL, target, "real") as two:
        dialect = PROTOCOL.wire("redis").load_dialect()
        addresses = ((one.host, one.port), (two.host, two.port))
        assert Comparer(dialect, *addresses, target.login).run([1, 2]).differences == []
        assert (
            Comparer(dialect, *addresses, Login()).differences(1, dialect.sequence(Random(1), Login())) == []
        )
        assert {record.kind for record in one.journal} >= {"Auth", "RedisError"}


def test_a_wire_without_a_dialect() -> None:
    words = ["--protocol", "pzq", "--target", "pzq://127.0.0.1"]
    with pytest.raises(UsageError, match="cannot be compared"):
        CliRunner().invoke(compare_command, words, standalone_mode=False, catch_exceptions=False)


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(compare_command, ["--protocol", "moleculer", *words], standalone_mode=False)
    assert done.exception is None
    return done.return_value, done.stdout


def test_the_command(two: Moleculer) -> None:
    code, text = run("--target", two.url, "--seeds", "1..2", "--json")
    document = json.loads(text)
    assert (code, document["sequences"], document["differences"]) == (0, 2, [])
    two.faults.add(drop(kind="ServerInfo"))
    code, text = run("--target", two.url, "--seeds", "3")
    assert (code, "1 of them for no known reason" in text) == (1, True)


def test_a_server_that_is_not_there(one: Moleculer) -> None:
    url = one.url
    one.stop()
    assert run("--target", url, "--seeds", "1")[0] == 3
