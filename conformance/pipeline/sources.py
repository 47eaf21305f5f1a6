"""The sealed files that an analysis reads: each checked against its schema, each run once."""

from __future__ import annotations

import hashlib
import posixpath
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from conformance.pipeline.cut_runs import cut_runs, put_together
from conformance.pipeline.places import is_uri, joined, located, names_in, shown, write
from conformance.pipeline.salvage import SkippedRun, damage, opened, salvaged, why
from fakebrokers.errors import UsageError
from fakebrokers.journal.arrow import version_of
from fakebrokers.journal.convert import arrow_schema_of, upgraded_tables
from fakebrokers.journal.lines import READABLE, SCHEMA_VERSION
from fakebrokers.journal.rows import TABLES, TRACE
from fakebrokers.journal.seal import seal, seal_open

#: Endings of the files of runs that are not sealed.
_SEGMENTS = (".wire", ".ops")


class SealedFiles(msgspec.Struct, frozen=True):
    """One set of sealed files.

    Attributes:
        name: What no other content has.
        paths: By table; paths or URIs.
        rows: Of frames, ops and metrics.
        runs: How many.
        open: How many of these are still being written.
    """

    name: str
    paths: dict[str, str]
    rows: int
    runs: int
    open: int = 0


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


def sealed(folder: str, left_out: list[SkippedRun] | None = None) -> tuple[str, ...]:
    """Seal what is left to seal, where that can be done (on this machine); the runs still being written.

    Args:
        left_out: Gets the runs whose files are damaged. These stay as they are.

    Raises:
        UsageError: A file is damaged, and there is no `left_out`.
    """
    if not is_uri(folder):
        done = seal(Path(folder), skip_damaged=left_out is not None)
        for run, problem in done.damaged.items():
            file, _, problem = problem.partition(": ")
            (left_out if left_out is not None else []).append(SkippedRun(run, file, problem))
        return done.busy
    if any(name.endswith(_SEGMENTS) for name in names_in(folder)):
        raise UsageError(
            f"{shown(folder)}: expected sealed files (Parquet), found segments; seal it where it was written"
        )
    return ()


def open_runs(folder: str, runs: Sequence[str], scratch: str) -> list[SealedFiles]:
    """The runs of a folder that are still being written, as far as they are; none if `runs` is empty.

    They are copied into `scratch`, where workers on other machines can read them too.
    """
    if not runs:
        return []
    place = Path(tempfile.mkdtemp(prefix="fakebrokers-open-"))
    try:
        still = seal_open(Path(folder), runs, place)
        where = joined(scratch, f"open-{_digest([_resolved(folder)])}")
        system, inside = located(where)
        system.create_dir(inside, recursive=True)
        for path in place.iterdir():
            write(joined(where, path.name), path.read_bytes())
    finally:
        shutil.rmtree(place)
    [found] = sources_in([where], scratch)
    # judged again once they have ended, however few rows that adds
    return [msgspec.structs.replace(found, name=f"{found.name}-open" if still else found.name, open=still)]


def sources_in(
    folders: Iterable[str], scratch: str, left_out: list[SkippedRun] | None = None
) -> list[SealedFiles]:
    """The sets of sealed files in these folders.

    Every run counts once, however often it turns up, and whole, whatever pieces it comes in. Files of older
    versions, those that hold a run which another file has too, and runs in pieces are written again to
    `scratch`.

    Args:
        left_out: Gets the runs and files that cannot be read.

    Raises:
        UsageError: A file cannot be read, is of a version that is not known here, or its columns differ, and
            there is no `left_out`.
    """
    left: list[SkippedRun] = []
    found = _found(_sound(list(_sets(folders, left)), scratch, left), scratch)
    known = {run for _, runs in found for run in runs}
    left = [each for each in left if each.run not in known]  # a copy of it can be read
    if left and left_out is None:
        raise UsageError(str(left[0]))
    if left_out is not None:
        left_out += left
    return [source for source, _ in found]


def left_of(
    sources: Iterable[SealedFiles], damaged: Mapping[str, str], scratch: str, *, none: bool = False
) -> tuple[list[SealedFiles], list[SkippedRun]]:
    """What of these sources can be judged, and what cannot.

    Args:
        damaged: Of those that could not be judged, by name, why.
        none: Nothing of them.
    """
    left: list[SealedFiles] = []
    left_out: list[SkippedRun] = []
    for source in sources:
        if source.name not in damaged:
            left.append(source)
            continue
        whole = SkippedRun("", shown(source.paths["runs"]), damaged[source.name])
        try:
            paths, runs, bad = salvaged(source.paths, joined(scratch, f"left-{source.name}"))
        except UsageError:
            none = True
        if none or not bad:
            left_out.append(whole)
        else:
            left_out += bad
            left += [_source(paths, runs)] if runs else []
    return left, left_out


