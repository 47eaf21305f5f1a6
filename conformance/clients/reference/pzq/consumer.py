"""Takes deliveries and acknowledges them (P5 to P9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, NamedTuple

from conformance.clients.reference.kit import ClientError, Feed, Runtime
from conformance.clients.reference.pzq.sockets import Connector, Parts
from fakebrokers.pzq.memory import SocketType

KEYS_MAX = 10_000  #: settled messages that are known again
DIGITS_MAX = 40  #: of a time


class Delivery(NamedTuple):
    """A message as the application gets it.

    Attributes:
        pzq_id: Part 0: leads an acknowledgement back to the instance that delivered.
        key: The message's identity, any bytes.
        sent_us: When this delivery was sent, microseconds since 1970; None if the part is no number.
        timeout_us: Ack timeout in microseconds; None likewise.
        body: One part or more.
    """

    pzq_id: bytes
    key: bytes
    sent_us: int | None
    timeout_us: int | None
    body: Parts

    def is_expired(self, now: float) -> bool:
        """Whether it will have been sent again at `now` (seconds since 1970)."""
        if self.sent_us is None or self.timeout_us is None:
            return False
        return now * 1e6 > self.sent_us + self.timeout_us


class Consumer:
    """One ROUTER socket, at one broker or at several. Deliveries reach the application one after the other.

    A message that the application has settled positively is known when it comes again: it is acknowledged
    once more and not delivered.

    Args:
        deliver: The application's callback. If it raises, the message is given back.
        filter_expired: Drop what has expired before the application gets it; it comes again.
    """

    kind: ClassVar[SocketType] = "ROUTER"

    def __init__(
        self,
        runtime: Runtime,
        connector: Connector,
        endpoint: str | Sequence[str],
        deliver_message: Callable[[Delivery], Awaitable[None]],
        *,
        filter_expired: bool = False,
    ) -> None:
        self.runtime = runtime
        self.deliver_message = deliver_message
        self.filter_expired = filter_expired
        self.settled: dict[bytes, None] = {}
        self.feed: Feed[Delivery] = Feed(runtime.feeds, self.handle)
        self.socket = connector.connect(endpoint, self.kind, self.receive)

    # deliveries

    def receive(self, parts: Parts) -> None:
        """Take in a delivery."""
        try:
            delivery = self.read(parts)
        except ClientError as error:
            self.runtime.callbacks.trouble("decode", error)
        else:
            self.feed.put(delivery)

    def read(self, parts: Parts) -> Delivery:
        """A delivery's parts. Raises `ClientError` (protocol) for anything else."""
        at = self.delimiter(parts)
        if at is None or at + 1 >= len(parts):
            wanted = "[pzq id][key][sent][timeout][headers...][][body...]"
            raise ClientError("protocol", f"expected {wanted}, got {len(parts)} parts")
        return Delivery(parts[0], parts[1], number(parts[2]), number(parts[3]), self.body(parts, at))

    def delimiter(self, parts: Parts) -> int | None:
        """Where the delimiter is: the first empty part after the times."""
        if b"" in parts[2:4]:
            return None
        return next((at for at in range(4, len(parts)) if not parts[at]), None)

    def body(self, parts: Parts, delimiter: int) -> Parts:
        """What follows the delimiter."""
        return parts[delimiter + 1 :]

    async def handle(self, delivery: Delivery) -> None:
        """Settle what is known, drop what is stale, deliver all else."""
        if self.is_known(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} came again and was acknowledged once more")
            await self.settle(delivery, True)
        elif self.filter_expired and self.is_expired(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} had expired and was dropped; it comes again")
        else:
            await self.hand_over(delivery)

    async def hand_over(self, delivery: Delivery) -> None:
        """Call the application back; what it fails at is given back."""
        try:
            await self.deliver_message(delivery)
        except Exception as error:
            self.runtime.callbacks.failed("message", error)
            await self.settle(delivery, False)

    def is_known(self, delivery: Delivery) -> bool:
        """Whether the application has settled this message positively."""
        return delivery.key in self.settled

    def is_expired(self, delivery: Delivery) -> bool:
        """Whether the delivery is past its ack timeout."""
        return delivery.is_expired(self.runtime.clock.wall())

    # acknowledgements

    async def settle(self, delivery: Delivery, positive: bool) -> None:
        """Acknowledge a message, or give it back."""
        if positive:
            self.settled[delivery.key] = None
            while len(self.settled) > KEYS_MAX:
                del self.settled[next(iter(self.settled))]
        self.socket.send(*self.acknowledgement(delivery, positive))

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        """An acknowledgement as the socket takes it."""
        return (delivery.pzq_id, delivery.key, b"1" if positive else b"0")

    def close(self) -> None:
        """End the socket; what was not settled comes again to a consumer."""
        self.feed.abort()
        self.socket.close()


def number(part: bytes) -> int | None:
    """A decimal part; None for what is no number, or longer than any time."""
    return int(part) if part.isdigit() and len(part) <= DIGITS_MAX else None
