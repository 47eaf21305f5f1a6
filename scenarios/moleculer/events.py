"""MOL-4 Events: who gets which, and what handlers do to a node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from msgspec import UNSET

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.faults import duplicate
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Event
from fakebrokers.moleculer.services import Service
from scenarios.moleculer._steps import (
    EMITTER,
    LISTENER,
    MQTT,
    NATS,
    NODE,
    REDIS,
    TCP,
    a_listener,
    a_service,
    event,
    heard,
    joined,
    limit,
    met,
    peer,
    reachable,
    serves,
    settled,
    until,
)
from scenarios.moleculer._wire import (
    came,
    mark,
    packets,
    place,
    said,
)

HEARING = ("service", "listener")


def listener(broker: Moleculer, id: str, *patterns: str, **options: Any) -> Node:
    """A peer that listens; a pattern may begin with ``group:``."""
    return peer(
        broker, id, [Service(f"of-{id}", events=dict.fromkeys(patterns, lambda ctx: None))], **options
    )


async def handled(client: Client, count: int, sub: str = "news", within_s: float = 2.0) -> list[Any]:
    """The payloads that a handler got, as soon as there are `count`."""
    messages = await client.wait_messages(count, sub, within_s)
    return [json.loads(body_bytes(message.body)) for message in messages]


def _by_number(data: Any) -> tuple[bool, Any]:
    """Sorts what should be numbers, also where a client has sent other values."""
    return (False, data) if isinstance(data, int) else (True, repr(data))


async def emitted(client: Client, name: str, data: Any, how: str = "mol.emit", **more: Any) -> None:
    """The client emits, or broadcasts, an event as a step that only prepares."""
    await client.prepare(how, session="s1", event=name, data=data, **more)


async def reached(nodes: list[Node], count: int, within_s: float = 3.0) -> dict[str, list[Event]]:
    """The EVENTs at the peers, as soon as there are so many in all."""
    await until(lambda: sum(len(node.events) for node in nodes) >= count, within_s)
    await settled(nodes[0])
    return {node.id: node.events for node in nodes}


@scenario("MOL-4.01", "MUST", "high", basis=["M6"], roles=EMITTER)
async def emit_with_groups(broker: Moleculer, client: Client, expect: Expect) -> None:
    """emit with groups.

    Fault: Peers A1 and A2 listen in group ga, B1 in group gb; `mol.emit` 20 times; then with groups ["ga"]
    Pass: Per emit exactly one EVENT to A1 or A2 and one to B1, each with `broadcast` false and `groups`
    holding the group that the node serves; A1 and A2 both get some. With groups ["ga"]: one EVENT, to A1 or
    A2 only
    Seen: moleculer#208; measured: moleculer 0.14.36 and 0.15.2
    """
    nodes = [listener(broker, id, f"g{id[0]}:news") for id in ("a1", "a2", "b1")]
    await joined(broker, client)
    for number in range(20):
        await emitted(client, "news", number)
    found = await reached(nodes, 40)
    in_a = sorted((e.data for id in ("a1", "a2") for e in found[id]), key=_by_number)
    expect.equal(
        in_a,
        list(range(20)),
        "exactly one EVENT per emit to one of the two in a group",
        id="exactly-one-event-per-emit-to-one-of-the-two-in-a-group",
    )
    expect.equal(
        sorted((e.data for e in found["b1"]), key=_by_number),
        list(range(20)),
        "exactly one to the other group",
        id="exactly-one-to-the-other-group",
    )
    expect.that(
        found["a1"] and found["a2"],
        "both nodes of a group get some",
        [len(f) for f in found.values()],
        id="both-nodes-of-a-group-get-some",
    )
    for id, events in found.items():
        groups = [f"g{id[0]}"]
        plain = all(e.broadcast is False and e.groups == groups for e in events)
        expect.that(
            plain,
            "broadcast is false, groups holds the group of the node",
            events[:1],
            id="broadcast-is-false-groups-holds-the-group-of-the-node",
        )
    await emitted(client, "news", "for ga", groups=["ga"])
    found = await reached(nodes, 41)
    there = [id for id, events in found.items() for e in events if e.data == "for ga"]
    expect.that(
        len(there) == 1 and there[0] in ("a1", "a2"),
        "with groups one EVENT, to that group",
        there,
        id="with-groups-one-event-to-that-group",
    )


@scenario("MOL-4.02", "MUST", "high", basis=["M6"], roles=EMITTER)
async def broadcast(broker: Moleculer, client: Client, expect: Expect) -> None:
    """broadcast.

    Fault: Peers A1, A2 (group ga) and B1 (gb) listen, C1 does not listen to the event; `mol.broadcast`
    Pass: A1, A2 and B1 get one EVENT each on MOL.EVENT.<node> with `broadcast` true; `groups` absent, null or
    empty; C1 gets none
    Seen: moleculer#791; moleculer#799; measured: groups key is absent
    """
    nodes = [listener(broker, id, f"g{id[0]}:news") for id in ("a1", "a2", "b1")]
    deaf = listener(broker, "c1", "gc:other")
    await joined(broker, client)
    await emitted(client, "news", 7, "mol.broadcast")
    found = await reached([*nodes, deaf], 3)
    for id in ("a1", "a2", "b1"):
        expect.equal(
            [e.data for e in found[id]],
            [7],
            "each listening node gets one EVENT",
            id="each-listening-node-gets-one-event",
        )
        (one,) = found[id]
        expect.equal(one.broadcast, True, "broadcast is true", id="broadcast-is-true")
        expect.that(
            one.groups in (UNSET, None, []),
            "groups is absent, null or empty",
            one.groups,
            id="groups-is-absent-null-or-empty",
        )
    expect.equal(
        found["c1"], [], "a node that does not listen gets none", id="a-node-that-does-not-listen-gets-none"
    )


@scenario("MOL-4.03", "MUST", "high", basis=["M6"], variants=("tcp",), roles=LISTENER, server=TCP)
@scenario("MOL-4.03", variants=("mqtt",), roles=LISTENER, server=MQTT)
@scenario("MOL-4.03", variants=("redis",), roles=LISTENER, server=REDIS)
@scenario("MOL-4.03", variants=("nats",), roles=LISTENER, server=NATS)
async def receive_event(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Receive an event.

    Fault: EVENT for a local handler: `groups` with the handler's group and `broadcast` false; then
    `broadcast` true with `groups` absent; then with groups null
    Pass: Handler runs once for each, with the payload
    Seen: moleculer#687
    """
    node = peer(broker)
    group = "ga" if client.takes("mol.listen", "group") else ""
    await joined(broker, client, offers=[a_listener("news", group=group)])
    await reachable(broker, node)
    cases: list[tuple[str, dict[str, Any]]] = [
        *([("its group", {"groups": [group]})] if group else []),
        ("broadcast without groups", {"broadcast": True}),
        ("groups null", {"broadcast": True, "groups": None}),
    ]
    for number, (name, fields) in enumerate(cases):
        event(node, "news", {"n": number}, **fields)
        found = await handled(client, number + 1)
        expect.equal(
            found[number:],
            [{"n": number}],
            f"{name}: the handler runs with the payload",
            id=slug("{}-the-handler-runs-with-the-payload", name),
        )
    await settled(node)
    expect.equal(
        len(client.messages("news")),
        len(cases),
        "the handler runs once for each",
        id="the-handler-runs-once-for-each",
    )


