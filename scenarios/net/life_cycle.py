"""NET-2 Connection life cycle: connecting and closing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.errors import WaitTimeout
from fakebrokers.faults import silent
from fakebrokers.journal import Tap
from scenarios._common import address, limit_s, second_fake
from scenarios.subjects import ROLES, Subject

QUIET_S = 8.0  #: how long no connection may come after a close
AT_ONCE_MS = 100.0


async def nobody_knocks(subject: Subject, mark: int, criterion: str, *, id: str) -> None:
    """No connection came since that record of the wire's journal, and none comes for `QUIET_S`."""
    await asyncio.sleep(QUIET_S)
    came = f"{len(subject.accepted(mark))} came"
    if subject.only_handed_over(mark):
        subject.expect.tolerate(False, criterion, f"{came}, with what was to be sent before", id=id)
    else:
        subject.expect.that(not subject.accepted(mark), criterion, came, id=id)


@scenario(
    "NET-2.05", "SHOULD", "medium", basis=["X6"], needs=["endpoints"], roles=ROLES, timeout_s=60, revision=2
)
async def endpoint_list(subject: Subject, client: Client, expect: Expect) -> None:
    """Endpoint list.

    Fault: First endpoint (a) refuses, (b) accepts and stays silent; second works
    Pass: (a) base script works through the second within 10 s, (b) within the connect deadline + 10 s; where
    servers advertise an address, the client then follows that of the second fake
    Seen: stream-go-client#310
    """
    await subject.rehearse()
    with second_fake(subject.broker) as first:
        both = [address(first), address(subject.broker)]
        first.refuse()
        await through_the_second(subject, "(a) the first refuses", both, 10.0)
        first.restart()
        first.faults.add(silent(on="accept"))
        deadline = client.deadline_s("connect", 5.0)
        await through_the_second(subject, "(b) the first is silent", both, deadline + 10.0)
        published = [r for r in first.journal.select(tap=Tap.RECEIVED) if r.kind == subject.publishing]
        expect.that(
            not published,
            "the client follows the address that the second one advertises",
            published,
            id="the-client-follows-the-address-that-the-second-one",
        )


async def through_the_second(subject: Subject, case: str, both: Sequence[str], limit_s: float) -> None:
    client, expect = subject.client, subject.expect
    begun = asyncio.get_running_loop().time()
    session = case[:3]
    expect.ok(
        await subject.begin_connect(session, endpoints=both, timeout=5.0),
        f"{case}: connect works",
        id=slug("{}-connect-works", case),
    )
    took = asyncio.get_running_loop().time() - begun
    expect.within(
        took, limit_s, f"{case}: through the second in time", id=slug("{}-through-the-second-in-time", case)
    )
    queue = f"{subject.queue}-{session[1]}"
    subject.add_queue(queue)

    def check(result: Result, step: str, *, id: str) -> Any:
        return expect.ok(result, f"{case}: {step}", id=slug("{}-{}", case, id))

    await subject.open(queue, session, check, 5.0)
    result = await subject.publish(queue, case.encode(), session=session)
    expect.outcome(result, "acked", f"{case}: publish works", id=slug("{}-publish-works", case))
    expect.equal(
        subject.holds(case.encode(), queue),
        1,
        f"{case}: the second one has the message",
        id=slug("{}-the-second-one-has-the-message", case),
    )
    await subject.consume(
        queue, [case.encode()], session=session, check=check, timeout=5.0, prefix=f"{case}: "
    )
    expect.ok(await client.close(session), f"{case}: close works", id=slug("{}-close-works", case))


def looks_at_nothing(client: Client, result: Result) -> bool:
    """Whether a connect was ok at once and goes on after the op, as of a library that reports no server."""
    return result.ok and result.elapsed_ms < AT_ONCE_MS and client.may("pipelines")


