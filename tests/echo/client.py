"""A small client of the echo: puts names and waits until they are stored. It does not connect again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from conformance.clients.adapter import kit
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit import (
    ClientError,
    Reference,
    ReferenceAdapter,
    Runtime,
    Wire,
    adapter_of,
    seconds,
)
from conformance.clients.reference.registry import without_sockets
from tests.echo.protocol import EchoCodec, Put, Stored

STORED = "0"


class EchoClient(asyncio.Protocol):
    """One connection; answers are told apart by the name that they begin with."""

    timers = buffered_bytes = 0

    def __init__(self, runtime: Runtime, endpoint: str) -> None:
        self.runtime = runtime
        self.endpoint = endpoint
        self.wire: Wire | None = None
        self.codec = EchoCodec()
        self.waiting: dict[str, asyncio.Future[str]] = {}

    async def connect(self, timeout: float | None) -> None:
        try:
            self.wire = await self.runtime.network.dial(self.endpoint, lambda: self)
        except OSError as error:
            raise ClientError("connection", str(error)) from None
        self.runtime.callbacks.report("connected")

    async def put(self, name: str, timeout: float | None) -> None:
        """Raises `ClientError`: refused with the code of the answer, timeout, connection, closed."""
        if self.wire is None:
            raise ClientError("closed" if self.runtime.is_closed else "connection", "not connected")
        answer = self.waiting[name] = asyncio.get_running_loop().create_future()
        self.wire.write(self.codec.encode(Put((name,))))
        try:
            code = await asyncio.wait_for(answer, timeout)
        except TimeoutError:
            raise ClientError("timeout", "no answer") from None
        finally:
            self.waiting.pop(name, None)
        if code != STORED:
            raise ClientError("refused", f"code {code}", code=code)

    def data_received(self, data: bytes) -> None:
        for frame, _ in self.codec.feed(data):
            if isinstance(frame, Stored):
                for name, code in zip(frame.names, frame.codes, strict=False):
                    self.stored(name, str(code))

    def stored(self, name: str, code: str) -> None:
        if name in self.waiting and not self.waiting[name].done():
            self.waiting[name].set_result(code)

    def connection_lost(self, error: Exception | None) -> None:
        self.wire = None
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(ClientError("connection", "the connection is gone"))
        if not self.runtime.is_closed:
            self.runtime.callbacks.report("connection_lost", "")

    async def close(self, timeout: float | None) -> None:
        self.abort()
        await asyncio.sleep(0)  # those who wait are told first

    def abort(self) -> None:
        self.runtime.end()
        if self.wire is not None:
            self.wire.abort()
            self.connection_lost(None)

    @property
    def is_open(self) -> bool:
        return self.wire is not None

    @property
    def pending(self) -> int:
        return len(self.waiting)


class EchoOps:
    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> EchoClient:
        return runtime.part(EchoClient)(runtime, endpoints[0])

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Any, wait: bool = True, timeout_ms: float | None = None
    ) -> dict[str, Any]:
        client: EchoClient = self.adapter.session(session)
        await client.put(quote(kit.body_bytes(body)), seconds(timeout_ms))
        return {"outcome": "acked", "key": None, "meta": {}}


def echo_client(*replaced: type) -> type[AdapterBase]:
    """The client for fakes in memory, with these parts instead of its own."""
    reference = Reference(protocol="echo", ops=EchoOps, roles=("publisher",), caps="cancel stats")
    return without_sockets(adapter_of(reference, replaced, "Echo"))
