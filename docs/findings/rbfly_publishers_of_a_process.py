import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream


async def place_orders(port):
    url = f"rabbitmq-stream://guest:guest@127.0.0.1:{port}//"
    shop, kiosk = rbs.streams_client(url), rbs.streams_client(url)
    async with shop.publisher("orders") as first, kiosk.publisher("orders") as second:
        await first.send(b"tea, for the shop")
        await second.send(b"milk, for the kiosk")
    print("sent, and confirmed by the broker: 2")


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(place_orders(broker.port))
    print("stored:", len(broker.messages("orders")))
