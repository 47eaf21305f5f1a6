"""Base scripts of applications that call."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import latency
from scenarios.moleculer.sweep._shared import CONNECT_S, NODE, begin, joined, peer, probed, service_of_peer
from scenarios.moleculer.sweep.serving import ACTIONS


@base(role="caller", handshake=True)
async def call(stage: ScriptContext) -> None:
    """Many calls at a time, some of which are refused, and one without an answer."""
    peer(stage)
    await joined(stage)
    for number in range(2):
        await stage.ended(
            [
                begin(stage, "p.echo", {"n": number, "of": "a"}),
                begin(stage, "p.fail", {"code": 422, "n": number}),
                begin(stage, "p.echo", {"n": number, "of": "b"}),
                begin(stage, "p.wait", {"n": number}),
                begin(stage, "p.nowhere", {"n": number}),
                stage.begin("mol.ping", node="peer"),
            ]
        )
    await probed(stage)


@base(role="caller")
async def both(stage: ScriptContext) -> None:
    """Calls and answers, while the server resets the connection once."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(0.5)
    calls = [begin(stage, "p.echo", {"n": n}, 4.0) for n in range(3)]
    stage.kill()
    calls.append(begin(stage, "p.echo", {"n": "after"}, 4.0))
    await stage.ended(calls)
    await stage.sleep(3)
    node.start_call("s.echo", {"again": True}, target=NODE, timeout=5.0)
    await begin(stage, "p.echo", {"n": "later"})
    await probed(stage)


@base(role="caller")
async def peers(stage: ScriptContext) -> None:
    """Several nodes offer an action; one stops, one is killed, and one joins again with less."""
    nodes = [peer(stage, name) for name in ("peer", "second", "third")]
    await joined(stage)
    for number in range(4):
        await begin(stage, "p.echo", {"n": number})
    await begin(stage, "p.echo", {"to": "second"}, node="second")
    waits = [begin(stage, "p.wait", {"n": name}, 4.0, node=name) for name in ("second", "third")]
    nodes[1].stop()
    await begin(stage, "p.echo", {"gone": True}, node="second")
    nodes[2].restart()
    await stage.op("mol.registry")
    await stage.ended(waits)
    nodes[2].serve([])
    await stage.sleep(0.5)
    await begin(stage, "p.echo", {"to": "third"}, node="third")
    await stage.op("mol.registry")
    await probed(stage)


@base(role="caller", bends=False)
async def spread(stage: ScriptContext) -> None:
    """Many calls one after the other, and three nodes that can answer each."""
    for name in ("peer", "second", "third"):
        peer(stage, name)
    await joined(stage)
    for number in range(24):
        await begin(stage, "p.echo", {"n": number})
    await probed(stage)


