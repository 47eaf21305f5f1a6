"""The sealed files that an analysis reads: each checked against its schema, each run once."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from conformance.pipeline.cut_runs import cut_runs, put_together
from conformance.pipeline.places import is_uri, joined, located, names_in, shown
from fakebrokers.errors import UsageError
from fakebrokers.journal.convert import arrow_schema_of, upgraded_tables
from fakebrokers.journal.lines import READABLE, SCHEMA_VERSION
from fakebrokers.journal.rows import TABLES
from fakebrokers.journal.seal import seal, version_of

#: Endings of the files of runs that are not sealed.
_SEGMENTS = (".wire", ".ops")


class Source(msgspec.Struct, frozen=True):
    """One set of sealed files.

    Attributes:
        name: What no other content has.
        paths: By table; paths or URIs.
        rows: Of frames, ops and metrics.
        runs: How many.
    """

    name: str
    paths: dict[str, str]
    rows: int
    runs: int


def journal_folder(place: str) -> str:
    """The folder that holds the journal: `place` itself, or ``journal`` in it (a report folder).

    Raises:
        UsageError: There is no journal.
    """
    for folder in (place, joined(place, "journal")):
        names = names_in(folder)
        if any(_is_sealed(name) or name.endswith(_SEGMENTS) for name in names):
            return folder
    raise UsageError(f"{shown(place)}: expected the folder of a journal, found no runs there")


def sealed(folder: str) -> str:
    """The folder, with nothing left to seal where that can be done (on this machine)."""
    if not is_uri(folder):
        seal(Path(folder))
    elif any(name.endswith(_SEGMENTS) for name in names_in(folder)):
        raise UsageError(
            f"{shown(folder)}: expected sealed files (Parquet), found segments; seal it where it was written"
        )
    return folder


def sources_in(folders: Iterable[str], scratch: str) -> list[Source]:
    """The sets of sealed files in these folders.

    Every run counts once, however often it turns up, and whole, whatever pieces it comes in. Files of older
    versions, those that hold a run which another file has too, and runs in pieces are written again to
    `scratch`.

    Raises:
        UsageError: A file is of a version that cannot be read, or its columns differ.
    """
    sets = list(_sets(folders))
    cut = cut_runs([(paths, runs) for paths, runs, _ in sets])
    found: list[Source] = []
    seen = set(cut)
    for paths, runs, version in sets:
        new = [run for run in runs if run not in seen]
        seen.update(new)
        if new and (version != SCHEMA_VERSION or len(new) < len(runs)):
            paths = _rewritten(paths, version, new, joined(scratch, _digest(new)))
        if new:
            found.append(_source(paths, new))
    if cut:
        pieces = {
            run: [_of_this_version(paths, run, scratch) for paths in where] for run, where in cut.items()
        }
        found.append(_source(put_together(pieces, joined(scratch, "whole")), list(cut)))
    return found


def _sets(folders: Iterable[str]) -> Iterator[tuple[dict[str, str], list[str], int]]:
    """The paths of each set by table, the runs in it, and its version."""
    for folder in dict.fromkeys(_resolved(folder) for folder in folders):
        for name in filter(_is_sealed, names_in(folder)):
            paths = {table: joined(folder, f"{table}{name.removeprefix('runs')}") for table in TABLES}
            version = max(_checked(table, path)[0] for table, path in paths.items())
            yield paths, _runs(paths["runs"], version), version


def _source(paths: dict[str, str], runs: Sequence[str]) -> Source:
    rows = sum(_checked(table, path)[1] for table, path in paths.items() if table != "runs")
    return Source(_digest([*runs, str(rows)]), paths, rows, len(runs))


def _of_this_version(paths: Mapping[str, str], run: str, scratch: str) -> Mapping[str, str]:
    """What a set has of a run, as files of this version."""
    version = max(_checked(table, path)[0] for table, path in paths.items())
    if version == SCHEMA_VERSION:
        return paths
    return _rewritten(paths, version, [run], joined(scratch, _digest([run, paths["runs"]])))


def _is_sealed(name: str) -> bool:
    return name.startswith("runs-") and name.endswith(".parquet")


def _resolved(folder: str) -> str:
    return folder if is_uri(folder) else str(Path(folder).resolve())


def _digest(words: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(words).encode("utf-8", "backslashreplace"), digest_size=10).hexdigest()


def _runs(path: str, version: int) -> list[str]:
    import pyarrow.parquet as pq

    system, inside = located(path)
    table = pq.read_table(inside, filesystem=system)
    runs: list[str] = upgraded_tables({"runs": table}, version)["runs"]["run"].to_pylist()
    return runs


def _checked(table: str, path: str) -> tuple[int, int]:
    """The version of a file that has the columns of that version, and its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    system, inside = located(path)
    try:
        with pq.ParquetFile(inside, filesystem=system) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"{shown(path)}: expected a Parquet file of a journal: {error}") from None
    version = version_of(schema)
    if version not in READABLE:
        raise UsageError(
            f"{shown(path)}: expected a journal of version 1 to {SCHEMA_VERSION}, got version {version}"
        )
    wanted = arrow_schema_of(table, version)
    if not schema.equals(wanted) and not schema.equals(arrow_schema_of(table, version, minor=0)):
        raise UsageError(f"{shown(path)}: expected the columns {wanted.names}, got {schema.names}")
    return version, rows


def _rewritten(paths: Mapping[str, str], version: int, runs: Sequence[str], folder: str) -> dict[str, str]:
    """The same files as of this version, with these runs only."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def whole(path: str) -> pa.Table:
        system, inside = located(path)
        return pq.read_table(inside, filesystem=system)

    system, inside = located(folder)
    system.create_dir(inside, recursive=True)
    tables = upgraded_tables({table: whole(path) for table, path in paths.items()}, version)
    for table, rows in tables.items():
        kept = rows.filter(pc.is_in(rows["run"], pa.array(runs, pa.string())))
        pq.write_table(kept, posixpath.join(inside, f"{table}.parquet"), filesystem=system)
    return {table: joined(folder, f"{table}.parquet") for table in tables}
