import asyncio

from rstream import CompressionType, Consumer, ConsumerOffsetSpecification, OffsetType, Producer

from fakebrokers import RabbitMQStream
from fakebrokers.faults import corrupt


async def main(broker):
    got, told = [], []
    user = {"host": broker.host, "port": broker.port, "username": "guest", "password": "guest"}
    async with Producer(**user, default_batch_publishing_delay=0.1) as producer:
        await producer.send_sub_entry("orders", [b"tea", b"milk", b"salt"], CompressionType.Gzip)
        await broker.wait_for_async(role="confirm", timeout=60)
        await producer.send_wait("orders", b"bread")

    consumer = Consumer(**user, on_close_handler=told.append)
    await consumer.start()
    first = ConsumerOffsetSpecification(OffsetType.FIRST, None)
    await consumer.subscribe(
        "orders", lambda message, _: got.append(bytes(message)), offset_specification=first
    )
    async with asyncio.timeout(60):
        while b"bread" not in got:
            await asyncio.sleep(0.02)
    print("four messages are stored; got:", got, "notified of an error:", told)
    await consumer.close()


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    # one byte of the compressed data is wrong, and the checksum right
    broker.faults.add(corrupt(at=-10, mend=True, role="deliver", nth=1))
    asyncio.run(main(broker))
