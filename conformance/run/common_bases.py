"""Base scripts that protocols have in common: each gives what it prepares and what it asks at last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import drop, fin

FEW, MANY = 3, 30  #: messages that wait for their confirms; that come after a loss
STEP_S = 0.1  #: between those
CONFIRMED_S = 20.0  #: in which a message gets its confirm, if it ever does
MOMENT_S = 0.05  #: for which a connection stands that is made for nothing
MINUTES_S = 150.0  #: long enough for pauses to grow to what they are at most
REST_S = 60.0  #: in which the longest of them is over

Prepare = Callable[[ScriptContext], Awaitable[None]]


def ends_at_once(prepare: Prepare, probe: str, *, role: str = "publisher", **args: Any) -> Base:
    """Connections that are made well and come to nothing.

    Args:
        prepare: Connects, and whatever gives the client a reason to come back.
        probe: The op that has to work at last, with its arguments.
    """

    async def script(context: ScriptContext) -> None:
        """The server takes each connection and ends it a moment later, for minutes; then it lets them be."""
        await prepare(context)
        context.broker.faults.add(fin(on="ready", after_s=MOMENT_S, scope="run"))
        context.kill()
        await context.sleep(MINUTES_S)
        context.calm()
        await context.sleep(REST_S)
        await context.finale(probe, **args)

    return base(role=role, injections=False, name="ends-at-once")(script)


def overtaken(
    prepare: Prepare,
    publish: Mapping[str, Any],
    *,
    needs: Sequence[str] = (),
    packed: str = "",
    name: str = "overtaken",
) -> Base:
    """What waits to be repeated meets what is new.

    Args:
        prepare: Connects, and makes what `publish` names.
        publish: Its arguments, but for the body.
        packed: How messages are packed; each is one of several then.
    """
    # a library may have a producer for each way to pack, and no two of one name
    probe = {name: value for name, value in publish.items() if not packed or name != "name"}

    async def script(context: ScriptContext) -> None:
        """Messages without their confirms are lost with the connection, and others are published all the time
        until the client is back, and after that."""

        def begin(word: str) -> Call:
            if not packed:
                return context.begin("publish", CONFIRMED_S, body=text(word), **publish)
            many = [{"body": text(f"{word}/{number}")} for number in range(FEW)]
            return context.begin("publish_many", CONFIRMED_S, messages=many, subentry=packed, **publish)

        await prepare(context)
        await begin("first")
        lost = context.broker.faults.add(drop(role="confirm", direction="out"))
        calls = [begin(f"a{number}") for number in range(FEW)]
        await context.sleep(STEP_S)
        context.kill()
        context.broker.faults.remove(lost)
        for number in range(MANY):
            calls.append(begin(f"b{number}"))
            await context.sleep(STEP_S)
        await context.ended(calls)
        await context.finale("publish", body=text("probe"), **probe)

    return base(role="publisher", needs=needs, injections=False, name=name)(script)
