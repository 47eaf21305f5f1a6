import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream
from fakebrokers.faults import reply


async def place_order(port):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{port}//")
    async with client.publisher("orders") as publisher:
        sending = asyncio.create_task(publisher.send(b"tea"))
        await asyncio.wait([sending], timeout=3)
    print("refused with code 18; after 3 s the application still waits:", not sending.done())
    sending.cancel()


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.faults.add(reply(18, role="publish", nth=1))
    asyncio.run(place_order(broker.port))
