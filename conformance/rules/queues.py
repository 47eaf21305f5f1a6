"""Queues: what has come is delivered to the application, and what the application is done with is
confirmed, once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from conformance.clients.adapter.messages import body_bytes
from conformance.rules.registry import May, Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Record, Should, Window
from conformance.run.reported import ReportedEvent, bodies_of
from conformance.run.showing import counted, message, shown
from conformance.run.trace import Position
from conformance.run.traits import OneOf

DUE_S = 0.5  #: what a client may take to hand a message over, besides the callbacks in front of it
WRITE_S = 1.0  #: what it may take to write a confirm
Come = tuple[Position, Window, Record]
Name = tuple[str, Any]  #: of a message: its target and its id


def plain(value: Any) -> Any:
    """A property as ops, events and wires write it, in one form: bytes, text, or a mapping of them. What is
    no text is the text that JSON has for it."""
    if isinstance(value, Mapping):
        if any(name in value for name in ("b64", "text", "gen")):
            return body_bytes(value)
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, OneOf):
        return OneOf(plain(one) for one in value)
    if value is None or isinstance(value, bool | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value if isinstance(value, bytes) or value is UNSET else str(value)


def _alike(got: Any, given: Any) -> bool:
    """Whether two plain properties are the same, where one of them may be the text of a list or an object:
    a client whose properties are texts has nothing else for it."""
    if isinstance(got, OneOf):
        got, given = given, got
    if isinstance(given, OneOf):
        return any(_alike(got, one) for one in given)
    if isinstance(got, Mapping) and isinstance(given, Mapping):
        names = got.keys() | given.keys()
        return all(_alike(got.get(name, UNSET), given.get(name, UNSET)) for name in names)
    return bool(got == given) or _structure(got) == _structure(given) is not None


def _structure(value: Any) -> Any:
    """The list or the object that a property is, or is the text of; None for any other."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return plain(value) if isinstance(value, Mapping | list) else None


def _subscribed(case: Case) -> Iterator[RunOp]:
    """The subscriptions of targets that have no other one."""
    ops = [done for done in case.done("subscribe") if done.result is not None]
    counts = Counter(done.args["target"] for done in ops)
    names = Counter(done.args["sub"] for done in ops)
    return (done for done in ops if counts[done.args["target"]] == names[done.args["sub"]] == 1)


def _come(case: Case, target: str | None = None) -> list[Come]:
    """All that came for a target, on whatever connection, in order."""
    rows = [
        (arrival.at, window, record)
        for window in case.facts.windows
        if target in (None, window.target)
        for arrival in window.arrivals
        for record in arrival.records
    ]
    return sorted(rows, key=lambda row: row[0])


def pause_s(done: RunOp) -> float:
    return float((done.args.get("on_message") or {}).get("sleep_ms", 0)) / 1000


@invariant("delivers-what-came")
def delivers_what_came(case: Case) -> Iterator[Violation]:
    """The application gets every message that was delivered, as often as it was, in order, and no other."""
    if case.traits.delivery.is_log or case.traits.settlement.redelivers:
        return
    slow_s = sum(pause_s(done) for done in case.done("subscribe"))
    times = [at.t for at, _, _ in _come(case)]
    for done in _subscribed(case):
        come = _come(case, done.args["target"])
        place = 0
        for heard in case.heard("message"):
            if heard["sub"] != done.args["sub"]:
                continue
            skipped = []
            while place < len(come) and not _same(heard, come[place][2]):
                skipped.append(come[place])
                place += 1
            if place == len(come) or heard.at < come[place][0]:
                yield _not_due(case, heard, come), heard.at
                break
            yield from _passed_over(case, done, skipped, heard.at)
            yield from _same_properties(case, heard, come[place][2])
            place += 1
        else:
            for at, window, record in come[place:]:
                latest_s = max(at.t, done.begun.t) + DUE_S + slow_s * sum(1 for t in times if t <= at.t)
                if _was_due(case, done, window, latest_s + case.slack_s):
                    where = shown(record.position)
                    yield f"message {where} came, and was not delivered to the application", at
                    break


@invariant("delivers-what-came")
def delivers_what_came_to_several(case: Case) -> Iterator[Violation]:
    """What comes for a target with several subscriptions is delivered to one of them."""
    if case.traits.delivery.is_log or case.traits.settlement.redelivers:
        return
    slow_s = sum(pause_s(done) for done in case.done("subscribe"))
    times = [at.t for at, _, _ in _come(case)]
    for target, subscribed in _shared_targets(case):
        left = [one for one in case.heard("message") if one["target"] == target]
        begun_s = max(done.begun.t for done in subscribed)
        for at, window, record in _come(case, target):
            latest_s = max(at.t, begun_s) + DUE_S + slow_s * sum(1 for t in times if t <= at.t)
            if not any(_was_due(case, done, window, latest_s + case.slack_s) for done in subscribed):
                continue
            heard = next((one for one in left if _same(one, record) and case.may_precede(at, one.at)), None)
            if heard is not None:
                left.remove(heard)
            else:
                text = f"message {shown(record.position)} came for one of the subscriptions of {target}"
                yield f"{text}, and was delivered to none", at


