"""Asks the monitor (P12)."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.pzq.sockets import Connector, Parts
from fakebrokers.pzq.memory import SocketType

DIGITS_MAX = 40

Values = dict[str, int | str]


class Inquirer:
    """One REQ socket for each question: one that was never answered could not ask again."""

    kind: ClassVar[SocketType] = "REQ"

    def __init__(self, runtime: Runtime, connector: Connector, endpoint: str) -> None:
        self.runtime = runtime
        self.connector = connector
        self.endpoint = endpoint
        self.waiting: OrderedSet[asyncio.Future[Parts]] = OrderedSet()

    def request(self) -> Parts:
        """The question."""
        return (b"MONITOR",)

    async def ask(self, timeout: float | None = None) -> Values:
        """What the monitor says. Raises `ClientError` (timeout, closed, protocol)."""
        answered: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()
        self.waiting.add(answered)

        def on_message(parts: Parts) -> None:
            if not answered.done():
                answered.set_result(parts)

        socket = self.connector.connect(self.endpoint, self.kind, on_message)
        try:
            socket.send(*self.request())
            parts = await asyncio.wait_for(answered, timeout)
        except TimeoutError:
            raise ClientError("timeout", f"the monitor did not answer within {timeout} s") from None
        finally:
            self.waiting.discard(answered)
            socket.close()
        return self.read(parts)

    def read(self, parts: Parts) -> Values:
        """The lines of a reply; what is no ``key: value`` is left out.

        Raises:
            ClientError: protocol, if there is none at all.
        """
        values = {}
        for line in parts[0].decode(errors="replace").split("\n"):
            key, colon, value = self.split(line)
            if key and colon:
                values[key] = self.value(value)
            elif line:
                self.runtime.callbacks.note(f"a line of the monitor's reply was left out: {line[:80]!r}")
        if not values:
            raise ClientError("protocol", f"expected lines 'key: value', got {parts[0][:80]!r}")
        return values

    def close(self) -> None:
        """What waits gets ``closed``."""
        for answered in self.waiting:
            if not answered.done():
                answered.set_exception(ClientError("closed", "closed before the monitor answered"))

    def split(self, line: str) -> tuple[str, str, str]:
        """Key, colon and value of a line; both parts are there for any line."""
        key, colon, value = line.partition(":")
        return key.strip(), colon, value.strip()

    def value(self, text: str) -> int | str:
        """A number where the text is one of a length that makes sense."""
        return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else text
