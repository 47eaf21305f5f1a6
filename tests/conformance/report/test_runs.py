"""The pages of the runs of failed rows."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")
pytest.importorskip("numpy", reason="missing: numpy (pip install numpy)")
pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

from conformance.report.links import PageLinks
from conformance.report.model import build
from conformance.report.runs import write_run_pages
from conformance.report.write import render
from conformance.results import Results, RowResult, RuleResult, Verdict
from fakebrokers.journal import RunJournal
from fakebrokers.journal.seal import seal
from tests.pages_of_runs import documents


def row(folder: Path, name: str, verdict: Verdict) -> RowResult:
    """A row with a run in the journal of the folder."""
    journal = RunJournal(folder / "journal", name, client="rstream", protocol="rabbitmq-stream")
    journal.did(0.5, "create_stream('orders')")
    journal.op(1.0, "s1", 1, "publish", "invoke", key="orders", value="aa")
    journal.close()
    return RowResult(
        id=name,
        protocol="rabbitmq-stream",
        variant="",
        level="MUST",
        verdict=verdict,
        title="A row",
        criterion="x",
        reason="each is there: 17 is missing" if verdict is Verdict.FAIL else "",
        actual="17 is missing" if verdict is Verdict.FAIL else "",
        source="R7: a confirm for each; R8: in any order",
        run=journal.run,
        adapter=("it said <b>oh</b>",),
    )


@pytest.fixture
def results(tmp_path: Path) -> Results:
    rule = RuleResult("r", "rabbitmq-stream", "", "MUST", Verdict.FAIL, ("RULED",), "it was broken")
    rows = [
        row(tmp_path, name, verdict)
        for name, verdict in (("BAD", Verdict.FAIL), ("GOOD", Verdict.PASS), ("RULED", Verdict.PASS))
    ]
    return Results("rstream", "1", "1", 0, "", 0.0, tuple(rows), rules=(rule,))


@pytest.mark.parametrize("sealed", [False, True])
def test_what_failed_and_what_breaks_a_rule_has_a_page(
    results: Results, tmp_path: Path, sealed: bool
) -> None:
    if sealed:
        seal(tmp_path / "journal")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "an-earlier-one.html").touch()
    write_run_pages([results], tmp_path)
    pages = sorted((tmp_path / "runs").iterdir())
    assert [page.name.partition("~")[0] for page in pages] == ["BAD", "RULED"]
    [bad], [ruled] = map(documents, pages)
    assert [(row.what, row.name) for row in bad.rows] == [
        *(("did", "create_stream"), ("op", "publish"), ("failure", "the scenario failed"))
    ]
    assert ("because", "R7: a confirm for each; R8: in any order") in bad.about
    assert ("got", "17 is missing") in bad.about
    assert bad.logs == [("the client's process: errors and standard error", "it said <b>oh</b>")]
    assert [row.what for row in ruled.rows] == ["did", "op"]


def test_the_report_leads_to_the_page_and_says_what_was_expected_and_got(
    results: Results, tmp_path: Path
) -> None:
    write_run_pages([results], tmp_path)
    page = build([results], None, None)
    cells = {cell.result.id: cell for each in page.rows for cell in each.cells if cell is not None}
    links = PageLinks(tmp_path)
    assert links.run(cells["BAD"]).startswith("runs/BAD~") and links.run(cells["GOOD"]) == ""
    assert (cells["BAD"].wanted, cells["BAD"].remark) == ("each is there", "")
    pages = re.findall(r'data-packed="([^"]+)"', render(page, out=tmp_path))
    text = "".join(zlib.decompress(b64decode(pack)).decode() for pack in pages)
    text = text.replace('\\"', '"')  # JSON
    assert f'href="{links.run(cells["BAD"])}"' in text
    because = '<a class="link" href="#source-rabbitmq-stream-R7">R7</a>: a confirm for each'
    assert f'<dd>each is there</dd><dt>Because</dt><dd class="cite">{because}</dd><dt>And</dt>' in text
    assert "</dd><dt>Got</dt>" in text
    assert text.count("Look at the run") == 2


def test_a_remark_after_what_happened_stands_apart(results: Results) -> None:
    failed = results.results[0]
    again = msgspec.structs.replace(failed, reason=f"{failed.reason} [again, apart from others]")
    [cell] = next(
        build([msgspec.structs.replace(results, results=(again,))], None, None).rows.__iter__()
    ).cells
    assert cell is not None
    assert (cell.wanted, cell.remark) == ("each is there", "again, apart from others")


def test_a_report_without_a_journal_has_no_pages(results: Results, tmp_path: Path) -> None:
    write_run_pages([results], tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()
