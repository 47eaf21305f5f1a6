"""TLS listeners: good and deliberately bad certificates, SASL EXTERNAL, advertised ports."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.access import User
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Open,
    OpenResponse,
    PeerProperties,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
    Tune,
)
from tests.eventually import PATIENCE_S


@pytest.fixture
def broker() -> Iterator[RabbitMQStream]:
    with RabbitMQStream(tls=True) as broker:
        yield broker


class Client:
    """A blocking client over TLS."""

    def __init__(self, broker: RabbitMQStream, certificate: tuple[Path, Path] | None = None) -> None:
        assert broker.tls is not None
        context = ssl.create_default_context(cafile=str(broker.tls.ca_file))
        if certificate is not None:
            context.load_cert_chain(*certificate)
        self._plain = socket.create_connection((broker.host, broker.tls_port), timeout=PATIENCE_S)
        try:
            self._socket = context.wrap_socket(self._plain, server_hostname=broker.host)
        except BaseException:
            self._plain.close()
            raise
        self._codec = StreamCodec("client")
        self._frames: list[Frame] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, frame: Frame) -> Frame:
        self._socket.sendall(self._codec.encode(frame))
        return self.read()

    def read(self) -> Frame:
        while not self._frames:
            self._frames += [frame for frame, _ in self._codec.feed(self._socket.recv(65536))]
        return self._frames.pop(0)

    def log_in(self, mechanism: str, data: bytes) -> Frame:
        self.ask(PeerProperties(1, {}))
        offered = self.ask(SaslHandshake(2))
        assert isinstance(offered, SaslHandshakeResponse)
        assert mechanism in offered.mechanisms
        return self.ask(SaslAuthenticate(3, mechanism, data))


def test_the_protocol_is_the_same_inside(broker: RabbitMQStream) -> None:
    with Client(broker) as client:
        assert client.log_in("PLAIN", b"\0guest\0guest") == SaslAuthenticateResponse(3, Code.OK)
        tune = client.read()
        assert isinstance(tune, Tune)
        client._socket.sendall(client._codec.encode(tune))
        opened = client.ask(Open(4, "/"))
        assert isinstance(opened, OpenResponse)
        assert opened.properties is not None
        assert opened.properties["advertised_port"] == str(broker.tls_port)
        assert broker.tls_port != broker.port


def test_external_takes_the_name_from_the_certificate(broker: RabbitMQStream) -> None:
    broker.broker.access.add_user(User("alice", "secret"))
    assert broker.tls is not None
    with Client(broker, broker.tls.client_certificate("alice")) as client:
        assert client.log_in("EXTERNAL", b"") == SaslAuthenticateResponse(3, Code.OK)


def test_external_without_a_certificate_is_refused(broker: RabbitMQStream) -> None:
    with Client(broker) as client:
        refused = client.log_in("EXTERNAL", b"")
        assert refused == SaslAuthenticateResponse(3, Code.AUTHENTICATION_FAILURE)


@pytest.mark.parametrize("kind", ["expired", "wrong-host", "unknown-authority"])
def test_bad_certificates_are_bad(broker: RabbitMQStream, kind: str) -> None:
    assert broker.tls is not None
    broker.tls.show(kind)
    with pytest.raises(ssl.SSLCertVerificationError):
        Client(broker)
    broker.tls.show("good")
    with Client(broker) as client:
        client.ask(PeerProperties(1, {}))
    seen = {record.connection for record in broker.journal.select(kind="PeerProperties")}
    assert len(seen) == 1  # nothing was heard on the bad ones


def test_records_that_come_together_are_read_whole(broker: RabbitMQStream) -> None:
    assert broker.tls is not None
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(broker.tls.ca_file))
    secure = context.wrap_bio(coming, going, server_hostname=broker.host)
    with socket.create_connection((broker.host, broker.tls_port), timeout=PATIENCE_S) as plain:
        while True:
            try:
                secure.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(going.read())
                coming.write(plain.recv(65536))
        asked = PeerProperties(1, {"product": "x" * 100})
        whole = StreamCodec("client").encode(asked)
        for byte in range(0, len(whole), 20):
            secure.write(whole[byte : byte + 20])
        plain.sendall(going.read())  # many records in one segment
        broker.wait_for(kind="PeerProperties", timeout=PATIENCE_S)
    (seen,) = broker.journal.select(kind="PeerProperties")
    assert seen.frame == asked


def test_nothing_is_left_behind() -> None:
    with RabbitMQStream(tls=True) as broker:
        assert broker.tls is not None
        folder = broker.tls.ca_file.parent
        assert folder.exists()
    assert not folder.exists()
