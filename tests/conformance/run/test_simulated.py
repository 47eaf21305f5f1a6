"""Stock clients in this process: what they leave is theirs, and what harness and fakes leave is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from types import MethodType
from typing import Any

import pytest

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.kit import AdapterBase, op
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import reference, without_sockets
from conformance.rules import judge
from conformance.run import inprocess, simulated
from conformance.run.case import Case
from conformance.run.inprocess import run, run_in_memory
from conformance.run.material import material_of
from conformance.run.pace import SLACK_S
from conformance.run.simulated import NeedsProcess, is_stock
from conformance.run.specs import Injection, Spec
from conformance.run.trace import Trace
from conformance.search.systematic.alone import load

PROTOCOL = "rabbitmq-stream"
PUBLISH = Spec(PROTOCOL, "publish")
Reference: Any = reference(PROTOCOL)  # speaks through the loop's connections, as stock clients do

#: What a client leaves behind, or does after its end: the rules whose proofs are run again here.
LEFT = (
    *("close-ends", "no-growth", "op-ends", "loss-ends-close"),
    *("comes-back", "heeds-goodbyes", "uses-what-it-has"),
)


def names(client: type[AdapterBase], spec: Spec) -> set[str]:
    return {finding.name for finding in judge(run(client, spec))}


@pytest.mark.parametrize(
    ("protocol", "base"),
    [
        *((PROTOCOL, base) for base in ("both", "rounds", "nodes", "outage", "stood-still", "closing")),
        *(("narconi", base) for base in ("both", "rounds", "herd")),
        *(("blazingmq", base) for base in ("bodies", "both", "rounds")),
    ],
)
def test_a_correct_client_passes(protocol: str, base: str) -> None:
    case = run(reference(protocol), Spec(protocol, base))
    assert case.slack_s == SLACK_S
    assert case.conns
    assert judge(case) == []


PROOFS = {rule: proof for rule, proof in load().invariants.items() if rule in LEFT}


@pytest.mark.parametrize("rule", PROOFS)
def test_what_a_client_leaves_is_found(rule: str) -> None:
    proof = PROOFS[rule]
    assert rule in names(find_mutant(proof.spec.protocol, proof.mutant).adapter, proof.spec)


class Leaves(Reference):
    """Leaves something when it closes; counts its tasks as stock clients do."""

    def __init__(self) -> None:
        super().__init__()
        self.ops["stats"] = MethodType(AdapterBase._stats, self)
        closes = self.ops["close"]

        async def close(session: str) -> Any:
            found = await closes(session)
            self.leave()
            return found

        self.ops["close"] = close

    def leave(self) -> None:
        """What is left: nothing."""


async def forever() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("nobody sees this")


class LeavesATask(Leaves):
    def leave(self) -> None:
        self.kept = asyncio.ensure_future(forever())


class LeavesAnError(Leaves):
    def leave(self) -> None:
        asyncio.ensure_future(fail())  # noqa: RUF006 - nobody keeps it


async def connect_later() -> None:
    await asyncio.sleep(1)
    await asyncio.get_running_loop().create_connection(asyncio.Protocol, PROTOCOL, 5552)


class LeavesAConnection(Leaves):
    def leave(self) -> None:
        self.kept = asyncio.ensure_future(connect_later())


class LeavesARequest(Leaves):
    def leave(self) -> None:
        async def state(session: str) -> Any:
            return {"open": False, "pending": 1}

        self.ops["state"] = state


@pytest.mark.parametrize(
    ("client", "rule"),
    [
        (Leaves, None),
        (LeavesATask, "close-ends"),
        (LeavesAnError, "no-unhandled"),
        (LeavesAConnection, "close-ends"),
        (LeavesARequest, "pending-is-true"),
    ],
)
def test_each_thing_that_is_left(client: type[AdapterBase], rule: str | None) -> None:
    assert names(client, PUBLISH) == ({rule} if rule else set())


def played(work: Callable[[Adapter], Awaitable[None]], client: type[AdapterBase] = Reference) -> Case:
    """A run in which the harness does something of its own."""

    async def whole(adapter: Adapter) -> Case:
        await adapter.start()
        await work(adapter)
        await adapter.kill()
        return Case(PUBLISH, material_of(PROTOCOL), [], [], ())

    return run_in_memory(client, PROTOCOL, Trace(lambda: 0.0), whole, 8.0)


def test_what_the_harness_leaves_is_not_the_clients() -> None:
    counts: list[int] = []
    mine: list[Any] = []

    async def work(adapter: Adapter) -> None:
        counts.append((await adapter.call("stats")).value["tasks"])
        mine.extend(asyncio.ensure_future(each) for each in (forever(), fail()))
        await asyncio.sleep(1)
        mine.pop()
        asyncio.get_running_loop().call_soon(int, "no number")
        await asyncio.sleep(1)
        counts.append((await adapter.call("stats")).value["tasks"])

    assert played(work).complaints == ""
    assert counts[0] == counts[1]


def test_a_reset_ends_the_clients_tasks_and_no_others() -> None:
    class Begins(Leaves):
        @op("begin")
        async def begin(self) -> None:
            self.kept = asyncio.ensure_future(forever())

    seen: list[int] = []

    async def work(adapter: Adapter) -> None:
        mine = asyncio.ensure_future(forever())
        for op_name in ("stats", "begin", "stats", "reset", "stats"):
            result = await adapter.call(op_name)
            seen.extend([result.value["tasks"]] if op_name == "stats" else [])
        assert not mine.done()

    played(work, Begins)
    assert seen == [seen[0], seen[0] + 1, seen[0]]


def test_a_client_that_starts_again_is_another_process() -> None:
    async def work(adapter: Adapter) -> None:
        await adapter.restart()
        assert (await adapter.call("echo", {"body": {"text": "tea"}})).ok

    played(work)


class Sleeps(Leaves):
    """Asks for something real, and keeps the refusal to itself."""

    def leave(self) -> None:
        try:
            time.sleep(0)
        except Exception:
            return


def test_a_run_that_asks_for_something_real_needs_a_process() -> None:
    with pytest.raises(NeedsProcess, match="a sleep that really waits"):
        run(Sleeps, PUBLISH)


class Busy(Leaves):
    def leave(self) -> None:
        while True:
            pass


class Exits(Leaves):
    def leave(self) -> None:
        raise SystemExit(3)


def test_a_run_that_does_not_end_needs_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "STOCK_STUCK_S", 0.2)
    with pytest.raises(NeedsProcess, match="not done after"):
        run(Busy, PUBLISH)


def test_a_client_that_ends_the_process_needs_one_of_its_own() -> None:
    with pytest.raises(NeedsProcess, match="the client has ended its process"):
        run(Exits, PUBLISH)


def test_equal_runs_are_equal() -> None:
    spec = Spec(PROTOCOL, "both", (Injection("c1", "out", 12, "rst"),))
    one, other = run(Reference, spec), run(Reference, spec)
    assert [(row.t, row.what, row.connection) for row in one.rows] == [
        (row.t, row.what, row.connection) for row in other.rows
    ]


def test_who_is_a_stock_client() -> None:
    assert is_stock(Reference)
    assert not is_stock(without_sockets(Reference))


def test_a_generator_ends_with_a_run_that_was_given_up() -> None:
    ended = []

    async def waits() -> int:
        more: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            return await more
        finally:
            more.add_done_callback(lambda _: None)
            more.cancel()  # a closed loop refuses to call back
            ended.append(True)

    async def messages() -> AsyncIterator[int]:
        yield await waits()

    async def read() -> None:
        async for _ in messages():
            raise AssertionError

    async def work() -> None:
        loop: Any = asyncio.get_running_loop()
        reading = loop.create_task(read())
        await asyncio.sleep(0.1)
        raise loop.refuse(f"something real besides {reading}", "do without")

    with pytest.raises(NeedsProcess):
        simulated.run(work())
    assert ended == [True]
