"""A message with an empty body, taken over HTTP, is reported as if the queue were empty; the server has
acknowledged it already, so that it is lost. Like librdkafka 1357 and node-rdkafka 117 (empty and none taken
for the same).
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def take(self: HttpApi, queue: str) -> Delivery | None:
        response = await self.request("DELETE", self._addresses.path(queue, "messages"))
        self.expect(response, 200, 204)
        return self.delivery(response) if response.body else None

    HttpApi.take = take  # type: ignore[method-assign]


async def witness() -> None:
    """The message arrives with its headers."""
    async with Narconi(memory=True) as broker:
        broker.publish("test", "q", b"", headers={"x-msg-x-kind": "done"})
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        delivery = await client.http.take("q")
        client.abort()
    assert delivery is not None
    assert delivery.headers["x-msg-x-kind"] == "done"
