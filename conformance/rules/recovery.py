"""After a disturbance the client is as before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.rules.registry import May, Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question, Window
from conformance.run.showing import counted, shown
from conformance.run.trace import Position
from fakebrokers.core.frames import kind_of

MANY = 6  #: refusals of one kind
MANY_S = 1.0
STEP_S = 0.001
STEADY_S = 15.0  #: a connection that lasts as long has worked out
GROWS, PAUSE_S = 4.0, 2.0  #: pauses are drawn, so one may be a few times as long as another


def _was_reported_gone(case: Case, target: Any) -> bool:
    """Whether the application knows that what it has of a target is gone."""
    if case.session_events("disconnected"):
        return True
    gone = [heard["targets"] for heard in case.session_events("target_closed")]
    return any(not targets or target in targets for targets in gone)


def _was_refused(case: Case, target: str | None = None) -> bool:
    """Whether the server has refused to open something: it may have meant that for good.

    Args:
        target: What was refused of another one does not count.
    """
    questions = case.traits.questions
    for one in case.facts.questions:
        is_for_good = one.accepted is False and one.code not in questions.passing
        concerns = target is None or questions.target_of(one.frame) in (None, target)
        if is_for_good and concerns and questions.is_opening(one.frame):
            return True
    limits = [conn.agreed.frame_max for conn in case.conns.values()]
    if any(0 < limit < case.traits.reading.least_limit for limit in limits):
        return True  # which is a way to say no
    away = [conn.turned_away for conn in case.conns.values() if conn.turned_away is not None]
    return any(code not in case.traits.questions.passing for _, code in away)


@invariant("comes-back")
def comes_back(case: Case) -> Iterator[Violation]:
    """Once nothing disturbs it any more, a session that reconnects works again.

    Why:
        The service hangs until a person restarts it, although the broker has been back for hours.

    Rests on:
        common sense: the adapter declares `auto_reconnect`; then a session outlives its connections, and
            with it all that the application has opened.

    Example:
        publish after all faults were over: timeout after 5000 ms.
    """
    if not case.reconnects or not case.is_clear or _has_given_up(case) or case.notes.unheard:
        return
    last = _last_probe(case)
    if last is not None and case.is_connected:
        if _fails_without_cause(case, last):
            yield f"{last.op} after all faults were over: {last.result}", last.begun, last.ended
        return
    connects = [done for done in case.done("connect") if done.result is not None]
    calm = case.mark("calm")
    for done in connects[-1:]:
        assert done.result is not None
        if calm is not None and done.begun > calm and not done.result.ok and not _was_refused(case):
            yield f"connect after all faults were over: {done.result}", done.begun


def _last_probe(case: Case) -> RunOp | None:
    """The last op that was tried after all faults were over."""
    ended = (done for done in reversed(case.ops) if done.result is not None and done.phase == "probe")
    return next((done for done in ended if done.op != "state"), None)


def _fails_without_cause(case: Case, done: RunOp) -> bool:
    """Whether an op failed that the server has not refused."""
    result = done.result
    if result is None or result.ok or result.word in ("hang", "unsupported"):
        return False
    asked = any(done.begun < one.asked for one in case.facts.questions)
    if result.word == "refused" and (asked or not case.is_truthful):
        return False
    return not _was_refused(case) and not _was_reported_gone(case, done.args.get("target"))


def _has_given_up(case: Case) -> bool:
    """Whether the client has reported that it will not come back, as it may after a refusal."""
    return bool(case.session_events("disconnected")) and _was_refused(case)


@invariant("gone-for-a-reason")
def given_up_for_a_reason(case: Case) -> Iterator[Violation]:
    """A client that reconnects gives its session up only if the server refuses it, or the application
    closes it.

    Why:
        An outage that would have ended by itself needs a restart.

    Rests on:
        common sense: `auto_reconnect` means that a loss alone is no reason to stop.

    Example:
        the session was given up, and the server had refused nothing.
    """
    closes = [done.begun for done in case.done("close", "abort")]
    if not case.reconnects or _was_refused(case) or not case.is_truthful:
        return
    if any(
        conn.server_closing and (conn.ready is None or conn.server_closing < conn.ready)
        for conn in case.conns.values()
    ):
        return  # a close in a handshake is a refusal
    unwanted = [conn.unwanted for conn in case.conns.values() if conn.unwanted is not None]
    for heard in case.session_events("disconnected"):
        if not any(at < heard.at for at in [*closes, *unwanted]):
            yield "the session was given up, and the server had refused nothing", heard.at


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
        or_asked: With those for which it still waits: their op has not reported yet what has become of them.
    """
    at = case.mark("subscribed")
    assert at is not None
    ended = {done.args["sub"] for done in case.done("unsubscribe") if done.begun < at}
    closes = list(case.done(*case.traits.delivery.closing))
    found: Counter[str] = Counter()
    for done in case.done("subscribe"):
        shut = any(done.begun < d.begun < at for d in closes if d.args["target"] == done.args["target"])
        if shut or done.result is None or not (done.result.ok or (or_asked and done.result.hang)):
            continue
        if done.begun < at and done.args["sub"] not in ended:
            found[done.args["target"]] += 1
    return found


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
        if count > wanted[target] and not _was_reported_gone(case, target) and not _is_kept(case, target):
            there_ = counted(count, "subscription")
            text = f"{there_} of {target} on the wire, the application has {wanted[target]}"
            yield text, alive[-1].opened


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
        if _was_refused(case, target):
            continue
        if there[target] < count and not _was_reported_gone(case, target):
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
        if there[target] >= count or _was_reported_gone(case, target):
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


