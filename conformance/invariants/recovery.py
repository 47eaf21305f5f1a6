"""After a disturbance the client is as before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.invariants.registry import May, Violation, invariant
from conformance.sweep.case import Case
from conformance.sweep.facts import Question, Window
from conformance.sweep.tape import Moment
from fakebrokers.core.frames import kind_of

MANY = 6  #: refusals of one kind
MANY_S = 1.0
STEP_S = 0.001
STEADY_S = 15.0  #: a connection that lasts as long has worked out
GROWS, PAUSE_S = 4.0, 2.0  #: pauses are drawn, so one may be a few times as long as another


def _was_told_gone(case: Case, target: Any) -> bool:
    """Whether the application knows that what it has of a target is gone."""
    if case.session_events("disconnected"):
        return True
    gone = [heard["targets"] for heard in case.session_events("target_closed")]
    return any(not targets or target in targets for targets in gone)


def _was_refused(case: Case) -> bool:
    """Whether the server has refused to open something: it may have meant that for good."""
    for one in case.facts.questions:
        is_for_good = one.code not in case.model.passing
        if one.accepted is False and is_for_good and case.model.is_opening(one.frame):
            return True
    limits = [conn.agreed.frame_max for conn in case.conns.values()]
    if any(0 < limit < case.model.least_limit for limit in limits):
        return True  # which is a way to say no
    away = [conn.turned_away for conn in case.conns.values() if conn.turned_away is not None]
    return any(code not in case.model.passing for _, code in away)


@invariant("comes-back")
def comes_back(case: Case) -> Iterator[Violation]:
    """Once nothing disturbs it any more, a session that reconnects works again."""
    if not case.reconnects or not case.is_clear or _has_given_up(case) or "unheard" in case.notes:
        return
    for done in reversed(case.ops):
        if done.phase == "probe" and done.op != "state" and done.result is not None:
            result = done.result
            if not case.is_connected:
                break
            if result.ok or result.word in ("hang", "unsupported"):
                return
            asked = any(done.begun < one.asked for one in case.facts.questions)
            if result.word == "refused" and (asked or not case.is_truthful):
                return
            if not _was_refused(case) and not _was_told_gone(case, done.args.get("target")):
                yield f"{done.op} in a calm sea: {result}", done.begun, done.ended
            return
    connects = [done for done in case.done("connect") if done.result is not None]
    calm = case.mark("calm")
    for done in connects[-1:]:
        assert done.result is not None
        if calm is not None and done.begun > calm and not done.result.ok and not _was_refused(case):
            yield f"connect in a calm sea: {done.result}", done.begun


def _has_given_up(case: Case) -> bool:
    """Whether the client has told that it will not come back, as it may behind a refusal."""
    return bool(case.session_events("disconnected")) and _was_refused(case)


@invariant("gone-for-a-reason")
def given_up_for_a_reason(case: Case) -> Iterator[Violation]:
    """A client that reconnects gives its session up only if the server says no, or the application does."""
    closes = [done.begun for done in case.done("close", "abort")]
    if not case.reconnects or _was_refused(case) or not case.is_truthful:
        return
    if any(
        conn.goodbye and (conn.ready is None or conn.goodbye < conn.ready) for conn in case.conns.values()
    ):
        return  # a goodbye in a handshake is a refusal
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
        or_asked: With those for which it still waits: their op has not told yet what has become of them.
    """
    at = case.mark("subscribed")
    assert at is not None
    ended = {done.args["sub"] for done in case.done("unsubscribe") if done.begun < at}
    closes = list(case.done(*case.model.closing))
    found: Counter[str] = Counter()
    for done in case.done("subscribe"):
        shut = any(done.begun < d.begun < at for d in closes if d.args["target"] == done.args["target"])
        if shut or done.result is None or not (done.result.ok or (or_asked and done.result.hang)):
            continue
        if done.begun < at and done.args["sub"] not in ended:
            found[done.args["target"]] += 1
    return found


def _is_kept(case: Case, target: str) -> bool:
    """Whether the application has tried to close a target, and was told that it did not work out."""
    tries = [done for done in case.done(*case.model.closing) if done.args["target"] == target]
    return bool(tries) and not any(done.result is not None and done.result.ok for done in tries)


@invariant("one-subscription-each")
def one_subscription_each(case: Case) -> Iterator[Violation]:
    """A subscription of the application is one on the wire."""
    alive = _alive(case)
    if alive is None or not case.is_clear:
        return
    wanted, there = _wanted(case, or_asked=True), Counter(window.target for window in alive)
    for target, count in there.items():
        if count > wanted[target] and not _was_told_gone(case, target) and not _is_kept(case, target):
            yield (
                f"{count} subscriptions of {target} on the wire, {wanted[target]} are wanted",
                alive[-1].opened,
            )


@invariant("comes-back")
def subscriptions_come_back(case: Case) -> Iterator[Violation]:
    """Once nothing disturbs it any more, every subscription is on the wire again."""
    alive = _alive(case)
    if alive is None or not case.is_clear or not case.reconnects or _was_refused(case):
        return
    if case.model.unseen_connections and case.slack_s:
        return  # over sockets of their own all consumers are one connection
    there = Counter(window.target for window in alive)
    last = {window.target: window for window in case.facts.windows}
    for target, count in _wanted(case).items():
        refused = last[target].refused if target in last else None
        if refused is not None and refused not in case.model.passing:
            continue
        if there[target] < count and not _was_told_gone(case, target):
            mark = case.mark("subscribed")
            yield f"{there[target]} subscriptions of {target} on the wire, {count} are wanted", mark


