"""A file that somebody names is read within bounds, or refused in one sentence: no verdict, no hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.gate import load_runs
from conformance.known.defects import Part
from conformance.known.files import load as load_known
from conformance.pipeline.comparison import load_baseline as load_analysis
from conformance.search.random import replay as chaos_replay
from conformance.search.random.replay import is_chaos
from conformance.search.systematic import replay as sweep_replay
from fakebrokers.cli import main
from fakebrokers.errors import UsageError
from fakebrokers.files import MOST

READERS = {
    "a results file": lambda path: load_runs([path]),
    "a file of known defects": lambda path: load_known(path, Part.SUITE),
    "an analysis": lambda path: load_analysis(str(path)),
    "a replay file": sweep_replay.load,
    "a replay file of chaos": chaos_replay.load,
}
DEEP = b'{"client":"c","plan":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NESTED = b"a = " + b"[" * 50_000
CONTENTS = {
    "not UTF-8": b'{"a": "\xff"}',
    "deep": DEEP,
    "deep TOML": NESTED,
    "empty": b"",
    "long number": b"a=" + b"9" * 5000,
}


@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize("content", CONTENTS)
def test_what_cannot_be_read_is_refused(what: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "given.json"
    path.write_bytes(CONTENTS[content])
    if what == "a file of known defects" and content == "empty":
        return  # that is a file of none
    with pytest.raises(UsageError, match=f"given.json: expected {what.removesuffix(' of chaos')}"):
        READERS[what](path)
    assert not is_chaos(path)


@pytest.mark.parametrize("what", READERS)
def test_what_never_ends_is_refused(what: str, tmp_path: Path) -> None:
    pipe, long = tmp_path / "pipe.json", tmp_path / "long.json"
    os.mkfifo(pipe)
    with long.open("wb") as file:
        file.truncate(MOST + 1)  # takes no room
    for path, sentence in (
        (pipe, "got a pipe or a device"),
        (Path("/dev/zero"), "got a pipe or a device"),
        (long, f"bytes, got {MOST + 1}"),
    ):
        with pytest.raises(UsageError, match=sentence):
            READERS[what](path) if what != "an analysis" or path.suffix else load_runs([path])


def test_the_gate_refuses_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SystemExit) as ended:
        main(["gate", str(tmp_path / "pipe")])
    assert ended.value.code == 64
    assert capsys.readouterr().err.count("\n") == 1
