import asyncio

import aiohttp

from fakebrokers import Narconi
from fakebrokers.faults import truncate


async def take_an_order(url):
    session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))

    reading = asyncio.Event()

    async def take():
        async with session.delete(url) as answer:  # its head has come, and 2 of 3 bytes
            reading.set()
            return await answer.read()

    taking = asyncio.ensure_future(take())
    await reading.wait()
    await session.close()
    _, waiting = await asyncio.wait([taking], timeout=5)
    print("the request has ended:", not waiting)
    taking.cancel()


with Narconi() as narconi:
    narconi.create_queue("shop", "orders")
    narconi.publish("shop", "orders", b"tea")
    narconi.faults.add(truncate(role="deliver", nth=1, share=0.99))
    asyncio.run(take_an_order(narconi.messages_url("shop", "orders")))
