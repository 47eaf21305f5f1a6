"""NET-3 Callbacks: they may raise, they may run ops, and there may be none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from conformance.adapter.messages import Event
from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import hold
from fakebrokers.server import FakeServer
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import maybe_reconnecting
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.pzq import PROXIED, PZQ
from scenarios.net._scripts.rabbitmq_stream import ROLES

RMQS = ("rabbitmq-stream",)
OUTCRIES = ("unhandled", "uncaught", "panic", "never retrieved")


@scenario("NET-3.06", protocols=NARC, roles=ROLES, ops=("raise_next",), server=SETTINGS, timeout_s=90)
@scenario("NET-3.06", protocols=RMQS, roles=ROLES, ops=("raise_next",), timeout_s=90)
async def callbacks_that_raise(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready("other", "elsewhere", **maybe_reconnecting(client))
    tries: dict[str, Callable[[Script, str], Awaitable[None]]] = {
        "message": _raising_message,
        "confirm": _raising_confirm,
        "session": _raising_session,
    }
    if client.can("crc"):
        tries["error"] = _raising_error
    tried = 0
    for kind, attempt in tries.items():
        await script.ready(kind, f"q-{kind}", **maybe_reconnecting(client))
        heard, written = len(client.events), client.adapter.stderr_mark
        armed = await client.prepare("raise_next", callback=kind)
        if not armed["armed"]:
            continue
        tried += 1
        await attempt(script, kind)
        expect.that(client.alive, f"{kind}: the process lives on", "it ended")
        shown = lambda heard=heard, written=written: is_visible(client, heard, written)  # noqa: E731
        visible = await script.until(shown, 1.0)
        expect.that(
            visible or kind == "error", f"{kind}: the exception is visible", "no event, no line on stderr"
        )
        result = await client.publish("elsewhere", kind.encode(), session="other")
        expect.outcome(result, "acked", f"{kind}: other sessions are unaffected")
    expect.exercised(tried, "the library has no callbacks")


def is_visible(client: Client, heard: int, written: int) -> bool:
    """Whether a callback's exception shows since so many events and so much on stderr."""
    told = any(event.event == "error" for event in client.events[heard:])
    return told or "raise_next" in client.adapter.stderr(written)


async def _raising_message(script: Script, session: str) -> None:
    queue, expect = f"q-{session}", script.expect
    expect.prepared(await script.subscribe(queue, session, session))
    mark = script.broker.journal.last_seq
    for number in (1, 2, 3):
        got = await script.client.wait_messages(number, session)
        expect.that(
            len(got) == number, "message: the next callback of that kind runs", f"{len(got)} messages"
        )
        script.put(queue, [b"message %d" % number])
    settled = script.settled(mark)
    expect.that(not settled, "message: the library acknowledges none whose callback raised", settled[:1])


async def _raising_confirm(script: Script, session: str) -> None:
    mark = len(script.client.events)
    for number in (1, 2):
        call = script.client.begin_publish(f"q-{session}", b"%d" % number, session=session, wait=False)
        result = await call
        script.expect.ok(result, f"confirm: publish {number} is taken")
        if number == 2:
            told = await script.client.event("outcome", 3.0, mark, id=result.id)
            script.expect.that(told, "confirm: the next callback of that kind runs", "no outcome")


async def _raising_session(script: Script, session: str) -> None:
    client, expect = script.client, script.expect
    for number in (1, 2):
        mark = len(client.events)
        script.broker.kill(how="rst")
        told = await client.event("session", 5.0, mark, session=session)
        expect.that(told, "session: the next callback of that kind runs", f"no event of loss {number}")
        for name, queue in ((session, f"q-{session}"), ("other", "elsewhere")):
            if not client.reconnects("producer"):
                await client.connected(name)
            await script.works_again(
                f"{name} works after loss {number}", within_s=30.0, session=name, queue=queue
            )


