"""MOL-2 Pings: both ways of the question whether a node answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from conformance.suite import Client, Expect, scenario
from fakebrokers import Moleculer
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Ping
from scenarios.moleculer._steps import (
    AT_ONCE_S,
    CALLER,
    NODE,
    PEER,
    SERVICE,
    echo,
    heard,
    is_answered,
    joined,
    now,
    peer,
    serve,
    serves,
    wall_ms,
)
from scenarios.moleculer._wire import (
    Topical,
    came,
    mark,
    place,
    said,
)


def pongs(broker: Moleculer, since: int) -> list[Topical]:
    """The PONGs of the client."""
    return said(broker, "Pong", since)


@scenario("MOL-2.09", roles=SERVICE)
async def ping_answered(broker: Moleculer, client: Client, expect: Expect) -> None:
    """PING answered.

    Fault: PING with `id` and `time` on MOL.PING.<client>; the same on MOL.PING; then one without `id`
    Pass: For the first two one PONG each on MOL.PONG.<sender> within 1 s: same `id`, same `time`, `arrived` a
    number within 5 s of the wall clock. For the third a PONG without `id` (or null) or no answer; no crash
    """
    node = peer(broker)
    await joined(broker, client)
    await serve(client, {"echo": "echo"})
    for number, target in enumerate((NODE, "")):
        where = f"PING.{target}" if target else "PING"
        since = mark(broker)
        sent = wall_ms(node)
        node.send("PING", target, time=sent, id=f"ping-{number}")
        found = await came(broker, "Pong", since=since)
        expect.equal(len(found), 1, f"{where} gets one PONG within 1 s")
        pong: Any = found[0][1]
        expect.equal(place(found[0][0]), f"PONG.{PEER}", "on PONG.<sender>")
        expect.equal((pong.id, pong.time), (f"ping-{number}", sent), "with the same id and time")
        near = isinstance(pong.arrived, int | float) and abs(pong.arrived - wall_ms(node)) < 5000
        expect.that(near, "arrived is a number near the wall clock", pong.arrived)
    since = mark(broker)
    node.send("PING", NODE, time=wall_ms(node))
    found = await came(broker, "Pong", since=since, within_s=0.6)
    bare = [packet.id for _, packet in found if packet.id not in (None, UNSET)]  # type: ignore[attr-defined]
    expect.that(not bare, "a PING without id gets a PONG without one, or none", bare)
    await serves(expect, node, "the node is alive")


async def pinged(node: Node, skip: int = 0) -> Ping:
    """The PING that reached the peer."""
    found: list[Ping] = await heard(node, Ping, skip=skip)
    return found[0]


def mute_pings(broker: Moleculer, **services: Any) -> Node:
    """A peer whose PONGs the script says; it has the given services."""
    node = peer(broker, services=services or None)
    silent: Callable[[Any, float], None] = lambda packet, now: None  # noqa: E731
    handlers = dict(node.core._handlers)
    handlers[Ping] = silent
    node.core._handlers = handlers
    return node


def pong_to(node: Node, ping: Ping, **fields: Any) -> None:
    """Answer a PING by hand."""
    values = {"time": ping.time, "id": ping.id, "arrived": wall_ms(node), **fields}
    node.send("PONG", str(ping.sender), **values)


@scenario("MOL-2.10", ops=("mol.ping",))
async def pong_handled(broker: Moleculer, client: Client, expect: Expect) -> None:
    """PONG handled.

    Fault: `mol.ping` of peer P: first a PONG from P with another `id`, 300 ms later the right PONG, twice;
    then a second `mol.ping` answered normally
    Pass: Each ping completes exactly once, the second one by its own PONG. Non-strict: the first ping is
    completed by the PONG with the foreign id (moleculer matches by node, not by id)
    """
    node = mute_pings(broker)
    await joined(broker, client)
    first = client.begin("mol.ping", 3.0, session="s1", node=PEER)
    ping = await pinged(node)
    pong_to(node, ping, id="another id")
    await asyncio.sleep(0.3)
    expect.tolerate(not first.done, "a PONG with another id completes no ping")
    pong_to(node, ping)
    pong_to(node, ping)
    answered = expect.ok(await first, "the first ping completes")
    expect.that(answered["rtt_ms"] is not None, "the first ping is answered", answered)
    second = client.begin("mol.ping", 3.0, session="s1", node=PEER)
    again = await pinged(node, skip=1)
    await asyncio.sleep(0.2)
    expect.that(not second.done, "the second ping waits for its own PONG")
    pong_to(node, again)
    answered = expect.ok(await second, "the second ping completes")
    expect.that(answered["rtt_ms"] is not None, "the second ping is answered", answered)


@scenario("MOL-2.11", ops=("mol.ping",))
async def ping_timeout(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Ping timeout.

    Fault: `mol.ping` with 2000 ms; no PONG
    Pass: Ends within 2.65 s with error kind `timeout`, or with an empty result (null) if the library reports
    it so; no later completion when the PONG comes at 4 s
    """
    node = mute_pings(broker)
    await joined(broker, client)
    begun = now()
    result = await client.op("mol.ping", 2.0, session="s1", node=PEER)
    ping = await pinged(node)
    expect.ended(result, "the ping ends within 2.65 s")
    if result.ok:
        expect.equal(result.value["rtt_ms"], None, "without a PONG the result is empty")
    else:
        expect.failed(result, ("timeout",), "without a PONG the ping ends with kind timeout")
    await asyncio.sleep(max(0.0, begun + 3.0 - now()))
    later = client.begin("mol.ping", 3.0, session="s1", node=PEER)
    own = await pinged(node, skip=1)
    pong_to(node, own)
    pong_to(node, ping)
    expect.ok(await later, "a late PONG completes nothing else")


@scenario("MOL-2.12", roles=CALLER, ops=("mol.ping",))
async def peer_clock_differs(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Peer clock differs.

    Fault: PONG with `arrived` one hour ahead, then one hour behind; heartbeats go on
    Pass: `rtt_ms` between 0 and 1000 in both cases (the difference is not mixed into it); the peer stays
    available and a call to it is answered
    """
    node = mute_pings(broker, p={"echo": echo})
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=4)
    for number, (hours, name) in enumerate(((1, "ahead"), (-1, "behind"))):
        pinging = client.begin("mol.ping", 3.0, session="s1", node=PEER)
        ping = await pinged(node, skip=number)
        pong_to(node, ping, arrived=wall_ms(node) + hours * 3_600_000)
        value = expect.ok(await pinging, "the ping completes")
        rtt = value["rtt_ms"]
        fits = isinstance(rtt, int | float) and 0 <= rtt <= 1000
        expect.that(fits, f"rtt_ms is 0 to 1000 with a clock one hour {name}", rtt)
    await asyncio.sleep(1.0)
    await is_answered(client, expect, "the peer stays available", "p.echo", timeout_s=AT_ONCE_S)
