"""Records of a journal, in memory or on disk, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fakebrokers.journal.record import Record, State, Tap
from fakebrokers.journal.rows import FrameRow
from fakebrokers.journal.stored import record_of
from fakebrokers.viewer.frames import (
    code_said,
    counts_in,
    counts_of,
    group_of,
    keys_of,
    keys_said,
    linked,
    said_of,
    span_of,
)
from fakebrokers.viewer.kinds import NO_KINDS, Kinds
from fakebrokers.viewer.model import held_row
from fakebrokers.viewer.rows import Lanes, Row, fields_of, shortened


def stored_row(row: FrameRow, began_ns: int, lanes: Lanes, kinds: Kinds) -> Row:
    """A row of a journal on disk; its frame is made again from its fields, where they are there.

    A batch whose items differ is several rows: none of them is the frame.
    """
    record, fields = record_of(row, began_ns), row.frame
    frame = kinds.frame_of(row.kind, fields) if fields and not row.part else None
    if frame is not None:
        fields, keys = fields_of(frame), tuple(keys_of(frame))
        if len(keys) == len(record.keys):
            record = msgspec.structs.replace(record, frame=frame, keys=keys)
    return frame_row(record, fields, lanes, kinds)


def frame_row(record: Record, fields: str | None, lanes: Lanes, kinds: Kinds = NO_KINDS) -> Row:
    """A frame at a tap, or a state, or what the fake reported.

    Args:
        fields: Of the frame, as the page shows them.
        kinds: Of its protocol, for a record that does not have its frame.
    """
    is_state = record.tap is Tap.STATE
    if is_state and record.kind == State.HOLDS:
        return held_row(record.at, record.note)
    row = Row(
        record.at, "state", lanes.connection(record.connection), "", record.kind, "", record.fault, [], 0, []
    )
    frame, said = record.frame, [record.note.removeprefix(f"{record.kind} ")]
    if not is_state:
        row.what = record.tap.direction
        row.tap = "" if record.tap in (Tap.IN, Tap.OUT) else record.tap.label
        group = group_of({str(part.role) for part in record.parts} or {str(record.role)}, record.connection)
        row.links = linked(record.keys, group)
        if frame is None:
            row.counts = counts_in(record.parts) or [(str(record.role), len(record.keys) or 1)]
            said.insert(0, _said_without_frame(record, kinds))
        else:
            row.counts = counts_of(frame, record.tap.direction)
            row.span = span_of(frame, group, row.links)
            said.insert(0, said_of(frame, record.keys))
    row.text = " ".join(filter(None, said))
    row.details = there(
        {
            "connection": record.connection,
            "role": "" if record.role == record.kind else str(record.role),
            "inside of": record.envelope,
            "peer": record.peer,
            "size": f"{record.size} bytes" if record.size else "",
            "faults": record.fault,
            "fields": shortened(fields or ""),
        }
    )
    return row


def _said_without_frame(record: Record, kinds: Kinds) -> str:
    kind, said = kinds.class_of(record.kind), list[str]()
    if record.status is not None:
        name = (None if kind is None else kind.spec.status) or "status"
        said.append(
            code_said(name, record.status, "" if kind is None else kind.code_names.get(record.status, ""))
        )
    name = (None if kind is None else kind.spec.key) or "key"
    return " ".join(filter(None, [*said, keys_said(name, record.keys, len(record.keys))]))


def there(details: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(label, text) for label, text in details.items() if text]
