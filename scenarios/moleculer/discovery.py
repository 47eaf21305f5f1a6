"""MOL-1 Discovery: how a node joins and asks who is there."""

from __future__ import annotations

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.faults import duplicate
from scenarios.moleculer._steps import (
    BEAT_MOST_S,
    BOTH_WAYS,
    MQTT,
    NATS,
    NODE,
    PEER,
    REDIS,
    SERVICE,
    a_service,
    asked,
    echo,
    is_answered,
    joined,
    limit,
    met,
    now,
    peer,
    serves,
    settled,
)
from scenarios.moleculer._wire import (
    came,
    is_broadcast,
    mark,
    place,
    places,
    said,
    services_in,
    subscriptions,
    wanted_topics,
    when,
)


@scenario("MOL-1.01", "MUST", "critical", basis=["M1"], variants=("mqtt",), server=MQTT)
@scenario("MOL-1.01", variants=("redis",), server=REDIS)
@scenario("MOL-1.01", variants=("nats",), server=NATS)
async def subscriptions_at_start(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Subscriptions at start.

    Fault: None; record from connect to 2 s after the own DISCOVER
    Pass: These 12 topics are subscribed (NATS: SUB read; Redis: SUBSCRIBE answered; MQTT: SUBACK sent) before
    the first DISCOVER is published, in any order: EVENT, REQ and RES with the own id; DISCOVER, INFO and PING
    with and without the own id; PONG with the own id; DISCONNECT; HEARTBEAT. REQB/EVENTB topics are required
    only with the balancer off. More topics (EVENTACK) are allowed
    Seen: moleculer#25; moleculerpy connect() publishes DISCOVER and INFO before it subscribes and leaves out
    DISCOVER.<id> and PING (source)
    """
    await joined(broker, client)
    found = [each for each in await came(broker, "Discover") if is_broadcast(each)]
    expect.that(found, "a DISCOVER is published", "none", id="a-discover-is-published")
    missing = wanted_topics() - places(subscriptions(broker, found[0][0].seq))
    late = missing & places(subscriptions(broker))
    expect.that(
        not missing,
        "the 12 topics are subscribed before the first DISCOVER",
        f"later: {_listed(late)}; never: {_listed(missing - late)}",
        id="the-n-topics-are-subscribed-before-the-first-discover",
    )


def _listed(topics: set[str]) -> str:
    return ", ".join(sorted(topics)) or "none"


@scenario("MOL-1.02", "MUST", "high", basis=["M1"], roles=BOTH_WAYS, server={"namespace": "dev"})
async def namespace_prefix(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Namespace prefix.

    Fault: namespace dev
    Pass: Topics MOL-dev.*; no MOL.* traffic
    """
    node = peer(broker, services={"p": {"echo": echo}})
    await joined(broker, client, namespace="dev", offers=[a_service({"echo": "echo"})])
    check_topics(broker, expect)  # else nothing that follows can work
    await is_answered(
        client,
        expect,
        "a call in the namespace is answered",
        "p.echo",
        {"n": 1},
        id="a-call-in-the-namespace-is-answered",
    )
    await serves(
        expect, node, "a request in the namespace is answered", id="a-request-in-the-namespace-is-answered"
    )
    await client.close()
    check_topics(broker, expect)


def check_topics(broker: Moleculer, expect: Expect) -> None:
    """Demand that all subscribed and published so far is in the namespace."""
    used = [
        record.keys[0] for record in broker.journal.records() if record.kind in ("Sub", "Pub") and record.keys
    ]
    listened = subscriptions(broker, mark(broker) + 1)
    published = [str(getattr(record.frame, "subject", "")) for record, _ in broker.packets()]
    foreign = [each for each in [*listened, *published] if not each.startswith("MOL-dev.")]
    expect.exercised(used, "nothing was subscribed and published", id="nothing-was-subscribed-and-published")
    expect.that(
        not foreign, "all topics begin with MOL-dev.", foreign[:3], id="all-topics-begin-with-mol-dev"
    )


@scenario("MOL-1.03", "MUST", "critical", basis=["M2"], variants=("mqtt",), roles=BOTH_WAYS, server=MQTT)
@scenario("MOL-1.03", variants=("redis",), roles=BOTH_WAYS, server=REDIS)
@scenario("MOL-1.03", variants=("nats",), roles=BOTH_WAYS, server=NATS)
async def discover_then_info(broker: Moleculer, client: Client, expect: Expect) -> None:
    """DISCOVER then INFO.

    Fault: Peer answers DISCOVER with INFO on MOL.INFO.<client>; the client serves at least one service
    Pass: A DISCOVER broadcast (more than one on the same connection: non-strict); then one or more INFO
    broadcasts, the last one holding all its services, at most 4 s after the later of DISCOVER and `mol.serve`
    (1.5 s measured: 0.5 s wait, 1 s quiet time); a call to the peer's action is routed to it and answered.
    Non-strict: INFO broadcast before DISCOVER. A client with no service at all (not even `$node`) need not
    broadcast INFO
    Seen: moleculer#26
    """
    node = peer(broker, services={"p": {"echo": echo}})
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    begun = now()
    discovers = [each for each in said(broker, "Discover") if is_broadcast(each)]
    expect.that(discovers, "a DISCOVER broadcast", "none", id="a-discover-broadcast")
    expect.tolerate(
        len(discovers) == 1, "one DISCOVER broadcast", len(discovers), id="one-discover-broadcast"
    )
    reported = await came(broker, "Info", within_s=limit(4.0), where=lambda p: services_in(p) == ["s"])
    reported = [each for each in reported if is_broadcast(each)]
    expect.that(
        reported,
        "an INFO broadcast holds all services within 4 s",
        "none",
        id="an-info-broadcast-holds-all-services-within-n-s",
    )
    expect.within(
        when(broker, reported[0][0]) - begun,
        limit(4.0),
        "an INFO broadcast comes within 4 s",
        id="an-info-broadcast-comes-within-n-s",
    )
    first = next(each for each in said(broker, "Info") if is_broadcast(each))
    expect.tolerate(
        first[0].seq > discovers[0][0].seq,
        "INFO is broadcast after DISCOVER",
        id="info-is-broadcast-after-discover",
    )
    found = await is_answered(
        client,
        expect,
        "a call to the peer's action is answered",
        "p.echo",
        {"n": 1},
        id="a-call-to-the-peer-s-action-is-answered",
    )
    expect.equal(found, {"n": 1}, "the result is the peer's", id="the-result-is-the-peer-s")
    (request,) = await asked(node)
    expect.equal(
        request.action, "p.echo", "the call is routed to the peer", id="the-call-is-routed-to-the-peer"
    )
    last = [each for each in said(broker, "Info") if is_broadcast(each)][-1]
    expect.equal(
        services_in(last[1]),
        ["s"],
        "the last INFO broadcast holds all services",
        id="the-last-info-broadcast-holds-all-services",
    )


@scenario("MOL-1.04", "MUST", "critical", basis=["M2"], variants=("mqtt",), roles=SERVICE, server=MQTT)
@scenario("MOL-1.04", variants=("redis",), roles=SERVICE, server=REDIS)
@scenario("MOL-1.04", variants=("nats",), roles=SERVICE, server=NATS)
async def answers_discover(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Answers DISCOVER.

    Fault: After `connect` and `mol.serve` have completed: peer sends DISCOVER on MOL.DISCOVER, then on
    MOL.DISCOVER.<client>
    Pass: Within 1 s each time one INFO on MOL.INFO.<peer> with the current service list. Non-strict: INFO on
    the broadcast topic instead. A DISCOVER that arrives in the first 0.5 s of the connection may stay
    unanswered (not judged)
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    await met(broker, node, "s.echo")
    for target, how in (("", "on DISCOVER"), (NODE, "on DISCOVER.<client>")):
        since = mark(broker)
        node.discover(target)
        answers = await came(broker, "Info", since=since)
        expect.that(
            answers,
            f"a DISCOVER {how} is answered with an INFO within 1 s",
            "none",
            id=slug("a-discover-{}-is-answered-with-an-info-within-n-s", how),
        )
        await settled(node)
        answers = said(broker, "Info", since)
        expect.equal(
            len(answers),
            1,
            f"a DISCOVER {how} is answered with one INFO",
            id=slug("a-discover-{}-is-answered-with-one-info", how),
        )
        place_of = place(answers[0][0])
        expect.tolerate(
            place_of == f"INFO.{PEER}",
            "the INFO goes to who asked",
            place_of,
            id="the-info-goes-to-who-asked",
        )
        expect.equal(
            services_in(answers[0][1]),
            ["s"],
            "the INFO has the current services",
            id="the-info-has-the-current-services",
        )


@scenario("MOL-1.10", "MUST", "high", basis=["M9"], variants=("mqtt",), roles=SERVICE, server=MQTT)
@scenario("MOL-1.10", variants=("redis",), roles=SERVICE, server=REDIS)
@scenario("MOL-1.10", variants=("nats",), roles=SERVICE, server=NATS)
async def own_packets_echoed(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Own packets echoed.

    Fault: None beyond the transporter: NATS, Redis and MQTT deliver a node's own broadcasts (DISCOVER, INFO,
    HEARTBEAT) back to it; each is delivered twice here
    Pass: Over 3 heartbeats: no INFO or DISCOVER addressed to the own id, no conflict reported, `mol.registry`
    (if offered) shows no second entry for itself, a REQUEST is answered once. Packets on the own EVENT, REQ
    and RES topics are not part of this: they are processed even when the sender is the node itself (needed
    with the balancer off)
    Seen: moleculerpy#2
    """
    node = peer(broker)
    own = {"sender": NODE}
    kinds = ("Discover", "Info", "Heartbeat")
    broker.faults.add(*[duplicate(kind=kind, name=kind, direction="out", where=own) for kind in kinds])
    beat_s = client.heartbeat_s(1, BEAT_MOST_S)
    await joined(broker, client, heartbeat_s=beat_s, offers=[a_service({"echo": "echo"})])
    await met(broker, node, "s.echo")
    found = await came(broker, "Heartbeat", count=3, within_s=6 * beat_s)
    expect.exercised(len(found) >= 3, f"{len(found)} of 3 heartbeats came", id="n-of-n-heartbeats-came")
    to_itself = [place(r) for kind in ("Info", "Discover") for r, _ in said(broker, kind)]
    to_itself = [each for each in to_itself if each.endswith(f".{NODE}")]
    expect.that(
        not to_itself,
        "no INFO or DISCOVER is for the own id",
        to_itself,
        id="no-info-or-discover-is-for-the-own-id",
    )
    reported = [event for event in client.events if event.event == "error" or event["what"] == "disconnected"]
    expect.that(not reported, "no conflict is reported", reported, id="no-conflict-is-reported")
    if client.has("mol.registry"):
        nodes = (await client.prepare("mol.registry", session="s1"))["nodes"]
        own_rows = [each for each in nodes if each["id"] == NODE]
        expect.that(
            len(own_rows) <= 1,
            "the registry has no second entry for the node itself",
            len(own_rows),
            id="the-registry-has-no-second-entry-for-the-node-itself",
        )
    since = mark(broker)
    await serves(expect, node, "a REQUEST is answered", id="a-request-is-answered")
    await settled(node)
    expect.equal(
        len(said(broker, "Response", since)), 1, "a REQUEST is answered once", id="a-request-is-answered-once"
    )
