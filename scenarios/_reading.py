"""Lost or slow: what the broker has written for a client, and the client has not read yet."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from pathlib import Path

from conformance.clients.adapter.messages import Message
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers.core.tcp import TcpTransport
from fakebrokers.server import FakeServer

#: A client that has read nothing for so long reads no more.
STANDS_STILL_S = 3.0
#: How long a slow reader is waited for.
PATIENCE_S = 60.0
#: After so long its pace is known.
PACE_S = 10.0


def unread_bytes(broker: FakeServer) -> int:
    """Bytes that clients still have to read: unsent, as their receive windows are full, or unread.

    In memory there are no windows: 0.
    """
    ends = broker.call(lambda: [_end(c.transport) for c in broker.engine.connections.values()])
    received = _received()
    return sum(queued + received.get(ports, 0) for queued, ports in ends)


def _end(transport: object) -> tuple[int, tuple[int, int]]:
    """What the broker has not got rid of, and the ports: the client's and the broker's."""
    if not isinstance(transport, TcpTransport):
        return 0, (0, 0)
    sock = transport.socket
    if sock is None or sock.fileno() < 0:
        return 0, (0, 0)
    try:
        (queued,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0" * 4))
        return queued + transport.unsent_bytes, (sock.getpeername()[1], sock.getsockname()[1])
    except OSError:
        return 0, (0, 0)


def _received() -> dict[tuple[int, int], int]:
    """What the sockets of this machine hold for their programs, by their own port and their peer's."""
    found = {}
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, own, peer, _, queues, *_ = line.split()
            found[int(own.rpartition(":")[2], 16), int(peer.rpartition(":")[2], 16)] = int(
                queues.rpartition(":")[2], 16
            )
    return found


async def read_up(broker: FakeServer, expect: Expect) -> None:
    """Wait until the client has read what the broker has written, or reads no more.

    One that reads on after `PATIENCE_S` is slow, which is not forbidden: inconclusive.
    """
    loop = asyncio.get_running_loop()
    begun = moved = loop.time()
    unread = unread_bytes(broker)
    while unread and loop.time() - moved < STANDS_STILL_S:
        expect.exercised(
            loop.time() - begun <= PATIENCE_S,
            f"the client reads slowly: it still does after {PATIENCE_S:.0f} s",
            id=slug("the-client-reads-slowly-it-still-does-after-{}-s", f"{PATIENCE_S:.0f}"),
        )
        await asyncio.sleep(0.1)
        before, unread = unread, unread_bytes(broker)
        if unread != before:
            moved = loop.time()


async def read_to_the_end(
    broker: FakeServer, client: Client, expect: Expect, count: int, sub: str = "c1", *, within_s: float
) -> list[Message]:
    """The messages as soon as there are `count`; a client that is still reading by then gets more time.

    One that reads on but is not through after `PATIENCE_S`, or will not be at its pace, is slow, which is
    not forbidden: inconclusive.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    found = await client.wait_messages(count, sub, within_s)
    unread, moved = unread_bytes(broker), loop.time()
    all_unread, paced = unread, moved
    while len(found) < count and unread and loop.time() - moved < STANDS_STILL_S:
        late = loop.time() - begun > PATIENCE_S
        if loop.time() - paced > PACE_S:
            pace = (all_unread - unread) / (loop.time() - paced)
            late = late or pace * PATIENCE_S < unread
        came = f"{len(found)} of {count} in {loop.time() - begun:.0f} s"
        expect.exercised(
            not late,
            f"the client reads slowly: {came}, and it reads on",
            id=slug("the-client-reads-slowly-n-of-n-in-{}-s-and-it-reads-on", f"{loop.time() - begun:.0f}"),
        )
        before, seen = unread, len(found)
        found = await client.wait_messages(count, sub, 0.5)
        unread = unread_bytes(broker)
        if unread != before or len(found) > seen:
            moved = loop.time()
    if len(found) >= count and loop.time() - begun > within_s:
        expect.note(f"the client reads slowly: it took {loop.time() - begun:.0f} s")
    return await client.wait_messages(len(found) + 1, sub, 0.25) if len(found) >= count else found