async def _raising_error(script: Script, session: str) -> None:
    queue, client = f"q-{session}", script.client
    script.expect.prepared(await script.subscribe(queue, session, session))
    await client.wait_messages(1, session)
    for number in (1, 2):
        mark = len(client.events)
        script.bad_delivery()
        script.put(queue, [b"a bad one"])
        told = await client.event("error", 3.0, mark)
        script.expect.that(told, "error: the next callback of that kind runs", f"no error event {number}")


@scenario("NET-3.07", protocols=NARC, roles=ROLES, server=SETTINGS)
@scenario("NET-3.07", protocols=RMQS, roles=ROLES)
async def op_inside_a_callback(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    script.add_queue("inner")
    chosen = script.inner_ops("inner")
    inner = [{"op": op.op, "args": {"session": "s1", **op.args}, "timeout_ms": 5000} for op, _ in chosen]
    subscribe = client.begin(
        "subscribe",
        session="s1",
        sub="c1",
        target=script.queue,
        options=script.from_first(),
        on_message={"mode": "event", "do": inner},
    )
    expect.prepared(await subscribe)
    script.put(script.queue, [b"the second message"])
    got = await client.wait_messages(2, within_s=8.0)
    expect.that(len(got) == 2, "the next message is delivered", f"{len(got)} came")
    for event in await inner_ops_work(script, 2 * len(inner)):
        value = chosen[event["index"]][1]
        if value is not None:
            expect.equal(event["result"], value, f"the inner {event['op']} has its right result")
    copies = 2 * sum(value is None for _, value in chosen)
    expect.equal(script.holds(b"inner", "inner"), copies, "what the callbacks published is at the broker")


async def inner_ops_work(script: Script, count: int) -> list[Event]:
    """So many ops inside of callbacks end well; returns how."""
    client, expect = script.client, script.expect

    def done() -> list[Event]:
        return [event for event in client.events if event.event == "done"]

    await script.until(lambda: len(done()) >= count, 8.0)
    expect.equal(len(done()), count, "each inner op ends by its deadline")
    for event in done():
        expect.that(event["ok"], f"the inner {event['op']} works", event["error"])
    return done()


@scenario("NET-3.08", protocols=PZQ, roles=("publisher",), server=PROXIED, process=True, timeout_s=60)
@scenario("NET-3.08", protocols=NARC, roles=("publisher",), server=SETTINGS, process=True, timeout_s=60)
@scenario("NET-3.08", protocols=RMQS, roles=("publisher",), process=True, timeout_s=60)
async def no_outcry(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    written = client.adapter.stderr_mark
    for name in ("a", "b", "c"):
        await script.ready(name, name, listen=False)
    mark = broker.journal.last_seq
    script.refuse_publishes()
    await client.begin_publish("b", b"refused", session="b", wait=False)
    refused = await expect.reached(broker, "nothing was published", kind=script.publishing, since=mark)
    await asyncio.sleep(0.3)
    mark = broker.journal.last_seq
    await client.begin_publish("c", b"malformed", session="c", wait=False)
    found = await expect.reached(broker, "nothing was published", kind=script.publishing, since=mark)
    broker.say_raw(found[0].connection, script.malformed())
    await asyncio.sleep(0.3)
    broker.faults.add(hold(direction="out", spare=("heartbeat",), name="pending"))
    await client.begin_publish("a", b"lost", session="a", wait=False)
    requests = [script.begin(op, 3.0, "a") for op in script.ops("a")[1:2]]
    await asyncio.sleep(0.3)
    broker.kill(how="rst")
    await asyncio.sleep(2.0)
    for name in ("a", "b", "c"):
        expect.ended(
            await client.op("state", 5.0, session=name), "the process is alive and still answers state"
        )
    text = client.adapter.stderr(written)
    lines = [line for line in text.splitlines() if any(word in line.lower() for word in OUTCRIES)]
    expect.that(not lines, "stderr has no line of an unhandled error", lines[:2])
    expect.that(client.alive, "the process is alive", "it ended")
    for request in requests:
        await request
    expect.exercised(refused, "nothing was refused")