#: A set of files: its paths by table, and the runs in it.
_Set = tuple[dict[str, str], list[str]]


def _sound(
    sets: Sequence[tuple[dict[str, str], list[str], int]], scratch: str, left_out: list[SkippedRun]
) -> list[_Set]:
    """The sets as of this version, without what cannot be read in those that are read before they are judged.

    These are the ones of older versions, and those that share runs with others.
    """
    often = Counter(run for _, runs, _ in sets for run in set(runs))
    sound: list[_Set] = []
    for paths, runs, version in sets:
        if version == SCHEMA_VERSION and all(often[run] == 1 for run in runs):
            sound.append((paths, runs))
            continue
        try:
            if version != SCHEMA_VERSION:
                paths = _rewritten(paths, version, runs, joined(scratch, _digest([paths["runs"], "now"])))
            new, kept, bad = salvaged(paths, joined(scratch, _digest([paths["runs"], "left"])))
        except damage() as error:
            left_out += [SkippedRun(run, shown(paths["runs"]), why(error)) for run in runs]
            continue
        left_out += bad
        sound += [(new, kept)] if kept else []
    return sound


def _found(sets: Sequence[_Set], scratch: str) -> list[tuple[SealedFiles, list[str]]]:
    """The sources, and the runs of each."""
    cut = cut_runs(sets)
    found: list[tuple[SealedFiles, list[str]]] = []
    seen = set(cut)
    for paths, runs in sets:
        new = [run for run in runs if run not in seen]
        seen.update(new)
        if new and len(new) < len(runs):
            paths = _rewritten(paths, SCHEMA_VERSION, new, joined(scratch, _digest(new)))
        if new:
            found.append((_source(paths, new), new))
    if cut:
        found.append((_source(put_together(cut, joined(scratch, "whole")), list(cut)), list(cut)))
    return found


def _sets(
    folders: Iterable[str], left_out: list[SkippedRun]
) -> Iterator[tuple[dict[str, str], list[str], int]]:
    """All sets that can be opened, and their versions."""
    for folder in dict.fromkeys(_resolved(folder) for folder in folders):
        there = names_in(folder)
        for name in filter(_is_sealed, there):
            files = {table: f"{table}{name.removeprefix('runs')}" for table in TABLES}
            paths = {
                table: joined(folder, file)
                for table, file in files.items()
                if table != TRACE or file in there
            }
            runs: list[str] = [""]
            place = paths["runs"]
            try:
                version, _ = _checked("runs", place)
                runs = _runs(place, version)
                for table, path in paths.items():
                    place = path
                    version = max(version, _checked(table, path)[0])
            except UsageError as error:
                problem = str(error).removeprefix(f"{shown(place)}: ")
                left_out += [SkippedRun(run, shown(place), problem) for run in runs]
            else:
                yield paths, runs, version


def _source(paths: dict[str, str], runs: Sequence[str]) -> SealedFiles:
    rows = sum(_checked(table, path)[1] for table, path in paths.items() if table not in ("runs", TRACE))
    return SealedFiles(_digest([*runs, str(rows)]), paths, rows, len(runs))


def _is_sealed(name: str) -> bool:
    return name.startswith("runs-") and name.endswith(".parquet")


def _resolved(folder: str) -> str:
    return folder if is_uri(folder) else str(Path(folder).resolve())


def _digest(words: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(words).encode("utf-8", "backslashreplace"), digest_size=10).hexdigest()


def _runs(path: str, version: int) -> list[str]:
    try:
        with opened(path) as file:
            table = file.read()
    except damage() as error:
        raise UsageError(f"{shown(path)}: {why(error)}") from None
    runs: list[str] = upgraded_tables({"runs": table}, version)["runs"]["run"].to_pylist()
    return runs


def _checked(table: str, path: str) -> tuple[int, int]:
    """The version of a file that has the columns of that version, and its rows."""
    try:
        with opened(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except damage() as error:
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
        with opened(path) as file:
            return file.read()

    system, inside = located(folder)
    system.create_dir(inside, recursive=True)
    tables = upgraded_tables({table: whole(path) for table, path in paths.items()}, version)
    for table, rows in tables.items():
        kept = rows.filter(pc.is_in(rows["run"], pa.array(runs, pa.string())))
        pq.write_table(kept, posixpath.join(inside, f"{table}.parquet"), filesystem=system)
    return {table: joined(folder, f"{table}.parquet") for table in tables}
