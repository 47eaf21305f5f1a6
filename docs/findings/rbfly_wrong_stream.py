import asyncio
from contextlib import AsyncExitStack, suppress

import rbfly.streams as rbs

from fakebrokers import RabbitMQStream


async def publish(broker):
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@127.0.0.1:{broker.port}//")
    notes, orders = AsyncExitStack(), AsyncExitStack()
    await notes.enter_async_context(client.publisher("notes", name="shop"))
    opening = orders.enter_async_context(client.publisher("orders", name="shop"))
    _, publisher = await asyncio.gather(notes.aclose(), opening)  # one ends while another one begins
    broker.kill(how="rst")
    while client.connected:
        await asyncio.sleep(0.02)
    async with client.publisher("bills", name="shop"):
        await publisher.send(b"an order")
    with suppress(Exception):
        await orders.aclose()


with RabbitMQStream() as broker:
    for name in ("notes", "orders", "bills"):
        broker.create_stream(name)
    asyncio.run(publish(broker))
    for name in ("orders", "bills"):
        print(name, [message.body[-8:] for message in broker.messages(name)])
