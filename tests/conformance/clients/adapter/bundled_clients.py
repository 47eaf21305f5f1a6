"""What the tests of the bundled clients share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any

import pytest

from conformance.clients.adapter.check import check
from conformance.clients.adapter.messages import Hello, body_bytes
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters.registry import Client, bundled, find
from tests.eventually import PATIENCE_S

#: It is in Python and has no wheel: a compiler is needed (the extra ``compiled``).
COMPILED = "rbfly"


def marks_of(client: Client) -> pytest.MarkDecorator | tuple[()]:
    """In which lane it is: one in Python needs nothing else, and the crates of one in Rust take minutes."""
    if client.language == "python" and client.name != COMPILED:
        return ()
    return pytest.mark.nightly if client.language == "rust" else pytest.mark.full


def in_their_lanes(clients: Iterable[Client]) -> list[Any]:
    """The clients' names as parameters of a test."""
    return [pytest.param(client.name, marks=marks_of(client)) for client in clients]


def client_fixture(protocol: str, name: str = "client", without: Collection[str] = ()) -> Any:
    """A fixture: each bundled client of the protocol in turn, but for those that lack what is tested."""
    fit = [client for client in bundled(protocol) if client.name not in without]

    @pytest.fixture(name=name, params=in_their_lanes(fit))
    def each(request: pytest.FixtureRequest) -> Client:
        found = find(request.param)
        if not found.runnable:
            pytest.skip(f"missing: {'; '.join(found.missing)}")
        return found

    return each


def passes_the_self_test(client: Client, protocol: str) -> Hello:
    """Assert it, and that the client is the library that it says it is; returns what it said."""
    report = asyncio.run(check(client.command, protocol, env=client.env, hello_s=60))
    problems = [(check.name, check.problem) for check in report.checks if not check.ok]
    assert not problems, problems
    assert report.hello is not None
    assert report.hello.library == client.library
    assert report.hello.library_version
    return report.hello


class Driven:
    """An adapter with the session ``s`` at a fake."""

    def __init__(self, broker: Any, adapter: ProcessAdapter) -> None:
        self.broker = broker
        self.adapter = adapter

    async def go(self, op: str, **args: Any) -> dict[str, Any]:
        """An op that succeeds, and its value."""
        result = await self.adapter.call(op, {"session": "s", **args}, PATIENCE_S * 1000)
        assert result.ok, f"{result}{self.adapter.stderr_tail()}"
        return result.value or {}

    async def listen(self, target: str, **options: Any) -> None:
        """Subscribe as ``c``."""
        events = {"mode": "event"}
        await self.go("subscribe", sub="c", target=target, options=options, on_message=events)

    async def heard(self, count: int) -> list[bytes]:
        """The bodies of the first messages of ``c``."""
        await self.adapter.wait_messages("c", count, PATIENCE_S)
        return [body_bytes(message.body) for message in self.adapter.messages("c")]


def drive(client: Client, broker: Any, script: Callable[[Driven], Awaitable[None]]) -> None:
    """Run a script against a fake, and assert that nothing of the client is left."""

    async def main() -> None:
        async with broker:
            adapter = ProcessAdapter(client.command, broker.protocol.name, env=client.env)
            driven = Driven(broker, adapter)
            await adapter.start()
            try:
                await driven.go("connect", endpoints=[f"{broker.host}:{broker.port}"])
                await script(driven)
                assert (await adapter.reset()).ok
                accepted = len(broker.journal.select(kind="accepted"))
                await broker.wait_for_async(kind="closed", count=accepted)
                assert adapter.violations == []
                assert await adapter.shutdown() == 0
            finally:
                await adapter.kill()

    asyncio.run(main())
