"""To code that uses asyncio the simulated loop is a real one: both do the same, in the same order."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from fakebrokers.core.tls import Tls
from fakebrokers.simulation import SimulationLoop
from tests.eventually import PATIENCE_S

#: More than what the buffers of a real kernel take.
MUCH = 16 * 1024 * 1024

Events = list[Any]
Scenario = Callable[[Events], Awaitable[None]]

SCENARIOS: list[Scenario] = []


def scenario(work: Scenario) -> Scenario:
    SCENARIOS.append(work)
    return work


def run(make: Callable[[], asyncio.AbstractEventLoop], work: Scenario) -> Events:
    events: Events = []
    with asyncio.Runner(loop_factory=make) as runner:
        runner.get_loop().set_exception_handler(lambda _, about: events.append(about["message"]))
        runner.run(asyncio.wait_for(work(events), PATIENCE_S))
    return events


class Notes(asyncio.Protocol):
    """Notes what it is told; joins data, which TCP may cut anywhere."""

    def __init__(self, events: Events, name: str) -> None:
        self.events = events
        self.name = name
        self.data = b""
        self.transport: Any = None
        self.goes_on = False
        self.ended = asyncio.get_running_loop().create_future()
        self.half_closed = asyncio.get_running_loop().create_future()
        self.filled = asyncio.Event()
        self.wanted = 1
        self.got = asyncio.Event()

    def note(self, what: Any) -> None:
        self.events.append((self.name, what))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.note("made")
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        if len(self.data) >= self.wanted:
            self.got.set()

    def eof_received(self) -> bool:
        self.note("eof")
        self.half_closed.set_result(None)
        return self.goes_on

    def pause_writing(self) -> None:
        self.note("pause")
        self.filled.set()

    def resume_writing(self) -> None:
        self.note("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.note(("lost", type(error).__name__))
        self.ended.set_result(None)


@contextlib.asynccontextmanager
async def joined(events: Events, **options: Any) -> Any:
    """Protocols at both ends of a connection."""
    loop = asyncio.get_running_loop()
    accepted = loop.create_future()

    def accept() -> Notes:
        accepted.set_result(Notes(events, "server"))
        there: Notes = accepted.result()
        return there

    server = await loop.create_server(accept, "127.0.0.1", 0, ssl=options.get("server_context"))
    host, port = server.sockets[0].getsockname()
    _, client = await loop.create_connection(
        lambda: Notes(events, "client"),
        host,
        port,
        ssl=options.get("context"),
        server_hostname=options.get("name"),
    )
    there = await accepted
    while there.transport is None:
        await asyncio.sleep(0)
    try:
        yield client, there
    finally:
        for each in (client, there):
            if not each.ended.done():
                each.transport.abort()
        await asyncio.gather(client.ended, there.ended)
        server.close()
        await server.wait_closed()


@scenario
async def the_client_closes(events: Events) -> None:
    async with joined(events) as (client, server):
        client.transport.write(b"one")
        client.transport.writelines([b"two", b"three"])
        client.transport.close()
        client.transport.close()
        events.append((client.transport.is_closing(), server.transport.is_closing()))
        await client.ended
        await server.ended
        events.append(server.data)
        client.transport.write(b"nobody hears this")


@scenario
async def the_server_ends_its_direction_and_reads_on(events: Events) -> None:
    async with joined(events) as (client, server):
        client.goes_on = True
        server.transport.write(b"hello")
        server.transport.write_eof()
        await client.half_closed
        events.append((client.data, client.transport.is_closing(), server.transport.can_write_eof()))
        client.transport.write(b"still here")
        server.wanted = 10
        await server.got.wait()
        events.append(server.data)
        with pytest.raises(RuntimeError, match="write_eof"):
            server.transport.write(b"more")
        client.transport.close()
        await server.ended


@scenario
async def a_reset(events: Events) -> None:
    async with joined(events) as (client, server):
        linger = struct.pack("ii", 1, 0)
        server.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        server.transport.abort()
        await server.ended
        await client.ended


@scenario
async def bytes_that_nobody_reads_become_a_reset(events: Events) -> None:
    async with joined(events) as (client, server):
        server.transport.pause_reading()
        client.transport.write(b"unread")
        for _ in range(5):  # until the bytes are there
            await asyncio.sleep(0)
        server.transport.abort()
        await client.ended


@scenario
async def a_slow_reader(events: Events) -> None:
    async with joined(events) as (client, server):
        server.transport.pause_reading()
        events.append(server.transport.is_reading())
        client.transport.set_write_buffer_limits(high=1000, low=100)
        events.append(client.transport.get_write_buffer_limits())
        client.transport.write(bytes(MUCH))
        await client.filled.wait()
        events.append((client.transport.get_write_buffer_size() > 1000, server.data))
        client.transport.close()  # after what is still in its buffer
        events.append(client.transport.is_closing())
        server.transport.resume_reading()
        events.append(server.transport.is_reading())
        await server.ended
        events.append(len(server.data))


@scenario
async def what_write_takes(events: Events) -> None:
    async with joined(events) as (client, server):
        client.transport.write(b"")
        client.transport.write(bytearray(b"a"))
        client.transport.write(memoryview(b"b"))
        server.wanted = 2
        await server.got.wait()
        events.append(server.data)
        with pytest.raises(TypeError) as caught:
            client.transport.write("text")
        events.append(str(caught.value).split(",")[0].split("must")[0])


@scenario
async def an_error_in_a_protocol(events: Events) -> None:
    async with joined(events) as (client, server):

        def fail(data: bytes) -> None:
            raise ValueError("no such order")

        server.data_received = fail
        client.transport.write(b"order")
        await server.ended
        await client.ended


@scenario
async def what_a_transport_tells(events: Events) -> None:
    async with joined(events) as (client, server):
        one, other = client.transport, server.transport
        events.append(one.get_extra_info("peername") == other.get_extra_info("sockname"))
        events.append(one.get_extra_info("sockname") == other.get_extra_info("peername"))
        events.append([one.get_extra_info(name) for name in ("sslcontext", "cipher", "nothing")])
        sock = one.get_extra_info("socket")
        events.append((sock.family, sock.type, sock.getpeername() == one.get_extra_info("peername")))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        events.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        events.append(one.get_protocol() is client)


@scenario
async def another_protocol_takes_over(events: Events) -> None:
    async with joined(events) as (client, server):
        second = Notes(events, "second")
        server.transport.set_protocol(second)
        client.transport.write(b"to the second")
        await second.got.wait()
        events.append((server.data, second.data))
        server.transport.set_protocol(server)


class Filled(asyncio.BufferedProtocol):
    """Reads three bytes at a time."""

    def __init__(self) -> None:
        self.room = bytearray(3)
        self.pieces: list[bytes] = []
        self.ended = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        self.pieces.append(bytes(self.room[:nbytes]))

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set_result(None)


@scenario
async def a_buffered_protocol(events: Events) -> None:
    async with joined(events) as (client, server):
        filled = Filled()
        server.transport.set_protocol(filled)
        client.transport.write(b"12345678")
        client.transport.close()
        await filled.ended
        events.append(filled.pieces)
        server.ended.set_result(None)
        server.transport.set_protocol(server)


@scenario
async def streams(events: Events) -> None:
    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(upper, "localhost", 0, family=socket.AF_INET)
    events.append((server.is_serving(), len(server.sockets)))
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"tea\nmilk\n")
    events.append([await reader.readline(), await reader.readexactly(5)])
    writer.write_eof()
    events.append(await reader.read())
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
    events.append(server.is_serving())
    with pytest.raises(ConnectionRefusedError) as caught:
        await asyncio.open_connection("127.0.0.1", port)
    events.append(caught.value.errno)


@scenario
async def a_server_that_begins_later(events: Events) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Notes(events, "x"), "127.0.0.1", 0, start_serving=False)
    events.append(server.is_serving())
    forever = asyncio.ensure_future(server.serve_forever())
    while not server.is_serving():
        await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await server.serve_forever()
    forever.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forever
    events.append((server.is_serving(), len(server.sockets), server.get_loop() is loop))


@scenario
async def wrong_arguments(events: Events) -> None:
    loop = asyncio.get_running_loop()

    def make() -> asyncio.Protocol:
        return Notes(events, "never")

    for wrong in (
        {"server_hostname": "x", "host": "127.0.0.1", "port": 1},
        {},
        {"host": "127.0.0.1", "port": 1, "ssl_handshake_timeout": 1.0},
    ):
        with pytest.raises(ValueError) as caught:
            await loop.create_connection(make, **wrong)  # type: ignore[call-overload]
        events.append(str(caught.value))
    with pytest.raises(TypeError) as no_context:
        await loop.create_server(make, "127.0.0.1", 0, ssl=True)
    events.append(str(no_context.value))


@scenario
async def work_in_threads(events: Events) -> None:
    events.append(await asyncio.to_thread(sum, [1, 2, 3]))
    with pytest.raises(KeyError):
        await asyncio.get_running_loop().run_in_executor(None, {}.__getitem__, "nothing")


@scenario
async def sockets_by_hand(events: Events) -> None:
    async with joined(events) as (client, server):
        place = client.transport.get_extra_info("peername")
    loop = asyncio.get_running_loop()
    received = loop.create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.readexactly(5))
        writer.write(b"pong")
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    with socket.socket() as sock:
        sock.setblocking(False)
        with pytest.raises(ConnectionRefusedError):
            await loop.sock_connect(sock, place)
    with socket.socket() as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, server.sockets[0].getsockname())
        await loop.sock_sendall(sock, b"ping!")
        room = bytearray(2)
        events.append((await received, await loop.sock_recv(sock, 2), await loop.sock_recv_into(sock, room)))
        events.append((bytes(room), await loop.sock_recv(sock, 2)))
    server.close()


@scenario
async def a_socket_that_somebody_else_connected(events: Events) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    sock = socket.socket()
    sock.setblocking(False)
    await loop.sock_connect(sock, server.sockets[0].getsockname())
    reader, writer = await asyncio.open_connection(sock=sock)
    events.append(await reader.read())
    writer.close()
    await writer.wait_closed()
    server.close()


class Mail(asyncio.DatagramProtocol):
    def __init__(self, answers: bool) -> None:
        self.answers = answers
        self.got: asyncio.Queue[bytes] = asyncio.Queue()
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.got.put_nowait(data)
        if self.answers:
            self.transport.sendto(data.upper(), addr)


@scenario
async def datagrams(events: Events) -> None:
    loop = asyncio.get_running_loop()
    there, server = await loop.create_datagram_endpoint(lambda: Mail(True), ("127.0.0.1", 0))
    place = there.get_extra_info("sockname")
    here, client = await loop.create_datagram_endpoint(lambda: Mail(False), remote_addr=place)
    here.sendto(b"tea")
    here.sendto(b"milk", place)
    events.append([await server.got.get(), await client.got.get(), await client.got.get()])
    with pytest.raises(ValueError, match="Invalid address"):
        here.sendto(b"elsewhere", ("127.0.0.1", 9))
    here.close()
    there.close()
    events.append(here.is_closing())


@scenario
async def debug_mode(events: Events) -> None:
    loop = asyncio.get_running_loop()
    for debug in (False, True):
        loop.set_debug(debug)
        for handle in (loop.call_soon(int), loop.call_later(60, int)):
            events.append(("created at" in repr(handle), handle.cancelled()))
            handle.cancel()
            events.append(handle.cancelled())
    for call in (loop.call_soon, lambda work: loop.call_later(1, work)):
        with pytest.raises(TypeError) as caught:
            call(streams)
        events.append(str(caught.value))
    loop.set_debug(False)


@scenario
async def a_callback_that_fails(events: Events) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, about: events.append(sorted(about)))
    for call in (loop.call_soon, lambda *what: loop.call_later(0, *what)):
        gone_on = asyncio.Event()
        call(int, "a cup")
        call(gone_on.set)
        await gone_on.wait()
    closed = type(loop)()
    closed.close()
    for call in (closed.call_soon, lambda act: closed.call_later(1, act)):
        with pytest.raises(RuntimeError, match="is closed"):
            call(int)
    events.append("closed")


@pytest.mark.parametrize("work", SCENARIOS, ids=lambda work: work.__name__)
def test_both_loops_do_the_same(work: Scenario) -> None:
    real, simulated = run(asyncio.SelectorEventLoop, work), run(SimulationLoop, work)
    assert simulated == real
    assert real


# TLS


@pytest.fixture(scope="module")
def certificates() -> Iterator[Tls]:
    made = Tls("localhost")
    yield made
    made.close()


def trusting(certificates: Tls) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates.ca_file)


def test_tls(certificates: Tls) -> None:
    async def talk(events: Events) -> None:
        async with joined(
            events, server_context=certificates.context, context=trusting(certificates), name="localhost"
        ) as (client, server):
            client.transport.write(bytes(100_000))
            server.wanted = 100_000
            await server.got.wait()
            tells = client.transport.get_extra_info
            events.append((tells("peercert")["subjectAltName"], tells("sslcontext") is not None))
            events.append((client.transport.can_write_eof(), tells("cipher")[1]))
            client.transport.close()
            await server.ended

    real, simulated = run(asyncio.SelectorEventLoop, talk), run(SimulationLoop, talk)
    assert simulated == real


def test_a_certificate_for_somebody_else(certificates: Tls) -> None:
    async def talk(events: Events) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Notes(events, "server"), "127.0.0.1", 0, ssl=certificates.context
        )
        with pytest.raises(ssl.SSLCertVerificationError):
            await loop.create_connection(
                lambda: Notes(events, "client"),
                *server.sockets[0].getsockname(),
                ssl=trusting(certificates),
                server_hostname="elsewhere.example",
            )
        server.close()
        await server.wait_closed()

    real, simulated = run(asyncio.SelectorEventLoop, talk), run(SimulationLoop, talk)
    assert simulated == real == []


def test_tls_from_the_middle_on(certificates: Tls) -> None:
    async def talk(events: Events) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            events.append(await reader.readline())
            writer.write(b"go ahead\n")
            await writer.start_tls(certificates.context)
            events.append(await reader.readline())
            writer.write(b"secret\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"STARTTLS\n")
        events.append(await reader.readline())
        await writer.start_tls(trusting(certificates), server_hostname="localhost")
        writer.write(b"hush\n")
        events.append(await reader.read())
        writer.close()
        server.close()
        await server.wait_closed()

    real, simulated = run(asyncio.SelectorEventLoop, talk), run(SimulationLoop, talk)
    assert simulated == real
    assert simulated == [b"STARTTLS\n", b"go ahead\n", b"hush\n", b"secret\n"]
