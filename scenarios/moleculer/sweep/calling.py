"""Base scripts of applications that call."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import latency
from fakebrokers.moleculer.services import Service
from scenarios.moleculer.sweep._shared import (
    CONNECT_S,
    NODE,
    begin,
    echo,
    joined,
    offer,
    peer,
    probed,
    service_of_peer,
)
from scenarios.moleculer.sweep.serving import ACTIONS


@base(role="caller", handshake=True)
async def call(context: ScriptContext) -> None:
    """Many calls at a time, some of which are refused, and one without an answer."""
    peer(context)
    await joined(context)
    for number in range(2):
        await context.ended(
            [
                begin(context, "p.echo", {"n": number, "of": "a"}),
                begin(context, "p.fail", {"code": 422, "n": number}),
                begin(context, "p.echo", {"n": number, "of": "b"}),
                begin(context, "p.wait", {"n": number}),
                begin(context, "p.nowhere", {"n": number}),
                context.begin("mol.ping", node="peer"),
            ]
        )
    await probed(context)


@base(role="caller")
async def both(context: ScriptContext) -> None:
    """Calls and answers, while the server resets the connection once."""
    node = peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(0.5)
    calls = [begin(context, "p.echo", {"n": n}, 4.0) for n in range(3)]
    context.kill()
    calls.append(begin(context, "p.echo", {"n": "after"}, 4.0))
    await context.ended(calls)
    await context.sleep(3)
    node.start_call("s.echo", {"again": True}, target=NODE, timeout=5.0)
    await begin(context, "p.echo", {"n": "later"})
    await probed(context)


@base(role="caller")
async def peers(context: ScriptContext) -> None:
    """Several nodes offer an action; one stops, one is killed, and one joins again with less."""
    nodes = [peer(context, name) for name in ("peer", "second", "third")]
    await joined(context)
    for number in range(4):
        await begin(context, "p.echo", {"n": number})
    await begin(context, "p.echo", {"to": "second"}, node="second")
    waits = [begin(context, "p.wait", {"n": name}, 4.0, node=name) for name in ("second", "third")]
    nodes[1].stop()
    await begin(context, "p.echo", {"gone": True}, node="second")
    nodes[2].restart()
    await context.op("mol.registry")
    await context.ended(waits)
    nodes[2].serve([])
    await context.sleep(0.5)
    await begin(context, "p.echo", {"to": "third"}, node="third")
    await context.op("mol.registry")
    await probed(context)


@base(role="caller", injections=False)
async def spread(context: ScriptContext) -> None:
    """Many calls one after the other, and three nodes that can answer each."""
    for name in ("peer", "second", "third"):
        peer(context, name)
    await joined(context)
    for number in range(24):
        await begin(context, "p.echo", {"n": number})
    await probed(context)


@base(role="caller")
async def deserted(context: ScriptContext) -> None:
    """The only node that offers something stops, and joins again; it is killed, and joins again."""
    context.notes.silent = True
    node = peer(context, heartbeat_s=2.0)
    await joined(context, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    for name, end in (("stopped", node.stop), ("killed", node.kill)):
        await begin(context, "p.echo", {"before": name})
        end()
        await context.sleep(10)
        for number in range(2):
            await begin(context, "p.echo", {name: number})
            await context.op("mol.emit", event="news.a", data={name: number})
        node.restart()
        node.serve([service_of_peer()])
        await context.sleep(1)
        await begin(context, "p.echo", {"behind": name})
    await probed(context)


@base(role="caller", injections=False)
async def one_falls_silent(context: ScriptContext) -> None:
    """Of two nodes one falls silent, again and again, while the other one goes on."""
    context.notes.silent = True
    peer(context, heartbeat_s=2.0)
    other = peer(context, "second", 2.0)
    await joined(context, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    for phase_s in (0.3, 1.1, 2.7):
        await context.sleep(phase_s)
        other.stop_heartbeats()
        await context.sleep(7.7)
        await context.op("mol.registry")
        other.resume_heartbeats()
        await context.sleep(3)
        await context.op("mol.registry")
    await probed(context)


@base(role="caller")
async def silence(context: ScriptContext) -> None:
    """A node falls silent, and comes back."""
    context.notes.silent = True
    peer(context)
    other = peer(context, "second", 2.0)
    await joined(context, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    other.stop_heartbeats()
    calls = [begin(context, "p.wait", {"n": n}, 30.0, node="second") for n in range(2)]
    await context.sleep(11)
    await context.op("mol.registry")
    other.resume_heartbeats()
    await context.sleep(3)
    await context.op("mol.registry")
    await begin(context, "p.echo", {"to": "second"}, node="second")
    await context.ended(calls)
    await probed(context)


@base(role="caller", needs=["streams"])
async def streams(context: ScriptContext) -> None:
    """Calls that upload a stream, and calls that are answered with one."""
    peer(context)
    await joined(context)
    body = {"gen": "rand", "seed": 7, "len": 3000}
    for number in range(2):
        await context.ended(
            [
                begin(context, "p.down", {"n": number}),
                begin(context, "p.up", {"n": number}, stream=body, chunk=1000),
                begin(context, "p.echo", {"n": number}),
            ]
        )
    await probed(context)


@base(role="caller", needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Calls that are given up, or answered too late; the next ones get their own answers."""
    peer(context)
    await joined(context)
    context.broker.faults.add(latency(0.3, role="data", direction="out"))
    for number in range(3):
        calls = [begin(context, "p.echo", {"n": number, "of": of}) for of in range(3)]
        short = begin(context, "p.echo", {"n": number, "of": "short"}, 0.2)
        await context.sleep(0.05)
        for one in calls[:2]:
            await context.adapter.cancel(one)
        await context.ended([*calls, short])
        await begin(context, "p.echo", {"n": number, "of": "next"})
    await probed(context)


