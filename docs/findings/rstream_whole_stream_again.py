import asyncio

from rstream import Consumer, ConsumerOffsetSpecification, OffsetType
from rstream.recovery import BackOffRecoveryStrategy

from fakebrokers import RabbitMQStream


async def consume(broker):
    got = []

    async def on_message(message, context):
        got.append(bytes(message))

    again = BackOffRecoveryStrategy(True, jitter=1)
    consumer = Consumer(broker.host, broker.port, username="guest", password="guest", recovery_strategy=again)
    await consumer.start()
    new_ones = ConsumerOffsetSpecification(OffsetType.NEXT, None)
    await consumer.subscribe("orders", on_message, offset_specification=new_ones, decoder=None)
    (subscribed,) = await broker.wait_for_async(kind="SubscribeResponse", timeout=60)
    broker.kill(subscribed.connection, "rst")
    await broker.wait_for_async(kind="SubscribeResponse", count=2, timeout=60)
    await asyncio.sleep(1)
    print("asked for new messages only, of which there were none; got:", len(got))
    await asyncio.wait([asyncio.create_task(consumer.close())], timeout=1)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.publish("orders", [b"old %d" % number for number in range(100)])
    asyncio.run(consume(broker))
