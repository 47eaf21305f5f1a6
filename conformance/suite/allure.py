"""Allure results: one JSON file per scenario, for `allure serve` and for servers that collect them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from conformance.printing import plain
from conformance.results import Results, Verdict
from conformance.suite.junit import account
from conformance.suite.rule_results import as_row

_STATUS = {
    Verdict.PASS: "passed",
    Verdict.NON_STRICT: "passed",
    Verdict.FAIL: "failed",
    Verdict.HARNESS_ERROR: "broken",
}
_SEVERITY = {"MUST": "critical", "SHOULD": "normal", "MAY": "minor"}


def write_allure(results: Results, folder: Path) -> None:
    """Write the folder ``allure-results``.

    Raises:
        ModuleNotFoundError: the extra ``suite`` is not installed.
    """
    from allure_commons.logger import AllureFileLogger
    from allure_commons.model2 import Attachment, Label, StatusDetails, TestResult
    from allure_commons.types import AttachmentType

    logger = AllureFileLogger(str(folder), clean=True)
    started_s = datetime.fromisoformat(results.started).timestamp()
    for row in [*results.results, *map(as_row, results.rules)]:
        name = plain(f"{row.id}[{row.protocol}{'/' + row.variant if row.variant else ''}]")
        is_known = row.verdict is Verdict.FAIL and "expected" in row.tags  # as allure-pytest shows an xfail
        begun_ms = round((row.began_at or started_s) * 1000)
        test = TestResult(
            uuid=str(uuid5(NAMESPACE_URL, f"{plain(results.client)}/{results.started}/{name}/{row.cause}")),
            fullName=plain(f"{results.client}: {name}"),
            name=plain(f"{row.id} {row.title}"),
            historyId=str(uuid5(NAMESPACE_URL, f"{plain(results.client)}/{name}")),
            status="skipped" if is_known else _STATUS.get(row.verdict, "skipped"),
            statusDetails=StatusDetails(
                known=is_known,
                flaky="flaky" in row.tags,
                message=plain(f"known: {row.reason}" if is_known else row.reason),
                trace=plain("\n".join(account(row)), lines=True),
            ),
            description=plain(row.requirement),
            start=begun_ms,
            stop=begun_ms + round(row.seconds * 1000),
            labels=[
                Label(name="parentSuite", value=plain(row.protocol)),
                Label(name="suite", value=plain(results.client)),
                Label(name="subSuite", value=plain(row.id.partition(".")[0])),
                Label(name="severity", value=_SEVERITY[row.level]),
                *(Label(name="tag", value=plain(tag)) for tag in (row.level, *row.tags)),
            ],
        )
        if row.journal:
            source = f"{test.uuid}-journal-attachment.txt"
            logger.report_attached_data(plain("\n".join(row.journal), lines=True), source)
            test.attachments.append(
                Attachment(name="wire journal", source=source, type=AttachmentType.TEXT.mime_type)
            )
        logger.report_result(test)
