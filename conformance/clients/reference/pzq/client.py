"""The reference client: a producer, consumers and questions to the monitor of a PZQ."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.inquirer import Inquirer, Values
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Connector, Parts

TURNS = 6  #: of the loop, in which those who wait take their answers and report them


class PzqClient:
    """One PZQ; consumers may be at several.

    Args:
        endpoints: ZeroMQ addresses by role: ``receive``, ``monitor``, and ``send``, which may be a list: a
            consumer connects to each.
    """

    timers = 0

    def __init__(self, runtime: Runtime, endpoints: Mapping[str, Any]) -> None:
        self.runtime = runtime
        self.endpoints = endpoints
        self.connector = runtime.part(Connector)(runtime.network)
        self.producer = runtime.part(Producer)(runtime, self.connector, endpoints["receive"])
        self.inquirer = runtime.part(Inquirer)(runtime, self.connector, endpoints["monitor"])
        self.consumers: list[Consumer] = []

    async def connect(self, timeout: float | None = None) -> None:
        """Nothing to wait for: the sockets connect in the background."""

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return not self.runtime.is_closed

    @property
    def pending(self) -> int:
        """Messages that wait for their acknowledgement."""
        return len(self.producer.pending)

    @property
    def buffered_bytes(self) -> int:
        """Bodies that are kept here until they are acknowledged."""
        return self.producer.buffered_bytes

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        """See `Producer.publish`."""
        self._check_open()
        return await self.producer.publish(body, id, timeout)

    def subscribe(
        self, deliver_message: Callable[[Delivery], Awaitable[None]], *, filter_expired: bool = False
    ) -> Consumer:
        """See `Consumer`."""
        self._check_open()
        consumer = self.runtime.part(Consumer)(
            self.runtime,
            self.connector,
            self.endpoints["send"],
            deliver_message,
            filter_expired=filter_expired,
        )
        self.consumers.append(consumer)
        return consumer

    async def ask(self, timeout: float | None = None) -> Values:
        """See `Inquirer.ask`."""
        self._check_open()
        return await self.inquirer.ask(timeout)

    def _check_open(self) -> None:
        if self.runtime.is_closed:
            raise ClientError("closed", "the client is closed", definite=True)

    async def close(self, timeout: float | None = None) -> None:
        """End all sockets; waits only until those who publish have their outcome."""
        turns = TURNS if self.producer.pending else 0
        self.abort()
        for _ in range(turns):
            await asyncio.sleep(0)

    def abort(self) -> None:
        """The same: ZeroMQ has no close frame."""
        if not self.runtime.is_closed:
            self.runtime.is_closed = True
            self.producer.close()
            self.inquirer.close()
            for consumer in self.consumers:
                consumer.close()
        self.runtime.end()
