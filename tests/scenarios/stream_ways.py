"""Correct clients of RabbitMQ Stream that do what the reference client does in another way.

Each is a mapping's value: parts of the client, and how its adapter differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery, User
from conformance.clients.reference.rabbitmq_stream.requests import Requests
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.registry import definition
from fakebrokers.rabbitmq_stream.chunk import Chunk

CAPS = definition("rabbitmq-stream").caps


# who reconnects


class Once(StreamClient):
    """A lost connection is lost, with all that lived there: the application makes a new client."""

    def __init__(self, runtime: Runtime, endpoints: Sequence[str], settings: Settings) -> None:
        super().__init__(runtime, endpoints, replace(settings, auto_reconnect=False))


class LeavesIt(AdapterBase):
    """Declares that."""

    caps = " ".join(word for word in CAPS.split() if word not in ("auto_reconnect", "retry"))


class LeavesConsumers(Recovery):
    """Brings publishers back, and leaves consumers to the application."""

    kept: tuple[type, ...] = (Publisher,)

    def recover_all(self, users: list[User], error: ClientError) -> None:
        super().recover_all([user for user in users if isinstance(user, self.kept)], error)
        for user in users:
            if not isinstance(user, self.kept) and not user.is_closed:
                self.close_user(user, error)


class LeavesPublishers(LeavesConsumers):
    """The other way round."""

    kept = (Subscription,)


class LeavesBoth(LeavesConsumers):
    """Brings back the connection for requests only."""

    kept = ()


class ProducersOnly(AdapterBase):
    """Declares that."""

    reconnects: tuple[str, ...] = ("locator", "producer")
    contract: Mapping[str, bool] = {"others": False, "waits": True}


class ConsumersOnly(AdapterBase):
    """Declares that, too."""

    reconnects: tuple[str, ...] = ("locator", "consumer")
    contract: Mapping[str, bool] = {"others": False, "waits": True}


class LocatorOnly(AdapterBase):
    """And that."""

    reconnects: tuple[str, ...] = ("locator",)
    contract: Mapping[str, bool] = {"others": False, "waits": True}


class TellsLossOnly(AdapterBase):
    """Says nothing of what it does about a loss, nor that it is back."""

    def emit(self, event: str, **fields: Any) -> None:
        if event != "session" or fields["what"] not in ("reconnecting", "reconnected", "target_reopened"):
            super().emit(event, **fields)


# what waits


class FailsAtOnce(Links):
    """Whoever asks for something during an outage learns that at once."""

    async def control_link(self, deadline: float) -> Link:
        if self.control is None:
            raise ClientError("connection", "not connected", definite=True)
        return self.control


class PublishesOrFails(Publishing):
    """See `FailsAtOnce`."""

    async def ready(self, publisher: Publisher, size: int, deadline: float) -> None:
        if publisher.connection is None and publisher in self.client.recovery.recovering:
            raise ClientError("connection", "the publisher is not declared now", definite=True)
        await super().ready(publisher, size, deadline)


class DeclaresWhenNeeded(Recovery):
    """A publisher is declared again with the next message."""

    def recover_all(self, users: list[User], error: ClientError) -> None:
        super().recover_all([user for user in users if isinstance(user, Subscription)], error)


# which connections


class OneForEach(Locator):
    """Each publisher and each subscription has a connection of its own."""

    async def link_to(self, address: str, deadline: float) -> Link:
        return await self.links.open(address, deadline)


# what is on the wire


class OtherIds(Connection):
    """Ids of publishers and subscriptions begin near their end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._next_publisher_id = 254
        self._next_subscription_id = 200
        self.requests.next_correlation = 0xFFFFFFF0


class FromZero(Requests):
    """Correlation ids begin at 0."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.next_correlation = 0


class CountsForAll(Requests):
    """Correlation ids are counted over all connections."""

    taken = 1000

    def take_correlation(self) -> int:
        CountsForAll.taken += 1
        return CountsForAll.taken


class AsksNoVersions(Handshake):
    """Does not tell which versions of commands it knows."""

    def knows_versions(self) -> bool:
        return False


class TunesAlone(Handshake):
    """Opens a moment behind its Tune, not in one segment with it."""

    def _ask(self, kind: Any, *fields: Any, then: Any) -> None:
        if kind.__name__ != "Open":
            super()._ask(kind, *fields, then=then)
            return
        connection, ask = self.connection, super()._ask

        def later() -> None:
            if connection.state == "new":
                ask(kind, *fields, then=then)
                connection.owner.flush()

        asyncio.get_running_loop().call_later(0.01, later)


class Lingering(Publisher):
    """Messages wait 20 ms for company."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.batch: list[Any] = []

    def write(self, entries: Any) -> None:
        self.batch += entries
        if len(self.batch) == len(entries):
            asyncio.get_running_loop().call_later(0.02, self.flush)

    def flush(self) -> None:
        """Write what waits."""
        batch, self.batch = [one for one in self.batch if one.publishing_id in self.pending], []
        if self.connection is not None and batch:
            super().write(batch)
            self.connection.owner.flush()

    def detach(self, error: ClientError) -> None:
        self.batch = []
        super().detach(error)


class CreditAtOnce(Subscription):
    """The next chunk is asked for as one comes."""

    def deliver(self, chunk: Chunk) -> None:
        super().deliver(chunk)
        if self.connection is not None and not self.is_closed:
            self.connection.give_credit(self.subscription_id)

    def processed(self, chunk: Chunk) -> None:
        connection, self.connection = self.connection, None
        super().processed(chunk)
        self.connection = connection
        if connection is not None:
            self.owed -= 1


def allows(**words: bool) -> type[AdapterBase]:
    """Its contract; all else is denied."""
    return type("Declared", (AdapterBase,), {"contract": {"others": False, **words}})


Way = tuple[tuple[type, ...], type[AdapterBase] | None]
WAYS: Mapping[str, Way] = {
    "never-reconnects": ((Once,), LeavesIt),
    "producers-only": ((LeavesConsumers,), ProducersOnly),
    "consumers-only": ((LeavesPublishers,), ConsumersOnly),
    "locator-only": ((LeavesBoth,), LocatorOnly),
    "tells-loss-only": ((), TellsLossOnly),
    "fails-at-once": ((FailsAtOnce, PublishesOrFails), None),
    "declares-when-needed": ((DeclaresWhenNeeded,), None),
    "one-for-each": ((OneForEach,), allows(many_connections=True)),
    "other-ids": ((OtherIds,), None),
    "from-zero": ((FromZero, AsksNoVersions), None),
    "counts-for-all": ((CountsForAll, TunesAlone), None),
    "lingers": ((Lingering,), None),
    "credit-at-once": ((CreditAtOnce,), allows(own_credit=True)),
}
