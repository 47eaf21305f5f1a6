"""Base scripts of applications that give queues back, and use what they have given back."""

from __future__ import annotations

from contextlib import suppress

from conformance.run.bases import ScriptContext, base
from fakebrokers.blazingmq.codes import Category
from fakebrokers.errors import PlanError
from fakebrokers.faults import latency, reply
from scenarios.blazingmq.sweep._shared import (
    EVENTS,
    PRIORITY,
    RARELY,
    SETTLED,
    R,
    finale,
    put,
    reader,
    settle,
    subscribed,
    watched,
    writer,
)


@base(role="consumer", server=RARELY, injections=False)
async def settled_late(context: ScriptContext) -> None:
    """Messages are confirmed after their queue was closed, and again after it was opened anew."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, EVENTS)
    await context.sleep(0.5)
    await context.op("bmq.close_queue", 5.0, target=R)
    await context.sleep(0.1)
    await settle(context, "c1", set())
    await context.op("bmq.open_queue", 5.0, target=R, uri=R, flags=["read"])
    await settle(context, "c1", set())
    await subscribed(context, "c2", R, SETTLED)
    await watched(context, "last")
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def half_open(context: ScriptContext) -> None:
    """The broker opens a queue and refuses its configuration; then the application opens it once more."""
    await context.connect()
    await writer(context)
    refusing = context.broker.faults.add(reply(int(Category.E_REFUSED), kind="configureStream", first=1))
    await context.op("bmq.open_queue", 5.0, target=R, uri=R, flags=["read"])
    with suppress(PlanError):  # what was disturbed before may have cleared all faults
        context.broker.faults.remove(refusing)
    await context.sleep(1)
    await reader(context, "c1", R, SETTLED)
    put(context, "m0")
    await watched(context, "last")
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def half_open_again(context: ScriptContext) -> None:
    """After a loss the broker opens a queue and refuses its configuration; the application opens it anew."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    refusing = context.broker.faults.add(reply(int(Category.E_REFUSED), kind="configureStream", first=1))
    context.kill("rst")
    await context.sleep(10)
    with suppress(PlanError):
        context.broker.faults.remove(refusing)
    await reader(context, "c2", R, SETTLED)
    put(context, "m0")
    await watched(context, "last")
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def closed_from_both_ends(context: ScriptContext) -> None:
    """The session is closed while the application still closes the last of its queues, answers come late."""
    uris = [PRIORITY + f"r{number}" for number in range(3)]
    await context.connect()
    for number, uri in enumerate(uris):
        await reader(context, f"c{number}", uri, SETTLED)
    context.broker.faults.add(latency(0.3, direction="out", role="response"))
    context.begin("bmq.close_queue", 5.0, target=uris[-1])
    await context.sleep(0.4)
    await context.close()


@base(role="consumer", server=RARELY, injections=False)
async def settled_last(context: ScriptContext) -> None:
    """Messages are confirmed right before their queue is closed, and right before the session is."""
    other, done = PRIORITY + "other", set[str]()
    for uri in (R, other):
        put(context, "m0", "m1", "m2", uri=uri)
    await context.connect()
    await reader(context, "c1", R, EVENTS)
    await reader(context, "c2", other, EVENTS)
    await context.sleep(1)
    await settle(context, "c1", done)
    await context.op("bmq.close_queue", 5.0, target=R)
    await context.sleep(1)
    await settle(context, "c2", done)
    await context.close()
