import asyncio

from rstream import Producer

from fakebrokers import RabbitMQStream


async def place_order(broker):
    async with Producer(broker.host, broker.port, username="guest", password="guest") as producer:
        try:
            await producer.send_wait("orders", b"tea", publisher_name="Büro", timeout=2)
        except Exception as error:
            print("not sent:", type(error).__name__)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(place_order(broker))
    print("on the wire:", *[record.kind for record in broker.journal if record.kind == "Malformed"])
