"""Moleculer in the sweep: its decoder, the gate, and the rules that only its defects break."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.ops import REFERENCE
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.registry import without_sockets
from conformance.rules import judge
from conformance.run.acts.inside import opened
from conformance.run.case import Case
from conformance.run.facts import Facts, Sent, Should
from conformance.run.inprocess import run, runner
from conformance.run.material import material_of
from conformance.run.specs import EVERY, ConcurrentAction, Injection, Spec
from conformance.run.trace import Position, TraceRow
from conformance.run.view import Conn, SeenFrame
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.sweep import Sweep
from conformance.search.systematic.universe import universe
from fakebrokers.core.frames import Malformed, kind_of
from fakebrokers.moleculer.packets import Discover, Event, Info, Packet, Pong, Request, Response
from scenarios.moleculer.sweep import legal
from scenarios.moleculer.sweep.contents import OBJECTS, STREAM_ERROR, announced_by, broken_by
from scenarios.moleculer.sweep.reading import nats_decoder
from scenarios.moleculer.sweep.sending import (
    _about,
    _events_of,
    _is_alike_without_params,
    wrong_request,
)
from scenarios.moleculer.sweep.serving import wrong_answer
from scenarios.moleculer.sweep.streaming import marked
from scenarios.moleculer.sweep.tracking import Tracking
from scenarios.moleculer.traits import TRAITS

PROTOCOL = "moleculer"
SPECS = 200
INFO = b'MSG MOL.INFO 4 26\r\n{"ver":"5","sender":"peer"}\r\n'.replace(b" 26", b" 27")


def test_the_correct_client_violates_nothing() -> None:
    sweep = Sweep(runner(PROTOCOL))
    sweep.go(itertools.islice(DrawOrder(universe(PROTOCOL)), SPECS), seconds=120.0)
    found = [
        f"{failure.spec}: {finding}" for failure in sweep.failures.values() for finding in failure.findings
    ]
    assert not found, "\n".join(found)
    assert sweep.runs == SPECS


@pytest.mark.parametrize(
    ("base", "injections"),
    [
        ("both", [Injection("c2", "in", 6, "rst")]),  # a loss while the node joins, told to two who try again
        ("both", [Injection("c2", "out", 3, "lost")]),  # a server that never takes the topics in
        ("call", [Injection("c1", "out", 15, "goodbye", "fin")]),  # an answer in one segment with an error
        ("both", [Injection("c2", "out", 1, "twice")]),  # the server tells of itself twice
        ("call", [Injection("c1", "out", 6, "shape", "longer")]),  # a message of another size than it says
        ("call", [Injection("c1", "out", 1, "shape", "shorter")]),  # an INFO that is no JSON
        (
            "closing",
            [Injection("c1", "out", 3, "rst"), Injection("c2", "in", 27, "rst-before")],
        ),  # a loss in a close
        ("call", [Injection("c1", "out", 8, "entry", [["error", "code"], "true"])]),  # a code that is none
        (
            "streams",
            [Injection("c1", "out", 7, "entry", [["success"], "number"])],
        ),  # a stream that is no success
        ("call", [Injection("c1", "out", 6, "spelled", "tabs")]),  # a line whose words have tabs between them
        (
            "sent-up",
            [Injection("c1", "out", 3, "rst"), Injection("c2", "out", 15, "fin")],
        ),  # a loss amid an upload
        (
            "broken-off",
            [Injection("c1", "out", 19, "number", [6, 2, {"add": 1}])],
        ),  # a topic of other transporters
        (
            "downloads",
            [Injection("c1", "out", 3, "rst"), Injection("c2", "out", 18, "contradict", ["instead", None])],
        ),  # a stream whose beginning is a refusal, and comes last
        ("downloads", [Injection("c1", "out", 22, "contradict", ["before", None])]),  # two ends of a stream
        (
            "odd-answers",
            [Injection("c1", "out", 5, "entry", [["sender"], "object"])],
        ),  # a sender without a name
        (
            "joining",
            [Injection("c1", "out", 6, "stays", ["Heartbeat", 1, "fin", None])],
        ),  # an INFO is no beat
        (
            "cancelled",
            [Injection("c1", "out", 11, "goodbye", "stays")],
        ),  # a question behind the server's goodbye
        ("peers", [Injection("c1", "out", 14, "goodbye", "stays")]),  # a node that leaves behind it
        ("again", [Injection("c3", "out", 3, "lost")]),  # an event for a node that never gets to join
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1].act,
)
def test_what_the_correct_client_once_did_wrong(base: str, injections: list[Injection]) -> None:
    assert judge(runner(PROTOCOL)(Spec(PROTOCOL, base, tuple(injections)))) == []


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_lines_that_nobody_knows_are_skipped(size: int) -> None:
    data = b"NONSENSE\r\n" + INFO + b"PING\r\n"
    codec = nats_decoder("client")
    frames = [frame for at in range(0, len(data), size) for frame, _ in codec.feed(data[at : at + size])]
    assert [kind_of(opened(frame)) for frame in frames] == ["Malformed", "Info", "NatsPing"]
    assert isinstance(frames[0], Malformed) and not TRAITS.reading.is_garbage(frames[0])


def test_a_wrong_size_is_the_end() -> None:
    codec = nats_decoder("client")
    [(frame, _)] = list(codec.feed(INFO.replace(b" 27", b" 20") + INFO))
    assert isinstance(frame, Malformed) and TRAITS.reading.is_garbage(frame)
    assert codec.partial == 0


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "injection"),
    [
        ("answers-what-was-asked", "answers-without-data", "serve", None),
        ("answers-questions", "deaf-while-stopping", "closing", None),
        ("knows-who-is-there", "deaf-to-disconnect", "peers", None),
        ("knows-who-is-there", "demands-metadata", "joining", None),
        ("surfaces-what-came", "star-is-greedy", "events", None),
        ("tells-its-deadline", "timeout-in-seconds", "call", None),
        ("answer-counts", "drops-large-packets", "bulk", None),
        ("ok-needs-answer", "success-unless-denied", "odd-answers", None),
        ("comes-back", "ignores-namespace", "namespaces", None),
        ("comes-back", "first-server-only", "several-servers", None),
        ("tells-what-it-offers", "never-tells-of-services", "again", None),
        ("tells-what-it-offers", "tells-of-services-once", "offered-again", None),
        ("sends-what-it-was-given", "broadcasts-to-one-of-each-group", "emitting", None),
        ("sends-what-it-was-given", "broadcasts-over-the-balancer", "balanced-events", None),
        ("sends-what-it-was-given", "chooses-nodes-itself", "balanced", None),
        ("sends-what-it-was-given", "asks-anybody", "call", None),
        ("streams-are-whole", "stream-errors-are-ends", "broken-off", None),
        ("streams-are-whole", "order-of-arrival", "downloads", None),
        ("silent-behind-its-goodbye", "answers-behind-its-goodbye", "slow-close", None),
        ("loss-ends-requests", "downloads-outlive-their-senders", "broken-off", None),
        ("limit-exact", "chunks-uncut", "large-streams", None),
        ("failures-are-told", "handler-errors-end-the-handler", "raising-message-1", None),
        ("answer-value", "forgets-the-answer-s-meta", "metas", None),
        ("surfaces-what-came", "demands-need-ack", "heard-values", None),
        (
            "answers-questions",
            "goes-by-content",
            "joining",
            Injection("c1", "out", 10, "spelled", "members of others"),
        ),
        (
            "answers-questions",
            "unknown-members-are-errors",
            "joining",
            Injection("c1", "out", 10, "spelled", "more members"),
        ),
        (
            "unprovoked-end",
            "dies-of-broken-packets",
            "chunks",
            Injection("c1", "out", 4, "spelled", "behind an empty message"),
        ),
        ("wire-legal", "seq-never-grows", "serve", None),
        ("spreads-its-questions", "always-the-first-node", "spread", None),
        ("hears-what-is-for-it", "deaf-to-ping-for-all", "serve", None),
        ("hears-what-is-for-it", "deaf-to-the-balancer", "balanced", None),
        ("close-ends", "goes-on-connecting", "given-up", None),
        ("comes-back", "a-pause-is-the-end", "stopped", None),
        ("streams-wait", "no-back-pressure", "unread", None),
        ("answer-counts", "one-thread-for-all", "busy", None),
        ("streams-are-whole", "upload-without-an-end", "called-off", None),
        ("streams-are-whole", "uploads-outlive-their-calls", "long-upload", None),
        ("fails-for-a-reason", "names-within-names-are-gone", "walk-0", None),
        ("asks-what-it-does-not-know", "asks-again-and-again", "silence", None),
        ("asks-what-it-does-not-know", "asks-at-plain-heartbeats", "call", None),
    ],
)
def test_a_defect_is_found_by_the_rule_that_it_breaks(
    invariant: str, mutant: str, base: str, injection: Injection | None
) -> None:
    spec = Spec(PROTOCOL, base, () if injection is None else (injection,))
    found = {finding.name: finding for finding in judge(runner(PROTOCOL, mutant)(spec))}
    assert invariant in found
    assert not re.search(r"\bb'|\b(None|UNSET|Counter|frozenset)\b|[(\[{]'", found[invariant].detail)
    assert judge(runner(PROTOCOL)(spec)) == []


def test_connections_that_end_at_once_are_no_reason_to_try_again_at_once() -> None:
    case = runner(PROTOCOL)(Spec(PROTOCOL, "call", (Injection(EVERY, "out", 4, "rst"),)))
    assert 3 < len(case.conns) < 40
    assert judge(case) == []


@pytest.mark.parametrize(
    ("packet", "problem"),
    [
        (Pong(time=1, id="a", arrived=2), ""),
        (Pong(time=1, id="a"), "arrived of PONG is missing"),
        (Response(id="a", meta={}, headers={}, success=True, data=1), ""),
        (Response(id="a", meta={}, headers={}, success="yes"), 'success of RES is "yes"'),
        (Response(id="a", meta={}, headers=None, success=False, data=1, error={"name": "E", "message": ""}),
         "a RES without success that has data"),
    ],
)  # fmt: skip
def test_packets_have_what_every_packet_has(packet: Packet, problem: str) -> None:
    assert legal.problem(packet) == problem


def test_what_no_node_needs_of_another_is_asked_for_and_no_more() -> None:
    info = Info(
        services=[], ipList=["::1"], hostname=None, client={"type": "x"}, config={}, instanceID="i",
        metadata={}, seq=1, ver="5", sender="n",
    )  # fmt: skip
    assert isinstance(legal.problem(info), Should)
    assert not isinstance(legal.problem(msgspec.structs.replace(info, seq=0)), Should)
    odd = msgspec.structs.replace(info, services=[{"actions": {}}])
    assert not isinstance(legal.problem(odd), Should)
    assert legal.problem(msgspec.structs.replace(info, hostname="h")) == ""


class Mute(Post):
    """Asks nobody who is there."""

    def send(self, command: str, rest: str, packet: Mapping[str, Any]) -> None:
        if command != "DISCOVER":
            super().send(command, rest, packet)


class AnotherEachTime(MoleculerClient):
    """Is another instance on each connection."""

    async def join(self) -> None:
        self.instance = self.post.new_id()
        await super().join()


class CountsAnew(MoleculerClient):
    """Counts what it tells of itself anew on each connection."""

    async def rejoin(self) -> None:
        self.seq = 1
        await super().rejoin()


@pytest.mark.parametrize(
    ("part", "word"), [(AnotherEachTime, "with instanceID"), (CountsAnew, "with seq 1 after")]
)
def test_a_node_that_does_not_stay_who_it_is_is_found(part: type, word: str) -> None:
    found = judge(run(without_sockets(adapter_of(REFERENCE, [part])), Spec(PROTOCOL, "again")))
    assert [finding.name for finding in found] == ["wire-legal"]
    assert word in found[0].detail


class AsksWhoIsGone(Registry):
    """Asks a node once more that has just gone."""

    def __init__(self, own: str) -> None:
        super().__init__(own)
        self.last: str | None = None

    def gone(self, id: str) -> bool:
        self.last = id
        return super().gone(id)

    def choose(self, action: str) -> str | None:
        there = super().choose(action)
        last, self.last = (None, self.last) if there else (self.last, None)
        return there or last


def test_a_node_that_asks_who_is_gone_is_found() -> None:
    found = judge(run(without_sockets(adapter_of(REFERENCE, [AsksWhoIsGone])), Spec(PROTOCOL, "deserted")))
    assert [finding.name for finding in found] == ["sends-what-it-was-given"]


@pytest.mark.parametrize(
    ("limit_ms", "after_s", "is_right"), [(100, 0.1, True), (5000, 0.1, False), (0, 9.0, False)]
)
def test_only_what_took_too_long_is_called_so(limit_ms: int, after_s: float, is_right: bool) -> None:
    by: dict[str, Any] = {"ver": "5", "sender": "n"}
    asked = Request(id="1", action="s.slow", timeout=limit_ms, **by)
    answer = Response(id="1", success=False, error={"code": 504}, **by)
    assert (wrong_answer(asked, answer, after_s) == "") is is_right


@pytest.mark.parametrize(
    ("params", "data", "is_right"),
    [
        ({}, {"data": {}}, True),
        ({}, {"data": None}, True),
        ({}, {}, True),
        ({"params": None}, {"data": {}}, True),
        ({}, {"data": {"n": 1}}, False),
        ({"params": {"n": 1}}, {"data": {}}, False),
    ],
    ids=["an empty object", "null", "nothing", "an empty object for null", "another", "for what is there"],
)
def test_what_an_action_makes_of_params_that_are_not_there(
    params: Mapping[str, Any], data: Mapping[str, Any], is_right: bool
) -> None:
    by: dict[str, Any] = {"ver": "5", "sender": "n"}
    asked = Request(id="1", action="s.echo", timeout=0, **params, **by)
    assert (wrong_answer(asked, Response(id="1", success=True, **data, **by), 0.1) == "") is is_right


def test_a_closed_node_offers_nothing_more() -> None:
    for action in (ConcurrentAction(2, "close"), ConcurrentAction(3, "close", 2)):
        assert judge(runner(PROTOCOL)(Spec(PROTOCOL, "events", concurrent=(action,)))) == []


def test_a_node_that_asks_nobody_is_found() -> None:
    client = without_sockets(adapter_of(REFERENCE, [Mute]))
    found = {finding.name for finding in judge(run(client, Spec(PROTOCOL, "again")))}
    assert "greets-on-every-connection" in found


@pytest.mark.parametrize(("ver", "problem"), [("4", ""), ("5", "headers of EVENT is missing")])
def test_headers_are_of_the_newest_version(ver: str, problem: str) -> None:
    event = Event(id="1", event="e", data=1, meta={}, broadcast=False, level=1, ver=ver, sender="n")
    assert legal.problem(event) == problem


def test_what_a_library_serves_by_itself_is_not_the_applications() -> None:
    services = [{"name": "$node", "actions": {"$node.list": {}}}, {"name": "p", "actions": {"p.echo": {}}}]
    assert announced_by(Info(services=services, ver="5", sender="n")) == (frozenset({"p.echo"}), frozenset())


def test_a_ping_may_tell_that_nobody_has_answered() -> None:
    none = TRAITS.questions.ops["mol.ping"].none
    assert none is not None
    assert none({"arrived": None, "rtt_ms": None})
    assert not none({"arrived": None, "rtt_ms": 3})


@pytest.mark.parametrize(
    ("more", "is_right"),
    [
        ({"ver": "4", "meta": {OBJECTS: True}}, True),
        ({"ver": "4", "meta": {}}, False),
        ({"ver": "5", "meta": {}, "headers": {OBJECTS: True}}, True),
        ({"ver": "5", "meta": {OBJECTS: True}, "headers": {}}, False),
        ({"ver": "5", "meta": {OBJECTS: True}, "headers": {OBJECTS: True}}, False),
    ],
)
def test_where_the_mark_of_a_stream_of_objects_stands(more: dict[str, Any], is_right: bool) -> None:
    asked: dict[str, Any] = {"id": "1", "requestID": "1", "parentID": None, "caller": None, "level": 1}
    frame = Request(action="p.echo", stream=True, sender="n", **asked, **more)
    wrong = wrong_request({"action": "p.echo", "objects": [1]}, frame, "REQ.peer", {"peer"}, {})
    assert (wrong == "") is is_right


@pytest.mark.parametrize(
    ("given", "is_right"),
    [({}, True), ({"stream": True}, False), ({"parentID": "2"}, False), ({"meta": {"a": 1}}, False)],
)
def test_what_a_request_leaves_out_is_nothing(given: dict[str, Any], is_right: bool) -> None:
    frame = Request(action="p.echo", id="1", requestID="1", level=1, sender="n", **given)
    assert (wrong_request({"action": "p.echo"}, frame, "REQ.peer", {"peer"}, {}) == "") is is_right


@pytest.mark.parametrize(("ver", "where"), [("4", "meta"), ("5", "headers")])
def test_what_a_stream_says_besides_stands_where_the_client_looks(ver: str, where: str) -> None:
    node: Any = SimpleNamespace(peers={"client": SimpleNamespace(version=ver)})
    assert marked(node, **{STREAM_ERROR: {"code": 1}})[where] == {STREAM_ERROR: {"code": 1}}
    frame = Request(ver=ver, stream=False, seq=2, **marked(node, **{STREAM_ERROR: {"code": 1}}))
    assert broken_by(frame) == {"code": 1}
    other = {"4": "5", "5": "4"}[ver]
    assert broken_by(Request(ver=other, stream=False, seq=2, **marked(node, **{STREAM_ERROR: 1}))) is None


def test_streams_in_the_place_of_the_parameters_cannot_be_told_apart() -> None:
    fits = TRAITS.questions.ops["mol.call"].fits
    bare = Request(action="p.up", params=None)
    assert fits({"action": "p.up", "params": {"n": 1}, "objects": [1]}, bare)
    assert fits({"action": "p.up", "params": {"n": 1}, "stream": {}}, bare)
    assert not fits({"action": "p.up", "params": {"n": 1}}, bare)

    def call(begun: int, ended: int, **args: Any) -> Any:
        return SimpleNamespace(begun=begun, ended=ended, args={"action": "p.up", **args})

    done = call(1, 5, params={"n": 1}, stream={})
    assert _is_alike_without_params(done, call(2, 6, params={"n": 2}, objects=[1]))
    assert not _is_alike_without_params(done, call(2, 6, params={"n": 2}))
    assert not _is_alike_without_params(done, call(6, 7, params={"n": 2}, stream={}))


def trace_of(slack_s: float, *rows: TraceRow) -> Case:
    case = Case(Spec(PROTOCOL, "events"), material_of(PROTOCOL), list(rows), [], [])
    case.slack_s = slack_s
    return case


def emitted(number: int, begun_s: float, ended_s: float) -> Any:
    begun, ended = (Position(round(1000 * t), 0, t) for t in (begun_s, ended_s))
    return SimpleNamespace(
        op="mol.emit", args={"event": "news.a", "data": number}, begun=begun, ended=ended, result=None
    )


@pytest.mark.parametrize(
    ("slack_s", "second_s", "owners"),
    [(0.0, 1.5, []), (0.25, 1.15, [1]), (0.25, 1.5, [1]), (0.25, 1.02, [1])],
    ids=["time is not real", "two are near", "they are not", "it comes in the other one"],
)
def test_an_event_may_come_a_little_behind_its_op(slack_s: float, second_s: float, owners: list[int]) -> None:
    case = trace_of(slack_s)
    case.ops = [emitted(1, 1.0, 1.01), emitted(2, second_s, second_s + 0.3)]
    frame = Event(id="1", event="news.a", data=1)
    sent = Sent(Conn("c1", Position(0, 0, 0.0)), Position(1100, 0, 1.1), "EVENT.peer", frame)
    case.__dict__["_read"] = ({}, Facts(sent=[sent]))
    assert [done.args["data"] for done in case.ops if _events_of(case, done)] == owners


def test_what_came_just_before_an_op_need_not_have_been_read() -> None:
    rows = [TraceRow(t, "out", "c1", b"") for t in (0.5, 0.9, 1.1, 2.0)] + [
        TraceRow(2.0, "op", "", "mol.call")
    ]
    begun = Position(2, 0, 1.0)
    assert {position.t for position in _about(trace_of(0.25, *rows), begun)} == {0.9, 1.1}
    assert {position.t for position in _about(trace_of(0.0, *rows), begun)} == {1.1}


def test_an_answer_is_for_who_has_asked_on_its_connection() -> None:
    facts = Facts()
    first, second = (Tracking(Conn(name, Position(0, 0, 0.0)), facts) for name in ("c1", "c2"))
    key = ("DISCOVER", "peer")
    for row, one in enumerate((first, second), 1):
        one._asked_back(Discover(sender="peer"), key, Position(row, 0, float(row)))
    answer = Info(sender="client")
    second._answer_back(key, answer, Position(3, 0, 3.0))
    assert [one.answer for one in facts.asked_back] == [None, answer]
    second._answer_back(key, answer, Position(4, 0, 4.0))
    assert [one.answer for one in facts.asked_back] == [answer, answer]


@pytest.mark.parametrize(("behind_s", "in_time"), [(0.04, True), (0.06, False)])
def test_an_answer_may_come_just_before_the_end_of_its_question(behind_s: float, in_time: bool) -> None:
    """The CR LF after a payload may be on its way still when the client answers."""
    facts = Facts()
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready = Position(1, 0, 0.5)
    tracking = Tracking(conn, facts)
    key, answer = ("REQ", "1"), Response(id="1", success=True, ver="5", sender="n")
    tracking._answer_back(key, answer, Position(2, 0, 1.0))
    assert [text for _, text in facts.misused] == ['Response "1" answers nothing that was asked']
    tracking._asked_back(Request(id="1", ver="5", sender="p"), key, Position(3, 0, 1.0 + behind_s))
    [question] = facts.asked_back
    assert (question.answer is answer, not facts.misused) == (in_time, in_time)


@pytest.mark.parametrize(
    ("sent", "ready"),
    [
        (("sub", "pub"), 6),
        (("pub", "sub"), 6),
        (("sub",), None),
        (("pub",), None),
        (("sub", "ping", "pub"), None),
        (("ping", "pub", "sub"), None),
    ],
)
def test_a_client_that_speaks_and_listens_has_done_its_handshake(
    sent: tuple[str, ...], ready: int | None
) -> None:
    lines = {
        "sub": b"SUB MOL.RES.client 1\r\n",
        "pub": b'PUB MOL.DISCOVER 29\r\n{"ver":"4","sender":"client"}\r\n',
        "ping": b"PING\r\n",
    }
    rows = [("out", b"INFO {}\r\n"), ("in", b"CONNECT {}\r\n"), ("in", b"PING\r\n"), ("out", b"PONG\r\n")]
    conn = Conn("c1", Position(0, 0, 0.0))
    codecs = {"in": nats_decoder("server"), "out": nats_decoder("client")}
    for number, (direction, data) in enumerate([*rows, *(("in", lines[each]) for each in sent)], 1):
        for frame, _ in codecs[direction].feed(data):
            conn.frames.append(SeenFrame(Position(number, 0, float(number)), direction, frame, len(data)))
    assert len(conn.frames) == 4 + len(sent)
    Tracking(conn, Facts()).run()
    assert (conn.ready and conn.ready.row) == ready
