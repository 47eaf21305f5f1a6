"""Messages that come again until they are settled: delivered as they came, answered as was ordered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from conformance.clients.adapter.kit.bodies import body_parts, key_bytes
from conformance.rules.confirming import settled_by_hand
from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import was_left_alone
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Handed, Should
from conformance.run.reported import ReportedEvent, bodies_of, joined
from conformance.run.showing import message, shown
from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.server import WALL_ON_VIRTUAL_TIME

DUE_S = 0.5  #: what a client may take to hand a message over, besides the callbacks in front of it
WRITE_S = 1.0  #: what it may take to answer, or to report
EARLY_S = 0.001


class SettleDecision(NamedTuple):
    """What the application has decided on a message.

    Attributes:
        at_s: From when on the client may say so.
        is_sure: Whether it has to.
    """

    key: bytes
    positive: bool
    at: Position
    at_s: float
    is_sure: bool


def _plans(case: Case) -> dict[str, dict[str, Any]]:
    """What is done with the messages of each subscription."""
    return {done.args["sub"]: done.args.get("on_message") or {} for done in case.done("subscribe")}


def _key(heard: ReportedEvent) -> bytes:
    return key_bytes(heard["position"]) or b""


def delivered(case: Case) -> list[tuple[ReportedEvent, bytes, int]]:
    """What the application got: the event, the key, and its ordinal in its subscription."""
    if "surfaced" not in case.shared:
        counts: Counter[str] = Counter()
        found = case.shared["surfaced"] = []
        for heard in case.heard("message"):
            counts[heard["sub"]] += 1
            found.append((heard, _key(heard), counts[heard["sub"]]))
    rows: list[tuple[ReportedEvent, bytes, int]] = case.shared["surfaced"]
    return rows


def _sleep_s(plan: dict[str, Any], ordinal: int) -> float:
    return float(plan.get("sleep_ms", 0)) / 1000 if ordinal in plan.get("sleep_on", (ordinal,)) else 0.0


def _orders(case: Case) -> list[SettleDecision]:
    """All decisions of the application, in order."""
    if "orders" not in case.shared:
        case.shared["orders"] = _orders_of(case)
    orders: list[SettleDecision] = case.shared["orders"]
    return orders


def _orders_of(case: Case) -> list[SettleDecision]:
    plans, found = _plans(case), []
    for done, heard in settled_by_hand(case):
        key = None if heard is None else _key(heard)
        if key is not None and done.result is not None:
            how = done.args.get("how", "ack")
            found.append(SettleDecision(key, how == "ack", done.begun, done.begun.t, done.result.ok))
    for heard, key, ordinal in delivered(case):
        plan = plans.get(heard["sub"], {})
        at_s = heard.at.t + _sleep_s(plan, ordinal)
        if plan.get("auto_settle") == "ack":
            found.append(SettleDecision(key, True, heard.at, at_s, True))
        if ordinal in plan.get("raise_on", ()):
            found.append(SettleDecision(key, False, heard.at, at_s, True))
    return sorted(found, key=lambda one: one.at_s)


def _is_over(case: Case, begun: Position, until_s: float, one: Handed | None = None) -> bool:
    """Whether the application has begun to end something by then, or the run has.

    Args:
        one: A delivery; the end of a subscription that it cannot be for does not count.
    """
    ends = [
        done.begun
        for done in case.done("unsubscribe", "close", "abort", "connect")
        if one is None or done.op != "unsubscribe" or not _is_for_another(case, done, one)
    ]
    begins = [done.begun.row for done in case.done("subscribe") if done.begun < begun]
    since = begins[-1] if begins else begun.row
    return until_s > case.ended_s or any(
        (since < end.row or (case.slack_s and not case.before(end, begun))) and end.t <= until_s
        for end in ends
    )


def _is_for_another(case: Case, end: RunOp, one: Handed) -> bool:
    """Whether a delivery that came after the end of a subscription is for one that goes on."""
    over = end.ended
    if over is None or not case.before(over, one.at):
        return False
    if one.conn.ended is not None and one.conn.ended.t <= over.t + WRITE_S + case.slack_s:
        return False  # its connection was that of the subscription
    ended = {done.args["sub"] for done in case.done("unsubscribe")}
    return any(done.begun < end.begun and done.args["sub"] not in ended for done in case.done("subscribe"))


def _stands(case: Case, begun_s: float, until_s: float) -> bool:
    """Whether all connections for deliveries were there all the time."""
    if "delivering" not in case.shared:
        case.shared["delivering"] = list({one.conn.name: one.conn for one in case.facts.handed}.values())
    conns: list[Conn] = case.shared["delivering"]
    return any(conn.accepted.t <= begun_s for conn in conns) and all(
        conn.ended is None or not begun_s - WRITE_S <= conn.ended.t <= until_s for conn in conns
    )


def whole(case: Case) -> list[Handed]:
    """What was delivered to the client with all that belongs to a delivery."""
    return [one for one in case.facts.handed if not one.damaged]


def filters(case: Case) -> bool:
    """Whether the application wants nothing that has expired."""
    return any((done.args.get("options") or {}).get("filter_expired") for done in case.done("subscribe"))


@invariant("delivers-what-came")
def surfaces_only_what_came(case: Case) -> Iterator[Violation]:
    """The application gets only what was delivered to the client, as it came, and no more often."""
    if not case.traits.settlement.redelivers:
        return
    left: dict[bytes, list[Handed]] = defaultdict(list)
    for one in whole(case):
        left[one.key].append(one)
    for heard, key, _ in delivered(case):
        body = _body(heard)
        fits = [one for one in left[key] if one.at < heard.at and body in (None, one.body)]
        if not fits:
            if any(one.damaged and one.key == key and one.at < heard.at for one in case.facts.handed):
                text = f"message {shown(key)} was delivered, and what came of it has no times, or no body"
                yield May("skips_damaged", text), heard.at
                continue
            yield f"message {shown(key)} was delivered unasked, again, or changed", heard.at
            return
        exact = [one for one in fits if reports(heard, one)]
        if not exact:
            wanted = fits[0].details
            names = [name for name in wanted if name in heard["meta"] and not reports(heard, fits[0], name)]
            got = {name: heard["meta"][name] for name in names}
            text = f"message {shown(key)} was delivered with {shown(got)}"
            yield f"{text}, it has {shown({name: wanted[name] for name in names})}", heard.at
            return
        left[key].remove(exact[0])


def _body(heard: ReportedEvent) -> bytes | None:
    """None where it is too large to be reported."""
    body: Any = heard["body"]
    parts = [body] if isinstance(body, dict) else body
    return None if any("sha256" in part for part in parts) else joined(body_parts(body))


def reports(heard: ReportedEvent, one: Handed, *names: str) -> bool:
    """Whether an event agrees with a delivery in these details, or in all that it has."""
    meta = heard["meta"]
    return all(str(meta[name]) == str(one.details[name]) for name in names or one.details if name in meta)


@invariant("delivers-what-came")
def surfaces_all_that_came(case: Case) -> Iterator[Violation]:
    """The application gets all that was delivered to the client, but for what it has settled, or what is
    stale.
    """
    plans, came = _plans(case), delivered(case)
    if not case.traits.settlement.redelivers or not plans:
        return
    may_be_stale = filters(case) and (case.hits > 0 or not case.is_truthful)
    settled: dict[bytes, Position] = {}
    for order in _orders(case):
        if order.positive:
            settled.setdefault(order.key, order.at)
    got: dict[bytes, list[Position]] = defaultdict(list)
    for heard, key, _ in came:
        got[key].append(heard.at)
    due: Counter[bytes] = Counter()
    busy_s = 0.0  #: the callbacks for this one and for all that came before
    for ordinal, one in enumerate(whole(case), 1):
        busy_s += max(_sleep_s(plan, ordinal) for plan in plans.values())
        until_s = one.at.t + DUE_S + busy_s + case.slack_s
        if may_be_stale and not _stays_fresh(case, one, until_s):
            continue
        due[one.key] += 1
        before = settled.get(one.key)
        if (before is not None and before.t <= until_s) or _is_over(case, one.at, until_s, one):
            continue
        if case.may_be_unread(one.conn, one.at):
            continue
        if sum(1 for at in got[one.key] if at.t <= until_s) < due[one.key]:
            text = f"message {shown(one.key)} came, and was not delivered to the application"
            yield text, one.at


def _stays_fresh(case: Case, one: Handed, until_s: float) -> bool:
    """Whether a delivery says that it is good until then, by clocks that agree: those of virtual time."""
    if one.stale_from_s is None or case.slack_s or any(case.done("set_clock")):
        return False
    return one.stale_from_s > WALL_ON_VIRTUAL_TIME + until_s + EARLY_S


@invariant("surfaced-in-order")
def surfaced_in_order(case: Case) -> Iterator[Violation]:
    """What comes for the first time to the only subscription is delivered to the application in the order
    in which it came.

    Why:
        Updates of one object are applied in the wrong order.

    Rests on:
        PZQ: the daemon fixes the order of deliveries to a consumer (docs/protocols/pzq.md, "Who gets what,
            and in which order").
        common sense: a client has no reason to change the order of what it reads from one socket.

    Example:
        message "K2" was delivered after what came later.

    Judges:
        pzq
    """
    if not case.traits.settlement.redelivers or len(list(case.done("subscribe"))) != 1 or filters(case):
        return
    if len({one.conn.name for one in case.facts.handed}) != 1:
        return
    first: dict[bytes, int] = {}
    for number, one in enumerate(whole(case)):
        first.setdefault(one.key, number)
    last = -1
    for heard, key, _ in delivered(case):
        at = first.pop(key, None)
        if at is not None:
            if at < last:
                yield f"message {shown(key)} was delivered after what came later", heard.at
            last = max(at, last)


@invariant("settled-for-good")
def settled_for_good(case: Case) -> Iterator[Violation]:
    """What the application has settled positively is not delivered to it again, but acknowledged again when
    it comes.

    Why:
        Work is done twice after each lost acknowledgement, though the id shows that it was done.

    Rests on:
        PZQ: the message id serves acknowledgement and duplicate detection; redelivery goes on without end
            (docs/protocols/pzq.md, "Ack timeout").

    Example:
        message "K1" was delivered again, and had been settled.

    Judges:
        pzq
    """
    if not case.traits.settlement.redelivers or len(_plans(case)) != 1:
        return
    first: dict[bytes, SettleDecision] = {}
    for order in _orders(case):
        if order.positive and order.is_sure:
            first.setdefault(order.key, order)
    for heard, key, _ in delivered(case):
        if key in first and heard.at.t > first[key].at_s + DUE_S and heard.at > first[key].at:
            text = f"message {shown(key)} was delivered again, and had been settled"
            yield May("dedup", text), heard.at
    slow_s = max((_sleep_s(plan, 1) for plan in _plans(case).values()), default=0.0) * len(case.facts.handed)
    for one in whole(case):
        until_s = one.at.t + WRITE_S + slow_s + case.slack_s
        if one.key not in first or one.at.t < first[one.key].at_s + DUE_S:
            continue
        if _is_over(case, one.at, until_s) or not _stands(case, one.at.t, until_s):
            continue
        if not any(w.key == one.key and w.positive and one.at < w.at for w in case.facts.answered):
            text = f"message {shown(one.key)} came again after it had been settled, and got no answer"
            yield May("dedup", text), one.at


@invariant("confirms-by-order")
def confirms_by_order(case: Case) -> Iterator[Violation]:
    """A message is confirmed, or given back, only because the application decided so, and as often."""
    if not case.traits.settlement.redelivers:
        return
    orders: dict[tuple[bytes, bool], list[SettleDecision]] = defaultdict(list)
    for order in _orders(case):
        orders[order.key, order.positive].append(order)
    come: dict[bytes, list[Position]] = defaultdict(list)
    for handed in case.facts.handed:
        come[handed.key].append(handed.at)
    said: Counter[tuple[bytes, bool]] = Counter()
    for one in case.facts.answered:
        said[one.key, one.positive] += 1
        fits = [
            order for order in orders[one.key, one.positive]
            if case.may_precede(order.at, one.at) and order.at_s - EARLY_S - case.slack_s <= one.at.t
        ]  # fmt: skip
        again = 0
        if fits and one.positive:
            again = sum(1 for at in come[one.key] if fits[0].at < at < one.at)
            again += sum(1 for at in come[one.key] if at < fits[0].at) - 1
        if said[one.key, one.positive] > len(fits) + again:
            word = "confirmed" if one.positive else "given back"
            yield f"message {shown(one.key)} was {word} unasked, or again", one.at


@invariant("confirms-what-was-ordered")
def confirms_what_was_ordered(case: Case) -> Iterator[Violation]:
    """What the application has settled is answered to the broker, while the connection is open."""
    if not case.traits.settlement.redelivers:
        return
    said: Counter[tuple[bytes, bool]] = Counter((one.key, one.positive) for one in case.facts.answered)
    wanted: Counter[tuple[bytes, bool]] = Counter()
    for order in _orders(case):
        until_s = order.at_s + WRITE_S + case.slack_s
        if not order.is_sure or _is_over(case, order.at, until_s) or not _stands(case, order.at_s, until_s):
            continue
        wanted[order.key, order.positive] += 1
        if said[order.key, order.positive] < wanted[order.key, order.positive]:
            word = "confirmed" if order.positive else "given back"
            yield f"message {shown(order.key)} was not {word}", order.at


@invariant("confirms-what-was-ordered")
def confirms_before_its_end(case: Case) -> Iterator[Violation]:
    """What the application has settled before it ended the subscription or the session is answered yet."""
    if not case.traits.settlement.redelivers:
        return
    said: Counter[tuple[bytes, bool]] = Counter((one.key, one.positive) for one in case.facts.answered)
    wanted: Counter[tuple[bytes, bool]] = Counter()
    for order, end in _orders_before_an_end(case):
        wanted[order.key, order.positive] += 1
        if said[order.key, order.positive] < wanted[order.key, order.positive]:
            word = "confirmed" if order.positive else "given back"
            text = f"message {shown(order.key)} was not {word}, though the application decided so"
            yield Should(f"{text} before its {end.op}"), order.at, end.begun


def _orders_before_an_end(case: Case) -> Iterator[tuple[SettleDecision, RunOp]]:
    """Sure orders that a client could carry out before the application ended what they belong to."""
    conns = {id(one.conn): one.conn for one in case.facts.handed}.values()
    if any(conn.lost() for conn in conns):
        return
    over = min((conn.ended for conn in conns if conn.ended is not None), default=None)
    ends = [done for done in case.done("unsubscribe", "close") if done.result is not None and done.result.ok]
    for order in _orders(case):
        end = next((done for done in ends if done.begun.t > order.at_s + EARLY_S + case.slack_s), None)
        if end is None or not order.is_sure or _is_over(case, order.at, order.at_s + EARLY_S):
            continue
        if _stands(case, order.at_s, order.at_s) and (over is None or over >= end.begun):
            yield order, end


@invariant("untouched-works")
def what_waits_can_be_settled(case: Case) -> Iterator[Violation]:
    """Where nothing is disturbed, what waits for an acknowledgement, as was ordered, can be acknowledged."""
    if not was_left_alone(case):
        return
    waiting = {done.args["sub"] for done in case.done("subscribe") if done.args.get("options", {}).get("ack")}
    plans = _plans(case)
    places = {(heard["sub"], heard["ref"]): place for place, heard in enumerate(case.heard("message"))}
    below: dict[str, int] = defaultdict(lambda: -1)
    settled: set[int] = set()
    ends = min((done.begun for done in case.done("unsubscribe", "close", "abort")), default=None)
    for done in case.done("settle"):
        sub, how, place = done.args["sub"], done.args["how"], places.get((done.args["sub"], done.args["ref"]))
        if place is None or sub not in waiting or (ends and ends < done.begun):
            continue
        if plans.get(sub, {}).get("auto_settle") == "ack":
            continue
        waits = place > below[sub] and place not in settled
        if waits and how != "nack" and done.result is not None and done.result.word == "invalid":
            yield f"settle ({how}) failed, and the message waits for it: {done.result}", done.ended
        settled.add(place)
        below[sub] = max(below[sub], place if how == "ack_to" else -1)


@invariant("damage-is-told")
def damage_is_told(case: Case) -> Iterator[Violation]:
    """What cannot be read of a delivery, and each failure of a callback, is reported to the application."""
    if not case.traits.settlement.redelivers:
        return
    reported = [heard.at for heard in case.heard("error")]
    for one in case.facts.handed:
        until_s = one.at.t + WRITE_S + case.slack_s
        if not one.damaged or _is_over(case, one.at, until_s):
            continue
        if not any(one.at < at and at.t < until_s for at in reported):
            yield "a delivery was damaged, and no error was reported", one.at
    plans = _plans(case)
    for heard, _, ordinal in delivered(case):
        plan = plans.get(heard["sub"], {})
        until_s = heard.at.t + _sleep_s(plan, ordinal) + WRITE_S + case.slack_s
        if ordinal not in plan.get("raise_on", ()) or _is_over(case, heard.at, until_s):
            continue
        if not any(heard.at < at and at.t <= until_s for at in reported):
            yield f"the callback for {shown(_key(heard))} failed, and no error was reported", heard.at


@invariant("writes-what-was-given")
def writes_what_was_given(case: Case) -> Iterator[Violation]:
    """A message on the wire is one that the application has published."""
    if not case.traits.settlement.redelivers:
        return
    given: dict[bytes, list[RunOp]] = defaultdict(list)
    for done in case.done("publish", "publish_many"):
        for body in bodies_of(done):
            given[body].append(done)
    for one in case.facts.written:
        if one.body is None or one.body in case.published_besides:
            continue
        if not any(done.begun < one.at for done in given.get(one.body, [])):
            yield f"{message(one.body)} was written, which the application did not publish", one.at


@invariant("asks-again")
def asks_again(case: Case) -> Iterator[Violation]:
    """A message that gets no answer is written again before it is given up.

    Why:
        A reply that was lost, as happens with a busy daemon, looks like a failure.

    Rests on:
        PZQ: replies can be lost without any fault, so a producer without a reply writes the message again
            (docs/protocols/pzq.md, "Producer").

    Example:
        message "tea" was reported as unknown, and it was written only once.

    Judges:
        pzq
    """
    if not case.traits.settlement.repeats:
        return
    count = Counter(one.body for one in case.facts.written)
    for reported in case.reported:
        result = reported.done.result
        if (
            reported.word != "unknown"
            or result is None
            or result.word != "timeout"
            or count[reported.body] != 1
        ):
            continue
        [one] = [each for each in case.facts.written if each.body == reported.body]
        ends = [conn.ended for conn in case.conns.values() if conn.socket == one.conn.socket]
        if not any(
            end is not None and reported.done.begun < end and end.t <= reported.deadline_s for end in ends
        ):
            yield May("retry", f"{reported}, and it was written only once"), one.at


@invariant("ids-differ")
def ids_differ(case: Case) -> Iterator[Violation]:
    """Messages of a session to which the application gave no ids of their own get different ones.

    Why:
        A reply acknowledges the wrong message: one that was refused counts as stored.

    Rests on:
        PZQ: the daemon echoes the id, to the socket from which it came, and checks nothing
            (docs/protocols/pzq.md, "Producer").

    Example:
        message "milk" has the id of message "tea".

    Judges:
        pzq
    """
    if not case.traits.settlement.redelivers:
        return
    free = {body for d in case.done("publish") if d.args.get("key") is None for body in bodies_of(d)}
    seen: dict[Any, bytes] = {}
    for one in case.facts.written:
        if one.body is None or one.body not in free:
            continue
        if seen.setdefault(one.place, one.body) != one.body:
            yield f"{message(one.body)} has the id of {message(seen[one.place])}", one.at


@invariant("written-once")
def written_under_one_id(case: Case) -> Iterator[Violation]:
    """A message that is written again has the id that it had at first."""
    if not case.traits.settlement.repeats:
        return
    published = Counter(body for done in case.done("publish", "publish_many") for body in bodies_of(done))
    first: dict[bytes, Any] = {}
    for one in case.facts.written:
        if one.body is None or published[one.body] != 1 or one.body in case.published_besides:
            continue
        if first.setdefault(one.body, one.place) != one.place:
            ids = f"{shown(first[one.body][-1])} and {shown(one.place[-1])}"
            yield f"{message(one.body)} was written under two ids, {ids}", one.at


@invariant("errors-for-a-reason")
def errors_for_a_reason(case: Case) -> Iterator[Violation]:
    """Where the transport reconnects by itself, no error is reported while the broker sends nothing wrong
    and no callback fails.

    Why:
        Alarms without a cause: people learn to ignore them.

    Rests on:
        PZQ: libzmq opens connections again by itself (docs/protocols/pzq.md, "Restart").

    Example:
        an error was reported without a reason: {"kind": "timeout"}.

    Judges:
        pzq
    """
    if not case.traits.connecting.unseen_connections or not case.is_truthful or case.notes.raises:
        return
    if any(plan.get("raise_on") for plan in _plans(case).values()):
        return
    for heard in case.heard("error"):
        yield f"an error was reported without a reason: {shown(heard['error'])}", heard.at
