"""A run of a scenario as the invariants judge it: a trace of bytes, ops and events, read as a `Case`.

What a base script says of itself (`conformance.run`) is read here from what the script did and from the wire
journal: which connections a fault touched, whether the client got the truth, how many sessions
there are, when the last one was closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from conformance.clients.adapter.base import Adapter, Call
from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.messages import Event, Hello
from conformance.run.bases import LiveOp, RunOp
from conformance.run.case import Case
from conformance.run.inprocess import place_in_trace
from conformance.run.material import material_of
from conformance.run.notes import Notes
from conformance.run.pace import SLACK_S
from conformance.run.reported import ReportedEvent
from conformance.run.specs import Spec
from conformance.run.trace import Trace
from conformance.run.traits import Traits
from conformance.suite.evidence import proxy_of
from conformance.suite.scenario import Scenario
from fakebrokers.core.onlooking import can_be_watched
from fakebrokers.errors import UsageError
from fakebrokers.journal import Record, Tap
from fakebrokers.journal.record import STATE_LOST, Meaning, State, meaning_of
from fakebrokers.protocol import find_protocol
from fakebrokers.simulation import SimulationLoop

MOST_ROWS = 20_000  #: of a trace; what is there to load a client costs too much to be read a second time
TLS_HELLO = b"\x16\x03"
MOST_BYTES = 8 << 20


class TracedRun:
    """Takes down one run; an `Onlooker` of the client. Make it on the loop on which the script will run.

    Args:
        adapter: At rest, in the state after hello.
    """

    def __init__(self, adapter: Adapter) -> None:
        loop = asyncio.get_running_loop()
        self.trace = Trace(loop.time)
        self._least_s = SLACK_S if isinstance(loop, SimulationLoop) else 0.0
        self.ops: list[LiveOp] = []
        self._adapter = adapter
        self._events: tuple[Event, ...] = ()
        self._is_anew = False
        self._ended_s = 0.0
        self._stopped_s = 0.0
        adapter.onlooker = self

    def begun(self, call: Call, deadline_s: float) -> None:
        self._is_anew = self._is_anew or call.op == "hello"
        self.ops.append(LiveOp(call, call.args, deadline_s, self.trace.note("op", call.op), ""))

    def stopped(self, seconds: float) -> None:
        self._stopped_s += seconds

    def wrote(self, what: int | str, n: int) -> None:
        if isinstance(what, int):
            self.trace.note("answer", what)
        else:
            self.trace.note("event", n)

    def end(self) -> None:
        """The script is over. What comes from here on is not the client's doing."""
        self._adapter.onlooker = None
        self._ended_s = self.trace.clock()
        self._events = tuple(self._adapter.events)
        self.trace = self.trace.cut()
        for done in self.ops:
            done.result = done.call.result

    @property
    def ends(self) -> tuple[str, ...]:
        """Who ended each connection first, in the order of the ends: ``c1 client``."""
        rows = [row for row in self.trace.rows if row.what == "end"]
        found: dict[str, str] = {}
        for row in rows:
            found.setdefault(row.connection, f"{row.connection} {row.data[0]}")
        return tuple(found.values())

    def unread(self, scenario: Scenario, broker: Any, records: Sequence[Record]) -> str:
        """Why nothing can be said of this run; "" if it can."""
        if scenario.sockets or proxy_of(broker) is not None or not can_be_watched(broker):
            return "the client spoke to a server whose frames are not in the trace"
        if any(record.tap is Tap.STATE and meaning_of(record.kind) & Meaning.ELSEWHERE for record in records):
            return "the client also spoke to another broker"
        if self._is_anew or not self._adapter.alive:
            return "the client has ended, or was started anew"
        rows = self.trace.rows
        if any(row.what == "in" and row.data[:2] == TLS_HELLO for row in rows):
            return "the client speaks TLS where the broker does not"
        bulk = sum(len(row.data) for row in rows if row.what in ("in", "out") and isinstance(row.data, bytes))
        if len(rows) > MOST_ROWS or bulk > MOST_BYTES:
            return "the run is too long to be read a second time"
        try:
            material = material_of(scenario.protocol)
        except UsageError as error:
            return str(error)
        is_known = isinstance(broker, find_protocol(scenario.protocol).load())
        return (
            ""
            if is_known and material.traits.reading.reads(broker)
            else "there is no model of what is spoken here"
        )

    def case(self, scenario: Scenario, broker: Any, records: Sequence[Record], *, lag_s: float) -> Case:
        """The run as a case.

        Args:
            broker: The fake, stopped.
            records: Its journal.
            lag_s: How long the harness stood still.
        """
        spec = Spec(scenario.protocol, scenario.id)
        events = [ReportedEvent(event) for event in self._events]
        _rename(self.ops, events, material_of(scenario.protocol).traits)
        case = Case(spec, material_of(scenario.protocol), self.trace.rows, self.ops, events)
        case.contract = Contract(self._adapter.hello)
        case.notes = _notes(self.ops, records, self._adapter.hello)
        case.touched = frozenset(touched(records))
        case.hits = sum(1 for record in records if record.fault)
        case.lies = any(map(_is_lie, records)) or bool(broker.journal.dropped)
        case.stored = case.traits.reading.stored(broker)
        case.violations = list(self._adapter.violations)
        case.ended_s = self._ended_s
        case.lag_s = lag_s
        case.slack_s = self._stopped_s + (self._least_s if broker.in_memory else SLACK_S + lag_s)
        case.rest = next(
            (
                d.result.value
                for d in _before_connect(self.ops)
                if d.op == "stats" and d.result and d.result.ok
            ),
            {},
        )
        _set_phases(case)
        place_in_trace(case, self.ops)
        return case


