"""Messages on their way to the broker, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from crc32c import crc32c

from conformance.clients.reference.blazingmq.contents import Contents, Packed
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import AckStatus, PutFlag
from fakebrokers.blazingmq.frames import Ack, AckMessage, Put, PutMessage
from fakebrokers.blazingmq.properties import Property

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.client import BlazingClient
    from conformance.clients.reference.blazingmq.queues import Queue

CORRELATION_MAX = 0xFFFFFF


class Pending(NamedTuple):
    """A post that waits for its ACK."""

    queue_id: int
    answer: asyncio.Future[dict[str, Any]]


class Posts:
    """Those of one client.

    Attributes:
        last_id: The correlation id that was given last.
    """

    def __init__(self, client: BlazingClient) -> None:
        self.client = client
        self.contents = client.runtime.part(Contents)()
        self.pending: dict[int, Pending] = {}
        self.last_id = 0

    def next_id(self) -> int:
        """A correlation id that no post waits under: 1 to 0xFFFFFF."""
        while True:
            self.last_id = self.last_id % CORRELATION_MAX + 1
            if self.last_id not in self.pending:
                return self.last_id

    def message(self, queue: Queue, packed: Packed, number: int) -> PutMessage:
        """A PUT message; number 0 asks for no ACK."""
        flags = PutFlag.ACK_REQUESTED if number else 0
        if packed.has_properties:
            flags |= PutFlag.MESSAGE_PROPERTIES
        return PutMessage(
            queue.q_id,
            number.to_bytes(4) + bytes(12),
            packed.data,
            int(flags),
            self.checksum(packed.data),
            packed.schema_id,
            packed.compression,
        )

    def checksum(self, data: bytes) -> int:
        """CRC32-C of the data as they are sent, without padding."""
        return int(crc32c(data))

    def send(
        self, queue: Queue, body: bytes, properties: Mapping[str, Property], zlib_wanted: bool, number: int
    ) -> None:
        """Write a PUT."""
        link = self.client.usable()
        if not queue.write:
            raise ClientError("invalid", "the queue is not open for write")
        new_style = "MPS:MESSAGE_PROPERTIES_EX" in link.handshake.features
        packed = self.contents.pack(body, properties, zlib_wanted=zlib_wanted, new_style=new_style)
        link.send(Put((self.message(queue, packed, number),)))

    async def post(
        self,
        target: str,
        body: bytes,
        properties: Mapping[str, Property],
        *,
        zlib_wanted: bool,
        wait: bool,
        timeout: float,
    ) -> dict[str, Any]:
        """Post, and wait for the ACK if `wait`. Raises `ClientError`."""
        queue = self.client.queues.find(target)
        clock = self.client.runtime.clock
        deadline = clock.deadline(timeout)
        await queue.opened_again(timeout)
        if self.client.queues.find(target) is not queue:  # another one was opened under its name
            raise ClientError("closed", "the queue is closed", definite=True)
        if not wait:
            self.send(queue, body, properties, zlib_wanted, 0)
            return {}
        number = self.next_id()
        self.send(queue, body, properties, zlib_wanted, number)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.pending[number] = Pending(queue.q_id, answer)
        return await self.acked(number, answer, deadline - clock.now())

    async def acked(
        self, number: int, answer: asyncio.Future[dict[str, Any]], timeout: float
    ) -> dict[str, Any]:
        """Wait for an ACK."""
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise ClientError("timeout", f"no ACK after {timeout} s") from None
        finally:
            self.forget(number)

    def forget(self, number: int) -> None:
        """A post has ended."""
        self.pending.pop(number, None)

    def acknowledged(self, frame: Ack) -> None:
        """ACKs came."""
        for message in frame.messages:
            self.answer(message)

    def answer(self, message: AckMessage) -> None:
        """One ACK came."""
        found = self.pending.get(message.correlation_id)
        if found is None or found.queue_id != message.queue_id or found.answer.done():
            self.unexpected(message)
        elif message.status == AckStatus.SUCCESS:
            meta = {"guid": message.guid.hex().upper(), "correlation": message.correlation_id}
            found.answer.set_result({"meta": meta})
        else:
            found.answer.set_exception(self.refusal(message))

    def refusal(self, message: AckMessage) -> ClientError:
        """The error of an ACK."""
        known = message.status in set(AckStatus)
        name = AckStatus(message.status).name if known else AckStatus.UNKNOWN.name
        return ClientError("refused", f"the broker did not store it: {name}", code=name)

    def unexpected(self, message: AckMessage) -> None:
        """An ACK that no post waits for: what was refused is reported all the same."""
        if message.status != AckStatus.SUCCESS:
            self.client.runtime.callbacks.trouble("other", self.refusal(message))
        else:
            self.client.runtime.callbacks.note(f"an ACK for no open message: {message.correlation_id}")

    def end(self, error: ClientError) -> None:
        """No ACK comes any more: whether the messages are stored nobody knows."""
        pending, self.pending = self.pending, {}
        for one in pending.values():
            if not one.answer.done():
                one.answer.set_exception(ClientError(error.kind, error.text, definite=False))
