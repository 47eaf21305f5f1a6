import asyncio

from rstream import Consumer, ConsumerOffsetSpecification, OffsetType

from fakebrokers import RabbitMQStream


async def consume(broker):
    got, told = [], []

    async def on_message(message, context):
        got.append(bytes(message))

    async def on_close(event):
        told.append(event)

    consumer = Consumer(
        broker.host, broker.port, username="guest", password="guest", on_close_handler=on_close
    )
    await consumer.start()
    first = ConsumerOffsetSpecification(OffsetType.FIRST, None)
    await consumer.subscribe("orders", on_message, offset_specification=first, decoder=None)
    broker.publish("orders", [b"tea"])
    async with asyncio.timeout(60):
        while not got:
            await asyncio.sleep(0.02)
    for connection in broker.connections:
        broker.say_raw(
            connection["name"], bytes.fromhex("00000004 0063 0001")
        )  # a frame with the unknown key 99
    broker.publish("orders", [b"milk"])
    await asyncio.sleep(1)
    print("got:", got, "notified of a loss:", told)
    await asyncio.wait([asyncio.create_task(consumer.close())], timeout=1)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(consume(broker))
    print("stored:", [message.body for message in broker.messages("orders")])
