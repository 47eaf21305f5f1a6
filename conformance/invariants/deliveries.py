"""The application gets what the client was delivered: everything, once, in order, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from conformance.adapter.messages import body_bytes
from conformance.invariants.recovery import subscriptions
from conformance.invariants.registry import May, Violation, invariant
from conformance.sweep.bases import Done
from conformance.sweep.case import Case
from conformance.sweep.facts import Record, Window
from conformance.sweep.tape import Moment
from conformance.sweep.told import Heard

DAMAGE_S = 1.0
LOOK_BACK_S = 5.0  #: what has come by then was processed
DUE_S = 0.5  #: what a client may take to hand a message over, besides the callbacks in front of it


class _Log:
    """A subscription to a log, held against its lives on the wire, one after the other."""

    def __init__(self, case: Case, done: Done, windows: list[Window]) -> None:
        self.case = case
        self.done = done
        self.windows = windows
        self.got = [heard for heard in case.heard("message") if heard["sub"] == done.args["sub"]]
        self.next = 0  #: of `got`
        self.position: int | None = None  #: behind the last message that was due, or skipped with right
        self.last: int | None = None  #: of the last message that the application got

    @property
    def _may_repeat(self) -> bool:
        return self.case.contract.allows("surfaces_again")

    def check(self) -> Iterator[Violation]:
        last = self.case.model.last_position
        records = (one for window in self.windows for arrival in window.arrivals for one in arrival.records)
        if any(record.position >= last for record in records):
            return
        for number, window in enumerate(self.windows):
            until = self.windows[number + 1].asked if number + 1 < len(self.windows) else None
            yield from self._resumes(window)
            yield from self._life(window, until)
        if self.next < len(self.got):
            heard = self.got[self.next]
            text = f"{heard['position']} was surfaced unasked, again, or out of order"
            damaged = any(arrival.damaged for window in self.windows for arrival in window.arrivals)
            yield May("skips_damaged", text) if damaged else text, heard.at

    def _resumes(self, window: Window) -> Iterator[Violation]:
        """A later life begins where the application stands, or at the message that it is at."""
        if self.position is None:
            return
        start = window.start
        low = self.position if self.last is None else self.last
        if start["type"] != "offset" or not low <= start["value"] <= self.position:
            text = f"asks for {start}, the application stands at {self.position}"
            is_early = start["type"] == "offset" and start["value"] < low
            yield May("surfaces_again", text) if is_early else text, window.asked

    def _life(self, window: Window, until: Moment | None) -> Iterator[Violation]:
        floor = window.start["value"] if window.start["type"] == "offset" else None
        wanted: list[tuple[Moment, Record]] = []
        ends: list[tuple[int, int]] = []
        for arrival in window.arrivals:
            wanted += [
                (arrival.at, record)
                for record in arrival.records
                if floor is None or record.position >= floor
            ]
            if arrival.behind is not None:
                floor = max(floor or 0, arrival.behind)
                ends.append((len(wanted), floor))
        count = 0
        stood = self.position or 0
        while count < len(wanted) and self.next < len(self.got):
            heard, (at, record) = self.got[self.next], wanted[count]
            if record.position < stood and self._may_repeat and not _same(heard, record):
                count += 1  # it may come again, and need not
                continue
            if (
                not _same(heard, record)
                and self._may_repeat
                and int(heard["position"]) < (self.position or 0)
            ):
                self.next += 1  # what came again, or out of order, and was passed over here
                continue
            if (
                not _same(heard, record)
                or not self.case.may_precede(at, heard.at)
                or self._is_over(heard.at, until)
            ):
                break
            if None not in (record.ts, heard["ts"]) and not _same_time(heard["ts"], record.ts):
                yield f"{record.position} was surfaced with time {heard['ts']}, it is {record.ts}", heard.at
            self.last = max(self.last or 0, record.position)
            self.position = max(self.position or 0, record.position + 1)
            self.next += 1
            count += 1
        for places, behind in ends:
            if places <= count:
                self.position = max(self.position or 0, behind)
        while count < len(wanted) and self._may_repeat and wanted[count][1].position < stood:
            count += 1
        if count < len(wanted):
            yield from self._missing(window, wanted[count], until)

    def _is_over(self, at: Moment, until: Moment | None) -> bool:
        """Whether a later life of the subscription has begun by then."""
        return until is not None and not self.case.slack_s and at > until

    def _missing(
        self, window: Window, due: tuple[Moment, Record], until: Moment | None
    ) -> Iterator[Violation]:
        """Not all came: the life has to have ended before it could."""
        at, record = due
        slow = (self.done.args.get("on_message") or {}).get("sleep_ms", 0) / 1000
        former = self.got[self.next - 1].at.t if self.next else 0.0
        latest = max(at.t, former) + slow + DUE_S + self.case.slack_s
        closing = self.case.mark("close")
        ends = (window.closed, window.conn.ended, window.conn.garbage, until, closing)
        if all(end is None or latest < end.t for end in ends) and latest < self.case.ended_s:
            yield f"{record.position} came to the client and was not surfaced", at


def _same(heard: Heard, record: Record) -> bool:
    body: Any = heard["body"]
    if not isinstance(body, dict):  # messages of several parts: a format of their own inside the record
        return bool(int(heard["position"]) == record.position)
    return int(heard["position"]) == record.position and _is_body(body, record.body)


def _same_time(told: Any, ts: Any) -> bool:
    """Whether a time is told as it is; as text, or as a number of another type."""
    return str(told) == str(ts) or bool(told == ts)


def _is_body(told: Any, body: bytes) -> bool:
    """Whether a body as it was told is this one; of a large one its size and a sum are told."""
    if "sha256" in told:
        return bool(told["len"] == len(body) and told["sha256"] == sha256(body).hexdigest())
    return body_bytes(told) == body


@invariant("delivers-what-came")
def delivers_what_came(case: Case) -> Iterator[Violation]:
    """The application gets every message that was delivered to the client, once, in order, and no other."""
    if not case.model.is_log:
        return
    for done, windows in subscriptions(case):
        yield from _Log(case, done, windows).check()


@invariant("no-delivery-behind-the-end")
def none_behind_the_end(case: Case) -> Iterator[Violation]:
    """A subscription that the application has ended surfaces nothing more."""
    for done in case.done("unsubscribe"):
        if done.result is None or not done.result.ok or done.ended is None:
            continue
        again = [
            d.begun
            for d in case.done("subscribe")
            if d.args["sub"] == done.args["sub"] and d.begun > done.begun
        ]
        for heard in case.heard("message"):
            if (
                heard["sub"] == done.args["sub"]
                and heard.at > done.ended
                and not any(b < heard.at for b in again)
            ):
                yield f"{heard['position']} was surfaced behind the end of {heard['sub']}", heard.at


@invariant("stores-by-order")
def stores_by_order(case: Case) -> Iterator[Violation]:
    """A position is stored with the broker only because the application said so, as it said it."""
    ordered = {
        (done.args["target"], done.args["name"], str(done.args["offset"]))
        for done in case.ops
        if done.op in case.model.storing
    }
    for noted in case.facts.noted:
        if (noted.target, noted.name, str(noted.position)) not in ordered:
            text = f"position {noted.position} of {noted.target} was stored for {noted.name!r} unasked"
            yield May("stores_positions", text), noted.at


@invariant("damage-is-told")
def damage_is_told(case: Case) -> Iterator[Violation]:
    """What cannot be read of a delivery is reported to the application."""
    told = [heard.at for heard in case.heard("error")]
    for window in case.facts.windows:
        for arrival in window.arrivals:
            until_s = arrival.at.t + DAMAGE_S + case.slack_s
            over = until_s > case.ended_s or (window.closed is not None and window.closed.t < until_s)
            if arrival.damaged and not over and not any(at > arrival.at for at in told):
                yield May("skips_damaged", "a delivery was damaged, and no error was told"), arrival.at


@invariant("credit-overrun")
def credit_overrun(case: Case) -> Iterator[Violation]:
    """The client allows no more deliveries at a time than were ordered."""
    if any(case.done(*case.model.crediting)):
        return
    for window in case.facts.windows:
        arrived = [arrival.at for arrival in window.arrivals]
        granted = 0
        for at, count in window.granted:
            granted += count
            came = sum(1 for one in arrived if one < at)
            if granted > came and window.closed is None:
                yield May("own_credit", f"{granted} deliveries were allowed again, {came} had come"), at
                break


@invariant("credit-leak")
def credit_leak(case: Case) -> Iterator[Violation]:
    """A subscription that rests is allowed as many deliveries as at first."""
    at = case.mark("subscribed")
    if at is None or any(case.done(*case.model.crediting)):
        return
    for window in case.facts.windows:
        open_then = window.opened is not None and (window.closed is None or window.closed > at)
        if not open_then or not window.conn.stands(at) or "credit" not in window.settings:
            continue
        arrived = sum(1 for arrival in window.arrivals if arrival.at.t < at.t - LOOK_BACK_S)
        granted = sum(count for moment, count in window.granted if moment < at)
        if granted < arrived:
            text = f"{arrived} deliveries came and only {granted} were allowed again"
            yield May("own_credit", text), at


@invariant("close-is-prompt")
def close_is_prompt(case: Case) -> Iterator[Violation]:
    """A close lets the callbacks that run end, and begins no others."""
    closes = [done for done in case.done("close") if done.phase == "close" and done.ended is not None]
    if not closes or case.model.drains_on_close or "sessions" in case.notes:
        return
    for heard in case.heard("message"):
        if closes[-1].begun.t + DUE_S + case.slack_s < heard.at.t and heard.at < closes[-1].ended:  # type: ignore[operator]
            text = f"{heard['position']} was surfaced {heard.at.t - closes[-1].begun.t:.1f} s into a close"
            yield May("drains", text), heard.at


@invariant("surfaces-what-came")
def surfaces_what_came(case: Case) -> Iterator[Violation]:
    """Whoever listens gets each message for him that came to the client, once, in order, and no other."""
    closing = case.mark("close")
    if len({done.args.get("session") for done in case.done(*case.model.listening)}) > 1:
        return  # what came for which session, nobody can tell
    for done in case.done(*case.model.listening):
        if done.result is None or not done.result.ok or done.ended is None:
            continue
        due = case.model.due(case, done.args, done.ended)
        got = [heard for heard in case.heard("message") if heard["sub"] == done.args["sub"]]
        for heard, (at, record) in zip(got, due, strict=False):
            told = heard["body"]
            is_it = _is_body(told, record.body) or (
                "sha256" not in told and case.model.is_same(body_bytes(told), record.body)
            )
            if not is_it or not case.may_precede(at, heard.at):
                yield f"{heard['body']} was surfaced, {record.body!r:.60} was due", at, heard.at
                break
        for heard in got[len(due) :]:
            yield f"{heard['body']} was surfaced unasked, or again", heard.at
        for at, record in due[len(got) :]:
            if at.t + DUE_S + case.slack_s < (case.ended_s if closing is None else closing.t):
                yield f"{record.body!r:.60} came to the client and was not surfaced", at
