"""The page of a failed test: all that its fakes saw, to look at (``--fakebrokers-trace=on-failure``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fakebrokers.pytest_report import all_fakes, replay_command
from fakebrokers.pytest_settings import SETTINGS, has_allure
from fakebrokers.server import FakeServer
from fakebrokers.viewer import RunDocument, of_journal, write_page
from fakebrokers.viewer.calls import calls_of, lines_of
from fakebrokers.viewer.rows import its_end

if TYPE_CHECKING:
    import pytest

ERROR_MAX = 600  #: characters of what pytest says of a failure, at the top; the row of the failure has more
FAILURE_MAX = 20_000
NAME_MAX = 120  #: characters of a file's name
LOG_MAX = 64_000  #: characters of what the test has printed or logged, the end of each


def add_trace(
    item: pytest.Item, own: Sequence[tuple[str, FakeServer]], report: pytest.TestReport, error: object
) -> None:
    """Write the page, and say in the report where it is.

    Args:
        own: The fakes of the test's fixtures, with their titles.
        error: Why the test failed.
    """
    fakes = all_fakes(item, own)
    if not fakes:
        return
    captured = [each for each in report.sections if each[0].startswith("Captured")]
    logs = [(title, its_end(text, LOG_MAX)) for title, text in captured]
    path = Path(item.config.stash[SETTINGS].trace) / f"{_file_name(item.nodeid)}.html"
    try:
        write_page(path, [_document(item, title, server, error, logs) for title, server in fakes])
    except OSError as problem:
        said = f"{path}: cannot be written: {problem.strerror or problem}"
    else:
        said = str(path)
        item.user_properties.append(("fakebrokers-trace", said))  # in JUnit's file
        if has_allure(item.config):
            from fakebrokers.pytest_allure import attach_page

            attach_page(path)
    report.sections.append(("fakebrokers trace", said))


def _document(
    item: pytest.Item, title: str, server: FakeServer, error: object, logs: Sequence[tuple[str, str]]
) -> RunDocument:
    seed = f"--fakebrokers-seed={server.engine.injector.seed}"
    about = {
        "failed": f"{type(error).__name__}: {str(error)[:ERROR_MAX]}",
        "test": item.nodeid,
        "again": replay_command(item, (seed, *item.config.stash[SETTINGS].replay)),
        "fake": f"{title}, profile {server.profile}",
        "faults": "; ".join(server.faults.counts),
    }
    if server.journal.dropped:
        about["left out"] = f"{server.journal.dropped} earlier records"
    return of_journal(
        f"{item.name}: {title}",
        server.journal,
        {label: text for label, text in about.items() if text},
        protocol=server.protocol.name,
        calls=calls_of(server),
        failure=f"{type(error).__name__}: {error}"[:FAILURE_MAX],
        ended_s=server.now,
        logs=logs,
        lines=lines_of(server),
    )


def _file_name(nodeid: str) -> str:
    """What of a test's name a file can be called; two tests never share one."""
    name = re.sub(r"[^A-Za-z0-9._\[\]-]+", "-", nodeid.replace("::", "-")).strip("-.")
    if name == nodeid and len(name) <= NAME_MAX:
        return name
    return f"{name[:NAME_MAX]}-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}"
