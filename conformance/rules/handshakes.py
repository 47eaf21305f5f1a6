"""How connections are made: attempts and their pauses, the first frames, and what ends them early."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from conformance.rules.connections import QUIET_ROLES
from conformance.rules.registry import May, Violation, invariant
from conformance.run.case import Case
from conformance.run.showing import shown
from conformance.run.view import Conn
from fakebrokers.core.frames import Malformed, Role, kind_of

GIVE_UP_S = 2.0
UNSEEN_S = 0.5  #: the same for transports that connect by themselves: they make short pauses
GREETED_S = 1.5
STOOD_S = 0.3  #: a connection that ends sooner has come for nothing
STORM = 9  #: connections within a second that no back-off makes
SHORT, SHORT_S = 80, 60.0  #: connections that ended at once, in a time in which any pause has grown


@invariant("handshake-first")
def handshake_first(case: Case) -> Iterator[Violation]:
    """Until a connection is ready the client sends only what makes it ready, or ends it.

    Why:
        Servers close a connection without a reason when frames come too early, and only some versions do:
        the client works on one server and not on the next.

    Rests on:
        RabbitMQ Stream: any other frame before Open ends the connection at once
            (docs/protocols/rabbitmq-stream.md, 5).
        BlazingMQ: the broker answers clientIdentity before it takes requests (docs/protocols/blazingmq.md,
            7).
        Narconi: frames follow the 101 (RFC 6455, 4.1).
        Moleculer: a node subscribes to its topics before it sends DISCOVER (docs/protocols/moleculer.md,
            3).
        MQTT: CONNECT comes first, and once (docs/protocols/mqtt.md, 3).

    Example:
        Subscribe before the handshake was done.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer, mqtt
    """
    answers = {*case.traits.questions.questions.values(), *case.traits.connecting.set_up}
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


@invariant("greets-on-every-connection")
def greets_on_every_connection(case: Case) -> Iterator[Violation]:
    """On every connection that lasts, the client sends what makes others answer with what they offer.

    Why:
        After a reconnect the node does not learn what changed meanwhile, and calls services that have moved
        or misses new ones.

    Rests on:
        Moleculer: a node broadcasts DISCOVER when its transporter is connected, after a reconnect as well
            (docs/protocols/moleculer.md, 3).

    Example:
        c2 was ready, and no Discover was sent on it.

    Judges:
        moleculer
    """
    closes = [done.begun.t for done in case.done("close", "abort")]
    for conn in case.conns.values():
        if conn.ready is None:
            continue
        until_s = conn.ready.t + GREETED_S + case.slack_s
        marks = [mark.t for mark in (conn.lost(), conn.ended, conn.client_closing) if mark is not None]
        if until_s > min([*marks, *closes, case.ended_s]):
            continue
        said = {type(seen.frame) for seen in conn.of("in") if seen.at.t <= until_s}
        missing = [kind_of(kind) for kind in case.traits.connecting.greetings if kind not in said]
        if missing:
            yield f"{conn.name} was ready, and no {missing[0]} was sent on it", conn.ready


@invariant("no-storm", level="SHOULD")
def no_storm(case: Case) -> Iterator[Violation]:
    """Attempts to connect have pauses between them, which grow while each connection ends as soon as it is
    there: a handshake that worked is no success.

    Why:
        A thousand clients that reconnect without pauses keep a restarting broker from coming back, and one
        that takes connections and drops them from recovering.

    Rests on:
        common sense: every client library's documentation describes a back-off; no protocol demands one.

    Example:
        9 connections in 0.01 s: a refused login is tried again at once.

    Level:
        SHOULD: a client that does without harms the server and the other clients, not its own application.
    """
    if case.notes.has_several_sessions:
        return
    for socket in {conn.socket for conn in case.conns.values()}:
        yield from _storms(case, [conn for conn in case.conns.values() if conn.socket == socket])


@invariant("no-storm", level="SHOULD")
def pauses_grow(case: Case) -> Iterator[Violation]:
    """The pauses grow while connections end at once, unless a transport connects by itself, which keeps to
    one."""
    if case.notes.has_several_sessions or case.traits.connecting.unseen_connections:
        return
    for socket in {conn.socket for conn in case.conns.values()}:
        conns = [conn for conn in case.conns.values() if conn.socket == socket]
        short = [conn for conn in conns if conn.ended_by == "broker" and _stood_s(conn) < STOOD_S]
        most = SHORT * _at_a_time([conn for conn in conns if short and conn.accepted <= short[-1].accepted])
        for first, last in zip(short, short[most - 1 :], strict=False):
            asked = sum(1 for done in case.ops if first.accepted < done.begun < last.accepted)
            took_s = last.accepted.t - first.accepted.t
            if took_s < SHORT_S and asked < most // 2:
                yield f"{most} connections in {took_s:.0f} s, each of which had ended at once", last.accepted
                break


def _stood_s(conn: Conn) -> float:
    return math.inf if conn.ended is None else conn.ended.t - conn.accepted.t


def _at_a_time(conns: Sequence[Conn]) -> int:
    """The most connections that there were at one time: a session may have several, and each comes back."""
    marks = [(conn.accepted, 1) for conn in conns]
    marks += [(conn.ended, -1) for conn in conns if conn.ended is not None]
    return max(accumulate(change for _, change in sorted(marks)), default=0)


def _storms(case: Case, conns: list[Conn]) -> Iterator[Violation]:
    within_s = UNSEEN_S if case.traits.connecting.unseen_connections else 1.0
    conns = sorted(conns, key=lambda conn: conn.accepted)
    later = [conn for former, conn in pairwise(conns) if not _was_lost_at_work(former)]
    times = [conn.accepted.t for conn in [*conns[:1], *later]]
    subscriptions = len(list(case.done("subscribe")))  # each may have a connection of its own
    more = subscriptions if case.traits.connecting.connects_late else max(0, subscriptions - 1)
    most = STORM + STORM // 3 * more
    for at in range(len(times) - most + 1):
        if case.traits.connecting.connects_late and any(
            times[at] <= done.begun.t <= times[at] + 1.0 for done in case.ops
        ):
            continue  # each op may have made one
        if case.traits.connecting.unseen_connections and any(
            times[at] - 1.0 <= done.begun.t <= times[at + most - 1]
            for done in case.done(*case.traits.questions.ops)
        ):
            continue  # each question may have made one
        if case.traits.connecting.unseen_connections and _replaced(case, times[at], times[at + most - 1]):
            continue  # several sockets come back at once, each after its own loss
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
    stood = [conn for conn in case.conns.values() if conn.ended_by == "broker" and _stood_s(conn) > STOOD_S]
    losses = sum(1 for conn in stood if conn.ended and first_s - 1.0 <= conn.ended.t <= last_s)
    return losses >= STORM // 2


@invariant("introduces-itself-as-ordered")
def introduces_itself_as_ordered(case: Case) -> Iterator[Violation]:
    """On each connection the client gives the user, the virtual host, the project or the namespace that the
    application has ordered.

    Why:
        After a reconnect, or on the connections that the client makes besides the first one, the application
        works with the data of others, or is refused.

    Rests on:
        RabbitMQ Stream: mechanism and credentials of SaslAuthenticate, the virtual host of Open
            (docs/protocols/rabbitmq-stream.md, 5).
        Narconi: the project is a part of every path (docs/protocols/narconi.md, "Routes").
        Moleculer: the namespace is a part of every topic (docs/protocols/moleculer.md, 3).
        MQTT: the fields of CONNECT (docs/protocols/mqtt.md, 3).

    Example:
        c2 was opened with vhost "/", the application ordered "other".

    Judges:
        rabbitmq-stream, narconi, moleculer, mqtt
    """
    connects = [(done.begun, done.args.get("options") or {}) for done in case.done("connect")]
    for conn in case.conns.values():
        for at, name, said in conn.introduced:
            ordered = [options.get(name) for begun, options in connects if begun < at]
            if ordered and None not in ordered and said not in ordered:
                text = f"{conn.name} was opened with {name} {shown(said)}"
                yield f"{text}, the application ordered {shown(ordered[-1])}", at


@invariant("refusal-ends")
def refusal_ends(case: Case) -> Iterator[Violation]:
    """A handshake that the server has refused goes no further.

    Why:
        The real cause (wrong password, unknown virtual host) is hidden by the next error, and accounts get
        locked by further attempts.

    Rests on:
        RabbitMQ Stream: the server ends the connection after the refusal
            (docs/protocols/rabbitmq-stream.md, 5).
        BlazingMQ: anything but E_SUCCESS in brokerResponse ends the negotiation
            (docs/protocols/blazingmq.md, 6.5).
        Narconi: a status other than 101 is no WebSocket (RFC 6455, 4.1).
        MQTT: after a CONNACK that refuses the server ends the connection (docs/protocols/mqtt.md, 3).

    Example:
        Open after a refusal with code 8.

    Judges:
        rabbitmq-stream, blazingmq, narconi, mqtt
    """
    for conn in case.conns.values():
        if conn.turned_away is None:
            continue
        for seen in conn.of("in"):
            if case.before(conn.turned_away[0], seen.at) and type(seen.frame).spec.role_in("in") not in (
                Role.CLOSE, Role.HEARTBEAT, Role.MALFORMED,
            ):  # fmt: skip
                yield f"{kind_of(seen.frame)} after a refusal with code {conn.turned_away[1]}", seen.at
                break


@invariant("garbage-ends")
def garbage_ends(case: Case) -> Iterator[Violation]:
    """A connection on which the client can no longer find where frames begin is given up.

    Why:
        The client reads on at a wrong place: it waits forever, or delivers parts of one message as another.

    Rests on:
        all: frames are found by the length in front of each, so after a wrong length nothing that follows
            can be found (docs/protocols/rabbitmq-stream.md, 2).

    Example:
        c1 was kept open for 30.0 s after bytes that are no frame.
    """
    for conn in case.conns.values():
        if conn.garbage is None:
            continue
        end_s = case.ended_s if conn.ended is None else conn.ended.t
        if end_s > conn.garbage.t + GIVE_UP_S + case.slack_s:
            text = (
                f"{conn.name} was kept open for {end_s - conn.garbage.t:.1f} s after bytes that are no frame"
            )
            yield May("reads_on", text), conn.garbage
