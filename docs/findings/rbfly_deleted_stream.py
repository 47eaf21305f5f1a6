import asyncio
import os

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream


async def publish(broker):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{broker.port}//")
    async with client.publisher("orders") as publisher:
        await publisher.send(b"tea")
        broker.delete_stream("orders")  # the server tells with MetadataUpdate
        _, waiting = await asyncio.wait([asyncio.create_task(publisher.send(b"milk"))], timeout=3)
        print("the stream is deleted; after 3 s send() still waits:", bool(waiting), flush=True)
        os._exit(0)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(publish(broker))
