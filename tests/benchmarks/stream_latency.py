"""How long one message at a time takes from Publish to confirm, beside clients that flood.

    python stream_latency.py HOST PORT SECONDS FLOODERS

prints {"p50_ms": ..., "p99_ms": ..., "rounds": ...}.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
import time

from stream_load import BODY, Connection, frame, text

#: Publishes of one message in one write of a flooder
BURST = 4_000
PAUSE_S = 0.002
LEAD_S = 0.5


def publisher(host: str, port: int, stream: str) -> Connection:
    connection = Connection(host, port)
    connection.ask(frame(13, struct.pack(">I", 5) + text(stream) + bytes(4)))
    connection.ask(frame(1, struct.pack(">IB", 6, 0) + text("") + text(stream)))
    return connection


def one(publishing_id: int) -> bytes:
    return frame(2, struct.pack(">BIQI", 0, 1, publishing_id, len(BODY)) + BODY)


def flood(host: str, port: int) -> None:
    """Publish without ever waiting, until the process is ended."""
    client = publisher(host, port, f"flood-{time.time_ns()}").socket
    burst = b"".join(map(one, range(BURST)))

    def drop_answers() -> None:
        while client.recv(1 << 20):
            pass

    threading.Thread(target=drop_answers, daemon=True).start()
    while True:
        client.sendall(burst)


def measure(host: str, port: int, seconds: float) -> list[float]:
    """Milliseconds of each round, in order of size."""
    connection = publisher(host, port, f"quiet-{time.time_ns()}")
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        connection.socket.sendall(one(len(times)))
        while connection.read()[:2] != b"\x00\x03":
            pass
        times.append((time.perf_counter() - begun) * 1e3)
        time.sleep(PAUSE_S)
    connection.close()
    return sorted(times)


def main() -> None:
    host, port, seconds, flooders = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    if flooders < 0:
        flood(host, port)
    command = [sys.executable, __file__, host, str(port), "0", "-1"]
    floods = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(flooders)]
    try:
        time.sleep(LEAD_S if floods else 0.0)
        times = measure(host, port, seconds)
    finally:
        for each in floods:
            each.kill()
            each.wait()
    last = len(times) - 1
    print(json.dumps({"p50_ms": times[last // 2], "p99_ms": times[last * 99 // 100], "rounds": len(times)}))


if __name__ == "__main__":
    main()
