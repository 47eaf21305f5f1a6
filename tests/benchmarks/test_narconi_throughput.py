"""How fast the fake is over sockets: publish with 100 unconfirmed messages, consume with ack.

The floors are what a node process with RabbitMQ behind it can do, with a margin; they guard against
a fake that is slower than the thing it stands for. Run this file with -s to see the numbers.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

from fakebrokers.narconi.server import Narconi
from fakebrokers.narconi.websocket import BINARY, TEXT, MessageReader, encode_frame

MESSAGES = 20_000
WINDOW = 100
FLOOR = 5_000  #: messages per second


def upgraded(narconi: Narconi, protocol: str, query: str = "") -> socket.socket:
    client = socket.create_connection((narconi.host, narconi.port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(
        f"GET /v2/gold/queues/q/messages{query} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    assert b" 101 " in head
    return client


def publish(narconi: Narconi) -> None:
    """Two messages per message, at most `WINDOW` without a confirm."""
    message = encode_frame(TEXT, b'{"Content-Type":"text/plain"}', masked=True)
    message += encode_frame(BINARY, b"x" * 100, masked=True)
    with upgraded(narconi, "publish") as client:
        sent = confirmed = 0
        while confirmed < 2 * MESSAGES:  # in bytes: a confirm has two
            room = min(WINDOW - (sent - confirmed // 2), MESSAGES - sent)
            client.sendall(message * room)
            sent += room
            confirmed += len(client.recv(65536))


def consume(narconi: Narconi) -> None:
    """One ack for each delivery."""
    reader = MessageReader(65536)
    with upgraded(narconi, "consume", f"?ack&limit={WINDOW}") as client:
        done = 0
        while done < MESSAGES:
            acks = []
            for frame in reader.feed(client.recv(1 << 18)):
                if frame[0] == BINARY:
                    done += 1
                    acks.append(encode_frame(TEXT, b'{"ackId":"%d"}' % done, masked=True))
            client.sendall(b"".join(acks))


def rate(work: Callable[[Narconi], None], narconi: Narconi) -> float:
    before = time.perf_counter()
    work(narconi)
    per_second = MESSAGES / (time.perf_counter() - before)
    print(f"{work.__name__}: {per_second:.0f} messages/s")
    return per_second


@pytest.mark.benchmark
def test_throughput() -> None:
    with Narconi() as narconi:
        narconi.create_queue("gold", "q")
        assert rate(publish, narconi) > FLOOR
        assert rate(consume, narconi) > FLOOR
