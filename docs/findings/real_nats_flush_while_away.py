import asyncio
import logging
import subprocess
from contextlib import suppress

import nats

PORT = 16386

logging.disable()


async def main():
    command = ["nats-server", "--addr", "127.0.0.1", "--port", str(PORT)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    client = await nats.connect(f"nats://127.0.0.1:{PORT}", reconnect_time_wait=0.1)
    server.kill()
    server.wait()
    while client.is_connected:
        await asyncio.sleep(0.01)
    await client.publish("orders", b"tea")
    await client.flush()
    print("the server is away; flush reports success; connected:", client.is_connected)
    with suppress(OSError):
        await client.close()


asyncio.run(main())
