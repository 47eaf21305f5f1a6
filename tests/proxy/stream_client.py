"""A small client of RabbitMQ's stream protocol on a socket, frame by frame."""

from __future__ import annotations

import socket
from collections import deque
from types import TracebackType
from typing import TypeVar

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    DeclarePublisher,
    OpenResponse,
    PublishConfirm,
    Response,
    Tune,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.eventually import PATIENCE_S
from tests.rabbitmq_stream.bench import HANDSHAKE

F = TypeVar("F", bound=Frame)


class StreamClient:
    """Connected and logged in.

    Args:
        ids: What correlation ids and publishing ids begin with.
        publisher: The publisher's id.
    """

    def __init__(self, port: int, *, ids: int = 1, publisher: int = 1) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.settimeout(PATIENCE_S)
        self.publisher = publisher
        self.next_id = ids
        self._codec = StreamCodec("client")
        self._frames: deque[Frame] = deque()
        for state, frame in HANDSHAKE:  # one by one, as real servers want it
            self.say(frame)
            if state in ("connected", "introduced"):
                self.wait(Response)
            elif state == "authenticating":
                self.wait(Tune)
        self.opened = self.wait(OpenResponse)

    def __enter__(self) -> StreamClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def say(self, *frames: Frame) -> None:
        self.socket.sendall(b"".join([self._codec.encode(frame) for frame in frames]))

    def wait(self, kind: type[F]) -> F:
        """The next frame of that kind; others in front of it are left out."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                if isinstance(frame, kind):
                    return frame
            data = self.socket.recv(65536)
            assert data, f"the connection ended before a {kind.__name__} came"
            self._frames.extend(frame for frame, _ in self._codec.feed(data))

    def create(self, stream: str) -> None:
        """A stream, and a publisher for it."""
        self.say(Create(self.take_id(), stream, {}))
        self.say(DeclarePublisher(self.take_id(), self.publisher, "", stream))

    def take_id(self) -> int:
        taken, self.next_id = self.next_id, self.next_id + 1
        return taken

    def publish(self, *bodies: bytes) -> list[int]:
        """One frame with messages; their ids."""
        ids = [self.take_id() for _ in bodies]
        self.say(publish(self.publisher, zip(ids, bodies, strict=True)))
        return ids

    def confirmed(self, count: int) -> list[int]:
        """The ids of the confirms that come, until there are `count`."""
        found: list[int] = []
        while len(found) < count:
            frame = self.wait(PublishConfirm)
            found += [
                int.from_bytes(frame.publishing_ids[at : at + 8], "big")
                for at in range(0, len(frame.publishing_ids), 8)
            ]
        return found
