"""The reference client of BlazingMQ, in memory, over sockets and as a child process; mutants walk too."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.messages import Kind, body_bytes
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops
from conformance.clients.adapter.result import Result
from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.clients.reference.blazingmq.client import Pauses
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.blazingmq.posts import CORRELATION_MAX, Posts
from conformance.clients.reference.registry import command, reference, without_sockets
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import Put, PutMessage
from fakebrokers.blazingmq.properties import Property, PropertyType, read_content
from fakebrokers.core import virtual
from fakebrokers.core.session import HangUp
from fakebrokers.faults import delay, drop, reply, rst
from tests.conformance.clients.reference.blazingmq.happy_path import Q, walk

PROTOCOL = "blazingmq"
Go = Callable[..., Awaitable[Result]]


#: No broker can read what it opens with.
UNREADABLE = "names-its-own-language"


@pytest.mark.parametrize(
    "client",
    [each for each in mutants_of(PROTOCOL) if each.name != UNREADABLE],
    ids=lambda client: client.name,
)
def test_a_mutant_walks_the_happy_path(client: Mutant) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(client.adapter), PROTOCOL)
        await adapter.start()
        async with BlazingMQ(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.kill()

    virtual.run(work())


def test_in_memory() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)
        await adapter.start()
        assert missing_ops(adapter.hello, PROTOCOL) == []
        async with BlazingMQ(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.kill()

    virtual.run(work())


@pytest.mark.parametrize("is_process", [False, True], ids=["in process", "as a child process"])
def test_over_sockets(is_process: bool) -> None:
    async def work() -> None:
        env = {"PYTHONPATH": ":".join(filter(None, sys.path))}
        adapter: Adapter
        if is_process:
            adapter = ProcessAdapter(command(PROTOCOL), PROTOCOL, env=env)
        else:
            adapter = InProcessAdapter(reference(PROTOCOL), PROTOCOL)
        await adapter.start()
        with BlazingMQ() as broker:
            await walk(adapter, broker)
        await adapter.kill()

    asyncio.run(work())


def drive(script: Callable[[BlazingMQ, Adapter, Go], Awaitable[None]], **options: Any) -> None:
    """Run a script in memory; the session ``s`` has the queue ``q`` open both ways."""

    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)
        await adapter.start()

        async def go(op: str, timeout_ms: float = 5000, **args: Any) -> Result:
            return await adapter.call(op, args, timeout_ms)

        async with BlazingMQ(memory=True) as broker:
            for result in (
                await go("connect", session="s", endpoints=[broker.where], options=options),
                await go(
                    "bmq.open_queue", session="s", target="q", uri=Q, flags=["read", "write"], options={}
                ),
                await go("subscribe", session="s", sub="c", target="q", on_message={"mode": "event"}),
            ):
                assert result.ok, str(result)
            await script(broker, adapter, go)
        await adapter.kill()

    virtual.run(work())


def test_a_post_waits_for_its_queue_after_a_loss() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.kill(how=HangUp.RST)
        posted = await go("publish", session="s", target="q", body={"text": "after"})
        assert posted.outcome == "acked", str(posted)
        assert [r.connection for r in broker.journal.select(kind="PUT")] == ["c2"]
        (message,) = await adapter.wait_messages("c", 1, 2.0)
        assert (await go("settle", sub="c", ref=message.ref, how="ack")).ok

    drive(script)


def test_a_connection_that_ends_as_it_begins_is_no_session() -> None:
    """The end may come between the broker's answer and whoever waits for it."""

    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(rst(kind="brokerResponse", direction="out", first=3, scope="run"))
        broker.kill(how=HangUp.RST)
        posted = await go("publish", timeout_ms=30_000, session="s", target="q", body={"text": "after"})
        assert posted.outcome == "acked", str(posted)

    drive(script)


def test_a_request_that_timed_out_is_not_pending() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(drop(kind="openQueueResponse"))
        opened = await go("bmq.open_queue", 500, session="s", target="r", uri=Q + "2", flags=["write"])
        assert opened.kind is Kind.TIMEOUT
        assert (await go("state", session="s")).value == {"open": True, "pending": 0}

    drive(script)


def test_without_reconnect_it_stays_away() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.kill(how=HangUp.FIN)
        assert await adapter.event("session", timeout_s=1, what="connection_lost")
        begun = asyncio.get_running_loop().time()
        posted = await go("publish", session="s", target="q", body={"text": "after"}, timeout_ms=500)
        assert posted.error is not None and posted.error.definite, str(posted)
        assert asyncio.get_running_loop().time() == begun, "nobody opens the queue again: nothing to wait for"
        await asyncio.sleep(5)
        assert len(broker.journal.select(kind="accepted")) == 1

    drive(script, auto_reconnect=False)


@pytest.mark.parametrize(
    ("name", "value"), [("max_unconfirmed_messages", 2**63), ("consumer_priority", -(2**31) - 1)]
)
def test_limits_that_do_not_fit_are_refused(name: str, value: int) -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        options = {name: str(value)}
        refused = await go("bmq.configure_queue", session="s", target="q", options=options)
        assert refused.kind is Kind.INVALID
        assert len(broker.journal.select(kind="configureStream")) == 1

    drive(script)


