import asyncio

from rstream import Consumer

from fakebrokers import RabbitMQStream
from fakebrokers.faults import reply


async def consume(broker):
    async with Consumer(broker.host, broker.port, username="guest", password="guest") as consumer:
        for _ in range(2):
            try:
                await consumer.subscribe("orders", lambda message, context: None)
            except Exception as error:
                print("refused:", type(error).__name__)
    print("the broker was asked", len(broker.journal.select(kind="Subscribe")), "times")


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.faults.add(reply(6, kind="Subscribe", nth=1))  # 6: the stream is not available, for a moment
    asyncio.run(consume(broker))
