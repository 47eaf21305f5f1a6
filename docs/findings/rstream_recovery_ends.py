import asyncio

from rstream import Consumer
from rstream.recovery import BackOffRecoveryStrategy

from fakebrokers import RabbitMQStream


async def consume(broker):
    again = BackOffRecoveryStrategy(True, jitter=1)
    consumer = Consumer(broker.host, broker.port, username="guest", password="guest", recovery_strategy=again)
    await consumer.start()
    await consumer.subscribe("orders", lambda message, context: None)
    (subscribed,) = await broker.wait_for_async(kind="SubscribeResponse", timeout=60)
    broker.move_leader("orders", 1)  # the server announces that the stream moves, and ends the connection
    await broker.wait_for_async(kind="MetadataUpdate", timeout=60)
    broker.kill(subscribed.connection, "rst")
    await asyncio.sleep(5)
    print("subscriptions asked for in all:", len(broker.journal.select(kind="Subscribe")))


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(consume(broker))
