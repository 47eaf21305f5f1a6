"""The base scripts of the echo."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text


@base(role="publisher")
async def puts(stage: ScriptContext) -> None:
    """Names, one after the other and some at a time."""
    await stage.connect(auto_reconnect=False)
    await stage.op("publish", target="", body=text("a"))
    await stage.ended([stage.begin("publish", target="", body=text(f"b{i}")) for i in range(3)])
    await stage.finale()
