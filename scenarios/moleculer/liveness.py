"""MOL-2 Heartbeats: the own ones, and what those of others say."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.moleculer.node import Node
from scenarios.moleculer._steps import (
    BEAT_MOST_S,
    CALLER,
    MQTT,
    NATS,
    NODE,
    OFFER,
    PEER,
    REDIS,
    SERVICE,
    a_service,
    echo,
    is_answered,
    joined,
    now,
    peer,
    serves,
    settled,
)
from scenarios.moleculer._wire import (
    came,
    fails_unsent,
    is_broadcast,
    mark,
    place,
    said,
    when,
)


async def row(client: Client, id: str = PEER) -> Any:
    """What ``mol.registry`` says of a node; None if it is not offered, or does not list it."""
    if not client.has("mol.registry"):
        return None
    nodes = (await client.prepare("mol.registry", session="s1"))["nodes"]
    return next((each for each in nodes if each["id"] == id), None)


@scenario("MOL-2.01", "MUST", "critical", basis=["M3"], variants=("mqtt",), server=MQTT, timeout_s=90)
@scenario("MOL-2.01", variants=("redis",), server=REDIS, timeout_s=90)
@scenario("MOL-2.01", variants=("nats",), server=NATS, timeout_s=90)
async def periodic_heartbeat(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Periodic heartbeat.

    Fault: `heartbeat_s` 2; record 20 s from the first HEARTBEAT (transporters NATS, Redis, MQTT; the TCP
    transporter has none)
    Pass: First HEARTBEAT at most 4.5 s after DISCOVER; every gap within 1.2 to 3.0 s (real nodes add a jitter
    of up to ±0.5 s, fixed at start or per beat); 7 to 15 packets in the window; each has `ver`, `sender` and
    `cpu` (number, or null)
    Seen: measured: moleculer 0.14.36 and 0.15.2
    """
    own = client.heartbeat_s(2, BEAT_MOST_S)
    await joined(broker, client, heartbeat_s=own)
    (discover, *_) = await came(broker, "Discover")
    first = await came(broker, "Heartbeat", within_s=own + 4.0)
    expect.that(
        first, "the first HEARTBEAT comes", f"none within {own + 4.0:g} s", id="the-first-heartbeat-comes"
    )
    begun = when(broker, first[0][0])
    criterion = "the first HEARTBEAT comes at most 4.5 s after DISCOVER"
    expect.within(
        begun - when(broker, discover[0]),
        own + 2.5,
        criterion,
        id="the-first-heartbeat-comes-at-most-n-n-s-after-discover",
    )
    await asyncio.sleep(max(0.0, begun + 10 * own - now()))
    found = [each for each in said(broker, "Heartbeat") if when(broker, each[0]) <= begun + 10 * own]
    gaps = [later[0].at - earlier[0].at for earlier, later in pairwise(found)]
    expect.that(
        7 <= len(found) <= 15, "7 to 15 HEARTBEATs in 20 s", len(found), id="n-to-n-heartbeats-in-n-s"
    )
    expect.within(max(gaps), 1.5 * own, "every gap is at most 3 s", id="every-gap-is-at-most-n-s")
    expect.not_before(min(gaps), 0.6 * own, "every gap is at least 1.2 s", id="every-gap-is-at-least-n-n-s")
    for record, packet in found:
        beat: Any = packet
        signed = beat.ver in ("4", "5") and beat.sender == NODE
        expect.that(signed, "each has ver and sender", (beat.ver, beat.sender), id="each-has-ver-and-sender")
        expect.that(
            beat.cpu is None or isinstance(beat.cpu, int | float),
            "cpu is a number or null",
            beat.cpu,
            id="cpu-is-a-number-or-null",
        )
        expect.that(
            is_broadcast((record, packet)), "each is for everybody", place(record), id="each-is-for-everybody"
        )


