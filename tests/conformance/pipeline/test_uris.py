"""Journals and results that lie in an object store or behind a URI, for both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

from conformance.cli.analyze import analyze_journals
from conformance.pipeline.places import is_there, joined, names_in, read, removed, shown, write
from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal
from fakebrokers.journal.seal import seal
from tests.object_store import Store, serving


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    pytest.importorskip("pyarrow._s3fs", reason="missing: a pyarrow that can speak to S3")
    with serving("bucket") as running:
        yield running


def journal(folder: Path, name: str = "bad", end: str = "fail") -> Path:
    """A run in which a failed message arrives."""
    run = RunJournal(folder, name, run=name, client="c", scenario="S-1", seed=1)
    run.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
    run.op(1.1, "p", 1, "publish", end, key="q", value="a")  # type: ignore[arg-type]
    run.op(1.2, "c", None, "deliver", "ok", key="q", value="a", offset=0)
    run.close(verdict="fail")
    return folder


def uploaded(folder: Path, store: Store, place: str) -> str:
    """A copy of sealed files in the store; returns its URI."""
    seal(folder)
    for path in folder.iterdir():
        store.objects[f"{place}/{path.name}"] = path.read_bytes()
    return store.uri(place)


def document(place: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read(joined(place, "analysis.json")))
    return {name: value for name, value in found.items() if name not in ("seconds", "out")}


def test_places_in_a_store(store: Store) -> None:
    place = store.uri("bucket/a/b")
    file = joined(place, "c d.bin")
    assert names_in(place) == [] and not is_there(file)
    write(file, b"x" * 7_000_000)  # more than one part of an upload
    assert (read(file), names_in(place)) == (b"x" * 7_000_000, ["c d.bin"])
    assert [name for name in store.objects if name.endswith(".tmp")] == []
    write(file, b"y")
    assert read(file) == b"y"
    removed(place)
    assert not is_there(file)


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_the_engine_without_spark(tmp_path: Path, store: Store, kind: str) -> None:
    folder = journal(tmp_path / "journal")
    analyze_journals((folder,), tmp_path / "here", engine="local")
    if kind == "file":
        source, out = folder.as_uri(), (tmp_path / "out").as_uri()
    else:
        source, out = uploaded(folder, store, "bucket/journal"), store.uri("bucket/results")
    summary = analyze_journals((source,), out, engine="local")
    assert (summary["anomalies"], summary["out"]) == ({"G1a": 1}, shown(out))
    assert b"secret" not in read(joined(out, "analysis.json"))
    assert document(out) == document(str(tmp_path / "here"))
    names = {"analysis.json", *(f"{name}.parquet" for name in ("latencies", "matrix", "faults", "harness"))}
    assert set(names_in(out)) == names


@pytest.mark.full
def test_a_growing_folder_in_a_store(tmp_path: Path, store: Store) -> None:
    """What was judged is not judged again, a late file is, and asking again changes nothing."""
    source = uploaded(journal(tmp_path / "one"), store, "bucket/journal")
    out = store.uri("bucket/results")
    analyze_journals((source,), out, engine="local")
    (first,) = names_in(joined(out, "parts"))
    uploaded(journal(tmp_path / "two", "late"), store, "bucket/journal")
    del store.asked[:]
    assert analyze_journals((source,), out, engine="local")["anomalies"] == {"G1a": 2}
    written = [line for line in store.asked if line.startswith("PUT ") and "/parts/" in line]
    assert written and not any(first in line for line in written)
    before = document(out)
    analyze_journals((source,), out, engine="local")
    assert document(out) == before


def test_baselines_may_be_uris(tmp_path: Path, store: Store) -> None:
    out = store.uri("bucket/results")
    analyze_journals((journal(tmp_path / "then", end="ok"),), out, engine="local")
    summary = analyze_journals((journal(tmp_path / "now"),), tmp_path / "out", engine="local", baseline=out)
    assert (summary["changes"]["regressed"], summary["worse"]) == (1, 1)


def test_segments_in_a_store_are_refused(store: Store) -> None:
    store.objects["bucket/journal/a.ops"] = b"x"
    with pytest.raises(UsageError, match="expected sealed files"):
        analyze_journals((store.uri("bucket/journal"),), store.uri("bucket/out"), engine="local")


@pytest.mark.parametrize("place", ["s4://bucket/a", "s3://no-such-bucket/a"])
def test_places_that_nobody_can_open_are_told(tmp_path: Path, store: Store, place: str) -> None:
    place = store.uri("no-such-bucket/a") if place.startswith("s3") else place
    with pytest.raises(
        UsageError, match=r"expected a folder, or a URI|expected the folder|cannot be listed"
    ) as reported:
        analyze_journals((place,), tmp_path / "out", engine="local")
    assert "secret" not in str(reported.value)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
def test_spark(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    folder = journal(tmp_path / "journal")
    analyze_journals((folder,), tmp_path / "here", engine="local")
    source, out = uploaded(folder, store, "bucket/journal"), store.uri("bucket/results")
    try:
        summary = analyze_journals((source,), out, engine="spark", master="local[2]")
    except UsageError as error:
        if "needs Java" in str(error):
            pytest.skip(str(error))
        raise
    assert (summary["anomalies"], summary["out"]) == ({"G1a": 1}, shown(out))
    assert b"secret" not in read(joined(out, "analysis.json"))
    assert document(out) == document(str(tmp_path / "here"))


def test_hadoop_without_hadoop_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_HOME", "HADOOP_HOME", "CLASSPATH", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=r"pyarrow\.fs can open.*CLASSPATH") as reported:
        analyze_journals(("hdfs://nowhere:8020/journal",), tmp_path / "out", engine="local")
    assert "\n" not in str(reported.value)
