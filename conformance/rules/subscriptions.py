"""What the application has of a target is on the wire, once and as ordered, or is reported as gone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.rules.recovery import was_refused, was_reported_gone
from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import asked_by_ops
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question, Window
from conformance.run.showing import counted, shown
from conformance.run.trace import Position
from fakebrokers.core.frames import kind_of

ENDS_S = 2.0  #: what an end may take on the wire once the application has been told of it


def _alive(case: Case) -> list[Window] | None:
    """The windows that are open when the base says that all subscriptions should be; None if it does not."""
    at = case.mark("subscribed")
    if at is None:
        return None
    return [
        window
        for window in case.facts.windows
        if window.opened is not None
        and window.opened < at
        and (window.closed is None or window.closed > at)
        and window.conn.stands(at)
    ]


def _wanted(case: Case, *, or_asked: bool = False) -> Counter[str]:
    """How many subscriptions of each target the application has at that time.

    Args:
        or_asked: With those for which it still waits, and those whose end was not reported as done: their ops
            have not said what has become of them.
    """
    at = case.mark("subscribed")
    assert at is not None
    ended = _ended_by(case, at, surely=or_asked)
    found: Counter[str] = Counter()
    for done in case.done("subscribe"):
        result = done.result
        if result is None or not (result.ok or (or_asked and result.hang)):
            continue
        if done.begun < at and done.args["sub"] not in ended and not _went_with_others(case, done, at):
            found[done.args["target"]] += case.traits.delivery.subscriptions(case, done.args)
    return Counter(dict.fromkeys(found, 1)) if case.traits.delivery.shares else found


def _ended_by(case: Case, at: Position, *, surely: bool) -> set[str]:
    """The subscriptions that the application had ended by then, in a callback or outside.

    Args:
        surely: Only those of which it was reported.
    """
    inner = [heard for heard in case.heard("done") if heard["op"] == "unsubscribe" and heard["ok"]]
    tries = [done for done in case.done("unsubscribe") if done.begun < at]
    outer = {done.args["sub"] for done in tries if not surely or (done.result is not None and done.result.ok)}
    return outer | {heard["sub"] for heard in inner if heard.at < at}


def _went_with_others(case: Case, subscribed: RunOp, at: Position) -> bool:
    """Whether the application had closed the target of a subscription, or its session."""
    closes = case.done(*case.traits.delivery.closing)
    targets = [done.begun for done in closes if done.args["target"] == subscribed.args["target"]]
    ends = case.done("close", "abort")
    sessions = [done.begun for done in ends if done.args["session"] == subscribed.args["session"]]
    return any(subscribed.begun < begun < at for begun in (*targets, *sessions))


def _is_kept(case: Case, target: str) -> bool:
    """Whether the application has tried to close a target, and it was reported that this failed."""
    tries = [done for done in case.done(*case.traits.delivery.closing) if done.args["target"] == target]
    return bool(tries) and not any(done.result is not None and done.result.ok for done in tries)


@invariant("one-subscription-each")
def one_subscription_each(case: Case) -> Iterator[Violation]:
    """A subscription of the application is one subscription on the wire.

    Why:
        Every message is processed twice, and its load is paid twice.

    Rests on:
        RabbitMQ Stream: each subscription id gets all messages (docs/protocols/rabbitmq-stream.md, 8).
        BlazingMQ: one handle for each queue and appId (docs/protocols/blazingmq.md, 7).
        elsewhere: common sense: a reconnect restores what there was, once.

    Example:
        2 subscriptions of orders on the wire, the application has 1.
    """
    alive = _alive(case)
    if alive is None or not case.is_clear:
        return
    wanted, there = _wanted(case, or_asked=True), Counter(window.target for window in alive)
    for target, count in there.items():
        if count > wanted[target] and not was_reported_gone(case, target) and not _is_kept(case, target):
            there_ = counted(count, "subscription")
            text = f"{there_} of {target} on the wire, the application has {wanted[target]}"
            yield text, alive[-1].opened


@invariant("one-subscription-each")
def none_after_its_end(case: Case) -> Iterator[Violation]:
    """One that the application has ended is ended on the wire too."""
    if case.traits.delivery.closing:
        return  # the application ends its callback: what it has opened stays until it closes that
    ends: dict[Any, Position] = {}
    for ending in case.done("unsubscribe"):
        if ending.result is not None and ending.result.ok and ending.ended is not None:
            ends.setdefault(ending.args["sub"], ending.ended)
    for done, windows in subscriptions(case):
        end = ends.get(done.args["sub"])
        for window in windows if end is not None else ():
            marks = [window.unsubscribed, window.closed, window.conn.ended, case.mark("close")]
            over_s = min([case.ended_s, *(one.t for one in marks if one is not None)])
            if end is None or window.opened is None or window.opened.t + ENDS_S > over_s:
                continue
            if over_s > end.t + ENDS_S + case.slack_s:
                where = f"{shown(window.target)} on {window.conn.name}"
                yield f"{done.args['sub']} has ended, and is subscribed to {where}", window.opened, end


@invariant("comes-back")
def subscriptions_come_back(case: Case) -> Iterator[Violation]:
    """Once nothing disturbs it any more, every subscription is on the wire again."""
    alive = _alive(case)
    if alive is None or not case.is_clear or not case.reconnects:
        return
    if case.traits.connecting.unseen_connections and case.slack_s:
        return  # over sockets of their own all consumers are one connection
    there = Counter(window.target for window in alive)
    last = {window.target: window for window in case.facts.windows}
    for target, count in _wanted(case).items():
        refused = last[target].refused if target in last else None
        if refused is not None and refused not in case.traits.questions.passing:
            continue
        if was_refused(case, target):
            continue
        if there[target] < count and not was_reported_gone(case, target):
            mark = case.mark("subscribed")
            there_ = counted(there[target], "subscription")
            yield f"{there_} of {target} on the wire, the application has {count}", mark


@invariant("gone-is-reported", level="SHOULD")
def gone_is_reported(case: Case) -> Iterator[Violation]:
    """What the server has ended for good, and the client does not open again, is reported to the application.

    Why:
        A consumer whose queue or stream was deleted waits for messages that never come.

    Rests on:
        RabbitMQ Stream: MetadataUpdate names a stream that is gone (docs/protocols/rabbitmq-stream.md, 4).
        elsewhere: common sense: only the client knows that the server refuses what it opens again.

    Example:
        the server has ended what there was of orders, which is neither open again nor reported as closed.

    Level:
        SHOULD: no document demands the report; what the application has opened besides works on.
    """
    alive = _alive(case)
    if alive is None or not case.is_clear or not case.reconnects:
        return
    there = Counter(window.target for window in alive)
    for target, count in _wanted(case).items():
        if there[target] >= count or was_reported_gone(case, target):
            continue
        ends = [one.at for one in case.facts.dropped if one.target == target]
        ends += [
            one.at for one in case.facts.refused if one.target == target and _is_for_good(case, one.code)
        ]
        had = [one.opened for one in case.facts.windows if one.target == target and one.opened is not None]
        if had and ends and max(ends) > max(had) and not _complained(case, max(ends)):
            what = f"the server has ended what there was of {target}"
            yield f"{what}, which is neither open again nor reported as closed", max(ends)


def _is_for_good(case: Case, code: Any) -> bool:
    """Whether a refusal with this code will be the same next time."""
    return code is not None and code not in case.traits.questions.passing


def _complained(case: Case, since: Position) -> bool:
    """Whether the application got an error after that."""
    return any(heard.at > since for heard in case.heard("error"))


@invariant("asks-what-was-ordered")
def asks_what_was_ordered(case: Case) -> Iterator[Violation]:
    """A subscription first asks for what the application ordered; its settings stay the same after each
    reconnect.

    Why:
        The consumer begins at a wrong message: some are skipped for good, or the whole log comes again.

    Rests on:
        RabbitMQ Stream: the offset specification and the properties of Subscribe
            (docs/protocols/rabbitmq-stream.md, 8).
        BlazingMQ: the subscription's limits and priority in configureStream (docs/protocols/blazingmq.md,
            7).
        Narconi: ack, limit and encoding of the URL (docs/protocols/narconi.md, "consume").
        NATS: the queue group of SUB (docs/protocols/nats.md, 2).
        Redis: channels, patterns and channels of a shard have commands of their own
            (docs/protocols/redis.md, 2).
        MQTT: the highest QoS of SUBSCRIBE (docs/protocols/mqtt.md, 2).

    Example:
        asks with credit 1, the application ordered 10.

    Judges:
        rabbitmq-stream, blazingmq, narconi, nats, redis, mqtt
    """
    for done, windows in subscriptions(case):
        options: dict[str, Any] = done.args.get("options") or {}
        for number, window in enumerate(windows):
            start = case.traits.delivery.start_of(options)
            if number == 0 and start is not None and not _same_start(start, window.start):
                yield f"asks for {shown(window.start)}, the application ordered {shown(start)}", window.asked
            ordered = _settings(case, done)
            for name, value in ordered.items():
                if name in window.settings and not case.traits.delivery.holds(
                    name, window.settings[name], value
                ):
                    asked, ordered_ = shown(window.settings[name]), shown(value)
                    text = f"asks with {name} {asked}, the application ordered {ordered_}"
                    is_left_open = name not in options and not isinstance(value, dict)
                    yield May("own_credit", text) if is_left_open else text, window.asked


@invariant("asks-what-was-ordered")
def asks_nothing_of_others(case: Case) -> Iterator[Violation]:
    """What was ordered for one subscription is not asked for with another one."""
    orders = [(done.begun, _settings(case, done)) for done in case.done("subscribe")]
    for done, windows in subscriptions(case):
        own = _settings(case, done)
        for window in windows:
            others = [settings for begun, settings in orders if begun < window.asked]
            for name, asked in window.settings.items():
                if not isinstance(asked, dict):
                    continue
                extra = _of_others(asked, own.get(name, {}), [each.get(name, {}) for each in others])
                if extra:
                    text = f"asks for {shown(window.target)} with {name} {shown(extra)}"
                    yield f"{text}, which the application ordered for another one only", window.asked


def _settings(case: Case, subscribed: RunOp) -> dict[str, Any]:
    return case.traits.delivery.settings(subscribed.args.get("options") or {})


def _of_others(
    asked: Mapping[str, Any], own: Mapping[str, Any], others: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """The entries that were not ordered here, and are as they were ordered elsewhere: others may be of the
    client's own."""
    elsewhere = [(name, value) for each in others for name, value in each.items() if name not in own]
    return {name: value for name, value in elsewhere if name in asked and asked[name] == value}