@scenario("NET-2.06", "MUST", "high", basis=["X7"], timeout_s=60, allows=("op-ends",), revision=2)
async def close_while_connecting(subject: Subject, client: Client, expect: Expect) -> None:
    """Close while connecting.

    Fault: Accept, answer nothing; connect, 300 ms later close
    Pass: close ends by its deadline; connect ends with `closed`, `connection`, `cancelled` or `timeout` by
    its own deadline; the fake sees the socket closed within 2 s after close has ended, and no new connection
    for 8 s. Non-strict: a library whose user has nothing to close before connect has returned (close fails
    with `closed`), if the socket is closed within 2 s after connect has ended; one whose connect tells of no
    server (`pipelines`), and so has ended before
    Seen: stream-rust-client#213; measured: moleculer 0.14.36 and 0.15.2 (NATS, Redis, MQTT): stop ends after
    0.1 s, start never settles, the socket is still open 23 s later
    """
    subject.faults.add(silent(on="accept"))
    connecting = await subject.begin_opening()
    await expect.reached(subject.wire, "no client connected", kind="accepted", id="nobody-connected")
    await asyncio.sleep(0.3)
    closing = await client.begin("close", 5.0, session="s1")
    expect.ended(closing, "close ends by its deadline", id="close-ends-by-its-deadline")
    no_session = closing.word in ("invalid", "unsupported")
    expect.exercised(
        not no_session,
        f"the library has nothing to close while it connects: {closing}",
        id=slug("the-library-has-nothing-to-close-while-it-connects-{}", closing),
    )
    closed_ns, last = closing.ended_ns, "close"
    if closing.word == "closed":
        expect.tolerate(False, "connect can be interrupted", str(closing), id="connect-can-be-interrupted")
        closed_ns, last = (await connecting).ended_ns, "connect"
    accepted = subject.wire.journal.select(kind="accepted")
    mark = subject.wire.journal.last_seq
    for record in accepted:
        criterion = f"the socket is closed within 2 s after {last} has ended"
        await expect.socket_closed(
            subject.wire,
            record.connection,
            criterion,
            within_s=2.65,
            id="the-socket-is-closed-within-n-s-after-close-has-ended",
        )
    kinds = ("closed", "connection", "cancelled", "timeout")
    result = await connecting
    if subject.connect_may_hang and result.hang:
        expect.tolerate(False, "connect ends by its deadline", str(result), id="connect-ends-by-its-deadline")
    elif not subject.connects_later and looks_at_nothing(client, result):
        expect.tolerate(False, "connect waits for the server's first word", str(result), id="connect-waits")
    elif not subject.connects_later:
        criterion = "connect ends as closed, connection, cancelled or timeout, by its deadline"
        expect.failed(
            result, kinds, criterion, id="connect-ends-as-closed-connection-cancelled-or-timeout-by"
        )
    left = QUIET_S - (asyncio.get_running_loop().time() - closed_ns / 1e9)
    await asyncio.sleep(max(0.0, left))
    late = subject.accepted(mark)
    expect.that(
        not late,
        f"no new connection for 8 s after {last} has ended",
        f"{len(late)} came",
        id="no-new-connection-for-n-s-after-close-has-ended",
    )


@scenario("NET-2.07", "MUST", "critical", basis=["X7"], needs=["auto_reconnect"], timeout_s=60, revision=3)
async def close_while_reconnecting(subject: Subject, client: Client, expect: Expect) -> None:
    """Close while reconnecting.

    Fault: rst, refuse; close 1 s later; then accept
    Pass: close ends by its deadline; no connection arrives in the 8 s after close has ended; all pending ops
    have ended. Non-strict, pzq: connections that hand over what was given to the client before, and end
    Seen: stream-java-client#846; libzmq keeps what was sent for ever, unless ZMQ_LINGER says otherwise
    """
    await subject.ready(auto_reconnect=True)
    expect.exercised(
        subject.is_open(),
        "the client keeps no connection that could be lost",
        id="the-client-keeps-no-connection-that-could-be-lost",
    )
    subject.shut()
    calls = [subject.begin(op, 4.0) for op in subject.ops(subject.queue) if op.timed]
    await asyncio.sleep(1.0)
    closing = await client.begin("close", 5.0, session="s1")
    expect.ended(closing, "close ends by its deadline", id="close-ends-by-its-deadline")
    await asyncio.sleep(subject.linger_s)
    mark = subject.wire.journal.last_seq
    subject.reopen()
    await nobody_knocks(
        subject,
        mark,
        "no connection arrives in the 8 s after close has ended",
        id="no-connection-arrives-in-the-n-s-after-close-has-ended",
    )
    for call in calls:
        expect.ended(await call, "all pending ops have ended", id="all-pending-ops-have-ended")


