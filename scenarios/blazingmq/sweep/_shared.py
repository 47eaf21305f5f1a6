"""What the base scripts of BlazingMQ share. A queue's name in ops is its URI."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.result import Result
from conformance.run.bases import ScriptContext, text

PRIORITY = "bmq://bmq.test.mem.priority/"
FANOUT = "bmq://bmq.test.mem.fanout/"
R = PRIORITY + "read"
K = PRIORITY + "written-kept"  #: no consumer reads it
EVENTS = {"mode": "event"}
SETTLED = {"mode": "event", "auto_settle": "ack"}
#: Few signs of life: virtual time costs nothing, and frames do.
RARELY = {"heartbeat_s": 20.0, "max_missed": 2}
PUBLISH: dict[str, Any] = {"target": K, "wait": True}
PROBE: dict[str, Any] = {**PUBLISH, "body": text("probe")}
RETRY_S = 20.0
TRIES = 8  #: a broker that says nothing is given up when some signs of life were missed
LONG_S = 300.0  #: in which every back-off ends
LOOK_S = 30.0

PROPERTIES: dict[str, Any] = {
    "b": {"type": "bool", "value": "true"},
    "c": {"type": "char", "value": {"text": "x"}},
    "h": {"type": "short", "value": "-2"},
    "i": {"type": "int32", "value": "2147483647"},
    "l": {"type": "int64", "value": str(2**53 + 1)},
    "s": {"type": "string", "value": "äöü"},
    "x": {"type": "binary", "value": {"text": "bytes"}},
}


async def writer(context: ScriptContext, uri: str = K, session: str = "s1") -> Result:
    """Open a queue to write."""
    return await context.op("bmq.open_queue", 5.0, session=session, target=uri, uri=uri, flags=["write"])


async def reader(
    context: ScriptContext,
    sub: str,
    uri: str = R,
    on_message: Any = None,
    session: str = "s1",
    **options: int,
) -> Result:
    """Open a queue to read, and subscribe."""
    given = {"session": session, "target": uri, "uri": uri, "flags": ["read"], "options": options}
    result = await context.op("bmq.open_queue", 5.0, **given)
    if result.ok:
        await subscribed(context, sub, uri, on_message, session)
    return result


async def subscribed(
    context: ScriptContext, sub: str, uri: str = R, on_message: Any = None, session: str = "s1"
) -> None:
    """Attach a callback to an open queue."""
    await context.op("subscribe", session=session, sub=sub, target=uri, on_message=on_message or EVENTS)


def put(context: ScriptContext, *bodies: str, uri: str = R) -> None:
    """Messages of another publisher."""
    for body in bodies:
        context.broker.publish(uri, body.encode())


async def settle(context: ScriptContext, sub: str, done: set[str]) -> None:
    """Confirm what has come and is not in `done`."""
    for event in list(context.adapter.events):
        if event.event == "message" and event["sub"] == sub and event["ref"] not in done:
            done.add(event["ref"])
            await context.op("settle", sub=sub, ref=event["ref"], how="ack")


async def shut(context: ScriptContext, uri: str = R) -> None:
    """Close a queue, at last without faults: what a loss has kept open is for the application to close."""
    for attempt in range(3):
        if attempt == 2:
            context.calm()
        result = await context.op("bmq.close_queue", 5.0, target=uri)
        if result.ok or result.word == "closed":
            return
        await context.sleep(RETRY_S)


async def finale(context: ScriptContext, since: int = 0) -> None:
    """See that a publish works again; where a fault has kept the queue from being opened, open it first.

    Args:
        since: The first op of the session, where an earlier one of its name has ended.
    """
    ops = context.ops[since:]
    opened = [done for done in ops if done.op == "bmq.open_queue" and done.args["target"] == K]
    results = [await done.call for done in opened]
    if not any(result.ok for result in results):
        context.calm()
        for _ in range(TRIES):
            await context.sleep(RETRY_S)
            if (await writer(context)).ok:
                break
    await context.finale("publish", **PROBE)


async def watched(context: ScriptContext, body: str, uri: str = R) -> None:
    """Clear the faults, wait until every back-off has ended, and see that messages still come."""
    context.calm()
    await context.sleep(LONG_S)
    put(context, body, uri=uri)
    await context.sleep(LOOK_S)
    context.mark("subscribed")