@invariant("asks-what-was-ordered")
def questions_as_ordered(case: Case) -> Iterator[Violation]:
    """What an op asks for is what it was given, and nothing of what another one was given."""
    rows = [row for row in asked_by_ops(case) if row[1].entries is not None]
    askers = Counter(id(question) for _, _, questions in rows for question in questions)
    for done, asks, questions in rows:
        for question in questions:
            if askers[id(question)] == 1:  # of several ops it may be another one's
                others = [one.args for one in case.done(done.op) if one.begun < question.asked]
                different = _different(asks.entries, done.args, question, others)
                if different:
                    yield f"{done.op} of {shown(done.args['target'])} asks with {different}", question.asked


def _different(entries: Any, args: Mapping[str, Any], question: Question, others: Iterable[Any]) -> str:
    """What of a question is not as its op has ordered it; "" if all is."""
    given, asked = entries.given(args), entries.asked(question.frame)
    for name, value in given.items():
        if asked.get(name) != value:
            return f"{name} {shown(asked.get(name))}, the application ordered {shown(value)}"
    known = {**given, **dict.fromkeys(entries.own)}
    extra = _of_others(asked, known, [entries.given(each) for each in others])
    return f"{shown(extra)}, which the application ordered for another one only" if extra else ""


@invariant("asks-what-was-ordered")
def set_up_as_ordered(case: Case) -> Iterator[Violation]:
    """A subscription is set up with what the application ordered last, on every connection."""
    for at, what in case.facts.unordered:
        yield what, at


