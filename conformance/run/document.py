"""A run as its page shows it: frames as the client had them, read by the judge's own decoders, with their
bytes; ops and events between them, in the order in which all of it happened.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from conformance.clients.adapter.kit.bodies import body_parts
from conformance.clients.adapter.kit.failure import Failure
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.reported import PUBLISHING, ReportedEvent, joined
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import kind_of
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.viewer.document import of_the_broker
from fakebrokers.viewer.frames import (
    BODIES,
    KEYS_LINKED,
    beginning,
    counts_of,
    group_of,
    keys_of,
    linked,
    said_of,
    span_of,
)
from fakebrokers.viewer.log import MOST_LINES, STANDARD_ERROR, LogLine, line_row
from fakebrokers.viewer.model import HELD, add_model, reported
from fakebrokers.viewer.rows import (
    Lanes,
    Row,
    RunDocument,
    as_json,
    fields_of,
    hex_of,
    in_order,
    its_end,
    shortened,
)

MOST_PROOFS = 50  #: rows that a violated rule names
MOST_LOG = 64_000  #: characters of what the client has written, its end


class RuleMark(NamedTuple):
    """A violated rule, as a page marks it.

    Attributes:
        row: Of the trace, where it shows.
        sentence: What happened.
        about: What the rule demands and why: label and text.
        rows: All rows of the trace that prove it.
    """

    row: int
    name: str
    sentence: str
    about: Sequence[tuple[str, str]] = ()
    rows: Sequence[int] = ()


def document_of(
    case: Case,
    title: str,
    about: Mapping[str, str],
    violated: Iterable[RuleMark] = (),
    besides: Callable[[float, Lanes], Sequence[Row]] = lambda _, __: (),
    *,
    has_test: bool = False,
) -> RunDocument:
    """The page's document of a run.

    Args:
        about: Label and text.
        besides: Gets when the run began, in seconds, and the lanes: rows of the broker's side, such as what a
            fault took. They come after what is as early.
        has_test: Whether it knows what the script did.
    """
    violated = list(violated)
    began_s = case.rows[0].t if case.rows else 0.0
    readers = list(dict.fromkeys(str(done.args["sub"]) for done in case.ops if done.args.get("sub")))
    sessions = [name for name in dict.fromkeys(map(_session, case.ops)) if name not in readers]
    lanes = Lanes(sessions, list(case.conns), readers, has_test=has_test)
    placed = [*_frames(case, lanes), *_ops(case, lanes), *_rules(case, violated)]
    placed.sort(key=lambda pair: pair[0])
    for at, row in placed:
        row.t = at.t - began_s
    lines = [LogLine(at_s, STANDARD_ERROR, text) for at_s, text in case.client_lines if at_s >= began_s]
    more = [*besides(began_s, lanes), *(line_row(line, began_s, 0) for line in lines[-MOST_LINES:])]
    for row in more:
        row.counts = []  # what the client had of them is in the trace
    rows, facts = reported(in_order([*_with_holdings([row for _, row in placed], more), *more]))
    _prove(rows, placed, violated)
    document = RunDocument(title, list(about.items()), lanes.all, rows, _logs(case), True, facts)
    return add_model(document, case.spec.protocol)


def seen_by_the_broker(log: RunLog | None) -> Callable[[float, Lanes], Sequence[Row]]:
    """The `besides` of a run whose broker's side was recorded; without rows where it was not."""
    return lambda began_s, lanes: () if log is None else of_the_broker(log, began_s, lanes)


def _with_holdings(rows: Sequence[Row], more: list[Row]) -> Iterator[Row]:
    """The rows of a trace, and what the fake reported, taken out of `more`, after the frames that changed it.

    Times alone would not do: on virtual time much happens at once.
    """
    holdings = [row for row in more if row.what == HELD]
    more[:] = [row for row in more if row.what != HELD]
    passed: Counter[str] = Counter()
    places: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.what in ("in", "out"):
            place = f"{dict(row.details)['connection']} {row.what}"
            passed[place] += 1
            places[f"{place} {passed[place]}"] = number
    times, after, at = [row.t for row in rows], defaultdict[int, list[Row]](list), -1
    for held in holdings:
        place = "".join(held.links)
        at = max(at, places.get(place, bisect_left(times, held.t) - 1))
        if at >= 0 and (place in places or held.t < times[at]):
            held.t = times[at]
        after[at].append(held)
    yield from after[-1]
    for number, row in enumerate(rows):
        yield row
        yield from after[number]


def _prove(rows: Sequence[Row], placed: Sequence[tuple[Position, Row]], violated: Sequence[RuleMark]) -> None:
    """Say in the rows of violated rules which rows of the page prove them."""
    numbers = {id(row): number for number, row in enumerate(rows)}
    places: dict[int, list[int]] = {}
    for at, row in placed:
        if row.what != "rule":
            places.setdefault(at.row, []).append(numbers[id(row)])
    proofs = {(each.name, each.sentence): each.rows for each in violated}
    for row in rows:
        if row.what == "rule":
            proof = [number for each in proofs[row.name, row.text] for number in places.get(each, ())]
            if proof:
                row.details.insert(2, ("rows", " ".join(map(str, proof[:MOST_PROOFS]))))


def _logs(case: Case) -> list[tuple[str, str]]:
    """What the client has written to its standard error, or what it died with."""
    found = {
        "the client's standard error": case.complaints,
        "its last words": case.last_words,
        "not as the adapter protocol has it": "\n".join(case.violations),
    }
    return [(label, its_end(text, MOST_LOG)) for label, text in found.items() if text.strip()]


