import asyncio
import logging
from contextlib import suppress

import nats

from fakebrokers import NATS

logging.disable()


async def main(server):
    client = await nats.connect(server.url)
    server.refuse()  # no new connections for a while, and the open one ends
    server.kill(how="fin")
    while client.is_connected:
        await asyncio.sleep(0.01)
    await client.publish("orders", b"tea")
    await client.flush()
    print("the server is away; flush reports success; connected:", client.is_connected)
    with suppress(OSError):
        await client.close()
    server.restart()
    print("messages that the server has got:", len(server.journal.select(kind="Pub")))


with NATS() as server:
    asyncio.run(main(server))
