"""Connections: what is reported of them, and who ends them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from conformance.rules.registry import May, Violation, invariant
from conformance.run.case import Case
from conformance.run.showing import frame_at
from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.core.frames import Role, kind_of

SLACK_S = 0.01
TELLS_S = 1.0  #: what a client may take to report a loss
DEADLINE_S = 0.3  #: how exactly deadlines are kept
HANDSHAKE_S = 4.5  #: what every client grants a handshake
GOODBYE_S = 0.25  #: the least that anybody waits for the answer to a close
REST_S = 2.0  #: for the next bytes of a frame that has begun
PARTING_ROLES = (Role.CLOSE, Role.HEARTBEAT, Role.MALFORMED, Role.HANDSHAKE)
QUIET_ROLES = (Role.HANDSHAKE, Role.HEARTBEAT, Role.CLOSE, Role.MALFORMED)


def _works(conn: Conn, until: Position) -> bool:
    """Whether the client has used a connection for anything but itself."""
    return conn.ready is not None and any(
        conn.ready < seen.at < until and type(seen.frame).spec.role_in("in") not in QUIET_ROLES
        for seen in conn.of("in")
    )


@invariant("state-agrees")
def state_agrees(case: Case) -> Iterator[Violation]:
    """The client calls a session open while it has a connection that works, and only then.

    Why:
        An application that asks before it publishes publishes into a dead connection, or holds back
        although all is well.

    Rests on:
        common sense: `state` is what an application's health check reads.

    Example:
        the session is called open without a connection.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer
    """
    if case.traits.connecting.unseen_connections:
        return
    closing = case.mark("close")
    connected = {done.args["session"] for done in case.done("connect")}
    for done in case.done("state"):
        if done.result is None or not done.result.ok or done.ended is None or case.notes.has_several_sessions:
            continue
        begun, ended = done.begun, done.ended
        ready = [conn for conn in case.conns.values() if _was_ready(case, conn, begun, ended)]
        if done.result.value["open"]:
            if not ready and not case.traits.connecting.connects_late:
                text = "the session is called open without a connection"
                yield May("reads_odd", text) if _is_odd(case, begun) else text, ended
        elif done.args["session"] in connected and (closing is None or begun < closing):
            good = [conn for conn in ready if _worked_all_the_time(case, conn, begun, ended)]
            if good:
                text = f"the client does not call its session open, and {good[0].name} works"
                yield May("many_connections", text), ended


def _was_ready(case: Case, conn: Conn, begun: Position, ended: Position) -> bool:
    """Whether a connection was ready at any time between."""
    has_not_ended = conn.ended is None or conn.ended > begun or conn.ended.t + case.slack_s > begun.t
    return conn.ready is not None and conn.ready < ended and has_not_ended


def _worked_all_the_time(case: Case, conn: Conn, begun: Position, ended: Position) -> bool:
    """Whether a connection had been used before, and could be until the end, as far as one can tell."""
    lasts = conn.ended is None or conn.ended.t > ended.t + case.slack_s
    return conn.serves(ended) and conn.serves(begun) and _works(conn, begun) and lasts


def _is_odd(case: Case, until: Position) -> bool:
    """Whether there was a connection whose handshake was done, if what cannot be read was a part of it."""
    return any(conn.ready is None and case.is_unread(conn, until) for conn in case.conns.values())


@invariant("one-loss-event")
def one_loss_event(case: Case) -> Iterator[Violation]:
    """The loss of a connection is reported once; without a loss nothing is reported.

    Why:
        An application that reacts to losses (alerts, opens files again, counts) does it twice or never.

    Rests on:
        all: a lost connection is an event, not an end of the session (BlazingMQ: ConnectionLost,
            docs/protocols/blazingmq.md, 10).
        common sense: where a protocol does not describe an event, each loss is reported as often as it
            happens.

    Example:
        2 losses were reported, there was 1.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer
    """
    if case.notes.has_several_sessions or case.notes.raises or case.traits.connecting.unseen_connections:
        return
    reported = case.session_events("connection_lost")
    lost, closing_too = _losses(case)
    most = len(lost) + closing_too
    if case.slack_s and reported and reported[-1].at.t + case.slack_s > case.ended_s:
        most += 1  # of which the broker need not know yet
    if len(reported) > most:
        text = f"{len(reported)} losses were reported, there were {len(lost)}"
        yield (
            May("reads_odd" if _is_odd(case, reported[-1].at) else "many_connections", text),
            reported[-1].at,
        )
    sure = [conn for conn in lost if _has_to_be_reported(case, conn)]
    if len(reported) < len(sure):
        text = f"{len(reported)} losses were reported, there were {len(sure)}"
        yield May("many_connections", text), sure[-1].ended


def _losses(case: Case) -> tuple[list[Conn], int]:
    """The connections that were lost before the session was closed; how many may have been while it was."""
    closing = case.mark("close")
    lost, closing_too = list[Conn](), 0
    for conn in case.conns.values():
        if not conn.is_session or conn.ready is None or conn.ended is None:
            continue
        if closing is None or conn.ended < closing:
            lost += [conn] if conn.client_closing is None or _was_hopeless(case, conn) else []
        elif conn.ended > closing:
            by_answer = case.traits.answers_in_order and _an_op_ended(case, conn.ended)
            closing_too += conn.lost() is not None or by_answer
    lost += [conn for conn in case.conns.values() if conn.reading_stopped is not None and conn not in lost]
    return lost, closing_too


def _has_to_be_reported(case: Case, conn: Conn) -> bool:
    """Whether the client used it, has not announced its close, and had the time to report the loss."""
    if (
        conn.ended is None
        or conn.client_closing is not None
        or not conn.lost()
        or not _works(conn, conn.ended)
    ):
        return False
    return not case.slack_s or conn.ended.t + TELLS_S + case.slack_s < case.ended_s


def _was_hopeless(case: Case, conn: Conn) -> bool:
    """Whether the client has sent a close because it could not read on, or the answer did not come: that is a
    loss too."""
    if conn.client_closing is None or (
        conn.server_closing is not None and conn.server_closing < conn.client_closing
    ):
        return False
    was_garbage = conn.garbage is not None and conn.garbage < conn.client_closing
    return was_garbage or (case.traits.answers_in_order and _an_op_ended(case, conn.client_closing))


def _was_given_up(case: Case, at: Position) -> bool:
    """Whether a close that did not work out had begun by then: it may end its connection at once."""
    return any(d.begun < at for d in case.done("close") if d.result is not None and not d.result.ok)


@invariant("unprovoked-end")
def unprovoked_end(case: Case) -> Iterator[Violation]:
    """The client ends no connection that works, unless it sends what announces the end first.

    Why:
        Everything in flight is lost, and the broker logs an abnormal end; seen in production as reconnects
        without a cause.

    Rests on:
        RabbitMQ Stream: Close comes first and is answered (docs/protocols/rabbitmq-stream.md, 5).
        BlazingMQ: disconnect comes first (docs/protocols/blazingmq.md, 7).
        Narconi: a close frame comes first (RFC 6455, 7.1.1).
        Moleculer: DISCONNECT comes first (docs/protocols/moleculer.md, 3).

    Example:
        c1 was ended by the client; the server had been quiet for 0.2 s.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer
    """
    if case.traits.connecting.unseen_connections:
        return
    for conn in case.conns.values():
        if conn.ended is None or conn.ended_by != "client" or _has_reason(case, conn, conn.ended):
            continue
        quiet_s = _quiet_s(conn, conn.ended)
        text = f"{conn.name} was ended by the client; the server had been quiet for {quiet_s:.1f} s"
        yield May("drops_idle", text), conn.ended


def _has_reason(case: Case, conn: Conn, ended: Position) -> bool:
    """Whether the client may end a connection: by what was reported to it, by what the application did, by
    time."""
    closing = case.mark("close")
    return (
        # what the client makes of lies is its own affair
        (conn.name in case.touched and not case.is_truthful)
        or (case.notes.has_several_sessions and _was_given_up(case, ended))
        or (closing is not None and ended > closing)
        or bool(conn.server_closing or conn.garbage or conn.turned_away or conn.client_closing)
        or conn.unwanted is not None
        or conn.spoiled is not None
        or _needs_it_no_more(case, conn, ended)
        or was_quiet(case, conn, ended)
    )


def _needs_it_no_more(case: Case, conn: Conn, ended: Position) -> bool:
    """Whether what the connection was made for is over."""
    if not case.traits.connecting.announces_end and any(done.begun < ended for done in case.done("close")):
        return True
    if any(conn.accepted < done.begun < ended for done in case.done("abort")):
        return True  # which ends connections without a farewell
    if conn.ready is None:
        closes = [done.begun for done in case.done("close", "abort")]
        if any(conn.accepted < begun < ended for begun in closes):
            return True  # and there is no one to send a close to
        if _is_over(case, conn, ended):
            return True
    return (
        _was_cancelled(case, conn)
        or _came_too_late(case, conn, ended)
        or (case.traits.answers_in_order and _an_op_ended(case, ended))
    )


def was_quiet(case: Case, conn: Conn, ended: Position) -> bool:
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


def _quiet_s(conn: Conn, ended: Position) -> float:
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


def _waits_for_a_rest(conn: Conn, at: Position, quiet_s: float) -> bool:
    """Whether a frame has begun, and its rest does not come, or takes as long as silence may."""
    patience = conn.agreed.patience_s
    is_long = patience is not None and at.t - conn.partial_since.t >= patience[1] - SLACK_S
    return bool(conn.partial) and (quiet_s > REST_S or is_long)


def _was_cancelled(case: Case, conn: Conn) -> bool:
    """Whether the attempt to connect that has made a connection was cancelled."""
    connects = [done for done in case.done("connect") if done.begun < conn.accepted]
    last = connects[-1].result if connects else None
    return last is not None and last.word == "cancelled"


def _came_too_late(case: Case, conn: Conn, ended: Position) -> bool:
    """Whether it ends with the connect that has made it and has run out of time."""
    return any(
        done.result is not None and done.result.word == "timeout" and done.ended is not None
        and done.begun < conn.accepted and abs(done.ended.t - ended.t) <= case.slack_s
        for done in case.done("connect")
    )  # fmt: skip


def _is_over(case: Case, conn: Conn, ended: Position) -> bool:
    """Whether the time for a handshake is over: that of the client, or that of an op that waits for it."""
    if case.notes.abandons or ended.t - conn.accepted.t > HANDSHAKE_S:
        return True
    return any(done.may_run_out(ended, DEADLINE_S) for done in case.ops)


def _an_op_ended(case: Case, ended: Position) -> bool:
    """Whether an op ended then without its answer, by its deadline or because it was called off."""
    ends = [done.ended for done in case.ops if done.result is not None and not done.result.ok]
    ends += [reported.at for reported in case.reported if reported.word == "unknown"]
    return any(end is not None and abs(end.t - ended.t) < SLACK_S + case.slack_s for end in ends)


@invariant("waits-for-its-answers")
def waits_for_its_answers(case: Case) -> Iterator[Violation]:
    """A client that ends a connection by a request waits for the answer, as long as it has time.

    Why:
        What the server still sends (the last confirms, deliveries) is lost with the socket, so messages
        that are stored end as unknown.

    Rests on:
        RabbitMQ Stream: Close is answered by CloseResponse (docs/protocols/rabbitmq-stream.md, 5).
        BlazingMQ: disconnect is answered, then the client ends TCP (docs/protocols/blazingmq.md, 6.5).
        Narconi: both sides send a close frame (RFC 6455, 7.1.1).

    Example:
        c1 was ended 0.00 s after its Close, which had no answer yet.

    Judges:
        rabbitmq-stream, blazingmq, narconi
    """
    closes = [done for done in case.done("close") if done.result is not None]
    given_s = min([done.timeout_s for done in closes], default=math.inf)
    aborts = [done.begun for done in case.done("abort")]
    for question in case.facts.questions:
        conn, role = question.conn, type(question.frame).spec.role_in("in")
        if role is not Role.CLOSE or question.answered is not None or conn.ended_by != "client":
            continue
        if conn.server_closing or conn.garbage or conn.partial or conn.ended is None:
            continue
        waited_s = conn.ended.t - question.asked.t
        over = any(question.asked < begun < conn.ended for begun in aborts)
        if waited_s < min(GOODBYE_S, given_s - SLACK_S) and not over and not _times_out(case, conn.ended):
            kind = kind_of(question.frame)
            text = f"{conn.name} was ended {waited_s:.2f} s after its {kind}, which had no answer yet"
            yield May("drops_idle", text), conn.ended


def _times_out(case: Case, ended: Position) -> bool:
    """Whether an op ends then by its deadline."""
    return any(done.may_run_out(ended, DEADLINE_S) for done in case.ops)


@invariant("silent-behind-its-goodbye")
def silent_behind_goodbye(case: Case) -> Iterator[Violation]:
    """After the frame that announces the end the client sends nothing on a connection but what ends it, and
    answers.

    Why:
        Servers drop it unread: what is published there is lost, although the write worked.

    Rests on:
        RabbitMQ Stream: what follows a client's Close is dropped (docs/protocols/rabbitmq-stream.md, 5).
        BlazingMQ: events after disconnect are dropped (docs/protocols/blazingmq.md, 7).
        Narconi: no data frame follows a close frame (RFC 6455, 5.5.1).
        Moleculer: other nodes have removed a node after its DISCONNECT (docs/protocols/moleculer.md, 3).

    Example:
        Heartbeat after its Disconnect on c1: the other nodes take the stopped node for alive.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer
    """
    for conn in case.conns.values():
        if conn.client_closing is None or conn.client_closing == conn.ended:
            continue
        for seen in conn.of("in"):
            kind = type(seen.frame)
            role = kind.spec.role_in("in")
            if role is Role.SHUT and kind in case.traits.connecting.set_up:
                continue  # the close is for other clients; so the server gets it
            if kind in case.traits.questions.questions.values():
                continue
            if seen.at > conn.client_closing and role not in PARTING_ROLES:
                end = frame_at(conn, conn.client_closing)
                yield f"{kind_of(seen.frame)} after its {end} on {conn.name}", conn.client_closing, seen.at
                break
