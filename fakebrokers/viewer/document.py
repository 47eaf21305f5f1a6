"""From a journal to what the page shows: rows in the order of events, and the lanes that they are in.

A row is plain values, so that 100,000 of them are quick to pack and to read; `viewer.js` draws them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Role
from fakebrokers.journal.keys import expand, key_text, raw_keys
from fakebrokers.journal.memory import Journal
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.record import Record, State, Tap
from fakebrokers.journal.rows import OpRow, TracedRow
from fakebrokers.journal.secrets import REDACTED, redacted
from fakebrokers.journal.stored import began_ns, record_of

BROKER = "broker"
LANES = 14  #: at most; what does not fit is in the last one
KEYS_LINKED = 100  #: keys of a batch by which its frame is found
HEX_BYTES = 4096  #: of a piece of bytes that the page carries
BRIEF_TEXTS, BRIEF_TEXT = 2, 48  #: of a frame without keys that a line says, and characters of each
MOST_TEXT = 20_000  #: characters of a frame's fields

#: Roles of frames that speak of a message as it goes to the broker, and as it comes from there.
_PUBLISHED = frozenset({Role.PUBLISH, Role.CONFIRM, Role.REJECT})
_DELIVERED = frozenset({Role.DELIVER, Role.ACK})
#: States that a trace has itself.
_IN_TRACES = frozenset({State.ACCEPTED, State.CLOSED})
_OUTCOMES = {"ok": "ok", "fail": "failed for sure", "info": "nobody knows"}
_FIRST, _LAST = 0x20, 0x7E  #: of ASCII that is shown
_NUMBERS = re.compile(r"\d+")


class Row(msgspec.Struct, array_like=True):
    """One line of the page.

    Attributes:
        t: Seconds since the run began.
        what: ``in``, ``out`` (frames from and to the client), ``state``, ``op``, ``end`` (of an op),
            ``event``, ``bytes``, ``rule``.
        lane: Number of its lane.
        tap: Where a frame was seen, if not everywhere: ``received``, ``heard``, ``said``, ``sent``.
        name: Kind of the frame, name of the op or of the rule.
        text: What else the line says.
        fault: Names of the faults that touched it.
        links: What it has in common with other rows of the same message.
        op: Of an op and its end, a number that both have; 0: none.
        details: For the panel beside the lines, label and text.
    """

    t: float
    what: str
    lane: int
    tap: str
    name: str
    text: str
    fault: str
    links: list[str]
    op: int
    details: list[tuple[str, str]]


class Lane(msgspec.Struct):
    """A participant: ``session``, ``connection`` or ``broker``."""

    name: str
    kind: str


class RunDocument(msgspec.Struct):
    """What the page shows of one run.

    Attributes:
        about: Label and text.
    """

    title: str
    about: list[tuple[str, str]]
    lanes: list[Lane]
    rows: list[Row]


def of_log(log: RunLog) -> RunDocument:
    """The document of a stored run."""
    began = began_ns(log)
    started = began / 1e9
    lanes = Lanes(_processes(log.ops), _connections(row.connection for row in log.frames))
    ops = _Ops(lanes)
    numbered = [(row.seq, _frame(record_of(row, began), row.frame, lanes)) for row in log.frames]
    numbered += [(row.seq, ops.row(row, row.t_ns / 1e9 - started)) for row in log.ops]
    rows = [row for _, row in sorted(numbered, key=lambda each: each[0])]
    besides = [_bytes(row, started, lanes) for row in log.trace if row.what in ("in", "out")]
    rows = sorted([*rows, *besides], key=lambda row: row.t)
    return RunDocument(log.run.name or log.run.run, about_run(log), lanes.all, rows)


def of_the_broker(log: RunLog, started: float, lanes: Lanes) -> list[Row]:
    """What of a journal a trace does not show: states, and frames that a fault has touched.

    Args:
        started: When the run began, seconds on the journal's clock.
        lanes: Of the page.
    """
    began = round(started * 1e9)
    records = [(record_of(row, began), row.frame) for row in log.frames]
    return [
        _frame(record, fields, lanes)
        for record, fields in records
        if record.fault or (record.tap is Tap.STATE and record.kind not in _IN_TRACES)
    ]


def of_journal(title: str, journal: Journal, about: Mapping[str, str]) -> RunDocument:
    """The document of a fake's journal in memory.

    Args:
        about: Label and text.
    """
    records = journal.records()
    lanes = Lanes((), _connections(record.connection for record in records))
    fields = [None if record.frame is None else fields_of(record.frame) for record in records]
    rows = [_frame(record, shown, lanes) for record, shown in zip(records, fields, strict=True)]
    return RunDocument(title, list(about.items()), lanes.all, rows)


class Lanes:
    """Which lane is whose: sessions, connections, the broker."""

    def __init__(self, processes: Sequence[str], connections: Sequence[str]) -> None:
        names = [(name, "session") for name in processes] + [(name, "connection") for name in connections]
        self.all = [Lane(name or "client", kind) for name, kind in names[: LANES - 1]]
        if len(names) >= LANES:
            self.all[-1] = Lane(f"{len(names) - LANES + 2} others", "connection")
        self._last = max(0, len(self.all) - 1)
        self._of = {name: min(number, self._last) for number, name in enumerate(names)}
        self.all.append(Lane(BROKER, BROKER))

    def session(self, name: str) -> int:
        return self._of.get((name, "session"), 0)

    def connection(self, name: str) -> int:
        return self._of.get((name, "connection"), len(self.all) - 1)


def _processes(ops: Iterable[OpRow]) -> list[str]:
    return list(dict.fromkeys(row.process for row in ops))


def _connections(names: Iterable[str]) -> list[str]:
    """In the order of their numbers."""
    return sorted(dict.fromkeys(filter(None, names)), key=lambda name: (_number_in(name), name))


def _number_in(name: str) -> int:
    return int((_NUMBERS.findall(name) or ["0"])[-1])


def _frame(record: Record, fields: str | None, lanes: Lanes) -> Row:
    """A frame at a tap, or a state."""
    is_state = record.tap is Tap.STATE
    tap = "" if record.tap in (Tap.IN, Tap.OUT, Tap.STATE) else record.tap.label
    said = [_keys(record)] if record.keys else []
    if record.status is not None:
        said.append(f"status {record.status}")
    if not record.keys and record.frame is not None:
        said.append(brief(record.frame))
    if record.note:
        said.append(record.note.removeprefix(f"{record.kind} "))
    details = {
        "connection": record.connection,
        "seen": tap,
        "role": "" if record.role == record.kind else str(record.role),
        "inside of": record.envelope,
        "peer": record.peer,
        "size": f"{record.size} bytes" if record.size else "",
        "faults": record.fault,
        "fields": (fields or "")[:MOST_TEXT],
    }
    return Row(
        round(record.at, 6),
        "state" if is_state else record.tap.direction,
        lanes.connection(record.connection),
        tap,
        record.kind,
        " ".join(filter(None, said)),
        record.fault,
        [] if is_state else _links(record),
        0,
        _there(details),
    )


def brief(frame: Frame) -> str:
    """What tells a frame without keys from others of its kind: the first texts in it, without credentials."""
    shown, found = redacted(frame, frame.spec), list[str]()
    for name in shown.__struct_fields__:
        value = getattr(shown, name)
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str | bytes) and each:
                found.append(str(readable(each))[:BRIEF_TEXT])
    return " ".join(found[:BRIEF_TEXTS])


def _keys(record: Record) -> str:
    first, last = (
        key_text(key) if isinstance(key, bytes) else str(key) for key in (record.keys[0], record.keys[-1])
    )
    return f"#{first}" if len(record.keys) == 1 else f"#{first}..{last} ({len(record.keys)})"


def _links(record: Record) -> list[str]:
    roles = {str(part.role) for part in record.parts} or {str(record.role)}
    return _linked(record.keys, roles, record.connection)


def _linked(keys: Sequence[Any], roles: Collection[str], connection: str) -> list[str]:
    """What the frames of one message have in common: keys count by what the frames are for."""
    group = "p" if _PUBLISHED.intersection(roles) else "d" if _DELIVERED.intersection(roles) else connection
    return [f"{group}:{key if isinstance(key, str) else key_text(key)}" for key in keys[:KEYS_LINKED]]


def links_of(frame: Frame, direction: str, connection: str) -> list[str]:
    """What a frame has in common with others of the same message."""
    spec = frame.spec
    if spec.key is None and spec.items is None:
        return []
    return _linked(expand(raw_keys(frame, spec), spec), {spec.role_in(direction)}, connection)


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
            round(t, 6),
            what,
            self._lanes.session(row.process),
            "fail" if what == "end" and row.outcome != "ok" else "",
            row.f,
            " ".join(filter(None, said)),
            "",
            _op_links(row),
            number,
            _there(details),
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
    shown = [part[:HEX_BYTES].hex() for part in parts]
    return Row(
        round(row.t_s - started, 6),
        "bytes",
        lanes.connection(row.connection),
        row.what,
        f"{size} bytes",
        "from the client" if row.what == "in" else "to the client",
        "",
        [],
        0,
        [("connection", row.connection), *(("hex", part) for part in shown)],
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
    return _there(facts)


def _there(details: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(label, text) for label, text in details.items() if text]


def fields_of(frame: Frame) -> str:
    """All fields of a frame as JSON, without credentials."""
    shown = redacted(frame, frame.spec)
    fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return as_json({**fields, **dict.fromkeys(frame.spec.secret, REDACTED)})


def as_json(value: Any) -> str:
    """A value as the page shows it."""
    return msgspec.json.encode(readable(value), enc_hook=str).decode()


def readable(value: Any) -> Any:
    """Bytes as text where they are; with escapes where most of them are; else as hexadecimal digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        text = data.decode("utf-8", "replace")
        if text.isprintable() and "\ufffd" not in text:
            return text
        plain = sum(_FIRST <= byte <= _LAST for byte in data)
        if 2 * plain < len(data):
            return f"0x{data.hex()}"
        return "".join(chr(b) if _FIRST <= b <= _LAST else f"\\x{b:02x}" for b in data)
    if isinstance(value, Mapping):
        return {str(readable(name)): readable(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [readable(each) for each in value]
    if isinstance(value, msgspec.Struct):
        return {name: readable(getattr(value, name)) for name in value.__struct_fields__}
    return value
