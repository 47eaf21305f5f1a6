"""An adapter class in the suite's own process, on a virtual clock: time-outs of an hour take no time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase, Failure, body_bytes, op
from conformance.clients.adapter.messages import Kind
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError
from tests.marked import PASSWORD

from .toy_adapter import Confused, Future, Mute, Toy

Script = Callable[[InProcessAdapter], Coroutine[Any, Any, None]]


def with_toy(script: Script, make: Callable[[], Toy] = Toy) -> None:
    async def main() -> None:
        adapter = InProcessAdapter(make, "rabbitmq-stream")
        await adapter.start()
        try:
            await script(adapter)
            assert adapter.violations == []
        finally:
            await adapter.kill()

    virtual.run(main())


def test_ops_and_errors() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        assert adapter.hello.library == "toy"
        assert (await adapter.call("connect", {"session": "s"})).ok
        assert (await adapter.call("state", {"session": "s"})).value == {"open": True, "pending": None}
        message = {"session": "s", "target": "refuse", "body": {"text": "hi"}}
        refused = await adapter.call("publish", message)
        assert (refused.kind, refused.code, refused.outcome) == (Kind.REFUSED, 17, "nacked")
        lost = await adapter.call("publish", {**message, "target": "lost"})
        assert (lost.kind, lost.outcome) == (Kind.CONNECTION, "unknown")
        missing = await adapter.call("publish", {"session": "s"})
        assert (missing.kind, missing.error and missing.error.text) == (
            Kind.INVALID,
            "publish needs target, body",
        )
        closed = await adapter.call("close", {"session": "nobody"})
        assert (closed.kind, closed.history) == (Kind.CLOSED, "fail")

    with_toy(script)


def test_a_hang_is_recorded_at_the_deadline_and_the_late_answer_kept() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        message = {"session": "s", "target": "slow", "body": {"text": "hi"}}
        result = await adapter.call("publish", message, timeout_ms=100)
        assert result.word == "hang"
        assert result.elapsed_ms == pytest.approx(100 * 1.2 + 250)
        assert result.late is None
        await asyncio.sleep(1)
        assert result.late is not None
        assert result.late.ok

    with_toy(script)


def test_a_very_long_deadline_costs_no_time() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        message = {"session": "s", "target": "forever", "body": {"text": "hi"}}
        call = adapter.begin("publish", message, timeout_ms=3_600_000)
        result = await call
        assert result.word == "hang"
        assert result.elapsed_ms == pytest.approx(3_600_000 * 1.2 + 250)
        assert call.done

    with_toy(script)


def test_a_cancelled_op_answers_cancelled() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        call = adapter.begin("publish", {"session": "s", "target": "forever", "body": {"text": "hi"}})
        assert (await adapter.cancel(call)).ok
        assert (await call).kind is Kind.CANCELLED
        assert (await adapter.cancel(call)).ok

    with_toy(script)


def test_messages_by_event() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        await adapter.call(
            "subscribe", {"session": "s", "sub": "c", "target": "q", "on_message": {"mode": "event"}}
        )
        publishing = adapter.begin("publish", {"session": "s", "target": "q", "body": {"text": "hi"}})
        (message,) = await adapter.wait_messages("c", 1, timeout_s=5)
        assert (message.sub, message.position, message.body) == ("c", "0", {"b64": "aGk="})
        assert (await publishing).ok
        mark = len(adapter.events)
        assert await adapter.event("message", timeout_s=5) is adapter.events[0]
        assert await adapter.event("message", timeout_s=5, after=mark) is None
        assert await adapter.event("message", timeout_s=5, sub="d") is None
        assert await adapter.wait_messages("c", 2, timeout_s=5) == [message]

    with_toy(script)


def test_messages_by_next() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        await adapter.call("subscribe", {"session": "s", "sub": "c", "target": "q"})
        assert (await adapter.call("next", {"sub": "c", "max": 5, "wait_ms": 1000})).value == {"messages": []}
        waiting = adapter.begin("next", {"sub": "c", "max": 2, "wait_ms": 1000})
        for _ in range(3):
            await adapter.call("publish", {"session": "s", "target": "q", "body": {"text": "hi"}})
        assert len((await waiting).value["messages"]) == 1
        await adapter.call("next", {"sub": "c", "max": 5})
        assert [message.ref for message in adapter.messages("c")] == ["m1", "m2", "m3"]

    with_toy(script)


def test_what_the_script_wants_inside_the_callback() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        inner = {"op": "state", "args": {"session": "s"}}
        wish = {"mode": "event", "sleep_ms": 500, "raise_on": [2], "do": [inner]}
        await adapter.call("subscribe", {"session": "s", "sub": "c", "target": "q", "on_message": wish})
        message = {"session": "s", "target": "q", "body": {"text": "hi"}}
        first = await adapter.call("publish", message)
        assert first.elapsed_ms == pytest.approx(500)
        done = await adapter.event("done", timeout_s=1)
        assert done is not None
        assert (done["op"], done["ok"], done["result"]) == ("state", True, {"open": False, "pending": None})
        second = await adapter.call("publish", message)
        assert second.error is not None
        assert "raise_on 2" in second.error.text
        assert (await adapter.call("raise_next", {"callback": "message", "times": 1})).value == {
            "armed": True
        }
        assert (await adapter.call("raise_next", {"callback": "confirm"})).value == {"armed": False}
        assert "raise_next message" in str(await adapter.call("publish", message))
        assert (await adapter.call("publish", message)).ok

    with_toy(script)


def test_reset_forgets_everything_and_ends_what_is_open() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        await adapter.call("connect", {"session": "s"})
        open_call = adapter.begin("publish", {"session": "s", "target": "forever", "body": {"text": "hi"}})
        assert (await adapter.reset()).ok
        assert (await open_call).kind is Kind.CANCELLED
        assert adapter.events == []
        assert adapter.transcript.lines == []
        assert (await adapter.call("state", {"session": "s"})).value["open"] is False

    with_toy(script)


def test_the_transcript_keeps_order_and_no_secrets() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        await adapter.reset()
        options = {"user": "u", "password": PASSWORD}
        await adapter.call("connect", {"session": "s", "options": options})
        await adapter.call("echo", {"body": {"text": "x" * 9000}})
        lines = [json.loads(line) for line in adapter.transcript.dump()]
        assert [line["way"] for line in lines] == ["out", "in", "out", "in"]
        assert lines[0]["line"]["args"]["options"] == {"user": "u", "password": "***"}
        assert lines[2]["line"]["args"]["body"]["len"] == 9000
        assert options["password"] == PASSWORD

    with_toy(script)


def test_an_adapter_that_has_ended_answers_nothing() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        waiting = adapter.begin("publish", {"session": "s", "target": "forever", "body": {"text": "hi"}})
        await adapter.kill()
        assert not (await waiting).ok
        assert (await adapter.call("state", {"session": "s"})).word == "crashed"
        assert not adapter.alive

    with_toy(script)


def test_no_hello_is_an_error_of_the_adapter() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        raise AssertionError("must not come here")

    with pytest.raises(AdapterFailed, match="no hello from the adapter: hello hang"):
        with_toy(script, Mute)


def test_a_foreign_protocol_is_refused() -> None:
    async def main() -> None:
        await InProcessAdapter(Toy, "pzq").start()

    with pytest.raises(AdapterFailed, match="version 1 for rabbitmq-stream only"):
        virtual.run(main())


def test_steps_on_a_process_need_one() -> None:
    async def script(adapter: InProcessAdapter) -> None:
        with pytest.raises(UsageError, match="only a child process"):
            adapter.pause()
        assert adapter.facts() is None

    with_toy(script)


@pytest.mark.parametrize(
    ("kind", "definite"),
    [
        ("invalid", True),
        ("unsupported", True),
        ("refused", True),
        ("auth", True),
        ("timeout", False),
        ("closed", False),
    ],
)
def test_kinds_say_whether_they_are_definite(kind: str, definite: bool) -> None:
    assert Failure(kind).definite is definite
    assert Failure(kind, definite=not definite).report()["definite"] is not definite


def test_what_reconnects_may_be_a_list() -> None:
    class Partly(Toy):
        reconnects = ("locator",)

    async def hello() -> Any:
        asked = {"op": "hello", "args": {"version": 1, "protocol": "rabbitmq-stream"}}
        return (await Partly().attempt(asked))["result"]["caps"]

    caps = asyncio.run(hello())
    assert caps["auto_reconnect"] == ["locator"]
    assert caps["concurrent"] is True


class Counting(AdapterBase):
    """Its answers are its caller's: whatever stands in ``body`` is the result."""

    protocols = ("rabbitmq-stream",)

    @op("publish")
    async def publish(self, args: dict[str, Any]) -> Any:
        return args["body"]

    @op("publish_many")
    async def publish_many(self, args: dict[str, Any]) -> Any:
        return args["body"]

    @op("state")
    async def state(self) -> dict[str, Any]:
        return {"open": False}


