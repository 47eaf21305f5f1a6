import asyncio

import nats

from fakebrokers import NATS


async def listen(broker):
    got, all_there = [], asyncio.Event()

    async def on_message(message):
        await all_there.wait()
        await asyncio.sleep(0)  # as a callback does that waits for anything
        got.append(message.data)

    client = await nats.connect(broker.url)
    subscription = await client.subscribe("orders", cb=on_message)
    await subscription.unsubscribe(limit=5)
    await client.flush()
    for number in range(5):
        broker.publish("orders", b"%d" % number)
    while subscription.pending_msgs < 4:  # one is in the callback, four wait: all five have come
        await asyncio.sleep(0.01)
    all_there.set()
    await asyncio.sleep(0.5)
    print("a subscription for 5 messages, 5 came; delivered:", len(got))
    await client.close()


with NATS() as broker:
    asyncio.run(listen(broker))
