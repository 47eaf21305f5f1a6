"""Connections: what is told of them, signs of life, and who ends them."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.invariants.registry import Violation, invariant
from conformance.sweep.case import Case
from conformance.sweep.tape import Moment
from conformance.sweep.view import Conn
from fakebrokers.core.frames import Role, kind_of

SLACK_S = 0.01
DEADLINE_S = 0.3  #: how exactly deadlines are kept
HANDSHAKE_S = 4.5  #: what every client grants a handshake
GIVE_UP_S = 2.0
STOOD_S = 0.3  #: a connection that ends sooner has come for nothing
STORM = 9  #: connections within a second that no back-off makes
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
            if conn.ready is not None and conn.ready < ended and (conn.ended is None or conn.ended > begun)
        ]
        if done.result.value["open"]:
            if not standing and not case.model.connects_late:
                yield "the session is called open without a connection", ended
        elif closing is None or begun < closing:
            good = [
                conn for conn in standing if conn.serves(ended) and conn.serves(begun) and _works(conn, begun)
            ]
            if good:
                yield f"the session is not called open, and {good[0].name} works", ended


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
    lost = [conn for conn in ended if conn.parting is None]
    closing_too = [
        conn for conn in case.conns.values()
        if closing is not None and conn.ready is not None and conn.ended is not None and conn.ended > closing
        and conn.is_session and conn.lost() is not None
    ]  # fmt: skip
    if len(told) > len(lost) + len(closing_too):
        yield f"{len(told)} losses were told, there were {len(lost)}", told[-1].at
    sure = [conn for conn in lost if conn.ended and conn.lost() and _works(conn, conn.ended)]
    if len(told) < len(sure):
        yield f"{len(told)} losses were told, there were {len(sure)}", sure[-1].ended


def _was_given_up(case: Case, at: Moment) -> bool:
    """Whether a close that did not work out had begun by then: it may end its connection as it stands."""
    return any(d.begun < at for d in case.done("close") if d.result is not None and not d.result.ok)


@invariant("unprovoked-end")
def unprovoked_end(case: Case) -> Iterator[Violation]:
    """The client ends no connection that works, unless it says goodbye first."""
    if case.model.unseen_connections:
        return
    closing = case.mark("close")
    for conn in case.conns.values():
        if conn.ended is None or conn.ended_by != "client":
            continue
        if conn.name in case.touched and not case.is_truthful:
            continue  # what the client makes of lies is its own affair
        if "sessions" in case.notes and _was_given_up(case, conn.ended):
            continue
        if (closing is not None and conn.ended > closing) or conn.goodbye or conn.garbage or conn.turned_away:
            continue
        if conn.parting is not None or conn.partial:
            continue  # it has said so; or a frame has begun, and the rest does not come
        closes = [done.begun for done in case.done("close", "abort")]
        if conn.ready is None and any(conn.accepted < begun < conn.ended for begun in closes):
            continue  # nobody needs it any more, and there is nobody to say goodbye to
        quiet_s = conn.ended.t - (conn.handed[-1] if conn.handed else conn.accepted.t)
        patience = conn.agreed.patience_s
        if patience and quiet_s >= patience[0] - SLACK_S:
            continue
        if conn.ready is None and _is_over(case, conn, conn.ended):
            continue
        if case.model.answers_in_order and _an_op_ended(case, conn.ended):
            continue
        yield f"{conn.name} was ended by the client; it was quiet for {quiet_s:.1f} s", conn.ended


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
            yield f"{kind_of(seen.frame)} before the handshake was done", seen.at


@invariant("beats")
def beats(case: Case) -> Iterator[Violation]:
    """A client that has agreed to heartbeats is never silent for longer."""
    for conn in case.conns.values():
        beat = conn.agreed.heartbeat_s
        if not beat or conn.ready is None:
            continue
        last = conn.ready.t
        end = conn.ended.t if conn.ended is not None else case.ended_s
        for moment in [*(t for t in conn.written if t >= last), end]:
            if moment - last > 1.2 * beat + 0.25:
                yield f"{conn.name}: {moment - last:.1f} s without a byte, {beat:g} s were agreed", conn.ready
                break
            last = moment


@invariant("silence-noticed")
def silence_noticed(case: Case) -> Iterator[Violation]:
    """A server that has agreed to heartbeats and falls silent is given up."""
    for conn in case.conns.values():
        patience = conn.agreed.patience_s
        if not patience or conn.ready is None:
            continue
        last = conn.ready.t
        end = conn.ended.t if conn.ended is not None else case.ended_s
        for moment in [*(t for t in conn.handed if t >= last), end]:
            if moment - last > patience[1] + 1.0:
                what = f"{moment - last:.1f} s of silence, {patience[1]:g} s are the most"
                yield f"{conn.name}: {what}", conn.ready
                break
            last = moment


@invariant("no-storm")
def no_storm(case: Case) -> Iterator[Violation]:
    """Attempts to connect have pauses in between."""
    times = sorted(conn.accepted.t for conn in case.conns.values())
    if "sessions" in case.notes:
        return
    for at in range(len(times) - STORM + 1):
        if case.model.connects_late and any(
            times[at] <= done.begun.t <= times[at] + 1.0 for done in case.ops
        ):
            continue  # each op may have made one
        if case.model.unseen_connections and any(
            times[at] - 1.0 <= done.begun.t <= times[at + STORM - 1] for done in case.done(*case.model.ops)
        ):
            continue  # each question may have made one
        if case.model.unseen_connections and _replaced(case, times[at], times[at + STORM - 1]):
            continue  # several sockets come back at once, each behind its own loss
        if times[at + STORM - 1] - times[at] < 1.0:
            yield (f"{STORM} connections in {times[at + STORM - 1] - times[at]:.2f} s",)


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
                Role.CLOSE, Role.HEARTBEAT,
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
        if end_s > conn.garbage.t + GIVE_UP_S:
            yield (
                f"{conn.name} went on for {end_s - conn.garbage.t:.1f} s behind what nobody can read",
                conn.garbage,
            )
