"""The client lives, and speaks as an adapter has to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from conformance.invariants.outcomes import may_be_about
from conformance.invariants.registry import May, Violation, invariant
from conformance.sweep.case import Case
from conformance.sweep.tape import Moment
from conformance.sweep.told import PUBLISHING

OWN_S = 12.0  #: what a client may wait for an answer that no op waits for
ROUNDS = 4
CALLED = ("message", "session")  #: callbacks that come with an event of the same name
TOLD_S = 1.5  #: what a client may take to tell others of a change ...
BUSY_TOLD_S = 4.0  #: ... where it is a process of its own, on a machine that may have much to do
DEAF_S = 1.0  #: and to listen to all that is for it


@invariant("lives")
def lives(case: Case) -> Iterator[Violation]:
    """The client goes on, whatever comes."""
    if case.error:
        yield (case.error.strip().splitlines()[-1],)
    for done in case.ops:
        if done.result is not None and done.result.crashed:
            why = f": {case.last_words}" if case.last_words else ""
            yield f"the client ended in {done.op}{why}", done.begun


@invariant("no-unhandled")
def no_unhandled(case: Case) -> Iterator[Violation]:
    """No exception gets lost outside the client's own code."""
    lines = case.complaints.strip().splitlines()
    if lines:
        yield (lines[-1],)


@invariant("adapter-protocol")
def adapter_protocol(case: Case) -> Iterator[Violation]:
    """The adapter says what its protocol allows."""
    for problem in case.violations:
        yield (problem,)


@invariant("op-ends")
def op_ends(case: Case) -> Iterator[Violation]:
    """Every op ends by its deadline."""
    for done in case.ops:
        if done.result is not None and done.result.hang:
            text = f"{done.op} gave no answer within {done.timeout_s:g} s"
            yield May("ack_timeout", text) if done.op in PUBLISHING else text, done.begun


@invariant("pending-is-true")
def pending_is_true(case: Case) -> Iterator[Violation]:
    """Nothing is pending while no op is open and every message has its outcome."""
    for done in case.done("state"):
        result = done.result
        if result is None or not result.ok or not result.value.get("pending"):
            continue
        begun = done.begun
        if any(
            one is not done and one.begun < begun and (one.ended is None or one.ended > begun)
            for one in case.ops
        ):
            continue
        if any(told.at is None or told.at > begun for told in case.told if told.done.begun < begun):
            continue
        if _has_late(case, begun):
            continue
        yield f"{result.value['pending']} are pending, and no op is open", done.ended


def _has_late(case: Case, at: Moment) -> bool:
    """Whether the client may wait for answers to questions of its own: recovery, or taking something back."""
    return any(
        one.asked < at and (one.answered is None or one.answered > at) and one.asked.t > at.t - OWN_S
        for one in case.facts.questions
        if one.conn.stands(at)
    )


@invariant("no-growth")
def no_growth(case: Case) -> Iterator[Violation]:
    """What a client holds does not grow with every loss that it has recovered from."""
    looks = [done.result for done in case.done("stats") if done.phase == "rounds"]
    rows = [look.value for look in looks if look is not None and look.ok]
    if len(rows) < ROUNDS:
        return
    for name in ("tasks", "timers", "pending", "buffered_bytes", "threads"):
        values = [row.get(name) for row in rows]
        if all(isinstance(value, int) for value in values):
            steps = [later - former for former, later in pairwise(values)]
            if sum(1 for step in steps if step > 0) >= len(steps) - 1 and values[-1] > values[0]:
                yield f"{name} grows with every round: {values}", None


@invariant("limit-exact")
def limit_exact(case: Case) -> Iterator[Violation]:
    """What fits the agreed limits is sent, what does not is refused before it is."""
    if case.hits:
        return
    for number, fits in case.notes.get("fits", ()):
        done = case.ops[number]
        if done.result is not None and done.result.ok is not fits:
            yield f"{done.result}, and the message {'fits' if fits else 'does not fit'}", done.begun


@invariant("failures-are-told")
def failures_are_told(case: Case) -> Iterator[Violation]:
    """The application is told of each callback of its own that has failed, but for the one that tells it."""
    for done in case.done("raise_next"):
        kind, times = done.args["callback"], done.args.get("times", 1)
        if done.result is None or not done.result.ok or done.ended is None or kind not in CALLED or not times:
            continue
        ends = [
            other.begun for other in case.done("raise_next", "close", "abort")
            if other.begun > done.begun and other.args.get("callback", kind) == kind
        ]  # fmt: skip
        end = min(ends, default=None)
        called = [
            heard for heard in case.heard(kind) if done.ended < heard.at and (not end or heard.at < end)
        ]
        told = sum(1 for heard in case.heard("error") if heard.at > done.ended)
        if told < min(times, len(called)):
            text = f"{min(times, len(called))} {kind} callbacks have failed, {told} errors were told"
            yield May("logs_callbacks", text), done.ended


