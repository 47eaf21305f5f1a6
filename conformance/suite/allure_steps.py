"""A judged scenario in Allure's report of a pytest run: what was done, each criterion, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.printing import plain
from conformance.results import RowResult, Verdict
from conformance.suite.judgement import Judgement
from conformance.suite.present import STORY_LINES
from conformance.suite.story import reported, story
from fakebrokers.pytest_allure import attach, attach_journal, step


def show(judgement: Judgement, row: RowResult, broken: Iterable[str]) -> None:
    """Steps and attachments of the test that runs now.

    Args:
        broken: What violated a rule for all runs.
    """
    for line in reported(story(judgement))[:STORY_LINES]:
        step(line)
    for criterion in judgement.met:
        step(plain(f"criterion met: {criterion}"))
    if row.verdict not in (Verdict.PASS, Verdict.NON_STRICT):
        step(plain(f"{row.verdict.value}: {judgement.criterion or row.criterion}"), plain(row.reason))
    for reason in broken:
        step("a rule for all runs was violated", plain(reason))
    attach("wire excerpt", plain("\n".join(row.journal), lines=True), "txt")
    attach_journal(judgement.records)
    if row.reproducer:
        attach("reproducer", row.reproducer, "py")
