"""The journal that a fake keeps in memory: bounded, cheap to write, expanded when it is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from fakebrokers.core.frames import (
    MALFORMED_SPEC,
    Frame,
    FrameSpec,
    FrameTable,
    KnownFrames,
    Malformed,
    Part,
    Role,
    kind_of,
    parts_of,
)
from fakebrokers.journal.holdings import Ask, Holding, Holdings
from fakebrokers.journal.keys import expand, raw_keys
from fakebrokers.journal.peers import Peers
from fakebrokers.journal.record import Record, State, Tap
from fakebrokers.journal.secrets import redacted
from fakebrokers.journal.texts import as_json

#: (seq, at, connection, tap, frame class or state's name, frame, more, size, fault). More is the kind of a
#: frame's envelope, the note of a state, and what is left of a frame that was too large to be kept. In a
#: trace the frames are whole; what is kept has no secrets and no large bodies.
Entry = tuple[int, float, str, Tap, Any, Frame | None, Any, int, str]


class Sink(Protocol):
    """Where everything is written down besides (`RunJournal`)."""

    def write(self, trace: Sequence[Entry], frames: FrameTable) -> None:
        """Take down what happened in one turn of the loop. Frames still hold their secrets; see `Entry`.

        What it raises is kept for `Journal.pop_failure`, and it is not called again.
        """


class _Left(NamedTuple):
    """What is kept of a frame that was too large, if it is more than the keys."""

    keys: Any
    parts: tuple[Part, ...]
    envelope: str


class _Closed:
    """Stands in an entry for the class of a frame in an envelope, until somebody reads the entry; then `more`
    is a list with the frame, once it was opened."""


class Journal:
    """What went over the wire, in order.

    Args:
        frames: The protocol's frame table.
        limit: Records kept; the oldest go first. `dropped` counts those.
        body_limit: Frames of more bytes than this that carry message bodies are kept without
            the frame itself: kind, keys and size stay.

    What is inside an envelope has a record of its own, after the envelope's. It is opened when somebody
    looks: a watcher or the sink at once, a reader later.
    """

    def __init__(self, frames: FrameTable, *, limit: int = 100_000, body_limit: int = 1024) -> None:
        if not isinstance(frames, KnownFrames):
            frames = KnownFrames(frames)
            frames.setdefault(Malformed, MALFORMED_SPEC)
        self._frames = frames
        self._entries: deque[Entry] = deque(maxlen=limit)
        self._added = 0
        self._forgotten = 0
        self._started: float | None = None  #: on the clock of `now`; the first record's time if not set
        self._body_limit = body_limit
        self._bulky, self._careful, self._envelopes = frames.bulky, frames.careful, frames.envelopes
        self._watchers: list[Callable[[Record], None]] = []
        self._peers = Peers()
        self._sink: Sink | None = None
        self._trace: list[Entry] | None = None  #: what the sink has not got yet; None without a sink
        self._failure: Exception | None = None
        self._told: Exception | None = None  #: the last one that somebody has popped
        self._limit = limit
        self._holdings: Holdings | None = None  #: None: nobody wants to know
        self._step = 0  #: `seq` of the newest record when the step before had ended

    # writing

    def add(
        self,
        now: float,
        connection: str,
        tap: Tap,
        frame: Frame,
        size: int,
        fault: str = "",
        envelope: str = "",
    ) -> None:
        """Append a frame; `now` in monotonic seconds, `size` in bytes on the wire.

        Args:
            envelope: Kind of the frame that it was inside of.
        """
        looks = self._holdings is not None and not envelope
        is_why = looks and self._says_why(tap)
        if looks and not is_why:
            self._look(now)
        kind = type(frame)
        self._added = seq = self._added + 1
        entry: Entry = (seq, now, connection, tap, kind, frame, envelope, size, fault)
        if self._trace is not None:
            self._trace.append(entry)
        if kind in self._careful and not (kind in self._bulky and 0 < size <= self._body_limit):
            entry = self._censored(frame, self._frames[kind], entry)
        self._entries.append(entry)
        if is_why:
            self._look(now)
        if self._watchers:
            self._tell(entry)
        if self._envelopes and kind in self._envelopes and not envelope:
            if entry[5] is frame and self._trace is None and not self._watchers:
                self._added = seq + 1  # while nobody looks, a place for what is inside
                self._entries.append((seq + 1, now, connection, tap, _Closed, frame, [], size, fault))
            else:
                self._add_inside(entry, frame)

    def _add_inside(self, entry: Entry, frame: Frame) -> None:
        """What is inside the frame of the newest entry."""
        _, now, connection, tap, kind, _, _, size, fault = entry
        inner = _opened(frame)
        if inner is not None:
            self.add(now, connection, tap, inner, size, fault, self._envelopes[kind])

    def _censored(self, frame: Frame, spec: FrameSpec, entry: Entry) -> Entry:
        """The same without secrets, and without a frame that holds large bodies."""
        seq, now, connection, tap, kind, _, envelope, size, fault = entry
        if spec.bulk and (size or _body_size(frame, spec)) > self._body_limit:
            left = raw_keys(frame, spec)
            if envelope or (spec.items is not None and spec.items.mixed):
                left = _Left(left, _parts(frame, spec, tap), envelope)
            return (seq, now, connection, tap, kind, None, left, size, fault)
        if spec.has_secrets:
            shown = redacted(frame, spec)
            return (seq, now, connection, tap, kind, shown, envelope, size, fault)
        return entry

    def state(self, now: float, connection: str, what: str, note: str = "", fault: str = "") -> None:
        """Append something that is no frame: a `State`, or a protocol's own word."""
        if self._started is None:
            self._started = now
        if self._holdings is not None:
            self._look(now)
        self._added = seq = self._added + 1
        entry: Entry = (seq, now, connection, Tap.STATE, what, None, note, 0, fault)
        if what == State.PEER:
            self._peers.tell(seq, connection, note, self._oldest)
        elif what == State.CLOSED and self._peers:
            self._peers.ended(seq, connection, self._oldest)
        if self._trace is not None:
            self._trace.append(entry)
        self._entries.append(entry)
        if self._watchers:
            self._tell(entry)

    def _tell(self, entry: Entry) -> None:
        record = self._record(entry)
        for watcher in tuple(self._watchers):
            watcher(record)

    def record_holdings(self, ask: Ask) -> None:
        """Take down from now on what the broker holds, as `holdings` and for the sink; see `State.HOLDS`.

        It is asked before each record what the one before has changed, and at the end of each step; what the
        broker does by itself, such as to deliver, comes with the record of what it says then.
        """
        self._holdings = Holdings(ask, self._limit)

    @property
    def holdings(self) -> list[Holding]:
        """What the broker has held, change by change; nothing unless `record_holdings` was called."""
        return [] if self._holdings is None else list(self._holdings.kept)

    def _says_why(self, tap: Tap) -> bool:
        """Whether a record that comes tells of what has changed since the one before, which has not set it
        off."""
        is_first = self._added == self._step or not self._entries
        return bool(tap & Tap.OUT) and (is_first or bool(self._entries[-1][3] & Tap.OUT))

    def _look(self, now: float) -> None:
        if self._holdings is None:
            return
        seq = self._added
        at = self._entries[-1][1] if seq > self._step and self._entries else now
        try:
            found = self._holdings.look(seq, at)
        except Exception as error:  # the connections must not pay for it
            self._holdings = None
            self.failed(error)
            return
        if found is not None and self._trace is not None:
            note = as_json(found.changes).decode()
            self._trace.append((seq, at, "", Tap.STATE, State.HOLDS, None, note, 0, ""))

    def step_ended(self, now: float) -> None:
        """A turn of the loop is over: look at what it has changed, hand the sink what came."""
        if self._holdings is not None:
            self._look(now)
            self._step = self._added
        self.flush()

    @property
    def sink(self) -> Sink | None:
        """Where everything is written down besides, on this thread; None for nowhere."""
        return self._sink

    @sink.setter
    def sink(self, sink: Sink | None) -> None:
        self.flush()
        self._sink = sink
        self._trace = None if sink is None else []

    def abandon_sink(self) -> None:
        """Write nothing down any more, not even what waits: the sink is another process's."""
        self._sink = self._trace = None

    def flush(self) -> None:
        """Hand the sink what came since the last flush."""
        trace = self._trace
        if trace and self._sink is not None:
            self._trace = []
            try:
                self._sink.write(trace, self._frames)
            except Exception as error:  # the connections must not pay for it
                self._sink = self._trace = None
                self.failed(error)

    def failed(self, error: Exception | None) -> None:
        """Keep what went wrong with the sink, if anything did, once; the first is the one that counts."""
        if error is not self._told:
            self._failure = self._failure or error

    def pop_failure(self) -> Exception | None:
        """What went wrong with the sink, once."""
        failure, self._failure = self._failure, None
        self._told = failure or self._told
        return failure

    # reading

    def forget(self) -> None:
        """Keep none of the records so far; their numbers are not given again."""
        self._entries.clear()
        self._forgotten = self._added
        if self._holdings is not None:
            self._holdings.forget()

    @property
    def _oldest(self) -> int:
        """`seq` of the oldest record that is kept."""
        return self._added - len(self._entries)

    @property
    def started_at(self) -> float:
        """Monotonic time of the first record, in seconds: `Record.at` counts from here."""
        return self._started or 0.0

    @property
    def last_seq(self) -> int:
        """`seq` of the newest record; a mark for ``since``."""
        return self._added

    @property
    def dropped(self) -> int:
        """Records that were given up because of `limit`."""
        return self._added - self._forgotten - len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        dropped = f", {self.dropped} older ones dropped" if self.dropped else ""
        return f"<Journal: {len(self)} record{'' if len(self) == 1 else 's'}{dropped}>"

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def records(self, since: int = 0) -> list[Record]:
        """All records that are kept, with a `seq` above `since`; in order. Safe from any thread."""
        return [
            self._record(whole) for entry in self._since(since) if (whole := self._whole(entry)) is not None
        ]

    def _since(self, seq: int) -> tuple[Entry, ...]:
        """What is kept of those with a `seq` above this one."""
        entries = tuple(self._entries)
        if entries and seq >= entries[0][0]:
            return entries[seq - entries[0][0] + 1 :]
        return entries

    def select(
        self,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap | None = None,
        connection: str | None = None,
        since: int = 0,
    ) -> list[Record]:
        """The records that fit all that is given.

        Args:
            role: Of the frame, or of any of its items.
            tap: Any of its flags.
        """
        fitting = []
        for entry in self._since(since):  # records are made of few: most do not fit, which an entry says
            if tap is not None and not int.__and__(entry[3], tap):
                continue
            if connection is not None and entry[2] != connection:
                continue
            whole = self._whole(entry)
            if whole is not None and (kind is None or _kind(whole) == kind):
                fitting.append(self._record(whole))
        return fitting if role is None else [record for record in fitting if record.has_role(role)]

    def excerpt(self, lines: int = 20) -> str:
        """The last `lines` records as text, one per line."""
        return "\n".join(str(r) for r in self.records(since=max(0, self._added - lines)))

    def watch(self, watcher: Callable[[Record], None]) -> Callable[[], None]:
        """Call `watcher` with every record from now on; returns what ends that."""
        self._watchers.append(watcher)

        def stop() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return stop

    def _whole(self, entry: Entry) -> Entry | None:
        """The entry, opened; None if there is nothing inside that can be read."""
        seq, now, connection, tap, kind, envelope, found, size, fault = entry
        if kind is not _Closed:
            return entry
        assert envelope is not None
        if not found:
            found.append(_opened(envelope))
        inner = found[0]
        if inner is None:
            return None
        kind = type(inner)
        entry = (seq, now, connection, tap, kind, inner, self._envelopes[type(envelope)], size, fault)
        return self._censored(inner, self._frames[kind], entry) if kind in self._careful else entry

    def _record(self, entry: Entry) -> Record:
        seq, at, connection, tap, kind, frame, more, size, fault = entry
        if self._started is None:
            self._started = at
        at -= self._started
        peer = self._peers.at(connection, seq) if self._peers else ""
        if tap is Tap.STATE:
            return Record(seq, at, connection, tap, kind, fault=fault, note=more, peer=peer)
        spec = self._frames[kind]
        if frame is None:
            left, parts, envelope = more if more.__class__ is _Left else (more, (), "")
            keys = expand(left, spec)
        else:
            envelope, parts = more, _parts(frame, spec, tap)
            keys = (
                expand(raw_keys(frame, spec), spec) if spec.items is None else tuple(spec.items.keys(frame))
            )
        role, status = spec.role_in(tap.direction), None
        if parts:
            role, status = _shared(parts, role)
        elif frame is not None and spec.status:
            status = getattr(frame, spec.status)
        return Record(
            seq,
            at,
            connection,
            tap,
            kind_of(kind),
            role,
            keys,
            size,
            None if status is None else int(status),
            fault,
            frame,
            frame.problem if isinstance(frame, Malformed) else "",
            peer,
            envelope,
            parts,
        )