def _rename(ops: Sequence[RunOp], events: list[ReportedEvent], traits: Traits) -> None:
    """Give targets the names that they have on the wire."""
    pairs = [traits.reading.names(done.args) for done in ops]
    names = dict(pair for pair in pairs if pair is not None)
    for done in ops:
        if done.args.get("target") in names:
            done.args = {**done.args, "target": names[done.args["target"]]}
    for heard in events:
        more: dict[str, Any] = {}
        if (target := heard["target"]) in names:
            more["target"] = names[target]
        if isinstance(targets := heard["targets"], list):
            more["targets"] = [names.get(one, one) for one in targets]
        if more:
            heard.event = msgspec.structs.replace(heard.event, fields={**heard.event.fields, **more})


def touched(records: Sequence[Record]) -> tuple[str, ...]:
    """The connections at which a fault acted, or which the broker cut, in the order of the journal."""
    return tuple(dict.fromkeys(r.connection for r in records if r.connection and (r.fault or _cuts(r))))


def _cuts(record: Record) -> bool:
    return record.tap is Tap.STATE and bool(meaning_of(record.kind) & Meaning.CUT)


def _is_lie(record: Record) -> bool:
    """Whether the client got what the broker did not mean, or the broker heard what it did not say."""
    if record.tap is Tap.STATE:
        return record.kind == State.BYTES
    return record.tap in (Tap.SENT, Tap.HEARD)


def _before_connect(ops: Sequence[RunOp]) -> Iterator[RunOp]:
    for done in ops:
        if done.op == "connect":
            return
        yield done


def _notes(ops: Sequence[RunOp], records: Sequence[Record], hello: Hello) -> Notes:
    """What a base script would say of the run."""
    connects = [done for done in ops if done.op == "connect"]
    worked = [done for done in connects if done.result is not None and done.result.ok]
    names = {done.args.get("session") for done in connects}
    asked = [(done.args.get("options") or {}).get("auto_reconnect", True) for done in connects]
    states = [record for record in records if record.tap is Tap.STATE]
    return Notes(
        sessions=max(1, len(names), len(worked)),
        without_connection=not worked,
        reconnects=hello.can("auto_reconnect") and all(asked),
        oversized=True,  # scripts ask for what cannot be sent, to see it refused
        raises=_raises(ops),
        abandons=any(done.op in ("cancel", "abort") for done in ops),
        forgets=any(meaning_of(r.kind) & Meaning.LOSS or r.note == STATE_LOST for r in states),
        unreachable=any(r.kind in (State.REFUSING, State.BLACK_HOLE) for r in states),
    )


def _raises(ops: Sequence[RunOp]) -> bool:
    """Whether callbacks are ordered to raise errors."""
    plans = [done.args.get("on_message") or {} for done in ops if done.op == "subscribe"]
    return any(done.op == "raise_next" for done in ops) or any(plan.get("raise_on") for plan in plans)


def _set_phases(case: Case) -> None:
    """After the begin of the last close that nothing follows, ops belong to the end."""
    last = max((n for n, done in enumerate(case.ops) if done.op in ("connect", "close")), default=None)
    if last is None or case.ops[last].op != "close":
        return
    for done in case.ops[last:]:
        done.phase = "close"
    case.marks["close"] = case.ops[last].begun
