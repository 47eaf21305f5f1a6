"""Steps and questions that the scenarios of Moleculer share.

The client is a node of its own on the fake's bus, called `NODE`; its peers are fake nodes. What a peer says
by hand is published on the bus, so it is no fault and is in the journal as what was delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import Inconclusive, SetupFailed, Unsupported
from fakebrokers import Moleculer
from fakebrokers.errors import WaitTimeout
from fakebrokers.journal import Tap
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Packet, Pong, Request
from fakebrokers.moleculer.services import NO_ANSWER, Context

NODE = "client"  #: the id of the node that is judged


PEER = "peer"


CALLER = ("caller",)


SERVICE = ("service",)


EMITTER = ("emitter",)


LISTENER = ("listener",)


BOTH_WAYS = ("caller", "service")


NATS = {"transporter": "nats"}


REDIS = {"transporter": "redis"}


MQTT = {"transporter": "mqtt"}


TCP = {"transporter": "tcp", "gossip_s": 0.2}


#: How long a node takes to start: it waits 0.5 s for others.
START_S = 8.0


#: How long a client may take from its start until it has asked its peers, and was answered.
TOLD_S = 2.0


#: The longest heartbeat of a client that scenarios wait for.
BEAT_MOST_S = 5.0


#: An answer that is due at once.
AT_ONCE_S = 1.2 + 0.25


#: How long a call may take where the script does not say.
CALL_S = 5.0


# joining


class Offer(NamedTuple):
    """A service, or a listener, that the application gives the client's node: an op and its arguments."""

    op: str
    args: Mapping[str, Any]


def a_service(actions: Mapping[str, Any], service: str = "s", **more: Any) -> Offer:
    """What `serve` gives."""
    return Offer("mol.serve", {"service": service, "actions": dict(actions), **more})


def a_listener(event: str, sub: str = "", group: str = "", **on_message: Any) -> Offer:
    """What `listen` gives."""
    more = {"group": group} if group else {}
    plan = {"mode": "event", **on_message}
    return Offer("mol.listen", {"sub": sub or event, "event": event, "on_message": plan, **more})


async def joined(
    broker: Moleculer, client: Client, session: str = "s1", *, offers: Sequence[Offer] = (), **options: Any
) -> None:
    """The client's node has started and knows what its peers offer, as a step that only prepares.

    No document says that a start waits for the peers' INFO; real nodes wait for a while, and other libraries
    do not. So the script waits, and not the adapter.

    Args:
        offers: What the application gives the node as soon as it runs; before it starts where the library
            takes nothing later.
    """
    since = broker.journal.last_seq
    arguments = joining(broker, client, **options)
    at_once = () if client.can("late_services") else offers
    for offer in at_once:
        await offered(client, offer, session)
    await client.connected(session, **arguments)
    if broker.transporter != "tcp":  # what a client has written may be on its way yet
        await until(lambda: has_asked(broker, since), TOLD_S)
    for node in await offering(broker):
        await settled(node)
    for offer in offers[len(at_once) :]:
        await offered(client, offer, session)


def has_asked(broker: Moleculer, since: int) -> bool:
    """Whether the server has read a DISCOVER of a client, and so the subscriptions that came before it."""
    return any(record.tap & Tap.RECEIVED for record, _ in broker.packets("Discover", since))


async def offering(broker: Moleculer) -> list[Node]:
    """The peers with services whose INFO the client was sent, as soon as all that speak have sent theirs."""
    if broker.transporter == "tcp":
        return []  # see `reachable`
    cores = [core for core in broker.broker.nodes.values() if core.services and core.options.answers_discover]
    nodes = [Node(broker, core) for core in cores]

    def reported() -> list[Node]:
        infos = {packet.sender for record, packet in broker.packets("Info") if record.tap & Tap.SENT}
        return [node for node in nodes if node.id in infos]

    await until(lambda: len(reported()) == len(nodes), TOLD_S)
    return reported()


def introduce(broker: Moleculer, *nodes: Node) -> None:
    """Peers send their INFO to the client again, where the answers to its DISCOVER reached no subscription.

    Over Redis a client asks on one connection, and listens on another: the server may read the first one
    before the second (docs/protocols/moleculer.md, 2).
    """
    reported = {packet.sender for record, packet in broker.packets("Info") if record.tap & Tap.SENT}
    if broker.packets("Discover"):
        for node in nodes:
            if node.id not in reported:
                node.send_info(NODE)


