import asyncio

import redis.asyncio

from fakebrokers import Redis
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Drop, Rst


async def main(server):
    client = redis.asyncio.Redis(port=server.port)
    print("orders so far:", await client.incr("orders"))
    # the server counts, and the connection is reset in place of its reply
    server.faults.add(fault(Drop(), Rst(), kind="Reply", direction="out", where={"value": 2}, nth=1))
    print("one more order:", await client.incr("orders"))
    print("the server has counted:", server.value("orders").decode())
    await client.aclose()


with Redis() as server:
    asyncio.run(main(server))
