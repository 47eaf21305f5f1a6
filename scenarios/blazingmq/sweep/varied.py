"""Base scripts of what a client can be given besides: limits in bytes, ops in callbacks, a wrong clock."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.blazingmq import ber
from fakebrokers.blazingmq.codes import Category, Encoding
from fakebrokers.blazingmq.control import write
from fakebrokers.blazingmq.frames import StatusResponse
from fakebrokers.faults import latency
from scenarios.blazingmq._steps import broken_control
from scenarios.blazingmq.sweep._shared import (
    EVENTS,
    PRIORITY,
    PUBLISH,
    RARELY,
    SETTLED,
    K,
    R,
    finale,
    put,
    reader,
    settle,
    watched,
    writer,
)


@base(role="consumer", server=RARELY)
async def limited_by_bytes(context: ScriptContext) -> None:
    """Readers that may have so many bytes without a confirm, other ones later, and the same after a loss."""
    other = PRIORITY + "other"
    done: set[str] = set()
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, EVENTS, max_unconfirmed_messages=100, max_unconfirmed_bytes=300)
    await reader(context, "c2", other, SETTLED, max_unconfirmed_bytes=2**40)
    for number in range(5):
        put(context, f"{number}".ljust(120, "x"))
        put(context, f"o{number}", uri=other)
    await context.sleep(1)
    await settle(context, "c1", done)
    await context.sleep(1)
    for options in (
        {"max_unconfirmed_bytes": 2**31},
        {"max_unconfirmed_messages": 2, "max_unconfirmed_bytes": 1},
    ):
        await context.op("bmq.configure_queue", target=R, options=options)
        await settle(context, "c1", done)
        context.kill()
        await context.sleep(10)
        put(context, f"m{options['max_unconfirmed_bytes']}")
        await context.sleep(1)
    await settle(context, "c1", done)
    await watched(context, "m", other)
    await finale(context)


@base(role="consumer", server=RARELY, injections=False, needs=["reentrant"])
async def inside(context: ScriptContext) -> None:
    """Callbacks that publish, and one that closes the queue whose message it has."""
    await context.connect()
    await writer(context)
    inner = {"session": "s1", "target": K, "body": text("inner"), "wait": True}
    ops = [{"op": "publish", "args": inner, "timeout_ms": 2000}]
    await reader(context, "c1", R, {**SETTLED, "do": ops}, max_unconfirmed_messages=5)
    put(context, "a0", "a1")
    await context.op("publish", body=text("outer"), **PUBLISH)
    await context.sleep(2)
    other = PRIORITY + "other"
    end = {"op": "bmq.close_queue", "args": {"session": "s1", "target": other}, "timeout_ms": 2000}
    await reader(context, "c2", other, {"mode": "event", "do": [end]}, max_unconfirmed_messages=1)
    put(context, "b0", "b1", uri=other)
    await context.sleep(3)
    await context.op("publish", body=text("later"), **PUBLISH)
    await finale(context)


@base(role="consumer", server={"heartbeat_s": 5.0, "max_missed": 2}, injections=False, needs=["clock_offset"])
async def wrong_clock(context: ScriptContext) -> None:
    """The clock of the wall jumps to and fro while posts and requests are under way, and while nothing is."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    context.broker.faults.add(latency(0.3, direction="out"))
    for number, offset_ms in enumerate((3_600_000.0, -7_200_000.0, 0.0)):
        uri = PRIORITY + f"q{number}"
        calls = [
            context.begin("publish", body=text(f"a{number}"), **PUBLISH),
            context.begin("bmq.open_queue", target=uri, uri=uri, flags=["write"]),
        ]
        await context.sleep(0.1)
        await context.op("set_clock", offset_ms=offset_ms)
        put(context, f"m{number}")
        await context.ended(calls)
        await context.sleep(20)
    await finale(context)


@base(role="consumer", server=RARELY, needs=["abort"])
async def aborted(context: ScriptContext) -> None:
    """The application drops its session while ops are under way, and connects anew under the same name."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, {"mode": "event", "sleep_ms": 500})
    put(context, "m0", "m1")
    name = context.broker.faults.add(latency(0.5, direction="out"))
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(2)]
    other = PRIORITY + "other"
    calls.append(context.begin("bmq.open_queue", target=other, uri=other, flags=["write"]))
    calls.append(context.begin("bmq.configure_queue", target=R, options={"max_unconfirmed_messages": 5}))
    await context.sleep(0.1)
    await context.op("abort")
    await context.ended(calls)
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.op("bmq.close_queue", target=R)
    await context.op("abort")
    await context.op("state")
    context.broker.faults.remove(name)
    await context.sleep(5)
    since = len(context.ops)
    await context.connect()
    await writer(context)
    await reader(context, "c2", R, SETTLED)
    await context.op("publish", body=text("again"), **PUBLISH)
    await watched(context, "m")
    await finale(context, since)


def odd_messages() -> list[bytes]:
    """Control messages in good BER that are none of the schema: without a choice, with an empty one, with two
    at once, and a status with a category that holds others."""
    message = ber.parse(write(StatusResponse(99, Category.E_REFUSED, -1, "odd"), Encoding.BER))
    *head, choice = message.parts
    [status] = choice.parts
    category, *rest = status.parts
    inner = category._replace(tag=category.tag | ber.CONSTRUCTED, content=())
    choices: tuple[list[ber.Node], ...] = ([], [status, status], [status._replace(content=(inner, *rest))])
    tails = [[], *([choice._replace(content=tuple(each))] for each in choices)]
    return [ber.write(message._replace(content=(*head, *tail))) for tail in tails]


@base(role="publisher", server=RARELY, injections=False)
async def odd_control(context: ScriptContext) -> None:
    """Control messages that are none of the schema come among the others."""
    await context.connect()
    await writer(context)
    for number, message in enumerate(odd_messages()):
        for name in list(context.broker.engine.connections):
            context.broker.say_raw(name, broken_control(message, Encoding.BER))
        await context.op("publish", body=text(f"m{number}"), **PUBLISH)
        await context.sleep(1)
    await finale(context)
