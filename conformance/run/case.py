"""All that invariants judge: one run, read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from conformance.clients.adapter.contract import Contract
from conformance.run.acts import ACTS
from conformance.run.bases import RunOp
from conformance.run.facts import Facts
from conformance.run.material import SweepProtocol
from conformance.run.notes import Notes
from conformance.run.reported import PUBLISHING, ReportedEvent, ReportedOutcome, bodies_in, outcomes
from conformance.run.specs import Spec
from conformance.run.trace import Position, TraceRow
from conformance.run.traits import Traits
from conformance.run.view import Conn, read_trace
from fakebrokers.core.frames import Malformed
from fakebrokers.journal.reader import RunLog

REST_S = 30.0  #: that the rest of a frame takes only where its length is wrong


class Case:
    """One run.

    Attributes:
        rows: The trace.
        ops: In the order in which they were begun; all have a result unless there is an `error`.
        events: What the client reported unasked, in its order.
        marks: When the phases of the base began: ``calm``, ``probe``, ``close``, ``closed``.
        notes: What the script has said of the run.
        touched: Connections at which a fault acted, and those that the base has ended.
        hits: How often a fault acted.
        stored: What the broker has at the end, by target: position and body.
        complaints: What was written to stderr or got to the loop's handler of exceptions.
        client_log: What the client has written to stderr, where it may log what it wants.
        client_lines: The lines of that with the times at which they came, seconds, where these are known.
        violations: How the adapter broke its protocol.
        last_words: What a client that has ended wrote to stderr about that.
        error: Why the run has no end: the client did not let the base go on.
        shared: What several rules look up, found once; by the name of the rule's function.
        contract: What the client may do besides what every client does.
        harness: What went wrong besides the client.
        lies: The client got, or the broker heard, what the other did not say.
        rest: What ``stats`` reported before anything began.
        ended_s: When the run ended, seconds.
        log: What the broker's side saw of it, where that was recorded; see `held` and `ChaosCase`.
        lag_s: How long the harness itself stopped at most, seconds; 0 on virtual time.
        is_starved: The machine kept client or harness waiting for so long that it may be the reason.
        slack_s: What may lie between the moment at which a client is handed something and that at which it
            has it, and between its word and the row of it: 0 in memory.
    """

    def __init__(
        self, spec: Spec, material: SweepProtocol, rows: list[TraceRow], ops: Sequence[RunOp], events: Any
    ) -> None:
        self.spec = spec
        self.material = material
        self.rows = rows
        self.ops = ops
        self.events: list[ReportedEvent] = list(events)
        self.marks: dict[str, Position] = {}
        self.notes = Notes()
        self.touched: frozenset[str] = frozenset()
        self.hits = 0
        self.stored: dict[str, list[tuple[Any, bytes]]] = {}
        self.complaints = ""
        self.client_log = ""
        self.client_lines: list[tuple[float, str]] = []
        self.violations: list[str] = []
        self.last_words = ""
        self.error = ""
        self.harness = ""
        self.lies = False
        self.contract = Contract()
        self.shared: dict[str, Any] = {}
        self.rest: dict[str, Any] = {}
        self.ended_s = 0.0
        self.slack_s = 0.0
        self.is_starved = False
        self.lag_s = 0.0
        self.log: RunLog | None = None

    def may_precede(self, first: Position, second: Position) -> bool:
        """Whether the client may have had the first when it did the second."""
        first = self._early.get(first, first)
        return first < second or (self.slack_s > 0 and first.t - self.slack_s < second.t)

    def before(self, first: Position, second: Position) -> bool:
        """Whether the client has certainly seen the first when it did the second."""
        return first < second and (not self.slack_s or second.t - first.t > self.slack_s)

    @property
    def is_one_session(self) -> bool:
        """Whether the application has connected but once: what is reported to one session others need not
        know."""
        return len(self._ops_by_name["connect"]) < 2

    def may_be_unread(self, conn: Conn, at: Position) -> bool:
        """Whether a connection was reset so soon after what had come that the system may have thrown that
        away."""
        return conn.ended is not None and conn.was_reset and conn.ended.t - at.t < self.slack_s

    @property
    def traits(self) -> Traits:
        """What is known of the protocol."""
        return self.material.traits

    def positions(self) -> Iterator[tuple[Position, TraceRow]]:
        """All rows with their positions."""
        for number, row in enumerate(self.rows):
            yield Position(number, 0, row.t), row

    @cached_property
    def _read(self) -> tuple[dict[str, Conn], Facts]:
        conns, facts = read_trace(self.rows, self.traits.reading), Facts()
        for conn in conns.values():
            self.traits.reading.track(conn, facts, self.traits.questions)
        facts.sort()
        self.traits.reading.know(conns, self.ops, facts)
        formats = self.contract.hello.formats if self.contract.hello is not None else []
        if formats:
            facts.unwrap(partial(self.traits.reading.content, form=formats[0]))
        return conns, facts

    @cached_property
    def _early(self) -> dict[Position, Position]:
        """Frames on which a client may act before they have come whole: since when."""
        return {
            seen.at: seen.since
            for conn in self.conns.values()
            for seen in conn.frames
            if seen.since is not None
        }

    @property
    def conns(self) -> dict[str, Conn]:
        """The connections, read by a decoder of their own, with what is known of them."""
        return self._read[0]

    @property
    def facts(self) -> Facts:
        """What the frames mean."""
        return self._read[1]

    @property
    def reconnects(self) -> bool:
        """Whether the session was asked to connect again by itself."""
        return self.notes.reconnects is not False

    @property
    def is_truthful(self) -> bool:
        """Whether all that the client got is what the broker did."""
        return not self.lies and not any(ACTS[injection.act].lies for injection in self.spec.injections)

    @cached_property
    def reported(self) -> list[ReportedOutcome]:
        """What was reported to the application of each message that it published."""
        own_keys = self.contract.allows("own_keys")
        return list(outcomes(self.ops, self.events, self.facts.written, self.traits, own_keys))

    def has_unread(self, done: RunOp) -> bool:
        """Whether something came while an op was open that is not by the letter of the protocol."""
        frames = (seen for conn in self.conns.values() for seen in conn.of("out"))
        strange = [seen.at for seen in frames if self.traits.reading.is_odd(seen.frame)]
        return any(
            done.begun < at and (done.ended is None or self.may_precede(at, done.ended)) for at in strange
        )

    def is_unread(self, conn: Conn, until: Position) -> bool:
        """Whether something came on a connection that the decoder cannot read: what a client that
        makes sense of it takes the connection for, is not known here."""
        return any(isinstance(seen.frame, Malformed) and seen.at < until for seen in conn.of("out"))

    @cached_property
    def inside(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The ops that callbacks run, with their arguments: each for every message that comes."""
        plans = [done.args.get("on_message") or {} for done in self.ops]
        return [(op["op"], op.get("args", {})) for plan in plans for op in plan.get("do", ())]

    @cached_property
    def published_besides(self) -> set[bytes]:
        """The bodies that callbacks publish, with every message that comes, and ops without outcome."""
        found = {body for op, args in self.inside if op in PUBLISHING for body in bodies_in(op, args)}
        return found.union(
            *(bodies_in("publish", done.args) for done in self.done(*self.traits.settlement.posting))
        )

    @property
    def is_connected(self) -> bool:
        """Whether the base got its session at all."""
        return not self.notes.without_connection

    @cached_property
    def is_clear(self) -> bool:
        """Whether no connection that is open waits for the rest of a frame, or has waited for long: a client
        that does so, because the length field says so, does nothing wrong."""
        close = self.mark("close")
        return all(conn.slowest_s < REST_S for conn in self.conns.values()) and all(
            not conn.partial or (conn.ended is not None and (close is None or conn.ended < close))
            for conn in self.conns.values()
        )

    def done(self, *ops: str) -> Iterator[RunOp]:
        """The ops of these names."""
        if len(ops) == 1:
            return iter(self._ops_by_name[ops[0]])
        return (done for done in self.ops if done.op in ops)

    def heard(self, what: str) -> Iterator[ReportedEvent]:
        """The events of that name."""
        return iter(self._events_by_name[what])

    @cached_property
    def _ops_by_name(self) -> defaultdict[str, list[RunOp]]:
        found: defaultdict[str, list[RunOp]] = defaultdict(list)
        for done in self.ops:
            found[done.op].append(done)
        return found

    @cached_property
    def _events_by_name(self) -> defaultdict[str, list[ReportedEvent]]:
        found: defaultdict[str, list[ReportedEvent]] = defaultdict(list)
        for heard in self.events:
            found[heard.what].append(heard)
        return found

    def session_events(self, *whats: str) -> list[ReportedEvent]:
        """What was reported of sessions."""
        return [heard for heard in self.heard("session") if heard["what"] in whats]

    def mark(self, phase: str) -> Position | None:
        """When a phase began."""
        return self.marks.get(phase)
