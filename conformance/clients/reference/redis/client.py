"""The reference client: commands, pipelines, blocking pops and subscriptions."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from conformance.clients.reference.kit import ClientError, Feed, Runtime
from conformance.clients.reference.redis.line import Line
from conformance.clients.reference.redis.link import Link, Settings, Words, checked

TURNS = 6  #: of the loop, in which those who wait take their outcome and report it
#: Commands that wait at the server, so that no other one may be said behind them.
BLOCKING = (b"BLPOP", b"BRPOP", b"BRPOPLPUSH", b"BLMPOP", b"BLMOVE")
#: How channels, patterns and sharded channels are subscribed to, and what their messages are called.
WAYS = {
    "channel": (b"SUBSCRIBE", b"UNSUBSCRIBE", b"message"),
    "pattern": (b"PSUBSCRIBE", b"PUNSUBSCRIBE", b"pmessage"),
    "shard": (b"SSUBSCRIBE", b"SUNSUBSCRIBE", b"smessage"),
}

#: Errors that may be another answer the next time.
PASSING = ("LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN")


class Received(NamedTuple):
    """A message; `channel` is where it was published."""

    channel: bytes
    payload: bytes


class Subscription:
    """A name that is listened to, and the feed of the user's callback.

    Attributes:
        is_open: Whether the server has said yes once, so that it is asked again after a loss.
    """

    def __init__(
        self, runtime: Runtime, way: str, name: bytes, callback: Callable[[Received], Awaitable[None]]
    ) -> None:
        self.way = way
        self.name = name
        self.is_open = False
        self.feed: Feed[Received] = Feed(
            runtime.feeds,
            lambda message: runtime.callbacks.contain_async("message", lambda: callback(message)),
        )

    @property
    def key(self) -> tuple[bytes, bytes]:
        """What its messages begin with."""
        return WAYS[self.way][2], self.name


class RedisClient:
    """One session: a line for commands, another for subscriptions, a connection for each blocking pop."""

    timers = 0

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self.runtime = runtime
        self.settings = settings
        self.subscriptions: list[Subscription] = []
        self.popping: list[Link] = []
        line = runtime.part(Line)
        self.commands = line(runtime, settings, self.received, self.nothing)
        self.listener = line(runtime, settings, self.received, self.restore, listens=True)

    async def connect(self, timeout: float | None = None) -> None:
        """Open the line for commands. Raises `ClientError`."""
        try:
            await self.runtime.tasks.within(timeout, self.commands.ready(math.inf))
        except BaseException:
            self.abort()
            raise

    @property
    def is_open(self) -> bool:
        """Whether commands go out at once."""
        return self.commands.is_open and not self.runtime.is_closed

    @property
    def links(self) -> list[Link]:
        """The connections that there are."""
        lines = (self.commands.link, self.listener.link)
        return [link for link in (*lines, *self.popping) if link is not None and link.is_open]

    @property
    def pending(self) -> int:
        """Commands whose callers wait for an answer."""
        return sum(not slot.answer.done() for link in self.links for slot in link.waiting)

    @property
    def buffered_bytes(self) -> int:
        """Of commands without an answer."""
        slots = [slot for link in self.links for slot in link.waiting]
        return sum(len(word) for slot in slots for word in slot.words)

    # commands

    async def call(self, words: Words, timeout: float | None = None) -> Any:
        """The answer to a command. Raises `ClientError`."""
        end = self.runtime.clock.deadline(timeout)
        if words[0].upper() in BLOCKING:
            return await self.runtime.tasks.within(timeout, self.pop(words, timeout))
        link = await self.commands.ready(end)
        return checked(await link.send(words, end - self.runtime.clock.now()))

    async def publish(self, channel: bytes, body: bytes, timeout: float | None = None) -> int:
        """How many got the message. Raises `ClientError`."""
        end = self.runtime.clock.deadline(timeout)
        link = await self.commands.ready(end)
        count = checked(await link.send([b"PUBLISH", channel, body], end - self.runtime.clock.now()))
        if isinstance(count, int):
            return count
        link.lose(ClientError("connection", "a reply is that to another command"))
        raise ClientError("protocol", f"expected the number of receivers, got {count!r:.80}")

    async def pop(self, words: Words, timeout: float | None) -> Any:
        """A command that waits at the server: on a connection of its own, which is kept for the next one, but
        ends with whoever gives up: nothing may be popped for nobody.
        """
        idle = [link for link in self.popping if link.is_open and not link.waiting]
        link = idle[0] if idle else self.runtime.part(Link)(self.runtime, self.nobody, self.received)
        try:
            if not idle:
                self.popping.append(link)
                await link.open(self.settings)
            return checked(await link.send(words, timeout))
        except asyncio.CancelledError:
            link.abort(ClientError("closed", "it was called off"))
            raise
        except ClientError as error:
            if error.kind == "timeout":
                link.abort(error)
            raise
        finally:
            self.popping = [link for link in self.popping if link.is_open]

    def nobody(self, link: Link, error: ClientError) -> None:
        """A connection that only pops is lost, which whoever waits is told."""

    async def pipeline(self, commands: Sequence[Words], timeout: float | None = None) -> list[Any]:
        """The answers to commands that are said at once; an error of the server is one of them."""
        end = self.runtime.clock.deadline(timeout)
        link = await self.commands.ready(end)
        answers = [link.send(words, end - self.runtime.clock.now()) for words in commands]
        return [await answer for answer in answers]

    # subscriptions

    async def subscribe(self, subscription: Subscription, timeout: float | None = None) -> None:
        """Listen; returns when the server has said so. Raises `ClientError`."""
        self.subscriptions.append(subscription)
        try:
            await self.listen(subscription, timeout)
        except BaseException:
            self.forget(subscription)
            link = self.listener.link
            if link is not None and link.is_open and self.is_last(subscription):
                link.send([WAYS[subscription.way][1], subscription.name])  # it may have been heard
            raise

    def is_last(self, subscription: Subscription) -> bool:
        """Whether there is no other one of the same name."""
        return not any(one.key == subscription.key for one in self.subscriptions)

    async def listen(self, subscription: Subscription, timeout: float | None) -> None:
        """Ask on the line."""
        end = self.runtime.clock.deadline(timeout)
        link = await self.listener.ready(end)
        await self.ask(link, subscription, end - self.runtime.clock.now())
        subscription.is_open = True

    async def ask(self, link: Link, subscription: Subscription, timeout: float | None = None) -> None:
        """Subscribe on a link."""
        await link.ask([WAYS[subscription.way][0], subscription.name], timeout)

    async def restore(self, link: Link) -> None:
        """Subscribe on a new link to all that was open; what is refused for good is reported as gone."""
        for one in {one.key: one for one in self.subscriptions if one.is_open}.values():
            try:
                await self.ask(link, one)
            except ClientError as error:
                if error.kind not in ("refused", "auth") or error.code in PASSING:
                    raise
                for gone in [other for other in self.subscriptions if other.key == one.key]:
                    self.forget(gone)
                    name = gone.name.decode(errors="replace")
                    self.runtime.callbacks.report("target_closed", error.text, error.code, name)

    async def nothing(self, link: Link) -> None:
        """The line for commands has no state."""

    def received(self, value: Sequence[Any]) -> None:
        """What came unasked: of a message the last two parts are channel and payload."""
        key = tuple(value[:2])
        if len(value) != (4 if key[:1] == (b"pmessage",) else 3):
            self.runtime.callbacks.note(f"a push was left out: {value!r:.80}")
            return
        known = [one for one in self.subscriptions if one.key == key]
        if not known:
            self.runtime.callbacks.note(f"nobody listens to {value[1]!r:.80}")
        for one in known:
            one.feed.put(Received(value[-2], value[-1]))

    async def unsubscribe(self, subscription: Subscription, timeout: float | None = None) -> None:
        """No callback begins any more; returns when the server knows. Raises `ClientError`."""
        self.forget(subscription)
        link = self.listener.link
        if link is not None and link.is_open and self.is_last(subscription):
            await link.ask([WAYS[subscription.way][1], subscription.name], timeout)

    def forget(self, subscription: Subscription) -> None:
        """Deliver nothing more to a subscription."""
        if subscription in self.subscriptions:
            self.subscriptions.remove(subscription)
        subscription.feed.clear()
        subscription.feed.end()

    # the end

    async def close(self, timeout: float | None = None) -> None:
        """End all connections; who waits gets its outcome first."""
        turns = TURNS if self.pending or not self.is_open else 0
        self.runtime.is_closed = True
        self.drop()
        for _ in range(turns):
            await asyncio.sleep(0)
        self.abort()

    def abort(self) -> None:
        """The same at once: Redis has no farewell that anybody would need."""
        self.runtime.is_closed = True
        self.drop()
        self.runtime.end()

    def drop(self) -> None:
        """End all connections."""
        error = ClientError("closed", "the client was closed")
        for line in (self.commands, self.listener):
            line.close(error)
        for link in tuple(self.popping):
            link.abort(error)