@base(role="caller")
async def deserted(stage: ScriptContext) -> None:
    """The only node that offers something stops, and joins again; it is killed, and joins again."""
    stage.notes.silent = True
    node = peer(stage, heartbeat_s=2.0)
    await joined(stage, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    for name, end in (("stopped", node.stop), ("killed", node.kill)):
        await begin(stage, "p.echo", {"before": name})
        end()
        await stage.sleep(10)
        for number in range(2):
            await begin(stage, "p.echo", {name: number})
            await stage.op("mol.emit", event="news.a", data={name: number})
        node.restart()
        node.serve([service_of_peer()])
        await stage.sleep(1)
        await begin(stage, "p.echo", {"behind": name})
    await probed(stage)


@base(role="caller")
async def silence(stage: ScriptContext) -> None:
    """A node falls silent, and comes back."""
    stage.notes.silent = True
    peer(stage)
    other = peer(stage, "second", 2.0)
    await joined(stage, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    other.stop_heartbeats()
    calls = [begin(stage, "p.wait", {"n": n}, 30.0, node="second") for n in range(2)]
    await stage.sleep(11)
    await stage.op("mol.registry")
    other.resume_heartbeats()
    await stage.sleep(3)
    await stage.op("mol.registry")
    await begin(stage, "p.echo", {"to": "second"}, node="second")
    await stage.ended(calls)
    await probed(stage)


@base(role="caller", needs=["streams"])
async def streams(stage: ScriptContext) -> None:
    """Calls that upload a stream, and calls that are answered with one."""
    peer(stage)
    await joined(stage)
    body = {"gen": "rand", "seed": 7, "len": 3000}
    for number in range(2):
        await stage.ended(
            [
                begin(stage, "p.down", {"n": number}),
                begin(stage, "p.up", {"n": number}, stream=body, chunk=1000),
                begin(stage, "p.echo", {"n": number}),
            ]
        )
    await probed(stage)


@base(role="caller", needs=["cancel"])
async def cancelled(stage: ScriptContext) -> None:
    """Calls that are given up, or answered too late; the next ones get their own answers."""
    peer(stage)
    await joined(stage)
    stage.broker.faults.add(latency(0.3, role="data", direction="out"))
    for number in range(3):
        calls = [begin(stage, "p.echo", {"n": number, "of": of}) for of in range(3)]
        short = begin(stage, "p.echo", {"n": number, "of": "short"}, 0.2)
        await stage.sleep(0.05)
        for one in calls[:2]:
            await stage.adapter.cancel(one)
        await stage.ended([*calls, short])
        await begin(stage, "p.echo", {"n": number, "of": "next"})
    await probed(stage)


@base(role="caller")
async def in_the_turn(stage: ScriptContext) -> None:
    """Calls begin in the turns around the loss of the connection."""
    peer(stage)
    await joined(stage)
    for number in range(4):
        stage.kill("fin" if number % 2 else "rst")
        calls = []
        for turn in range(6):
            calls.append(begin(stage, "p.echo", {"n": number, "turn": turn}, 1.0))
            await stage.sleep(0.02 * turn)
        await stage.ended(calls)
        await stage.sleep(3)
    await probed(stage)


@base(role="caller", needs=["disable_balancer"])
async def balanced(stage: ScriptContext) -> None:
    """The server chooses who answers."""
    node = peer(stage, disable_balancer=True)
    await joined(stage, disable_balancer=True)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(0.5)
    for number in range(3):
        await begin(stage, "p.echo", {"n": number})
        node.start_call("s.echo", {"n": number}, timeout=5.0)
    await begin(stage, "p.echo", {"to": "peer"}, node="peer")
    await probed(stage)


@base(role="caller", server={"bus": {"max_payload": 8192}}, bends=False)
async def limits(stage: ScriptContext) -> None:
    """Messages around the largest one that the server takes, and values at the ends of their ranges."""
    peer(stage)
    await joined(stage)
    stage.notes.oversized = True
    fits = stage.notes.fits
    for size in (1, 7000, 8192, 20_000, 100):
        fits.append((len(stage.ops), size < 8000))
        await begin(stage, "p.echo", "x" * size)
    numbers: tuple[object, ...] = (0, -1, 1.5, 2**53 + 1, 2**63)
    texts: tuple[object, ...] = ("", "äöü€", "\0", "123")
    for value in (*numbers, *texts, [], [None], {"deep": [[{}]]}, False):
        await begin(stage, "p.echo", value)
    await probed(stage)


@base(role="caller")
async def two_nodes(stage: ScriptContext) -> None:
    """Two nodes of one application; one of them is closed."""
    peer(stage)
    stage.notes.sessions = 2
    await joined(stage)
    await stage.connect("s2", CONNECT_S, node_id="other")
    await stage.op("mol.serve", session="s2", service="t", actions=ACTIONS)
    await stage.sleep(1)
    await begin(stage, "t.echo", {"n": 1})
    await stage.ended([begin(stage, "p.echo", {"n": n}, session=f"s{n}") for n in (1, 2)])
    await stage.op("close", session="s2")
    await begin(stage, "t.echo", {"n": 2})
    await begin(stage, "p.echo", {"n": 3})
    await probed(stage)


@base(role="caller", server={"bus": {"max_payload": 8 << 20}}, bends=False)
async def bulk(stage: ScriptContext) -> None:
    """Messages of more than a megabyte in both directions."""
    peer(stage)
    await joined(stage)
    for size in (1 << 20, 2 << 20):
        await begin(stage, "p.echo", "x" * size)
    await probed(stage)


@base(role="caller")
async def odd_answers(stage: ScriptContext) -> None:
    """Answers that do not say whether they are good, in another order, and of others."""
    node = peer(stage)
    await joined(stage)
    calls = [begin(stage, "p.wait", {"n": number}) for number in range(4)]
    await stage.sleep(0.2)
    answers: tuple[dict[str, Any], ...] = (
        {"data": 1}, {"success": 1, "data": 1}, {"success": "true"}, {"success": True, "data": "last"},
    )  # fmt: skip
    for request, answer in zip(reversed(node.requests), answers, strict=False):
        node.send("RES", NODE, id=request.id, meta={"by": "hand"}, **answer)
    await stage.ended(calls)
    await probed(stage)
