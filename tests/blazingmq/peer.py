"""A client on a real socket, with the codec of the fake."""

from __future__ import annotations

import socket
from typing import ClassVar

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.blazingmq.frames import Ack, ClientIdentity, ConfigureStream, OpenQueue, Push, Put
from fakebrokers.blazingmq.schema import StreamParameters
from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.core.frames import Frame
from tests.blazingmq.bench import CPP, parameters, put, subscription
from tests.eventually import PATIENCE_S


class Peer:
    """A blocking client; `close_all` closes those that a test has left open."""

    _open: ClassVar[list[Peer]] = []

    def __init__(self, broker: BlazingMQ, identity: ClientIdentity = CPP, port: int = 0) -> None:
        self.socket = socket.create_connection((broker.host, port or broker.port), timeout=PATIENCE_S)
        self.codec = BlazingCodec(Encoding.BER if "BER" in identity.features else Encoding.JSON)
        self._buffer = b""
        self._open.append(self)
        self.send(identity)

    @classmethod
    def close_all(cls) -> None:
        """Close every socket."""
        while cls._open:
            cls._open.pop().socket.close()

    def send(self, *frames: Frame) -> None:
        self.socket.sendall(b"".join([self.codec.encode(frame) for frame in frames]))

    def event(self) -> bytes:
        """The bytes of the next event."""
        while len(self._buffer) < 8 or len(self._buffer) < int.from_bytes(self._buffer[:4]):
            more = self.socket.recv(1 << 16)
            if not more:
                raise EOFError
            self._buffer += more
        size = int.from_bytes(self._buffer[:4])
        event, self._buffer = self._buffer[:size], self._buffer[size:]
        return event

    def next(self) -> Frame:
        """The next frame."""
        return self.codec.decode(self.event())

    def open(self, *, read: bool = True) -> Peer:
        """Read and write the queue `Q`; all answers are read."""
        self.send(OpenQueue(1, parameters(read=read, write=True)))
        if read:
            self.send(ConfigureStream(2, 0, StreamParameters("__default", (subscription(),))))
        for _ in range(2 + read):
            self.next()
        return self

    def post(self, *numbers: int, ack: bool = True) -> None:
        """Post messages in one event."""
        self.send(Put(tuple([put(b"%d" % number, number=number, ack=ack) for number in numbers])))

    def acks(self) -> list[tuple[bytes, int]]:
        """GUIDs and statuses of the next event, an ACK."""
        frame = self.next()
        assert isinstance(frame, Ack), frame
        return [(message.guid, message.status) for message in frame.messages]

    def push(self) -> Push:
        frame = self.next()
        assert isinstance(frame, Push), frame
        return frame
