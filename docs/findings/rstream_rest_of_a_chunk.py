import asyncio

from rstream import Consumer, ConsumerOffsetSpecification, OffsetType

from fakebrokers import RabbitMQStream


async def consume(broker):
    done = []

    async def on_message(message, context):
        if message == b"order 3":
            raise ValueError("this one cannot be read")
        done.append(bytes(message))

    consumer = Consumer(broker.host, broker.port, username="guest", password="guest")
    await consumer.start()
    first = ConsumerOffsetSpecification(OffsetType.FIRST, None)
    await consumer.subscribe("orders", on_message, offset_specification=first)
    broker.publish("orders", [b"order 11"])
    async with asyncio.timeout(60):
        while b"order 11" not in done:
            await asyncio.sleep(0.02)
    print("of 11 messages one cannot be read; handled:", done)
    await consumer.close()


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    broker.publish("orders", [b"order %d" % number for number in range(1, 11)])  # one chunk
    asyncio.run(consume(broker))
