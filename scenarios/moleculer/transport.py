"""Moleculer when the transporter's connections are lost, and when there is no server to begin with."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Inconclusive, SetupFailed
from fakebrokers import Moleculer
from fakebrokers.core.session import HangUp
from scenarios.moleculer._steps import (
    BOTH_WAYS,
    CALLER,
    MQTT,
    NATS,
    OFFER,
    REDIS,
    SERVICE,
    a_listener,
    a_service,
    asked,
    begin_call,
    call,
    event,
    is_answered,
    joined,
    joining,
    limit,
    now,
    peer,
    request,
    respond,
    runs,
    serve,
    serves,
    settled,
    until,
)
from scenarios.moleculer._wire import (
    came,
    is_broadcast,
    mark,
    places,
    said,
    subscriptions,
    wanted_topics,
)

PATIENT: dict[str, Any] = {"heartbeat_s": 2, "heartbeat_timeout_s": 60}


MARKED = {"marked": "lost at sea"}


def has_subscribed(broker: Moleculer, since: int, wanted: frozenset[str] | set[str] = frozenset()) -> bool:
    """Whether the topics were granted since that record: the twelve, unless others are wanted."""
    return (wanted or wanted_topics()) <= places(subscriptions(broker, mark(broker) + 1, since))


async def returns(broker: Moleculer, since: int, within_s: float = 9.0) -> bool:
    """Wait until the client listens again to those of its topics that it had; whether it does."""
    before = wanted_topics() & places(subscriptions(broker, since))
    return await until(lambda: has_subscribed(broker, since, before), within_s)


async def back(broker: Moleculer, since: int, within_s: float = 9.0) -> float:
    """The same. Returns when. Raises `Inconclusive`: it does not come back."""
    if not await returns(broker, since, within_s):
        raise Inconclusive("the client does not subscribe again", id="not-back")
    return now()


@scenario(
    "MOL-2.13",
    "SHOULD",
    "critical",
    basis=["M1", "M2"],
    needs=["auto_reconnect"],
    variants=("mqtt",),
    roles=BOTH_WAYS,
    server=MQTT,
    timeout_s=60,
)
@scenario("MOL-2.13", variants=("redis",), roles=BOTH_WAYS, server=REDIS, timeout_s=60)
@scenario("MOL-2.13", variants=("nats",), roles=BOTH_WAYS, server=NATS, timeout_s=60)
async def server_restart(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Server restart.

    Fault: Transporter server stops for 3 s and comes back without state; peer stays alive and beats each
    second; `heartbeat_timeout_s` 10
    Pass: Within 8 s after the return the 12 topics are subscribed again, a REQUEST is answered and a call to
    the peer is answered. A new DISCOVER or INFO is not required (nats.js 2 does not tell Moleculer of the
    reconnect; the peers' heartbeats heal the registry); further DISCOVERs are allowed
    Seen: measured: nats.js 2 sends only the SUBs again; nats.js 1 also INFO and DISCOVER; ioredis 5 DISCOVER
    twice; moleculer#764
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, heartbeat_s=1, heartbeat_timeout_s=10, offers=[a_service({"echo": "echo"})])
    await is_answered(
        client,
        expect,
        "a call before the restart is answered",
        "p.echo",
        id="a-call-before-the-restart-is-answered",
    )
    since = mark(broker)
    broker.crash(HangUp.FIN, keep_state=True)
    await asyncio.sleep(3.0)
    broker.restart()
    begun = now()
    criterion = "within 8 s after the return the 12 topics are subscribed again"
    there = await until(lambda: has_subscribed(broker, since), limit(8.0))
    expect.that(
        there,
        criterion,
        sorted(wanted_topics() - places(subscriptions(broker, mark(broker) + 1, since))),
        id="within-n-s-after-the-return-the-n-topics-are-subscribed",
    )
    expect.within(
        now() - begun, limit(8.0), criterion, id="within-n-s-after-the-return-the-n-topics-are-subscribed"
    )
    await settled(node)
    await serves(
        expect, node, "a REQUEST after the return is answered", id="a-request-after-the-return-is-answered"
    )
    result = await call(client, "p.echo", {"n": 1})
    while not result.ok and now() < begun + limit(8.0):  # the peer's next heartbeat heals the registry
        await asyncio.sleep(0.2)
        result = await call(client, "p.echo", {"n": 1}, 1.0)
    expect.ok(
        result,
        "a call to the peer is answered within 8 s after the return",
        id="a-call-to-the-peer-is-answered-within-n-s-after-the-return",
    )


@scenario("MOL-3.21", "MUST", "critical", basis=["M5", "M10"], variants=("mqtt",), roles=CALLER, server=MQTT)
@scenario("MOL-3.21", variants=("redis",), roles=CALLER, server=REDIS)
@scenario("MOL-3.21", variants=("nats",), roles=CALLER, server=NATS)
async def transport_down(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Transport down at call.

    Fault: fin of all transporter connections and refuse for 3 s; 500 ms later a call with marked params and
    `timeout_ms` 1000 to a peer that is still in the registry (`heartbeat_timeout_s` 60)
    Pass: Ends by 1.45 s: kind `connection` (BrokerDisconnectedError 502), or `timeout` where the message
    client hides the loss (nats.js 2). No result. No REQUEST with its params appears later; non-strict if one
    appears after the reconnect
    Seen: moleculer#715; measured with nats.js 2.29: RequestTimeoutError at 1.0 s, the request is never sent
    """
    peer(broker, services=OFFER)
    await joined(broker, client, calls_s=1.0, **PATIENT)
    await is_answered(
        client,
        expect,
        "a call before the loss is answered",
        "p.echo",
        id="a-call-before-the-loss-is-answered",
    )
    since = mark(broker)
    broker.refuse(2.0 + client.deadline_s("request", 1.0))  # not back before the call is overdue
    broker.kill(how=HangUp.FIN)
    await asyncio.sleep(0.5)
    result = await call(client, "p.echo", MARKED, 1.0)
    kinds = ("connection", "timeout")
    expect.failed(
        result,
        kinds,
        "a call without a transport ends as connection or timeout by 1.45 s",
        id="a-call-without-a-transport-ends-as-connection-or-timeout-by",
    )
    if client.can("auto_reconnect"):
        await returns(broker, since)
        await asyncio.sleep(1.0)
    sent = [p for _, p in said(broker, "Request", since) if getattr(p, "params", None) == MARKED]
    expect.tolerate(
        not sent, "its REQUEST does not appear later", len(sent), id="its-request-does-not-appear-later"
    )


