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
    R,
    finale,
    put,
    reader,
    shut,
    watched,
    writer,
)


@base(role="publisher", server=RARELY)
async def queues(stage: ScriptContext) -> None:
    """Many requests at a time, some of which are refused."""
    await stage.connect()
    await writer(stage)
    for number in range(2):
        uris = [PRIORITY + f"n{number}", "bmq://nowhere/q", PRIORITY + f"o{number}?id=foo", FANOUT + "news"]
        calls = [
            stage.begin("bmq.open_queue", target=uri, uri=uri, flags=[flag])
            for uri in uris
            for flag in ("read" if "?" in uri else "write",)
        ]
        again = PRIORITY + f"n{number}"
        calls.append(stage.begin("bmq.open_queue", target="again", uri=again, flags=["write"]))
        calls.append(stage.begin("publish", body=text(f"a{number}"), **PUBLISH))
        await stage.ended(calls)
        await stage.ended([stage.begin("bmq.close_queue", target=uris[at]) for at in (0, 3)])
        await stage.op("publish", target=uris[0], body=text(f"closed{number}"), wait=True)
    await finale(stage)


@base(role="publisher", server=RARELY, bends=False)
async def odd(stage: ScriptContext) -> None:
    """What a client refuses by itself, or a broker for it: names that cannot be, a queue that is open."""
    stage.notes.oversized = True
    await stage.connect()
    await writer(stage)
    for uri in ("bmq://x y/z%20", "bmq://bmq.test.mem.priority/", PRIORITY + "q?id=", PRIORITY + "a/b"):
        await stage.op("bmq.open_queue", target=uri, uri=uri, flags=["write"])
    await writer(stage)
    await reader(stage, "c1", R, SETTLED)
    await stage.op("publish", target=R, body=text("to a reader"), wait=True)
    await stage.op("connect", 5.0, endpoints=[stage.endpoint], options={})
    await finale(stage)


@base(role="consumer", server=RARELY)
async def configured(stage: ScriptContext) -> None:
    """A reader whose configuration changes while messages come; posts to it, and confirms after its end."""
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, SETTLED, max_unconfirmed_messages=1)
    for number in range(3):
        put(stage, f"a{number}", f"b{number}", f"c{number}")
        options = {"max_unconfirmed_messages": 20 + number, "consumer_priority": number}
        await stage.op("bmq.configure_queue", target=R, options=options)
        await stage.sleep(0.3)
    await stage.op("publish", target=R, body=text("to a reader"), wait=True)
    await watched(stage, "m")
    await stage.op("unsubscribe", sub="c1")
    await shut(stage)
    await reader(stage, "c2", R, SETTLED)
    put(stage, "z")
    await stage.sleep(1)
    await finale(stage)


@base(role="consumer", server=RARELY)
async def refused_options(stage: ScriptContext) -> None:
    """The broker refuses another configuration, and then the connection is lost: the former one holds."""
    await stage.connect()
    await writer(stage)
    await reader(stage, "c1", R, SETTLED, max_unconfirmed_messages=3)
    refusing = stage.broker.faults.add(reply(int(Category.E_REFUSED), kind="configureStream"))
    await stage.op("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 7})
    with suppress(PlanError):  # what was disturbed before may have cleared all faults
        stage.broker.faults.remove(refusing)
    stage.kill()
    await stage.sleep(5)
    put(stage, "m0", "m1")
    await watched(stage, "m")
    await shut(stage)
    await finale(stage)


@base(role="publisher", server=RARELY, needs=["cancel"])
async def cancelled(stage: ScriptContext) -> None:
    """Ops that are cancelled while they are open, and others that run into their time-outs."""
    await stage.connect()
    await writer(stage)
    stage.broker.faults.add(latency(0.2, direction="out", role="response"))
    stage.broker.faults.add(latency(0.2, direction="out", kind="ACK"))
    for number in range(3):
        uri = PRIORITY + f"q{number}"
        calls = [stage.begin("publish", body=text(f"a{number}/{i}"), **PUBLISH) for i in range(3)]
        calls.append(stage.begin("bmq.open_queue", 0.1, target=uri, uri=uri, flags=["read"]))
        await stage.sleep(0.05)
        for call in calls[:2]:
            await stage.adapter.cancel(call)
        await stage.sleep(0.5)
        await stage.op("bmq.open_queue", 5.0, target=uri, uri=uri, flags=["write"])
    await finale(stage)
