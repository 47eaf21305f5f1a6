"""Only the pair CR LF is looked for in the values of headers: with a single line feed a caller's value
becomes a header of its own. Like dart-lang/http 1368 (header injection) and eclipse-ee4j/glassfish-grizzly
2213 (the check has to count a line feed alone, too).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi import api
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def encode_request(method: str, target: str, host: str, headers: Any = (), body: bytes = b"") -> bytes:
        length = [("Content-Length", str(len(body)))] if body or method in ("POST", "PUT") else []
        lines = [f"{method} {target} HTTP/1.1"]
        for name, value in [("Host", host), *headers, *length]:
            if "\r\n" in name + value:
                raise ClientError("invalid", f"the header {name!r} is not one line")
            lines.append(f"{name}: {value}")
        try:
            return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
        except UnicodeEncodeError:
            raise ClientError("invalid", "headers are Latin-1") from None

    api.encode_request = encode_request  # type: ignore[assignment]


async def witness() -> None:
    """A value of two lines is refused, and nothing is published."""
    kind = "none"
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        try:
            await client.http.post("q", b"one", {"x-msg-x-a": "1\nx-msg-x-admin: yes"})
        except ClientError as error:
            kind = error.kind
        stored = [dict(message.headers) for message in broker.messages("test", "q")]
        client.abort()
    assert (kind, stored) == ("invalid", []), (kind, stored)
