"""Callbacks of the application: what one of them holds up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.clients.adapter.deadline import deadline_ms
from conformance.clients.adapter.kit.bodies import body_parts
from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import is_untouched
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.reported import ReportedEvent, joined
from conformance.run.showing import message
from conformance.run.trace import Position
from conformance.run.traits.delivery import ENDING

DUE_S = 0.5  #: what a client may take to deliver a message for which nothing else has to end


@invariant("callbacks-apart", level="SHOULD")
def callbacks_apart(case: Case) -> Iterator[Violation]:
    """A message of one subscription does not wait until a callback of another one has ended.

    Why:
        One slow consumer stops all the others of its process, and their queues grow.

    Rests on:
        common sense: subscriptions are ordered each by itself; only the order within one has to be kept.

    Example:
        message "tea" of quick was delivered 4.5 s after it had come, as a callback of slow was running.

    Level:
        SHOULD: a library may run all callbacks in one thread, if its documentation states so.
    """
    if case.notes.stopped:
        return
    subscribing = ("subscribe", *case.traits.delivery.listening)
    pauses_s = {
        done.args["sub"]: _pause_s(done.args) for done in case.done(*subscribing) if "sub" in done.args
    }
    if len(pauses_s) < 2 or not any(pauses_s.values()):
        return
    busy = [
        (heard["sub"], heard.at.t, heard.at.t + pauses_s[heard["sub"]])
        for heard in case.heard("message")
        if pauses_s.get(heard["sub"])
    ]
    for done in case.done(*subscribing):
        sub = done.args.get("sub")
        if sub not in pauses_s or pauses_s[sub]:
            continue
        came = _came(case, done)
        for heard in case.heard("message"):
            at = _last(came, heard) if heard["sub"] == sub else None
            if at is None:
                continue
            due_s = max(at.t, done.begun.t) + DUE_S + case.slack_s
            slow = next((other for other, since_s, until_s in busy if since_s <= due_s <= until_s), None)
            if slow is not None and heard.at.t > due_s:
                late = (
                    f"{message(_body(heard))} of {sub} was delivered {heard.at.t - at.t:.1f} s after it had"
                )
                yield May("one_callback", f"{late} come, as a callback of {slow} was running"), at, heard.at


def _pause_s(args: Mapping[str, Any]) -> float:
    return float((args.get("on_message") or {}).get("sleep_ms", 0)) / 1000


def _came(case: Case, done: RunOp) -> dict[bytes, list[Position]]:
    """When each body came that may be for a subscription."""
    rows: list[tuple[Position, bytes]] = []
    if case.traits.settlement.redelivers:
        rows = [(one.at, one.body) for one in case.facts.handed if not one.damaged]
    elif done.op in case.traits.delivery.listening:
        due = case.traits.delivery.due(case, done.args, done.begun)
        rows = [(at, record.body) for at, record in due]
    else:
        rows = [
            (arrival.at, record.body)
            for window in case.facts.windows
            if window.target == done.args["target"]
            for arrival in window.arrivals
            for record in arrival.records
        ]
    found: dict[bytes, list[Position]] = defaultdict(list)
    for at, body in sorted(rows):
        found[body].append(at)
    return found


def _body(heard: ReportedEvent) -> bytes | None:
    """None where it is too large to be reported."""
    body: Any = heard["body"]
    parts = [body] if isinstance(body, dict) else body
    return None if any("sha256" in part for part in parts) else joined(body_parts(body))


def _last(came: Mapping[bytes, list[Position]], heard: ReportedEvent) -> Position | None:
    """When a message came the last time before it was delivered."""
    body = _body(heard)
    return None if body is None else max((at for at in came.get(body, ()) if at < heard.at), default=None)


@invariant("ops-inside-end")
def ops_inside_end(case: Case) -> Iterator[Violation]:
    """An op that a callback asks for and waits for ends by its deadline; where nothing disturbs it, it works.

    Why:
        The callback never ends: no further message is delivered, and the application cannot be stopped.

    Rests on:
        common sense: what an application may ask for, it may ask for in a callback, if the library does not
            document that it may not.

    Example:
        unsubscribe, which the callback of message "tea" of c1 asked for, has not ended in time.
    """
    ends = {(heard["sub"], heard["ref"], heard["index"]): heard for heard in case.heard("done")}
    for done in case.done("subscribe", *case.traits.delivery.listening):
        plan = done.args.get("on_message") or {}
        sub = done.args.get("sub")
        for heard in case.heard("message") if plan.get("do") and not case.notes.stopped else ():
            if heard["sub"] != sub:
                continue
            until_s = heard.at.t + _pause_s(done.args) + DUE_S + case.slack_s
            for index, inner in enumerate(plan["do"]):
                given = inner.get("args", {}), inner.get("timeout_ms")
                until_s += deadline_ms(case.contract.hello, inner["op"], *given) / 1000
                end = ends.get((sub, heard["ref"], index))
                what = f"{inner['op']}, which the callback of {message(_body(heard))} of {sub} asked for,"
                is_late = end is None or end.at.t > until_s
                if is_late and not _is_over(case, sub, until_s):
                    yield f"{what} has not ended in time", heard.at
                elif end is not None and _kind(end) == "timeout" and is_untouched(case):
                    yield f"{what} ended timeout", heard.at, end.at
                if end is None or inner["op"] in ENDING:  # after one of these a callback need not come back
                    break


def _kind(end: ReportedEvent) -> Any:
    """How an op inside a callback has failed; None if it has not."""
    return None if end["ok"] else (end["error"] or {}).get("kind")


def _is_over(case: Case, sub: Any, until_s: float) -> bool:
    """Whether by then the application has begun to end a session or a subscription from outside."""
    ends = case.done("close", "abort", "unsubscribe", *case.traits.delivery.closing)
    times = [done.begun.t for done in ends if done.args.get("sub") in (None, sub)]
    return min([*times, case.ended_s]) <= until_s
