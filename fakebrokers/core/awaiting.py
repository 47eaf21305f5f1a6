"""What tests wait for, expect, and are told of what went wrong."""

from __future__ import annotations

from collections.abc import Callable

from fakebrokers.core.expecting import ON_THE_WIRE, Expectation, Unit
from fakebrokers.core.parts import Parts
from fakebrokers.core.waiting import Wanted
from fakebrokers.errors import UnmetExpectation
from fakebrokers.journal import Record, Tap


class Awaiting(Parts):
    """Blocking methods and their async twins: they look at the journal."""

    def wait_for(
        self,
        condition: Callable[[Record], bool] | None = None,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap | None = None,
        connection: str | None = None,
        count: int = 1,
        since: int = 0,
        timeout: float = 5.0,
    ) -> list[Record]:
        """Wait until the journal holds `count` records that fit; returns them.

        Args:
            condition: Asked for each record.
            kind, role, tap, connection: As in `Journal.select`.
            since: Only records with a higher `seq`.
            timeout: Seconds; then `WaitTimeout` with the last journal lines.
        """
        self._refuse_to_block("wait_for")
        wanted = Wanted(condition, kind, role, tap, connection, count, since)
        self.expectations.check_words(wanted)
        return self._waiter.wait(wanted, timeout)

    async def wait_for_async(
        self,
        condition: Callable[[Record], bool] | None = None,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap | None = None,
        connection: str | None = None,
        count: int = 1,
        since: int = 0,
        timeout: float = 5.0,
    ) -> list[Record]:
        """`wait_for`, for async code."""
        wanted = Wanted(condition, kind, role, tap, connection, count, since)
        self.expectations.check_words(wanted)
        return await self._waiter.wait_async(wanted, timeout)

    def expect(
        self,
        condition: Callable[[Record], bool] | None = None,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap = ON_THE_WIRE,
        connection: str | None = None,
        count: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        unit: Unit = "frame",
        since: int = 0,
    ) -> Expectation:
        """Expect what the journal will hold when `check` is called: ``expect(role="publish", count=3)``.

        `check` is called at the end of a ``with`` block, and of each test that has a fixture.

        Args:
            condition, kind, role, connection, since: As in `wait_for`.
            tap: Where it has to be seen; left out: where it goes over the wire, after all faults.
            count: How many, exactly; 0 for none.
            at_least, at_most: How many, instead; without any number at least one.
            unit: Whether frames are counted, or the single messages (``item``) of batches.

        Raises:
            UsageError: The numbers contradict each other, or nothing is called that here.
        """
        wanted = Wanted(condition, kind, role, tap, connection, 1, since)
        return self.expectations.add(wanted, count, at_least, at_most, unit)

    def journal_excerpt(self, lines: int = 20) -> str:
        """The last journal lines as text."""
        return self.journal.excerpt(lines)

    def check(self, timeout: float = 0.0) -> None:
        """Raise what went wrong inside the fake, if anything did, and what was expected and did not happen.

        Args:
            timeout: Seconds to wait for what is still missing.

        Raises:
            UnmetExpectation: See `expect`; each expectation is checked once.
        """
        if timeout:
            self._refuse_to_block("check")
            self.expectations.wait(self._waiter, timeout)
        if failure := self.journal.pop_failure():
            self.engine.errors.append(failure)
        if problems := self.expectations.problems():
            self.engine.errors.append(UnmetExpectation("\n".join(problems)))
        self.expectations.clear()
        if self.engine.errors:
            errors, self.engine.errors = self.engine.errors, []
            if len(errors) == 1:
                raise errors[0]
            raise BaseExceptionGroup(f"{len(errors)} errors in the {self.protocol.name} fake", errors)

    async def check_async(self, timeout: float = 0.0) -> None:
        """`check`, for async code."""
        await self.expectations.wait_async(self._waiter, timeout)
        self.check()
