"""Steps and questions that the scenarios of Redis share."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect
from fakebrokers import Redis
from fakebrokers.journal import Record, Tap

CALLER = ("caller",)
CONSUMER = ("consumer",)
BOTH = ("caller", "consumer")
USER, PASSWORD = "app", "secret-of-app"
LOGIN = {"user": USER, "password": PASSWORD}


def call(client: Client, *words: Any, timeout: float = 5.0, session: str = "s1") -> Call:
    """Begin to ask a command."""
    return client.begin("redis.call", timeout, session=session, words=list(words))


async def asked(client: Client, expect: Expect, *words: Any) -> Any:
    """Ask a command as a step that only prepares."""
    return plain(expect.prepared(await call(client, *words))["value"])


def plain(value: Any) -> Any:
    """A value of the op, with bytes for strings."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return value["error"] if "error" in value else body_bytes(value)
    return int(value) if isinstance(value, str) else value


def bodies(client: Client, sub: str = "c1") -> list[bytes]:
    """What the application got on a subscription."""
    return [body_bytes(message.body) for message in client.messages(sub)]


def commands(broker: Redis, verb: str, since: int = 0) -> list[Record]:
    """The commands of that name that came."""
    found = broker.journal.select(kind="Command", tap=Tap.RECEIVED, since=since)
    return [r for r in found if getattr(r.frame, "verb", "").upper() == verb]


def logins(broker: Redis, since: int) -> list[Record]:
    """Greetings and logins that came."""
    found = broker.journal.select(role="handshake", tap=Tap.RECEIVED, since=since)
    return [r for r in found if r.kind in ("Hello", "Auth")]


async def works(client: Client, expect: Expect, criterion: str, *, within_s: float = 10.0, id: str) -> None:
    """Demand that a command works again within some seconds."""
    end = client.now + within_s
    while True:
        result = await call(client, "ECHO", "works", timeout=2.0)
        if result.ok and plain(result.value["value"]) == b"works":
            return
        if client.now > end or not client.alive:
            expect.that(False, criterion, str(result), id=id)
        await asyncio.sleep(0.2)
