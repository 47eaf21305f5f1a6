"""Fake nodes, as another node on the bus sees them (docs/protocols/moleculer.md, 3 and 4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import (
    NO_ANSWER,
    Context,
    MoleculerError,
    Service,
    Stream,
    error_of,
    matches,
)
from tests.moleculer.bench import Bench

V4 = {"ver": "4", "sender": "real"}
EVENTS = {"order.*": {}, "x": {"group": "g"}}
INFO = {
    "services": [{"name": "shop", "actions": {"shop.buy": {}}, "events": EVENTS}],
    "instanceID": "i1",
    "seq": 2,
    **V4,
}


class Peer:
    """A real node's end of a NATS connection: topics and packets."""

    def __init__(self, bench: Bench, id: str = "real", ver: str = "4") -> None:
        self.bench = bench
        self.signature = {"ver": ver, "sender": id}
        self.client = bench.connect()
        topics = [f"MOL.{word}.{id}" for word in ("EVENT", "REQ", "RES", "DISCOVER", "INFO", "PING", "PONG")]
        topics += [f"MOL.{word}" for word in ("DISCOVER", "INFO", "DISCONNECT", "HEARTBEAT", "PING")]
        lines = [f"SUB {topic} {number}\r\n" for number, topic in enumerate(topics)]
        self.client.say(b'CONNECT {"verbose":false}\r\n' + "".join(lines).encode())
        self.client.take()

    def say(self, topic: str, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
        """Publish a packet; what came then, but for its own."""
        return self.say_raw(topic, json.dumps({**fields, **self.signature}).encode())

    def say_raw(self, topic: str, payload: bytes) -> list[tuple[str, dict[str, Any]]]:
        said = b"PUB %b %d\r\n%b\r\n" % (topic.encode(), len(payload), payload)
        self.client.heard = self.client.say(said)
        return self.heard()

    def heard(self) -> list[tuple[str, dict[str, Any]]]:
        """Topics and packets of others, in order."""
        self.client.heard, data = b"", self.client.heard
        found = []
        while data:
            line, _, data = data.partition(b"\r\n")
            words = line.split()
            if words[0] != b"MSG":
                continue
            size = int(words[-1])
            packet, data = json.loads(data[:size]), data[size + 2 :]
            if packet.get("sender") != self.signature["sender"]:
                found.append((words[1].decode(), packet))
        return found

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """Send a request to the node ``fake``; the one answer."""
        ((topic, packet),) = self.say("MOL.REQ.fake", id="q1", action=action, **fields)
        assert topic == f"MOL.RES.{self.signature['sender']}"
        return packet


def fail(ctx: Context) -> None:
    raise MoleculerError("bad", 422, "BAD", {"f": 1}, name="MoleculerClientError")


def crash(ctx: Context) -> None:
    raise TypeError("boom")


def tag(ctx: Context) -> Any:
    ctx.meta["b"] = 1
    return ctx.params


ACTIONS = {
    "add": lambda ctx: ctx.params["a"] + ctx.params["b"],
    "fail": fail,
    "crash": crash,
    "tag": tag,
    "mute": lambda ctx: NO_ANSWER,
    "down": lambda ctx: Stream([b"one", b"two"]),
    "objects": lambda ctx: Stream([{"i": 1}], object_mode=True),
    "broken": lambda ctx: Stream([b"x"], error={"name": "Error", "message": "broke"}),
    "up": lambda ctx: {"n": sum(map(len, ctx.stream.chunks)), "error": ctx.stream.error},
}


def make(bench: Bench, **options: Any) -> Node:
    return bench.fake.node("fake", {"math": ACTIONS}, **options)


def test_a_node_tells_of_itself_when_it_joins_and_answers_discover_at_once() -> None:
    bench = Bench(profile="0.14")
    peer = Peer(bench)
    make(bench)
    (discover, info) = peer.heard()
    assert discover == ("MOL.DISCOVER", {"ver": "4", "sender": "fake"})
    assert info[0] == "MOL.INFO"
    assert list(info[1]) == [
        "services", "ipList", "hostname", "client", "config", "instanceID", "metadata", "seq", "ver", "sender"
    ]  # fmt: skip
    (service,) = info[1]["services"]
    assert list(service) == ["name", "fullName", "settings", "metadata", "actions", "events"]
    assert service["actions"]["math.add"] == {"rawName": "add", "name": "math.add"}
    for topic in ("MOL.DISCOVER", "MOL.DISCOVER.fake"):
        assert peer.say(topic) == [("MOL.INFO.real", info[1])]


def test_a_node_speaks_the_protocol_of_whoever_it_talks_to() -> None:
    bench = Bench()
    old, new = Peer(bench, "old", "4"), Peer(bench, "new", "5")
    node = make(bench)
    assert {packet["ver"] for _, packet in (*old.heard(), *new.heard())} == {"5"}
    assert old.say("MOL.DISCOVER.fake")[0][1]["ver"] == "4"
    assert "headers" not in old.ask("math.add", params={"a": 1, "b": 2})
    assert new.ask("math.add", params={"a": 1, "b": 2})["headers"] == {}
    new.heard()
    node.heartbeat()
    assert sorted(packet["ver"] for _, packet in new.heard()) == ["4", "5"]


def test_a_node_that_joins_later_looks_up_which_protocol_is_spoken() -> None:
    bench = Bench()
    peer = Peer(bench)
    peer.say("MOL.DISCOVER")
    make(bench)
    assert {packet["ver"] for _, packet in peer.heard()} == {"4"}


def test_what_fake_nodes_say_to_each_other_teaches_no_protocol() -> None:
    """A real node of 0.14 would hear each HEARTBEAT twice, and drop one of them with an error in its log."""
    bench = Bench()
    nodes = [bench.fake.node(f"fake-{number}") for number in range(2)]
    old = Peer(bench, "old", "4")
    old.say("MOL.DISCOVER")
    old.heard()
    for node in nodes:
        node.heartbeat()
    assert [packet["ver"] for _, packet in old.heard()] == ["4", "4"]


def test_a_strict_node_drops_other_protocols() -> None:
    bench = Bench()
    peer = Peer(bench)
    node = make(bench, version="5")
    peer.heard()
    assert peer.say("MOL.REQ.fake", id="1", action="math.add") == []
    assert node.broken == ["expected protocol '5', got '4' of 'real'"]


def test_answers() -> None:
    peer = Peer(bench := Bench())
    node = make(bench)
    peer.heard()
    assert peer.ask("math.add", params={"a": 1, "b": 2}) == {
        "id": "q1", "meta": {}, "success": True, "data": 3, "ver": "4", "sender": "fake"
    }  # fmt: skip
    assert peer.ask("math.tag", params=None, meta={"a": 9})["meta"] == {"a": 9, "b": 1}
    assert peer.say("MOL.REQ.fake", id="2", action="math.mute") == []
    assert [request.action for request in node.requests] == ["math.add", "math.tag", "math.mute"]
    assert peer.say("MOL.PING.fake", time=1, id="p")[0][1].items() >= {"time": 1, "id": "p"}.items()


def test_errors_as_real_nodes_shape_them() -> None:
    peer = Peer(bench := Bench(), ver="5")
    node = make(bench)
    peer.heard()
    answer = peer.ask("math.fail")
    assert (answer["success"], answer["data"], answer["headers"]) == (False, None, {})
    error = answer["error"]
    assert list(error) == ["name", "message", "nodeID", "code", "type", "retryable", "stack", "data"]
    assert (error["name"], error["code"], error["nodeID"]) == ("MoleculerClientError", 422, "fake")
    plain = peer.ask("math.crash")["error"]
    assert list(plain) == ["name", "message", "nodeID", "stack"]
    assert plain["stack"].startswith("TypeError: boom\n    at crash (test_nodes.py:")
    assert "/" not in plain["stack"]  # the same bytes on every machine
    assert [str(failure) for failure in node.failures] == ["boom"]
    missing = peer.ask("math.nope")
    assert missing["headers"] is None
    assert missing["error"]["message"] == "Service 'math.nope' is not found on 'fake' node."
    assert missing["error"]["retryable"] is True
    ((_, nameless),) = peer.say("MOL.REQ.fake", id="q2")
    assert nameless["error"]["message"] == "Service 'undefined' is not found on 'fake' node."
    assert nameless["error"]["data"] == {"nodeID": "fake"}


def test_a_request_without_sender_is_answered_to_nobody() -> None:
    bench = Bench()
    make(bench)
    peer = Peer(bench)
    peer.client.say(b"SUB MOL.RES 99\r\n")
    ((topic, answer),) = peer.say_raw("MOL.REQ.fake", b'{"id":"1","action":"math.tag","ver":"4"}')
    assert (topic, answer["success"]) == ("MOL.RES", True)


def test_downloads() -> None:
    peer = Peer(bench := Bench())
    make(bench)
    peer.heard()
    packets = [packet for _, packet in peer.say("MOL.REQ.fake", id="d", action="math.down")]
    assert [(p["seq"], p["stream"], p["data"]) for p in packets] == [
        (0, True, None),
        (1, True, {"type": "Buffer", "data": list(b"one")}),
        (2, True, {"type": "Buffer", "data": list(b"two")}),
        (3, False, None),
    ]
    objects = [packet for _, packet in peer.say("MOL.REQ.fake", id="d", action="math.objects")]
    assert {p["meta"]["$streamObjectMode"] for p in objects} == {True}
    *_, end = [packet for _, packet in peer.say("MOL.REQ.fake", id="d", action="math.broken")]
    assert (end["success"], end["stream"], end["error"]["message"]) == (False, False, "broke")


@pytest.mark.parametrize(
    ("order", "count"), [((0, 1, 2, 3), 2), ((0, 2, 1, 3), 2), ((1, 0, 2, 3), 2), ((0, 1, 1, 2, 3), 3)]
)
def test_uploads_in_any_order(order: tuple[int, ...], count: int) -> None:
    peer = Peer(bench := Bench())
    make(bench)
    peer.heard()
    found: list[Any] = []
    for seq in order:
        chunk = {"type": "Buffer", "data": [seq]} if seq in (1, 2) else None
        common = {"id": "u", "action": "math.up", "meta": {}, "seq": seq, "stream": seq < 3}
        found += peer.say("MOL.REQ.fake", params=chunk, **common)
    assert [packet["data"]["n"] for _, packet in found] == [count]


def test_an_upload_with_a_gap_waits_until_its_sender_is_gone() -> None:
    peer = Peer(bench := Bench())
    make(bench)
    peer.heard()
    for seq in (0, 2):
        assert peer.say("MOL.REQ.fake", id="u", action="math.up", seq=seq, stream=seq == 0) == []
    peer.say("MOL.DISCONNECT")
    assert peer.say("MOL.REQ.fake", id="u", action="math.up", seq=1, stream=True) == []


def test_calls() -> None:
    peer = Peer(bench := Bench())
    node = make(bench)
    peer.say("MOL.INFO", **INFO)
    future = node.start_call("shop.buy", {"n": 1}, meta={"m": 1}, timeout=2.0)
    ((topic, request),) = peer.heard()
    assert topic == "MOL.REQ.real"
    assert list(request) == [
        "id", "action", "params", "meta", "timeout", "level", "tracing", "parentID", "requestID", "caller",
        "stream", "ver", "sender",
    ]  # fmt: skip
    assert (request["timeout"], request["requestID"]) == (2000, request["id"])
    peer.say("MOL.RES.fake", id="other", success=True, data=1)
    assert not future.done()
    peer.say("MOL.RES.fake", id=request["id"], meta={}, success=True, data=7)
    assert future.result(0) == 7
    assert [orphan.id for orphan in node.core.calls.orphans] == ["other"]


def test_calls_fail_as_those_of_real_nodes_do() -> None:
    peer = Peer(bench := Bench())
    node = make(bench)
    peer.say("MOL.INFO", **INFO)
    with pytest.raises(RemoteError, match=r"ServiceNotFoundError: Service 'no\.one' is not found"):
        node.start_call("no.one").result(0)
    late = node.start_call("shop.buy", timeout=1.0)
    bench.advance(1.0)
    with pytest.raises(
        RemoteError, match=r"Request is timed out when call 'shop\.buy' action on 'real' node"
    ):
        late.result(0)
    rejected = node.start_call("shop.buy")
    peer.say("MOL.DISCONNECT")
    with pytest.raises(RemoteError, match="RequestRejectedError"):
        rejected.result(0)


@pytest.mark.parametrize("ver", ["4", "5"])
def test_streams_of_calls(ver: str) -> None:
    peer = Peer(bench := Bench(), ver=ver)
    node = make(bench)
    peer.say("MOL.INFO", **INFO)
    future = node.start_call("shop.buy", {"p": 1}, stream=Stream([{"i": 1}], object_mode=True))
    packets = [packet for _, packet in peer.heard()]
    flags = "meta" if ver == "4" else "headers"
    assert [(p["seq"], p["stream"], p[flags]["$streamObjectMode"]) for p in packets] == [
        (0, True, True), (1, True, True), (2, False, True)
    ]  # fmt: skip
    assert [p["params"] for p in packets] == [None if ver == "4" else {"p": 1}, {"i": 1}, None]
    common = {"id": packets[0]["id"], "meta": {}, "success": True}
    for seq, data in ((0, None), (2, {"type": "Buffer", "data": [2]}), (1, {"type": "Buffer", "data": [1]})):
        peer.say("MOL.RES.fake", **common, data=data, stream=True, seq=seq)
    peer.say("MOL.RES.fake", **common, data=None, stream=False, seq=3)
    assert future.result(0) == Stream((b"\1", b"\2"))


def test_events() -> None:
    heard: list[tuple[str, Any]] = []
    note = {
        pattern: (lambda ctx, p=pattern: heard.append((p, ctx.params))) for pattern in ("user.*", "g:user.**")
    }
    bench = Bench()
    node = bench.fake.node("fake", [Service("s", events=note)])
    peer = Peer(bench)
    peer.say("MOL.EVENT.fake", event="user.a", data=1, groups=["s"])
    peer.say("MOL.EVENT.fake", event="user.a.b", data=2)
    peer.say("MOL.EVENT.fake", event="user.a", data=3, groups=["other"])
    assert heard == [("user.*", 1), ("g:user.**", 2)]
    peer.say("MOL.INFO", **INFO)
    peer.heard()
    node.emit("order.new", {"n": 1})
    ((topic, event),) = peer.heard()
    assert (topic, event["groups"], event["broadcast"]) == ("MOL.EVENT.real", ["shop"], False)
    node.broadcast("x")
    ((_, event),) = peer.heard()
    assert ("groups" in event, event["broadcast"], event["data"], event["needAck"]) == (
        False,
        True,
        None,
        None,
    )
    node.broadcast("x", groups=["other"])
    assert peer.heard() == []
    node.broadcast("x", groups=["other", "g"])
    ((_, event),) = peer.heard()
    assert event["groups"] == ["other", "g"]
    node.emit("nobody.listens")
    assert peer.heard() == []


def test_heartbeats_and_their_absence() -> None:
    bench = Bench(profile="0.14")
    peer = Peer(bench)
    node = make(bench, heartbeat_s=2.0, heartbeat_timeout_s=4.0)
    peer.heard()
    bench.advance(4.0)
    assert [topic for topic, _ in peer.heard()] == ["MOL.HEARTBEAT"] * 2
    assert peer.say("MOL.HEARTBEAT", cpu=1) == [("MOL.DISCOVER.real", {"ver": "4", "sender": "fake"})]
    peer.say("MOL.INFO", **INFO)
    assert peer.say("MOL.HEARTBEAT", cpu=1) == []
    assert peer.say("MOL.HEARTBEAT", cpu=1, seq=None, instanceID=None) == []
    assert peer.say("MOL.HEARTBEAT", cpu=1, seq=9)[0][0] == "MOL.DISCOVER.real"
    assert node.peers["real"].available
    node.stop_heartbeats()
    bench.advance(9.0)
    assert not node.peers["real"].available
    assert peer.heard() == []


def test_info_counts_when_it_is_newer() -> None:
    peer = Peer(bench := Bench())
    node = make(bench)
    peer.say("MOL.INFO", **INFO)
    peer.say("MOL.INFO", **{**INFO, "services": [], "seq": 1})
    assert list(node.peers["real"].actions()) == ["shop.buy"]
    peer.say("MOL.INFO", **{**INFO, "services": [], "seq": 3})
    assert list(node.peers["real"].actions()) == []
    peer.say("MOL.INFO", **{**INFO, "instanceID": "i2"})
    assert list(node.peers["real"].actions()) == ["shop.buy"]


def test_the_end_of_a_node() -> None:
    bench = Bench(profile="0.14")
    peer = Peer(bench)
    node = make(bench)
    peer.heard()
    node.stop()
    (info, end) = peer.heard()
    assert (info[0], info[1]["services"], info[1]["seq"]) == ("MOL.INFO", [], 2)
    assert end == ("MOL.DISCONNECT", {"ver": "4", "sender": "fake"})
    assert peer.say("MOL.REQ.fake", id="1", action="math.add") == []
    node.heartbeat()  # a zombie
    assert [topic for topic, _ in peer.heard()] == ["MOL.HEARTBEAT"]
    node.restart()
    assert [packet["seq"] for topic, packet in peer.heard() if topic == "MOL.INFO"] == [1]
    node.kill()
    assert peer.heard() == []
    assert len(bench.fake.broker.bus.subscriptions) == 12


def test_packets_by_hand() -> None:
    bench = Bench(profile="0.14")
    peer = Peer(bench)
    node = make(bench, announces=False, answers_discover=False)
    assert peer.heard() == []
    assert peer.say("MOL.DISCOVER") == []
    node.send("RES", "real", id="1", success="perhaps")
    assert peer.heard() == [("MOL.RES.real", {"id": "1", "success": "perhaps", "ver": "4", "sender": "fake"})]
    node.send_info("real", seq=9, services=[])
    assert peer.heard()[0][1].items() >= {"seq": 9, "services": []}.items()
    node.send("DISCONNECT", ver=4, sender="another")
    assert peer.heard() == [("MOL.DISCONNECT", {"ver": 4, "sender": "another"})]
    node.serve({"other": {"a": lambda ctx: 1}})
    assert peer.heard()[0][1]["services"][0]["name"] == "other"


def test_the_balancer_can_be_left_to_the_bus() -> None:
    bench = Bench(profile="0.14")
    heard: list[Any] = []
    service = Service("math", {"add": ACTIONS["add"]}, {"order.**": lambda ctx: heard.append(ctx.params)})
    first = bench.fake.node("f1", [service], disable_balancer=True)
    bench.fake.node("f2", [service], disable_balancer=True)
    peer = Peer(bench)
    answers = [
        peer.say("MOL.REQB.math.add", id=str(number), action="math.add", params={"a": 1, "b": 1})
        for number in range(2)
    ]
    assert sorted(packets[0][1]["sender"] for packets in answers) == ["f1", "f2"]
    peer.say("MOL.EVENTB.math.order.a.b", event="order.a.b", data=1, groups=["math"])
    assert heard == [1]
    peer.client.say(b"SUB MOL.REQB.shop.buy shop.buy 50\r\n")
    first.start_call("shop.buy")
    assert [topic for topic, _ in peer.heard()] == ["MOL.REQB.shop.buy"]


def test_namespaces_do_not_hear_each_other() -> None:
    bench = Bench(namespace="dev")
    here = bench.fake.node("a")
    there = bench.fake.node("b", namespace="")
    other = bench.fake.node("c")
    assert (list(here.peers), list(there.peers), list(other.peers)) == (["c"], [], ["a"])


def test_what_cannot_be_read_is_said() -> None:
    peer = Peer(bench := Bench())
    node = make(bench)
    peer.heard()
    for payload in (b"", b"{", b"17", b"\x81\xa1a\x01"):
        assert peer.say_raw("MOL.REQ.fake", payload) == []
    problems = [problem.split(",")[0] for problem in node.broken]
    assert problems == ["expected JSON", "expected JSON", "expected an object in a packet", "expected JSON"]


def test_options_of_nodes_are_checked() -> None:
    bench = Bench()
    with pytest.raises(UsageError, match="a node has no option 'hearbeat_s'; did you mean 'heartbeat_s'"):
        bench.fake.node("a", hearbeat_s=1)
    with pytest.raises(UsageError, match="no serializer 'XML'"):
        bench.fake.node("a", serializer="XML")


@pytest.mark.parametrize(
    ("pattern", "event", "fits"),
    [
        ("user.*", "user.a", True),
        ("user.*", "user.a.b", False),
        ("user.**", "user.a.b", True),
        ("**", "a.b", True),
        ("a?c", "abc", True),
        ("a.b", "aXb", False),
        ("*.b", "a.b", True),
    ],
)
def test_patterns_of_events(pattern: str, event: str, fits: bool) -> None:
    assert matches(pattern, event) is fits


def test_an_error_can_be_given_as_it_is_on_the_wire() -> None:
    found = error_of(MoleculerError(fields={"name": "X", "extra": 1}), "n")
    assert (found["name"], found["extra"]) == ("X", 1)


def test_full_names_of_services() -> None:
    assert [Service("u", version=v).full_name for v in (None, 2, "staging")] == ["u", "v2.u", "staging.u"]


@pytest.mark.parametrize("cut", [False, True])
def test_a_node_hears_what_a_client_says_once_all_of_one_read_is_handled(cut: bool) -> None:
    """No server hands a message to another client before it has read what came with it (nats-server too)."""
    bench = Bench("nats")
    bench.fake.node("fake-1")
    client = bench.connect()
    client.say(b'CONNECT {"verbose":false}\r\n')
    packet = json.dumps(V4).encode()
    ask = b"PUB MOL.DISCOVER %d\r\n%b\r\n" % (len(packet), packet)
    listen = b"SUB MOL.INFO.real 1\r\n"
    said = client.say(*([ask, listen] if cut else [ask + listen]))
    assert (b"MSG MOL.INFO.real 1" in said) is not cut


def test_a_node_that_is_killed_hears_nothing_more() -> None:
    bench = Bench("nats")
    node = bench.fake.node("fake-1")
    bench.engine.broker.bus.publish("MOL.DISCOVER", json.dumps(V4).encode(), bench.now)  # type: ignore[attr-defined]
    node.core.vanish()
    bench.engine.flush(bench.now)
    assert node.core.received == type(node.core.received)()