@scenario("MOL-2.02", "SHOULD", "low", basis=["M3"], timeout_s=75)
async def default_interval(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Default interval.

    Fault: No heartbeat option; record until the third HEARTBEAT, at most 45 s
    Pass: Mean gap 4.4 to 5.6 s (seed, moleculerpy) or 9.4 to 10.6 s (moleculer 0.14 and 0.15); the report
    says which
    Seen: moleculer 0.14.36, 0.15.2 default 10 s (source); moleculerpy default 5 s (source)
    """
    await joined(broker, client)
    found = await came(broker, "Heartbeat", count=3, within_s=45.0)
    expect.that(len(found) >= 3, "three HEARTBEATs within 45 s", len(found), id="three-heartbeats-within-n-s")
    mean = (found[2][0].at - found[0][0].at) / 2
    fits = 4.4 <= mean <= 5.6 or 9.4 <= mean <= 10.6
    expect.note(f"{mean:.2f} s between two heartbeats")
    expect.that(
        fits,
        "the mean gap is 4.4 to 5.6 s, or 9.4 to 10.6 s",
        f"{mean:.2f} s",
        id="the-mean-gap-is-n-n-to-n-n-s-or-n-n-to-n-n-s",
    )


@scenario("MOL-2.03", "MUST", "critical", basis=["M4"], roles=CALLER, timeout_s=45)
async def peer_goes_silent(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Peer goes silent.

    Fault: `heartbeat_s` 1, `heartbeat_timeout_s` 3; the peer beats each second for 4 s, answers one call,
    then publishes nothing at all; the next call is made at 7.5 s of silence
    Pass: The first call succeeds. At 7.5 s (2 x timeout + 1.5 s) the second fails within 500 ms with a
    definite error and no REQUEST goes to the peer. `mol.registry` (if offered) shows it unavailable, not
    before 2.5 s of silence
    Seen: moleculer#765; moleculer discoverer check period equals the timeout (source); measured: found after
    6.04 s with timeout 3 s
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=3)
    await asyncio.sleep(3.0)
    await is_answered(
        client,
        expect,
        "a call to a peer that beats is answered",
        "p.echo",
        id="a-call-to-a-peer-that-beats-is-answered",
    )
    node.send("HEARTBEAT", cpu=0)  # the last one: the silence begins here, not up to a second ago
    node.kill()
    silent_since = now()
    early = await row(client)
    while now() < silent_since + 2.4:
        early = await row(client)
        if early is None or not early["available"]:
            break
        await asyncio.sleep(0.1)
    if early is not None:
        expect.that(
            early["available"],
            "the registry keeps the peer for 2.5 s of silence",
            early,
            id="the-registry-keeps-the-peer-for-n-n-s-of-silence",
        )
    await asyncio.sleep(max(0.0, silent_since + 7.5 - now()))
    await fails_unsent(broker, client, expect, node, "a call at 7.5 s of silence")
    late = await row(client)
    gone = late is None or not late["available"]
    expect.that(
        gone,
        "the registry shows the silent peer unavailable",
        late,
        id="the-registry-shows-the-silent-peer-unavailable",
    )


@scenario("MOL-2.04", "MUST", "high", basis=["M4"], roles=CALLER, timeout_s=60)
async def heartbeat_keeps_alive(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Heartbeat keeps a peer alive.

    Fault: `heartbeat_timeout_s` 4; peer beats each 3.2 s, 10 periods; one call per period, made 3 s after the
    beat
    Pass: Every call is routed and answered; no DISCOVER to the peer; registry (if offered) never shows it
    unavailable
    Seen: moleculer#705
    """
    node = peer(broker, services=OFFER, heartbeat_s=0)
    await joined(broker, client, heartbeat_s=2, heartbeat_timeout_s=4)
    since = mark(broker)
    for number in range(10):
        node.heartbeat()
        await asyncio.sleep(3.0)
        await is_answered(
            client, expect, "every call is answered", "p.echo", {"n": number}, id="every-call-is-answered"
        )
        shown = await row(client)
        kept = shown is None or shown["available"]
        expect.that(
            kept,
            "the registry never shows the peer unavailable",
            shown,
            id="the-registry-never-shows-the-peer-unavailable",
        )
        await asyncio.sleep(0.2)
    expect.equal(
        len(node.requests), 10, "every call is routed to the peer", id="every-call-is-routed-to-the-peer"
    )
    found = [p for _, p in said(broker, "Discover", since)]
    expect.that(
        not found, "no DISCOVER to a peer that beats", len(found), id="no-discover-to-a-peer-that-beats"
    )


async def _returns(broker: Moleculer, client: Client, expect: Expect, node: Node, case: str) -> None:
    """The peer is unavailable; it beats once, and is back only with its INFO."""
    node.send("HEARTBEAT", cpu=0)
    found = await came(broker, "Discover", since=mark(broker) - 10, where=lambda p: p.sender == NODE)
    there = [place(r) for r, _ in found]
    expect.that(
        f"DISCOVER.{PEER}" in there,
        f"{case}: DISCOVER to the peer within 1 s",
        there,
        id=slug("{}-discover-to-the-peer-within-n-s", case),
    )
    await asyncio.sleep(0.4)
    await fails_unsent(broker, client, expect, node, f"{case}: a call before INFO")
    node.send_info(NODE)
    await settled(node)
    seen = len(node.requests)
    await is_answered(
        client,
        expect,
        f"{case}: a call after INFO is answered",
        "p.echo",
        {"n": 1},
        id=slug("{}-a-call-after-info-is-answered", case),
    )
    expect.equal(
        len(node.requests),
        seen + 1,
        f"{case}: it is routed to the peer",
        id=slug("{}-it-is-routed-to-the-peer", case),
    )


@scenario("MOL-2.05", "MUST", "high", basis=["M2", "M4"], roles=CALLER, timeout_s=60)
async def return_of_a_peer(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Return of a broken peer.

    Fault: Peer unavailable (a) by silence as in MOL-2.03, (b) by its DISCONNECT; then one HEARTBEAT from it;
    a call 500 ms after it; INFO (same instanceID, same seq) 1 s after it, as answer to the DISCOVER; another
    call
    Pass: DISCOVER on MOL.DISCOVER.<peer> within 1 s after the HEARTBEAT; the first call fails without a
    REQUEST to the peer; the second is routed and answered
    Seen: moleculer#707; measured: both cases, moleculer 0.14.36 and 0.15.2
    """
    node = peer(broker, services=OFFER, answers_discover=False)
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=3)
    node.send_info(NODE)  # in place of the answer to DISCOVER
    await settled(node)
    await is_answered(
        client, expect, "a call to the peer is answered", "p.echo", id="a-call-to-the-peer-is-answered"
    )
    node.stop_heartbeats()
    node.send("DISCONNECT")
    await settled(node)
    await fails_unsent(broker, client, expect, node, "a call after DISCONNECT")
    await _returns(broker, client, expect, node, "after DISCONNECT")
    await asyncio.sleep(7.5)
    await fails_unsent(broker, client, expect, node, "a call at 7.5 s of silence")
    await _returns(broker, client, expect, node, "after silence")


@scenario("MOL-2.06", "SHOULD", "medium", basis=["M2"], roles=SERVICE)
async def unknown_heartbeat(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Heartbeat from an unknown node.

    Fault: Inject
    Pass: Targeted DISCOVER; no crash
    Seen: moleculer-rs#10
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    since = mark(broker)
    stranger = peer(broker, "stranger", announces=False, answers_discover=False, heartbeat_s=0)
    stranger.heartbeat()
    found = await came(broker, "Discover", since=since)
    there = [place(r) for r, _ in found]
    expect.equal(
        there,
        ["DISCOVER.stranger"],
        "a HEARTBEAT of an unknown node is answered with DISCOVER",
        id="a-heartbeat-of-an-unknown-node-is-answered-with-discover",
    )
    await serves(expect, node, "the node is alive", id="the-node-is-alive")


@scenario("MOL-2.14", "SHOULD", "medium", basis=["M2", "M3"], roles=CALLER)
async def heartbeat_with_seq(broker: Moleculer, client: Client, expect: Expect) -> None:
    """HEARTBEAT that announces a newer INFO.

    Fault: Known peer (INFO seq 1); HEARTBEAT with `seq` 2 (as nodes with the Redis or Etcd discoverer send
    it); the peer answers DISCOVER with INFO seq 2 that adds an action; then HEARTBEATs without `seq`
    Pass: One DISCOVER on MOL.DISCOVER.<peer> within 1 s; the added action is callable after the INFO; no
    DISCOVER for the plain HEARTBEATs. Non-strict: `seq` ignored, peer kept alive
    Seen: moleculer#262; moleculer#263; measured: moleculer 0.14.36 and 0.15.2 send DISCOVER
    """
    node = peer(broker, services=OFFER, heartbeat_s=0)
    await joined(broker, client)
    await is_answered(
        client, expect, "a call to the peer is answered", "p.echo", id="a-call-to-the-peer-is-answered"
    )
    since = mark(broker)
    services = [*node.core.services, *_one_more()]
    node.core.services, node.core.seq = services, 2  # not announced yet
    node.send("HEARTBEAT", cpu=0, seq=2)
    found = await came(broker, "Discover", since=since)
    if not expect.tolerate(
        found,
        "a HEARTBEAT with another seq is answered with DISCOVER within 1 s",
        id="a-heartbeat-with-another-seq-is-answered-with-discover",
    ):
        await is_answered(client, expect, "the peer is kept alive", "p.echo", id="the-peer-is-kept-alive")
        return
    expect.equal(
        [place(r) for r, _ in found], [f"DISCOVER.{PEER}"], "DISCOVER to the peer", id="discover-to-the-peer"
    )
    await settled(node)
    await is_answered(
        client,
        expect,
        "the added action is callable after the INFO",
        "more.echo",
        {"n": 1},
        id="the-added-action-is-callable-after-the-info",
    )
    since = mark(broker)
    for _ in range(3):
        node.heartbeat()
    await settled(node)
    expect.equal(
        len(said(broker, "Discover", since)),
        0,
        "no DISCOVER for plain HEARTBEATs",
        id="no-discover-for-plain-heartbeats",
    )


def _one_more() -> list[Any]:
    from fakebrokers.moleculer.services import Service

    return [Service("more", {"echo": echo})]
