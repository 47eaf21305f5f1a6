"""Super streams: the partition of a key, and all partitions (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.murmur3 import murmur3
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Subscription
from fakebrokers.rabbitmq_stream.frames import CreateSuperStream, DeleteSuperStream, Partitions, Route

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient

#: Gets the partition, too.
OnMessage = Callable[[str, Message], Awaitable[None]]


class SuperStreams:
    """Knows which streams a super stream consists of.

    The partitions of one that messages were hashed for are asked for once: a key keeps its partition.
    """

    def __init__(self, client: StreamClient) -> None:
        self.client = client
        self._hashed: dict[str, list[str]] = {}

    async def create(
        self,
        super_stream: str,
        keys: Sequence[str],
        arguments: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Create it with a partition for each key. Raises `ClientError`: refused (5) if it exists."""
        deadline = self.client.runtime.clock.deadline(timeout)
        link = await self.client.links.control_link(deadline)
        names = tuple(f"{super_stream}-{key}" for key in keys)
        given = super_stream, names, tuple(keys), dict(arguments or {})
        await link.ask(CreateSuperStream, *given, deadline=deadline)

    async def delete(self, super_stream: str, timeout: float | None = None) -> None:
        """Delete it and its partitions. Raises `ClientError`: refused (2) if there is none."""
        deadline = self.client.runtime.clock.deadline(timeout)
        link = await self.client.links.control_link(deadline)
        await link.ask(DeleteSuperStream, super_stream, deadline=deadline)
        self._hashed.pop(super_stream, None)

    async def partitions(self, super_stream: str, deadline: float) -> list[str]:
        """All partitions, in order. Raises `ClientError`: refused (2) if there is no such super stream."""
        link = await self.client.links.control_link(deadline)
        answer = await link.ask(Partitions, super_stream, deadline=deadline)
        return list(answer.streams)

    async def route(self, super_stream: str, key: str, deadline: float) -> list[str]:
        """The partitions that are bound with a key, or none. Raises `ClientError`."""
        link = await self.client.links.control_link(deadline)
        answer = await link.ask(Route, key, super_stream, deadline=deadline)
        return list(answer.streams)

    async def targets(self, super_stream: str, by: str, key: str, deadline: float) -> list[str]:
        """Where a message goes. Raises `ClientError`: invalid if its key leads nowhere."""
        found = await (self.route if by == "key" else self.hashed)(super_stream, key, deadline)
        if not found:
            raise ClientError("invalid", f"the key {key!r} leads to no partition of {super_stream}")
        return found

    async def hashed(self, super_stream: str, key: str, deadline: float) -> list[str]:
        """The partition that the hash of a key chooses. Raises `ClientError`."""
        if not self._hashed.get(super_stream):
            self._hashed[super_stream] = await self.partitions(super_stream, deadline)
        partitions = self._hashed[super_stream]
        return [partitions[self.hash(key) % len(partitions)]] if partitions else []

    def hash(self, key: str) -> int:
        """Of the bytes of a key, unsigned."""
        return murmur3(key.encode())

    async def subscribe(
        self,
        super_stream: str,
        on_message: OnMessage,
        *,
        properties: dict[str, str],
        timeout: float | None = None,
        **more: Any,
    ) -> list[Subscription]:
        """Read all partitions, each from a position of its own. Raises `ClientError`; then none is read."""
        deadline = self.client.runtime.clock.deadline(timeout)
        made: list[Subscription] = []
        try:
            for partition in await self.partitions(super_stream, deadline):
                subscription = await self.client.consuming.subscribe(
                    partition,
                    lambda message, partition=partition: on_message(partition, message),  # type: ignore[misc]
                    properties={**properties, **self.named(super_stream)},
                    timeout=deadline - self.client.runtime.clock.now(),
                    **more,
                )
                made.append(subscription)
        except BaseException:
            for one in made:
                self.client.consuming.drop(one)
            raise
        return made

    def named(self, super_stream: str) -> dict[str, str]:
        """What Subscribe says of a partition: the server spreads single active consumers by it."""
        return {"super-stream": super_stream}

    async def unsubscribe(
        self, subscriptions: list[Subscription], *, drain: bool = False, timeout: float | None = None
    ) -> None:
        """End the subscriptions of all partitions. Raises `ClientError`, once all have been tried."""
        end = self.client.consuming.unsubscribe
        ends = [end(one, drain=drain, timeout=timeout) for one in subscriptions]
        for problem in await asyncio.gather(*ends, return_exceptions=True):
            if isinstance(problem, BaseException):
                raise problem