@invariant("complaints-are-told")
def complaints_are_told(case: Case) -> Iterator[Violation]:
    """An error of the server that answers nothing is told to the application, with its code."""
    ends = [done.begun for done in case.done("close", "abort", "unsubscribe", "connect")]
    for one in case.facts.complaints:
        until_s = one.at.t + _told_s(case)
        if not one.conn.serves(one.at) or any(end.t <= until_s for end in ends if end > one.at):
            continue
        told = [heard["error"].get("code") for heard in case.heard("error") if heard.at > one.at]
        told += [heard.event.fields.get("code") for heard in case.heard("session") if heard.at > one.at]
        told += [each.code for each in case.told if may_be_about(case, each)]
        if one.code not in told:
            yield f"the server has told of an error {one.code}, and the application was not", one.at


def _told_s(case: Case) -> float:
    """How long it may take to tell others."""
    return BUSY_TOLD_S + case.slack_s if case.slack_s else TOLD_S


@invariant("tells-what-it-offers")
def tells_what_it_offers(case: Case) -> Iterator[Violation]:
    """On every connection that lasts the client tells others what the application offers, when it changes."""
    offered = case.model.offered(case)
    if "sessions" in case.notes or not offered:
        return
    closes = [done.begun.t for done in case.done("close", "abort")]
    changes = [at.t for at, _ in offered]
    for conn in case.conns.values():
        if conn.ready is None:
            continue
        over_s = min(
            [mark.t for mark in (conn.lost(), conn.ended) if mark is not None] + closes + [case.ended_s]
        )
        for number, (since, what) in enumerate(offered):
            due_s = max(since.t, conn.ready.t) + _told_s(case)
            if due_s > over_s or any(change <= due_s for change in changes[number + 1 :]):
                continue
            told = [one.what for one in case.facts.announced if one.conn is conn and one.at.t <= due_s]
            if not told or told[-1] != what:
                last = told[-1] if told else "nothing"
                yield (
                    f"{conn.name}: others were told {last}, the application offers {what}",
                    since,
                    conn.ready,
                )
                return


@invariant("sends-what-it-was-given")
def sends_what_it_was_given(case: Case) -> Iterator[Violation]:
    """What an op sends to others is what the application gave, to whom it is for, once."""
    for done in case.done(*case.model.sending):
        if done.result is not None and done.ended is not None and case.is_truthful:
            wrong = case.model.wrong_sending(case, done)
            if wrong:
                yield wrong, done.begun, done.ended


@invariant("spreads-its-questions")
def spreads_its_questions(case: Case) -> Iterator[Violation]:
    """Where several can answer all the time, each of them is asked sooner or later."""
    if case.model.sending and (neglected := case.model.neglected(case)):
        yield neglected, None


@invariant("asks-what-it-does-not-know")
def asks_what_it_does_not_know(case: Case) -> Iterator[Violation]:
    """Who has told something is not asked for it again and again, while nothing of it has changed.

    Once is nothing: a question may be under way when its answer comes unasked.
    """
    counts: Counter[str] = Counter()
    for at, what in case.facts.needless:
        counts[what] += 1
        if counts[what] > 1:
            yield what, at


@invariant("hears-what-is-for-it")
def hears_what_is_for_it(case: Case) -> Iterator[Violation]:
    """On every connection that lasts, the client listens to all that others may have to say to it."""
    for at, what in case.facts.deaf:
        if case.ended_s > at.t + DEAF_S + case.slack_s:
            yield what, at


@invariant("knows-who-is-there")
def knows_who_is_there(case: Case) -> Iterator[Violation]:
    """What the client tells of others, until it is closed, is what they have told of themselves."""
    closing = case.mark("close")
    for done in case.done(*case.model.rosters):
        if closing is not None and done.ended is not None and done.ended > closing:
            continue
        if done.result is not None and done.result.ok and done.ended is not None and case.is_truthful:
            wrong = case.model.wrong_roster(case, done.result.value, done.begun, done.ended)
            if wrong:
                yield wrong, done.ended
