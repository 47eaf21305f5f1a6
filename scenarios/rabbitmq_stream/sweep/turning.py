"""Base scripts in which an op is met by something else, each time some turns of the loop later.

What takes a client several turns, such as to declare a publisher before its first message, is met at each of
them.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.call import Call
from conformance.run.bases import ScriptContext, base, text
from conformance.run.concurrent_actions import pass_turns
from conformance.run.turns import close_each_turn
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, PUBLISH, put

TURNS = 20
OPTIONS = {"offset": {"type": "first"}, "credit": 2}


def _all(context: ScriptContext, number: int, timeout: float = 2.0, **more: Any) -> list[Call]:
    """A message of the usual publisher, the first one of another, a subscription and a question."""
    given = {"target": "S", **more}
    return [
        context.begin("publish", timeout, body=text(f"p{number}"), wait=True, **given),
        context.begin("publish", timeout, body=text(f"n{number}"), name=f"n{number}", wait=True, **given),
        context.begin("subscribe", timeout, sub=f"c{number}", options=OPTIONS, on_message=EVENTS, **given),
        context.begin("rmqs.query_sequence", timeout, **{**ASK, **more}),
    ]


@base(role="publisher", injections=False)
async def closed_in_the_turn(context: ScriptContext) -> None:
    """Sessions that are closed while they publish, subscribe and ask: each some turns of the loop later."""
    context.broker.create_stream("S")
    put(context, "m0", "m1")
    await context.connect()
    await close_each_turn(context, TURNS, lambda session, number: _all(context, number, session=session))
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def deleted_in_the_turn(context: ScriptContext) -> None:
    """Publishers that are deleted while they publish for the first time, and then publish again."""
    context.broker.create_stream("S")
    await context.connect()
    for number in range(TURNS):
        given: dict[str, Any] = {"target": "S", "name": f"n{number}"}
        calls = [context.begin("publish", body=text(f"p{number}{i}"), wait=True, **given) for i in range(2)]
        await pass_turns(number)
        await context.op("rmqs.delete_publisher", **given)
        await context.ended(calls)
        await context.op("publish", body=text(f"z{number}"), wait=True, **given)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"], injections=False)
async def cancelled_in_the_turn(context: ScriptContext) -> None:
    """Ops that are cancelled some turns of the loop after they have begun; then the same again."""
    context.broker.create_stream("S")
    put(context, "m0", "m1")
    await context.connect()
    for number in range(TURNS):
        calls = _all(context, number)
        await pass_turns(number)
        for call in calls:
            await context.adapter.cancel(call)
        await context.ended(calls)
        await context.op("unsubscribe", sub=f"c{number}")
        await context.op("publish", body=text(f"z{number}"), name=f"n{number}", **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def lost_in_the_turn(context: ScriptContext) -> None:
    """The connections are lost some turns of the loop after ops have begun."""
    context.broker.create_stream("S")
    put(context, "m0", "m1")
    await context.connect()
    for number in range(TURNS):
        calls = _all(context, number, 8.0)
        await pass_turns(number)
        context.kill("rst" if number % 2 else "fin")
        await context.ended(calls)
        await context.sleep(6)
        await context.op("unsubscribe", sub=f"c{number}")
    await context.finale("publish", **PROBE)