def joining(broker: Moleculer, client: Client, *, calls_s: float = CALL_S, **options: Any) -> dict[str, Any]:
    """The arguments of ``connect``, with the serializer of the fake.

    Args:
        calls_s: The time-out of the calls that the script makes; `call_timeout` says which clients get it.

    Raises:
        Unsupported: The client does not have the transporter, or the serializer.
    """
    offered = client.hello.transporters
    if offered and broker.transporter not in offered:
        raise Unsupported(f"the client has no transporter {broker.transporter}")
    serializer = broker.bus_options.serializer
    if serializer != "JSON":
        if serializer not in client.hello.serializers:
            raise Unsupported(f"the client has no serializer {serializer}")
        options["serializer"] = serializer
    url = ",".join(broker.urls.values()) if broker.transporter == "tcp" else broker.url
    options |= node_timeout(client, calls_s)
    if "heartbeat_s" in options:
        options["heartbeat_s"] = client.heartbeat_s(options["heartbeat_s"], BEAT_MOST_S)
    return {"timeout": START_S, "transporter": url, "node_id": NODE, **options}


async def offered(client: Client, offer: Offer, session: str = "s1") -> None:
    """The node gets a service or a listener, as a step that only prepares.

    Raises:
        Unsupported: The adapter does not know a behaviour of the service.
    """
    if offer.op == "mol.listen":
        await client.prepare(offer.op, START_S, session=session, **offer.args)
        return
    result = await client.op(offer.op, START_S, session=session, **offer.args)
    if result.word == "unsupported":
        raise Unsupported(str(result))
    if not result.ok:
        raise SetupFailed("mol.serve works (preparation)", str(result), id="setup-mol-serve")


async def serve(client: Client, actions: Mapping[str, Any], service: str = "s") -> None:
    """A node that runs offers a service more, as a step that only prepares. Raises `Unsupported`."""
    await offered(client, a_service(actions, service))


def peer(broker: Moleculer, id: str = PEER, services: Any = None, **options: Any) -> Node:
    """A fake node, which is never silent for long unless the options say otherwise."""
    return broker.node(id, services, **{"heartbeat_s": 1.0, **options})


def echo(ctx: Context) -> Any:
    """An action that gives back its parameters."""
    return ctx.params


def withheld(ctx: Context) -> Any:
    """An action that leaves the answer to the script."""
    return NO_ANSWER


#: What most peers offer.
OFFER = {"p": {"echo": echo, "wait": withheld}}


async def met(broker: Moleculer, node: Node, *actions: str, within_s: float = 4.0) -> None:
    """The peer knows these actions of the client. Raises `Inconclusive`: they were never announced."""

    def known() -> bool:
        there = node.peers.get(NODE)
        return there is not None and there.available and set(actions) <= set(there.actions())

    if not await until(known, within_s):
        raise Inconclusive(f"the client has not announced {', '.join(actions)}", id="never-told")


async def reachable(broker: Moleculer, node: Node) -> None:
    """Without a server nodes find each other by gossip: wait until the client knows the peer."""
    if broker.transporter != "tcp":
        return
    with suppress(WaitTimeout):
        await broker.wait_for_async(kind="GossipResponse", tap=Tap.SENT, timeout=8.0)
    await settled(node, 3.0)


async def settled(node: Node, within_s: float = 1.0, target: str = NODE) -> None:
    """The client has taken in what the peer has said so far: packets are handled in their order.

    A client that answers no PING gets the time instead.
    """
    before = len(node.heard(Pong))
    node.send("PING", target, time=wall_ms(node), id=node.core.new_id())
    await until(lambda: len(node.heard(Pong)) > before, within_s)


def wall_ms(node: Node) -> int:
    """Milliseconds since 1970, on the clock that the fake and the client share."""
    return round(node.core.wall(now()) * 1000)


def raw(node: Node, command: str, values: Any, target: str = NODE) -> None:
    """Publish JSON in place of a packet; nothing is added."""
    node.send_raw(command, msgspec.json.encode(values), target)


def now() -> float:
    """The time of the event loop, seconds."""
    return asyncio.get_running_loop().time()


def limit(period_s: float) -> float:
    """How long something may take that the requirement gives this period."""
    return period_s * 1.2 + 0.25


async def until(condition: Callable[[], Any], within_s: float) -> bool:
    """Wait for something; whether it came."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while not condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


# calls of the client


def node_timeout(client: Client, calls_s: float = CALL_S) -> dict[str, float]:
    """The option of ``connect`` for a library with one time-out for all calls of a node."""
    if client.takes("mol.call", "timeout_ms") or not client.takes("connect", "request_timeout_ms"):
        return {}
    return {"request_timeout_ms": round(calls_s * 1000)}


def call_timeout(client: Client, session: str, timeout_s: float) -> tuple[float, dict[str, float]]:
    """How long a call may take, and the argument that says so.

    Where one time-out is for all calls of a node, it was given as the node joined, and counts for each.
    """
    if client.takes("mol.call", "timeout_ms"):
        return timeout_s, {"timeout_ms": round(timeout_s * 1000)}
    return client.options_of(session).get("request_timeout_ms", timeout_s * 1000) / 1000, {}


def begin_call(
    client: Client,
    action: str,
    params: Any = None,
    timeout_s: float = CALL_S,
    *,
    session: str = "s1",
    **more: Any,
) -> Call:
    """Start a call; its time-out is the library's."""
    args = {"params": params} if params is not None else {}
    deadline_s, given = call_timeout(client, session, timeout_s)
    return client.begin("mol.call", deadline_s, session=session, action=action, **given, **args, **more)