@scenario(
    "MOL-3.22",
    "MUST",
    "critical",
    basis=["M10"],
    variants=("mqtt",),
    roles=CALLER,
    server=MQTT,
    needs=("auto_reconnect", "concurrent"),
)
@scenario("MOL-3.22", variants=("redis",), roles=CALLER, server=REDIS, needs=("concurrent",))
@scenario("MOL-3.22", variants=("nats",), roles=CALLER, server=NATS, needs=("concurrent",))
async def lost_with_pending_calls(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Transport lost with pending calls.

    Fault: RST with 5 calls pending (`timeout_ms` 6000), server accepts again at once; when the client has
    subscribed again, the peer answers three of them; the other two are answered 1 s after their deadline;
    `heartbeat_timeout_s` 60
    Pass: Each of the five ends exactly once, none later than 7.45 s: the three with their result (or with a
    connection error at the loss), the two with an error or timeout; the late answers change nothing; a new
    call is answered
    Seen: moleculer#715; measured with nats.js 2.29: the three complete after the reconnect
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, calls_s=6.0, **PATIENT)
    begun = now()
    calls = [begin_call(client, "p.wait", {"n": n}, 6.0) for n in range(5)]
    requests = sorted(await asked(node, 5), key=lambda p: p.params["n"])
    since = mark(broker)
    broker.kill(how=HangUp.RST)
    await back(broker, since, 5.0)
    await settled(node)
    for each in requests[:3]:
        respond(node, each, data={"answer": each.params["n"]})
    results = [await each for each in calls]
    for number, result in enumerate(results):
        expect.ended(
            result,
            "each of the calls ends, none later than 7.45 s",
            id="each-of-the-calls-ends-none-later-than-n-n-s",
        )
        if number >= 3:
            expect.that(
                not result.ok,
                "a call without an answer ends with an error",
                str(result),
                id="a-call-without-an-answer-ends-with-an-error",
            )
        elif result.ok:
            expect.equal(
                result.value["data"],
                {"answer": number},
                "an answered call ends with its result",
                id="an-answered-call-ends-with-its-result",
            )
        else:
            expect.failed(
                result,
                ("connection",),
                "an answered call ends with its result, or as connection",
                id="an-answered-call-ends-with-its-result-or-as-connection",
            )
    await asyncio.sleep(max(0.0, begun + 7.0 - now()))
    for each in requests[3:]:
        respond(node, each, data="too late")
    await settled(node)
    await is_answered(
        client, expect, "a new call is answered", "p.echo", {"n": 1}, id="a-new-call-is-answered"
    )