@base(role="caller")
async def in_the_turn(context: ScriptContext) -> None:
    """Calls begin in the turns around the loss of the connection."""
    peer(context)
    await joined(context)
    for number in range(4):
        context.kill("fin" if number % 2 else "rst")
        calls = []
        for turn in range(6):
            calls.append(begin(context, "p.echo", {"n": number, "turn": turn}, 1.0))
            await context.sleep(0.02 * turn)
        await context.ended(calls)
        await context.sleep(3)
    await probed(context)


@base(role="caller", needs=["disable_balancer"])
async def balanced(context: ScriptContext) -> None:
    """The server chooses who answers."""
    node = peer(context, disable_balancer=True)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS), disable_balancer=True)
    await context.sleep(0.5)
    for number in range(3):
        await begin(context, "p.echo", {"n": number})
        node.start_call("s.echo", {"n": number}, timeout=5.0)
    await begin(context, "p.echo", {"to": "peer"}, node="peer")
    await probed(context)


@base(role="service", needs=["disable_balancer"])
async def balanced_again(context: ScriptContext) -> None:
    """The server chooses who answers, before and after a loss."""
    node = peer(context, disable_balancer=True)
    await joined(
        context,
        offer("mol.serve", service="s", actions=ACTIONS),
        offer("mol.listen", sub="one", event="mine.a", group="g", on_message={"mode": "event"}),
        disable_balancer=True,
    )
    await context.sleep(1)
    for number in range(2):
        node.start_call("s.echo", {"n": number}, timeout=5.0)
        node.emit("mine.a", {"n": number})
        await begin(context, "p.echo", {"n": number})
        context.kill()
        await context.sleep(5)
    node.start_call("s.echo", {"n": "last"}, timeout=5.0)
    await probed(context)


@base(role="service", needs=["disable_balancer"], injections=False)
async def taken_back(context: ScriptContext) -> None:
    """The server chooses who answers, and services are taken back, offered again and replaced by others,
    before and after a loss; another node has them all the time."""
    names = ("s", "t.u")
    stays = [Service(name, {"echo": echo, "value": echo}) for name in names]
    node = peer(context, disable_balancer=True)
    context.broker.node("stays", stays, heartbeat_s=10.0, disable_balancer=True)
    await joined(
        context,
        offer("mol.listen", sub="one", event="mine.a", group="g", on_message={"mode": "event"}),
        disable_balancer=True,
    )
    for number in range(2):
        for name in names:
            await context.op("mol.serve", service=name, actions=ACTIONS)
        await context.sleep(2)
        await context.op("mol.unserve", service=names[number])
        await context.sleep(2)
        for name in names:
            node.start_call(f"{name}.echo", {"n": number}, timeout=5.0)
        await context.op("mol.serve", service=names[1 - number], actions={"value": ACTIONS["value"]})
        await context.sleep(2)
        context.kill()
        await context.sleep(5)
        await context.op("mol.unserve", service=names[1 - number])
        await context.sleep(2)
    await probed(context)


