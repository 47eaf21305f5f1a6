"""The reference client of Narconi: correct, small, and made of parts that mutants replace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.channels import Callback, Publishers, Subscription
from conformance.clients.reference.narconi.settings import Addresses, Settings
from conformance.clients.reference.narconi.websockets import WebSockets


class NarconiClient:
    """Queues and messages over HTTP (`http`), publishing and consuming over WebSockets.

    Nothing is repeated in silence. With `Settings.auto_reconnect` connections that were lost are made anew.
    """

    buffered_bytes = 0
    timers = 0

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self.runtime = runtime
        addresses = runtime.part(Addresses)(settings.project)
        self.http = runtime.part(HttpApi)(runtime, settings, addresses)
        self.websockets = runtime.part(WebSockets)(runtime, settings, addresses)
        self.publishers = runtime.part(Publishers)(runtime, self.websockets)
        self.subscriptions: list[Subscription] = []

    async def connect(self, timeout: float | None = None) -> None:
        """Nothing to do: connections are made when they are needed."""

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return not self.runtime.is_closed

    @property
    def pending(self) -> int:
        """Published messages without an outcome."""
        return self.publishers.pending

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        """See `Publishers.publish`."""
        await self.publishers.publish(queue, body, headers)

    async def subscribe(
        self,
        queue: str,
        callback: Callback,
        *,
        ack: bool = False,
        limit: Any = None,
        encoding: str | None = None,
    ) -> Subscription:
        """Consume over a WebSocket; callbacks run one after the other."""
        query: dict[str, str] = {"ack": ""} if ack else {}
        if limit is not None:
            query["limit"] = str(limit)
        if encoding is not None:
            query["encoding"] = encoding
        subscription = self.runtime.part(Subscription)(self.websockets, queue, callback, query, ack=ack)
        self.subscriptions.append(subscription)
        await self.websockets.open(subscription.socket)
        return subscription

    async def close(self, timeout: float | None = None) -> None:
        """Close every connection properly; those that publish wait for confirms, for half the time."""
        self.runtime.is_closed = True
        patience_s = (timeout or DEFAULT_TIMEOUT_S) / 2
        await asyncio.gather(*(one.close() for one in self.subscriptions), self._publish_rest(patience_s))
        self.abort()

    async def _publish_rest(self, patience_s: float) -> None:
        clock = self.runtime.clock
        until = clock.now() + patience_s
        while self.pending and clock.now() < until:
            await asyncio.sleep(0.01)
        await asyncio.gather(*(one.socket.close() for one in self.publishers.standing()))

    def abort(self) -> None:
        """Let go of everything."""
        self.runtime.is_closed = True
        self.websockets.abort()
        self.http.abort()
        self.runtime.end()
