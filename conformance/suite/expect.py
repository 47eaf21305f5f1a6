"""What a script says about what it saw. The first criterion that is violated ends the script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from conformance.adapter.result import Result
from fakebrokers.errors import FakeBrokerError, WaitTimeout
from fakebrokers.journal import Record

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer


class Violated(FakeBrokerError):
    """A criterion is violated.

    Attributes:
        criterion: The criterion, in the words of the requirement.
        actual: What happened instead.
        late_s: Only a time limit was missed, by so many seconds; None if it is no matter of time.
        tags: ``hang``, ``crashed``.
    """

    def __init__(
        self, criterion: str, actual: str, *, late_s: float | None = None, tags: Sequence[str] = ()
    ) -> None:
        self.criterion = criterion
        self.actual = actual
        self.late_s = late_s
        self.tags = tuple(tags)
        super().__init__(f"{criterion}: {actual}" if actual else criterion)


class SetupFailed(Violated):
    """The client failed in a step that only prepares the requirement."""


class Inconclusive(FakeBrokerError):
    """The requirement was never exercised."""


class Unsupported(FakeBrokerError):
    """The client turned out not to have what the script needs (`special` behaviours)."""


class Expect:
    """The judge in a script.

    Args:
        wire: Whether a fake with a journal is there to look at; not against a real broker.
    """

    def __init__(self, *, wire: bool = True) -> None:
        self.wire_visible = wire
        self.tolerated: list[str] = []
        self.notes: list[str] = []
        self.met: list[str] = []

    # criteria

    def that(self, condition: object, criterion: str, actual: object = "") -> None:
        """Demand that the condition holds; `criterion` says in words what is demanded."""
        if not condition:
            raise Violated(criterion, _text(actual))
        self.met.append(criterion)

    def equal(self, actual: object, wanted: object, criterion: str) -> None:
        """Demand that both are equal."""
        self.that(actual == wanted, criterion, f"expected {wanted!r}, got {actual!r}")

    def tolerate(self, condition: object, criterion: str, actual: object = "") -> bool:
        """A condition that should hold; if it does not, the verdict is at most ``non-strict``."""
        if not condition:
            self.tolerated.append(f"{criterion}: {_text(actual)}" if actual != "" else criterion)
        return bool(condition)

    def exercised(self, condition: object, what: str) -> None:
        """The requirement was really tried; otherwise the verdict is ``inconclusive``."""
        if not condition:
            raise Inconclusive(what)

    def note(self, text: str) -> None:
        """A figure or a remark for the report."""
        self.notes.append(text)

    # ops

    def prepared(self, result: Result, what: str = "") -> Any:
        """A step that only prepares has worked; returns its value."""
        if not result.ok:
            raise SetupFailed(f"{what or result.op} works (preparation)", str(result), tags=_tags(result))
        return result.value

    def ok(self, result: Result, criterion: str) -> Any:
        """The op ended well; returns its value."""
        if not result.ok:
            raise Violated(criterion, str(result), tags=_tags(result))
        self.met.append(criterion)
        return result.value

    def ended(self, result: Result, criterion: str) -> None:
        """The op ended in whatever way, by its deadline: no hang, no crash."""
        if result.hang or result.crashed:
            raise Violated(criterion, str(result), tags=_tags(result))
        self.met.append(criterion)

    def failed(
        self,
        result: Result,
        kinds: Sequence[str],
        criterion: str,
        *,
        code: int | str | None = None,
        definite: bool | None = None,
    ) -> None:
        """The op ended with an error of one of these kinds."""
        fits = (
            result.error is not None
            and result.error.kind.value in kinds
            and (code is None or result.code == code)
            and (definite is None or result.error.definite is definite)
        )
        if not fits:
            raise Violated(criterion, str(result), tags=_tags(result))
        self.met.append(criterion)

    def outcome(self, result: Result, wanted: str | Sequence[str], criterion: str) -> None:
        """A publish ended ``acked``, ``nacked`` or ``unknown``; a hang is none of them."""
        words = [wanted] if isinstance(wanted, str) else list(wanted)
        if result.hang or result.crashed or result.outcome not in words:
            raise Violated(criterion, f"{result.outcome}: {result}", tags=_tags(result))
        self.met.append(criterion)

    def within(self, seconds: float, limit_s: float, criterion: str) -> None:
        """It took at most `limit_s`; a lagging harness makes this inconclusive instead of a failure."""
        if seconds > limit_s:
            actual = f"took {seconds:.3f} s, limit {limit_s:.3f} s"
            raise Violated(criterion, actual, late_s=seconds - limit_s)
        self.met.append(criterion)

    def not_before(self, seconds: float, limit_s: float, criterion: str) -> None:
        """It took at least `limit_s`."""
        if seconds < limit_s:
            actual = f"took {seconds:.3f} s, expected at least {limit_s:.3f} s"
            raise Violated(criterion, actual, late_s=limit_s - seconds)
        self.met.append(criterion)

    # wire

    async def wire(
        self,
        broker: FakeServer,
        criterion: str,
        *,
        within_s: float,
        count: int = 1,
        where: Callable[[Record], bool] | None = None,
        **select: Any,
    ) -> list[Record]:
        """The journal shows `count` records that fit within so many seconds; see `FakeServer.wait_for`."""
        try:
            found = await broker.wait_for_async(where, count=count, timeout=within_s, **select)
        except WaitTimeout:
            have = [r for r in broker.journal.select(**select) if where is None or where(r)]
            raise Violated(
                criterion, f"{len(have)} of {count} within {within_s} s", late_s=0.0 if have else None
            ) from None
        self.met.append(criterion)
        return found

    async def socket_closed(
        self, broker: FakeServer, connection: str, criterion: str, *, within_s: float
    ) -> None:
        """The client lets go of its socket (after the broker's FIN, or by itself) within so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while broker.client_holds(connection):
            if loop.time() > deadline:
                raise Violated(
                    criterion, f"{connection} is still open on the client's side after {within_s} s"
                )
            await asyncio.sleep(0.02)
        self.met.append(criterion)

    async def reached(
        self, broker: FakeServer, what: str, *, within_s: float = 5.0, count: int = 1, **select: Any
    ) -> list[Record]:
        """The script got as far as this; otherwise the verdict is ``inconclusive``."""
        try:
            return await broker.wait_for_async(count=count, timeout=within_s, **select)
        except WaitTimeout:
            raise Inconclusive(what) from None


def _tags(result: Result) -> tuple[str, ...]:
    return ("hang",) if result.hang else ("crashed",) if result.crashed else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)
