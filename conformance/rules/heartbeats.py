"""Heartbeats: those of the client, and what it makes of a silent server."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from conformance.rules.registry import May, Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Role

LOSSES = ("connection_lost", "reconnecting", "disconnected", "target_closed")  #: as session events name them
SIGNS = 6  #: of life within a second that nobody has agreed to


@invariant("beats")
def beats(case: Case) -> Iterator[Violation]:
    """A client that has agreed to heartbeats is never silent for longer than agreed, unless its process was
    stopped.

    Why:
        The server takes the client for dead and ends the connection, or other nodes stop calling its
        services.

    Rests on:
        RabbitMQ Stream: the server closes after two silent checks of the agreed interval
            (docs/protocols/rabbitmq-stream.md, "Heartbeats").
        Narconi: with the capability keepalive, WebSocket pings at the interval that the application gave,
            while nothing comes from the server (RFC 6455, 5.5.2).
        Moleculer: a node without HEARTBEAT for heartbeatTimeout is unavailable
            (docs/protocols/moleculer.md, 3).
        MQTT: the server ends a connection that is silent for one and a half keep-alives
            (docs/protocols/mqtt.md, 3).

    Example:
        c1: 5.1 s without a heartbeat, one each 2 s was agreed.

    Judges:
        rabbitmq-stream, narconi, moleculer, mqtt
    """
    if case.notes.stopped:
        return
    for conn in case.conns.values():
        beat = conn.agreed.heartbeat_s
        if not beat or conn.ready is None:
            continue
        last = conn.ready.t + conn.agreed.start_s
        ends = [
            mark.t for mark in (conn.ended, conn.client_closing, conn.reading_stopped) if mark is not None
        ]
        end = min(ends, default=case.ended_s)
        signs = conn.written if conn.signs is None else conn.signs
        for moment in [*(t for t in signs if last <= t < end), end]:
            if moment - last > 1.2 * beat + 0.25 + case.slack_s:
                text = f"{moment - last:.1f} s without a heartbeat, one each {beat:g} s was agreed"
                is_late = moment - last <= 2 * beat + 0.25 + case.slack_s
                text = f"{conn.name}: {text}"
                yield May("beats_late", text) if is_late else text, conn.ready
                break
            last = moment


@invariant("no-storm", level="SHOULD")
def signs_have_pauses(case: Case) -> Iterator[Violation]:
    """Heartbeats and pings that answer nothing have pauses between them."""
    flushes = case.traits.connecting.flushes
    for conn in case.conns.values():
        asked = [seen.at.t for seen in conn.of("out") if _is_sign(seen, "out")]
        signs = (seen for seen in conn.of("in") if not isinstance(seen.frame, flushes))
        given = [seen.at.t for seen in signs if _is_sign(seen, "in")]
        for first, last in zip(given, given[SIGNS:], strict=False):
            answers = bisect_right(asked, last) - bisect_left(asked, first - 1.0)
            if last - first < 1.0 and answers == 0:
                yield f"{conn.name}: {SIGNS + 1} heartbeats or pings in {last - first:.2f} s", conn.ready
                break


def _is_sign(seen: SeenFrame, direction: str) -> bool:
    return type(seen.frame).spec.role_in(direction) is Role.HEARTBEAT


@invariant("silence-noticed")
def silence_noticed(case: Case) -> Iterator[Violation]:
    """A server that has agreed to heartbeats and falls silent is given up.

    Why:
        After a power cut, or when a firewall forgets the connection, no FIN comes: without this the
        application waits on a dead connection for hours.

    Rests on:
        RabbitMQ Stream: heartbeats go both ways (docs/protocols/rabbitmq-stream.md, "Heartbeats").
        BlazingMQ: too many missed heartbeats mean a lost connection (docs/protocols/blazingmq.md, 8).
        Narconi: with the capability keepalive, a WebSocket ping after which nothing comes (RFC 6455,
            5.5.2).
        Moleculer: over NATS, a PING without a PONG.

    Example:
        c1: 9.0 s of silence, 4 s are the most that was agreed.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer
    """
    for conn in case.conns.values():
        patience = conn.agreed.patience_s
        if not patience or conn.ready is None:
            continue
        last = conn.ready.t
        end = conn.ended.t if conn.ended is not None else case.ended_s
        for moment in [*(t for t in conn.handed if t >= last), end]:
            most = patience[1] + 1.0 + case.slack_s
            if moment - last > most and not _is_reported(case, conn, last, last + most):
                what = f"{moment - last:.1f} s of silence, {patience[1]:g} s are the most that was agreed"
                yield f"{conn.name}: {what}", conn.ready
                break
            last = moment


def _is_reported(case: Case, conn: Conn, since_s: float, until_s: float) -> bool:
    """Whether the application learnt of the loss: a broker that reads no more does not see how it ends."""
    if conn.reading_stopped is None or conn.reading_stopped.t > until_s:
        return False
    reported = [heard.at.t for heard in case.session_events(*LOSSES)]
    reported += [done.ended.t for done in case.ops if done.ended is not None and _is_lost(done)]
    return any(since_s <= at <= until_s for at in reported)


def _is_lost(done: RunOp) -> bool:
    return done.result is not None and done.result.word in ("connection", "closed")