@scenario(
    "MOL-3.23",
    "SHOULD",
    "critical",
    basis=["M5"],
    needs=["auto_reconnect"],
    variants=("mqtt",),
    roles=("service", "listener"),
    server=MQTT,
    timeout_s=60,
)
@scenario("MOL-3.23", variants=("redis",), roles=("service", "listener"), server=REDIS, timeout_s=60)
@scenario("MOL-3.23", variants=("nats",), roles=("service", "listener"), server=NATS, timeout_s=60)
async def one_execution(broker: Moleculer, client: Client, expect: Expect) -> None:
    """One execution after reconnects.

    Fault: All transporter connections dropped three times, 3 s apart; then 10 REQUESTs and 10 EVENTs, each
    published once by the peer
    Pass: Each REQUEST runs once and gets exactly one RESPONSE; each EVENT runs its handler once. Doubled
    SUBSCRIBE/DISCOVER lines and additional publisher connections are reported, not judged
    Seen: moleculer#1363; measured: ioredis node subscribes and discovers twice and keeps one more connection
    per reconnect
    """
    node = peer(broker)
    await joined(broker, client, **PATIENT, offers=[a_service({"echo": "echo"}), a_listener("news", "news")])
    event(node, "news", "before", broadcast=True)
    if not await client.wait_messages(1, "news", 2.0):
        raise SetupFailed("an event is handled before any loss", "none was", id="handled-before")
    for _ in range(3):
        since = mark(broker)
        broker.kill(how=HangUp.FIN)
        await back(broker, since)
        await asyncio.sleep(0.5)
    expect.note(f"{len(broker.connections)} connections after three losses")
    since, seen = mark(broker), len(client.events)
    ids = [request(node, "s.echo", {"n": n}) for n in range(10)]
    for number in range(10):
        event(node, "news", number, broadcast=True)
    await came(broker, "Response", since=since, count=10)
    await client.wait_messages(11, "news", 2.0)
    await settled(node)
    await asyncio.sleep(0.2)
    await until(lambda: len(runs(client, since=seen)) >= 10, 1.0)  # it is reported apart from the answers
    ran = runs(client, since=seen)
    expect.equal(sorted(ran), sorted(ids), "each REQUEST runs once", id="each-request-runs-once")
    answers: Any = [p for _, p in said(broker, "Response", since)]
    expect.equal(
        sorted(a.id for a in answers),
        sorted(ids),
        "each REQUEST gets exactly one RESPONSE",
        id="each-request-gets-exactly-one-response",
    )
    expect.equal(
        len(client.messages("news")) - 1,
        10,
        "each EVENT runs its handler once",
        id="each-event-runs-its-handler-once",
    )


@scenario(
    "MOL-4.17",
    "SHOULD",
    "medium",
    basis=["M1", "M2"],
    needs=["auto_reconnect"],
    variants=("mqtt",),
    roles=SERVICE,
    server=MQTT,
    timeout_s=60,
    revision=2,
)
@scenario("MOL-4.17", variants=("redis",), roles=SERVICE, server=REDIS, timeout_s=60, revision=2)
@scenario("MOL-4.17", variants=("nats",), roles=SERVICE, server=NATS, timeout_s=60, revision=2)
async def dead_transporter(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Start against a dead transporter.

    Fault: Port refuses for 12 s, then accepts; `connect` with a deadline of 30 s
    Pass: `connect` completes at most 8 s after the port opens (moleculer retries each 5 s; the interval is
    not prescribed), or, non-strict, it fails as `connection` or `timeout` while there is no server, and the
    application connects again; then 12 subscriptions and one DISCOVER as in MOL-1.01; a REQUEST is answered.
    Seen: moleculer#25; moleculer#26; measured: connected at 15.7 s (0.14.36, 0.15.2 with nats.js 2)
    """
    node = peer(broker)
    args = {**joining(broker, client), "timeout": 30.0}
    broker.refuse()
    starting = client.begin_connect(**args)
    await asyncio.sleep(12.0)
    if starting.done and not (early := await starting).ok:  # the application connects again
        kinds = ("connection", "timeout")
        criterion = "connect waits for a server, or fails because there is none"
        expect.failed(early, kinds, criterion, id="connect-waits-for-a-server")
        expect.tolerate(False, "connect waits for a server", str(early), id="connect-waits-for-a-server")
    else:
        expect.exercised(not starting.done, "connect did not wait", id="the-port-refused")
    broker.restart()
    begun = now()
    result = await (client.begin_connect(**args) if starting.done else starting)
    expect.ok(result, "connect completes", id="connect-completes")
    expect.within(
        result.ended_ns / 1e9 - begun,
        limit(8.0),
        "at most 8 s after the port opens",
        id="at-most-n-s-after-the-port-opens",
    )
    found = [each for each in await came(broker, "Discover") if is_broadcast(each)]
    expect.equal(len(found), 1, "one DISCOVER", id="one-discover")
    missing = wanted_topics() - places(subscriptions(broker))  # before DISCOVER or after it: see MOL-1.01
    expect.that(
        not missing,
        "the 12 topics are subscribed",
        sorted(missing),
        id="the-n-topics-are-subscribed-before-it",
    )
    await serve(client, {"echo": "echo"})
    await serves(expect, node, "a REQUEST is answered", id="a-request-is-answered")
