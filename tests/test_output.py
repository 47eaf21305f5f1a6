"""What the command line prints arrives, or the exit code says that it did not."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import pytest

from fakebrokers.cli import main
from fakebrokers.journal import RunJournal
from fakebrokers.output import inert_output


def code(*args: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    return ended.value.code


@pytest.mark.parametrize("args", [["--version"], ["explain", "RMQS-3.01"], ["list", "--json"]], ids=" ".join)
def test_a_full_output_is_no_verdict(
    args: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert code(*args) == 3
    assert capsys.readouterr().err == "Error: standard output cannot be written: No space left on device\n"


def test_a_reader_that_has_gone_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as broken:
        monkeypatch.setattr(sys, "stdout", broken)
        assert code("explain", "RMQS-3.01") == 3
    assert capsys.readouterr().err == "Error: standard output cannot be written: Broken pipe\n"


def test_what_nobody_can_be_told_keeps_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full, open("/dev/full", "w") as other:
        monkeypatch.setattr(sys, "stdout", full)
        monkeypatch.setattr(sys, "stderr", other)
        assert code("list", "--json") == 3
        assert code("gate", "there-is-none.json") == 64


def test_an_output_of_few_signs_shows_the_others_as_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert code("explain", "RMQS-3.01") == 0
    shown = output.buffer.getvalue()
    assert b"RMQS-3.01" in shown and b"\\xb7" in shown


def test_the_streams_are_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with inert_output():
        print("in")
    print("after")
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "in\nafter\n"


def test_a_full_disk_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    journal = RunJournal(tmp_path / "j", "a", client="c", scenario="S-1")
    journal.close(verdict="pass")

    def full(place: str, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("conformance.pipeline.analysis.write", full)
    assert code("analyze", str(tmp_path / "j"), "--out", str(tmp_path / "out"), "--engine", "local") == 3
    printed = capsys.readouterr().err
    assert printed.startswith("Error: No space left on device: ") and printed.count("\n") == 1
