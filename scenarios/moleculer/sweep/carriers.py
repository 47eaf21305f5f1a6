"""Base scripts over the other transporters: the same application, on another wire."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base
from fakebrokers.faults import slice_
from scenarios.moleculer.sweep._shared import CONNECT_S, MET_S, NODE, PEER, begin, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS

LARGE = (100, 127, 128, 16_000, 17_000, 100_000)  #: around the borders of lengths of MQTT, and a large one


def over(transporter: str, bytes_per_write: int = 0, names: tuple[str, str] = (NODE, PEER)) -> Base:
    """An application over a transporter.

    Args:
        bytes_per_write: Of the server; 0: each message in one.
        names: Of the client's node and of the other one.
    """
    own, other = names

    async def script(context: ScriptContext) -> None:
        """Calls, answers and events over another transporter, and through two losses."""
        node = peer(context, other)
        if bytes_per_write:
            context.broker.faults.add(slice_(bytes_per_write, direction="out"))
        await context.connect(timeout=CONNECT_S, node_id=own, transporter=context.broker.url)
        await context.sleep(MET_S)
        await context.op("mol.serve", service="s", actions=ACTIONS)
        await context.op("mol.listen", sub="one", event="mine.*", on_message={"mode": "event"})
        await context.sleep(1)
        for number in range(3):
            calls = [begin(context, "p.echo", {"n": number, "of": of}) for of in "äb"]
            calls += [
                begin(context, "p.fail", {"code": 422, "n": number}),
                begin(context, "p.wait", {"n": number}, 1.0),
            ]
            calls.append(context.begin("mol.ping", node=other))
            for action in ("s.echo", "s.fail", "s.value", "s.nowhere"):
                node.start_call(action, {"n": number}, target=own, timeout=5.0)
            node.emit("mine.a", {"n": number})
            await context.op("mol.emit", event="news.a", data={"n": number})
            await context.op("mol.broadcast", event="news.b", data={"n": number})
            await context.ended(calls)
            if number < 2:
                context.kill("fin" if number else "rst")
                await context.sleep(5)
        if not bytes_per_write:
            for size in LARGE:
                await begin(context, "p.echo", "x" * size)
                node.start_call("s.echo", "y" * size, target=own, timeout=5.0)
        await context.sleep(25)
        await context.op("mol.registry")
        await probed(context)

    name = f"over-{transporter}" + (f"-by-{bytes_per_write}" if bytes_per_write else "")
    name += "" if own == NODE else "-in-letters"
    server = {"transporter": transporter}
    return base(role="caller", injections=False, server=server, name=name)(script)


CARRIERS = [over(transporter, count) for transporter in ("redis", "mqtt") for count in (0, 3)]
CARRIERS += [over(transporter, names=("größe", "prüfer東")) for transporter in ("redis", "mqtt")]
CARRIERS.append(over("nats", 3))
