"""Each bundled adapter for BlazingMQ keeps the protocol, and does what its ops say, against the fake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.clients.adapter.messages import Kind, body_bytes, same_body
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.result import Result
from conformance.clients.adapters.registry import Client
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import AckStatus, Category
from fakebrokers.blazingmq.faults import refuse_open, refuse_put
from fakebrokers.core.session import HangUp
from fakebrokers.faults import delay, drop
from fakebrokers.journal import Tap
from tests.conformance.clients.adapter.bundled_clients import client_fixture, passes_the_self_test
from tests.eventually import PATIENCE_S

Go = Callable[..., Awaitable[Result]]
Q = "bmq://bmq.test.mem.priority/orders"
TURNS = ("openQueue", "closeQueue")
ALL_BYTES = {"b64": "AP8BAgMEBQYHCAkKCwwNDg+A"}
LARGE = {"gen": "rand", "seed": 1, "len": 60_000}
PROPERTIES = {
    "flag": {"type": "bool", "value": "true"},
    "count": {"type": "int64", "value": "9007199254740993"},
    "text": {"type": "string", "value": "grün"},
    "bytes": {"type": "binary", "value": {"b64": "AP8="}},
}

client = client_fixture("blazingmq")
#: The reference client opens again at once, which no scenario shows yet.
patient = client_fixture("blazingmq", "patient", without=("reference-blazingmq",))


def test_it_passes_the_self_test(client: Client) -> None:
    hello = passes_the_self_test(client, "blazingmq")
    assert hello.library_version == client.version


def drive(
    client: Client, script: Callable[[BlazingMQ, ProcessAdapter, Go], Awaitable[None]], **options: Any
) -> None:
    """Run a script with the session ``s``, where the queue ``q`` is open both ways."""

    async def main() -> None:
        async with BlazingMQ() as broker:
            adapter = ProcessAdapter(client.command, "blazingmq", env=client.env)
            await adapter.start()

            async def go(op: str, timeout_ms: float = PATIENCE_S * 1000, **args: Any) -> Result:
                return await adapter.call(op, args, timeout_ms)

            try:
                opening: Any = {"session": "s", "target": "q", "uri": Q, "flags": ["read", "write"]}
                for result in (
                    await go("connect", session="s", endpoints=[broker.where], options=options),
                    await go("bmq.open_queue", **opening, options={"max_unconfirmed_messages": 7}),
                    await go("subscribe", session="s", sub="c", target="q", on_message={"mode": "event"}),
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


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_post_consume_and_confirm(client: Client, compression: str) -> None:
    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        for body in (ALL_BYTES, LARGE):
            more: Any = {"properties": PROPERTIES, "compression": compression}
            posted = await go("publish", session="s", target="q", body=body, **more)
            assert (posted.ok, posted.value["outcome"]) == (True, "acked"), str(posted)
        first, second = await adapter.wait_messages("c", 2, timeout_s=PATIENCE_S)
        assert same_body(first.body, body_bytes(ALL_BYTES))
        assert same_body(second.body, body_bytes(LARGE))
        assert first.position == broker.messages(Q)[0].guid.hex().upper()
        assert (first.meta["uri"], first.meta["properties"]) == (Q, PROPERTIES)
        assert (await go("settle", sub="c", ref=first.ref, how="ack")).ok
        await broker.wait_for_async(kind="CONFIRM")
        assert len(broker.messages(Q)) == 1
        assert (await go("settle", sub="c", ref=second.ref, how="nack")).kind is Kind.UNSUPPORTED
        again = {"max_unconfirmed_messages": 9, "consumer_priority": 2}
        assert (await go("bmq.configure_queue", session="s", target="q", options=again)).ok
        assert (await go("unsubscribe", sub="c")).ok
        assert (await go("bmq.close_queue", session="s", target="q")).ok
        after = await go("publish", session="s", target="q", body=ALL_BYTES)
        assert after.kind is Kind.CLOSED, str(after)
        assert (await go("close", session="s")).ok
        assert (await go("state", session="s")).value["open"] is False

    drive(client, script, compression=compression)


def test_what_could_not_be_opened_is_closed_before_it_is_opened_again(patient: Client) -> None:
    """However long the broker takes to take the consumer back; who does not open again does nothing wrong."""

    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        mark = broker.journal.last_seq
        broker.faults.add(
            drop(kind="configureStream", nth=1, scope="run"),
            delay(0.5, kind="configureStreamResponse", nth=1, scope="run"),
        )
        opening: Any = {"session": "s", "target": "r", "uri": Q + "2", "flags": ["read"], "options": {}}
        failed = await go("bmq.open_queue", timeout_ms=500, **opening)
        assert failed.kind is Kind.TIMEOUT, str(failed)
        again = await go("bmq.open_queue", **opening)
        sent = [r.kind for r in broker.journal.select(since=mark, tap=Tap.RECEIVED) if r.kind in TURNS]
        assert sent[:1] == ["openQueue"]
        assert sent == ["openQueue", "closeQueue", "openQueue"] if again.ok else "openQueue" not in sent[1:]

    drive(patient, script)


def test_refusals_say_what_the_broker_said(client: Client) -> None:
    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        broker.faults.add(refuse_put(AckStatus.LIMIT_BYTES, first=1), refuse_open(Category.E_NOT_READY))
        posted = await go("publish", session="s", target="q", body=ALL_BYTES)
        assert (posted.kind, posted.code, posted.outcome) == (Kind.REFUSED, "LIMIT_BYTES", "nacked")
        opening: Any = {"session": "s", "target": "r", "uri": Q + "2", "flags": ["write"], "options": {}}
        opened = await go("bmq.open_queue", **opening)
        assert (opened.kind, opened.code) == (Kind.REFUSED, Category.E_NOT_READY)
        nothing = await go("publish", session="s", target="q", body={"text": ""})
        assert nothing.kind is Kind.INVALID, str(nothing)

    drive(client, script)


def test_the_loss_of_the_connection_is_an_event(client: Client) -> None:
    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        broker.refuse()
        broker.kill(how=HangUp.FIN)
        event = await adapter.event("session", timeout_s=PATIENCE_S, what="connection_lost")
        assert event is not None
        assert (await go("state", session="s")).value["open"] is False

    drive(client, script)


def test_what_comes_before_the_subscription_is_kept_for_it(client: Client) -> None:
    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        broker.publish(Q + "2", b"early")
        opening: Any = {"session": "s", "target": "r", "uri": Q + "2", "flags": ["read"], "options": {}}
        assert (await go("bmq.open_queue", **opening)).ok
        await broker.wait_for_async(kind="PUSH")
        await asyncio.sleep(0.1)
        assert (await go("subscribe", session="s", sub="d", target="r")).ok
        taken = await go("next", sub="d", max=5, wait_ms=PATIENCE_S * 1000)
        assert [body_bytes(m["body"]) for m in taken.value["messages"]] == [b"early"]

    drive(client, script)


def test_a_post_that_nobody_waits_for(client: Client) -> None:
    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        sent = await go("publish", session="s", target="q", body=ALL_BYTES, wait=False)
        assert sent.value["outcome"] == "sent"
        (put,) = await broker.wait_for_async(kind="PUT")
        assert not put.frame.messages[0].wants_ack  # type: ignore[union-attr]

    drive(client, script)


def test_a_session_callback_may_raise(client: Client) -> None:
    async def script(broker: BlazingMQ, adapter: ProcessAdapter, go: Go) -> None:
        assert (await go("raise_next", callback="session")).value == {"armed": True}
        broker.refuse()
        broker.kill(how=HangUp.RST)
        assert await adapter.event("session", timeout_s=PATIENCE_S, what="connection_lost")
        assert (await go("state", session="s")).value["open"] is False

    drive(client, script)
