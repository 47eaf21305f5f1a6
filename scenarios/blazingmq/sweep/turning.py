"""Base scripts in which an op is met by something else, each time some turns of the loop later.

What takes a client several turns, such as to open a queue and to configure it, is met at each of them.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.call import Call
from conformance.run.bases import ScriptContext, base, text
from conformance.run.concurrent_actions import pass_turns
from conformance.run.turns import close_each_turn
from scenarios.blazingmq.sweep._shared import (
    PRIORITY,
    PUBLISH,
    RARELY,
    SETTLED,
    R,
    finale,
    put,
    reader,
    subscribed,
    watched,
    writer,
)

TURNS = 12
BOTH = ["read", "write"]


def _opens(context: ScriptContext, number: int, timeout: float = 2.0, **more: Any) -> Call:
    uri = PRIORITY + f"q{number}"
    return context.begin("bmq.open_queue", timeout, target=uri, uri=uri, flags=BOTH, **more)


def _all(context: ScriptContext, number: int, timeout: float = 2.0) -> list[Call]:
    """A queue that is opened, one that is configured, one that is closed, and a message."""
    options = {"max_unconfirmed_messages": number + 1}
    return [
        _opens(context, number, timeout),
        context.begin("bmq.configure_queue", timeout, target=R, options=options),
        context.begin("bmq.close_queue", timeout, target=PRIORITY + f"old{number}"),
        context.begin("publish", timeout, body=text(f"p{number}"), **PUBLISH),
    ]


@base(role="publisher", server=RARELY, injections=False)
async def closed_in_the_turn(context: ScriptContext) -> None:
    """Sessions that are closed while they open a queue: each some turns of the loop later."""
    await context.connect()
    await writer(context)
    await close_each_turn(context, TURNS, lambda session, number: [_opens(context, number, session=session)])
    await finale(context)


@base(role="publisher", needs=["cancel"], server=RARELY, injections=False)
async def cancelled_in_the_turn(context: ScriptContext) -> None:
    """Ops that are cancelled some turns of the loop after they have begun; then the queue is opened anew."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    for number in range(TURNS):
        await reader(context, f"old{number}", PRIORITY + f"old{number}", SETTLED)
        calls = _all(context, number)
        await pass_turns(number)
        for call in calls:
            await context.adapter.cancel(call)
        await context.ended(calls)
        await context.sleep(1)
        await _opens(context, number)
        await subscribed(context, f"q{number}", PRIORITY + f"q{number}", SETTLED)
        put(context, f"m{number}")
    await watched(context, "last")
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def lost_in_the_turn(context: ScriptContext) -> None:
    """The connection is lost some turns of the loop after ops have begun."""
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, SETTLED)
    for number in range(TURNS):
        await reader(context, f"old{number}", PRIORITY + f"old{number}", SETTLED)
        calls = _all(context, number, 8.0)
        await pass_turns(number)
        context.kill("rst" if number % 2 else "fin")
        await context.ended(calls)
        await context.sleep(6)
        await subscribed(context, f"q{number}", PRIORITY + f"q{number}", SETTLED)
        put(context, f"m{number}")
    await watched(context, "last")
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def shut_in_the_turn(context: ScriptContext) -> None:
    """Queues that are closed while they are configured and written to, and closed once more meanwhile."""
    await context.connect()
    await writer(context)
    for number in range(TURNS):
        uri = PRIORITY + f"q{number}"
        await _opens(context, number)
        await context.op("subscribe", sub=f"c{number}", target=uri, on_message=SETTLED)
        options = {"max_unconfirmed_messages": number + 1}
        calls = [
            context.begin("bmq.configure_queue", target=uri, options=options),
            context.begin("publish", target=uri, body=text(f"p{number}"), wait=True),
        ]
        await pass_turns(number)
        calls.append(context.begin("bmq.close_queue", target=uri))
        await pass_turns(number % 4)
        calls.append(context.begin("bmq.close_queue", target=uri))
        await context.ended(calls)
    await finale(context)
