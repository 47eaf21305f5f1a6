"""Base scripts of applications that open, configure and close queues."""

from __future__ import annotations

from contextlib import suppress

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.blazingmq.codes import Category
from fakebrokers.errors import PlanError
from fakebrokers.faults import latency, reply
from scenarios.blazingmq.sweep._shared import (
    FANOUT,
    PRIORITY,
    PUBLISH,
    RARELY,
    SETTLED,
    K,
    R,
    finale,
    put,
    reader,
    shut,
    watched,
    writer,
)


@base(role="publisher", server=RARELY)
async def queues(context: ScriptContext) -> None:
    """Many requests at a time, some of which are refused."""
    await context.connect()
    await writer(context)
    for number in range(2):
        uris = [PRIORITY + f"n{number}", "bmq://nowhere/q", PRIORITY + f"o{number}?id=foo", FANOUT + "news"]
        calls = [
            context.begin("bmq.open_queue", target=uri, uri=uri, flags=[flag])
            for uri in uris
            for flag in ("read" if "?" in uri else "write",)
        ]
        again = PRIORITY + f"n{number}"
        calls.append(context.begin("bmq.open_queue", target="again", uri=again, flags=["write"]))
        calls.append(context.begin("publish", body=text(f"a{number}"), **PUBLISH))
        await context.ended(calls)
        await context.ended([context.begin("bmq.close_queue", target=uris[at]) for at in (0, 3)])
        await context.op("publish", target=uris[0], body=text(f"closed{number}"), wait=True)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def odd(context: ScriptContext) -> None:
    """What a client refuses by itself, or a broker for it: names that cannot be, a queue that is open."""
    context.notes.oversized = True
    await context.connect()
    await writer(context)
    for uri in ("bmq://x y/z%20", "bmq://bmq.test.mem.priority/", PRIORITY + "q?id=", PRIORITY + "a/b"):
        await context.op("bmq.open_queue", target=uri, uri=uri, flags=["write"])
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    await context.op("publish", target=R, body=text("to a reader"), wait=True)
    await context.op("bmq.configure_queue", target=K)
    await context.op("connect", 5.0, endpoints=[context.endpoint], options={})
    await finale(context)


@base(role="consumer", server=RARELY)
async def configured(context: ScriptContext) -> None:
    """A reader whose configuration changes while messages come; posts to it, and confirms after its end."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED, max_unconfirmed_messages=1)
    for number in range(3):
        put(context, f"a{number}", f"b{number}", f"c{number}")
        options = {"max_unconfirmed_messages": 20 + number, "consumer_priority": number}
        await context.op("bmq.configure_queue", target=R, options=options)
        await context.sleep(0.3)
    await context.op("publish", target=R, body=text("to a reader"), wait=True)
    await watched(context, "m")
    await context.op("unsubscribe", sub="c1")
    await shut(context)
    await reader(context, "c2", R, SETTLED)
    put(context, "z")
    await context.sleep(1)
    await finale(context)


@base(role="consumer", server=RARELY)
async def refused_options(context: ScriptContext) -> None:
    """The broker refuses another configuration, and then the connection is lost: the former one holds."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED, max_unconfirmed_messages=3)
    refusing = context.broker.faults.add(reply(int(Category.E_REFUSED), kind="configureStream"))
    await context.op("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 7})
    with suppress(PlanError):  # what was disturbed before may have cleared all faults
        context.broker.faults.remove(refusing)
    context.kill()
    await context.sleep(5)
    put(context, "m0", "m1")
    await watched(context, "m")
    await shut(context)
    await finale(context)


@base(role="publisher", server=RARELY, needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Ops that are cancelled while they are open, and others that run into their time-outs."""
    await context.connect()
    await writer(context)
    context.broker.faults.add(latency(0.2, direction="out", role="response"))
    context.broker.faults.add(latency(0.2, direction="out", kind="ACK"))
    for number in range(3):
        uri = PRIORITY + f"q{number}"
        calls = [context.begin("publish", body=text(f"a{number}/{i}"), **PUBLISH) for i in range(3)]
        calls.append(context.begin("bmq.open_queue", 0.1, target=uri, uri=uri, flags=["read"]))
        await context.sleep(0.05)
        for call in calls[:2]:
            await context.adapter.cancel(call)
        await context.sleep(0.5)
        await context.op("bmq.open_queue", 5.0, target=uri, uri=uri, flags=["write"])
    await finale(context)
