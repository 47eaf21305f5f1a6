"""The end of a session, and of connections by the server's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.rules.queues import pause_s
from conformance.rules.registry import May, Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.showing import frame_at
from conformance.run.trace import Position
from conformance.run.traits.delivery import ENDING
from conformance.run.view import Conn
from fakebrokers.core.frames import Role

AT_ONCE_S = 0.3
FREES_S = 1.0  #: a client may have something to do with a connection that is over
LEFT = ("tasks", "timers", "pending", "buffered_bytes")


def _close(case: Case) -> RunOp | None:
    closes = [done for done in case.done("close") if done.phase == "close" and done.result is not None]
    if not closes or case.notes.has_several_sessions or _had_nothing(case, closes[-1]):
        return None
    return closes[-1]


def _had_nothing(case: Case, done: RunOp) -> bool:
    """Whether there was nothing yet to close: a library may give nothing to hold before it is connected."""
    assert done.result is not None
    error = done.result.error
    connected = any(
        one.result is not None and one.result.ok and one.ended is not None and one.ended < done.begun
        for one in case.done("connect")
    )
    return error is not None and done.result.word == "closed" and error.definite and not connected


@invariant("close-ends")
def close_ends(case: Case) -> Iterator[Violation]:
    """After a close the client has no connection, delivers no event, and keeps no task, timer or buffer.

    Why:
        A process that has closed its client cannot end, or gets messages for objects that are gone; one
        that connects and closes often runs out of memory and sockets.

    Rests on:
        RabbitMQ Stream: Close ends the connection (docs/protocols/rabbitmq-stream.md, 5).
        BlazingMQ: disconnect is the last request, then the client ends TCP (docs/protocols/blazingmq.md,
            7).
        Moleculer: a node that stops sends DISCONNECT and closes its connection
            (docs/protocols/moleculer.md, 3).
        elsewhere: common sense: close is how an application gives its resources back.

    Example:
        c2 was opened after the close: a reconnect that was under way was not cancelled.
    """
    done = _close(case)
    if done is None or done.ended is None:
        return
    for conn in case.conns.values():
        if conn.reading_stopped is not None or done.ended.t + case.slack_s >= case.ended_s:
            continue  # the broker need not have seen the end of it
        if case.before(done.ended, conn.accepted):
            if not _hands_over(case, conn):
                yield f"{conn.name} was opened after the close", conn.accepted
        elif conn.ended is None:
            yield f"{conn.name} is open after the close", conn.accepted
    yield from _ops_after(case, done.ended)
    yield from _events_after(case, done.ended)
    for stats in case.done("stats"):
        if stats.begun > done.ended and stats.result is not None and stats.result.ok:
            now = stats.result.value
            if left := _more_than(case.rest, now):
                rest = ", ".join(f"{name} {count}" for name, count in left.items())
                yield f"left after the close: {rest}", stats.ended


def ends(case: Case) -> list[RunOp]:
    """The ops of a run that end something."""
    return list(case.done(*ENDING, *case.traits.delivery.ending))


def meanwhile(case: Case, done: RunOp) -> str:
    """Which other end was under way when one began, for whose sake it may have waited; "" if none was."""
    those = [other for other in ends(case) if other.op != "close"]  # two closes may ask for the same
    for other in those if done in ends(case) else ():
        if other.begun < done.begun and (other.ended is None or other.ended > done.begun):
            what = f"{other.op} of {other.args['sub']}" if "sub" in other.args else other.op
            return f", and {what}, begun {done.begun.t - other.begun.t:.1f} s before it, was under way"
    return ""


def called_off(case: Case, done: RunOp) -> bool:
    """Whether the application has ended by other means what an op ends, before that was over."""
    return any(
        other is not done and other.args.get("sub") in (None, done.args.get("sub"))
        for other in ends(case)
        if other.begun > done.begun and (done.ended is None or other.begun < done.ended)
    )


def _hands_over(case: Case, conn: Conn) -> bool:
    """Whether a transport of its own has brought what was published before the close, and has ended."""
    said = [type(seen.frame).spec.role_in("in") for seen in conn.of("in")]
    has_ended = case.traits.connecting.unseen_connections and conn.ended is not None
    return has_ended and set(said) == {Role.PUBLISH}


def _events_after(case: Case, closed: Position) -> Iterator[Violation]:
    """Nothing is told behind a close, but its own end, and at once what it has ended."""
    for heard in case.events:
        if heard.at <= closed or heard.what not in ("message", "session", "outcome"):
            continue
        what = heard["what"] if heard.what == "session" else heard.what
        is_at_once = heard.at.t - closed.t <= AT_ONCE_S + case.slack_s
        if what != "disconnected" and not (what == "outcome" and is_at_once):
            yield f"an event {what} after the close", heard.at


def _more_than(rest: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What there is more of now than a client has at rest."""
    return {name: now[name] for name in LEFT if (now.get(name) or 0) > (rest.get(name) or 0)}


def _ops_after(case: Case, closed: Position) -> Iterator[Violation]:
    """A close ends all that is asked of the server, and nothing more can be asked."""
    for done in case.ops:
        if done.op not in _asking(case) or done.ended is None or done.result is None:
            continue
        late_s = done.ended.t - max(closed.t, done.begun.t)
        if done.op != "connect" and done.begun > closed and done.result.ok:
            yield f"{done.op} ended ok after the close", done.begun, done.ended
        elif late_s > AT_ONCE_S + case.slack_s and (done.op != "connect" or done.begun < closed):
            yield f"{done.op} went on for {late_s:.1f} s after the close", done.begun, done.ended


def _asking(case: Case) -> set[str]:
    """The ops that ask the server for something."""
    return {*case.traits.questions.ops, "connect", "publish", "publish_many", "subscribe"}


