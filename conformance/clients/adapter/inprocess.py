"""A client in the suite's own process: the same adapter class, on the same loop, virtual clocks included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from threading import get_ident
from typing import Any, TypeVar

import msgspec

from conformance.clients.adapter.base import OWN_BUG, Adapter
from conformance.clients.adapter.host import ClientHost
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Event, Request, Response

T = TypeVar("T")


class InProcessAdapter(Adapter):
    """Runs an adapter class without a process; `make` is called once per start.

    Lines are handed over as values. Steps on the process (`pause`, `facts`) do not exist here.

    Args:
        host: Where the client runs, on the loop of a simulation. Without one nobody can tell what on the loop
            is the client's.
    """

    def __init__(
        self, make: Callable[[], AdapterBase], protocol: str, host: ClientHost | None = None
    ) -> None:
        super().__init__(protocol)
        self._make = make
        self._host = host
        self._adapter: AdapterBase | None = None

    async def _open(self) -> None:
        if self._host is not None:
            self._host.begin()
        adapter = self._adapter = self._as_client(self._make)
        loop, ours, here = asyncio.get_running_loop(), get_ident(), copy_context()

        def write(line: Mapping[str, Any]) -> None:
            if has_ended:
                return
            self._written(line)
            soon = loop.call_soon if get_ident() == ours else loop.call_soon_threadsafe
            soon(self._receive, line, context=here)

        def end(bug: Exception) -> None:
            """Do what a process does that leaves with exit code 3."""
            has_ended.append(bug)
            self._adapter = None
            self._end_host()
            self.violate(f"{OWN_BUG}: {type(bug).__name__}: {bug}")
            self._gone()

        has_ended: list[Exception] = []
        adapter.on_bug = end
        self._as_client(lambda: adapter.start(write, belongings=self._host))

    def _as_client(self, act: Callable[[], T]) -> T:
        return act() if self._host is None else self._host.run(act)

    def _end_host(self) -> None:
        if self._host is not None:
            self._host.kill()

    def _written(self, line: Mapping[str, Any]) -> None:
        """The client has written a line, now; on its own thread."""
        if self.onlooker is not None and "n" in line:
            self.onlooker.wrote(line["event"] if "event" in line else line["id"], line["n"])

    def _came(self, line: Response | Event) -> None:
        """The onlooker got it when the client wrote the line."""

    def _send(self, request: Request) -> None:
        adapter = self._adapter
        assert adapter is not None
        self._as_client(lambda: adapter.receive(msgspec.to_builtins(request)))

    def _stop_reading(self) -> None:
        """It is our own code: nothing has to be kept from it."""

    @property
    def alive(self) -> bool:
        return self._adapter is not None

    async def shutdown(self) -> None:
        """Let the client close everything."""
        if self.alive:
            await self.call("shutdown")
            await self.kill()

    async def kill(self) -> None:
        """Drop the client. What it left on the loop ends with its host, or by its own `clear`."""
        if self._adapter is not None:
            adapter, self._adapter = self._adapter, None
            if self._host is None:
                await adapter.attempt({"op": "reset"})
            self._end_host()
            self._gone()
