import asyncio
import logging
import subprocess

import nats

PORT = 16387

logging.disable()


async def another_client(*subjects):
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(b"CONNECT {}\r\n")
    for subject in subjects:
        writer.write(b"PUB %b 3\r\ntea\r\n" % subject)
    writer.write(b"PING\r\n")
    while await reader.readline() != b"PONG\r\n":
        pass
    writer.close()


async def main():
    command = ["nats-server", "--addr", "127.0.0.1", "--port", str(PORT)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    got = []

    async def listen(message):
        got.append(message.subject)

    client = await nats.connect(f"nats://127.0.0.1:{PORT}")
    await client.subscribe("orders.*", cb=listen)
    await client.flush()
    await another_client(b"orders.1", b"orders.M\xfcnchen", b"orders.2")
    await asyncio.sleep(1)
    await another_client(b"orders.3")
    await asyncio.sleep(1)
    print("connected:", client.is_connected, "- delivered, of four:", got)
    server.kill()


asyncio.run(main())