@invariant("close-ends")
def close_ends_other_ends(case: Case) -> Iterator[Violation]:
    """A close ends what the application has begun to end, too: after it no end waits for anything."""
    closed = _close(case)
    if closed is None or closed.ended is None:
        return
    for done in ends(case):
        if done.op in ("close", "abort") or done.ended is None or done.begun > closed.ended:
            continue
        late_s = done.ended.t - closed.ended.t
        if late_s > AT_ONCE_S + case.slack_s:
            yield f"{done.op} went on for {late_s:.1f} s after the close", done.begun, done.ended


@invariant("close-ends")
def abort_ends(case: Case) -> Iterator[Violation]:
    """A session that is dropped without a farewell ends all that is asked of the server, too."""
    asking = _asking(case)
    for abort in case.done("abort"):
        if abort.ended is None or abort.result is None or not abort.result.ok:
            continue
        for done in case.ops:
            is_its = done.op in asking and done.args.get("session") == abort.args.get("session")
            if not is_its or done.ended is None or done.begun > abort.begun:
                continue
            late_s = done.ended.t - abort.ended.t
            if late_s > AT_ONCE_S + case.slack_s:
                yield f"{done.op} went on for {late_s:.1f} s after the abort", done.begun, done.ended


@invariant("both-sides-end")
def both_sides_end(case: Case) -> Iterator[Violation]:
    """A connection that the server has ended the client ends too: only the client can release its socket.
    This cannot be judged from outside, where the client is a process of its own.

    Why:
        Half-closed sockets add up, one for each loss, until the process has no file descriptors left.

    Rests on:
        all over TCP: a socket is released when both sides have closed it (RFC 9293, 3.6: CLOSE-WAIT lasts
            until the local side closes).

    Example:
        c1 was ended by the server, the client kept it open for 4.0 s.
    """
    if case.slack_s or case.traits.connecting.unseen_connections:
        return
    for conn in case.conns.values():
        if conn.left_open is None:
            continue
        ended, freed = conn.left_open
        until_s = case.ended_s if freed is None else freed.t
        if until_s > ended.t + FREES_S:
            yield (
                f"{conn.name} was ended by the server, the client kept it open for {until_s - ended.t:.1f} s",
                ended,
            )


@invariant("loss-ends-close")
def loss_ends_close(case: Case) -> Iterator[Violation]:
    """A close has nothing to wait for once all connections are gone.

    Why:
        A shutdown hangs exactly when the broker is down, and an orchestrator kills the process.

    Rests on:
        common sense: an answer to Close, disconnect or a close frame can only come over the connection on
            which it was asked.

    Example:
        close went on for 10.0 s without a connection, although the broker had reset it.
    """
    done = _close(case)
    if done is None or done.ended is None or not case.conns:
        return
    ends = [conn.ended for conn in case.conns.values()]
    last = max((end for end in ends if end is not None), default=None)
    if last is None or any(end is None for end in ends):
        return
    begun = max(last, done.begun)
    busy = any(heard.what == "message" and begun.t - 1.0 < heard.at.t for heard in case.events)
    if done.ended.t > begun.t + AT_ONCE_S + case.slack_s and not busy:
        yield f"close went on for {done.ended.t - begun.t:.1f} s without a connection", last, done.ended


@invariant("loss-ends-close")
def loss_ends_unsubscribe(case: Case) -> Iterator[Violation]:
    """Neither has the end of a subscription, where the client does not connect again by itself."""
    ends = [conn.ended for conn in case.conns.values()]
    last = max((end for end in ends if end is not None), default=None)
    if case.reconnects or case.traits.connecting.unseen_connections or last is None or None in ends:
        return
    pauses_s = {done.args["sub"]: pause_s(done) for done in case.done("subscribe")}
    for done in case.done("unsubscribe"):
        if done.ended is None or done.result is None or done.ended < last:
            continue
        begun = max(last, done.begun)
        busy = any(
            heard.what == "message" and begun.t - 1.0 < heard.at.t + pauses_s.get(heard["sub"], 0.0)
            for heard in case.events
        )
        late_s = done.ended.t - begun.t
        if late_s > AT_ONCE_S + case.slack_s and not busy:
            text = f"unsubscribe went on for {late_s:.1f} s without a connection"
            yield May("waits", text), last, done.ended


@invariant("heeds-goodbyes")
def heeds_goodbyes(case: Case) -> Iterator[Violation]:
    """After a close frame of the server the client asks and publishes nothing more on that connection, if
    it was in use. During a handshake it may still answer what came before.

    Why:
        What is written after the server's Close is dropped without an answer: the application waits for its
        time-out, or loses messages.

    Rests on:
        RabbitMQ Stream: what a client sends after the server's Close is ignored
            (docs/protocols/rabbitmq-stream.md, 5).
        Narconi: after receiving a close frame only a close frame is sent (RFC 6455, 5.5.1).
        Moleculer: after -ERR the NATS server closes the connection (docs/protocols/moleculer.md, 6.1).

    Example:
        the client asked or published on c1 after the server's Close.

    Judges:
        rabbitmq-stream, narconi, moleculer
    """
    asked = [
        (one.conn, one.asked)
        for one in case.facts.questions
        if type(one.frame).spec.role_in("in") is not Role.CLOSE
    ]
    for conn, at in (*asked, *((one.conn, one.at) for one in case.facts.written)):
        if conn.server_closing is None or conn.ready is None or conn.server_closing < conn.ready:
            continue
        if case.before(conn.server_closing, at):
            end = frame_at(conn, conn.server_closing)
            yield (
                f"the client asked or published on {conn.name} after the server's {end}",
                conn.server_closing,
                at,
            )
            return