@base(role="caller", injections=False)
async def own_limits(context: ScriptContext) -> None:
    """Calls with a time-out of their own, none or a long one, where the node has a short one for all."""
    node = peer(context)
    await joined(context, request_timeout_ms=1000)
    for own in ({"timeout_ms": 0}, {"timeout_ms": 6000}):
        call = context.begin("mol.call", 8.0, action="p.wait", params=own, **own)
        await context.sleep(3)
        for request in node.requests[-1:]:
            node.send("RES", NODE, id=request.id, meta={}, success=True, data="late")
        await call
    await probed(context)


@base(role="caller", server={"bus": {"max_payload": 8192}}, injections=False)
async def limits(context: ScriptContext) -> None:
    """Messages around the largest one that the server takes, and values at the ends of their ranges."""
    peer(context)
    await joined(context)
    context.notes.oversized = True
    fits = context.notes.fits
    for size in (1, 7000, 8192, 20_000, 100):
        fits.append((len(context.ops), size < 8000))
        await begin(context, "p.echo", "x" * size)
    numbers: tuple[object, ...] = (0, -1, 1.5, 2**53 + 1, 2**63)
    texts: tuple[object, ...] = ("", "äöü€", "\0", "123")
    for value in (*numbers, *texts, [], [None], {"deep": [[{}]]}, False):
        await begin(context, "p.echo", value)
    await probed(context)


#: Twice as many bytes as letters: room for the rest of a packet is left in letters, and none in bytes.
LETTERS = (1000, 4100, 7500)


@base(role="caller", server={"bus": {"max_payload": 8192}}, injections=False)
async def longer_in_bytes(context: ScriptContext) -> None:
    """Calls, events and answers around the largest message, which most of them fit in letters alone."""
    node = peer(context)
    await joined(context)
    context.notes.oversized = True
    answers = {f"of-{count}": {"return": "é" * count} for count in LETTERS}
    await context.op("mol.serve", service="s", actions=answers)
    await context.sleep(1)
    for count in LETTERS:
        context.notes.fits.append((len(context.ops), count == LETTERS[0]))
        await begin(context, "p.echo", "é" * count)
        for op in ("mol.emit", "mol.broadcast"):
            await context.op(op, event="news.a", data="é" * count)
        node.start_call(f"s.of-{count}", {}, target=NODE, timeout=5.0)
        await context.sleep(0.5)
    await probed(context)


@base(role="caller")
async def two_nodes(context: ScriptContext) -> None:
    """Two nodes of one application; one of them is closed."""
    peer(context)
    context.notes.sessions = 2
    await joined(context)
    await context.connect("s2", CONNECT_S, node_id="other")
    await context.op("mol.serve", session="s2", service="t", actions=ACTIONS)
    await context.sleep(1)
    await begin(context, "t.echo", {"n": 1})
    await context.ended([begin(context, "p.echo", {"n": n}, session=f"s{n}") for n in (1, 2)])
    await context.op("close", session="s2")
    await begin(context, "t.echo", {"n": 2})
    await begin(context, "p.echo", {"n": 3})
    await probed(context)


@base(role="caller", server={"bus": {"max_payload": 8 << 20}}, injections=False)
async def bulk(context: ScriptContext) -> None:
    """Messages of more than a megabyte in both directions."""
    peer(context)
    await joined(context)
    for size in (1 << 20, 2 << 20):
        await begin(context, "p.echo", "x" * size)
    await probed(context)


@base(role="caller")
async def odd_answers(context: ScriptContext) -> None:
    """Answers that do not say whether they are good, in another order, and of others."""
    node = peer(context)
    await joined(context)
    calls = [begin(context, "p.wait", {"n": number}) for number in range(4)]
    await context.sleep(0.2)
    answers: tuple[dict[str, Any], ...] = (
        {"data": 1}, {"success": 1, "data": 1}, {"success": "true"}, {"success": True, "data": "last"},
    )  # fmt: skip
    for request, answer in zip(reversed(node.requests), answers, strict=False):
        node.send("RES", NODE, id=request.id, meta={"by": "hand"}, **answer)
    await context.ended(calls)
    await probed(context)
