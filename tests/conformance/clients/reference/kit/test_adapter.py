"""The adapter of any reference client, on a protocol made up for the test."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.reference.kit import (
    ClientError,
    Memory,
    Network,
    Reference,
    ReferenceAdapter,
    Runtime,
    adapter_of,
    seconds,
)
from fakebrokers.core import virtual

Json = dict[str, Any]


class Echo:
    """Says back what is said to it, half a second later."""

    buffered_bytes = 7
    timers = 2

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.pending = 0

    async def connect(self, timeout: float | None) -> None:
        if timeout == 0:
            raise ClientError("timeout", "no time")
        self.runtime.callbacks.report("connected")

    async def close(self, timeout: float | None) -> None:
        self.abort()

    def abort(self) -> None:
        self.runtime.end()

    @property
    def is_open(self) -> bool:
        return not self.runtime.is_closed

    async def say(self, text: str) -> str:
        self.pending += 1
        try:
            await asyncio.sleep(0.5)
        finally:
            self.pending -= 1
        if text == "no":
            raise ClientError("refused", "no means no", code=5)
        return self.heard(text)

    def heard(self, text: str) -> str:
        return text


class EchoOps:
    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> Echo:
        return runtime.part(Echo)(runtime)

    @kit.op("publish")
    async def publish(
        self, session: str, body: Json, wait: bool, request_id: int, timeout_ms: float | None = None
    ) -> Json:
        client: Echo = self.adapter.session(session)

        async def work() -> Json:
            text = kit.body_bytes(body).decode()
            return {"key": await client.runtime.tasks.within(seconds(timeout_ms), client.say(text))}

        return await self.adapter.published(work(), wait, request_id)


class Shouting(Echo):
    def heard(self, text: str) -> str:
        return text.upper()


ECHO = Reference("pzq", EchoOps, ("publisher",), "clock_offset", facts={"transporters": ["none"]})


def _args(**more: Any) -> Json:
    return {"session": "s", **more}


async def _adapter(cls: type[ReferenceAdapter]) -> InProcessAdapter:
    adapter = InProcessAdapter(cls, "pzq")
    await adapter.start()
    return adapter


def test_it_has_the_ops_of_the_protocol_and_those_that_all_have() -> None:
    made = adapter_of(ECHO)()
    assert {"publish", "connect", "close", "abort", "state", "set_clock", "stats"} <= set(made.ops)
    assert "set_clock" not in adapter_of(ECHO._replace(caps=""))().ops


def test_its_hello_has_the_facts_of_the_protocol() -> None:
    async def work() -> None:
        made = adapter_of(ECHO)()
        lines: list[Any] = []
        made.start(lines.append)
        answer = await made.attempt({"op": "hello", "args": {"version": 1, "protocol": "pzq"}})
        assert answer["result"]["transporters"] == ["none"]
        assert answer["result"]["library"] == "reference-pzq"

    virtual.run(work())


def test_sessions_outcomes_and_counters() -> None:
    async def work() -> None:
        adapter = await _adapter(adapter_of(ECHO))
        assert (await adapter.call("connect", _args(endpoints=[]), 1000)).ok
        said = (await adapter.call("publish", _args(body={"text": "hi"}), 1000)).value
        assert said == {"outcome": "acked", "key": "hi", "meta": {}}
        assert not (await adapter.call("publish", _args(body={"text": "no"}), 1000)).ok
        late = await adapter.call("publish", _args(body={"text": "hi"}), 100)
        assert late.error is not None and late.error.kind == "timeout"
        sent = await adapter.call("publish", _args(body={"text": "no"}, wait=False), 1000)
        assert sent.value["outcome"] == "sent"
        assert (await adapter.call("state", _args(), 1000)).value == {"open": True, "pending": 1}
        stats = (await adapter.call("stats", {}, 1000)).value
        assert {name: stats[name] for name in ("pending", "buffered_bytes", "timers")} == {
            "pending": 1,
            "buffered_bytes": 7,
            "timers": 2,
        }
        await asyncio.sleep(1.0)
        [outcome] = [one for one in adapter.events if one.event == "outcome"]
        assert (outcome["outcome"], outcome["code"]) == ("nacked", 5)
        assert (await adapter.call("close", _args(), 1000)).ok
        assert (await adapter.call("state", _args(), 1000)).value["open"] is False
        await adapter.kill()

    virtual.run(work())


def test_a_session_that_is_connected_again_drops_the_former_client() -> None:
    made = adapter_of(ECHO)()

    async def work() -> None:
        made.start(lambda line: None)
        await made.attempt({"op": "connect", "args": _args(endpoints=[])})
        former = made.sessions["s"]
        answer = await made.attempt({"op": "connect", "args": _args(endpoints=[]), "timeout_ms": 0})
        assert answer["error"]["kind"] == "timeout"
        assert former.runtime.is_closed
        assert made.sessions["s"] is not former

    virtual.run(work())


def test_without_listen_nothing_is_told() -> None:
    for listen, reported in ((True, ["connected"]), (False, [])):
        lines: list[Json] = []

        async def work(listen: bool = listen, lines: list[Json] = lines) -> None:
            made = adapter_of(ECHO)()
            made.start(lines.append)
            await made.attempt({"op": "connect", "args": _args(endpoints=[], options={"listen": listen})})

        virtual.run(work())
        assert [line["what"] for line in lines if line.get("event") == "session"] == reported


def test_a_mutant_replaces_one_part() -> None:
    async def work() -> None:
        adapter = await _adapter(adapter_of(ECHO, [Shouting], "Shouting"))
        await adapter.call("connect", _args(endpoints=[]), 1000)
        said = (await adapter.call("publish", _args(body={"text": "hi"}), 1000)).value
        assert said["key"] == "HI"
        await adapter.kill()

    virtual.run(work())


def test_where_it_runs_decides_over_its_network() -> None:
    made = adapter_of(ECHO)
    assert type(made().network({})) is Network
    assert type(type("InMemory", (made,), {"is_memory": True})().network({})) is Memory
