"""JUnit XML of a run: failures of the client and errors of the harness kept apart."""

from __future__ import annotations

from xml.etree import ElementTree

from conformance.printing import plain
from conformance.results import Results, RowResult, Verdict
from conformance.suite.rule_results import as_row


def junit(results: Results) -> bytes:
    """The content of ``junit.xml``."""
    rows = [*results.results, *map(as_row, results.rules)]
    suite = ElementTree.Element(
        "testsuite",
        name=plain(f"{results.client} {results.client_version}"),
        tests=str(len(rows)),
        failures=str(sum(map(_is_failure, rows))),
        errors=str(sum(r.verdict is Verdict.HARNESS_ERROR for r in rows)),
        skipped=str(sum(map(_is_skipped, rows))),
        time=f"{results.seconds:.3f}",
        timestamp=plain(results.started),
    )
    for row in rows:
        suite.append(_case(row))
    if not results.complete:
        case = ElementTree.SubElement(suite, "testcase", classname="run", name="the run is complete")
        ElementTree.SubElement(case, "error", message="cut short: what had not ended by then is missing")
        suite.set("tests", str(len(rows) + 1))
        suite.set("errors", str(int(suite.get("errors", "0")) + 1))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(row: RowResult) -> ElementTree.Element:
    where = "/".join(part for part in (row.protocol, row.variant) if part)
    case = ElementTree.Element(
        "testcase", classname=plain(where), name=plain(f"{row.id} {row.title}"), time=f"{row.seconds:.3f}"
    )
    text = plain("\n".join(account(row)), lines=True)
    if row.verdict is Verdict.HARNESS_ERROR:
        ElementTree.SubElement(case, "error", message=plain(row.reason)).text = text
    elif _is_failure(row):
        ElementTree.SubElement(case, "failure", message=plain(row.reason), type=row.level).text = text
    elif _is_skipped(row):
        ElementTree.SubElement(case, "skipped", message=plain(f"{row.verdict.value}: {row.reason}"))
    return case


def account(row: RowResult) -> list[str]:
    """A row in full, for those who read it elsewhere."""
    return [
        *(f"Adapter: {text}" for text in row.adapter),
        f"Required: {row.requirement}",
        f"Done to it: {row.fault}",
        f"Actual: {row.reason}",
        f"Again: {row.replay}",
        *(["", *row.story] if row.story else []),
        "",
        *row.journal,
    ]


def _is_failure(row: RowResult) -> bool:
    return row.verdict is Verdict.FAIL and "expected" not in row.tags


def _is_skipped(row: RowResult) -> bool:
    expected = row.verdict is Verdict.FAIL and "expected" in row.tags
    return expected or row.verdict in (Verdict.UNSUPPORTED, Verdict.PROFILE, Verdict.INCONCLUSIVE)
