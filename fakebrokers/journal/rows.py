"""The rows that analysis works on: five tables, one schema for all protocols. SCHEMA.md says more.

``schema.json`` holds the same as JSON Schema. Adding a column at the end, with a default, keeps the
version; anything else needs a new one and a converter in the reader.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fakebrokers.journal.keys import U64_MAX
from fakebrokers.journal.lines import SCHEMA_MINOR, SCHEMA_VERSION
from fakebrokers.schemas import DIALECT, components

#: A number of 64 bits without a sign, as offsets and publishing ids are. What does not fit is no row's: the
#: reader leaves the column empty and says so in `note`.
Unsigned = Annotated[int, msgspec.Meta(ge=0, extra_json_schema={"maximum": U64_MAX, "format": "uint64"})]


#: Stands in a run's identity after its name.
MARK = "~"


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """Table ``runs``: what is true of a whole run.

    Attributes:
        run: Its identity, which no other run has, on whatever machine: its name, ``~`` and random digits.
        name: What people call it; runs of one scenario share it.
        variant: Transporter, profile or server version; empty if there is none.
        profile: Of the fake.
        scenario: Id, such as ``RMQS-3.09``; empty outside the suite.
        revision: Of the scenario.
        requirement: Codes of the requirements it exercises, space separated.
        contract: What the scenario promises of deliveries: ``at-most-once``, ``at-least-once``,
            ``exactly-once``, ``ordered``; space separated. Empty: nothing is allowed to go wrong.
        heartbeat_limit_ms: Silence of the fake after which the client must give up, the longest of all
            connections; None if there is one on which none was agreed.
        faults: How many faults the plan holds.
        verdict: See `conformance.results.Verdict`; empty if it was not judged.
        started_ms: Wall clock, milliseconds since the epoch.
        ended: The run was closed, and all of it is there; otherwise nothing is said about its end.
        torn: A file of it was not closed, or could not be written: see `note`.
        note: What of the run is missing, and why; what of its attributes does not fit its column.
        ends: Who ended each connection first: ``c1 client``, ``c2 broker``; in the order of the ends.
        touched: The connections at which a fault acted, or which the broker lost or cut.
        memory_peak: Most resident memory of the client's process during the run, bytes; None in process, or
            where the system does not know.
        may: What the client may do besides, by its hello: words of its contract.
        findings: The rules for all runs that this one violated; after a colon the word that allows it.
    """

    run: str
    name: str = ""
    client: str = ""
    client_version: str = ""
    suite_version: str = ""
    protocol: str = ""
    variant: str = ""
    profile: str = ""
    scenario: str = ""
    revision: int = 1
    level: str = ""
    requirement: str = ""
    seed: int | None = None
    contract: str = ""
    heartbeat_limit_ms: float | None = None
    faults: int = 0
    verdict: str = ""
    started_ms: int = 0
    ended: bool = False
    torn: bool = False
    note: str = ""
    ends: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    memory_peak: int | None = None
    may: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


class FrameRow(msgspec.Struct, frozen=True, gc=False):
    """Table ``frames``: a frame at a tap, or a state of a connection (tap ``state``).

    Attributes:
        seq: Position in the run, over all tables, from 1 without gaps; the order of events.
        t_ns: Monotonic clock.
        connection: ``c1``, ``c2`` ...; empty for the fake as a whole.
        tap: ``received``, ``heard``, ``said``, ``sent``; ``in`` and ``out`` are both of their direction.
        direction: ``in`` is client to broker, ``out`` broker to client; empty for states.
        kind: The protocol's name of the frame, or what happened.
        scope: In which its keys count (publisher id ...); empty if they count on the connection.
        key_first: First of `items` consecutive numbers; then `keys` is empty.
        items: Messages in a batch; 1 for plain frames, 0 for states.
        keys: The keys as text (see `key_text`), where they are no such numbers.
        size: Bytes on the wire; of a frame in several rows it is in the first.
        status: The wire's result code, if the frame has one.
        fault: Names of the faults that touched it, comma separated.
        note: Text of states; else what of the frame does not fit its column.
        frame: All fields as JSON, if that was asked for.
        key_type: `KeyType` of its keys: ``u64``, ``bytes16``, ``bytes``, ``text``, ``tuple``; empty where
            there are none, or where the journal is too old for it.
        part: A batch whose items differ in role, status or scope is one row for all that share these:
            which of them, from 0.
        peer: Who is at the other end of the connection, where the protocol knows.
        envelope: Kind of the frame that it was inside of.
    """

    run: str
    seq: int
    t_ns: int
    connection: str
    tap: str
    direction: str
    kind: str
    role: str = ""
    scope: str = ""
    key_first: Unsigned | None = None
    items: int = 0
    keys: tuple[str, ...] = ()
    size: int = 0
    status: int | None = None
    fault: str = ""
    note: str = ""
    frame: str | None = None
    key_type: str = ""
    part: int = 0
    peer: str = ""
    envelope: str = ""


class OpRow(msgspec.Struct, frozen=True, gc=False):
    """Table ``ops``: an operation of the client began or ended, or it reported something (``event``).

    Attributes:
        process: The client session.
        op_id: Ties the end to the beginning; None where there is only one record.
        f: ``publish``, ``deliver``, ``subscribe``, ``drain`` ..., or the name of the event.
        outcome: ``invoke``, ``ok``, ``fail`` (surely not), ``info`` (unknown), or ``event``.
        key: The log.
        value: Which message; see `value_id`.
        offset: Position in the log.
        wire_key: The wire's correlation key as text.
        error: Kind of the error; ``hang`` if the runner gave up.
    """

    run: str
    seq: int
    t_ns: int
    process: str
    op_id: int | None
    f: str
    outcome: str
    key: str | None = None
    value: str | None = None
    offset: Unsigned | None = None
    wire_key: str | None = None
    error: str | None = None
    note: str = ""


class MetricRow(msgspec.Struct, frozen=True, gc=False):
    """Table ``metrics``: a measurement of the harness."""

    run: str
    seq: int
    t_ns: int
    name: str
    value: float


class TracedRow(msgspec.Struct, frozen=True, gc=False):
    """Table ``trace``: what passed, as it was, after all faults; only where that was asked for.

    Frames are what the fake saw and meant. This is what the client was handed and did, in the order in which
    it happened, from which a run can be judged again.

    Attributes:
        seq: Position in the trace, from 1 without gaps; it counts apart from the other tables.
        t_s: Monotonic clock, seconds, as exact as it was.
        what: ``in``, ``out`` (bytes from and to the client), ``accept``, ``end``, ``reads`` of a connection;
            ``op``, ``answer``, ``event`` of the client; ``mark`` of the script; ``case``, the last row: all
            else that judging the run needs.
        connection: ``c1``, ``c2`` ...; empty for what belongs to none.
        data: In msgpack: bytes or parts; who ended a connection, and how; the id of an op; the number of an
            event's line.
    """

    run: str
    seq: int
    t_s: float
    what: str
    connection: str
    data: bytes


#: The table that files of version 2.1 lack.
TRACE = "trace"
TABLES: dict[str, type[msgspec.Struct]] = {
    "runs": RunRow,
    "frames": FrameRow,
    "ops": OpRow,
    "metrics": MetricRow,
    TRACE: TracedRow,
}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the rows; ``schema.json`` holds it."""
    _, inside = components(TABLES.values())
    return {
        "$schema": DIALECT,
        "title": "fakebrokers journal",
        "version": SCHEMA_VERSION,
        "minor": SCHEMA_MINOR,
        "properties": {
            table: {"type": "array", "items": {"$ref": f"#/$defs/{row.__name__}"}}
            for table, row in TABLES.items()
        },
        "$defs": inside,
    }
