"""What the application is done with is confirmed to the broker, once: where messages do not come again by
themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from conformance.rules.queues import WRITE_S, pause_s
from conformance.rules.registry import Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Should, Window
from conformance.run.reported import ReportedEvent, is_body
from conformance.run.showing import counted, message, shown
from conformance.run.trace import Position
from conformance.run.view import Conn

EARLY_S = 0.001  #: a callback that ends this close to something else may have ended after it
Name = tuple[str, Any]  #: of a message: its target and its id


def _key(name: Any) -> str:
    """What a confirm is for: one message, or all up to it (`up_to`)."""
    return f"all up to message {shown(name[1])}" if isinstance(name, tuple) else f"message {shown(name)}"


def up_to(position: Any) -> Any:
    """The name of one word for a message and all before it; see `facts.Confirmed`."""
    return "up to", position


class Order(NamedTuple):
    """The application is done with a message.

    Attributes:
        at: When it has begun to say so.
        takes_s: What its callback takes until then.
        ended: When it has done so; None where its callback does.
        is_sure: Whether the client has taken it.
        heard: The message as the application got it.
    """

    name: Name
    at: Position
    takes_s: float
    ended: Position | None
    is_sure: bool
    heard: ReportedEvent


def settled_by_hand(case: Case) -> Iterator[tuple[RunOp, ReportedEvent | None]]:
    """What each settle means: the last message before it that had this ref, which is good for one generation
    of a session."""
    by_ref: dict[tuple[str, str], list[ReportedEvent]] = defaultdict(list)
    for heard in case.heard("message"):
        by_ref[heard["sub"], heard["ref"]].append(heard)
    for done in case.done("settle"):
        named = by_ref[done.args["sub"], done.args["ref"]]
        yield done, next((heard for heard in reversed(named) if heard.at < done.begun), None)


def _orders(case: Case) -> Iterator[Order]:
    """What the application is done with."""
    for done, heard in settled_by_hand(case):
        if heard is not None:
            is_sure = done.result is not None and done.result.ok
            position = heard["position"]
            key = up_to(position) if done.args.get("how") == "ack_to" else position
            yield Order((heard["target"], key), done.begun, 0.0, done.ended, is_sure, heard)
    settling = {
        done.args["sub"]: done
        for done in case.done("subscribe")
        if (done.args.get("on_message") or {}).get("auto_settle") == "ack"
    }
    for heard in case.heard("message"):
        if heard["sub"] in settling and heard["position"] is not None:  # what has no name cannot be confirmed
            takes_s = pause_s(settling[heard["sub"]])
            name = heard["target"], heard["position"]
            yield Order(name, heard.at, takes_s, None, not case.notes.raises, heard)


@invariant("confirms-by-order")
def confirms_by_order(case: Case) -> Iterator[Violation]:
    """A message is confirmed to the broker only because the application decided so, and as often.

    Why:
        The broker deletes a message that was never processed: a crash of the consumer loses it.

    Rests on:
        BlazingMQ: CONFIRM removes a message for good (docs/protocols/blazingmq.md, 4, 9).
        Narconi: an unknown or repeated ackId ends the channel with 500 (docs/protocols/narconi.md,
            "consume").
        PZQ: the status 1 removes the message (docs/protocols/pzq.md, "Consumer").

    Example:
        message "0A3F" of bmq://bmq.test/orders was confirmed unasked, or again.

    Judges:
        blazingmq, narconi, pzq
    """
    if case.traits.settlement.redelivers:
        return
    orders: dict[Name, list[Position]] = defaultdict(list)
    for order in _orders(case):
        orders[order.name].append(order.at)
    count: Counter[Name] = Counter()
    for one in case.facts.confirmed:
        name = one.target, one.key
        count[name] += 1
        if count[name] > sum(1 for at in orders[name] if case.may_precede(at, one.at)):
            yield f"{_key(one.key)} of {one.target} was confirmed unasked, or again", one.at


@invariant("confirms-by-order")
def confirms_where_it_came(case: Case) -> Iterator[Violation]:
    """What is confirmed on a connection is what came over it and was settled: where each connection has
    numbers of its own, the number of another one names another message."""
    if case.traits.settlement.redelivers:
        return
    come: dict[Name, list[tuple[Conn, bytes]]] = defaultdict(list)
    for window in case.facts.windows:
        for arrival in window.arrivals:
            for record in arrival.records:
                come[window.target, record.position].append((window.conn, record.body))
    orders: dict[Name, list[Order]] = defaultdict(list)
    for order in _orders(case):
        orders[order.name].append(order)
    for one in case.facts.confirmed:
        settled = [each for each in orders[one.target, one.key] if case.may_precede(each.at, one.at)]
        sent = come[one.target, one.key[1] if isinstance(one.key, tuple) else one.key]
        here = [body for conn, body in sent if conn is one.conn]
        there = [(conn, body) for conn, body in sent if conn is not one.conn and _is_any(body, settled)]
        if here and there and not any(_is_any(body, settled) for body in here):
            conn, body = there[-1]
            text = f"{_key(one.key)} of {one.target} was confirmed on {one.conn.name}, where it is"
            was = f"what was settled is {message(body)}, which had come as that on {conn.name}"
            yield f"{text} {message(here[-1])}; {was}", one.at


def _is_any(body: bytes, orders: Iterable[Order]) -> bool:
    """Whether the application was done with a message of this body."""
    return any(is_body(order.heard["body"], body) for order in orders)


@invariant("confirms-what-was-ordered")
def confirms_what_was_ordered(case: Case) -> Iterator[Violation]:
    """What the application is done with is confirmed to the broker, while its connection is open.

    Why:
        Messages that were processed come again, and the queue runs full, as the broker's limit of
        unconfirmed messages is reached.

    Rests on:
        BlazingMQ: unconfirmed messages count against maxUnconfirmedMessages, and are delivered again
            (docs/protocols/blazingmq.md, 9).
        Narconi: limit is the most unacknowledged messages at a time (docs/protocols/narconi.md, "consume").
        PZQ: without an acknowledgement a message comes again after the ack timeout (docs/protocols/pzq.md,
            "Ack timeout"). A ROUTER that connects keeps its peer's routing id when the connection is lost, so
            what came before is acknowledged over the next one ("Consumer"; ZeroMQ's RFC 28, ROUTER).

    Example:
        message "7" of orders was confirmed 0 times, not 1.

    Judges:
        blazingmq, narconi, pzq
    """
    if case.traits.settlement.redelivers:
        return
    confirmed = Counter((one.target, one.key) for one in case.facts.confirmed)
    wanted: Counter[Name] = Counter()
    for order, window in _in_one_life(case):
        until_s = order.at.t + order.takes_s + WRITE_S + case.slack_s
        ends = (window.closed, window.conn.ended, window.conn.garbage, case.mark("close"))
        over = any(end is not None and end.t <= until_s for end in ends) or until_s > case.ended_s
        name = order.name
        wanted[name] += not over
        if confirmed[name] < wanted[name]:
            text = f"{_key(name[1])} of {name[0]} was confirmed {counted(confirmed[name], 'time')}"
            yield f"{text}, not {wanted[name]}", order.at


def _in_one_life(case: Case) -> Iterator[tuple[Order, Window]]:
    """What the application is done with for sure, and the life in which it came, where it was only one: what
    came in several may be confirmed in any."""
    come: dict[Name, list[Window]] = defaultdict(list)
    for window in case.facts.windows:
        for arrival in window.arrivals:
            for record in arrival.records:
                come[window.target, record.position].append(window)
    for order in _orders(case):
        target, key = order.name
        lives = come[target, key[1] if isinstance(key, tuple) else key]
        if order.is_sure and len({id(window) for window in lives}) == 1:
            [window, *_] = lives
            if window.opened is not None and window.opened < order.at:  # the client has it for sure
                yield order, window


@invariant("confirms-what-was-ordered")
def confirms_before_its_end(case: Case) -> Iterator[Violation]:
    """What the application was done with before it closed the queue or the session is confirmed before that
    ends."""
    if case.traits.settlement.redelivers:
        return
    confirmed = Counter((one.target, one.key) for one in case.facts.confirmed)
    wanted: Counter[Name] = Counter()
    for order, window in _in_one_life(case):
        end = _closed_by(case, order, window)
        if end is None or not _was_open(window.conn, end):
            continue
        wanted[order.name] += 1
        if confirmed[order.name] < wanted[order.name]:
            what = f"{_key(order.name[1])} of {order.name[0]}"
            text = f"{what} was not confirmed, though the application was done with it before its {end.op}"
            yield Should(text), order.at, end.begun


def _closed_by(case: Case, order: Order, window: Window) -> RunOp | None:
    """The op by which the application has ended the life of a message after it was done with that."""
    names = ("close", *(case.traits.delivery.closing or ("unsubscribe",)))
    subscribed = [done for done in case.done("subscribe") if done.args["target"] == order.name[0]]
    if len({done.args["session"] for done in subscribed}) > 1:
        return None  # of which of them a life is cannot be known
    for done in case.done(*names):
        if done.ended is None or done.ended < order.at or not _ends_any(done, subscribed):
            continue
        was_over = window.closed is not None and window.closed < done.begun
        is_ok = done.result is not None and done.result.ok
        return done if is_ok and not was_over and _is_given_before(case, order, done) else None
    return None


def _ends_any(done: RunOp, subscribed: Iterable[RunOp]) -> bool:
    """Whether an op ends one of these subscriptions: it names the session, the target or the subscription."""
    names = [name for name in ("session", "target", "sub") if name in done.args]
    return any(all(one.args[name] == done.args[name] for name in names) for one in subscribed)


def _is_given_before(case: Case, order: Order, end: RunOp) -> bool:
    """Whether the application was done with a message for sure when it began to end something."""
    if order.ended is not None:
        return order.ended < end.begun
    return order.at.t + order.takes_s + EARLY_S + case.slack_s < end.begun.t


def _was_open(conn: Conn, end: RunOp) -> bool:
    """Whether a connection was good from the beginning of an op that ends something to its end, or up to
    the client's own word."""
    lost = conn.lost()
    until = min((at for at in (conn.client_closing, end.ended) if at is not None), default=None)
    return conn.serves(end.begun) and until is not None and (lost is None or until < lost)
