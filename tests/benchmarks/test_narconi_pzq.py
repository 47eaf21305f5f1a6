"""PZQ and Narconi: small messages of 100 bytes, beside the least that could answer them.

There is no real server to run beside. The other side of a ratio is what a user would write instead, which
does nothing but answer: a ROUTER socket in a loop for PZQ, handlers of aiohttp for Narconi. Both are programs
of their own, as is the load; runs alternate, and a ratio is the median of those of the pairs. The floors
guard against a fall.
"""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import zmq

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

PAIRS = 5
BODY = b"x" * 100

#: The marks are raised: with the daemon's 10, what a client does not fetch at once is lost.
PZQ_FAKE = """
import sys
from fakebrokers import PZQ
broker = PZQ(high_water_marks=(10_000, 1, 1)).start()
print(broker.receive_url, flush=True)
sys.stdin.read()
"""
PZQ_BARE = """
import zmq
router = zmq.Context().socket(zmq.ROUTER)
router.sndhwm = router.rcvhwm = 10_000
print(f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}", flush=True)
while True:
    who, key, *_ = router.recv_multipart()
    router.send_multipart([who, key, b"1", b""])
"""
NARCONI_FAKE = """
import sys
from fakebrokers import Narconi
broker = Narconi().start()
broker.create_queue("shop", "orders")
print(broker.port, flush=True)
sys.stdin.read()
"""
NARCONI_BARE = """
import asyncio
from aiohttp import web
async def publish(request):
    await request.read()
    return web.Response(status=201)
async def upgrade(request):
    socket = web.WebSocketResponse(protocols=["publish"], compress=False)
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str("")
    return socket
async def main():
    app = web.Application()
    app.router.add_post("/v2/shop/queues/orders/messages", publish)
    app.router.add_get("/v2/shop/queues/orders/messages", upgrade)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
REQUEST = (
    b"POST /v2/shop/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 100\r\n\r\n" + BODY
)


@contextmanager
def running(program: str, *arguments: str) -> Iterator[str]:
    """What the program prints first: where it listens."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def ratio(ours: Callable[[], float], theirs: Callable[[], float], name: str) -> float:
    """Of the messages/s of both, over pairs of runs; prints the medians."""
    pairs = [(ours(), theirs()) for _ in range(PAIRS)]
    found = statistics.median(fake / bare for fake, bare in pairs)
    fake, bare = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{name}, messages/s: fake {fake:,.0f}, bare {bare:,.0f}, ratio {found:.2f}")
    return found


def produce(url: str, messages: int, window: int) -> float:
    """Messages/s of a producer that has `window` of them without an answer at most."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as producer:
        producer.sndhwm = producer.rcvhwm = 10_000
        producer.connect(url)
        producer.send_multipart([b"first", b"", BODY])
        producer.recv_multipart()
        begun = time.perf_counter()
        sent = answered = 0
        while answered < messages:
            while sent < messages and sent - answered < window:
                producer.send_multipart([b"%d" % sent, b"", BODY])
                sent += 1
            producer.recv_multipart()
            answered += 1
        return messages / (time.perf_counter() - begun)


@pytest.mark.parametrize(("window", "messages", "floor"), [(1, 3_000, 0.4), (100, 20_000, 0.35)])
def test_pzq_stores(window: int, messages: int, floor: float) -> None:
    with running(PZQ_FAKE) as fake, running(PZQ_BARE) as bare:
        found = ratio(
            lambda: produce(fake, messages, window),
            lambda: produce(bare, messages, window),
            f"PZQ, {window} at a time",
        )
    assert found >= floor


def talk(port: str, opening: bytes, request: bytes, answer_size: int, messages: int, window: int) -> float:
    """Requests/s of a client that has `window` of them without an answer at most; answers are counted."""
    with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if opening:
            client.sendall(opening)
            client.recv(1 << 16)
        begun = time.perf_counter()
        sent = received = 0
        while received < messages * answer_size:
            room = min(messages, received // answer_size + window) - sent
            if room:
                client.sendall(request * room)
                sent += room
            received += len(client.recv(1 << 16))
        return messages / (time.perf_counter() - begun)


def answer_size(port: str) -> int:
    """Bytes that a server says to the first request."""
    with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as client:
        client.sendall(REQUEST)
        return len(client.recv(1 << 16))


@pytest.mark.parametrize(("window", "messages", "floor"), [(1, 3_000, 0.5), (100, 10_000, 0.8)])
def test_narconi_stores_by_http(window: int, messages: int, floor: float) -> None:
    with running(NARCONI_FAKE) as fake, running(NARCONI_BARE) as bare:
        found = ratio(
            lambda: talk(fake, b"", REQUEST, answer_size(fake), messages, window),
            lambda: talk(bare, b"", REQUEST, answer_size(bare), messages, window),
            f"Narconi by HTTP, {window} at a time",
        )
    assert found >= floor


UPGRADE = (
    b"GET /v2/shop/queues/orders/messages HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: publish\r\n\r\n"
)
#: A binary frame, masked with zeros; and an empty text frame, which confirms it.
MESSAGE, CONFIRM = b"\x82\xe4\0\0\0\0" + BODY, b"\x81\0"


@pytest.mark.parametrize(("window", "messages", "floor"), [(1, 3_000, 0.4), (100, 50_000, 0.5)])
def test_narconi_stores_by_websocket(window: int, messages: int, floor: float) -> None:
    with running(NARCONI_FAKE) as fake, running(NARCONI_BARE) as bare:
        found = ratio(
            lambda: talk(fake, UPGRADE, MESSAGE, len(CONFIRM), messages, window),
            lambda: talk(bare, UPGRADE, MESSAGE, len(CONFIRM), messages, window),
            f"Narconi by WebSocket, {window} at a time",
        )
    assert found >= floor
