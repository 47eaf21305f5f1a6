import asyncio

from rstream import Consumer, ConsumerOffsetSpecification, OffsetType

from fakebrokers import RabbitMQStream


async def consume(broker):
    told = []

    async def on_message(message, context):
        pass

    async def on_close(event):
        told.append(event)

    consumer = Consumer(
        broker.host, broker.port, username="guest", password="guest", heartbeat=1, on_close_handler=on_close
    )
    await consumer.start()
    await consumer.subscribe("orders", on_message, decoder=None,
        offset_specification=ConsumerOffsetSpecification(OffsetType.FIRST, None))  # fmt: skip
    broker.kill(how="half-open")  # as when the broker's host loses its power
    await asyncio.sleep(8)
    print("heartbeats every second, and silence for 8 s; notified of a loss:", bool(told))
    await asyncio.wait([asyncio.create_task(consumer.close())], timeout=1)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(consume(broker))
