import asyncio

from rstream import Producer

from fakebrokers import RabbitMQStream
from fakebrokers.journal import Tap


async def publish(broker):
    user = {"host": broker.host, "port": broker.port, "username": "guest", "password": "guest"}
    async with Producer(**user) as producer:
        await producer.send_wait("orders", b"tea")
    print("Close was sent by the client:", bool(broker.journal.select(kind="Close", tap=Tap.RECEIVED)))

    producer = Producer(**user)
    await producer.start()
    await producer.send_wait("orders", b"milk")
    for connection in broker.connections:
        broker.say_close(connection["name"], 14, "frame too large")
    await asyncio.sleep(1)
    answers = broker.journal.select(kind="CloseResponse", tap=Tap.RECEIVED)
    print("the Close of the server was answered:", bool(answers))
    await asyncio.wait([asyncio.create_task(producer.close())], timeout=1)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(publish(broker))
