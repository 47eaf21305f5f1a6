"""Base scripts about what queues are opened and configured with: names, limits, priorities."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import delay, drop
from scenarios.blazingmq.sweep._shared import (
    EVENTS,
    FANOUT,
    PRIORITY,
    PUBLISH,
    RARELY,
    SETTLED,
    R,
    finale,
    put,
    reader,
    watched,
    writer,
)

LAST = -(2**30)  #: the lowest priority that the C++ SDK takes


@base(role="consumer", server=RARELY, injections=False)
async def reordered(context: ScriptContext) -> None:
    """Limits and priorities, negative ones too, that change while a queue is open, and losses after that."""
    other = PRIORITY + "other"
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED, max_unconfirmed_messages=7, consumer_priority=-5)
    await reader(context, "c2", other, SETTLED, consumer_priority=LAST)
    for number, priority in enumerate((-1, 2, LAST)):
        options = {"max_unconfirmed_messages": 30 + number, "consumer_priority": priority}
        await context.op("bmq.configure_queue", target=R, options=options)
        context.kill()
        await context.sleep(10)
        put(context, f"m{number}")
        put(context, f"o{number}", uri=other)
        await context.sleep(1)
    await watched(context, "m")
    await finale(context)


TIERS = ("bmq://bmq.test.mem.priority.~lab/", "bmq://bmq.test.mem.priority.~a-b/")


@base(role="consumer", server=RARELY, injections=False)
async def tiers(context: ScriptContext) -> None:
    """Queues of one name, which only the tier of their domain tells from each other."""
    await context.connect()
    await writer(context)
    for number, domain in enumerate((PRIORITY, *TIERS)):
        await reader(context, f"c{number}", domain + "read", SETTLED)
        await writer(context, domain + "written-kept")
        put(context, f"m{number}", uri=domain + "read")
        await context.op("publish", target=domain + "written-kept", body=text(f"a{number}"), wait=True)
    await reader(context, "news", f"{FANOUT[:-1]}.~lab/news?id=foo", SETTLED)
    context.kill()
    await context.sleep(10)
    await watched(context, "m")
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def late_steps(context: ScriptContext) -> None:
    """Ops of two requests: the first answer comes shortly before the time is over, the second never."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, EVENTS)
    uri = PRIORITY + "late"
    context.broker.faults.add(delay(1.8, kind="openQueueResponse"), drop(kind="configureStreamResponse"))
    await context.op("bmq.open_queue", 2.0, target=uri, uri=uri, flags=["read"])
    context.broker.faults.clear()
    context.broker.faults.add(delay(1.8, kind="configureStreamResponse"), drop(kind="closeQueueResponse"))
    await context.op("bmq.close_queue", 2.0, target=R)
    context.broker.faults.clear()
    await context.sleep(10)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def early_posts(context: ScriptContext) -> None:
    """Posts and requests between the new connection and the moment at which the queues are open again."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(delay(1.0, kind="openQueueResponse"))
    for number in range(2):
        mark = len(context.adapter.events)
        context.kill("fin")
        calls = [context.begin("publish", 8.0, body=text(f"lost{number}"), **PUBLISH)]
        await context.adapter.event("session", timeout_s=20, after=mark, what="reconnected")
        for step in range(4):
            calls.append(context.begin("publish", 8.0, body=text(f"e{number}/{step}"), **PUBLISH))
            await context.sleep(0.2)
        await context.ended(calls)
        await context.sleep(3)
    await watched(context, "m")
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def two_waits(context: ScriptContext) -> None:
    """A post first waits until its queue is open again, then for an ACK that never comes: all in its time."""
    await context.connect()
    await writer(context)
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(delay(2.0, kind="openQueueResponse"), drop(kind="ACK"))
    for number in range(2):
        context.kill("fin")
        calls = [context.begin("publish", 4.0, body=text(f"b{number}/{i}"), **PUBLISH) for i in range(2)]
        await context.ended(calls)
        await context.sleep(1)
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def early_changes(context: ScriptContext) -> None:
    """Readers are configured and closed before a new connection has opened their queues again."""
    second = PRIORITY + "second"
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    await reader(context, "c2", second, SETTLED)
    context.broker.faults.add(delay(1.0, kind="openQueueResponse"))
    for number in range(2):
        mark = len(context.adapter.events)
        context.kill("fin")
        await context.adapter.event("session", timeout_s=20, after=mark, what="reconnected")
        calls = []
        for step in range(4):
            options = {"max_unconfirmed_messages": 10 * number + step + 1}
            calls.append(context.begin("bmq.configure_queue", 8.0, target=second, options=options))
            await context.sleep(0.2)
        if number:
            calls.append(context.begin("bmq.close_queue", 8.0, target=second))
        await context.ended(calls)
        await context.sleep(3)
    await watched(context, "m")
    await finale(context)
