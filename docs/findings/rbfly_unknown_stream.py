import asyncio

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream


async def publish(broker):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{broker.port}//")
    async with client.publisher("a stream that nobody made") as publisher:
        await publisher.send(b"tea")


with RabbitMQStream() as broker:
    try:
        asyncio.run(asyncio.wait_for(publish(broker), 4))
    except TimeoutError:
        print("after 4 s the application still waits")
    print(
        "refused by the broker:",
        len(broker.journal.select(kind="DeclarePublisherResponse")) > 2,
        "(again and again)",
    )
