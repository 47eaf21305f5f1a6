import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream


async def publish(broker):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{broker.port}//")
    async with client.publisher("a stream that nobody made") as publisher:
        await publisher.send(b"tea")


async def main(broker):
    publishing = asyncio.create_task(publish(broker))
    refused = asyncio.create_task(broker.wait_for_async(kind="DeclarePublisherResponse", count=3, timeout=60))
    await asyncio.wait([publishing, refused], return_when=asyncio.FIRST_COMPLETED)
    print("refused by the broker, again and again; the application still waits:", not publishing.done())
    publishing.cancel()


with RabbitMQStream() as broker:
    asyncio.run(main(broker))
