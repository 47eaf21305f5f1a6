"""The scoreboard: what is worked out of the verdicts, and what the pages say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from conformance.findings import findings
from conformance.known.defects import Defect, KnownDefects, KnownRow
from conformance.results import RowResult, Verdict
from conformance.suite.load import all_scenarios, select
from conformance.suite.scenario import Scenario
from conformance.versions.blame import is_adapters
from conformance.versions.board import ClientBoard, board
from conformance.versions.keep import KeptVersion, kept_row
from conformance.versions.pages import write_board

ROWS = select(all_scenarios(), protocol="rabbitmq-stream", ids=("RMQS-1.01", "RMQS-4.22", "RMQS-5.11"))
BLANK = KeptVersion(client="rstream", protocol="rabbitmq-stream", version="1.1.1")


def result(item: Scenario, verdict: Verdict, **fields: object) -> RowResult:
    row = RowResult(
        item.id, item.protocol, item.variant, item.requirement.level, verdict, revision=item.revision
    )
    return msgspec.structs.replace(row, **fields)


def version(number: str, *verdicts: Verdict) -> KeptVersion:
    rows = [result(item, verdict, reason="a reason") for item, verdict in zip(ROWS, verdicts, strict=True)]
    return msgspec.structs.replace(BLANK, version=number).having(map(kept_row, rows))


PASS, FAIL, UNSURE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


@pytest.fixture
def shown() -> ClientBoard:
    """Three versions; the second could not be judged."""
    versions = [
        version("1.0.1", FAIL, FAIL, PASS),
        msgspec.structs.replace(BLANK, version="1.1.0", refused="<b>no hello</b>"),
        version("1.1.1", PASS, FAIL, FAIL),
    ]
    return board("rstream", versions, ROWS, findings())


def test_what_a_release_has_mended_and_broken(shown: ClientBoard) -> None:
    first, second, third = shown.releases
    assert (first.mended, first.broken, first.before) == ((), (), "")
    assert (second.mended, second.broken, second.passed, second.failed) == ((), (), 0, 0)
    assert (third.mended, third.broken, third.before) == (("RMQS-1.01",), ("RMQS-5.11",), "1.0.1")
    assert shown.newest is third


def test_causes_are_those_of_the_newest_version_the_gravest_first(shown: ClientBoard) -> None:
    known, unknown = shown.causes
    assert (known.severity, known.rows, known.since) == (
        "data loss",
        ("RMQS-4.22",),
        "in all versions here",
    )
    assert known.finding is not None and known.finding.program == "rstream_skipped_batch.py"
    assert (unknown.finding, unknown.rows, unknown.since) == (None, ("RMQS-5.11",), "since 1.1.1")
    assert (unknown.is_known, unknown.says) == (False, "a reason")
    assert unknown.severity == ROWS[2].requirement.severity


def defects(version: str, *, sometimes: bool = False) -> KnownDefects:
    defect = Defect(id="a", cause="a cause", severity="low")
    row = KnownRow(defect=defect, protocol="rabbitmq-stream", id="RMQS-5.11", sometimes=sometimes)
    return KnownDefects(client="rstream", client_version=version, rows=(row,))


def test_a_file_of_known_defects_names_causes_of_its_version() -> None:
    versions = [version("1.1.1", PASS, PASS, FAIL)]
    (cause,) = board("rstream", versions, ROWS, findings(), defects("1.1.1")).causes
    assert (cause.title, cause.severity, cause.is_known) == ("a cause", "low", True)
    (cause,) = board("rstream", versions, ROWS, findings(), defects("1.0.1")).causes
    assert (cause.title, cause.is_known) == (ROWS[2].requirement.title, False)


def test_a_row_that_is_known_to_fail_sometimes_is_grey_in_all_versions() -> None:
    versions = [version("1.0.1", PASS, PASS, FAIL), version("1.1.1", PASS, PASS, PASS)]
    found = board("rstream", versions, ROWS, findings(), defects("1.1.1", sometimes=True))
    assert [cell.word for cell in found.lines[2].cells] == ["not steady"] * 2
    assert (found.newest.mended, found.causes) == ((), ())


def test_a_cause_is_not_said_to_begin_where_the_version_before_was_not_judged() -> None:
    versions = [
        version(number, PASS, PASS, verdict) for number, verdict in (("1.0.1", UNSURE), ("1.1.1", FAIL))
    ]
    (cause,) = board("rstream", versions, ROWS, findings()).causes
    assert cause.since == "at least since 1.1.1"


def test_rows_that_all_judged_versions_pass_are_folded() -> None:
    refused = msgspec.structs.replace(BLANK, version="1.0.0", refused="no hello")
    versions = [refused, version("1.0.1", PASS, PASS, UNSURE), version("1.1.1", PASS, FAIL, PASS)]
    found = board("rstream", versions, ROWS, findings())
    assert [line.name for line in found.telling] == ["RMQS-4.22", "RMQS-5.11"]
    assert [line.name for line in found.quiet] == ["RMQS-1.01"]


def test_a_finding_is_of_a_library_whichever_of_its_clients_shows_it() -> None:
    finding = next(each for each in findings() if each.library == "moleculer")
    rows = select(all_scenarios(), protocol="moleculer", ids=tuple(finding.scenarios))
    failed = [kept_row(result(item, FAIL)) for item in rows]
    blank = KeptVersion(client="moleculer-0.14", protocol="moleculer", version="0.14.36")
    (cause, *_) = board("moleculer", [blank.having(failed)], rows, [finding]).causes
    assert (cause.title, "0.14.36" in finding.versions) == (finding.title, True)


def test_what_was_not_judged_or_is_not_steady_is_never_red() -> None:
    flaky = result(ROWS[0], FAIL, tags=("flaky",))
    others = [
        result(ROWS[1], UNSURE),
        result(ROWS[2], FAIL, reason="f() got an unexpected keyword argument 'x'"),
    ]
    kept = BLANK.having(map(kept_row, (flaky, *others)))
    refused = msgspec.structs.replace(BLANK, version="0.1", refused="no hello")
    found = board("rstream", [refused, kept], ROWS, findings())
    assert {cell.look for line in found.lines for cell in line.cells} == {"skip"}
    assert (found.newest.failed, found.newest.unjudged, found.causes) == (0, 3, ())


def test_the_pages_are_whole_small_and_escaped(shown: ClientBoard, tmp_path: Path) -> None:
    out = tmp_path / "board"
    index = write_board(out, [shown], "gate").read_text()
    page = (out / shown.page).read_text()
    assert f'href="{shown.page}"' in index and 'href="index.html"' in page
    assert 'href="programs/rstream_skipped_batch.py"' in page
    assert (out / "programs" / "rstream_skipped_batch.py").is_file()
    assert "&lt;b&gt;no hello" in page and "<b>no hello" not in page + index
    assert "http://" not in page + index and "https://" not in page + index and "<script" not in page + index
    assert len(page) + len(index) < 100_000
    assert 'href="#RMQS-5.11"' in page and 'id="RMQS-5.11"' in page, (
        "what is mended or broken leads to the row"
    )
    assert "fakebrokers conform --client rstream==1.1.1 --protocol rabbitmq-stream RMQS-5.11" in page


def test_a_page_says_nothing_of_the_machine_that_it_was_made_on() -> None:
    reason = "the process lives on: it ended [Error: x] [again; it waited 0.1 s for a processor]"
    assert (
        kept_row(result(ROWS[0], FAIL, reason=reason)).reason == "the process lives on: it ended [Error: x]"
    )


@pytest.mark.parametrize(
    ("reason", "blamed"),
    [
        ("TypeError: connect() got an unexpected keyword argument 'proxy'", True),
        ("AttributeError: module 'rstream' has no attribute 'Route'", True),
        ("AttributeError: module aiohttp has no attribute ClientWSTimeout", True),
        ("AttributeError: 'NoneType' object has no attribute 'close'", False),
        ("publish hang after 6251 ms", False),
    ],
)
def test_whose_fault_a_failure_is(reason: str, blamed: bool) -> None:
    assert is_adapters(result(ROWS[0], FAIL, reason=reason)) is blamed
    assert is_adapters(result(ROWS[0], Verdict.HARNESS_ERROR, tags=("adapter",)))