def _kind(entry: Entry) -> str:
    """The kind of its record, without making one."""
    kind = entry[4]
    return kind if isinstance(kind, str) else kind_of(kind)


def _opened(envelope: Frame) -> Frame | None:
    """What is inside an envelope; None if there is nothing that can be read."""
    inside = envelope.spec.inside
    return None if inside is None else inside.open(envelope)


def _parts(frame: Frame, spec: FrameSpec, tap: Tap) -> tuple[Part, ...]:
    """The parts of a batch whose items may differ; none of any other frame."""
    if spec.items is None or not spec.items.mixed:
        return ()
    return tuple(parts_of(frame, spec, tap.direction))


def _shared(parts: tuple[Part, ...], role: Role) -> tuple[Role, int | None]:
    """Role and status of a batch: those of its items, if all have the same; else its own, and none."""
    roles, codes = {part.role for part in parts}, {part.status for part in parts}
    return roles.pop() if len(roles) == 1 else role, codes.pop() if len(codes) == 1 else None


def _body_size(frame: Frame, spec: FrameSpec) -> int:
    """Bytes of the message bodies of a frame whose size on the wire is not known yet."""
    return sum(_length(getattr(frame, name)) for name in spec.bulk)


def _length(value: Any) -> int:
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, msgspec.Struct):
        return sum(_length(getattr(value, name)) for name in value.__struct_fields__)
    return sum(map(_length, value)) if isinstance(value, tuple | list) else 0