@invariant("pauses-between-attempts")
def pauses_between_attempts(case: Case) -> Iterator[Violation]:
    """What the server has refused is not asked again and again without a pause."""
    by_kind: dict[tuple[Any, ...], list[Question]] = {}
    for question in case.facts.questions:
        if question.accepted is False:
            key = type(question.frame), getattr(question.frame, "stream", None), question.code
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


@invariant("pauses-begin-anew")
def pauses_begin_anew(case: Case) -> Iterator[Violation]:
    """Behind a connection that has worked for a while, the next attempt comes about as soon as at first."""
    since, calm = case.mark("rounds"), case.mark("calm")
    if since is None or not case.reconnects or case.hits or "unreachable" in case.notes:
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


@invariant("not-in-step")
def not_in_step(case: Case) -> Iterator[Violation]:
    """Sessions that lose their connections in one instant do not all come back in one: each draws its pauses.

    Where time is real, no two of them do.
    """
    count = case.notes.get("herd", 0)
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
    """A subscription first asks for what was ordered; its settings stay the same in all its lives."""
    for done, windows in subscriptions(case):
        options: dict[str, Any] = done.args.get("options") or {}
        for number, window in enumerate(windows):
            start = options.get("offset")
            if number == 0 and start is not None and not _same_start(start, window.start):
                yield f"asks for {window.start}, ordered was {start}", window.asked
            ordered = case.model.settings(options)
            for name, value in ordered.items():
                if name in window.settings and not case.model.holds(name, window.settings[name], value):
                    text = f"asks with {name} {window.settings[name]!r}, ordered was {value!r}"
                    is_left_open = name not in options and not isinstance(value, dict)
                    yield May("own_credit", text) if is_left_open else text, window.asked


@invariant("asks-what-was-ordered")
def set_up_as_ordered(case: Case) -> Iterator[Violation]:
    """A subscription is set up with what was ordered last, on every connection."""
    for at, what in case.facts.unordered:
        yield what, at


def _same_start(ordered: Any, asked: Any) -> bool:
    value = ordered.get("value")
    return bool(ordered["type"] == asked["type"] and (value is None or int(value) == asked["value"]))


def subscriptions(case: Case) -> list[tuple[Any, list[Window]]]:
    """The ops that subscribe, each with its lives on the wire, where it can be told whose they are."""
    if "subscriptions" not in case.shared:
        case.shared["subscriptions"] = list(_subscriptions(case))
    found: list[tuple[Any, list[Window]]] = case.shared["subscriptions"]
    return found


def _ends(case: Case, subscribes: Iterable[Any]) -> dict[Any, list[Moment]]:
    """When subscriptions were ended, by name. Whoever ends one for which the client still asks ends nothing:
    it may come yet."""
    asked = {done.args["sub"]: done for done in subscribes}
    ends: dict[Any, list[Moment]] = defaultdict(list)
    for done in case.done("unsubscribe"):
        of = asked.get(done.args.get("sub"))
        is_open = of is not None and of.result.hang and (of.ended is None or done.begun < of.ended)
        if not (is_open and done.result is not None and not done.result.ok):
            ends[done.args.get("sub")].append(done.begun)
    return ends


def _subscriptions(case: Case) -> Iterator[tuple[Any, list[Window]]]:
    ops = [done for done in case.done("subscribe") if done.result is not None]
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
        if any(
            other is not done
            and (end is None or other.begun < end)
            and not any(at < done.begun for at in ends[other.args["sub"]])
            for other in by_target[target]
        ):
            continue  # which of the two a window is of, nobody can tell
        lives = [
            window for window in case.facts.windows
            if window.target == target and window.asked > done.begun and (end is None or window.asked < end)
        ]  # fmt: skip
        if not any(window.is_disputed for window in lives):
            yield done, lives


@invariant("gone-for-a-reason")
def gone_for_a_reason(case: Case) -> Iterator[Violation]:
    """A client that reconnects gives up what it has of a target only if the server says no to that."""
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
            and one.code not in case.model.passing
        ]
        if not reasons:
            text = f"{what} was given up, and the server had refused nothing"
            dropped = any(one.at < heard.at and one.target in targets for one in case.facts.dropped)
            yield May("leaves_dropped", text) if dropped or not targets else text, heard.at


@invariant("goes-no-further")
def goes_no_further(case: Case) -> Iterator[Violation]:
    """Nothing is opened on a target of which the server has just said that it cannot be used."""
    said: dict[Any, list[tuple[Moment, bool]]] = defaultdict(list)

    def place(question: Question, target: Any) -> Any:
        return target if case.is_one_session else (question.conn.name, target)

    for question in case.facts.questions:
        if question.answer is not None and question.answered is not None:
            for name, is_good in case.model.located(question.answer).items():
                said[place(question, name)].append((question.answered, is_good))
    for rows in said.values():
        rows.sort()
    for question in case.facts.questions:
        target = getattr(question.frame, "stream", None)
        if not case.model.is_opening(question.frame):
            continue
        last = [row for row in said.get(place(question, target), ()) if row[0] < question.asked]
        if last and not last[-1][1] and case.before(last[-1][0], question.asked):
            yield f"{kind_of(question.frame)} of {target}, which cannot be used", last[-1][0], question.asked
