"""What a fake Redis does over the control API, and the options that it is started with."""

from __future__ import annotations

from typing import Any

from fakebrokers.control.describe import BrokerOptions, Control, Operation, TlsOption, name_and_password
from fakebrokers.errors import UsageError
from fakebrokers.redis.server import Redis


class RedisOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake Redis.

    Attributes:
        users: NAME:PASSWORD of the one user that may come in; none: everybody may.
        tls: Listen for TLS too: true, or which bad certificate to show.
    """

    users: tuple[str, ...] = ()
    tls: TlsOption = False

    def keywords(self) -> dict[str, Any]:
        found = {name: value for name, value in super().keywords().items() if name != "users"}
        if len(self.users) > 1:
            raise UsageError(f"expected one user at most: this fake knows no more; got {len(self.users)}")
        for user in self.users:
            name, password = name_and_password(user)
            found |= {"user": name, "password": password}
        return found


def publish(server: Redis, channel: str, payload: bytes) -> int:
    """A message of nobody's; how many subscriptions got it."""
    return server.publish(channel, payload)


def push(server: Redis, key: str, values: list[bytes]) -> int:
    """Append to a list, as RPUSH does; how long it is then, or was before a client took it."""
    return server.push(key, *values)


def store(server: Redis, key: str, value: bytes, expires_s: float | None = None) -> None:
    """Store a string, for so many seconds or for ever."""
    server.store(key, value, expires_s=expires_s)


def messages(server: Redis, key: str) -> list[bytes]:
    """What is in a list, the head first."""
    return list(server.messages(key))


def delete(server: Redis, key: str) -> None:
    """A key is no more, whatever it holds."""
    server.delete(key)


CONTROL = Control(
    RedisOptions,
    (
        Operation(publish),
        Operation("subscriptions"),
        Operation("keys"),
        Operation("value", reads=True),
        Operation(store),
        Operation(push),
        Operation(delete),
        Operation(messages, reads=True),
    ),
)
