"""Defects in consuming over WebSocket (catalogue section NARC-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.narconi.channels import Callback, Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import OWN_KEYS, Consumer
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.narconi.websocket import BadFrame, Message, MessageReader
from conformance.clients.reference.narconi.websockets import WebSockets
from fakebrokers.narconi.websocket import PING, PONG, TEXT

# the upgrade


@mutant("limit-not-sent", tag="wire", breaks=["N11"])
class LimitNotSent(NarconiClient):
    """Forgets the limit."""

    async def subscribe(
        self,
        queue: str,
        callback: Callback,
        *,
        ack: bool = False,
        limit: Any = None,
        encoding: str | None = None,
    ) -> Subscription:
        return await super().subscribe(queue, callback, ack=ack, encoding=encoding)


# deliveries


@mutant("ping-drops-metadata", tag="data", breaks=["N10"])
class PingDropsMetadata(Socket):
    """Forgets the metadata when a ping comes before the body."""

    def message(self, message: Message) -> None:
        super().message(message)
        if message.opcode == PING:
            owner: Any = self._on_message.__self__  # type: ignore[attr-defined]
            owner.core._metadata = None


@mutant("text-is-metadata", tag="wire", breaks=["N10"])
class TextIsMetadata(Consumer):
    """Takes every text message for metadata, and says nothing of one that is none."""

    def message(self, message: Message) -> None:
        if self._metadata is None or message.opcode != TEXT:
            super().message(message)
            return
        self._metadata = None
        with suppress(ClientError):
            super().message(message)


@mutant("metadata-of-the-last", tag="data", breaks=["N10"])
class MetadataOfTheLast(Consumer):
    """Delivers a body with the metadata of the one before it."""

    former: dict[str, Any] | None = None

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        shown, self.former = self.former or metadata, metadata
        super().deliver_message({**shown, "ackId": metadata.get("ackId")}, body)


@mutant("encoding-not-sent", tag="wire", breaks=["N12"])
class EncodingNotSent(NarconiClient):
    """Forgets the encoding."""

    async def subscribe(
        self,
        queue: str,
        callback: Callback,
        *,
        ack: bool = False,
        limit: Any = None,
        encoding: str | None = None,
    ) -> Subscription:
        return await super().subscribe(queue, callback, ack=ack, limit=limit)


@mutant("encoding-waits-for-a-body", tag="life-cycle", breaks=["N12"])
class EncodingWaitsForABody(Consumer):
    """Waits for a body after metadata that holds it already."""

    def message(self, message: Message) -> None:
        encoding, self.encoding = self.encoding, None
        super().message(message)
        self.encoding = encoding


@mutant("empty-body-skipped", tag="wire", breaks=["N10"])
class EmptyBodySkipped(Consumer):
    """Skips empty messages."""

    def message(self, message: Message) -> None:
        if message.payload:
            super().message(message)


@mutant("half-message-surfaced", tag="wire", breaks=["N10"])
class HalfMessageSurfaced(Consumer):
    """Delivers metadata without a body when the connection ends."""

    def lost(self) -> None:
        if self._metadata is not None:
            self.deliver_message(self._metadata, b"")
        super().lost()


@mutant("metadata-is-strict", tag="wire", breaks=["N10", "X5"])
class MetadataIsStrict(Consumer):
    """Fails on metadata that it does not know, or that is no text."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        for key, value in metadata.items():
            if key not in OWN_KEYS and not isinstance(value, str):
                raise ClientError("protocol", f"{key} is no text")
        super().deliver_message(metadata, body)


@mutant("redelivered-ignored", tag="data", breaks=["N10", "N13", "N18"])
class RedeliveredIgnored(Consumer):
    """Takes a message that is redelivered for one that it has seen."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        if not metadata.get("redelivered"):
            super().deliver_message(metadata, body)


@mutant("ack-ids-remembered", tag="data", breaks=["N10", "N13"])
class AckIdsRemembered(Consumer):
    """Takes an ack id that was there on another connection for a duplicate."""

    seen: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Consumer]]] = WeakKeyDictionary()

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        ack_id = metadata.get("ackId")
        seen = self.seen.setdefault(asyncio.get_running_loop(), {})
        if ack_id is None or seen.setdefault(ack_id, self) is self:
            super().deliver_message(metadata, body)


@mutant("loses-in-a-flood", tag="data", breaks=["N11", "N17"])
class LosesInAFlood(Consumer):
    """Keeps no more than 1000 messages."""

    count = 0

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        self.count += 1
        if self.count <= 1000:
            super().deliver_message(metadata, body)


@mutant("drops-beyond-the-limit", tag="data", breaks=["N11"])
class DropsBeyondTheLimit(Consumer):
    """Drops what comes while two messages are unacknowledged."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        if len(self.outstanding) < 2:
            super().deliver_message(metadata, body)


# acknowledgements


