"""The base scripts of the echo."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text


@base(role="publisher")
async def puts(context: ScriptContext) -> None:
    """Names, one after the other and some at a time."""
    await context.connect(auto_reconnect=False)
    await context.op("publish", target="", body=text("a"))
    await context.ended([context.begin("publish", target="", body=text(f"b{i}")) for i in range(3)])
    await context.finale()
