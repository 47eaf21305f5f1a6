"""Name and password are sent in Latin-1 and not in UTF-8: a login with other letters than those of ASCII is
refused. Like DataDog/integrations-core 7176 (a RabbitMQ password with such letters is refused) and
owncloud/client 609 (encoded as ISO-8859-1 where UTF-8 is due).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.access import User
from fakebrokers.rabbitmq_stream.frames import SaslAuthenticate


def plant() -> None:
    """Install the defect."""

    def authenticate(self: Any) -> None:
        credentials = f"\0{self.settings.user}\0{self.settings.password}".encode("latin-1", "replace")
        self._ask(SaslAuthenticate, self.settings.mechanism, credentials, then=self.authenticated)

    Handshake.authenticate = authenticate  # type: ignore[method-assign]


async def witness() -> None:
    """A user with a password of all kinds of letters can log in."""
    async with RabbitMQStream(memory=True) as broker:
        broker.broker.access.add_user(User("anna", "pässwörd"))
        endpoint = f"{broker.host}:{broker.port}"
        client = StreamClient(Runtime(Memory()), [endpoint], Settings(user="anna", password="pässwörd"))
        await client.connect(10.0)
        assert client.is_open
        client.abort()
