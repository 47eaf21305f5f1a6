"""The typed tables of a journal, and the one check that files fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fakebrokers.errors import UsageError
from fakebrokers.journal.lines import SCHEMA_VERSION
from fakebrokers.journal.reader import runs_in
from fakebrokers.journal.rows import TABLES
from fakebrokers.journal.seal import VERSION_KEY, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Tables = Mapping[str, "DataFrame"]


def spark_schema(table: str) -> StructType:
    """The Spark schema of one of the journal's tables."""
    from pyspark.sql import types as t

    kinds = {
        "string": t.StringType(),
        "int64": t.LongType(),
        "uint64": t.DecimalType(20, 0),  # Spark has no unsigned numbers; this is how it reads Parquet's
        "double": t.DoubleType(),
        "bool": t.BooleanType(),
    }
    return t.StructType(
        [
            t.StructField(field.name, kinds.get(str(field.type), t.ArrayType(t.StringType())))
            for field in arrow_schema(table)
        ]
    )


def journal_folder(path: Path) -> Path:
    """The folder that holds the journal: `path` itself, or ``journal`` in it (a report folder).

    Raises:
        UsageError: There is no journal.
    """
    for folder in (path, path / "journal"):
        if any(folder.glob("runs-*.parquet")) or runs_in(folder):
            return folder
    raise UsageError(f"{path}: expected the folder of a journal, found no runs there")


def files_of(folders: Iterable[Path]) -> dict[str, list[str]]:
    """The sealed files by table, each checked against the schema.

    Raises:
        UsageError: A file is of another version, or its columns differ.
    """
    import pyarrow.parquet as pq

    found: dict[str, list[str]] = {table: [] for table in TABLES}
    for folder in folders:
        for runs in sorted(folder.glob("runs-*.parquet")):
            for table, paths in found.items():
                path = folder / f"{table}{runs.name.removeprefix('runs')}"
                schema = pq.read_schema(path)
                version = int((schema.metadata or {}).get(VERSION_KEY, b"0"))
                if version != SCHEMA_VERSION:
                    raise UsageError(
                        f"{path}: expected a journal of version {SCHEMA_VERSION}, got version {version}"
                    )
                if not schema.equals(arrow_schema(table)):
                    raise UsageError(
                        f"{path}: expected the columns {arrow_schema(table).names}, got {schema.names}"
                    )
                paths.append(str(path))
    return found


def load(spark: SparkSession, files: Mapping[str, Sequence[str]]) -> Tables:
    """The tables as data frames, with their schemas given, not inferred."""
    return {
        table: (
            spark.read.schema(spark_schema(table)).parquet(*paths)
            if paths
            else spark.createDataFrame([], spark_schema(table))
        )
        for table, paths in files.items()
    }
