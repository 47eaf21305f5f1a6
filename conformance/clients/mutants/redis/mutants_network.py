"""Defects in the life of connections, in deadlines and callbacks (catalogue sections NET-1 to NET-4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conformance.clients.mutants import mutants_kit as kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.redis.client import RedisClient, Subscription
from conformance.clients.reference.redis.line import Line
from conformance.clients.reference.redis.link import Answer, Link, Settings, Words
from conformance.clients.reference.redis.resp import Parser

# NET-1 bytes


@mutant("one-read-one-reply", tag="wire", breaks=["X1", "D3"])
class OneReadOneReply(Parser):
    """Takes what comes at once for whole replies."""

    def feed(self, data: bytes) -> Iterator[Any]:
        self.rest, self.needed = b"", 0
        yield from super().feed(data)


@mutant("two-replies-a-read", tag="wire", breaks=["X1"])
class TwoRepliesARead(Parser):
    """Reads on after two replies only with the next bytes, and has lost the others."""

    def feed(self, data: bytes) -> Iterator[Any]:
        yield from [*super().feed(data)][:2]


@mutant("crowded-is-lost", tag="life-cycle", breaks=["X4"])
class CrowdedIsLost(Link):
    """Takes much that waits for its replies for a dead connection."""

    def send(self, words: Words, timeout: float | None = None) -> Answer:
        answer = super().send(words, timeout)
        if sum(len(word) for slot in self.waiting for word in slot.words) > 128 << 10:
            self.lose(ClientError("connection", "it does not get rid of what it writes"))
        return answer


@mutant("half-is-whole", tag="data", breaks=["X2"])
class HalfIsWhole(Link):
    """Takes the first half of a reply for a whole one when the connection ends."""

    def connection_lost(self, error: Exception | None) -> None:
        if self.is_open and self.parser.rest:
            self.data_received(b"\r\n")
        super().connection_lost(error)


@mutant("waits-for-ever", tag="life-cycle", breaks=["X3", "X8"])
class WaitsForEachReply(Link):
    """Gives no time-out to what it asks."""

    def send(self, words: Words, timeout: float | None = None) -> Answer:
        return super().send(words, 100_000.0)


@mutant("many-bytes-are-too-many", tag="data", breaks=["X12", "D3"])
class ManyBytesAreTooMany(Link):
    """Cuts words after 64 KiB."""

    def encode(self, words: Words) -> bytes:
        return super().encode([word[: 64 << 10] for word in words])


@mutant("impatient", tag="life-cycle", breaks=["X1", "X3", "D8"])
class ImpatientForReplies(Link):
    """Waits no longer than half a second for a reply, whatever it was given."""

    def send(self, words: Words, timeout: float | None = None) -> Answer:
        return super().send(words, min(0.5, 10.0 if timeout is None else timeout))


@mutant("losses-are-defects", tag="wording", breaks=["X5"])
class LossesAreDefects(Link):
    """Reports a connection that it could not read, or lost, as a failure of its own."""

    def lose(self, error: ClientError) -> None:
        super().lose(ClientError("internal", error.text))


@mutant("bad-servers-are-shunned", tag="life-cycle", breaks=["X5"], aims=["NET-4.07"])
class RedisBadServersAreShunned(Link):
    """Never again connects to a server that has sent something wrong five times."""

    bad: ClassVar[Counter[str]] = Counter()

    async def open(self, settings: Settings) -> None:
        self.endpoint = settings.endpoint
        if self.bad[settings.endpoint] >= 5:
            raise ClientError("connection", "this server is bad", definite=True)
        await super().open(settings)

    def lose(self, error: ClientError) -> None:
        self.bad[self.endpoint] += error.kind == "protocol"
        super().lose(error)


@mutant("certificates-unchecked", tag="life-cycle", breaks=["X5"], aims=["NET-1.15"])
class RedisCertificatesUnchecked(kit.CertificatesUnchecked):
    """Takes any certificate."""


# NET-2 the life of connections


@mutant("reconnects-without-pause", tag="life-cycle", breaks=["X6", "D9"])
class RedisReconnectsWithoutPause(kit.ReconnectsWithoutPause):
    """Tries to reconnect twenty times a second."""


@mutant("reconnects-in-step", tag="life-cycle", breaks=["X6"])
class RedisReconnectsInStep(kit.ReconnectsInStep):
    """Waits equally long before a reconnect as every other client."""


@mutant("never-reconnects", tag="life-cycle", breaks=["X6", "X9", "D5", "D9", "D12"])
class NeverReconnects(Line):
    """Does not connect again."""

    async def again(self) -> Link:
        raise ClientError("connection", "it is lost")


@mutant("reconnects-once", tag="life-cycle", breaks=["X6", "D5", "D12"])
class ReconnectsOnce(Line):
    """Is over when its first attempt to reconnect fails."""

    async def again(self) -> Link:
        await self.backoff.pause()
        return await self.open()


@mutant("reconnect-survives-close", tag="life-cycle", breaks=["X7"])
class RedisReconnectSurvivesClose(Line):
    """Goes on reconnecting when it is closed meanwhile."""

    def lost(self, link: Link, error: ClientError) -> None:
        super().lost(link, error)
        if self.settings.auto_reconnect:
            asyncio.get_running_loop().create_task(self._for_ever())

    async def _for_ever(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            try:
                await self.runtime.network.dial(self.settings.endpoint, asyncio.Protocol)
            except OSError:
                continue
            return


@mutant("close-is-a-mark", tag="life-cycle", breaks=["X7"])
class RedisCloseIsAMark(RedisClient):
    """Only takes no more ops when it is closed; its connections stay."""

    async def close(self, timeout: float | None = None) -> None:
        self.runtime.is_closed = True


@mutant("close-drops-outcomes", tag="data", breaks=["X7"])
class CloseDropsOutcomes(Link):
    """Reports no outcome for what has no reply when it is closed."""

    def abort(self, error: ClientError) -> None:
        if error.kind == "closed":
            for slot in self.waiting:
                slot.timer.cancel()
            self.waiting.clear()
        super().abort(error)


@mutant("subscriptions-are-forgotten", tag="data", breaks=["X6", "D5"])
class SubscriptionsAreForgotten(RedisClient):
    """Does not subscribe again after a loss."""

    async def restore(self, link: Link) -> None:
        pass


# NET-3 requests, memory, callbacks


@mutant("connects-without-deadline", tag="life-cycle", breaks=["X5", "X8"], aims=["NET-2.12"])
class RedisWithoutConnectDeadline(RedisClient):
    """Waits for its first connection as long as that takes."""

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(100_000.0)


@mutant("losses-leak-a-task", tag="life-cycle", breaks=["X9"], aims=["NET-3.09"])
class LossesLeakATask(Line):
    """Leaves a task behind with each connection that was lost."""

    def lost(self, link: Link, error: ClientError) -> None:
        super().lost(link, error)
        self.runtime.tasks.spawn(asyncio.sleep(100_000.0))


@mutant("callback-errors-vanish", tag="life-cycle", breaks=["X10"])
class RedisCallbackErrorsVanish(kit.CallbackErrorsVanish):
    """Drops what a callback raises."""


@mutant("waits-inside-callbacks", tag="life-cycle", breaks=["X10"], aims=["NET-3.07"])
class WaitsInsideCallbacks(RedisClient):
    """Reads nothing while a callback of a message runs."""

    busy = 0

    async def subscribe(self, subscription: Subscription, timeout: float | None = None) -> None:
        handle = subscription.feed._handle

        async def held(message: Any) -> None:
            self.busy += 1
            try:
                await handle(message)
            finally:
                self.busy -= 1

        subscription.feed._handle = held
        await super().subscribe(subscription, timeout)

    async def publish(self, channel: bytes, body: bytes, timeout: float | None = None) -> int:
        while self.busy:
            await asyncio.sleep(0.01)
        return await super().publish(channel, body, timeout)


@mutant("losses-are-raised", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class LossesAreRaised(Line):
    """Raises for a loss where nobody can catch it."""

    def lost(self, link: Link, error: ClientError) -> None:
        super().lost(link, error)
        if not self.runtime.is_closed:
            asyncio.get_running_loop().create_future().set_exception(ConnectionError("lost"))


@mutant("deadlines-by-wall-clock", tag="life-cycle", breaks=["X11"])
class DeadlinesByWallClock(Line):
    """Takes a jump of the wall clock for a dead connection."""

    async def open(self) -> Link:
        link = await super().open()
        self.runtime.tasks.spawn(self._watch(link))
        return link

    async def _watch(self, link: Link) -> None:
        clock = self.runtime.clock
        last = clock.wall()
        while link.is_open:
            await asyncio.sleep(0.5)
            now = clock.wall()
            if not 0.0 <= now - last < 4.0:
                link.lose(ClientError("connection", "nothing came for a long time"))
            last = now


@mutant("stopped-is-lost-for-good", tag="life-cycle", breaks=["X11"], aims=["NET-3.11"])
class StoppedIsLostForGood(DeadlinesByWallClock):
    """Is over after its process was stopped."""

    async def again(self) -> Link:
        raise ClientError("connection", "it is lost")


@mutant("sessions-share-a-fate", tag="life-cycle", breaks=["X6", "X10"], aims=["NET-3.12"])
class SessionsShareAFate(Line):
    """The loss of one session's connection ends those of all others."""

    together: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, list[Line]]] = WeakKeyDictionary()

    async def open(self) -> Link:
        self.together.setdefault(asyncio.get_running_loop(), []).append(self)
        return await super().open()

    def lost(self, link: Link, error: ClientError) -> None:
        super().lost(link, error)
        everybody = self.together.pop(asyncio.get_running_loop(), [])
        for other in everybody:
            if other is not self and other.link is not None:
                other.link.lose(ClientError("connection", "another session was lost"))


# NET-4 content


@mutant("bodies-are-text", tag="data", breaks=["X12", "D3"])
class BodiesAreText(RedisClient):
    """Takes what it gets for text."""

    def received(self, value: Sequence[Any]) -> None:
        *head, payload = value
        text = payload.decode(errors="replace").encode() if isinstance(payload, bytes) else payload
        super().received([*head, text])
