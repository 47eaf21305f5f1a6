"""The recorded exchanges of the real servers, and a raw client that plays them against the fake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fakebrokers.engine import Clock, Engine
from fakebrokers.narconi.broker import NarconiBroker
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.frames import FRAMES
from fakebrokers.narconi.profile import find_profile
from fakebrokers.narconi.session import NarconiSession
from fakebrokers.narconi.websocket import encode_frame
from fakebrokers.session import HangUp

RECORDS = Path(__file__).parent / "vectors" / "narconi.jsonl"

Record = dict[str, Any]
Headers = list[list[str]]


@cache
def recordings() -> dict[tuple[str, str], list[Record]]:
    """The records by server version and scenario, in order."""
    found: dict[tuple[str, str], list[Record]] = {}
    for line in RECORDS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["ch"] != "meta":
            found.setdefault((record["server"], record["scenario"]), []).append(record)
    return found


class Answer(NamedTuple):
    status_line: str
    headers: Headers
    body: bytes


class Reply(NamedTuple):
    """A WebSocket frame of the server."""

    opcode: int
    fin: int
    payload: bytes


class Socket:
    """A client's socket: what it wrote goes in at once, what came back waits in `data`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.data = bytearray()
        self.ended: HangUp | None = None
        self._connection = server.engine.accept(*server.welcome(), self, server.now, "test")
        server.engine.flush(server.now)

    # connection.Transport

    def write(self, units: list[bytes]) -> None:
        self.data += b"".join(units)

    def hang_up(self, how: HangUp) -> None:
        self.ended = how

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    # the client

    def send(self, data: bytes) -> None:
        self._server.engine.receive(self._connection, data, self._server.now)
        self._server.engine.flush(self._server.now)

    def drop(self) -> None:
        self._server.engine.lost(self._connection, self._server.now)
        self._server.engine.flush(self._server.now)

    def send_frame(self, opcode: int, payload: bytes, fin: bool = True) -> None:
        self.send(encode_frame(opcode, payload, fin=fin, masked=True))

    def request(
        self, method: str, target: str, headers: Headers, body: bytes | list[bytes] = b""
    ) -> Answer:
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        data = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if isinstance(body, list):
            data += b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in body) + b"0\r\n\r\n"
        else:
            data += body
        self.send(data)
        return self.answer(method)

    def answer(self, method: str = "GET") -> Answer:
        """The next HTTP answer, which must be there."""
        head, blank, rest = bytes(self.data).partition(b"\r\n\r\n")
        assert blank, "no answer"
        status_line, *lines = head.decode().split("\r\n")
        headers = [line.split(": ", 1) for line in lines]
        body, rest = _body({name.lower(): value for name, value in headers}, rest, method)
        self.data = bytearray(rest)
        return Answer(status_line, headers, body)

    def frames(self) -> Iterator[Reply]:
        """The WebSocket frames that are there; they are taken."""
        while self.data:
            first, size, at = self.data[0], self.data[1], 2
            assert not size & 0x80, "a server must not mask"
            if size >= 126:
                at = 4 if size == 126 else 10
                size = int.from_bytes(self.data[2:at], "big")
            payload = bytes(self.data[at : at + size])
            assert len(payload) == size
            del self.data[: at + size]
            yield Reply(first & 0x7F, first >> 7, payload)


def _body(headers: dict[str, str], rest: bytes, method: str) -> tuple[bytes, bytes]:
    if method == "HEAD":
        return b"", rest
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while True:
            line, _, rest = rest.partition(b"\r\n")
            size = int(line, 16)
            parts.append(rest[:size])
            assert rest[size : size + 2] == b"\r\n"
            rest = rest[size + 2 :]
            if not size:
                return b"".join(parts), rest
    size = int(headers.get("content-length", "0"))
    return rest[:size], rest[size:]


class Server:
    """The fake's core, without sockets; `now` is moved by hand."""

    def __init__(self, profile: str = "real", config: Config | None = None) -> None:
        self.profile = find_profile(profile)
        self.config = config or Config()
        self.now = 0.0
        clock = Clock(1_795_189_277.0)
        self.broker = NarconiBroker(clock.wall)
        self.engine = Engine(FRAMES, self.broker, clock=clock)

    def welcome(self) -> tuple[NarconiSession, NarconiCodec]:
        session = NarconiSession(self.broker, self.profile, self.config)
        return session, NarconiCodec(self.profile, self.config)

    def connect(self) -> Socket:
        return Socket(self)

    def websocket(self, target: str, protocol: str) -> Socket:
        """A socket behind a good handshake."""
        socket = self.connect()
        answer = socket.request(
            "GET",
            target,
            [
                ["Host", "x"],
                ["Upgrade", "websocket"],
                ["Connection", "Upgrade"],
                ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
                ["Sec-WebSocket-Version", "13"],
                ["Sec-WebSocket-Protocol", protocol],
            ],
        )
        assert answer.status_line == "HTTP/1.1 101 Switching Protocols"
        return socket


def request_body(record: Record) -> bytes | list[bytes]:
    """The body of a recorded request; long ones repeat their first byte."""
    first = bytes.fromhex(record["body_hex"] or "")
    size = record["body_len"]
    if isinstance(size, list):
        return [first[:1] * part for part in size]
    return first if size == len(first) else first[:1] * size


def frame_payload(record: Record) -> bytes:
    """The payload of a recorded WebSocket frame; long ones repeat their first byte."""
    first = bytes.fromhex(record["payload_hex"])
    return first if len(first) == record["len"] else first[:1] * record["len"]

