"""The journal of one run: what the fake saw, what the client did, how the harness fared.

On disk these are two files, each written by one thread: ``<run>.wire`` by the loop that carries the
fakes, ``<run>.ops`` by whoever drives the client. Both use the same monotonic clock. A third one,
``<run>.trace``, is written at the end, where a trace is kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol
from uuid import uuid4

import msgspec

from fakebrokers.core.clock import wall
from fakebrokers.core.frames import Frame, FrameSpec, FrameTable, KeyType, Part, kind_of, parts_of
from fakebrokers.errors import JournalError, UsageError
from fakebrokers.journal.lines import (
    ENCODER,
    EVENT,
    FRAME,
    KIND,
    METRIC,
    OP,
    PASSED,
    RUN,
    STATE,
    Line,
    decode,
    encode,
)
from fakebrokers.journal.memory import Entry
from fakebrokers.journal.reader import RunLog, assemble, segments_of
from fakebrokers.journal.rows import MARK, TRACE, RunRow, TracedRow
from fakebrokers.journal.secrets import REDACTED, redacted
from fakebrokers.journal.segment import Segment
from fakebrokers.journal.texts import as_json

Outcome = Literal["invoke", "ok", "fail", "info", "event"]

DID = "did"  #: what the ops table calls a thing that the script did to the fake
LOGGED = "logged"  #: and a line that the client's process wrote to standard error
_TRACE_LINES = 256  #: in one block of a trace
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+,=-]{0,199}")
_ATTRIBUTES = frozenset(RunRow.__struct_fields__) - {"run", "name"}
#: code, name of the key, what counts the items of a batch, name of the status, name of the scope
_Plan = tuple[int, str | None, Callable[[Any], int] | None, str | None, str | None]


def _in_parts(frame: Any) -> int:
    """Stands in a plan for batches that become a line for each of their parts, and for those whose keys
    no field holds.
    """
    raise NotImplementedError


class Blocks(Protocol):
    """Where blocks of lines go: a `Segment`, or memory."""

    path: Path

    def append(self, lines: Sequence[tuple[Any, ...]]) -> None:
        """Take a block of lines."""

    def close(self) -> None:
        """Nothing more will come."""

    def abandon(self) -> None:
        """Nothing more will come, although something is missing."""


class _Memory:
    path = Path()

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def append(self, lines: Sequence[tuple[Any, ...]]) -> None:
        self.kept.append(encode(lines))

    def close(self) -> None:
        pass

    abandon = close

    @property
    def lines(self) -> list[Line]:
        return [line for block in self.kept for line in decode(block)]


class RunJournal:
    """Takes down one run. It is a sink for `Journal`; the runner adds ops and metrics.

    Args:
        folder: Where the two files go; made if it is not there. None keeps everything in memory.
        name: What people call the run: letters, digits and ``._@+,=-``. Others may have the same name.
        run: Identity of the run, which no other run has on any machine; made of the name, unless given.
        frames: Write every frame with all its fields (credentials blotted out).
        body_limit: With `frames`: message bodies of more bytes are replaced by their digest; None keeps
            them all.
        traces: Keep what passed byte by byte, credentials among it; see `trace`.
        attributes: Any attribute of `RunRow`.

    Attributes:
        failure: Why something is missing, since a file could not be written. Such a run ends `torn`.

    Raises:
        UsageError: A bad name, or the run is there already.
        JournalError: The files cannot be made; `write`: they cannot be written.
    """

    def __init__(
        self,
        folder: Path | None,
        name: str,
        *,
        run: str | None = None,
        frames: bool = False,
        body_limit: int | None = 1024,
        traces: bool = False,
        **attributes: Any,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"expected the name of a run (letters, digits and ._@+,=-), got {name!r}")
        self.name = name
        self.run = run = run or f"{name}{MARK}{uuid4().hex[:16]}"
        self._in_full = frames
        self._body_limit = body_limit
        self._closed = False
        self._ops_end = False
        self.failure: JournalError | None = None
        self._plans: dict[type[Frame], _Plan] = {}
        self._wire: Blocks
        self._ops: Blocks
        if folder is None:
            self._wire, self._ops = _Memory(), _Memory()
        else:
            self._wire, self._ops = _segments(folder, run)
        self._folder = folder
        self._traces = traces
        self._trace: list[TracedRow] = []
        self._append = self._wire.append
        self._note((RUN, {"run": run, "name": name}))
        self.attributes(started_ms=int(wall() * 1000), **attributes)

    # what the fake saw; on the loop thread (see `memory.Sink`)

    def write(self, trace: Sequence[Entry], frames: FrameTable) -> None:
        """Take down one turn of the loop."""
        lines: list[tuple[Any, ...]] = []
        plans, in_full = self._plans, self._in_full
        try:
            for _, at, connection, tap, kind, frame, more, size, fault in trace:
                if frame is None:
                    lines.append((STATE, at, connection, kind, more, fault))
                    continue
                try:
                    code, key, count, status, scope = plans[kind]
                except KeyError:
                    code, key, count, status, scope = self._plan(kind, frames[kind], lines)
                keys = getattr(frame, key) if key else None
                items = 1
                if count:
                    if keys.__class__ is bytes:
                        items = 0
                    elif count is not _in_parts:
                        items = count(frame)
                    else:
                        head = (FRAME, at, connection, tap, code)
                        lines.extend(self._parts(head, frame, frames[kind], size, fault, more))
                        continue
                status = getattr(frame, status) if status else None
                scope = getattr(frame, scope) if scope else None
                line = (FRAME, at, connection, tap, code, keys, items, size, status, fault, scope)
                if in_full or more:
                    lines.append((*line, self._shown(frame, frames[kind]), more or None))
                else:
                    lines.append(line)
            self._append(lines)
        except Exception as error:
            lost = f"nothing from record {trace[0][0]} on is recorded"
            raise self._broke_off(self._wire, error, lost) from error

    def _plan(self, kind: type[Frame], spec: FrameSpec, lines: list[tuple[Any, ...]]) -> _Plan:
        """How to take down frames of this kind; announces its code."""
        code = len(self._plans)
        items = spec.items
        keyed = spec.key is not None or items is not None
        lines.append((KIND, code, kind_of(kind), spec.role, spec.keys if keyed else "", items is not None))
        plan: _Plan = (code, spec.key, None if items is None else items.count, spec.status, spec.scope)
        if items is not None and (items.mixed or spec.key is None or spec.keys is KeyType.BYTES):
            plan = (code, None, _in_parts, None, None)
        self._plans[kind] = plan
        return plan

    def _parts(
        self, head: tuple[Any, ...], frame: Frame, spec: FrameSpec, size: int, fault: str, envelope: str
    ) -> Iterator[tuple[Any, ...]]:
        """A line for each part of a batch; one for a batch without items."""
        assert spec.items is not None
        direction = head[3].direction
        keys = spec.items.keys(frame)
        nothing = Part(spec.role_in(direction), None, None, None)
        for number, part in enumerate(parts_of(frame, spec, direction) or [nothing]):
            own = list(keys) if part.indices is None else [keys[i] for i in part.indices]
            line = (*head, own, len(own), 0 if number else size, part.status, fault, part.scope)
            shown = None if number else self._shown(frame, spec)
            yield (*line, shown, envelope or None, number, part.role)

    # what the client did, and how the harness fared; on the runner's thread

    def op(
        self,
        now: float,
        process: str,
        op_id: int | None,
        f: str,
        outcome: Outcome,
        *,
        key: str | None = None,
        value: str | None = None,
        offset: int | None = None,
        wire_key: str | None = None,
        error: str | None = None,
        note: str = "",
    ) -> None:
        """The client was asked for something (``invoke``), or it ended. See SCHEMA.md, table ops.

        Args:
            process: The client session; the successor of a crashed one needs a name of its own.
            f: ``publish``, ``deliver``, ``subscribe``, ``drain`` ...
            key: The log: name of the stream, queue or topic.
            value: `value_id` of the body.
            offset: Position in the log, where positions are numbers that have an order.
            wire_key: `key_text` of the correlation key, where the client reports it.
            error: Kind of the error; ``hang`` if the runner gave up waiting.
        """
        line = (OP, now, process, op_id, f, outcome, key, value, offset, wire_key, error, note)
        self._note(line)

    def event(self, now: float, process: str, what: str, note: str = "") -> None:
        """The client reported something unasked: ``connection_lost``, ``reconnected`` ..."""
        self._note((EVENT, now, process, what, note))

    def did(self, now: float, text: str) -> None:
        """The script did something to the fake: a call as a statement, without credentials."""
        self._note((EVENT, now, "", DID, text))

    def logged(self, now: float, text: str) -> None:
        """The client's process wrote a line to standard error."""
        self._note((EVENT, now, "", LOGGED, text))

    def metric(self, now: float, name: str, value: float) -> None:
        """A measurement: ``loop_lag_ms``, ``cpu_steal`` ..."""
        self._note((METRIC, now, name, value))

    def attributes(self, **attributes: Any) -> None:
        """Set attributes of the run; see `RunRow`. Raises `UsageError` for names that it does not have."""
        unknown = attributes.keys() - _ATTRIBUTES
        if unknown:
            raise UsageError(f"expected attributes of a run, got {', '.join(sorted(unknown))}")
        self._note((RUN, attributes))

    def trace(self, rows: Iterable[tuple[float, str, str, Any]]) -> None:
        """Keep what passed, as it was, if that was asked for: once, before the run is closed.

        Args:
            rows: See `TracedRow`: seconds on the journal's clock, what, connection, data for msgpack.
        """
        if not self._traces:
            return
        packed = [(PASSED, at, what, connection, ENCODER.encode(data)) for at, what, connection, data in rows]
        if self._folder is None:
            self._trace = [TracedRow(self.run, seq, *line[1:]) for seq, line in enumerate(packed, 1)]
            return
        path = self._folder / f"{self.run}.{TRACE}"
        try:
            segment = Segment(path)
            try:
                for first in range(0, len(packed), _TRACE_LINES):
                    segment.append(packed[first : first + _TRACE_LINES])
            finally:
                segment.close()
        except OSError as error:
            lost = "what passed is not recorded byte by byte"
            self.failure = self.failure or JournalError(path, _problem(error), lost)

    def _note(self, line: tuple[Any, ...]) -> None:
        if self._ops_end:
            return
        try:
            self._ops.append([line])
        except OSError as error:
            self._ops_end = True
            self._broke_off(self._ops, error, "what the client did and the verdict are not all recorded")

    def _broke_off(self, blocks: Blocks, error: Exception, lost: str) -> JournalError:
        """Keep what went wrong; nothing more is written there."""
        blocks.abandon()
        failure = JournalError(blocks.path, _problem(error), lost)
        self.failure = self.failure or failure
        return failure

    def close(self, **attributes: Any) -> None:
        """The run came to its end. Without this, readers know that it was broken off. Safe to call twice.

        Raises nothing if a file cannot be written: the run is `torn` then, and `failure` says why.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._wire.close()
        except OSError as error:
            self._broke_off(self._wire, error, "nothing that the fake saw is recorded")
        if self.failure is None:
            self.attributes(**attributes, ended=True)
        else:
            self.attributes(**attributes, torn=True, note=str(self.failure))
        try:
            self._ops.close()
        except OSError as error:
            self._broke_off(self._ops, error, "what the client did and the verdict are not recorded")

    def discard(self) -> None:
        """The run is not kept: its files go, whatever was written so far."""
        self._closed = self._ops_end = True
        for blocks in (self._wire, self._ops):
            blocks.abandon()
        if self._folder is not None:
            for path in segments_of(self._folder, self.run):
                path.unlink()

    def log(self) -> RunLog:
        """Everything so far. Only where nothing is written to disk."""
        if not (isinstance(self._wire, _Memory) and isinstance(self._ops, _Memory)):
            raise UsageError("this run is written to disk: read it from there")
        wire, ops = self._wire.lines, self._ops.lines
        return msgspec.structs.replace(assemble(self.run, wire, ops, torn=False), trace=self._trace)

    def _shown(self, frame: Frame, spec: FrameSpec) -> str | None:
        """All fields as JSON, if that was asked for."""
        if not self._in_full:
            return None
        shown = redacted(frame, spec)
        fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
        for name in spec.secret:
            fields[name] = REDACTED  # bytes would be in base64
        if self._body_limit is not None:
            for name in spec.bulk:
                fields[name] = _shortened(fields[name], self._body_limit)
        return as_json(fields).decode()


def _segments(folder: Path, run: str) -> tuple[Segment, Segment]:
    """The two files of a run; neither is there if one cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if segments_of(folder, run):
            raise UsageError(f"{folder}: there is a run {run!r} already")
        ops = Segment(folder / f"{run}.ops", window=1 << 16)
        try:
            return Segment(folder / f"{run}.wire"), ops
        except OSError:
            ops.close()
            ops.path.unlink()
            raise
    except OSError as error:
        raise JournalError(folder, _problem(error), "nothing is recorded") from error


def ensure_writable(folder: Path) -> None:
    """Make the folder if it is not there, and try it. Raises `JournalError`."""
    for segment in _segments(folder, f"trial-{uuid4().hex}"):
        segment.close()
        segment.path.unlink()


def _problem(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"


def value_id(body: bytes) -> str:
    """What a message is called in the journal: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(body).hexdigest()[:16]


def _shortened(body: Any, limit: int) -> Any:
    data = body if isinstance(body, bytes) else as_json(body)
    if len(data) <= limit:
        return body
    return {"sha256": hashlib.sha256(data).hexdigest(), "len": len(data)}
