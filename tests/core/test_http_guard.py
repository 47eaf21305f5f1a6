"""The servers of the HTTP APIs: what clients get wrong is answered, and not logged; what we get wrong is."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import threading
from typing import Any

import pytest
from aiohttp import web

from fakebrokers.core.http_guard import SMALL_BODY, Bodies, refuse_foreign, runner_of
from tests.eventually import PATIENCE_S, eventually


def answer_to(data: bytes, *, leaves: bool = False) -> bytes:
    """What a server says to these bytes; its one page is a defect."""

    async def broken(request: web.Request) -> web.Response:
        raise ValueError("a defect")

    async def read(request: web.Request) -> web.Response:
        reading.set()
        return web.Response(body=await request.read())

    reading = threading.Event()

    async def serve() -> bytes:
        nonlocal runner
        application = web.Application(middlewares=[refuse_foreign])
        application.router.add_get("/broken", broken)
        application.router.add_post("/read", read)
        runner = runner_of(application, shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return await asyncio.to_thread(ask, runner.addresses[0][1])
        finally:
            await runner.cleanup()

    runner: Any = None

    def ask(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            client.sendall(data)
            answer = b"" if leaves else client.recv(10_000)
            if leaves:
                assert reading.wait(PATIENCE_S)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST
        eventually(lambda: not runner.server.connections)
        return answer

    return asyncio.run(serve())


@pytest.mark.parametrize(
    "lines", [b"GET / HTTP/1.1\r\n\0: x", b"GET / HTTP/9.x", b"GET / HTTP/1.1\r\nHost x"]
)
def test_bytes_that_are_no_http(lines: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert b" 400 " in answer_to(lines + b"\r\n\r\n")[:20]
    assert caplog.records == []


@pytest.mark.parametrize(
    "lines", [b"Content-Length: 99\r\n\r\nbegin", b"Transfer-Encoding: chunked\r\n\r\n9\r\nx"]
)
def test_who_leaves_in_the_middle(lines: bytes, caplog: pytest.LogCaptureFixture) -> None:
    answer_to(b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lines, leaves=True)
    assert caplog.records == []


@pytest.mark.parametrize("lines", [b"zz\r\nx\r\n", b"1\r\nxx\r\n0\r\n\r\n"])
def test_a_body_that_is_no_http(lines: bytes, caplog: pytest.LogCaptureFixture) -> None:
    head = b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 400 " in answer_to(head + lines)[:20]
    assert caplog.records == []


def test_a_defect_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    assert b" 500 " in answer_to(b"GET /broken HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError]


def test_unfinished_bodies_have_a_limit_together_and_small_ones_pass() -> None:
    bodies = Bodies(largest=4 * SMALL_BODY, total=4 * SMALL_BODY)

    async def read(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await bodies.read(request))))

    async def serve() -> None:
        application = web.Application(middlewares=[refuse_foreign])
        application.router.add_post("/", read)
        runner = runner_of(application, shutdown_timeout=0.2, lingering_time=0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            await asyncio.to_thread(ask, runner.addresses[0][1], runner)
        finally:
            await runner.cleanup()

    def post(port: int, size: int, sent: int) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
        client.sendall(b"x" * sent)
        return client

    def ask(port: int, runner: Any) -> None:
        size = 3 * SMALL_BODY
        first = post(port, size, size - 1)
        eventually(lambda: bodies.held == size - 1)
        with post(port, size, size) as second:
            answer = second.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 503 expected at most 262144 bytes of unfinished requests")
        with post(port, SMALL_BODY, SMALL_BODY) as small:
            assert small.recv(10_000).endswith(b"\r\n\r\n65536")
        with post(port, 5 * SMALL_BODY, 0) as large:
            assert large.recv(10_000).startswith(b"HTTP/1.1 413 ")
        first.sendall(b"x")
        assert first.recv(10_000).endswith(b"\r\n\r\n%d" % size)
        first.close()
        post(port, size, size - 1).close()
        eventually(lambda: bodies.held == 0 and not runner.server.connections)

    asyncio.run(serve())


def test_a_host_has_no_case() -> None:
    request = b"POST /read HTTP/1.1\r\nHost: %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert answer_to(request % b"LOCALHOST:80").startswith(b"HTTP/1.1 200 ")
    assert answer_to(request % b"evil.example").startswith(b"HTTP/1.1 403 ")


def test_a_packed_body_is_refused_unread() -> None:
    body = gzip.compress(bytes(1 << 20))
    request = b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    answer = answer_to(request % (b"gzip", len(body)) + body)
    assert answer.startswith(b"HTTP/1.1 415 expected a body that is not packed, got Content-Encoding 'gzip'")
    assert answer_to(request % (b"Identity", 1) + b"x").startswith(b"HTTP/1.1 200 ")
