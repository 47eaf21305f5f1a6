import asyncio
import subprocess

import redis.asyncio

PORT = 16381
COMMAND = ["redis-server", "--port", str(PORT), "--bind", "127.0.0.1", "--save", ""]


def start():
    server = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL)
    ping = ["redis-cli", "-p", str(PORT), "ping"]
    while subprocess.run(ping, capture_output=True, check=False).returncode:
        pass
    return server


async def main():
    server = start()
    client = redis.asyncio.Redis(port=PORT)
    await client.ping()
    server.kill()
    server.wait()
    waiting = asyncio.create_task(client.get("order"))
    await asyncio.sleep(0.5)
    await client.aclose()
    server = start()
    await asyncio.wait([waiting])
    print("the server is back; the command has ended:", waiting.done() and repr(waiting.exception()))
    await asyncio.sleep(0.5)  # a connection that ends is gone by then
    other = redis.asyncio.Redis(port=PORT)
    print("connections of the closed client:", len(await other.client_list()) - 1)
    server.kill()


asyncio.run(main())