def _session(done: RunOp) -> str:
    return str(done.args.get("sub") or done.args.get("session") or "")


def _frames(case: Case, lanes: Lanes) -> Iterator[tuple[Position, Row]]:
    for conn in case.conns.values():
        lane = lanes.connection(conn.name)
        yield conn.accepted, Row(0.0, "state", lane, "", "connected", conn.socket, "", [], 0, [])
        secret = {seen.at.row for seen in conn.frames if seen.frame.spec.has_secrets}
        for seen in conn.frames:
            parts = () if seen.at.row in secret else _parts(case.rows[seen.at.row].data)
            yield seen.at, _frame(conn, seen, lane, parts)
        if conn.ended is not None:
            how = "by a reset" if conn.was_reset else ""
            yield (
                conn.ended,
                Row(0.0, "state", lane, "", f"ended by the {conn.ended_by}", how, "", [], 0, []),
            )


def _parts(data: Any) -> Sequence[bytes]:
    """The bytes that passed at once, with one frame or several: one piece, or the parts of a message."""
    return [bytes(part) for part in (data if isinstance(data, tuple | list) else (data,))]


def _frame(conn: Conn, seen: SeenFrame, lane: int, parts: Sequence[bytes]) -> Row:
    """A frame.

    Args:
        parts: The bytes in which it came; none where credentials are among them.
    """
    frame = seen.frame
    keys = keys_of(frame)
    counts = counts_of(frame, seen.direction)
    group = group_of({role for role, _ in counts}, conn.name)
    links = linked(keys, group)
    details = [
        ("connection", conn.name),
        ("size", f"{seen.size} bytes"),
        ("fields", shortened(fields_of(frame))),
    ]
    details += hex_of(parts)
    text, span = said_of(frame, keys), span_of(frame, group, links)
    return Row(0.0, seen.direction, lane, "", kind_of(frame), text, "", links, 0, details, counts, span)


def _option(given: Any) -> Any:
    """An argument of an op; options are how the application logs in, among other things."""
    return without_secrets(given) if isinstance(given, Mapping) else given


def _said(given: Mapping[str, Any]) -> str:
    """What an op or an event is about: a target, an action, how bodies begin."""
    said = [str(given.get(name) or "") for name in ("target", "action", "event", "topic")]
    bodies = [each["body"] for each in (given, *(given.get("messages") or ())) if "body" in each]
    said.append(", ".join(beginning(_body(body)) for body in bodies[:BODIES]))
    said.append("..." if len(bodies) > BODIES else "")
    return " ".join(filter(None, said))


def _body(given: Any) -> Any:
    """A body in the adapter protocol, as bytes where it is one; of a large one a sum is reported."""
    try:
        return joined(body_parts(given))
    except (Failure, KeyError, TypeError, ValueError):
        return given


def _op_links(done: RunOp) -> list[str]:
    """What an op has in common with its events, and with the frames of its messages."""
    links, value = [f"o:{done.id}"], done.result.value if done.result is not None else None
    rows = (value.get("outcomes") or [value]) if isinstance(value, Mapping) else []
    links += [
        f"p:{row['key']}"
        for row in rows[:KEYS_LINKED]
        if done.op in PUBLISHING and row.get("key") is not None
    ]
    return links


def _event_links(heard: ReportedEvent) -> list[str]:
    """The same of an event."""
    links = [f"o:{heard['id']}"] if heard["id"] is not None else []
    if heard["ref"] is not None:
        links.append(f"m:{heard['sub']}:{heard['ref']}")
    if heard["position"] is not None:
        links.append(f"d:{heard['position']}")
    elif heard["key"] is not None:
        links.append(f"p:{heard['key']}")
    return links


def _ops(case: Case, lanes: Lanes) -> Iterator[tuple[Position, Row]]:
    for done in case.ops:
        lane, links = lanes.session(_session(done)), _op_links(done)
        given = {name: _option(each) for name, each in done.args.items()}
        details = [("fields", shortened(as_json(given)))]
        yield done.begun, Row(0.0, "op", lane, "", done.op, _said(given), "", links, done.id, details)
        if done.ended is not None and done.result is not None:
            value = as_json(done.result.value)
            took = f"after {(done.ended.t - done.begun.t) * 1000:.1f} ms"
            text = f"{done.result.outcome if done.op == 'publish' else done.result.word} {took}"
            tap = "" if done.result.ok else "fail"
            details = [("result", str(done.result)), ("fields", shortened(value))]
            yield done.ended, Row(0.0, "end", lane, tap, done.op, text, "", links, done.id, details)
    for heard in case.events:
        fields = heard.event.fields
        what = " ".join(filter(None, (str(heard["what"] or heard["outcome"] or ""), _said(fields))))
        details = [("fields", shortened(as_json(fields)))]
        lane = lanes.session(str(heard["sub"] or heard["session"] or ""))
        yield heard.at, Row(0.0, "event", lane, "", heard.what, what, "", _event_links(heard), 0, details)


def _rules(case: Case, violated: Iterable[RuleMark]) -> Iterator[tuple[Position, Row]]:
    """After all that is in the row that shows it."""
    for each in violated:
        at_s = case.rows[each.row].t if 0 <= each.row < len(case.rows) else case.ended_s
        details = [("rule", each.name), ("what happened", each.sentence), *each.about]
        at = Position(each.row, 1 << 30, at_s)
        yield at, Row(0.0, "rule", 0, "", each.name, each.sentence, "", [], 0, details)
