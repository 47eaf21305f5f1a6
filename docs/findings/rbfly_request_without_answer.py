import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop


async def create(port):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{port}//")
    try:
        async with asyncio.timeout(1):
            await client.create_stream("orders")
        print("created")
    except TimeoutError:
        print("no answer within a second")


with RabbitMQStream() as broker:
    broker.faults.add(drop(kind="Create", name="the server never sees the request"))
    asyncio.run(create(broker.port))
    print("streams at the server:", broker.streams)
