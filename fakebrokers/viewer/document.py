"""From a journal to what the page shows: rows in the order of events, and the lanes that they are in.

A row is plain values, so that 100,000 of them are quick to pack and to read; `viewer.js` draws them.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from fakebrokers.journal.memory import Journal
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.record import Record, State, Tap
from fakebrokers.journal.rows import OpRow, TracedRow
from fakebrokers.journal.run import DID, LOGGED
from fakebrokers.journal.stored import began_ns, record_of
from fakebrokers.viewer.calls import Call, call_rows
from fakebrokers.viewer.kinds import Kinds
from fakebrokers.viewer.log import STANDARD_ERROR, LogLine, line_row
from fakebrokers.viewer.model import add_model, held_row, reported
from fakebrokers.viewer.records import frame_row, stored_row, there
from fakebrokers.viewer.rows import (
    TEST,
    Lanes,
    Row,
    RunDocument,
    as_json,
    fields_of,
    hex_of,
    in_order,
)

#: States that a trace has itself.
_IN_TRACES = frozenset({State.ACCEPTED, State.CLOSED})
#: Ops by which a process is known to be a subscription.
_OF_SUBSCRIPTIONS = frozenset({"subscribe", "deliver", "assign", "drain", "returned"})
_OUTCOMES = {"ok": "ok", "fail": "failed, definitely", "info": "outcome unknown"}
_NUMBERS = re.compile(r"\d+")


def of_log(log: RunLog, logs: Sequence[tuple[str, str]] = ()) -> RunDocument:
    """The document of a stored run.

    Args:
        logs: What else is known of it: where it was written, and the text.
    """
    began = began_ns(log)
    started = began / 1e9
    did = [row for row in log.ops if row.f == DID]
    asked = [row for row in log.ops if row.f not in (DID, LOGGED)]
    sessions, subscriptions = _processes(asked)
    connections = _connections(row.connection for row in log.frames)
    lanes = Lanes(sessions, connections, subscriptions, has_test=bool(did))
    ops = _Ops(lanes)
    kinds = Kinds(log.run.protocol)
    numbered = [(row.seq, stored_row(row, began, lanes, kinds)) for row in log.frames]
    numbered += [(row.seq, ops.row(row, row.t_ns / 1e9 - started)) for row in asked]
    rows = [row for _, row in sorted(numbered, key=lambda each: each[0])]
    passed = [_bytes(row, started, lanes) for row in log.trace if row.what in ("in", "out")]
    besides = [*script_rows(did, started, lanes), *logged_rows(log, started)]
    rows, facts = reported(in_order([*besides, *rows, *passed]))
    title = log.run.name or log.run.run
    document = RunDocument(title, about_run(log), lanes.all, rows, list(logs), facts=facts)
    return add_model(document, log.run.protocol)


def script_rows(did: Iterable[OpRow], started: float, lanes: Lanes) -> list[Row]:
    """What the script of a scenario did to the fake; see `RunJournal.did`.

    Args:
        started: When the run began, seconds on the journal's clock.
    """
    found = []
    for row in did:
        name, _, given = row.note.partition("(")
        details = [("called", row.note)]
        t = row.t_ns / 1e9 - started
        found.append(Row(t, "did", lanes.test, "", name, given.removesuffix(")"), "", [], 0, details))
    return found


def logged_rows(log: RunLog, started: float) -> list[Row]:
    """What the client's process wrote to standard error; `started` as in `script_rows`."""
    lines = [LogLine(row.t_ns / 1e9, STANDARD_ERROR, row.note) for row in log.ops if row.f == LOGGED]
    return [line_row(line, started, 0) for line in lines]


def of_the_broker(log: RunLog, started: float, lanes: Lanes) -> list[Row]:
    """What a trace does not show of a journal: states, frames that a fault touched, what the fake reported.

    What it reported has as its link the place of the frame that passed last, if that was then: connection,
    direction and number.

    Args:
        started: When the run began, seconds on the journal's clock.
        lanes: Of the page.
    """
    began, kinds = round(started * 1e9), Kinds(log.run.protocol)
    passed: Counter[str] = Counter()
    found, link, at = list[Row](), "", 0.0
    for row in log.frames:
        record = record_of(row, began)
        is_state = record.tap is Tap.STATE
        if record.fault or (is_state and record.kind not in _IN_TRACES):
            found.append(stored_row(row, began, lanes, kinds))
        if is_state and record.kind == State.HOLDS:
            found[-1].links += [link] if link and at == record.at else []
        elif record.tap & (Tap.RECEIVED | Tap.SENT) and not row.envelope and not row.part:
            place = f"{record.connection} {record.tap.direction}"
            passed[place] += 1
            link, at = f"{place} {passed[place]}", record.at
    return found


def of_journal(
    title: str,
    journal: Journal,
    about: Mapping[str, str],
    *,
    protocol: str = "",
    calls: Sequence[Call] = (),
    failure: str = "",
    ended_s: float | None = None,
    logs: Sequence[tuple[str, str]] = (),
    lines: Sequence[LogLine] = (),
) -> RunDocument:
    """The document of a fake's journal in memory.

    Args:
        about: Label and text.
        protocol: Of the fake; without it the page does not show what the broker knew.
        calls: What the test did to the fake.
        failure: Why the test failed.
        ended_s: When it did, on the clock of the fake; None: with the last row.
        logs: What was written besides: where, and the text.
        lines: Of a log, with their times on the clock of the fake.
    """
    records = journal.records()
    lanes = Lanes(
        (), _connections(record.connection for record in records), has_test=bool(calls or failure or lines)
    )
    began_s = journal.started_at if records else min((call.began_s for call in calls), default=0.0)
    rows = call_rows(calls, began_s, lanes.test)
    rows += _with_holdings(records, journal, began_s, lanes)
    rows += [line_row(line, began_s, lanes.test) for line in lines]
    if failure:
        last = max((row.t for row in rows), default=0.0)
        at_s = last if ended_s is None else max(last, ended_s - began_s)
        rows.append(_failure(at_s, lanes.test, "the test failed", failure))
    rows, facts = reported(in_order(rows))
    document = RunDocument(title, list(about.items()), lanes.all, rows, list(logs), facts=facts)
    return add_model(document, protocol)


