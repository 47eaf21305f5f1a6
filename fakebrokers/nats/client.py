"""What a NATS server knows of a client, and says to it of its own accord."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from fakebrokers.core.session import Session
from fakebrokers.core.subscriptions import Subscription
from fakebrokers.nats.nodes import Node


class NatsClient(Session):
    """A client.

    Attributes:
        server: The one of the cluster that it is a connection to.
        number: Among all clients, from 1; 0 as long as it has none.
        echo: Whether it hears what it says itself.
        client: What it has said of itself.
        subscriptions: By its numbers of them.
        in_msgs, out_msgs, in_bytes, out_bytes: Messages and their payloads so far.
        opened_at, heard_at: Monotonic seconds.
    """

    def __init__(self, server: Node) -> None:
        self.server = server
        self.number = 0  # none yet: a fault may end the connection as it is accepted
        self.echo = True
        self.client: Mapping[str, Any] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.in_msgs = self.out_msgs = self.in_bytes = self.out_bytes = 0
        self.opened_at = self.heard_at = 0.0

    @abstractmethod
    def tell_nodes(self) -> None:
        """Say which servers there are now, to a client that has said that it wants to know."""

    @abstractmethod
    def end(self, complaint: str = "") -> None:
        """Hang up, after a word about what is wrong."""
