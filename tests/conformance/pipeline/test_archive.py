"""Archives of classes: where they lie, when they are made, and that nothing depends on them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conformance.pipeline import archive
from conformance.pipeline.archive import (
    BASE,
    CLASSES,
    SWITCH,
    UNFINISHED,
    archive_folder,
    archive_options,
    keep,
    start_training,
    whole,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake of Java is a shell script")
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, on a machine that is not a CI's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache" / "fakebrokers" / "spark"


@pytest.fixture
def java(tmp_path: Path) -> Path:
    return fake_java(tmp_path / "java", "17.0.1")


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    jars = tmp_path / "installed" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-sql_2.13.jar").write_text("classes")
    return jars.parent


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, Any]]]:
    """Command and options of each process that is started instead of a training."""
    calls: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(archive.subprocess, "Popen", lambda command, **how: calls.append((command, how)))
    return calls


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    properties = {
        "java.home": home,
        "java.vm.version": version,
        "java.vm.specification.version": version.split(".", maxsplit=1)[0],
    }
    lines = "".join(f"    {name} = {value}\n" for name, value in properties.items())
    program.write_text(f"#!/bin/sh\ncat >&2 <<END\nProperty settings:\n{lines}END\n")
    program.chmod(0o755)
    return home


def test_the_same_java_and_jars_have_the_same_folder(
    java: Path, spark: Path, cache: Path, tmp_path: Path
) -> None:
    folder = archive_folder(java, spark)
    assert folder is not None
    assert folder.parent == cache
    assert (folder / "home" / "jars" / "spark-sql_2.13.jar").read_text() == "classes"
    assert archive_folder(java, spark) == folder
    assert [entry.name for entry in folder.iterdir()] == ["home"]
    others = {archive_folder(fake_java(tmp_path / "newer", "17.0.2"), spark)}
    (spark / "jars" / "spark-sql_2.13.jar").write_text("other classes")
    others.add(archive_folder(java, spark))
    assert len(others | {folder}) == 3


@pytest.mark.parametrize(("variable", "value"), [(SWITCH, "0"), ("CI", "true")])
def test_switched_off(
    java: Path, spark: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert archive_folder(java, spark) is None
    assert not cache.exists()


def test_the_switch_outweighs_what_a_ci_is_thought_to_want(
    java: Path, spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv(SWITCH, "1")
    assert archive_folder(java, spark) is not None


def test_no_cache_no_archive(java: Path, spark: Path, cache: Path, tmp_path: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file stands where the folder would")
    assert archive_folder(java, spark) is None
    cache.unlink()
    assert archive_folder(tmp_path / "no java", spark) is None
    assert archive_options(None) == []


def make(folder: Path, content: bytes = b"classes") -> Path:
    """Both archives, as a training would."""
    for name in (BASE, CLASSES):
        (folder / "made").write_bytes(content)
        kept = keep(folder / "made", folder, name)
    return kept


def test_only_a_java_that_gets_on_with_them(spark: Path, cache: Path, tmp_path: Path) -> None:
    assert archive_folder(fake_java(tmp_path / "21", "21.0.8+9-LTS"), spark) is None
    assert not cache.exists()


def test_an_archive_is_used_while_it_is_whole(tmp_path: Path) -> None:
    assert archive_options(tmp_path) == []
    kept = make(tmp_path)
    assert f"-XX:SharedArchiveFile={kept}" in archive_options(tmp_path)
    kept.write_bytes(b"class")
    assert archive_options(tmp_path) == []
    make(tmp_path)
    whole(tmp_path, BASE).unlink()  # type: ignore[union-attr]
    assert archive_options(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"not an archive" * 1000])
def test_java_passes_over_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    program = shutil.which("java")
    if program is None:
        pytest.skip("missing: java")
    make(tmp_path, content)
    done = subprocess.run([program, *archive_options(tmp_path), "-version"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_training_starts_once(tmp_path: Path, started: list[tuple[list[str], dict[str, Any]]]) -> None:
    start_training(tmp_path, None)
    ((command, how),) = started
    assert command[1:] == ["-m", "conformance.pipeline.train", str(tmp_path)]
    assert how["start_new_session"]
    start_training(tmp_path, None)
    assert len(started) == 1, "while it is being made, or has just failed"
    yesterday = (tmp_path / "tried").stat().st_mtime - DAY - 1
    os.utime(tmp_path / "tried", (yesterday, yesterday))
    start_training(tmp_path, tmp_path / "java")
    assert started[1][1]["env"]["JAVA_HOME"] == str(tmp_path / "java")
    os.utime(tmp_path / "tried", (yesterday, yesterday))
    make(tmp_path)
    start_training(tmp_path, None)
    assert len(started) == 2, "there is one"


def test_what_is_forgotten_goes(tmp_path: Path, started: list[tuple[list[str], dict[str, Any]]]) -> None:
    mine, used, forgotten = (tmp_path / name for name in ("mine", "used", "forgotten"))
    crashed, running = (mine / f"{UNFINISHED}{name}" for name in ("crashed", "running"))
    for folder in (mine, used, forgotten, crashed, running):
        folder.mkdir()
    for folder, days in [(forgotten, 31), (used, 29), (crashed, 2)]:
        past = folder.stat().st_mtime - days * DAY
        os.utime(folder, (past, past))
    start_training(mine, None)
    left = {str(entry.relative_to(tmp_path)) for entry in tmp_path.rglob("*")}
    assert left == {"mine", "mine/tried", "used", f"mine/{UNFINISHED}running"}


def test_a_process_that_cannot_be_started_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archive.sys, "executable", str(tmp_path / "gone"))
    start_training(tmp_path, None)
    start_training(tmp_path / "gone", None)
    assert capsys.readouterr() == ("", ""), "nothing is said of what does not happen"
