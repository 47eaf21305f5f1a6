"""Waiting until the journal holds what a test expects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future

import msgspec

from fakebrokers.errors import WaitTimeout
from fakebrokers.journal import Journal, Record, Tap
from fakebrokers.journal.near import closest, elsewhere, is_alike, wrong_names


class Wanted(msgspec.Struct, frozen=True):
    """What somebody waits for; everything that is given must fit, see `FakeServer.wait_for`."""

    condition: Callable[[Record], bool] | None = None
    kind: str | None = None
    role: str | None = None
    tap: Tap | None = None
    connection: str | None = None
    count: int = 1
    since: int = 0

    def fits(self, record: Record) -> bool:
        """Whether this record counts."""
        return (
            record.seq > self.since
            and (self.kind is None or record.kind == self.kind)
            and (self.role is None or record.has_role(self.role))
            and (self.tap is None or bool(record.tap & self.tap))
            and (self.connection is None or record.connection == self.connection)
            and (self.condition is None or self.condition(record))
        )

    def misses(self, record: Record) -> list[str] | None:
        """What keeps a record of the wanted kind or role from counting, a part of a sentence for each.

        Returns:
            None for a record of another kind and role.
        """
        if not is_alike(record, self.kind, self.role):
            return None
        missing = []
        if record.seq <= self.since:
            missing.append(f"it came before, and only those after record {self.since} count")
        missing += wrong_names(record, self.kind, self.role, self.connection)
        if self.tap is not None and not record.tap & self.tap:
            missing.append(elsewhere(record))
        if not missing and self.condition is not None and not self.condition(record):
            missing.append("the condition does not hold for it")
        return missing

    def near_miss(self, records: Iterable[Record]) -> str:
        """What came closest, where nothing fits: a sentence; "" if nothing was close."""
        return closest(records, self.misses)

    @property
    def what(self) -> str:
        """What counts, in a word."""
        return self.kind or self.role or "record"

    def __str__(self) -> str:
        return f"{self.count} x {self.what}"


class Wait:
    """One wait for `wanted`; `future` gets the records. All methods on the fake's own thread."""

    def __init__(self, journal: Journal, wanted: Wanted) -> None:
        self.future: Future[list[Record]] = Future()
        self._wanted = wanted
        self._found: list[Record] = []
        self._stop = journal.watch(self._look)
        for record in journal.records(wanted.since):
            self._look(record)

    def _look(self, record: Record) -> None:
        if self.future.done():
            self._stop()
            return
        try:
            if not self._wanted.fits(record):
                return
        except Exception as error:  # the test's own condition went wrong: its business, not the fake's
            self._stop()
            if self.future.set_running_or_notify_cancel():
                self.future.set_exception(error)
            return
        self._found.append(record)
        if len(self._found) >= self._wanted.count:
            self._stop()
            if self.future.set_running_or_notify_cancel():
                self.future.set_result(self._found)

    def end(self) -> None:
        """Wait no longer."""
        self._stop()
        self.future.cancel()


class Waiter:
    """Waits for records, on behalf of other threads and of coroutines.

    Args:
        journal: Where they appear.
        call: Runs something on the fake's own thread, and returns what it returns.
        post: Runs something there some time soon.
    """

    def __init__(
        self, journal: Journal, call: Callable[..., Wait], post: Callable[[Callable[[], None]], None]
    ) -> None:
        self._journal = journal
        self._call = call
        self._post = post

    def wait(self, wanted: Wanted, timeout: float) -> list[Record]:
        """Block until the records are there; `WaitTimeout` after `timeout` seconds."""
        wait = self._call(Wait, self._journal, wanted)
        try:
            return wait.future.result(timeout)
        except TimeoutError:
            raise self._timed_out(wanted, timeout) from None
        finally:
            self._post(wait.end)

    async def wait_async(self, wanted: Wanted, timeout: float) -> list[Record]:
        """`wait`, for coroutines."""
        wait = self._call(Wait, self._journal, wanted)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(wait.future), timeout)
        except TimeoutError:
            raise self._timed_out(wanted, timeout) from None
        finally:
            self._post(wait.end)

    def _timed_out(self, wanted: Wanted, timeout: float) -> WaitTimeout:
        near = self._near_miss(wanted)
        lines = self._journal.excerpt()
        return WaitTimeout(f"expected {wanted} within {timeout} s; {near}the last journal lines:\n{lines}")

    def _near_miss(self, wanted: Wanted) -> str:
        """For the message of an error, which the test's own condition must not replace."""
        try:
            records = self._journal.records()
            near = "" if any(map(wanted.fits, records)) else wanted.near_miss(records)
        except Exception:
            return ""
        return f"{near}; " if near else ""
