import asyncio

import redis.asyncio

from fakebrokers import Redis


async def main(server):
    client = redis.asyncio.Redis(port=server.port)
    await client.ping()
    server.refuse()  # no new connections for a while, and the open one is lost
    server.kill(how="rst")
    waiting = asyncio.create_task(client.get("order"))
    await asyncio.sleep(0.5)
    await client.aclose()
    print("closed; connections at the server:", len(server.connections))
    server.restart()
    await asyncio.wait([waiting])
    print("the server is back; the command has ended:", waiting.done() and repr(waiting.exception()))
    await asyncio.sleep(0.5)  # a connection that ends is gone by then
    print("connections of the closed client:", len(server.connections))


with Redis() as server:
    asyncio.run(main(server))
