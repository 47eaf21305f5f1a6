"""What older versions wrote, as this one would have written it.

Version 1 called a run by a name that others could have too, and knew no types of keys, no parts and no peers;
its numbers were signed. One fake noted a client's address as the state ``peer``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.core.frames import KeyType
from fakebrokers.journal.arrow import arrow_schema
from fakebrokers.journal.lines import SCHEMA_MINOR, Line, StateLine
from fakebrokers.journal.record import State
from fakebrokers.journal.rows import MARK, RunRow

if TYPE_CHECKING:
    import pyarrow

#: Columns that version 2.0 had not, by table.
NEW_IN_2_1 = {"runs": {"ends", "touched", "memory_peak", "may", "findings"}}
#: Columns that version 1 had not.
NEW_IN_2 = {
    "runs": {"name", "note", *NEW_IN_2_1["runs"]},
    "frames": {"key_type", "part", "peer", "envelope"},
}
#: What tells runs of version 1 apart that have the same name.
_TELLING = ("started_ms", "client", "client_version", "protocol", "variant", "profile", "scenario", "seed")
_DEFAULTS = msgspec.structs.asdict(RunRow(run=""))


def upgraded_lines(lines: list[Line], version: int) -> list[Line]:
    """The lines of a file of that version."""
    if version != 1:
        return lines
    return [_state_of_1(line) if isinstance(line, StateLine) else line for line in lines]


def _state_of_1(line: StateLine) -> StateLine:
    return msgspec.structs.replace(line, what=State.ADDRESS) if line.what == State.PEER else line


def identity_of_1(attributes: Mapping[str, Any]) -> str:
    """The identity of a run of version 1, the same whether it is sealed or not.

    Args:
        attributes: Its name and what is known of the columns of `RunRow`.
    """
    telling = {name: attributes.get(name, _DEFAULTS[name]) for name in ("name", *_TELLING)}
    digest = hashlib.sha256(msgspec.json.encode(telling, order="sorted", enc_hook=str)).hexdigest()
    return f"{telling['name']}{MARK}{digest[:16]}"


def arrow_schema_of(table: str, version: int, minor: int = SCHEMA_MINOR) -> pyarrow.Schema:
    """The Arrow schema that a version had."""
    import pyarrow as pa

    schema = arrow_schema(table)
    if version != 1:
        new = NEW_IN_2_1.get(table, set()) if minor == 0 else set()
        return pa.schema([field for field in schema if field.name not in new])
    return pa.schema(
        [
            field.with_type(pa.int64()) if field.type == pa.uint64() else field
            for field in schema
            if field.name not in NEW_IN_2.get(table, ())
        ]
    )


def upgraded_tables(tables: Mapping[str, pyarrow.Table], version: int) -> dict[str, pyarrow.Table]:
    """The tables of a set of Parquet files of that version; needs pyarrow."""
    if version != 1:
        return {table: _completed(table, rows) for table, rows in tables.items()}
    runs = tables["runs"].to_pylist()
    identities = {row["run"]: identity_of_1({**row, "name": row["run"]}) for row in runs}
    return {table: _table_of_1(table, rows, identities) for table, rows in tables.items()}


def _completed(table: str, rows: pyarrow.Table) -> pyarrow.Table:
    """With the columns that were added to this version, empty where they were not there."""
    import pyarrow as pa

    schema = arrow_schema(table)
    if set(rows.column_names) >= set(schema.names):
        return rows
    there = {name: rows[name] for name in rows.column_names}
    columns = [there[field.name] if field.name in there else _empty(field, len(rows)) for field in schema]
    return pa.table(columns, schema=schema)


def _empty(field: pyarrow.Field, count: int) -> pyarrow.Array:
    """Of a column that nobody has filled: nothing where that is no number."""
    import pyarrow as pa

    value: Any = [] if pa.types.is_list(field.type) else None if field.name == "memory_peak" else ""
    return pa.array([0 if field.name == "part" else value] * count, field.type)


def _table_of_1(table: str, rows: pyarrow.Table, identities: Mapping[str, str]) -> pyarrow.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = rows["run"]
    known = {name: rows[name] for name in rows.column_names}
    known["run"] = pa.array([identities[name] for name in names.to_pylist()], pa.string())
    if table == "runs":
        known["name"] = names
        known["ended"] = pc.and_(known["ended"], pc.invert(known["torn"]))
    if table == "frames":
        state = pc.and_(pc.equal(known["tap"], "state"), pc.equal(known["kind"], State.PEER.value))
        known["kind"] = pc.if_else(state, State.ADDRESS.value, known["kind"])
        known["key_type"] = pc.if_else(pc.is_valid(known["key_first"]), KeyType.U64.value, "")
    if table == "ops":
        known["note"] = _noted(known["note"], known["offset"])
    columns = []
    for field in arrow_schema(table):
        column = known.get(field.name)
        if column is None:
            column = _empty(field, len(rows))
        elif field.type == pa.uint64():
            column = pc.if_else(pc.less(column, 0), None, column)
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=arrow_schema(table))


def _noted(notes: Any, offsets: Any) -> Any:
    """The notes of ops, with the offsets that a number without a sign cannot be."""
    import pyarrow.compute as pc

    lost = pc.binary_join_element_wise("offset ", pc.cast(offsets, "string"), " does not fit", "")
    also = pc.if_else(pc.equal(notes, ""), lost, pc.binary_join_element_wise(notes, lost, "; "))
    return pc.if_else(pc.fill_null(pc.less(offsets, 0), False), also, notes)
