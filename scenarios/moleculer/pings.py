"""MOL-2 Pings: both ways of the question whether a node answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Unsupported, slug
from fakebrokers import Moleculer
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Ping
from scenarios.moleculer._steps import (
    AT_ONCE_S,
    CALLER,
    NODE,
    PEER,
    SERVICE,
    a_service,
    echo,
    heard,
    is_answered,
    joined,
    now,
    peer,
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


@scenario("MOL-2.09", "MUST", "high", basis=["M7"], roles=SERVICE)
async def ping_answered(broker: Moleculer, client: Client, expect: Expect) -> None:
    """PING answered.

    Fault: PING with `id` and `time` on MOL.PING.<client>; the same on MOL.PING; then one without `id`
    Pass: For the first two one PONG each on MOL.PONG.<sender> within 1 s: same `id`, same `time`, `arrived` a
    number within 5 s of the wall clock. For the third a PONG without `id` (or null) or no answer; no crash
    Seen: measured: moleculer 0.14.36 and 0.15.2; moleculer-rs requires id (source)
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    for number, target in enumerate((NODE, "")):
        where = f"PING.{target}" if target else "PING"
        since = mark(broker)
        sent = wall_ms(node)
        node.send("PING", target, time=sent, id=f"ping-{number}")
        found = await came(broker, "Pong", since=since)
        expect.equal(
            len(found), 1, f"{where} gets one PONG within 1 s", id=slug("{}-gets-one-pong-within-n-s", where)
        )
        pong: Any = found[0][1]
        expect.equal(place(found[0][0]), f"PONG.{PEER}", "on PONG.<sender>", id="on-pong-sender")
        expect.equal(
            (pong.id, pong.time),
            (f"ping-{number}", sent),
            "with the same id and time",
            id="with-the-same-id-and-time",
        )
        near = isinstance(pong.arrived, int | float) and abs(pong.arrived - wall_ms(node)) < 5000
        expect.that(
            near,
            "arrived is a number near the wall clock",
            pong.arrived,
            id="arrived-is-a-number-near-the-wall-clock",
        )
    since = mark(broker)
    node.send("PING", NODE, time=wall_ms(node))
    found = await came(broker, "Pong", since=since, within_s=0.6)
    bare = [packet.id for _, packet in found if packet.id not in (None, UNSET)]  # type: ignore[attr-defined]
    expect.that(
        not bare,
        "a PING without id gets a PONG without one, or none",
        bare,
        id="a-ping-without-id-gets-a-pong-without-one-or-none",
    )
    await serves(expect, node, "the node is alive", id="the-node-is-alive")


async def pinged(expect: Expect, node: Node, skip: int = 0) -> Ping:
    """The PING that reaches the peer."""
    found: list[Ping] = await heard(node, Ping, skip=skip)
    expect.that(found, "a PING reaches the peer", "none came within 3 s", id="a-ping-reaches-the-peer")
    return found[0]


def mute_pings(broker: Moleculer, id: str = PEER, **services: Any) -> Node:
    """A peer whose PONGs the script says; it has the given services."""
    node = peer(broker, id, services=services or None)
    silent: Callable[[Any, float], None] = lambda packet, now: None  # noqa: E731
    handlers = dict(node.core._handlers)
    handlers[Ping] = silent
    node.core._handlers = handlers
    return node


def pong_to(node: Node, ping: Ping, **fields: Any) -> None:
    """Answer a PING by hand."""
    values = {"time": ping.time, "id": ping.id, "arrived": wall_ms(node), **fields}
    node.send("PONG", str(ping.sender), **values)


