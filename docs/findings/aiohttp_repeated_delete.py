import asyncio

import aiohttp

from fakebrokers import Narconi
from fakebrokers.faults import rst


async def take_an_order(url):
    async with aiohttp.ClientSession() as session:
        async with session.post(url, data=b"salt"):  # the connection is kept, and used again
            pass
        async with session.delete(url) as answer:
            print("one DELETE gave:", await answer.read())


with Narconi() as narconi:
    narconi.create_queue("shop", "orders")
    narconi.publish("shop", "orders", b"tea")
    narconi.publish("shop", "orders", b"milk")
    narconi.faults.add(rst(role="deliver", nth=1, pass_frame=False))
    asyncio.run(take_an_order(narconi.messages_url("shop", "orders")))
    print("left:", [message.payload for message in narconi.messages("shop", "orders")])
