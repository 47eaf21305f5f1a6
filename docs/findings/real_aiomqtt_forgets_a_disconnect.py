import asyncio
import socket
import time

import aiomqtt


async def busy():  # as an application is that starts
    while True:
        time.sleep(0.02)
        await asyncio.sleep(0)


async def listen():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        "mosquitto", "-p", str(port), stderr=asyncio.subprocess.PIPE
    )
    while b"running" not in await server.stderr.readline():
        pass

    async def passed_on(reader, writer):  # hands on CONNECT and CONNACK, and ends the connection
        upstream, up = await asyncio.open_connection("127.0.0.1", port)
        up.write(await reader.read(1000))
        writer.write(await upstream.read(1000))
        writer.close()
        up.close()

    relay = await asyncio.start_server(passed_on, "127.0.0.1", 0)
    try:
        work = asyncio.create_task(busy())
        async with aiomqtt.Client(*relay.sockets[0].getsockname()) as client:
            work.cancel()
            print("connected; the server has ended the connection right behind CONNACK")
            try:
                await asyncio.wait_for(anext(client.messages), 3)
            except TimeoutError:
                print("no message and no error for 3 s")
    finally:
        server.terminate()
        await server.wait()


asyncio.run(listen())
