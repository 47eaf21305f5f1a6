"""Defects of clients that serve several projects, and of those that keep messages longer than the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.channels import Publishers, Publishing
from conformance.clients.reference.narconi.consumer import Consumer, Delivery
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.settings import Addresses


class _Shared:
    """What all sessions of a process have in common."""

    def __init__(self) -> None:
        self.project = ""
        self.cookie = ""
        self.publishers: dict[str, asyncio.Task[Publishing]] = {}
        self.consumers: dict[str, Consumer] = {}


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


def _shared() -> _Shared:
    return _by_loop.setdefault(asyncio.get_running_loop(), _Shared())


@mutant("one-project-for-all", tag="data", breaks=["N19", "N20"])
class OneProjectForAll(Addresses):
    """Uses the project of the first session for all sessions."""

    def __init__(self, project: str) -> None:
        _shared().project = _shared().project or project
        super().__init__(_shared().project)


@mutant("projects-share-publishers", tag="data", breaks=["N20"])
class ProjectsSharePublishers(Publishers):
    """Knows a publishing connection by the name of its queue, whatever the project."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.by_queue = _shared().publishers


@mutant("projects-share-ack-ids", tag="data", breaks=["N13", "N20"])
class ProjectsShareAckIds(Consumer):
    """Acknowledges where a message with that ackId came last, on whatever connection."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        if "ackId" in metadata:
            _shared().consumers[metadata["ackId"]] = self
        super().deliver_message(metadata, body)

    def settle(self, ack_id: str) -> None:
        Consumer.settle(_shared().consumers.get(ack_id, self), ack_id)


@mutant("cookies-for-all", tag="wire", breaks=["N20"])
class CookiesForAll(HttpApi):
    """Sends a cookie with every request of every session, whatever path it was meant for."""

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        jar = _shared()
        kept = {"Cookie": jar.cookie} if jar.cookie else {}
        response = await super().request(method, path, {**(headers or {}), **kept}, body)
        jar.cookie = (response.header("set-cookie") or jar.cookie).partition(";")[0]
        return response


# what is kept


@mutant("takes-ahead", tag="data", breaks=["N4", "N17", "N19"])
class TakesAhead(HttpApi):
    """Takes two messages at a time, and keeps the second one for the next call."""

    ahead: Delivery | None = None

    async def take(self, queue: str) -> Delivery | None:
        found, self.ahead = self.ahead, None
        if found is None:
            found = await super().take(queue)
            if found is not None:
                self.ahead = await super().take(queue)
        return found


@mutant("confirmed-is-repeated", tag="data", breaks=["N7"])
class ConfirmedIsRepeated(Publishers):
    """Publishes what it has published before once more on each new connection, confirmed or not."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: list[tuple[Mapping[str, Any], bytes]] = []

    async def open(self, queue: str) -> Publishing:
        made = await super().open(queue)
        for headers, body in self.kept:
            made.core.publish(headers, body, lambda _: None)
        return made

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        await super().publish(queue, body, headers)
        self.kept.append((headers, body))


@mutant("names-without-capitals", tag="data", breaks=["N19"])
class NamesWithoutCapitals(Publishers):
    """Looks for the publishing connection of a queue by its name in small letters, and so finds another's."""

    async def publisher(self, queue: str) -> Publishing:
        other = next((name for name in self.by_queue if name.lower() == queue.lower()), queue)
        return await super().publisher(other)
