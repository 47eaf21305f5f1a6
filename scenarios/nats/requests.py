"""NATS-3 Requests: nobody listens, and answers that come late."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers import NATS
from fakebrokers.faults import hold
from scenarios.nats._steps import REQUESTER, request


@scenario("NATS-3.01", "MUST", "high", basis=["S9"], roles=REQUESTER)
async def nobody_listens(broker: NATS, client: Client, expect: Expect) -> None:
    """Nobody listens.

    Fault: None; a request with 5 s to a subject without a subscriber, which the server answers with status
    503 at once; then one that is answered
    Pass: It fails as `refused`, and within 1 s; the next request gets its answer
    Seen: nats.go#576; nats.ts#114; nats.c#353
    """
    broker.respond("echo", lambda _, payload: payload)
    await client.connected()
    result = await request(client, "nowhere", b"is anybody there")
    expect.failed(result, ("refused",), "it fails as refused", id="it-fails-as-refused")
    expect.within(result.elapsed_ms / 1000, 1.45, "within 1 s", id="within-n-s")
    good = expect.ok(await request(client, "echo", b"tea"), "the next is answered", id="the-next-is-answered")
    expect.equal(body_bytes(good["body"]), b"tea", "with its answer", id="with-its-answer")


@scenario("NATS-3.02", "MUST", "critical", basis=["S10"], roles=REQUESTER, timeout_s=60)
async def late_answer(broker: NATS, client: Client, expect: Expect) -> None:
    """An answer after the time-out.

    Fault: The answer to a request with 1 s is held for 2 s, and comes while the next request waits
    Pass: The first ends as `timeout`; the second gets its own answer, not that of the first; so does a third
    Seen: nats.net#376
    """
    answer = {"answer": "1"}
    broker.respond("echo", lambda _, payload: payload, headers=answer)
    await client.connected()
    first = expect.ok(await request(client, "echo", b"zero"), "a request works", id="a-request-works")
    expect.exercised(body_bytes(first["body"]) == b"zero", "no echo", id="no-echo")
    broker.faults.add(hold(kind="Hmsg", direction="out", name="late"))
    late = await request(client, "echo", b"one", timeout=1.0)
    expect.failed(late, ("timeout",), "the first ends as timeout", id="the-first-ends-as-timeout")
    call = asyncio.ensure_future(request(client, "echo", b"two"))
    await asyncio.sleep(0.3)
    broker.faults.remove("late")
    for body, result in ((b"two", await call), (b"three", await request(client, "echo", b"three"))):
        value = expect.ok(result, "the next ones are answered", id="the-next-ones-are-answered")
        expect.equal(body_bytes(value["body"]), body, "with their own answers", id="with-their-own-answers")
