"""NET-2 Connection life cycle: connecting and closing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from conformance.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from fakebrokers.errors import WaitTimeout
from fakebrokers.faults import silent
from fakebrokers.journal import Tap
from fakebrokers.server import FakeServer
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import address, second_fake
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.pzq import PROXIED, PZQ
from scenarios.net._scripts.rabbitmq_stream import ROLES

RMQS = ("rabbitmq-stream",)
QUIET_S = 8.0  #: how long no connection may come after a close


async def nobody_knocks(script: Script, mark: int, criterion: str) -> None:
    """No connection came since that record of the wire's journal, and none comes for `QUIET_S`."""
    await asyncio.sleep(QUIET_S)
    late = script.accepted(mark)
    script.expect.that(not late, criterion, f"{len(late)} came")


@scenario("NET-2.05", protocols=RMQS, roles=ROLES, timeout_s=60, revision=2)
async def endpoint_list(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    with second_fake(broker) as first:
        both = [address(first), address(broker)]
        first.refuse()
        await _through_the_second(script, "(a) the first refuses", both, 10.0)
        first.restart()
        first.faults.add(silent(on="accept"))
        deadline = client.deadline_s("connect", 5.0)
        await _through_the_second(script, "(b) the first is silent", both, deadline + 10.0)
        published = [r for r in first.journal.select(tap=Tap.RECEIVED) if r.kind == script.publishing]
        expect.that(not published, "the client follows the address that the second one advertises", published)


async def _through_the_second(script: Script, case: str, both: Sequence[str], limit_s: float) -> None:
    client, expect = script.client, script.expect
    begun = asyncio.get_running_loop().time()
    session = case[:3]
    expect.ok(await client.begin_connect(session, endpoints=both, timeout=5.0), f"{case}: connect works")
    took = asyncio.get_running_loop().time() - begun
    expect.within(took, limit_s, f"{case}: through the second in time")
    queue = f"{script.queue}-{session[1]}"
    script.add_queue(queue)
    result = await client.publish(queue, case.encode(), session=session)
    expect.outcome(result, "acked", f"{case}: publish works")
    expect.equal(script.holds(case.encode(), queue), 1, f"{case}: the second one has the message")
    check = lambda result, step: expect.ok(result, f"{case}: {step}")  # noqa: E731
    await script.consume(
        queue, [case.encode()], session=session, check=check, timeout=5.0, prefix=f"{case}: "
    )
    expect.ok(await client.close(session), f"{case}: close works")


@scenario("NET-2.06", protocols=PZQ, server=PROXIED, sockets=False, timeout_s=60)
@scenario("NET-2.06", protocols=NARC, server=SETTINGS, timeout_s=60)
@scenario("NET-2.06", protocols=RMQS, timeout_s=60)
async def close_while_connecting(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    script.faults.add(silent(on="accept"))
    connecting = await script.begin_opening()
    await expect.reached(script.wire, "nobody connected", kind="accepted")
    await asyncio.sleep(0.3)
    closing = await client.begin("close", 5.0, session="s1")
    expect.ended(closing, "close ends by its deadline")
    no_session = closing.word in ("invalid", "unsupported")
    expect.exercised(not no_session, f"the library has nothing to close while it connects: {closing}")
    closed_ns = closing.ended_ns
    accepted = script.wire.journal.select(kind="accepted")
    mark = script.wire.journal.last_seq
    for record in accepted:
        criterion = "the socket is closed within 2 s after close has ended"
        await expect.socket_closed(script.wire, record.connection, criterion, within_s=2.65)
    kinds = ("closed", "connection", "cancelled", "timeout")
    result = await connecting
    if not script.connects_later:
        criterion = "connect ends as closed, connection, cancelled or timeout, by its deadline"
        expect.failed(result, kinds, criterion)
    left = QUIET_S - (asyncio.get_running_loop().time() - closed_ns / 1e9)
    await asyncio.sleep(max(0.0, left))
    late = script.accepted(mark)
    expect.that(not late, "no new connection for 8 s after close has ended", f"{len(late)} came")


@scenario("NET-2.07", protocols=PZQ, server=PROXIED, sockets=False, timeout_s=60, revision=2)
@scenario("NET-2.07", protocols=NARC, server=SETTINGS, timeout_s=60, revision=2)
@scenario("NET-2.07", protocols=RMQS, timeout_s=60, revision=2)
async def close_while_reconnecting(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(auto_reconnect=True)
    expect.exercised(script.is_open(), "the client keeps no connection that could be lost")
    script.shut()
    calls = [script.begin(op, 4.0) for op in script.ops(script.queue) if op.timed]
    await asyncio.sleep(1.0)
    closing = await client.begin("close", 5.0, session="s1")
    expect.ended(closing, "close ends by its deadline")
    await asyncio.sleep(script.linger_s)
    mark = script.wire.journal.last_seq
    script.reopen()
    await nobody_knocks(script, mark, "no connection arrives in the 8 s after close has ended")
    for call in calls:
        expect.ended(await call, "all pending ops have ended")


@scenario("NET-2.08", protocols=NARC, roles=("publisher",), server=SETTINGS, timeout_s=60)
@scenario("NET-2.08", protocols=RMQS, timeout_s=60)
async def graceful_close_by_the_server(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(auto_reconnect=False)
    broker.faults.add(silent(kind=script.confirm, direction="out", spare=("heartbeat",)))
    op = script.ops(script.queue)[0]
    mark = broker.journal.last_seq
    call = script.begin(op, 6.0)
    asked = await expect.reached(broker, f"no {op.asks} came", kind=op.asks, since=mark)
    connection = asked[-1].connection
    mark, seen = broker.journal.last_seq, len(client.events)
    begun = asyncio.get_running_loop().time()
    script.ask_to_close(connection, script.maintenance_code, "maintenance")
    try:
        await broker.wait_for_async(kind=script.close_answer, tap=Tap.RECEIVED, since=mark, timeout=1.45)
        answered = True
    except WaitTimeout:
        answered = False
        await asyncio.sleep(0.55)
    if connection in script.is_open():
        broker.kill(connection)
    expect.that(answered, "the client answers the goodbye within 1 s", f"no {script.close_answer}")
    await expect.socket_closed(broker, connection, "the socket is closed", within_s=1.45)
    result = await call
    expect.ended(result, "the pending op ends")
    late = result.ended_ns / 1e9 - begun
    expect.within(late, 1.45, "the pending op ends within 1 s")
    await asyncio.sleep(0.3)
    told = [e for e in client.events[seen:] if e.event == "session" and e["what"] in TOLD]
    expect.equal(len(told), 1, "exactly one disconnected or connection_lost event")
    complete = told[0]["code"] == script.maintenance_code and "maintenance" in str(told[0]["text"])
    expect.tolerate(complete, "with code and reason", f"code {told[0]['code']}, text {told[0]['text']!r}")


TOLD = ("disconnected", "connection_lost")


@scenario("NET-2.11", protocols=PZQ, roles=ROLES, server=PROXIED, sockets=False, timeout_s=60)
@scenario("NET-2.11", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=60)
@scenario("NET-2.11", protocols=RMQS, roles=ROLES, timeout_s=60, revision=2)
async def close_under_traffic(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    expect.prepared(await script.subscribe(script.queue))
    script.confirm_later()
    mark = broker.journal.last_seq
    calls = [client.begin_publish(script.queue, b"in flight %d" % n, timeout=4.0) for n in range(20)]
    await expect.reached(broker, "nothing was published", kind=script.publishing, since=mark)
    bodies = script.bodies(2000, "traffic")
    for start in range(0, 2000, 20):
        script.put(script.queue, bodies[start : start + 20])
    await client.wait_messages(50)
    closing = await client.begin("close", 5.0, session="s1")
    ended_at = asyncio.get_running_loop().time()
    expect.ended(closing, "close ends by its deadline")
    expect.that(closing.ok, "close ends well", str(closing))
    await _outcomes(expect, calls, ended_at)
    await asyncio.sleep(0.3)
    after = [e for e in client.events if e.event == "message" and e.n > (closing.n or 0)]
    expect.that(not after, "no message is surfaced after close has ended", f"{len(after)} messages")
    if script.close_frame:
        said = broker.journal.select(kind=script.close_frame, tap=Tap.RECEIVED, since=mark)
        expect.that(said, "the protocol's close sequence is on the wire")


async def _outcomes(expect: Expect, calls: Sequence[Call], ended_at: float) -> None:
    """Each publish has an outcome at most 1 s after the close."""
    for number, call in enumerate(calls):
        result = await call
        expect.ended(result, f"publish {number + 1} has an outcome")
        expect.within(result.ended_ns / 1e9 - ended_at, 1.45, f"publish {number + 1} has an outcome by then")


@scenario(
    "NET-2.12",
    protocols=NARC,
    server=SETTINGS,
    timeout_s=60,
    unconnected="no connect completes: that is the fault",
)
@scenario("NET-2.12", protocols=RMQS, timeout_s=60, unconnected="no connect completes: that is the fault")
async def tcp_connect_never_completes(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    expect.exercised(not broker.in_memory, "there is no TCP in memory")
    broker.black_hole()
    deadline = client.deadline_s("connect", client.deadline_s("request", 3.0))
    connecting = await script.begin_opening("s1", 3.0)
    with socket.socket() as probe:
        probe.setblocking(False)
        probe.connect_ex((broker.host, broker.port))
        await asyncio.sleep(0.3)
        try:
            probe.getpeername()
            is_open = True
        except OSError:
            is_open = False
    expect.exercised(not is_open, "this machine's listener lets connects through")
    result = await connecting
    expect.failed(result, ("timeout", "connection"), "connect ends as timeout or connection")
    expect.within(result.elapsed_ms / 1000, deadline * 1.2 + 0.25, "by its deadline")
    expect.ended(await client.begin("close", 3.0, session="s1"), "close ends")
