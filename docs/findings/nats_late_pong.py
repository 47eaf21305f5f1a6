import asyncio
import logging

import nats

from fakebrokers import NATS
from fakebrokers.faults import hold

logging.disable()


async def listen(broker):
    got = []

    async def on_message(message):
        got.append(message.data)

    client = await nats.connect(broker.url)
    await client.subscribe("orders", cb=on_message)
    await client.flush()
    broker.faults.add(hold(kind="Pong", direction="out", name="slow"))
    try:
        await client.flush(timeout=0.1)
    except nats.errors.TimeoutError:
        print("a flush has timed out")
    broker.faults.remove("slow")  # its PONG comes
    await asyncio.sleep(0.5)
    broker.publish("orders", b"tea")
    await asyncio.sleep(0.5)
    print("connected:", client.is_connected, "- messages of 1:", len(got))
    await client.flush(timeout=1)
    print("and a flush reports success")


with NATS() as broker:
    asyncio.run(listen(broker))
