"""The tables of a journal as Arrow has them. Needs pyarrow (extra ``suite``)."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from fakebrokers.journal.lines import SCHEMA_VERSION
from fakebrokers.journal.rows import TABLES, Unsigned

if TYPE_CHECKING:
    import pyarrow

VERSION_KEY = b"fakebrokers.journal.version"


def arrow_schema(table: str) -> pyarrow.Schema:
    """The Arrow schema of one of `TABLES`. Every column is nullable there."""
    import pyarrow as pa

    types = {
        str: pa.string(),
        int: pa.int64(),
        Unsigned: pa.uint64(),
        float: pa.float64(),
        bool: pa.bool_(),
        bytes: pa.binary(),
        tuple[str, ...]: pa.list_(pa.string()),
    }
    hints = get_type_hints(TABLES[table], include_extras=True)
    fields = [(name, types[_plain(hint)]) for name, hint in hints.items()]
    return pa.schema(fields, metadata={VERSION_KEY: str(SCHEMA_VERSION)})


def arrow_table(table: str, rows: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    """Rows as tuples in the order of the columns, as an Arrow table."""
    import pyarrow as pa

    schema = arrow_schema(table)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def version_of(schema: pyarrow.Schema) -> int:
    """The version of the journal that a Parquet file was written for; 0 if it is none."""
    return int((schema.metadata or {}).get(VERSION_KEY, b"0"))


def _plain(hint: Any) -> Any:
    """The type after ``X | None``."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return next(part for part in get_args(hint) if part is not NoneType)
    return hint
