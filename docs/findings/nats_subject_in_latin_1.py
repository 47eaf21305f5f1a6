import asyncio
import logging

import nats

from fakebrokers import NATS

logging.disable()


async def another_client(server, *subjects):
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(b"CONNECT {}\r\n")
    for subject in subjects:
        writer.write(b"PUB %b 3\r\ntea\r\n" % subject)
    writer.write(b"PING\r\n")
    while await reader.readline() != b"PONG\r\n":
        pass
    writer.close()


async def main(server):
    got = []

    async def listen(message):
        got.append(message.subject)

    client = await nats.connect(server.url)
    await client.subscribe("orders.*", cb=listen)
    await client.flush()
    await another_client(server, b"orders.1", b"orders.M\xfcnchen", b"orders.2")
    await asyncio.sleep(1)
    await another_client(server, b"orders.3")
    await asyncio.sleep(1)
    print("connected:", client.is_connected, "- delivered, of four:", got)


with NATS() as server:
    asyncio.run(main(server))
