"""The password is sent in Latin-1 instead of UTF-8: one with an umlaut is refused. Like
processone/fluux-messenger 1371 (SASL PLAIN with one byte per character).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.frames import SaslAuthenticate
from fakebrokers.rabbitmq_stream.operations_access import add_user


def plant() -> None:
    """Install the defect."""

    def authenticate(self: Any) -> None:
        settings = self.settings
        parts = ["", settings.user, settings.password]
        credentials = b"\0".join(part.encode("latin-1", "replace") for part in parts)
        self._ask(SaslAuthenticate, settings.mechanism, credentials, then=self.authenticated)

    Handshake.authenticate = authenticate  # type: ignore[method-assign]


async def witness() -> None:
    """A user with such a password gets in."""
    async with RabbitMQStream(memory=True) as broker:
        add_user(broker, "app", "schlüssel")
        settings = Settings(user="app", password="schlüssel")
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]], settings)
        problem: ClientError | None = None
        try:
            await client.connect(5)
        except ClientError as error:
            problem = error
        client.abort()
    assert problem is None, problem
