"""https and wss."""

from __future__ import annotations

import ssl

import pytest
from websockets.sync.client import connect

from fakebrokers.errors import UsageError
from fakebrokers.narconi.server import Narconi
from tests.eventually import PATIENCE_S


def test_publish_over_wss() -> None:
    with Narconi(tls=True) as broker:
        broker.create_queue("gold", "q")
        assert broker.tls is not None
        context = ssl.create_default_context(cafile=str(broker.tls.ca_file))
        assert broker.urls["tls"] == f"https://127.0.0.1:{broker.tls_port}"
        url = f"wss://localhost:{broker.tls_port}/v2/gold/queues/q/messages"
        with connect(url, subprotocols=["publish"], ssl=context, open_timeout=PATIENCE_S) as socket:  # type: ignore[list-item]
            socket.send(b"hello")
            assert socket.recv(timeout=PATIENCE_S) == ""
        assert [message.payload for message in broker.messages("gold", "q")] == [b"hello"]
        folder = broker.tls.ca_file.parent
    assert not folder.exists()


def test_a_bad_certificate_is_bad() -> None:
    with Narconi(tls=True) as broker:
        assert broker.tls is not None
        broker.tls.show("unknown-authority")
        context = ssl.create_default_context(cafile=str(broker.tls.ca_file))
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(f"wss://localhost:{broker.tls_port}/", ssl=context, open_timeout=PATIENCE_S)


def test_no_tls_unless_wanted() -> None:
    with Narconi() as broker:
        assert list(broker.urls) == ["ws"]
        with pytest.raises(UsageError, match="tls=True"):
            _ = broker.tls_port
