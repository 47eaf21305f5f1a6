"""The journal of one run: what the fake saw, what the client did, how the harness fared.

On disk these are two files, each written by one thread: ``<run>.wire`` by the loop that carries the
fakes, ``<run>.ops`` by whoever drives the client. Both use the same monotonic clock.
"""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from fakebrokers.errors import UsageError
from fakebrokers.frames import Frame, FrameSpec
from fakebrokers.journal.lines import EVENT, FRAME, METRIC, OP, RUN, STATE, decode, encode
from fakebrokers.journal.reader import RunLog, assemble
from fakebrokers.journal.record import Tap
from fakebrokers.journal.rows import RunRow
from fakebrokers.journal.segment import Segment

Outcome = Literal["invoke", "ok", "fail", "info"]

REDACTED = "***"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+,=-]{0,199}")
_ATTRIBUTES = frozenset(RunRow.__struct_fields__) - {"run"}
#: kind, role, name of the key, whether it is a batch, its counter, name of the status, name of the scope
_Plan = tuple[str, str, str | None, bool, Any, str | None, str | None]


class Lines(Protocol):
    """Where lines go: a `Segment`, or memory."""

    def append(self, line: tuple[Any, ...]) -> None:
        """Take one line."""

    def close(self) -> None:
        """Nothing more will come."""


class _Memory:
    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def append(self, line: tuple[Any, ...]) -> None:
        self.kept.append(encode(line))

    def close(self) -> None:
        pass


class RunJournal:
    """Takes down one run. It is a sink for `Journal` and a notebook for the runner.

    Args:
        folder: Where the two files go; made if it is not there. None keeps everything in memory.
        run: Name of the run, unique in the folder: letters, digits and ``._@+,=-``.
        frames: Write every frame with all its fields (credentials blotted out).
        body_limit: With `frames`: message bodies of more bytes are replaced by their digest; None keeps
            them all.
        attributes: Any attribute of `RunRow`.

    Raises:
        UsageError: A bad name, or a run of that name is there.
    """

    def __init__(
        self,
        folder: Path | None,
        run: str,
        *,
        frames: bool = False,
        body_limit: int | None = 1024,
        **attributes: Any,
    ) -> None:
        if not _NAME.fullmatch(run):
            raise UsageError(f"expected the name of a run (letters, digits and ._@+,=-), got {run!r}")
        self.run = run
        self._frames = frames
        self._body_limit = body_limit
        self._plans: dict[type[Frame], _Plan] = {}
        self._wire: Lines
        self._ops: Lines
        if folder is None:
            self._wire, self._ops = _Memory(), _Memory()
        else:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                self._wire = Segment(folder / f"{run}.wire")
                self._ops = Segment(folder / f"{run}.ops", window=1 << 16)
            except FileExistsError:
                raise UsageError(f"{folder}: there is a run {run!r} already") from None
        self._put = self._wire.append
        self.attributes(started_ms=int(time.time() * 1000), **attributes)

    # what the fake saw; on the loop thread

    def frame(
        self, now: float, connection: str, tap: Tap, frame: Frame, spec: FrameSpec, size: int, fault: str
    ) -> None:
        """A frame came by. `now` in monotonic seconds, `size` in bytes."""
        kind = type(frame)
        plan = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = _plan(kind, spec)
        name, role, key, batch, count, status, scope = plan
        keys = None if key is None else getattr(frame, key)
        items = 1
        if batch:
            items = 0 if type(keys) is bytes else count(frame)
        self._put(
            (
                FRAME,
                now,
                connection,
                tap._value_,
                name,
                role,
                keys,
                items,
                size,
                None if status is None else getattr(frame, status),
                fault,
                None if scope is None else getattr(frame, scope),
                self._shown(frame, spec) if self._frames else None,
            )
        )

    def state(self, now: float, connection: str, what: str, note: str, fault: str) -> None:
        """Something that is no frame came by."""
        self._put((STATE, now, connection, what, note, fault))

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
            wire_key: `key_text` of the correlation key, where the client tells it.
            error: Kind of the error; ``hang`` if the runner gave up waiting.
        """
        self._ops.append((OP, now, process, op_id, f, outcome, key, value, offset, wire_key, error, note))

    def event(self, now: float, process: str, what: str, note: str = "") -> None:
        """The client told something unasked: ``connection_lost``, ``reconnected`` ..."""
        self._ops.append((EVENT, now, process, what, note))

    def metric(self, now: float, name: str, value: float) -> None:
        """A measurement: ``loop_lag_ms``, ``cpu_steal`` ..."""
        self._ops.append((METRIC, now, name, value))

    def attributes(self, **attributes: Any) -> None:
        """Set attributes of the run; see `RunRow`. Raises `UsageError` for names that it does not have."""
        unknown = attributes.keys() - _ATTRIBUTES
        if unknown:
            raise UsageError(f"expected attributes of a run, got {', '.join(sorted(unknown))}")
        self._ops.append((RUN, attributes))

    def close(self, **attributes: Any) -> None:
        """The run came to its end. Without this, readers know that it was broken off."""
        self.attributes(ended=True, **attributes)
        self._wire.close()
        self._ops.close()

    def log(self) -> RunLog:
        """Everything so far. Only where nothing is written to disk."""
        if not (isinstance(self._wire, _Memory) and isinstance(self._ops, _Memory)):
            raise UsageError("this run is written to disk: read it from there")
        wire = [decode(data) for data in self._wire.kept]
        return assemble(self.run, wire, [decode(data) for data in self._ops.kept], torn=False)

    def _shown(self, frame: Frame, spec: FrameSpec) -> str:
        fields = {name: getattr(frame, name) for name in frame.__struct_fields__}
        for name in spec.secret:
            fields[name] = REDACTED
        if self._body_limit is not None:
            for name in spec.bulk:
                fields[name] = _shortened(fields[name], self._body_limit)
        return msgspec.json.encode(fields, enc_hook=str).decode()


def value_id(body: bytes) -> str:
    """What a message is called in the journal: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(body).hexdigest()[:16]


def _plan(kind: type[Frame], spec: FrameSpec) -> _Plan:
    items = spec.items
    count = None if items is None else items.count
    return kind.__name__, str(spec.role), spec.key, items is not None, count, spec.status, spec.scope


def _shortened(body: Any, limit: int) -> Any:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body, enc_hook=str)
    if len(data) <= limit:
        return body
    return {"sha256": hashlib.sha256(data).hexdigest(), "len": len(data)}
