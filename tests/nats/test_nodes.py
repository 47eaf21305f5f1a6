"""Several servers, lame duck mode and logins, without sockets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fakebrokers import NATS
from fakebrokers.errors import UsageError
from fakebrokers.faults import Plan, reply
from fakebrokers.faults.plan import Fault
from fakebrokers.nats.build import lame_duck, say_error
from fakebrokers.nats.session import MAX_PENDING
from tests.bench import Bench, Client

NEWS = b'CONNECT {"verbose":false,"protocol":1,"headers":true,"no_responders":true}\r\n'
QUIET = b'CONNECT {"verbose":false}\r\n'


def open_bench(*faults: Fault, **options: Any) -> Bench:
    """A fake whose nodes listen at made-up ports."""
    fake = NATS(faults=Plan(faults=faults), **options)
    for number, node in enumerate(fake.nodes):
        node.port = 4222 + number
    fake._listeners_of = lambda node: []  # type: ignore[method-assign] # nobody listens here
    return Bench(fake)


def info(said: bytes) -> dict[str, Any]:
    verb, _, text = said.partition(b" ")
    assert verb == b"INFO"
    found: dict[str, Any] = json.loads(text)
    return found


def opened(bench: Bench, node: int = 0, connect: bytes = NEWS) -> Client:
    client = bench.connect(node)
    client.say(connect)
    return client


def test_info_names_all_servers_that_run_its_own_first() -> None:
    bench = open_bench(nodes=2)
    first, second = info(bench.connect(0).take()), info(bench.connect(1).take())
    assert first["connect_urls"] == ["127.0.0.1:4222", "127.0.0.1:4223"]
    assert second["connect_urls"] == ["127.0.0.1:4223", "127.0.0.1:4222"]
    assert first["cluster"] == second["cluster"] and first["server_id"] != second["server_id"]
    assert "connect_urls" not in info(open_bench().connect().take())


def test_who_wants_news_is_told_of_a_server_that_goes_and_comes() -> None:
    bench = open_bench(nodes=2)
    curious, other, gone = opened(bench), opened(bench, connect=QUIET), opened(bench, 1)
    for client in (curious, other, gone):
        client.take()
    bench.fake.stop_node(2)
    assert info(curious.take())["connect_urls"] == ["127.0.0.1:4222"]
    assert (other.take(), gone.take(), bool(gone.ended)) == (b"", b"", True)
    bench.fake.start_node(2)
    assert info(curious.take())["connect_urls"] == ["127.0.0.1:4222", "127.0.0.1:4223"]


def test_a_message_reaches_listeners_at_another_server() -> None:
    bench = open_bench(nodes=2)
    here, there = opened(bench), opened(bench, 1)
    there.say(b"SUB a 1\r\n")
    there.take()
    here.say(b"PUB a 1\r\nx\r\n")
    assert there.take() == b"MSG a 1 1\r\nx\r\n"


def test_a_lame_duck_tells_that_it_goes_and_goes_ten_seconds_later() -> None:
    bench = open_bench(lame_duck(role="publish", nth=1), nodes=2)
    client, other = opened(bench), opened(bench, 1)
    client.take()
    told = info(client.say(b"PUB a 1\r\nx\r\n"))
    assert (told["ldm"], told["connect_urls"]) == (True, ["127.0.0.1:4223"])
    client.say(b"PING\r\n")
    bench.advance(9.9)
    assert not client.ended
    bench.advance(0.2)
    assert client.ended and not other.ended
    bench.check()


def test_a_duck_that_is_started_again_stays() -> None:
    bench = open_bench(nodes=2)
    client = opened(bench)
    bench.fake.lame_duck(1)
    bench.fake.start_node(1)
    bench.advance(30.0)
    assert not client.ended


@pytest.mark.parametrize("fault", [lame_duck(kind="Info"), say_error("x", direction="out")], ids=str)
def test_a_fault_for_what_it_says_itself_comes_to_an_end(fault: Fault) -> None:
    bench = open_bench(fault, nodes=2)
    client = opened(bench)
    client.say(b"PING\r\nPUB a 1\r\nx\r\n")
    bench.check()


def test_an_error_by_fault_ends_the_connection() -> None:
    bench = open_bench(say_error("User Authentication Expired", role="publish", nth=2))
    client = opened(bench)
    client.take()
    assert client.say(b"PUB a 1\r\nx\r\n") == b""
    assert client.say(b"PUB a 1\r\nx\r\n") == b"-ERR 'User Authentication Expired'\r\n"
    assert client.ended


REFUSALS = {
    b"PUB a 1\r\nx\r\n": b"-ERR 'Permissions Violation for Publish to \"a\"'\r\n",
    b"SUB b 1\r\n": b"-ERR 'Permissions Violation for Subscription to \"b\"'\r\n",
    b"SUB r 2\r\nPUB a r 1\r\nx\r\n": b"HMSG r 2 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
}


@pytest.mark.parametrize("said", REFUSALS)
def test_what_is_refused(said: bytes) -> None:
    bench = open_bench(reply(503, kind="Pub"), reply(503, kind="Sub", where={"subject": "b"}))
    client = opened(bench)
    client.take()
    assert client.say(said) == REFUSALS[said]


def test_a_slow_consumer_is_cut_off() -> None:
    bench = open_bench()
    slow, other = opened(bench), opened(bench)
    slow.say(b"SUB a 1\r\n")
    slow.connection.set_writable(False, bench.now)
    size = 1024 * 1024
    said = b"PUB a %d\r\n%b\r\n" % (size, b"x" * size)
    for _ in range(MAX_PENDING // size):
        other.say(said)
    assert not slow.ended
    other.say(said)
    assert slow.ended and slow.take().endswith(b"-ERR 'Slow Consumer'\r\n")


def test_numbers_of_nodes() -> None:
    with pytest.raises(UsageError, match="expected 1 node or more, got 0"):
        NATS(nodes=0)
    with pytest.raises(UsageError, match="expected a node from 1 to 1, got 2"):
        NATS().stop_node(2)
