"""Client processes that are kept warm, and replaced after anything but a pass."""

from __future__ import annotations

from collections.abc import Callable

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import Hello

MakeAdapter = Callable[[], Adapter]


class AdapterPool:
    """Hands out started adapters.

    Args:
        make: Makes an adapter that has not been started.
    """

    def __init__(self, make: MakeAdapter) -> None:
        self._make = make
        self._idle: list[Adapter] = []
        self._out: set[Adapter] = set()
        self.started = 0

    async def hello(self) -> Hello:
        """What the client says about itself. Raises `AdapterFailed`."""
        adapter = await self.take()
        await self.give_back(adapter, healthy=True)
        return adapter.hello

    async def take(self, *, fresh: bool = False) -> Adapter:
        """An adapter in the state after hello."""
        if self._idle and not fresh:
            adapter = self._idle.pop()
            self._out.add(adapter)
            return adapter
        adapter = self._make()
        self._out.add(adapter)  # so that close() ends it even if the start is cut short
        self.started += 1
        await adapter.start()
        return adapter

    async def give_back(self, adapter: Adapter, *, healthy: bool) -> None:
        """Keep it for the next scenario, or end it."""
        if healthy and adapter.alive and adapter.hello.restart == "never" and not adapter.violations:
            answer = await adapter.reset()
            if answer.ok:
                self._out.discard(adapter)
                self._idle.append(adapter)
                return
        await adapter.kill()
        self._out.discard(adapter)

    async def close(self) -> None:
        """End all of them."""
        for adapter in (*self._idle, *self._out):
            await adapter.kill()
        self._idle.clear()
        self._out.clear()
