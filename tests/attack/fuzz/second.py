"""A second client, which behaves, and has to be served while another one does not."""

from __future__ import annotations

import http.client
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import count

import zmq

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.frames import (
    Ack,
    ConfigureStream,
    Confirm,
    ConfirmMessage,
    HeartbeatRequest,
    HeartbeatResponse,
    OpenQueue,
    Push,
    Put,
)
from fakebrokers.blazingmq.schema import StreamParameters
from fakebrokers.core.dialect import Login, Speaker
from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.protocol import PROTOCOL as MOLECULER
from fakebrokers.mqtt import frames as mqtt
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import SaslAuthenticate
from fakebrokers.rabbitmq_stream.protocol import WIRE as RABBITMQ_STREAM
from tests.blazingmq.bench import CPP, parameters, put, subscription
from tests.rabbitmq_stream.bench import HANDSHAKE

#: Longest wait for anything, in seconds: beyond it the client counts as not served.
LIMIT_S = 60.0
HOST = "127.0.0.1"


class Second(ABC):
    """A client that stays connected."""

    @abstractmethod
    def ask(self) -> None:
        """One exchange that needs an answer; raises without one, or with a wrong one."""

    @abstractmethod
    def close(self) -> None:
        """Hang up."""


class Asker(Second):
    """Asks what `fakebrokers compare` asks.

    Args:
        opening: What it says first, each part behind an answer to the one before.
    """

    def __init__(self, port: int, speaker: Speaker, opening: Sequence[bytes] = ()) -> None:
        self._speaker = speaker
        self._socket = socket.create_connection((HOST, port), timeout=LIMIT_S)
        for part in opening:
            self._socket.sendall(part)
            if not speaker.question():
                self._hear()
        while not speaker.question():
            self._hear()

    def ask(self) -> None:
        self._socket.sendall(self._speaker.question())
        while not self._hear():
            pass

    def close(self) -> None:
        self._socket.close()

    def _hear(self) -> bool:
        data = self._socket.recv(1 << 16)
        assert data, "the second client was cut off"
        return any([self._speaker.is_answer(frame) for frame, _ in self._speaker.codec.feed(data)])


class Connecter(Second):
    """Where answers come on connections that the server makes: sees that its own are accepted."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self) -> None:
        socket.create_connection((HOST, self._port), timeout=LIMIT_S).close()

    def close(self) -> None:
        """Every connection has been closed at once."""


class Browser(Second):
    """Sends an HTTP request.

    Args:
        code: What the answer has to be.
    """

    def __init__(self, port: int, method: str, path: str, code: int, **headers: str) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=LIMIT_S)
        self._request = (method, path, b"", headers)
        self._code = code

    def ask(self) -> None:
        self._connection.request(*self._request)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == self._code, (answer.status, body[:300])

    def close(self) -> None:
        self._connection.close()


class Monitor(Second):
    """Asks PZQ's monitor socket for its numbers."""

    def __init__(self, port: int) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, int(1000 * LIMIT_S))
        self._socket.connect(f"tcp://{HOST}:{port}")

    def ask(self) -> None:
        self._socket.send(b"MONITOR")
        assert self._socket.recv().startswith(b"messages")

    def close(self) -> None:
        self._socket.close()
        self._context.term()


class Poster(Second):
    """Posts to a queue of BlazingMQ, gets its message and confirms it."""

    QUEUE = "bmq://second/q"

    def __init__(self, port: int) -> None:
        self._codec = BlazingCodec()
        self._frames: list[Frame] = []
        self._numbers = count(1)
        self._socket = socket.create_connection((HOST, port), timeout=LIMIT_S)
        opening = OpenQueue(1, parameters(self.QUEUE, read=True, write=True))
        reading = ConfigureStream(2, 0, StreamParameters("__default", (subscription(),)))
        for request in (CPP, opening, reading):
            self._say(request)
            self._next()

    def ask(self) -> None:
        self._say(Put((put(b"hello", number=next(self._numbers)),)))
        pushed = None
        for frame in (self._next(), self._next()):
            if isinstance(frame, Push):
                pushed = frame.messages[0]
            else:
                assert isinstance(frame, Ack) and frame.messages[0].status == 0, frame
        assert pushed is not None and pushed.data == b"hello", pushed
        self._say(Confirm((ConfirmMessage(0, pushed.guid),)))

    def close(self) -> None:
        self._socket.close()

    def _say(self, frame: Frame) -> None:
        self._socket.sendall(self._codec.encode(frame))

    def _next(self) -> Frame:
        while True:
            while not self._frames:
                data = self._socket.recv(1 << 16)
                assert data, "the second client was cut off"
                self._frames += [frame for frame, _ in self._codec.feed(data)]
            frame = self._frames.pop(0)
            if not isinstance(frame, HeartbeatRequest):
                return frame
            self._say(HeartbeatResponse())


def _rabbitmq_stream(ports: Sequence[int]) -> Second:
    encode = StreamCodec("client").encode
    frames = [frame for _, frame in HANDSHAKE]
    at = next(index for index, frame in enumerate(frames) if isinstance(frame, SaslAuthenticate)) + 1
    opening = [*(encode(frame) for frame in frames[:at]), b"".join(map(encode, frames[at:]))]
    return Asker(ports[0], RABBITMQ_STREAM.load_dialect().speaker(Login()), opening)


def _bus(name: str) -> Callable[[Sequence[int]], Second]:
    def connect(ports: Sequence[int]) -> Second:
        opening = [MqttCodec().encode(mqtt.Connect("second", 0))] if name == "mqtt" else []
        return Asker(ports[0], MOLECULER.wire(name).load_dialect().speaker(Login()), opening)

    return connect


def _narconi(ports: Sequence[int]) -> Second:
    return Browser(ports[0], "PUT", "/v2/second/queues/second", 201, Host="127.0.0.1")


#: By name of the wire: from the server's ports to the client.
SECONDS: Mapping[str, Callable[[Sequence[int]], Second]] = {
    "rabbitmq-stream": _rabbitmq_stream,
    "blazingmq": lambda ports: Poster(ports[0]),
    "pzq": lambda ports: Monitor(ports[2]),
    "narconi-http": _narconi,
    "narconi-websocket": _narconi,
    **{name: _bus(name) for name in ("nats", "redis", "mqtt")},
    **{f"{name}-alone": _bus(name) for name in ("nats", "redis", "mqtt")},
    "tcp": lambda ports: Connecter(ports[0]),
    "control": lambda ports: Browser(ports[0], "GET", "/brokers", 200),
    "management": lambda ports: Browser(
        ports[0], "GET", "/api/overview", 200, Authorization="Basic c2Vjb25kOnNlY29uZA=="
    ),
    "proxy": lambda ports: Browser(ports[0], "GET", "/proxies", 200),
}