@scenario("MOL-4.04", "SHOULD", "low", basis=["M6"], roles=LISTENER)
async def duplicate_event(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Duplicate event.

    Fault: dup(EVENT)
    Pass: Handler runs twice or dedup; no crash (documented)
    Seen: moleculer#687
    """
    node = peer(broker)
    broker.faults.add(duplicate(kind="Event", direction="out", nth=1, name="twice"))
    await joined(broker, client, offers=[a_listener("news")])
    event(node, "news", "once")
    await settled(node)
    event(node, "news", "next")
    expect.that(
        await until(lambda: len(client.messages("news")) >= 2, 2.0),
        "the next event is handled",
        id="the-next-event-is-handled",
    )
    await settled(node)
    found = await handled(client, 2)
    expect.note(f"the handler ran {found.count('once')} times for a duplicate")
    expect.that(
        1 <= found.count("once") <= 2,
        "the handler runs once, or twice",
        found,
        id="the-handler-runs-once-or-twice",
    )
    expect.equal(
        found.count("next"), 1, "the next event is handled once", id="the-next-event-is-handled-once"
    )


@scenario(
    "MOL-4.05", "MUST", "high", basis=["M6"], needs=["callback_raise"], roles=HEARING, ops=("raise_next",)
)
async def handler_raises(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Handler raises.

    Fault: Raise
    Pass: Node alive; next event handled
    Seen: moleculer#605; moleculer#984
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"}), a_listener("news")])
    armed = await client.prepare("raise_next", callback="message", times=1)
    expect.exercised(
        armed["armed"], "the handler cannot be made to raise", id="the-handler-can-be-made-to-raise"
    )
    event(node, "news", "raises")
    expect.exercised(await handled(client, 1), "the handler did not run", id="the-handler-ran")
    await serves(expect, node, "the node is alive", id="the-node-is-alive")
    event(node, "news", "next")
    expect.equal(
        await handled(client, 2),
        ["raises", "next"],
        "the next event is handled",
        id="the-next-event-is-handled",
    )


@scenario("MOL-4.06", "MUST", "medium", basis=["M6"], roles=HEARING)
async def absent_handler(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Event for an absent handler.

    Fault: EVENT that no service listens to; EVENT for a local handler but only with a group that the node
    does not serve
    Pass: No handler runs, nothing is published, node alive
    Seen: measured: moleculer 0.14.36 and 0.15.2
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"}), a_listener("news", group="ga")])
    await met(broker, node, "s.echo")
    since = mark(broker)
    event(node, "nobody.listens", 1, broadcast=True)
    event(node, "news", 2, groups=["another"])
    await settled(node)
    await asyncio.sleep(0.2)
    expect.equal(client.messages("news"), [], "no handler runs", id="no-handler-runs")
    wrong = [p for kind in ("Event", "Response", "Info") for _, p in said(broker, kind, since)]
    expect.that(not wrong, "nothing is published", len(wrong), id="nothing-is-published")
    await serves(expect, node, "the node is alive", id="the-node-is-alive")
    event(node, "news", 3, groups=["ga"])
    expect.equal(
        await handled(client, 1),
        [3],
        "an event for its group is handled",
        id="an-event-for-its-group-is-handled",
    )


@scenario("MOL-4.07", "SHOULD", "low", basis=["M9"], roles=HEARING)
async def need_ack(broker: Moleculer, client: Client, expect: Expect) -> None:
    """needAck.

    Fault: EVENT with `needAck` true; without the member; with null. An EVENTACK packet only if the client
    subscribes to MOL.EVENTACK.<id>
    Pass: Handler runs once each time; an EVENTACK to MOL.EVENTACK.<sender> is allowed (moleculerpy), none is
    expected (moleculer); no crash
    Seen: moleculerpy transit.py sends EVENTACK (source)
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"}), a_listener("news")])
    for number, value in enumerate((True, UNSET, None)):
        event(node, "news", number, broadcast=True, needAck=value)
    topics = [str(getattr(r.frame, "subject", "")) for r in broker.journal.select(kind="Sub")]
    if f"MOL.EVENTACK.{NODE}" in topics:
        node.send_raw("EVENTACK", b'{"ver":"4","sender":"peer","id":"1"}', NODE)
    await handled(client, 3)
    await settled(node)
    expect.equal(
        sorted(await handled(client, 3), key=str),
        [0, 1, 2],
        "the handler runs once each time",
        id="the-handler-runs-once-each-time",
    )
    await serves(expect, node, "the node is alive", id="the-node-is-alive")


@scenario("MOL-4.22", "SHOULD", "high", basis=["M6"], roles=("emitter", "listener"))
async def event_patterns(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Event patterns.

    Fault: Client listens to `ord.*`, `all.**` and `q.?x`; EVENTs ord.a, ord.a.b, all.a.b, q.ax, q.abx. Peer
    lists `pat.*` and `deep.**` in its INFO; the client emits pat.a, pat.a.b, deep.a.b
    Pass: Handlers run for ord.a, all.a.b and q.ax only (`*` one segment, `**` any number, `?` one character);
    EVENT to the peer for pat.a and deep.a.b only
    Seen: measured: moleculer 0.14.36 and 0.15.2
    """
    node = listener(broker, "peer", "pat.*", "deep.**")
    await joined(broker, client, offers=[a_listener(pattern) for pattern in ("ord.*", "all.**", "q.?x")])
    for name in ("ord.a", "ord.a.b", "all.a.b", "q.ax", "q.abx"):
        event(node, name, name, broadcast=True)
    await settled(node)
    wanted = {"ord.*": ["ord.a"], "all.**": ["all.a.b"], "q.?x": ["q.ax"]}
    for pattern, names in wanted.items():
        found = await handled(client, 1, pattern)
        expect.equal(
            found,
            names,
            f"the handler of {pattern} runs for what fits only",
            id=slug("the-handler-of-{}-runs-for-what-fits-only", pattern),
        )
    for name in ("pat.a", "pat.a.b", "deep.a.b"):
        await emitted(client, name, name)
    found = [e.event for e in await heard(node, Event, 2)]
    await settled(node)
    found = [e.event for e in node.events]
    expect.equal(
        found,
        ["pat.a", "deep.a.b"],
        "EVENT to the peer for what fits its patterns only",
        id="event-to-the-peer-for-what-fits-its-patterns-only",
    )


@scenario(
    "MOL-4.23", "MUST", "high", basis=["M6", "M14"], needs=["disable_balancer"], roles=("emitter", "listener")
)
async def events_balancer_disabled(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Events with the balancer disabled.

    Fault: NATS only; the client listens in group ga, two peers in group gb; emit, then broadcast
    Pass: emit: one EVENT per group on MOL.EVENTB.<group>.<event> with `broadcast` false; none on
    MOL.EVENT.<node>. broadcast: one EVENT per listening node on MOL.EVENT.<node> (its own id included) with
    `broadcast` true, so that no node misses it. The client's own handler is subscribed on EVENTB with the
    group as queue name and runs once per emit and per broadcast. Topic EVENTB.<event> as in the seed's first
    table is non-strict
    Seen: moleculer#791; moleculer#687; measured: moleculer 0.14.36 and 0.15.2
    """
    nodes = [listener(broker, id, "gb:news", disable_balancer=True) for id in ("b1", "b2")]
    await joined(broker, client, disable_balancer=True, offers=[a_listener("news", group="ga")])

    def own(record: Any) -> bool:
        return bool(
            record.kind == "Sub" and record.frame.subject in ("MOL.EVENTB.ga.news", "MOL.EVENTB.news")
        )

    criterion = "the own handler is subscribed on EVENTB"
    (found, *_) = await expect.wire(
        broker, criterion, within_s=limit(2.5), where=own, id="the-own-handler-is-subscribed-on-eventb"
    )
    frame: Any = found.frame
    expect.tolerate(
        frame.subject == "MOL.EVENTB.ga.news",
        "the topic has the group",
        frame.subject,
        id="the-topic-has-the-group",
    )
    expect.equal(frame.queue, "ga", "with the group as queue name", id="with-the-group-as-queue-name")
    await emitted(client, "news", "emitted")
    await reached(nodes, 1)
    sent = said(broker, "Event")
    topics = sorted(place(r) for r, _ in sent)
    per_group = topics in (["EVENTB.ga.news", "EVENTB.gb.news"], ["EVENTB.news"])
    expect.that(
        per_group,
        "emit: one EVENT per group on EVENTB, none on EVENT.<node>",
        topics,
        id="emit-one-event-per-group-on-eventb-none-on-event-node",
    )
    expect.tolerate(topics != ["EVENTB.news"], "the topic has the group", id="the-topic-has-the-group")
    plain = all(e.broadcast is False for e in packets(broker, "Event"))
    expect.that(plain, "emit: broadcast is false", id="emit-broadcast-is-false")
    expect.equal(
        await handled(client, 1),
        ["emitted"],
        "emit: the own handler runs once",
        id="emit-the-own-handler-runs-once",
    )
    since = mark(broker)
    await emitted(client, "news", "for all", "mol.broadcast")
    await came(broker, "Event", since=since, count=3)
    await settled(nodes[0])
    sent = said(broker, "Event", since)
    topics = sorted(place(r) for r, _ in sent)
    wanted = ["EVENT.b1", "EVENT.b2", f"EVENT.{NODE}"]
    expect.equal(
        topics,
        wanted,
        "broadcast: one EVENT per listening node on EVENT.<node>",
        id="broadcast-one-event-per-listening-node-on-event-node",
    )
    marked = all(e.broadcast is True for e in packets(broker, "Event", since))
    expect.that(marked, "broadcast: broadcast is true", id="broadcast-broadcast-is-true")
    await handled(client, 2)
    await asyncio.sleep(0.2)
    expect.equal(
        await handled(client, 2),
        ["emitted", "for all"],
        "broadcast: the own handler runs once",
        id="broadcast-the-own-handler-runs-once",
    )