@scenario("NET-2.08", "MUST", "high", basis=["X7"], timeout_s=60)
async def graceful_close_by_the_server(subject: Subject, client: Client, expect: Expect) -> None:
    """Server graceful close.

    Fault: The protocol's close frame with one op pending, fin after the answer or after 2 s
    Pass: The client answers it within 1 s and the socket is closed; exactly one `disconnected` or
    `connection_lost` event, with code and reason; the pending op ends within 1 s
    Seen: stream-js-client#188; stream-dotnet-client#353; measured: rstream 1.1.1 sends no CloseResponse
    (P-25)
    """
    await subject.ready(auto_reconnect=False)
    subject.broker.faults.add(silent(kind=subject.confirm, direction="out", spare=("heartbeat",)))
    op = subject.ops(subject.queue)[0]
    mark = subject.broker.journal.last_seq
    call = subject.begin(op, 6.0)
    asked = await expect.reached(
        subject.broker, f"no {op.asks} came", kind=op.asks, since=mark, id=slug("no-{}-came", op.asks)
    )
    connection = asked[-1].connection
    mark, seen = subject.broker.journal.last_seq, len(client.events)
    begun = asyncio.get_running_loop().time()
    subject.ask_to_close(connection, subject.maintenance_code, "maintenance")
    try:
        await subject.broker.wait_for_async(
            kind=subject.close_answer, tap=Tap.RECEIVED, since=mark, timeout=1.45
        )
        answered = True
    except WaitTimeout:
        answered = False
        await asyncio.sleep(0.55)
    if connection in subject.is_open():
        subject.broker.kill(connection)
    expect.that(
        answered,
        "the client answers the close frame within 1 s",
        f"no {subject.close_answer}",
        id="the-client-answers-the-goodbye-within-n-s",
    )
    await expect.socket_closed(
        subject.broker, connection, "the socket is closed", within_s=1.45, id="the-socket-is-closed"
    )
    result = await call
    expect.ended(result, "the pending op ends", id="the-pending-op-ends")
    late = result.ended_ns / 1e9 - begun
    expect.within(late, 1.45, "the pending op ends within 1 s", id="the-pending-op-ends-within-n-s")
    await asyncio.sleep(0.3)
    reported = [e for e in client.events[seen:] if e.event == "session" and e["what"] in TOLD]
    expect.equal(
        len(reported),
        1,
        "exactly one disconnected or connection_lost event",
        id="exactly-one-disconnected-or-connection-lost-event",
    )
    complete = reported[0]["code"] == subject.maintenance_code and "maintenance" in str(reported[0]["text"])
    expect.tolerate(
        complete,
        "with code and reason",
        f"code {reported[0]['code']}, text {reported[0]['text']!r}",
        id="with-code-and-reason",
    )


TOLD = ("disconnected", "connection_lost")