def _shared_targets(case: Case) -> Iterator[tuple[str, list[RunOp]]]:
    """Targets that are subscribed to more than once, with the subscriptions that were successful."""
    found: dict[str, list[RunOp]] = defaultdict(list)
    for done in case.done("subscribe"):
        if done.result is not None and done.result.ok:
            found[done.args["target"]].append(done)
    for target, subscribed in found.items():
        if len(subscribed) > 1:
            yield target, subscribed


@invariant("delivers-what-came")
def delivers_what_came_meanwhile(case: Case) -> Iterator[Violation]:
    """What comes for an open queue between two callbacks is delivered to the later one."""
    if case.traits.delivery.is_log or case.traits.settlement.redelivers:
        return
    for target, before, after in _handed_on(case):
        heard = [one for one in case.heard("message") if one["target"] == target]
        slow_s = sum(pause_s(done) for done in case.done("subscribe") if done.args["target"] == target)
        rows = [row for row in _come(case, target) if before < row[0] < after.begun]
        latest_s = after.begun.t + DUE_S + slow_s * len(_come(case, target)) + case.slack_s
        for at, window, record in rows:
            is_there = any(_same(one, record) for one in heard)
            if not is_there and _was_due(case, after, window, latest_s):
                text = (
                    f"message {shown(record.position)} came between two callbacks, and was delivered to none"
                )
                yield Should(text), at, after.begun


def _handed_on(case: Case) -> Iterator[tuple[str, Position, RunOp]]:
    """Targets without a callback for a while: since when, and the subscription that ended it."""
    ends = {
        done.args["sub"]: done.ended
        for done in case.done("unsubscribe")
        if done.result is not None and done.result.ok
    }
    last: dict[str, RunOp] = {}
    for done in case.done("subscribe"):
        if done.result is None or not done.result.ok:
            continue
        before = last.get(done.args["target"])
        last[done.args["target"]] = done
        ended = ends.get(before.args["sub"]) if before is not None else None
        if ended is not None and ended < done.begun:
            yield done.args["target"], ended, done


def _not_due(case: Case, heard: ReportedEvent, come: list[Come]) -> str:
    """What is wrong with a message that the application got though it was not the one that was due."""
    where = "" if heard["position"] is None else f" {shown(heard['position'])}"
    at_its_place = [record for _, _, record in come if record.position == heard["position"]]
    if at_its_place and not any(_is_body(heard, record) for record in at_its_place):
        return f"message{where} was delivered with a body that did not come"
    is_odd = any(
        case.is_unread(window.conn, heard.at)
        for window in case.facts.windows
        if window.target == heard["target"]
        if window.conn.ended is None or heard.at.t < window.conn.ended.t + DUE_S
    )
    why = "read from frames that are not as the protocol has them" if is_odd else "again, or out of order"
    return f"message{where} was delivered unasked, {why}"


def _passed_over(case: Case, done: RunOp, skipped: list[Come], until: Position) -> Iterator[Violation]:
    """Messages that came, and were due before a later one was delivered."""
    for at, window, record in skipped:
        if _was_due(case, done, window, until.t):
            text = f"message {shown(record.position)} was passed over"
            hurt = any(arrival.damaged for arrival in window.arrivals)
            yield May("skips_damaged", text) if hurt else text, at, until


def _was_due(case: Case, done: RunOp, window: Window, by_s: float) -> bool:
    """Whether nothing has ended a subscription, or the life that a message came in, until then."""
    target, sub = done.args["target"], done.args["sub"]
    called_off = [
        one.begun
        for one in case.done("unsubscribe", *case.traits.delivery.closing)
        if one.begun > done.begun and (one.args.get("sub") == sub or one.args.get("target") == target)
    ]
    ends = (window.closed, window.conn.ended, window.conn.garbage, case.mark("close"), *called_off)
    return window.opened is not None and by_s < case.ended_s and all(
        end is None or by_s < end.t for end in ends
    )  # fmt: skip


def _same(heard: ReportedEvent, record: Record) -> bool:
    return bool(heard["position"] == record.position) and _is_body(heard, record)


def _is_body(heard: ReportedEvent, record: Record) -> bool:
    body: Any = heard["body"]
    return body["len"] == len(record.body) if "sha256" in body else body_bytes(body) == record.body


def _same_properties(case: Case, heard: ReportedEvent, record: Record) -> Iterator[Violation]:
    if record.properties is None:
        return
    got, wanted = plain(case.traits.delivery.properties_of(heard)), plain(record.properties)
    if not _alike(got, wanted):
        text = f"message {shown(record.position)} was delivered with"
        yield f"{text} {_differing(got, wanted)}, it has {_differing(wanted, got)}", heard.at


