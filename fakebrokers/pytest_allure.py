"""Steps and attachments of a test in Allure's report, where allure-pytest writes one (``--alluredir``).

Imported only then, since `allure` is there only then.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import allure
import msgspec

from fakebrokers.control.rows import journal_row
from fakebrokers.journal import Record

if TYPE_CHECKING:
    from fakebrokers.pytest_report import Seen

TEXT = "text/plain"  #: of all attachments of what others say: what browsers show


def step(title: str, problem: str = "") -> None:
    """A step that is over; one with a problem has failed."""
    with suppress(AssertionError), allure.step(title):
        if problem:
            raise AssertionError(problem)


def attach(name: str, text: str, extension: str) -> None:
    """A text beside the test."""
    allure.attach(text, name, TEXT, extension)


def attach_journal(records: Iterable[Record]) -> None:
    """A whole journal, one JSON object in a line, as the control API has them."""
    lines = [msgspec.json.encode(journal_row(record)).decode() for record in records]
    attach("journal", "\n".join(lines), "jsonl")


def attach_fake(seen: Seen) -> None:
    """What a fake saw of a failed test: its faults, what was expected of it, its wire, how to repeat it."""
    with allure.step(f"{seen.title}: {seen.server}"):
        for count in seen.server.faults.counts:
            step(f"fault {count}")
        for line in seen.unmet:
            step(line.partition("\n")[0], line)
        attach("wire excerpt", seen.text, "txt")
        attach_journal(seen.server.journal)
        attach("reproducer", f"# {seen.replay}\n{seen.server.faults.plan.to_toml()}", "toml")


def attach_page(path: Path) -> None:
    """The page of a failed test; no text of a run is markup there."""
    allure.attach.file(str(path), "what its fakes saw", allure.attachment_type.HTML, "html")
