import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream
from fakebrokers.faults import rst


async def publish(port):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{port}//")
    for attempt in range(3):
        try:
            async with client.publisher("orders", name="shop") as publisher:
                await publisher.send(b"tea")
            print(f"attempt {attempt}: stored")
        except Exception as error:
            print(f"attempt {attempt}: {error}")


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.faults.add(rst(kind="DeclarePublisher", nth=1, name="the connection is lost once"))
    asyncio.run(publish(broker.port))
