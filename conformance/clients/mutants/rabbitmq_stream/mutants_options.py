"""Defects in what a client can be given besides: logins, virtual hosts, credit, arguments, routes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.murmur3 import murmur3
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers.rabbitmq_stream.frames import SaslAuthenticate


@mutant("default-user-after-a-loss", tag="wire", breaks=["R15"])
class DefaultUserAfterALoss(Recovery):
    """Reconnects as the user guest, whoever the application has connected as."""

    async def reconnect(self) -> None:
        settings = msgspec.structs.replace(self.client.settings, user="guest", password="guest")
        self.client.settings = settings
        await super().reconnect()


@mutant("virtual-host-of-the-first-connection", tag="wire", breaks=["R15"])
class VirtualHostOfTheFirstConnection(Link):
    """Opens the virtual host / on the connections to further nodes."""

    def __init__(self, client: StreamClient, endpoint: str) -> None:
        super().__init__(client, endpoint)
        if client.links.all:
            self.core.handshake.settings = msgspec.structs.replace(client.settings, vhost="/")


@mutant("own-credit-is-one", tag="wire", breaks=["R11"])
class OwnCreditIsOne(Consuming):
    """Lets one more chunk come, however many the application allows."""

    def give_credit(self, subscription: Subscription, chunks: int) -> None:
        super().give_credit(subscription, 1)


@mutant("arguments-of-32-bits", tag="wire", breaks=["R13"])
class ArgumentsOf32Bits(StreamClient):
    """Cuts numbers in the arguments of a stream to 32 bits."""

    async def create(
        self, stream: str, arguments: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> None:
        cut = {
            name: str(int(value) & 0xFFFFFFFF) if value.isdigit() else value
            for name, value in (arguments or {}).items()
        }
        await super().create(stream, cut, timeout)


@mutant("partitions-are-asked-for-once", tag="data", breaks=["R19"])
class PartitionsAreAskedForOnce(SuperStreams):
    """Remembers the partitions of a super stream for good, also of one that was deleted."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.known: dict[str, list[str]] = {}

    async def partitions(self, super_stream: str, deadline: float) -> list[str]:
        if super_stream not in self.known:
            self.known[super_stream] = await super().partitions(super_stream, deadline)
        return self.known[super_stream]


@mutant("one-route-after-a-loss", tag="data", breaks=["R19"])
class OneRouteAfterALoss(SuperStreams):
    """After a reconnect publishes to one of the partitions that a key leads to."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.first: Link | None = None

    async def targets(self, super_stream: str, by: str, key: str, deadline: float) -> list[str]:
        found = await super().targets(super_stream, by, key, deadline)
        self.first = self.first or self.client.links.control
        return found if self.first is self.client.links.control else found[:1]


@mutant("own-end-waits-for-itself", tag="life-cycle", breaks=["X10"])
class OwnSubscriptionsEndWaitsForItself(Consuming):
    """The end of a subscription waits for the callback that asks for it."""

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        self.subscriptions.difference_update(ended)
        left = max(0.0, deadline - self.runtime.clock.now())
        for one in ended:
            _, running = await asyncio.wait({one.feed._task}, timeout=left)
            if running:
                raise ClientError("timeout", "a callback has not ended")


@mutant("abort-leaves-requests-waiting", tag="life-cycle", breaks=["X1"])
class AbortLeavesStreamRequestsWaiting(StreamClient):
    """Requests that are under way when the application drops the client wait until their time is over."""

    def abort(self) -> None:
        for link in self.links.all:
            link.core.requests.waiting.clear()
        super().abort()


@mutant("keys-end-in-ascii", tag="data", breaks=["R19"])
class KeysEndInAscii(SuperStreams):
    """Leaves what is beyond ASCII in the last, incomplete word of a key out of its hash."""

    def hash(self, key: str) -> int:
        data = key.encode()
        whole = len(data) & ~3
        return murmur3(data[:whole] + bytes(byte for byte in data[whole:] if byte < 128))


@mutant("logins-in-latin-1", tag="wire", breaks=["R15"])
class LoginsInLatin1(Handshake):
    """Writes user and password with one byte for a letter."""

    def authenticate(self) -> None:
        parts = ("", self.settings.user, self.settings.password)
        credentials = b"\0".join(part.encode("latin-1", "replace") for part in parts)
        self._ask(SaslAuthenticate, self.settings.mechanism, credentials, then=self.authenticated)


@mutant("asks-as-the-last-one-did", tag="wire", breaks=["R9"])
class AsksAsTheLastOneDid(Consuming):
    """Adds to the properties of a subscription those of the one before it."""

    last: Mapping[str, str] = {}

    async def subscribe(self, *args: Any, properties: Any = None, **more: Any) -> Subscription:
        self.last, properties = properties or {}, {**self.last, **(properties or {})}
        return await super().subscribe(*args, properties=properties, **more)


@mutant("arguments-add-up", tag="wire", breaks=["R13"])
class ArgumentsAddUp(StreamClient):
    """Creates a stream with the arguments of those before it, too."""

    arguments: Mapping[str, str] = {}

    async def create(
        self, stream: str, arguments: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> None:
        self.arguments = {**self.arguments, **(arguments or {})}
        await super().create(stream, self.arguments, timeout)
