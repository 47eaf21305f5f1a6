"""The loop of a simulation: connections, servers and names of its network, for unmodified asyncio code."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import ssl as tls
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from fakebrokers.simulation.datagrams import SimulatedDatagramTransport
from fakebrokers.simulation.servers import SimulatedServer
from fakebrokers.simulation.transports import SimulatedTransport, converse
from fakebrokers.simulation.turns import LONGEST_S, TurningLoop

if TYPE_CHECKING:
    from fakebrokers.simulation.ends import End


class SimulationLoop(TurningLoop):
    """An asyncio loop whose time, network and threads are simulated; see `TurningLoop` for its arguments."""

    def __init__(self, random: random.Random | None = None, longest_s: float = LONGEST_S) -> None:
        super().__init__(random, longest_s)
        self._tokens: WeakKeyDictionary[socket.socket, End] = WeakKeyDictionary()

    # names and connections

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """The addresses of a host of the simulation."""
        name = host.decode() if isinstance(host, bytes) else host
        if name is None:
            name = "0.0.0.0" if flags & socket.AI_PASSIVE else "127.0.0.1"
        address = self.network.address_of(name, self.network.here().host)
        if family not in (socket.AF_UNSPEC, socket.AF_INET):
            raise socket.gaierror(socket.EAI_FAMILY, "Address family for hostname not supported")
        place = (address, _port_number(port))
        kinds = {socket.SOCK_STREAM: socket.IPPROTO_TCP, socket.SOCK_DGRAM: socket.IPPROTO_UDP}
        return [
            (socket.AF_INET, kind, number, "", place) for kind, number in kinds.items() if type in (0, kind)
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """The name of an address of the simulation."""
        host = self.network.at(sockaddr[0], self.network.here().host)
        return (sockaddr[0] if host is None else host.name, str(sockaddr[1]))

    async def create_connection(  # type: ignore[override] # its overloads
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        **options: Any,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """Connect; where nothing else is asked for, without the socket that asyncio would make."""
        if host is None or ssl is not None or options:
            connect: Any = super().create_connection
            made: tuple[asyncio.BaseTransport, asyncio.BaseProtocol] = await connect(
                protocol_factory, host, port, ssl=ssl, **options
            )
            return made
        ((*_, place),) = await self.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        end = await self.network.connect(*place)
        protocol, waiter = protocol_factory(), self.create_future()
        transport = SimulatedTransport(self, end, protocol, waiter)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect; the socket of the operating system only stands for the connection."""
        host, port = address[:2]
        found = self.network.address_of(host, self.network.here().host)
        end = await self.network.connect(found, port)
        end.token = sock
        self._tokens[sock] = end

    async def sock_recv(self, sock: socket.socket, nbytes: int) -> bytes:
        """Bytes that have come; b"" at the end."""
        end = self._end_of(sock)
        while (data := end.receive(nbytes)) is None:
            await self._change_of(end)
        return data

    async def sock_recv_into(self, sock: socket.socket, buf: Any) -> int:
        """Bytes that have come, into a buffer; how many."""
        room = memoryview(buf).cast("B")
        data = await self.sock_recv(sock, len(room))
        room[: len(data)] = data
        return len(data)

    async def sock_sendall(self, sock: socket.socket, data: Any) -> None:
        """Send everything."""
        end, rest = self._end_of(sock), memoryview(data).cast("B")
        while rest := rest[end.send(rest) :]:
            await self._change_of(end)

    def _end_of(self, sock: socket.socket) -> End:
        end = self._tokens.get(sock)
        if end is None:
            raise self.refuse("a socket of the operating system", "connect it with await loop.sock_connect")
        return end

    async def _change_of(self, end: End) -> None:
        changed = self.create_future()

        def tell() -> None:
            end.is_woken = False
            if not changed.done():
                changed.set_result(None)

        end.watch(tell)
        try:
            await changed
        finally:
            end.watch(None)

    def _make_socket_transport(
        self, sock: socket.socket, protocol: asyncio.BaseProtocol, waiter: Any = None, **options: Any
    ) -> asyncio.Transport:
        """For `create_connection`."""
        return SimulatedTransport(self, self._end_of(sock), protocol, waiter, **options)

    def _make_ssl_transport(
        self,
        rawsock: socket.socket,
        protocol: asyncio.BaseProtocol,
        sslcontext: tls.SSLContext,
        waiter: Any = None,
        **options: Any,
    ) -> asyncio.Transport:
        """For `create_connection`."""
        return converse(self, self._end_of(rawsock), protocol, sslcontext, waiter=waiter, **options)

    # servers

    async def create_server(  # type: ignore[override] # of another class
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        ssl: tls.SSLContext | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        start_serving: bool = True,
        **options: Any,
    ) -> SimulatedServer:
        """Listen on the host that the code runs on."""
        if isinstance(ssl, bool):
            raise TypeError("ssl argument must be an SSLContext or None")
        if sock is not None:
            raise self.refuse("a socket of the operating system", "name host and port")
        here = self.network.here().host
        names = [host] if host is None or isinstance(host, str) else list(host)
        places = [(*self.network.own_address(name, here), port or 0) for name in names]
        timeouts = {
            "ssl_handshake_timeout": ssl_handshake_timeout,
            "ssl_shutdown_timeout": ssl_shutdown_timeout,
        }
        server = SimulatedServer(self, protocol_factory, places, ssl, {} if ssl is None else timeouts)
        if start_serving:
            await server.start_serving()
        return server

    async def create_datagram_endpoint(  # type: ignore[override] # of another class
        self,
        protocol_factory: Callable[[], asyncio.DatagramProtocol],
        local_addr: tuple[str, int] | None = None,
        remote_addr: tuple[str, int] | None = None,
        *,
        sock: socket.socket | None = None,
        **options: Any,
    ) -> tuple[SimulatedDatagramTransport, asyncio.DatagramProtocol]:
        """Take datagrams on the host that the code runs on."""
        if sock is not None:
            raise self.refuse("a socket of the operating system", "name the addresses")
        process = self.network.here()
        wanted, port = local_addr or (None, 0)
        address, _ = self.network.own_address(wanted, process.host)
        if port in process.host.boxes:
            raise OSError(errno.EADDRINUSE, f"address in use: port {port} of {process.host.name}")
        if remote_addr is not None:
            remote_addr = (self.network.address_of(remote_addr[0], process.host), remote_addr[1])
        protocol = protocol_factory()
        local = (address, port or process.host.free_port())
        transport = SimulatedDatagramTransport(self, process, local, remote_addr, protocol)
        await asyncio.sleep(0)
        return transport, protocol


def _port_number(port: bytes | str | int | None) -> int:
    text = port.decode() if isinstance(port, bytes) else port
    if text is None or isinstance(text, int):
        return text or 0
    return int(text) if text.isdecimal() else socket.getservbyname(text)
