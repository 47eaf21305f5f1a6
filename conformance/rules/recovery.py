"""After a disturbance the client is as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from conformance.rules.registry import Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Question
from fakebrokers.core.frames import kind_of

MANY = 6  #: refusals of one kind
MANY_S = 1.0
STEP_S = 0.001
STEADY_S = 15.0  #: a connection that lasts as long has worked out
GROWS, PAUSE_S = 4.0, 2.0  #: pauses are drawn, so one may be a few times as long as another


def was_reported_gone(case: Case, target: Any) -> bool:
    """Whether the application knows that what it has of a target is gone."""
    if case.session_events("disconnected"):
        return True
    gone = [heard["targets"] for heard in case.session_events("target_closed")]
    return any(not targets or target in targets for targets in gone)


def was_refused(case: Case, target: str | None = None) -> bool:
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
        owing = any(conn.owes and conn.stands(last.begun) for conn in case.conns.values())
        if _fails_without_cause(case, last) and not owing:
            yield f"{last.op} after all faults were over: {last.result}", last.begun, last.ended
        return
    connects = [done for done in case.done("connect") if done.result is not None]
    calm = case.mark("calm")
    for done in connects[-1:]:
        assert done.result is not None
        if calm is not None and done.begun > calm and not done.result.ok and not was_refused(case):
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
    return not was_refused(case) and not was_reported_gone(case, done.args.get("target"))


def _has_given_up(case: Case) -> bool:
    """Whether the client has reported that it will not come back, as it may after a refusal."""
    return bool(case.session_events("disconnected")) and was_refused(case)


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
    if not case.reconnects or was_refused(case) or not case.is_truthful:
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
