"""Walks of Moleculer; see `conformance.run.walks`."""

from __future__ import annotations

from conformance.run.walks import LOSSY, Walk, walks
from scenarios.moleculer.sweep._shared import CONNECT_S, MET_S, NODE, peer, probed, service_of_peer
from scenarios.moleculer.sweep.serving import ACTIONS

PEERS = ("peer", "peer-1", "peer-1ä")  #: names that contain each other, and are longer in bytes
FEW_S, MANY_S = 2.0, 8.0


async def begin(walk: Walk) -> None:
    """Three nodes that offer the same, one of which comes and goes."""
    walk.state["nodes"] = {name: peer(walk.context, name) for name in PEERS}
    walk.state["away"] = False
    walk.state["served"] = set()
    walk.state["heard"] = set()
    given = {"node_id": NODE, "transporter": walk.context.broker.url}
    await walk.context.connect(timeout=CONNECT_S, **given)
    await walk.context.sleep(MET_S)


async def end(walk: Walk) -> None:
    """A call works again."""
    await probed(walk.context)


async def call(walk: Walk) -> None:
    """One call, of any node or of a certain one."""
    action = walk.pick("p.echo", "p.echo", "p.fail", "p.wait", "p.nowhere")
    timeout = walk.pick(FEW_S, MANY_S)
    more = walk.pick({}, {}, {"node": walk.pick(*PEERS)}, {"meta": {"n": walk.number}})
    given = {"action": action, "params": {"n": walk.number}, "timeout_ms": timeout * 1000, **more}
    walk.begin("mol.call", timeout, **given)


async def ping(walk: Walk) -> None:
    """Is a node there? Who is?"""
    if walk.pick(True, False):
        walk.begin("mol.ping", FEW_S, node=walk.pick(*PEERS))
    else:
        walk.begin("mol.registry")


async def emit(walk: Walk) -> None:
    """An event for others."""
    op, groups = walk.pick("mol.emit", "mol.broadcast"), walk.pick({}, {"groups": ["group"]})
    walk.begin(op, event="news.a", data={"n": walk.number}, **groups)


async def serve(walk: Walk) -> None:
    """Something more is offered, or no more."""
    served = walk.state["served"]
    name = walk.pick("s", "a.s")
    op = "mol.unserve" if name in served else "mol.serve"
    more = {} if name in served else {"actions": ACTIONS}
    await walk.context.op(op, MANY_S, service=name, **more)
    served ^= {name}


async def listen(walk: Walk) -> None:
    """One more listener."""
    heard = walk.state["heard"]
    free = [pattern for pattern in ("mine.*", "mine.**", "mine.a?") if pattern not in heard]
    if free:
        heard.add(pattern := walk.pick(*free))
        plan = {"mode": "event", "sleep_ms": walk.pick(0, 0, 50)}
        group = walk.pick("", "g")
        await walk.context.op("mol.listen", sub=pattern, event=pattern, group=group, on_message=plan)


async def asked(walk: Walk) -> None:
    """Others ask, or have an event."""
    node, number = walk.state["nodes"][PEERS[0]], walk.number
    service, action = walk.pick("s", "a.s"), walk.pick("echo", "fail", "slow", "nowhere")
    if walk.pick(True, True, False):
        node.start_call(f"{service}.{action}", {"n": number}, target=NODE, timeout=5.0)
    else:
        walk.pick(node.emit, node.broadcast)(walk.pick("mine.ab", "mine.a.b"), {"n": number})


async def turn(walk: Walk) -> None:
    """The second node stops or crashes, or is there again; all are in use meanwhile."""
    node = walk.state["nodes"][PEERS[1]]
    for name in PEERS:
        given = {"params": {"n": walk.number}, "node": name, "timeout_ms": FEW_S * 1000}
        walk.begin("mol.call", FEW_S, action="p.wait", **given)
    await walk.context.sleep(walk.pick(0.0, 0.1))
    if walk.state["away"]:
        node.restart()
        node.serve([service_of_peer()])
    else:
        walk.pick(node.stop, node.kill)()
    walk.state["away"] = not walk.state["away"]
    await walk.context.sleep(walk.pick(0.0, 0.5))


STEPS = (
    (8, call), (2, ping), (2, emit), (2, serve), (2, listen), (5, asked), (3, turn), (1, Walk.kill),
    (1, Walk.rest), (3, Walk.ended),
)  # fmt: skip
WALKS = (
    walks(15, STEPS, begin, end, role="caller")
    + walks(15, (*STEPS, *LOSSY), begin, end, role="caller", name="rough-walk")
    + walks(5, STEPS, begin, end, role="caller", name="mqtt-walk", server={"transporter": "mqtt"})
    + walks(5, STEPS, begin, end, role="caller", name="redis-walk", server={"transporter": "redis"})
)
