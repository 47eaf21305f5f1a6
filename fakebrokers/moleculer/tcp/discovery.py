"""UDP discovery of the TCP transporter: nodes call out where they listen (docs/protocols/moleculer.md, 6.4).

On loopback only. Real nodes take part when they are told ``udpBindAddress: "127.0.0.1"``.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

GROUP = "239.0.0.0"
PORT = 4445
#: Seconds between two calls.
PERIOD_S = 30.0

_LOOPBACK = "127.0.0.1"
#: Linux: deliver only what comes over an interface on which this socket has joined the group.
_IP_MULTICAST_ALL = 49


def parse(data: bytes) -> tuple[str, str, int] | None:
    """Namespace, nodeID and port of a datagram; None for one that is none of Moleculer's."""
    parts = data.decode("utf-8", "replace").split("|")
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdecimal()):
        return None
    port = int(parts[2])
    return (parts[0], parts[1], port) if 0 < port < 1 << 16 else None


class Discovery(asyncio.DatagramProtocol):
    """One socket for all nodes of a fake.

    Args:
        port: Of the datagrams.
        namespace: Of the nodes; datagrams of others are nothing.
        nodes: The ids and TCP ports of the nodes that are there now.
        found: Is told of another node: its id and its TCP port.
    """

    def __init__(
        self,
        port: int,
        namespace: str,
        nodes: Callable[[], list[tuple[str, int]]],
        found: Callable[[str, int], None],
    ) -> None:
        self._port = port
        self._namespace = namespace
        self._nodes = nodes
        self._found = found
        self._socket: socket.socket | None = None
        self._transport: asyncio.DatagramTransport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Join the group. `OSError` where this machine cannot."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((GROUP, self._port))
            loopback = socket.inet_aton(_LOOPBACK)
            membership = struct.pack("4s4s", socket.inet_aton(GROUP), loopback)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        self._socket = sock

    async def start(self) -> None:
        """Listen, and call out from now on."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=self._socket)
        self._transport = transport
        self.call()

    def call(self) -> None:
        """Call out where the nodes listen."""
        if self._transport is None:
            return
        for node, port in self._nodes():
            self._transport.sendto(f"{self._namespace}|{node}|{port}".encode(), (GROUP, self._port))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self.call)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        said = parse(data)
        own = {node for node, _ in self._nodes()}
        if said is not None and said[0] == self._namespace and said[1] not in own:
            self._found(said[1], said[2])

    def close(self) -> None:
        """Leave the group."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        elif self._socket is not None:
            self._socket.close()
