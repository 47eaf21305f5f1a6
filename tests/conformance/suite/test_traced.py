"""The rules that hold in every run judge runs of scenarios too."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conformance.clients.adapter.call import Call
from conformance.clients.adapter.messages import Event, Hello
from conformance.clients.mutants.matrix import run
from conformance.clients.mutants.registry import find_mutant
from conformance.results import Verdict
from conformance.run.bases import LiveOp, RunOp
from conformance.run.case import Case
from conformance.run.material import material_of
from conformance.run.notes import Notes
from conformance.run.reported import ReportedEvent
from conformance.run.specs import Spec
from conformance.run.trace import START, Position, TraceRow
from conformance.run.view import read_trace
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from conformance.suite.traced import TracedRun, _is_lie, _notes, _rename, touched
from fakebrokers.journal import Record, Tap
from fakebrokers.journal.record import STATE_LOST, State

HELLO = Hello("a", "l", "1", "python", ["pzq"], [], [], caps={"auto_reconnect": True})


def the(scenario_id: str) -> Scenario:
    [item] = [each for each in all_scenarios() if scenario_id in (each.id, each.label)]
    return item


def test_what_a_client_says_when_the_script_is_over_is_not_its_doing() -> None:
    async def work() -> TracedRun:
        adapter: Any = SimpleNamespace(events=[Event(1, 1.0, "a", {})], onlooker=None)
        traced = TracedRun(adapter)
        traced.end()
        adapter.events.append(Event(2, 2.0, "connection_lost", {}))  # the fake was stopped
        return traced

    assert [event.event for event in asyncio.run(work())._events] == ["a"]


# the verdict

#: A scenario, a mutant that passes it by its own criteria, and the rule that it violates.
UNFORESEEN = [
    ("BMQ-5.17", "another-checksum", "wire-legal"),
    ("BMQ-5.06", "never-answers-heartbeats", "answers-questions"),
    ("NET-3.08[rabbitmq-stream]", "loss-answers-requests", "ok-needs-answer"),
    ("RMQS-6.09", "resumes-behind-the-next", "delivers-what-came"),
    ("MOL-2.03", "beats-half-as-often", "beats"),
]


@pytest.mark.parametrize(("scenario_id", "name", "rule"), UNFORESEEN)
def test_a_violated_rule_is_found_in_a_run_whose_script_is_content(
    scenario_id: str, name: str, rule: str
) -> None:
    item = the(scenario_id)
    mutant = find_mutant(item.protocol, name)
    assert run(item, mutant).verdict is Verdict.PASS
    judged = run(item, mutant, invariants=True)
    assert (judged.verdict, judged.criterion_id, judged.tags) == (Verdict.PASS, "", ())  # its own criteria
    assert rule in [finding.name for finding in judged.broken]
    assert run(item, None, invariants=True).findings == ()


@pytest.mark.parametrize(
    ("scenario_id", "name", "verdict"),
    [
        ("MOL-1.09", None, Verdict.PASS),  # gives its session up where another node has its name
        ("MOL-4.10", None, Verdict.PASS),  # returns a stream so long that its digest is told
        ("MOL-4.10", "order-of-arrival", Verdict.NON_STRICT),  # the same, with a chunk twice
    ],
)
def test_what_a_scenario_allows_violates_no_rule(
    scenario_id: str, name: str | None, verdict: Verdict
) -> None:
    item = the(scenario_id)
    judged = run(item, None if name is None else find_mutant(item.protocol, name), invariants=True)
    assert (judged.verdict, judged.findings) == (verdict, ())


def test_callbacks_that_raise_once_are_counted() -> None:
    [item] = [each for each in all_scenarios() if each.label == "NET-3.06[narconi]"]
    assert run(item, None, invariants=True).findings == ()
    judged = run(item, find_mutant(item.protocol, "callback-errors-vanish"), invariants=True)
    assert "failures-are-told" in [finding.name for finding in judged.broken]


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("NET-3.05[rabbitmq-stream]", "the run is too long"),
        ("MOL-1.01", "there is no model of what is spoken here"),
        ("NET-2.02[rabbitmq-stream]", "the client also spoke to another broker"),
    ],
)
def test_a_run_that_cannot_be_read_says_why(label: str, why: str) -> None:
    items = [each for each in all_scenarios() if each.label == label and each.variant in ("", "redis")]
    judged = run(items[0], None, invariants=True)
    assert judged.verdict is Verdict.PASS
    assert [note for note in judged.notes if note.startswith(f"not judged by the rules: {why}")]


# what is known of a run


def op(name: str, ok: bool | None = True, **args: Any) -> RunOp:
    done = LiveOp(_call(name), args, 1.0, START, "")
    if ok is not None:
        done.result = _Result(ok)  # type: ignore[assignment]
    return done


class _Result(msgspec.Struct):
    ok: bool


def _call(name: str) -> Call:
    class Stub:
        id = 1
        op = name
        timeout_ms = None

    return Stub()  # type: ignore[return-value]


def state(kind: str, note: str = "", fault: str = "", connection: str = "c1") -> Record:
    return Record(1, 0.0, connection, Tap.STATE, kind, note=note, fault=fault)


def notes(*ops: RunOp, records: tuple[Record, ...] = ()) -> Notes:
    return _notes(ops, records, HELLO)


def test_what_a_script_did_is_noted_as_a_base_would() -> None:
    plain = notes(op("connect", session="s1"))
    assert plain == Notes(reconnects=True, oversized=True)
    assert notes(op("connect", session="a"), op("connect", session="b")).sessions == 2
    assert notes(op("connect", session="a", ok=False)).without_connection
    assert not notes(op("connect", session="a", ok=False), op("connect", session="a")).has_several_sessions
    assert not notes(op("connect", session="a", options={"auto_reconnect": False})).reconnects
    assert notes(op("connect"), op("subscribe", on_message={"raise_on": [1]})).raises
    assert notes(op("connect"), op("cancel", ok=None)).abandons
    assert notes(op("connect"), records=(state(State.CRASH, STATE_LOST),)).forgets
    assert not notes(op("connect"), records=(state(State.CRASH),)).forgets
    for shut in (State.REFUSING, State.BLACK_HOLE):
        assert notes(op("connect"), records=(state(shut, connection=""),)).unreachable


def test_what_faults_did_is_read_from_the_journal() -> None:
    frame = Record(1, 0.0, "c2", Tap.SENT, "Publish", fault="twice")
    cut, plain = state(State.RST), Record(2, 0.0, "c3", Tap.OUT, "Publish")
    assert touched([plain, cut, frame, frame, state(State.ACCEPTED, connection="c4")]) == ("c1", "c2")
    assert [_is_lie(each) for each in (frame, plain, cut, state(State.BYTES))] == [True, False, False, True]


def test_targets_get_the_names_that_they_have_on_the_wire() -> None:
    opening, publish = op("bmq.open_queue", target="q", uri="bmq://d/q"), op("publish", target="q")
    other = op("publish", target="elsewhere")
    heard = ReportedEvent(Event(1, 0.0, "message", {"target": "q", "sub": "c"}))
    _rename([opening, publish, other], [heard], material_of("blazingmq").traits)
    assert [done.args["target"] for done in (opening, publish, other)] == ["bmq://d/q"] * 2 + ["elsewhere"]
    assert (heard["target"], heard["sub"]) == ("bmq://d/q", "c")


def test_where_the_broker_did_not_read_is_known() -> None:
    rows = [
        TraceRow(1.0, "accept", "c1", ""),
        TraceRow(2.0, "reads", "c1", False),
        TraceRow(3.0, "reads", "c1", True),
    ]
    [conn] = read_trace(rows, material_of("rabbitmq-stream").traits.reading).values()
    assert conn.reading_stopped == Position(1, 0, 2.0)


def test_over_pipes_nobody_knows_exactly_what_came_first() -> None:
    case = Case(Spec("pzq", "x"), material_of("pzq"), [], [], ())
    late, early = Position(2, 0, 1.1), Position(1, 0, 1.0)
    assert case.may_precede(early, late) and not case.may_precede(late, early)
    case.slack_s = 0.25
    assert case.may_precede(late, early)
    assert not case.before(early, late)
