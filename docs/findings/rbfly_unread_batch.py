import asyncio

import rbfly.streams as rbs
import rstream

from fakebrokers import RabbitMQStream


async def main(broker):
    user = {"host": broker.host, "port": broker.port, "username": "guest", "password": "guest"}
    async with rstream.Producer(**user, default_batch_publishing_delay=0.1) as producer:
        await producer.send_sub_entry("orders", [b"tea", b"milk", b"salt"])
        await broker.wait_for_async(role="confirm", timeout=60)
        await producer.send_wait("orders", b"bread")
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{broker.port}//")
    got = []
    async for message in client.subscribe("orders", offset=rbs.Offset.FIRST, timeout=60, amqp=False):
        got.append(message)
        if message == b"bread":  # the last one
            break
    print("four messages are stored; got:", got)


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(main(broker))
