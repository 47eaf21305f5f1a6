"""Who may open a queue (docs/protocols/blazingmq.md, 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from fakebrokers.blazingmq.codes import DEFAULT_APP, Category
from fakebrokers.blazingmq.refusals import Refused

if TYPE_CHECKING:
    from fakebrokers.blazingmq.domains import Domain
    from fakebrokers.blazingmq.stream import Opened


class Openings:
    """Counts who reads and writes a queue, of those who have handles to it."""

    def __init__(self, handles: Collection[Opened]) -> None:
        self._handles = handles
        self._gone_readers: Counter[str] = Counter()
        self._gone_writers = 0

    def check(self, domain: Domain, app_id: str, sub_id: int, reads: int, writes: int) -> None:
        """Raise `Refused` where a handle may not be opened like that."""
        exceeded = [
            f"the limit of {limit} {who}"
            for limit, more, there, who in (
                (domain.max_producers, writes, self._writers(), "producer(s)"),
                (domain.max_consumers, reads, self._readers(app_id), "consumer(s)"),
            )
            if limit and more + there > limit
        ]
        if exceeded:
            raise Refused(Category.E_UNKNOWN, f"Client would exceed {' and '.join(exceeded)}", -1)
        names_app = app_id != DEFAULT_APP or sub_id != 0
        if domain.mode == "fanout":
            if reads and not names_app:
                text = "Reader of a fanout queue requires an appId to be specified."
                raise Refused(Category.E_UNKNOWN, text, -1)
        elif names_app:
            text = "AppId should not be specified when opening a non-fanout queue"
            raise Refused(Category.E_UNKNOWN, text, -1)

    def count_on(self, handle: Opened, *, reads: bool, writes: bool) -> None:
        """A handle is about to be given up, and its readers or writers are counted all the same.

        So does a broker, for good, where a final close speaks of the others alone.
        """
        if reads:
            self._gone_readers.update({app: stream.reads for app, stream in handle.streams.items()})
        if writes:
            self._gone_writers += handle.writes

    def _readers(self, app_id: str) -> int:
        streams = (handle.streams.get(app_id) for handle in self._handles)
        return self._gone_readers[app_id] + sum(stream.reads for stream in streams if stream is not None)

    def _writers(self) -> int:
        return self._gone_writers + sum(handle.writes for handle in self._handles)
