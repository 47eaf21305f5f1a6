"""A run as its page shows it: frames as the client had them, read by the judge's own decoders, with their
bytes; ops and events between them, in the order in which all of it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.viewer.document import (
    HEX_BYTES,
    Lanes,
    Row,
    RunDocument,
    as_json,
    brief,
    fields_of,
    links_of,
)

#: A violated rule: the row of the trace that shows it, its name, what happened.
Violated = tuple[int, str, str]


def document_of(
    case: Case,
    title: str,
    about: Mapping[str, str],
    violated: Iterable[Violated] = (),
    besides: Callable[[float, Lanes], Sequence[Row]] = lambda _, __: (),
) -> RunDocument:
    """The page's document of a run.

    Args:
        about: Label and text.
        besides: Gets when the run began, in seconds, and the lanes: rows of the broker's side, such as what a
            fault took. They come after what is as early.
    """
    sessions = list(dict.fromkeys(map(_session, case.ops)))
    lanes = Lanes(sessions, list(case.conns))
    began_s = case.rows[0].t if case.rows else 0.0
    placed = [*_frames(case, lanes), *_ops(case, lanes), *_rules(case, violated)]
    placed.sort(key=lambda pair: pair[0])
    rows = [msgspec.structs.replace(row, t=round(at.t - began_s, 6)) for at, row in placed]
    rows = sorted([*rows, *besides(began_s, lanes)], key=lambda row: row.t)
    return RunDocument(title, list(about.items()), lanes.all, rows)


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
    keys = links_of(frame, seen.direction, conn.name)
    details = [("connection", conn.name), ("size", f"{seen.size} bytes"), ("fields", fields_of(frame))]
    details += [("hex", part[:HEX_BYTES].hex()) for part in parts]
    said = ", ".join(key.partition(":")[2] for key in keys[:3])
    text = f"#{said}{' ...' if len(keys) > 3 else ''}" if keys else brief(frame)
    return Row(0.0, seen.direction, lane, "", type(frame).__name__, text, "", keys, 0, details)


def _option(given: Any) -> Any:
    """An argument of an op; options are how the application logs in, among other things."""
    return without_secrets(given) if isinstance(given, Mapping) else given


def _ops(case: Case, lanes: Lanes) -> Iterator[tuple[Position, Row]]:
    for done in case.ops:
        lane, links = lanes.session(_session(done)), [f"o:{done.id}"]
        args = as_json({name: _option(each) for name, each in done.args.items()})
        said = [
            str(done.args.get("target") or ""),
            shown(done.args["body"], 40) if "body" in done.args else "",
        ]
        target = " ".join(filter(None, said))
        yield (
            done.begun,
            Row(0.0, "op", lane, "", done.op, target, "", links, done.id, [("fields", args)]),
        )
        if done.ended is not None and done.result is not None:
            value = as_json(done.result.value)
            took = f"after {(done.ended.t - done.begun.t) * 1000:.1f} ms"
            text = f"{done.result.outcome if done.op == 'publish' else done.result.word} {took}"
            tap = "" if done.result.ok else "fail"
            details = [("result", str(done.result)), ("fields", value)]
            yield done.ended, Row(0.0, "end", lane, tap, done.op, text, "", links, done.id, details)
    for heard in case.events:
        fields = heard.event.fields
        what = str(heard["what"] or heard["outcome"] or "")
        links = [f"o:{heard['id']}"] if heard["id"] is not None else []
        details = [("fields", as_json(fields))]
        lane = lanes.session(str(heard["sub"] or heard["session"] or ""))
        yield heard.at, Row(0.0, "event", lane, "", heard.what, what, "", links, 0, details)


def _rules(case: Case, violated: Iterable[Violated]) -> Iterator[tuple[Position, Row]]:
    """After all that is in the row that shows it."""
    for row, name, sentence in violated:
        at = Position(row, 1 << 30, case.rows[row].t if 0 <= row < len(case.rows) else case.ended_s)
        details = [("rule", name), ("what happened", sentence)]
        yield at, Row(0.0, "rule", 0, "", name, sentence, "", [], 0, details)
