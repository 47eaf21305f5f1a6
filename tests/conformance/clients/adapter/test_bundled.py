"""Each bundled adapter keeps the protocol and does what its ops say, with its library against the fake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.clients.adapter.messages import Kind, Message, body_bytes, same_body
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.result import Result
from conformance.clients.adapters.registry import Client, bundled, find
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from tests.conformance.clients.adapter.bundled_clients import (
    client_fixture,
    in_their_lanes,
    passes_the_self_test,
)
from tests.eventually import PATIENCE_S, eventually_async

CLIENTS = bundled("rabbitmq-stream")
LARGE = {"gen": "rand", "seed": 1, "len": 9000}

#: Whose `publish_many` waits for confirms.
WITH_WAITING = ("rabbitmq-stream-go", "rabbitmq-stream-java", "rabbitmq-stream-js", "rstream")

Go = Callable[..., Awaitable[Result]]


client = client_fixture("rabbitmq-stream")


def test_it_passes_the_self_test(client: Client) -> None:
    hello = passes_the_self_test(client, "rabbitmq-stream")
    assert hello.library_version == client.version


def drive(
    client: Client,
    script: Callable[[ProcessAdapter, Go], Awaitable[None]],
    broker: RabbitMQStream | None = None,
    **options: Any,
) -> None:
    """Run a script with the session ``s`` connected to a fresh fake and the stream ``orders`` there."""
    broker = broker or RabbitMQStream(**options)

    async def main() -> None:
        async with broker:
            adapter = ProcessAdapter(client.command, "rabbitmq-stream", env=client.env)
            await adapter.start()

            async def go(op: str, timeout_ms: float = PATIENCE_S * 1000, **args: Any) -> Result:
                return await adapter.call(op, args, timeout_ms)

            try:
                endpoint = broker.url.rpartition("/")[2]
                for result in (
                    await go("connect", session="s", endpoints=[endpoint]),
                    await go("rmqs.create", session="s", target="orders"),
                ):
                    assert result.ok, f"{result}{adapter.stderr_tail()}"
                await script(adapter, go)
                assert (await adapter.reset()).ok
                assert adapter.violations == []
                assert await adapter.shutdown() == 0
            finally:
                await adapter.kill()

    asyncio.run(main())


def contents(messages: list[Message]) -> list[tuple[Any, bytes]]:
    return [(message.position, body_bytes(message.body)) for message in messages if "b64" in message.body]


def test_publish_and_consume(client: Client) -> None:
    async def script(adapter: ProcessAdapter, go: Go) -> None:
        for body in ({"text": "a"}, {"b64": "AP8="}, LARGE):
            result = await go("publish", session="s", target="orders", body=body)
            assert (result.ok, result.value["outcome"]) == (True, "acked"), str(result)
        wish = {"offset": {"type": "offset", "value": "1"}, "credit": 5}
        await go(
            "subscribe", session="s", sub="c", target="orders", options=wish, on_message={"mode": "event"}
        )
        first = await adapter.wait_messages("c", 2, timeout_s=PATIENCE_S)
        assert contents(first) == [("1", b"\x00\xff")]
        assert same_body(first[1].body, body_bytes(LARGE))
        many = [{"body": {"text": text}} for text in "xyz"]
        result = await go("publish_many", session="s", target="orders", messages=many)
        assert [end["outcome"] for end in result.value["outcomes"]] == ["acked"] * 3
        later = await adapter.wait_messages("c", 5, timeout_s=PATIENCE_S)
        assert contents(later[2:]) == [("3", b"x"), ("4", b"y"), ("5", b"z")]
        assert (await go("unsubscribe", sub="c")).ok
        assert (await go("state", session="s")).value["open"] is True
        assert (await go("close", session="s")).ok
        assert (await go("state", session="s")).value["open"] is False

    drive(client, script)


def test_an_outcome_that_nobody_waits_for_comes_as_an_event(client: Client) -> None:
    async def script(adapter: ProcessAdapter, go: Go) -> None:
        sent = await go("publish", session="s", target="orders", body={"text": "a"}, wait=False)
        assert sent.value["outcome"] == "sent"
        event = await adapter.event("outcome", timeout_s=PATIENCE_S, id=sent.id)
        assert event is not None
        assert event["outcome"] == "acked"

    drive(client, script)


@pytest.mark.parametrize("client", in_their_lanes(map(find, WITH_WAITING)), indirect=True)
def test_what_waits_for_a_confirm_ends_with_the_session(client: Client) -> None:
    async def script(adapter: ProcessAdapter, go: Go) -> None:
        if "rmqs.declare_publisher" in adapter.hello.ops:  # else the first message may wait for that
            assert (await go("rmqs.declare_publisher", session="s", target="orders")).ok
        many = adapter.begin(
            "publish_many", {"session": "s", "target": "orders", "messages": [{"body": {"text": "a"}}] * 3}
        )
        await eventually_async(lambda: len(broker.messages("orders")) == 3, "three messages are stored")
        assert not many.done
        assert (await go("close", session="s")).ok
        result = await many
        assert [end["outcome"] for end in result.value["outcomes"]] == ["unknown"] * 3

    lost = {"match": {"direction": "out", "role": "confirm"}, "effect": {"type": "drop"}}
    broker = RabbitMQStream(faults={"faults": [lost]})
    drive(client, script, broker)


def test_messages_wait_in_the_buffer(client: Client) -> None:
    async def script(adapter: ProcessAdapter, go: Go) -> None:
        await go("publish", session="s", target="orders", body={"text": "a"})
        await go("subscribe", session="s", sub="c", target="orders", options={"offset": {"type": "first"}})
        result = await go("next", sub="c", max=10, wait_ms=PATIENCE_S * 1000)
        assert [message["position"] for message in result.value["messages"]] == ["0"]
        assert contents(adapter.messages("c")) == [("0", b"a")]

    drive(client, script)


def test_the_end_of_a_callback_that_takes_time_is_told(client: Client) -> None:
    async def script(adapter: ProcessAdapter, go: Go) -> None:
        await go("publish", session="s", target="orders", body={"text": "a"})
        plan = {"mode": "event", "sleep_ms": 20}
        start = {"offset": {"type": "first"}}
        assert (
            await go("subscribe", session="s", sub="c", target="orders", options=start, on_message=plan)
        ).ok
        await eventually_async(lambda: any(event.event == "returned" for event in adapter.events))
        (message,) = adapter.messages("c")
        (returned,) = (event.fields for event in adapter.events if event.event == "returned")
        assert (returned["sub"], returned["ref"], returned["raised"]) == ("c", message.ref, False)

    drive(client, script)


def test_ops_of_the_protocol_that_it_declares(client: Client) -> None:
    async def script(adapter: ProcessAdapter, go: Go) -> None:
        whose = {"session": "s", "target": "orders", "name": "app"}
        ops = set(adapter.hello.ops)

        async def stored() -> bool:
            return (await go("rmqs.query_offset", **whose)).value == {"offset": 3}

        if "rmqs.metadata" in ops:
            result = await go("rmqs.metadata", session="s", targets=["orders", "nope"])
            assert {s["name"]: s["exists"] for s in result.value["streams"]} == {
                "orders": True,
                "nope": False,
            }
        if "rmqs.query_sequence" in ops:
            await go("publish", **whose, body={"text": "a"}, key="41")
            assert (await go("rmqs.query_sequence", **whose)).value == {"sequence": 41}
        if "rmqs.query_offset" in ops:
            await go("subscribe", **whose, sub="c", options={"name": "app"})
            assert (await go("rmqs.store_offset", **whose, offset=3)).ok
            await eventually_async(stored)
            nothing = await go("rmqs.query_offset", **{**whose, "name": "nobody"})
            assert (nothing.kind, nothing.code, nothing.history) == (Kind.REFUSED, 19, "fail")
        if "rmqs.declare_publisher" in ops:
            assert (await go("rmqs.declare_publisher", **whose)).ok
            assert (await go("rmqs.delete_publisher", **whose)).ok
        assert (await go("rmqs.delete", session="s", target="orders")).ok

    drive(client, script)


def test_after_a_reset_it_is_as_new(client: Client) -> None:
    """It waits for no goodbye of the broker."""
    broker = RabbitMQStream()

    async def script(adapter: ProcessAdapter, go: Go) -> None:
        await go("publish", session="s", target="orders", body={"text": "a"})
        facts = adapter.facts()
        broker.faults.add(drop(role="close", direction="out"))
        assert (await adapter.reset()).ok
        assert (await go("state", session="s")).value["open"] is False
        leaks = client.name == "rabbitmq-stream-rust"  # no connection of it is ever dropped: RMQS-5.21
        if not leaks and facts is not None and facts.fds is not None:
            most = facts.fds
            await eventually_async(lambda: (now := adapter.facts()) is not None and (now.fds or 0) < most)

    drive(client, script, broker)
