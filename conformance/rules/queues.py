"""Queues: what has come is delivered to the application, and messages on the wire are what it has given."""

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
from conformance.run.showing import message, shown
from conformance.run.trace import Position
from conformance.run.traits import OneOf

DUE_S = 0.5  #: what a client may take to hand a message over, besides the callbacks in front of it
WRITE_S = 1.0  #: what it may take to write a confirm
Come = tuple[Position, Window, Record]


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


def _begun(come: Come) -> Position:
    """From when on a message may be delivered. Its body may be whole before its frame is: what follows a
    payload of NATS tells nothing new."""
    at, window, _ = come
    return window.conn.begun.get(at, at)


def _is_doubtful(case: Case, heard: ReportedEvent) -> bool:
    """Whether it has come in a frame that is not intact, so that it may be delivered, and need not."""
    return any(
        arrival.at < heard.at and any(_same(heard, record) for record in arrival.doubtful)
        for window in case.facts.windows
        if window.target == heard["target"]
        for arrival in window.arrivals
    )


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
            if place == len(come) or heard.at < _begun(come[place]):
                if _is_doubtful(case, heard):
                    place -= len(skipped)
                    continue
                yield _not_due(case, heard, come), heard.at
                break
            yield from _passed_over(case, done, skipped, heard.at)
            yield from _same_properties(case, heard, come[place][2])
            place += 1
        else:
            for at, window, record in come[place:]:
                latest_s = max(at.t, done.begun.t) + DUE_S + slow_s * sum(1 for t in times if t <= at.t)
                if _was_due(case, done, window, latest_s + case.slack_s):
                    early = " before the application had subscribed" if at < done.begun else ""
                    text = f"message {shown(record.position)} came{early}, and was not delivered"
                    yield f"{text} to the application", at
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
            early = " came before the application had subscribed, and" if at < done.begun else ""
            text = f"message {shown(record.position)}{early} was passed over"
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