@invariant("pauses-between-attempts", level="SHOULD")
def pauses_between_attempts(case: Case) -> Iterator[Violation]:
    """What the server has refused is not asked again and again without a pause.

    Why:
        A client in a loop fills the server's log and takes the processor time that the recovery needs.

    Rests on:
        common sense: every client library's documentation describes a back-off; no protocol demands one.

    Example:
        6 times Subscribe within 1 s, all refused.

    Level:
        SHOULD: the application gets its subscription all the same; what suffers is the server.
    """
    by_kind: dict[tuple[Any, ...], list[Question]] = {}
    for question in case.facts.questions:
        if question.accepted is False:
            target = case.traits.questions.target_of(question.frame)
            key = type(question.frame), target, question.code
            by_kind.setdefault(key, []).append(question)
    ops = len(case.ops)
    for asked in by_kind.values():
        for first, last in zip(asked, asked[MANY - 1 :], strict=False):
            own = sum(1 for done in case.ops if first.asked.t - 1.0 <= done.begun.t <= last.asked.t)
            if last.asked.t - first.asked.t < MANY_S and own < MANY <= ops:
                yield (
                    f"{MANY} times {kind_of(first.frame)} within {MANY_S:g} s, all refused",
                    first.asked,
                    last.asked,
                )


@invariant("pauses-begin-anew", level="SHOULD")
def pauses_begin_anew(case: Case) -> Iterator[Violation]:
    """After a connection that has worked for a while, the next attempt comes about as soon as the first one
    did.

    Why:
        A service that has run for weeks takes a minute to come back from a hiccup of a second.

    Rests on:
        common sense: a back-off is for attempts in a row, not for all losses in the life of a process.
        BlazingMQ: the C++ SDK retries at once if the previous attempt is more than 120 s old
            (docs/protocols/blazingmq.md, 10).

    Example:
        16.0 s passed before the next attempt, 0.5 s the first time.

    Level:
        SHOULD: the client comes back, only later; no protocol sets the pause.
    """
    since, calm = case.mark("rounds"), case.mark("calm")
    if since is None or not case.reconnects or case.hits or case.notes.unreachable:
        return
    first_s = None
    for conn in case.conns.values():
        lost = conn.ended
        if lost is None or conn.ended_by != "broker" or lost < since or (calm is not None and lost > calm):
            continue
        if conn.ready is None or not conn.is_session or lost.t - conn.ready.t < STEADY_S:
            continue
        next_s = min((one.accepted.t for one in case.conns.values() if one.accepted > lost), default=None)
        if next_s is None:
            continue
        pause_s = next_s - lost.t
        first_s = pause_s if first_s is None else first_s
        if pause_s > GROWS * first_s + PAUSE_S + case.slack_s:
            text = f"{pause_s:.1f} s passed before the next attempt, {first_s:.1f} s the first time"
            yield text, lost
            return


@invariant("not-in-step", level="SHOULD")
def not_in_step(case: Case) -> Iterator[Violation]:
    """Sessions that lose their connections in one instant do not all come back in one: each draws its
    pauses at random. Where time is real, no two do.

    Why:
        After a restart of the broker all clients connect at once, again and again, and overload it each
        time.

    Rests on:
        common sense: back-off with jitter (AWS Architecture Blog, Exponential Backoff And Jitter, 2015).
        BlazingMQ: the C++ SDK waits for the half of its interval and a random part
            (docs/protocols/blazingmq.md, 10).

    Example:
        8 sessions came back in one instant, 3 times.

    Level:
        SHOULD: it is asked for the sake of the server; each client by itself works.
    """
    count = case.notes.crowd
    if not count or case.slack_s:
        return
    conns = list(case.conns.values())
    ends = Counter(conn.ended.t for conn in conns if conn.ended is not None and conn.ended_by == "broker")
    losses = [lost_s for lost_s, ended in sorted(ends.items()) if ended >= count]
    in_step = []
    for lost_s in losses:
        came = [conn.accepted for conn in conns if conn.accepted.t > lost_s][:count]
        if len(came) == count and came[-1].t - came[0].t < STEP_S:
            in_step.append(came[-1])
    if len(in_step) > 1:
        yield f"{count} sessions came back in one instant, {len(in_step)} times", in_step[-1]


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

    Example:
        asks with credit 1, the application ordered 10.

    Judges:
        rabbitmq-stream, blazingmq, narconi
    """
    for done, windows in subscriptions(case):
        options: dict[str, Any] = done.args.get("options") or {}
        for number, window in enumerate(windows):
            start = case.traits.delivery.start_of(options)
            if number == 0 and start is not None and not _same_start(start, window.start):
                yield f"asks for {shown(window.start)}, the application ordered {shown(start)}", window.asked
            ordered = case.traits.delivery.settings(options)
            for name, value in ordered.items():
                if name in window.settings and not case.traits.delivery.holds(
                    name, window.settings[name], value
                ):
                    asked, ordered_ = shown(window.settings[name]), shown(value)
                    text = f"asks with {name} {asked}, the application ordered {ordered_}"
                    is_left_open = name not in options and not isinstance(value, dict)
                    yield May("own_credit", text) if is_left_open else text, window.asked


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
