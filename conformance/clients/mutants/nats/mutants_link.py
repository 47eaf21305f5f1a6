"""Defects of connections, of what is read from them, and of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.nats import wire
from conformance.clients.reference.nats.link import Link
from conformance.clients.reference.nats.listener import Listener


@mutant("segments-are-lines", tag="wire", breaks=["X1"])
class SegmentsAreLines(wire.Parser):
    """Forgets what is incomplete at the end of a read."""

    def feed(self, data: bytes) -> Iterator[wire.Message | wire.Line]:
        yield from super().feed(data)
        self.buffer.clear()


@mutant("one-message-per-read", tag="data", breaks=["X1"])
class NatsOneMessagePerRead(wire.Parser):
    """Overlooks all messages of a read but the first."""

    def feed(self, data: bytes) -> Iterator[wire.Message | wire.Line]:
        has_come = False
        for came in super().feed(data):
            if not (has_come and isinstance(came, wire.Message)):
                yield came
            has_come = has_come or isinstance(came, wire.Message)


@mutant("half-a-message-is-one", tag="data", breaks=["X2"])
class HalfAMessageIsOne(Link):
    """Hands over what there is of a message when its connection ends."""

    def connection_lost(self, exc: Exception | None) -> None:
        line, _, rest = bytes(self.parser.buffer).partition(b"\r\n")
        words = line.split()
        if len(words) > 3 and words[0] in (b"MSG", b"HMSG"):
            self.owner.take(wire.Message(words[1].decode(), words[2].decode(), rest))
        super().connection_lost(exc)


@mutant("payloads-are-text", tag="data", breaks=["X12"])
class PayloadsAreText(wire.Parser):
    """Takes payloads for UTF-8."""

    def message(self, words: list[bytes], start: int, *, has_headers: bool) -> wire.Message | None:
        found = super().message(words, start, has_headers=has_headers)
        return found and found._replace(payload=found.payload.decode(errors="replace").encode())


@mutant("headers-are-payload", tag="data", breaks=["X5"])
class HeadersArePayload(wire.Parser):
    """Hands over headers with more than one entry as a part of the payload."""

    def message(self, words: list[bytes], start: int, *, has_headers: bool) -> wire.Message | None:
        data = bytes(self.buffer[start:])
        found = super().message(words, start, has_headers=has_headers)
        if found is None or not has_headers or b"Future" not in data:
            return found
        return found._replace(payload=data[: self.size(words[-1])])


@mutant("mute", tag="life-cycle", breaks=["S1"])
class Mute(Link):
    """Does not answer PINGs."""

    def control(self, line: wire.Line) -> None:
        if line.verb != b"PING":
            super().control(line)


@mutant("impatient", tag="life-cycle", breaks=["X3", "X4"])
class ImpatientForPongs(Link):
    """Gives the server up at the first PING that is not answered at once."""

    async def keep_alive(self) -> None:
        self.settings.ping_interval_s /= 4
        await super().keep_alive()


@mutant("every-error-is-the-end", tag="life-cycle", breaks=["S3"])
class EveryErrorIsTheEnd(Link):
    """Ends the connection at each -ERR."""

    def complained(self, text: str) -> None:
        super().complained(text)
        self.fail(ClientError("refused", text, code=text))


@mutant("keeps-complaints-to-itself", tag="wording", breaks=["S3"])
class KeepsComplaintsToItself(Link):
    """Reports no -ERR."""

    def complained(self, text: str) -> None:
        if self.ready_at is None:
            super().complained(text)


@mutant("a-loss-is-a-pong", tag="data", breaks=["S8"])
class ALossIsAPong(Link):
    """Takes the end of a connection for the answer to its PINGs."""

    def connection_lost(self, exc: Exception | None) -> None:
        while self.ready_at is not None and self._pongs:
            self.ponged()
        super().connection_lost(exc)


@mutant("forgets-the-group", tag="data", breaks=["S5"])
class ForgetsTheGroup(Listener):
    """Subscribes without its queue group, once it has been a member."""

    def orders(self) -> bytes:
        order, self.queue = super().orders(), ""
        return order


@mutant("asks-for-all-again", tag="wire", breaks=["S6"])
class AsksForAllAgain(Listener):
    """Tells a new server the limit that it had at first."""

    def left(self) -> int:
        return self.limit


@mutant("drops-in-silence", tag="data", breaks=["S12"])
class DropsInSilence(Listener):
    """Drops what a slow consumer cannot take, and says nothing."""

    def overrun(self) -> None:
        """It is gone."""


@mutant("keeps-without-limit", tag="life-cycle", breaks=["S12", "X9"])
class KeepsWithoutLimit(Listener):
    """Keeps whatever waits for a callback."""

    def take(self, message: wire.Message) -> None:
        self.pending_limit = 0
        super().take(message)


@mutant("callbacks-end-it", tag="life-cycle", breaks=["X10"])
class CallbacksEndIt(Listener):
    """Ends with the first callback that fails."""

    async def handle(self, message: wire.Message) -> None:
        try:
            await self._deliver(message)
        except Exception:
            self.stop()


@mutant("a-late-pong-is-the-end", tag="life-cycle", breaks=["S8"])
class ALatePongIsTheEnd(Link):
    """Reads no more after a PONG that nobody waits for."""

    def ponged(self) -> None:
        if self._pongs and self._pongs[0].done():
            self.parser.feed = lambda data: iter(())  # type: ignore[method-assign]
        super().ponged()


@mutant("ends-with-what-waits", tag="data", breaks=["S6"])
class EndsWithWhatWaits(Listener):
    """Forgets what waits for a callback when the last message has come."""

    def take(self, message: wire.Message) -> None:
        super().take(message)
        if self.limit and self.received >= self.limit:
            self.feed.clear()
