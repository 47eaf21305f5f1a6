"""The reference client: a producer, consumers and questions to the monitor of one PZQ."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from conformance.mutants.pzq.consumer import Consumer, Delivery
from conformance.mutants.pzq.errors import ClientError
from conformance.mutants.pzq.inquirer import Inquirer, Values
from conformance.mutants.pzq.network import Network, Parts
from conformance.mutants.pzq.producer import Answer, Noted, Producer, Told

log = logging.getLogger(__name__)


class PzqClient:
    """One PZQ.

    Args:
        endpoints: ZeroMQ addresses by role: ``receive``, ``send``, ``monitor``.
        told: The application's callback for errors that belong to no call.

    Attributes:
        noted: The application's callback for what came and was dropped, one sentence.
    """

    producer_part: ClassVar[type[Producer]] = Producer
    consumer_part: ClassVar[type[Consumer]] = Consumer
    inquirer_part: ClassVar[type[Inquirer]] = Inquirer

    def __init__(self, network: Network, endpoints: Mapping[str, str], told: Told) -> None:
        self.network = network
        self.endpoints = endpoints
        self.told = told
        self.noted: Noted = lambda _: None
        self.is_closed = False
        self.producer = self.producer_part(network, endpoints["receive"], self.tell)
        self.inquirer = self.inquirer_part(network, endpoints["monitor"])
        self.consumers: list[Consumer] = []
        self.producer.noted = self.inquirer.noted = self.note

    @property
    def pending(self) -> int:
        """Messages that wait for their acknowledgement."""
        return len(self.producer.pending)

    @property
    def buffered_bytes(self) -> int:
        """Bodies that are kept here until they are acknowledged."""
        return self.producer.buffered_bytes

    def note(self, text: str) -> None:
        """Tell the application what was dropped, so that nothing is lost in silence."""
        self.noted(text)

    def tell(self, where: str, error: ClientError) -> None:
        """Tell the application of an error that no call reports."""
        try:
            self.told(where, error)
        except Exception as failure:  # nobody is left to be told
            log.error("the error callback failed: %s", failure)

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        """See `Producer.publish`."""
        self._check_open()
        return await self.producer.publish(body, id, timeout)

    def subscribe(
        self, surface: Callable[[Delivery], Awaitable[None]], *, filter_expired: bool = False
    ) -> Consumer:
        """See `Consumer`."""
        self._check_open()
        consumer = self.consumer_part(
            self.network, self.endpoints["send"], surface, self.tell, filter_expired=filter_expired
        )
        consumer.noted = self.note
        self.consumers.append(consumer)
        return consumer

    async def ask(self, timeout: float | None = None) -> Values:
        """See `Inquirer.ask`."""
        self._check_open()
        return await self.inquirer.ask(timeout)

    def _check_open(self) -> None:
        if self.is_closed:
            raise ClientError("closed", "the client is closed")

    def close(self) -> None:
        """End all sockets; never waits."""
        if not self.is_closed:
            self.is_closed = True
            self.producer.close()
            self.inquirer.close()
            for consumer in self.consumers:
                consumer.close()
