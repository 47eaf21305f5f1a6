import asyncio

from rstream import Producer

from fakebrokers import RabbitMQStream
from fakebrokers.journal import Tap


async def publish(broker):
    producer = Producer(broker.host, broker.port, username="guest", password="guest")
    await producer.start()
    await producer.send_wait("orders", b"tea")
    for connection in broker.connections:
        broker.say_close(connection["name"], 14, "frame too large")
    await asyncio.sleep(1)
    print("the Close of the server was answered:", bool(broker.journal.select(kind="CloseResponse")))
    await asyncio.wait([asyncio.create_task(producer.close())], timeout=1)
    print("Close was sent by the client:", bool(broker.journal.select(kind="Close", tap=Tap.RECEIVED)))


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(publish(broker))
