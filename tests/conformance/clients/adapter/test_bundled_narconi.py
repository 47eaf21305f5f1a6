"""Each bundled adapter for Narconi keeps the protocol, and does what its ops say, against the fake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.clients.adapter.messages import Kind, same_body
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.result import Result
from conformance.clients.adapters.registry import Client
from fakebrokers import Narconi
from fakebrokers.faults import drop, rewrite
from tests.conformance.clients.adapter.bundled_clients import client_fixture, passes_the_self_test
from tests.eventually import PATIENCE_S, eventually_async

Go = Callable[..., Awaitable[Result]]
ALL_BYTES = {"b64": "AP8BAgMEBQYHCAkKCwwNDg+A"}
LARGE = {"gen": "rand", "seed": 1, "len": 60_000}


client = client_fixture("narconi")
# the standard library of Go has no WebSocket, and neither of the two adapters has the roles that need one
socket_client = client_fixture("narconi", "socket_client", without=("narconi-go", "narconi-java"))


def test_it_passes_the_self_test(client: Client) -> None:
    passes_the_self_test(client, "narconi")


def drive(client: Client, script: Callable[[Narconi, ProcessAdapter, Go], Awaitable[None]]) -> None:
    """Run a script with the session ``s`` and the queue ``orders``."""

    async def main() -> None:
        async with Narconi() as broker:
            adapter = ProcessAdapter(client.command, "narconi", env=client.env)
            await adapter.start()

            async def go(op: str, **args: Any) -> Result:
                return await adapter.call(op, args, PATIENCE_S * 1000)

            try:
                endpoint = f"{broker.host}:{broker.port}"
                options = {"project": "gold"}
                for result in (
                    await go("connect", session="s", endpoints=[endpoint], options=options),
                    await go("narc.ensure_queue", session="s", target="orders"),
                ):
                    assert result.ok, f"{result}{adapter.stderr_tail()}"
                await script(broker, adapter, go)
                assert (await adapter.reset()).ok
                await broker.wait_for_async(kind="closed", count=len(broker.journal.select(kind="accepted")))
                assert adapter.violations == []
                assert await adapter.shutdown() == 0
            finally:
                await adapter.kill()

    asyncio.run(main())


def test_http(client: Client) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        headers = {"Content-Type": "image/png", "x-msg-x-n": "1"}
        sent = await go("narc.post", session="s", target="orders", body=ALL_BYTES, headers=headers)
        assert (sent.ok, sent.value["outcome"]) == (True, "acked"), str(sent)
        message = (await go("narc.take", session="s", target="orders")).value["message"]
        assert same_body(message["body"], bytes([0, 255, *range(1, 16), 128]))
        assert message["headers"] == headers
        assert message["redelivered"] is False
        assert (await go("narc.take", session="s", target="orders")).value == {"message": None}
        missing = await go("narc.take", session="s", target="elsewhere")
        assert (missing.kind, missing.code) == (Kind.REFUSED, 404)
        assert (await go("narc.delete_queue", session="s", target="orders")).ok

    drive(client, script)


@pytest.mark.parametrize("value", ["", "soon"])
def test_what_the_server_leaves_empty_is_not_left_out(client: Client, value: str) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        broker.publish("gold", "orders", b"m")
        reported = tuple((name, value) for name in ("x-msg-redelivered", "x-msg-timestamp"))
        more = (("Content-Type", "text/plain"), ("Content-Length", "1"))
        broker.faults.add(rewrite({"headers": (*reported, *more)}, kind="HttpDeliver", nth=1, scope="run"))
        taken = await go("narc.take", session="s", target="orders")
        assert taken.ok, str(taken)
        assert taken.value["message"]["redelivered"] is False
        assert taken.value["message"]["ts"] is None

    drive(client, script)


def test_a_close_ends_what_is_asked_over_http(client: Client) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        broker.faults.add(drop(kind="HttpEmpty", direction="out", nth=1, scope="run"))
        taking = adapter.begin("narc.take", {"session": "s", "target": "orders"}, 2 * PATIENCE_S * 1000)
        await broker.wait_for_async(kind="HttpConsume")
        assert (await go("close", session="s")).ok
        taken = await asyncio.wait_for(taking, PATIENCE_S)
        assert taken.kind in (Kind.CLOSED, Kind.CONNECTION), str(taken)

    drive(client, script)


def test_publish_consume_settle_and_drain(socket_client: Client) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        for body in (ALL_BYTES, LARGE):
            sent = await go("publish", session="s", target="orders", body=body, headers={"x-msg-x-n": "1"})
            assert (sent.ok, sent.value["outcome"]) == (True, "acked"), str(sent)
        options = {"ack": True, "limit": 2}
        started = await go("subscribe", session="s", sub="c", target="orders", options=options)
        assert started.ok, str(started)

        async def both_came() -> bool:
            await go("next", sub="c", max=10, wait_ms=100)
            return len(adapter.messages("c")) == 2

        await eventually_async(both_came)
        first, second = adapter.messages("c")
        assert same_body(first.body, bytes([0, 255, *range(1, 16), 128]))
        assert (first.position, first.headers["x-msg-x-n"]) == ("1", "1")
        assert second.body["len"] == LARGE["len"]
        assert broker.unacked("gold", "orders") == 2
        for message in (first, second):
            assert (await go("settle", sub="c", ref=message.ref, how="ack")).ok
        assert (await go("settle", sub="c", ref=first.ref, how="ack")).kind is Kind.INVALID
        assert (await go("unsubscribe", sub="c", drain=True)).ok
        assert broker.unacked("gold", "orders") == 0
        assert (await go("close", session="s")).ok
        assert (await go("state", session="s")).value["open"] is False

    drive(socket_client, script)


def test_an_overdue_confirm_costs_the_websocket(socket_client: Client) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        broker.faults.add(drop(kind="WsConfirm", direction="out", nth=1, scope="run"))
        args = {"session": "s", "target": "orders", "body": ALL_BYTES}
        overdue = await adapter.call("publish", args, 700)
        assert (overdue.kind, overdue.outcome) == (Kind.TIMEOUT, "unknown"), str(overdue)
        assert (await go("publish", **args)).outcome == "acked"
        assert len({record.connection for record in broker.journal.select(kind="WsPublish")}) == 2

    drive(socket_client, script)


def test_many_at_once_keep_their_order(socket_client: Client) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        bodies = [f"message {number}" for number in range(300)]
        calls = [go("publish", session="s", target="orders", body={"text": body}) for body in bodies]
        results = await asyncio.gather(*calls)
        assert {result.outcome for result in results} == {"acked"}
        assert [message.payload.decode() for message in broker.messages("gold", "orders")] == bodies

    drive(socket_client, script)


def test_a_graceful_end_that_nobody_helps_ends_in_time(socket_client: Client) -> None:
    async def script(broker: Narconi, adapter: ProcessAdapter, go: Go) -> None:
        broker.publish("gold", "orders", b"left alone")
        started = await go("subscribe", session="s", sub="c", target="orders", options={"ack": True})
        assert started.ok, str(started)
        await broker.wait_for_async(kind="WsDeliver")
        ending = await adapter.call("unsubscribe", {"sub": "c", "drain": True}, 700)
        assert ending.kind is Kind.TIMEOUT, str(ending)
        await broker.wait_for_async(kind="closed")
        assert broker.unacked("gold", "orders") == 0

    drive(socket_client, script)
