"""Defects in taking and confirming deliveries (catalogue section BMQ-4)."""

from __future__ import annotations

from msgspec.structs import replace

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import Push, PushMessage
from fakebrokers.blazingmq.options import read_options
from fakebrokers.blazingmq.properties import Content
from fakebrokers.errors import WireError


@mutant("confirms-by-itself", tag="data", breaks=["B14", "X10"])
class ConfirmsByItself(Deliveries):
    """Confirms a message before the application has seen it."""

    async def deliver_message(self, delivery: Delivery) -> None:
        super().confirm(delivery)
        await super().deliver_message(delivery)


@mutant("confirms-thrice", tag="wire", breaks=["B14"])
class ConfirmsThrice(Deliveries):
    """Sends three CONFIRMs for one."""

    def confirm(self, delivery: Delivery) -> None:
        for _ in range(3):
            super().confirm(delivery)


@mutant("loses-confirms-in-a-burst", tag="data", breaks=["B14"])
class LosesConfirmsInABurst(Deliveries):
    """Loses each twentieth CONFIRM."""

    count = 0

    def confirm(self, delivery: Delivery) -> None:
        self.count += 1
        if self.count % 20:
            super().confirm(delivery)


@mutant("first-message-of-an-event", tag="data", breaks=["B13", "X1"])
class FirstMessageOfAnEvent(Deliveries):
    """Looks at the first message of a PUSH event only."""

    def pushed(self, frame: Push) -> None:
        super().pushed(replace(frame, messages=frame.messages[:1]))


@mutant("repeats-are-fatal", tag="life-cycle", breaks=["B14"])
class RepeatsAreFatal(Deliveries):
    """A message that comes again ends the session for good."""

    def take(self, message: PushMessage) -> None:
        seen: set[bytes] = self.__dict__.setdefault("seen", set())
        if message.guid in seen:
            self.client.finish(ClientError("closed", "a message came twice"))
        seen.add(message.guid)
        super().take(message)


@mutant("any-queue-will-do", tag="data", breaks=["B13", "B19"])
class AnyQueueWillDo(Queues):
    """Hands a message for an unknown queue to some other one."""

    def numbered(self, q_id: int) -> Queue | None:
        return super().numbered(q_id) or next(iter(self.by_name.values()), None)


@mutant("first-reader-of-a-uri", tag="data", breaks=["B13", "B14"])
class FirstReaderOfAUri(Queues):
    """Gives all messages of a URI to the application that opened it first."""

    def numbered(self, q_id: int) -> Queue | None:
        found = super().numbered(q_id)
        if found is None:
            return None
        base = found.uri.partition("?")[0]
        return next(queue for queue in self.by_name.values() if queue.uri.partition("?")[0] == base)


@mutant("empty-messages-end-the-event", tag="data", breaks=["B13"])
class EmptyMessagesEndTheEvent(Deliveries):
    """Overlooks what follows a message without data."""

    def pushed(self, frame: Push) -> None:
        for message in frame.messages:
            if not message.data:
                return
            self.take(message)


@mutant("never-inflates", tag="data", breaks=["B13"])
class NeverInflates(Contents):
    """Delivers compressed bodies as they come."""

    def unpack(self, message: PushMessage) -> Content:
        return super().unpack(replace(message, compression=Compression.NONE))


@mutant("surfaces-what-it-cannot-read", tag="data", breaks=["B13", "B19", "X2", "X5"])
class SurfacesWhatItCannotRead(Contents):
    """Delivers the bytes of messages that it cannot read."""

    def unpack(self, message: PushMessage) -> Content:
        try:
            return super().unpack(message)
        except WireError:
            return Content(message.data)


@mutant("old-properties-are-dropped", tag="data", breaks=["B2", "B13"])
class OldPropertiesAreDropped(Contents):
    """Reads properties in the new style only."""

    def unpack(self, message: PushMessage) -> Content:
        found = super().unpack(message)
        return found if message.schema_id else Content(found.payload)


@mutant("strange-options-are-payload", tag="data", breaks=["B13"])
class StrangeOptionsArePayload(Contents):
    """Takes options that it does not know for the beginning of the payload."""

    def unpack(self, message: PushMessage) -> Content:
        found = super().unpack(message)
        strange = message.options and message.options[0] >> 2 != 1
        return Content(message.options + found.payload, found.properties) if strange else found


@mutant("old-subscriptions-are-dropped", tag="data", breaks=["B4", "B13"])
class OldSubscriptionsAreDropped(Deliveries):
    """Drops what comes under a subscription as soon as it has asked for another one."""

    def take(self, message: PushMessage) -> None:
        last = self.client.queues.last_subscription
        if any(info.number in (0, last) for info in read_options(message.options)):
            super().take(message)


@mutant("unknown-subscriptions-end-deliveries", tag="data", breaks=["B13", "B19"])
class UnknownSubscriptionsEndDeliveries(Deliveries):
    """Delivers nothing any more after a message under a subscription that it does not know."""

    is_over = False

    def take(self, message: PushMessage) -> None:
        last = self.client.queues.last_subscription
        numbers = [info.number for info in read_options(message.options)]
        self.is_over = self.is_over or any(number > last for number in numbers)
        if not self.is_over:
            super().take(message)


@mutant("callback-errors-end-deliveries", tag="life-cycle", breaks=["B19", "X10"])
class CallbackErrorsEndDeliveries(Deliveries):
    """Delivers nothing any more after a callback that raised."""

    is_over = False

    async def deliver_message(self, delivery: Delivery) -> None:
        callback = delivery.queue.callback
        if callback is None:
            await super().deliver_message(delivery)
        elif not self.is_over:
            try:
                await callback(delivery)
            except Exception:
                self.is_over = True


@mutant("without-a-callback-is-dropped", tag="data", breaks=["B13", "X1"])
class WithoutACallbackIsDropped(Deliveries):
    """Drops what comes after a callback was taken away and before there is another one."""

    async def deliver_message(self, delivery: Delivery) -> None:
        if delivery.queue.callback is not None or not delivery.queue.__dict__.get("had_callback"):
            await super().deliver_message(delivery)

    def subscribe(self, queue: Queue) -> None:
        queue.__dict__["had_callback"] = True
        super().subscribe(queue)


@mutant("unreadable-ends-its-event", tag="data", breaks=["B13", "B19", "X9"])
class UnreadableEndsItsEvent(Deliveries):
    """Reads nothing of a PUSH event after a message that cannot be read."""

    def pushed(self, frame: Push) -> None:
        for message in frame.messages:
            try:
                self.contents.unpack(message)
            except WireError as error:
                self.trouble(f"an event that cannot be read: {error}")
                return
            self.take(message)


@mutant("callback-of-the-batch", tag="life-cycle", breaks=["B13"])
class CallbackOfTheBatch(Deliveries):
    """What waits goes to the callback that got the first of it, whatever has become of that meanwhile."""

    async def deliver_message(self, delivery: Delivery) -> None:
        queue = delivery.queue
        kept = self.__dict__.setdefault("kept", {})
        callback = kept.setdefault(queue, queue.callback)
        if not len(self.feed):
            kept.pop(queue)
        if callback is None:
            queue.early.append(delivery)
        else:
            await self.client.runtime.callbacks.contain_async("message", lambda: callback(delivery))


@mutant("early-messages-are-lost", tag="data", breaks=["B13"])
class EarlyMessagesAreLost(Deliveries):
    """Drops what came before the application has subscribed for the first time."""

    def subscribe(self, queue: Queue) -> None:
        queue.early.clear()
        super().subscribe(queue)
