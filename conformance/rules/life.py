"""The client lives, and speaks as an adapter has to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from conformance.clients.adapter.deadline import patience_ms
from conformance.rules.closing import meanwhile
from conformance.rules.outcomes import may_be_about
from conformance.rules.registry import May, Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Should
from conformance.run.reported import PUBLISHING
from conformance.run.showing import counted, shown
from conformance.run.trace import Position

OWN_S = 12.0  #: what a client may wait for an answer that no op waits for
ROUNDS = 4
CALLED = ("message", "session")  #: callbacks that come with an event of the same name
TOLD_S = 1.5  #: what a client may take to inform others of a change ...
BUSY_TOLD_S = 4.0  #: ... where it is a process of its own, on a machine that may have much to do
NOTHING = "nothing"
DEAF_S = 1.0  #: and to listen to all that is for it


@invariant("lives")
def lives(case: Case) -> Iterator[Violation]:
    """The client's process goes on, for any input.

    Why:
        One frame of a broken broker, or of an attacker, ends the application's process.

    Rests on:
        common sense: input from the network is never a reason to end a process.

    Example:
        the client's process ended in publish: panic: index out of range.
    """
    if case.error:
        yield (case.error.strip().splitlines()[-1],)
    for done in case.ops:
        if done.result is not None and done.result.crashed:
            why = f": {case.last_words}" if case.last_words else ""
            yield f"the client's process ended in {done.op}{why}", done.begun


@invariant("no-unhandled")
def no_unhandled(case: Case) -> Iterator[Violation]:
    """No exception is lost outside the client's own code.

    Why:
        The failure is a line on stderr at best: no code of the application can react to it.

    Rests on:
        common sense: asyncio, Node and the JVM report such an exception only to a global handler; newer
            versions of Node end the process.

    Example:
        Task exception was never retrieved: ConnectionResetError.
    """
    lines = case.complaints.strip().splitlines()
    if lines:
        yield (lines[-1],)


@invariant("adapter-protocol")
def adapter_protocol(case: Case) -> Iterator[Violation]:
    """The adapter sends what the adapter protocol allows.

    Why:
        It is no defect of the client: what the adapter reports cannot be relied on until it is corrected.

    Rests on:
        all: conformance/ADAPTER.md, chapters 2 to 5.

    Example:
        op publish: expected `outcome` in the result, got {}.
    """
    for problem in case.violations:
        yield (problem,)


@invariant("op-ends")
def op_ends(case: Case) -> Iterator[Violation]:
    """Every op ends by its deadline.

    Why:
        A caller without a time-out of its own hangs for good, with everything that waits for it.

    Rests on:
        common sense: an op that has a time-out keeps it, also when the broker does not answer.

    Example:
        rmqs.query_offset gave no answer within 5 s.
    """
    for done in case.ops:
        if done.result is not None and done.result.hang:
            text = f"{done.op} gave no answer within {done.timeout_s:g} s{meanwhile(case, done)}"
            if done.op in PUBLISHING:
                yield May("ack_timeout", text), done.begun
            else:
                yield May("times_silence", text) if _still_comes(case, done) else text, done.begun


def _still_comes(case: Case, done: RunOp) -> bool:
    """Whether a frame began to come during an op and never got whole, and no silence on its connection was as
    long as the op may take, until it was called a hang."""
    hung_s = done.begun.t + patience_ms(done.timeout_s * 1000) / 1000
    return any(
        conn.partial and done.begun.t <= conn.partial_since_s < conn.handed[-1] > hung_s - done.timeout_s
        for conn in case.conns.values()
    )


@invariant("pending-is-true")
def pending_is_true(case: Case) -> Iterator[Violation]:
    """Nothing is pending while no op is open and every message has its outcome.

    Why:
        Entries of requests that are over stay: memory grows, and a shutdown that waits for them never ends.

    Rests on:
        common sense: what was answered, refused or given up is no longer pending.

    Example:
        1 request pending, and no op is open.
    """
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
        if any(
            reported.at is None or reported.at > begun
            for reported in case.reported
            if reported.done.begun < begun
        ):
            continue
        if _has_late(case, begun):
            continue
        yield f"{counted(result.value['pending'], 'request')} pending, and no op is open", done.ended


def _has_late(case: Case, at: Position) -> bool:
    """Whether the client may wait for answers to questions of its own: recovery, or taking something back."""
    return any(
        one.asked < at and (one.answered is None or one.answered > at) and one.asked.t > at.t - OWN_S
        for one in case.facts.questions
        if one.conn.stands(at)
    )


@invariant("no-growth")
def no_growth(case: Case) -> Iterator[Violation]:
    """What a client holds does not grow with every loss from which it has recovered, nor with what it has
    done and finished.

    Why:
        A service that runs for weeks, on an unsteady network or on a good one, dies of memory, threads or
        sockets.

    Rests on:
        common sense: after a recovery the client is what it was before, and so it is after a request.

    Example:
        tasks grows with every round: [4, 5, 6, 7].
    """
    looks = [done for done in case.done("stats") if done.phase == "rounds"]
    rows = [
        {**look.result.value, "connections": _standing(case, look.begun)}
        for look in looks
        if look.result is not None and look.result.ok
    ]
    if len(rows) < ROUNDS:
        return
    for name in ("tasks", "timers", "pending", "buffered_bytes", "threads", "connections"):
        values = [value for row in rows if isinstance(value := row.get(name), int)]
        if len(values) == len(rows):
            steps = [later - former for former, later in pairwise(values)]
            if sum(1 for step in steps if step > 0) >= len(steps) - 1 and values[-1] > values[0]:
                text = f"{name} grows with every round: {shown(values)}"
                yield May("fills_pools", text) if name == "threads" else text, None


def _standing(case: Case, at: Position) -> int | None:
    """How many connections the client has; None where a transport tells no server that a peer has left."""
    if case.traits.connecting.unseen_connections:
        return None
    return sum(1 for conn in case.conns.values() if conn.stands(at))


@invariant("failures-are-told")
def failures_are_told(case: Case) -> Iterator[Violation]:
    """Each failure of a callback is reported to the application, but for the one that reports failures.

    Why:
        An exception in a handler disappears, and the message it was about is taken for processed.

    Rests on:
        common sense: an exception reaches the application's code, or at least its error callback.

    Example:
        1 message callback failed, 0 errors reported.
    """
    for done in case.done("raise_next"):
        kind, times = done.args["callback"], done.args.get("times", 1)
        if done.result is None or not done.result.ok or done.ended is None or kind not in CALLED or not times:
            continue
        if not done.result.value.get("armed", True):
            continue  # a client without such a callback
        ends = [
            other.begun for other in case.done("raise_next", "close", "abort")
            if other.begun > done.begun and other.args.get("callback", kind) == kind
        ]  # fmt: skip
        end = min(ends, default=None)
        called = [
            heard for heard in case.heard(kind) if done.ended < heard.at and (not end or heard.at < end)
        ]
        reported = sum(1 for heard in case.heard("error") if heard.at > done.ended)
        if reported < min(times, len(called)):
            failed = counted(min(times, len(called)), f"{kind} callback")
            text = f"{failed} failed, {counted(reported, 'error')} reported"
            yield May("logs_callbacks", text), done.ended


@invariant("complaints-are-told")
def complaints_are_told(case: Case) -> Iterator[Violation]:
    """An error of the server that answers no request is reported to the application, with its code.

    Why:
        Lost rights, a failing storage or a closed channel are known to the library alone.

    Rests on:
        Narconi: the server may send an error at any time (docs/protocols/narconi.md, "WebSocket").
        BlazingMQ: a message that is not stored is refused though it asked for no ACK
            (docs/protocols/blazingmq.md, 4); a client should report it, and need not.
        NATS: -ERR may come at any time, with a text and no number (docs/protocols/nats.md, 2).

    Example:
        the server sent an error 500, and the application did not get it.

    Judges:
        narconi, blazingmq, nats
    """
    ends = [done.begun for done in case.done("close", "abort", "unsubscribe", "connect")]
    for one in case.facts.complaints:
        until_s = one.at.t + _reported_s(case)
        if not one.conn.serves(one.at) or any(end.t <= until_s for end in ends if end > one.at):
            continue
        told = [heard["error"] for heard in case.heard("error") if heard.at > one.at]
        told += [heard.event.fields for heard in case.heard("session") if heard.at > one.at]
        reported = [(each.get("code"), str(each.get("text"))) for each in told]
        reported += [(each.code, "") for each in case.reported if may_be_about(case, each)]
        if not any(case.traits.questions.is_reported_as(code, text, one.code) for code, text in reported):
            text = f"the server sent an error {one.code}, and the application did not get it"
            yield Should(text) if one.about_message else text, one.at


def _reported_s(case: Case) -> float:
    """How long it may take to inform others."""
    return BUSY_TOLD_S + case.slack_s if case.slack_s else TOLD_S


@invariant("tells-what-it-offers")
def tells_what_it_offers(case: Case) -> Iterator[Violation]:
    """On every connection that lasts the client announces what the application offers, whenever it changes.

    Why:
        Other nodes call services that are gone, or never find the new ones.

    Rests on:
        Moleculer: INFO is broadcast after services were added or removed, with the next seq
            (docs/protocols/moleculer.md, 3).

    Example:
        c1: the client announced nothing, the application offers s.echo.

    Judges:
        moleculer
    """
    offered = case.traits.peers.offered(case)
    if case.notes.has_several_sessions or not offered:
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
            due_s = max(since.t, conn.ready.t) + _reported_s(case)
            if due_s > over_s or any(change <= due_s for change in changes[number + 1 :]):
                continue
            reported = [one.what for one in case.facts.announced if one.conn is conn and one.at.t <= due_s]
            last = _offer(reported[-1]) if reported else NOTHING
            if last != _offer(what):  # who offers nothing need not say so
                yield (
                    f"{conn.name}: the client announced {last}, the application offers {_offer(what)}",
                    since,
                    conn.ready,
                )
                return


@invariant("tells-what-it-offers")
def offers_nothing_after_its_end(case: Case) -> Iterator[Violation]:
    """A node that stops, and has announced that it offers nothing any more, announces nothing else."""
    closes = [done.begun for done in case.done("close")]
    if case.notes.has_several_sessions or not closes:
        return
    since = max(closes)
    said = [one for one in case.facts.announced if one.at > since]
    ends = [one for one in said if not any(one.what)]
    for one in said:
        if ends and one.conn is ends[0].conn and one.at > ends[0].at and any(one.what):
            text = f"{one.conn.name}: the client stops, and announced {_offer(one.what)} once more"
            yield text, ends[0].at, one.at


def _offer(what: Iterable[Iterable[str]]) -> str:
    """Names of actions and patterns of events, as announced."""
    return ", ".join(sorted(name for names in what for name in names)) or NOTHING


@invariant("sends-what-it-was-given")
def sends_what_it_was_given(case: Case) -> Iterator[Violation]:
    """What an op sends to others is what the application gave, to those that it is for, once.

    Why:
        Wrong parameters, metadata or receivers: calls fail or do something else at the other end.

    Rests on:
        Moleculer: the fields of REQUEST and EVENT (docs/protocols/moleculer.md, 4.5, 4.8).

    Example:
        the REQ of p.echo, which the application itself calls: expected requestID "4f0c", got (absent).

    Judges:
        moleculer
    """
    for done in case.done(*case.traits.peers.sending):
        if done.result is not None and done.ended is not None and case.is_truthful:
            wrong = case.traits.peers.wrong_sending(case, done)
            if wrong:
                yield wrong, done.begun, done.ended


@invariant("spreads-its-questions", level="SHOULD")
def spreads_its_questions(case: Case) -> Iterator[Violation]:
    """Where several nodes can answer all the time, each of them is asked sooner or later.

    Why:
        One node gets all the load while the others idle.

    Rests on:
        Moleculer: a node is chosen for each call, by turns or at random (docs/protocols/moleculer.md, 4.8).

    Example:
        24 calls of p.echo, and none for node-3.

    Level:
        SHOULD: every call is answered; what suffers is the spread of the load.

    Judges:
        moleculer
    """
    if case.traits.peers.sending and (neglected := case.traits.peers.neglected(case)):
        yield neglected, None


@invariant("asks-what-it-does-not-know", level="SHOULD")
def asks_what_it_does_not_know(case: Case) -> Iterator[Violation]:
    """A node that has announced itself is not asked again and again while nothing of it has changed. Once
    is allowed: a request may be under way when its answer comes by itself.

    Why:
        In a large cluster the questions of all nodes to all nodes fill the network.

    Rests on:
        Moleculer: DISCOVER asks an unknown or a changed node for its INFO (docs/protocols/moleculer.md, 3).

    Example:
        c1: DISCOVER asks node-2 again, though nothing of it has changed.

    Level:
        SHOULD: the answers are right all the same; what suffers is the load on the others.

    Judges:
        moleculer
    """
    counts: Counter[str] = Counter()
    for at, what in case.facts.needless:
        counts[what] += 1
        if counts[what] > 1:
            yield what, at


@invariant("hears-what-is-for-it")
def hears_what_is_for_it(case: Case) -> Iterator[Violation]:
    """On every connection that lasts, the client subscribes to all topics that others may use for it.

    Why:
        Calls, answers or events for this node are published into the void; the caller waits for its
        time-out.

    Rests on:
        Moleculer: the twelve topics of a node (docs/protocols/moleculer.md, 2).

    Example:
        c1: the client has not subscribed to MOL.DISCOVER.node-1.

    Judges:
        moleculer
    """
    for at, what in case.facts.deaf:
        if case.ended_s > at.t + DEAF_S + case.slack_s:
            yield what, at


@invariant("hears-nothing-else")
def hears_nothing_else(case: Case) -> Iterator[Violation]:
    """A node is subscribed to no topic of another node, nor of what it does not offer any more.

    Why:
        Where the bus chooses who answers, calls go to a node that answers `service not found`, though others
        have the service.

    Rests on:
        Moleculer: the topics of a node, and those of its actions and events where the balancer is disabled
            (docs/protocols/moleculer.md, 2, 4.5, 4.8).

    Example:
        c1: the client is still subscribed to MOL.REQB.s.echo, which it does not offer.

    Judges:
        moleculer
    """
    for at, what in case.facts.overheard:
        if case.ended_s > at.t + DEAF_S + case.slack_s:
            yield what, at


@invariant("knows-who-is-there")
def knows_who_is_there(case: Case) -> Iterator[Violation]:
    """What the client reports of other nodes, until it is closed, is what they have announced of
    themselves.

    Why:
        The client calls nodes that are gone, or answers `service not found` though the service is there.

    Rests on:
        Moleculer: INFO, HEARTBEAT and DISCONNECT make the registry (docs/protocols/moleculer.md, 3).

    Example:
        node-2 is called there, and it is not so.

    Judges:
        moleculer
    """
    closing = case.mark("close")
    for done in case.done(*case.traits.peers.rosters):
        if closing is not None and done.ended is not None and done.ended > closing:
            continue
        if done.result is not None and done.result.ok and done.ended is not None and case.is_truthful:
            wrong = case.traits.peers.wrong_roster(case, done.result.value, done.begun, done.ended)
            if wrong:
                yield wrong, done.ended
