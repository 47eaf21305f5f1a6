"""Connections: what is told of them, signs of life, and who ends them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from conformance.invariants.registry import May, Violation, invariant
from conformance.sweep.case import Case
from conformance.sweep.tape import Moment
from conformance.sweep.view import Conn, Seen
from fakebrokers.core.frames import Malformed, Role, kind_of

SLACK_S = 0.01
TELLS_S = 1.0  #: what a client may take to tell of a loss
DEADLINE_S = 0.3  #: how exactly deadlines are kept
HANDSHAKE_S = 4.5  #: what every client grants a handshake
GIVE_UP_S = 2.0
GOODBYE_S = 0.25  #: the least that anybody waits for the answer to a goodbye
REST_S = 2.0  #: for the next bytes of a frame that has begun
UNSEEN_S = 0.5  #: the same for transports that connect by themselves: they make short pauses
GREETED_S = 1.5
STOOD_S = 0.3  #: a connection that ends sooner has come for nothing
SIGNS = 6  #: of life within a second that nobody has agreed to
STORM = 9  #: connections within a second that no back-off makes
PARTING_ROLES = (Role.CLOSE, Role.HEARTBEAT, Role.MALFORMED, Role.HANDSHAKE)
QUIET_ROLES = (Role.HANDSHAKE, Role.HEARTBEAT, Role.CLOSE, Role.MALFORMED)


def _works(conn: Conn, until: Moment) -> bool:
    """Whether the client has used a connection for anything but itself."""
    return conn.ready is not None and any(
        conn.ready < seen.at < until and type(seen.frame).spec.role_in("in") not in QUIET_ROLES
        for seen in conn.of("in")
    )


@invariant("state-agrees")
def state_agrees(case: Case) -> Iterator[Violation]:
    """The client calls a session open while it has a connection that works, and only then."""
    if case.model.unseen_connections:
        return
    closing = case.mark("close")
    for done in case.done("state"):
        if done.result is None or not done.result.ok or done.ended is None or "sessions" in case.notes:
            continue
        begun, ended = done.begun, done.ended
        standing = [
            conn
            for conn in case.conns.values()
            if conn.ready is not None
            and conn.ready < ended
            and (conn.ended is None or conn.ended > begun or conn.ended.t + case.slack_s > begun.t)
        ]
        if done.result.value["open"]:
            if not standing and not case.model.connects_late:
                text = "the session is called open without a connection"
                yield May("reads_odd", text) if _is_odd(case, begun) else text, ended
        elif closing is None or begun < closing:
            good = [
                conn
                for conn in standing
                if conn.serves(ended) and conn.serves(begun) and _works(conn, begun)
                and (conn.ended is None or conn.ended.t > ended.t + case.slack_s)
            ]  # fmt: skip
            if good:
                text = f"the session is not called open, and {good[0].name} works"
                yield May("many_connections", text), ended


def _is_odd(case: Case, until: Moment) -> bool:
    """Whether there was a connection whose handshake was done, if what cannot be read was a part of it."""
    return any(conn.ready is None and case.is_unread(conn, until) for conn in case.conns.values())


@invariant("one-loss-event")
def one_loss_event(case: Case) -> Iterator[Violation]:
    """The loss of a connection is told once; nothing is told where none was lost."""
    if "sessions" in case.notes or "raises" in case.notes or case.model.unseen_connections:
        return
    closing = case.mark("close")
    told = case.session_events("connection_lost")
    ended = [
        conn
        for conn in case.conns.values()
        if conn.is_session
        and conn.ready is not None
        and conn.ended is not None
        and (closing is None or conn.ended < closing)
    ]
    lost = [conn for conn in ended if conn.parting is None or _was_hopeless(case, conn)]
    lost += [conn for conn in case.conns.values() if conn.deaf is not None and conn not in lost]
    closing_too = [
        conn for conn in case.conns.values()
        if closing is not None and conn.ready is not None and conn.ended is not None and conn.ended > closing
        and conn.is_session
        and (conn.lost() is not None or (case.model.answers_in_order and _an_op_ended(case, conn.ended)))
    ]  # fmt: skip
    is_new = bool(told) and told[-1].at.t + case.slack_s > case.ended_s  # the broker need not know of it
    if len(told) - is_new * bool(case.slack_s) > len(lost) + len(closing_too):
        text = f"{len(told)} losses were told, there were {len(lost)}"
        yield May("reads_odd" if _is_odd(case, told[-1].at) else "many_connections", text), told[-1].at
    sure = [
        conn
        for conn in lost
        if conn.ended and conn.parting is None and conn.lost() and _works(conn, conn.ended)
        and (not case.slack_s or conn.ended.t + TELLS_S + case.slack_s < case.ended_s)
    ]  # fmt: skip
    if len(told) < len(sure):
        text = f"{len(told)} losses were told, there were {len(sure)}"
        yield May("many_connections", text), sure[-1].ended


def _was_hopeless(case: Case, conn: Conn) -> bool:
    """Whether the client has said goodbye because it could not read on, or the answer did not come: that is a
    loss too."""
    if conn.parting is None or (conn.goodbye is not None and conn.goodbye < conn.parting):
        return False
    was_garbage = conn.garbage is not None and conn.garbage < conn.parting
    return was_garbage or (case.model.answers_in_order and _an_op_ended(case, conn.parting))


def _was_given_up(case: Case, at: Moment) -> bool:
    """Whether a close that did not work out had begun by then: it may end its connection as it stands."""
    return any(d.begun < at for d in case.done("close") if d.result is not None and not d.result.ok)


@invariant("unprovoked-end")
def unprovoked_end(case: Case) -> Iterator[Violation]:
    """The client ends no connection that works, unless it says goodbye first."""
    if case.model.unseen_connections:
        return
    for conn in case.conns.values():
        if conn.ended is None or conn.ended_by != "client" or _has_reason(case, conn, conn.ended):
            continue
        text = f"{conn.name} was ended by the client; it was quiet for {_quiet_s(conn, conn.ended):.1f} s"
        yield May("drops_idle", text), conn.ended


def _has_reason(case: Case, conn: Conn, ended: Moment) -> bool:
    """Whether the client may end a connection: by what it was told, by what the application did, by time."""
    closing = case.mark("close")
    return (
        # what the client makes of lies is its own affair
        (conn.name in case.touched and not case.is_truthful)
        or ("sessions" in case.notes and _was_given_up(case, ended))
        or (closing is not None and ended > closing)
        or bool(conn.goodbye or conn.garbage or conn.turned_away or conn.parting)
        or conn.unwanted is not None
        or _needs_it_no_more(case, conn, ended)
        or was_quiet(case, conn, ended)
    )


def _needs_it_no_more(case: Case, conn: Conn, ended: Moment) -> bool:
    """Whether what the connection was made for is over."""
    if conn.ready is None:
        closes = [done.begun for done in case.done("close", "abort")]
        if any(conn.accepted < begun < ended for begun in closes):
            return True  # and there is nobody to say goodbye to
        if _is_over(case, conn, ended):
            return True
    return (
        _was_cancelled(case, conn)
        or _came_too_late(case, conn, ended)
        or (case.model.answers_in_order and _an_op_ended(case, ended))
    )


def was_quiet(case: Case, conn: Conn, ended: Moment) -> bool:
    """Whether nothing came from the server for so long that the client may give it up."""
    quiet_s = _quiet_s(conn, ended)
    if _waits_for_a_rest(conn, ended, quiet_s):
        return True
    patience = conn.agreed.patience_s
    if patience is None:
        return _asked_for_life(conn, conn.handed, DEADLINE_S)
    wait_s = conn.agreed.answer_s - SLACK_S - case.slack_s
    if conn.agreed.answer_s and not _asked_for_life(conn, conn.answered or [], wait_s):
        return False
    return bool(patience) and quiet_s >= patience[0] - SLACK_S - case.slack_s


def _quiet_s(conn: Conn, ended: Moment) -> float:
    return ended.t - (conn.handed[-1] if conn.handed else conn.accepted.t)


def _asked_for_life(conn: Conn, came: Sequence[float], wait_s: float) -> bool:
    """Whether the client has asked for a sign of life, has waited that long, and none has come since."""
    assert conn.ended is not None
    last = came[-1] if came else conn.accepted.t
    asked = [
        seen.at.t
        for seen in conn.of("in")
        if seen.at.t > last and type(seen.frame).spec.role_in("in") is Role.HEARTBEAT
    ]
    return bool(asked) and conn.ended.t - asked[0] > wait_s


def _waits_for_a_rest(conn: Conn, at: Moment, quiet_s: float) -> bool:
    """Whether a frame has begun, and its rest does not come, or takes as long as silence may."""
    patience = conn.agreed.patience_s
    is_long = patience is not None and at.t - conn.partial_since_s >= patience[1] - SLACK_S
    return bool(conn.partial) and (quiet_s > REST_S or is_long)


def _was_cancelled(case: Case, conn: Conn) -> bool:
    """Whether the attempt to connect that has made a connection was cancelled."""
    connects = [done for done in case.done("connect") if done.begun < conn.accepted]
    last = connects[-1].result if connects else None
    return last is not None and last.word == "cancelled"


def _came_too_late(case: Case, conn: Conn, ended: Moment) -> bool:
    """Whether it ends with the connect that has made it and has run out of time."""
    return any(
        done.result is not None and done.result.word == "timeout" and done.ended is not None
        and done.begun < conn.accepted and abs(done.ended.t - ended.t) <= case.slack_s
        for done in case.done("connect")
    )  # fmt: skip


def _is_over(case: Case, conn: Conn, ended: Moment) -> bool:
    """Whether the time for a handshake is over: that of the client, or that of an op that waits for it."""
    if "abandons" in case.notes or ended.t - conn.accepted.t > HANDSHAKE_S:
        return True
    return any(abs(done.begun.t + done.timeout_s - ended.t) < DEADLINE_S for done in case.ops)


def _an_op_ended(case: Case, ended: Moment) -> bool:
    """Whether an op ended then without its answer, by its deadline or because it was called off."""
    ends = [done.ended for done in case.ops if done.result is not None and not done.result.ok]
    ends += [told.at for told in case.told if told.word == "unknown"]
    return any(end is not None and abs(end.t - ended.t) < SLACK_S for end in ends)


@invariant("waits-for-its-answers")
def waits_for_its_answers(case: Case) -> Iterator[Violation]:
    """A client that says goodbye in the form of a question waits for the answer, as long as it has time."""
    closes = [done for done in case.done("close") if done.result is not None]
    given_s = min([done.timeout_s for done in closes], default=math.inf)
    aborts = [done.begun for done in case.done("abort")]
    for question in case.facts.questions:
        conn, role = question.conn, type(question.frame).spec.role_in("in")
        if role is not Role.CLOSE or question.answered is not None or conn.ended_by != "client":
            continue
        if conn.goodbye or conn.garbage or conn.partial or conn.ended is None:
            continue
        waited_s = conn.ended.t - question.asked.t
        over = any(question.asked < begun < conn.ended for begun in aborts)
        if waited_s < min(GOODBYE_S, given_s - SLACK_S) and not over and not _times_out(case, conn.ended):
            text = f"{conn.name} was ended {waited_s:.2f} s behind an unanswered goodbye"
            yield May("drops_idle", text), conn.ended


def _times_out(case: Case, ended: Moment) -> bool:
    """Whether an op ends then by its deadline."""
    return any(abs(done.begun.t + done.timeout_s - ended.t) < DEADLINE_S for done in case.ops)


@invariant("handshake-first")
def handshake_first(case: Case) -> Iterator[Violation]:
    """Until a connection is ready the client says only what makes it ready, or ends it."""
    answers = {*case.model.questions.values(), *case.model.set_up}
    for conn in case.conns.values():
        for seen in conn.of("in"):
            if conn.ready is not None and seen.at > conn.ready:
                break
            role = type(seen.frame).spec.role_in("in")
            beats = role is Role.HEARTBEAT and conn.agreed.at is not None and conn.agreed.at < seen.at
            if role in (Role.HANDSHAKE, Role.CLOSE, Role.MALFORMED) or beats or type(seen.frame) in answers:
                continue
            word = "reads_odd" if case.is_unread(conn, seen.at) else "pipelines"
            yield May(word, f"{kind_of(seen.frame)} before the handshake was done"), seen.at


@invariant("silent-behind-its-goodbye")
def silent_behind_goodbye(case: Case) -> Iterator[Violation]:
    """Behind its goodbye the client says nothing on a connection but what ends it, and answers."""
    for conn in case.conns.values():
        if conn.parting is None or conn.parting == conn.ended:
            continue
        for seen in conn.of("in"):
            kind = type(seen.frame)
            role = kind.spec.role_in("in")
            if role is Role.SHUT and kind in case.model.set_up:
                continue  # the goodbye is for other clients; so the server is told
            if kind in case.model.questions.values():
                continue
            if seen.at > conn.parting and role not in PARTING_ROLES:
                yield f"{kind_of(seen.frame)} behind its goodbye on {conn.name}", conn.parting, seen.at
                break


@invariant("greets-on-every-connection")
def greets_on_every_connection(case: Case) -> Iterator[Violation]:
    """On every connection that lasts, the client says what opens a talk with others."""
    closes = [done.begun.t for done in case.done("close", "abort")]
    for conn in case.conns.values():
        if conn.ready is None:
            continue
        until_s = conn.ready.t + GREETED_S + case.slack_s
        marks = [mark.t for mark in (conn.lost(), conn.ended, conn.parting) if mark is not None]
        if until_s > min([*marks, *closes, case.ended_s]):
            continue
        said = {type(seen.frame) for seen in conn.of("in") if seen.at.t <= until_s}
        missing = [kind_of(kind) for kind in case.model.greetings if kind not in said]
        if missing:
            yield f"{conn.name} was ready, and there was no {missing[0]} on it", conn.ready


@invariant("beats")
def beats(case: Case) -> Iterator[Violation]:
    """A client that has agreed to heartbeats is never silent for longer, unless its process stood still."""
    if "stopped" in case.notes:
        return
    for conn in case.conns.values():
        beat = conn.agreed.heartbeat_s
        if not beat or conn.ready is None:
            continue
        last = conn.ready.t + conn.agreed.start_s
        ends = [mark.t for mark in (conn.ended, conn.parting, conn.deaf) if mark is not None]
        end = min(ends, default=case.ended_s)
        signs = conn.written if conn.signs is None else conn.signs
        for moment in [*(t for t in signs if last <= t < end), end]:
            if moment - last > 1.2 * beat + 0.25 + case.slack_s:
                text = f"{moment - last:.1f} s without a sign of life, {beat:g} s were agreed"
                is_late = moment - last <= 2 * beat + 0.25 + case.slack_s
                text = f"{conn.name}: {text}"
                yield May("beats_late", text) if is_late else text, conn.ready
                break
            last = moment


@invariant("no-storm")
def signs_have_pauses(case: Case) -> Iterator[Violation]:
    """Signs of life that nobody asked for have pauses in between."""
    for conn in case.conns.values():
        asked = [seen.at.t for seen in conn.of("out") if _is_sign(seen, "out")]
        given = [seen.at.t for seen in conn.of("in") if _is_sign(seen, "in")]
        for first, last in zip(given, given[SIGNS:], strict=False):
            answers = bisect_right(asked, last) - bisect_left(asked, first - 1.0)
            if last - first < 1.0 and answers == 0:
                yield f"{conn.name}: {SIGNS + 1} signs of life in {last - first:.2f} s", conn.ready
                break


def _is_sign(seen: Seen, direction: str) -> bool:
    return type(seen.frame).spec.role_in(direction) is Role.HEARTBEAT


@invariant("silence-noticed")
def silence_noticed(case: Case) -> Iterator[Violation]:
    """A server that has agreed to heartbeats and falls silent is given up."""
    for conn in case.conns.values():
        patience = conn.agreed.patience_s
        if not patience or conn.ready is None:
            continue
        last = conn.ready.t
        end = conn.ended.t if conn.ended is not None else case.ended_s
        heard = conn.handed if conn.answered is None else conn.answered
        for moment in [*(t for t in heard if t >= last), end]:
            if moment - last > patience[1] + 1.0 + case.slack_s:
                what = f"{moment - last:.1f} s of silence, {patience[1]:g} s are the most"
                yield f"{conn.name}: {what}", conn.ready
                break
            last = moment


@invariant("no-storm")
def no_storm(case: Case) -> Iterator[Violation]:
    """Attempts to connect have pauses in between."""
    if "sessions" in case.notes:
        return
    for socket in {conn.socket for conn in case.conns.values()}:
        yield from _storms(case, [conn for conn in case.conns.values() if conn.socket == socket])


def _storms(case: Case, conns: list[Conn]) -> Iterator[Violation]:
    within_s = UNSEEN_S if case.model.unseen_connections else 1.0
    conns = sorted(conns, key=lambda conn: conn.accepted)
    later = [conn for former, conn in pairwise(conns) if not _was_lost_at_work(former)]
    times = [conn.accepted.t for conn in [*conns[:1], *later]]
    more = len(list(case.done("subscribe"))) if case.model.connects_late else 0  # each has its own
    most = STORM + STORM // 3 * more
    for at in range(len(times) - most + 1):
        if case.model.connects_late and any(
            times[at] <= done.begun.t <= times[at] + 1.0 for done in case.ops
        ):
            continue  # each op may have made one
        if case.model.unseen_connections and any(
            times[at] - 1.0 <= done.begun.t <= times[at + most - 1] for done in case.done(*case.model.ops)
        ):
            continue  # each question may have made one
        if case.model.unseen_connections and _replaced(case, times[at], times[at + most - 1]):
            continue  # several sockets come back at once, each behind its own loss
        if times[at + most - 1] - times[at] < within_s:
            text = f"{most} connections in {times[at + most - 1] - times[at]:.2f} s"
            yield (May("many_connections", text),)


def _was_lost_at_work(conn: Conn) -> bool:
    """Whether the broker has ended a connection on which it had served the client."""
    asked = [seen.at for seen in conn.of("in") if type(seen.frame).spec.role_in("in") not in QUIET_ROLES]
    return conn.ended_by == "broker" and any(
        seen.at > asked[0] for seen in conn.of("out") if asked and not isinstance(seen.frame, Malformed)
    )


def _replaced(case: Case, first_s: float, last_s: float) -> bool:
    """Whether the broker has ended so many connections about then that had stood for a while."""
    stood = [
        conn
        for conn in case.conns.values()
        if conn.ended is not None and conn.ended_by == "broker" and conn.ended.t - conn.accepted.t > STOOD_S
    ]
    losses = sum(1 for conn in stood if conn.ended and first_s - 1.0 <= conn.ended.t <= last_s)
    return losses >= STORM // 2


@invariant("refusal-ends")
def refusal_ends(case: Case) -> Iterator[Violation]:
    """A handshake that the server has refused goes no further."""
    for conn in case.conns.values():
        if conn.turned_away is None:
            continue
        for seen in conn.of("in"):
            if case.before(conn.turned_away[0], seen.at) and type(seen.frame).spec.role_in("in") not in (
                Role.CLOSE, Role.HEARTBEAT, Role.MALFORMED,
            ):  # fmt: skip
                yield f"{kind_of(seen.frame)} behind a refusal with code {conn.turned_away[1]}", seen.at
                break


@invariant("garbage-ends")
def garbage_ends(case: Case) -> Iterator[Violation]:
    """A connection on which the client cannot tell any more where frames begin is given up."""
    for conn in case.conns.values():
        if conn.garbage is None:
            continue
        end_s = case.ended_s if conn.ended is None else conn.ended.t
        if end_s > conn.garbage.t + GIVE_UP_S + case.slack_s:
            text = f"{conn.name} went on for {end_s - conn.garbage.t:.1f} s behind what nobody can read"
            yield May("reads_on", text), conn.garbage