def test_what_comes_before_the_callback_goes_first() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        uri = Q + "early"
        for number in range(20):
            broker.publish(uri, b"m%d" % number)
        opened = adapter.begin(
            "bmq.open_queue", {"session": "s", "target": "e", "uri": uri, "flags": ["read"]}, 5000
        )
        assert (await opened).ok
        assert (await go("subscribe", session="s", sub="e", target="e", on_message={"mode": "event"})).ok
        messages = await adapter.wait_messages("e", 20, 2.0)
        assert [body_bytes(each.body) for each in messages] == [b"m%d" % number for number in range(20)]

    drive(script)


def test_a_queue_whose_last_answer_comes_with_the_end_waits_for_the_next_connection() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(rst(kind="configureStreamResponse", direction="out", first=1, scope="run"))
        broker.kill(how=HangUp.RST)
        await asyncio.sleep(0.5)
        posted = await go("publish", timeout_ms=30_000, session="s", target="q", body={"text": "after"})
        assert posted.outcome == "acked", str(posted)

    drive(script)


def test_a_queue_that_is_not_open_again_takes_no_posts() -> None:
    """Whoever has waited for it is told that it is closed."""

    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(drop(kind="openQueueResponse"))
        broker.kill(how=HangUp.RST)
        posted = await go("publish", timeout_ms=30_000, session="s", target="q", body={"text": "after"})
        assert (posted.kind, posted.outcome) == (Kind.CLOSED, "nacked"), str(posted)
        assert not broker.journal.select(kind="PUT")

    drive(script)


def test_a_queue_that_cannot_be_configured_again_is_given_back() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(reply(-6, kind="configureStream"))
        broker.kill(how=HangUp.RST)
        assert await adapter.event("session", timeout_s=9, what="target_closed")
        await broker.wait_for_async(kind="closeQueueResponse", timeout=5)

    drive(script)


def test_a_close_that_is_answered_late_has_closed_the_queue() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(delay(1.0, kind="closeQueueResponse"))
        closed = await go("bmq.close_queue", 500, session="s", target="q")
        assert closed.kind is Kind.TIMEOUT
        await asyncio.sleep(1)
        assert (await go("publish", session="s", target="q", body={"text": "x"})).kind is Kind.CLOSED
        assert (await go("close", session="s")).ok

    drive(script)


def test_a_callback_that_outlives_its_queue_confirms_nothing() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        uri = Q + "slow"
        assert (await go("bmq.open_queue", session="s", target="w", uri=uri, flags=["read"])).ok
        lazy = {"mode": "event", "sleep_ms": 200, "auto_settle": "ack"}
        assert (await go("subscribe", session="s", sub="w", target="w", on_message=lazy)).ok
        broker.publish(uri, b"m")
        broker.faults.add(delay(1.0, kind="disconnectResponse"))
        await asyncio.sleep(0.1)
        assert (await go("close", session="s")).ok
        assert not broker.journal.select(kind="CONFIRM")

    drive(script)


def test_what_was_not_acknowledged_is_unknown_after_a_loss() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        broker.faults.add(drop(kind="ACK"))
        call = adapter.begin("publish", {"session": "s", "target": "q", "body": {"text": "x"}}, 9000)
        await broker.wait_for_async(kind="PUT")
        broker.kill(how=HangUp.RST)
        result = await call
        assert (result.kind, result.outcome) == (Kind.CONNECTION, "unknown")

    drive(script)


def test_correlation_ids_wrap_and_skip_those_in_use() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        posts: Posts = adapter._adapter.sessions["s"].posts  # type: ignore[attr-defined]
        posts.last_id = CORRELATION_MAX - 1
        posts.pending[1] = posts.pending.get(1)  # type: ignore[assignment]
        assert [posts.next_id() for _ in range(3)] == [CORRELATION_MAX, 2, 3]
        posts.pending.clear()

    drive(script)


@pytest.mark.parametrize("new_style", [False, True])
@pytest.mark.parametrize("zlib_wanted", [False, True])
def test_contents_are_what_a_consumer_reads(new_style: bool, zlib_wanted: bool) -> None:
    properties = {"n": Property(PropertyType.INT64, -5), "text": Property(PropertyType.STRING, "grün")}
    payload = b"compressible " * 500
    packed = Contents().pack(payload, properties, zlib_wanted=zlib_wanted, new_style=new_style)
    assert packed.compression == int(zlib_wanted)
    assert (packed.schema_id != 0) == new_style
    assert len(packed.data) < len(payload) or not zlib_wanted
    found = read_content(
        packed.data, has_properties=True, schema_id=packed.schema_id, compression=packed.compression
    )
    assert (found.payload, dict(found.properties)) == (payload, properties)


def test_pauses_grow_and_never_shrink() -> None:
    pauses = Pauses(Random(3), 0.4, 60.0)
    found = []
    for _ in range(6):
        found.append(pauses.delay())
        pauses.failures += 1
    assert found == sorted(found)
    assert 0.3 < found[0] < 0.5


def test_puts_carry_what_the_journal_reads() -> None:
    async def script(broker: BlazingMQ, adapter: Adapter, go: Go) -> None:
        assert (await go("publish", session="s", target="q", body={"text": "x"}, wait=False)).ok
        (record,) = await broker.wait_for_async(kind="PUT")
        assert isinstance(record.frame, Put)
        message: PutMessage = record.frame.messages[0]
        assert (message.wants_ack, message.correlation_id, message.data) == (False, 0, b"x")

    drive(script)
