"""The recorded exchanges of the real servers, and a raw client that plays them against the fake."""

from __future__ import annotations

import json
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fakebrokers.core.engine import Clock, Engine
from fakebrokers.core.session import HangUp
from fakebrokers.core.wire import frames_of
from fakebrokers.faults import Fault, Plan
from fakebrokers.faults.injector import Injector
from fakebrokers.journal import Journal
from fakebrokers.narconi.broker import NarconiBroker
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.profile import PROFILES, Profile
from fakebrokers.narconi.protocol import PROTOCOL, WIRE
from fakebrokers.narconi.server import Narconi
from fakebrokers.narconi.session import NarconiSession
from fakebrokers.narconi.websocket import encode_frame

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


class Socket(ABC):
    """A raw client. Whatever the server does about a call has been done when it returns."""

    data: bytearray  #: what came and was not looked at yet
    ended: HangUp | None = None  #: how the server ended it

    @abstractmethod
    def send(self, data: bytes) -> None: ...

    @abstractmethod
    def drop(self) -> None:
        """Close the TCP connection without a close frame."""

    @abstractmethod
    def look(self) -> None:
        """Take in what has come."""

    def send_frame(self, opcode: int, payload: bytes, fin: bool = True) -> None:
        self.send(encode_frame(opcode, payload, fin=fin, masked=True))

    def request(self, method: str, target: str, headers: Headers, body: bytes | list[bytes] = b"") -> Answer:
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
        self.look()
        head, blank, rest = bytes(self.data).partition(b"\r\n\r\n")
        assert blank, "no answer"
        status_line, *lines = head.decode().split("\r\n")
        headers = [line.split(": ", 1) for line in lines]
        body, rest = _body({name.lower(): value for name, value in headers}, rest, method)
        self.data = bytearray(rest)
        return Answer(status_line, headers, body)

    def frames(self) -> Iterator[Reply]:
        """The WebSocket frames that are there; they are taken."""
        self.look()
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


class Server(ABC):
    """A fake that recordings can be played against."""

    broker: NarconiBroker
    profile: Profile
    now: float = 0.0  #: monotonic seconds; where it can be moved, it is moved by hand

    @abstractmethod
    def connect(self) -> Socket: ...

    @abstractmethod
    def call(self, act: Callable[..., None], *arguments: Any) -> None:
        """Do something to the broker."""

    @property
    @abstractmethod
    def errors(self) -> list[BaseException]: ...

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


class Core(Server):
    """The fake's core without IO."""

    def __init__(
        self, profile: str = "real", config: Config | None = None, faults: tuple[Fault, ...] = ()
    ) -> None:
        self.profile = PROFILES[profile]
        self.config = config or Config()
        clock = Clock(1_795_189_277.0)
        self.broker = NarconiBroker(clock.wall)
        injector = Injector([WIRE], own=PROTOCOL.own_effects, protocol="narconi", plan=Plan(faults=faults))
        self.engine = Engine(self.broker, injector, Journal(frames_of([WIRE])), clock)

    def connect(self) -> CoreSocket:
        return CoreSocket(self)

    def call(self, act: Callable[..., None], *arguments: Any) -> None:
        act(*arguments)
        self.engine.flush(self.now)

    @property
    def errors(self) -> list[BaseException]:
        return self.engine.errors


class CoreSocket(Socket):
    """Implements `outgoing.Transport`: the client's end is the same object."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.data = bytearray()
        session = NarconiSession(core.broker, core.profile, core.config)
        codec = NarconiCodec(core.profile, core.config)
        self.connection = core.engine.accept(WIRE, session, codec, self, core.now, "test")
        core.engine.flush(core.now)

    def write(self, units: list[bytes]) -> None:
        self.data += b"".join(units)

    def hang_up(self, how: HangUp) -> None:
        self.ended = how

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def look(self) -> None: ...

    def send(self, data: bytes) -> None:
        self._core.engine.receive(self.connection, data, self._core.now)
        self._core.engine.flush(self._core.now)

    def drop(self) -> None:
        self._core.engine.lost(self.connection, self._core.now)
        self._core.engine.flush(self._core.now)


class Live(Server):
    """The fake on a socket; its time passes by itself."""

    def __init__(self, narconi: Narconi) -> None:
        self.narconi = narconi
        self.broker = narconi.broker
        self.profile = PROFILES[narconi.profile]
        self._sockets: list[LiveSocket] = []

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._sockets:
            client.socket.close()

    def connect(self) -> LiveSocket:
        client = LiveSocket(self)
        self._sockets.append(client)
        return client

    def call(self, act: Callable[..., None], *arguments: Any) -> None:
        self.narconi.call(act, *arguments)

    @property
    def errors(self) -> list[BaseException]:
        return self.narconi.engine.errors

    def drain(self) -> None:
        """Let the loop thread deal with what is in its sockets already."""
        for _ in range(8):
            self.narconi.call(lambda: None)


class LiveSocket(Socket):
    """A TCP socket."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self.data = bytearray()
        self.socket = socket.create_connection((live.narconi.host, live.narconi.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        live.drain()

    def look(self) -> None:
        self._live.drain()
        while self.ended is None and self.socket.fileno() >= 0:
            try:
                data = self.socket.recv(1 << 20)
            except BlockingIOError:
                return
            except ConnectionResetError:
                self.ended = HangUp.RST
                return
            if not data:
                self.ended = HangUp.FIN
                return
            self.data += data

    def send(self, data: bytes) -> None:
        self.socket.setblocking(True)
        self.socket.sendall(data)
        self.socket.setblocking(False)
        self._live.drain()

    def drop(self) -> None:
        self.socket.close()
        self._live.drain()


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