@invariant("writes-what-was-given")
def writes_what_was_given(case: Case) -> Iterator[Violation]:
    """A message on the wire is one that the application has published, with its properties, and goes where
    the application has sent it.

    Why:
        Receivers get other data than was sent, and no checksum notices it; or others get it.

    Rests on:
        all: bodies are opaque bytes to client and broker.
        BlazingMQ: properties have names, types and values (docs/protocols/blazingmq.md, 2.2).
        Narconi: metadata keys and their types are kept (docs/protocols/narconi.md, "publish").
        PZQ: parts after the delimiter are the body, empty ones included (docs/protocols/pzq.md,
            "Producer").

    Example:
        message "tea" was written with {"key": "B"}, the application gave {"key": "b"}.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    given: dict[bytes, list[Any]] = defaultdict(list)
    targets: dict[bytes, set[str]] = defaultdict(set)
    for done in case.done("publish", "publish_many"):
        for body in bodies_of(done):
            given[body].append(plain(case.traits.settlement.properties_given(done.args)))
            targets[body].add("" if case.traits.delivery.spreads(done.args) else done.args["target"])
    for one in case.facts.written:
        if one.body is None or one.body in case.published_besides:
            continue
        if one.body not in given:
            yield f"{message(one.body)} was written, which the application did not publish", one.at
        elif one.properties is not None and not any(
            _alike(plain(one.properties), each) for each in given[one.body]
        ):
            got, wanted = plain(one.properties), given[one.body][0]
            text = f"{message(one.body)} was written with {_differing(got, wanted)}"
            yield f"{text}, the application gave {_differing(wanted, got)}", one.at
        elif one.place[0] != "" and one.place[0] not in targets[one.body] and "" not in targets[one.body]:
            named = ", ".join(sorted(targets[one.body]))
            yield f"{message(one.body)} was written to {one.place[0]}, the application named {named}", one.at


def _differing(one: Any, other: Any) -> str:
    """What of one value is not so in another."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [name for name in one if not _alike(one[name], other.get(name, UNSET))]
        return shown({name: _first(one[name]) for name in names})
    return shown(_first(one))


def _first(value: Any) -> Any:
    """Of what may be read in several ways the plainest."""
    if isinstance(value, Mapping):
        return {name: _first(one) for name, one in value.items()}
    return value[0] if isinstance(value, OneOf) else value


def _key(name: Any) -> str:
    """What a confirm is for: one message, or all up to it (`up_to`)."""
    return f"all up to message {shown(name[1])}" if isinstance(name, tuple) else f"message {shown(name)}"


def up_to(position: Any) -> Any:
    """The name of one word for a message and all before it; see `facts.Confirmed`."""
    return "up to", position


def _orders(case: Case) -> Iterator[tuple[Name, Position, float, bool]]:
    """What the application is done with: message, since when, how long it takes, whether it is sure."""
    by_ref = {(heard["sub"], heard["ref"]): heard for heard in case.heard("message")}
    for done in case.done("settle"):
        heard = by_ref.get((done.args["sub"], done.args["ref"]))
        if heard is not None:
            is_sure = done.result is not None and done.result.ok
            position = heard["position"]
            key = up_to(position) if done.args.get("how") == "ack_to" else position
            yield (heard["target"], key), done.begun, 0.0, is_sure
    settling = {
        done.args["sub"]: done
        for done in case.done("subscribe")
        if (done.args.get("on_message") or {}).get("auto_settle") == "ack"
    }
    for heard in case.heard("message"):
        if heard["sub"] in settling and heard["position"] is not None:  # what has no name cannot be confirmed
            takes_s = pause_s(settling[heard["sub"]])
            yield (heard["target"], heard["position"]), heard.at, takes_s, not case.notes.raises


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
    for name, at, _, _ in _orders(case):
        orders[name].append(at)
    count: Counter[Name] = Counter()
    for one in case.facts.confirmed:
        name = one.target, one.key
        count[name] += 1
        if count[name] > sum(1 for at in orders[name] if case.may_precede(at, one.at)):
            yield f"{_key(one.key)} of {one.target} was confirmed unasked, or again", one.at


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
    come: dict[Name, list[Come]] = defaultdict(list)
    for row in _come(case):
        come[row[1].target, row[2].position].append(row)
    wanted: Counter[Name] = Counter()
    for name, at, takes_s, is_sure in _orders(case):
        came = come[name[0], name[1][1] if isinstance(name[1], tuple) else name[1]]
        if not is_sure or len({id(window) for _, window, _ in came}) != 1:
            continue  # what came in several lives may be confirmed in any
        window, until_s = came[0][1], at.t + takes_s + WRITE_S + case.slack_s
        if window.opened is None or window.opened > at:
            continue  # nobody says that the client has this subscription
        ends = (window.closed, window.conn.ended, window.conn.garbage, case.mark("close"))
        over = any(end is not None and end.t <= until_s for end in ends) or until_s > case.ended_s
        wanted[name] += not over
        if confirmed[name] < wanted[name]:
            text = f"{_key(name[1])} of {name[0]} was confirmed {counted(confirmed[name], 'time')}"
            yield f"{text}, not {wanted[name]}", at
