"""What the base scripts of Moleculer share: a client called `NODE`, and a fake node that it talks to."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.ops.moleculer import LATE_SERVICES
from conformance.run.bases import ScriptContext
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import NO_ANSWER, Context, MoleculerError, Service, Stream

NODE, PEER = "client", "peer"
CONNECT_S = 8.0
MET_S = 1.0  #: until nodes know each other
#: An op that gives a node a service or a listener, with its arguments.
Offer = tuple[str, dict[str, Any]]

LONG_S = 40.0  #: in which every back-off ends, and every node that is gone is missed
PROBE: dict[str, Any] = {"action": "p.echo", "params": {"probe": True}, "timeout_ms": 5000}


def echo(ctx: Context) -> Any:
    """An action that gives back its parameters."""
    return ctx.params


def fail(ctx: Context) -> Any:
    """Fails with the code that was asked for."""
    raise MoleculerError("no", (ctx.params or {}).get("code", 500), "REFUSED")


def heard(ctx: Context) -> None:
    """A listener that only takes the event."""


def down(ctx: Context) -> Any:
    """An action that answers with a stream."""
    return Stream([b"one", b"two" * 100, b"\xff\x00three"])


def up(ctx: Context) -> Any:
    """An action that returns how many bytes were uploaded."""
    return None if ctx.stream is None else sum(map(len, ctx.stream.chunks))


def wait(ctx: Context) -> Any:
    """An action that never answers."""
    return NO_ANSWER


def service_of_peer() -> Service:
    """What the fake node offers."""
    events = {"news.*": heard, "group:news.*": heard}
    return Service("p", {"echo": echo, "fail": fail, "wait": wait, "down": down, "up": up}, events)


def peer(context: ScriptContext, id: str = PEER, heartbeat_s: float = 10.0, **options: Any) -> Node:
    """A fake node with the actions that base scripts call."""
    node: Node = context.broker.node(id, [service_of_peer()], heartbeat_s=heartbeat_s, **options)
    return node


def begin(context: ScriptContext, action: str, params: Any, timeout: float = 2.0, **more: Any) -> Call:
    """Begin a call; its time-out is the library's, too."""
    given = {"action": action, "params": params, "timeout_ms": timeout * 1000, **more}
    return context.begin("mol.call", timeout, **given)


def offer(op: str, **args: Any) -> Offer:
    """A service or a listener, by ``mol.serve`` or ``mol.listen``."""
    return op, args


async def joined(context: ScriptContext, *offers: Offer, **options: Any) -> None:
    """The client has joined, and knows who is there.

    Args:
        offers: What the application gives it then; before it joins where the library takes nothing later.
    """
    is_early = not context.adapter.hello.can(LATE_SERVICES)
    for op, args in offers if is_early else ():
        await context.op(op, **args)
    await context.connect(timeout=CONNECT_S, node_id=NODE, **options)
    await context.sleep(MET_S)
    for op, args in () if is_early else offers:
        await context.op(op, **args)


async def probed(context: ScriptContext) -> None:
    """The end of a base script: a call works again."""
    context.calm()
    await context.sleep(LONG_S)
    await context.finale("mol.call", **PROBE)
