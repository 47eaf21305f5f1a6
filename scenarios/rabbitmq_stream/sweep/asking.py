"""Base scripts of applications that ask."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import latency
from scenarios.rabbitmq_stream.sweep._shared import ASK


@base()
async def ask(context: ScriptContext) -> None:
    """Many questions at a time, some of which are refused."""
    context.broker.create_stream("S")
    context.broker.create_stream("D")
    context.broker.store_offset("S", "r", 7)
    context.broker.store_sequence("S", "q", 9)
    await context.connect()
    for number in range(2):
        await context.ended(
            [
                context.begin("rmqs.create", target=f"N{number}"),
                context.begin("rmqs.query_offset", target="S", name="r"),
                context.begin("rmqs.metadata", targets=["S"]),
                context.begin("rmqs.query_sequence", target="S", name="q"),
                context.begin("rmqs.delete", target=f"X{number}"),
                context.begin("rmqs.query_offset", target="S", name="none"),
            ]
        )
    await context.op("rmqs.delete", target="D")
    await context.op("rmqs.create", target="D")
    await context.finale("rmqs.query_sequence", **ASK)


@base(needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    context.broker.create_stream("S")
    context.broker.store_offset("S", "r", 7)
    context.broker.store_sequence("S", "q", 9)
    await context.connect()
    context.broker.faults.add(latency(0.2, role="response", direction="out"))
    for _ in range(3):
        calls = [context.begin("rmqs.query_offset", target="S", name="r") for _ in range(3)]
        await context.sleep(0.05)
        for call in calls[:2]:
            await context.adapter.cancel(call)
        context.begin("rmqs.query_sequence", target="S", name="q")
        await context.sleep(0.5)
        await context.op("rmqs.query_sequence", target="S", name="q")
    await context.finale("rmqs.query_sequence", **ASK)


@base(injections=False)
async def zeros(context: ScriptContext) -> None:
    """A stored offset of 0 and a last publishing id of 0, beside those that are not there."""
    context.broker.create_stream("S")
    context.broker.store_sequence("S", "q", 0)
    await context.connect()
    await context.op("rmqs.query_offset", target="S", name="r")
    await context.op("rmqs.store_offset", target="S", name="r", offset=0)
    for _ in range(2):
        await context.op("rmqs.query_offset", target="S", name="r")
        await context.op("rmqs.query_sequence", target="S", name="q")
        context.kill()
        await context.sleep(5)
    await context.finale("rmqs.query_sequence", **ASK)


@base(injections=False)
async def large_answers(context: ScriptContext) -> None:
    """Answers at the ends of their ranges."""
    context.broker.create_stream("S")
    await context.connect()
    for value in (0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**64 - 1):
        context.broker.store_offset("S", "r", value)
        context.broker.store_sequence("S", f"q{value}", value)
        await context.op("rmqs.query_offset", target="S", name="r")
        await context.op("rmqs.query_sequence", target="S", name=f"q{value}")
        await context.op("rmqs.store_offset", target="S", name=f"w{value}", offset=str(value))
        await context.op("rmqs.query_offset", target="S", name=f"w{value}")
    await context.finale("rmqs.query_sequence", **ASK)
