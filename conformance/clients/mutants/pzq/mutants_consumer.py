"""Consumers with one defect in how they read deliveries."""

from __future__ import annotations

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.sockets import Parts


@mutant("times-in-milliseconds", tag="wire", breaks=["P5", "P7"])
class TimesInMilliseconds(Consumer):
    """Takes the times for milliseconds, and gives them out as microseconds."""

    def read(self, parts: Parts) -> Delivery:
        found = super().read(parts)
        if found.sent_us is None or found.timeout_us is None:
            return found
        return found._replace(sent_us=found.sent_us * 1000, timeout_us=found.timeout_us * 1000)


@mutant("newest-first", tag="data", breaks=["P5"])
class NewestFirst(Consumer):
    """Delivers what has come last first, where the application is slow."""

    def receive(self, parts: Parts) -> None:
        before = len(self.feed)
        super().receive(parts)
        if len(self.feed) > max(before, 1):
            *waiting, newest = self.feed
            self.feed.clear()
            self.feed.put_first([newest, *waiting])


@mutant("body-at-index-5", tag="wire", breaks=["P2", "P5", "X5"])
class BodyAtIndex5(Consumer):
    """Takes everything from the sixth part on for the body, whatever headers there are."""

    def body(self, parts: Parts, delimiter: int) -> Parts:
        return parts[5:]


@mutant("one-body-part", tag="data", breaks=["P5", "P11"])
class OneBodyPart(Consumer):
    """Delivers the first part of a body only."""

    def body(self, parts: Parts, delimiter: int) -> Parts:
        return super().body(parts, delimiter)[:1]


@mutant("last-empty-part-delimits", tag="wire", breaks=["P5", "P11"])
class LastEmptyPartDelimits(Consumer):
    """Takes the last empty part for the delimiter."""

    def delimiter(self, parts: Parts) -> int | None:
        first = super().delimiter(parts)
        last = len(parts) - 1 - parts[::-1].index(b"") if b"" in parts else None
        return last if first is not None and last is not None and last + 1 < len(parts) else first


@mutant("times-are-numbers", tag="data", breaks=["P5"])
class TimesAreNumbers(Consumer):
    """Forgets a delivery whose times are no 64-bit numbers, and reports nothing."""

    def receive(self, parts: Parts) -> None:
        if all(part.isdigit() and len(part) <= 20 for part in parts[2:4]):
            super().receive(parts)


@mutant("times-as-floats", tag="wire", breaks=["P5"])
class TimesAsFloats(Consumer):
    """Reads times as floating point numbers."""

    def read(self, parts: Parts) -> Delivery:
        found = super().read(parts)
        return found._replace(sent_us=None if found.sent_us is None else int(float(found.sent_us)))


@mutant("short-deliveries-count", tag="wire", breaks=["P5"])
class ShortDeliveriesCount(Consumer):
    """Makes a message of whatever comes."""

    def read(self, parts: Parts) -> Delivery:
        try:
            return super().read(parts)
        except ClientError:
            return Delivery(parts[0], parts[1], None, None, parts[-1:])


@mutant("thousand-at-once", tag="data", breaks=["P5"], aims=["PZQ-2.17"])
class ThousandAtOnce(Consumer):
    """Has room for 1000 deliveries and loses the others."""

    def receive(self, parts: Parts) -> None:
        if len(self.feed) < 1000:
            super().receive(parts)


@mutant("only-later-keys", tag="data", breaks=["P5", "P8"])
class OnlyLaterKeys(Consumer):
    """Takes a delivery for an old one when a later key was seen before."""

    latest = b""

    async def handle(self, delivery: Delivery) -> None:
        if delivery.key >= self.latest:
            self.latest = delivery.key
            await super().handle(delivery)


@mutant("keys-as-text", tag="wire", breaks=["P6", "P8"])
class KeysAsText(Consumer):
    """Takes keys for text, and replaces what is none."""

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        pzq_id, key, status = super().acknowledgement(delivery, positive)
        return (pzq_id, key.decode(errors="replace").encode(), status)


@mutant("known-by-text", tag="data", breaks=["P6"])
class KnownByText(Consumer):
    """Takes keys for one whose bytes are no UTF-8 in the same places: the second is settled already."""

    def is_known(self, delivery: Delivery) -> bool:
        return delivery.key.decode(errors="replace") in {key.decode(errors="replace") for key in self.settled}


# expiry


@mutant("expires-early", tag="data", breaks=["P7"])
class ExpiresEarly(Consumer):
    """Takes a delivery for expired when a third of its ack timeout is over."""

    def is_expired(self, delivery: Delivery) -> bool:
        if delivery.timeout_us is None:
            return False
        return super().is_expired(delivery._replace(timeout_us=delivery.timeout_us // 3))


@mutant("expiry-on-arrival", tag="data", breaks=["P7"])
class ExpiryOnArrival(Consumer):
    """Looks at the time of a delivery when it comes, and not when its callback begins."""

    def receive(self, parts: Parts) -> None:
        if not self.is_stale(parts):
            super().receive(parts)

    def is_stale(self, parts: Parts) -> bool:
        try:
            return super().is_expired(self.read(parts))
        except ClientError:
            return False

    def is_expired(self, delivery: Delivery) -> bool:
        return False


@mutant("expired-is-acknowledged", tag="data", breaks=["P7", "P9"])
class ExpiredIsAcknowledged(Consumer):
    """Acknowledges the expired deliveries that it drops."""

    async def handle(self, delivery: Delivery) -> None:
        if self.filter_expired and self.is_expired(delivery):
            await self.settle(delivery, True)
        else:
            await super().handle(delivery)


@mutant("wrapping-times", tag="wire", breaks=["P5", "P7"])
class WrappingTimes(Consumer):
    """Adds sent and timeout in 64 bits with a sign."""

    def is_expired(self, delivery: Delivery) -> bool:
        if delivery.sent_us is None or delivery.timeout_us is None:
            return False
        wrapped = (delivery.sent_us + delivery.timeout_us + 2**63) % 2**64 - 2**63
        return self.runtime.clock.wall() * 1e6 > wrapped
