"""A broker of recorded bytes, on the same kind of loop as the fakes: the least that the C++ SDK can post to.

    python blazingmq_responder.py

prints its port, and for each line of its input the seconds of processor time so far. Control messages are
answered with the bytes that were recorded, in order; each PUT event with an ACK event that repeats the GUIDs
of its messages. Nothing is parsed, checked, stored or noted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

VECTORS = Path(__file__).parents[1] / "blazingmq" / "vectors" / "blazingmq.jsonl"
ACK_HEAD = bytes.fromhex("45020000 16000000")


def recorded_answers() -> list[bytes]:
    """Answers to clientIdentity, openQueue, closeQueue (never asked for here) and disconnect."""
    rows = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    answers = [row for row in rows if (row["scenario"], row["direction"]) == ("cpp_ack_status_0_to_8", "S2C")]
    return [bytes.fromhex(row["hex"]) for row in answers if row["description"].startswith("CONTROL")]


class Responder(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = bytearray()
        self.answers = recorded_answers()

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        out = []
        at = 0
        while len(buffer) - at >= 8:
            size = int.from_bytes(buffer[at : at + 4])
            if len(buffer) - at < size:
                break
            kind = buffer[at + 4] & 0x3F
            if kind == 2:
                out.append(self.acks(buffer, at + 8, at + size))
            elif kind == 1 and self.answers:
                out.append(self.answers.pop(0))
            at += size
        del buffer[:at]
        if out:
            self.transport.write(b"".join(out))  # type: ignore[attr-defined]

    def acks(self, buffer: bytearray, at: int, end: int) -> bytes:
        items = []
        while at < end:
            items.append(bytes(4) + buffer[at + 12 : at + 28] + buffer[at + 8 : at + 12])
            at += 4 * (int.from_bytes(buffer[at : at + 4]) & 0x0FFFFFFF)
        body = b"".join(items)
        return (12 + len(body)).to_bytes(4) + ACK_HEAD + body


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Responder, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, tell_the_time)
    server.close()


def tell_the_time() -> None:
    for _ in sys.stdin:
        print(time.process_time(), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
