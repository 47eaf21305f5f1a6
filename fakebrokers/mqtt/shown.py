"""What a page of a run shows of the broker: clients, what they have not acknowledged, retained messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fakebrokers.viewer.model import BrokerModel, Seen, listeners, named

if TYPE_CHECKING:
    from fakebrokers.mqtt.client import Client
    from fakebrokers.mqtt.server import MQTT


class ClientModel(BrokerModel):
    """Clients by id, whether or not they have a connection, as the fake tells them."""

    def frame(self, seen: Seen) -> None:
        """Frames tell nothing: of a real server the page shows no clients."""

    @classmethod
    def held(cls, server: MQTT) -> Iterator[tuple[str, str]]:
        broker = server.broker
        if broker.retained:
            yield "retained", f"{len(broker.retained)}: {named(broker.retained)}"
        for id, client in broker.clients.items():
            yield f"client {id}", _client_held(client)
        yield from listeners(broker.subscriptions)


def _client_held(client: Client) -> str:
    said = ["away" if client.session is None else "connected"]
    if client.messages:
        said.append(f"{len(client.messages)} not acknowledged, {len(client.waiting)} of them not sent")
    if client.received:
        said.append(f"{len(client.received)} not released")
    return ", ".join(said)
