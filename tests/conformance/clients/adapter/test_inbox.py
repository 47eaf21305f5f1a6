"""Who waits for what an adapter says."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.transcript import Event, Inbox
from fakebrokers.core.virtual import run


def test_those_that_wait_go_on_in_the_order_in_which_they_came() -> None:
    async def work() -> list[int]:
        inbox, order = Inbox(), []

        async def wait(number: int) -> None:
            await inbox.until(lambda: bool(inbox.events), 5.0)
            order.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(50)]
        await asyncio.sleep(1.0)
        inbox.add(Event(1, 0.0, "x", {}))
        await asyncio.gather(*tasks)
        return order

    assert run(work()) == list(range(50))
