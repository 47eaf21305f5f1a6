"""What a fake Narconi can be told over the control API, and the options that it is started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fakebrokers.control.describe import BrokerOptions, Control, Operation, TlsOption
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.frames import DEFAULT_CONTENT_TYPE
from fakebrokers.narconi.server import Narconi


class NarconiOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake Narconi.

    Attributes:
        config: Limits and behaviour.
        tls: Listen for TLS too: true, or which bad certificate to show.
    """

    config: Config = Config()
    tls: TlsOption = False


class MessageRow(msgspec.Struct, frozen=True):
    """A message that waits in a queue.

    Attributes:
        timestamp: Milliseconds since 1970, when it was published.
        redelivered: Whether a consumer had it and did not acknowledge it.
    """

    payload: bytes
    content_type: str
    headers: dict[str, Any]
    timestamp: int
    redelivered: bool


def publish(
    server: Narconi,
    project: str,
    queue: str,
    payload: bytes,
    content_type: str = DEFAULT_CONTENT_TYPE,
    headers: Mapping[str, Any] | None = None,
    redelivered: bool = False,
) -> None:
    """Store a message as another publisher would; larger ones than the limit are fine too."""
    server.publish(
        project, queue, payload, content_type=content_type, headers=headers, redelivered=redelivered
    )


def messages(server: Narconi, project: str, queue: str) -> list[MessageRow]:
    """What waits in a queue, oldest first; without what consumers have and did not acknowledge."""
    return [
        MessageRow(each.payload, each.content_type, dict(each.headers), each.timestamp, each.redelivered)
        for each in server.messages(project, queue)
    ]


def lose_backend(server: Narconi, down: bool = False) -> None:
    """Break the AMQP connection: WebSocket connections end with an error.

    If it stays `down`, requests and upgrades get 500 until `restore_backend`.
    """
    server.lose_backend(down=down)


CONTROL = Control(
    NarconiOptions,
    (
        Operation("create_queue", old="ensure"),
        Operation("delete_queue", old="delete"),
        Operation("queues"),
        Operation(publish, old="put"),
        Operation(messages, reads=True),
        Operation("unacked", reads=True),
        Operation(lose_backend),
        Operation("restore_backend"),
        Operation("queue_url", reads=True),
        Operation("messages_url", reads=True),
        Operation("websocket_url", reads=True),
    ),
)