@scenario("MOL-2.10", "MUST", "medium", basis=["M7"], ops=("mol.ping",))
async def pong_handled(broker: Moleculer, client: Client, expect: Expect) -> None:
    """PONG handled.

    Fault: `mol.ping` of peer P: first a PONG from P with another `id`, 300 ms later the right PONG, twice;
    then a second `mol.ping` answered normally
    Pass: Each ping completes exactly once, the second one by its own PONG. Non-strict: the first ping is
    completed by the PONG with the foreign id (moleculer matches by node, not by id)
    Seen: measured: moleculer 0.14.36 and 0.15.2 complete by node
    """
    node = mute_pings(broker)
    await joined(broker, client)
    first = client.begin("mol.ping", 3.0, session="s1", node=PEER)
    ping = await pinged(expect, node)
    pong_to(node, ping, id="another id")
    await asyncio.sleep(0.3)
    expect.tolerate(
        not first.done,
        "a PONG with another id completes no ping",
        id="a-pong-with-another-id-completes-no-ping",
    )
    pong_to(node, ping)
    pong_to(node, ping)
    answered = expect.ok(await first, "the first ping completes", id="the-first-ping-completes")
    expect.that(
        answered["rtt_ms"] is not None,
        "the first ping is answered",
        answered,
        id="the-first-ping-is-answered",
    )
    second = client.begin("mol.ping", 3.0, session="s1", node=PEER)
    again = await pinged(expect, node, skip=1)
    await asyncio.sleep(0.2)
    expect.that(
        not second.done, "the second ping waits for its own PONG", id="the-second-ping-waits-for-its-own-pong"
    )
    pong_to(node, again)
    answered = expect.ok(await second, "the second ping completes", id="the-second-ping-completes")
    expect.that(
        answered["rtt_ms"] is not None,
        "the second ping is answered",
        answered,
        id="the-second-ping-is-answered",
    )


@scenario("MOL-2.11", "SHOULD", "medium", basis=["M7"], ops=("mol.ping",))
async def ping_timeout(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Ping timeout.

    Fault: `mol.ping` with 2000 ms; no PONG
    Pass: Ends within 2.65 s with error kind `timeout`, or with an empty result (null) if the library reports
    it so; no later completion when the PONG comes at 4 s
    Seen: measured: moleculer 0.14.36 and 0.15.2 give null after 2.0 s
    """
    node = mute_pings(broker)
    await joined(broker, client)
    begun = now()
    result = await client.op("mol.ping", 2.0, session="s1", node=PEER)
    ping = await pinged(expect, node)
    expect.ended(result, "the ping ends within 2.65 s", id="the-ping-ends-within-n-n-s")
    if result.ok:
        expect.equal(
            result.value["rtt_ms"],
            None,
            "without a PONG the result is empty",
            id="without-a-pong-the-result-is-empty",
        )
    else:
        expect.failed(
            result,
            ("timeout",),
            "without a PONG the ping ends with kind timeout",
            id="without-a-pong-the-ping-ends-with-kind-timeout",
        )
    await asyncio.sleep(max(0.0, begun + 3.0 - now()))
    later = client.begin("mol.ping", 3.0, session="s1", node=PEER)
    own = await pinged(expect, node, skip=1)
    pong_to(node, own)
    pong_to(node, ping)
    expect.ok(await later, "a late PONG completes nothing else", id="a-late-pong-completes-nothing-else")


@scenario("MOL-2.12", "SHOULD", "low", basis=["M7"], roles=CALLER, ops=("mol.ping",))
async def peer_clock_differs(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Peer clock differs.

    Fault: PONG with `arrived` one hour ahead, then one hour behind; heartbeats go on
    Pass: `rtt_ms` between 0 and 1000 in both cases (the difference is not mixed into it); the peer stays
    available and a call to it is answered
    Seen: measured: moleculer reports timeDiff ±3600 s apart from elapsedTime
    """
    node = mute_pings(broker, p={"echo": echo})
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=4)
    for number, (hours, name) in enumerate(((1, "ahead"), (-1, "behind"))):
        pinging = client.begin("mol.ping", 3.0, session="s1", node=PEER)
        ping = await pinged(expect, node, skip=number)
        pong_to(node, ping, arrived=wall_ms(node) + hours * 3_600_000)
        value = expect.ok(await pinging, "the ping completes", id="the-ping-completes")
        rtt = value["rtt_ms"]
        fits = isinstance(rtt, int | float) and 0 <= rtt <= 1000
        expect.that(
            fits,
            f"rtt_ms is 0 to 1000 with a clock one hour {name}",
            rtt,
            id=slug("rtt-ms-is-n-to-n-with-a-clock-one-hour-{}", name),
        )
    await asyncio.sleep(1.0)
    await is_answered(
        client,
        expect,
        "the peer stays available",
        "p.echo",
        timeout_s=AT_ONCE_S,
        id="the-peer-stays-available",
    )


