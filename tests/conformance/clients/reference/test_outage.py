"""A reference client comes back after an outage of any length: thousands of attempts in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.reference.blazingmq.client import Pauses
from conformance.clients.reference.kit import Backoff
from conformance.clients.reference.kit.network import Memory
from conformance.clients.reference.registry import reference, without_sockets
from fakebrokers.core import virtual
from fakebrokers.protocol import find_protocol
from fakebrokers.pzq.memory import MemorySocket

ATTEMPTS = 5000

QUEUE = "bmq://bmq.test.mem.priority/q"
SEND: tuple[str, dict[str, Any]] = ("publish", {"target": "q", "body": {"text": "a"}, "wait": True})

#: What each client does once it is connected, so that it holds a connection; and after the outage.
BEFORE: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "rabbitmq-stream": [("rmqs.create", {"target": "q"}), SEND],
    "blazingmq": [],
    "narconi": [("narc.ensure_queue", {"target": "q"}), SEND],
    "moleculer": [],
    "pzq": [SEND],
    "redis": [],
}
AFTER: dict[str, tuple[str, dict[str, Any]]] = {
    "rabbitmq-stream": SEND,
    "blazingmq": ("bmq.open_queue", {"target": "q", "uri": QUEUE, "flags": ["write"], "options": {}}),
    "narconi": SEND,
    "moleculer": ("mol.emit", {"event": "a"}),
    "pzq": SEND,
    "redis": SEND,
}


@pytest.mark.parametrize("pauses", [Backoff, Pauses])
def test_a_pause_grows_to_its_limit_and_no_further(pauses: type[Backoff]) -> None:
    backoff = pauses(Random(1), 0.3, 4.0)
    delays = []
    for backoff.failures in range(ATTEMPTS):
        delays.append(backoff.delay())
    assert delays[0] <= 0.45 and max(delays) <= 6.0
    assert min(delays[4:]) >= 2.0


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the attempts to connect that fail: over the network of the kit, and inside ZeroMQ."""
    found: Counter[str] = Counter()
    dial, reconnect = Memory.dial, MemorySocket.reconnect

    async def dialled(network: Memory, endpoint: str, make: Any) -> Any:
        try:
            return await dial(network, endpoint, make)
        except OSError:
            found["failed"] += 1
            raise

    def reconnected(socket: MemorySocket) -> None:
        found["failed"] += not socket._listener.listening
        reconnect(socket)

    monkeypatch.setattr(Memory, "dial", dialled)
    monkeypatch.setattr(MemorySocket, "reconnect", reconnected)
    return found


@pytest.mark.parametrize("protocol", BEFORE)
def test_a_client_comes_back_after_thousands_of_attempts(protocol: str, attempts: Counter[str]) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference(protocol)), protocol)
        await adapter.start()

        async def do(op: str, **args: Any) -> Any:
            result = await adapter.call(op, {"session": "s", **args}, 20_000)
            assert result.ok, (op, result)
            return result.value

        async with find_protocol(protocol).load()(memory=True) as broker:
            where = getattr(broker, "where", f"{broker.host}:{broker.port}")
            endpoints = where if isinstance(where, dict) else [where]
            await do("connect", endpoints=endpoints, options={"auto_reconnect": True})
            for op, args in BEFORE[protocol]:
                await do(op, **args)
            broker.crash()
            while attempts["failed"] < ATTEMPTS:
                await asyncio.sleep(100)  # virtual
            broker.restart()
            await asyncio.sleep(20)
            assert (await do("state"))["open"]
            op, args = AFTER[protocol]
            await do(op, **args)
        await adapter.kill()

    virtual.run(work())
