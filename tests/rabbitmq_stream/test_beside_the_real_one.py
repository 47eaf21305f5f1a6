"""Profile 3.10 beside Debian's RabbitMQ 3.10.8: the same bytes to both, and the same frames back."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    Create,
    DeclarePublisher,
    Delete,
    Metadata,
    MetadataResponse,
    Open,
    OpenResponse,
    PeerProperties,
    PublishError,
    Response,
    SaslAuthenticate,
    SaslHandshake,
    StoreOffset,
    Subscribe,
    Tune,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.eventually import PATIENCE_S
from tests.rabbitmq_stream.bench import HANDSHAKE
from tests.rabbitmq_stream.test_measured import ANSWERS
from tests.real_rabbitmq import RealRabbit, real_rabbitmq, required

pytestmark = pytest.mark.full

CREATE = (Create(10, "s", {}), DeclarePublisher(11, 1, "", "s"))

#: what is sent on an open connection, each frame in a segment of its own
COMMANDS: dict[str, tuple[Frame | bytes, ...]] = {
    "a frame of one byte": (b"\0\0\0\1\0",),
    "a frame of two bytes": (b"\0\0\0\2\0\1",),
    "an empty frame": (b"\0\0\0\0",),
    "nothing to an unknown publisher": (publish(9, []),),
    "a long name": (*CREATE, Subscribe(12, 1, "s", 1, None, 0, {"name": "n" * 256})),
    "a long reference": (*CREATE, StoreOffset("r" * 256, "s", 1)),
    "a cut Publish": (*CREATE, b"\0\0\0\x12" + bytes.fromhex("000200010100000001" + "00" * 9)),
    "a cut Publish 2": (*CREATE, b"\0\0\0\x12" + bytes.fromhex("000200020100000001" + "00" * 9)),
    "another declaration": (*CREATE, Create(12, "s", {"max-age": "1h"}), Create(13, "s", {})),
    "a large segment": (Create(12, "s", {"stream-max-segment-size-bytes": "3000000001"}),),
    **{
        f"answer {key:#x} {data}": (
            (4 + len(data) // 2).to_bytes(4, "big")
            + (0x8000 | key).to_bytes(2, "big")
            + b"\0\1"
            + bytes.fromhex(data),
        )
        for key, data, _, _ in ANSWERS
    },
}

#: handshakes, each frame in a segment of its own
HANDSHAKES: dict[str, tuple[Frame, ...]] = {
    "as it should be": tuple(frame for _, frame in HANDSHAKE),
    "peer properties twice": (PeerProperties(1, {}), PeerProperties(2, {})),
    "no tune": (*[frame for _, frame in HANDSHAKE[:3]], Open(4, "/")),
    "tune twice": (*[frame for _, frame in HANDSHAKE[:4]], Tune(0, 0)),
    "a login in front of everything": (SaslAuthenticate(3, "PLAIN", b"\0guest\0guest"),),
    "an authorization id": (
        PeerProperties(1, {}),
        SaslHandshake(2),
        SaslAuthenticate(3, "PLAIN", b"guest\0guest\0guest"),
    ),
}


@pytest.fixture(scope="module")
def real() -> Iterator[RealRabbit]:
    required()
    with real_rabbitmq() as running:
        yield running


@pytest.fixture(scope="module")
def fake() -> Iterator[RabbitMQStream]:
    with RabbitMQStream(profile="3.10") as broker:
        yield broker


class Talk:
    """A client that sends a frame and hears everything up to the answer to a question behind it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=PATIENCE_S)
        self._codec = StreamCodec("client")
        self.heard: list[str] = []
        self.ended = False

    def send(self, frame: Frame | bytes) -> None:
        """Send a frame in a segment of its own."""
        data = frame if isinstance(frame, bytes) else self._codec.encode(frame)
        try:
            self._socket.sendall(data)
        except OSError:
            self.ended = True

    def hear(self, until: type[Frame]) -> None:
        """Read up to a frame, a Close or the end."""
        while not self.ended:
            try:
                data = self._socket.recv(65536)
            except ConnectionResetError:
                data = b""
            self.ended = not data
            for frame, _ in self._codec.feed(data):
                self.heard.append(_brief(frame))
                if isinstance(frame, until | Close):
                    return
        self.heard.append("end")

    def hear_the_end(self, limit_s: float) -> None:
        """Note whether the server hangs up or is silent for that long."""
        self._socket.settimeout(limit_s)
        try:
            self.hear(Close)
        except TimeoutError:
            self.heard.append("silence")

    def close(self) -> None:
        self._socket.close()


def _brief(frame: Frame) -> str:
    """Kind and code of a frame; its other fields may differ."""
    codes = [code for _, code in frame.errors] if isinstance(frame, PublishError) else ""
    code = frame.code if isinstance(frame, Response | Close) else codes
    return f"{type(frame).__name__} {code}"


def heard(address: tuple[str, int], frames: tuple[Frame | bytes, ...]) -> list[str]:
    """What a server says to these frames on an open connection."""
    talk = Talk(address)
    try:
        for _, frame in HANDSHAKE:
            talk.send(frame)
            if isinstance(frame, SaslAuthenticate):
                talk.hear(Tune)
            elif not isinstance(frame, Tune):
                talk.hear(Response)
        talk.heard.clear()
        talk.send(Delete(9, "s"))
        talk.hear(Response)
        talk.heard.clear()
        for frame in frames:
            talk.send(frame)
            talk.send(Metadata(99, ()))
            talk.hear(MetadataResponse)
            if talk.ended or "Close" in talk.heard[-1]:
                break
        return talk.heard
    finally:
        talk.close()


@pytest.mark.parametrize("case", COMMANDS)
def test_commands(case: str, fake: RabbitMQStream, real: RealRabbit) -> None:
    expected = heard((real.host, real.port), COMMANDS[case])
    assert expected
    assert heard((fake.host, fake.port), COMMANDS[case]) == expected


def greeted(address: tuple[str, int], frames: tuple[Frame, ...], limit_s: float) -> list[str]:
    """What a server says to a handshake, up to the end that it or, after so long, the client makes."""
    talk = Talk(address)
    try:
        for frame in frames:
            talk.send(frame)
            if isinstance(frame, SaslAuthenticate) and len(frames) > 1:
                talk.hear(Tune)
            elif not isinstance(frame, Tune):
                talk.hear(OpenResponse if isinstance(frame, Open) else Response)
        talk.hear_the_end(limit_s)
        return talk.heard
    finally:
        talk.close()


@pytest.mark.parametrize("case", HANDSHAKES)
def test_handshakes(case: str, fake: RabbitMQStream, real: RealRabbit) -> None:
    for limit_s in (0.5, 5.0, 25.0):  # one that is slow to hang up looks silent
        expected = greeted((real.host, real.port), HANDSHAKES[case], limit_s)
        found = greeted((fake.host, fake.port), HANDSHAKES[case], limit_s)
        if found == expected:
            break
    assert found == expected
