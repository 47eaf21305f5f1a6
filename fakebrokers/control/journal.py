"""A broker's journal as JSON lines, to its end or for as long as somebody listens. On the loop thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fakebrokers.control.rows import Filter, JournalQuery, journal_row
from fakebrokers.control.values import encode
from fakebrokers.core.waiting import Wanted
from fakebrokers.journal import Record
from fakebrokers.server import FakeServer

#: Records that are turned into lines before others get their turn.
_BATCH = 500
#: Seconds after which a stream in which nothing happens looks whether its broker still runs.
_LOOK_S = 0.5


def lines_of(records: list[Record]) -> bytes:
    """The records as JSON lines."""
    return b"".join([encode(journal_row(record)) + b"\n" for record in records])


async def journal_lines(server: FakeServer, query: JournalQuery) -> AsyncIterator[bytes]:
    """The records that fit, oldest first, some at a time; with `follow` those to come too."""
    wanted = Wanted(**Filter.keywords(query))
    last = server.journal.last_seq
    there = [record for record in server.journal.records(query.since) if wanted.fits(record)]
    if query.limit is not None:
        there = there[len(there) - query.limit :] if query.limit < len(there) else there
    for start in range(0, len(there), _BATCH):
        yield lines_of(there[start : start + _BATCH])
        await asyncio.sleep(0)
    if query.follow:
        async for lines in _following(server, wanted, last):
            yield lines


async def _following(server: FakeServer, wanted: Wanted, last: int) -> AsyncIterator[bytes]:
    """What comes behind record `last`. Reads the journal itself, so that a slow listener costs no memory."""
    news = asyncio.Event()
    stop = server.journal.watch(lambda record: news.set())
    try:
        while server.runs:
            newest = server.journal.last_seq
            fresh = [record for record in server.journal.records(last) if wanted.fits(record)]
            last = max(last, newest)
            for start in range(0, len(fresh), _BATCH):
                yield lines_of(fresh[start : start + _BATCH])
            try:
                await asyncio.wait_for(news.wait(), _LOOK_S)
            except TimeoutError:
                continue
            news.clear()
    finally:
        stop()