@scenario("NET-2.11", "SHOULD", "high", basis=["X7", "X10"], roles=ROLES, timeout_s=60)
async def close_under_traffic(subject: Subject, client: Client, expect: Expect) -> None:
    """Close under traffic.

    Fault: Deliveries as fast as the client's limits allow and 20 publishes in flight; close in the middle
    Pass: close ends by its deadline; all 20 have an outcome by then (+ 1 s); no `message` line with an `n`
    above that of close's result; the protocol's close sequence on the wire where it has one; process alive
    Seen: stream-go-client#481; stream-go-client#412; stream-js-client#211
    """
    await subject.ready()
    expect.prepared(await subject.subscribe(subject.queue))
    subject.confirm_later()
    mark = subject.broker.journal.last_seq
    calls = [subject.begin_publish(subject.queue, b"in flight %d" % n, timeout=8.0) for n in range(20)]
    await expect.reached(
        subject.broker,
        "nothing was published",
        kind=subject.publishing,
        since=mark,
        id="nothing-was-published",
    )
    bodies = subject.bodies(2000, "traffic")
    for start in range(0, 2000, 20):
        subject.put(subject.queue, bodies[start : start + 20])
    await subject.wait_messages(50)
    closing = await client.begin("close", 5.0, session="s1")
    ended_at = asyncio.get_running_loop().time()
    expect.ended(closing, "close ends by its deadline", id="close-ends-by-its-deadline")
    expect.that(closing.ok, "close ends well", str(closing), id="close-ends-well")
    await _outcomes(expect, calls, ended_at)
    await asyncio.sleep(0.3)
    after = [e for e in client.events if e.event == "message" and e.n > (closing.n or 0)]
    expect.that(
        not after,
        "no message is delivered after close has ended",
        f"{len(after)} messages",
        id="no-message-is-surfaced-after-close-has-ended",
    )
    if subject.close_frame:
        said = subject.broker.journal.select(kind=subject.close_frame, tap=Tap.RECEIVED, since=mark)
        expect.that(
            said,
            "the protocol's close sequence is on the wire",
            f"no {subject.close_frame} came",
            id="the-protocol-s-close-sequence-is-on-the-wire",
        )


async def _outcomes(expect: Expect, calls: Sequence[Call], ended_at: float) -> None:
    """Each publish has an outcome at most 1 s after the close."""
    for number, call in enumerate(calls):
        result = await call
        expect.ended(result, f"publish {number + 1} has an outcome", id="publish-n-has-an-outcome")
        expect.within(
            result.ended_ns / 1e9 - ended_at,
            1.45,
            f"publish {number + 1} has an outcome by then",
            id="publish-n-has-an-outcome-by-then",
        )


@scenario(
    "NET-2.12",
    "SHOULD",
    "high",
    basis=["X8"],
    timeout_s=60,
    unconnected="no connect completes: that is the fault",
)
async def tcp_connect_never_completes(subject: Subject, client: Client, expect: Expect) -> None:
    """TCP connect never completes.

    Fault: Black hole: a listener whose accept queue is full, so that the SYN stays unanswered (Linux, no
    rights needed; tried)
    Pass: connect ends with `timeout` or `connection` by its deadline; close ends; the adapter can exit. If
    the probe connect of the runner succeeds: `inconclusive`
    Seen: nv-websocket-client#64
    """
    expect.exercised(
        not subject.broker.in_memory, "there is no TCP in memory", id="there-is-no-tcp-in-memory"
    )
    subject.broker.black_hole()
    deadline = subject.opening_s(3.0)
    connecting = await subject.begin_opening("s1", 3.0)
    with socket.socket() as probe:
        probe.setblocking(False)
        probe.connect_ex((subject.broker.host, subject.broker.port))
        await asyncio.sleep(0.3)
        try:
            probe.getpeername()
            is_open = True
        except OSError:
            is_open = False
    expect.exercised(
        not is_open,
        "this machine's listener lets connects through",
        id="this-machine-s-listener-lets-connects-through",
    )
    result = await connecting
    expect.failed(
        result,
        ("timeout", "connection"),
        "connect ends as timeout or connection",
        id="connect-ends-as-timeout-or-connection",
    )
    expect.within(result.elapsed_ms / 1000, limit_s(deadline), "by its deadline", id="by-its-deadline")
    expect.ended(await client.begin("close", 3.0, session="s1"), "close ends", id="close-ends")
