import asyncio

import nats

from fakebrokers import NATS


async def work(broker):
    async def on_loss():
        raise RuntimeError("a bug of the application")

    client = await nats.connect(broker.url, disconnected_cb=on_loss, reconnect_time_wait=0.1)
    broker.kill()
    await asyncio.sleep(3)
    print("3 s after a loss; connected:", client.is_connected, "- connections:", len(broker.connections))


with NATS() as broker:
    asyncio.run(work(broker))
