"""A shop with three mistakes, for searches to find: a race, a confirm lost in an outage, and a timer leak.

It takes orders at the counter and by mail, keeps them in a stream, and reports each hour what is left. Nobody
told it about faults: it is an application as people write them, on a stock client.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from rstream import Producer

STREAM = "orders"
RETRY_S = 5.0
CONFIRM_S = 5.0
REPORT_S = 60.0


@dataclass
class Order:
    """Something somebody wants."""

    number: int
    what: str
    by_mail: bool = False

    def encoded(self) -> bytes:
        """As it is kept."""
        return f"{self.number} {self.what}".encode()


@dataclass
class Stock:
    """What is on the shelves."""

    pieces: dict[str, int]
    taken: list[int] = field(default_factory=list)

    def has(self, what: str) -> bool:
        """Whether there is one."""
        return self.pieces.get(what, 0) > 0

    async def take(self, order: Order) -> None:
        """Take one from the shelf; the hand needs a moment."""
        await asyncio.sleep(0)
        self.pieces[order.what] -= 1
        self.taken.append(order.number)


class Line:
    """The connection to the broker; comes back by itself."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._producer: Any = None
        self._reports: asyncio.Task[None] | None = None
        self.reported = 0

    async def connected(self) -> Any:
        """A producer that is connected, sooner or later."""
        while self._producer is None:
            host, port = self._place
            producer = Producer(host, port, username="guest", password="guest")
            try:
                async with asyncio.timeout(CONFIRM_S):
                    await producer.start()
            except Exception:  # whatever it was: later
                await asyncio.sleep(RETRY_S)
                continue
            self._producer = producer
            # mistake 1: the task of the connection before goes on
            self._reports = asyncio.create_task(self._report(), name="report")
        return self._producer

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self.reported += 1

    async def lost(self) -> None:
        """The connection is not to be trusted any more."""
        producer, self._producer = self._producer, None
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CONFIRM_S):
                await producer.close()

    async def keep(self, order: Order) -> None:
        """Have an order stored."""
        while True:
            producer = await self.connected()
            try:
                async with asyncio.timeout(2 * CONFIRM_S):
                    await producer.send_wait(STREAM, order.encoded(), timeout=CONFIRM_S)
                return
            except Exception:
                # mistake 2: it is sent again, though perhaps only its confirm was lost
                await self.lost()

    async def close(self) -> None:
        """Go home."""
        if self._reports is not None:
            self._reports.cancel()
        if self._producer is not None:
            await self.lost()


class Shop:
    """All of it.

    Attributes:
        accepted: Orders for which somebody was told "thank you".
        refused: Those for which there was nothing left.
    """

    def __init__(self, line: Line, stock: Stock) -> None:
        self.line = line
        self.stock = stock
        self.accepted: list[Order] = []
        self.refused: list[Order] = []

    async def order(self, order: Order) -> None:
        """Somebody comes, or a letter does."""
        if order.by_mail:
            await self._open_the_letter()
        if not self.stock.has(order.what):
            self.refused.append(order)
            return
        await self.stock.take(order)  # mistake 3: meanwhile somebody else has looked
        self.accepted.append(order)

    async def _open_the_letter(self) -> None:
        for _ in range(2):
            await asyncio.sleep(0)

    async def day(self, orders: AsyncIterator[list[Order]]) -> None:
        """From morning to evening."""
        async for some in orders:
            before = len(self.accepted)
            await asyncio.gather(*(self.order(each) for each in some))
            for each in self.accepted[before:]:
                await self.line.keep(each)


async def customers() -> AsyncIterator[list[Order]]:
    """Two at a time, every half minute: one at the counter, one by mail."""
    for number in range(0, 8, 2):
        what = ("tea", "milk", "salt", "rice")[number // 2]
        yield [Order(number, what), Order(number + 1, what, by_mail=True)]
        await asyncio.sleep(30)


async def run(shop: Shop) -> None:
    """The application."""
    try:
        await shop.day(customers())
    finally:
        await shop.line.close()


# what is simulated


async def main(simulation: Any) -> None:
    """One day of the shop, and what has to be true in the evening."""
    broker = simulation.rabbitmq_stream()
    broker.create_stream(STREAM)
    stock = Stock({"tea": 1, "milk": 2, "salt": 1, "rice": 2})
    shop = Shop(Line(broker.host, broker.port), stock)
    await run(shop)
    await simulation.healed()
    await asyncio.sleep(2 * REPORT_S)
    stored = [message.body for message in broker.messages(STREAM)]
    assert {order.encoded() for order in shop.accepted} == set(stored)
    oversold = {what: left for what, left in stock.pieces.items() if left < 0}
    assert not oversold
    assert sorted(stored) == sorted(set(stored))
    leaked = sum(task.get_name() == "report" for task in asyncio.all_tasks())
    assert leaked == 0
