"""MOL-3 Which node is asked: by the turn, or by the bus where the balancer is disabled."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from fakebrokers import Moleculer
from scenarios.moleculer._steps import (
    AT_ONCE_S,
    BOTH_WAYS,
    CALLER,
    OFFER,
    PEER,
    a_service,
    begin_call,
    echo,
    is_answered,
    joined,
    peer,
    serve,
    settled,
)
from scenarios.moleculer._wire import (
    mark,
    place,
    said,
)


@scenario("MOL-3.19", "SHOULD", "medium", basis=["M2", "M8"], roles=CALLER, needs=("concurrent",))
async def two_nodes(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Two nodes, balancing.

    Fault: Two peers offer the action, the client does not; 100 calls, both answer; then one sends DISCONNECT,
    20 more calls
    Pass: Each peer gets at least 10 of the 100; after the DISCONNECT none of the 20 goes to the gone peer and
    all succeed
    Seen: measured: 50/50 (round robin)
    """
    nodes = [peer(broker, id, {"p": {"echo": echo}}) for id in ("one", "two")]
    await joined(broker, client)
    await all_answered(client, expect, 100, "all calls are answered", id="all-calls-are-answered")
    shares = [len(node.requests) for node in nodes]
    expect.that(
        min(shares) >= 10,
        "each peer gets at least 10 of 100 calls",
        shares,
        id="each-peer-gets-at-least-n-of-n-calls",
    )
    nodes[0].stop_heartbeats()
    nodes[0].send("DISCONNECT")
    await settled(nodes[1])
    gone = len(nodes[0].requests)
    await all_answered(
        client,
        expect,
        20,
        "all calls after the DISCONNECT are answered",
        id="all-calls-after-the-disconnect-are-answered",
    )
    expect.equal(len(nodes[0].requests), gone, "none goes to the gone peer", id="none-goes-to-the-gone-peer")


async def all_answered(client: Client, expect: Expect, count: int, criterion: str, *, id: str) -> None:
    """So many calls at once end well."""
    calls = [begin_call(client, "p.echo", {"n": n}) for n in range(count)]
    for each in calls:
        expect.ok(await each, criterion, id=id)


@scenario("MOL-3.20", "MUST", "high", basis=["M14"], needs=["disable_balancer"], roles=CALLER)
async def balancer_disabled(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Balancer disabled, caller.

    Fault: NATS only (Redis, MQTT and TCP have no balancer and fall back); a known peer offers the action; the
    answer comes from a node that never sent INFO
    Pass: REQUEST on MOL.REQB.<action>, not on MOL.REQ.<node>; the call completes with that answer. A call
    with an explicit `node` goes to MOL.REQ.<node>
    Seen: moleculer#791; moleculer#709; measured: moleculer 0.14.36 and 0.15.2
    """
    known = peer(broker, services=OFFER)
    silent = {"announces": False, "answers_discover": False, "disable_balancer": True}
    hidden = peer(broker, "hidden", {"p": {"echo": lambda ctx: "from the hidden one"}}, **silent)
    await joined(broker, client, disable_balancer=True)
    data = await is_answered(
        client, expect, "the call is answered", "p.echo", {"n": 1}, id="the-call-is-answered"
    )
    expect.equal(
        [place(r) for r, _ in said(broker, "Request")],
        ["REQB.p.echo"],
        "REQUEST on REQB.<action>",
        id="request-on-reqb-action",
    )
    expect.equal(
        data,
        "from the hidden one",
        "the answer of a node without INFO counts",
        id="the-answer-of-a-node-without-info-counts",
    )
    expect.equal(len(hidden.requests), 1, "one REQUEST", id="one-request")
    since = mark(broker)
    data = await is_answered(
        client,
        expect,
        "a call to a node is answered",
        "p.echo",
        {"n": 2},
        node=PEER,
        id="a-call-to-a-node-is-answered",
    )
    expect.equal(
        [place(r) for r, _ in said(broker, "Request", since)],
        [f"REQ.{PEER}"],
        "a node on REQ.<node>",
        id="a-node-on-req-node",
    )
    expect.equal(
        (data, len(known.requests)), ({"n": 2}, 1), "the node answers itself", id="the-node-answers-itself"
    )


@scenario("MOL-3.27", "MUST", "high", basis=["M14"], needs=["disable_balancer"], roles=BOTH_WAYS)
async def balanced_service(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Balancer disabled, service side.

    Fault: NATS only; the client serves `s.a`; REQUEST published on MOL.REQB.s.a; then a new service is added;
    then the client calls its own action
    Pass: After its INFO broadcast the client is subscribed to MOL.REQB.<action> with a queue group named like
    the action (any stable group name is non-strict); each REQUEST gets one RESPONSE on MOL.RES.<sender>;
    within 2.5 s after the change the new action's REQB topic is subscribed too; the own call travels over
    REQB as well (non-strict: answered locally)
    Seen: moleculer#707; moleculer#791; measured: moleculer 0.14.36 and 0.15.2
    """
    node = peer(broker, disable_balancer=True)
    await joined(broker, client, disable_balancer=True, offers=[a_service({"a": "echo"})])
    await _balanced(
        broker,
        expect,
        "s.a",
        "after its INFO the action is subscribed on REQB",
        AT_ONCE_S * 2,
        id="after-its-info-the-action-is-subscribed-on-reqb",
    )
    since = mark(broker)
    for number in range(3):
        future = node.start_call("s.a", {"n": number}, timeout=2.0)
        expect.equal(
            await asyncio.wrap_future(future),
            {"n": number},
            "a REQUEST on REQB is answered",
            id="a-request-on-reqb-is-answered",
        )
    await settled(node)
    found = [place(r) for r, _ in said(broker, "Response", since)]
    expect.equal(
        found,
        [f"RES.{PEER}"] * 3,
        "each REQUEST gets one RESPONSE on RES.<sender>",
        id="each-request-gets-one-response-on-res-sender",
    )
    await serve(client, {"b": "echo"}, "t")
    criterion = "within 2.5 s after the change the new action is subscribed too"
    await _balanced(
        broker,
        expect,
        "t.b",
        criterion,
        3.25,
        id="within-n-n-s-after-the-change-the-new-action-is-subscribed",
    )
    since = mark(broker)
    await is_answered(
        client,
        expect,
        "a call of the own action is answered",
        "s.a",
        {"own": 1},
        id="a-call-of-the-own-action-is-answered",
    )
    own = [place(r) for r, _ in said(broker, "Request", since)]
    expect.tolerate(
        own == ["REQB.s.a"], "the own call goes over REQB too", own, id="the-own-call-goes-over-reqb-too"
    )


async def _balanced(
    broker: Moleculer, expect: Expect, action: str, criterion: str, within_s: float, *, id: str
) -> None:
    """The client listens to an action as one of a queue group."""

    def fits(record: Any) -> bool:
        return bool(record.kind == "Sub" and record.frame.subject == f"MOL.REQB.{action}")

    (found, *_) = await expect.wire(broker, criterion, within_s=within_s, where=fits, id=id)
    frame: Any = found.frame
    expect.that(
        frame.queue, "the subscription is one of a queue group", id="the-subscription-is-one-of-a-queue-group"
    )
    expect.tolerate(
        frame.queue == action,
        "the queue group has the name of the action",
        frame.queue,
        id="the-queue-group-has-the-name-of-the-action",
    )
