"""What the application listens to, and the messages for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Feed, Runtime
from conformance.clients.reference.mqtt.link import Link
from conformance.clients.reference.mqtt.topics import fits, is_filter
from fakebrokers.mqtt.frames import Puback, Publish, Suback, Subscribe, Unsubscribe

REFUSED = 0x80
EARLY_MAX = 1000  #: messages that are kept for an application that has not subscribed yet

Callback = Callable[[Publish], Awaitable[None]]


class Subscription:
    """A topic filter with a callback."""

    def __init__(self, name: str, qos: int, callback: Callback) -> None:
        self.name = name
        self.qos = qos
        self.callback = callback


class Arrived(NamedTuple):
    """A message, and the connection on which it came."""

    link: Link
    frame: Publish


class Client(Protocol):
    """Whose subscriptions they are."""

    runtime: Runtime

    def usable(self) -> Link:
        """The connection. Raises `ClientError` (closed, connection)."""

    def check_open(self) -> None:
        """Raise `ClientError` (closed) if it is not."""

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""


class Subscriptions:
    """Those of one client.

    Attributes:
        active: In the order in which they were made.
        parting: Filters that the server may still have, and nobody listens to any more.
        early: Messages of a session that has lasted, for which there is no subscription yet.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.active: list[Subscription] = []
        self.parting: set[str] = set()
        self.early: list[Arrived] = []
        self.feed: Feed[Arrived] = Feed(client.runtime.feeds, self.deliver)

    async def subscribe(self, name: str, qos: int, callback: Callback, timeout: float) -> Subscription:
        """Listen to a filter. Raises `ClientError`: refused (128), timeout, connection, closed, invalid."""
        if not is_filter(name) or qos not in (0, 1, 2):
            raise ClientError("invalid", f"no subscription: {name!r} with QoS {qos}")
        link = self.client.usable()
        subscription = Subscription(name, qos, callback)
        self.active.append(subscription)  # messages may come before the SUBACK (3.8.4)
        self.parting.discard(name)
        try:
            self.check(
                await link.ask(lambda number: Subscribe(number, ((name, qos),)), timeout, self.late(name))
            )
        except BaseException:
            if subscription in self.active:
                self.active.remove(subscription)
            raise
        early, self.early = self.early, []
        self.feed.put_first(early)
        return subscription

    def check(self, answer: Suback) -> None:
        """Raise `ClientError` if the server has refused a filter."""
        if not answer.codes or answer.codes[0] not in (0, 1, 2):
            code = answer.codes[0] if answer.codes else None
            raise ClientError("refused", "the server refuses this filter", code=code)

    def late(self, name: str) -> Callable[[Suback], None]:
        """The server says yes to somebody who does not wait any more: that is undone."""

        def undo(answer: Suback) -> None:
            if answer.codes and answer.codes[0] != REFUSED and not self.has(name) and self.client.is_open:
                self.client.runtime.tasks.spawn(self.take_back(name))

        return undo

    def has(self, name: str) -> bool:
        """Whether somebody listens to this filter."""
        return any(each.name == name for each in self.active)

    async def unsubscribe(self, subscription: Subscription, timeout: float) -> None:
        """Nothing more is delivered; the server gets UNSUBSCRIBE once nobody wants this filter."""
        self.client.check_open()
        if subscription not in self.active:
            raise ClientError("closed", "it has ended", definite=True)
        self.active.remove(subscription)
        if not self.has(subscription.name):
            self.parting.add(subscription.name)
            await self.leave(subscription.name, timeout)

    async def leave(self, name: str, timeout: float) -> None:
        """Send UNSUBSCRIBE and wait for its answer."""
        await self.client.usable().ask(lambda number: Unsubscribe(number, (name,)), timeout)
        self.parting.discard(name)

    async def take_back(self, name: str) -> None:
        """The same for one that the application has given up."""
        with suppress(ClientError):
            await self.leave(name, DEFAULT_TIMEOUT_S)

    async def restore(self, link: Link) -> None:
        """On a new connection: subscribe again where the server has forgotten, unsubscribe where it has not.

        Raises `ClientError` where the connection is lost again.
        """
        if link.session_present:
            for name in [name for name in self.parting if not self.has(name)]:
                await self.leave(name, DEFAULT_TIMEOUT_S)
            return
        self.parting.clear()
        for each in list(self.active):
            if each not in self.active:
                continue  # ended meanwhile
            try:
                await self.again(link, each)
            except ClientError as error:
                if error.kind != "refused":
                    raise
                self.active.remove(each)
                self.client.runtime.callbacks.report("target_closed", error.text, error.code, each.name)

    async def again(self, link: Link, each: Subscription) -> None:
        """Subscribe again, until there is an answer."""
        make = lambda number: Subscribe(number, ((each.name, each.qos),))  # noqa: E731
        while True:
            try:
                return self.check(await link.ask(make, DEFAULT_TIMEOUT_S))
            except ClientError as error:
                if error.kind != "timeout" or each not in self.active:
                    raise

    # messages

    def take(self, link: Link, frame: Publish) -> None:
        """A message is to be delivered."""
        self.feed.put(Arrived(link, frame))

    async def deliver(self, arrived: Arrived) -> None:
        """Call those who listen, one after the other, and then acknowledge."""
        frame = arrived.frame
        listening = [each for each in self.active if self.fits(each, frame.topic)]
        if not listening and arrived.link.session_present and not self.active:
            self.early = [*self.early, arrived][:EARLY_MAX]
            return
        raised = False
        for each in listening:
            raised |= not await self.called(each, frame)
        if not listening:
            self.client.runtime.callbacks.note(f"a message to {frame.topic!r}, to which nobody listens")
        self.acknowledge(arrived, raised=raised)

    def fits(self, each: Subscription, topic: str) -> bool:
        """Whether a message to a topic is for this subscription."""
        return fits(each.name, topic)

    async def called(self, subscription: Subscription, frame: Publish) -> bool:
        """Whether a callback has ended well."""
        try:
            await subscription.callback(frame)
        except Exception as error:
            self.client.runtime.callbacks.failed("message", error)
            return False
        return True

    def acknowledge(self, arrived: Arrived, *, raised: bool) -> None:
        """PUBACK of a message that was processed, on its connection; another one brings it again."""
        if arrived.frame.qos == 1 and not raised:
            arrived.link.send(Puback(arrived.frame.packet_id))

    @property
    def buffered_bytes(self) -> int:
        """Of messages that wait for their callback."""
        return sum(len(each.frame.payload) for each in (*self.feed, *self.early))
