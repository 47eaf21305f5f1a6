"""Faults on packets inside messages, and on the bus as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fakebrokers import Moleculer
from fakebrokers.core.session import HangUp
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.faults import Fault, Plan, fault, inject, load_plan, reorder, reply, rst
from fakebrokers.moleculer.faults import (
    EFFECTS,
    BreakPacket,
    DuplicateNode,
    HealBus,
    PartitionBus,
    break_packet,
    foreign_version,
    late_chunk,
    late_info,
    lose_chunk,
    lose_disconnect,
    lose_heartbeats,
    orphan_response,
    reorder_chunks,
    repeat_chunk,
    slow_bus,
)
from fakebrokers.moleculer.protocol import PROTOCOL
from fakebrokers.moleculer.services import Stream
from tests.moleculer.bench import Bench
from tests.moleculer.test_nodes import Peer


def topics(heard: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [topic.removeprefix("MOL.") for topic, _ in heard]


def two(*faults: Fault) -> tuple[Bench, Peer, Peer]:
    bench = Bench("nats", *faults)
    return bench, Peer(bench, "a"), Peer(bench, "b")


def test_heartbeats_of_one_node_are_lost() -> None:
    bench, a, b = two(lose_heartbeats(peer="a"))
    a.say("MOL.HEARTBEAT", cpu=1)
    a.say("MOL.DISCOVER")
    assert topics(b.heard()) == ["DISCOVER"]
    b.say("MOL.HEARTBEAT", cpu=1)
    assert topics(a.heard()) == ["HEARTBEAT"]
    assert bench.engine.injector.find("fault 1").fired == 1


def test_nobody_hears_of_the_end_of_a_node() -> None:
    _, a, b = two(lose_disconnect())
    a.say("MOL.DISCONNECT")
    assert b.heard() == []


def test_an_info_comes_late() -> None:
    bench, a, b = two(late_info(2.0, direction="in"))
    a.say("MOL.INFO", services=[])
    a.say("MOL.PING")
    assert topics(b.heard()) == ["PING"]
    bench.advance(2.0)
    assert topics(b.heard()) == ["INFO"]


STREAMS = {
    "missing": (lose_chunk(1), [0, 2, 3]),
    "twice": (repeat_chunk(1), [0, 1, 1, 2, 3]),
    "late": (late_chunk(1, 1.0), [0, 2, 3, 1]),
    "reordered": (reorder_chunks(2), [0, 2, 1, 3]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_chunks_of_a_stream(name: str) -> None:
    what, expected = STREAMS[name]
    bench = Bench("nats", what)
    bench.fake.node("fake", {"s": {"down": lambda ctx: Stream([b"1", b"2"])}})
    peer = Peer(bench)
    heard = peer.say("MOL.REQ.fake", id="1", action="s.down")
    bench.advance(1.0)
    heard += peer.heard()
    assert [packet["seq"] for _, packet in heard] == expected


@pytest.mark.parametrize("window", [2, 3, 5])
def test_answers_change_places(window: int) -> None:
    bench = Bench("nats", reorder(window, kind="Response", direction="out"))
    bench.fake.node("fake", {"s": {"a": lambda ctx: ctx.params}})
    peer = Peer(bench)
    numbers = range(window)
    heard = [peer.say("MOL.REQ.fake", id=f"{n}", action="s.a", params=n) for n in numbers]
    assert heard[:-1] == [[]] * (window - 1)
    assert [packet["data"] for _, packet in heard[-1]] == [*reversed(numbers)]
    assert not bench.engine.errors


def test_an_orphan_response() -> None:
    bench = Bench("nats", orphan_response(nth=1))
    bench.fake.node("fake", {"s": {"a": lambda ctx: 1}})
    assert Peer(bench).ask("s.a")["id"] == "nobody-asked"


def test_a_packet_of_another_protocol() -> None:
    _, a, b = two(foreign_version("3", kind="Info", direction="out", peer="b"))
    a.say("MOL.INFO", services=[])
    ((_, packet),) = b.heard()
    assert packet["ver"] == "3"


@pytest.mark.parametrize(
    ("how", "payload"),
    [
        ("empty", b""),
        ("null", b"null"),
        ("list", b"[1,2]"),
        ("number", b"17"),
        ("cut", b'{"cpu":1,"ver":"'),
        ("other", b"\x83\xa3cpu\x01\xa3ver\xa14\xa6sender\xa1a"),
    ],
)
def test_what_is_inside_is_no_packet(how: str, payload: bytes) -> None:
    _, a, b = two(break_packet(how, kind="Heartbeat", direction="in"))
    said = b'{"cpu":1,"ver":"4","sender":"a"}'
    a.client.say(b"PUB MOL.HEARTBEAT %d\r\n%b\r\n" % (len(said), said))
    size = len(payload)
    assert b.client.take() == b"MSG MOL.HEARTBEAT 10 %d\r\n%b\r\n" % (size, payload)


def test_an_answer_that_nobody_gave() -> None:
    what = inject(
        kind="Response", fields={"id": "7", "success": True, "sender": "x"}, on="ready", place="after"
    )
    bench = Bench("nats", what)
    peer = bench.connect()
    peer.take()
    said = b'CONNECT {"verbose":false}\r\n'
    assert peer.say(said) == b'MSG MOL.RES 0 38\r\n{"id":"7","success":true,"sender":"x"}\r\n'


def test_an_error_in_place_of_the_answer() -> None:
    bench = Bench("nats", reply(429, kind="Request"))
    node = bench.fake.node("fake", {"s": {"a": lambda ctx: 1}})
    peer = Peer(bench)
    answer = peer.ask("s.a")
    assert (answer["success"], answer["error"]["code"]) == (False, 429)
    assert node.requests == []


@pytest.mark.parametrize(("one_way", "back"), [(False, []), (True, ["PING"])])
def test_nodes_that_do_not_hear_each_other(one_way: bool, back: list[str]) -> None:
    bench, a, b = two(fault(PartitionBus(("a",), ("b",), one_way=one_way), kind="Discover"))
    third = Peer(bench, "c")
    a.say("MOL.DISCOVER")
    assert (topics(b.heard()), topics(third.heard())) == ([], ["DISCOVER"])
    b.say("MOL.PING")
    assert topics(a.heard()) == back
    bench.fake.heal()
    a.say("MOL.PING")
    assert topics(b.heard()) == ["PING"]


def test_a_partition_from_everybody_for_some_time() -> None:
    bench, a, b = two()
    node = bench.fake.node("fake")
    a.heard(), b.heard()
    bench.fake.partition(["a"], for_s=2.0)
    a.say("MOL.PING.fake")
    a.say("MOL.PING")
    assert (node.received, b.heard()) == ([], [])
    bench.advance(2.0)
    assert topics(a.say("MOL.PING.fake")) == ["PONG.a"]
    notes = [
        (record.kind, record.note) for record in bench.fake.journal if record.kind in ("partition", "healed")
    ]
    assert notes == [("partition", "a <-> all others"), ("healed", "")]


@pytest.mark.parametrize("transporter", ["redis", "mqtt"])
def test_partitions_on_other_buses(transporter: str) -> None:
    bench = Bench(transporter)
    first, second = bench.fake.node("one"), bench.fake.node("two")
    assert list(first.peers) == ["two"]
    bench.fake.partition(["one"], ["two"])
    before = len(second.received)
    first.heartbeat()
    assert len(second.received) == before
    bench.fake.heal()
    first.heartbeat()
    assert len(second.received) == before + 1


def test_healing_is_an_effect_too() -> None:
    plan = (fault(PartitionBus(("a",)), kind="Discover"), fault(HealBus(), kind="Info"))
    _, a, b = two(*plan)
    a.say("MOL.DISCOVER")
    a.say("MOL.INFO")
    a.say("MOL.PING")
    assert topics(b.heard()) == ["INFO", "PING"]


def test_another_node_with_the_same_id() -> None:
    bench, a, _ = two(fault(DuplicateNode(), kind="Heartbeat", direction="in"))
    a.say("MOL.INFO", instanceID="mine")
    a.client.take()
    heard = a.client.say(b'PUB MOL.HEARTBEAT 24\r\n{"ver":"4","sender":"a"}\r\n')
    assert heard.count(b"MSG MOL.INFO ") == 1
    assert b'"instanceID":"mine"' not in heard
    assert b'"sender":"a"' in heard
    assert len(bench.fake.broker.bus.subscriptions) == 24  # those of the two real nodes


def test_a_slow_bus() -> None:
    bench, a, b = two()
    bench.fake.faults.add(slow_bus(0.5))
    a.say("MOL.PING")
    assert b.heard() == []
    bench.advance(0.5)
    assert topics(b.heard()) == ["PING"]


def test_the_bus_restarts_and_fake_nodes_are_still_there() -> None:
    bench, a, _ = two()
    bench.fake.node("fake", {"s": {"a": lambda ctx: 1}})
    bench.fake.crash(keep_state=False)
    assert a.client.ended
    assert Peer(bench, "a").ask("s.a")["data"] == 1


def test_plans_can_be_written_down(tmp_path: Path) -> None:
    plan = Plan(faults=(break_packet(kind="Info"), fault(PartitionBus(("a",), for_s=1.0), kind="Request")))
    path = tmp_path / "plan.toml"
    path.write_text(plan.to_toml(), "utf-8")
    assert load_plan(path, PROTOCOL) == plan
    assert {type(effect) for each in plan.faults for effect in each.effects} <= set(EFFECTS)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(PlanError, match="expected nodes in senders or receivers"):
        fault(PartitionBus())
    with pytest.raises(PlanError, match="expected one of JSON"):
        fault(BreakPacket(how="other", serializer="XML"), kind="Info")
    with pytest.raises(UsageError, match="have no bus"):
        Bench("tcp").fake.heal()


@pytest.mark.parametrize("transporter", ["nats", "redis", "mqtt", "tcp"])
def test_a_connection_may_end_as_it_is_accepted(transporter: str) -> None:
    bench = Bench(transporter, rst(on="accept"))
    assert [bench.connect().ended for _ in range(3)] == [HangUp.RST] * 3
    bench.check()


def test_another_node_has_to_be_named_where_there_is_no_connection() -> None:
    with pytest.raises(PlanError, match=r'node: expected the id of a node: on = "begin" has no connection'):
        Moleculer(faults=[fault(DuplicateNode(), on="begin")])
    Moleculer(faults=[fault(DuplicateNode(node="a"), on="begin")])