def _with_holdings(
    records: Sequence[Record], journal: Journal, began_s: float, lanes: Lanes
) -> Iterator[Row]:
    """Records, and after each what the fake reported then.

    Args:
        began_s: See `call_rows`.
    """
    holdings = deque(journal.holdings)
    for record in [*records, None]:
        while holdings and (record is None or holdings[0].seq < record.seq):
            holding = holdings.popleft()
            is_older = bool(records) and holding.seq < records[0].seq - 1  # than all that is kept
            at = records[0].at if is_older else holding.at - began_s
            yield held_row(at, as_json(holding.changes))
        if record is not None:
            yield frame_row(record, None if record.frame is None else fields_of(record.frame), lanes)


def add_failure(document: RunDocument, name: str, text: str) -> None:
    """Say at the end of a run why it counts as failed."""
    last = document.rows[-1].t if document.rows else 0.0
    lane = next((number for number, each in enumerate(document.lanes) if each.kind == TEST), 0)
    document.rows.append(_failure(last, lane, name, text))


def _failure(t: float, lane: int, name: str, text: str) -> Row:
    return Row(t, "failure", lane, "", name, text.partition("\n")[0], "", [], 0, [("error", text)])


def _processes(ops: Sequence[OpRow]) -> tuple[list[str], list[str]]:
    """Sessions and subscriptions."""
    names = dict.fromkeys(row.process for row in ops)
    reading = {row.process for row in ops if row.f in _OF_SUBSCRIPTIONS and row.process}
    return [name for name in names if name not in reading], [name for name in names if name in reading]


def _connections(names: Iterable[str]) -> list[str]:
    """In the order of their numbers."""
    return sorted(dict.fromkeys(filter(None, names)), key=lambda name: (_number_in(name), name))


def _number_in(name: str) -> int:
    return int((_NUMBERS.findall(name) or ["0"])[-1])


class _Ops:
    """The rows of what the client was asked to do, and reported."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._numbers: dict[tuple[str, int], int] = {}
        self._begun: dict[int, float] = {}

    def row(self, row: OpRow, t: float) -> Row:
        number = 0
        if row.op_id is not None:
            number = self._numbers.setdefault((row.process, row.op_id), len(self._numbers) + 1)
        what = "op" if row.outcome == "invoke" else "event" if row.op_id is None else "end"
        said = [row.key or "", row.value or ""]
        if what == "op":
            self._begun[number] = t
        elif what == "end":
            took = t - self._begun.get(number, t)
            said = [_OUTCOMES.get(row.outcome, row.outcome), row.error or "", f"after {took * 1000:.1f} ms"]
        elif row.offset is not None:
            said.append(f"at {row.offset}")
        if row.note:
            said.append(row.note)
        details = {
            "session": row.process,
            "op": "" if row.op_id is None else str(row.op_id),
            "outcome": row.outcome,
            "log": row.key or "",
            "message": row.value or "",
            "offset": "" if row.offset is None else str(row.offset),
            "key on the wire": row.wire_key or "",
            "error": row.error or "",
            "note": row.note,
        }
        return Row(
            t,
            what,
            self._lanes.session(row.process),
            "fail" if what == "end" and row.outcome != "ok" else "",
            row.f,
            " ".join(filter(None, said)),
            "",
            _op_links(row),
            number,
            there(details),
        )


def _op_links(row: OpRow) -> list[str]:
    links = [f"v:{row.value}"] if row.value else []
    if row.wire_key:
        links.append(f"{'p' if row.f == 'publish' else 'd'}:{row.wire_key}")
    elif row.offset is not None and row.f == "deliver":
        links.append(f"d:{row.offset}")
    return links


def _bytes(row: TracedRow, started: float, lanes: Lanes) -> Row:
    """What passed, as it was."""
    data = msgspec.msgpack.decode(row.data)
    parts = data if isinstance(data, list) else [data]
    size = sum(map(len, parts))
    return Row(
        row.t_s - started,
        "bytes",
        lanes.connection(row.connection),
        row.what,
        f"{size} bytes",
        "from the client" if row.what == "in" else "to the client",
        "",
        [],
        0,
        [("connection", row.connection), *hex_of(parts)],
    )


def about_run(log: RunLog) -> list[tuple[str, str]]:
    """What is true of a whole run, label and text."""
    run = log.run
    client = f"{run.client} {run.client_version}".strip()
    facts = {
        "client": client,
        "protocol": " ".join(filter(None, (run.protocol, run.variant, run.profile))),
        "scenario": run.scenario,
        "verdict": run.verdict,
        "seed": "" if run.seed is None else str(run.seed),
        "contract": run.contract,
        "findings": ", ".join(run.findings),
        "note": run.note,
        "run": run.run,
    }
    facts |= {metric.name: f"{metric.value:g}" for metric in log.metrics}
    return there(facts)
