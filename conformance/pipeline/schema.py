"""The typed tables of a journal, and the one check that files fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fakebrokers.errors import UsageError
from fakebrokers.journal.convert import arrow_schema_of, upgraded_tables
from fakebrokers.journal.lines import READABLE, SCHEMA_VERSION
from fakebrokers.journal.reader import runs_in
from fakebrokers.journal.rows import TABLES
from fakebrokers.journal.seal import arrow_schema, sealed_runs, version_of

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


def files_of(folders: Iterable[Path], scratch: Path) -> dict[str, list[str]]:
    """The sealed files by table, each checked against the schema of its version.

    Every run counts once, however often it turns up. Files of older versions, and those that hold a run
    which another file has too, are written again to `scratch`.

    Raises:
        UsageError: A file is of a version that cannot be read, or its columns differ.
    """
    found: dict[str, list[str]] = {table: [] for table in TABLES}
    seen: set[str] = set()
    for path in dict.fromkeys(
        path.resolve() for folder in folders for path in sorted(folder.glob("runs-*.parquet"))
    ):
        paths = {table: path.with_name(f"{table}{path.name.removeprefix('runs')}") for table in TABLES}
        version = max(_checked(table, each) for table, each in paths.items())
        runs = sealed_runs(path)
        new = [run for run in runs if run not in seen]
        seen.update(new)
        if new and (version != SCHEMA_VERSION or len(new) < len(runs)):
            paths = _rewritten(paths, version, new, scratch / f"{len(seen)}")
        if new:
            for table, each in paths.items():
                found[table].append(str(each))
    return found


def _checked(table: str, path: Path) -> int:
    """The version of a file that has the columns of that version."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    version = version_of(schema)
    if version not in READABLE:
        raise UsageError(
            f"{path}: expected a journal of version 1 to {SCHEMA_VERSION}, got version {version}"
        )
    wanted = arrow_schema_of(table, version)
    if not schema.equals(wanted):
        raise UsageError(f"{path}: expected the columns {wanted.names}, got {schema.names}")
    return version


def _rewritten(paths: Mapping[str, Path], version: int, runs: Sequence[str], folder: Path) -> dict[str, Path]:
    """The same files as of this version, with these runs only."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    tables = upgraded_tables({table: pq.read_table(path) for table, path in paths.items()}, version)
    for table, rows in tables.items():
        kept = rows.filter(pc.is_in(rows["run"], pa.array(runs, pa.string())))
        pq.write_table(kept, folder / f"{table}.parquet")
    return {table: folder / f"{table}.parquet" for table in tables}


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
