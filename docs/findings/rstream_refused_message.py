import asyncio

from rstream import Producer

from fakebrokers import RabbitMQStream
from fakebrokers.faults import reply


async def place_order(broker):
    async with Producer(broker.host, broker.port, username="guest", password="guest") as producer:
        try:
            await producer.send_wait("orders", b"tea", timeout=2)
        except Exception as error:
            print("the broker refused it with code 18, the application sees:", type(error).__name__)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.faults.add(reply(18, role="publish", nth=1))
    asyncio.run(place_order(broker))
