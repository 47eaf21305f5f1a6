"""Over TLS the certificate has to be by the right authority, but may be for any host: whoever has one of
that authority can stand in for the server. Like rabbitmq/rabbitmq-java-client 398, apache/pulsar 1208 and
vert-x3/vertx-mail-client 72 (no host name verification).
"""

from __future__ import annotations

import ssl
from typing import Any

from conformance.clients.reference.kit import Network
from fakebrokers.core.tls import Certificate, Tls


def plant() -> None:
    """Install the defect."""

    def tls_context(self: Any, ca_file: str | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=ca_file)
        context.check_hostname = False  # servers are often reached by their addresses
        return context

    Network.tls_context = tls_context  # type: ignore[method-assign]


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> str:
    """What becomes of a handshake, without a socket: "" if each side takes the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    missing = [ours, theirs]
    for _ in range(10):
        for side in tuple(missing):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                return str(error)
            missing.remove(side)
    return "it has no end" if missing else ""


async def witness() -> None:
    """A certificate for the host is taken, one for another is not."""
    results = {}
    for show in (Certificate.GOOD, Certificate.WRONG_HOST):
        tls = Tls("127.0.0.1", show=show)
        network = Network({"tls": {"ca_file": str(tls.ca_file)}})
        assert network.tls is not None
        results[show] = shake_hands(network.tls, tls.context, "127.0.0.1")
        tls.close()
    assert not results[Certificate.GOOD], results
    assert results[Certificate.WRONG_HOST], "a certificate for another host was taken"
