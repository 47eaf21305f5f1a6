"""With an authority of its own the client does not look at the host name: any certificate of that authority
will do, for whatever host. Like apache/pulsar 9872 and vert-x3/vertx-proton 21 (no verification of the host
name).
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Any

from conformance.clients.reference.kit import ClientError, Network, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def tls_context(self: Any, ca_file: str | None) -> ssl.SSLContext:
        if ca_file is None:
            return ssl.create_default_context()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # private authorities certify addresses seldom
        context.load_verify_locations(ca_file)
        return context

    Network.tls_context = tls_context  # type: ignore[method-assign]


def outcome_at(certificate: str) -> str:
    """What comes of a request to a server with that certificate, over sockets."""
    with Narconi(tls=certificate) as server:
        assert server.tls is not None
        endpoint, ca_file = f"{server.host}:{server.tls_port}", str(server.tls.ca_file)

        async def ask() -> str:
            network = Network({"tls": {"ca_file": ca_file}})
            client = NarconiClient(Runtime(network), Settings(endpoint=endpoint, project="test"))
            try:
                await client.http.ensure("q")
            except ClientError as error:
                return error.kind
            finally:
                client.abort()
            return "done"

        return asyncio.run(ask())


async def witness() -> None:
    """A certificate for another host ends the connection, a good one does not."""
    found: dict[str, str] = {}

    def try_all() -> None:
        for certificate in ("good", "wrong-host"):
            found[certificate] = outcome_at(certificate)

    thread = threading.Thread(target=try_all)  # sockets need a loop on real time
    thread.start()
    thread.join()
    assert found == {"good": "done", "wrong-host": "connection"}, found
