"""Each bundled adapter for Moleculer keeps the protocol, and does what its ops say, with a fake node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.clients.adapter.messages import Kind, body_bytes, same_body
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.result import Result
from conformance.clients.adapters.registry import Client
from fakebrokers import Moleculer
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import Context, MoleculerError, Service, Stream
from tests.conformance.clients.adapter.bundled_clients import client_fixture, passes_the_self_test
from tests.eventually import PATIENCE_S, eventually_async

Go = Callable[..., Awaitable[Result]]
Script = Callable[[Moleculer, Node, ProcessAdapter, Go], Awaitable[None]]

client = client_fixture("moleculer")
# the adapter of moleculer-java leaves streams out, and the library cannot take a service back
complete = client_fixture("moleculer", "complete", without=("moleculer-java",))


def test_it_passes_the_self_test(client: Client) -> None:
    hello = passes_the_self_test(client, "moleculer")
    assert {"caller", "service", "emitter", "listener"} == set(hello.roles)
    assert "nats" in hello.transporters
    assert "JSON" in hello.serializers


def fail(ctx: Context) -> Any:
    raise MoleculerError("bad", 422, "BAD", name="MoleculerClientError")


def digest(ctx: Context) -> Any:
    assert ctx.stream is not None
    return [len(b"".join(ctx.stream.chunks)), len(ctx.stream.chunks)]


async def knows_the_peer(go: Go) -> None:
    """Wait for it: not every library does so when it connects."""

    async def has_met_it() -> bool:
        return "peer" in [each["id"] for each in (await go("mol.registry")).value["nodes"]]

    await eventually_async(has_met_it, "the client meets the peer")


def drive(client: Client, script: Script, **settings: Any) -> None:
    """Run a script with the session ``s`` of the node ``client``, next to the fake node ``peer``."""
    heard: list[Any] = []
    actions = {
        "echo": lambda ctx: ctx.params,
        "fail": fail,
        "down": lambda ctx: Stream([b"fa", b"ke"]),
        "up": digest,
        "heard": lambda ctx: heard,
    }

    async def main() -> None:
        async with Moleculer(**settings) as broker:
            node = broker.node(
                "peer", [Service("p", actions, {"shop.*": lambda ctx: heard.append(ctx.params)})]
            )
            adapter = ProcessAdapter(client.command, "moleculer", env=client.env)
            await adapter.start()

            async def go(op: str, **args: Any) -> Result:
                return await adapter.call(op, {"session": "s", **args}, PATIENCE_S * 1000)

            try:
                options = {"node_id": "client", "transporter": broker.url}
                result = await go("connect", endpoints=[broker.where], options=options)
                assert result.ok, f"{result}{adapter.stderr_tail()}"
                await knows_the_peer(go)
                await script(broker, node, adapter, go)
                assert (await adapter.reset()).ok
                assert adapter.violations == []
                assert await adapter.shutdown() == 0
            finally:
                await adapter.kill()

    asyncio.run(main())


def test_calls(client: Client) -> None:
    async def script(broker: Moleculer, node: Node, adapter: ProcessAdapter, go: Go) -> None:
        state = (await go("state")).value
        assert (state["open"], state["pending"] or 0) == (True, 0)  # not every library tells how many
        answered = await go("mol.call", action="p.echo", params={"n": 1}, meta={"m": 2}, timeout_ms=91_500)
        assert answered.ok, str(answered)
        assert {"from": "peer", **answered.value} == {"data": {"n": 1}, "meta": {"m": 2}, "from": "peer"}
        assert (node.requests[0].timeout, node.requests[0].meta) == (91_500, {"m": 2})
        refused = await go("mol.call", action="p.fail")
        assert refused.error is not None
        assert (refused.kind, refused.code, refused.error.type) == (Kind.REFUSED, 422, "BAD")
        nobody = await go("mol.call", action="nowhere.x")
        assert (nobody.kind, nobody.code) == (Kind.REFUSED, 404)
        pinged = await go("mol.ping", node="peer")
        assert (pinged.value["from"], pinged.value["rtt_ms"] >= 0) == ("peer", True)
        (row,) = [each for each in (await go("mol.registry")).value["nodes"] if each["id"] == "peer"]
        assert (row["available"], row["services"]) == (True, ["p"])
        assert (await go("close")).ok
        assert (await go("state")).value["open"] is False

    drive(client, script)


def test_streams(complete: Client) -> None:
    async def script(broker: Moleculer, node: Node, adapter: ProcessAdapter, go: Go) -> None:
        down = (await go("mol.call", action="p.down")).value["data"]
        assert same_body(down["stream"], b"fake")
        up = await go("mol.call", action="p.up", stream={"gen": "zero", "len": 3000}, chunk=1000)
        assert up.ok, str(up)
        assert up.value["data"] == [3000, 3]
        drawn = [event["bytes"] for event in adapter.events if event["what"] == "drawn"]
        assert drawn == [1000, 2000, 3000]
        served = {"read": {"read_stream": True}, "give": {"stream": {"text": "abcdef"}, "chunk": 4}}
        assert (await go("mol.serve", service="s", actions=served)).ok
        read = await node.call_async("s.read", stream=Stream([b"xy", b"z"]), target="client")
        assert same_body(read["stream"], b"xyz")
        given = await node.call_async("s.give", target="client")
        assert b"".join(given.chunks) == b"abcdef"

    drive(complete, script)


def test_services(client: Client) -> None:
    async def script(broker: Moleculer, node: Node, adapter: ProcessAdapter, go: Go) -> None:
        thrown = {"throw": {"message": "no tea", "code": 418, "type": "TEAPOT"}}
        served = {"echo": "echo", "fixed": {"return": [1]}, "bad": thrown, "slow": {"sleep_ms": 50}}
        assert (await go("mol.serve", service="s", actions=served)).ok
        unknown = await go("mol.serve", service="t", actions={"x": {"special": "no such"}})
        assert unknown.kind is Kind.UNSUPPORTED
        assert await node.call_async("s.echo", {"n": 1}, target="client") == {"n": 1}
        assert await node.call_async("s.fixed", target="client") == [1]
        assert await node.call_async("s.slow", target="client") == "slept"
        with pytest.raises(RemoteError, match="no tea") as caught:
            await node.call_async("s.bad", target="client")
        assert (caught.value.error["code"], caught.value.error["type"]) == (418, "TEAPOT")
        await adapter.event("note", timeout_s=PATIENCE_S, what="action", action="s.bad")
        ran = [event["action"] for event in adapter.events if event["what"] == "action"]
        assert ran == ["s.echo", "s.fixed", "s.slow", "s.bad"]

    drive(client, script)


def test_a_service_is_taken_back(complete: Client) -> None:
    async def script(broker: Moleculer, node: Node, adapter: ProcessAdapter, go: Go) -> None:
        assert (await go("mol.serve", service="s", actions={"echo": "echo"})).ok
        assert await node.call_async("s.echo", {"n": 1}, target="client") == {"n": 1}
        assert (await go("mol.unserve", service="s")).ok
        with pytest.raises(RemoteError, match="not found"):
            await node.call_async("s.echo", target="client")

    drive(complete, script)


def test_events(client: Client) -> None:
    async def script(broker: Moleculer, node: Node, adapter: ProcessAdapter, go: Go) -> None:
        assert (await go("mol.emit", event="shop.open", data={"n": 1})).ok
        assert (await go("mol.broadcast", event="shop.open", data={"n": 2})).ok
        assert (await go("mol.call", action="p.heard")).value["data"] == [{"n": 1}, {"n": 2}]
        listened = await go("mol.listen", sub="l", event="user.*", group="g", on_message={"mode": "event"})
        assert listened.ok, str(listened)
        node.send("EVENT", "client", id="1", event="user.new", data={"n": 3}, groups=["g"], broadcast=False)
        (message,) = await adapter.wait_messages("l", 1, 5.0)
        assert json.loads(body_bytes(message.body)) == {"n": 3}
        assert message.meta["event"] == "user.new"

    drive(client, script)
