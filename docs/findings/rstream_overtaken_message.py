import asyncio

from rstream import Producer

from fakebrokers import RabbitMQStream
from fakebrokers.faults import delay


async def publish(broker):
    confirmed = []
    async with Producer(broker.host, broker.port, username="guest", password="guest") as producer:

        async def send(body):
            await producer.send("orders", body, "shop", lambda status: confirmed.append(status.is_confirmed))

        await send(b"tea")
        await send(b"milk")
        await broker.wait_for_async(kind="DeclarePublisher", timeout=60)
        await producer.send_wait("orders", b"urgent", "shop")
        while len(confirmed) < 2:
            await asyncio.sleep(0.02)
    print("confirmed by the broker:", 1 + sum(confirmed))


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.faults.add(delay(1.0, kind="DeclarePublisherResponse", name="the server takes a second"))
    asyncio.run(publish(broker))
    print("stored:", [message.body for message in broker.messages("orders")])
