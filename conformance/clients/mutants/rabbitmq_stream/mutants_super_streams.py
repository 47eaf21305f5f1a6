"""Defects with super streams (catalogue section RMQS-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.murmur3 import murmur3
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import ConsumerUpdate, Partitions, Route


@mutant("partitions-sorted", tag="data", breaks=["R19"])
class PartitionsSorted(SuperStreams):
    """Takes the partitions of a super stream in the order of their names."""

    async def partitions(self, super_stream: str, deadline: float) -> list[str]:
        return sorted(await super().partitions(super_stream, deadline))


@mutant("hash-is-signed", tag="data", breaks=["R19"])
class HashIsSigned(SuperStreams):
    """Takes the hash of a key for a signed number."""

    def hash(self, key: str) -> int:
        found = super().hash(key)
        return abs(found - (1 << 32)) if found >> 31 else found


@mutant("hash-of-utf-16", tag="data", breaks=["R19"])
class HashOfUtf16(SuperStreams):
    """Hashes keys in another encoding than other clients do."""

    def hash(self, key: str) -> int:
        return murmur3(key.encode("utf-16"))


@mutant("one-route-for-all-keys", tag="data", breaks=["R19"])
class OneRouteForAllKeys(SuperStreams):
    """Remembers the partition of the first key, and sends the messages of all keys there."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.routes: list[str] = []

    async def route(self, super_stream: str, key: str, deadline: float) -> list[str]:
        self.routes = self.routes or await super().route(super_stream, key, deadline)
        return self.routes


@mutant("one-partition-for-each-key", tag="data", breaks=["R19"])
class OnePartitionForEachKey(SuperStreams):
    """Takes only the first of the partitions that a key leads to."""

    async def route(self, super_stream: str, key: str, deadline: float) -> list[str]:
        return (await super().route(super_stream, key, deadline))[:1]


