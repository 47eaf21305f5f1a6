import asyncio
import time

import aiomqtt

from fakebrokers import MQTT
from fakebrokers.faults import fin


async def busy():  # as an application is that starts
    while True:
        time.sleep(0.02)
        await asyncio.sleep(0)


async def listen(broker):
    broker.faults.add(fin(kind="Connack", direction="out", pass_frame=True))
    work = asyncio.create_task(busy())
    async with aiomqtt.Client(broker.host, broker.port) as client:
        work.cancel()
        print("connected; the server has ended the connection right behind CONNACK")
        try:
            await asyncio.wait_for(anext(client.messages), 3)
        except TimeoutError:
            print("no message and no error for 3 s")


with MQTT() as broker:
    asyncio.run(listen(broker))
