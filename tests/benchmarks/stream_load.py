"""A load generator for the stream protocol: publishes batches, reads confirms, then consumes them all.

    python stream_load.py HOST PORT MESSAGES [BATCH [FRAMES]]

with BATCH messages per Publish and FRAMES of those per write, prints

    {"publish_confirm": messages/s, "consume": messages/s}

Frames are made before the clock starts and answers are only counted, so that the server is measured.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time

BATCH = 500
BODY = b"x" * 100
WINDOW = 20_000
CREDIT = 200


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def frame(key: int, body: bytes) -> bytes:
    return struct.pack(">IHH", len(body) + 4, key, 1) + body


class Connection:
    """A blocking client that is past the handshake."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb", 1 << 20)
        self.ask(frame(17, struct.pack(">II", 1, 0)))
        self.ask(frame(18, struct.pack(">I", 2)))
        secret = b"\0guest\0guest"
        self.ask(frame(19, struct.pack(">I", 3) + text("PLAIN") + struct.pack(">I", len(secret)) + secret))
        self.read()  # Tune
        self.socket.sendall(frame(20, struct.pack(">II", 1 << 20, 0)))
        self.ask(frame(21, struct.pack(">I", 4) + text("/")))

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def ask(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        return self.read()

    def read(self) -> bytes:
        (size,) = struct.unpack(">I", self._file.read(4))
        return self._file.read(size)


def publish_all(connection: Connection, messages: int, batch: int = BATCH, per_write: int = 1) -> float:
    """Seconds from the first Publish to the last confirm."""
    frames = [
        frame(
            2,
            struct.pack(">BI", 0, batch)
            + b"".join(struct.pack(">QI", first + n, len(BODY)) + BODY for n in range(batch)),
        )
        for first in range(0, messages, batch)
    ]
    writes = [b"".join(frames[at : at + per_write]) for at in range(0, len(frames), per_write)]
    confirmed = 0
    room = threading.Condition()

    def count() -> None:
        nonlocal confirmed
        while confirmed < messages:
            body = connection.read()
            if body[:2] == b"\x00\x03":
                with room:
                    confirmed += struct.unpack_from(">I", body, 5)[0]
                    room.notify()

    reader = threading.Thread(target=count)
    begun = time.perf_counter()
    reader.start()
    for number, each in enumerate(writes):
        with room:
            room.wait_for(lambda sent=number * batch * per_write: sent - confirmed < WINDOW)
        connection.socket.sendall(each)
    reader.join()
    return time.perf_counter() - begun


def consume_all(connection: Connection, stream: str, messages: int) -> float:
    """Seconds from Subscribe to the last message."""
    begun = time.perf_counter()
    subscribe = struct.pack(">IB", 9, 1) + text(stream) + struct.pack(">HH", 1, CREDIT) + bytes(4)
    connection.socket.sendall(frame(7, subscribe))
    seen = chunks = 0
    while seen < messages:
        body = connection.read()
        if body[:2] == b"\x00\x08":
            seen += struct.unpack_from(">I", body, 9)[0]
            chunks += 1
        if chunks >= CREDIT // 4:
            connection.socket.sendall(frame(9, struct.pack(">BH", 1, chunks)))
            chunks = 0
    return time.perf_counter() - begun


def main() -> None:
    host, port, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    shape = [int(each) for each in sys.argv[4:]]
    stream = f"load-{time.time_ns()}"
    connection = Connection(host, port)
    connection.ask(frame(13, struct.pack(">I", 5) + text(stream) + bytes(4)))
    connection.ask(frame(1, struct.pack(">IB", 6, 0) + text("") + text(stream)))
    publishing = publish_all(connection, messages, *shape)
    consuming = consume_all(connection, stream, messages)
    connection.ask(frame(14, struct.pack(">I", 10) + text(stream)))
    print(json.dumps({"publish_confirm": messages / publishing, "consume": messages / consuming}))


if __name__ == "__main__":
    main()
