import asyncio

from rstream import Consumer, ConsumerOffsetSpecification, OffsetType, Producer
from rstream.recovery import BackOffRecoveryStrategy

from fakebrokers import RabbitMQStream


async def main(broker):
    got = []
    user = {"host": broker.host, "port": broker.port, "username": "guest", "password": "guest"}
    async with Producer(**user, default_batch_publishing_delay=0.1) as producer:
        await producer.send_sub_entry("orders", [b"order %d" % number for number in range(9)])
        await broker.wait_for_async(role="confirm", timeout=60)

    consumer = Consumer(**user, recovery_strategy=BackOffRecoveryStrategy(True, jitter=1))
    await consumer.start()
    first = ConsumerOffsetSpecification(OffsetType.FIRST, None)
    await consumer.subscribe(
        "orders", lambda message, _: got.append(bytes(message)), offset_specification=first
    )
    async with asyncio.timeout(60):
        while len(got) < 9:
            await asyncio.sleep(0.02)
    print("got:", len(got))
    (subscribed,) = await broker.wait_for_async(kind="Subscribe")
    broker.kill(subscribed.connection, "rst")
    await broker.wait_for_async(kind="SubscribeResponse", count=2, timeout=60)
    await asyncio.sleep(1)
    print("after a loss, nothing new was sent; got:", len(got))
    await asyncio.wait([asyncio.create_task(consumer.close())], timeout=1)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(main(broker))
