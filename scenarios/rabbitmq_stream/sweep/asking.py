"""Base scripts of applications that ask."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import latency
from scenarios.rabbitmq_stream.sweep._shared import ASK


@base()
async def ask(stage: ScriptContext) -> None:
    """Many questions at a time, some of which are refused."""
    stage.broker.create_stream("S")
    stage.broker.create_stream("D")
    stage.broker.store_offset("S", "r", 7)
    stage.broker.store_sequence("S", "q", 9)
    await stage.connect()
    for number in range(2):
        await stage.ended(
            [
                stage.begin("rmqs.create", target=f"N{number}"),
                stage.begin("rmqs.query_offset", target="S", name="r"),
                stage.begin("rmqs.metadata", targets=["S"]),
                stage.begin("rmqs.query_sequence", target="S", name="q"),
                stage.begin("rmqs.delete", target=f"X{number}"),
                stage.begin("rmqs.query_offset", target="S", name="none"),
            ]
        )
    await stage.op("rmqs.delete", target="D")
    await stage.op("rmqs.create", target="D")
    await stage.finale("rmqs.query_sequence", **ASK)


@base(needs=["cancel"])
async def cancelled(stage: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    stage.broker.create_stream("S")
    stage.broker.store_offset("S", "r", 7)
    stage.broker.store_sequence("S", "q", 9)
    await stage.connect()
    stage.broker.faults.add(latency(0.2, role="response", direction="out"))
    for _ in range(3):
        calls = [stage.begin("rmqs.query_offset", target="S", name="r") for _ in range(3)]
        await stage.sleep(0.05)
        for call in calls[:2]:
            await stage.adapter.cancel(call)
        stage.begin("rmqs.query_sequence", target="S", name="q")
        await stage.sleep(0.5)
        await stage.op("rmqs.query_sequence", target="S", name="q")
    await stage.finale("rmqs.query_sequence", **ASK)


@base(bends=False)
async def large_answers(stage: ScriptContext) -> None:
    """Answers at the ends of their ranges."""
    stage.broker.create_stream("S")
    await stage.connect()
    for value in (0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**64 - 1):
        stage.broker.store_offset("S", "r", value)
        stage.broker.store_sequence("S", f"q{value}", value)
        await stage.op("rmqs.query_offset", target="S", name="r")
        await stage.op("rmqs.query_sequence", target="S", name=f"q{value}")
        await stage.op("rmqs.store_offset", target="S", name=f"w{value}", offset=str(value))
        await stage.op("rmqs.query_offset", target="S", name=f"w{value}")
    await stage.finale("rmqs.query_sequence", **ASK)