@mutant("acks-on-arrival", tag="data", breaks=["N10", "N11", "N13"])
class AcksOnArrival(Consumer):
    """Acknowledges a message before the application has it."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        super().deliver_message(metadata, body)
        if metadata.get("ackId") is not None:
            self.command({"ackId": metadata["ackId"]})

    def settle(self, ack_id: str) -> None:
        pass


@mutant("ack-id-as-number", tag="wire", breaks=["N10", "N13"])
class AckIdAsNumber(Consumer):
    """Sends ack ids as numbers."""

    def command(self, value: dict[str, Any]) -> None:
        super().command({key: int(one) if str(one).isdecimal() else one for key, one in value.items()})


@mutant("acks-are-cumulative", tag="data", breaks=["N13"])
class AcksAreCumulative(Consumer):
    """Acknowledges everything up to a message when one is settled."""

    def command(self, value: dict[str, Any]) -> None:
        super().command({"ackToId": next(iter(value.values()))})


@mutant("ack-to-means-all", tag="data", breaks=["N13"])
class AckToMeansAll(Consumer):
    """Acknowledges everything when some are settled together."""

    def settle_to(self, ack_id: str) -> None:
        super().settle_to(self.outstanding[-1])


@mutant("acks-without-being-asked", tag="wire", breaks=["N13", "N17"])
class AcksWithoutBeingAsked(Consumer):
    """Sends acknowledgements on a connection without them."""

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        super().deliver_message(metadata, body)
        if not self.ack:
            self.command({"ackId": "1"})


@mutant("settles-twice", tag="data", breaks=["N13"])
class SettlesTwice(Consumer):
    """Sends an acknowledgement again when a message is settled again."""

    def settle(self, ack_id: str) -> None:
        if ack_id in self.outstanding:
            self.outstanding.remove(ack_id)
        self.command({"ackId": ack_id})


# errors, frames, the end


@mutant("errors-swallowed", tag="life-cycle", breaks=["N14"])
class ErrorsSwallowed(Consumer):
    """Reports no error of the server."""

    def failed(self, value: dict[str, Any]) -> None:
        pass


@mutant("errors-are-messages", tag="data", breaks=["N14"])
class ErrorsAreMessages(Consumer):
    """Delivers an error of the server as a message."""

    def failed(self, value: dict[str, Any]) -> None:
        super().failed(value)
        self.deliver_message({}, str(value).encode())


@mutant("stop-not-sent", tag="wire", breaks=["N15"])
class StopNotSent(Consumer):
    """Does not let the server know that it wants no more."""

    def stop(self) -> None:
        pass


@mutant("stop-forgets-the-outstanding", tag="data", breaks=["N15"])
class StopForgetsTheOutstanding(Consumer):
    """Ends gracefully without what waits for an acknowledgement."""

    def stop(self) -> None:
        super().stop()
        self.outstanding.clear()


@mutant("pings-need-no-pong", tag="life-cycle", breaks=["N14"])
class PingsNeedNoPong(Socket):
    """Does not mind when the server answers no pings."""

    def unanswered(self) -> None:
        self._schedule_ping()


@mutant("pong-is-empty", tag="wire", breaks=["N14"])
class PongIsEmpty(Socket):
    """Answers pings without their payload."""

    def write(self, opcode: int, payload: bytes) -> None:
        super().write(opcode, b"" if opcode == PONG else payload)


@mutant("bad-frames-accepted", tag="wire", breaks=["N14"])
class BadFramesAccepted(MessageReader):
    """Does not look at the reserved bits."""

    def check(self, first: int, second: int, size: int) -> None:
        super().check(first & 0x8F, second, size)


@mutant("bad-text-repaired", tag="wire", breaks=["N14"])
class BadTextRepaired(MessageReader):
    """Repairs text that is no UTF-8."""

    def text(self, payload: bytes) -> bytes:
        return payload.decode(errors="replace").encode()


@mutant("too-large-ignored", tag="life-cycle", breaks=["N19"])
class TooLargeIgnored(MessageReader):
    """Says nothing when a message is too large, and waits."""

    def feed(self, data: bytes) -> list[Message]:
        try:
            return super().feed(data)
        except BadFrame as error:
            if error.close_code != 1009:
                raise
            return []


@mutant("limit-made-to-fit", tag="data", breaks=["N11"])
class LimitMadeToFit(WebSockets):
    """Takes another limit when the wanted one is out of range, and reports no error."""

    def socket(self, queue: str, protocol: str, query: Mapping[str, str], *callbacks: Any) -> Socket:
        made = dict(query)
        if "limit" in made and float(made["limit"]) < 1:
            made["limit"] = "1"
        return super().socket(queue, protocol, made, *callbacks)


@mutant("settles-only-the-last", tag="life-cycle", breaks=["N11"])
class SettlesOnlyTheLast(Consumer):
    """Takes deliveries for open that an acknowledgement of a later one has settled with it."""

    def settle_to(self, ack_id: str) -> None:
        before = list(self.outstanding)
        super().settle_to(ack_id)
        self.outstanding[:] = [each for each in before if each != ack_id]


@mutant("frames-put-off-pings", tag="life-cycle", breaks=["N14"])
class FramesPutOffPings(Socket):
    """Each frame that is sent puts off the next ping, and the end of the wait for a pong."""

    def send(self, opcode: int, payload: bytes) -> None:
        super().send(opcode, payload)
        self._schedule_ping()


# several subscriptions


@mutant("one-end-is-the-end-of-all", tag="life-cycle", breaks=["N10"])
class OneSubscriptionEndsAll(Subscription):
    """When one subscription has ended, the others take in what comes, and deliver none of it."""

    async def _deliver_message(self, delivery: Any) -> None:
        if not getattr(self._runtime, "one_has_ended", False):
            await super()._deliver_message(delivery)

    def _stop(self) -> None:
        self._runtime.one_has_ended = True  # type: ignore[attr-defined]
        super()._stop()


@mutant("newest-of-a-queue-alone", tag="data", breaks=["N10"])
class NewestOfAQueueAlone(Subscription):
    """Of several subscriptions of a queue only the newest one delivers."""

    newest: ClassVar[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.newest.setdefault(self._websockets, {})[self._queue] = self

    async def _deliver_message(self, delivery: Any) -> None:
        if self.newest[self._websockets][self._queue] is self:
            await super()._deliver_message(delivery)
