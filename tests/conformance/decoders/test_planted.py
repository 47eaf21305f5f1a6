"""Defects are planted, and the judge sees one that client and fake share."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import Spec
from fakebrokers.rabbitmq_stream.chunk import Chunk
from tests.conformance.decoders.planted import TOP, VECTORS, Defect, defects_in
from tests.conformance.decoders.runs import read_otherwise

DIFF = """\
--- a/fakebrokers/x.py
+++ b/fakebrokers/x.py
@@ -1,2 +1,2 @@
 first
-second
+2nd
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "fakebrokers").mkdir()
    (tmp_path / "fakebrokers" / "x.py").write_text("first\nsecond\n")
    return tmp_path


@pytest.mark.parametrize("diff", [DIFF, DIFF.replace("a/", "").replace("b/", "")], ids=["git", "plain"])
def test_a_diff_is_applied(tree: Path, diff: str) -> None:
    file = tree / "one.diff"
    file.write_text(diff)
    (defect,) = defects_in([file])
    defect.apply(tree)
    assert (tree / "fakebrokers" / "x.py").read_text() == "first\n2nd\n"
    with pytest.raises(ValueError, match="one: error: patch failed"):
        defect.apply(tree)


def test_triples_are_applied(tree: Path) -> None:
    file = tree / "some.json"
    file.write_text(json.dumps([["fakebrokers/x.py", "first", "1st"], ["fakebrokers/x.py", "s", "z"]]))
    one, other = defects_in([file])
    one.apply(tree)
    assert (one.name, (tree / "fakebrokers" / "x.py").read_text()) == ("some 1", "1st\nsecond\n")
    with pytest.raises(ValueError, match="has the old text 2 times"):
        other.apply(tree)
    with pytest.raises(ValueError, match="0 times"):
        Defect("gone", file="fakebrokers/x.py", old="third", new="").apply(tree)


def test_the_recordings_are_there() -> None:
    files = {test.partition("::")[0] for tests in VECTORS.values() for test in tests}
    assert [file for file in files if not (TOP / file).is_file()] == []


def test_the_judge_sees_a_checksum_that_client_and_fake_agree_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all bytes but the first."""
    play, spec = runner("rabbitmq-stream"), Spec("rabbitmq-stream", "consume")
    case = play(spec)
    assert (list(read_otherwise(case)), judge(case)) == ([], [])
    monkeypatch.setattr("fakebrokers.rabbitmq_stream.chunk.crc32", lambda data: zlib.crc32(data[1:]))
    case = play(spec)
    assert "a chunk is damaged" in read_otherwise(case)
    assert "delivers-what-came" in {finding.name for finding in judge(case)}


def test_the_judge_sees_chunks_that_count_other_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages of batches instead of these."""
    play, spec = runner("rabbitmq-stream"), Spec("rabbitmq-stream", "consume")
    build = Chunk.build

    def of_messages(data: bytes, **fields: Any) -> Chunk:
        return build(data, **{**fields, "entries": fields["records"]})

    monkeypatch.setattr(Chunk, "build", of_messages)
    assert "a chunk counts what is not in it" in read_otherwise(play(spec))
