"""Defects in commands and their replies, in subscriptions and logins (catalogue sections RED-1 to RED-3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.redis.client import WAYS, RedisClient, Subscription
from conformance.clients.reference.redis.line import Line
from conformance.clients.reference.redis.link import Link, Settings, Words
from conformance.clients.reference.redis.resp import ErrorReply, Push

# replies


@mutant("last-asked-first-answered", tag="data", breaks=["D1", "D10", "X8"])
class LastAskedFirstAnswered(Link):
    """Takes a reply for that to the newest command."""

    def take(self, value: Any) -> None:
        self.waiting.reverse()
        super().take(value)
        self.waiting.reverse()


@mutant("called-off-leaves-its-reply", tag="data", breaks=["D1", "X8"])
class CalledOffLeavesItsReply(Link):
    """Forgets a command that was called off, and takes its reply for that to the next one."""

    def take(self, value: Any) -> None:
        while self.waiting and self.waiting[0].answer.done():
            self.waiting.popleft().timer.cancel()
        super().take(value)


@mutant("pop-goes-on", tag="data", breaks=["D8"])
class PopGoesOn(RedisClient):
    """Lets a pop wait at the server when it was called off here."""

    async def pop(self, words: Words, timeout: float | None) -> Any:
        link = self.runtime.part(Link)(self.runtime, self.nobody, self.received)
        await link.open(self.settings)
        return await link.ask(words, timeout)


@mutant("stops-at-an-error", tag="data", breaks=["D10"])
class StopsAtAnError(RedisClient):
    """Returns the results of a pipeline up to its first error."""

    async def pipeline(self, commands: Sequence[Words], timeout: float | None = None) -> list[Any]:
        answers = await super().pipeline(commands, timeout)
        first = next((at for at, one in enumerate(answers) if isinstance(one, ErrorReply)), len(answers))
        return answers[: first + 1]


@mutant("errors-without-a-word", tag="wording", breaks=["D2", "D12"])
class ErrorsWithoutAWord(RedisClient):
    """Reports no code with a refusal."""

    async def call(self, words: Words, timeout: float | None = None) -> Any:
        try:
            return await super().call(words, timeout)
        except ClientError as error:
            raise ClientError(error.kind, error.text, definite=error.definite) from None


@mutant("error-is-a-text", tag="data", breaks=["D2", "D9"])
class ErrorIsAText(Link):
    """Takes an error for the text of a reply."""

    def take(self, value: Any) -> None:
        super().take(str(value).encode() if isinstance(value, ErrorReply) else value)


@mutant("asks-again", tag="data", breaks=["D11"])
class AsksAgain(RedisClient):
    """Asks a command again whose reply was lost."""

    async def call(self, words: Words, timeout: float | None = None) -> Any:
        try:
            return await super().call(words, timeout)
        except ClientError as error:
            if error.kind != "connection" or self.runtime.is_closed:
                raise
            return await super().call(words, timeout)


# subscriptions


@mutant("patterns-are-forgotten", tag="data", breaks=["D5"])
class PatternsAreForgotten(RedisClient):
    """Subscribes to channels alone again after a loss."""

    async def restore(self, link: Link) -> None:
        for one in self.subscriptions:
            if one.way == "channel":
                await self.ask(link, one)


@mutant("ended-comes-back", tag="data", breaks=["D5"])
class EndedComesBack(RedisClient):
    """Remembers what was ended while there was no connection."""

    def forget(self, subscription: Subscription) -> None:
        if self.listener.is_open:
            super().forget(subscription)


@mutant("push-is-a-reply", tag="data", breaks=["D6"])
class PushIsAReply(Link):
    """Takes a push of a kind that it does not know for a reply."""

    def take(self, value: Any) -> None:
        known = isinstance(value, Push) and value and value[0] in {way[2] for way in WAYS.values()}
        super().take(value if known or not isinstance(value, Push) else list(value))


@mutant("pattern-is-the-channel", tag="data", breaks=["D7"])
class PatternIsTheChannel(RedisClient):
    """Reports the pattern where a message was published to a channel that fits it."""

    def received(self, value: Sequence[Any]) -> None:
        super().received([*value[:2], value[1], value[-1]] if value[0] == b"pmessage" else value)


# logins


@mutant("denied-is-lost", tag="wording", breaks=["D9"])
class DeniedIsLost(Link):
    """Reports refused credentials as a lost connection."""

    async def greet(self, settings: Settings) -> None:
        try:
            await super().greet(settings)
        except ClientError as error:
            raise ClientError("connection", error.text) from None


@mutant("logs-in-once", tag="life-cycle", breaks=["D9"])
class LogsInOnce(Line):
    """Greets only its first connection with its password."""

    async def open(self) -> Link:
        link = await super().open()
        self.settings = self.settings._replace(password=None)
        return link


@mutant("knocks-on", tag="life-cycle", breaks=["D9"])
class KnocksOn(Line):
    """Tries again at once when its password is refused, for ever."""

    async def again(self) -> Link:
        self.backoff.longest_s = 0.02
        return await self.backoff.retry(self.open, lambda error: False)


@mutant("loading-is-final", tag="life-cycle", breaks=["D12"])
class LoadingIsFinal(Line):
    """Asks PING on each new connection, and is over when that is refused with whatever word."""

    async def open(self) -> Link:
        link = await super().open()
        try:
            await link.ask([b"PING"])
        except ClientError as error:
            link.abort(error)
            raise
        return link

    async def again(self) -> Link:
        return await self.backoff.retry(self.open, lambda error: error.kind in ("auth", "refused"))
