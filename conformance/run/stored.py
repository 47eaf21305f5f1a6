"""A run as it is kept, so that the rules of another day can judge it: its trace, and what else a case has.

What is derived (connections, frames, facts) is not kept: it is read again, by today's decoders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.messages import Event, Hello
from conformance.clients.adapter.result import Result
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.inprocess import place_in_trace
from conformance.run.material import material_of
from conformance.run.notes import Notes
from conformance.run.reported import ReportedEvent
from conformance.run.specs import Spec
from conformance.run.trace import Position, TraceRow, What
from fakebrokers.journal.rows import TracedRow

CASE = "case"  #: what the last row of a stored trace is

#: Seconds, what, connection, data: see `fakebrokers.journal.run.RunJournal.trace`.
PlainRow = tuple[float, str, str, Any]


class StoredOp(msgspec.Struct, array_like=True):
    """An op of a run; `begun` is a row of the trace."""

    id: int
    op: str
    args: Mapping[str, Any]
    given_ms: float | None
    timeout_s: float
    phase: str
    begun: int
    result: Result | None


class StoredCase(msgspec.Struct, kw_only=True):
    """What a case has besides its trace: see `Case`.

    Attributes:
        lies: The client got, or the broker heard, what the other did not say.
        marks: Rows of the trace.
        allows: Rules that the scenario itself makes the client violate.
    """

    spec: Spec
    ops: list[StoredOp]
    events: list[Event]
    notes: Notes
    hello: Hello | None
    marks: dict[str, int] = {}
    touched: tuple[str, ...] = ()
    hits: int = 0
    stored: dict[str, list[tuple[Any, bytes]]] = {}
    complaints: str = ""
    violations: list[str] = []
    last_words: str = ""
    error: str = ""
    harness: str = ""
    lies: bool = False
    rest: dict[str, Any] = {}
    ended_s: float = 0.0
    slack_s: float = 0.0
    lag_s: float = 0.0
    is_starved: bool = False
    allows: tuple[str, ...] = ()


def rows_of(case: Case, allows: Iterable[str] = ()) -> Iterator[PlainRow]:
    """The rows to keep of a run that is over.

    Args:
        allows: Rules that count for nothing in it.
    """
    yield from case.rows
    kept = StoredCase(
        spec=case.spec,
        ops=[
            StoredOp(
                done.id,
                done.op,
                done.args,
                done.given_ms,
                done.timeout_s,
                done.phase,
                done.begun.row,
                done.result,
            )
            for done in case.ops
        ],
        events=[heard.event for heard in case.events],
        notes=case.notes,
        hello=case.contract.hello,
        marks={phase: at.row for phase, at in case.marks.items()},
        touched=tuple(sorted(case.touched)),
        hits=case.hits,
        stored=case.stored,
        complaints=case.complaints,
        violations=case.violations,
        last_words=case.last_words,
        error=case.error,
        harness=case.harness,
        lies=not case.is_truthful,
        rest=case.rest,
        ended_s=case.ended_s,
        slack_s=case.slack_s,
        lag_s=case.lag_s,
        is_starved=case.is_starved,
        allows=tuple(allows),
    )
    yield case.ended_s, CASE, "", kept


def case_of(traced: Sequence[TracedRow]) -> tuple[Case, frozenset[str]]:
    """The case of a stored trace, and the rules that count for nothing in it.

    Raises:
        ValueError: The trace has no end, or is of a release that kept other things.
        UsageError: Nothing is known of its protocol.
    """
    if not traced or traced[-1].what != CASE:
        raise ValueError("the trace has no end: the run was broken off")
    kept = msgspec.msgpack.decode(traced[-1].data, type=StoredCase)
    rows = [TraceRow(row.t_s, cast("What", row.what), row.connection, _data(row.data)) for row in traced[:-1]]

    def at(row: int) -> Position:
        return Position(row, 0, rows[row].t)

    ops = [_op(one, at(one.begun)) for one in kept.ops]
    events = [ReportedEvent(event) for event in kept.events]
    case = Case(kept.spec, material_of(kept.spec.protocol), rows, ops, events)
    for name in _SAME:
        setattr(case, name, getattr(kept, name))
    case.touched = frozenset(kept.touched)
    case.contract = Contract(kept.hello)
    place_in_trace(case, ops)
    case.marks = {phase: at(row) for phase, row in kept.marks.items()}
    return case, frozenset(kept.allows)


_SAME = (
    "notes",
    "hits",
    "stored",
    "complaints",
    "violations",
    "last_words",
    "error",
    "harness",
    "lies",
    "rest",
    "ended_s",
    "slack_s",
    "lag_s",
    "is_starved",
)


def _data(packed: bytes) -> Any:
    """As the trace had it, with the parts of a message in a tuple."""
    data = msgspec.msgpack.decode(packed)
    return tuple(data) if isinstance(data, list) else data


def _op(one: StoredOp, begun: Position) -> RunOp:
    done = RunOp(
        one.id,
        one.op,
        one.args,
        given_ms=one.given_ms,
        timeout_s=one.timeout_s,
        begun=begun,
        phase=one.phase,
    )
    done.result = one.result
    return done
