"""What the fake of a run holds, change by change, for the page of the run: only where a page may come of it.

It takes up to half as long again as the run, so a search does without it until it has found something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from fakebrokers.core.onlooking import record_holdings
from fakebrokers.journal import RunJournal
from fakebrokers.journal.reader import RunLog

_IS_WANTED = ContextVar("_IS_WANTED", default=False)


@contextmanager
def holdings_recorded() -> Iterator[None]:
    """Let the fakes of all runs that begin in here record what they hold; see `Case.log`."""
    token = _IS_WANTED.set(True)
    try:
        yield
    finally:
        _IS_WANTED.reset(token)


@contextmanager
def broker_log(broker: Any) -> Iterator[list[RunLog]]:
    """The journal of a broker with what it holds, in the list at the end; none where nobody wants it.

    A broker whose journal is written down already has it there.

    Args:
        broker: A fake or a proxy, not started.
    """
    found: list[RunLog] = []
    if not _IS_WANTED.get():
        yield found
        return
    record_holdings(broker)
    if broker.journal.sink is not None:
        yield found
        return
    broker.journal.sink = note = RunJournal(None, "run", protocol=broker.protocol.name)
    try:
        yield found
    finally:
        broker.journal.sink = None
        found.append(note.log())
