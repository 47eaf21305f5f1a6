"""A subscription to a log: what the application got of it, held against what came to the client."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from conformance.rules.circumstances import after_a_failure
from conformance.rules.registry import May, Violation
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Record, Window
from conformance.run.reported import ReportedEvent, is_body
from conformance.run.showing import shown
from conformance.run.trace import Position

DUE_S = 0.5  #: what a client may take to hand a message over, besides the callbacks in front of it


class _Due(NamedTuple):
    """A message that came to the client."""

    at: Position
    record: Record
    is_certain: bool


class Log:
    """A subscription to a log, held against its lives on the wire, one after the other."""

    def __init__(self, case: Case, done: RunOp, windows: list[Window]) -> None:
        self.case = case
        self.done = done
        self.windows = windows
        self.got = [heard for heard in case.heard("message") if heard["sub"] == done.args["sub"]]
        self.next = 0  #: of `got`
        self.position: int | None = None  #: after the last message that was due, or skipped with right
        self.last: int | None = None  #: of the last message that the application got

    @property
    def _may_repeat(self) -> bool:
        return self.case.contract.allows("surfaces_again")

    def check(self) -> Iterator[Violation]:
        last = self.case.traits.delivery.last_position
        records = (one for window in self.windows for arrival in window.arrivals for one in arrival.records)
        if any(record.position >= last for record in records):
            return
        for number, window in enumerate(self.windows):
            until = self.windows[number + 1].asked if number + 1 < len(self.windows) else None
            yield from self._resumes(window)
            yield from self._life(window, until)
        if self.next < len(self.got):
            heard = self.got[self.next]
            where = heard["position"]
            text = f"the message at {where} was delivered unasked, again, or out of order"
            damaged = any(arrival.damaged for window in self.windows for arrival in window.arrivals)
            yield May("skips_damaged", text) if damaged else text, heard.at

    def _resumes(self, window: Window) -> Iterator[Violation]:
        """A later life begins where the application is, or at the message that it is at."""
        if self.position is None:
            return
        first = self._first(window)
        low = self.position if self.last is None else self.last
        if first is None or not low <= first <= self.position:
            text = f"asks for {shown(window.start)}, the application is at {self.position}"
            is_early = first is not None and first < low
            yield May("surfaces_again", text) if is_early else text, window.asked

    def _first(self, window: Window) -> int | None:
        return self.case.traits.delivery.first_position(window.start)

    def _life(self, window: Window, until: Position | None) -> Iterator[Violation]:
        wanted, ends = self._due(window)
        stood = self.position or 0
        count = yield from self._take(wanted, stood, until)
        for places, next_position in ends:
            if places <= count:
                self.position = max(self.position or 0, next_position)
        while count < len(wanted) and self._need_not_come(wanted[count], stood):
            count += 1
        if count < len(wanted):
            yield from self._missing(window, wanted[count], until)

    def _take(
        self, wanted: Sequence[_Due], stood: int, until: Position | None
    ) -> Generator[Violation, None, int]:
        """Go through what was delivered in this life; how much of what is wanted is done with then."""
        count = 0
        while count < len(wanted) and self.next < len(self.got):
            heard, due = self.got[self.next], wanted[count]
            if _same(heard, due.record):
                if not self.case.may_precede(due.at, heard.at) or self._is_over(heard.at, until):
                    break
                yield from self._delivered(heard, due.record)
                count += 1
            elif self._need_not_come(due, stood):
                count += 1
            elif self._may_repeat and int(heard["position"]) < (self.position or 0):
                self.next += 1  # what came again, or out of order, and was passed over here
            else:
                break
        return count

    def _delivered(self, heard: ReportedEvent, record: Record) -> Iterator[Violation]:
        """The application got a message that was due."""
        if None not in (record.ts, heard["ts"]) and not _same_time(heard["ts"], record.ts):
            text = f"the message at {record.position} was delivered with the time"
            yield f"{text} {shown(heard['ts'])}, it is {shown(record.ts)}", heard.at
        self.last = max(self.last or 0, record.position)
        self.position = max(self.position or 0, record.position + 1)
        self.next += 1

    def _due(self, window: Window) -> tuple[list[_Due], list[tuple[int, int]]]:
        """What the application wants of a life; how many of these are in front of each end of a frame."""
        floor = self._first(window)
        wanted: list[_Due] = []
        ends: list[tuple[int, int]] = []
        for arrival in window.arrivals:
            for records, is_certain in ((arrival.records, True), (arrival.doubtful, False)):
                wanted += [
                    _Due(arrival.at, record, is_certain)
                    for record in records
                    if (floor is None or record.position >= floor) and self._is_wanted(record)
                ]
            if arrival.next_position is not None:
                floor = max(floor or 0, arrival.next_position)
                ends.append((len(wanted), floor))
        return wanted, ends

    def _need_not_come(self, due: _Due, stood: int) -> bool:
        """Whether the application may do without it: it is in a damaged frame, or was delivered before."""
        return not due.is_certain or (self._may_repeat and due.record.position < stood)

    def _is_wanted(self, record: Record) -> bool:
        return self.case.traits.delivery.wants(self.done.args, record.body)

    def _is_over(self, at: Position, until: Position | None) -> bool:
        """Whether a later life of the subscription has begun by then."""
        return until is not None and not self.case.slack_s and at > until

    def _missing(self, window: Window, due: _Due, until: Position | None) -> Iterator[Violation]:
        """Not all came: the life has to have ended before it could."""
        at, record, _ = due
        slow = (self.done.args.get("on_message") or {}).get("sleep_ms", 0) / 1000
        former = self.got[self.next - 1].at.t if self.next else 0.0
        latest = max(at.t, former) + slow + DUE_S + self.case.slack_s
        closing = self.case.mark("close")
        ends = (window.closed, window.conn.ended, window.conn.garbage, until, closing)
        if any(end is not None and latest >= end.t for end in ends) or latest >= self.case.ended_s:
            return
        rest = self.got[self.next :]
        late = next((heard for heard in rest[1:] if _same(heard, record)), None)
        if late is None:
            text = f"the message at {record.position} came, and was not delivered to the application"
            yield text + after_a_failure(self.case, self.done.args["sub"], record.body), at
        elif int(rest[0]["position"]) > record.position and self._came(window, rest[0]):
            text = f"the message at {record.position} was delivered out of order"
            yield f"{text}, after the message at {rest[0]['position']}", rest[0].at, late.at

    def _came(self, window: Window, heard: ReportedEvent) -> bool:
        """Whether a message that was delivered came in this life at all."""
        arrivals = window.arrivals
        return any(_same(heard, one) for arrival in arrivals for one in (*arrival.records, *arrival.doubtful))


def _same(heard: ReportedEvent, record: Record) -> bool:
    body: Any = heard["body"]
    if not isinstance(body, dict):  # messages of several parts: a format of their own inside the record
        return bool(int(heard["position"]) == record.position)
    return int(heard["position"]) == record.position and is_body(body, record.body)


def _same_time(reported: Any, ts: Any) -> bool:
    """Whether a time is reported as it is; as text, or as a number of another type."""
    return str(reported) == str(ts) or bool(reported == ts)
