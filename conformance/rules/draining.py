"""The graceful end of a subscription: it sends that no more is wanted, and waits for what is outstanding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from conformance.rules.closing import called_off
from conformance.rules.queues import WRITE_S, pause_s
from conformance.rules.registry import Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Window
from conformance.run.showing import shown
from conformance.run.trace import Position


@invariant("drains-before-the-end")
def drains_before_the_end(case: Case) -> Iterator[Violation]:
    """A graceful end sends that no more is wanted, and is over when all that came has been confirmed.

    Why:
        Messages that were being processed at a deployment are processed a second time by the next instance.

    Rests on:
        Narconi: an empty message stops deliveries, confirms still work, then the client closes
            (docs/protocols/narconi.md, "consume").

    Example:
        orders was ended, and messages ["5", "6"] were not confirmed.

    Judges:
        narconi
    """
    words = case.traits.delivery.last_words
    for done in case.done("unsubscribe") if words is not None else ():
        if not done.args.get("drain") or done.result is None or not done.result.ok or done.ended is None:
            continue
        window = _window_of(case, done)
        if window is None or _was_cut_off(window, done.ended) or called_off(case, done):
            continue
        if not any(type(seen.frame) is words and seen.at > done.begun for seen in window.conn.of("in")):
            text = f"{window.target} was ended, and nothing was sent that asks the server to stop"
            yield text, done.ended
        if (left := _not_confirmed(case, window)) and not _acks_many(case):
            yield f"{window.target} was ended, and messages {shown(left)} were not confirmed", done.ended
        yield from _not_delivered(case, done, window)


@invariant("drains-before-the-end")
def ends_once_it_is_drained(case: Case) -> Iterator[Violation]:
    """A graceful end waits for nothing once all that came has been confirmed, one by one or many at once."""
    words = case.traits.delivery.last_words
    pauses_s = {done.args["sub"]: pause_s(done) for done in case.done("subscribe")}
    for done in case.done("unsubscribe") if words is not None else ():
        if not done.args.get("drain") or done.result is None or done.result.word != "timeout":
            continue
        window = _window_of(case, done)
        if window is None or done.ended is None or _was_cut_off(window, done.ended):
            continue
        if window.conn.name in case.touched:
            continue  # before the end a client may wait for an answer, such as a pong, which was held up
        by_s = done.ended.t - WRITE_S - pauses_s.get(done.args["sub"], 0.0) - case.slack_s
        if all(arrival.at.t < by_s for arrival in window.arrivals) and _all_confirmed(case, window, by_s):
            text = f"{window.target} did not end, and all that came had been confirmed {WRITE_S:g} s before"
            yield text, done.begun, done.ended


def _all_confirmed(case: Case, window: Window, by_s: float) -> bool:
    """Whether each message has been confirmed by then, by itself or with a later one."""
    came = [(arrival.at, record.position) for arrival in window.arrivals for record in arrival.records]
    left = {position for _, position in came}
    for one in case.facts.confirmed:
        if one.conn is window.conn and one.at.t < by_s:
            there = [position for at, position in came if at < one.at]
            name = one.key[1] if isinstance(one.key, tuple) else one.key
            is_many = isinstance(one.key, tuple) and name in there
            left -= set(there[: there.index(name) + 1]) if is_many else {name}
    return not left


def _window_of(case: Case, done: RunOp) -> Window | None:
    """What an op ends on the wire; None where one cannot tell which it is."""
    targets = {one.args["target"] for one in case.done("subscribe") if one.args["sub"] == done.args["sub"]}
    windows = [
        one
        for one in case.facts.windows
        if one.target in targets and one.opened and one.opened < done.begun and one.conn.serves(done.begun)
    ]
    return windows[0] if len(windows) == len(targets) == 1 else None


def _was_cut_off(window: Window, ended: Position) -> bool:
    """Whether its connection was lost by then, and not because the client had parted."""
    lost, client_closing = window.conn.lost(), window.conn.client_closing
    return lost is not None and lost < ended and (client_closing is None or lost < client_closing)


def _not_confirmed(case: Case, window: Window) -> list[Any]:
    """The keys of messages that came more often than they were confirmed."""
    came = Counter(record.position for arrival in window.arrivals for record in arrival.records)
    confirmed = Counter(one.key for one in case.facts.confirmed if one.conn is window.conn)
    return [key for key in came if key is not None and came[key] > confirmed[key]]


def _not_delivered(case: Case, done: RunOp, window: Window) -> Iterator[Violation]:
    """What came before the end was ordered has begun its callback when that is over."""
    if window.conn.name in case.touched or case.notes.raises or done.ended is None:
        return
    until_s = done.begun.t - case.slack_s
    came = sum(len(one.records) for one in window.arrivals if one.at < done.begun and one.at.t <= until_s)
    heard = [one for one in case.heard("message") if one["sub"] == done.args["sub"]]
    delivered = sum(1 for one in heard if window.asked < one.at < done.ended)
    if delivered < came:
        text = f"{window.target} was ended, and {came - delivered} of {came} messages that came were"
        yield f"{text} not delivered", done.ended


def _acks_many(case: Case) -> bool:
    """Whether the application has confirmed several messages by one word."""
    return any(done.args.get("how") == "ack_to" for done in case.done("settle"))
