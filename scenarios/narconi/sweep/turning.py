"""Base scripts in which an op is met by something else, each time some turns of the loop later.

What takes a client several turns, such as to connect, to upgrade and to publish, is met at each of them.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.call import Call
from conformance.run.bases import ScriptContext, base, text
from conformance.run.concurrent_actions import pass_turns
from conformance.run.turns import close_each_turn
from scenarios.narconi.sweep._shared import PROBE, SETTLING, put, queues

TURNS = 24


def _all(context: ScriptContext, number: int, timeout: float = 2.0, **more: Any) -> list[Call]:
    """Two messages over one WebSocket that there is not yet, a subscription, and two requests over HTTP."""
    queue = f"P{number}"
    options = {"ack": True, "limit": 2}
    return [
        context.begin("publish", timeout, target=queue, body=text(f"p{number}"), wait=True, **more),
        context.begin("publish", timeout, target=queue, body=text(f"q{number}"), wait=True, **more),
        context.begin(
            "subscribe", timeout, sub=f"c{number}", target=f"C{number}", options=options, on_message=SETTLING,
            **more,
        ),
        context.begin("narc.post", timeout, target="P", body=text(f"h{number}"), **more),
        context.begin("narc.take", timeout, target="P", **more),
    ]  # fmt: skip


def _prepare(context: ScriptContext) -> None:
    queues(context, "P", *[f"{name}{number}" for number in range(TURNS) for name in "PC"])
    for number in range(TURNS):
        put(context, f"C{number}", "m0", "m1", "m2")


@base(role="publisher", injections=False)
async def closed_in_the_turn(context: ScriptContext) -> None:
    """Sessions that are closed while they publish, subscribe and ask: each some turns of the loop later."""
    _prepare(context)
    await context.connect(auto_reconnect=True)
    await close_each_turn(context, TURNS, lambda session, number: _all(context, number, session=session))
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"], injections=False)
async def cancelled_in_the_turn(context: ScriptContext) -> None:
    """Ops that are cancelled some turns after they have begun; then a message to the same queue."""
    _prepare(context)
    await context.connect(auto_reconnect=True)
    for number in range(TURNS):
        calls = _all(context, number)
        await pass_turns(number)
        for call in calls:
            await context.adapter.cancel(call)
        await context.ended(calls)
        await context.op("publish", 5.0, target=f"P{number}", body=text(f"z{number}"), wait=True)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def lost_in_the_turn(context: ScriptContext) -> None:
    """All connections are lost some turns of the loop after ops have begun; then the same queues are used."""
    _prepare(context)
    await context.connect(auto_reconnect=True)
    for number in range(TURNS):
        calls = _all(context, number)
        await pass_turns(number)
        context.kill("rst" if number % 2 else "fin")
        await context.ended(calls)
        await context.sleep(6)
        await context.op("publish", 5.0, target=f"P{number}", body=text(f"z{number}"), wait=True)
    await context.finale("publish", **PROBE)
