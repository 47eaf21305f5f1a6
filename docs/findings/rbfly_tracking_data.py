import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream
from fakebrokers.faults import rewrite


async def consume(port):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{port}//")
    async with client.publisher("orders") as publisher:
        await publisher.send(b"what only the broker needs")
    try:
        async for message in client.subscribe("orders", offset=rbs.Offset.FIRST, timeout=10):
            print("got a message:", message)
            break
    except TimeoutError:
        print("got no message within 10 s")


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.faults.add(rewrite(fields={"chunk.chunk_type": 1}, role="deliver"))  # 1: tracking data
    asyncio.run(consume(broker.port))
