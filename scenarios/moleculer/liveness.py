"""MOL-2 Heartbeats, pings, and the end of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from conformance.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Ping
from scenarios.moleculer._steps import (
    AT_ONCE_S,
    CALLER,
    MQTT,
    NATS,
    NODE,
    PEER,
    REDIS,
    SERVICE,
    Topical,
    asked,
    begin_call,
    call,
    came,
    echo,
    heard,
    is_answered,
    is_broadcast,
    joined,
    limit,
    mark,
    met,
    now,
    peer,
    place,
    respond,
    said,
    serve,
    serves,
    services_in,
    settled,
    until,
    wall_ms,
    when,
    withheld,
)

OFFER = {"p": {"echo": echo, "wait": withheld}}


async def row(client: Client, id: str = PEER) -> Any:
    """What ``mol.registry`` says of a node; None if it is not offered, or does not list it."""
    if not client.has("mol.registry"):
        return None
    nodes = (await client.prepare("mol.registry", session="s1"))["nodes"]
    return next((each for each in nodes if each["id"] == id), None)


async def fails_unsent(
    broker: Moleculer, client: Client, expect: Expect, node: Node, criterion: str, within_s: float = 0.5
) -> Result:
    """A call to the peer fails at once, for good, and no REQUEST is published."""
    since, seen = mark(broker), len(node.requests)
    result = await call(client, "p.echo", timeout_s=2.0)
    expect.that(
        result.error is not None and result.error.definite, f"{criterion} fails for good", str(result)
    )
    expect.within(result.elapsed_ms / 1000, limit(within_s), f"{criterion} fails at once")
    sent = len(said(broker, "Request", since)) + len(node.requests) - seen
    expect.equal(sent, 0, f"{criterion}: no REQUEST is published")
    return result


# heartbeats


@scenario("MOL-2.01", variants=("mqtt",), server=MQTT, timeout_s=45)
@scenario("MOL-2.01", variants=("redis",), server=REDIS, timeout_s=45)
@scenario("MOL-2.01", variants=("nats",), server=NATS, timeout_s=45)
async def periodic_heartbeat(broker: Moleculer, client: Client, expect: Expect) -> None:
    await joined(broker, client, heartbeat_s=2)
    (discover, *_) = await came(broker, "Discover")
    first = await came(broker, "Heartbeat", within_s=6.0)
    expect.that(first, "the first HEARTBEAT comes", "none within 6 s")
    begun = when(broker, first[0][0])
    criterion = "the first HEARTBEAT comes at most 4.5 s after DISCOVER"
    expect.within(begun - when(broker, discover[0]), 4.5, criterion)
    await asyncio.sleep(max(0.0, begun + 20.0 - now()))
    found = [each for each in said(broker, "Heartbeat") if when(broker, each[0]) <= begun + 20.0]
    gaps = [later[0].at - earlier[0].at for earlier, later in pairwise(found)]
    expect.that(7 <= len(found) <= 15, "7 to 15 HEARTBEATs in 20 s", len(found))
    expect.within(max(gaps), 3.0, "every gap is at most 3 s")
    expect.not_before(min(gaps), 1.2, "every gap is at least 1.2 s")
    for record, packet in found:
        beat: Any = packet
        signed = beat.ver in ("4", "5") and beat.sender == NODE
        expect.that(signed, "each has ver and sender", (beat.ver, beat.sender))
        expect.that(
            beat.cpu is None or isinstance(beat.cpu, int | float), "cpu is a number or null", beat.cpu
        )
        expect.that(is_broadcast((record, packet)), "each is for everybody", place(record))


@scenario("MOL-2.02", timeout_s=75)
async def default_interval(broker: Moleculer, client: Client, expect: Expect) -> None:
    await joined(broker, client)
    found = await came(broker, "Heartbeat", count=3, within_s=45.0)
    expect.that(len(found) >= 3, "three HEARTBEATs within 45 s", len(found))
    mean = (found[2][0].at - found[0][0].at) / 2
    fits = 4.4 <= mean <= 5.6 or 9.4 <= mean <= 10.6
    expect.note(f"{mean:.2f} s between two heartbeats")
    expect.that(fits, "the mean gap is 4.4 to 5.6 s, or 9.4 to 10.6 s", f"{mean:.2f} s")


@scenario("MOL-2.03", roles=CALLER, timeout_s=45)
async def peer_goes_silent(broker: Moleculer, client: Client, expect: Expect) -> None:
    node = peer(broker, services=OFFER)
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=3)
    await asyncio.sleep(3.0)
    await is_answered(client, expect, "a call to a peer that beats is answered", "p.echo")
    node.kill()
    silent_since = now()
    early = await row(client)
    while now() < silent_since + 2.4:
        early = await row(client)
        if early is None or not early["available"]:
            break
        await asyncio.sleep(0.1)
    if early is not None:
        expect.that(early["available"], "the registry keeps the peer for 2.5 s of silence", early)
    await asyncio.sleep(max(0.0, silent_since + 7.5 - now()))
    await fails_unsent(broker, client, expect, node, "a call at 7.5 s of silence")
    late = await row(client)
    gone = late is None or not late["available"]
    expect.that(gone, "the registry shows the silent peer unavailable", late)


@scenario("MOL-2.04", roles=CALLER, timeout_s=60)
async def heartbeat_keeps_alive(broker: Moleculer, client: Client, expect: Expect) -> None:
    node = peer(broker, services=OFFER, heartbeat_s=0)
    await joined(broker, client, heartbeat_s=2, heartbeat_timeout_s=4)
    since = mark(broker)
    for number in range(10):
        node.heartbeat()
        await asyncio.sleep(3.0)
        await is_answered(client, expect, "every call is answered", "p.echo", {"n": number})
        shown = await row(client)
        kept = shown is None or shown["available"]
        expect.that(kept, "the registry never shows the peer unavailable", shown)
        await asyncio.sleep(0.2)
    expect.equal(len(node.requests), 10, "every call is routed to the peer")
    found = [p for _, p in said(broker, "Discover", since)]
    expect.that(not found, "no DISCOVER to a peer that beats", len(found))


async def _returns(broker: Moleculer, client: Client, expect: Expect, node: Node, case: str) -> None:
    """The peer is unavailable; it beats once, and is back only with its INFO."""
    node.send("HEARTBEAT", cpu=0)
    found = await came(broker, "Discover", since=mark(broker) - 10, where=lambda p: p.sender == NODE)
    there = [place(r) for r, _ in found]
    expect.that(f"DISCOVER.{PEER}" in there, f"{case}: DISCOVER to the peer within 1 s", there)
    await asyncio.sleep(0.4)
    await fails_unsent(broker, client, expect, node, f"{case}: a call before INFO")
    node.send_info(NODE)
    await settled(node)
    seen = len(node.requests)
    await is_answered(client, expect, f"{case}: a call after INFO is answered", "p.echo", {"n": 1})
    expect.equal(len(node.requests), seen + 1, f"{case}: it is routed to the peer")


@scenario("MOL-2.05", roles=CALLER, timeout_s=60)
async def return_of_a_peer(broker: Moleculer, client: Client, expect: Expect) -> None:
    node = peer(broker, services=OFFER, answers_discover=False)
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=3)
    node.send_info(NODE)  # in place of the answer to DISCOVER
    await settled(node)
    await is_answered(client, expect, "a call to the peer is answered", "p.echo")
    node.stop_heartbeats()
    node.send("DISCONNECT")
    await settled(node)
    await fails_unsent(broker, client, expect, node, "a call after DISCONNECT")
    await _returns(broker, client, expect, node, "after DISCONNECT")
    await asyncio.sleep(7.5)
    await fails_unsent(broker, client, expect, node, "a call at 7.5 s of silence")
    await _returns(broker, client, expect, node, "after silence")


@scenario("MOL-2.06", roles=SERVICE)
async def unknown_heartbeat(broker: Moleculer, client: Client, expect: Expect) -> None:
    node = peer(broker)
    await joined(broker, client)
    await serve(client, {"echo": "echo"})
    since = mark(broker)
    stranger = peer(broker, "stranger", announces=False, answers_discover=False, heartbeat_s=0)
    stranger.heartbeat()
    found = await came(broker, "Discover", since=since)
    there = [place(r) for r, _ in found]
    expect.equal(there, ["DISCOVER.stranger"], "a HEARTBEAT of an unknown node is answered with DISCOVER")
    await serves(expect, node, "the node is alive")


@scenario("MOL-2.14", roles=CALLER)
async def heartbeat_with_seq(broker: Moleculer, client: Client, expect: Expect) -> None:
    node = peer(broker, services=OFFER, heartbeat_s=0)
    await joined(broker, client)
    await is_answered(client, expect, "a call to the peer is answered", "p.echo")
    since = mark(broker)
    services = [*node.core.services, *_one_more()]
    node.core.services, node.core.seq = services, 2  # told by nobody yet
    node.send("HEARTBEAT", cpu=0, seq=2)
    found = await came(broker, "Discover", since=since)
    if not expect.tolerate(found, "a HEARTBEAT with another seq is answered with DISCOVER within 1 s"):
        await is_answered(client, expect, "the peer is kept alive", "p.echo")
        return
    expect.equal([place(r) for r, _ in found], [f"DISCOVER.{PEER}"], "DISCOVER to the peer")
    await settled(node)
    await is_answered(client, expect, "the added action is callable after the INFO", "more.echo", {"n": 1})
    since = mark(broker)
    for _ in range(3):
        node.heartbeat()
    await settled(node)
    expect.equal(len(said(broker, "Discover", since)), 0, "no DISCOVER for plain HEARTBEATs")


def _one_more() -> list[Any]:
    from fakebrokers.moleculer.services import Service

    return [Service("more", {"echo": echo})]


# the end


@scenario("MOL-2.07", variants=("mqtt",), roles=CALLER, server=MQTT, needs=("concurrent",))
@scenario("MOL-2.07", variants=("redis",), roles=CALLER, server=REDIS, needs=("concurrent",))
@scenario("MOL-2.07", variants=("nats",), roles=CALLER, server=NATS, needs=("concurrent",))
async def disconnect_of_a_peer(broker: Moleculer, client: Client, expect: Expect) -> None:
    gone = peer(broker, services=OFFER)
    other = peer(broker, "other", {"q": {"wait": withheld}})
    await joined(broker, client)
    pending = [begin_call(client, "p.wait", {"n": n}, 30.0) for n in range(3)]
    kept = begin_call(client, "q.wait", timeout_s=30.0)
    await asked(gone, 3)
    (wanted,) = await asked(other)
    gone.stop_heartbeats()
    gone.send("DISCONNECT")
    begun = now()
    for each in pending:
        ended = await until(lambda each=each: each.done, limit(1.0))  # type: ignore[misc]
        expect.that(
            ended, "pending calls to the peer end within 1 s", f"still open after {now() - begun:.1f} s"
        )
        result = await each
        expect.that(not result.ok, "pending calls to the peer end with an error", str(result))
    await fails_unsent(broker, client, expect, gone, "a new call to the peer")
    respond(other, wanted, data="kept")
    expect.equal(expect.ok(await kept, "the call to another peer completes")["data"], "kept", "normally")


@scenario("MOL-2.08", variants=("mqtt",), roles=SERVICE, server=MQTT)
@scenario("MOL-2.08", variants=("redis",), roles=SERVICE, server=REDIS)
@scenario("MOL-2.08", variants=("nats",), roles=SERVICE, server=NATS)
async def own_stop(broker: Moleculer, client: Client, expect: Expect) -> None:
    node = peer(broker)
    await joined(broker, client)
    await serve(client, {"echo": "echo"})
    await met(broker, node, "s.echo")
    before: Any = said(broker, "Info")[-1][1]
    since, begun = mark(broker), now()
    expect.ok(await client.close(timeout=6.0), "close completes")
    expect.within(now() - begun, 5.0 * 1.2 + 0.25, "within 5 s")
    await came(broker, "Disconnect", since=since)  # what was sent may be on its way yet
    infos = [each for each in said(broker, "Info", since) if is_broadcast(each)]
    expect.that(infos, "an INFO broadcast comes first", "none")
    last: Any = infos[-1][1]
    expect.equal(services_in(last), [], "its list of services is empty")
    expect.tolerate(last.services == [], "not even the node's own services", last.services)
    if before.seq is not UNSET:
        expect.that(last.seq > before.seq, "its seq is higher", (before.seq, last.seq))
    goodbyes = [each for each in said(broker, "Disconnect", since) if is_broadcast(each)]
    expect.equal(len(goodbyes), 1, "then a DISCONNECT broadcast")
    expect.that(goodbyes[0][0].seq > infos[-1][0].seq, "DISCONNECT comes behind INFO")
    end = goodbyes[0][0]
    await expect.socket_closed(broker, end.connection, "then the connection ends", within_s=2.0)
    later = [r.kind for r, _ in broker.packets(since=end.seq) if r.tap & Tap.RECEIVED]
    expect.that(not later, "nothing behind DISCONNECT", later)
    if broker.transporter == "mqtt":
        said_so = broker.journal.select(kind="MqttDisconnect", tap=Tap.RECEIVED)
        expect.that(said_so, "the connection ends with MQTT's own DISCONNECT", "none")


# pings


def pongs(broker: Moleculer, since: int) -> list[Topical]:
    """The PONGs of the client."""
    return said(broker, "Pong", since)


@scenario("MOL-2.09", roles=SERVICE)
async def ping_answered(broker: Moleculer, client: Client, expect: Expect) -> None:
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
