"""What the API answers with, and what it takes besides the arguments of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fakebrokers.control.describe import Timeout
from fakebrokers.control.values import builtins_of, plain
from fakebrokers.core.frames import Frame, KeyType
from fakebrokers.faults.control import FaultControl
from fakebrokers.faults.match import Match
from fakebrokers.journal import Record, Tap
from fakebrokers.journal.keys import expand, key_text
from fakebrokers.options import Seconds
from fakebrokers.reading import struct_from
from fakebrokers.server import FakeServer

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Seq = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
TapName = Literal["received", "heard", "said", "sent", "in", "out", "state"]


class NewBroker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A broker to start.

    Attributes:
        protocol: By its name.
        name: What to call it; "" takes the protocol's name, with a number if that is taken.
        options: What it is made with; see `Options` of the protocol.
    """

    protocol: str
    name: Name | Literal[""] = ""
    options: dict[str, Any] = {}


class BrokerRow(msgspec.Struct, frozen=True):
    """A broker that runs.

    Attributes:
        url: Where clients connect.
        urls: Further addresses by name: nodes, TLS, management.
        ca_file: PEM file with the authority of its certificates; None without TLS.
        connections: How many are open.
        journal: `seq` of the newest record of the journal.
        operations: What it can do.
    """

    name: str
    protocol: str
    profile: str
    host: str
    port: int
    url: str
    urls: dict[str, str]
    ca_file: str | None
    connections: int
    journal: int
    operations: list[str]


class FaultRow(msgspec.Struct, frozen=True):
    """A fault at work.

    Attributes:
        seen: Frames, messages or moments that matched, whether or not it was their turn.
        fired: How often it took place.
        fault: The fault, as a plan has it.
    """

    name: str
    seen: int
    fired: int
    fault: dict[str, Any]


class FaultsRow(msgspec.Struct, frozen=True):
    """The faults of a broker.

    Attributes:
        seed: Of their random decisions.
        faults: Those at work, in the order in which they act.
        unfired: All that were ever added and never took place, also those that were taken out.
    """

    seed: int
    faults: list[FaultRow]
    unfired: list[str]


class Added(msgspec.Struct, frozen=True):
    """Names of what was added."""

    names: list[str]


class Hold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Frames to keep back until they are released.

    Attributes:
        match: Which ones.
        name: Of the fault that keeps them.
        behind: Everything after them waits too.
        for_s: Or until this many seconds have passed.
    """

    match: dict[str, Any] = {}
    name: str = ""
    behind: bool = False
    for_s: Seconds | None = None


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records of the journal.

    Attributes:
        kind: The protocol's name of the frame, or a state such as ``accepted``.
        role: Of the frame or of one of its messages.
        tap: Where it was seen.
        connection: Its name.
        since: Only records with a higher `seq`.
    """

    kind: str | None = None
    role: str | None = None
    tap: TapName | None = None
    connection: str | None = None
    since: Seq = 0

    def keywords(self) -> dict[str, Any]:
        """As `Journal.select` and `FakeServer.wait_for` take them."""
        found: dict[str, Any] = {name: getattr(self, name) for name in Filter.__struct_fields__}
        if self.tap is not None:
            found["tap"] = Tap[self.tap.upper()]
        return found


class JournalQuery(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records, and whether to go on.

    Attributes:
        limit: The last so many of those that are there; 0 for none.
        follow: Go on with what comes, until the broker stops.
    """

    limit: Seq | None = None
    follow: bool = False


class Wanted(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to wait for.

    Attributes:
        count: So many records that fit.
        timeout: Seconds.
    """

    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    timeout: Timeout = 5.0


class JournalRow(msgspec.Struct, frozen=True):
    """A record of the journal; see `fakebrokers.journal.Record`.

    Attributes:
        at: Seconds since the first record.
        keys: Numbers and text as they are, bytes as text if they are readable, else in hex (``0x...``).
        frame: The frame's fields, without secrets; None for states and where its bodies are too large.
        text: The record as failure reports show it.
    """

    seq: int
    at: float
    connection: str
    tap: TapName
    kind: str
    role: str
    keys: list[Any]
    size: int
    status: int | None
    fault: str
    note: str
    peer: str
    envelope: str
    frame: Any
    text: str


def journal_row(record: Record) -> JournalRow:
    """A record as the API shows it."""
    row = {name: getattr(record, name) for name in JournalRow.__struct_fields__ if hasattr(record, name)}
    tap: Any = record.tap.label
    row |= {"tap": tap, "role": str(record.role), "text": str(record), "keys": _keys(record, record.keys)}
    if record.frame is not None:
        row["frame"] = _frame(record, record.frame)
    return JournalRow(**{name: value if name == "tap" else plain(value) for name, value in row.items()})


def _keys(record: Record, keys: Sequence[Any]) -> list[Any]:
    """Keys as the files have them where they are bytes: as text, or in hex."""
    kind = "" if record.frame is None else record.frame.spec.keys
    return [key_text(key, kind) if isinstance(key, bytes) else key for key in keys]


def _frame(record: Record, frame: Frame) -> Any:
    """A frame's fields; its keys as in `JournalRow.keys`, wherever in it they stand."""
    spec = frame.spec
    guids = {key: key_text(key, spec.keys) for key in record.keys if spec.keys is KeyType.BYTES16}

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shown(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [shown(each) for each in value]
        return guids.get(value, value) if isinstance(value, bytes) else value

    fields = builtins_of(frame)
    if isinstance(packed := fields.get(spec.key), bytes):
        keys = _keys(record, expand(packed, spec))
        fields[spec.key] = keys if spec.items is not None and spec.keys.width else keys[0]
    return shown(fields) if guids else fields


def fault_rows(faults: FaultControl) -> list[FaultRow]:
    """The faults at work with their counts."""
    plans = {row["name"]: row for row in faults.plan.named().to_dict()["faults"]}
    return [
        FaultRow(rule.name, rule.seen, rule.fired, plain({**plans.get(rule.name, {}), "name": rule.name}))
        for rule in faults.rules
    ]


def broker_row(name: str, server: FakeServer, operations: list[str]) -> BrokerRow:
    """A broker as the API shows it."""
    return BrokerRow(
        name=name,
        protocol=server.protocol.name,
        profile=server.profile,
        host=server.host,
        port=server.port,
        url=server.url,
        urls=server.urls,
        ca_file=str(server.tls.ca_file) if server.tls is not None else None,
        connections=len(server.connections),
        journal=server.journal.last_seq,
        operations=operations,
    )


def match_of(hold: Hold) -> Match:
    """The match of a hold; raises `PlanError`."""
    match: Match = struct_from(hold.match, Match, "body.match")
    return match


class DocumentQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For which protocol the document is; "" for all."""

    protocol: str = ""
