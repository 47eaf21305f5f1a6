"""The publishing half of the client."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import UNSET

from conformance.clients.reference.kit import ClientError, WaitQueue
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.publisher import (
    Entry,
    FilterValue,
    Publisher,
    filter_size,
)
from conformance.clients.reference.rabbitmq_stream.requests import Undo
from fakebrokers.rabbitmq_stream.codes import Code, Compression
from fakebrokers.rabbitmq_stream.frames import (
    DeclarePublisher,
    DeletePublisher,
    QueryPublisherSequence,
)

REFERENCE_BYTES_MAX = 255  #: docs/protocols/rabbitmq-stream.md, 6

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient

OnOutcome = Callable[[int, ClientError | None], None]


class Receipt:
    """A message, or a sub-entry batch, that was put on the wire.

    Attributes:
        outcome: None for confirmed, or the `ClientError`.
    """

    def __init__(
        self, publisher: Publisher, entry: Entry, outcome: asyncio.Future[ClientError | None]
    ) -> None:
        self.publisher = publisher
        self.entry = entry
        self.outcome = outcome

    @property
    def publishing_id(self) -> int:
        """The id on the wire."""
        return self.entry.publishing_id or 0

    async def confirmed(self) -> None:
        """Wait for the confirm. Raises `ClientError` if it is refused, or will not come."""
        try:
            error = await self.outcome
        except asyncio.CancelledError:
            self.publisher.forget(self.publishing_id)
            raise
        if error is not None:
            raise error


class Publishing:
    """Declares publishers when they are first needed, and keeps them declared.

    Attributes:
        publishers: By stream and name.
    """

    def __init__(self, client: StreamClient) -> None:
        self.client = client
        self.runtime = client.runtime
        self.settings = client.settings
        self.links = client.links
        self.publishers: dict[tuple[str, str | None], Publisher] = {}
        self._declaring: dict[Publisher, asyncio.Task[None]] = {}
        self._lines: defaultdict[Publisher, WaitQueue] = defaultdict(WaitQueue)
        self._turns: dict[Publisher, deque[asyncio.Future[None]]] = {}
        self._timers: dict[Publisher, asyncio.TimerHandle] = {}
        self._parked = 0

    # publishing

    async def publish(
        self,
        stream: str,
        bodies: Sequence[bytes],
        *,
        name: str | None = None,
        ids: Sequence[int | None] | None = None,
        compression: Compression | None = None,
        timeout: float | None = None,
        on_outcome: OnOutcome | None = None,
        filter_value: FilterValue = UNSET,
    ) -> list[Receipt]:
        """Send messages; returns as soon as they are on the wire.

        Args:
            name: Reference for deduplication.
            ids: Publishing ids of the user's own; None for those that the client gives.
            compression: All bodies go into one sub-entry batch, or as few as their size allows.
            timeout: For the way to the wire and the confirm, seconds.
            on_outcome: Called with publishing id and error for each entry, besides the receipt.
            filter_value: Of all bodies; for consumers that ask for it.

        Raises:
            ClientError: Nothing was sent.
        """
        deadline = self.runtime.clock.deadline(timeout)
        publisher = self.publisher(stream, name)
        size = sum(map(len, bodies))
        await self._lines[publisher].after(self.ready(publisher, size, deadline))
        while publisher.connection is None:  # lost while those in front went on
            await self.ready(publisher, size, deadline)
        self.check_wanted(publisher)
        if filter_value is not UNSET:
            self.check_filters(publisher)
        keys = list(ids or [None] * len(bodies))
        parts: list[Sequence[bytes]] = [[body] for body in bodies]
        if compression is not None:
            parts = self.batches(publisher, bodies, compression)
            keys = [None] * len(parts)
        data = [publisher.entry(part, compression) for part in parts]
        for one in data:
            publisher.check_size(8 + filter_size(filter_value) + len(one))
        receipts = [
            self._receipt(publisher, one, len(part), key, deadline, on_outcome, filter_value)
            for one, part, key in zip(data, parts, keys, strict=True)
        ]
        publisher.send([receipt.entry for receipt in receipts])
        assert publisher.connection is not None
        publisher.connection.owner.flush()
        self._watch(publisher)
        return receipts

    def check_wanted(self, publisher: Publisher) -> None:
        """Raise `ClientError` (closed) if the publisher was closed in the turn in which it became ready."""
        self._check_open(publisher)

    def check_filters(self, publisher: Publisher) -> None:
        """Raise `ClientError` (unsupported) if the server may not know Publish version 2."""
        assert publisher.connection is not None
        version = publisher.connection.server_properties.get("version") or ""
        numbers = [int(part) for part in re.findall(r"\d+", version)]
        if numbers[:2] < [3, 13]:
            raise ClientError("unsupported", f"a server of version {version!r} knows no filter values")

    def batches(
        self, publisher: Publisher, bodies: Sequence[bytes], packed: Compression
    ) -> list[Sequence[bytes]]:
        """The bodies of each sub-entry batch, so that none is too large for a frame."""
        if len(bodies) == 1:
            return [bodies]
        try:
            publisher.check_size(8 + len(publisher.entry(bodies, packed)))
        except ClientError:
            half = len(bodies) // 2
            first, second = bodies[:half], bodies[half:]
            return [*self.batches(publisher, first, packed), *self.batches(publisher, second, packed)]
        return [bodies]

    def _receipt(
        self, publisher: Publisher, data: bytes, records: int, key: int | None, deadline: float,
        on_outcome: OnOutcome | None, filter_value: FilterValue,
    ) -> Receipt:  # fmt: skip
        outcome: asyncio.Future[ClientError | None] = asyncio.get_running_loop().create_future()

        def done(error: ClientError | None) -> None:
            if not outcome.done():
                outcome.set_result(error)
            if on_outcome is not None:
                self.runtime.callbacks.contain("confirm", lambda: on_outcome(entry.publishing_id or 0, error))
            self._next_turn(publisher)

        entry = Entry(data, records, done, deadline, key, filter_value=filter_value)
        return Receipt(publisher, entry, outcome)

    # publishers

    def publisher(self, stream: str, name: str | None = None) -> Publisher:
        """The publisher of a stream and a reference. Raises `ClientError` (invalid)."""
        if name is not None and len(name.encode()) > REFERENCE_BYTES_MAX:
            raise ClientError("invalid", f"a reference has at most {REFERENCE_BYTES_MAX} bytes")
        if (stream, name) not in self.publishers:
            self.publishers[stream, name] = self.runtime.part(Publisher)(stream, name, self.settings)
        return self.publishers[stream, name]

    async def ready(self, publisher: Publisher, size: int, deadline: float) -> None:
        """Wait until `size` bytes may be sent. Raises `ClientError`."""
        is_waiting = publisher.connection is None
        if is_waiting and self._parked and self._parked + size > self.settings.parked_bytes:
            raise ClientError("connection", "too much waits for a connection already", definite=True)
        self._parked += size if is_waiting else 0
        try:
            await self.declared(publisher, deadline)
            while not self.may_send(publisher):
                await self._turn(publisher, deadline)
                await self.declared(publisher, deadline)
        finally:
            self._parked -= size if is_waiting else 0
            self._next_turn(publisher)

    def may_send(self, publisher: Publisher) -> bool:
        """Back pressure: neither too much without confirm, nor a transport that is stuck."""
        return publisher.has_room() and all(link.is_writable for link in self.links.all)

    async def _turn(self, publisher: Publisher, deadline: float) -> None:
        """Wait in line for room."""
        line = self._turns.setdefault(publisher, deque())
        if len(line) >= self.settings.waiting_max:
            raise ClientError("invalid", "too much waits for confirms already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            async with asyncio.timeout_at(self.runtime.clock.loop_time(deadline)):
                await turn
        except TimeoutError:
            raise ClientError("timeout", "too much is unconfirmed") from None
        finally:
            self.leave_line(line, turn)

    def leave_line(self, line: deque[asyncio.Future[None]], turn: asyncio.Future[None]) -> None:
        """Nobody waits for this turn any more: it does not count among those that wait."""
        with suppress(ValueError):
            line.remove(turn)

    def _next_turn(self, publisher: Publisher) -> None:
        line = self._turns.get(publisher)
        while line and (publisher.connection is None or self.may_send(publisher)):
            turn = line.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def progress(self) -> None:
        """Who waits for room may look again."""
        for publisher in list(self._turns):
            self._next_turn(publisher)

    async def declared(self, publisher: Publisher, deadline: float) -> None:
        """Wait until a publisher is declared; declare it if nobody does. Raises `ClientError`."""
        while publisher.connection is None:
            self._check_open(publisher)
            if not self._may_declare(publisher):
                await self.links.until(lambda: self._may_declare(publisher), deadline)
                continue
            task = self._declaring.get(publisher)
            if task is None:
                task = self._declaring[publisher] = self.runtime.tasks.spawn(
                    self.declare(publisher, deadline)
                )
                task.add_done_callback(lambda _: self._declaring.pop(publisher, None))
            try:
                await self.runtime.tasks.join(task, deadline)
            except ClientError as error:
                if error.kind != "timeout" or self.runtime.clock.now() + 0.002 >= deadline:
                    raise

    def _may_declare(self, publisher: Publisher) -> bool:
        is_recovering = publisher in self.client.recovery.recovering
        return not is_recovering and self.links.control is not None

    async def declare(self, publisher: Publisher, deadline: float) -> None:
        """Declare a publisher at the stream's leader. Raises `ClientError`."""
        link = await self.client.locator.leader_link(publisher.stream, deadline)
        self._check_open(publisher)
        publisher_id = link.core.free_publisher_id()
        reference = publisher.name or ""
        undo = Undo(DeletePublisher, (publisher_id,))
        await link.ask(
            DeclarePublisher, publisher_id, reference, publisher.stream, deadline=deadline, undo=undo
        )
        sequence = await self.last_sequence(publisher, link, publisher_id, deadline)
        if not link.is_open:
            raise ClientError("connection", "the connection was lost meanwhile", definite=False)
        if publisher.is_closed:  # while the questions were under way: nobody wants it any more
            link.take_back(DeletePublisher, publisher_id)
        self._check_open(publisher)
        publisher.attach(link.core, publisher_id, sequence)
        link.settle()

    def _check_open(self, publisher: Publisher) -> None:
        if publisher.is_closed:
            raise ClientError("closed", f"the publisher of {publisher.stream} is closed", definite=True)

    async def last_sequence(
        self, publisher: Publisher, link: Link, publisher_id: int, deadline: float
    ) -> int | None:
        """See `sequence_of`; without it a publisher that was declared is of no use, and is taken back."""
        if not publisher.name:
            return None
        try:
            return await self.sequence_of(publisher, link, deadline)
        except ClientError:
            link.take_back(DeletePublisher, publisher_id)
            raise

    async def sequence_of(self, publisher: Publisher, link: Link, deadline: float) -> int:
        """The highest publishing id that the server has of this publisher's reference."""
        reference = publisher.name or ""
        answer = await link.ask(QueryPublisherSequence, reference, publisher.stream, deadline=deadline)
        return int(answer.sequence)

    async def delete_publisher(self, stream: str, name: str | None, timeout: float | None) -> None:
        """Close a publisher; what has no confirm by then is unknown."""
        deadline = self.runtime.clock.deadline(timeout)
        publisher = self.publishers.pop((stream, name), None)
        if publisher is None:
            raise ClientError("invalid", f"there is no publisher of {stream}")
        publisher.is_closed = True
        connection = publisher.connection
        link = next((link for link in self.links.all if link.core is connection), None)
        closed = ClientError("closed", "the publisher was closed", definite=False)
        try:
            if link is not None:
                answer = await link.request(DeletePublisher, publisher.publisher_id, deadline=deadline)
                if answer.code not in (Code.OK, Code.PUBLISHER_DOES_NOT_EXIST):
                    raise ClientError("refused", f"code {answer.code}", code=answer.code)
        finally:
            publisher.detach(closed)
            publisher.end_all(closed)
            if link is not None:
                self.client.locator.leave(link)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until everything that was sent has an outcome. Raises `ClientError` (timeout)."""
        deadline = self.runtime.clock.deadline(timeout)
        while any(publisher.pending for publisher in self.publishers.values()):
            if self.runtime.clock.now() >= deadline:
                raise ClientError("timeout", "confirms are missing")
            await asyncio.sleep(0.01)

    # confirm time-outs

    @property
    def timers(self) -> int:
        """Timers that are set."""
        return len(self._timers)

    @property
    def pending(self) -> int:
        """Messages without an outcome."""
        return sum(len(publisher.pending) for publisher in self.publishers.values())

    @property
    def buffered_bytes(self) -> int:
        """Bodies without an outcome."""
        return sum(publisher.unconfirmed_bytes for publisher in self.publishers.values())

    def _watch(self, publisher: Publisher) -> None:
        """Set the timer for the next confirm that is late."""
        deadline = publisher.next_deadline()
        if deadline is None:
            return
        timer, moment = self._timers.get(publisher), self.runtime.clock.loop_time(deadline)
        if timer is not None and timer.when() <= moment:
            return
        if timer is not None:
            timer.cancel()
        self._timers[publisher] = asyncio.get_running_loop().call_at(moment, self._late, publisher)

    def end(self, error: ClientError) -> None:
        """Nothing will be confirmed any more, and nothing can be late."""
        for publisher in self.publishers.values():
            publisher.is_closed = True
            publisher.end_all(error)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _late(self, publisher: Publisher) -> None:
        del self._timers[publisher]
        publisher.expire(self.runtime.clock.now() + 0.001)
        self._watch(publisher)
