import asyncio
import threading

from rstream import Producer

from fakebrokers import RabbitMQStream
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Extend, Rewrite


async def connect(broker):
    await asyncio.wait_for(Producer(broker.host, broker.port, username="guest", password="guest").start(), 1)


with RabbitMQStream() as broker:
    # the answer to Open with a null map (-1 entries) as its properties
    broker.faults.add(
        fault(Rewrite(fields={"properties": None}), Extend(hex="ffffffff"), kind="OpenResponse")
    )
    thread = threading.Thread(target=lambda: asyncio.run(connect(broker)), daemon=True)
    thread.start()
    thread.join(3)
    print("connect has a time-out of 1 s; after 3 s it is busy still:", thread.is_alive())
