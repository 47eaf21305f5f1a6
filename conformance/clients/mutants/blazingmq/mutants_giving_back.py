"""Defects in what is done with queues that are closed, half open, or open to write alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.queues import LIMITS, RESTORE_S, Queue, Queues
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.frames import Confirm, Disconnect

TOGETHER_S = 0.05


@mutant("confirms-for-closed-queues", tag="wire", breaks=["B14"])
class ConfirmsForClosedQueues(Deliveries):
    """Confirms a message although its queue was closed meanwhile."""

    def confirm(self, delivery: Delivery) -> None:
        self.client.usable().send(Confirm((self.message(delivery),)))


@mutant("keeps-what-is-half-restored", tag="life-cycle", breaks=["B4", "B18"])
class KeepsWhatIsHalfRestored(Queues):
    """Does not close a queue on the new connection that the broker has opened, and not configured."""

    async def open_again(self, queue: Queue) -> None:
        await self.ask_open(queue, RESTORE_S)
        await self.begin(queue, self.client.runtime.clock.deadline(RESTORE_S))
        self.client.runtime.callbacks.report("target_reopened", "", None, queue.uri)


@mutant("closes-overlap", tag="life-cycle", breaks=["B4", "X7"])
class ClosesOverlap(Queues):
    """Closes a queue twice where two ask for it at once: neither waits for the other."""

    async def shut(self, queue: Queue, timeout: float) -> None:
        queue.shutting = asyncio.Lock()
        await super().shut(queue, timeout)


@mutant("half-open-counts-as-open", tag="life-cycle", breaks=["B4"])
class HalfOpenCountsAsOpen(Queues):
    """Takes a queue for open whose configuration was refused: the application cannot open it again."""

    async def begin(self, queue: Queue, deadline: float) -> None:
        try:
            await super().begin(queue, deadline)
        except ClientError:
            self.opening.add(f"{queue.uri} for good")
            raise

    def check(self, uri: str, flags: frozenset[str]) -> None:
        super().check(uri, flags)
        if f"{uri} for good" in self.opening:
            raise ClientError("invalid", f"{uri} is open")


@mutant("close-closes-what-is-closed", tag="wire", breaks=["B4"])
class CloseClosesWhatIsClosed(BlazingClient):
    """Closes with its session also the queues that the application has closed meanwhile."""

    async def send_disconnect(self, link: Link, deadline: float) -> None:
        for queue in tuple(self.queues.by_name.values()):
            with suppress(ClientError):
                await self.queues.shut(queue, deadline - self.runtime.clock.now())
            self.queues.forget(queue)
        await link.requests.ask(Disconnect, deadline - self.runtime.clock.now())


@mutant("configures-writers", tag="wire", breaks=["B4"])
class ConfiguresWriters(Queues):
    """Configures a queue that is open to write alone as if it read."""

    async def configure(self, name: str, options: Mapping[str, int], timeout: float) -> None:
        queue = self.find(name)
        await self.usable_again(queue, timeout)
        queue.options = {**LIMITS, **options}
        await self.ask_configure(queue, queue.options, timeout)


@mutant("no-connection-is-a-mistake", tag="life-cycle", breaks=["B19"])
class NoConnectionIsAMistake(BlazingClient):
    """Uses its connection without a look whether there is one."""

    def link_now(self) -> Link:
        assert self.link is not None
        return self.link


@mutant("confirms-together", tag="data", breaks=["B14"])
class ConfirmsTogether(Deliveries):
    """Sends confirms together, a little later, and forgets those of a queue that is closed until then."""

    waiting: tuple[Delivery, ...] = ()

    def confirm(self, delivery: Delivery) -> None:
        if self.client.queues.numbered(delivery.queue.q_id) is not delivery.queue:
            raise ClientError("closed", "the queue is closed", definite=True)
        if not self.waiting:
            asyncio.get_running_loop().call_later(TOGETHER_S, self.send)
        self.waiting = (*self.waiting, delivery)

    def send(self) -> None:
        waiting, self.waiting = self.waiting, ()
        there = [one for one in waiting if self.client.queues.numbered(one.queue.q_id) is one.queue]
        if there and self.client.link is not None and not self.client.runtime.is_closed:
            self.client.link.send(Confirm(tuple(self.message(one) for one in there)))
