import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream


async def place_orders(port):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{port}//")
    async with client.publisher("orders", name="shop") as publisher:
        await asyncio.gather(*(publisher.send(order) for order in (b"tea", b"milk", b"salt")))
    print("sent, and confirmed by the broker: 3")


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(place_orders(broker.port))
    print("stored:", len(broker.messages("orders")))
