"""What a script says about what it saw. The first criterion that is violated ends the script.

Each criterion has an `id` besides its words: small letters, digits and hyphens, at most 60 characters,
unlike all others of its scenario. Results, reports and files of known failures name it, so it is never
changed; a better name goes into the words.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from conformance.clients.adapter.messages import Kind
from conformance.clients.adapter.result import Result
from conformance.suite.difference import difference, shown
from fakebrokers.errors import FakeBrokerError, UsageError, WaitTimeout
from fakebrokers.journal import Record

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer

ID_LENGTH = 60


def slug(template: str, *parts: object) -> str:
    """The id of a criterion that is tried in several cases: ``slug("{}-the-process-lives-on", kind)``.

    What is put in place of each ``{}`` is the name of the case. A number is ``n``: which of eight
    publishes is the one that fails differs from run to run. At most 60 characters are kept, in whole words.
    """
    words = re.findall("[a-z0-9]+", template.format(*parts).lower())
    found = "-".join("n" if word.isdigit() else word for word in words)
    return found if len(found) <= ID_LENGTH else found[:ID_LENGTH].rpartition("-")[0]


class Violated(FakeBrokerError):
    """A criterion is violated.

    Attributes:
        criterion: The criterion, in the words of the requirement.
        actual: What happened instead.
        late_s: Only a time limit was missed, by this much (seconds); None if it is no matter of time.
        tags: ``hang``, ``crashed``.
        id: The criterion's id within its scenario.
    """

    def __init__(
        self,
        criterion: str,
        actual: str,
        *,
        late_s: float | None = None,
        tags: Sequence[str] = (),
        id: str,
    ) -> None:
        self.criterion = criterion
        self.actual = actual
        self.late_s = late_s
        self.tags = tuple(tags)
        self.id = id
        super().__init__(f"{criterion}: {actual}" if actual else criterion)


class SetupFailed(Violated):
    """The client failed in a step that only prepares the requirement."""


class Inconclusive(FakeBrokerError):
    """The requirement was never exercised.

    Attributes:
        id: That of the condition that was not met.
    """

    def __init__(self, what: str, *, id: str) -> None:
        self.id = id
        super().__init__(what.strip() or f"the row did not get as far as {id!r} in its script")


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
        self.tolerated_ids: list[str] = []
        self.notes: list[str] = []
        self.met: list[str] = []
        self.unfired: dict[str, str] = {}
        self.excused: list[Result] = []
        self.may_die = ""
        self._lapsed_at: int | None = None

    # time

    @property
    def lapsed(self) -> bool:
        """Whether something that was waited for did not come in time."""
        return self._lapsed_at is not None

    @property
    def just_lapsed(self) -> bool:
        """Whether that is so, and no criterion was met since then: what fails now may fail because of it."""
        return self._lapsed_at == len(self.met)

    def lapse(self) -> None:
        """Something that was waited for did not come in time."""
        self._lapsed_at = len(self.met)

    # criteria

    def that(self, condition: object, criterion: str, actual: object = "", *, id: str) -> None:
        """Demand that the condition holds; `criterion` says in words what is demanded."""
        if not condition:
            raise Violated(criterion, _text(actual), id=id)
        self.met.append(criterion)

    def equal(self, actual: object, wanted: object, criterion: str, *, id: str) -> None:
        """Demand that both are equal."""
        is_met = actual == wanted
        self.that(is_met, criterion, "" if is_met else difference(actual, wanted), id=id)

    def tolerate(self, condition: object, criterion: str, actual: object = "", *, id: str) -> bool:
        """A condition that should hold; if it does not, the verdict is at most ``non-strict``."""
        if condition:
            self.met.append(criterion)
        elif (
            reported := f"{criterion}: {_text(actual)}" if actual != "" else criterion
        ) not in self.tolerated:
            self.tolerated.append(reported)
            self.tolerated_ids.append(id)
        return bool(condition)

    def tolerate_hang(self, result: Result, criterion: str, *, id: str) -> None:
        """An op that should have ended, and is excused: the verdict is at most ``non-strict``."""
        self.excused.append(result)
        self.tolerate(False, criterion, str(result), id=id)

    def exercised(self, condition: object, what: str, *, id: str) -> None:
        """The requirement was really tried; otherwise the verdict is ``inconclusive``.

        Args:
            what: What is said then: what did not take place.
        """
        if not condition:
            raise Inconclusive(what, id=id)

    def may_not_fire(self, name: str, why: str) -> None:
        """A fault need not take place for a pass; without this each has to.

        Args:
            name: The fault's name, or a pattern of names (``lost *``).
            why: A sentence: what makes the pass worth something all the same.
        """
        if not why.strip():
            raise UsageError(f"the fault {name!r} may not fire: give a reason")
        self.unfired[name] = why

    def note(self, text: str) -> None:
        """A figure or a remark for the report."""
        self.notes.append(text)

    def may_end(self, why: str) -> None:
        """The client's process need not live on to the end of the script, because of this (a sentence)."""
        if not why.strip():
            raise UsageError("the client may end: give a reason")
        self.may_die = why

    # ops

    def prepared(self, result: Result, what: str = "", *, id: str = "") -> Any:
        """A step that only prepares has worked; returns its value.

        What the client refuses by itself, as invalid, was never tried: that is ``inconclusive``.
        """
        if not result.ok:
            found = id or f"setup-{slug(result.op)}"
            if result.kind is Kind.INVALID and result.error is not None:
                raise Inconclusive(f"the client does not do what prepares it: {result}", id=found)
            criterion = f"{what or result.op} works (preparation)"
            raise SetupFailed(criterion, str(result), tags=self._tags(result), id=found)
        return result.value

    def ok(self, result: Result, criterion: str, *, id: str) -> Any:
        """The op ended well; returns its value."""
        if not result.ok:
            raise Violated(criterion, str(result), tags=self._tags(result), id=id)
        self.met.append(criterion)
        return result.value

    def ended(self, result: Result, criterion: str, *, id: str) -> None:
        """The op ended in whatever way, by its deadline: no hang, no crash."""
        if result.hang or result.crashed:
            raise Violated(criterion, str(result), tags=self._tags(result), id=id)
        self.met.append(criterion)

    def failed(
        self,
        result: Result,
        kinds: Sequence[str],
        criterion: str,
        *,
        code: int | str | None = None,
        definite: bool | None = None,
        id: str,
    ) -> None:
        """The op ended with an error of one of these kinds."""
        fits = (
            result.error is not None
            and result.error.kind.value in kinds
            and (code is None or result.code == code)
            and (definite is None or result.error.definite is definite)
        )
        if not fits:
            raise Violated(criterion, str(result), tags=self._tags(result), id=id)
        self.met.append(criterion)

    def outcome(self, result: Result, wanted: str | Sequence[str], criterion: str, *, id: str) -> None:
        """A publish ended ``acked``, ``nacked`` or ``unknown``; a hang is none of them."""
        words = [wanted] if isinstance(wanted, str) else list(wanted)
        if result.hang or result.crashed or result.outcome not in words:
            raise Violated(criterion, f"{result.outcome}: {result}", tags=self._tags(result), id=id)
        self.met.append(criterion)

    def within(self, seconds: float, limit_s: float, criterion: str, *, id: str) -> None:
        """It took at most `limit_s`; a lagging harness makes this inconclusive instead of a failure."""
        if seconds > limit_s:
            actual = f"took {seconds:.3f} s, limit {limit_s:.3f} s"
            raise Violated(criterion, actual, late_s=seconds - limit_s, id=id)
        self.met.append(criterion)

    def not_before(self, seconds: float, limit_s: float, criterion: str, *, id: str) -> None:
        """It took at least `limit_s`."""
        if seconds < limit_s:
            actual = f"took {seconds:.3f} s, expected at least {limit_s:.3f} s"
            raise Violated(criterion, actual, late_s=limit_s - seconds, id=id)
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
        id: str,
        **select: Any,
    ) -> list[Record]:
        """The journal shows `count` records that fit within `within_s`; see `FakeServer.wait_for`."""
        try:
            found = await broker.wait_for_async(where, count=count, timeout=within_s, **select)
        except WaitTimeout:
            self.lapse()
            have = [r for r in broker.journal.select(**select) if where is None or where(r)]
            raise Violated(
                criterion, f"{len(have)} of {count} within {within_s} s", late_s=0.0 if have else None, id=id
            ) from None
        self.met.append(criterion)
        return found

    async def socket_closed(
        self, broker: FakeServer, connection: str, criterion: str, *, within_s: float, id: str
    ) -> None:
        """The client lets go of its socket (after the broker's FIN, or by itself) within `within_s`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while broker.client_holds(connection):
            if loop.time() > deadline:
                self.lapse()
                actual = f"{connection} is still open on the client's side after {within_s} s"
                raise Violated(criterion, actual, id=id)
            await asyncio.sleep(0.02)
        self.met.append(criterion)

    async def reached(
        self,
        broker: FakeServer,
        what: str,
        *,
        within_s: float = 5.0,
        count: int = 1,
        id: str,
        **select: Any,
    ) -> list[Record]:
        """The script got as far as this; otherwise the verdict is ``inconclusive``."""
        try:
            return await broker.wait_for_async(count=count, timeout=within_s, **select)
        except WaitTimeout:
            self.lapse()
            raise Inconclusive(what, id=id) from None

    def _tags(self, result: Result) -> tuple[str, ...]:
        """The tags of a criterion that this result violates."""
        if result.kind is Kind.TIMEOUT:
            self.lapse()
        return ("hang",) if result.hang else ("crashed",) if result.crashed else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else shown(value)
