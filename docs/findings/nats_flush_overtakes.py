import asyncio

import nats

from fakebrokers import NATS
from fakebrokers.journal import Tap


async def publish(broker):
    client = await nats.connect(broker.url)
    since = broker.journal.last_seq
    await client.publish("jobs", b"important")
    await client.flush()
    came = [record.kind for record in broker.journal.select(tap=Tap.RECEIVED, since=since)]
    print("published, then flushed; the first that the server gets:", came[0])
    await client.close()


with NATS() as broker:
    asyncio.run(publish(broker))
