import asyncio
import subprocess

import redis.asyncio

PORT, FRONT = 16379, 16380


async def pump(reader, writer, spoils):
    """Pass bytes on; in place of what `spoils` names, end the connection."""
    while data := await reader.read(65536):
        if data == spoils.get("reply"):
            spoils.clear()
            break
        writer.write(data)
    writer.close()


async def main():
    spoils = {}

    async def serve(reader, writer):
        up, down = await asyncio.open_connection("127.0.0.1", PORT)
        await asyncio.gather(pump(reader, down, {}), pump(up, writer, spoils), return_exceptions=True)

    await asyncio.start_server(serve, "127.0.0.1", FRONT)
    client = redis.asyncio.Redis(port=FRONT)
    print("orders so far:", await client.incr("orders"))
    spoils["reply"] = b":2\r\n"
    print("one more order:", await client.incr("orders"))
    direct = redis.asyncio.Redis(port=PORT)
    print("the server has counted:", (await direct.get("orders")).decode())
    await client.aclose()
    await direct.aclose()


command = ["redis-server", "--port", str(PORT), "--bind", "127.0.0.1", "--save", ""]
with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
    try:
        while subprocess.run(
            ["redis-cli", "-p", str(PORT), "ping"], capture_output=True, check=False
        ).returncode:
            pass
        asyncio.run(main())
    finally:
        server.kill()