def _same_start(ordered: Any, asked: Any) -> bool:
    value = ordered.get("value")
    return bool(ordered["type"] == asked["type"] and (value is None or int(value) == asked["value"]))


def subscriptions(case: Case) -> list[tuple[Any, list[Window]]]:
    """The ops that subscribe, each with its lives on the wire, where it is known whose they are."""
    if "subscriptions" not in case.shared:
        case.shared["subscriptions"] = list(_subscriptions(case))
    found: list[tuple[Any, list[Window]]] = case.shared["subscriptions"]
    return found


def _ends(case: Case, subscribes: Iterable[Any]) -> dict[Any, list[Position]]:
    """When subscriptions were ended, by name. An op that ends one for which the client still asks ends
    nothing: it may come yet."""
    asked = {done.args["sub"]: done for done in subscribes}
    ends: dict[Any, list[Position]] = defaultdict(list)
    for done in case.done("unsubscribe"):
        of = asked.get(done.args.get("sub"))
        is_open = of is not None and of.result.hang and (of.ended is None or done.begun < of.ended)
        if not (is_open and done.result is not None and not done.result.ok):
            ends[done.args.get("sub")].append(done.begun)
    return ends


def _asked_between(case: Case, target: Any, begun: Position, end: Position | None) -> list[Window]:
    """The windows of a target that were asked for in that time."""
    later = (one for one in case.facts.windows if one.target == target and one.asked > begun)
    return [one for one in later if end is None or one.asked < end]