async def call(
    client: Client, action: str, params: Any = None, timeout_s: float = CALL_S, **more: Any
) -> Result:
    """Call an action and wait for the end."""
    result = await begin_call(client, action, params, timeout_s, **more)
    client.results.append(result)
    return result


async def is_answered(
    client: Client, expect: Expect, criterion: str, action: str, params: Any = None, *, id: str, **more: Any
) -> Any:
    """A call ends well; the value of its data."""
    return expect.ok(await call(client, action, params, **more), criterion, id=id)["data"]


# requests to the client


async def ask(
    node: Node, action: str, params: Any = None, timeout_s: float = AT_ONCE_S, **fields: Any
) -> Any:
    """Call an action of the client from a peer; the data, or a `RemoteError`, or None in time."""
    future: Future[Any] = node.start_call(action, params, timeout=timeout_s, target=NODE, **fields)
    try:
        return await asyncio.wrap_future(future)
    except RemoteError as error:
        return error


async def serves(
    expect: Expect, node: Node, criterion: str, action: str = "s.echo", params: Any = None, *, id: str
) -> None:
    """The client answers a request of a peer at once, with the parameters."""
    given = {"n": 1} if params is None else params
    found = await ask(node, action, given)
    expect.that(not isinstance(found, RemoteError) and found == given, criterion, found, id=id)


def request(node: Node, action: str, params: Any = UNSET, **fields: Any) -> str:
    """Send a REQUEST by hand; returns its id."""
    id = fields.pop("id", None) or node.core.new_id()
    usual: dict[str, Any] = {
        "meta": {},
        "timeout": 0,
        "level": 1,
        "tracing": None,
        "parentID": None,
        "requestID": id,
    }
    values = {
        "id": id,
        "action": action,
        "params": params,
        **usual,
        "caller": None,
        "stream": False,
        **fields,
    }
    node.send("REQ", NODE, **{name: value for name, value in values.items() if value is not UNSET})
    return str(id)


def event(node: Node, name: str, data: Any, target: str = NODE, **fields: Any) -> str:
    """Send an EVENT by hand to the client, with all that a real node writes; returns its id.

    A member of `fields` that is UNSET is left out.
    """
    id = fields.pop("id", None) or node.core.new_id()
    nothing = dict.fromkeys(("tracing", "parentID", "caller", "needAck"))
    usual: dict[str, Any] = {"broadcast": False, "groups": UNSET, "meta": {}, "level": 1, "requestID": id}
    values = {"id": id, "event": name, "data": data, **usual, **nothing, **fields}
    node.send("EVENT", target, **{key: value for key, value in values.items() if value is not UNSET})
    return str(id)


def respond(node: Node, asked: Packet, **fields: Any) -> None:
    """Answer a request by hand; success unless `fields` say otherwise."""
    assert isinstance(asked, Request)
    values = {"id": asked.id, "meta": {}, "success": True, "data": None, **fields}
    target = str(asked.sender)
    node.send("RES", target, **{name: value for name, value in values.items() if value is not UNSET})


async def heard(
    node: Node, kind: type[Packet], count: int = 1, within_s: float = 3.0, skip: int = 0
) -> list[Any]:
    """Packets that reached a peer, after the first `skip`; as soon as there are `count`."""
    await until(lambda: len(node.heard(kind)) >= skip + count, within_s)
    return node.heard(kind)[skip:]


async def asked(node: Node, count: int = 1, within_s: float = 3.0, skip: int = 0) -> list[Request]:
    """Requests that reached a peer. Raises `Inconclusive`: they did not come."""
    found = await heard(node, Request, count, within_s, skip)
    if len(found) < count:
        raise Inconclusive(f"{len(found)} of {count} requests came", id="no-request")
    return found


def runs(client: Client, action: str = "", since: int = 0) -> list[str]:
    """The ids of the requests whose actions ran, as the adapter reports; from event `since` on."""
    found = [event for event in client.events[since:] if event.event == "note" and event["what"] == "action"]
    return [str(event["request"]) for event in found if action in ("", event["action"])]
