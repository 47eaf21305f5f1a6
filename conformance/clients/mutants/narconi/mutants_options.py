"""Defects in what a client can be given besides: projects, encodings, limits, ops in callbacks, an abort."""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Consumer
from conformance.clients.reference.narconi.ops import NarconiOps
from conformance.clients.reference.narconi.settings import Addresses, Settings
from conformance.clients.reference.narconi.websockets import WebSockets

T = TypeVar("T")


@mutant("default-project-after-a-loss", tag="data", breaks=["N18", "N20"])
class DefaultProjectAfterALoss(WebSockets):
    """Makes lost connections anew in the project ``test``, whatever the application has ordered."""

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._addresses = Addresses("test")
        return await super().reconnect(again)


@mutant("encodings-by-the-letter", tag="data", breaks=["N12"])
class EncodingsByTheLetter(Consumer):
    """Decodes bodies only where the encoding is written in lower case."""

    def decode(self, text: Any) -> bytes:
        if self.encoding == "base64":
            return b64decode(text, validate=True)
        return bytes.fromhex(text) if self.encoding == "hex" else str(text).encode()


@mutant("odd-limits-are-left-out", tag="wire", breaks=["N11"])
class OddLimitsAreLeftOut(NarconiClient):
    """Asks without a limit where the application gives one below 1."""

    async def subscribe(self, *args: Any, limit: Any = None, **more: Any) -> Any:
        return await super().subscribe(*args, limit=limit if limit is None or limit >= 1 else None, **more)


@mutant("fractional-limits-are-rounded", tag="wire", breaks=["N11"])
class FractionalLimitsAreRounded(NarconiClient):
    """Asks with the next whole limit where the application gives a fraction."""

    async def subscribe(self, *args: Any, limit: Any = None, **more: Any) -> Any:
        return await super().subscribe(*args, limit=None if limit is None else math.ceil(limit), **more)


@mutant("base-without-a-slash", tag="life-cycle", breaks=["N20"])
class BaseWithoutASlash(NarconiOps):
    """Takes the slash at the end of a base URL for a part of the port."""

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> NarconiClient:
        base = str(options.get("base") or endpoints[0])
        settings = Settings(
            endpoint=base.removeprefix("http://"),
            project=options.get("project", "test"),
            keepalive_s=options.get("keepalive_s"),
            auto_reconnect=bool(options.get("auto_reconnect")),
        )
        return runtime.part(NarconiClient)(runtime, settings)


@mutant("own-end-waits-for-itself", tag="life-cycle", breaks=["X10"])
class OwnWebSocketsEndWaitsForItself(NarconiOps):
    """A subscription ends when all its callbacks have ended, the one that asks for it too."""

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        await self.adapter.subscription(sub).handle._feed.drained()
        await super().unsubscribe(sub, drain, timeout_ms)


@mutant("abort-leaves-websockets", tag="life-cycle", breaks=["X4"])
class AbortLeavesWebsockets(NarconiClient):
    """Leaves its WebSockets open when the application drops the client."""

    def abort(self) -> None:
        self.runtime.is_closed = True
        self.http.abort()
        self.runtime.end()
