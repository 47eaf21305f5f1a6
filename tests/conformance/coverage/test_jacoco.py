"""What JaCoCo's agent writes becomes probes, and what its report says becomes methods, lines and branches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.coverage import jacoco
from conformance.coverage.jacoco import ProbedClass, exec_of, files_of, probes_of
from fakebrokers.errors import UsageError

HEADER = bytes.fromhex("01 c0c0 1007")
SESSION = bytes.fromhex("10 0004 686f7374 0000000000000001 0000000000000002")
#: Ten probes of a/B: the first, the second and the tenth were passed.
CLASS = bytes.fromhex("11 00000000000000ff 0003 612f42 0a 03 02")
BIG = ProbedClass(7, "big/One", 300)

REPORT = """\
<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">
<report name="toy"><package name="org/toy"><class name="org/toy/Sign$Inner" sourcefilename="Sign.java">
<method name="&lt;init&gt;" desc="()V" line="2"><counter type="LINE" missed="0" covered="1"/>
<counter type="METHOD" missed="0" covered="1"/></method>
<method name="of" desc="(I)I" line="4"><counter type="BRANCH" missed="3" covered="1"/>
<counter type="LINE" missed="2" covered="2"/><counter type="METHOD" missed="0" covered="1"/></method>
<method name="lambda$of$0" desc="()V" line="5"><counter type="BRANCH" missed="2" covered="0"/>
<counter type="LINE" missed="1" covered="1"/><counter type="METHOD" missed="0" covered="1"/></method>
<method name="never" desc="()V" line="12"><counter type="LINE" missed="1" covered="0"/>
<counter type="METHOD" missed="1" covered="0"/></method></class>
<class name="org/toy/Other" sourcefilename="Other.java"><method name="other" desc="()V" line="1">
<counter type="METHOD" missed="1" covered="0"/></method></class>
<sourcefile name="Sign.java">
<line nr="2" mi="0" ci="2" mb="0" cb="0"/><line nr="4" mi="0" ci="2" mb="1" cb="1"/>
<line nr="5" mi="0" ci="2" mb="0" cb="0"/><line nr="6" mi="3" ci="0" mb="2" cb="0"/>
<line nr="8" mi="3" ci="0" mb="2" cb="0"/><line nr="9" mi="3" ci="0" mb="0" cb="0"/>
<line nr="12" mi="1" ci="0" mb="0" cb="0"/><counter type="BRANCH" missed="5" covered="1"/>
<counter type="LINE" missed="4" covered="3"/></sourcefile></package></report>
"""


def test_probes_come_from_a_file() -> None:
    assert probes_of(HEADER + SESSION + CLASS) == {ProbedClass(255, "a/B", 10): 0b10_0000_0011}


def test_what_is_there_twice_is_joined() -> None:
    again = CLASS[:-2] + b"\x04\x00"
    assert probes_of(HEADER + CLASS + HEADER + SESSION + again) == {
        ProbedClass(255, "a/B", 10): 0b10_0000_0111
    }


def test_a_file_that_is_made_reads_the_same() -> None:
    probes = {BIG: 1 << 299 | 1 << 128, ProbedClass(2**64 - 1, "ü", 127): 5}
    assert probes_of(exec_of(probes)) == probes


@pytest.mark.parametrize("missing", range(1, len(CLASS)))
def test_a_file_that_was_cut_off_has_what_is_whole(missing: int) -> None:
    whole = exec_of({BIG: 1})
    assert probes_of((whole + CLASS)[:-missing]) == {BIG: 1}


@pytest.mark.parametrize("data", [b"", HEADER[:3], b"something else", HEADER + b"\x77" + CLASS])
def test_what_is_no_such_file_has_nothing(data: bytes) -> None:
    assert probes_of(data) == {}


def test_methods_lines_and_branches_come_from_a_report() -> None:
    [sign] = files_of(REPORT)
    assert sign.path == "org/toy/Sign.java"
    assert (sign.lines, sign.executed_lines, sign.branches, sign.executed) == (7, 3, 6, 1)
    assert [each.name for each in sign.functions] == [
        "Sign.Inner (constructor)",
        "Sign.Inner.of",
        "Sign.Inner.of (lambda)",
        "Sign.Inner.never",
    ]
    assert [each.is_entered for each in sign.functions] == [True, True, True, False]


def test_a_line_after_a_lambda_belongs_to_the_method_around_it() -> None:
    functions = {each.name: each for each in files_of(REPORT)[0].functions}
    assert functions["Sign.Inner.of (lambda)"].missing_lines == (6,)
    assert functions["Sign.Inner.of (lambda)"].missing == ((6, 6), (6, 6))
    assert functions["Sign.Inner.of"].missing_lines == (8, 9)
    assert functions["Sign.Inner.of"].missing == ((4, 4), (8, 8), (8, 8))
    assert functions["Sign.Inner.never"].missing_lines == (12,)


def test_another_program_than_the_one_that_was_chosen_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(command: Sequence[str], what: str, **others: Any) -> str:
        folder = Path(command[-1].partition("=")[2])
        (folder / f"org.jacoco.agent-{jacoco.VERSION}-runtime.jar").write_bytes(b"another")
        return ""

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jacoco, "output_of", copied)
    with pytest.raises(UsageError, match=r"org\.jacoco\.agent .* its SHA-256 is [0-9a-f]{64}, expected"):
        jacoco.programs()
    assert not list((tmp_path / "fakebrokers" / "clients").iterdir())