async def ping_all(client: Client, *nodes: Node, skip: int = 0) -> tuple[Call, list[Ping]]:
    """The client pings all nodes: the op, and what has reached each of these."""
    pinging = client.begin("mol.ping", 2.0, session="s1")
    found = [await heard(node, Ping, within_s=0.0 if pinging.done else 1.0, skip=skip) for node in nodes]
    if pinging.done and (result := await pinging).word == "unsupported":
        raise Unsupported(str(result))
    return pinging, [each[0] for each in found if each]


def times_of(value: Any) -> dict[str, float | None]:
    """The round trip of each node in a result, in milliseconds."""
    return {each["from"]: each["rtt_ms"] for each in value["nodes"] or ()}


@scenario("MOL-2.15", "SHOULD", "low", basis=["M7"], roles=CALLER, ops=("mol.ping",))
async def ping_of_all(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Ping of all nodes.

    Fault: Three peers, and `mol.ping` without a node, 2000 ms: the first peer answers after 200 ms, its clock
    one hour ahead; the second after 700 ms, twice; the third never. Then the same again, and all answer at
    once
    Pass: Each peer gets one PING, on MOL.PING or on MOL.PING.<peer>; the ping ends within 2.65 s, with an
    `rtt_ms` of its own for each peer that has answered, and with null or nothing for the third. The second
    time all three have one; non-strict if that one goes on to its time-out
    Seen: moleculer service-broker.js ping (source): a PING of its own for each node that is available;
    measured: moleculer 0.14.36 and 0.15.2
    """
    nodes = [mute_pings(broker, name, **{name: {"echo": echo}}) for name in ("quick", "slow", "silent")]
    quick, slow, _ = nodes
    await joined(broker, client)
    since = mark(broker)
    pinging, pings = await ping_all(client, *nodes)
    expect.equal(len(pings), 3, "a PING reaches each peer", id="a-ping-reaches-each-peer")
    await asyncio.sleep(0.2)
    pong_to(quick, pings[0], arrived=wall_ms(quick) + 3_600_000)
    await asyncio.sleep(0.5)
    pong_to(slow, pings[1])
    pong_to(slow, pings[1])
    result = await pinging
    expect.ended(result, "the ping ends within 2.65 s", id="the-ping-ends-within-n-n-s")
    times = times_of(expect.ok(result, "the ping completes", id="the-ping-completes"))
    fast_ms, slow_ms = times.get("quick") or 0.0, times.get("slow") or 0.0
    expect.that(
        fast_ms >= 190 and slow_ms - fast_ms >= 300,
        "each node that answers has a round trip of its own",
        times,
        id="each-node-that-answers-has-a-round-trip-of-its-own",
    )
    expect.equal(times.get("silent"), None, "a silent node has none", id="a-silent-node-has-none")
    for node in nodes:
        heard_of = len(node.heard(Ping))
        expect.equal(heard_of, 1, "each peer gets one PING", id="each-peer-gets-one-ping")
    targets = {place(record) for record, _ in said(broker, "Ping", since)}
    own = {f"PING.{node.id}" for node in nodes}
    expect.that(
        targets in ({"PING"}, own),
        "on MOL.PING, or on that of each peer",
        sorted(targets),
        id="on-mol-ping-or-on-that-of-each-peer",
    )
    pinging, pings = await ping_all(client, *nodes, skip=1)
    for node, ping in zip(nodes, pings, strict=False):
        pong_to(node, ping)
    result = await pinging
    times = times_of(expect.ok(result, "the next ping completes", id="the-next-ping-completes"))
    missing = [node.id for node in nodes if times.get(node.id) is None]
    expect.that(not missing, "all that answered are in it", missing, id="all-that-answered-are-in-it")
    expect.tolerate(
        result.elapsed_ms < 1500,
        "it ends when all have answered",
        f"{result.elapsed_ms:.0f} ms",
        id="it-ends-when-all-have-answered",
    )
