"""The error of a refused login has the password in its text, and so has every log that it goes to. Like
wagslane/go-rabbitmq 190 and nameko 582.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import Code


def plant() -> None:
    """Install the defect."""

    def is_ok(self: Handshake, answer: Any, kind: str = "refused") -> bool:
        if answer.code != Code.OK:
            who = f"{self.settings.user}:{self.settings.password}@{self.settings.vhost}"
            text = f"{type(answer).__name__} for {who} with code {answer.code}"
            self.connection.end(ClientError(kind, text, code=answer.code))
        return bool(answer.code == Code.OK)

    Handshake.is_ok = is_ok  # type: ignore[method-assign]


async def witness() -> None:
    """No error says the password."""
    text = ""
    async with RabbitMQStream(memory=True) as broker:
        settings = Settings(user="guest", password="open-sesame")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"], settings)
        try:
            await client.connect(5)
        except ClientError as error:
            text = error.text
        client.abort()
    assert text, "the login was not refused"
    assert "open-sesame" not in text, text