def with_counting(script: Callable[[InProcessAdapter, Counting], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        counting = Counting()
        adapter = InProcessAdapter(lambda: counting, "rabbitmq-stream")
        await adapter.start()
        await script(adapter, counting)
        await adapter.kill()

    virtual.run(main())


def test_what_an_answer_means_is_told_with_its_line_and_member() -> None:
    async def script(adapter: InProcessAdapter, counting: Counting) -> None:
        result = await adapter.call("publish", {"body": {"outcome": "lost"}})
        problem = "line 5, publish: result.outcome: expected one of acked, sent, got 'lost'"
        assert adapter.violations == [problem]
        assert result.error is not None
        assert (result.word, result.error.text) == ("internal", f"the adapter broke its protocol: {problem}")
        counting.emit("session", session="s", what="tired")
        await adapter.call("state", {"session": "s"})
        reported = "line 6, 'session': the event.what: expected one of connected, "
        assert adapter.violations[1].startswith(reported)

    with_counting(script)


def test_acknowledgements_are_counted() -> None:
    rows = {"outcomes": [{"outcome": "acked"}, {"outcome": "acked"}, {"outcome": "nacked"}]}
    batch = {"messages": [1, 2, 3], "body": rows}

    async def script(adapter: InProcessAdapter, counting: Counting) -> None:
        await adapter.call("publish", {"body": {"outcome": "acked"}})
        assert adapter.acked == 1
        await adapter.call("publish_many", batch)
        assert adapter.acked == 3
        await adapter.call("publish_many", {**batch, "subentry": "gzip"})
        assert adapter.acked == 4, "a batch that is confirmed as one counts once"
        sent = await adapter.call("publish", {"wait": False, "body": {"outcome": "sent"}})
        counting.emit("outcome", id=sent.id, outcome="acked")
        await adapter.call("state", {"session": "s"})
        assert adapter.acked == 5
        assert adapter.violations == []

    with_counting(script)


class Settling(Toy):
    """Notes what it has settled."""

    settles = "manual"

    def __init__(self) -> None:
        super().__init__()
        self.settled: list[str] = []

    @op("publish")
    async def publish(self, session: str, target: str, body: dict[str, Any]) -> dict[str, Any]:
        await self.subs["c"].deliver(body_bytes(body), native=target)
        return {"outcome": "acked", "key": None}

    @op("settle")
    async def settle(self, sub: str, ref: str, how: str) -> None:
        self.settled.append(self.subscription(sub).native[ref])


@pytest.mark.parametrize(("auto_settle", "kept"), [("ack", 0), ("none", 3)])
def test_what_the_kit_settles_itself_is_not_kept(auto_settle: str, kept: int) -> None:
    made = Settling()

    async def script(adapter: InProcessAdapter) -> None:
        assert (await adapter.call("connect", {"session": "s"})).ok
        plan = {"mode": "event", "auto_settle": auto_settle}
        await adapter.call("subscribe", {"session": "s", "sub": "c", "target": "t", "on_message": plan})
        for _ in range(3):
            await adapter.call("publish", {"session": "s", "target": "t", "body": {"text": "x"}})
        assert len(made.settled) == 3 - kept
        assert len(made.subs["c"].native) == kept

    with_toy(script, lambda: made)


def test_a_hello_of_another_version_is_none() -> None:
    async def main() -> None:
        adapter = InProcessAdapter(Future, "rabbitmq-stream")
        with pytest.raises(AdapterFailed, match=r"result\.version: expected 1, got 2"):
            await adapter.start()
        assert not adapter.alive

    virtual.run(main())


def test_a_bug_of_the_adapter_is_no_failure_of_the_library() -> None:
    async def main() -> None:
        adapter = InProcessAdapter(Confused, "rabbitmq-stream")
        await adapter.start()
        message = {"session": "s", "target": "lost", "body": {"text": "hi"}}
        assert (await adapter.call("publish", message)).crashed
        said = "a bug of its own: AttributeError: module 'mylib' has no attribute 'Refused'"
        assert adapter.violations == [said]
        assert not adapter.alive

    virtual.run(main())
