"""The application gets what the client was delivered: everything, once, in order, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from conformance.clients.adapter.messages import body_bytes
from conformance.rules.circumstances import after_a_failure
from conformance.rules.logs import DUE_S, Log
from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import was_left_alone
from conformance.rules.subscriptions import subscriptions
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Record, Should
from conformance.run.reported import ReportedEvent, is_body
from conformance.run.showing import named_by, shown
from conformance.run.trace import Position

DAMAGE_S = 1.0
LOOK_BACK_S = 5.0  #: what has come by then was processed


@invariant("delivers-what-came")
def delivers_where_it_came(case: Case) -> Iterator[Violation]:
    """A message is delivered to a subscription of the target for which it came."""
    if case.traits.settlement.redelivers:
        return
    spread = {one.args["target"] for one in case.done("subscribe") if case.traits.delivery.spreads(one.args)}
    came: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for window in case.facts.windows:
        for arrival in window.arrivals:
            for record in (*arrival.records, *arrival.doubtful):
                came[str(record.position)].append((window.target, record.body))
    for heard in case.heard("message"):
        body: Any = heard["body"]
        if heard["position"] is None or not isinstance(body, dict) or heard["target"] in spread:
            continue
        targets = {target for target, sent in came[str(heard["position"])] if is_body(body, sent)}
        if targets and heard["target"] not in targets:
            text = f"message {shown(heard['position'])} came for {', '.join(sorted(targets))}"
            yield f"{text}, and was delivered to {heard['sub']} of {heard['target']}", heard.at


@invariant("delivers-what-came")
def delivers_what_came(case: Case) -> Iterator[Violation]:
    """The application gets every message that was delivered to the client, once, in order, and no other.

    Why:
        Messages are lost, doubled or processed in the wrong order without any error: the worst that a
        consumer can do.

    Rests on:
        RabbitMQ Stream: offset = chunk id + index; messages below the asked offset are dropped by the
            client (docs/protocols/rabbitmq-stream.md, 7, 8).
        BlazingMQ: each PUSH is one message for the queue's consumer (docs/protocols/blazingmq.md, 3, 9).
        Narconi: metadata, then its payload, are one message (docs/protocols/narconi.md, "consume").
        PZQ: what is not acknowledged comes again, so a copy is delivered again unless it was settled
            (docs/protocols/pzq.md, "Consumer").
        NATS: a MSG names the subscription that it is for (docs/protocols/nats.md, 2).
        Redis: a push names its channel (docs/protocols/redis.md, 2).
        MQTT: PUBLISH carries one message (docs/protocols/mqtt.md, 2).

    Example:
        the message at 7 came, and was not delivered to the application.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq, nats, redis, mqtt
    """
    if not case.traits.delivery.is_log:
        return
    for done, windows in subscriptions(case):
        yield from Log(case, done, windows).check()


@invariant("delivers-what-came")
def delivers_to_each_of_several(case: Case) -> Iterator[Violation]:
    """Where several subscriptions of a log are open at the same time, each gets what came for one of them."""
    if not case.traits.delivery.is_log or not was_left_alone(case):
        return
    targets: dict[str, list[RunOp]] = defaultdict(list)
    for done in case.done("subscribe"):
        targets[done.args["target"]].append(done)
    for target, subscribed in targets.items():
        windows = [one for one in case.facts.windows if one.target == target]
        if not len({done.args["sub"] for done in subscribed}) == len(subscribed) == len(windows) > 1:
            continue  # with one life each
        known = {id(done) for done, _ in subscriptions(case)}
        for done in subscribed:
            if id(done) in known or case.traits.delivery.spreads(done.args):
                continue
            wrong = [list(Log(case, done, [window]).check()) for window in windows]
            if all(wrong):
                what, *at = min(wrong, key=len)[0]
                yield (f"{done.args['sub']}, one of several subscriptions of {target}: {what}", *at)


@invariant("no-delivery-behind-the-end")
def none_behind_the_end(case: Case) -> Iterator[Violation]:
    """A subscription that the application has ended delivers nothing more.

    Why:
        Callbacks run on objects that the application has torn down already.

    Rests on:
        common sense: the application gets the end of unsubscribe as the moment from which on no callback
            runs.
        RabbitMQ Stream: the answer to Unsubscribe comes after the last Deliver
            (docs/protocols/rabbitmq-stream.md, 8).

    Example:
        message "12" was delivered after the end of s1.
    """
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
                name = named_by(heard["position"], heard["body"])
                yield f"{name} was delivered after the end of {heard['sub']}", heard.at


@invariant("stores-by-order")
def stores_by_order(case: Case) -> Iterator[Violation]:
    """A position is stored with the broker only because the application asked for it, and as it asked.

    Why:
        After a restart the consumer resumes at a message that was never processed: what lies between is
        lost.

    Rests on:
        RabbitMQ Stream: StoreOffset is sent by the application's decision; the last write counts
            (docs/protocols/rabbitmq-stream.md, "Offsets").

    Example:
        the position 41 of orders was stored for "app" unasked.

    Judges:
        rabbitmq-stream
    """
    delivery = case.traits.delivery
    asked = [(done.op, done.args) for done in case.ops] + case.inside
    stored = [delivery.stores(args) for op, args in asked if op in delivery.storing]
    ordered = {(target, name, str(position)) for target, name, position in stored}
    for done in case.done("subscribe"):
        name = delivery.tracked(done.args.get("options") or {})
        if name is not None:  # what was delivered: whether its callback had ended then, rows look at
            got = (h["position"] for h in case.heard("message") if h["sub"] == done.args["sub"])
            ordered |= {(done.args["target"], name, str(position)) for position in got}
    for noted in case.facts.noted:
        if (noted.target, noted.name, str(noted.position)) not in ordered:
            text = (
                f"the position {noted.position} of {noted.target} was stored for {shown(noted.name)} unasked"
            )
            yield May("stores_positions", text), noted.at


@invariant("stores-by-order")
def stored_before_the_end(case: Case) -> Iterator[Violation]:
    """The position that was stored last is with the broker when the client has closed without a fault."""
    delivery = case.traits.delivery
    last = {delivery.stores(done.args)[:2]: done for done in case.ops if done.op in delivery.storing}
    closed = next((done for done in case.done("close") if done.result is not None and done.result.ok), None)
    if closed is None or closed.ended is None or case.notes.has_several_sessions:
        return
    noted = {(one.target, one.name, str(one.position)) for one in case.facts.noted}
    for (target, name), done in last.items():
        if done.result is None or not done.result.ok or done.begun > closed.begun:
            continue
        position = delivery.stores(done.args)[2]
        if not _was_cut_off(case, closed.ended) and (target, name, str(position)) not in noted:
            text = f"the position {position} of {target} was stored for {shown(name)}, and nothing was sent"
            yield Should(text), done.begun, closed.ended


def _was_cut_off(case: Case, until: Position) -> bool:
    """Whether a connection was lost by then, and not because the client had parted."""
    for conn in case.conns.values():
        lost, parting = conn.lost(), conn.client_closing
        if lost is not None and lost < until and (parting is None or lost < parting):
            return True
    return False


@invariant("damage-is-told")
def damage_is_told(case: Case) -> Iterator[Violation]:
    """What cannot be read of a delivery is reported to the application.

    Why:
        Messages are missing and nothing is in any log: the gap is found weeks later, by its effects.

    Rests on:
        RabbitMQ Stream: each chunk has a CRC-32 of its data (docs/protocols/rabbitmq-stream.md, 7).
        BlazingMQ: each message has its lengths and properties checked (docs/protocols/blazingmq.md, 2, 3).
        common sense: how it is reported is the library's choice, that it is reported is not.

    Example:
        a delivery was damaged, and no error was reported.
    """
    reported = [heard.at for heard in case.heard("error")]
    targets = {done.args["sub"]: done.args["target"] for done in case.done("subscribe")}
    got = {(targets.get(heard["sub"]), str(heard["position"])) for heard in case.heard("message")}
    for window in case.facts.windows:
        for arrival in window.arrivals:
            doubtful = {(window.target, str(record.position)) for record in arrival.doubtful}
            if doubtful and doubtful <= got:
                continue  # nothing is missing
            until_s = arrival.at.t + DAMAGE_S + case.slack_s
            over = until_s > case.ended_s or (window.closed is not None and window.closed.t < until_s)
            if arrival.damaged and not over and not any(at > arrival.at for at in reported):
                yield May("skips_damaged", "a delivery was damaged, and no error was reported"), arrival.at


@invariant("credit-overrun")
def credit_overrun(case: Case) -> Iterator[Violation]:
    """The client allows no more deliveries at a time than the application ordered.

    Why:
        A slow consumer gets more than it can hold, and its memory grows until it dies.

    Rests on:
        RabbitMQ Stream: one credit is one chunk (docs/protocols/rabbitmq-stream.md, "Credits").

    Example:
        credit for 5 more deliveries was sent, 4 had come.

    Judges:
        rabbitmq-stream
    """
    own = _own_credit(case)
    for window in case.facts.windows:
        arrived = [arrival.at for arrival in window.arrivals]
        granted = 0
        for at, count in window.granted:
            granted += count
            came = sum(1 for one in arrived if one < at)
            given = sum(n for begun, _, of, n in own if begun < at and of in (None, window.target))
            if granted > came + given and (window.closed is None or at < window.closed):
                besides = f", and the application had given {given}" if given else ""
                text = f"credit for {granted} more deliveries was sent, {came} had come{besides}"
                yield May("own_credit", text), at
                break


def _own_credit(case: Case) -> list[tuple[Position, bool, Any, int]]:
    """The credit that the application gave by itself: when, whether the client took it, for which target
    (None: for several that the client finds), and how much."""
    spreads = case.traits.delivery.spreads
    subscribes = list(case.done("subscribe"))
    of = {done.args["sub"]: None if spreads(done.args) else done.args["target"] for done in subscribes}
    return [
        (done.begun, bool(done.result and done.result.ok), of.get(done.args["sub"]), done.args["credit"])
        for done in case.done(*case.traits.delivery.crediting)
    ]


@invariant("credit-leak")
def credit_leak(case: Case) -> Iterator[Violation]:
    """A subscription at rest is allowed as many deliveries as at first.

    Why:
        The consumer gets slower with each lost credit, and stops for good when none is left.

    Rests on:
        RabbitMQ Stream: a chunk uses up one credit, and only Credit brings it back
            (docs/protocols/rabbitmq-stream.md, "Credits").

    Example:
        10 deliveries came, credit was sent for 9.

    Judges:
        rabbitmq-stream
    """
    at = case.mark("subscribed")
    if at is None or not case.traits.delivery.crediting:
        return
    own = _own_credit(case)
    for window in case.facts.windows:
        opened = window.opened
        if opened is None or (window.closed is not None and window.closed <= at):
            continue
        if not window.conn.stands(at):
            continue
        arrived = sum(1 for arrival in window.arrivals if arrival.at.t < at.t - LOOK_BACK_S)
        granted = sum(count for position, count in window.granted if position < at)
        given = sum(n for begun, ok, of, n in own if ok and of == window.target and opened < begun < at)
        if granted < arrived + given:
            besides = f", the application gave {given} more" if given else ""
            text = f"{arrived} deliveries came{besides}, credit was sent for {granted}"
            yield May("own_credit", text), at


@invariant("close-is-prompt")
def close_is_prompt(case: Case) -> Iterator[Violation]:
    """A close lets running callbacks end, and begins no others.

    Why:
        A shutdown takes as long as the whole backlog, and messages are processed by an application that is
        stopping.

    Rests on:
        common sense: what is not delivered yet is not lost: it is not acknowledged, or its position is not
            stored.

    Example:
        message "88" was delivered 3.2 s after close had begun.
    """
    closes = [done for done in case.done("close") if done.phase == "close" and done.ended is not None]
    if not closes or case.traits.delivery.drains_on_close or case.notes.has_several_sessions:
        return
    for heard in case.heard("message"):
        if closes[-1].begun.t + DUE_S + case.slack_s < heard.at.t and heard.at < closes[-1].ended:  # type: ignore[operator]
            name, into_s = named_by(heard["position"], heard["body"]), heard.at.t - closes[-1].begun.t
            yield May("drains", f"{name} was delivered {into_s:.1f} s after close had begun"), heard.at


def _event(heard: ReportedEvent) -> str:
    """What the application got; of a large body its size and a sum are reported."""
    body: Any = heard["body"]
    return shown(body if "sha256" in body else body_bytes(body))


@invariant("surfaces-what-came")
def surfaces_what_came(case: Case) -> Iterator[Violation]:
    """Each listener gets each event for it that came to the client, once, in order, and no other.

    Why:
        Services miss events, or act on them twice.

    Rests on:
        Moleculer: a listener runs for events whose name matches its pattern and whose groups hold its own
            (docs/protocols/moleculer.md, 4.8).

    Example:
        {"n": 3} came, and was not delivered to the application.

    Judges:
        moleculer
    """
    closing, delivery = case.mark("close"), case.traits.delivery
    if len({done.args.get("session") for done in case.done(*delivery.listening)}) > 1:
        return  # what came for which session cannot be known
    for done in case.done(*delivery.listening):
        if done.result is None or not done.result.ok or done.ended is None:
            continue
        due = delivery.due(case, done.args, done.ended)
        got = [heard for heard in case.heard("message") if heard["sub"] == done.args["sub"]]
        left = list(due)
        for heard in got:
            place = next((n for n, row in enumerate(left) if _is_event(case, heard, *row)), None)
            if place is None:
                body = heard["body"]
                others = "" if "sha256" in body else delivery.for_others(case, done.args, body_bytes(body))
                why = f"though it came for {others} alone" if others else "unasked, or again"
                yield f"{_event(heard)} was delivered {why}", heard.at
                continue
            if place:
                at, record = left[0]
                text = f"{_event(heard)} was delivered, {shown(record.body)} was due"
                text += after_a_failure(case, done.args["sub"], record.body)
                yield May("shuffles", text), at, heard.at
            del left[place]
        for at, record in left:
            if at.t + DUE_S + case.slack_s < (case.ended_s if closing is None else closing.t):
                text = f"{shown(record.body)} came, and was not delivered to the application"
                yield text + after_a_failure(case, done.args["sub"], record.body), at


def _is_event(case: Case, heard: ReportedEvent, at: Position, record: Record) -> bool:
    """Whether this is the event that came then."""
    reported = heard["body"]
    is_it = is_body(reported, record.body) or (
        "sha256" not in reported and case.traits.delivery.is_same(body_bytes(reported), record.body)
    )
    return bool(is_it and case.may_precede(at, heard.at))