def _had_ended(ends: Mapping[Any, Sequence[Position]], done: RunOp, at: Position) -> bool:
    """Whether a subscription had been ended by then."""
    return any(end < at for end in ends[done.args["sub"]])


def _is_read_as_a_part(case: Case, target: str) -> bool:
    """Whether another target is subscribed to that leads to this one."""
    spread = [one.args["target"] for one in case.done("subscribe") if case.traits.delivery.spreads(one.args)]
    return any(target in case.facts.leads_to.get(one, ()) for one in spread)


def _subscriptions(case: Case) -> Iterator[tuple[Any, list[Window]]]:
    ops = [
        one
        for one in case.done("subscribe")
        if one.result is not None and not case.traits.delivery.spreads(one.args)
    ]
    names = Counter(done.args["sub"] for done in ops)
    by_target: dict[Any, list[Any]] = defaultdict(list)
    for done in ops:
        by_target[done.args["target"]].append(done)
    ends = _ends(case, ops)
    for done in ops:
        target, sub = done.args["target"], done.args["sub"]
        if names[sub] > 1:
            continue
        end = min((at for at in ends[sub] if at > done.begun), default=None)
        others = [other for other in by_target[target] if end is None or other.begun < end]
        if any(not _had_ended(ends, other, done.begun) for other in others if other is not done):
            continue  # of which of the two a window is cannot be known
        if _is_read_as_a_part(case, target):
            continue  # nor whether it is that of a part
        lives = _asked_between(case, target, done.begun, end)
        if not any(window.is_disputed for window in lives):
            yield done, lives


@invariant("gone-for-a-reason")
def gone_for_a_reason(case: Case) -> Iterator[Violation]:
    """A client that reconnects gives up what it has of a target only if the server refuses that target."""
    if not case.reconnects:
        return
    for heard in case.session_events("target_closed"):
        targets = heard["targets"] or []
        what = ", ".join(targets) or "a target"
        reasons = [
            one
            for one in case.facts.refused
            if one.at < heard.at
            and (not targets or one.target in targets)
            and one.code not in case.traits.questions.passing
        ]
        if not reasons:
            text = f"{what} was given up, and the server had refused nothing"
            dropped = any(one.at < heard.at and one.target in targets for one in case.facts.dropped)
            yield May("leaves_dropped", text) if dropped or not targets else text, heard.at


@invariant("goes-no-further")
def goes_no_further(case: Case) -> Iterator[Violation]:
    """Nothing is opened on a target that the server has just called unusable.

    Why:
        The error that the application gets is a later one, or a time-out, and hides the cause.

    Rests on:
        RabbitMQ Stream: Metadata has a code for each stream, 2 for one that is not there
            (docs/protocols/rabbitmq-stream.md, 3, 4).

    Example:
        DeclarePublisher of orders, which cannot be used.

    Judges:
        rabbitmq-stream
    """
    said: dict[Any, list[tuple[Position, bool]]] = defaultdict(list)

    def place(question: Question, target: Any) -> Any:
        return target if case.is_one_session else (question.conn.name, target)

    for question in case.facts.questions:
        if question.answer is not None and question.answered is not None:
            for name, is_good in case.traits.questions.located(question.answer).items():
                said[place(question, name)].append((question.answered, is_good))
    for rows in said.values():
        rows.sort()
    for question in case.facts.questions:
        target = case.traits.questions.target_of(question.frame)
        if not case.traits.questions.is_opening(question.frame):
            continue
        last = [row for row in said.get(place(question, target), ()) if row[0] < question.asked]
        if last and not last[-1][1] and case.before(last[-1][0], question.asked):
            yield f"{kind_of(question.frame)} of {target}, which cannot be used", last[-1][0], question.asked
