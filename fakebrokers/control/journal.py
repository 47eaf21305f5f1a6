"""A broker's journal as JSON lines, to its end or for as long as somebody listens. On the loop thread."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator
from contextlib import aclosing

from fakebrokers.control.rows import Filter, JournalQuery, journal_row
from fakebrokers.control.values import encode
from fakebrokers.core.waiting import Wanted
from fakebrokers.journal import Journal, Record
from fakebrokers.server import FakeServer

#: Records that are turned into lines before others get their turn.
_BATCH = 500
#: Seconds between two looks at whether there is anything new, for all who listen.
_LOOK_S = 0.05
#: Seconds of silence after which who listens can see whether anybody still does.
_SILENCE_S = 1.0
#: Newest records whose lines are kept for all who listen; who is further behind reads the journal alone.
_KEPT = 2000


def line_of(record: Record) -> bytes:
    """The record as a JSON line."""
    return encode(journal_row(record)) + b"\n"


class Feed:
    """What is new in a journal, each record turned into its line once, for all who follow.

    The journal does not know of it: it is looked at a few times a second, so that whoever says something to
    the fake does not pay for those who listen.
    """

    def __init__(self, server: FakeServer) -> None:
        self.newest = server.journal.last_seq
        self._server = server
        self._from = self.newest  #: every record after this one is kept
        self._records: list[Record] = []
        self._lines: list[bytes] = []
        self._joined: dict[tuple[Wanted, int], bytes] = {}
        self._news = asyncio.Event()
        self._listeners = 0
        self._looking: asyncio.Task[None] | None = None

    async def behind(self, wanted: Wanted, seq: int) -> AsyncGenerator[bytes, None]:
        """The lines of what fits after record `seq`, until the broker stops; b"" now and then in between."""
        self._listeners += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                news, newest = self._news, max(seq, self.newest)
                if seq < self._from:
                    missed, newest = self._server.journal.records(seq), self._server.journal.last_seq
                    async for lines in lines_of([record for record in missed if wanted.fits(record)]):
                        yield lines
                elif lines := self._behind(wanted, seq):
                    yield lines
                seq = newest
                if not self._server.runs:
                    return
                if self._news is news:
                    try:
                        await asyncio.wait_for(news.wait(), _SILENCE_S)
                    except TimeoutError:
                        yield b""
        finally:
            self._listeners -= 1

    def _behind(self, wanted: Wanted, seq: int) -> bytes:
        """The kept lines of what fits; made once for all who have heard as much and want the same."""
        key = wanted, seq
        if key not in self._joined:
            first = bisect_right(self._records, seq, key=lambda record: record.seq)
            both = zip(self._records[first:], self._lines[first:], strict=True)
            self._joined[key] = b"".join([line for record, line in both if wanted.fits(record)])
        return self._joined[key]

    async def _look(self) -> None:
        """Look for news while anybody listens."""
        while self._listeners:
            await asyncio.sleep(_LOOK_S)
            if self._server.journal.last_seq > self.newest:
                newest = self._server.journal.last_seq
                fresh = [each for each in self._server.journal.records(self.newest) if each.seq <= newest]
                lines: list[bytes] = []
                for start in range(0, len(fresh), _BATCH):
                    lines += map(line_of, fresh[start : start + _BATCH])
                    await asyncio.sleep(0)
                self._keep(fresh, lines, newest)
            elif self._server.runs:
                continue
            news, self._news = self._news, asyncio.Event()
            news.set()
        self._looking = None
        del _feeds[self._server.journal]

    def _keep(self, records: list[Record], lines: list[bytes], newest: int) -> None:
        self._records += records
        self._lines += lines
        self._joined.clear()
        self.newest = newest
        if len(self._records) > _KEPT:
            self._from = self._records[-_KEPT - 1].seq
            del self._records[:-_KEPT], self._lines[:-_KEPT]


#: Of the journals that somebody follows.
_feeds: dict[Journal, Feed] = {}


async def lines_of(records: list[Record]) -> AsyncGenerator[bytes, None]:
    """The records as JSON lines, some at a time."""
    for start in range(0, len(records), _BATCH):
        yield b"".join(map(line_of, records[start : start + _BATCH]))
        await asyncio.sleep(0)


async def journal_lines(server: FakeServer, query: JournalQuery) -> AsyncGenerator[bytes, None]:
    """The records that fit, oldest first; with `follow` those to come too, and b"" now and then."""
    wanted = Wanted(**Filter.keywords(query))
    last = server.journal.last_seq
    there = [record for record in server.journal.records(query.since) if wanted.fits(record)]
    if query.limit is not None:
        there = there[len(there) - query.limit :] if query.limit < len(there) else there
    async for lines in lines_of(there):
        yield lines
    if query.follow:
        feed = _feeds.get(server.journal)
        if feed is None:
            feed = _feeds[server.journal] = Feed(server)
        async with aclosing(feed.behind(wanted, last)) as found:
            async for lines in found:
                yield lines