@mutant("no-route-is-remembered", tag="data", breaks=["R19"])
class NoRouteIsRemembered(SuperStreams):
    """Never asks again for a key that led nowhere once."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lost: set[str] = set()

    async def route(self, super_stream: str, key: str, deadline: float) -> list[str]:
        if key in self.lost:
            return []
        found = await super().route(super_stream, key, deadline)
        if not found:
            self.lost.add(key)
        return found


@mutant("unrouted-is-dropped", tag="data", breaks=["R19"])
class UnroutedIsDropped(SuperStreams):
    """Waits forever for the confirm of a message that no partition gets."""

    async def targets(self, super_stream: str, by: str, key: str, deadline: float) -> list[str]:
        try:
            return await super().targets(super_stream, by, key, deadline)
        except ClientError as error:
            if error.kind == "invalid":
                await asyncio.sleep(1_000_000.0)
            raise


@mutant("unknown-super-stream-is-empty", tag="data", breaks=["R5", "R19"])
class UnknownSuperStreamIsEmpty(SuperStreams):
    """Takes a super stream that does not exist for one without partitions."""

    async def partitions(self, super_stream: str, deadline: float) -> list[str]:
        link = await self.client.links.control_link(deadline)
        return list((await link.request(Partitions, super_stream, deadline=deadline)).streams)

    async def route(self, super_stream: str, key: str, deadline: float) -> list[str]:
        link = await self.client.links.control_link(deadline)
        return list((await link.request(Route, key, super_stream, deadline=deadline)).streams)


@mutant("last-partition-unread", tag="data", breaks=["R9", "R19"])
class LastPartitionUnread(SuperStreams):
    """Does not read the last partition of a super stream."""

    async def subscribe(self, *args: Any, **more: Any) -> list[Subscription]:
        found = await super().subscribe(*args, **more)
        await self.client.consuming.unsubscribe(found.pop())
        return found


class _SharedPosition(Subscription):
    def position(self) -> Any:
        start = super().position()
        if "super-stream" in self.properties and start.type == OffsetType.OFFSET and self.connection is None:
            return start._replace(value=max(_furthest.values(), default=0))
        return start

    def delivered(self, message: Any) -> None:
        super().delivered(message)
        if "super-stream" in self.properties:
            _furthest[self.stream] = message.offset + 1


_furthest: dict[str, int] = {}


@mutant("one-offset-for-all-partitions", tag="data", breaks=["R9", "R19"], also=[_SharedPosition])
class OneOffsetForAllPartitions(SuperStreams):
    """Goes on in every partition at the offset that it has reached in the longest one."""

    async def subscribe(self, *args: Any, **more: Any) -> list[Subscription]:
        _furthest.clear()
        return await super().subscribe(*args, **more)


@mutant("all-partitions-are-given-up", tag="life-cycle", breaks=["R14", "R19"])
class AllPartitionsAreGivenUp(Recovery):
    """Ends what it has of all partitions when one is gone."""

    def close_user(self, user: Any, error: ClientError) -> None:
        super().close_user(user, error)
        if error.code == 2:
            for other in [*self.client.consuming.subscriptions]:
                if "super-stream" in other.properties:
                    super().close_user(other, error)


@mutant("one-partition-is-activated", tag="data", breaks=["R9", "R19", "R20"])
class OnePartitionIsActivated(Connection):
    """Answers the first ConsumerUpdate of a connection only: other partitions stay unread."""

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        answered = self.__dict__.setdefault("answered_for", frame.subscription_id)
        if answered == frame.subscription_id:
            super().consumer_updated(frame)


@mutant("group-without-super-stream", tag="wire", breaks=["R9", "R19"])
class GroupWithoutSuperStream(SuperStreams):
    """Does not name the super stream when it subscribes to a partition."""

    def named(self, super_stream: str) -> dict[str, str]:
        return {}


@mutant("routes-need-the-top-bit", tag="wire", breaks=["R2", "R19", "R20"])
class RoutesNeedTheTopBit(Connection):
    """Does not take the answers to Route and Partitions of older brokers for answers."""

    def receive(self, data: bytes, now: float) -> None:
        if data[4:6] not in (b"\0\x18", b"\0\x19"):
            super().receive(data, now)


@mutant("partitions-of-the-first", tag="data", breaks=["R19"])
class PartitionsOfTheFirst(SuperStreams):
    """Hashes the keys of all super streams to the partitions of the first one."""

    async def hashed(self, super_stream: str, key: str, deadline: float) -> list[str]:
        return await super().hashed(next(iter(self._hashed), super_stream), key, deadline)


@mutant("keys-in-alphabetical-order", tag="data", breaks=["R19"])
class KeysInAlphabeticalOrder(SuperStreams):
    """Creates the partitions of a super stream in the order of their keys' names."""

    async def create(self, super_stream: str, keys: Sequence[str], *more: Any) -> None:
        await super().create(super_stream, sorted(keys), *more)


@mutant("super-streams-without-arguments", tag="wire", breaks=["R13", "R19"])
class SuperStreamsWithoutArguments(SuperStreams):
    """Leaves out what the partitions of a super stream are to be created with."""

    async def create(
        self, super_stream: str, keys: Sequence[str], arguments: Any = None, timeout: float | None = None
    ) -> None:
        await super().create(super_stream, keys, None, timeout)


@mutant("gone-super-streams-are-deleted", tag="data", breaks=["R13", "R19"])
class GoneSuperStreamsAreDeleted(SuperStreams):
    """Reports that it has deleted a super stream which is not there."""

    async def delete(self, super_stream: str, timeout: float | None = None) -> None:
        with suppress(ClientError):
            await super().delete(super_stream, timeout)


@mutant("numbers-of-the-first-time", tag="data", breaks=["R13"])
class NumbersOfTheFirstTime(StreamClient):
    """Reports the numbers that a stream had when they were first asked for."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.first: dict[str, dict[str, int]] = {}

    async def stats(self, stream: str, timeout: float | None = None) -> dict[str, int]:
        found = await super().stats(stream, timeout)
        return self.first.setdefault(stream, found)
