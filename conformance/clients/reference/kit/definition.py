"""What a protocol contributes to its reference client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from conformance.clients.adapter.contract import STRICT
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit.runtime import Runtime


class ReferenceClient(Protocol):
    """What the adapter asks of every client."""

    runtime: Runtime

    async def connect(self, timeout: float | None) -> None:
        """Make the session usable. Raises `ClientError`; whatever goes wrong leaves nothing open."""

    async def close(self, timeout: float | None) -> None:
        """End everything gracefully; may be called twice. Raises `ClientError` (timeout)."""

    def abort(self) -> None:
        """Drop everything at once: no farewell, no task left."""

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent or come."""

    @property
    def pending(self) -> int:
        """Ops on the wire that have no outcome."""

    @property
    def buffered_bytes(self) -> int:
        """Bodies that are kept here."""

    @property
    def timers(self) -> int:
        """Timers that are set."""


class ReferenceOps(Protocol):
    """The ops of a protocol: methods marked with `adapter.kit.op`, like those of an adapter."""

    def __init__(self, adapter: AdapterBase) -> None: ...  # the `ReferenceAdapter`

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> ReferenceClient:
        """A client that is not connected yet; endpoints and options are those of the op ``connect``."""


class Reference(NamedTuple):
    """A reference client, as data.

    Attributes:
        ops: Makes clients and has the protocol's ops.
        roles, caps, callbacks, settles, formats: What the adapter says of itself in its hello.
        contract: What it may do besides: nothing of what `adapter.contract` has words for.
        facts: Members of the hello that only this protocol has, such as ``transporters``.
    """

    protocol: str
    ops: type[ReferenceOps]
    roles: tuple[str, ...]
    caps: str
    callbacks: tuple[str, ...] = ("message", "session", "error")
    settles: str = "none"
    formats: tuple[str, ...] = ()
    contract: Mapping[str, bool] = STRICT
    facts: Mapping[str, Any] = {}
