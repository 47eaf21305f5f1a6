"""Messages that come from the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.kit import ClientError, Feed
from fakebrokers.blazingmq.frames import Confirm, ConfirmMessage, Push, PushMessage
from fakebrokers.blazingmq.properties import Property
from fakebrokers.errors import WireError

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.client import BlazingClient
    from conformance.clients.reference.blazingmq.queues import Queue


class Delivery(NamedTuple):
    """A message for the application."""

    queue: Queue
    guid: bytes
    payload: bytes
    properties: Mapping[str, Property]


class Deliveries:
    """Those of one client: callbacks get them one by one."""

    def __init__(self, client: BlazingClient) -> None:
        self.client = client
        self.contents = client.runtime.part(Contents)()
        self.feed: Feed[Delivery] = Feed(client.runtime.feeds, self.deliver_message)

    def pushed(self, frame: Push) -> None:
        """A PUSH event came."""
        for message in frame.messages:
            self.take(message)
        if frame.rest:
            self.trouble(f"{len(frame.rest)} bytes of a PUSH event that cannot be read")

    def take(self, message: PushMessage) -> None:
        """One message came."""
        queue = self.client.queues.numbered(message.queue_id)
        if queue is None:
            self.trouble(f"a message for queue {message.queue_id}, which is not open")
            return
        try:
            content = self.contents.unpack(message)
        except WireError as error:
            self.trouble(f"a message that cannot be read: {error}")
            return
        self.feed.put(Delivery(queue, message.guid, content.payload, content.properties))

    async def deliver_message(self, delivery: Delivery) -> None:
        """Hand it to the application, or keep it until that has subscribed."""
        callback = delivery.queue.callback
        if callback is None:
            delivery.queue.early.append(delivery)
        else:
            await self.client.runtime.callbacks.contain_async("message", lambda: callback(delivery))

    def subscribe(self, queue: Queue) -> None:
        """The application has subscribed: what came before goes first."""
        early, queue.early = queue.early, []
        self.feed.put_first(early)

    def confirm(self, delivery: Delivery) -> None:
        """The application is done with a message. Raises `ClientError`."""
        link = self.client.usable()
        queue = delivery.queue
        if self.client.queues.numbered(queue.q_id) is not queue:
            raise ClientError("closed", "the queue is closed", definite=True)
        link.send(Confirm((self.message(delivery),)))

    def message(self, delivery: Delivery) -> ConfirmMessage:
        """What a CONFIRM says."""
        return ConfirmMessage(delivery.queue.q_id, delivery.guid, delivery.queue.sub_id)

    def trouble(self, text: str) -> None:
        """A message that no application gets."""
        self.client.runtime.callbacks.trouble("decode", ClientError("protocol", text))
