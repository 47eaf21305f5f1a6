"""Defects of sessions, and of what is published and asked."""

from __future__ import annotations

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.nats.client import NatsClient
from conformance.clients.reference.nats.link import Link


@mutant("stays-unsubscribed", tag="data", breaks=["X6"])
class StaysUnsubscribed(NatsClient):
    """Comes back after a loss, and does not subscribe again."""

    def use(self, link: Link, endpoint: str) -> None:
        listeners, self.listeners = self.listeners, {}
        super().use(link, endpoint)
        self.listeners = listeners
